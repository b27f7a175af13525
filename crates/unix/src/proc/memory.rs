//! What lies where in a process's quaspace, and what it keeps there for others to read.

use alloc::vec::Vec;
use core::fmt::Write;

use abi::Errno;
use kernel::space::{AreaLabel, AreaSizes, AreaView, Space};
use machine::{Held, KernelCell, PAGE_BYTES, TryGrow, try_filled};

use super::process::Member;
use super::text::Lines;
use crate::emulator::Unix;
use crate::task::process::Process;

type Text = Result<Vec<u8>, Errno>;

/// Names start at this column of `maps`.
const NAME_COLUMN: usize = 73;

/// Most bytes of arguments or environment that are shown; `execve` takes less by default.
const STRINGS_BYTES_MAX: u64 = 2 << 20;

pub fn maps(unix: &'static Unix, member: &Member) -> Text {
    let process = member.inspect(unix)?;
    let Some(space) = process.space() else { return Ok(Vec::new()) };
    let space = space.borrow();
    let mut text = Lines::default();
    space.areas().for_each(|area| line(&mut text, &area));
    text.whole()
}

fn line(text: &mut Lines, area: &AreaView<'_>) {
    let start = text.len();
    let right = |granted: bool, letter: char| if granted { letter } else { '-' };
    let (identity, name): (_, &[u8]) = match area.label {
        AreaLabel::Backing(backing) => (backing.identity(), backing.name()),
        AreaLabel::Heap => (Default::default(), b"[heap]"),
        AreaLabel::Stack => (Default::default(), b"[stack]"),
        AreaLabel::None => (Default::default(), b""),
    };
    let _ = write!(
        text,
        "{:08x}-{:08x} {}{}{}{} {:08x} {:02x}:{:02x} {} ",
        area.start,
        area.end,
        right(area.protection.read, 'r'),
        right(area.protection.write, 'w'),
        right(area.protection.execute, 'x'),
        if area.is_shared { 's' } else { 'p' },
        area.offset_bytes,
        identity.device_major,
        identity.device_minor,
        identity.inode,
    );
    if !name.is_empty() {
        text.pad_to(start + NAME_COLUMN);
        for (index, part) in name.split(|byte| *byte == b'\n').enumerate() {
            text.push_str(if index > 0 { "\\012" } else { "" });
            text.push_bytes(part);
        }
    }
    text.push('\n');
}

pub fn smaps(unix: &'static Unix, member: &Member) -> Text {
    let process = member.inspect(unix)?;
    let Some(space) = process.space() else { return Ok(Vec::new()) };
    let space = space.borrow();
    let mut text = Lines::default();
    for (area, sizes) in space.areas_with_sizes() {
        line(&mut text, &area);
        let size = (area.end - area.start) / 1024;
        let page = PAGE_BYTES / 1024;
        let _ = writeln!(text, "Size:           {size:8} kB");
        let _ = writeln!(text, "KernelPageSize: {page:8} kB\nMMUPageSize:    {page:8} kB");
        amounts(&mut text, &sizes);
        let _ = write!(text, "THPeligible:    {:8}\nVmFlags: ", 0);
        flags(&mut text, &area);
    }
    text.whole()
}

/// The two-letter words of `VmFlags` (Linux Documentation/filesystems/proc.rst).
fn flags(text: &mut Lines, area: &AreaView<'_>) {
    let rights = area.protection;
    let words = [
        (rights.read, "rd "),
        (rights.write, "wr "),
        (rights.execute, "ex "),
        (area.is_shared, "sh "),
        (true, "mr mw me "),
        (area.is_locked, "lo "),
        (area.is_undumped, "dd "),
        (matches!(area.label, AreaLabel::Stack), "gd "),
    ];
    words.into_iter().filter(|(holds, _)| *holds).for_each(|(_, word)| text.push_str(word));
    text.push('\n');
}

/// The whole quaspace as one area.
pub fn smaps_rollup(unix: &'static Unix, member: &Member) -> Text {
    let process = member.inspect(unix)?;
    let Some(space) = process.space() else { return Err(Errno::ESRCH) };
    let space = space.borrow();
    let (mut first, mut last) = (u64::MAX, 0);
    let mut sum = AreaSizes::default();
    for (area, sizes) in space.areas_with_sizes() {
        (first, last) = (first.min(area.start), last.max(area.end));
        sum.resident += sizes.resident;
        sum.resident_shared += sizes.resident_shared;
        sum.locked += sizes.locked;
    }
    let mut text = Lines::default();
    let _ = write!(text, "{:08x}-{last:08x} ---p 00000000 00:00 0 ", first.min(last));
    let _ = writeln!(text, "{:1$}[rollup]", "", NAME_COLUMN.saturating_sub(text.len()));
    amounts(&mut text, &sum);
    text.whole()
}

