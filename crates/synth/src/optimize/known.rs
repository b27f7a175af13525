//! Plans as constants. A plan follows from the templates and from which holes name the same words, not from the words; so a plan can
//! be made when a kernel is built, and be recognized by the draft's signature.
//!
//! Packed it is what cannot be seen from the draft: cuts, bytes, jumps that lead away. Numbers are below 65,536, two bytes each.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::plan::{Away, Plan};
use crate::draft::{Cut, Draft, field_at};
use crate::hole::HoleKind;

/// FNV-1a, of 64 bits (Fowler, Noll, Vo).
struct Hash(u64);

impl Hash {
    fn add(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x0000_0100_0000_01b3);
        // Upper bits reach the lower ones too.
        self.0 ^= self.0 >> 29;
    }

    fn add_bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        words.iter().for_each(|word| self.add(u64::from_le_bytes(*word)));
        self.add(rest.iter().fold(bytes.len() as u64, |word, byte| word << 8 | u64::from(*byte)));
    }
}

/// Words that are closer than this may overlap.
const NEAR: u64 = 8;

/// Equal for drafts to which one plan fits: the same fragments, whose holes hold the same numbers, and name the same words where they
/// did, or words as far from each other as they were if that is near.
pub fn signature(draft: &Draft) -> u64 {
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    let code = draft.bytes();
    for origin in draft.origins() {
        let mut at = origin.offset as usize;
        for (_, offset) in origin.shape.places() {
            let place = origin.offset as usize + offset;
            hash.add_bytes(&code[at..place]);
            at = place + 4;
        }
        hash.add_bytes(&code[at..(origin.offset + origin.bytes) as usize]);
    }
    let mut words: Vec<u32> = Vec::with_capacity(super::plan::USUAL_FIELDS);
    draft.each_field(|kind, at| {
        let value = field_at(code, at) as u32;
        let known = words.iter().position(|word| *word == value);
        match (kind, known) {
            (HoleKind::Abs32, Some(number)) => hash.add(number as u64),
            (HoleKind::Abs32, None) => {
                hash.add(words.len() as u64);
                words.push(value);
            }
            _ => hash.add(1 << 32 | u64::from(value)),
        }
    });
    for (number, word) in words.iter().enumerate() {
        for (other, before) in words[..number].iter().enumerate() {
            let distance = u64::from(word.wrapping_sub(*before).wrapping_add(NEAR as u32));
            if (1..2 * NEAR).contains(&distance) {
                hash.add((number as u64) << 40 | (other as u64) << 8 | distance);
            }
        }
    }
    draft.add_outline(|number| hash.add(number));
    hash.0
}

/// A plan as bytes.
pub(super) fn packed(plan: &Plan) -> Vec<u8> {
    let mut all = Vec::new();
    let mut put = |number: usize| all.extend((number as u16).to_le_bytes());
    plan.instructions.into_iter().for_each(&mut put);
    let cuts = plan.cuts();
    put(cuts.len());
    cuts.iter().for_each(|cut| [cut.at, cut.bytes].into_iter().for_each(|part| put(part as usize)));
    put(plan.away.len());
    plan.away.iter().for_each(|away| [away.at, away.jump].into_iter().for_each(|part| put(part.into())));
    // The values come from the draft.
    let mut bytes = plan.bytes.clone();
    for to in plan.fields.iter().filter_map(|field| field.to) {
        bytes[usize::from(to)..][..4].fill(0);
    }
    all.extend(bytes);
    all
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take(&mut self) -> Option<u16> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u16::from_le_bytes(*number))
    }
}

/// The plan that was packed, for a draft with the signature of the one it was made for. `None`: these are no bytes of a plan.
pub(super) fn unpacked(draft: &Draft, packed: &[u8]) -> Option<Plan> {
    let mut all = Reader(packed);
    let instructions = [all.take()?, all.take()?].map(usize::from);
    let cuts = all.take()?;
    let cut = |_| Some(Cut { at: all.take()?.into(), bytes: all.take()?.into() });
    let cuts: Option<Arc<[Cut]>> = (0..cuts).map(cut).collect();
    let mut plan = Plan::begin(draft, &cuts?, instructions);
    for _ in 0..all.take()? {
        plan.away.push(Away { at: all.take()?, jump: all.take()? });
    }
    plan.bytes.extend_from_slice(all.0);
    Some(plan)
}
