//! A plan: what an optimized draft looks like, apart from the values in its holes.
//!
//! Drafts of the same fragments, filled so that the same holes hold the same words, are optimized alike. So the work is
//! done for the first; for the others the plan's bytes are copied and their own values filled in.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::decode::{Kind, Width};
use super::flow::{Fate, Flow, To};
use crate::draft::{Cut, Draft, Jump, Origin, moved, moved_place};
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
    jumps: usize,
    assumed: Option<(u8, u64)>,
    fields: Vec<Field>,
    /// The different words that the draft's addresses named.
    words: Vec<i32>,
    bytes: Vec<u8>,
    away: Vec<Away>,
    cuts: Arc<[Cut]>,
    /// Instructions of the draft, and of the result.
    pub instructions: [usize; 2],
}

/// Words that are closer than this may overlap.
const WORD_BYTES: u32 = 8;

impl Plan {
    pub(super) fn of(draft: &Draft, flow: &Flow<'_>) -> Plan {
        let narrow = narrow_jumps(flow);
        let cuts = cuts(flow, &narrow);
        let mut plan = Plan {
            shapes: draft.origins().iter().map(|origin| (origin.shape, origin.offset)).collect(),
            draft_bytes: draft.len(),
            jumps: draft.jumps().len(),
            assumed: draft.assumed(),
            fields: Vec::new(),
            words: Vec::new(),
            bytes: Vec::new(),
            away: Vec::new(),
            cuts: cuts.into(),
            instructions: [flow.nodes.len(), (0..flow.nodes.len()).filter(|at| flow.is_live(*at)).count()],
        };
        plan.note_fields(draft);
        plan.write(draft, flow, &narrow);
        plan
    }

    fn note_fields(&mut self, draft: &Draft) {
        for (kind, from) in draft.fields() {
            let value = value_at(draft.bytes(), from);
            let (exact, word) = match kind {
                HoleKind::Abs32 => (None, self.word_number(value)),
                _ => (Some(value), 0),
            };
            let to = moved(&self.cuts, from as u32).map(|to| to as u16);
            self.fields.push(Field { from: from as u16, to, exact, word });
        }
    }

    fn word_number(&mut self, value: i32) -> u8 {
        let known = self.words.iter().position(|word| *word == value);
        known.unwrap_or_else(|| {
            self.words.push(value);
            self.words.len() - 1
        }) as u8
    }

    /// The bytes of the result, with jumps inside it bound.
    fn write(&mut self, draft: &Draft, flow: &Flow<'_>, narrow: &[bool]) {
        let code = draft.bytes();
        let place = |number: usize| {
            let at = flow.live_from(number);
            flow.nodes.get(at).map_or(code.len() as u32, |node| node.instruction.at as u32)
        };
        let cuts = self.cuts.clone();
        let position = |at: u32| moved_place(&cuts, at);
        for (number, node) in flow.nodes.iter().enumerate() {
            let instruction = &node.instruction;
            let old = &code[instruction.at..instruction.at + instruction.bytes];
            let relative = |end: usize| match node.to {
                Some(To::Node(target)) => i64::from(position(place(target))) - end as i64,
                _ => 0,
            };
            match (node.fate, instruction.kind) {
                (Fate::Cut, _) => {}
                (Fate::Copy { register, from, width }, _) => self.bytes.extend(copy(register, from, width)),
                (Fate::Kept, Kind::Jump { .. } | Kind::Branch { .. }) if narrow[number] || old.len() == 2 => {
                    let opcode = match instruction.kind {
                        Kind::Branch { condition, .. } => 0x70 | condition,
                        _ => 0xEB,
                    };
                    let end = self.bytes.len() + 2;
                    self.bytes.extend([opcode, relative(end) as u8]);
                }
                (Fate::Kept, Kind::Jump { .. } | Kind::Branch { .. }) => {
                    self.bytes.extend_from_slice(old);
                    let at = self.bytes.len() - 4;
                    if let Some(To::Away(jump)) = node.to {
                        self.away.push(Away { at: at as u16, jump: jump as u16 });
                    }
                    let end = self.bytes.len();
                    let field = relative(end) as i32;
                    self.bytes[at..].copy_from_slice(&field.to_le_bytes());
                }
                (Fate::Kept, _) => self.bytes.extend_from_slice(old),
            }
        }
        debug_assert_eq!(self.bytes.len() as u32, position(code.len() as u32));
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
        Some(draft.optimized(bytes, jumps, &self.cuts))
    }

