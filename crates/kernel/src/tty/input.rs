//! CookTTYin's storage: the bytes a program has not read yet, and where lines end among them.

use alloc::boxed::Box;

use machine::KernelValue;

use super::bytes::ByteSet;
use super::ring::{ByteRing, NoMemory};
use super::termios::{DISABLED, Termios, cc, iflag, lflag};

/// Bytes of input a tty holds, as on Linux. A line has at most one less, and its end.
pub const INPUT_BYTES: usize = 4096;

/// What synthesized code reads lines with, at a fixed address.
#[repr(C)]
pub(super) struct InputWords {
    /// 0: a finished line may be read in code, by who is in the foreground.
    pub gate: KernelValue<u64>,
    /// The foreground group; `u64::MAX` if there is none.
    pub foreground: KernelValue<u64>,
    pub line_start: KernelValue<u64>,
    /// Bit per place of the ring: a line ends there.
    pub marks: [KernelValue<u64>; INPUT_BYTES / 64],
}

impl InputWords {
    fn new() -> InputWords {
        InputWords {
            gate: KernelValue::new(1),
            foreground: KernelValue::new(u64::MAX),
            line_start: KernelValue::new(0),
            marks: [const { KernelValue::new(0) }; INPUT_BYTES / 64],
        }
    }
}

/// The input filter: an editor of the line being typed, in front of the lines typed before.
///
/// Callentries: `getchar`, `read`. Callouts: `raw_get`, which is whoever calls `device_input`, and
/// `echo`, which is the queue of echo.
///
/// ```text
///        tail                 line_start            head
///   ──────┼─ finished lines ──────┼─ line being typed ─┼──────
///          h e l l o \n ␄ l s \n   m a k
///                     ▲ ▲      ▲                           ▲ = mark: a line ends here
/// ```
/// A typed end of file is a marked 0 byte, which no reader gets to see. Without canonical mode
/// there are no marks and `line_start` means nothing.
pub struct CookTtyIn {
    ring: ByteRing,
    words: Box<InputWords>,
    /// Bytes that the filter must look at.
    pub(super) special: ByteSet,
    /// The next byte is taken literally.
    pub(super) literal_next: bool,
    /// Inside the `\...` of `ECHOPRT`.
    pub(super) erasing: bool,
}

impl CookTtyIn {
    pub(super) fn new(termios: &Termios) -> Result<CookTtyIn, NoMemory> {
        Ok(CookTtyIn {
            ring: ByteRing::new(INPUT_BYTES)?,
            words: Box::new(InputWords::new()),
            special: special_bytes(termios),
            literal_next: false,
            erasing: false,
        })
    }

    /// Bytes in the ring, the line being typed included.
    pub(super) fn len(&self) -> usize {
        self.ring.len()
    }

    pub(super) fn head(&self) -> u64 {
        self.ring.head()
    }

    /// Index of the first byte of the line being typed.
    pub(super) fn line_start(&self) -> u64 {
        self.words.line_start.get()
    }

    pub(super) fn words(&self) -> &InputWords {
        &self.words
    }

    pub(super) fn ring(&self) -> &ByteRing {
        &self.ring
    }

    /// The line was edited, and perhaps ended and others with it, in the ring and the marks themselves.
    pub(super) fn edited(&mut self, head: u64, line_start: u64) {
        self.ring.words().head.set(head);
        self.words.line_start.set(line_start);
    }

    fn clear_marks(&self) {
        self.words.marks.iter().for_each(|word| word.set(0));
    }

    pub(super) fn at(&self, index: u64) -> u8 {
        self.ring.at(index)
    }

    /// Whether nothing has been typed into the line yet.
    pub(super) fn line_is_empty(&self) -> bool {
        self.line_start() == self.ring.head()
    }

    /// Whether a finished line, or the rest of one, waits.
    pub(super) fn has_line(&self) -> bool {
        self.line_start() != self.ring.tail()
    }

    pub(super) fn put(&mut self, byte: u8) {
        // The caller made room. With PARMRK in an overfull line two bytes may come for one place.
        let _ = self.ring.put(byte);
    }

    pub(super) fn put_slice(&mut self, bytes: &[u8]) -> usize {
        self.ring.put_slice(bytes)
    }

    /// Puts the byte that ends the line being typed.
    pub(super) fn put_end(&mut self, byte: u8) {
        let end = self.ring.head();
        if self.ring.put(byte) {
            self.set_mark(end, true);
        }
        self.words.line_start.set(self.ring.head());
    }

    /// Forgets the line being typed from `index` on.
    pub(super) fn cut_from(&mut self, index: u64) {
        self.ring.cut_from(index.max(self.line_start()));
    }

