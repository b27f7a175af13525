//! Drafts: code that is still data.

use alloc::vec::Vec;

use crate::hole::{HoleKind, HoleValue, Label};
use crate::template::{Shape, Template};

/// Which template a stretch of code came from: the raw material of the birth certificate. What was filled into its holes
/// stands in the code itself.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    pub shape: &'static Shape,
    /// Offset in the routine.
    pub offset: u32,
    pub bytes: u32,
}

impl Origin {
    /// Name and value of every hole, read back from `code`, the bytes of the whole routine as they run at `address`. A jump
    /// inside the routine shows as a `Label` with the offset it leads to.
    pub fn holes(self, address: u64, code: &[u8]) -> impl Iterator<Item = (&'static str, HoleValue)> {
        (0..self.shape.holes.len()).filter_map(move |hole| {
            let (_, place) = self.shape.places().find(|(known, _)| *known == hole)?;
            let at = self.offset as usize + place;
            let field = i32::from_le_bytes(*code.get(at..)?.first_chunk()?);
            let (kind, value) = match self.shape.kinds[hole] {
                HoleKind::Imm32 => (HoleKind::Imm32, field as u32 as u64),
                HoleKind::Target | HoleKind::Label => {
                    let offset = (at as u64 + 4).wrapping_add_signed(field.into());
                    let inside = offset < code.len() as u64;
                    if inside { (HoleKind::Label, offset) } else { (HoleKind::Target, address.wrapping_add(offset)) }
                }
                HoleKind::Abs32 => (HoleKind::Abs32, field as i64 as u64),
            };
            Some((self.shape.holes[hole], HoleValue { kind, value }))
        })
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
struct Jump {
    at: u32,
    to: HoleValue,
}

/// Labels a draft can have.
const LABELS: usize = 8;

/// Room that a new draft has: enough for nearly every routine, so that making one does not move its parts.
const USUAL_BYTES: usize = 384;
const USUAL_JUMPS: usize = 24;
const USUAL_ORIGINS: usize = 12;

/// Code in the making: bytes in ordinary memory, jumps not yet bound to a place.
pub struct Draft {
    bytes: Vec<u8>,
    jumps: Vec<Jump>,
    labels: [u32; LABELS],
    origins: Vec<Origin>,
    /// Until `bind`, `landing` is the number of a label.
    landings: Vec<FaultLanding>,
    error: Option<FillError>,
}

/// A draft that is bound to an address.
pub struct Bound {
    pub bytes: Vec<u8>,
    pub origins: Vec<Origin>,
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

    fn with_room(bytes: usize, jumps: usize, origins: usize) -> Draft {
        Draft {
            bytes: Vec::with_capacity(bytes),
            jumps: Vec::with_capacity(jumps),
            labels: [0; LABELS],
            origins: Vec::with_capacity(origins),
            landings: Vec::new(),
            error: None,
        }
    }

    /// Appends a template with its holes filled. An unfit value is remembered and refused by `bind`.
    pub fn append(&mut self, template: &Template, values: &[HoleValue]) {
        let base = self.bytes.len();
        self.bytes.extend_from_slice(template.bytes);
        let shape = template.shape;
        for (hole, offset) in template.places() {
            let value = values[hole];
            let at = base + offset;
            match value.kind {
                HoleKind::Target | HoleKind::Label => self.jumps.push(Jump { at: at as u32, to: value }),
                _ if value.fits() => set(&mut self.bytes, at, value.value as u32),
                _ => self.refuse(FillError::DoesNotFit(shape.name, shape.holes[hole], value.value)),
            }
        }
        self.origins.push(Origin { shape, offset: base as u32, bytes: template.bytes.len() as u32 });
    }

    #[cold]
    fn refuse(&mut self, error: FillError) {
        self.error.get_or_insert(error);
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
                self.error.get_or_insert(FillError::DoesNotFit("jump", "target", target));
            }
            set(&mut self.bytes, *at as usize, relative as u32);
        }
        match self.error {
            Some(error) => Err(error),
            None => Ok(Bound { bytes: self.bytes, origins: self.origins, landings: self.landings }),
        }
    }
}

fn set(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}
