//! The calls: a table from number to function, and what happens around each.

mod files;
mod identity;
mod images;
mod life;
mod limits;
mod memory;
mod transfer;

pub(crate) use images::{Wanted, install as install_program, load_first, task_name};
pub use limits::Limits;

use alloc::sync::Arc;

use abi::{Errno, nr};
use machine::{Exception, Registers};

use crate::call::{Call, CallResult};
use crate::emulator::Unix;
use crate::task::Task;

/// Serves call `number`; the result is in `rax` afterwards.
pub fn serve(call: &mut Call<'_>, number: u64) {
    call.registers.cause = number;
    let result = run(call, number);
    let value = match result {
        Ok(value) => value,
        Err(errno) => errno.as_return_value(),
    };
    if !call.registers_replaced {
        call.registers.rax = value;
    }
}

fn run(call: &mut Call<'_>, number: u64) -> CallResult {
    let Registers { rdi: a, rsi: b, rdx: c, r10: d, r8: e, r9: f, .. } = *call.registers;
    match number {
        nr::READ => transfer::read(call, a, b, c),
        nr::WRITE => transfer::write(call, a, b, c),
        nr::CLOSE => files::close(call, a),
        nr::LSEEK => transfer::lseek(call, a, b as i64, c),
        nr::OPENAT => files::openat(call, a, b, c as u32, d as u32),
        nr::OPEN => files::openat(call, abi::file::AT_FDCWD as u64, a, b as u32, c as u32),
        nr::BRK => memory::brk(call, a),
        nr::MMAP => memory::mmap(call, [a, b, c, d, e, f]),
        nr::MUNMAP => memory::munmap(call, a, b),
        nr::MPROTECT => memory::mprotect(call, a, b, c),
        nr::ARCH_PRCTL => memory::arch_prctl(call, a, b),
        nr::EXIT => life::exit_thread(call, a),
        nr::EXIT_GROUP => life::exit_group(call, a),
        nr::GETPID => identity::getpid(call),
        nr::GETPPID => identity::getppid(call),
        nr::GETTID => identity::gettid(call),
        nr::SET_TID_ADDRESS => identity::set_tid_address(call, a),
        nr::SET_ROBUST_LIST => identity::set_robust_list(call, a, b),
        _ => Err(Errno::ENOSYS),
    }
}

/// The program raised an exception.
pub fn fault(unix: &'static Unix, task: &Arc<Task>, registers: &mut Registers, exception: Exception) {
    unix.log(format_args!("pid {}: {exception:x?} at {:#x}", task.process.pid, registers.rip));
    life::end_process(&task.process, abi::process::WaitStatus::Killed { signal: 11, core: false });
}

/// Just before a thread goes back to its program.
pub fn before_user(unix: &'static Unix, task: &Arc<Task>, _registers: &mut Registers) {
    if task.process.ending.get().is_some() || task.ending.get() {
        life::leave(unix, task);
    }
}
