//! The calls that say what a signal does: actions, masks, the alternate stack, and the way back from a handler.

use abi::Errno;
use abi::nr;
use abi::signal::{SIG_IGN, SIGSET_BYTES, SigAction, StackT};
use machine::{Registers, VirtAddr};

use super::{deliver, routines};
use crate::call::{Call, CallResult};
use crate::signal::frame;
use crate::signal::frame::restore::{Restored, VectorRestore};
use crate::signal::set::SignalSet;

/// Error: `EINVAL` for a set of another size.
pub fn check_set_size(bytes: u64) -> Result<(), Errno> {
    if bytes == SIGSET_BYTES as u64 { Ok(()) } else { Err(Errno::EINVAL) }
}

/// Errors: `EINVAL` for no signal, one that cannot be handled, or another size of sets; `EFAULT`.
pub fn rt_sigaction(call: &Call<'_>, signal: u64, new: u64, old: u64, set_bytes: u64) -> CallResult {
    check_set_size(set_bytes)?;
    let signal = signal as u32;
    let actions = call.process().actions();
    let until_now = if new == 0 {
        actions.borrow().get(signal)?
    } else {
        let action = call.read::<SigAction>(new)?;
        let replaced = actions.borrow_mut().set(signal, &action)?;
        call.process().flush_signals(replaced.flush);
        if action.sa_handler != SIG_IGN {
            crate::calls::times::posix::heeded(call.unix, call.process(), signal);
        }
        replaced.old
    };
    call.write_if(old, &until_now)?;
    Ok(0)
}

/// Errors: `EINVAL` for an unknown way to change or another size; `EFAULT`.
pub fn rt_sigprocmask(call: &Call<'_>, how: u64, new: u64, old: u64, set_bytes: u64) -> CallResult {
    check_set_size(set_bytes)?;
    let mut until_now = call.task.mask.get().blocked();
    if new != 0 {
        let set = SignalSet(call.read(new)?);
        until_now = call.task.change_mask(|mask| mask.change(how as u32, set))?;
    }
    call.write_if(old, &until_now.0)?;
    Ok(0)
}

/// Errors: `EINVAL` for too large a set, `EFAULT`.
pub fn rt_sigpending(call: &Call<'_>, set: u64, set_bytes: u64) -> CallResult {
    if set_bytes > SIGSET_BYTES as u64 {
        return Err(Errno::EINVAL);
    }
    let pending = call.task.pending.borrow().set().union(call.process().pending.borrow().set());
    let waiting = pending.intersection(call.task.mask.get().blocked());
    call.copy_out(set, &waiting.0.to_le_bytes()[..set_bytes as usize])?;
    Ok(0)
}

/// Errors: `EINTR` always in the end, `EINVAL`, `EFAULT`.
pub fn rt_sigsuspend(call: &Call<'_>, set: u64, set_bytes: u64) -> CallResult {
    check_set_size(set_bytes)?;
    let set = SignalSet(call.read(set)?);
    call.task.change_mask(|mask| mask.suspend(set));
    pause(call)
}

/// Error: `EINTR` always.
pub fn pause(call: &Call<'_>) -> CallResult {
    while !call.task.is_interrupted() {
        call.unix.scheduler.sleep(call.held, &[], None);
    }
    Err(Errno::EINTR)
}

/// Errors: `EPERM` on the stack itself, `EINVAL`, `ENOMEM` for a small one, `EFAULT`.
pub fn sigaltstack(call: &Call<'_>, new: u64, old: u64) -> CallResult {
    let rsp = call.registers.rsp;
    let until_now = call.task.alternate_stack.get().report(rsp);
    if new != 0 {
        let stack = call.read::<StackT>(new)?;
        call.task.alternate_stack.borrow_mut().set(&stack, rsp)?;
    }
    call.write_if(old, &until_now)?;
    Ok(0)
}

/// Back from a handler: everything is as its frame says. A frame that cannot be read is a fault.
pub fn rt_sigreturn(call: &mut Call<'_>) -> CallResult {
    let format = deliver::vector_format(call.unix);
    let read = |address: u64, into: &mut [u8]| call.copy_in(address, into).is_ok();
    let restored = frame::restore(call.registers, format, &read);
    call.registers_replaced = true;
    match restored {
        Ok(restored) => resume(call, restored),
        Err(bad) => {
            if let Some(mask) = bad.mask {
                call.task.change_mask(|now| now.set(mask));
            }
            deliver::refuse(call.task, None);
        }
    }
    Ok(0)
}

fn resume(call: &mut Call<'_>, restored: Restored) {
    let tte = call.task.thread.tte();
    call.task.change_mask(|mask| mask.set(restored.mask));
    *call.registers = Registers { cause: call.registers.cause, ..restored.registers };
    let taken = match restored.vector_state {
        VectorRestore::Reset => {
            tte.reset_vector_state();
            true
        }
        VectorRestore::Image { address, bytes, features } => {
            tte.load_vector_state(VirtAddr(address), bytes, features).is_ok()
        }
        VectorRestore::Refused => false,
    };
    if !taken {
        deliver::refuse(call.task, None);
        return;
    }
    routines::count(call, nr::RT_SIGRETURN);
    // A bad stack is not worth a signal, as on Linux.
    let _ = call.task.alternate_stack.borrow_mut().set(&restored.altstack, restored.registers.rsp);
}

/// Goes on with the call that a stop interrupted. Error: `EINTR` if there is none.
pub fn restart_syscall(call: &mut Call<'_>) -> CallResult {
    let block = call.task.restart_block.borrow_mut().take().ok_or(Errno::EINTR)?;
    (block.function)(call, block.arguments)
}
