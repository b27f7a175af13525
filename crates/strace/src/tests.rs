//! Golden lines: what strace 6.1 prints on Linux for the same call.

use alloc::string::String;
use alloc::vec::Vec;

use abi::file::{Iovec, S_IFCHR, S_IFREG, Stat, makedev};
use abi::nr;
use abi::poll::{EPOLLET, EPOLLIN, EpollEvent, POLLIN, POLLOUT, PollFd};
use abi::process::{CloneArgs, Rlimit, Utsname, WaitStatus, uts_field};
use abi::siginfo::SigInfo;
use abi::signal::{SA_RESTART, SA_RESTORER, SIGCHLD, SIGINT, SIGSEGV, SIGUSR1, SigAction, set_bit};
use abi::time::Timespec;
use abi::tty::Termios;

use super::{Summary, format_call, format_end, format_signal};

/// A program's memory: a few pieces, everything else faults.
#[derive(Default)]
struct Memory {
    pieces: Vec<(u64, Vec<u8>)>,
}

impl Memory {
    /// Puts bytes on a page of their own, so that its rest is readable, and gives the address.
    fn put(&mut self, bytes: &[u8]) -> u64 {
        let address = 0x10000 * (self.pieces.len() as u64 + 1);
        let mut page = bytes.to_vec();
        page.resize(bytes.len().next_multiple_of(4096), 0);
        self.pieces.push((address, page));
        address
    }

    fn read(&self, address: u64, buffer: &mut [u8]) -> bool {
        for (start, bytes) in &self.pieces {
            if let Some(offset) = address.checked_sub(*start)
                && let Some(found) = bytes.get(offset as usize..).and_then(|rest| rest.get(..buffer.len()))
            {
                buffer.copy_from_slice(found);
                return true;
            }
        }
        false
    }

    fn line(&self, nr: u64, arguments: &[u64], result: i64) -> String {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        format_call(nr, all, Some(result), &|address, buffer| self.read(address, buffer))
    }
}

const CURRENT: u64 = -100_i64 as u64;
const ENOENT: i64 = -2;
const EBADF: i64 = -9;

#[test]
fn opening_shows_flags_and_the_mode_only_where_it_counts() {
    let mut m = Memory::default();
    let path = m.put(b"/etc/passwd\0");
    assert_eq!(
        m.line(nr::OPENAT, &[CURRENT, path, 0o2000000], 3),
        "openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY|O_CLOEXEC) = 3"
    );
    assert_eq!(
        m.line(nr::OPENAT, &[CURRENT, path, 0o1102, 0o644], ENOENT),
        "openat(AT_FDCWD, \"/etc/passwd\", O_RDWR|O_CREAT|O_TRUNC, 0644) = -1 ENOENT (No such file or directory)"
    );
    assert_eq!(
        m.line(nr::OPENAT, &[CURRENT, path, 0o20200002, 0o600], 4),
        "openat(AT_FDCWD, \"/etc/passwd\", O_RDWR|O_TMPFILE, 0600) = 4"
    );
    assert_eq!(
        m.line(nr::CLOSE, &[99], EBADF),
        "close(99)                               = -1 EBADF (Bad file descriptor)"
    );
}

#[test]
fn buffers_are_cut_at_32_bytes_and_faults_print_as_addresses() {
    let mut m = Memory::default();
    let long = m.put(b"0123456789012345678901234567890123456789");
    let odd = m.put(b"hello\n\x01\x0012\"\\x");
    assert_eq!(m.line(nr::WRITE, &[4, long, 40], 40), "write(4, \"01234567890123456789012345678901\"..., 40) = 40");
    assert_eq!(m.line(nr::READ, &[3, odd, 100], 12), "read(3, \"hello\\n\\1\\00012\\\"\\\\\", 100)     = 12");
    assert_eq!(
        m.line(nr::READ, &[99, odd, 5], EBADF),
        "read(99, 0x20000, 5)                    = -1 EBADF (Bad file descriptor)"
    );
    assert_eq!(
        m.line(nr::WRITE, &[99, 1, 5], EBADF),
        "write(99, 0x1, 5)                       = -1 EBADF (Bad file descriptor)"
    );
    assert_eq!(m.line(nr::WRITE, &[1, long, 0], 0), "write(1, \"\", 0)                         = 0");
}

