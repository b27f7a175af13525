//! What pointers lead to. Each function takes the address and gives `None` if it cannot be read.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use abi::file::*;
use abi::poll::{EPOLL_EVENTS, EpollEvent, POLL_EVENTS, PollFd};
use abi::process::{RLIM_INFINITY, Rlimit, Rusage, Sysinfo, Utsname, WaitStatus};
use abi::siginfo::{self, Cause, SigInfo};
use abi::signal::{SIG_DFL, SIG_IGN, SIGACTION_FLAGS, STACK_FLAGS, SigAction, StackT};
use abi::time::{Itimerspec, Itimerval, Timespec, Timeval, Timezone, Tms, UTIME_NOW, UTIME_OMIT};

use super::call::Call;
use super::text::{self, STRING_LIMIT};

/// Most elements of an array that are shown.
const ELEMENTS_MAX: u64 = 32;

/// Most bytes of directory entries that are counted.
const ENTRY_BYTES_MAX: u64 = 1 << 20;

/// A string that ends with a zero, whole.
pub fn path(call: &Call, address: u64) -> Option<String> {
    let (bytes, ended) = call.string(address, PATH_MAX)?;
    Some(text::quoted(&bytes, !ended))
}

/// The first bytes of a buffer of `length` bytes.
pub fn bytes(call: &Call, address: u64, length: u64) -> Option<String> {
    if length == 0 && address != 0 {
        return Some(String::from("\"\""));
    }
    let shown = call.bytes(address, length.min(STRING_LIMIT as u64) as usize)?;
    Some(text::buffer(&shown, length))
}

/// A buffer that the kernel filled; the result says how far.
pub fn filled(call: &Call, address: u64) -> Option<String> {
    let length = call.result.filter(|_| call.succeeded())?;
    bytes(call, address, length as u64)
}

/// Random bytes, all in hexadecimal.
pub fn random(call: &Call, address: u64) -> Option<String> {
    let total = call.result? as u64;
    let shown = call.bytes(address, total.min(STRING_LIMIT as u64) as usize)?;
    let digits: String = shown.iter().map(|byte| format!("\\x{byte:02x}")).collect();
    Some(format!("\"{digits}\"{}", if total > shown.len() as u64 { "..." } else { "" }))
}

/// `[5]`: a 32-bit number.
pub fn int(call: &Call, address: u64) -> Option<String> {
    Some(format!("[{}]", call.record::<i32>(address)?))
}

/// `[5]`: a 64-bit number.
pub fn long(call: &Call, address: u64) -> Option<String> {
    Some(format!("[{}]", call.record::<i64>(address)?))
}

/// `[3, 4]`: two descriptors.
pub fn pair(call: &Call, address: u64) -> Option<String> {
    let [first, second] = call.record::<[i32; 2]>(address)?;
    Some(format!("[{first}, {second}]"))
}

/// An array of `count` elements in brackets, cut at 32.
pub fn array(count: u64, mut element: impl FnMut(u64) -> Option<String>) -> Option<String> {
    let mut line = String::from("[");
    for index in 0..count.min(ELEMENTS_MAX) {
        if index > 0 {
            line.push_str(", ");
        }
        match element(index) {
            Some(text) => line.push_str(&text),
            None if index == 0 => return None,
            None => {
                line.push_str("...");
                break;
            }
        }
    }
    if count > ELEMENTS_MAX {
        line.push_str(", ...");
    }
    line.push(']');
    Some(line)
}

fn groups(call: &Call, address: u64, count: u64) -> Option<String> {
    array(count, |index| Some(format!("{}", call.element::<u32>(address, index)?)))
}

/// Groups that `getgroups` wrote; with size zero it only counts them.
pub fn groups_got(call: &Call, address: u64) -> Option<String> {
    if call.word(0) == 0 { None } else { groups(call, address, call.result? as u64) }
}

/// Groups for `setgroups`.
pub fn groups_given(call: &Call, address: u64) -> Option<String> {
    groups(call, address, u64::from(call.word(0)))
}

/// Addresses of strings up to the null, at most `limit` of them.
fn string_pointers(call: &Call, address: u64, limit: u64) -> Option<Vec<u64>> {
    let mut pointers = Vec::new();
    for index in 0..limit {
        match call.element::<u64>(address, index)? {
            0 => break,
            pointer => pointers.push(pointer),
        }
    }
    Some(pointers)
}

