//! /proc/sys: limits and constants. What can be changed takes effect; the rest cannot be opened for writing, by nobody.

use alloc::vec::Vec;

use abi::Errno;
use kernel::space::Overcommit;
use machine::{Held, KernelCell, PAGE_BYTES, TryGrow};

use super::system::{RELEASE, VERSION};
use super::text::written;
use super::tree::{Entry, Whole, fixed, setting, table};
use crate::emulator::Unix;

type Text = Result<Vec<u8>, Errno>;

/// A file that always says the same.
macro_rules! constant {
    ($name:literal, $text:literal) => {
        fixed($name, |_, _| Ok(concat!($text, "\n").into()))
    };
}

/// A limit that takes effect when it is written.
macro_rules! tunable {
    ($name:literal, $limit:ident) => {
        setting(
            $name,
            |unix, _| written(format_args!("{}\n", unix.families.tunables.$limit.get())),
            |_, unix, _, text| unix.families.tunables.$limit.set(number(text)?),
        )
    };
}

/// The first number of what was written. Error: `EINVAL`.
fn number(text: &[u8]) -> Result<u64, Errno> {
    let text = text.trim_ascii();
    let end = text.iter().position(|byte| matches!(byte, b' ' | b'\t' | b'\n' | 0)).unwrap_or(text.len());
    core::str::from_utf8(&text[..end]).ok().and_then(|text| text.parse().ok()).ok_or(Errno::EINVAL)
}

pub const ENTRIES: &[Entry<Whole>] = &[
    table("fs", FS),
    table("kernel", KERNEL),
    table("net", &[table("core", NET_CORE), table("ipv4", NET_IPV4), table("unix", NET_UNIX)]),
    table("vm", VM),
];

const FS: &[Entry<Whole>] = &[
    tunable!("aio-max-nr", aio_events),
    fixed("aio-nr", |unix, _| written(format_args!("{}\n", unix.families.aio.charged()))),
    constant!("dentry-state", "0\t0\t45\t0\t0\t0"),
    constant!("file-max", "9223372036854775807"),
    fixed("file-nr", |unix, _| {
        let mut open = 0;
        unix.tasks.processes().for_each(|process| process.each_files(|files| open += files.list().count()));
        written(format_args!("{open}\t0\t9223372036854775807\n"))
    }),
    table(
        "inotify",
        &[
            tunable!("max_queued_events", inotify_queued),
            tunable!("max_user_instances", inotify_instances),
            tunable!("max_user_watches", inotify_watches),
        ],
    ),
    constant!("inode-nr", "0\t0"),
    constant!("leases-enable", "0"),
    table(
        "mqueue",
        &[
            tunable!("msg_default", queue_messages_default),
            tunable!("msg_max", queue_messages),
            tunable!("msgsize_default", queue_bytes_default),
            tunable!("msgsize_max", queue_bytes),
            tunable!("queues_max", queues),
        ],
    ),
    tunable!("nr_open", descriptors),
    setting("pipe-max-size", pipe_size, set_pipe_size),
    constant!("pipe-user-pages-hard", "0"),
    constant!("pipe-user-pages-soft", "16384"),
    constant!("protected_hardlinks", "0"),
    constant!("protected_symlinks", "0"),
    constant!("suid_dumpable", "0"),
];

const KERNEL: &[Entry<Whole>] = &[
    constant!("cap_last_cap", "40"),
    setting("core_pattern", core_pattern, set_core_pattern),
    setting("core_uses_pid", core_uses_pid, set_core_uses_pid),
    setting("domainname", domain_name, set_domain_name),
    setting("hostname", host_name, set_host_name),
    tunable!("msgmax", message_bytes),
    tunable!("msgmnb", message_queue_bytes),
    tunable!("msgmni", message_queues),
    constant!("ngroups_max", "65536"),
    fixed("osrelease", |_, _| written(format_args!("{RELEASE}\n"))),
    constant!("ostype", "Linux"),
    constant!("overflowgid", "65534"),
    constant!("overflowuid", "65534"),
    constant!("perf_event_paranoid", "4"),
    tunable!("pid_max", process_ids),
    table("random", RANDOM),
    constant!("randomize_va_space", "0"),
    constant!("sched_rr_timeslice_ms", "1"),
    setting("sem", semaphore_limits, set_semaphore_limits),
    tunable!("shmall", segment_pages),
    tunable!("shmmax", segment_bytes),
    tunable!("shmmni", segments),
    constant!("tainted", "0"),
    tunable!("threads-max", tasks),
    fixed("version", |_, _| written(format_args!("{VERSION}\n"))),
];

