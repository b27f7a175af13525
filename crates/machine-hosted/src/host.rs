//! The host's system calls, as few as possible, without a C library: nothing of ours uses thread-local storage, so
//! the segment bases stay the program's.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use core::arch::asm;
use core::sync::atomic::AtomicU32;

/// A negative errno of the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostError(pub i32);

pub const EINTR: i32 = 4;
pub const EAGAIN: i32 = 11;
pub const EPIPE: i32 = 32;

mod nr {
    pub const READ: u64 = 0;
    pub const WRITE: u64 = 1;
    pub const OPEN: u64 = 2;
    pub const CLOSE: u64 = 3;
    pub const FSTAT: u64 = 5;
    pub const POLL: u64 = 7;
    pub const MMAP: u64 = 9;
    pub const MPROTECT: u64 = 10;
    pub const MUNMAP: u64 = 11;
    pub const RT_SIGACTION: u64 = 13;
    pub const RT_SIGPROCMASK: u64 = 14;
    pub const IOCTL: u64 = 16;
    pub const MREMAP: u64 = 25;
    pub const MADVISE: u64 = 28;
    pub const GETPID: u64 = 39;
    pub const WAIT4: u64 = 61;
    pub const KILL: u64 = 62;
    pub const FTRUNCATE: u64 = 77;
    pub const LINK: u64 = 86;
    pub const UNLINK: u64 = 87;
    pub const SIGALTSTACK: u64 = 131;
    pub const GETPPID: u64 = 110;
    pub const PRCTL: u64 = 157;
    pub const FUTEX: u64 = 202;
    pub const SCHED_GETAFFINITY: u64 = 204;
    pub const TIMER_CREATE: u64 = 222;
    pub const TIMER_SETTIME: u64 = 223;
    pub const CLOCK_GETTIME: u64 = 228;
    pub const EXIT_GROUP: u64 = 231;
    pub const PPOLL: u64 = 271;
    pub const PROCESS_VM_READV: u64 = 310;
    pub const GETRANDOM: u64 = 318;
}

/// # Safety
/// The call must be one that leaves the memory of Rust's values alone, as far as its arguments say.
pub(crate) unsafe fn call(number: u64, arguments: [u64; 6]) -> Result<u64, HostError> {
    let result: i64;
    // SAFETY: the caller vouches for the call; the instruction itself clobbers rcx and r11.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as i64 => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    if (-4095..0).contains(&result) { Err(HostError(-result as i32)) } else { Ok(result as u64) }
}

pub const PROT_READ: u64 = 1;
pub const PROT_WRITE: u64 = 2;
pub const PROT_EXEC: u64 = 4;

const MAP_SHARED: u64 = 1;
const MAP_PRIVATE: u64 = 2;
const MAP_FIXED: u64 = 0x10;
const MAP_ANONYMOUS: u64 = 0x20;
const MAP_NORESERVE: u64 = 0x4000;
const MAP_POPULATE: u64 = 0x8000;

/// Fresh zeros at exactly `address`.
///
/// # Safety
/// What was mapped there goes.
pub unsafe fn map_anonymous(address: u64, bytes: u64, protection: u64) -> Result<(), HostError> {
    let flags = MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_NORESERVE;
    // SAFETY: the caller owns the range.
    unsafe { call(nr::MMAP, [address, bytes, protection, flags, u64::MAX, 0]).map(drop) }
}

/// Fresh zeros at exactly `address` that may be mapped again ([`map_again`]). The host's tools take them for memory
/// without a file, unlike those of a memory file.
///
/// # Safety
/// What was mapped there goes.
pub unsafe fn map_shared(address: u64, bytes: u64, protection: u64) -> Result<(), HostError> {
    let flags = MAP_SHARED | MAP_FIXED | MAP_ANONYMOUS | MAP_NORESERVE;
    // SAFETY: the caller owns the range.
    unsafe { call(nr::MMAP, [address, bytes, protection, flags, u64::MAX, 0]).map(drop) }
}

/// The pages that `map_shared` put at `from`, once more at exactly `to`.
///
/// # Safety
/// What was mapped at `to` goes.
pub unsafe fn map_again(from: u64, bytes: u64, to: u64, protection: u64) -> Result<(), HostError> {
    const MREMAP_MAYMOVE: u64 = 1;
    const MREMAP_FIXED: u64 = 2;
    // SAFETY: the caller owns both ranges. An old size of 0 asks for a second mapping (mremap(2)).
    unsafe {
        call(nr::MREMAP, [from, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to, 0])?;
        protect(to, bytes, protection)
    }
}

