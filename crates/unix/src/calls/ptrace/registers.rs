//! The registers of a stopped thread as its tracer sees them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::ptrace::{NT_FPREGSET, NT_PRSTATUS, NT_X86_XSTATE, USER_BYTES, USER_DEBUG_REGISTERS, UserRegs};
use abi::{Errno, Field};
use kernel::space::USER_LIMIT;
use machine::{Registers, try_to_vec};

use super::watchpoints;
use crate::call::{Call, CallResult};
use crate::task::thread::Task;

/// The flags that a tracer may change: the arithmetic ones, TF, DF, RF, AC.
const FLAGS: u64 = 0x5_0DD5;
/// `orig_rax` outside of calls.
pub const NO_CALL: u64 = u64::MAX;
/// Where the processor's own features are told in an XSAVE image (`struct _fpx_sw_bytes`, `xfeatures`).
pub const FEATURES_AT: usize = 464;
pub const LEGACY_BYTES: usize = 512;

/// Error: `ESRCH` when the thread does not stand still.
pub fn get(task: &Task) -> Result<UserRegs, Errno> {
    let stop = task.watch.stop.borrow();
    let stop = stop.as_ref().ok_or(Errno::ESRCH)?;
    let orig_rax = if stop.in_call { stop.registers.cause as i32 as i64 as u64 } else { NO_CALL };
    Ok(UserRegs { orig_rax, ..as_seen(task, &stop.registers) })
}

/// The registers of a thread, which runs none of its program now, as outside of a call.
pub fn as_seen(task: &Task, registers: &Registers) -> UserRegs {
    let Registers { r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, .. } = *registers;
    let Registers { rip, cs, rsp, ss, rflags, .. } = *registers;
    let tte = task.thread.tte();
    UserRegs {
        r15,
        r14,
        r13,
        r12,
        rbp,
        rbx,
        r11,
        r10,
        r9,
        r8,
        rax,
        rcx,
        rdx,
        rsi,
        rdi,
        orig_rax: NO_CALL,
        rip,
        cs,
        eflags: rflags,
        rsp,
        ss,
        fs_base: tte.thread_pointer(),
        gs_base: tte.gs_base(),
        ds: 0,
        es: 0,
        fs: 0,
        gs: 0,
    }
}

/// Errors: `ESRCH`; `EIO` for a base that is not a program's address, or a selector of the kernel.
pub fn set(task: &Task, new: &UserRegs) -> Result<(), Errno> {
    let is_kernel = |selector: u64| selector & 3 != 3;
    // Code and stack must have a segment; no selector is one for data.
    let must = [new.cs, new.ss].into_iter();
    let mut selectors =
        must.chain([new.ds, new.es, new.fs, new.gs].into_iter().filter(|selector| *selector as u16 != 0));
    if new.fs_base >= USER_LIMIT || new.gs_base >= USER_LIMIT || selectors.any(is_kernel) {
        return Err(Errno::EIO);
    }
    let mut stop = task.watch.stop.borrow_mut();
    let stop = stop.as_mut().ok_or(Errno::ESRCH)?;
    let UserRegs { r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi, .. } = *new;
    let old = stop.registers;
    // Outside of a call there is no number; one that is taken back is the end of an interrupted call.
    let cause = if stop.in_call { new.orig_rax } else { old.cause };
    stop.registers = Registers {
        r15,
        r14,
        r13,
        r12,
        rbp,
        rbx,
        r11,
        r10,
        r9,
        r8,
        rax,
        rcx,
        rdx,
        rsi,
        rdi,
        cause,
        error: old.error,
        rip: new.rip,
        cs: old.cs,
        rflags: new.eflags & FLAGS | old.rflags & !FLAGS,
        rsp: new.rsp,
        ss: old.ss,
    };
    let tte = task.thread.tte();
    tte.set_thread_pointer(new.fs_base);
    tte.set_gs_base(new.gs_base);
    Ok(())
}

fn bytes_of(task: &Task) -> Result<[u8; UserRegs::BYTES], Errno> {
    let mut bytes = [0; UserRegs::BYTES];
    get(task)?.put(&mut bytes);
    Ok(bytes)
}

/// A word of `struct user`: registers and debug registers; the rest is 0. Error: `EIO` outside of it.
pub fn peek_user(call: &Call<'_>, task: &Task, address: u64, into: u64) -> CallResult {
    let index = user_index(address)?;
    let word = if index < UserRegs::BYTES {
        u64::get(&bytes_of(task)?[index..])
    } else {
        let number = address.wrapping_sub(USER_DEBUG_REGISTERS) as usize / 8;
        task.watch.debug_registers.get().get(number).copied().unwrap_or(0)
    };
    call.write(into, &word)?;
    Ok(0)
}