    /// Makes room for one more byte. `spread` is how many bytes one may become (3 with `PARMRK`).
    /// False when the device must keep it.
    ///
    /// A line without end must not block the tty for ever: when nothing but an unfinished line is
    /// there, the newest byte is overwritten again and again, so that its end still gets in.
    pub(super) fn make_room(&mut self, spread: usize, canonical: bool) -> bool {
        let room = self.ring.free().div_ceil(spread);
        if room > 1 {
            return true;
        }
        let overflows = canonical && !self.has_line();
        if overflows && room == 0 {
            self.ring.cut_from(self.ring.head() - 1);
        }
        overflows
    }

    /// How many bytes fit without a look at them: one place stays free, as on Linux.
    pub(super) fn raw_room(&self) -> usize {
        self.ring.free().saturating_sub(1)
    }

    /// Forgets everything unread (`TCIFLUSH`, a signal key).
    pub(super) fn flush(&mut self) {
        self.ring.clear();
        self.words.line_start.set(self.ring.head());
        self.clear_marks();
        self.erasing = false;
    }

    /// The mode of editing changed: what is pending becomes readable in the new mode.
    pub(super) fn change_mode(&mut self, icanon: bool) {
        self.clear_marks();
        self.words.line_start.set(self.ring.tail());
        if icanon && !self.ring.is_empty() {
            self.set_mark(self.ring.head() - 1, true);
            self.words.line_start.set(self.ring.head());
        }
        self.erasing = false;
        self.literal_next = false;
    }

    /// Takes one line, or as much of it as fits, and returns the number of bytes. An end of file is
    /// taken and gives none. Call only when `has_line`.
    pub(super) fn take_line(&mut self, into: &mut [u8]) -> usize {
        let mut taken = 0;
        while taken < into.len() && self.ring.tail() < self.line_start() {
            let ends = self.take_mark();
            let Some(byte) = self.ring.take() else { break };
            if ends && byte == DISABLED {
                return taken;
            }
            into[taken] = byte;
            taken += 1;
            if ends {
                return taken;
            }
        }
        self.skip_end_of_file();
        taken
    }

    /// Takes what is there without regard to lines.
    pub(super) fn take_raw(&mut self, into: &mut [u8]) -> usize {
        self.ring.take_slice(into)
    }

    /// Bytes a program could read of finished lines, without the ends of file (`TIOCINQ`).
    pub(super) fn line_bytes(&self) -> usize {
        let shown = |&index: &u64| !(self.mark(index) && self.ring.at(index) == DISABLED);
        (self.ring.tail()..self.line_start()).filter(shown).count()
    }

    /// After a read that filled its buffer exactly: an end of file right behind belongs to it,
    /// else the next read would report a second end.
    fn skip_end_of_file(&mut self) {
        let tail = self.ring.tail();
        if tail < self.line_start() && self.mark(tail) && self.ring.at(tail) == DISABLED {
            self.take_mark();
            self.ring.take();
        }
    }

    fn take_mark(&mut self) -> bool {
        let tail = self.ring.tail();
        let marked = self.mark(tail);
        self.set_mark(tail, false);
        marked
    }

    fn mark(&self, index: u64) -> bool {
        let bit = index as usize % INPUT_BYTES;
        self.words.marks[bit / 64].get() & (1 << (bit % 64)) != 0
    }

    fn set_mark(&mut self, index: u64, on: bool) {
        let bit = index as usize % INPUT_BYTES;
        let word = &self.words.marks[bit / 64];
        word.set(word.get() & !(1 << (bit % 64)) | u64::from(on) << (bit % 64));
    }
}

/// The bytes that mean something under these settings. All others only enter the line and are echoed.
pub(super) fn special_bytes(termios: &Termios) -> ByteSet {
    let mut special = ByteSet::default();
    let mut add_keys = |keys: &[usize]| keys.iter().for_each(|&key| special.insert(termios.c_cc[key]));
    if termios.local(lflag::ICANON) {
        add_keys(&[cc::VERASE, cc::VKILL, cc::VEOF, cc::VEOL]);
        if termios.local(lflag::IEXTEN) {
            add_keys(&[cc::VWERASE, cc::VLNEXT, cc::VEOL2]);
            if termios.local(lflag::ECHO) {
                add_keys(&[cc::VREPRINT]);
            }
        }
    }
    if termios.input(iflag::IXON) {
        add_keys(&[cc::VSTART, cc::VSTOP]);
    }
    if termios.local(lflag::ISIG) {
        add_keys(&[cc::VINTR, cc::VQUIT, cc::VSUSP]);
    }
    if termios.input(iflag::IGNCR | iflag::ICRNL) {
        special.insert(b'\r');
    }
    if termios.input(iflag::INLCR) || termios.local(lflag::ICANON) {
        special.insert(b'\n');
    }
    special.remove(DISABLED);
    special
}
