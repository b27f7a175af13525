//! A message that is written, sent and answered.

use crate::words::{Fid, NO_TAG, Qid};

/// Why a question has no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The server says no, by Linux's number.
    Refused(u16),
    /// The server has said what cannot be, or is gone.
    Broken,
    /// Who asked does not wait any longer. The answer may still come.
    GivenUp,
    /// There is no memory for the question.
    NoMemory,
}

/// Linux's numbers that are said here.
pub const TOO_LONG: Failure = Failure::Refused(36);
const ERRORS_MAX: u32 = 4095;

/// A sheet for one question and its answer, each with room for [`Sheet::room`] bytes.
pub trait Sheet {
    fn room(&self) -> usize;
    /// Tells this question from others that are under way.
    fn tag(&self) -> u16;
    /// Writes bytes of the question; they fit.
    fn write(&mut self, offset: usize, bytes: &[u8]);
    /// Reads bytes of the answer; they are inside of the room.
    fn read(&self, offset: usize, into: &mut [u8]);
    /// Sends the first `bytes` bytes, waits, and returns how many came back.
    fn exchange(&mut self, bytes: usize) -> Result<usize, Failure>;
}

/// Where sheets come from.
pub trait Wire {
    type Sheet<'a>: Sheet
    where
        Self: 'a;
    fn sheet(&self) -> Result<Self::Sheet<'_>, Failure>;
}

const HEADER_BYTES: usize = 7;
const ERROR: u8 = 7;

/// A question that is being written.
pub struct Letter<S> {
    sheet: S,
    kind: u8,
    tag: u16,
    used: usize,
    fits: bool,
}

impl<S: Sheet> Letter<S> {
    pub fn new(sheet: S, kind: u8) -> Letter<S> {
        Letter { tag: sheet.tag(), sheet, kind, used: HEADER_BYTES, fits: true }
    }

    /// It is the first message, which has a tag of its own.
    pub fn first(self) -> Self {
        Letter { tag: NO_TAG, ..self }
    }

    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.fits &= bytes.len() <= self.sheet.room().saturating_sub(self.used);
        if self.fits {
            self.sheet.write(self.used, bytes);
            self.used += bytes.len();
        }
        self
    }

    pub fn u8(self, value: u8) -> Self {
        self.bytes(&[value])
    }

    pub fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub fn fid(self, fid: Fid) -> Self {
        self.u32(fid.0)
    }

    /// A text, without NUL.
    pub fn text(mut self, text: &[u8]) -> Self {
        self.fits &= text.len() <= u16::MAX.into();
        self.u16(text.len() as u16).bytes(text)
    }

    /// What is left of the room.
    pub fn left(&self) -> usize {
        self.sheet.room() - self.used
    }

    /// Finishes the message without sending it: how many bytes it has, and its sheet.
    pub fn seal(mut self) -> Result<(S, usize), Failure> {
        if !self.fits {
            return Err(TOO_LONG);
        }
        let mut header = [0; HEADER_BYTES];
        header[..4].copy_from_slice(&(self.used as u32).to_le_bytes());
        header[4] = self.kind;
        header[5..].copy_from_slice(&self.tag.to_le_bytes());
        self.sheet.write(0, &header);
        Ok((self.sheet, self.used))
    }

    /// Sends it, and looks at what kind of answer comes.
    pub fn ask(self) -> Result<Answer<S>, Failure> {
        let (kind, tag) = (self.kind, self.tag);
        let (mut sheet, bytes) = self.seal()?;
        let came = sheet.exchange(bytes)?;
        Answer::open(sheet, kind, tag, came)
    }
}

/// An answer of the right kind, of which some has been read.
pub struct Answer<S> {
    sheet: S,
    at: usize,
    end: usize,
}

impl<S: Sheet> Answer<S> {
    /// Looks at an answer of `came` bytes to a question of this kind.
    pub fn open(sheet: S, kind: u8, expected: u16, came: usize) -> Result<Answer<S>, Failure> {
        if came < HEADER_BYTES || came > sheet.room() {
            return Err(Failure::Broken);
        }
        let mut header = [0; HEADER_BYTES];
        sheet.read(0, &mut header);
        let bytes = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let tag = u16::from_le_bytes([header[5], header[6]]);
        if !(HEADER_BYTES..=came).contains(&bytes) || tag != expected {
            return Err(Failure::Broken);
        }
        let mut answer = Answer { sheet, at: HEADER_BYTES, end: bytes };
        match header[4] {
            ERROR => match answer.u32()? {
                number @ 1..=ERRORS_MAX => Err(Failure::Refused(number as u16)),
                _ => Err(Failure::Broken),
            },
            found if found == kind + 1 => Ok(answer),
            _ => Err(Failure::Broken),
        }
    }

    /// Bytes that have not been read.
    pub fn left(&self) -> usize {
        self.end - self.at
    }

    pub fn bytes(&mut self, into: &mut [u8]) -> Result<(), Failure> {
        if into.len() > self.left() {
            return Err(Failure::Broken);
        }
        self.sheet.read(self.at, into);
        self.at += into.len();
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        let mut bytes = [0; N];
        self.bytes(&mut bytes).map(|()| bytes)
    }

    pub fn u8(&mut self) -> Result<u8, Failure> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn u16(&mut self) -> Result<u16, Failure> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Failure> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Failure> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn qid(&mut self) -> Result<Qid, Failure> {
        Ok(Qid { kind: self.u8()?, version: self.u32()?, path: self.u64()? })
    }

    /// A text that fits into `into`; how many bytes.
    pub fn text(&mut self, into: &mut [u8]) -> Result<usize, Failure> {
        let bytes = self.u16()? as usize;
        let room = into.get_mut(..bytes).ok_or(Failure::Broken)?;
        self.bytes(room).map(|()| bytes)
    }

    /// How many bytes of data follow: no more than were asked for, and than there are.
    pub fn count(&mut self, asked: usize) -> Result<usize, Failure> {
        let count = self.u32()? as usize;
        if count <= asked && count <= self.left() { Ok(count) } else { Err(Failure::Broken) }
    }

    /// Where in the answer the next byte is.
    pub fn position(&self) -> usize {
        self.at
    }
}
