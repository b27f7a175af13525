//! A plan: what an optimized draft looks like, apart from the values in its holes.
//!
//! Drafts of the same fragments, filled so that the same holes hold the same words, are optimized alike. So the work is
//! done for the first; for the others the plan's bytes are copied and their own values filled in.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::flow::{Fate, Flow, To};
use super::instruction::{Kind, Width};
use crate::draft::{Cut, Draft, Jump, Origin, Outline, Walk, field_at};
use crate::hole::HoleKind;
use crate::template::Shape;

/// A field that is filled from the draft: a hole that is no jump.
struct Field {
    from: u16,
    /// `None`: cut.
    to: Option<u16>,
    /// The value, if the plan depends on it.
    exact: Option<i32>,
    /// Number in `words` of the word that it names.
    word: u8,
}

struct Away {
    at: u16,
    /// Number of the draft's jump that leads there.
    jump: u16,
}

/// How the drafts of one composition are optimized.
pub struct Plan {
    /// What the drafts are made of: shape, and its offset.
    shapes: Vec<(&'static Shape, u32)>,
    draft_bytes: usize,
    /// Labels, landings and assumption of the drafts.
    outline: Outline,
    /// Where the drafts' jumps are, and the labels that they lead to.
    jumps: Vec<(u32, Option<u64>)>,
    /// What becomes of the outline, and of the origins.
    result: Outline,
    origins: Arc<[Origin]>,
    fields: Vec<Field>,
    /// The different words that the draft's addresses named.
    words: Vec<i32>,
    bytes: Vec<u8>,
    away: Vec<Away>,
    /// Instructions of the draft, and of the result; a template that was taken for one counts as one.
    pub instructions: [usize; 2],
}

/// Room for the fields and words of nearly every routine.
const USUAL_FIELDS: usize = 24;

/// Words that are closer than this may overlap.
const WORD_BYTES: u32 = 8;

impl Plan {
    pub(super) fn of(draft: &Draft, flow: &Flow<'_>) -> Plan {
        let spots = spots(flow);
        let cuts: Arc<[Cut]> = cuts(flow, &spots).into();
        let (result, origins) = draft.without(&cuts);
        let live = flow.nodes.iter().filter(|node| node.fate != Fate::Cut).count();
        let mut plan = Plan {
            shapes: draft.origins().iter().map(|origin| (origin.shape, origin.offset)).collect(),
            draft_bytes: draft.len(),
            outline: draft.outline(),
            jumps: draft.jumps().iter().map(outlined).collect(),
            result,
            origins,
            fields: Vec::with_capacity(USUAL_FIELDS),
            words: Vec::with_capacity(USUAL_FIELDS),
            bytes: Vec::with_capacity(draft.len()),
            away: Vec::with_capacity(draft.jumps().len()),
            instructions: [flow.nodes.len(), live],
        };
        plan.note_fields(draft, &cuts);
        plan.write(draft, flow, &spots);
        plan
    }

    fn note_fields(&mut self, draft: &Draft, cuts: &[Cut]) {
        let mut walk = Walk::new(cuts);
        draft.each_field(|kind, from| {
            let value = field_at(draft.bytes(), from);
            let (exact, word) = match kind {
                HoleKind::Abs32 => (None, self.word_number(value)),
                _ => (Some(value), 0),
            };
            let to = walk.moved(from as u32).map(|to| to as u16);
            self.fields.push(Field { from: from as u16, to, exact, word });
        });
    }

    fn word_number(&mut self, value: i32) -> u8 {
        let known = self.words.iter().position(|word| *word == value);
        known.unwrap_or_else(|| {
            self.words.push(value);
            self.words.len() - 1
        }) as u8
    }