const RANDOM: &[Entry<Whole>] = &[
    fixed("boot_id", |unix, _| identifier(boot_identity(unix))),
    constant!("entropy_avail", "256"),
    constant!("poolsize", "256"),
    fixed("uuid", |unix, _| identifier([unix.machine.random(), unix.machine.random()])),
    constant!("write_wakeup_threshold", "256"),
];

const NET_CORE: &[Entry<Whole>] = &[
    constant!("rmem_default", "212992"),
    constant!("rmem_max", "212992"),
    constant!("somaxconn", "4096"),
    constant!("wmem_default", "212992"),
    constant!("wmem_max", "212992"),
];

const NET_IPV4: &[Entry<Whole>] = &[
    constant!("ip_local_port_range", "32768\t60999"),
    constant!("tcp_allowed_congestion_control", "reno cubic"),
    constant!("tcp_available_congestion_control", "reno cubic"),
    constant!("tcp_congestion_control", "cubic"),
    constant!("tcp_max_syn_backlog", "512"),
    constant!("tcp_rmem", "4096\t131072\t6291456"),
    constant!("tcp_wmem", "4096\t16384\t4194304"),
];

const NET_UNIX: &[Entry<Whole>] = &[constant!("max_dgram_qlen", "512")];

const VM: &[Entry<Whole>] = &[
    constant!("dirty_background_ratio", "10"),
    constant!("dirty_ratio", "20"),
    setting("max_map_count", map_count, set_map_count),
    fixed("mmap_min_addr", |_, _| written(format_args!("{}\n", kernel::space::LOWEST_ADDRESS))),
    constant!("nr_hugepages", "0"),
    setting("overcommit_kbytes", overcommit_kilobytes, set_overcommit_kilobytes),
    setting("overcommit_memory", overcommit, set_overcommit),
    setting("overcommit_ratio", overcommit_percent, set_overcommit_percent),
    constant!("panic_on_oom", "0"),
    constant!("swappiness", "0"),
    constant!("vfs_cache_pressure", "100"),
];

/// Semaphores of a set, in all, operations of a call, sets.
fn semaphore_limits(unix: &'static Unix, _: &Whole) -> Text {
    let limits = &unix.families.tunables;
    let [per_set, all, operations, sets] =
        [&limits.semaphores_per_set, &limits.semaphores, &limits.semaphore_operations, &limits.semaphore_sets]
            .map(|limit| limit.get());
    written(format_args!("{per_set}\t{all}\t{operations}\t{sets}\n"))
}

/// Takes as many numbers as there are, in the order in which they are shown.
fn set_semaphore_limits(_: Held<'_>, unix: &'static Unix, _: &Whole, text: &[u8]) -> Result<(), Errno> {
    let limits = &unix.families.tunables;
    let places = [&limits.semaphores_per_set, &limits.semaphores, &limits.semaphore_operations, &limits.semaphore_sets];
    let words = text.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
    words.zip(places).try_for_each(|(word, limit)| limit.set(number(word)?))
}

fn pipe_size(unix: &'static Unix, _: &Whole) -> Text {
    written(format_args!("{}\n", unix.families.tunables.pipe_bytes.get()))
}

/// Pipes are powers of two, and have a page; of the number only 32 bits count. Error: `EINVAL` for what is too large for one.
fn set_pipe_size(_: Held<'_>, unix: &'static Unix, _: &Whole, text: &[u8]) -> Result<(), Errno> {
    let bytes = u64::from(number(text)? as u32);
    unix.families.tunables.pipe_bytes.set(bytes.next_power_of_two().max(PAGE_BYTES as u64))
}

fn map_count(unix: &'static Unix, _: &Whole) -> Text {
    written(format_args!("{}\n", unix.pool.rules.areas_max.get()))
}

fn set_map_count(_: Held<'_>, unix: &'static Unix, _: &Whole, text: &[u8]) -> Result<(), Errno> {
    let most = number(text)?;
    if most > i32::MAX as u64 {
        return Err(Errno::EINVAL);
    }
    unix.pool.rules.areas_max.set(most);
    Ok(())
}

fn overcommit(unix: &'static Unix, _: &Whole) -> Text {
    let rule = match unix.pool.rules.overcommit.get() {
        Overcommit::Heuristic => 0,
        Overcommit::Always => 1,
        Overcommit::Never => 2,
    };
    written(format_args!("{rule}\n"))
}

fn set_overcommit(_: Held<'_>, unix: &'static Unix, _: &Whole, text: &[u8]) -> Result<(), Errno> {
    unix.pool.rules.overcommit.set(match number(text)? {
        0 => Overcommit::Heuristic,
        1 => Overcommit::Always,
        2 => Overcommit::Never,
        _ => return Err(Errno::EINVAL),
    });
    Ok(())
}

