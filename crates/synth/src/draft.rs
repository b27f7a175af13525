//! Drafts: code that is still data.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::hole::{HoleKind, HoleValue, Label};
use crate::optimize::Instruction;
use crate::template::{Shape, Template};

/// Bytes that the optimizer took out, by their offset in the draft as it was factored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cut {
    pub at: u32,
    pub bytes: u32,
}

/// Where places are without the cuts, which are in order. Each look goes on where the one before ended, so places in
/// order are found in one walk.
pub(crate) struct Walk<'a> {
    cuts: &'a [Cut],
    /// The first cut that does not end before the place looked for, and what those before it took.
    next: usize,
    gone: u32,
}

impl<'a> Walk<'a> {
    pub fn new(cuts: &'a [Cut]) -> Walk<'a> {
        Walk { cuts, next: 0, gone: 0 }
    }

    fn reach(&mut self, at: u32) -> Option<&'a Cut> {
        let has_passed = |next: usize| next > 0 && self.cuts[next - 1].at + self.cuts[next - 1].bytes > at;
        if has_passed(self.next) {
            (self.next, self.gone) = (0, 0);
        }
        while let Some(cut) = self.cuts.get(self.next) {
            if cut.at + cut.bytes > at {
                return Some(cut).filter(|cut| cut.at <= at);
            }
            self.gone += cut.bytes;
            self.next += 1;
        }
        None
    }

    /// Where the byte at `at` is; `None`: cut.
    pub fn moved(&mut self, at: u32) -> Option<u32> {
        if self.reach(at).is_some() { None } else { Some(at - self.gone) }
    }

    /// Where the first byte that stays of those from `at` on is.
    pub fn place(&mut self, at: u32) -> u32 {
        self.reach(at).map_or(at, |cut| cut.at) - self.gone
    }
}

/// Which template a stretch of code came from: the raw material of the birth certificate. What was filled into its holes
/// stands in the code itself.
#[derive(Clone, Debug)]
pub struct Origin {
    pub shape: &'static Shape,
    /// Offset in the routine.
    pub offset: u32,
    pub bytes: u32,
    /// Offset before the optimizer, and what that took out of the whole routine.
    was: u32,
    cuts: Option<Arc<[Cut]>>,
}

/// The origins of a draft: its own, or those of all that are made like it.
#[derive(Clone, Default)]
struct Origins {
    own: Vec<Origin>,
    /// Instead of its own.
    shared: Option<Arc<[Origin]>>,
}

impl Origins {
    fn list(&self) -> &[Origin] {
        self.shared.as_deref().unwrap_or(&self.own)
    }

    /// A list to which more can be added.
    #[inline]
    fn own(&mut self) -> &mut Vec<Origin> {
        if self.shared.is_some() {
            self.split();
        }
        &mut self.own
    }

    #[cold]
    fn split(&mut self) {
        self.own = self.shared.take().map_or(Vec::new(), |shared| shared.to_vec());
    }

    fn into_shared(self) -> Arc<[Origin]> {
        self.shared.unwrap_or_else(|| self.own.into())
    }
}

/// A hole of a template where it lies in a routine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Number of the hole.
    pub hole: usize,
    /// Offset in the routine.
    pub offset: usize,
    /// 4, or 1 if a jump was made short.
    pub bytes: usize,
}

impl Origin {
    /// The template as one instruction, if it can be, where it lies whole in `code`, the bytes of the routine.
    pub(crate) fn row(&self, code: &[u8]) -> Option<Instruction> {
        let whole = code.get(self.offset as usize..(self.offset + self.bytes) as usize)?;
        if self.cuts.is_some() { None } else { self.shape.row(whole) }
    }

    /// The holes that are left in the code.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        self.shape.places().filter_map(|(hole, offset)| {
            let at = self.was + offset as u32;
            let Some(cuts) = &self.cuts else { return Some(Place { hole, offset: at as usize, bytes: 4 }) };
            let mut walk = Walk::new(cuts);
            let offset = walk.moved(at)? as usize;
            Some(Place { hole, offset, bytes: if walk.moved(at + 1).is_some() { 4 } else { 1 } })
        })
    }

    /// Name and value of every hole that is left, read back from `code`, the bytes of the whole routine as they run at
    /// `address`. A jump inside the routine shows as a `Label` with the offset it leads to.
    pub fn holes(&self, address: u64, code: &[u8]) -> impl Iterator<Item = (&'static str, HoleValue)> {
        (0..self.shape.holes.len()).filter_map(move |hole| {
            let place = self.places().find(|place| place.hole == hole)?;
            Some((self.shape.holes[hole], self.value(place, address, code)?))
        })
    }

    /// What stands in one hole.
    pub fn value(&self, place: Place, address: u64, code: &[u8]) -> Option<HoleValue> {
        let bytes = code.get(place.offset..place.offset + place.bytes)?;
        let field = match bytes {
            [byte] => i32::from(*byte as i8),
            _ => i32::from_le_bytes(*bytes.first_chunk()?),
        };
        let (kind, value) = match self.shape.kinds[place.hole] {
            HoleKind::Imm32 => (HoleKind::Imm32, field as u32 as u64),
            HoleKind::Target | HoleKind::Label => {
                let offset = ((place.offset + place.bytes) as u64).wrapping_add_signed(field.into());
                let inside = offset < code.len() as u64;
                if inside { (HoleKind::Label, offset) } else { (HoleKind::Target, address.wrapping_add(offset)) }
            }
            HoleKind::Abs32 => (HoleKind::Abs32, field as i64 as u64),
        };
        Some(HoleValue { kind, value })
    }
}

