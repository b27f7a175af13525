//! Who decides which copies there are.

mod adaptive;
mod caching;
mod chain;
mod clock;
mod density;
mod fixed;
mod greedy_dual;
mod lru;
mod proportional;
mod s3_fifo;
mod setting;
mod valued;

use redundancy::{NodeId, ObjectId};

use crate::{Found, Protocol, World};

pub use adaptive::Arc;
pub use caching::{AtWrites, Cache, Caching};
pub use clock::Clock;
pub use density::Lhd;
pub use fixed::Fixed;
pub use greedy_dual::GreedyDual;
pub use lru::Lru;
pub use proportional::Proportional;
pub use s3_fifo::S3Fifo;
pub use setting::{Kind, Setting, settings};
pub use valued::ByValue;

/// A policy of all nodes together. Nodes know what a directory would tell them: who has copies.
pub trait Policy {
    fn protocol(&self) -> Protocol {
        Protocol::Available
    }

    /// A read was served.
    fn read(&mut self, world: &mut World, node: NodeId, object: ObjectId, found: Found);

    /// A write begins: copies that are not to be brought up to date go now.
    fn write(&mut self, world: &mut World, node: NodeId, object: ObjectId);

    /// A write was served.
    fn written(&mut self, world: &mut World, node: NodeId, object: ObjectId);

    /// A node crashed.
    fn down(&mut self, world: &World, node: NodeId);

    /// A node is back.
    fn up(&mut self, _world: &World, _node: NodeId) {}

    /// A node is about to leave.
    fn leaving(&mut self, _world: &mut World, _node: NodeId) {}

    /// It has left.
    fn left(&mut self, node: NodeId);
}
