//! `synth ps`: the threads of programs.
#![expect(clippy::disallowed_methods, reason = "names of 16 bytes")]

use alloc::sync::Arc;

use abi::nr;
use bootimage::inspect::{Items, Task as Item, state};
use kernel::thread::State;

use super::{Cursor, Question, Refusal, streams};
use crate::emulator::Unix;
use crate::files::descriptors::Descriptor;
use crate::task::process::Process;
use crate::task::thread::Task;

/// All threads, by number; processes that have ended and wait for their parent are shown as one.
pub fn list(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let unix = question.unix;
    let from = u32::try_from(question.cursor).map_err(|_| Refusal::Bad)?;
    for number in unix.tasks.numbers_from(from) {
        match (unix.tasks.task(number), unix.tasks.process(number)) {
            (Some(task), _) => describe(unix, &task).put(out),
            (None, Some(process)) => describe_ended(&process).put(out),
            (None, None) => continue,
        }
        if !out.keep() {
            return Ok(number.into());
        }
    }
    Ok(0)
}

fn describe(unix: &'static Unix, task: &Arc<Task>) -> Item {
    let process = &task.process;
    let mut item = Item {
        thread: task.tid,
        process: process.pid,
        parent: process.parent.borrow().upgrade().map_or(0, |parent| parent.pid),
        tte: task.thread.id().0,
        state: state_of(unix, task),
        descriptors: task.files().list().count() as u32,
        call: u16::MAX,
        ran_ns: unix.scheduler.ran(&task.thread).0,
        quantum_ns: task.thread.tte().quantum().0,
        calls: task.calls(),
        name: name(&task.name.borrow()).to_vec(),
        ..Item::default()
    };
    if task.thread.state() == State::Asleep {
        let registers = task.thread.tte().registers();
        item.call = u16::try_from(registers.cause).unwrap_or(u16::MAX);
        item.arguments = [registers.rdi, registers.rsi, registers.rdx];
        if takes_descriptor(registers.cause)
            && let Some(file) = task.file(Descriptor::from_register(registers.rdi))
        {
            item.waits_for = streams::describe(unix, &file).name;
        }
    }
    item
}

fn describe_ended(process: &Process) -> Item {
    Item {
        thread: process.pid,
        process: process.pid,
        parent: process.parent.borrow().upgrade().map_or(0, |parent| parent.pid),
        state: if process.is_zombie() { state::ZOMBIE } else { state::ENDED },
        call: u16::MAX,
        name: name(&process.last_name.get()).to_vec(),
        ..Item::default()
    }
}

fn state_of(unix: &Unix, task: &Task) -> u8 {
    match task.thread.state() {
        _ if task.process.stopped.get() => state::STOPPED,
        State::Ready if task.thread.id() == unix.machine.current_tte() => state::RUNNING,
        State::Ready => state::READY,
        State::Asleep => state::ASLEEP,
        State::Stopped => state::STOPPED,
        State::Ended => state::ENDED,
    }
}

/// Calls that can sleep for their first argument's sake.
fn takes_descriptor(number: u64) -> bool {
    const CALLS: [u64; 13] = [
        nr::READ,
        nr::WRITE,
        nr::READV,
        nr::WRITEV,
        nr::PREAD64,
        nr::PWRITE64,
        nr::ACCEPT,
        nr::ACCEPT4,
        nr::RECVFROM,
        nr::RECVMSG,
        nr::SENDTO,
        nr::SENDMSG,
        nr::IOCTL,
    ];
    CALLS.contains(&number)
}

/// A name without the zeros behind it.
fn name(padded: &[u8; 16]) -> &[u8] {
    padded.split(|byte| *byte == 0).next().unwrap_or_default()
}
