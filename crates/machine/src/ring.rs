//! The order of the ready threads, over thread ids: what the ready ring of a machine means, for machines without code and for
//! tests.

use alloc::vec::Vec;

use crate::TteId;

/// A link to store: from a thread to its successor (`None`: the idle thread).
pub type Change = (TteId, Option<TteId>);

/// A doubly linked ring of ready threads, and which links its last change made necessary.
#[derive(Default)]
pub struct Ring {
    links: Vec<Option<Links>>,
    any: Option<TteId>,
    len: usize,
    changed: [Option<Change>; 2],
}

#[derive(Clone, Copy)]
struct Links {
    before: TteId,
    after: TteId,
}

impl Ring {
    /// An empty ring.
    pub fn new() -> Ring {
        Ring::default()
    }

    /// The first to run when nobody does: the idle thread leads there.
    pub fn any(&self) -> Option<TteId> {
        self.any
    }

    fn links(&self, id: TteId) -> Option<Links> {
        self.links.get(id.0 as usize).copied().flatten()
    }

    /// All members in the order in which they will run, from `any` on.
    pub fn order(&self) -> Vec<TteId> {
        let mut order: Vec<TteId> = self.any.into_iter().collect();
        while let Some(links) = order.last().and_then(|last| self.links(*last))
            && Some(links.after) != self.any
            && order.len() <= self.len
        {
            order.push(links.after);
        }
        order
    }

    /// Puts `new` behind `place`; when `place` is not in the ring (idle), behind some member.
    pub fn insert_after(&mut self, place: TteId, new: TteId) {
        let index = new.0 as usize;
        if self.links.len() <= index {
            self.links.resize(index + 1, None);
        }
        debug_assert!(self.links[index].is_none(), "thread {new:?} is already ready");
        let before = if self.links(place).is_some() { Some(place) } else { self.any };
        let Some(before) = before else {
            self.links[index] = Some(Links { before: new, after: new });
            self.any = Some(new);
            self.len = 1;
            self.changed = [Some((new, Some(new))), None];
            return;
        };
        let Some(Links { after, .. }) = self.links(before) else { return };
        self.links[index] = Some(Links { before, after });
        self.set_after(before, new);
        self.set_before(after, new);
        self.len += 1;
        self.changed = [Some((before, Some(new))), Some((new, Some(after)))];
    }

    /// Puts `new` in front of `place`, so that it runs after all others.
    pub fn insert_before(&mut self, place: TteId, new: TteId) {
        let before = self.links(place).map_or(place, |links| links.before);
        self.insert_after(before, new);
    }

    /// Takes `id` out; returns who follows it, if anyone.
    pub fn remove(&mut self, id: TteId) -> Option<TteId> {
        let links = self.links.get_mut(id.0 as usize)?.take()?;
        self.len -= 1;
        if self.len == 0 {
            self.any = None;
            self.changed = [None; 2];
            return None;
        }
        self.set_after(links.before, links.after);
        self.set_before(links.after, links.before);
        self.any = Some(links.after);
        self.changed = [Some((links.before, Some(links.after))), None];
        Some(links.after)
    }

    /// Marks both links of `id` for storing anew.
    pub fn touch(&mut self, id: TteId) {
        if let Some(links) = self.links(id) {
            self.changed = [Some((links.before, Some(id))), Some((id, Some(links.after)))];
        }
    }

    /// The links to store.
    pub fn take_changed(&mut self) -> [Option<Change>; 2] {
        core::mem::take(&mut self.changed)
    }

    fn set_after(&mut self, id: TteId, after: TteId) {
        if let Some(Some(links)) = self.links.get_mut(id.0 as usize) {
            links.after = after;
        }
    }

    fn set_before(&mut self, id: TteId, before: TteId) {
        if let Some(Some(links)) = self.links.get_mut(id.0 as usize) {
            links.before = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(ring: &Ring, from: u32) -> Vec<u32> {
        let mut seen = Vec::from([from]);
        let mut at = ring.links(TteId(from)).unwrap().after;
        while at.0 != from {
            seen.push(at.0);
            at = ring.links(at).unwrap().after;
        }
        seen
    }

    #[test]
    fn an_unblocked_thread_runs_next() {
        let mut ring = Ring::new();
        ring.insert_after(TteId(0), TteId(1));
        ring.insert_after(TteId(1), TteId(2));
        ring.insert_after(TteId(1), TteId(3));
        assert_eq!(order(&ring, 1), [1, 3, 2]);
        assert_eq!(ring.take_changed(), [Some((TteId(1), Some(TteId(3)))), Some((TteId(3), Some(TteId(2))))]);
    }

    #[test]
    fn the_ring_closes_over_a_removed_thread() {
        let mut ring = Ring::new();
        for id in 1..=3 {
            ring.insert_after(TteId(0), TteId(id));
        }
        let after = ring.remove(TteId(2)).unwrap();
        assert_eq!(order(&ring, after.0).len(), 2);
        ring.remove(TteId(1));
        assert_eq!(ring.remove(TteId(3)), None);
        assert_eq!(ring.len, 0);
    }
}
