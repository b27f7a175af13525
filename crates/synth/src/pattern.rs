//! A pattern: a draft of which others are made that do the same to other data of the same shape.

use alloc::vec::Vec;

use crate::draft::{Draft, FillError, field_at, set};
use crate::hole::{Abs32, HoleKind, HoleValue};

/// An address as the area that it is in, and how far from its start.
#[derive(Clone, Copy)]
struct Inside {
    area: u8,
    offset: u32,
}

impl Inside {
    /// In the first of `areas`, starts and sizes in bytes, that contains it.
    fn of(address: u64, areas: &[(u64, u64)]) -> Option<Inside> {
        let offset = |start: u64| address.wrapping_sub(start);
        let area = areas.iter().position(|(start, bytes)| offset(*start) < *bytes)?;
        Some(Inside { area: area as u8, offset: offset(areas[area].0) as u32 })
    }

    fn address(self, starts: &[(u64, u64)]) -> u64 {
        starts[usize::from(self.area)].0.wrapping_add(self.offset.into())
    }
}

/// A draft, and which of its fields and jumps name what others have elsewhere.
pub struct Pattern {
    draft: Draft,
    /// Offsets of fields.
    fields: Vec<(u32, Inside)>,
    /// Numbers of jumps.
    jumps: Vec<(usize, Inside)>,
}

impl Pattern {
    /// Of a draft for the data in these areas, each its start and its size in bytes. There are at most 256.
    pub fn of(mut draft: Draft, areas: &[(u64, u64)]) -> Pattern {
        draft.share_origins();
        let mut fields = Vec::with_capacity(draft.origins().len());
        draft.each_field(|kind, at| {
            if kind == HoleKind::Abs32
                && let Some(inside) = Inside::of(field_at(draft.bytes(), at) as i64 as u64, areas)
            {
                fields.push((at as u32, inside));
            }
        });
        let targets = draft.jumps().iter().enumerate().filter(|(_, jump)| jump.to.kind == HoleKind::Target);
        let jumps = targets.filter_map(|(number, jump)| Some((number, Inside::of(jump.to.value, areas)?))).collect();
        Pattern { draft, fields, jumps }
    }

    /// The draft for other data: the same areas in the same order.
    pub fn filled(&self, areas: &[(u64, u64)]) -> Draft {
        let (mut bytes, mut jumps) = (self.draft.bytes().to_vec(), self.draft.jumps().to_vec());
        let mut unfit = None;
        for (at, inside) in &self.fields {
            let value = HoleValue::from(Abs32(inside.address(areas)));
            if !value.fits() {
                unfit = Some(FillError::DoesNotFit("pattern", "address", value.value));
            }
            set(&mut bytes, *at as usize, value.value as u32);
        }
        for (number, inside) in &self.jumps {
            jumps[*number].to.value = inside.address(areas);
        }
        let mut draft = self.draft.with(bytes, jumps);
        if let Some(unfit) = unfit {
            draft.refuse(unfit);
        }
        draft
    }
}

#[cfg(test)]
mod tests {
    #![allow(unsafe_code, reason = "the template macro names linker symbols")]

    use super::Pattern;
    use crate::{Abs32, Draft, Target, jump, template};

    template! {
        /// A test template.
        pub struct Named { counter: Abs32, next: Target }
        "inc dword ptr [{counter}]",
        jump!(jmp next),
    }

    fn draft(named: &[(u64, u64); 2]) -> Draft {
        let [first, second] =
            named.map(|(counter, next)| Named { counter: Abs32(counter), next: Target::Address(next) });
        let mut draft = first.draft();
        second.append_to(&mut draft);
        draft
    }

    #[test]
    fn a_draft_for_other_data_names_the_others() {
        let pattern = Pattern::of(draft(&[(0x10, 0x2000), (0x18, 0x3000)]), &[(0x10, 4), (0x3000, 1)]);
        let bytes = |draft: Draft| draft.bind(0x1000).unwrap().bytes;
        let wanted = draft(&[(0x50, 0x2000), (0x18, 0x3040)]);
        assert_eq!(bytes(pattern.filled(&[(0x50, 4), (0x3040, 1)])), bytes(wanted));
        assert!(pattern.filled(&[(1 << 40, 4), (0x3000, 1)]).bind(0x1000).is_err());
    }
}
