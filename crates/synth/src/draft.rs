//! Drafts: code that is still data.

use alloc::vec::Vec;

use crate::hole::{HoleKind, HoleValue};
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

/// Code in the making: bytes in ordinary memory, jumps not yet bound to a place.
#[derive(Default)]
pub struct Draft {
    bytes: Vec<u8>,
    targets: Vec<(u32, u64)>,
    origins: Vec<Origin>,
    landings: Vec<FaultLanding>,
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
            if value.kind == HoleKind::Target {
                self.targets.push(((base + offset) as u32, value.value));
            } else {
                self.bytes[base + offset..base + offset + 4].copy_from_slice(&(value.value as u32).to_le_bytes());
            }
        });
        let end = self.bytes.len() as u32;
        if let Some(landing) = template.landing {
            let landing = base as u32 + landing as u32;
            self.landings.push(FaultLanding { from: base as u32, to: end, landing });
        }
        let holes = template.holes.iter().copied().zip(values.iter().copied()).collect();
        let bytes = end - base as u32;
        self.origins.push(Origin { template: template.name, offset: base as u32, bytes, holes });
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
