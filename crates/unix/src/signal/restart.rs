//! A system call was interrupted by a signal: fail with `EINTR` or run it again.

use abi::Errno;
use abi::nr;
use abi::signal::SA_RESTART;
use machine::Registers;

/// Bytes of the `syscall` instruction (and of `int 0x80`).
const CALL_BYTES: u64 = 2;

/// How an interrupted call wants to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RestartKind {
    /// The call is complete, or its `EINTR` is final: the registers hold its result. Also the kind
    /// after a handler's frame was built and when the kernel was not entered by a call.
    #[default]
    No,
    /// Again, unless a handler without `SA_RESTART` runs (Linux: ERESTARTSYS).
    Restart,
    /// Again, unless any handler runs (ERESTARTNOHAND).
    RestartNoHandler,
    /// Again in any case (ERESTARTNOINTR).
    RestartAlways,
    /// By `restart_syscall`, which knows how much time is left, unless any handler runs
    /// (ERESTART_RESTARTBLOCK).
    RestartBlock,
}

/// What runs after the interruption.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// A handler with these `SA_…` flags.
    Handler { flags: u64 },
    /// The program itself.
    Program,
}

/// Sets the registers of a thread whose call `call` was interrupted. Do this before the frame is built,
/// and once for each call: afterwards its kind is `No`.
///
/// When a handler runs, the program's later `restart_syscall` must give `EINTR`: forget its record.
pub fn restart(kind: RestartKind, next: Next, call: u64, registers: &mut Registers) {
    let again = match (kind, next) {
        (RestartKind::No, _) => return,
        (RestartKind::RestartAlways, _) => Some(call),
        (RestartKind::Restart, Next::Handler { flags }) => (flags & SA_RESTART != 0).then_some(call),
        (RestartKind::RestartNoHandler | RestartKind::RestartBlock, Next::Handler { .. }) => None,
        (RestartKind::Restart | RestartKind::RestartNoHandler, Next::Program) => Some(call),
        (RestartKind::RestartBlock, Next::Program) => Some(nr::RESTART_SYSCALL),
    };
    match again {
        Some(number) => {
            registers.rax = number;
            registers.rip = registers.rip.wrapping_sub(CALL_BYTES);
        }
        None => registers.rax = Errno::EINTR.as_return_value(),
    }
}
