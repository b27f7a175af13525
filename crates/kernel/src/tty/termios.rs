//! The settings of a tty as programs see them: `termios`, its Linux flags, the window size.
//!
//! Numbers and layouts: Linux `asm-generic/termbits.h`, x86-64.

/// Bits of `c_iflag`.
pub mod iflag {
    #![allow(missing_docs, reason = "the names are those of termios(3)")]
    pub const IGNBRK: u32 = 0o1;
    pub const BRKINT: u32 = 0o2;
    pub const IGNPAR: u32 = 0o4;
    pub const PARMRK: u32 = 0o10;
    pub const INPCK: u32 = 0o20;
    pub const ISTRIP: u32 = 0o40;
    pub const INLCR: u32 = 0o100;
    pub const IGNCR: u32 = 0o200;
    pub const ICRNL: u32 = 0o400;
    pub const IUCLC: u32 = 0o1000;
    pub const IXON: u32 = 0o2000;
    pub const IXANY: u32 = 0o4000;
    pub const IXOFF: u32 = 0o10000;
    /// Stored only: Linux behaves as if it were always set, and rings no bell.
    pub const IMAXBEL: u32 = 0o20000;
    pub const IUTF8: u32 = 0o40000;
}

/// Bits of `c_oflag`.
pub mod oflag {
    #![allow(missing_docs, reason = "the names are those of termios(3)")]
    pub const OPOST: u32 = 0o1;
    pub const OLCUC: u32 = 0o2;
    pub const ONLCR: u32 = 0o4;
    pub const OCRNL: u32 = 0o10;
    pub const ONOCR: u32 = 0o20;
    pub const ONLRET: u32 = 0o40;
    /// The field; its value `XTABS` asks for spaces instead of tabs.
    pub const TABDLY: u32 = 0o14000;
    pub const XTABS: u32 = 0o14000;
}

/// Bits of `c_cflag`. Only the speed means something to a tty without a line.
pub mod cflag {
    #![allow(missing_docs, reason = "the names are those of termios(3)")]
    pub const CBAUD: u32 = 0o10017;
    pub const CBAUDEX: u32 = 0o10000;
    pub const BOTHER: u32 = 0o10000;
    pub const B38400: u32 = 0o17;
    pub const CS8: u32 = 0o60;
    pub const CREAD: u32 = 0o200;
    pub const HUPCL: u32 = 0o2000;
    /// Shift of the input speed within the word.
    pub const IBSHIFT: u32 = 16;
}

/// Bits of `c_lflag`.
pub mod lflag {
    #![allow(missing_docs, reason = "the names are those of termios(3)")]
    pub const ISIG: u32 = 0o1;
    pub const ICANON: u32 = 0o2;
    pub const ECHO: u32 = 0o10;
    pub const ECHOE: u32 = 0o20;
    pub const ECHOK: u32 = 0o40;
    pub const ECHONL: u32 = 0o100;
    pub const NOFLSH: u32 = 0o200;
    pub const TOSTOP: u32 = 0o400;
    pub const ECHOCTL: u32 = 0o1000;
    pub const ECHOPRT: u32 = 0o2000;
    pub const ECHOKE: u32 = 0o4000;
    pub const IEXTEN: u32 = 0o100000;
    pub const EXTPROC: u32 = 0o200000;
}

/// Places in `c_cc`.
pub mod cc {
    #![allow(missing_docs, reason = "the names are those of termios(3)")]
    pub const VINTR: usize = 0;
    pub const VQUIT: usize = 1;
    pub const VERASE: usize = 2;
    pub const VKILL: usize = 3;
    pub const VEOF: usize = 4;
    pub const VTIME: usize = 5;
    pub const VMIN: usize = 6;
    pub const VSTART: usize = 8;
    pub const VSTOP: usize = 9;
    pub const VSUSP: usize = 10;
    pub const VEOL: usize = 11;
    pub const VREPRINT: usize = 12;
    pub const VDISCARD: usize = 13;
    pub const VWERASE: usize = 14;
    pub const VLNEXT: usize = 15;
    pub const VEOL2: usize = 16;
    pub const COUNT: usize = 19;
}

/// A control character with this value is switched off (`_POSIX_VDISABLE`). Inside the input ring
/// it stands for a typed end of file.
pub const DISABLED: u8 = 0;

/// Bytes of the record of `TCGETS` and `TCSETS`.
pub const TERMIOS_BYTES: usize = 36;
/// Bytes of the record of `TCGETS2` and `TCSETS2`.
pub const TERMIOS2_BYTES: usize = 44;

