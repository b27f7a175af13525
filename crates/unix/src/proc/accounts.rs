//! What a process may use, has used, and has been set to.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::sync::atomic::Ordering;

use abi::Errno;
use abi::process::CAP_SYS_RESOURCE;
use machine::{Held, PAGE_BYTES, try_text};

use super::process::Member;
use super::status::used;
use super::text::{Lines, constant, written};
use crate::emulator::Unix;
use crate::task::settings::Settings;

type Text = Result<Vec<u8>, Errno>;

/// Name and unit of each resource limit, by number (Linux `fs/proc/base.c`).
const LIMITS: [(&str, &str); 16] = [
    ("Max cpu time", "seconds"),
    ("Max file size", "bytes"),
    ("Max data size", "bytes"),
    ("Max stack size", "bytes"),
    ("Max core file size", "bytes"),
    ("Max resident set", "bytes"),
    ("Max processes", "processes"),
    ("Max open files", "files"),
    ("Max locked memory", "bytes"),
    ("Max address space", "bytes"),
    ("Max file locks", "locks"),
    ("Max pending signals", "signals"),
    ("Max msgqueue size", "bytes"),
    ("Max nice priority", ""),
    ("Max realtime priority", ""),
    ("Max realtime timeout", "us"),
];

pub fn limits(_: &'static Unix, member: &Member) -> Text {
    let process = member.process()?;
    let limits = process.limits.borrow().clone();
    let amount = |value: u64| match value {
        u64::MAX => String::from("unlimited"),
        value => try_text(format_args!("{value}")).unwrap_or_default(),
    };
    let mut text = Lines::default();
    let _ = writeln!(text, "{:<25} {:<20} {:<20} {:<10}", "Limit", "Soft Limit", "Hard Limit", "Units");
    for ((name, unit), (soft, hard)) in LIMITS.iter().zip(limits.0) {
        let _ = write!(text, "{name:<25} {:<20} {:<20} ", amount(soft), amount(hard));
        let _ = if unit.is_empty() { writeln!(text) } else { writeln!(text, "{unit:<10}") };
    }
    text.whole()
}

/// Nothing counts the bytes that a process moves.
pub fn io(unix: &'static Unix, member: &Member) -> Text {
    member.inspect(unix)?;
    let names = ["rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes"];
    let mut text = Lines::default();
    for name in names {
        let _ = writeln!(text, "{name}: 0");
    }
    text.whole()
}

pub fn cgroup(_: &'static Unix, member: &Member) -> Text {
    member.process()?;
    constant(b"0::/\n")
}

pub fn waiting_channel(_: &'static Unix, member: &Member) -> Text {
    member.process()?;
    constant(b"0")
}

pub fn personality(unix: &'static Unix, member: &Member) -> Text {
    let is_fixed = member.inspect(unix)?.settings.get().no_randomization;
    constant(if is_fixed { b"00040000\n" } else { b"00000000\n" })
}

/// Time on the processor, time waiting for it, times it was given.
pub fn schedule(unix: &'static Unix, member: &Member) -> Text {
    let process = member.process()?;
    written(format_args!("{} 0 0\n", used(unix, &process).0))
}

/// Linux's badness: what is resident and the adjustment, in thousandths of all memory.
pub fn oom_score(unix: &'static Unix, member: &Member) -> Text {
    let process = member.process()?;
    let adjustment = i64::from(process.oom_adjustment.load(Ordering::Relaxed));
    if adjustment == -1000 {
        return written(format_args!("0\n"));
    }
    let resident = process.space().map_or(0, |space| space.borrow().usage().resident) as i64;
    let memory = (unix.pool.total_frames() * PAGE_BYTES) as i64;
    let badness = resident * 1000 / memory.max(1) + adjustment;
    written(format_args!("{}\n", (1000 + badness) * 2 / 3))
}

pub fn oom_score_adjustment(_: &'static Unix, member: &Member) -> Text {
    let adjustment = member.process()?.oom_adjustment.load(Ordering::Relaxed);
    written(format_args!("{adjustment}\n"))
}

/// Errors: `EINVAL`; `EACCES` for making oneself less likely to be chosen without privilege.
pub fn set_oom_score_adjustment(_: Held<'_>, unix: &'static Unix, member: &Member, text: &[u8]) -> Result<(), Errno> {
    let process = member.process()?;
    let value: i32 = trimmed(text)?.parse().map_err(|_| Errno::EINVAL)?;
    if !(-1000..=1000).contains(&value) {
        return Err(Errno::EINVAL);
    }
    let privileged = super::root::caller(unix)?.process.can(CAP_SYS_RESOURCE);
    if value < process.oom_adjustment.load(Ordering::Relaxed).min(0) && !privileged {
        return Err(Errno::EACCES);
    }
    process.oom_adjustment.store(value, Ordering::Relaxed);
    Ok(())
}

pub fn coredump_filter(_: &'static Unix, member: &Member) -> Text {
    written(format_args!("{:08x}\n", member.process()?.settings.get().dump_filter))
}

/// Error: `EINVAL` for something that is no number.
pub fn set_coredump_filter(_: Held<'_>, _: &'static Unix, member: &Member, text: &[u8]) -> Result<(), Errno> {
    let process = member.process()?;
    let filter = u32::try_from(number(text)?).map_err(|_| Errno::EINVAL)?;
    process.settings.borrow_mut().dump_filter = filter & abi::core_file::DUMP_KNOWN;
    Ok(())
}

/// Sleeps end at the nanosecond asked for, as far as the machine can; the number is only kept.
pub fn timer_slack(_: &'static Unix, member: &Member) -> Text {
    written(format_args!("{}\n", member.process()?.settings.get().timer_slack_ns))
}

/// 0 asks for the default. Error: `EINVAL` for something that is no number.
pub fn set_timer_slack(_: Held<'_>, _: &'static Unix, member: &Member, text: &[u8]) -> Result<(), Errno> {
    let process = member.process()?;
    let asked = number(text)?;
    let timer_slack_ns = if asked == 0 { Settings::default().timer_slack_ns } else { asked };
    process.settings.set(Settings { timer_slack_ns, ..process.settings.get() });
    Ok(())
}

fn trimmed(text: &[u8]) -> Result<&str, Errno> {
    core::str::from_utf8(text).map(str::trim).map_err(|_| Errno::EINVAL)
}

/// A number in C's notation. Error: `EINVAL`.
fn number(text: &[u8]) -> Result<u64, Errno> {
    let text = trimmed(text)?;
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None if text.len() > 1 && text.starts_with('0') => u64::from_str_radix(&text[1..], 8),
        None => text.parse(),
    };
    parsed.map_err(|_| Errno::EINVAL)
}

#[cfg(test)]
mod tests {
    use super::number;
    use abi::Errno;

    #[test]
    fn settings_take_numbers_as_c_writes_them() {
        assert_eq!(
            [number(b"51\n"), number(b"0x33"), number(b" 063 "), number(b"0")],
            [Ok(51), Ok(0x33), Ok(0o63), Ok(0)]
        );
        assert_eq!([number(b""), number(b"x"), number(b"-1"), number(b"08")], [Err(Errno::EINVAL); 4]);
    }
}
