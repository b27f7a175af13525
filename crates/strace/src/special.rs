//! Calls whose arguments depend on each other.

use alloc::format;
use alloc::string::String;

use abi::file::*;
use abi::memory::*;
use abi::process::*;
use abi::signal::signal_name;
use abi::sound::SOUND_IOCTLS;
use abi::time::TIMER_ABSTIME;
use abi::tty::*;

use super::call::Call;
use super::records::{self, int, timespec};
use super::text;

fn followed(call: &Call, index: usize, print: fn(&Call, u64) -> Option<String>) -> String {
    let address = call.arguments[index];
    print(call, address).unwrap_or_else(|| text::pointer(address))
}

fn followed_if(condition: bool, call: &Call, index: usize, print: fn(&Call, u64) -> Option<String>) -> String {
    if condition { followed(call, index, print) } else { text::pointer(call.arguments[index]) }
}

/// `O_RDWR|O_CREAT`: the access mode is always shown.
pub fn open_flags(flags: u32) -> String {
    let mode = match flags & O_ACCMODE {
        O_RDONLY => "O_RDONLY",
        O_WRONLY => "O_WRONLY",
        O_RDWR => "O_RDWR",
        _ => "O_ACCMODE",
    };
    text::base_and_flags(String::from(mode), (flags & !O_ACCMODE).into(), OPEN_FLAGS)
}

/// Flags of `statx`: how it synchronizes is always shown.
pub fn statx_flags(call: &Call, index: usize) -> Option<String> {
    let flags = call.word(index);
    let sync = match flags & (AT_STATX_FORCE_SYNC | AT_STATX_DONT_SYNC) {
        0 => "AT_STATX_SYNC_AS_STAT",
        AT_STATX_FORCE_SYNC => "AT_STATX_FORCE_SYNC",
        AT_STATX_DONT_SYNC => "AT_STATX_DONT_SYNC",
        _ => "AT_STATX_SYNC_TYPE",
    };
    let rest = flags & !(AT_STATX_FORCE_SYNC | AT_STATX_DONT_SYNC);
    Some(text::base_and_flags(String::from(sync), rest.into(), AT_FLAGS))
}

/// Flags of `preadv2`, which come after both halves of the offset.
pub fn rw_flags(call: &Call, _: usize) -> Option<String> {
    Some(text::flags(call.word(5).into(), RW_FLAGS))
}

/// `F_OK`, or the accesses asked for.
pub fn access_mode(call: &Call, index: usize) -> Option<String> {
    match call.word(index) {
        F_OK => Some(String::from("F_OK")),
        mode => Some(text::flags(mode.into(), ACCESS_MODES)),
    }
}

/// Flags of `faccessat2`: the bit of `AT_REMOVEDIR` means `AT_EACCESS` here.
pub fn access_flags(call: &Call, index: usize) -> Option<String> {
    let line = text::flags(call.word(index).into(), AT_FLAGS);
    let mut text = String::new();
    for name in line.split('|') {
        if !text.is_empty() {
            text.push('|');
        }
        text.push_str(if name == "AT_REMOVEDIR" { "AT_EACCESS" } else { name });
    }
    Some(text)
}

/// The mode of `mknod`.
pub fn node_mode(call: &Call, index: usize) -> Option<String> {
    Some(records::mode(call.word(index)))
}

/// The device of `mknod`, which counts only for device files.
pub fn node_device(call: &Call, index: usize) -> Option<String> {
    match call.word(index - 1) & S_IFMT {
        S_IFCHR | S_IFBLK => Some(records::device(call.arguments[index])),
        _ => None,
    }
}

/// `PROT_READ|PROT_WRITE`, or `PROT_NONE`.
pub fn protection(call: &Call, index: usize) -> Option<String> {
    match call.word(index) {
        PROT_NONE => Some(String::from("PROT_NONE")),
        bits => Some(text::flags(bits.into(), PROTECTIONS)),
    }
}