/// Where execution continues when an access to user memory inside `range` of the code faults and
/// the quaspace cannot supply the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FaultLanding {
    pub from: u32,
    pub to: u32,
    pub landing: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FillError {
    /// The value does not fit its hole: template, hole, value.
    DoesNotFit(&'static str, &'static str, u64),
}

/// A relative field that waits for the address of the code.
#[derive(Clone, Copy)]
pub(crate) struct Jump {
    pub at: u32,
    pub to: HoleValue,
}

/// Labels a draft can have.
const LABELS: usize = 11;

/// Room that a new draft has: enough for nearly every routine, so that making one does not move its parts.
const USUAL_BYTES: usize = 384;
const USUAL_JUMPS: usize = 24;
const USUAL_ORIGINS: usize = 12;

/// The places of a draft that are no bytes, and what is known when it is entered.
#[derive(Clone)]
pub(crate) struct Outline {
    labels: [u32; LABELS],
    landings: Vec<FaultLanding>,
    assumed: Option<(u8, u64)>,
}

/// Code in the making: bytes in ordinary memory, jumps not yet bound to a place.
pub struct Draft {
    bytes: Vec<u8>,
    jumps: Vec<Jump>,
    labels: [u32; LABELS],
    origins: Origins,
    /// Until `bind`, `landing` is the number of a label.
    landings: Vec<FaultLanding>,
    /// Drafts are moved more often than refused.
    error: Option<Box<FillError>>,
    /// What a register holds when the code is entered.
    assumed: Option<(u8, u64)>,
}

/// A draft that is bound to an address.
pub struct Bound {
    pub bytes: Vec<u8>,
    pub origins: Arc<[Origin]>,
    pub landings: Vec<FaultLanding>,
}

impl Default for Draft {
    fn default() -> Draft {
        Draft::new()
    }
}

impl Draft {
    /// An empty draft with room for a usual routine.
    pub fn new() -> Draft {
        Draft::with_room(USUAL_BYTES, USUAL_JUMPS, USUAL_ORIGINS)
    }

    /// An empty draft with room for `template` alone.
    pub fn for_one(template: &Template) -> Draft {
        Draft::with_room(template.bytes.len(), template.shape.holes.len(), 1)
    }

    /// An empty draft with room for a fragment or two.
    pub fn short() -> Draft {
        Draft::with_room(80, 4, 1)
    }

    fn with_room(bytes: usize, jumps: usize, origins: usize) -> Draft {
        Draft {
            bytes: Vec::with_capacity(bytes),
            jumps: Vec::with_capacity(jumps),
            labels: [0; LABELS],
            origins: Origins { own: Vec::with_capacity(origins), shared: None },
            landings: Vec::new(),
            error: None,
            assumed: None,
        }
    }

    /// Room for so much more: a long draft that grows bit by bit is moved again and again.
    pub fn reserve(&mut self, bytes: usize, fragments: usize) {
        self.bytes.reserve(bytes);
        self.origins.own().reserve(fragments);
    }

    /// Puts another number into the field at `at`, which a hole left: a distance that was not known before.
    pub fn amend(&mut self, at: u32, value: u32) {
        set(&mut self.bytes, at as usize, value);
    }

    /// Appends a template with its holes filled. An unfit value is remembered and refused by `bind`.
    pub fn append(&mut self, template: &Template, values: &[HoleValue]) {
        self.append_with(template, |hole, _| values[hole]);
    }

    /// As `append`, with what `value` says for each place of a hole: of which hole, and where in the draft.
    #[inline]
    pub fn append_with(&mut self, template: &Template, mut value: impl FnMut(usize, u32) -> HoleValue) {
        let base = self.bytes.len();
        self.bytes.extend_from_slice(template.bytes);
        let shape = template.shape;
        for (hole, offset) in template.places() {
            let at = base + offset;
            let value = value(hole, at as u32);
            match value.kind {
                HoleKind::Target | HoleKind::Label => self.jumps.push(Jump { at: at as u32, to: value }),
                _ if value.fits() => set(&mut self.bytes, at, value.value as u32),
                _ => self.refuse(FillError::DoesNotFit(shape.name, shape.holes[hole], value.value)),
            }
        }
        let (offset, bytes) = (base as u32, template.bytes.len() as u32);
        self.origins.own().push(Origin { shape, offset, bytes, was: offset, cuts: None });
    }

    #[cold]
    pub(crate) fn refuse(&mut self, error: FillError) {
        self.error.get_or_insert_with(|| Box::new(error));
    }

