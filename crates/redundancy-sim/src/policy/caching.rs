//! A cache on each node. Nodes find each other's copies; each cache decides for itself.

use redundancy::{NodeId, ObjectId, Store};

use super::Policy;
use crate::{Found, Protocol, World};

/// What one cache decides.
pub trait Cache {
    /// It has the object.
    fn hit(&mut self, object: ObjectId);
    /// It has not, and will insert it.
    fn miss(&mut self, _object: ObjectId) {}
    fn insert(&mut self, object: ObjectId, bytes: u32, cost: f32);
    /// Takes out what goes first.
    fn pop(&mut self) -> Option<(ObjectId, u32)>;
    /// Takes an object out, whatever the order.
    fn remove(&mut self, object: ObjectId);
    fn clear(&mut self);
}

/// What happens to the copies of others at a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtWrites {
    Update,
    Invalidate,
}

pub struct Caching<C> {
    caches: Vec<C>,
    at_writes: AtWrites,
    protocol: Protocol,
}

/// Copies that may not go are put back; so many are tried.
const TRIES: usize = 8;

impl<C: Cache> Caching<C> {
    pub fn new(nodes: usize, at_writes: AtWrites, cache: impl Fn() -> C) -> Caching<C> {
        Caching { caches: (0..nodes).map(|_| cache()).collect(), at_writes, protocol: Protocol::Available }
    }

    /// Each node for itself: nobody looks into another's memory.
    pub fn alone(self) -> Caching<C> {
        Caching { protocol: Protocol::Primary, ..self }
    }

    fn admit(&mut self, world: &mut World, node: NodeId, object: ObjectId, cost: f32) {
        let bytes = world.bytes(object);
        if u64::from(bytes) > world.scene.budget || world.has(object, node) {
            return;
        }
        let cache = &mut self.caches[usize::from(node)];
        cache.miss(object);
        let mut kept = Vec::new();
        while world.room(node) < bytes.into() && kept.len() < TRIES {
            let Some((victim, bytes)) = cache.pop() else { break };
            if world.may_drop(victim, node) {
                world.drop(victim, node);
            } else {
                kept.push((victim, bytes));
            }
        }
        for (object, bytes) in kept {
            cache.insert(object, bytes, cost);
        }
        if world.create(object, node, true) {
            cache.insert(object, bytes, cost);
        }
    }
}

impl<C: Cache> Policy for Caching<C> {
    fn protocol(&self) -> Protocol {
        self.protocol
    }

    fn read(&mut self, world: &mut World, node: NodeId, object: ObjectId, found: Found) {
        let costs = world.costs(object);
        match found {
            Found::Local => self.caches[usize::from(node)].hit(object),
            Found::Remote(holder) => {
                self.caches[usize::from(holder)].hit(object);
                self.admit(world, node, object, costs.remote);
            }
            Found::Original => self.admit(world, node, object, costs.original),
        }
    }

    fn write(&mut self, world: &mut World, node: NodeId, object: ObjectId) {
        // A write that will fail must not take the last copies.
        let is_possible = world.reaches_original(object) || world.has(object, node);
        if self.at_writes == AtWrites::Invalidate && is_possible {
            world.invalidate(node, object, |holder| self.caches[usize::from(holder)].remove(object));
        }
    }

    fn written(&mut self, world: &mut World, node: NodeId, object: ObjectId) {
        if world.has(object, node) {
            self.caches[usize::from(node)].hit(object);
        } else {
            let cost = world.costs(object).original;
            self.admit(world, node, object, cost);
        }
    }

    fn down(&mut self, _world: &World, node: NodeId) {
        self.left(node);
    }

    fn left(&mut self, node: NodeId) {
        self.caches[usize::from(node)].clear();
    }
}