/// A part of a memory file at exactly `address`. With `populate` its pages are there at once.
///
/// # Safety
/// What was mapped there goes.
pub unsafe fn map_file(
    address: u64,
    bytes: u64,
    protection: u64,
    fd: i32,
    offset: u64,
    populate: bool,
) -> Result<(), HostError> {
    let flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE | if populate { MAP_POPULATE } else { 0 };
    // SAFETY: the caller owns the range.
    unsafe { call(nr::MMAP, [address, bytes, protection, flags, fd as u64, offset]).map(drop) }
}

/// # Safety
/// Nobody uses the range any more.
pub unsafe fn unmap(address: u64, bytes: u64) -> Result<(), HostError> {
    // SAFETY: the caller gives the range up.
    unsafe { call(nr::MUNMAP, [address, bytes, 0, 0, 0, 0]).map(drop) }
}

/// # Safety
/// Nobody relies on rights that go.
pub unsafe fn protect(address: u64, bytes: u64, protection: u64) -> Result<(), HostError> {
    // SAFETY: the caller vouches for the range.
    unsafe { call(nr::MPROTECT, [address, bytes, protection, 0, 0, 0]).map(drop) }
}

/// Moves the pages that `map_shared` put at `from` to exactly `to`.
///
/// # Safety
/// What was mapped at `to` goes, and what was at `from`.
pub unsafe fn move_pages(from: u64, bytes: u64, to: u64) -> Result<(), HostError> {
    const MREMAP_MAYMOVE: u64 = 1;
    const MREMAP_FIXED: u64 = 2;
    // SAFETY: the caller owns both ranges.
    unsafe { call(nr::MREMAP, [from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to, 0]).map(drop) }
}

/// Gives the memory behind shared pages back; they are zeros then, for all who map them.
///
/// # Safety
/// Nobody uses what is there.
pub unsafe fn forget_content(address: u64, bytes: u64) {
    const MADV_REMOVE: u64 = 9;
    // SAFETY: the caller gives the content up.
    let _ = unsafe { call(nr::MADVISE, [address, bytes, MADV_REMOVE, 0, 0, 0]) };
}

/// Has the host supply the pages of a writable range now (Linux 5.14).
///
/// # Safety
/// The range is mapped.
pub unsafe fn populate(address: u64, bytes: u64) {
    const MADV_POPULATE_WRITE: u64 = 23;
    // SAFETY: the caller vouches for the range; its content stays.
    let _ = unsafe { call(nr::MADVISE, [address, bytes, MADV_POPULATE_WRITE, 0, 0, 0]) };
}

pub fn resize(fd: i32, bytes: u64) -> Result<(), HostError> {
    // SAFETY: the file's size is no memory of ours.
    unsafe { call(nr::FTRUNCATE, [fd as u64, bytes, 0, 0, 0, 0]).map(drop) }
}

pub fn file_bytes(fd: i32) -> Result<u64, HostError> {
    stat(fd).map(|words| words[6])
}

/// `st_mode` of an open file.
pub fn file_mode(fd: i32) -> Result<u32, HostError> {
    stat(fd).map(|words| words[3] as u32)
}

fn stat(fd: i32) -> Result<[u64; 18], HostError> {
    let mut words = [0u64; 18];
    // SAFETY: `struct stat` has 144 bytes on x86-64: st_mode at 24, st_size at 48.
    unsafe { call(nr::FSTAT, [fd as u64, (&raw mut words) as u64, 0, 0, 0, 0])? };
    Ok(words)
}

pub fn open_to_read(path: &core::ffi::CStr) -> Result<i32, HostError> {
    // SAFETY: the path ends with a NUL.
    unsafe { call(nr::OPEN, [path.as_ptr() as u64, 0o2_000_000, 0, 0, 0, 0]).map(|fd| fd as i32) }
}

/// A new file that only its owner may write.
pub fn create(path: &core::ffi::CStr) -> Result<i32, HostError> {
    const WRITE_CREATE_EXCLUSIVE_CLOEXEC: u64 = 0o1 | 0o100 | 0o200 | 0o2_000_000;
    // SAFETY: the path ends with a NUL.
    unsafe {
        call(nr::OPEN, [path.as_ptr() as u64, WRITE_CREATE_EXCLUSIVE_CLOEXEC, 0o644, 0, 0, 0]).map(|fd| fd as i32)
    }
}