/// The arguments of `execve`.
pub fn strings(call: &Call, address: u64) -> Option<String> {
    let pointers = string_pointers(call, address, ELEMENTS_MAX + 1)?;
    array(pointers.len() as u64, |index| {
        let pointer = pointers[index as usize];
        let (bytes, ended) = call.string(pointer, STRING_LIMIT + 1)?;
        Some(text::buffer(&bytes, if ended { bytes.len() as u64 } else { u64::MAX }))
    })
}

/// The environment of `execve`: its address and how many strings it has.
pub fn string_count(call: &Call, address: u64) -> Option<String> {
    let count = string_pointers(call, address, 4096)?.len();
    Some(format!("{address:#x} /* {count} var{} */", if count == 1 { "" } else { "s" }))
}

/// `S_IFREG|0644`.
pub fn mode(mode: u32) -> String {
    let permissions = text::octal(u64::from(mode & !S_IFMT));
    match text::find(u64::from(mode & S_IFMT), FILE_TYPES) {
        Some(name) => format!("{name}|{permissions}"),
        None => text::octal(u64::from(mode)),
    }
}

/// `makedev(0x1, 0x3)`.
pub fn device(device: u64) -> String {
    format!("makedev({}, {})", text::hex(major(device).into()), text::hex(minor(device).into()))
}

/// `struct stat`, cut short as strace does.
pub fn stat(call: &Call, address: u64) -> Option<String> {
    let stat: Stat = call.record(address)?;
    let size = match stat.st_mode & S_IFMT {
        S_IFCHR | S_IFBLK => format!("st_rdev={}", device(stat.st_rdev)),
        _ => format!("st_size={}", stat.st_size),
    };
    Some(format!("{{st_mode={}, {size}, ...}}", mode(stat.st_mode)))
}

/// `struct statx`, cut short.
pub fn statx(call: &Call, address: u64) -> Option<String> {
    let statx: Statx = call.record(address)?;
    Some(format!(
        "{{stx_mask={}, stx_attributes={}, stx_mode={}, stx_size={}, ...}}",
        text::flags(statx.stx_mask.into(), STATX_MASKS),
        text::flags(statx.stx_attributes, STATX_ATTRIBUTES),
        mode(statx.stx_mode.into()),
        statx.stx_size,
    ))
}

/// `struct statfs`.
pub fn statfs(call: &Call, address: u64) -> Option<String> {
    let s: Statfs = call.record(address)?;
    let kind = text::find(s.f_type as u64, FILE_SYSTEMS).map_or_else(|| text::hex(s.f_type as u64), String::from);
    Some(format!(
        "{{f_type={kind}, f_bsize={}, f_blocks={}, f_bfree={}, f_bavail={}, f_files={}, f_ffree={}, \
         f_fsid={{val=[{}, {}]}}, f_namelen={}, f_frsize={}, f_flags={}}}",
        s.f_bsize,
        s.f_blocks,
        s.f_bfree,
        s.f_bavail,
        s.f_files,
        s.f_ffree,
        text::hex(s.f_fsid[0] as u32 as u64),
        text::hex(s.f_fsid[1] as u32 as u64),
        s.f_namelen,
        s.f_frsize,
        text::flags(s.f_flags as u64, STATFS_FLAGS),
    ))
}

/// `[{iov_base="abc", iov_len=3}]`: `available` bytes count, the rest is not there yet.
pub fn iovec(call: &Call, address: u64, count: u64, mut available: u64) -> Option<String> {
    array(count, |index| {
        let vector: Iovec = call.element(address, index)?;
        let length = vector.iov_len.min(available);
        available -= length;
        let base = bytes(call, vector.iov_base, length).unwrap_or_else(|| text::pointer(vector.iov_base));
        Some(format!("{{iov_base={base}, iov_len={}}}", vector.iov_len))
    })
}

/// The vectors of `writev`.
pub fn iovec_given(call: &Call, index: usize) -> Option<String> {
    let address = call.arguments[index];
    Some(iovec(call, address, call.arguments[index + 1], u64::MAX).unwrap_or_else(|| text::pointer(address)))
}

/// The vectors of `readv`, once they are filled.
pub fn iovec_filled(call: &Call, index: usize) -> Option<String> {
    let address = call.arguments[index];
    let shown = call.result.filter(|_| call.succeeded());
    let line = shown.and_then(|bytes| iovec(call, address, call.arguments[index + 1], bytes as u64));
    Some(line.unwrap_or_else(|| text::pointer(address)))
}

