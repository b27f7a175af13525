//! What each call takes and returns: one line per call.

use alloc::format;
use alloc::string::String;

use abi::file::*;
use abi::memory::*;
use abi::nr;
use abi::poll::*;
use abi::process::*;
use abi::signal::*;
use abi::socket::*;
use abi::time::*;

use super::call::Call;
use super::records as r;
use super::sets;
use super::sockets as s;
use super::special as x;
use super::text::{self, Names};

/// What one argument is, so how it prints.
#[derive(Clone, Copy)]
pub enum Argument {
    /// A signed 32-bit number; descriptors too.
    Int,
    /// An unsigned 32-bit number.
    Unsigned,
    /// A signed 64-bit number.
    Long,
    /// An unsigned 64-bit number.
    Size,
    /// A 64-bit number in hexadecimal.
    Hex,
    /// An address that is not followed.
    Pointer,
    /// The descriptor of a directory, or `AT_FDCWD`.
    Directory,
    /// A string that ends with a zero.
    Path,
    /// Permission bits.
    Mode,
    /// Permission bits that count only if argument `.0` creates a file.
    CreationMode(usize),
    /// Flags that join.
    Flags(Names),
    /// One of several values.
    Choice(Names),
    /// Flags of `open`.
    OpenFlags,
    /// A signal's number.
    Signal,
    /// Bytes that the program gives; argument `.0` says how many.
    Given(usize),
    /// Bytes that the kernel gives; the result says how many.
    Filled,
    /// What a pointer leads to when the call starts.
    In(fn(&Call, u64) -> Option<String>),
    /// What a pointer leads to when the call has succeeded.
    Out(fn(&Call, u64) -> Option<String>),
    /// Depends on other arguments; an empty text leaves it out, `None` ends the list.
    Special(fn(&Call, usize) -> Option<String>),
}

/// How a result prints.
pub type Returns = fn(&Call, i64) -> String;

/// A result in decimal.
pub fn number(_: &Call, result: i64) -> String {
    format!("{result}")
}

/// A result in hexadecimal.
fn address(_: &Call, result: i64) -> String {
    format!("{result:#x}")
}

/// A result in octal.
fn mode(_: &Call, result: i64) -> String {
    text::octal(result as u64)
}

/// One call.
pub struct Shape {
    /// Its number.
    nr: u16,
    /// Its arguments in order.
    pub arguments: &'static [Argument],
    /// Its result.
    pub returns: Returns,
}

/// The shape of call `nr`, `None` for rare calls.
pub fn shape(nr: u64) -> Option<&'static Shape> {
    SHAPES.iter().find(|shape| u64::from(shape.nr) == nr)
}

impl Argument {
    /// The argument's text, `None` if it and those after it do not count.
    pub fn format(&self, call: &Call, index: usize) -> Option<String> {
        let value = call.arguments[index];
        Some(match *self {
            Int => format!("{}", value as i32),
            Unsigned => format!("{}", value as u32),
            Long => format!("{}", value as i64),
            Size => format!("{value}"),
            Hex => text::hex(value),
            Pointer => text::pointer(value),
            Directory if value as i32 == AT_FDCWD => String::from("AT_FDCWD"),
            Directory => format!("{}", value as i32),
            Path => r::path(call, value).unwrap_or_else(|| text::pointer(value)),
            Mode => text::octal(value & 0xffff_ffff),
            CreationMode(flags) if creates(call.word(flags)) => text::octal(value & 0xffff_ffff),
            CreationMode(_) => return None,
            Flags(names) => text::flags(value & 0xffff_ffff, names),
            Choice(names) => text::choice(value & 0xffff_ffff, names),
            OpenFlags => x::open_flags(value as u32),
            Signal => text::signal(value as u32),
            Given(length) => r::bytes(call, value, call.arguments[length]).unwrap_or_else(|| text::pointer(value)),
            Filled => r::filled(call, value).unwrap_or_else(|| text::pointer(value)),
            In(print) => print(call, value).unwrap_or_else(|| text::pointer(value)),
            Out(print) if call.succeeded() => print(call, value).unwrap_or_else(|| text::pointer(value)),
            Out(_) => text::pointer(value),
            Special(print) => return print(call, index),
        })
    }
}

