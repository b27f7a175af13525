//! CookTTYout: program output and echo on their way to the device.

use alloc::boxed::Box;

use core::cell::Cell;

use machine::KernelValue;

use super::bytes::{is_control, upper};
use super::editor::OVERHANG_BYTES;
use super::ring::{ByteRing, NoMemory};
use super::termios::{Termios, iflag, oflag};

/// Bytes waiting for the device at which `poll` stops calling the tty writable (Linux `WAKEUP_CHARS`).
const WRITABLE_BELOW: usize = 256;

/// What synthesized code filters output with, at a fixed address.
#[repr(C)]
#[derive(Default)]
pub(crate) struct OutputWords {
    /// A [`Gate`].
    pub gate: KernelValue<u64>,
    /// Column of the cursor, 0 at the left.
    pub column: KernelValue<u32>,
    /// Column at which the line being typed began.
    pub line_column: KernelValue<u32>,
    /// The upper two bits of a byte that continues a character and so has no column; a value that no byte has without `IUTF8`.
    pub continuation: KernelValue<u32>,
}

/// How a program's bytes may go to the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gate {
    /// Through the filter in code: the usual conversions, and nothing waits in front.
    Cooked = 0,
    /// As they are, in code.
    Raw = 1,
    /// Through the filter in Rust.
    Closed = 2,
}

/// What no byte has in its upper two bits.
const NO_CONTINUATION: u32 = u32::MAX;

/// The flags that decide what becomes of a byte, and those of them for which there is code.
const CONVERSIONS: u32 = oflag::ONLCR | oflag::OLCUC | oflag::OCRNL | oflag::ONOCR | oflag::TABDLY;

/// The output filter: it converts line ends and tabs, knows the column of the cursor, and stops on ^S.
///
/// Callentries: `putchar` (`put`), `write`. Callout: `raw_write`, which is whoever empties the ring.
/// Invariant: while the output is stopped nothing enters the ring; what is in it counts as sent.
pub struct CookTtyOut {
    ring: ByteRing,
    /// A START or STOP character for the device, which overtakes everything.
    urgent: Option<u8>,
    words: Box<OutputWords>,
    stopped: bool,
    /// Stopped by `TCXONC`: ^Q does not start it again.
    held: bool,
}

impl CookTtyOut {
    pub(super) fn new(capacity: usize) -> Result<CookTtyOut, NoMemory> {
        let ring = ByteRing::with_overhang(capacity, OVERHANG_BYTES)?;
        Ok(CookTtyOut { ring, urgent: None, words: Box::default(), stopped: false, held: false })
    }

    /// Bytes that may enter now: none while stopped.
    pub(super) fn room(&self) -> usize {
        if self.stopped { 0 } else { self.ring.free() }
    }

    /// Too full for some single byte, which conversion can make eight.
    pub(super) fn is_crowded(&self) -> bool {
        self.ring.free() < 8
    }

    /// Bytes the device has not taken yet.
    pub fn pending(&self) -> usize {
        self.ring.len() + usize::from(self.urgent.is_some())
    }

    pub(super) fn is_writable(&self) -> bool {
        self.room() > 0 && self.ring.len() < WRITABLE_BELOW
    }

    /// Whether ^S or `TCXONC` stopped the output.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Stopped in such a way that a typed character may start it.
    pub(super) fn is_stopped_by_key(&self) -> bool {
        self.stopped && !self.held
    }

    pub(super) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Starts the output unless it is held. True when it was stopped.
    pub(super) fn start(&mut self) -> bool {
        let starts = self.is_stopped_by_key();
        if starts {
            self.stopped = false;
        }
        starts
    }

    /// `TCXONC`, `TCOOFF`.
    pub(super) fn hold(&mut self) {
        self.held = true;
        self.stopped = true;
    }

    /// `TCXONC`, `TCOON`: undoes `hold`, and only that. True when the output starts.
    pub(super) fn release(&mut self) -> bool {
        core::mem::take(&mut self.held) && self.start()
    }

    pub(super) fn send_urgent(&mut self, byte: u8) {
        self.urgent = Some(byte);
    }

    /// Forgets what the device has not taken. The cursor stays where the tty believes it to be.
    pub(super) fn flush(&mut self) {
        self.ring.clear();
    }

    /// Moves bytes to the device and returns their number.
    pub(super) fn take(&mut self, into: &mut [u8]) -> usize {
        let mut taken = 0;
        if !into.is_empty()
            && let Some(byte) = self.urgent.take()
        {
            into[0] = byte;
            taken = 1;
        }
        taken + self.ring.take_slice(&mut into[taken..])
    }

    /// Takes as many of `bytes` as have room after conversion and returns their number.
    pub(super) fn write(&mut self, bytes: &[u8], termios: &Termios) -> usize {
        if !termios.output(oflag::OPOST) {
            let room = self.room().min(bytes.len());
            return self.ring.put_slice(&bytes[..room]);
        }
        bytes.iter().position(|&byte| !self.put(byte, termios)).unwrap_or(bytes.len())
    }

    /// Puts one byte through the conversions of `OPOST`. False, and nothing done, without room.
    pub(super) fn put(&mut self, byte: u8, termios: &Termios) -> bool {
        match byte {
            _ if self.room() == 0 => false,
            b'\n' => self.put_newline(termios),
            b'\r' => self.put_return(termios),
            b'\t' => self.put_tab(termios),
            b'\x08' => {
                self.move_back();
                self.put_plain(byte)
            }
            byte => self.put_text(byte, termios),
        }
    }

