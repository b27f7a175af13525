//! What must hold after each step, whatever happens.

use redundancy::{NodeId, Store};
use redundancy_sim::failure::{Event, Happening};
use redundancy_sim::policy::{Kind, Policy, Setting};
use redundancy_sim::{Found, Hardware, Protocol, Scene, World};

pub const NODES: usize = 5;
pub const OBJECTS: usize = 24;

/// One step of a random run.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Read(NodeId, u32),
    Write(NodeId, u32),
    Happen(NodeId, Happening),
}

/// What a run should know of each object: versions.
struct Shadow {
    latest: [u64; OBJECTS],
    original: [u64; OBJECTS],
    /// Copies with the latest version, by node.
    copies: [[bool; NODES]; OBJECTS],
}

/// Runs the steps with a policy and checks everything after each.
pub fn laws(kind: Kind, choice: usize, steps: &[Step]) {
    let choices = Setting::choices(kind);
    // Sizes from 1 to 6 KB, room for some five objects a node.
    let bytes = (0..OBJECTS as u32).map(|object| 1024 * (1 + object % 6)).collect();
    let scene = Scene::new(Hardware::TODAY, NODES, bytes, 1.0);
    let mut policy = choices[choice % choices.len()].make(&scene, 1.0);
    let mut world = World::new(scene);
    let mut shadow = Shadow { latest: [0; OBJECTS], original: [0; OBJECTS], copies: [[false; NODES]; OBJECTS] };
    for (at, step) in steps.iter().enumerate() {
        world.now = at as f64 * 1e-4;
        shadow.step(&mut world, policy.as_mut(), *step);
        shadow.check(&world, *step);
    }
}

impl Shadow {
    fn step(&mut self, world: &mut World, policy: &mut dyn Policy, step: Step) {
        match step {
            Step::Read(node, object) if world.is_up(node) => self.read(world, policy, node, object),
            Step::Write(node, object) if world.is_up(node) => self.write(world, policy, node, object),
            Step::Happen(node, what) => self.happen(world, policy, node, what),
            _ => {}
        }
        self.note_copies(world);
    }

    fn read(&mut self, world: &mut World, policy: &mut dyn Policy, node: NodeId, object: u32) {
        let (at, protocol) = (object as usize, policy.protocol());
        let lives = self.copies[at].contains(&true);
        let served = world.read(node, object, protocol);
        if protocol == Protocol::Available {
            // No copy is lost while one lives: who asks gets it.
            assert_eq!(served.is_some(), lives || world.has_original(object), "object {object}");
        }
        let Some((_, found)) = served else { return };
        let is_latest = match found {
            Found::Original => self.original[at] == self.latest[at],
            Found::Local => self.copies[at][usize::from(node)],
            Found::Remote(holder) => self.copies[at][usize::from(holder)],
        };
        assert!(is_latest, "object {object} was read as it was before a write, from {found:?}");
        policy.read(world, node, object, found);
    }

    fn write(&mut self, world: &mut World, policy: &mut dyn Policy, node: NodeId, object: u32) {
        policy.write(world, node, object);
        if world.write(node, object, policy.protocol()).is_some() {
            let at = object as usize;
            self.latest[at] += 1;
            if world.reaches_original(object) {
                self.original[at] = self.latest[at];
            }
            // The world has brought all copies up to date that are there now.
            (0..NODES).for_each(|node| self.copies[at][node] = world.has(object, node as NodeId));
            policy.written(world, node, object);
        }
    }

