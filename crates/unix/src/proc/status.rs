//! How a process or thread is: stat, statm, status, comm.
#![expect(clippy::disallowed_methods, reason = "a page of numbers about one process")]

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::sync::atomic::Ordering;

use abi::Errno;
use kernel::space::{AreaLabel, Usage as SpaceUsage};
use kernel::thread::State;
use machine::{Held, Nanos, PAGE_BYTES};

use super::process::Member;
use crate::calls::times::clock::process_time;
use crate::emulator::Unix;
use crate::task::process::{Life, Process};
use crate::task::thread::Task;

/// Clock ticks that /proc counts in: 100 a second (`sysconf(_SC_CLK_TCK)`).
pub fn ticks(time: Nanos) -> u64 {
    time.0 / (Nanos::PER_SECOND / 100)
}

/// Processor time of a process, of its ended threads too; the account does not tell kernel from program.
pub fn used(unix: &Unix, process: &Process) -> Nanos {
    process_time(unix, process)
}

/// The letter and the word of `State:`.
fn state(process: &Process, task: Option<&Task>) -> (char, &'static str) {
    let asleep = task.is_none_or(|task| task.thread.state() == State::Asleep);
    match () {
        _ if process.is_zombie() => ('Z', "zombie"),
        _ if task.is_none() => ('Z', "zombie"),
        _ if task.is_some_and(|task| task.watch.is_stopped()) => ('t', "tracing stop"),
        _ if process.stopped.get() => ('T', "stopped"),
        _ if asleep => ('S', "sleeping"),
        _ => ('R', "running"),
    }
}

fn name_of(member: &Member, process: &Process) -> Vec<u8> {
    let padded = member.task(process).map_or(process.last_name.get(), |task| *task.name.borrow());
    let bytes = padded.iter().position(|byte| *byte == 0).unwrap_or(padded.len());
    padded[..bytes].to_vec()
}

pub fn name(_: &'static Unix, member: &Member) -> Result<Vec<u8>, Errno> {
    let process = member.process()?;
    let mut name = name_of(member, &process);
    name.push(b'\n');
    Ok(name)
}

/// Only a process itself may name its threads. Error: `EINVAL`.
pub fn set_name(_: Held<'_>, unix: &'static Unix, member: &Member, text: &[u8]) -> Result<(), Errno> {
    let process = member.process()?;
    let task = member.task(&process).ok_or(Errno::ESRCH)?;
    if super::root::caller(unix)?.process.pid != process.pid {
        return Err(Errno::EINVAL);
    }
    let mut name = [0; 16];
    let bytes = text.len().min(15);
    name[..bytes].copy_from_slice(&text[..bytes]);
    *task.name.borrow_mut() = name;
    Ok(())
}

/// Where the program lies in its quaspace, as far as the areas tell.
#[derive(Default)]
struct Layout {
    code: (u64, u64),
    data: (u64, u64),
    break_start: u64,
    sizes: SpaceUsage,
}

fn layout(process: &Process) -> Layout {
    let Some(space) = process.space() else { return Layout::default() };
    let inode = process.executable.borrow().as_ref().map(|node| node.number());
    let space = space.borrow();
    let mut layout = Layout { sizes: space.usage(), ..Layout::default() };
    for area in space.areas() {
        let part = match area.label {
            AreaLabel::Heap => {
                layout.break_start = area.start;
                continue;
            }
            AreaLabel::Backing(backing) if Some(backing.identity().inode) == inode => {
                match (area.protection.execute, area.protection.write) {
                    (true, _) => &mut layout.code,
                    (_, true) => &mut layout.data,
                    _ => continue,
                }
            }
            _ => continue,
        };
        part.0 = if part.0 == 0 { area.start } else { part.0 };
        part.1 = area.end;
    }
    layout
}