/// Whether `open` flags make the mode count.
fn creates(flags: u32) -> bool {
    flags & O_CREAT != 0 || flags & O_TMPFILE == O_TMPFILE
}

use Argument::*;

/// One row of the table, returning a plain number.
const fn n(nr: u64, arguments: &'static [Argument]) -> Shape {
    Shape { nr: nr as u16, arguments, returns: number }
}

/// One row of the table, returning an address or a word.
const fn p(nr: u64, arguments: &'static [Argument]) -> Shape {
    Shape { nr: nr as u16, arguments, returns: address }
}

/// One row of the table with a result of its own.
const fn z(nr: u64, arguments: &'static [Argument], returns: Returns) -> Shape {
    Shape { nr: nr as u16, arguments, returns }
}

/// Flags of `…at` calls.
const AT: Argument = Flags(AT_FLAGS);

#[rustfmt::skip] // one line per call
static SHAPES: &[Shape] = &[
    // Files.
    n(nr::READ, &[Int, Filled, Size]),
    n(nr::WRITE, &[Int, Given(2), Size]),
    n(nr::OPEN, &[Path, OpenFlags, CreationMode(1)]),
    n(nr::OPENAT, &[Directory, Path, OpenFlags, CreationMode(2)]),
    n(nr::OPENAT2, &[Directory, Path, Pointer, Size]),
    n(nr::CREAT, &[Path, Mode]),
    n(nr::CLOSE, &[Int]),
    n(nr::CLOSE_RANGE, &[Unsigned, Unsigned, Flags(CLOSE_RANGE_FLAGS)]),
    n(nr::STAT, &[Path, Out(r::stat)]),
    n(nr::FSTAT, &[Int, Out(r::stat)]),
    n(nr::LSTAT, &[Path, Out(r::stat)]),
    n(nr::NEWFSTATAT, &[Directory, Path, Out(r::stat), AT]),
    n(nr::STATX, &[Directory, Path, Special(x::statx_flags), Flags(STATX_MASKS), Out(r::statx)]),
    n(nr::STATFS, &[Path, Out(r::statfs)]),
    n(nr::FSTATFS, &[Int, Out(r::statfs)]),
    n(nr::LSEEK, &[Int, Long, Choice(SEEKS)]),
    n(nr::PREAD64, &[Int, Filled, Size, Long]),
    n(nr::PWRITE64, &[Int, Given(2), Size, Long]),
    n(nr::READV, &[Int, Special(r::iovec_filled), Size]),
    n(nr::WRITEV, &[Int, Special(r::iovec_given), Size]),
    n(nr::PREADV, &[Int, Special(r::iovec_filled), Size, Long]),
    n(nr::PWRITEV, &[Int, Special(r::iovec_given), Size, Long]),
    n(nr::PREADV2, &[Int, Special(r::iovec_filled), Size, Long, Special(x::rw_flags)]),
    n(nr::PWRITEV2, &[Int, Special(r::iovec_given), Size, Long, Special(x::rw_flags)]),
    n(nr::SENDFILE, &[Int, Int, In(r::long), Size]),
    n(nr::COPY_FILE_RANGE, &[Int, In(r::long), Int, In(r::long), Size, Unsigned]),
    n(nr::SPLICE, &[Int, In(r::long), Int, In(r::long), Size, Unsigned]),
    n(nr::ACCESS, &[Path, Special(x::access_mode)]),
    n(nr::FACCESSAT, &[Directory, Path, Special(x::access_mode)]),
    n(nr::FACCESSAT2, &[Directory, Path, Special(x::access_mode), Special(x::access_flags)]),
    n(nr::DUP, &[Int]),
    n(nr::DUP2, &[Int, Int]),
    n(nr::DUP3, &[Int, Int, Flags(OPEN_FLAGS)]),
    n(nr::PIPE, &[Out(r::pair)]),
    n(nr::PIPE2, &[Out(r::pair), Flags(OPEN_FLAGS)]),
    z(nr::FCNTL, &[Int, Choice(FCNTL_COMMANDS), Special(x::fcntl_argument)], x::fcntl_result),
    n(nr::IOCTL, &[Int, Special(x::ioctl_request), Special(x::ioctl_argument)]),
    n(nr::FLOCK, &[Int, Flags(FLOCK_OPERATIONS)]),
    n(nr::FSYNC, &[Int]),
    n(nr::FDATASYNC, &[Int]),
    n(nr::SYNC, &[]),
    n(nr::SYNCFS, &[Int]),
    n(nr::SYNC_FILE_RANGE, &[Int, Long, Long, Unsigned]),
    n(nr::TRUNCATE, &[Path, Long]),
    n(nr::FTRUNCATE, &[Int, Long]),
    n(nr::FALLOCATE, &[Int, Flags(FALLOCATE_FLAGS), Long, Long]),
    n(nr::FADVISE64, &[Int, Long, Long, Choice(FADVICE)]),
    n(nr::READAHEAD, &[Int, Long, Size]),
    n(nr::GETDENTS64, &[Int, Special(r::directory_entries), Size]),
    n(nr::GETDENTS, &[Int, Pointer, Unsigned]),
    n(nr::GETCWD, &[Out(r::path), Size]),
    n(nr::CHDIR, &[Path]),
    n(nr::FCHDIR, &[Int]),
    n(nr::CHROOT, &[Path]),
    n(nr::RENAME, &[Path, Path]),
    n(nr::RENAMEAT, &[Directory, Path, Directory, Path]),
    n(nr::RENAMEAT2, &[Directory, Path, Directory, Path, Flags(RENAME_FLAGS)]),
    n(nr::MKDIR, &[Path, Mode]),
    n(nr::MKDIRAT, &[Directory, Path, Mode]),
    n(nr::RMDIR, &[Path]),
    n(nr::LINK, &[Path, Path]),
    n(nr::LINKAT, &[Directory, Path, Directory, Path, AT]),
    n(nr::UNLINK, &[Path]),
    n(nr::UNLINKAT, &[Directory, Path, AT]),
    n(nr::SYMLINK, &[Path, Path]),
    n(nr::SYMLINKAT, &[Path, Directory, Path]),
    n(nr::READLINK, &[Path, Filled, Size]),
    n(nr::READLINKAT, &[Directory, Path, Filled, Size]),
    n(nr::MKNOD, &[Path, Special(x::node_mode), Special(x::node_device)]),
    n(nr::MKNODAT, &[Directory, Path, Special(x::node_mode), Special(x::node_device)]),
    n(nr::CHMOD, &[Path, Mode]),
    n(nr::FCHMOD, &[Int, Mode]),
    n(nr::FCHMODAT, &[Directory, Path, Mode]),
    n(nr::FCHMODAT2, &[Directory, Path, Mode, AT]),
    n(nr::CHOWN, &[Path, Int, Int]),
    n(nr::FCHOWN, &[Int, Int, Int]),
    n(nr::LCHOWN, &[Path, Int, Int]),
    n(nr::FCHOWNAT, &[Directory, Path, Int, Int, AT]),
    z(nr::UMASK, &[Mode], mode),
    n(nr::UTIMENSAT, &[Directory, Path, In(r::two_times), AT]),
    n(nr::UTIMES, &[Path, In(r::two_timevals)]),
    n(nr::FUTIMESAT, &[Directory, Path, In(r::two_timevals)]),
    n(nr::UTIME, &[Path, Pointer]),
    n(nr::GETXATTR, &[Path, Path, Filled, Size]),
    n(nr::LGETXATTR, &[Path, Path, Filled, Size]),
    n(nr::FGETXATTR, &[Int, Path, Filled, Size]),
    n(nr::SETXATTR, &[Path, Path, Given(3), Size, Flags(XATTR_FLAGS)]),
    n(nr::LSETXATTR, &[Path, Path, Given(3), Size, Flags(XATTR_FLAGS)]),
    n(nr::FSETXATTR, &[Int, Path, Given(3), Size, Flags(XATTR_FLAGS)]),
    n(nr::LISTXATTR, &[Path, Filled, Size]),
    n(nr::LLISTXATTR, &[Path, Filled, Size]),
    n(nr::FLISTXATTR, &[Int, Filled, Size]),
    n(nr::REMOVEXATTR, &[Path, Path]),
    n(nr::LREMOVEXATTR, &[Path, Path]),
    n(nr::FREMOVEXATTR, &[Int, Path]),
    n(nr::MEMFD_CREATE, &[Path, Flags(MEMFD_FLAGS)]),
    n(nr::MOUNT, &[Path, Path, Path, Flags(MOUNT_FLAGS), Pointer]),
    n(nr::UMOUNT2, &[Path, Unsigned]),
    n(nr::INOTIFY_INIT, &[]),
    n(nr::INOTIFY_INIT1, &[Flags(INOTIFY_FLAGS)]),
    n(nr::INOTIFY_ADD_WATCH, &[Int, Path, Flags(INOTIFY_EVENTS)]),
    n(nr::INOTIFY_RM_WATCH, &[Int, Int]),
    // Waiting for descriptors.
    z(nr::POLL, &[Special(r::poll_descriptors), Unsigned, Int], r::poll_result),
    z(nr::PPOLL, &[Special(r::poll_descriptors), Unsigned, In(r::timespec), In(r::signal_set), Size], r::poll_result),
    z(nr::SELECT, &[Int, Special(sets::descriptors), Special(sets::descriptors), Special(sets::descriptors), In(r::timeval)], sets::ready),
    z(nr::PSELECT6, &[Int, Special(sets::descriptors), Special(sets::descriptors), Special(sets::descriptors), In(r::timespec), In(r::pselect_mask)], sets::ready),
    n(nr::EPOLL_CREATE, &[Int]),
    n(nr::EPOLL_CREATE1, &[Flags(EPOLL_FLAGS)]),
    n(nr::EPOLL_CTL, &[Int, Choice(EPOLL_OPERATIONS), Int, In(r::epoll_event)]),
    n(nr::EPOLL_WAIT, &[Int, Out(r::epoll_events), Int, Int]),
    n(nr::EPOLL_PWAIT, &[Int, Out(r::epoll_events), Int, Int, In(r::signal_set), Size]),
    n(nr::EPOLL_PWAIT2, &[Int, Out(r::epoll_events), Int, In(r::timespec), In(r::signal_set), Size]),
    n(nr::EVENTFD, &[Unsigned]),
    n(nr::EVENTFD2, &[Unsigned, Flags(EVENTFD_FLAGS)]),
    n(nr::SIGNALFD4, &[Int, In(r::signal_set), Size, Flags(SIGNALFD_FLAGS)]),
    n(nr::TIMERFD_CREATE, &[Choice(CLOCKS), Flags(TIMERFD_FLAGS)]),
    n(nr::TIMERFD_SETTIME, &[Int, Flags(TIMERFD_SET_FLAGS), In(r::itimerspec), Out(r::itimerspec)]),
    n(nr::TIMERFD_GETTIME, &[Int, Out(r::itimerspec)]),
    // Memory.
    p(nr::MMAP, &[Pointer, Size, Special(x::protection), Special(x::map_flags), Int, Hex]),
    n(nr::MUNMAP, &[Pointer, Size]),
    n(nr::MPROTECT, &[Pointer, Size, Special(x::protection)]),
    p(nr::MREMAP, &[Pointer, Size, Size, Flags(MREMAP_FLAGS), Special(x::mremap_address)]),
    n(nr::MADVISE, &[Pointer, Size, Choice(MADVICE)]),
    n(nr::MSYNC, &[Pointer, Size, Flags(MSYNC_FLAGS)]),
    n(nr::MINCORE, &[Pointer, Size, Pointer]),
    n(nr::MLOCK, &[Pointer, Size]),
    n(nr::MLOCK2, &[Pointer, Size, Unsigned]),
    n(nr::MUNLOCK, &[Pointer, Size]),
    n(nr::MLOCKALL, &[Flags(MLOCKALL_FLAGS)]),
    n(nr::MUNLOCKALL, &[]),
    p(nr::BRK, &[Pointer]),
    n(nr::SHMGET, &[Hex, Size, Hex]),
    p(nr::SHMAT, &[Int, Pointer, Hex]),
    n(nr::SHMDT, &[Pointer]),
    n(nr::SHMCTL, &[Int, Int, Pointer]),
    n(nr::MBIND, &[Pointer, Size, Hex, Pointer, Size, Hex]),
    n(nr::SET_MEMPOLICY, &[Hex, Pointer, Size]),
    n(nr::GET_MEMPOLICY, &[Pointer, Pointer, Size, Pointer, Hex]),
    // Processes and threads.
    n(nr::EXECVE, &[Path, In(r::strings), In(r::string_count)]),
    n(nr::EXECVEAT, &[Directory, Path, In(r::strings), In(r::string_count), AT]),
    n(nr::EXIT, &[Int]),
    n(nr::EXIT_GROUP, &[Int]),
    n(nr::FORK, &[]),
    n(nr::VFORK, &[]),
    n(nr::CLONE, &[Special(x::clone_arguments)]),
    n(nr::CLONE3, &[In(x::clone3_arguments), Size]),
    n(nr::WAIT4, &[Int, Special(r::wait_status), Flags(WAIT_OPTIONS), Special(r::wait_usage)]),
    n(nr::WAITID, &[Choice(WAIT_IDS), Int, Out(r::siginfo), Flags(WAIT_OPTIONS), Out(r::rusage)]),
    n(nr::GETPID, &[]),
    n(nr::GETPPID, &[]),
    n(nr::GETTID, &[]),
    n(nr::GETUID, &[]),
    n(nr::GETEUID, &[]),
    n(nr::GETGID, &[]),
    n(nr::GETEGID, &[]),
    n(nr::GETPGRP, &[]),
    n(nr::GETPGID, &[Int]),
    n(nr::SETPGID, &[Int, Int]),
    n(nr::GETSID, &[Int]),
    n(nr::SETSID, &[]),
    n(nr::SETUID, &[Int]),
    n(nr::SETGID, &[Int]),
    n(nr::SETREUID, &[Int, Int]),
    n(nr::SETREGID, &[Int, Int]),
    n(nr::SETRESUID, &[Int, Int, Int]),
    n(nr::SETRESGID, &[Int, Int, Int]),
    n(nr::SETFSUID, &[Int]),
    n(nr::SETFSGID, &[Int]),
    n(nr::GETRESUID, &[Out(r::int), Out(r::int), Out(r::int)]),
    n(nr::GETRESGID, &[Out(r::int), Out(r::int), Out(r::int)]),
    n(nr::GETGROUPS, &[Int, Out(r::groups_got)]),
    n(nr::SETGROUPS, &[Int, In(r::groups_given)]),
    n(nr::CAPGET, &[Pointer, Pointer]),
    n(nr::CAPSET, &[Pointer, Pointer]),
    n(nr::SET_TID_ADDRESS, &[Pointer]),
    n(nr::SET_ROBUST_LIST, &[Pointer, Size]),
    n(nr::GET_ROBUST_LIST, &[Int, Pointer, Pointer]),
    n(nr::RSEQ, &[Pointer, Hex, Hex, Hex]),
    n(nr::FUTEX, &[Pointer, Special(x::futex_operation), Special(x::futex_argument), Special(x::futex_argument), Special(x::futex_argument), Special(x::futex_argument)]),
    n(nr::FUTEX_WAITV, &[Pointer, Unsigned, Hex, In(r::timespec), Choice(CLOCKS)]),
    n(nr::ARCH_PRCTL, &[Choice(ARCH_PRCTLS), Special(x::arch_prctl_argument)]),
    n(nr::PRCTL, &[Choice(PRCTLS), Special(x::prctl_argument), Special(x::prctl_argument), Special(x::prctl_argument), Special(x::prctl_argument)]),
    n(nr::SCHED_YIELD, &[]),
    n(nr::SCHED_GETAFFINITY, &[Int, Size, Out(sets::processors)]),
    n(nr::SCHED_SETAFFINITY, &[Int, Size, In(sets::processors)]),
    z(nr::SCHED_GETSCHEDULER, &[Int], x::scheduler_result),
    n(nr::SCHED_SETSCHEDULER, &[Int, Choice(SCHEDULERS), In(r::int)]),
    n(nr::SCHED_GETPARAM, &[Int, Out(r::int)]),
    n(nr::SCHED_SETPARAM, &[Int, In(r::int)]),
    n(nr::SCHED_GET_PRIORITY_MAX, &[Choice(SCHEDULERS)]),
    n(nr::SCHED_GET_PRIORITY_MIN, &[Choice(SCHEDULERS)]),
    n(nr::GETPRIORITY, &[Choice(PRIORITY_IDS), Int]),
    n(nr::SETPRIORITY, &[Choice(PRIORITY_IDS), Int, Int]),
    n(nr::PRLIMIT64, &[Int, Choice(RLIMITS), In(r::rlimit), Out(r::rlimit)]),
    n(nr::GETRLIMIT, &[Choice(RLIMITS), Out(r::rlimit)]),
    n(nr::SETRLIMIT, &[Choice(RLIMITS), In(r::rlimit)]),
    n(nr::GETRUSAGE, &[Special(x::usage_of), Out(r::rusage)]),
    n(nr::TIMES, &[Out(r::tms)]),
    n(nr::UNAME, &[Out(r::utsname)]),
    n(nr::SYSINFO, &[Out(r::sysinfo)]),
    n(nr::SETHOSTNAME, &[Path, Size]),
    n(nr::SYSLOG, &[Int, Pointer, Int]),
    n(nr::GETRANDOM, &[Out(r::random), Size, Flags(RANDOM_FLAGS)]),
    n(nr::GETCPU, &[Out(r::int), Out(r::int), Pointer]),
    n(nr::VHANGUP, &[]),
    n(nr::SETNS, &[Int, Flags(CLONE_FLAGS)]),
    n(nr::UNSHARE, &[Flags(CLONE_FLAGS)]),
    n(nr::PIDFD_OPEN, &[Int, Hex]),
    n(nr::PIDFD_SEND_SIGNAL, &[Int, Signal, In(r::siginfo), Hex]),
    n(nr::REBOOT, &[Hex, Hex, Hex, Pointer]),
    n(nr::PERSONALITY, &[Hex]),
    n(nr::PTRACE, &[Hex, Int, Pointer, Pointer]),
    // Signals.
    n(nr::KILL, &[Int, Signal]),
    n(nr::TKILL, &[Int, Signal]),
    n(nr::TGKILL, &[Int, Int, Signal]),
    n(nr::RT_SIGACTION, &[Signal, In(r::sigaction), Out(r::sigaction), Size]),
    n(nr::RT_SIGPROCMASK, &[Choice(MASK_CHANGES), In(r::signal_set), Out(r::signal_set), Size]),
    n(nr::RT_SIGPENDING, &[Out(r::signal_set), Size]),
    n(nr::RT_SIGSUSPEND, &[In(r::signal_set), Size]),
    z(nr::RT_SIGTIMEDWAIT, &[In(r::signal_set), Out(r::siginfo), In(r::timespec), Size], x::signal_result),
    n(nr::RT_SIGQUEUEINFO, &[Int, Signal, In(r::siginfo)]),
    n(nr::RT_TGSIGQUEUEINFO, &[Int, Int, Signal, In(r::siginfo)]),
    n(nr::RT_SIGRETURN, &[]),
    n(nr::SIGALTSTACK, &[In(r::stack), Out(r::stack)]),
    n(nr::PAUSE, &[]),
    // Time.
    n(nr::ALARM, &[Unsigned]),
    n(nr::CLOCK_GETTIME, &[Choice(CLOCKS), Out(r::timespec)]),
    n(nr::CLOCK_SETTIME, &[Choice(CLOCKS), In(r::timespec)]),
    n(nr::CLOCK_GETRES, &[Choice(CLOCKS), Out(r::timespec)]),
    n(nr::CLOCK_NANOSLEEP, &[Choice(CLOCKS), Flags(TIMER_FLAGS), In(r::timespec), Special(x::remaining)]),
    n(nr::NANOSLEEP, &[In(r::timespec), Special(x::remaining)]),
    n(nr::GETTIMEOFDAY, &[Out(r::timeval), Out(r::timezone)]),
    n(nr::SETTIMEOFDAY, &[In(r::timeval), In(r::timezone)]),
    n(nr::TIME, &[Out(r::long)]),
    n(nr::SETITIMER, &[Choice(INTERVAL_TIMERS), In(r::itimerval), Out(r::itimerval)]),
    n(nr::GETITIMER, &[Choice(INTERVAL_TIMERS), Out(r::itimerval)]),
    n(nr::TIMER_CREATE, &[Choice(CLOCKS), Pointer, Out(r::int)]),
    n(nr::TIMER_SETTIME, &[Int, Flags(TIMER_FLAGS), In(r::itimerspec), Out(r::itimerspec)]),
    n(nr::TIMER_GETTIME, &[Int, Out(r::itimerspec)]),
    n(nr::TIMER_DELETE, &[Int]),
    n(nr::TIMER_GETOVERRUN, &[Int]),
    // Sockets.
    n(nr::SOCKET, &[Choice(FAMILIES), Special(s::kind), Special(s::protocol)]),
    n(nr::SOCKETPAIR, &[Choice(FAMILIES), Special(s::kind), Special(s::protocol), Out(r::pair)]),
    n(nr::BIND, &[Int, Special(s::address_given), Int]),
    n(nr::CONNECT, &[Int, Special(s::address_given), Int]),
    n(nr::LISTEN, &[Int, Int]),
    n(nr::ACCEPT, &[Int, Special(s::address_filled), Special(s::address_length)]),
    n(nr::ACCEPT4, &[Int, Special(s::address_filled), Special(s::address_length), Flags(SOCKET_FLAGS)]),
    n(nr::GETSOCKNAME, &[Int, Special(s::address_filled), Special(s::address_length)]),
    n(nr::GETPEERNAME, &[Int, Special(s::address_filled), Special(s::address_length)]),
    n(nr::SENDTO, &[Int, Given(2), Size, Flags(MESSAGE_FLAGS), Special(s::address_given), Int]),
    n(nr::RECVFROM, &[Int, Filled, Size, Flags(MESSAGE_FLAGS), Special(s::address_filled), Special(s::address_length)]),
    n(nr::SENDMSG, &[Int, In(s::message_given), Flags(MESSAGE_FLAGS)]),
    n(nr::RECVMSG, &[Int, Out(s::message_filled), Flags(MESSAGE_FLAGS)]),
    n(nr::SHUTDOWN, &[Int, Choice(SHUTDOWNS)]),
    n(nr::SETSOCKOPT, &[Int, Choice(OPTION_LEVELS), Special(s::option), Special(s::option_given), Int]),
    n(nr::GETSOCKOPT, &[Int, Choice(OPTION_LEVELS), Special(s::option), Special(s::option_filled), Special(s::address_length)]),
    // Asynchronous input and output.
    n(nr::IO_SETUP, &[Unsigned, Pointer]),
    n(nr::IO_DESTROY, &[Pointer]),
    n(nr::IO_SUBMIT, &[Pointer, Long, Pointer]),
    n(nr::IO_GETEVENTS, &[Pointer, Long, Long, Pointer, In(r::timespec)]),
    n(nr::IO_URING_SETUP, &[Unsigned, Pointer]),
    n(nr::IO_URING_ENTER, &[Int, Unsigned, Unsigned, Hex, Pointer, Size]),
    n(nr::IO_URING_REGISTER, &[Int, Unsigned, Pointer, Unsigned]),
];