#[test]
fn vectors_show_what_moved() {
    let mut m = Memory::default();
    let data = m.put(b"abcdef");
    let first = Iovec { iov_base: data, iov_len: 4 }.to_bytes();
    let second = Iovec { iov_base: data, iov_len: 6 }.to_bytes();
    let vectors = m.put(&[first, second].concat());
    assert_eq!(
        m.line(nr::WRITEV, &[4, vectors, 2], 10),
        "writev(4, [{iov_base=\"abcd\", iov_len=4}, {iov_base=\"abcdef\", iov_len=6}], 2) = 10"
    );
    assert_eq!(
        m.line(nr::READV, &[4, vectors, 2], 5),
        "readv(4, [{iov_base=\"abcd\", iov_len=4}, {iov_base=\"a\", iov_len=6}], 2) = 5"
    );
}

#[test]
fn stat_shows_kind_and_size() {
    let mut m = Memory::default();
    let path = m.put(b"/dev/null\0");
    let device = m.put(&Stat { st_mode: S_IFCHR | 0o666, st_rdev: makedev(1, 3), ..Stat::zeroed() }.to_bytes());
    let file = m.put(&Stat { st_mode: S_IFREG | 0o644, st_size: 1221, ..Stat::zeroed() }.to_bytes());
    assert_eq!(
        m.line(nr::NEWFSTATAT, &[CURRENT, path, device, 0], 0),
        "newfstatat(AT_FDCWD, \"/dev/null\", {st_mode=S_IFCHR|0666, st_rdev=makedev(0x1, 0x3), ...}, 0) = 0"
    );
    assert_eq!(m.line(nr::FSTAT, &[3, file], 0), "fstat(3, {st_mode=S_IFREG|0644, st_size=1221, ...}) = 0");
    assert_eq!(
        m.line(nr::NEWFSTATAT, &[CURRENT, path, file, 0x100], ENOENT),
        "newfstatat(AT_FDCWD, \"/dev/null\", 0x30000, AT_SYMLINK_NOFOLLOW) = -1 ENOENT (No such file or directory)"
    );
}

#[test]
fn memory_calls_show_kind_and_protection() {
    let m = Memory::default();
    assert_eq!(
        m.line(nr::MMAP, &[0, 4096, 3, 0x22, u64::MAX, 0], 0x7fd4_162b_b000),
        "mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7fd4162bb000"
    );
    assert_eq!(
        m.line(nr::MMAP, &[0, 4096, 1, 1, 99, 4096], EBADF),
        "mmap(NULL, 4096, PROT_READ, MAP_SHARED, 99, 0x1000) = -1 EBADF (Bad file descriptor)"
    );
    assert_eq!(
        m.line(nr::MPROTECT, &[0x1000, 4096, 0], -12),
        "mprotect(0x1000, 4096, PROT_NONE)       = -1 ENOMEM (Cannot allocate memory)"
    );
    assert_eq!(m.line(nr::BRK, &[0], 0x563b_2405_1000), "brk(NULL)                               = 0x563b24051000");
    assert_eq!(
        m.line(nr::MREMAP, &[0x1000, 4096, 8192, 1], -14),
        "mremap(0x1000, 4096, 8192, MREMAP_MAYMOVE) = -1 EFAULT (Bad address)"
    );
    assert_eq!(m.line(nr::UMASK, &[0o22], 0o22), "umask(022)                              = 022");
}