/// `MAP_PRIVATE|MAP_ANONYMOUS`: the kind is always shown.
pub fn map_flags(call: &Call, index: usize) -> Option<String> {
    let flags = call.word(index);
    let kind = match flags & MAP_TYPE {
        MAP_FILE => String::from("MAP_FILE"),
        kind => text::choice(kind.into(), MAP_TYPES),
    };
    Some(text::base_and_flags(kind, (flags & !MAP_TYPE).into(), MAP_FLAGS))
}

/// The new address of `mremap`, which counts only with `MREMAP_FIXED` or `MREMAP_DONTUNMAP`.
pub fn mremap_address(call: &Call, index: usize) -> Option<String> {
    let counts = call.word(index - 1) & (MREMAP_FIXED | MREMAP_DONTUNMAP) != 0;
    counts.then(|| text::pointer(call.arguments[index]))
}

/// The time that was left, which only an interrupted sleep writes.
pub fn remaining(call: &Call, index: usize) -> Option<String> {
    // 4 is EINTR, 516 the kernel's own number for a sleep that a signal interrupted.
    let interrupted = matches!(call.error(), Some(4 | 516));
    let absolute = index == 3 && call.word(1) & TIMER_ABSTIME != 0;
    Some(followed_if(interrupted && !absolute, call, index, timespec))
}

/// The third argument of `fcntl`.
pub fn fcntl_argument(call: &Call, index: usize) -> Option<String> {
    let value = call.arguments[index];
    Some(match call.word(1) {
        F_GETFD | F_GETFL | F_GETOWN | F_GETSIG | F_GETLEASE | F_GETPIPE_SZ | F_GET_SEALS => return None,
        F_SETFD => text::flags(value & 0xffff_ffff, DESCRIPTOR_FLAGS),
        F_SETFL => open_flags(value as u32),
        F_SETLK | F_SETLKW | F_OFD_SETLK | F_OFD_SETLKW => followed(call, index, lock),
        F_GETLK | F_OFD_GETLK => followed_if(call.succeeded(), call, index, lock),
        F_ADD_SEALS => text::flags(value & 0xffff_ffff, SEALS),
        F_SETLEASE => text::choice(value & 0xffff_ffff, LOCK_TYPES),
        F_SETSIG => text::signal(value as u32),
        F_DUPFD | F_DUPFD_CLOEXEC | F_SETOWN | F_SETPIPE_SZ => format!("{}", value as i32),
        _ => text::pointer(value),
    })
}

fn lock(call: &Call, address: u64) -> Option<String> {
    let lock: Flock = call.record(address)?;
    let owner = match call.word(1) {
        F_GETLK | F_OFD_GETLK => format!(", l_pid={}", lock.l_pid),
        _ => String::new(),
    };
    Some(format!(
        "{{l_type={}, l_whence={}, l_start={}, l_len={}{owner}}}",
        text::choice(lock.l_type.into(), LOCK_TYPES),
        text::choice(lock.l_whence.into(), SEEKS),
        lock.l_start,
        lock.l_len
    ))
}

/// The result of `fcntl`, with the flags it stands for.
pub fn fcntl_result(call: &Call, result: i64) -> String {
    match call.word(1) {
        F_GETFL => format!("{} (flags {})", text::hex(result as u64), open_flags(result as u32)),
        F_GETFD if result != 0 => format!("{result:#x} (flags {})", text::flags(result as u64, DESCRIPTOR_FLAGS)),
        _ => format!("{result}"),
    }
}

/// The name of an `ioctl` request, or its four parts.
pub fn ioctl_request(call: &Call, index: usize) -> Option<String> {
    let request = call.word(index);
    let known = text::find(request.into(), IOCTLS).or_else(|| text::find(request.into(), SOUND_IOCTLS));
    if let Some(name) = known {
        return Some(String::from(name));
    }
    let direction = ["_IOC_NONE", "_IOC_WRITE", "_IOC_READ", "_IOC_READ|_IOC_WRITE"][(request >> 30) as usize];
    let (kind, number, bytes) = (request >> 8 & 0xff, request & 0xff, request >> 16 & 0x3fff);
    let [kind, number, bytes] = [kind, number, bytes].map(|part| text::hex(part.into()));
    Some(format!("_IOC({direction}, {kind}, {number}, {bytes})"))
}