    fn fits(&self, draft: &Draft) -> bool {
        let origins = draft.origins();
        if draft.has_error()
            || draft.len() != self.draft_bytes
            || origins.len() != self.shapes.len()
            || draft.jumps().len() != self.jumps
            || draft.assumed() != self.assumed
        {
            return false;
        }
        let is = |(origin, known): (&Origin, &(&'static Shape, u32))| {
            core::ptr::eq(origin.shape, known.0) && origin.offset == known.1
        };
        origins.iter().zip(&self.shapes).all(is) && self.words_fit(draft)
    }

    /// Whether the same holes name the same words, and different ones words that do not overlap, as when the plan was made.
    fn words_fit(&self, draft: &Draft) -> bool {
        const WORDS_MAX: usize = 32;
        let mut words: [Option<i32>; WORDS_MAX] = [None; WORDS_MAX];
        if self.words.len() > WORDS_MAX {
            return false;
        }
        for field in &self.fields {
            let value = value_at(draft.bytes(), field.from.into());
            let fits = match field.exact {
                Some(exact) => value == exact,
                None => *words[usize::from(field.word)].get_or_insert(value) == value,
            };
            if !fits {
                return false;
            }
        }
        let known = &self.words;
        (0..known.len()).all(|one| {
            (0..one).all(|other| {
                let (Some(here), Some(there)) = (words[one], words[other]) else { return false };
                let was = known[one].wrapping_sub(known[other]);
                let is = here.wrapping_sub(there);
                is == was || (is.unsigned_abs() >= WORD_BYTES && was.unsigned_abs() >= WORD_BYTES)
            })
        })
    }
}

fn value_at(bytes: &[u8], at: usize) -> i32 {
    i32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Which wide jumps can be narrow: all, but those that do not reach.
fn narrow_jumps(flow: &Flow<'_>) -> Vec<bool> {
    let is_inside = |number: usize| {
        let node = &flow.nodes[number];
        let wide = matches!(node.instruction.kind, Kind::Jump { wide: true } | Kind::Branch { wide: true, .. });
        wide && flow.is_live(number) && matches!(node.to, Some(To::Node(_)))
    };
    let mut narrow: Vec<bool> = (0..flow.nodes.len()).map(is_inside).collect();
    loop {
        let mut places = vec![0i64; flow.nodes.len() + 1];
        for number in 0..flow.nodes.len() {
            places[number + 1] = places[number] + bytes_of(flow, number, narrow[number]) as i64;
        }
        let mut changed = false;
        for number in 0..flow.nodes.len() {
            if let Some(To::Node(target)) = flow.nodes[number].to.filter(|_| narrow[number]) {
                let reaches = i8::try_from(places[target] - places[number + 1]).is_ok();
                narrow[number] = reaches;
                changed |= !reaches;
            }
        }
        if !changed {
            return narrow;
        }
    }
}

fn bytes_of(flow: &Flow<'_>, number: usize, narrow: bool) -> usize {
    let node = &flow.nodes[number];
    match node.fate {
        Fate::Cut => 0,
        Fate::Copy { register, from, width } => copy(register, from, width).count(),
        Fate::Kept if narrow => 2,
        Fate::Kept => node.instruction.bytes,
    }
}

/// What is missing in the result, by offset in the draft. Of a jump made narrow the first byte of its field stays.
fn cuts(flow: &Flow<'_>, narrow: &[bool]) -> Vec<Cut> {
    let mut cuts: Vec<Cut> = Vec::new();
    let mut cut = |at: usize, bytes: usize| {
        let (at, bytes) = (at as u32, bytes as u32);
        match cuts.last_mut() {
            Some(last) if last.at + last.bytes == at => last.bytes += bytes,
            _ => cuts.push(Cut { at, bytes }),
        }
    };
    for (number, node) in flow.nodes.iter().enumerate() {
        let (at, bytes) = (node.instruction.at, node.instruction.bytes);
        match node.fate {
            Fate::Cut => cut(at, bytes),
            Fate::Copy { .. } => {
                let kept = bytes_of(flow, number, false);
                cut(at + kept, bytes - kept);
            }
            Fate::Kept if narrow[number] => {
                if bytes == 6 {
                    cut(at + 1, 1);
                }
                cut(at + bytes - 3, 3);
            }
            Fate::Kept => {}
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
