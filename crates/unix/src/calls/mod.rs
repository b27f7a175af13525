//! The calls: a table from number to function, and what happens around each.
//!
//! Each family of calls has a file with its functions and its part of the table, `CALLS`.

mod descriptors;
mod files;
mod futexes;
mod identity;
mod images;
mod life;
mod limits;
mod memory;
mod paths;
mod polls;
mod signals;
mod sockets;
mod system;
mod terminal;
mod times;
mod transfer;

pub(crate) use images::{Wanted, install as install_program, load_first, task_name};
pub use limits::Limits;

use alloc::sync::Arc;

use abi::Errno;
use machine::{Exception, Registers};

use crate::call::{Call, CallResult};
use crate::emulator::Unix;
use crate::task::Task;

/// A call's function: it gets the six argument registers.
pub type Function = fn(&mut Call<'_>, [u64; 6]) -> CallResult;

/// A line of the table.
pub type Entry = (u64, Function);

/// Call numbers the table covers.
const NUMBERS: usize = 464;

const FAMILIES: [&[Entry]; 15] = [
    descriptors::CALLS,
    files::CALLS,
    futexes::CALLS,
    identity::CALLS,
    images::CALLS,
    life::CALLS,
    limits::CALLS,
    memory::CALLS,
    paths::CALLS,
    polls::CALLS,
    signals::CALLS,
    sockets::CALLS,
    system::CALLS,
    terminal::CALLS,
    times::CALLS,
];

static TABLE: [Function; NUMBERS] = table();

/// Joins the families; a number that two of them claim does not compile.
const fn table() -> [Function; NUMBERS] {
    let mut table: [Function; NUMBERS] = [unknown; NUMBERS];
    let mut taken = [false; NUMBERS];
    let mut family = 0;
    while family <= FAMILIES.len() {
        let entries = if family < FAMILIES.len() { FAMILIES[family] } else { transfer::CALLS };
        let mut at = 0;
        while at < entries.len() {
            let number = entries[at].0 as usize;
            assert!(!taken[number], "two functions for one call");
            taken[number] = true;
            table[number] = entries[at].1;
            at += 1;
        }
        family += 1;
    }
    table
}

fn unknown(_: &mut Call<'_>, _: [u64; 6]) -> CallResult {
    Err(Errno::ENOSYS)
}

/// Serves call `number`; the result is in `rax` afterwards.
pub fn serve(call: &mut Call<'_>, number: u64) {
    call.registers.cause = number;
    let Registers { rdi, rsi, rdx, r10, r8, r9, .. } = *call.registers;
    let function = TABLE.get(number as usize).copied().unwrap_or(unknown);
    let result = function(call, [rdi, rsi, rdx, r10, r8, r9]);
    if !call.registers_replaced {
        call.registers.rax = match result {
            Ok(value) => value,
            Err(errno) => errno.as_return_value(),
        };
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