    /// The bytes of the result, with jumps inside it bound.
    fn write(&mut self, draft: &Draft, flow: &Flow<'_>, spots: &[Spot]) {
        let code = draft.bytes();
        // What stays as it is goes over in one piece.
        let mut copied = 0;
        for (number, (node, spot)) in flow.nodes.iter().zip(spots).enumerate() {
            let instruction = &node.instruction;
            let (at, end) = (usize::from(node.at), usize::from(node.at) + node.bytes());
            let stays = node.fate == Fate::Kept && !spot.is_narrow;
            if stays && node.to.is_none() {
                continue;
            }
            self.bytes.extend_from_slice(&code[copied..if stays { end } else { at }]);
            copied = end;
            let relative = match node.to {
                Some(To::Node(target)) => i32::from(spots[usize::from(target)].at) - i32::from(spots[number + 1].at),
                _ => 0,
            };
            match (node.fate, instruction.kind) {
                (Fate::Cut, _) => {}
                (Fate::Copy { register, from, width }, _) => self.bytes.extend(copy(register, from, width)),
                (Fate::Kept, Kind::Branch { condition, .. }) if spot.is_narrow => {
                    self.bytes.extend([0x70 | condition, relative as u8]);
                }
                (Fate::Kept, _) if spot.is_narrow => self.bytes.extend([0xEB, relative as u8]),
                (Fate::Kept, _) if instruction.bytes == NARROW_BYTES => {
                    self.bytes.pop();
                    self.bytes.push(relative as u8);
                }
                (Fate::Kept, _) => {
                    let at = self.bytes.len() - 4;
                    if let Some(To::Away(jump)) = node.to {
                        self.away.push(Away { at: at as u16, jump });
                    }
                    self.bytes[at..].copy_from_slice(&relative.to_le_bytes());
                }
            }
        }
        self.bytes.extend_from_slice(&code[copied..]);
        debug_assert_eq!(self.bytes.len(), spots.last().map_or(0, |end| usize::from(end.at)));
    }

    /// The optimized draft. `None`: this draft is of another kind, so a plan must be made for it.
    pub fn apply(&self, draft: &Draft) -> Option<Draft> {
        if !self.fits(draft) {
            return None;
        }
        let mut bytes = self.bytes.clone();
        for field in &self.fields {
            if let Some(to) = field.to {
                let (from, to) = (usize::from(field.from), usize::from(to));
                bytes[to..to + 4].copy_from_slice(&draft.bytes()[from..from + 4]);
            }
        }
        let jump = |away: &Away| Jump { at: away.at.into(), to: draft.jumps()[usize::from(away.jump)].to };
        let jumps = self.away.iter().map(jump).collect();
        Some(Draft::optimized(bytes, jumps, &self.result, &self.origins))
    }