/// `0x7ff… /* 9 entries */`: what `getdents64` gave.
pub fn directory_entries(call: &Call, index: usize) -> Option<String> {
    let address = call.arguments[index];
    let Some(total) = call.result.filter(|_| call.succeeded()) else { return Some(text::pointer(address)) };
    let (mut count, mut offset) = (0, 0);
    while offset < (total as u64).min(ENTRY_BYTES_MAX) {
        // The record's length lies at offset 16; the shortest record is 24 bytes.
        let Some(length) = call.record::<u16>(address.wrapping_add(offset + 16)) else { break };
        offset += u64::from(length.max(24));
        count += 1;
    }
    Some(format!("{} /* {count} {} */", text::pointer(address), if count == 1 { "entry" } else { "entries" }))
}

/// `[{fd=3, events=POLLIN}]`.
pub fn poll_descriptors(call: &Call, index: usize) -> Option<String> {
    let address = call.arguments[index];
    let line = array(u64::from(call.word(index + 1)), |place| {
        let entry: PollFd = call.element(address, place)?;
        if entry.fd < 0 {
            return Some(format!("{{fd={}}}", entry.fd));
        }
        Some(format!("{{fd={}, events={}}}", entry.fd, text::flags(entry.events.into(), POLL_EVENTS)))
    });
    Some(line.filter(|_| address != 0).unwrap_or_else(|| text::pointer(address)))
}

/// `1 ([{fd=4, revents=POLLOUT}])`.
pub fn poll_result(call: &Call, result: i64) -> String {
    if result == 0 {
        return String::from("0 (Timeout)");
    }
    let address = call.arguments[0];
    let ready: Vec<PollFd> = (0..u64::from(call.word(1)).min(4096))
        .map_while(|index| call.element(address, index))
        .filter(|entry: &PollFd| entry.revents != 0)
        .collect();
    let line = array(ready.len() as u64, |index| {
        let entry = ready[index as usize];
        Some(format!("{{fd={}, revents={}}}", entry.fd, text::flags(entry.revents.into(), POLL_EVENTS)))
    });
    let left = match call.record::<Timespec>(call.arguments[2]) {
        // Only `ppoll`'s third argument is an address; no program has one at a timeout's small number.
        Some(left) if call.arguments[2] > 0xffff_ffff => format!(", left {}", timespec_text(left)),
        _ => String::new(),
    };
    format!("{result} ({}{left})", line.unwrap_or_default())
}

fn epoll_event_text(event: EpollEvent) -> String {
    let (events, data) = (text::flags(event.events.into(), EPOLL_EVENTS), event.data());
    format!("{{events={events}, data={{u32={}, u64={data}}}}}", data as u32)
}

/// `struct epoll_event`.
pub fn epoll_event(call: &Call, address: u64) -> Option<String> {
    call.record(address).map(epoll_event_text)
}

/// The events that `epoll_wait` gave.
pub fn epoll_events(call: &Call, address: u64) -> Option<String> {
    array(call.result? as u64, |index| call.element(address, index).map(epoll_event_text))
}

fn timespec_text(time: Timespec) -> String {
    format!("{{tv_sec={}, tv_nsec={}}}", time.tv_sec, time.tv_nsec)
}

fn timeval_text(time: Timeval) -> String {
    format!("{{tv_sec={}, tv_usec={}}}", time.tv_sec, time.tv_usec)
}

/// `struct timespec`.
pub fn timespec(call: &Call, address: u64) -> Option<String> {
    call.record(address).map(timespec_text)
}

/// `struct timeval`.
pub fn timeval(call: &Call, address: u64) -> Option<String> {
    call.record(address).map(timeval_text)
}

/// The two times of `utimensat`.
pub fn two_times(call: &Call, address: u64) -> Option<String> {
    array(2, |index| {
        let time: Timespec = call.element(address, index)?;
        Some(match time.tv_nsec {
            UTIME_NOW => String::from("UTIME_NOW"),
            UTIME_OMIT => String::from("UTIME_OMIT"),
            _ => timespec_text(time),
        })
    })
}

/// The two times of `utimes`.
pub fn two_timevals(call: &Call, address: u64) -> Option<String> {
    array(2, |index| call.element(address, index).map(timeval_text))
}

/// `struct timezone`.
pub fn timezone(call: &Call, address: u64) -> Option<String> {
    let zone: Timezone = call.record(address)?;
    Some(format!("{{tz_minuteswest={}, tz_dsttime={}}}", zone.tz_minuteswest, zone.tz_dsttime))
}

/// `struct itimerval`.
pub fn itimerval(call: &Call, address: u64) -> Option<String> {
    let timer: Itimerval = call.record(address)?;
    let (interval, value) = (timeval_text(timer.it_interval), timeval_text(timer.it_value));
    Some(format!("{{it_interval={interval}, it_value={value}}}"))
}