/// Speeds of the codes 0..16, then of `CBAUDEX | 1` and up, in baud.
const BAUD: [u32; 31] = [
    0, 50, 75, 110, 134, 150, 200, 300, 600, 1200, 1800, 2400, 4800, 9600, 19200, 38400, 57600, 115_200, 230_400,
    460_800, 500_000, 576_000, 921_600, 1_000_000, 1_152_000, 1_500_000, 2_000_000, 2_500_000, 3_000_000, 3_500_000,
    4_000_000,
];

/// The settings of a tty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Termios {
    /// Input flags, see `iflag`.
    pub c_iflag: u32,
    /// Output flags, see `oflag`.
    pub c_oflag: u32,
    /// Line flags and speed codes, see `cflag`.
    pub c_cflag: u32,
    /// Local flags, see `lflag`.
    pub c_lflag: u32,
    /// Line discipline number. Stored only.
    pub c_line: u8,
    /// Control characters, see `cc`.
    pub c_cc: [u8; cc::COUNT],
    /// Input speed, baud.
    pub c_ispeed: u32,
    /// Output speed, baud.
    pub c_ospeed: u32,
}

impl Default for Termios {
    /// What a fresh Linux tty has.
    fn default() -> Termios {
        let mut c_cc = [DISABLED; cc::COUNT];
        c_cc[cc::VINTR] = 0x03;
        c_cc[cc::VQUIT] = 0x1c;
        c_cc[cc::VERASE] = 0x7f;
        c_cc[cc::VKILL] = 0x15;
        c_cc[cc::VEOF] = 0x04;
        c_cc[cc::VMIN] = 1;
        c_cc[cc::VSTART] = 0x11;
        c_cc[cc::VSTOP] = 0x13;
        c_cc[cc::VSUSP] = 0x1a;
        c_cc[cc::VREPRINT] = 0x12;
        c_cc[cc::VDISCARD] = 0x0f;
        c_cc[cc::VWERASE] = 0x17;
        c_cc[cc::VLNEXT] = 0x16;
        Termios {
            c_iflag: iflag::ICRNL | iflag::IXON,
            c_oflag: oflag::OPOST | oflag::ONLCR,
            c_cflag: cflag::B38400 | cflag::CS8 | cflag::CREAD,
            c_lflag: lflag::ISIG
                | lflag::ICANON
                | lflag::ECHO
                | lflag::ECHOE
                | lflag::ECHOK
                | lflag::ECHOCTL
                | lflag::ECHOKE
                | lflag::IEXTEN,
            c_line: 0,
            c_cc,
            c_ispeed: 38400,
            c_ospeed: 38400,
        }
    }
}

impl Termios {
    /// Whether any of `bits` is set in `c_iflag`.
    pub fn input(&self, bits: u32) -> bool {
        self.c_iflag & bits != 0
    }

    /// Whether any of `bits` is set in `c_oflag`.
    pub fn output(&self, bits: u32) -> bool {
        self.c_oflag & bits != 0
    }

    /// Whether any of `bits` is set in `c_lflag`.
    pub fn local(&self, bits: u32) -> bool {
        self.c_lflag & bits != 0
    }

    /// Whether input is collected into lines: `ICANON`, and nobody else edits them (`EXTPROC`).
    pub fn is_canonical(&self) -> bool {
        self.local(lflag::ICANON) && !self.local(lflag::EXTPROC)
    }

    /// Whether input bytes pass unchanged, unseen and unechoed.
    pub fn is_raw(&self) -> bool {
        let input =
            iflag::ISTRIP | iflag::IUCLC | iflag::IGNCR | iflag::ICRNL | iflag::INLCR | iflag::IXON | iflag::PARMRK;
        !self.input(input) && !self.local(lflag::ICANON | lflag::ISIG | lflag::ECHO)
    }

    /// The record of `TCGETS`.
    pub fn to_bytes(&self) -> [u8; TERMIOS_BYTES] {
        let mut bytes = [0; TERMIOS_BYTES];
        let words = [self.c_iflag, self.c_oflag, self.c_cflag, self.c_lflag];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes[16] = self.c_line;
        bytes[17..].copy_from_slice(&self.c_cc);
        bytes
    }

