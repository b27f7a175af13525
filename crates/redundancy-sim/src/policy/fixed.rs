//! A fixed number of copies of each object, on nodes that a hash gives; and with them the protocols of replicated files:
//! read one and write all, majority.

use redundancy::{NodeId, ObjectId, Store};

use super::caching::Cache;
use super::lru::Lru;
use super::{Found, Policy, World};
use crate::Protocol;

pub struct Fixed {
    copies: usize,
    protocol: Protocol,
    /// The order in which each node's copies go.
    orders: Vec<Lru>,
}

impl Fixed {
    /// Copies on the first nodes of an object's row that are up.
    pub fn available(nodes: usize, copies: usize) -> Fixed {
        Fixed::new(nodes, copies, Protocol::Available)
    }

    /// Read one, write all.
    pub fn write_all(nodes: usize, copies: usize) -> Fixed {
        Fixed::new(nodes, copies, Protocol::WriteAll { copies })
    }

    /// The home and others vote (R. Thomas 1979, D. Gifford 1979).
    pub fn majority(nodes: usize, voters: usize) -> Fixed {
        Fixed::new(nodes, voters - 1, Protocol::Majority { voters })
    }

    fn new(nodes: usize, copies: usize, protocol: Protocol) -> Fixed {
        Fixed { copies: copies.min(nodes - 1), protocol, orders: (0..nodes).map(|_| Lru::default()).collect() }
    }

    fn fill(&mut self, world: &mut World, reader: NodeId, object: ObjectId) {
        if world.copies(object).len() >= self.copies {
            return;
        }
        let row = (0..world.scene.nodes - 1).map(|turn| world.scene.hashed(object, turn));
        let nodes: Vec<NodeId> = if self.protocol == Protocol::Available {
            row.filter(|node| world.is_up(*node)).take(self.copies).collect()
        } else {
            row.take(self.copies).filter(|node| world.is_up(*node)).collect()
        };
        for node in nodes.into_iter().filter(|node| !world.has(object, *node)).collect::<Vec<_>>() {
            let order = &mut self.orders[usize::from(node)];
            if make_room(world, node, object, order) && world.create(object, node, node == reader) {
                order.insert(object, world.bytes(object), 0.0);
            }
        }
    }
}

/// Drops copies in order until there is room for one more.
pub(super) fn make_room(world: &mut World, node: NodeId, object: ObjectId, order: &mut impl Cache) -> bool {
    const TRIES: usize = 8;
    let bytes = u64::from(world.bytes(object));
    let mut kept = Vec::new();
    while world.room(node) < bytes && kept.len() < TRIES && bytes <= world.scene.budget {
        let Some((victim, bytes)) = order.pop() else { break };
        if world.may_drop(victim, node) {
            world.drop(victim, node);
        } else {
            kept.push((victim, bytes));
        }
    }
    kept.into_iter().for_each(|(object, bytes)| order.insert(object, bytes, 0.0));
    world.room(node) >= bytes
}

impl Policy for Fixed {
    fn protocol(&self) -> Protocol {
        self.protocol
    }

    fn read(&mut self, world: &mut World, node: NodeId, object: ObjectId, found: Found) {
        // All copies of an object are equally old: they go together.
        for holder in world.copies(object) {
            self.orders[usize::from(*holder)].hit(object);
        }
        if found != Found::Local {
            self.fill(world, node, object);
        }
    }

    fn write(&mut self, _world: &mut World, _node: NodeId, _object: ObjectId) {}

    fn written(&mut self, world: &mut World, node: NodeId, object: ObjectId) {
        self.read(world, node, object, Found::Original);
    }

    fn down(&mut self, _world: &World, node: NodeId) {
        self.left(node);
    }

    fn left(&mut self, node: NodeId) {
        self.orders[usize::from(node)].clear();
    }
}