    /// Puts `label` at the current end: the next fragment begins there.
    pub fn place(&mut self, label: Label) {
        self.labels[label.0 as usize] = self.bytes.len() as u32;
    }

    /// Faults in the code from offset `from` to the current end continue at `label`, which must be placed before `bind`.
    pub fn land(&mut self, from: usize, label: Label) {
        let landing = FaultLanding { from: from as u32, to: self.bytes.len() as u32, landing: label.0.into() };
        self.landings.push(landing);
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn origins(&self) -> &[Origin] {
        self.origins.list()
    }

    pub(crate) fn landings(&self) -> &[FaultLanding] {
        &self.landings
    }

    pub(crate) fn jumps(&self) -> &[Jump] {
        &self.jumps
    }

    pub(crate) fn label(&self, label: u32) -> u32 {
        self.labels[label as usize]
    }

    /// Whoever enters the code has put `value` into this register (0: rax).
    pub fn assume(&mut self, register: u8, value: u64) {
        self.assumed = Some((register, value));
    }

    pub(crate) fn assumed(&self) -> Option<(u8, u64)> {
        self.assumed
    }

    pub(crate) fn has_error(&self) -> bool {
        self.error.is_some()
    }

    /// The same draft with other bytes and jumps of the same places.
    pub(crate) fn with(&self, bytes: Vec<u8>, jumps: Vec<Jump>) -> Draft {
        let (origins, landings) = (self.origins.clone(), self.landings.clone());
        Draft { bytes, jumps, labels: self.labels, origins, landings, error: self.error.clone(), assumed: self.assumed }
    }

    /// Copies of this draft have its origins in common from now on.
    pub(crate) fn share_origins(&mut self) {
        let origins = core::mem::take(&mut self.origins);
        self.origins.shared = Some(origins.into_shared());
    }

    /// Tells `visit` kind and offset of every filled hole that is no jump.
    pub(crate) fn each_field(&self, mut visit: impl FnMut(HoleKind, usize)) {
        for origin in self.origins() {
            for (hole, offset) in origin.shape.places() {
                if let kind @ (HoleKind::Abs32 | HoleKind::Imm32) = origin.shape.kinds[hole] {
                    visit(kind, origin.offset as usize + offset);
                }
            }
        }
    }

    pub(crate) fn outline(&self) -> Outline {
        Outline { labels: self.labels, landings: self.landings.clone(), assumed: self.assumed }
    }

    pub(crate) fn has_outline(&self, outline: &Outline) -> bool {
        self.labels == outline.labels && self.landings == outline.landings && self.assumed == outline.assumed
    }

    /// Outline and origins when the bytes at `cuts` are missing.
    pub(crate) fn without(&self, cuts: &Arc<[Cut]>) -> (Outline, Arc<[Origin]>) {
        let mut walk = Walk::new(cuts);
        let mut origins = Vec::with_capacity(self.origins().len());
        let mut offset = 0;
        for origin in self.origins() {
            // Each begins where the one before ends.
            let end = walk.place(origin.offset + origin.bytes);
            if end > offset {
                let cuts = Some(cuts.clone());
                origins.push(Origin { offset, bytes: end - offset, was: origin.was, shape: origin.shape, cuts });
            }
            offset = end;
        }
        let landing = |landing: &FaultLanding| FaultLanding {
            from: walk.place(landing.from),
            to: walk.place(landing.to),
            landing: landing.landing,
        };
        let landings = self.landings.iter().map(landing).collect();
        let labels = self.labels.map(|at| walk.place(at));
        (Outline { labels, landings, assumed: self.assumed }, origins.into())
    }

    pub(crate) fn optimized(bytes: Vec<u8>, jumps: Vec<Jump>, outline: &Outline, origins: &Arc<[Origin]>) -> Draft {
        let Outline { labels, landings, assumed } = outline.clone();
        let origins = Origins { own: Vec::new(), shared: Some(origins.clone()) };
        Draft { bytes, jumps, labels, origins, landings, error: None, assumed }
    }

    /// The finished code, which must run at `address`. Error: a value did not fit its hole.
    pub fn bind(mut self, address: u64) -> Result<Bound, FillError> {
        for landing in &mut self.landings {
            landing.landing = self.labels[landing.landing as usize];
        }
        for Jump { at, to } in &self.jumps {
            let target = match to.kind {
                HoleKind::Label => address + u64::from(self.labels[to.value as usize]),
                _ => to.value,
            };
            let relative = target.wrapping_sub(address.wrapping_add(u64::from(*at) + 4)) as i64;
            if relative != relative as i32 as i64 {
                self.error.get_or_insert_with(|| Box::new(FillError::DoesNotFit("jump", "target", target)));
            }
            set(&mut self.bytes, *at as usize, relative as u32);
        }
        match self.error {
            Some(error) => Err(*error),
            None => Ok(Bound { bytes: self.bytes, origins: self.origins.into_shared(), landings: self.landings }),
        }
    }
}

/// What stands in a field.
#[inline]
pub(crate) fn field_at(bytes: &[u8], at: usize) -> i32 {
    i32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Stores a field.
pub(crate) fn set(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}