/// `struct itimerspec`.
pub fn itimerspec(call: &Call, address: u64) -> Option<String> {
    let timer: Itimerspec = call.record(address)?;
    let (interval, value) = (timespec_text(timer.it_interval), timespec_text(timer.it_value));
    Some(format!("{{it_interval={interval}, it_value={value}}}"))
}

/// `struct tms`.
pub fn tms(call: &Call, address: u64) -> Option<String> {
    let t: Tms = call.record(address)?;
    let (user, system, child_user, child_system) = (t.tms_utime, t.tms_stime, t.tms_cutime, t.tms_cstime);
    Some(format!("{{tms_utime={user}, tms_stime={system}, tms_cutime={child_user}, tms_cstime={child_system}}}"))
}

/// `struct rusage`, cut short.
pub fn rusage(call: &Call, address: u64) -> Option<String> {
    let usage: Rusage = call.record(address)?;
    let (user, system) = (timeval_text(usage.ru_utime), timeval_text(usage.ru_stime));
    Some(format!("{{ru_utime={user}, ru_stime={system}, ...}}"))
}

/// `struct rlimit`.
pub fn rlimit(call: &Call, address: u64) -> Option<String> {
    let limit: Rlimit = call.record(address)?;
    Some(format!("{{rlim_cur={}, rlim_max={}}}", limit_text(limit.rlim_cur), limit_text(limit.rlim_max)))
}

fn limit_text(limit: u64) -> String {
    match limit {
        RLIM_INFINITY => String::from("RLIM64_INFINITY"),
        _ if limit > 1024 && limit.is_multiple_of(1024) => format!("{}*1024", limit / 1024),
        _ => format!("{limit}"),
    }
}

fn until_zero(field: &[u8]) -> &[u8] {
    &field[..field.iter().position(|byte| *byte == 0).unwrap_or(field.len())]
}

/// `struct utsname`, cut short.
pub fn utsname(call: &Call, address: u64) -> Option<String> {
    let names: Utsname = call.record(address)?;
    let system = text::quoted(until_zero(&names.sysname), false);
    let node = text::quoted(until_zero(&names.nodename), false);
    Some(format!("{{sysname={system}, nodename={node}, ...}}"))
}

/// `struct sysinfo`.
pub fn sysinfo(call: &Call, address: u64) -> Option<String> {
    let s: Sysinfo = call.record(address)?;
    Some(format!(
        "{{uptime={}, loads=[{}, {}, {}], totalram={}, freeram={}, sharedram={}, bufferram={}, totalswap={}, \
         freeswap={}, procs={}, totalhigh={}, freehigh={}, mem_unit={}}}",
        s.uptime,
        s.loads[0],
        s.loads[1],
        s.loads[2],
        s.totalram,
        s.freeram,
        s.sharedram,
        s.bufferram,
        s.totalswap,
        s.freeswap,
        s.procs,
        s.totalhigh,
        s.freehigh,
        s.mem_unit,
    ))
}

/// A signal set.
pub fn signal_set(call: &Call, address: u64) -> Option<String> {
    call.record(address).map(text::signal_set)
}

/// The last argument of `pselect6`: address and size of a signal set.
pub fn pselect_mask(call: &Call, address: u64) -> Option<String> {
    let [mask, size] = call.record::<[u64; 2]>(address)?;
    let mask = signal_set(call, mask).unwrap_or_else(|| text::pointer(mask));
    Some(format!("{{sigmask={mask}, sigsetsize={size}}}"))
}

/// `struct sigaction`.
pub fn sigaction(call: &Call, address: u64) -> Option<String> {
    let action: SigAction = call.record(address)?;
    let function = match action.sa_handler {
        SIG_DFL => String::from("SIG_DFL"),
        SIG_IGN => String::from("SIG_IGN"),
        address => text::pointer(address),
    };
    let (mask, flags) = (text::signal_set(action.sa_mask), text::flags(action.sa_flags, SIGACTION_FLAGS));
    let restorer = match action.sa_flags & abi::signal::SA_RESTORER {
        0 => String::new(),
        _ => format!(", sa_restorer={}", text::pointer(action.sa_restorer)),
    };
    Some(format!("{{sa_handler={function}, sa_mask={mask}, sa_flags={flags}{restorer}}}"))
}

/// `stack_t`.
pub fn stack(call: &Call, address: u64) -> Option<String> {
    let stack: StackT = call.record(address)?;
    let flags = text::flags(u64::from(stack.ss_flags as u32), STACK_FLAGS);
    Some(format!("{{ss_sp={}, ss_flags={flags}, ss_size={}}}", text::pointer(stack.ss_sp), stack.ss_size))
}

