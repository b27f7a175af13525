//! What the host tool is told of a program that crashes: where, why, with which registers. The program's own streams get
//! nothing: what Linux's shells say, they say themselves.
#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "a report of a page at most")]

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use abi::siginfo::{Cause, SigInfo};
use kernel::space::AreaLabel;
use machine::{Held, Registers};

use crate::emulator::Unix;
use crate::task::process::Process;
use crate::task::thread::Task;

/// Tells of a process that `info` is about to end; `registers` are those of the thread that takes the signal.
pub fn tell(held: Held<'_>, unix: &'static Unix, task: &Task, registers: &Registers, info: &SigInfo) {
    let process = &task.process;
    if !is_own_doing(process, info) {
        return;
    }
    let signal = info.signo as u32;
    let cause = match info.cause {
        Cause::Fault { address } => format!("address {address:#x}, "),
        Cause::Kill { pid, .. } => format!("sent by process {pid}, "),
        _ => String::new(),
    };
    let name: Vec<u8> = task.name.borrow().iter().copied().take_while(|byte| *byte != 0).collect();
    let mut report = format!(
        "process {} ({}) crashed: {}, {cause}rip {:#x}",
        process.pid,
        String::from_utf8_lossy(&name),
        abi::signal::signal_name(signal).unwrap_or("a signal"),
        registers.rip,
    );
    name_place(&mut report, process, registers.rip);
    let r = registers;
    let named = [
        [("rax", r.rax), ("rbx", r.rbx), ("rcx", r.rcx), ("rdx", r.rdx)],
        [("rsi", r.rsi), ("rdi", r.rdi), ("rbp", r.rbp), ("rsp", r.rsp)],
        [("r8 ", r.r8), ("r9 ", r.r9), ("r10", r.r10), ("r11", r.r11)],
        [("r12", r.r12), ("r13", r.r13), ("r14", r.r14), ("r15", r.r15)],
    ];
    for line in named {
        let mut lead = "\n  ";
        for (name, value) in line {
            let _ = write!(report, "{lead}{name} {value:016x}");
            lead = "  ";
        }
    }
    let _ = writeln!(report, "\n  rip {:016x}  flags {:08x}", r.rip, r.rflags);
    unix.tell(held, bootimage::control::kind::CRASH, report.as_bytes());
}

/// A program that somebody else ends, from another process or at the keyboard, does not crash.
fn is_own_doing(process: &Process, info: &SigInfo) -> bool {
    match info.cause {
        // Faults without an address come with zeros, as what the terminal sends does.
        Cause::Kill { pid: 0, .. } => info.signo != abi::signal::SIGQUIT as i32,
        Cause::Kill { pid, .. } | Cause::Queue { pid, .. } => pid == process.pid as i32,
        Cause::Fault { .. } | Cause::Call { .. } => true,
        Cause::Timer { .. } | Cause::Child { .. } | Cause::Poll { .. } => false,
    }
}

/// The mapped file that `address` lies in, and where in the file.
fn name_place(report: &mut String, process: &Process, address: u64) {
    let Some(space) = process.space() else { return };
    let space = space.borrow();
    let area = space.areas().find(|area| (area.start..area.end).contains(&address));
    let _ = match area.as_ref().map(|area| (area, &area.label)) {
        None => write!(report, " (not mapped)"),
        Some((area, AreaLabel::Backing(backing))) => {
            let name = String::from_utf8_lossy(backing.name());
            write!(report, " ({name}+{:#x})", address - area.start + area.offset_bytes)
        }
        Some(_) => write!(report, " (memory without a file)"),
    };
}
