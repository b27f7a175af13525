//! Terminals and `ioctl` numbers (`asm-generic/ioctls.h`, `asm-generic/termbits.h`).

use crate::record::{numbers, record};

numbers! {
    /// `ioctl` requests of terminals, descriptors and sockets.
    IOCTLS: u32 {
        TCGETS = 0x5401, TCSETS = 0x5402, TCSETSW = 0x5403, TCSETSF = 0x5404, TCGETA = 0x5405, TCSETA = 0x5406,
        TCSETAW = 0x5407, TCSETAF = 0x5408, TCSBRK = 0x5409, TCXONC = 0x540a, TCFLSH = 0x540b, TIOCEXCL = 0x540c,
        TIOCNXCL = 0x540d, TIOCSCTTY = 0x540e, TIOCGPGRP = 0x540f, TIOCSPGRP = 0x5410, TIOCOUTQ = 0x5411,
        TIOCSTI = 0x5412, TIOCGWINSZ = 0x5413, TIOCSWINSZ = 0x5414, TIOCMGET = 0x5415, TIOCMBIS = 0x5416,
        TIOCMBIC = 0x5417, TIOCMSET = 0x5418, TIOCGSOFTCAR = 0x5419, TIOCSSOFTCAR = 0x541a, FIONREAD = 0x541b,
        TIOCLINUX = 0x541c, TIOCCONS = 0x541d, TIOCGSERIAL = 0x541e, TIOCPKT = 0x5420, FIONBIO = 0x5421,
        TIOCNOTTY = 0x5422, TIOCSETD = 0x5423, TIOCGETD = 0x5424, TCSBRKP = 0x5425, TIOCSBRK = 0x5427,
        TIOCCBRK = 0x5428, TIOCGSID = 0x5429, TCGETS2 = 0x802c_542a, TCSETS2 = 0x402c_542b, TCSETSW2 = 0x402c_542c,
        TCSETSF2 = 0x402c_542d, TIOCGPTN = 0x8004_5430, TIOCSPTLCK = 0x4004_5431, TIOCGDEV = 0x8004_5432,
        TIOCSIG = 0x4004_5436, TIOCVHANGUP = 0x5437, TIOCGPKT = 0x8004_5438, TIOCGPTLCK = 0x8004_5439,
        TIOCGEXCL = 0x8004_5440, TIOCGPTPEER = 0x5441, FIONCLEX = 0x5450, FIOCLEX = 0x5451, FIOASYNC = 0x5452,
        FIOQSIZE = 0x5460, FIOSETOWN = 0x8901, SIOCSPGRP = 0x8902, FIOGETOWN = 0x8903, SIOCGPGRP = 0x8904,
        SIOCATMARK = 0x8905, SIOCGSTAMP_OLD = 0x8906, SIOCGSKNS = 0x894c, SIOCGIFNAME = 0x8910, SIOCGIFCONF = 0x8912,
        SIOCGIFFLAGS = 0x8913, SIOCGIFADDR = 0x8915, SIOCGIFNETMASK = 0x891b, SIOCGIFMTU = 0x8921,
        SIOCGIFHWADDR = 0x8927, SIOCGIFINDEX = 0x8933, FICLONE = 0x4004_9409, FICLONERANGE = 0x4020_940d,
        FIGETBSZ = 2, FS_IOC_GETFLAGS = 0x8008_6601, BLKGETSIZE64 = 0x8008_1272, BLKSSZGET = 0x1268,
    }
}
/// The same request as `FIONREAD`.
pub const TIOCINQ: u32 = FIONREAD;