pub fn statm(_: &'static Unix, member: &Member) -> Result<Vec<u8>, Errno> {
    let process = member.process()?;
    let space = process.space();
    let sizes = space.as_ref().map(|space| space.borrow().usage()).unwrap_or_default();
    let shared = space.map_or(0, |space| space.borrow().resident_shared_bytes());
    let pages = |bytes: u64| bytes / PAGE_BYTES as u64;
    let data = pages(sizes.data + sizes.stack);
    let mut line = Vec::new();
    put_numbers(&mut line, &[pages(sizes.total), pages(sizes.resident), pages(shared), pages(sizes.text), 0, data, 0]);
    line.push(b'\n');
    Ok(line)
}

/// Appends numbers with a space between each two. Programs that watch others read little else, again and again: the general way
/// of formatting takes a hundred instructions for each.
fn put_numbers(text: &mut Vec<u8>, numbers: &[u64]) {
    for (index, number) in numbers.iter().enumerate() {
        if index > 0 {
            text.push(b' ');
        }
        put_number(text, *number);
    }
}

/// The digits of the numbers below 100.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

fn put_number(text: &mut Vec<u8>, mut number: u64) {
    // Most numbers are zero.
    if number < 10 {
        return text.push(b'0' + number as u8);
    }
    let mut digits = [0; 20];
    let mut start = digits.len();
    for pair in digits.rchunks_exact_mut(2) {
        pair.copy_from_slice(&PAIRS[(number % 100) as usize]);
        number /= 100;
        start -= 2;
        if number == 0 {
            break;
        }
    }
    start += usize::from(digits[start] == b'0');
    text.extend_from_slice(&digits[start..]);
}

/// The 52 fields of `proc(5)`.
pub fn stat(unix: &'static Unix, member: &Member) -> Result<Vec<u8>, Errno> {
    let process = member.process()?;
    let task = member.task(&process);
    let may_inspect = member.inspect(unix).is_ok();
    let family = process.family.get();
    let layout = layout(&process);
    let (usage, children) = (process.usage.get(), process.children_usage.get());
    let signals = Signals::of(task.as_deref(), &process);
    let exec_flags = if process.has_executed.get() { 0x40_0000 } else { 0x40_0040 };
    let see = |address: u64| if may_inspect { address } else { 0 };
    let (arguments, environment) = (process.arguments.get(), process.environment.get());
    let exit_code = match process.life.get() {
        Life::Zombie(status) if may_inspect => status.encode(),
        _ => 0,
    };
    // The old 31-bit words: real-time signals do not fit.
    let word = |set: u64| set & 0x7fff_ffff;
    let (terminal, foreground) = terminal(&process);
    let mut line = Vec::with_capacity(LINE_BYTES);
    put_number(&mut line, member.tid.into());
    line.extend_from_slice(b" (");
    line.extend_from_slice(&name_of(member, &process));
    let (letter, _) = state(&process, task.as_deref());
    line.extend_from_slice(&[b')', b' ', letter as u8, b' ']);
    put_numbers(&mut line, &[parent_of(&process).into(), family.group.into(), family.session.into(), terminal.into()]);
    line.push(b' ');
    match foreground {
        Some(group) => put_number(&mut line, group.into()),
        None => line.extend_from_slice(b"-1"),
    }
    line.push(b' ');
    #[rustfmt::skip]
    put_numbers(&mut line, &[
        exec_flags, usage.minor_faults, children.minor_faults, 0, 0,
        ticks(used(unix, &process)), 0, ticks(children.user), 0,
        PRIORITY, 0, process.live_tasks().max(1) as u64, 0, ticks(process.started),
        layout.sizes.total, layout.sizes.resident / PAGE_BYTES as u64,
        process.limits.borrow().0[abi::process::RLIMIT_RSS as usize].0,
        see(layout.code.0).max(1), see(layout.code.1).max(1), see(process.stack_start.get()), 0, 0,
        word(signals.pending), word(signals.blocked), word(signals.ignored), word(signals.caught),
        0, 0, 0, process.exit_signal.load(Ordering::Relaxed).into(), 0, 0, 0, 0, 0, 0,
        see(layout.data.0), see(layout.data.1), see(layout.break_start),
        see(arguments.0), see(arguments.1), see(environment.0), see(environment.1), exit_code as u64,
    ]);
    line.push(b'\n');
    Ok(line)
}

