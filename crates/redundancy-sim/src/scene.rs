//! The nodes and the objects of a run.

use redundancy::NodeId;

use crate::Hardware;

/// What does not change during a run.
#[derive(Clone, Debug)]
pub struct Scene {
    pub hardware: Hardware,
    pub nodes: usize,
    /// Nodes of one group crash together at times: node modulo groups.
    pub groups: usize,
    /// Bytes of each object.
    pub bytes: Vec<u32>,
    /// The node whose disk has the original at the begin.
    pub homes: Vec<NodeId>,
    /// Bytes of copies that each node may keep in memory.
    pub budget: u64,
    /// Whether requests wait for each other at lines and disks.
    pub has_queues: bool,
}

impl Scene {
    /// Objects of given sizes, homes by turns, and a budget of a share of all bytes, the same for each node.
    pub fn new(hardware: Hardware, nodes: usize, bytes: Vec<u32>, share: f64) -> Scene {
        let total: u64 = bytes.iter().map(|bytes| u64::from(*bytes)).sum();
        let budget = (total as f64 * share / nodes as f64) as u64;
        let homes = (0..bytes.len()).map(|object| home(object as u32, nodes)).collect();
        Scene { hardware, nodes, groups: (nodes / 3).max(1), bytes, homes, budget, has_queues: true }
    }

    pub fn group(&self, node: NodeId) -> u16 {
        node % self.groups as u16
    }

    /// The `turn`th of the nodes that a hash gives an object, its home left out. Nodes that follow each other are of
    /// different groups.
    pub fn hashed(&self, object: u32, turn: usize) -> NodeId {
        let start = (object.wrapping_mul(0x9E37_79B1) >> 8) as usize % self.nodes;
        let home = usize::from(home(object, self.nodes));
        let distance = (home + self.nodes - start) % self.nodes;
        let skip = usize::from(turn >= distance);
        ((start + turn + skip) % self.nodes) as NodeId
    }
}

fn home(object: u32, nodes: usize) -> NodeId {
    (object.wrapping_mul(0x85EB_CA6B).rotate_left(13) as usize % nodes) as NodeId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashed_nodes_are_all_the_nodes_but_the_home() {
        let scene = Scene::new(Hardware::TODAY, 5, vec![1; 1000], 1.0);
        for object in 0..1000 {
            let mut nodes: Vec<_> = (0..4).map(|turn| scene.hashed(object, turn)).collect();
            nodes.push(scene.homes[object as usize]);
            nodes.sort();
            assert_eq!(nodes, [0, 1, 2, 3, 4]);
        }
    }
}
