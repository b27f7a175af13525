//! Waiting for many descriptors: `poll`, `epoll`, `eventfd`, `timerfd`, `inotify`.

use crate::record::{numbers, record};

numbers! {
    /// Events of `poll`.
    POLL_EVENTS: u16 {
        POLLIN = 1, POLLPRI = 2, POLLOUT = 4, POLLERR = 8, POLLHUP = 0x10, POLLNVAL = 0x20, POLLRDNORM = 0x40,
        POLLRDBAND = 0x80, POLLWRNORM = 0x100, POLLWRBAND = 0x200, POLLMSG = 0x400, POLLRDHUP = 0x2000,
    }
}
record! {
    /// `struct pollfd` (`asm-generic/poll.h`).
    PollFd, 8 bytes { fd: i32, events: u16, revents: u16 }
}

numbers! {
    /// Events of `epoll`.
    EPOLL_EVENTS: u32 {
        EPOLLIN = 1, EPOLLPRI = 2, EPOLLOUT = 4, EPOLLERR = 8, EPOLLHUP = 0x10, EPOLLRDNORM = 0x40, EPOLLRDBAND = 0x80,
        EPOLLWRNORM = 0x100, EPOLLWRBAND = 0x200, EPOLLMSG = 0x400, EPOLLRDHUP = 0x2000, EPOLLEXCLUSIVE = 1 << 28,
        EPOLLWAKEUP = 1 << 29, EPOLLONESHOT = 1 << 30, EPOLLET = 1 << 31,
    }
}
numbers! {
    /// Operations of `epoll_ctl`.
    EPOLL_OPERATIONS: u32 { EPOLL_CTL_ADD = 1, EPOLL_CTL_DEL = 2, EPOLL_CTL_MOD = 3 }
}
numbers! {
    /// Flags of `epoll_create1`.
    EPOLL_FLAGS: u32 { EPOLL_CLOEXEC = 0o2000000 }
}
numbers! {
    /// Flags of `eventfd2`.
    EVENTFD_FLAGS: u32 { EFD_SEMAPHORE = 1, EFD_CLOEXEC = 0o2000000, EFD_NONBLOCK = 0o4000 }
}
numbers! {
    /// Flags of `timerfd_create`.
    TIMERFD_FLAGS: u32 { TFD_CLOEXEC = 0o2000000, TFD_NONBLOCK = 0o4000 }
}
numbers! {
    /// Flags of `timerfd_settime`.
    TIMERFD_SET_FLAGS: u32 { TFD_TIMER_ABSTIME = 1, TFD_TIMER_CANCEL_ON_SET = 2 }
}
numbers! {
    /// Flags of `signalfd4`.
    SIGNALFD_FLAGS: u32 { SFD_CLOEXEC = 0o2000000, SFD_NONBLOCK = 0o4000 }
}
numbers! {
    /// Flags of `inotify_init1`.
    INOTIFY_FLAGS: u32 { IN_CLOEXEC = 0o2000000, IN_NONBLOCK = 0o4000 }
}
numbers! {
    /// Events of `inotify_add_watch`.
    INOTIFY_EVENTS: u32 {
        IN_ACCESS = 1, IN_MODIFY = 2, IN_ATTRIB = 4, IN_CLOSE_WRITE = 8, IN_CLOSE_NOWRITE = 0x10, IN_OPEN = 0x20,
        IN_MOVED_FROM = 0x40, IN_MOVED_TO = 0x80, IN_CREATE = 0x100, IN_DELETE = 0x200, IN_DELETE_SELF = 0x400,
        IN_MOVE_SELF = 0x800, IN_ONLYDIR = 0x100_0000, IN_DONT_FOLLOW = 0x200_0000, IN_EXCL_UNLINK = 0x400_0000,
        IN_MASK_ADD = 0x2000_0000, IN_ISDIR = 0x4000_0000, IN_ONESHOT = 0x8000_0000,
    }
}
record! {
    /// `struct epoll_event` (`linux/eventpoll.h`), which is packed on x86-64: `data` lies at offset 4, in two words.
    EpollEvent, 12 bytes { events: u32, data: [u32; 2] }
}
impl EpollEvent {
    /// The event for `data`, the word the program gave.
    pub const fn new(events: u32, data: u64) -> Self {
        Self { events, data: [data as u32, (data >> 32) as u32] }
    }

    /// The program's word.
    pub const fn data(&self) -> u64 {
        self.data[0] as u64 | (self.data[1] as u64) << 32
    }
}
record! {
    /// `struct inotify_event` without the name that follows it (`linux/inotify.h`).
    InotifyEvent, 16 bytes { wd: i32, mask: u32, cookie: u32, len: u32 }
}
record! {
    /// `struct signalfd_siginfo` (`linux/signalfd.h`).
    SignalfdSiginfo, 128 bytes {
        ssi_signo: u32, ssi_errno: i32, ssi_code: i32, ssi_pid: u32, ssi_uid: u32, ssi_fd: i32, ssi_tid: u32,
        ssi_band: u32, ssi_overrun: u32, ssi_trapno: u32, ssi_status: i32, ssi_int: i32, ssi_ptr: u64,
        ssi_utime: u64, ssi_stime: u64, ssi_addr: u64, ssi_addr_lsb: u16, _pad0: u16, ssi_syscall: i32,
        ssi_call_addr: u64, ssi_arch: u32, _pad1: [u8; 28],
    }
}
/// `fd_set` of `select`: bytes for the 1024 descriptors of the C library's type.
pub const FD_SET_BYTES: usize = 128;
