//! The queue of echo: what the input filter wants shown, kept until the output has room.
//!
//! Echo is decided when a byte arrives and shown when the output allows. Where it depends on the
//! column of the cursor (erasing a tab), an operation is queued instead of bytes. An operation is
//! the byte `LEAD`, a code, and for `ERASE_TAB` a number. Any other code is a control character
//! to be shown as `^X`; `LEAD` twice is the byte itself.

use super::output::CookTtyOut;
use super::ring::{ByteRing, NoMemory};
use super::termios::{Termios, oflag};

const LEAD: u8 = 0xff;
const MOVE_BACK: u8 = 0x80;
const MARK_LINE_START: u8 = 0x81;
const ERASE_TAB: u8 = 0x82;
/// Set in the number of `ERASE_TAB`: columns count from a previous tab, not from the line's start.
const AFTER_TAB: u8 = 0x80;

const CAPACITY_BYTES: usize = 4096;
/// Uncommitted echo at which it is sent in the middle of a burst of input, and again every so many.
const BLOCK_BYTES: u64 = 256;
/// Echo that nobody takes is forgotten from the oldest on beyond this.
const DISCARD_BYTES: u64 = CAPACITY_BYTES as u64 - (BLOCK_BYTES + 32);

/// Echo on its way to the output. Invariant: `tail <= committed, marked <= head` of the ring.
pub(super) struct EchoQueue {
    ring: ByteRing,
    /// Up to here it may be shown.
    committed: u64,
    /// Up to here it is complete.
    marked: u64,
    /// Bytes that were forgotten because nobody took them: a gauge (S-31).
    pub(super) forgotten: u64,
}

impl EchoQueue {
    pub(super) fn new() -> Result<EchoQueue, NoMemory> {
        Ok(EchoQueue { ring: ByteRing::new(CAPACITY_BYTES)?, committed: 0, marked: 0, forgotten: 0 })
    }

    /// Queues a byte to be shown as it is.
    pub(super) fn add(&mut self, byte: u8) {
        if byte == LEAD {
            self.put(LEAD);
        }
        self.put(byte);
    }

    /// Queues a control character to be shown as `^X`.
    pub(super) fn add_caret(&mut self, control: u8) {
        self.put(LEAD);
        self.put(control);
    }

    pub(super) fn add_move_back(&mut self) {
        self.put(LEAD);
        self.put(MOVE_BACK);
    }

    pub(super) fn add_mark_line_start(&mut self) {
        self.put(LEAD);
        self.put(MARK_LINE_START);
    }

    /// Queues the erasure of a tab that stands `columns` after the start of the line or a previous tab.
    pub(super) fn add_erase_tab(&mut self, columns: u32, after_tab: bool) {
        self.put(LEAD);
        self.put(ERASE_TAB);
        self.put((columns & 7) as u8 | if after_tab { AFTER_TAB } else { 0 });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Bytes that can be added before something is lost. One operation needs three.
    pub(super) fn free(&self) -> usize {
        self.ring.free()
    }

    pub(super) fn clear(&mut self) {
        self.ring.clear();
        self.committed = self.ring.head();
        self.marked = self.ring.head();
    }

    /// What was added is complete. It is shown now only if much has gathered.
    pub(super) fn commit(&mut self, output: &mut CookTtyOut, termios: &Termios) {
        self.marked = self.ring.head();
        let gathered = self.ring.head() - self.ring.tail();
        let before = self.committed - self.ring.tail();
        if gathered >= BLOCK_BYTES && gathered % BLOCK_BYTES <= before % BLOCK_BYTES {
            self.show_all(output, termios);
        }
    }

    /// Shows what is complete, as far as there is room.
    pub(super) fn show(&mut self, output: &mut CookTtyOut, termios: &Termios) {
        if self.marked > self.ring.tail() {
            self.committed = self.marked;
            self.show_committed(output, termios);
        }
    }

    /// Something complete waits for room; it goes in front of what programs write.
    pub(super) fn waits(&self) -> bool {
        self.marked > self.ring.tail()
    }

    /// Shows everything, as far as there is room.
    pub(super) fn show_all(&mut self, output: &mut CookTtyOut, termios: &Termios) {
        if self.committed != self.ring.head() {
            self.committed = self.ring.head();
            self.show_committed(output, termios);
        }
    }

    fn show_committed(&mut self, output: &mut CookTtyOut, termios: &Termios) {
        while self.ring.tail() < self.committed && self.show_next(output, termios) {}
        while self.committed - self.ring.tail() >= DISCARD_BYTES {
            self.forgotten += self.item_bytes();
            self.skip(self.item_bytes());
        }
        self.marked = self.marked.max(self.ring.tail());
    }

    /// Shows the oldest item. False, and nothing done, without room for all of it.
    fn show_next(&mut self, output: &mut CookTtyOut, termios: &Termios) -> bool {
        let tail = self.ring.tail();
        let shown = match self.ring.at(tail) {
            LEAD => show_operation(self.ring.at(tail + 1), self.ring.at(tail + 2), output),
            byte if termios.output(oflag::OPOST) => output.put(byte, termios),
            byte => output.put_verbatim(&[byte]),
        };
        if shown {
            self.skip(self.item_bytes());
        }
        shown
    }

    fn item_bytes(&self) -> u64 {
        let tail = self.ring.tail();
        match (self.ring.at(tail), self.ring.at(tail + 1)) {
            (LEAD, ERASE_TAB) => 3,
            (LEAD, _) => 2,
            _ => 1,
        }
    }

    fn skip(&mut self, bytes: u64) {
        self.ring.drop_until(self.ring.tail() + bytes);
        self.committed = self.committed.max(self.ring.tail());
    }

    fn put(&mut self, byte: u8) {
        // The filter shows echo before it adds to a nearly full queue, and showing discards: see
        // `free`. A byte that still does not fit is echo that nobody could have read.
        let _ = self.ring.put(byte);
    }
}

fn show_operation(code: u8, number: u8, output: &mut CookTtyOut) -> bool {
    match code {
        ERASE_TAB => erase_tab(number, output),
        MARK_LINE_START => {
            output.mark_line_start();
            true
        }
        MOVE_BACK => {
            output.move_back();
            true
        }
        LEAD => {
            let shown = output.put_verbatim(&[LEAD]);
            output.advance(u32::from(shown));
            shown
        }
        control => {
            let shown = output.put_verbatim(&[b'^', control ^ 0x40]);
            output.advance(2 * u32::from(shown));
            shown
        }
    }
}

fn erase_tab(number: u8, output: &mut CookTtyOut) -> bool {
    let mut columns = u32::from(number);
    if number & AFTER_TAB == 0 {
        columns = columns.wrapping_add(output.line_column());
    }
    let back = 8 - (columns & 7);
    let shown = output.put_verbatim(&[b'\x08'; 8][..back as usize]);
    for _ in 0..back * u32::from(shown) {
        output.move_back();
    }
    shown
}
