//! Copies in proportion to popularity, or to its square root (E. Cohen, S. Shenker: *Replication Strategies in Unstructured
//! Peer-to-Peer Networks*, 2002), on nodes that a hash gives.

use redundancy::{HalfLife, Keeper, Kept, NodeId, ObjectId, Store, Usage};

use super::{Found, Policy, World};

pub struct Proportional {
    usage: Vec<Usage>,
    half_life: HalfLife,
    exponent: f32,
    keepers: Vec<Keeper>,
    /// Copies for an object of popularity 1.
    scale: f32,
    accesses: u32,
}

/// Accesses between two looks at all objects.
const PERIOD: u32 = 5000;
const SAMPLES: usize = 16;

impl Proportional {
    pub fn new(nodes: usize, objects: usize, half_life: HalfLife, exponent: f32) -> Proportional {
        let keepers = (0..nodes).map(|node| Keeper::new(node as u32 + 1)).collect();
        Proportional { usage: vec![Usage::default(); objects], half_life, exponent, keepers, scale: 0.0, accesses: 0 }
    }

    fn popularity(&self, object: ObjectId, now: f32) -> f32 {
        let rate = self.usage[object as usize].at(now, self.half_life).reads_per_second(self.half_life);
        rate.powf(self.exponent)
    }

    /// Copies that an object should have, fractions included.
    fn share(&self, object: ObjectId, now: f32) -> f32 {
        self.popularity(object, now) * self.scale
    }

    /// The scale at which all copies together fill all budgets: those of less than half a copy are none, nobody has more than
    /// there are nodes.
    fn rescale(&mut self, world: &World) {
        let now = world.now as f32;
        let budget = world.scene.budget as f32 * world.scene.nodes as f32;
        let most = world.scene.nodes as f32 - 1.0;
        let all: Vec<(f32, f32)> = (0..self.usage.len() as ObjectId)
            .map(|object| (self.popularity(object, now), world.bytes(object) as f32))
            .filter(|(popularity, _)| *popularity > 0.0)
            .collect();
        let bytes = |scale: f32| -> f32 {
            all.iter().map(|(popularity, bytes)| (popularity * scale).round().min(most) * bytes).sum()
        };
        let (mut low, mut high) = (0.0f32, 1e9f32);
        for _ in 0..50 {
            let middle = (low.max(1e-9) * high).sqrt();
            *(if bytes(middle) > budget { &mut high } else { &mut low }) = middle;
        }
        self.scale = low;
    }

    fn count(&mut self, world: &World) {
        if self.accesses.is_multiple_of(PERIOD) {
            self.rescale(world);
        }
        self.accesses += 1;
    }

    fn fill(&mut self, world: &mut World, reader: NodeId, object: ObjectId) {
        let now = world.now as f32;
        let wanted = self.share(object, now).round() as usize;
        let row = (0..world.scene.nodes - 1).map(|turn| world.scene.hashed(object, turn));
        let nodes: Vec<NodeId> = row.filter(|node| world.is_up(*node)).take(wanted).collect();
        for node in nodes {
            if world.has(object, node) || !self.make_room(world, node, object) {
                continue;
            }
            if world.create(object, node, node == reader) {
                let kept = Kept { object, bytes: world.bytes(object), usage: Usage::default(), unreported: 0 };
                self.keepers[usize::from(node)].insert(kept);
            }
        }
    }

    /// Of a sample goes what has most copies above its share.
    fn make_room(&mut self, world: &mut World, node: NodeId, object: ObjectId) -> bool {
        let (bytes, now) = (u64::from(world.bytes(object)), world.now as f32);
        while world.room(node) < bytes {
            let mut keeper = std::mem::replace(&mut self.keepers[usize::from(node)], Keeper::new(1));
            let victim = keeper.victim(SAMPLES, |kept| {
                let copies = world.copies(kept.object).len() as f32;
                world.may_drop(kept.object, node).then(|| self.share(kept.object, now) / copies)
            });
            self.keepers[usize::from(node)] = keeper;
            let Some(victim) = victim else { return false };
            if victim.density >= self.share(object, now) / (world.copies(object).len() + 1) as f32 {
                return false;
            }
            self.keepers[usize::from(node)].remove(victim.object);
            world.drop(victim.object, node);
        }
        true
    }
}

impl Policy for Proportional {
    fn read(&mut self, world: &mut World, node: NodeId, object: ObjectId, found: Found) {
        self.usage[object as usize].read(1.0, world.now as f32, self.half_life);
        self.count(world);
        if found != Found::Local {
            self.fill(world, node, object);
        }
    }

    fn write(&mut self, _world: &mut World, _node: NodeId, _object: ObjectId) {}

    fn written(&mut self, world: &mut World, node: NodeId, object: ObjectId) {
        self.count(world);
        self.fill(world, node, object);
    }

    fn down(&mut self, _world: &World, node: NodeId) {
        self.left(node);
    }

    fn left(&mut self, node: NodeId) {
        self.keepers[usize::from(node)].clear();
    }
}