    fn fits(&self, draft: &Draft) -> bool {
        let origins = draft.origins();
        if draft.has_error()
            || draft.len() != self.draft_bytes
            || origins.len() != self.shapes.len()
            || draft.jumps().len() != self.jumps.len()
            || !draft.has_outline(&self.outline)
        {
            return false;
        }
        let is = |(origin, known): (&Origin, &(&'static Shape, u32))| {
            core::ptr::eq(origin.shape, known.0) && origin.offset == known.1
        };
        let mut jumps = draft.jumps().iter().zip(&self.jumps);
        origins.iter().zip(&self.shapes).all(is)
            && jumps.all(|(jump, known)| outlined(jump) == *known)
            && self.words_fit(draft)
    }

    /// Whether the same holes name the same words, and different ones words that do not overlap, as when the plan was made.
    fn words_fit(&self, draft: &Draft) -> bool {
        const WORDS_MAX: usize = 32;
        let known = &self.words;
        if known.len() > WORDS_MAX {
            return false;
        }
        // How far each word has moved.
        let mut moves = [0; WORDS_MAX];
        let mut seen = 0u32;
        for field in &self.fields {
            let value = field_at(draft.bytes(), field.from.into());
            let word = usize::from(field.word);
            let fits = match field.exact {
                Some(exact) => value == exact,
                None => {
                    let moved = value.wrapping_sub(known[word]);
                    if seen & 1 << word == 0 {
                        (moves[word], seen) = (moved, seen | 1 << word);
                    }
                    moves[word] == moved
                }
            };
            if !fits {
                return false;
            }
        }
        let is_far = |distance: i32| distance.unsigned_abs() >= WORD_BYTES;
        (0..known.len()).all(|one| {
            (0..one).all(|other| {
                let moved = moves[one].wrapping_sub(moves[other]);
                let was = known[one].wrapping_sub(known[other]);
                moved == 0 || (is_far(was) && is_far(was.wrapping_add(moved)))
            })
        })
    }
}

fn outlined(jump: &Jump) -> (u32, Option<u64>) {
    (jump.at, (jump.to.kind == HoleKind::Label).then_some(jump.to.value))
}

/// Where an instruction is in the result.
#[derive(Clone, Copy)]
struct Spot {
    at: u16,
    bytes: u8,
    /// A wide jump that became a narrow one.
    is_narrow: bool,
}

/// The spots of all instructions, and the end. All wide jumps inside the draft become narrow, but those that do not reach.
fn spots(flow: &Flow<'_>) -> Vec<Spot> {
    let first = flow.nodes.iter().map(|node| {
        let wide = matches!(node.instruction.kind, Kind::Jump { wide: true } | Kind::Branch { wide: true, .. });
        let is_narrow = wide && node.fate == Fate::Kept && matches!(node.to, Some(To::Node(_)));
        let bytes = match node.fate {
            Fate::Cut => 0,
            Fate::Copy { register, from, width } => copy(register, from, width).count() as u8,
            Fate::Kept if is_narrow => NARROW_BYTES,
            Fate::Kept => node.instruction.bytes,
        };
        Spot { at: 0, bytes, is_narrow }
    });
    let mut spots = Vec::with_capacity(flow.nodes.len() + 1);
    spots.extend(first);
    spots.push(Spot { at: 0, bytes: 0, is_narrow: false });
    let mut changed = true;
    while core::mem::take(&mut changed) {
        let mut at = 0;
        for spot in &mut spots {
            spot.at = at;
            at += u16::from(spot.bytes);
        }
        for number in flow.jumps() {
            let node = &flow.nodes[number];
            if let Some(To::Node(target)) = node.to.filter(|_| spots[number].is_narrow) {
                let end = i32::from(spots[number + 1].at);
                if i8::try_from(i32::from(spots[usize::from(target)].at) - end).is_err() {
                    (spots[number].is_narrow, spots[number].bytes) = (false, node.instruction.bytes);
                    changed = true;
                }
            }
        }
    }
    spots
}

const NARROW_BYTES: u8 = 2;

/// What is missing in the result, by offset in the draft. Of a jump made narrow the first byte of its field stays.
fn cuts(flow: &Flow<'_>, spots: &[Spot]) -> Vec<Cut> {
    let mut cuts: Vec<Cut> = Vec::with_capacity(flow.nodes.len() / 2);
    let mut cut = |at: usize, bytes: usize| {
        let (at, bytes) = (at as u32, bytes as u32);
        match cuts.last_mut() {
            Some(last) if last.at + last.bytes == at => last.bytes += bytes,
            _ => cuts.push(Cut { at, bytes }),
        }
    };
    for (node, spot) in flow.nodes.iter().zip(spots) {
        let (at, bytes, kept) = (usize::from(node.at), node.bytes(), usize::from(spot.bytes));
        if spot.is_narrow {
            if bytes == 6 {
                cut(at + 1, 1);
            }
            cut(at + bytes - 3, 3);
        } else if kept < bytes {
            cut(at + kept, bytes - kept);
        }
    }
    cuts
}

/// `mov register, from`, or `movzx register, from` of its low half word.
fn copy(register: u8, from: u8, width: Width) -> impl Iterator<Item = u8> {
    let high = |number: u8| number >> 3;
    let bytes: [Option<u8>; 4] = match width {
        Width::Half => {
            let rex = 0x40 | high(register) << 2 | high(from);
            [(rex != 0x40).then_some(rex), Some(0x0F), Some(0xB7), Some(0xC0 | (register & 7) << 3 | from & 7)]
        }
        _ => {
            let rex = 0x48 | high(from) << 2 | high(register);
            [Some(rex), Some(0x89), Some(0xC0 | (from & 7) << 3 | register & 7), None]
        }
    };
    bytes.into_iter().flatten()
}