/// Room that the line of most processes fits in.
const LINE_BYTES: usize = 384;
/// What Linux shows for the nice value 0.
const PRIORITY: u64 = 20;

fn parent_of(process: &Process) -> u32 {
    process.parent.borrow().upgrade().map_or(0, |parent| parent.pid)
}

/// Device number of the controlling terminal and its foreground process group; (0, `None`) without one.
fn terminal(process: &Process) -> (u32, Option<u32>) {
    const CONSOLE: u32 = 5 << 8 | 1;
    let family = process.family.get();
    if family.has_terminal { (CONSOLE, Some(family.group)) } else { (0, None) }
}

/// Signal sets as bit words, bit 0 for signal 1.
#[derive(Default)]
struct Signals {
    pending: u64,
    shared_pending: u64,
    blocked: u64,
    ignored: u64,
    caught: u64,
}

impl Signals {
    fn of(task: Option<&Task>, process: &Process) -> Signals {
        let mut signals = Signals { shared_pending: process.pending.borrow().set().0, ..Signals::default() };
        if let Some(task) = task {
            signals.pending = task.pending.borrow().set().0;
            signals.blocked = task.mask.borrow().blocked().0;
        }
        let actions = process.actions();
        for (bit, handler) in actions.borrow().handlers().enumerate() {
            match handler {
                abi::signal::SIG_DFL => {}
                abi::signal::SIG_IGN => signals.ignored |= 1 << bit,
                _ => signals.caught |= 1 << bit,
            }
        }
        signals
    }
}

/// The fields of Linux 6.1, in its order.
pub fn status(unix: &'static Unix, member: &Member) -> Result<Vec<u8>, Errno> {
    let process = member.process()?;
    let mut text = b"Name:\t".to_vec();
    for byte in name_of(member, &process) {
        match byte {
            b'\n' => text.extend_from_slice(b"\\n"),
            b'\\' => text.extend_from_slice(b"\\\\"),
            byte => text.push(byte),
        }
    }
    let mut rest = String::from("\n");
    identity(&mut rest, unix, member, &process);
    if let Some(space) = process.space() {
        let space = space.borrow();
        memory(&mut rest, &space.usage(), space.resident_shared_bytes());
    }
    signals(&mut rest, member, &process);
    rights(&mut rest, &process);
    text.extend_from_slice(rest.as_bytes());
    Ok(text)
}

fn identity(text: &mut String, _unix: &Unix, member: &Member, process: &Process) {
    let (letter, word) = state(process, member.task(process).as_deref());
    let family = process.family.get();
    let (user, group) = (process.user_ids.get(), process.group_ids.get());
    let credentials = process.credentials.borrow().clone();
    let _ = writeln!(text, "Umask:\t{:04o}", process.place.borrow().borrow().umask);
    let _ = writeln!(text, "State:\t{letter} ({word})");
    let _ = writeln!(text, "Tgid:\t{}\nNgid:\t0\nPid:\t{}", process.pid, member.tid);
    let tracer = member.task(process).map_or(0, |task| task.watch.tracer_tid());
    let _ = writeln!(text, "PPid:\t{}\nTracerPid:\t{tracer}", parent_of(process));
    let _ = writeln!(text, "Uid:\t{}\t{}\t{}\t{}", user.real, user.effective, user.saved, credentials.user);
    let _ = writeln!(text, "Gid:\t{}\t{}\t{}\t{}", group.real, group.effective, group.saved, credentials.group);
    let size = member.files(process).size().max(1).next_multiple_of(64);
    let _ = write!(text, "FDSize:\t{size}\nGroups:\t");
    for (index, group) in credentials.groups.iter().enumerate() {
        let _ = write!(text, "{}{group}", if index > 0 { " " } else { "" });
    }
    let _ = writeln!(text, " \nNStgid:\t{}\nNSpid:\t{}", process.pid, member.tid);
    let _ = writeln!(text, "NSpgid:\t{}\nNSsid:\t{}", family.group, family.session);
}