/// The third argument of `ioctl`.
pub fn ioctl_argument(call: &Call, index: usize) -> Option<String> {
    let value = call.arguments[index];
    let done = call.succeeded();
    Some(match call.word(1) {
        FIOCLEX | FIONCLEX | TIOCNOTTY | TIOCEXCL | TIOCNXCL | TIOCSBRK | TIOCCBRK | TIOCVHANGUP | TIOCCONS => {
            return None;
        }
        TCGETS => followed_if(done, call, index, termios),
        TCSETS | TCSETSW | TCSETSF => followed(call, index, termios),
        TIOCGWINSZ => followed_if(done, call, index, window),
        TIOCSWINSZ => followed(call, index, window),
        FIONREAD | TIOCOUTQ | TIOCGPGRP | TIOCGSID | TIOCGPTN | TIOCGETD | TIOCGPTLCK | TIOCGPKT | TIOCGEXCL
        | FIOGETOWN | SIOCGPGRP | SIOCATMARK => followed_if(done, call, index, int),
        FIONBIO | FIOASYNC | TIOCSPGRP | TIOCSPTLCK | TIOCPKT | TIOCSETD | FIOSETOWN | SIOCSPGRP => {
            followed(call, index, int)
        }
        TCFLSH => text::choice(value, FLUSH_QUEUES),
        TCXONC => text::choice(value, FLOW_ACTIONS),
        TCSBRK | TCSBRKP | TIOCSCTTY | FICLONE => format!("{}", value as i32),
        _ => text::hex(value),
    })
}

fn window(call: &Call, address: u64) -> Option<String> {
    let size: WinSize = call.record(address)?;
    let (rows, columns, width, height) = (size.ws_row, size.ws_col, size.ws_xpixel, size.ws_ypixel);
    Some(format!("{{ws_row={rows}, ws_col={columns}, ws_xpixel={width}, ws_ypixel={height}}}"))
}

fn termios(call: &Call, address: u64) -> Option<String> {
    let modes: Termios = call.record(address)?;
    let speed = text::choice((modes.c_cflag & CBAUD).into(), SPEEDS);
    let control = modes.c_cflag & !CBAUD;
    let size = if control & CSIZE == CSIZE { None } else { text::find((control & CSIZE).into(), CHARACTER_SIZES) };
    let speed_and_size = size.map_or_else(|| speed.clone(), |size| format!("{speed}|{size}"));
    // All output delays are off: their zeros have names, and strace prints them.
    let delays = String::from("NL0|CR0|TAB0|BS0|VT0|FF0");
    Some(format!(
        "{{c_iflag={}, c_oflag={}, c_cflag={}, c_lflag={}, ...}}",
        text::flags(modes.c_iflag.into(), INPUT_MODES),
        text::base_and_flags(delays, modes.c_oflag.into(), OUTPUT_MODES),
        text::base_and_flags(speed_and_size, control.into(), CONTROL_MODES),
        text::flags(modes.c_lflag.into(), LOCAL_MODES),
    ))
}

/// All arguments of `clone`, in strace's order.
pub fn clone_arguments(call: &Call, _: usize) -> Option<String> {
    let [flags, stack, parent, child, tls, _] = call.arguments;
    let mut line = format!("child_stack={}, flags={}", text::pointer(stack), clone_flags(flags));
    if flags & (CLONE_PARENT_SETTID | CLONE_PIDFD) != 0 {
        let target = match call.record::<i32>(parent).filter(|_| call.succeeded()) {
            Some(id) => format!("[{id}]"),
            None => text::pointer(parent),
        };
        line.push_str(&format!(", parent_tid={target}"));
    }
    if flags & CLONE_SETTLS != 0 {
        line.push_str(&format!(", tls={}", text::pointer(tls)));
    }
    if flags & (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID) != 0 {
        line.push_str(&format!(", child_tidptr={}", text::pointer(child)));
    }
    Some(line)
}

