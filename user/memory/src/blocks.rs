//! Copies of a known length, and comparisons with a known text (S-111). What a library's routine asks at each call, how long
//! and how aligned, is asked once here.

use alloc::vec::Vec;

use ground::Errno;
use synth::{Abs32, Draft, Imm32, Label, Target};

use crate::template::{
    AllSame, AndSame16, Move1, Move4, Move8, Move16, MoveAligned16, MoveMany, No, Return, Same1, Same4, Same8, Same16,
    SameLength, Yes,
};
use ground::{Twin, serialize};

/// Copies up to this length are moves one after the other; the processor's string move does longer ones.
const STRAIGHT_BYTES_MAX: usize = 512;
const OTHER: Label = Label(0);

/// Where routines live. They stay until it is dropped.
#[derive(Debug)]
pub struct Routines {
    region: Twin,
    used: usize,
}

/// Copies a fixed number of bytes.
#[derive(Clone, Copy, Debug)]
pub struct Copier<'a> {
    entry: usize,
    bytes: usize,
    life: core::marker::PhantomData<&'a Twin>,
}

/// Tells whether bytes are a fixed text.
#[derive(Clone, Copy, Debug)]
pub struct Comparer<'a> {
    entry: usize,
    life: core::marker::PhantomData<&'a Twin>,
}

impl Routines {
    /// Room for code of so many bytes.
    ///
    /// # Errors
    /// The system's.
    pub fn new(bytes: usize) -> Result<Routines, Errno> {
        Ok(Routines { region: Twin::new(bytes)?, used: 0 })
    }

    /// Room for `bytes`, aligned for 16. Offset.
    fn room(&mut self, bytes: usize) -> Option<usize> {
        let at = self.used.next_multiple_of(16);
        let end = at.checked_add(bytes).filter(|end| *end <= self.region.bytes())?;
        self.used = end;
        Some(at)
    }

    fn publish(&mut self, draft: Draft) -> Option<usize> {
        let at = self.room(draft.len())?;
        let bound = draft.bind((self.region.run() + at) as u64).ok()?;
        self.region.store(at, &bound.bytes);
        serialize();
        Some(self.region.run() + at)
    }

    /// The entry of a routine that copies `bytes` bytes; `aligned`: both places are multiples of 16. `None`: no room.
    pub(crate) fn copying(&mut self, bytes: usize, aligned: bool) -> Option<usize> {
        let mut draft = Draft::new();
        if bytes > STRAIGHT_BYTES_MAX {
            MoveMany { bytes: Imm32(u32::try_from(bytes).ok()?) }.append_to(&mut draft);
        } else {
            for (at, width) in pieces(bytes, &[16, 8, 4, 1]) {
                let place = Imm32(at as u32);
                match width {
                    16 if aligned && at % 16 == 0 => MoveAligned16 { at: place }.append_to(&mut draft),
                    16 => Move16 { at: place }.append_to(&mut draft),
                    8 => Move8 { at: place }.append_to(&mut draft),
                    4 => Move4 { at: place }.append_to(&mut draft),
                    _ => Move1 { at: place }.append_to(&mut draft),
                }
            }
        }
        Return {}.append_to(&mut draft);
        self.publish(draft)
    }

    /// Stores the pieces of the text one behind the other, each aligned for 16 as the comparison needs its operand; the last
    /// one may overlap the one before it. Where they run.
    fn constants(&mut self, text: &[u8]) -> Option<u64> {
        let pieces = pieces(text.len(), &[16]);
        let offset = self.room(pieces.len() * 16)?;
        for (number, (at, width)) in pieces.iter().enumerate() {
            self.region.store(offset + number * 16, &text[*at..at + width]);
        }
        Some((self.region.run() + offset) as u64)
    }