#[test]
fn signals_show_handlers_and_sets() {
    let mut m = Memory::default();
    let action = m.put(
        &SigAction {
            sa_handler: 0x55d9_3798_f889,
            sa_flags: SA_RESTORER | SA_RESTART,
            sa_restorer: 0x7fd4_1610_c050,
            sa_mask: set_bit(SIGINT) | set_bit(40),
        }
        .to_bytes(),
    );
    assert_eq!(
        m.line(nr::RT_SIGACTION, &[SIGUSR1.into(), action, 0, 8], 0),
        "rt_sigaction(SIGUSR1, {sa_handler=0x55d93798f889, sa_mask=[INT RT_8], sa_flags=SA_RESTORER|SA_RESTART, \
         sa_restorer=0x7fd41610c050}, NULL, 8) = 0"
    );
    let most = m.put(&(!(set_bit(32) | set_bit(33))).to_le_bytes());
    assert_eq!(
        m.line(nr::RT_SIGPROCMASK, &[0, most, 0, 8], 0),
        "rt_sigprocmask(SIG_BLOCK, ~[RTMIN RT_1], NULL, 8) = 0"
    );
    assert_eq!(m.line(nr::KILL, &[13589, SIGUSR1.into()], 0), "kill(13589, SIGUSR1)                    = 0");
    assert_eq!(
        format_signal(&SigInfo::kill(SIGUSR1, 13589, 0)),
        "--- SIGUSR1 {si_signo=SIGUSR1, si_code=SI_USER, si_pid=13589, si_uid=0} ---"
    );
    assert_eq!(
        format_signal(&SigInfo::child(SIGCHLD, 2, 13591, 0, 9)),
        "--- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_KILLED, si_pid=13591, si_uid=0, si_status=SIGKILL, si_utime=0, \
         si_stime=0} ---"
    );
    assert_eq!(
        format_signal(&SigInfo::fault(SIGSEGV, 1, 0)),
        "--- SIGSEGV {si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=NULL} ---"
    );
    assert_eq!(format_end(WaitStatus::Exited(4)), "+++ exited with 4 +++");
    assert_eq!(format_end(WaitStatus::Killed { signal: 11, core: true }), "+++ killed by SIGSEGV (core dumped) +++");
}

#[test]
fn waiting_shows_the_status_only_of_a_child_that_was_found() {
    let mut m = Memory::default();
    let status = m.put(&WaitStatus::Exited(3).encode().to_le_bytes());
    let any = u64::from(u32::MAX);
    assert_eq!(
        m.line(nr::WAIT4, &[any, status, 0, 0], 13590),
        "wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 3}], 0, NULL) = 13590"
    );
    assert_eq!(m.line(nr::WAIT4, &[any, status, 3, 0], 0), "wait4(-1, 0x10000, WNOHANG|WSTOPPED, NULL) = 0");
    assert_eq!(
        m.line(nr::WAIT4, &[any, status, 0, 0], -512),
        "wait4(-1, 0x10000, 0, NULL)             = ? ERESTARTSYS (To be restarted if SA_RESTART is set)"
    );
}

