//! Drafts: code that is still data.

use alloc::vec::Vec;

use crate::hole::{HoleKind, HoleValue, Label};
use crate::template::Template;

/// Which template a stretch of code came from, and what was filled into it: the raw material of the
/// birth certificate.
#[derive(Clone, Debug)]
pub struct Origin {
    pub template: &'static str,
    pub offset: u32,
    pub bytes: u32,
    pub holes: Vec<(&'static str, HoleValue)>,
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

/// Labels a draft can have.
const LABELS: usize = 8;

/// Code in the making: bytes in ordinary memory, jumps not yet bound to a place.
#[derive(Default)]
pub struct Draft {
    bytes: Vec<u8>,
    targets: Vec<(u32, u64)>,
    jumps: Vec<(u32, u8)>,
    labels: [u32; LABELS],
    origins: Vec<Origin>,
    landings: Vec<FaultLanding>,
    late_landings: Vec<(u32, u32, Label)>,
    error: Option<FillError>,
}

impl Draft {
    pub fn new() -> Draft {
        Draft::default()
    }

    /// Appends a template with its holes filled. An unfit value is remembered and refused by `bind`.
    pub fn append(&mut self, template: &Template, values: &[HoleValue]) {
        let base = self.bytes.len();
        self.bytes.extend_from_slice(template.bytes);
        template.each_place(|hole, offset| {
            let value = values[hole];
            if !value.fits() {
                self.error.get_or_insert(FillError::DoesNotFit(template.name, template.holes[hole], value.value));
            }
            let at = (base + offset) as u32;
            match value.kind {
                HoleKind::Target => self.targets.push((at, value.value)),
                HoleKind::Label => self.jumps.push((at, value.value as u8)),
                _ => self.set(at, value.value as u32),
            }
        });
        let end = self.bytes.len() as u32;
        let holes = template.holes.iter().copied().zip(values.iter().copied()).collect();
        let bytes = end - base as u32;
        self.origins.push(Origin { template: template.name, offset: base as u32, bytes, holes });
    }

    fn set(&mut self, at: u32, value: u32) {
        self.bytes[at as usize..at as usize + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Puts `label` at the current end: the next fragment begins there.
    pub fn place(&mut self, label: Label) {
        self.labels[label.0 as usize] = self.bytes.len() as u32;
    }

    /// Faults in the code from offset `from` to the current end continue at `label`, which must be placed before `bind`.
    pub fn land(&mut self, from: usize, label: Label) {
        self.late_landings.push((from as u32, self.bytes.len() as u32, label));
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn origins(&self) -> &[Origin] {
        &self.origins
    }

    pub fn landings(&self) -> &[FaultLanding] {
        &self.landings
    }

    /// The finished bytes for code that will run at `address`.
    pub fn bind(&mut self, address: u64) -> Result<&[u8], FillError> {
        for (from, to, label) in core::mem::take(&mut self.late_landings) {
            self.landings.push(FaultLanding { from, to, landing: self.labels[label.0 as usize] });
        }
        for (offset, label) in core::mem::take(&mut self.jumps) {
            let relative = self.labels[label as usize].wrapping_sub(offset + 4);
            self.set(offset, relative);
        }
        for &(offset, target) in &self.targets {
            let next = address.wrapping_add(offset as u64 + 4);
            let relative = target.wrapping_sub(next) as i64;
            if relative != relative as i32 as i64 {
                self.error.get_or_insert(FillError::DoesNotFit("jump", "target", target));
            }
            self.bytes[offset as usize..offset as usize + 4].copy_from_slice(&(relative as i32).to_le_bytes());
        }
        match self.error {
            Some(error) => Err(error),
            None => Ok(&self.bytes),
        }
    }
}