numbers! {
    /// Input modes (`c_iflag`).
    INPUT_MODES: u32 {
        IGNBRK = 0o1, BRKINT = 0o2, IGNPAR = 0o4, PARMRK = 0o10, INPCK = 0o20, ISTRIP = 0o40, INLCR = 0o100,
        IGNCR = 0o200, ICRNL = 0o400, IUCLC = 0o1000, IXON = 0o2000, IXANY = 0o4000, IXOFF = 0o10000,
        IMAXBEL = 0o20000, IUTF8 = 0o40000,
    }
}
numbers! {
    /// Output modes (`c_oflag`).
    OUTPUT_MODES: u32 {
        OPOST = 0o1, OLCUC = 0o2, ONLCR = 0o4, OCRNL = 0o10, ONOCR = 0o20, ONLRET = 0o40, OFILL = 0o100, OFDEL = 0o200,
        XTABS = 0o14000,
    }
}
numbers! {
    /// Control modes (`c_cflag`) besides speed and size.
    CONTROL_MODES: u32 {
        CS8 = 0o60, CSTOPB = 0o100, CREAD = 0o200, PARENB = 0o400, PARODD = 0o1000, HUPCL = 0o2000, CLOCAL = 0o4000,
        CRTSCTS = 0o20000000000,
    }
}
numbers! {
    /// Sizes of a character, under the mask `CSIZE`.
    CHARACTER_SIZES: u32 { CS5 = 0, CS6 = 0o20, CS7 = 0o40 }
}
/// Mask of the character size in `c_cflag`.
pub const CSIZE: u32 = 0o60;
/// Mask of the speed in `c_cflag`.
pub const CBAUD: u32 = 0o10017;
numbers! {
    /// Speeds in `c_cflag`.
    SPEEDS: u32 { B0 = 0, B9600 = 0o15, B19200 = 0o16, B38400 = 0o17, B57600 = 0o10001, B115200 = 0o10002, BOTHER = 0o10000 }
}
numbers! {
    /// Local modes (`c_lflag`).
    LOCAL_MODES: u32 {
        ISIG = 0o1, ICANON = 0o2, XCASE = 0o4, ECHO = 0o10, ECHOE = 0o20, ECHOK = 0o40, ECHONL = 0o100, NOFLSH = 0o200,
        IEXTEN = 0o100000, ECHOCTL = 0o1000, ECHOPRT = 0o2000, ECHOKE = 0o4000, FLUSHO = 0o10000, PENDIN = 0o40000,
        TOSTOP = 0o400, EXTPROC = 0o200000,
    }
}
numbers! {
    /// Indices into `c_cc`.
    CONTROL_CHARACTERS: usize {
        VINTR = 0, VQUIT = 1, VERASE = 2, VKILL = 3, VEOF = 4, VTIME = 5, VMIN = 6, VSWTC = 7, VSTART = 8, VSTOP = 9,
        VSUSP = 10, VEOL = 11, VREPRINT = 12, VDISCARD = 13, VWERASE = 14, VLNEXT = 15, VEOL2 = 16,
    }
}
/// Control characters of the kernel's `termios`.
pub const NCCS: usize = 19;
/// A control character that is switched off.
pub const POSIX_VDISABLE: u8 = 0;
numbers! {
    /// Queues that `TCFLSH` empties.
    FLUSH_QUEUES: u32 { TCIFLUSH = 0, TCOFLUSH = 1, TCIOFLUSH = 2 }
}
numbers! {
    /// Actions of `TCXONC`.
    FLOW_ACTIONS: u32 { TCOOFF = 0, TCOON = 1, TCIOFF = 2, TCION = 3 }
}

record! {
    /// `struct termios` of the kernel (`TCGETS`), not the larger one of the C library.
    Termios, 36 bytes { c_iflag: u32, c_oflag: u32, c_cflag: u32, c_lflag: u32, c_line: u8, c_cc: [u8; 19] }
}
record! {
    /// `struct termios2` (`TCGETS2`): speeds in bits per second besides.
    Termios2, 44 bytes {
        c_iflag: u32, c_oflag: u32, c_cflag: u32, c_lflag: u32, c_line: u8, c_cc: [u8; 19], c_ispeed: u32,
        c_ospeed: u32,
    }
}
record! {
    /// `struct winsize`.
    WinSize, 8 bytes { ws_row: u16, ws_col: u16, ws_xpixel: u16, ws_ypixel: u16 }
}

/// The control characters a new terminal starts with (Linux's `INIT_C_CC`): Ctrl-C, Ctrl-\, DEL, Ctrl-U, Ctrl-D …
pub const INITIAL_CC: [u8; NCCS] = {
    let mut cc = [0; NCCS];
    cc[VINTR] = 0x03;
    cc[VQUIT] = 0x1c;
    cc[VERASE] = 0x7f;
    cc[VKILL] = 0x15;
    cc[VEOF] = 0x04;
    cc[VMIN] = 1;
    cc[VSTART] = 0x11;
    cc[VSTOP] = 0x13;
    cc[VSUSP] = 0x1a;
    cc[VREPRINT] = 0x12;
    cc[VDISCARD] = 0x0f;
    cc[VWERASE] = 0x17;
    cc[VLNEXT] = 0x16;
    cc
};

impl Termios {
    /// What a new terminal starts with: cooked, echoing, 38400 bits per second (Linux's `tty_std_termios`).
    pub const fn initial() -> Self {
        Self {
            c_iflag: ICRNL | IXON,
            c_oflag: OPOST | ONLCR,
            c_cflag: B38400 | CS8 | CREAD | HUPCL,
            c_lflag: ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN,
            c_line: 0,
            c_cc: INITIAL_CC,
        }
    }
}