pub fn unlink(path: &core::ffi::CStr) {
    // SAFETY: the path ends with a NUL.
    let _ = unsafe { call(nr::UNLINK, [path.as_ptr() as u64, 0, 0, 0, 0, 0]) };
}

/// A second name for a file.
pub fn link(path: &core::ffi::CStr, other: &core::ffi::CStr) {
    // SAFETY: the paths end with a NUL.
    let _ = unsafe { call(nr::LINK, [path.as_ptr() as u64, other.as_ptr() as u64, 0, 0, 0, 0]) };
}

/// The number of this process on the host.
pub fn process_id() -> i32 {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { call(nr::GETPID, [0; 6]) }.unwrap_or(0) as i32
}

/// The number of the process that started this one.
pub fn parent() -> Result<u64, HostError> {
    // SAFETY: the call has no arguments.
    unsafe { call(nr::GETPPID, [0; 6]) }
}

/// Signals another process of the host.
pub fn send_signal(process: u64, signal: i32) -> Result<(), HostError> {
    // SAFETY: what the other process does touches nothing here.
    unsafe { call(nr::KILL, [process, signal as u64, 0, 0, 0, 0]).map(drop) }
}

/// The host kills this process when the one that started it ends.
pub fn end_with_parent() -> Result<(), HostError> {
    const PR_SET_PDEATHSIG: u64 = 1;
    const SIGKILL: u64 = 9;
    // SAFETY: the call only sets which signal comes.
    unsafe { call(nr::PRCTL, [PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0]).map(drop) }
}

/// Any process of the same user may attach as a debugger, where the host asks for this (Yama).
pub fn let_debugger_attach() {
    const PR_SET_PTRACER: u64 = 0x5961_6D61;
    const ANY: u64 = u64::MAX;
    // SAFETY: the call touches no memory.
    let _ = unsafe { call(nr::PRCTL, [PR_SET_PTRACER, ANY, 0, 0, 0, 0]) };
}

/// How a host process makes another one: it shares descriptors and the present folder, and is a child of the first.
pub fn clone_flags(is_child: bool) -> u64 {
    const CLONE_FS: u64 = 0x200;
    const CLONE_FILES: u64 = 0x400;
    const CLONE_PARENT: u64 = 0x8000;
    CLONE_FS | CLONE_FILES | SIGCHLD as u64 | if is_child { CLONE_PARENT } else { 0 }
}

/// A child that has ended, which is gone then.
pub fn reap() -> Option<i32> {
    const ANY: u64 = u64::MAX;
    const WNOHANG_WALL: u64 = 0x4000_0001;
    // SAFETY: the call tells nothing but the number.
    let ended = unsafe { call(nr::WAIT4, [ANY, 0, WNOHANG_WALL, 0, 0, 0]) };
    ended.ok().filter(|process| *process != 0).map(|process| process as i32)
}

/// The cores that this process may run on.
pub fn cores() -> u32 {
    let mut set = [0u64; 128];
    // SAFETY: the host writes at most so many bytes.
    let told = unsafe { call(nr::SCHED_GETAFFINITY, [0, size_of_val(&set) as u64, (&raw mut set) as u64, 0, 0, 0]) };
    if told.is_ok() { set.iter().map(|word| word.count_ones()).sum() } else { 1 }
}

/// Waits until a child has ended; false: there is none.
pub fn await_child() -> bool {
    const ANY: u64 = u64::MAX;
    const WALL: u64 = 0x4000_0000;
    // SAFETY: the call tells nothing but the number.
    unsafe { call(nr::WAIT4, [ANY, 0, WALL, 0, 0, 0]) }.is_ok()
}

/// A process that this one makes by a clone does not get the range.
///
/// # Safety
/// The process that is made knows.
pub unsafe fn keep_from_clones(address: u64, bytes: u64) -> Result<(), HostError> {
    const MADV_DONTFORK: u64 = 10;
    // SAFETY: nothing changes in this process.
    unsafe { call(nr::MADVISE, [address, bytes, MADV_DONTFORK, 0, 0, 0]).map(drop) }
}

/// Sleeps while the word is `value`, until [`wake`] or a signal. The word lies in shared memory.
pub fn wait(word: &AtomicU32, value: u32) {
    const FUTEX_WAIT: u64 = 0;
    // SAFETY: the host reads the word.
    let _ = unsafe { call(nr::FUTEX, [word.as_ptr() as u64, FUTEX_WAIT, value.into(), 0, 0, 0]) };
}

