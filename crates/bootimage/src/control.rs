//! The records on the control port: an 8-byte header, then a payload.
//!
//! ```text
//!   0  u8  kind
//!   1  u8[3] zero
//!   4  u32 payload length, at most PAYLOAD_BYTES_MAX
//!   8  payload
//!
//!   guest to host   1 EXIT    i32 status, u32 signal (0 when the program called exit)
//!                   2 LOG     text
//!                   3 STRACE  text
//!                   4 PANIC   text
//!                   5 STATS   lines of key=value
//!                   6 FAILURE one line: why the first program cannot run
//!                   7 ANSWER  to a request: see `inspect`
//!                   8 TRACE   what is left in the ring of a traced run: see `inspect`
//!                   9 CRASH   a line that says which program crashed how, then lines with its registers
//!                   10 NOTICE one line without its end that the user must see, such as who was killed for want of memory
//!   host to guest   129 WINSIZE  u16 rows, u16 columns, u16 x pixels, u16 y pixels
//!                   130 REQUEST  see `inspect`
//! ```
//!
//! The tool prints text as it comes: the kernel ends lines itself, and a line may span records.

use alloc::vec::Vec;

use crate::layout::{u16_at, u32_at};

/// Longest payload: longer text goes in several records.
pub const PAYLOAD_BYTES_MAX: usize = 64 * 1024;
/// Length of the header before each payload.
pub const HEADER_BYTES: usize = 8;

/// Values of the kind field.
pub mod kind {
    pub const EXIT: u8 = 1;
    pub const LOG: u8 = 2;
    pub const STRACE: u8 = 3;
    pub const PANIC: u8 = 4;
    pub const STATS: u8 = 5;
    pub const FAILURE: u8 = 6;
    pub const ANSWER: u8 = 7;
    pub const TRACE: u8 = 8;
    pub const CRASH: u8 = 9;
    pub const NOTICE: u8 = 10;
    pub const WINSIZE: u8 = 129;
    pub const REQUEST: u8 = 130;
}