fn memory(text: &mut String, sizes: &SpaceUsage, shared: u64) {
    let anonymous = sizes.resident.saturating_sub(shared);
    let lines: [(&str, u64); 17] = [
        ("VmPeak", sizes.total_peak.max(sizes.total)),
        ("VmSize", sizes.total),
        ("VmLck", sizes.locked),
        ("VmPin", 0),
        ("VmHWM", sizes.resident_peak.max(sizes.resident)),
        ("VmRSS", sizes.resident),
        ("RssAnon", anonymous),
        ("RssFile", shared),
        ("RssShmem", 0),
        ("VmData", sizes.data),
        ("VmStk", sizes.stack),
        ("VmExe", sizes.text),
        ("VmLib", 0),
        ("VmPTE", sizes.resident / 512),
        ("VmSwap", 0),
        ("HugetlbPages", 0),
        ("", 0),
    ];
    for (label, bytes) in lines.iter().filter(|(label, _)| !label.is_empty()) {
        let _ = writeln!(text, "{label}:\t{:8} kB", bytes / 1024);
    }
    let _ = writeln!(text, "CoreDumping:\t0\nTHP_enabled:\t0");
}

fn signals(text: &mut String, member: &Member, process: &Process) {
    let task = member.task(process);
    let signals = Signals::of(task.as_deref(), process);
    let queued = process.pending.borrow().queued() + task.map_or(0, |task| task.pending.borrow().queued());
    let limit = process.limits.borrow().0[abi::process::RLIMIT_SIGPENDING as usize].0;
    let _ = writeln!(text, "Threads:\t{}\nSigQ:\t{queued}/{limit}", process.live_tasks().max(1));
    let sets = [
        ("SigPnd", signals.pending),
        ("ShdPnd", signals.shared_pending),
        ("SigBlk", signals.blocked),
        ("SigIgn", signals.ignored),
        ("SigCgt", signals.caught),
    ];
    for (label, set) in sets {
        let _ = writeln!(text, "{label}:\t{set:016x}");
    }
}

fn rights(text: &mut String, process: &Process) {
    let held = process.capabilities();
    let sets = [
        ("CapInh", held.inheritable),
        ("CapPrm", held.permitted),
        ("CapEff", held.effective),
        ("CapBnd", held.bounding),
        ("CapAmb", held.ambient),
    ];
    for (label, set) in sets {
        let _ = writeln!(text, "{label}:\t{:016x}", set.bits());
    }
    let _ = writeln!(text, "NoNewPrivs:\t{}", u8::from(process.settings.get().no_new_privileges));
    text.push_str("Seccomp:\t0\nSeccomp_filters:\t0\nSpeculation_Store_Bypass:\tvulnerable\n");
    text.push_str("SpeculationIndirectBranch:\talways enabled\nCpus_allowed:\t1\nCpus_allowed_list:\t0\n");
    text.push_str("Mems_allowed:\t00000000,00000001\nMems_allowed_list:\t0\n");
    text.push_str("voluntary_ctxt_switches:\t0\nnonvoluntary_ctxt_switches:\t0\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_general_way_writes_them() {
        let mut text = Vec::new();
        let powers = (0..20).map(|exponent| 10u64.pow(exponent));
        let numbers: Vec<u64> = powers.flat_map(|power| [power - 1, power, power + 7]).chain([99, u64::MAX]).collect();
        put_numbers(&mut text, &numbers);
        let general: Vec<String> = numbers.iter().map(|number| alloc::format!("{number}")).collect();
        assert_eq!(String::from_utf8(text), Ok(general.join(" ")));
    }
}