/// A copy of a page of a file counts as private and dirty; a page of the file itself as clean. How many others
/// show a page is not looked up, so all counts as proportional share.
fn amounts(text: &mut Lines, sizes: &AreaSizes) {
    let anonymous = sizes.resident.saturating_sub(sizes.resident_shared);
    let lines: [(&str, u64); 19] = [
        ("Rss:", sizes.resident),
        ("Pss:", sizes.resident),
        ("Pss_Dirty:", anonymous),
        ("Shared_Clean:", 0),
        ("Shared_Dirty:", 0),
        ("Private_Clean:", sizes.resident_shared),
        ("Private_Dirty:", anonymous),
        ("Referenced:", sizes.resident),
        ("Anonymous:", anonymous),
        ("LazyFree:", 0),
        ("AnonHugePages:", 0),
        ("ShmemPmdMapped:", 0),
        ("FilePmdMapped:", 0),
        ("Shared_Hugetlb:", 0),
        ("Private_Hugetlb:", 0),
        ("Swap:", 0),
        ("SwapPss:", 0),
        ("Locked:", sizes.locked),
        ("", 0),
    ];
    for (label, bytes) in lines.iter().filter(|(label, _)| !label.is_empty()) {
        let _ = writeln!(text, "{label:<16}{:8} kB", bytes / 1024);
    }
}

/// Bytes `range` of the program's memory, as much of them as is there.
fn read(unix: &Unix, space: &KernelCell<Space>, range: (u64, u64)) -> Vec<u8> {
    let wanted = range.1.saturating_sub(range.0).min(STRINGS_BYTES_MAX) as usize;
    let Ok(mut bytes) = try_filled(0, wanted) else { return Vec::new() };
    let mut done = 0;
    while done < wanted {
        let at = range.0 + done as u64;
        let piece = (PAGE_BYTES - at as usize % PAGE_BYTES).min(wanted - done);
        if unix.reach_now(space, |space| space.peek_bytes(at, &mut bytes[done..done + piece])).is_err() {
            break;
        }
        done += piece;
    }
    bytes.truncate(done);
    bytes
}

/// `mem`: the process's memory, whatever its rights are; nothing once it has executed. Errors: `EACCES`, `EIO` where nothing is.
pub fn peek(unix: &'static Unix, member: &Member, position: u64, bytes: usize) -> Text {
    let process = member.inspect(unix)?;
    let Some(space) = member.space(&process) else { return Ok(Vec::new()) };
    let seen = read(unix, &space, (position, position.saturating_add(bytes as u64)));
    if seen.is_empty() && bytes > 0 { Err(Errno::EIO) } else { Ok(seen) }
}

/// As `peek`, to write; a program's text becomes its own copy.
pub fn poke(held: Held<'_>, unix: &'static Unix, member: &Member, position: u64, from: &[u8]) -> Result<usize, Errno> {
    let process = member.inspect(unix)?;
    let Some(space) = member.space(&process) else { return Ok(0) };
    unix.reach(held, &space, |space| space.poke_bytes(position, from)).map_err(|_| Errno::EIO)?;
    crate::calls::ptrace::watchpoints::note_all(&process);
    Ok(from.len())
}

fn read_of(unix: &Unix, process: &Process, range: (u64, u64)) -> Vec<u8> {
    process.space().map(|space| read(unix, &space, range)).unwrap_or_default()
}

/// The first bytes of the arguments, as they lie there.
pub fn first_arguments(unix: &Unix, process: &Process, most: u64) -> Vec<u8> {
    let (start, end) = process.arguments.get();
    read_of(unix, process, (start, end.min(start.saturating_add(most))))
}

/// The arguments, each with its NUL. A program may write a title over them: if the last NUL is gone, the title
/// goes on to the next NUL, into the environment (Linux `get_mm_cmdline`).
pub fn command_line(unix: &'static Unix, member: &Member) -> Text {
    let process = member.process()?;
    let (start, end) = process.arguments.get();
    let mut text = read_of(unix, &process, (start, end));
    if text.last().is_some_and(|last| *last != 0) {
        text.try_extend_from_slice(&read_of(unix, &process, (end, process.environment.get().1)))?;
        let title = text.iter().position(|byte| *byte == 0).map_or(text.len(), |end| end + 1);
        text.truncate(title);
    }
    Ok(text)
}

pub fn environment(unix: &'static Unix, member: &Member) -> Text {
    let process = member.inspect(unix)?;
    Ok(read_of(unix, &process, process.environment.get()))
}

/// The auxiliary vector lies behind the argument and environment pointers, where `execve` put it.
pub fn auxv(unix: &'static Unix, member: &Member) -> Text {
    auxiliary_vector(unix, &*member.inspect(unix)?)
}

/// The same, for whoever writes it down.
pub fn auxiliary_vector(unix: &'static Unix, process: &Process) -> Text {
    const VECTOR_BYTES_MAX: usize = 64 * 16;
    let start = process.stack_start.get();
    let Some(space) = process.space().filter(|_| start != 0) else { return Ok(Vec::new()) };
    let word = |address: u64| {
        let mut bytes = [0; 8];
        unix.reach_now(&space, |space| space.peek_bytes(address, &mut bytes)).map_err(|_| Errno::EIO)?;
        Ok::<u64, Errno>(u64::from_le_bytes(bytes))
    };
    let mut at = start.saturating_add(word(start)?.saturating_add(2).saturating_mul(8));
    let strings = process.arguments.get().0;
    while word(at)? != 0 {
        at += 8;
        if at >= strings {
            return Ok(Vec::new());
        }
    }
    let mut vector = Vec::new();
    while vector.len() < VECTOR_BYTES_MAX {
        at += 8;
        let (key, value) = (word(at)?, word(at + 8)?);
        at += 8;
        vector.try_extend_from_slice(&key.to_le_bytes())?;
        vector.try_extend_from_slice(&value.to_le_bytes())?;
        if key == 0 {
            break;
        }
    }
    Ok(vector)
}
