//! Linux error numbers for x86-64 (`asm-generic/errno-base.h`, `asm-generic/errno.h`).

use alloc::collections::TryReserveError;

/// An error as a Linux program sees it: the call returns the negated number.
///
/// As wide as a register, so that `Result<u64, Errno>` comes back in two of them and not in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Errno {
    /// Operation not permitted.
    EPERM = 1,
    /// No such file or directory.
    ENOENT = 2,
    /// No such process.
    ESRCH = 3,
    /// Interrupted system call.
    EINTR = 4,
    /// Input/output error.
    EIO = 5,
    /// No such device or address.
    ENXIO = 6,
    /// Argument list too long.
    E2BIG = 7,
    /// Exec format error.
    ENOEXEC = 8,
    /// Bad file descriptor.
    EBADF = 9,
    /// No child processes.
    ECHILD = 10,
    /// Resource temporarily unavailable.
    EAGAIN = 11,
    /// Cannot allocate memory.
    ENOMEM = 12,
    /// Permission denied.
    EACCES = 13,
    /// Bad address.
    EFAULT = 14,
    /// Block device required.
    ENOTBLK = 15,
    /// Device or resource busy.
    EBUSY = 16,
    /// File exists.
    EEXIST = 17,
    /// Invalid cross-device link.
    EXDEV = 18,
    /// No such device.
    ENODEV = 19,
    /// Not a directory.
    ENOTDIR = 20,
    /// Is a directory.
    EISDIR = 21,
    /// Invalid argument.
    EINVAL = 22,
    /// Too many open files in system.
    ENFILE = 23,
    /// Too many open files.
    EMFILE = 24,
    /// Inappropriate ioctl for device.
    ENOTTY = 25,
    /// Text file busy.
    ETXTBSY = 26,
    /// File too large.
    EFBIG = 27,
    /// No space left on device.
    ENOSPC = 28,
    /// Illegal seek.
    ESPIPE = 29,
    /// Read-only file system.
    EROFS = 30,
    /// Too many links.
    EMLINK = 31,
    /// Broken pipe.
    EPIPE = 32,
    /// Numerical argument out of domain.
    EDOM = 33,
    /// Numerical result out of range.
    ERANGE = 34,
    /// Resource deadlock avoided.
    EDEADLOCK = 35,
    /// File name too long.
    ENAMETOOLONG = 36,
    /// No locks available.
    ENOLCK = 37,
    /// Function not implemented.
    ENOSYS = 38,
    /// Directory not empty.
    ENOTEMPTY = 39,
    /// Too many levels of symbolic links.
    ELOOP = 40,
    /// No message of desired type.
    ENOMSG = 42,
    /// Identifier removed.
    EIDRM = 43,
    /// Channel number out of range.
    ECHRNG = 44,
    /// Level 2 not synchronized.
    EL2NSYNC = 45,
    /// Level 3 halted.
    EL3HLT = 46,
    /// Level 3 reset.
    EL3RST = 47,
    /// Link number out of range.
    ELNRNG = 48,
    /// Protocol driver not attached.
    EUNATCH = 49,
    /// No CSI structure available.
    ENOCSI = 50,
    /// Level 2 halted.
    EL2HLT = 51,
    /// Invalid exchange.
    EBADE = 52,
    /// Invalid request descriptor.
    EBADR = 53,
    /// Exchange full.
    EXFULL = 54,
    /// No anode.
    ENOANO = 55,
    /// Invalid request code.
    EBADRQC = 56,
    /// Invalid slot.
    EBADSLT = 57,
    /// Bad font file format.
    EBFONT = 59,
    /// Device not a stream.
    ENOSTR = 60,
    /// No data available.
    ENODATA = 61,
    /// Timer expired.
    ETIME = 62,
    /// Out of streams resources.
    ENOSR = 63,
    /// Machine is not on the network.
    ENONET = 64,
    /// Package not installed.
    ENOPKG = 65,
    /// Object is remote.
    EREMOTE = 66,
    /// Link has been severed.
    ENOLINK = 67,
    /// Advertise error.
    EADV = 68,
    /// Srmount error.
    ESRMNT = 69,
    /// Communication error on send.
    ECOMM = 70,
    /// Protocol error.
    EPROTO = 71,
    /// Multihop attempted.
    EMULTIHOP = 72,
    /// RFS specific error.
    EDOTDOT = 73,
    /// Bad message.
    EBADMSG = 74,
    /// Value too large for defined data type.
    EOVERFLOW = 75,
    /// Name not unique on network.
    ENOTUNIQ = 76,
    /// File descriptor in bad state.
    EBADFD = 77,
    /// Remote address changed.
    EREMCHG = 78,
    /// Can not access a needed shared library.
    ELIBACC = 79,
    /// Accessing a corrupted shared library.
    ELIBBAD = 80,
    /// .lib section in a.out corrupted.
    ELIBSCN = 81,
    /// Attempting to link in too many shared libraries.
    ELIBMAX = 82,
    /// Cannot exec a shared library directly.
    ELIBEXEC = 83,
    /// Invalid or incomplete multibyte or wide character.
    EILSEQ = 84,
    /// Interrupted system call should be restarted.
    ERESTART = 85,
    /// Streams pipe error.
    ESTRPIPE = 86,
    /// Too many users.
    EUSERS = 87,
    /// Socket operation on non-socket.
    ENOTSOCK = 88,
    /// Destination address required.
    EDESTADDRREQ = 89,
    /// Message too long.
    EMSGSIZE = 90,
    /// Protocol wrong type for socket.
    EPROTOTYPE = 91,
    /// Protocol not available.
    ENOPROTOOPT = 92,
    /// Protocol not supported.
    EPROTONOSUPPORT = 93,
    /// Socket type not supported.
    ESOCKTNOSUPPORT = 94,
    /// Operation not supported.
    EOPNOTSUPP = 95,
    /// Protocol family not supported.
    EPFNOSUPPORT = 96,
    /// Address family not supported by protocol.
    EAFNOSUPPORT = 97,
    /// Address already in use.
    EADDRINUSE = 98,
    /// Cannot assign requested address.
    EADDRNOTAVAIL = 99,
    /// Network is down.
    ENETDOWN = 100,
    /// Network is unreachable.
    ENETUNREACH = 101,
    /// Network dropped connection on reset.
    ENETRESET = 102,
    /// Software caused connection abort.
    ECONNABORTED = 103,
    /// Connection reset by peer.
    ECONNRESET = 104,
    /// No buffer space available.
    ENOBUFS = 105,
    /// Transport endpoint is already connected.
    EISCONN = 106,
    /// Transport endpoint is not connected.
    ENOTCONN = 107,
    /// Cannot send after transport endpoint shutdown.
    ESHUTDOWN = 108,
    /// Too many references: cannot splice.
    ETOOMANYREFS = 109,
    /// Connection timed out.
    ETIMEDOUT = 110,
    /// Connection refused.
    ECONNREFUSED = 111,
    /// Host is down.
    EHOSTDOWN = 112,
    /// No route to host.
    EHOSTUNREACH = 113,
    /// Operation already in progress.
    EALREADY = 114,
    /// Operation now in progress.
    EINPROGRESS = 115,
    /// Stale file handle.
    ESTALE = 116,
    /// Structure needs cleaning.
    EUCLEAN = 117,
    /// Not a XENIX named type file.
    ENOTNAM = 118,
    /// No XENIX semaphores available.
    ENAVAIL = 119,
    /// Is a named type file.
    EISNAM = 120,
    /// Remote I/O error.
    EREMOTEIO = 121,
    /// Disk quota exceeded.
    EDQUOT = 122,
    /// No medium found.
    ENOMEDIUM = 123,
    /// Wrong medium type.
    EMEDIUMTYPE = 124,
    /// Operation canceled.
    ECANCELED = 125,
    /// Required key not available.
    ENOKEY = 126,
    /// Key has expired.
    EKEYEXPIRED = 127,
    /// Key has been revoked.
    EKEYREVOKED = 128,
    /// Key was rejected by service.
    EKEYREJECTED = 129,
    /// Owner died.
    EOWNERDEAD = 130,
    /// State not recoverable.
    ENOTRECOVERABLE = 131,
    /// Operation not possible due to RF-kill.
    ERFKILL = 132,
}

impl From<TryReserveError> for Errno {
    fn from(_: TryReserveError) -> Errno {
        Errno::ENOMEM
    }
}

impl Errno {
    /// What POSIX calls [`Errno::EOPNOTSUPP`] where no socket is meant.
    pub const ENOTSUP: Errno = Errno::EOPNOTSUPP;

    /// The value a system call returns for this error: `-errno` as an unsigned register.
    pub const fn as_return_value(self) -> u64 {
        (-(self as i64)) as u64
    }
}