    /// Puts bytes that no conversion may touch, all or none. The column does not move.
    pub(super) fn put_verbatim(&mut self, bytes: &[u8]) -> bool {
        let fits = self.room() >= bytes.len();
        if fits {
            self.ring.put_slice(bytes);
        }
        fits
    }

    fn put_plain(&mut self, byte: u8) -> bool {
        self.put_verbatim(&[byte])
    }

    fn put_newline(&mut self, termios: &Termios) -> bool {
        if !termios.output(oflag::ONLCR) {
            if termios.output(oflag::ONLRET) {
                self.words.column.set(0);
            }
            self.words.line_column.set(self.column());
            return self.put_plain(b'\n');
        }
        let done = self.put_verbatim(b"\r\n");
        if done {
            self.home();
        }
        done
    }

    fn put_return(&mut self, termios: &Termios) -> bool {
        if termios.output(oflag::ONOCR) && self.column() == 0 {
            return true;
        }
        if termios.output(oflag::OCRNL) {
            if termios.output(oflag::ONLRET) {
                self.home();
            }
            return self.put_plain(b'\n');
        }
        self.home();
        self.put_plain(b'\r')
    }

    fn put_tab(&mut self, termios: &Termios) -> bool {
        let spaces = 8 - (self.column() & 7);
        let done = if termios.c_oflag & oflag::TABDLY == oflag::XTABS {
            self.put_verbatim(&b"        "[..spaces as usize])
        } else {
            self.put_plain(b'\t')
        };
        if done {
            self.advance(spaces);
        }
        done
    }

    fn put_text(&mut self, byte: u8, termios: &Termios) -> bool {
        let mut byte = byte;
        if !is_control(byte) {
            if termios.output(oflag::OLCUC) {
                byte = upper(byte);
            }
            if !is_continuation(byte, termios) {
                self.advance(1);
            }
        }
        self.put_plain(byte)
    }

    /// Where code may store bytes, and how many.
    pub(super) fn open_room(&self) -> (u64, usize) {
        let (to, end) = self.ring.open_end();
        (to, self.room().min((end - to) as usize + OVERHANG_BYTES))
    }

    /// Where code may store echo, and the address at which it must stop before a byte: then there is room for what that
    /// byte may become. `None` without such room.
    pub(super) fn echo_room(&self) -> Option<(u64, u64)> {
        let free = self.room().checked_sub(OVERHANG_BYTES).filter(|free| *free > 0)?;
        let (to, end) = self.ring.open_end();
        Some((to, end.min(to + free as u64)))
    }

    /// Code has stored so many bytes there.
    pub(super) fn stored(&mut self, bytes: usize) {
        self.ring.filled(bytes);
    }

    /// The cursor moved right by `columns` by bytes put verbatim.
    pub(super) fn advance(&mut self, columns: u32) {
        self.words.column.set(self.column().wrapping_add(columns));
    }

    /// The cursor moved left by one, where there is a left.
    pub(super) fn move_back(&mut self) {
        self.words.column.set(self.column().saturating_sub(1));
    }

    /// The line being typed begins where the cursor is.
    pub(super) fn mark_line_start(&mut self) {
        self.words.line_column.set(self.column());
    }

    pub(super) fn line_column(&self) -> u32 {
        self.words.line_column.get()
    }

    fn column(&self) -> u32 {
        self.words.column.get()
    }

    /// How a program's bytes may go to a device that takes bytes for characters; `Closed` if the filter does not.
    pub(super) fn gate(&self) -> Gate {
        match self.words.gate.get() {
            0 if self.words.continuation.get() == NO_CONTINUATION => Gate::Cooked,
            1 => Gate::Raw,
            _ => Gate::Closed,
        }
    }

    /// The column of the cursor, and that of the line being typed.
    pub(super) fn columns(&self) -> [&Cell<u32>; 2] {
        [&self.words.column, &self.words.line_column]
    }

    pub(super) fn words(&self) -> &OutputWords {
        &self.words
    }

    /// Decides how programs may write from now on. `may_pass`: nobody but the filter has a say.
    pub(super) fn settle(&self, termios: &Termios, may_pass: bool) {
        let gate = match termios.output(oflag::OPOST) {
            _ if !may_pass || self.stopped || self.pending() > 0 => Gate::Closed,
            false => Gate::Raw,
            true if converts_line_ends_alone(termios) => Gate::Cooked,
            true => Gate::Closed,
        };
        self.words.gate.set(gate as u64);
        self.words.continuation.set(if termios.input(iflag::IUTF8) { 0x80 } else { NO_CONTINUATION });
    }

    fn home(&mut self) {
        self.words.column.set(0);
        self.words.line_column.set(0);
    }
}

/// Whether output is processed, and that means line ends and nothing else.
pub(super) fn converts_line_ends_alone(termios: &Termios) -> bool {
    termios.output(oflag::OPOST) && termios.c_oflag & CONVERSIONS == oflag::ONLCR
}

/// Whether `byte` continues a UTF-8 character, on a tty that was told about UTF-8.
pub(super) fn is_continuation(byte: u8, termios: &Termios) -> bool {
    termios.input(iflag::IUTF8) && byte & 0xc0 == 0x80
}