/// `siginfo_t`.
pub fn siginfo(call: &Call, address: u64) -> Option<String> {
    let bytes: [u8; 128] = call.record(address)?;
    Some(siginfo_text(&SigInfo::from_bytes(&bytes)))
}

/// The parts of a `siginfo_t` that count.
pub fn siginfo_text(info: &SigInfo) -> String {
    let signal = text::signal(info.signo as u32);
    let head = format!("si_signo={signal}, si_code={}", code_text(info));
    let rest = match info.cause {
        Cause::Kill { .. } if info.code == siginfo::SI_KERNEL => String::new(),
        Cause::Kill { pid, uid } => format!(", si_pid={pid}, si_uid={uid}"),
        Cause::Queue { pid, uid, value } => {
            format!(", si_pid={pid}, si_uid={uid}, si_value={{sival_int={}, sival_ptr={value:#x}}}", value as i32)
        }
        Cause::Timer { id, overrun, .. } => format!(", si_timerid={id:#x}, si_overrun={overrun}"),
        Cause::Child { pid, uid, status, utime, stime } => {
            let status = match info.code {
                siginfo::CLD_EXITED => format!("{status}"),
                _ => text::signal(status as u32),
            };
            format!(", si_pid={pid}, si_uid={uid}, si_status={status}, si_utime={utime}, si_stime={stime}")
        }
        Cause::Fault { address } => format!(", si_addr={}", text::pointer(address)),
        Cause::Poll { band, fd } => format!(", si_band={band}, si_fd={fd}"),
        Cause::Call { address, call, .. } => format!(", si_call_addr={}, si_syscall={call}", text::pointer(address)),
    };
    format!("{{{head}{rest}}}")
}

fn code_text(info: &SigInfo) -> String {
    use abi::signal::*;
    let names = match (info.signo as u32, info.code) {
        (_, siginfo::SI_USER) => return String::from("SI_USER"),
        (_, siginfo::SI_KERNEL) => return String::from("SI_KERNEL"),
        (_, siginfo::SI_QUEUE) => return String::from("SI_QUEUE"),
        (_, siginfo::SI_TIMER) => return String::from("SI_TIMER"),
        (_, siginfo::SI_TKILL) => return String::from("SI_TKILL"),
        (SIGILL, _) => siginfo::ILL_CODES,
        (SIGFPE, _) => siginfo::FPE_CODES,
        (SIGSEGV, _) => siginfo::SEGV_CODES,
        (SIGBUS, _) => siginfo::BUS_CODES,
        (SIGTRAP, _) => siginfo::TRAP_CODES,
        (SIGCHLD, _) => siginfo::CHILD_CODES,
        _ => siginfo::IO_CODES,
    };
    text::find(info.code as u64, names).map_or_else(|| format!("{}", info.code), String::from)
}

/// The status of `wait4`, if it gave a child.
pub fn wait_status(call: &Call, index: usize) -> Option<String> {
    let address = call.arguments[index];
    let status = call.record::<i32>(address).filter(|_| call.result.is_some_and(|child| child > 0));
    Some(status.map_or_else(|| text::pointer(address), |word| format!("[{{{}}}]", status_text(word))))
}

fn status_text(word: i32) -> String {
    match WaitStatus::decode(word) {
        Some(WaitStatus::Exited(code)) => format!("WIFEXITED(s) && WEXITSTATUS(s) == {code}"),
        Some(WaitStatus::Killed { signal, core }) => {
            let dumped = if core { " && WCOREDUMP(s)" } else { "" };
            format!("WIFSIGNALED(s) && WTERMSIG(s) == {}{dumped}", text::signal(signal.into()))
        }
        Some(WaitStatus::Stopped(signal)) => {
            format!("WIFSTOPPED(s) && WSTOPSIG(s) == {}", text::signal(signal.into()))
        }
        Some(WaitStatus::Trapped(code)) => {
            let (event, signal) = (code >> 8, text::signal((code & 0x7f).into()));
            format!("WIFSTOPPED(s) && WSTOPSIG(s) == {signal} | {event}<<8")
        }
        Some(WaitStatus::Continued) => String::from("WIFCONTINUED(s)"),
        None => format!("{word:#x}"),
    }
}

/// The usage of `wait4`, if it gave a child.
pub fn wait_usage(call: &Call, index: usize) -> Option<String> {
    let address = call.arguments[index];
    let gave_child = call.result.is_some_and(|child| child > 0);
    let usage = if gave_child { rusage(call, address) } else { None };
    Some(usage.unwrap_or_else(|| text::pointer(address)))
}