/// A record, borrowed from the bytes it was read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Record<'a> {
    /// The first program has ended. `signal` is 0 when it called `exit(status)`.
    Exit { status: i32, signal: u32 },
    /// A message of the kernel.
    Log(&'a [u8]),
    /// One traced call.
    Strace(&'a [u8]),
    /// The kernel's epitaph; nothing follows it.
    Panic(&'a [u8]),
    /// Lines of `key=value`, decimal values.
    Stats(&'a [u8]),
    /// Why the first program cannot run, in one line without its end. EXIT with status 126 or 127 follows.
    Failure(&'a [u8]),
    /// A program ended by a signal that on Linux leaves a core dump: one line with process, signal and place, then its
    /// registers.
    Crash(&'a [u8]),
    /// A line that the user must see.
    Notice(&'a [u8]),
    /// The host's terminal has another size.
    WindowSize { rows: u16, columns: u16, x_pixels: u16, y_pixels: u16 },
    /// Somebody outside wants to know something.
    Request(&'a [u8]),
    /// What the kernel says to a request.
    Answer(&'a [u8]),
    /// Records of a trace, at the end of a traced run.
    Trace(&'a [u8]),
}

/// Why a stream of records is broken. It cannot be read on after that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControlError {
    /// Unknown kind, or nonzero reserved bytes.
    BadHeader([u8; 4]),
    /// Longer than [`PAYLOAD_BYTES_MAX`].
    TooLong(u32),
    /// The payload's length does not fit its kind.
    BadPayload(u8),
}

/// The header of a record with a payload of `payload_bytes`; for writers that must not allocate.
pub const fn header(kind: u8, payload_bytes: u32) -> [u8; HEADER_BYTES] {
    let length = payload_bytes.to_le_bytes();
    [kind, 0, 0, 0, length[0], length[1], length[2], length[3]]
}

/// A whole EXIT record.
pub const fn exit_record(status: i32, signal: u32) -> [u8; HEADER_BYTES + 8] {
    let (head, status, signal) = (header(kind::EXIT, 8), status.to_le_bytes(), signal.to_le_bytes());
    let mut record = [0; HEADER_BYTES + 8];
    let mut at = 0;
    while at < HEADER_BYTES {
        record[at] = head[at];
        at += 1;
    }
    while at < HEADER_BYTES + 4 {
        record[at] = status[at - HEADER_BYTES];
        record[at + 4] = signal[at - HEADER_BYTES];
        at += 1;
    }
    record
}

impl Record<'_> {
    /// Appends the record's bytes to `out`. Text beyond [`PAYLOAD_BYTES_MAX`] goes into further records of the same kind.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Record::Exit { status, signal } => out.extend(exit_record(status, signal)),
            Record::Log(text) => encode_text(kind::LOG, text, out),
            Record::Strace(text) => encode_text(kind::STRACE, text, out),
            Record::Panic(text) => encode_text(kind::PANIC, text, out),
            Record::Stats(text) => encode_text(kind::STATS, text, out),
            Record::Failure(text) => encode_text(kind::FAILURE, text, out),
            Record::Crash(text) => encode_text(kind::CRASH, text, out),
            Record::Notice(text) => encode_text(kind::NOTICE, text, out),
            Record::WindowSize { rows, columns, x_pixels, y_pixels } => {
                out.extend(header(kind::WINSIZE, 8));
                out.extend([rows, columns, x_pixels, y_pixels].iter().flat_map(|cells| cells.to_le_bytes()));
            }
            Record::Request(bytes) => encode_text(kind::REQUEST, bytes, out),
            Record::Answer(bytes) => encode_text(kind::ANSWER, bytes, out),
            Record::Trace(bytes) => encode_text(kind::TRACE, bytes, out),
        }
    }
}

fn encode_text(kind: u8, text: &[u8], out: &mut Vec<u8>) {
    for chunk in text.chunks(PAYLOAD_BYTES_MAX) {
        out.extend(header(kind, chunk.len() as u32));
        out.extend_from_slice(chunk);
    }
}

/// Turns bytes, in whatever pieces they come, into records. Holds at most one record and one piece.
#[derive(Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// How many of `bytes` have been returned as records already.
    used: usize,
}

impl Decoder {
    pub const fn new() -> Self {
        Decoder { bytes: Vec::new(), used: 0 }
    }

    /// Takes the next bytes of the stream. Call [`next`](Self::next) until it returns `None` before feeding more.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.used);
        self.used = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole record, or `None` when more bytes are needed.
    ///
    /// # Errors
    /// See [`ControlError`]; the same error comes back on each later call.
    #[allow(clippy::should_implement_trait, reason = "lends from self, which an Iterator cannot")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, ControlError> {
        let rest = &self.bytes[self.used..];
        let Some(head) = rest.get(..HEADER_BYTES) else { return Ok(None) };
        let &[kind, 0, 0, 0, ..] = head else {
            return Err(ControlError::BadHeader([head[0], head[1], head[2], head[3]]));
        };
        let length = u32_at(head, 4).unwrap_or(u32::MAX);
        if length as usize > PAYLOAD_BYTES_MAX {
            return Err(ControlError::TooLong(length));
        }
        let end = HEADER_BYTES + length as usize;
        let Some(payload) = rest.get(HEADER_BYTES..end) else { return Ok(None) };
        let record = decode(kind, payload)?;
        self.used += end;
        Ok(Some(record))
    }

    /// Whether the stream stopped in the middle of a record.
    pub fn is_partial(&self) -> bool {
        self.used < self.bytes.len()
    }
}

fn decode(code: u8, payload: &[u8]) -> Result<Record<'_>, ControlError> {
    let pair = || match payload.len() {
        8 => Ok(()),
        _ => Err(ControlError::BadPayload(code)),
    };
    Ok(match code {
        kind::EXIT => {
            pair()?;
            let word = |offset| u32_at(payload, offset).unwrap_or_default();
            Record::Exit { status: word(0) as i32, signal: word(4) }
        }
        kind::LOG => Record::Log(payload),
        kind::STRACE => Record::Strace(payload),
        kind::PANIC => Record::Panic(payload),
        kind::STATS => Record::Stats(payload),
        kind::FAILURE => Record::Failure(payload),
        kind::CRASH => Record::Crash(payload),
        kind::NOTICE => Record::Notice(payload),
        kind::WINSIZE => {
            pair()?;
            let cells = |offset| u16_at(payload, offset).unwrap_or_default();
            Record::WindowSize { rows: cells(0), columns: cells(2), x_pixels: cells(4), y_pixels: cells(6) }
        }
        kind::REQUEST => Record::Request(payload),
        kind::ANSWER => Record::Answer(payload),
        kind::TRACE => Record::Trace(payload),
        _ => return Err(ControlError::BadHeader([code, 0, 0, 0])),
    })
}