    /// The record of `TCGETS2`: that of `TCGETS` and the two speeds.
    pub fn to_bytes2(&self) -> [u8; TERMIOS2_BYTES] {
        let mut bytes = [0; TERMIOS2_BYTES];
        bytes[..TERMIOS_BYTES].copy_from_slice(&self.to_bytes());
        bytes[36..40].copy_from_slice(&self.c_ispeed.to_le_bytes());
        bytes[40..].copy_from_slice(&self.c_ospeed.to_le_bytes());
        bytes
    }

    /// These settings replaced by the record of `TCSETS`. The speeds follow from its speed codes.
    pub fn with_bytes(&self, bytes: &[u8; TERMIOS_BYTES]) -> Termios {
        let mut new = self.with_record(bytes);
        new.settle_speeds();
        new
    }

    /// These settings replaced by the record of `TCSETS2`. Its speeds count where the code is `BOTHER`.
    pub fn with_bytes2(&self, bytes: &[u8; TERMIOS2_BYTES]) -> Termios {
        let (record, _) = bytes.split_first_chunk().unwrap_or((&[0; TERMIOS_BYTES], &[]));
        let mut new = self.with_record(record);
        new.c_ispeed = word(bytes, 36);
        new.c_ospeed = word(bytes, 40);
        new.settle_speeds();
        new
    }

    fn with_record(&self, bytes: &[u8; TERMIOS_BYTES]) -> Termios {
        let mut new = *self;
        new.c_iflag = word(bytes, 0);
        new.c_oflag = word(bytes, 4);
        new.c_cflag = word(bytes, 8);
        new.c_lflag = word(bytes, 12);
        new.c_line = bytes[16];
        new.c_cc.copy_from_slice(&bytes[17..]);
        new
    }

    fn settle_speeds(&mut self) {
        self.c_ospeed = baud(self.c_cflag & cflag::CBAUD).unwrap_or(self.c_ospeed);
        // An input code of 0 means: as the output.
        self.c_ispeed = match (self.c_cflag >> cflag::IBSHIFT) & cflag::CBAUD {
            0 => self.c_ospeed,
            code => baud(code).unwrap_or(self.c_ispeed),
        };
    }
}

/// Baud of a speed code; `None` for `BOTHER`, where the speed stands in its own word.
fn baud(code: u32) -> Option<u32> {
    match code {
        cflag::BOTHER => None,
        code if code & cflag::CBAUDEX != 0 => BAUD.get(((code & 0o17) + 15) as usize).copied(),
        code => BAUD.get(code as usize).copied(),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The size of the window behind a tty (`struct winsize`). The kernel only stores it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct WindowSize {
    /// Lines of text.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
    /// Width in pixels, or 0.
    pub x_pixels: u16,
    /// Height in pixels, or 0.
    pub y_pixels: u16,
}

impl WindowSize {
    /// The record of `TIOCGWINSZ`.
    pub fn to_bytes(&self) -> [u8; 8] {
        let mut bytes = [0; 8];
        let fields = [self.rows, self.columns, self.x_pixels, self.y_pixels];
        for (place, field) in bytes.chunks_exact_mut(2).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    /// The record of `TIOCSWINSZ`.
    pub fn from_bytes(bytes: &[u8; 8]) -> WindowSize {
        let field = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        WindowSize { rows: field(0), columns: field(2), x_pixels: field(4), y_pixels: field(6) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_the_round_trip() {
        let mut termios = Termios::default();
        termios.c_cc[18] = 9;
        termios.c_iflag = 0x0102_0304;
        assert_eq!(Termios::default().with_bytes(&termios.to_bytes()), termios);
        assert_eq!(Termios::default().with_bytes2(&termios.to_bytes2()), termios);
        let size = WindowSize { rows: 24, columns: 80, x_pixels: 1, y_pixels: 2 };
        assert_eq!(WindowSize::from_bytes(&size.to_bytes()), size);
    }

    #[test]
    fn speeds_follow_the_codes_unless_other() {
        let mut termios = Termios { c_cflag: 0o10002, ..Termios::default() };
        assert_eq!(Termios::default().with_bytes(&termios.to_bytes()).c_ospeed, 115_200);
        termios.c_cflag = cflag::BOTHER;
        termios.c_ospeed = 12345;
        let new = Termios::default().with_bytes2(&termios.to_bytes2());
        assert_eq!((new.c_ospeed, new.c_ispeed), (12345, 12345));
        assert_eq!(Termios::default().with_bytes(&termios.to_bytes()).c_ospeed, 38400);
    }
}
