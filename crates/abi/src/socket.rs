//! Sockets: families, types, options and addresses (`asm-generic/socket.h`, `linux/in.h`, `linux/un.h`).

use crate::record::{numbers, record};

numbers! {
    /// Address families.
    FAMILIES: u16 { AF_UNSPEC = 0, AF_UNIX = 1, AF_INET = 2, AF_INET6 = 10, AF_NETLINK = 16, AF_PACKET = 17, AF_VSOCK = 40 }
}
numbers! {
    /// Kinds of socket.
    SOCKET_TYPES: u32 { SOCK_STREAM = 1, SOCK_DGRAM = 2, SOCK_RAW = 3, SOCK_RDM = 4, SOCK_SEQPACKET = 5, SOCK_PACKET = 10 }
}
numbers! {
    /// Flags beside the kind.
    SOCKET_FLAGS: u32 { SOCK_CLOEXEC = 0o2000000, SOCK_NONBLOCK = 0o4000 }
}
numbers! {
    /// Protocols of the internet families.
    PROTOCOLS: u32 { IPPROTO_IP = 0, IPPROTO_ICMP = 1, IPPROTO_TCP = 6, IPPROTO_UDP = 17, IPPROTO_IPV6 = 41, IPPROTO_RAW = 255 }
}
numbers! {
    /// Levels of socket options.
    OPTION_LEVELS: u32 { SOL_SOCKET = 1, SOL_IP = 0, SOL_TCP = 6, SOL_UDP = 17, SOL_IPV6 = 41 }
}
numbers! {
    /// Options of the level `SOL_SOCKET`.
    SOCKET_OPTIONS: u32 {
        SO_DEBUG = 1, SO_REUSEADDR = 2, SO_TYPE = 3, SO_ERROR = 4, SO_DONTROUTE = 5, SO_BROADCAST = 6, SO_SNDBUF = 7,
        SO_RCVBUF = 8, SO_KEEPALIVE = 9, SO_OOBINLINE = 10, SO_NO_CHECK = 11, SO_PRIORITY = 12, SO_LINGER = 13,
        SO_REUSEPORT = 15, SO_PASSCRED = 16, SO_PEERCRED = 17, SO_RCVLOWAT = 18, SO_SNDLOWAT = 19, SO_RCVTIMEO_OLD = 20,
        SO_SNDTIMEO_OLD = 21, SO_BINDTODEVICE = 25, SO_TIMESTAMP_OLD = 29, SO_ACCEPTCONN = 30, SO_PEERSEC = 31,
        SO_SNDBUFFORCE = 32, SO_RCVBUFFORCE = 33, SO_TIMESTAMPNS_OLD = 35,
        SO_MARK = 36, SO_PROTOCOL = 38, SO_DOMAIN = 39, SO_INCOMING_CPU = 49,
    }
}
numbers! {
    /// Options of the level `SOL_TCP`.
    TCP_OPTIONS: u32 {
        TCP_NODELAY = 1, TCP_MAXSEG = 2, TCP_CORK = 3, TCP_KEEPIDLE = 4, TCP_KEEPINTVL = 5, TCP_KEEPCNT = 6,
        TCP_SYNCNT = 7, TCP_LINGER2 = 8, TCP_DEFER_ACCEPT = 9, TCP_WINDOW_CLAMP = 10, TCP_INFO = 11, TCP_QUICKACK = 12,
        TCP_CONGESTION = 13, TCP_USER_TIMEOUT = 18, TCP_FASTOPEN = 23,
    }
}
numbers! {
    /// Flags of `sendmsg` and `recvmsg`.
    MESSAGE_FLAGS: u32 {
        MSG_OOB = 1, MSG_PEEK = 2, MSG_DONTROUTE = 4, MSG_CTRUNC = 8, MSG_TRUNC = 0x20, MSG_DONTWAIT = 0x40,
        MSG_EOR = 0x80, MSG_WAITALL = 0x100, MSG_CONFIRM = 0x800, MSG_ERRQUEUE = 0x2000, MSG_NOSIGNAL = 0x4000,
        MSG_MORE = 0x8000, MSG_WAITFORONE = 0x1_0000, MSG_FASTOPEN = 0x2000_0000, MSG_CMSG_CLOEXEC = 0x4000_0000,
    }
}
numbers! {
    /// Directions of `shutdown`.
    SHUTDOWNS: u32 { SHUT_RD = 0, SHUT_WR = 1, SHUT_RDWR = 2 }
}
record! {
    /// `struct sockaddr_in`: port and address in network byte order.
    SockaddrIn, 16 bytes { sin_family: u16, sin_port: [u8; 2], sin_addr: [u8; 4], _pad: [u8; 8] }
}
record! {
    /// `struct sockaddr_in6`.
    SockaddrIn6, 28 bytes {
        sin6_family: u16, sin6_port: [u8; 2], sin6_flowinfo: u32, sin6_addr: [u8; 16], sin6_scope_id: u32,
    }
}
/// Longest path of a Unix address, in bytes.
pub const UNIX_PATH_MAX: usize = 108;
record! {
    /// `struct msghdr` as the calls take it (`struct user_msghdr`).
    Msghdr, 56 bytes {
        msg_name: u64, msg_namelen: i32, _pad0: u32, msg_iov: u64, msg_iovlen: u64, msg_control: u64,
        msg_controllen: u64, msg_flags: u32, _pad1: u32,
    }
}
record! {
    /// `struct linger`.
    Linger, 8 bytes { l_onoff: i32, l_linger: i32 }
}
record! {
    /// `struct ucred`.
    Ucred, 12 bytes { pid: i32, uid: u32, gid: u32 }
}
numbers! {
    /// Kinds of control data of the level `SOL_SOCKET`.
    CONTROL_TYPES: u32 { SCM_RIGHTS = 1, SCM_CREDENTIALS = 2 }
}
record! {
    /// `struct cmsghdr`: what stands before each piece of control data. Pieces begin at multiples of eight bytes.
    Cmsghdr, 16 bytes { cmsg_len: u64, cmsg_level: u32, cmsg_type: u32 }
}
/// Descriptors in one message at most (`SCM_MAX_FD` of `net/scm.h`).
pub const SCM_MAX_FD: usize = 253;