/// `CLONE_VM|SIGCHLD`.
fn clone_flags(flags: u64) -> String {
    let signal = (flags & CSIGNAL) as u32;
    match (flags & !CSIGNAL, signal_name(signal)) {
        (0, Some(name)) => String::from(name),
        (rest, Some(name)) => format!("{}|{name}", text::flags(rest, CLONE_FLAGS)),
        (_, None) => text::flags(flags, CLONE_FLAGS),
    }
}

/// `struct clone_args`.
pub fn clone3_arguments(call: &Call, address: u64) -> Option<String> {
    // Older callers give fewer bytes; the missing ones are zero.
    let given = call.arguments[1].min(CloneArgs::BYTES as u64) as usize;
    let mut bytes = [0; CloneArgs::BYTES];
    bytes[..given].copy_from_slice(&call.bytes(address, given)?);
    let CloneArgs { flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, .. } =
        CloneArgs::from_bytes(&bytes);
    let mut line = format!("{{flags={}", text::flags(flags, CLONE_FLAGS));
    let mut add = |counts: bool, name: &str, value: u64| {
        if counts {
            line.push_str(&format!(", {name}={}", text::pointer(value)));
        }
    };
    add(flags & CLONE_PIDFD != 0, "pidfd", pidfd);
    add(flags & (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID) != 0, "child_tid", child_tid);
    add(flags & CLONE_PARENT_SETTID != 0, "parent_tid", parent_tid);
    let (signal, stack) = (text::signal(exit_signal as u32), text::pointer(stack));
    line.push_str(&format!(", exit_signal={signal}, stack={stack}, stack_size={}", text::hex(stack_size)));
    if flags & CLONE_SETTLS != 0 {
        line.push_str(&format!(", tls={}", text::pointer(tls)));
    }
    line.push('}');
    if flags & CLONE_PARENT_SETTID != 0
        && let Some(id) = call.record::<i32>(parent_tid).filter(|_| call.succeeded())
    {
        line.push_str(&format!(" => {{parent_tid=[{id}]}}"));
    }
    Some(line)
}

fn futex_command(call: &Call) -> u32 {
    call.word(1) & !(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME)
}

/// `FUTEX_WAIT_PRIVATE`, `FUTEX_WAIT_BITSET|FUTEX_CLOCK_REALTIME`.
pub fn futex_operation(call: &Call, index: usize) -> Option<String> {
    let mut name = text::choice(futex_command(call).into(), FUTEX_OPERATIONS);
    if call.word(index) & FUTEX_PRIVATE_FLAG != 0 {
        name.push_str("_PRIVATE");
    }
    if call.word(index) & FUTEX_CLOCK_REALTIME != 0 {
        name.push_str("|FUTEX_CLOCK_REALTIME");
    }
    Some(name)
}

/// Arguments of `futex` after the operation: value, time or second value, second word, third value.
pub fn futex_argument(call: &Call, index: usize) -> Option<String> {
    let value = call.arguments[index];
    let word = || format!("{}", value as u32);
    Some(match (futex_command(call), index) {
        (FUTEX_LOCK_PI | FUTEX_LOCK_PI2, 2) => return None,
        (FUTEX_TRYLOCK_PI | FUTEX_UNLOCK_PI, _) => return None,
        (_, 2) => word(),
        (FUTEX_WAIT | FUTEX_WAIT_BITSET | FUTEX_LOCK_PI | FUTEX_LOCK_PI2 | FUTEX_WAIT_REQUEUE_PI, 3) => {
            followed(call, index, timespec)
        }
        (FUTEX_WAIT_BITSET | FUTEX_WAKE_BITSET, 5) => bitset(value as u32),
        // These do not count, but the set after them does.
        (FUTEX_WAKE_BITSET, 3) | (FUTEX_WAIT_BITSET | FUTEX_WAKE_BITSET, 4) => String::new(),
        (FUTEX_REQUEUE | FUTEX_CMP_REQUEUE | FUTEX_WAKE_OP | FUTEX_CMP_REQUEUE_PI, 3) => word(),
        (FUTEX_REQUEUE | FUTEX_CMP_REQUEUE | FUTEX_WAKE_OP | FUTEX_CMP_REQUEUE_PI | FUTEX_WAIT_REQUEUE_PI, 4) => {
            text::pointer(value)
        }
        (FUTEX_CMP_REQUEUE | FUTEX_CMP_REQUEUE_PI, 5) => word(),
        (FUTEX_WAKE_OP, 5) => text::hex(value & 0xffff_ffff),
        _ => return None,
    })
}