    /// The entry of a routine that compares with `text`.
    pub(crate) fn comparing(&mut self, text: &[u8]) -> Option<usize> {
        let constant = self.constants(text)?;
        let other = Target::Label(OTHER);
        let mut draft = Draft::new();
        SameLength { bytes: Imm32(u32::try_from(text.len()).ok()?), other }.append_to(&mut draft);
        if text.len() >= 16 {
            compare_vectors(&mut draft, text.len(), constant);
        } else {
            for (at, width) in pieces(text.len(), &[8, 4, 1]) {
                compare_word(&mut draft, at, &text[at..at + width]);
            }
        }
        Yes {}.append_to(&mut draft);
        draft.place(OTHER);
        No {}.append_to(&mut draft);
        self.publish(draft)
    }

    /// Writes a routine for each length of `copies` (aligned for 16 or not) and for each text. `None`: no room.
    pub fn write(&mut self, copies: &[(usize, bool)], texts: &[&[u8]]) -> Option<(Vec<Copier<'_>>, Vec<Comparer<'_>>)> {
        let life = core::marker::PhantomData;
        let copies: Vec<_> = copies
            .iter()
            .map(|(bytes, aligned)| Some(Copier { entry: self.copying(*bytes, *aligned)?, bytes: *bytes, life }))
            .collect::<Option<_>>()?;
        let texts: Vec<_> =
            texts.iter().map(|text| Some(Comparer { entry: self.comparing(text)?, life })).collect::<Option<_>>()?;
        Some((copies, texts))
    }
}

/// How `bytes` bytes are covered: the widest pieces first; what is left is covered by one more of the same width that
/// overlaps, if the whole is at least so wide.
fn pieces(bytes: usize, widths: &[usize]) -> Vec<(usize, usize)> {
    let Some(&width) = widths.iter().find(|width| **width <= bytes) else { return Vec::new() };
    let mut pieces: Vec<_> = (0..bytes / width).map(|number| (number * width, width)).collect();
    if !bytes.is_multiple_of(width) {
        // Widths of one byte leave nothing; 2 and 3 bytes are single bytes.
        pieces.push((bytes - width, width));
    }
    pieces
}

/// One branch for each 64 bytes.
fn compare_vectors(draft: &mut Draft, bytes: usize, constant: u64) {
    let pieces: Vec<_> = pieces(bytes, &[16]).into_iter().enumerate().collect();
    for group in pieces.chunks(4) {
        for (number, (at, _)) in group {
            let (at, constant) = (Imm32(*at as u32), Abs32(constant + *number as u64 * 16));
            match number % 4 {
                0 => Same16 { at, constant }.append_to(draft),
                _ => AndSame16 { at, constant }.append_to(draft),
            }
        }
        AllSame { other: Target::Label(OTHER) }.append_to(draft);
    }
}

fn compare_word(draft: &mut Draft, at: usize, word: &[u8]) {
    let (place, other) = (Imm32(at as u32), Target::Label(OTHER));
    let half = |from: usize| Imm32(u32::from_le_bytes([word[from], word[from + 1], word[from + 2], word[from + 3]]));
    match word.len() {
        8 => Same8 { at: place, low: half(0), high: half(4), other }.append_to(draft),
        4 => Same4 { at: place, word: half(0), other }.append_to(draft),
        _ => Same1 { at: place, byte: Imm32(word[0].into()), other }.append_to(draft),
    }
}

impl Copier<'_> {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies.
    ///
    /// # Safety
    /// 1. [`Copier::bytes`] bytes can be read at `from` and written at `to`, and do not overlap. 2. Both are aligned for 16 if
    ///    the routine was written so.
    #[inline]
    pub unsafe fn copy(&self, to: *mut u8, from: *const u8) {
        // SAFETY: 1. the entry is a finished routine of C's calling convention. 2. The rest is the caller's promise.
        unsafe {
            let code: extern "C" fn(*mut u8, *const u8) = core::mem::transmute(self.entry);
            code(to, from);
        }
    }
}

impl Comparer<'_> {
    #[inline]
    pub fn is(&self, bytes: &[u8]) -> bool {
        // SAFETY: 1. the entry is a finished routine of C's calling convention. 2. It reads as many bytes as the text has,
        // and only if `bytes` has so many.
        unsafe {
            let code: extern "C" fn(*const u8, usize) -> u32 = core::mem::transmute(self.entry);
            code(bytes.as_ptr(), bytes.len()) != 0
        }
    }
}