#[test]
fn waiting_for_descriptors_shows_those_that_are_ready() {
    let mut m = Memory::default();
    let first = PollFd { fd: 3, events: POLLIN, revents: 0 }.to_bytes();
    let second = PollFd { fd: 4, events: POLLOUT, revents: POLLOUT }.to_bytes();
    let entries = m.put(&[first, second].concat());
    assert_eq!(
        m.line(nr::POLL, &[entries, 2, 100], 1),
        "poll([{fd=3, events=POLLIN}, {fd=4, events=POLLOUT}], 2, 100) = 1 ([{fd=4, revents=POLLOUT}])"
    );
    assert_eq!(m.line(nr::POLL, &[entries, 1, 0], 0), "poll([{fd=3, events=POLLIN}], 1, 0)     = 0 (Timeout)");
    let set = m.put(&[0x10, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(m.line(nr::SELECT, &[6, 0, set, 0, 0], 1), "select(6, NULL, [4], NULL, NULL)        = 1 (out [4])");
    let event = m.put(&EpollEvent::new(EPOLLIN | EPOLLET, 5).to_bytes());
    assert_eq!(
        m.line(nr::EPOLL_CTL, &[9, 1, 4, event], 0),
        "epoll_ctl(9, EPOLL_CTL_ADD, 4, {events=EPOLLIN|EPOLLET, data={u32=5, u64=5}}) = 0"
    );
    assert_eq!(
        m.line(nr::EPOLL_WAIT, &[9, event, 1, 0], 1),
        "epoll_wait(9, [{events=EPOLLIN|EPOLLET, data={u32=5, u64=5}}], 1, 0) = 1"
    );
    assert_eq!(m.line(nr::EPOLL_WAIT, &[9, event, 1, 0], 0), "epoll_wait(9, [], 1, 0)                 = 0");
}

#[test]
fn processes_and_threads_show_their_flags() {
    let mut m = Memory::default();
    assert_eq!(
        m.line(nr::CLONE, &[0x120_0011, 0, 0, 0x7fd4_160c_da10, 0], 13590),
        "clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD, child_tidptr=0x7fd4160cda10) \
         = 13590"
    );
    let spawn = CloneArgs { flags: 0x4100, exit_signal: 17, stack: 0x1000, stack_size: 0x9000, ..CloneArgs::zeroed() };
    let spawn = m.put(&spawn.to_bytes());
    assert_eq!(
        m.line(nr::CLONE3, &[spawn, 88], 123),
        "clone3({flags=CLONE_VM|CLONE_VFORK, exit_signal=SIGCHLD, stack=0x1000, stack_size=0x9000}, 88) = 123"
    );
    let path = m.put(b"/bin/a\0");
    let arguments = m.put(&path.to_le_bytes());
    assert_eq!(
        m.line(nr::EXECVE, &[path, arguments, arguments], 0),
        "execve(\"/bin/a\", [\"/bin/a\"], 0x30000 /* 1 var */) = 0"
    );
    let time = m.put(&Timespec { tv_sec: 1264, tv_nsec: 434_778_491 }.to_bytes());
    assert_eq!(
        m.line(nr::FUTEX, &[0x5000, 128, 7, time], -11),
        "futex(0x5000, FUTEX_WAIT_PRIVATE, 7, {tv_sec=1264, tv_nsec=434778491}) = -1 EAGAIN (Resource temporarily \
         unavailable)"
    );
    assert_eq!(
        m.line(nr::FUTEX, &[0x5000, 0x189, 7, 0, 0, 0xffff_ffff], -11),
        "futex(0x5000, FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME, 7, NULL, FUTEX_BITSET_MATCH_ANY) = -1 EAGAIN \
         (Resource temporarily unavailable)"
    );
    assert_eq!(m.line(nr::FUTEX, &[0x5000, 129, 1], 0), "futex(0x5000, FUTEX_WAKE_PRIVATE, 1)    = 0");
    let limit = m.put(&Rlimit { rlim_cur: 8192 * 1024, rlim_max: u64::MAX }.to_bytes());
    assert_eq!(
        m.line(nr::PRLIMIT64, &[0, 3, 0, limit], 0),
        "prlimit64(0, RLIMIT_STACK, NULL, {rlim_cur=8192*1024, rlim_max=RLIM64_INFINITY}) = 0"
    );
    let name =
        m.put(&Utsname { sysname: uts_field(b"Linux"), nodename: uts_field(b"vm"), ..Utsname::zeroed() }.to_bytes());
    assert_eq!(m.line(nr::UNAME, &[name], 0), "uname({sysname=\"Linux\", nodename=\"vm\", ...}) = 0");
}

#[test]
fn descriptor_controls_show_what_they_set() {
    let mut m = Memory::default();
    let modes = m.put(&Termios { c_cflag: 0xbf, ..Termios::initial() }.to_bytes());
    let one = m.put(&1_i32.to_le_bytes());
    assert_eq!(
        m.line(nr::IOCTL, &[0, 0x5401, modes], 0),
        "ioctl(0, TCGETS, {c_iflag=ICRNL|IXON, c_oflag=NL0|CR0|TAB0|BS0|VT0|FF0|OPOST|ONLCR, c_cflag=B38400|CS8|CREAD, \
         c_lflag=ISIG|ICANON|ECHO|ECHOE|ECHOK|IEXTEN|ECHOCTL|ECHOKE, ...}) = 0"
    );
    assert_eq!(
        m.line(nr::IOCTL, &[0, 0x5401, modes], -25),
        "ioctl(0, TCGETS, 0x10000)               = -1 ENOTTY (Inappropriate ioctl for device)"
    );
    assert_eq!(m.line(nr::IOCTL, &[3, 0x5421, one], 0), "ioctl(3, FIONBIO, [1])                  = 0");
    assert_eq!(m.line(nr::IOCTL, &[3, 0x5451, 0], 0), "ioctl(3, FIOCLEX)                       = 0");
    assert_eq!(
        m.line(nr::IOCTL, &[0, 0x1234, 5], -25),
        "ioctl(0, _IOC(_IOC_NONE, 0x12, 0x34, 0), 0x5) = -1 ENOTTY (Inappropriate ioctl for device)"
    );
    assert_eq!(
        m.line(nr::FCNTL, &[1, 3], 0x8001),
        "fcntl(1, F_GETFL)                       = 0x8001 (flags O_WRONLY|O_LARGEFILE)"
    );
    assert_eq!(m.line(nr::FCNTL, &[1, 4, 0o2002], 0), "fcntl(1, F_SETFL, O_RDWR|O_APPEND)      = 0");
    assert_eq!(m.line(nr::FCNTL, &[1, 1030, 10], 11), "fcntl(1, F_DUPFD_CLOEXEC, 10)           = 11");
    assert_eq!(
        m.line(nr::FCNTL, &[9, 2, 1], EBADF),
        "fcntl(9, F_SETFD, FD_CLOEXEC)           = -1 EBADF (Bad file descriptor)"
    );
}

#[test]
fn sockets_show_addresses() {
    let mut m = Memory::default();
    let inet = m.put(&[2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    let unix = m.put(b"\x01\0/tmp/xx\0");
    let length = m.put(&16_u32.to_le_bytes());
    assert_eq!(m.line(nr::SOCKET, &[1, 0o2000001, 0], 5), "socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0) = 5");
    assert_eq!(
        m.line(nr::CONNECT, &[5, unix, 110], ENOENT),
        "connect(5, {sa_family=AF_UNIX, sun_path=\"/tmp/xx\"}, 110) = -1 ENOENT (No such file or directory)"
    );
    assert_eq!(
        m.line(nr::GETSOCKNAME, &[6, inet, length], 0),
        "getsockname(6, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"127.0.0.1\")}, [16]) = 0"
    );
}

#[test]
fn unknown_calls_show_their_registers() {
    let m = Memory::default();
    assert_eq!(
        m.line(0x181, &[0, 0, 0x7fd4], -38),
        "syscall_0x181(0, 0, 0x7fd4, 0, 0, 0)    = -1 ENOSYS (Function not implemented)"
    );
    let never = format_call(nr::EXIT_GROUP, [4, 0, 0, 0, 0, 0], None, &|_, _| false);
    assert_eq!(never, "exit_group(4)                           = ?");
}

/// Wild registers in every call: no panic, no endless loop, whatever memory answers.
#[test]
fn no_argument_makes_it_fail() {
    let wild = [0, 1, 0x1000, 0xffff, u64::from(u32::MAX), i64::MIN as u64, u64::MAX - 4096, u64::MAX];
    let readable = |_: u64, buffer: &mut [u8]| {
        buffer.fill(0xff);
        true
    };
    let zeros = |_: u64, buffer: &mut [u8]| {
        buffer.fill(0);
        true
    };
    for nr in 0..500 {
        for (index, value) in wild.iter().enumerate() {
            let other = wild[(index + 3) % wild.len()];
            let arguments = [*value, other, *value, other, *value, other];
            for result in [None, Some(0), Some(-1), Some(-4096), Some(1), Some(i64::MAX)] {
                for memory in [&readable as &dyn Fn(u64, &mut [u8]) -> bool, &zeros, &|_, _| false] {
                    assert!(format_call(nr, arguments, result, memory).len() < 100_000);
                }
            }
        }
    }
}

#[test]
fn the_summary_counts_errors_and_unknown_calls() {
    let mut summary = Summary::new();
    summary.count(nr::READ, Some(5), 2_000_000);
    summary.count(nr::READ, Some(-9), 1_000_000);
    summary.count(400, Some(-38), 0);
    summary.count(401, Some(-38), 1_000_000);
    summary.count(nr::EXIT_GROUP, None, 0);
    assert_eq!((summary.of(nr::READ).calls, summary.of(nr::READ).errors, summary.unimplemented()), (2, 1, 2));
    assert_eq!(
        summary.table(),
        "% time     seconds  usecs/call     calls    errors syscall\n\
         ------ ----------- ----------- --------- --------- ----------------\n \
         75.00    0.003000        1500         2         1 read\n \
         25.00    0.001000         500         2         2 (no such call)\n  \
         0.00    0.000000           0         1           exit_group\n\
         ------ ----------- ----------- --------- --------- ----------------\n\
         100.00    0.004000         800         5         3 total\n\
         2 calls answered with ENOSYS\n"
    );
}
