//! Classes of bytes as the cooked tty sees them: Latin-1, whatever the locale of the program.

/// A set of byte values.
#[derive(Clone, Copy, Default)]
pub(super) struct ByteSet([u64; 4]);

impl ByteSet {
    pub(super) fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    pub(super) fn remove(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] &= !(1 << (byte & 63));
    }

    pub(super) fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] & (1 << (byte & 63)) != 0
    }
}

/// Control characters: echoed as `^X`, no column of their own. 0x80..0xa0 are not among them.
pub(super) fn is_control(byte: u8) -> bool {
    byte.is_ascii_control()
}

/// What word erase takes for a part of a word, besides the underscore.
pub(super) fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || (byte >= 0xc0 && byte != 0xd7 && byte != 0xf7)
}

/// Lower case for `IUCLC`.
pub(super) fn lower(byte: u8) -> u8 {
    match byte {
        b'A'..=b'Z' | 0xc0..=0xd6 | 0xd8..=0xde => byte + 0x20,
        _ => byte,
    }
}

/// Upper case for `OLCUC`.
pub(super) fn upper(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' | 0xdf..=0xf6 | 0xf8..=0xff => byte - 0x20,
        _ => byte,
    }
}