    fn happen(&mut self, world: &mut World, policy: &mut dyn Policy, node: NodeId, what: Happening) {
        let is_up = world.is_up(node);
        match what {
            Happening::Leave if !is_up => return,
            Happening::Up | Happening::Join if is_up => return,
            Happening::Leave => {
                policy.leaving(world, node);
                self.note_copies(world);
            }
            _ => {}
        }
        let before: Vec<NodeId> = (0..OBJECTS as u32).map(|object| world.home(object)).collect();
        world.happen(Event { at: world.now, node, what });
        if matches!(what, Happening::Down | Happening::Leave) {
            self.lose(world, node, what, &before);
            match what {
                Happening::Leave => policy.left(node),
                _ if is_up => policy.down(world, node),
                _ => {}
            }
        }
        for object in 0..OBJECTS {
            // Who can be reached again is told what it has missed.
            if world.reaches_original(object as u32) && self.copies[object].contains(&true) {
                self.original[object] = self.latest[object];
            }
        }
        if what == Happening::Up && world.is_up(node) {
            policy.up(world, node);
        }
    }

    /// A memory is gone. Where it had the only current copy, what was written last is lost, unless it could be handed over.
    fn lose(&mut self, world: &World, node: NodeId, what: Happening, before: &[NodeId]) {
        for (object, home) in before.iter().enumerate() {
            let had = std::mem::take(&mut self.copies[object][usize::from(node)]);
            let is_last = had && !self.copies[object].contains(&true);
            if what == Happening::Leave && is_last && world.home(object as u32) != *home {
                self.original[object] = self.latest[object];
            }
            if is_last && self.original[object] != self.latest[object] {
                self.latest[object] = self.original[object];
            }
        }
    }

    /// New copies are made of current ones; copies that went are gone.
    fn note_copies(&mut self, world: &World) {
        for object in 0..OBJECTS {
            let lived = self.copies[object].contains(&true) || self.original[object] == self.latest[object];
            for node in 0..NODES {
                let has = world.has(object as u32, node as NodeId);
                self.copies[object][node] = has && (self.copies[object][node] || lived);
            }
            let lives = self.copies[object].contains(&true) || self.original[object] == self.latest[object];
            assert!(lives, "the last current copy of {object} went while it lived");
        }
    }

    fn check(&self, world: &World, step: Step) {
        for node in 0..NODES as NodeId {
            let kept = (0..OBJECTS as u32).filter(|object| world.has(*object, node));
            let bytes: u64 = kept.map(|object| u64::from(world.bytes(object))).sum();
            assert_eq!(bytes, world.used(node), "bytes of node {node} after {step:?}");
            assert!(bytes <= world.scene.budget, "the budget of node {node} after {step:?}");
            assert!(bytes == 0 || world.is_up(node), "node {node} is down and has copies after {step:?}");
        }
        for object in 0..OBJECTS as u32 {
            let mut copies = world.copies(object).to_vec();
            copies.sort();
            copies.dedup();
            assert_eq!(copies.len(), world.copies(object).len(), "object {object} twice on one node");
            assert!(!world.is_stale(object) || !copies.is_empty(), "nobody has what object {object} is");
            let is_stale = world.is_stale(object) && world.reaches_original(object);
            assert!(!is_stale, "the original of {object} is back and was not brought up to date");
        }
    }
}

/// Steps from a seed, for checks that are no property tests.
pub fn steps(seed: u64, count: usize) -> Vec<Step> {
    let mut word = seed | 1;
    let mut below = |limit: u64| {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (word >> 33) % limit
    };
    let step = |_| {
        let (node, object) =
            (below(NODES as u64) as NodeId, (below(OBJECTS as u64) * below(OBJECTS as u64) / 24) as u32);
        match below(40) {
            0..20 => Step::Read(node, object),
            20..34 => Step::Write(node, object),
            34 => Step::Happen(node, Happening::Down),
            35 | 36 => Step::Happen(node, Happening::Up),
            37 => Step::Happen(node, Happening::DiskDown),
            38 => Step::Happen(node, Happening::DiskUp),
            _ => Step::Happen(node, if below(2) == 0 { Happening::Leave } else { Happening::Join }),
        }
    };
    (0..count).map(step).collect()
}

/// All policies, some thousand steps each.
pub fn all_laws() {
    for kind in Kind::ALL {
        for choice in 0..2 {
            laws(kind, choice * 3, &steps(7 + choice as u64, 4000));
        }
    }
}