fn overcommit_percent(unix: &'static Unix, _: &Whole) -> Text {
    written(format_args!("{}\n", unix.pool.rules.limit_percent.get()))
}

/// Of the two limits the one that was written last is in force.
fn set_overcommit_percent(_: Held<'_>, unix: &'static Unix, _: &Whole, text: &[u8]) -> Result<(), Errno> {
    let percent = Some(number(text)?).filter(|percent| *percent <= i32::MAX as u64).ok_or(Errno::EINVAL)?;
    unix.pool.rules.limit_percent.set(percent);
    unix.pool.rules.limit_kilobytes.set(0);
    Ok(())
}

fn overcommit_kilobytes(unix: &'static Unix, _: &Whole) -> Text {
    written(format_args!("{}\n", unix.pool.rules.limit_kilobytes.get()))
}

fn set_overcommit_kilobytes(_: Held<'_>, unix: &'static Unix, _: &Whole, text: &[u8]) -> Result<(), Errno> {
    unix.pool.rules.limit_kilobytes.set(number(text)?);
    unix.pool.rules.limit_percent.set(0);
    Ok(())
}

fn core_pattern(unix: &'static Unix, _: &Whole) -> Text {
    let mut pattern = unix.families.core_names.pattern()?;
    pattern.try_push(b'\n')?;
    Ok(pattern)
}

fn set_core_pattern(_: Held<'_>, unix: &'static Unix, _: &Whole, text: &[u8]) -> Result<(), Errno> {
    unix.families.core_names.set_pattern(first_line(text))
}

fn core_uses_pid(unix: &'static Unix, _: &Whole) -> Text {
    written(format_args!("{}\n", u8::from(unix.families.core_names.uses_pid.get())))
}

fn set_core_uses_pid(_: Held<'_>, unix: &'static Unix, _: &Whole, text: &[u8]) -> Result<(), Errno> {
    unix.families.core_names.uses_pid.set(number(text)? != 0);
    Ok(())
}

fn domain_name(unix: &'static Unix, _: &Whole) -> Text {
    let mut name = unix.system_names.domain()?;
    name.try_push(b'\n')?;
    Ok(name)
}

fn set_domain_name(_: Held<'_>, unix: &'static Unix, _: &Whole, text: &[u8]) -> Result<(), Errno> {
    unix.system_names.set_domain(first_line(text));
    Ok(())
}

fn host_name(unix: &'static Unix, _: &Whole) -> Text {
    let mut name = unix.system_names.host()?;
    name.try_push(b'\n')?;
    Ok(name)
}

/// Takes the first line, at most 64 bytes of it.
fn set_host_name(_: Held<'_>, unix: &'static Unix, _: &Whole, text: &[u8]) -> Result<(), Errno> {
    unix.system_names.set_host(first_line(text));
    Ok(())
}

fn first_line(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|byte| matches!(byte, b'\n' | 0)).unwrap_or(text.len());
    &text[..end]
}

/// Drawn at the first look, the same until the machine ends.
fn boot_identity(unix: &Unix) -> [u64; 2] {
    static IDENTITY: KernelCell<Option<[u64; 2]>> = KernelCell::new(None);
    let identity = IDENTITY.get().unwrap_or_else(|| [unix.machine.random(), unix.machine.random()]);
    IDENTITY.set(Some(identity));
    identity
}

/// A random UUID (RFC 9562, version 4).
fn identifier([high, low]: [u64; 2]) -> Text {
    let high = high & !0xF000 | 0x4000;
    let low = low & !(3 << 62) | 1 << 63;
    let (a, b, c) = (high >> 32, high >> 16 & 0xFFFF, high & 0xFFFF);
    written(format_args!("{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}\n", low >> 48, low & 0xFFFF_FFFF_FFFF))
}

#[cfg(test)]
mod tests {
    use super::identifier;

    #[test]
    fn an_identifier_tells_its_version_and_variant() {
        assert_eq!(identifier([0, 0]).as_deref(), Ok(&b"00000000-0000-4000-8000-000000000000\n"[..]));
        assert_eq!(identifier([u64::MAX, u64::MAX]).as_deref(), Ok(&b"ffffffff-ffff-4fff-bfff-ffffffffffff\n"[..]));
        assert_eq!(
            identifier([0x1122_3344_5566_7788, 0x99aa_bbcc_ddee_ff00]).as_deref(),
            Ok(&b"11223344-5566-4788-99aa-bbccddeeff00\n"[..])
        );
    }
}
