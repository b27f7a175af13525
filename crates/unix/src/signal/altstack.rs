//! The alternate signal stack of a thread (`sigaltstack`).

use core::mem::offset_of;

use abi::Errno;
use abi::signal::{MINSIGSTKSZ, SS_AUTODISARM, SS_DISABLE, SS_ONSTACK, StackT};

/// A thread's alternate stack. `fork` copies it, `execve` makes it default, and so does `clone` with
/// `CLONE_VM` but without `CLONE_VFORK`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AltStack {
    /// Lowest address.
    address: u64,
    /// 0: there is none.
    bytes: u64,
    /// As the program gave them; `sigaltstack` reports others.
    flags: u32,
}

impl AltStack {
    /// Where routines find address, bytes and flags.
    pub const WORDS_AT: [usize; 3] =
        [offset_of!(AltStack, address), offset_of!(AltStack, bytes), offset_of!(AltStack, flags)];

    /// What `SS_AUTODISARM` leaves while a handler runs, and what a new thread has.
    pub const DISARMED: AltStack = AltStack { address: 0, bytes: 0, flags: SS_DISABLE };

    /// The first address above the stack, where its first frame goes; `None` without a stack.
    pub fn top(&self) -> Option<u64> {
        (self.bytes != 0).then(|| self.address.wrapping_add(self.bytes))
    }

    /// `rsp` lies on the stack. A stack that disarms itself never counts: a handler on it sees none.
    pub const fn is_on(&self, rsp: u64) -> bool {
        self.flags & SS_AUTODISARM == 0 && self.holds(rsp)
    }

    /// The address lies on the stack, whatever its flags. The top itself does, the lowest does not.
    pub const fn holds(&self, rsp: u64) -> bool {
        rsp > self.address && rsp - self.address <= self.bytes
    }

    /// What `sigaltstack` reports to a program whose stack pointer is `rsp`.
    pub const fn report(&self, rsp: u64) -> StackT {
        let state = if self.bytes == 0 {
            SS_DISABLE
        } else if self.is_on(rsp) {
            SS_ONSTACK
        } else {
            0
        };
        self.record(state | self.flags & SS_AUTODISARM)
    }

    /// What a signal frame keeps: the flags as they were given.
    pub const fn saved(&self) -> StackT {
        self.record(self.flags)
    }

    /// `sigaltstack` with a new stack; also what `rt_sigreturn` does, which ignores the errors.
    ///
    /// Errors: `EPERM` while the program runs on the present stack, `EINVAL` for unknown flags,
    /// `ENOMEM` for a stack that is too small.
    pub fn set(&mut self, new: &StackT, rsp: u64) -> Result<(), Errno> {
        if self.is_on(rsp) {
            return Err(Errno::EPERM);
        }
        let flags = new.ss_flags as u32;
        match flags & !SS_AUTODISARM {
            SS_DISABLE => *self = AltStack { address: 0, bytes: 0, flags },
            SS_ONSTACK | 0 => {
                let asked = AltStack { address: new.ss_sp, bytes: new.ss_size, flags };
                // Linux finds first that nothing would change, so even a small size passes then.
                if asked != *self && new.ss_size < MINSIGSTKSZ {
                    return Err(Errno::ENOMEM);
                }
                *self = asked;
            }
            _ => return Err(Errno::EINVAL),
        }
        Ok(())
    }

    /// A handler's frame stands: a stack with `SS_AUTODISARM` is no stack until `rt_sigreturn`.
    pub fn handler_entered(&mut self) {
        if self.flags & SS_AUTODISARM != 0 {
            *self = AltStack::DISARMED;
        }
    }

    const fn record(&self, flags: u32) -> StackT {
        StackT { ss_sp: self.address, ss_flags: flags as i32, _pad: 0, ss_size: self.bytes }
    }
}