fn bitset(bits: u32) -> String {
    match bits {
        FUTEX_BITSET_MATCH_ANY => String::from("FUTEX_BITSET_MATCH_ANY"),
        bits => text::hex(bits.into()),
    }
}

/// The argument of `arch_prctl`.
pub fn arch_prctl_argument(call: &Call, index: usize) -> Option<String> {
    let value = call.arguments[index];
    Some(match (call.word(0), call.record::<u64>(value)) {
        (ARCH_GET_FS | ARCH_GET_GS, Some(base)) if call.succeeded() => format!("[{}]", text::pointer(base)),
        _ => text::pointer(value),
    })
}

/// Arguments of `prctl` after the option.
pub fn prctl_argument(call: &Call, index: usize) -> Option<String> {
    let value = call.arguments[index];
    Some(match (call.word(0), index) {
        (PR_SET_NAME, 1) => followed(call, index, thread_name),
        (PR_GET_NAME, 1) => followed_if(call.succeeded(), call, index, thread_name),
        (PR_SET_PDEATHSIG, 1) => text::signal(value as u32),
        (PR_GET_PDEATHSIG | PR_GET_TID_ADDRESS, 1) => followed_if(call.succeeded(), call, index, int),
        (PR_SET_NO_NEW_PRIVS | PR_GET_NO_NEW_PRIVS, _) => format!("{value}"),
        (PR_SET_VMA, _) => text::hex(value),
        (PR_SET_DUMPABLE | PR_CAPBSET_READ | PR_CAPBSET_DROP | PR_SET_KEEPCAPS | PR_SET_CHILD_SUBREAPER, 1) => {
            format!("{value}")
        }
        (
            PR_SET_NAME
            | PR_GET_NAME
            | PR_SET_PDEATHSIG
            | PR_GET_PDEATHSIG
            | PR_GET_TID_ADDRESS
            | PR_SET_DUMPABLE
            | PR_GET_DUMPABLE
            | PR_CAPBSET_READ
            | PR_CAPBSET_DROP
            | PR_GET_KEEPCAPS
            | PR_SET_KEEPCAPS
            | PR_GET_SECUREBITS
            | PR_GET_TIMERSLACK
            | PR_SET_CHILD_SUBREAPER,
            _,
        ) => return None,
        _ => text::hex(value),
    })
}

/// A thread's name: at most 16 bytes with the zero.
fn thread_name(call: &Call, address: u64) -> Option<String> {
    let (name, ended) = call.string(address, 16)?;
    Some(text::quoted(&name, !ended))
}

/// Whose usage `getrusage` asks for.
pub fn usage_of(call: &Call, index: usize) -> Option<String> {
    Some(match call.word(index) as i32 {
        RUSAGE_SELF => String::from("RUSAGE_SELF"),
        RUSAGE_CHILDREN => String::from("RUSAGE_CHILDREN"),
        RUSAGE_THREAD => String::from("RUSAGE_THREAD"),
        other => format!("{other:#x} /* RUSAGE_??? */"),
    })
}

/// `0 (SCHED_OTHER)`.
pub fn scheduler_result(_: &Call, result: i64) -> String {
    format!("{result} ({})", text::choice(result as u64, SCHEDULERS))
}

/// `17 (SIGCHLD)`.
pub fn signal_result(_: &Call, result: i64) -> String {
    format!("{result} ({})", text::signal(result as u32))
}