/// Wakes whoever sleeps on the word.
pub fn wake(word: &AtomicU32) {
    const FUTEX_WAKE: u64 = 1;
    // SAFETY: the host only compares the address.
    let _ = unsafe { call(nr::FUTEX, [word.as_ptr() as u64, FUTEX_WAKE, 1, 0, 0, 0]) };
}

pub fn close(fd: i32) {
    // SAFETY: closing touches no memory.
    let _ = unsafe { call(nr::CLOSE, [fd as u64, 0, 0, 0, 0, 0]) };
}

pub fn read(fd: i32, into: &mut [u8]) -> Result<usize, HostError> {
    // SAFETY: the host writes only into the slice.
    unsafe { call(nr::READ, [fd as u64, into.as_mut_ptr() as u64, into.len() as u64, 0, 0, 0]).map(|n| n as usize) }
}

/// The eight bytes at `address` of this process, if they can be read.
pub fn peek(address: u64) -> Option<u64> {
    let mut value = 0u64;
    let (here, there) = ([&raw mut value as u64, 8], [address, 8]);
    // SAFETY: the host writes only into `value`, and looks at both ranges before.
    let read = unsafe {
        let pid = call(nr::GETPID, [0; 6]).ok()?;
        call(nr::PROCESS_VM_READV, [pid, here.as_ptr() as u64, 1, there.as_ptr() as u64, 1, 0])
    };
    (read.is_ok_and(|bytes| bytes == 8)).then_some(value)
}

pub fn write(fd: i32, from: &[u8]) -> Result<usize, HostError> {
    // SAFETY: the host only reads the slice.
    unsafe { call(nr::WRITE, [fd as u64, from.as_ptr() as u64, from.len() as u64, 0, 0, 0]).map(|n| n as usize) }
}

pub const POLLIN: i16 = 1;
pub const POLLOUT: i16 = 4;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PollFd {
    pub fd: i32,
    pub events: i16,
    pub found: i16,
}

/// What is true of one descriptor now.
pub fn poll_now(fd: i32, events: i16) -> i16 {
    let mut entry = PollFd { fd, events, found: 0 };
    // SAFETY: the host writes into the entry.
    let _ = unsafe { call(nr::POLL, [(&raw mut entry) as u64, 1, 0, 0, 0, 0]) };
    entry.found
}

/// Waits until one of the descriptors has news, a signal comes, or the time (nanoseconds) is over. Returns how many have news.
pub fn wait_for(entries: &mut [PollFd], nanos: Option<u64>) -> usize {
    let time = nanos.map(|nanos| [nanos / 1_000_000_000, nanos % 1_000_000_000]);
    let time = time.as_ref().map_or(0, |time| time.as_ptr() as u64);
    // SAFETY: the host reads the time and writes into the entries.
    unsafe { call(nr::PPOLL, [entries.as_mut_ptr() as u64, entries.len() as u64, time, 0, 8, 0]).unwrap_or(0) as usize }
}

/// Bytes that a read would give, for files that can tell.
pub fn readable_bytes(fd: i32) -> Result<usize, HostError> {
    const FIONREAD: u64 = 0x541B;
    let mut count = 0i32;
    // SAFETY: the host writes one int.
    unsafe { call(nr::IOCTL, [fd as u64, FIONREAD, (&raw mut count) as u64, 0, 0, 0])? };
    Ok(count.max(0) as usize)
}

pub fn is_terminal(fd: i32) -> bool {
    const TCGETS: u64 = 0x5401;
    let mut modes = [0u8; 64];
    // SAFETY: the host writes a `struct termios` of 36 bytes.
    unsafe { call(nr::IOCTL, [fd as u64, TCGETS, (&raw mut modes) as u64, 0, 0, 0]).is_ok() }
}

/// The wall clock in nanoseconds since 1970.
pub fn wall_nanos() -> u64 {
    let mut time = [0u64; 2];
    // SAFETY: the host writes a `struct timespec`.
    let _ = unsafe { call(nr::CLOCK_GETTIME, [0, (&raw mut time) as u64, 0, 0, 0, 0]) };
    time[0] * 1_000_000_000 + time[1]
}

