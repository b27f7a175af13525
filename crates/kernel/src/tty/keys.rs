//! Which byte is which key, for the line editor in code: its machine with the rows of the default keys put where the
//! settings have them.

use statemachine::Graph;

use super::bytes::{ByteSet, is_control};
use super::output::converts_line_ends_alone;
use super::termios::{DISABLED, Termios, cc, iflag, lflag};
use crate::automaton::{self, Variant};

/// Bytes of the machine's own tables that stand for others.
mod like {
    pub const TEXT: u8 = b'x';
    pub const CONTROL: u8 = 1;
    /// Rust does it.
    pub const OUTSIDE: u8 = 3;
    pub const TAB: u8 = b'\t';
    pub const NEWLINE: u8 = b'\n';
    pub const KILL: u8 = 0x15;
    pub const LITERAL_NEXT: u8 = 0x16;
    pub const ERASE_WORD: u8 = 0x17;
    pub const ERASE: u8 = 0x7f;
    pub const CONTINUATION: u8 = 0x80;
}

/// The settings that decide how lines are edited.
#[derive(PartialEq, Eq)]
pub(super) struct Setting {
    flags: [u32; 3],
    keys: [u8; cc::COUNT],
}

impl Setting {
    pub fn of(termios: &Termios) -> Setting {
        let mut keys = termios.c_cc;
        (keys[cc::VMIN], keys[cc::VTIME]) = (0, 0);
        Setting { flags: [termios.c_iflag, termios.c_oflag, termios.c_lflag], keys }
    }
}

/// Settings that a machine can do.
#[derive(Clone, Copy)]
pub(super) struct Keys {
    /// A bit for each key that signals, or stops or starts output. All are below 32.
    stopping: u32,
    echoes: bool,
}

const ALL: [usize; 13] = [
    cc::VINTR,
    cc::VQUIT,
    cc::VSUSP,
    cc::VSTART,
    cc::VSTOP,
    cc::VERASE,
    cc::VKILL,
    cc::VEOF,
    cc::VEOL,
    cc::VWERASE,
    cc::VLNEXT,
    cc::VREPRINT,
    cc::VEOL2,
];

impl Keys {
    /// `None`: no machine does what these settings ask for.
    pub fn of(termios: &Termios) -> Option<Keys> {
        let echoes = termios.local(lflag::ECHO);
        let unusual = !termios.is_canonical()
            || termios.input(iflag::ISTRIP | iflag::PARMRK | iflag::IUCLC)
            || !echoes && termios.local(lflag::ECHONL)
            || echoes && !converts_line_ends_alone(termios);
        if unusual {
            return None;
        }
        let flow = [cc::VSTART, cc::VSTOP].into_iter().filter(|_| termios.input(iflag::IXON));
        let signals = [cc::VINTR, cc::VQUIT, cc::VSUSP].into_iter().filter(|_| termios.local(lflag::ISIG));
        let keys = flow.chain(signals).map(|key| termios.c_cc[key]).filter(|key| *key != DISABLED);
        let stopping = keys.map(|key| 1u32.checked_shl(key.into())).try_fold(0, |all, key| Some(all | key?))?;
        Some(Keys { stopping, echoes })
    }

    pub fn echoes(self) -> bool {
        self.echoes
    }

    /// Which routine the machine becomes.
    pub fn variant(self) -> Variant {
        if self.echoes { Variant::Echoes } else { Variant::Unseen }
    }

    /// Whether one of the keys that stop is among `bytes`. Eight bytes at once have none if none is below a space.
    pub fn stop(self, bytes: &[u8]) -> bool {
        let stops = |byte: &u8| *byte < 32 && self.stopping >> *byte & 1 != 0;
        let (words, rest) = bytes.as_chunks();
        let controls = |word: &[u8; 8]| {
            let word = u64::from_le_bytes(*word);
            // A byte below a space borrows from its top bit; a borrow can only add such bits.
            word.wrapping_sub(0x2020_2020_2020_2020) & !word & 0x8080_8080_8080_8080 != 0
        };
        words.iter().any(|word| controls(word) && word.iter().any(stops)) || rest.iter().any(stops)
    }

    /// The machine for these settings, which are the ones that this was made of.
    pub fn machine(self, termios: &Termios, special: &ByteSet) -> Graph {
        let joined = if self.echoes { automaton::EDIT_COOK } else { automaton::EDIT_UNSEEN };
        let rows = Rows { termios, special, echoes: self.echoes };
        Graph::unpacked(joined).with_bytes(|byte| rows.like(byte))
    }
}

/// The rows of the machine's tables for the bytes of a tty.
struct Rows<'a> {
    termios: &'a Termios,
    special: &'a ByteSet,
    echoes: bool,
}

impl Rows<'_> {
    /// The byte whose row in the machine's tables does with `byte` what Rust would do (`receive.rs`).
    fn like(&self, byte: u8) -> u8 {
        if !self.special.contains(byte) {
            return self.like_plain(byte);
        }
        let typed = match byte {
            b'\r' if self.termios.input(iflag::IGNCR) => return like::OUTSIDE,
            b'\r' if self.termios.input(iflag::ICRNL) => b'\n',
            b'\n' if self.termios.input(iflag::INLCR) => return like::OUTSIDE,
            byte => byte,
        };
        let mut keys = ALL.into_iter().filter(|&key| [byte, typed].contains(&self.termios.c_cc[key]));
        match (keys.next(), keys.next()) {
            (None, _) if typed == b'\n' => like::NEWLINE,
            (Some(key), None) if typed == byte && byte != b'\n' => self.like_key(key),
            _ => like::OUTSIDE,
        }
    }

    fn like_plain(&self, byte: u8) -> u8 {
        match byte {
            b'\t' => like::TAB,
            byte if is_control(byte) => like::CONTROL.only_if(self.shows_controls()),
            0x80..=0xbf if self.termios.input(iflag::IUTF8) => like::CONTINUATION,
            _ => like::TEXT,
        }
    }

    fn like_key(&self, key: usize) -> u8 {
        let rubs_out = !self.echoes || self.shows_controls() && !self.termios.local(lflag::ECHOPRT);
        let set = |flags: u32| !self.echoes || self.termios.c_lflag & flags == flags;
        let extended = self.termios.local(lflag::IEXTEN);
        match key {
            cc::VERASE => like::ERASE.only_if(rubs_out && set(lflag::ECHOE)),
            cc::VKILL => like::KILL.only_if(rubs_out && set(lflag::ECHOE | lflag::ECHOK | lflag::ECHOKE)),
            cc::VWERASE => like::ERASE_WORD.only_if(rubs_out && extended && !self.termios.input(iflag::IUTF8)),
            cc::VLNEXT => like::LITERAL_NEXT.only_if(extended && self.shows_controls() && self.keys_are_controls()),
            _ => like::OUTSIDE,
        }
    }

    fn shows_controls(&self) -> bool {
        !self.echoes || self.termios.local(lflag::ECHOCTL)
    }

    /// A literal key takes the row of its key, which must be that of a control character.
    fn keys_are_controls(&self) -> bool {
        ALL.into_iter().all(|key| is_control(self.termios.c_cc[key]) && self.termios.c_cc[key] != b'\t')
    }
}

trait Only {
    /// This row, or outside.
    fn only_if(self, usual: bool) -> Self;
}

impl Only for u8 {
    fn only_if(self, usual: bool) -> u8 {
        if usual { self } else { like::OUTSIDE }
    }
}
