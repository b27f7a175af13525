//! Valued redundancy: the crate `redundancy` on the simulated world.

use redundancy::{NodeId, ObjectId, Settings, Valued};

use super::{Found, Policy, World};

pub struct ByValue(Valued);

impl ByValue {
    pub fn new(nodes: usize, objects: usize, settings: Settings) -> ByValue {
        ByValue(Valued::new(nodes, objects, settings))
    }

    pub fn valued(&self) -> &Valued {
        &self.0
    }
}

impl Policy for ByValue {
    fn read(&mut self, world: &mut World, node: NodeId, object: ObjectId, _found: Found) {
        let now = world.now as f32;
        self.0.read(world, node, object, now);
    }

    fn write(&mut self, world: &mut World, node: NodeId, object: ObjectId) {
        let now = world.now as f32;
        self.0.write(world, node, object, now);
    }

    fn written(&mut self, world: &mut World, node: NodeId, object: ObjectId) {
        let now = world.now as f32;
        self.0.written(world, node, object, now);
    }

    fn down(&mut self, world: &World, node: NodeId) {
        self.0.down(node, world.now as f32);
    }

    fn up(&mut self, world: &World, node: NodeId) {
        self.0.up(node, world.now as f32);
    }

    fn leaving(&mut self, world: &mut World, node: NodeId) {
        let now = world.now as f32;
        self.0.leaving(world, node, now);
    }

    fn left(&mut self, node: NodeId) {
        self.0.left(node);
    }
}