/// Nanoseconds of the host's monotonic clock.
pub fn monotonic_nanos() -> u64 {
    let mut time = [0u64; 2];
    // SAFETY: the host writes a `struct timespec`.
    let _ = unsafe { call(nr::CLOCK_GETTIME, [1, (&raw mut time) as u64, 0, 0, 0, 0]) };
    time[0] * 1_000_000_000 + time[1]
}

pub fn random_word() -> u64 {
    let mut word = 0u64;
    // SAFETY: the host writes eight bytes.
    let _ = unsafe { call(nr::GETRANDOM, [(&raw mut word) as u64, 8, 0, 0, 0, 0]) };
    word
}

/// Ends the machine, all host processes of it.
pub fn exit(status: i32) -> ! {
    crate::hosts::end(status)
}

/// Ends this process alone.
pub fn exit_process(status: i32) -> ! {
    loop {
        // SAFETY: ends the process.
        let _ = unsafe { call(nr::EXIT_GROUP, [status as u64, 0, 0, 0, 0, 0]) };
    }
}

/// A timer that sends `signal`.
pub fn create_timer(signal: i32) -> Result<i32, HostError> {
    let mut event = [0u64; 8];
    // struct sigevent: value, then signo and notify (SIGEV_SIGNAL = 0).
    event[1] = signal as u64;
    let mut timer = 0i32;
    // SAFETY: the host reads the event and writes the timer's number.
    unsafe { call(nr::TIMER_CREATE, [1, (&raw const event) as u64, (&raw mut timer) as u64, 0, 0, 0])? };
    Ok(timer)
}

/// Sets the timer to go off once after `nanos`; 0 stops it.
pub fn set_timer(timer: i32, nanos: u64) {
    let setting = [0, 0, nanos / 1_000_000_000, nanos % 1_000_000_000];
    // SAFETY: the host reads a `struct itimerspec`.
    let _ = unsafe { call(nr::TIMER_SETTIME, [timer as u64, 0, setting.as_ptr() as u64, 0, 0, 0]) };
}

pub const SIGCHLD: i32 = 17;
pub const SA_NOCLDSTOP: u64 = 1;
pub const SA_SIGINFO: u64 = 4;
pub const SA_ONSTACK: u64 = 0x0800_0000;
pub const SA_RESTART: u64 = 0x1000_0000;
pub const SA_NODEFER: u64 = 0x4000_0000;
const SA_RESTORER: u64 = 0x0400_0000;

/// # Safety
/// `handler` follows the C convention of signal handlers and may run wherever the signal finds the process.
pub unsafe fn set_handler(signal: i32, handler: u64, flags: u64, restorer: u64, mask: u64) -> Result<(), HostError> {
    let action = [handler, flags | SA_RESTORER, restorer, mask];
    // SAFETY: the caller vouches for the handler.
    unsafe { call(nr::RT_SIGACTION, [signal as u64, action.as_ptr() as u64, 0, 8, 0, 0]).map(drop) }
}

/// # Safety
/// The memory is used for nothing else.
pub unsafe fn set_signal_stack(base: u64, bytes: u64) -> Result<(), HostError> {
    let stack = [base, 0, bytes];
    // SAFETY: the caller gives the memory away.
    unsafe { call(nr::SIGALTSTACK, [stack.as_ptr() as u64, 0, 0, 0, 0, 0]).map(drop) }
}

pub fn unblock_all_signals() {
    set_blocked_signals(0);
}

/// Blocks exactly these signals (bit `number - 1` each); returns what was blocked before.
pub fn set_blocked_signals(mask: u64) -> u64 {
    const SIG_SETMASK: u64 = 2;
    let mut before = 0u64;
    // SAFETY: the host reads one word and writes one.
    let _ =
        unsafe { call(nr::RT_SIGPROCMASK, [SIG_SETMASK, (&raw const mask) as u64, (&raw mut before) as u64, 8, 0, 0]) };
    before
}

/// Calls from outside `start..start + bytes` raise SIGSYS while the byte at `selector` is 1 (Linux 5.11,
/// Documentation/admin-guide/syscall-user-dispatch).
///
/// # Safety
/// The handler is set, and `selector` lives as long as the process.
pub unsafe fn dispatch_calls(start: u64, bytes: u64, selector: *const u8) -> Result<(), HostError> {
    const PR_SET_SYSCALL_USER_DISPATCH: u64 = 59;
    // SAFETY: the caller vouches for handler and selector.
    unsafe { call(nr::PRCTL, [PR_SET_SYSCALL_USER_DISPATCH, 1, start, bytes, selector as u64, 0]).map(drop) }
}
