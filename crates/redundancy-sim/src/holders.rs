//! Which nodes hold a copy of each object: eight bytes an object, and a list for those with many copies.

use redundancy::{NodeId, ObjectId, mutant};

const INLINE: usize = 3;

#[derive(Clone, Copy, Debug)]
struct Few {
    /// Above `INLINE`: the nodes are in the list whose number the first two words are.
    len: u16,
    nodes: [NodeId; INLINE],
}

/// The directory of copies.
#[derive(Clone, Debug)]
pub struct Holders {
    few: Vec<Few>,
    many: Vec<Vec<NodeId>>,
    /// Lists that nobody uses.
    free: Vec<u32>,
}

impl Few {
    fn list(&self) -> usize {
        usize::from(self.nodes[0]) | usize::from(self.nodes[1]) << 16
    }

    fn set_list(&mut self, list: u32) {
        self.nodes[..2].copy_from_slice(&[list as u16, (list >> 16) as u16]);
    }
}

impl Holders {
    pub fn new(objects: usize) -> Holders {
        Holders { few: vec![Few { len: 0, nodes: [0; INLINE] }; objects], many: Vec::new(), free: Vec::new() }
    }

    pub fn of(&self, object: ObjectId) -> &[NodeId] {
        let few = &self.few[object as usize];
        if few.len as usize <= INLINE { &few.nodes[..few.len.into()] } else { &self.many[few.list()] }
    }

    pub fn has(&self, object: ObjectId, node: NodeId) -> bool {
        self.of(object).contains(&node)
    }

    /// Notes a copy that was not there.
    pub fn add(&mut self, object: ObjectId, node: NodeId) {
        let few = &mut self.few[object as usize];
        let len = usize::from(few.len);
        if len < INLINE {
            few.nodes[len] = node;
        } else if len == INLINE {
            let list = self.free.pop().unwrap_or_else(|| {
                self.many.push(Vec::new());
                self.many.len() as u32 - 1
            });
            let many = &mut self.many[list as usize];
            many.extend_from_slice(&few.nodes);
            many.push(node);
            few.set_list(list);
        } else {
            self.many[few.list()].push(node);
        }
        few.len += 1;
    }

    /// Forgets a copy. Whether there was one.
    pub fn remove(&mut self, object: ObjectId, node: NodeId) -> bool {
        let Some(place) = self.of(object).iter().position(|holder| *holder == node) else { return false };
        let few = &mut self.few[object as usize];
        few.len -= 1;
        let len = usize::from(few.len);
        if len < INLINE {
            few.nodes[place] = few.nodes[len];
        } else {
            let list = few.list();
            let many = &mut self.many[list];
            many.swap_remove(place);
            if len == INLINE && !mutant::is("holders.shrink") {
                few.nodes.copy_from_slice(many);
                many.clear();
                self.free.push(list as u32);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn it_agrees_with_sets() {
        let mut holders = Holders::new(5);
        let mut sets = vec![BTreeSet::new(); 5];
        let mut word = 1u64;
        for _ in 0..100_000 {
            word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (object, node) = ((word >> 40) as u32 % 5, (word >> 50) as u16 % 9);
            if sets[object as usize].insert(node) {
                holders.add(object, node);
            } else {
                sets[object as usize].remove(&node);
                assert!(holders.remove(object, node));
            }
            let found: BTreeSet<_> = holders.of(object).iter().copied().collect();
            assert_eq!((found.len(), &found), (holders.of(object).len(), &sets[object as usize]));
        }
    }
}