/// Errors: `EIO` outside of the registers, and those of [`watchpoints::set`].
pub fn poke_user(task: &Task, address: u64, word: u64) -> CallResult {
    let index = user_index(address)?;
    if index < UserRegs::BYTES {
        let mut bytes = bytes_of(task)?;
        word.put(&mut bytes[index..]);
        set(task, &UserRegs::get(&bytes))?;
        return Ok(0);
    }
    let number = address.checked_sub(USER_DEBUG_REGISTERS).ok_or(Errno::EIO)? as usize / 8;
    watchpoints::set(task, number, word)?;
    Ok(0)
}

fn user_index(address: u64) -> Result<usize, Errno> {
    if address.is_multiple_of(8) && address < USER_BYTES { Ok(address as usize) } else { Err(Errno::EIO) }
}

/// All of a register set.
fn set_bytes(call: &Call<'_>, task: &Task, kind: u32) -> Result<Vec<u8>, Errno> {
    match kind {
        NT_PRSTATUS => Ok(try_to_vec(&bytes_of(task)?)?),
        NT_FPREGSET => {
            let mut image = call.buffer(LEGACY_BYTES)?;
            task.thread.tte().copy_vector_state(&mut image);
            Ok(image)
        }
        NT_X86_XSTATE => {
            let mut image = call.buffer(call.unix.machine.vector_bytes())?;
            task.thread.tte().copy_vector_state(&mut image);
            call.unix.machine.vector_features().put(&mut image[FEATURES_AT..]);
            Ok(image)
        }
        _ => Err(Errno::EINVAL),
    }
}

/// Changes a register set. Errors: `EINVAL`, `EFAULT` for a part of the extended state.
fn replace(call: &Call<'_>, task: &Task, kind: u32, bytes: &[u8]) -> Result<(), Errno> {
    let features = call.unix.machine.vector_features();
    match kind {
        NT_PRSTATUS => set(task, &UserRegs::get(bytes)),
        NT_FPREGSET => {
            let mut image = set_bytes(call, task, NT_X86_XSTATE)?;
            image[..LEGACY_BYTES].copy_from_slice(&bytes[..LEGACY_BYTES]);
            image[LEGACY_BYTES] |= 3;
            task.thread.tte().replace_vector_state(&image, features).map_err(|_| Errno::EINVAL)
        }
        _ if !is_valid_image(bytes, features) => Err(Errno::EINVAL),
        _ => task.thread.tte().replace_vector_state(bytes, features).map_err(|_| Errno::EINVAL),
    }
}

/// Whether Linux takes the header and MXCSR of an XSAVE image (SDM vol. 1, 13.4.2); if not, the state stays as it was.
fn is_valid_image(bytes: &[u8], features: u64) -> bool {
    const HEADER_BYTES: usize = 64;
    const MXCSR_AT: usize = 24;
    let Some(header) = bytes.get(LEGACY_BYTES..LEGACY_BYTES + HEADER_BYTES) else { return false };
    let is_mxcsr_known = u32::get(&bytes[MXCSR_AT..]) & !0xFFFF == 0;
    is_mxcsr_known && u64::get(header) & !features == 0 && header[8..].iter().all(|byte| *byte == 0)
}

/// A whole register set to (`PTRACE_GETREGS`, …) or from the tracer's memory.
pub fn whole(call: &Call<'_>, task: &Arc<Task>, kind: u32, address: u64, writes: bool) -> CallResult {
    let mut bytes = set_bytes(call, task, kind)?;
    if writes {
        call.copy_in(address, &mut bytes)?;
        replace(call, task, kind, &bytes)?;
    } else {
        call.copy_out(address, &bytes)?;
    }
    Ok(0)
}

/// As much of a register set as the tracer's `struct iovec` has room for; the record then tells how much.
pub fn part(call: &Call<'_>, task: &Arc<Task>, kind: u64, vector: u64, writes: bool) -> CallResult {
    let [base, room]: [u64; 2] = call.read(vector)?;
    let kind = u32::try_from(kind).map_err(|_| Errno::EINVAL)?;
    let mut bytes = set_bytes(call, task, kind)?;
    if room % 8 != 0 {
        return Err(Errno::EINVAL);
    }
    let moved = room.min(bytes.len() as u64) as usize;
    if writes {
        if kind == NT_X86_XSTATE && moved != bytes.len() {
            return Err(Errno::EFAULT);
        }
        call.copy_in(base, &mut bytes[..moved])?;
        replace(call, task, kind, &bytes)?;
    } else {
        call.copy_out(base, &bytes[..moved])?;
    }
    call.write(vector.wrapping_add(8), &(moved as u64))?;
    Ok(0)
}
