//! All together: who keeps how many copies where, under a budget of bytes for each node.

use alloc::vec::Vec;

use crate::keeper::{Ghosts, Keeper, Kept, Victim};
use crate::usage::{HalfLife, Usage};
use crate::value::{Demand, Formula, Standing};
use crate::{Change, Costs, Goals, mutant};

/// A node, from 0.
pub type NodeId = u16;
/// An object, from 0; `u32::MAX` is none.
pub type ObjectId = u32;

/// The memory that is shared out. Each object has an original on the disk of its home; copies are in memories.
pub trait Store {
    fn bytes(&self, object: ObjectId) -> u32;
    fn costs(&self, object: ObjectId) -> Costs;
    /// The nodes with a copy in memory, all of them up.
    fn copies(&self, object: ObjectId) -> &[NodeId];
    /// The node with the original.
    fn home(&self, object: ObjectId) -> NodeId;
    /// Whether the original can be read now, and is current.
    fn has_original(&self, object: ObjectId) -> bool;
    fn is_up(&self, node: NodeId) -> bool;
    /// Nodes of one group fail together more often than others: a rack, a power supply.
    fn group(&self, node: NodeId) -> u16;
    /// Free bytes of a node's budget.
    fn room(&self, node: NodeId) -> u64;
    /// Makes a copy; `false`: it could not be made. `is_at_hand`: the node has just read or written the object.
    fn create(&mut self, object: ObjectId, node: NodeId, is_at_hand: bool) -> bool;
    /// Whether a copy may go: not the last that is current.
    fn may_drop(&self, object: ObjectId, node: NodeId) -> bool;
    fn drop(&mut self, object: ObjectId, node: NodeId);
}

/// What can be set.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Settings {
    pub formula: Formula,
    pub goals: Goals,
    pub half_life: HalfLife,
    pub change: Change,
    /// Copies that are looked at to find one that goes.
    pub samples: usize,
    /// Nodes that are asked whether they take a copy that its reader does not keep; 0: none.
    pub offers: usize,
    /// Objects that each node remembers beside those that it keeps.
    pub ghosts: usize,
    /// Shares of time for which a node and, beside that, a disk are thought to be down before any was seen to be.
    pub outage: [f32; 2],
    /// Which part of a node's outages it shares with its group.
    pub shared: f32,
}

impl Settings {
    /// For accesses whose popularity changes over some half-lives.
    pub fn new(goals: Goals, half_life: HalfLife) -> Settings {
        Settings {
            formula: Formula::Marginal,
            goals,
            half_life,
            change: Change { margin: 0.1, horizon: half_life.0 },
            samples: 16,
            offers: 2,
            ghosts: 1024,
            outage: [0.01, 0.005],
            shared: 0.2,
        }
    }
}

/// For which share of time nodes are down, estimated from those that were.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Outages {
    prior: f32,
    /// Seconds that one node would have to be watched for the prior to weigh as much as what was seen.
    weight: f32,
    nodes: f32,
    down: u32,
    /// Node-seconds of outages until `at`.
    seconds: f32,
    at: f32,
}

impl Outages {
    pub fn new(nodes: usize, prior: f32, weight: f32) -> Outages {
        Outages { prior, weight, nodes: nodes as f32, down: 0, seconds: 0.0, at: 0.0 }
    }

    fn until(&mut self, now: f32) {
        self.seconds += self.down as f32 * (now - self.at).max(0.0);
        self.at = now;
    }

    pub fn began(&mut self, now: f32) {
        self.until(now);
        self.down += 1;
    }

    pub fn ended(&mut self, now: f32) {
        self.until(now);
        self.down = self.down.saturating_sub(1);
    }

    /// The share of time for which a node is down.
    pub fn share(&self) -> f32 {
        (self.seconds + self.prior * self.weight) / (self.nodes * self.at + self.weight)
    }
}

/// Local reads after which a node tells the others of them.
const REPORT_AFTER: u8 = 4;
/// For this part of a half-life a node's floor is believed: within it a value falls by less than a hundredth.
const BELIEVED: f32 = 1.0 / 128.0;
/// With more copies than this an object is thought never to be lost.
const SAFE: usize = 8;

/// The policy of all nodes. Each [`Keeper`] and its [`Ghosts`] are a node's own; the usage of an object is its home's.
#[derive(Clone, Debug)]
pub struct Valued {
    keepers: Vec<Keeper>,
    ghosts: Vec<Ghosts>,
    /// What each node's least valuable copy is worth by the byte, as it was found lately, and when.
    floors: Vec<(f32, f32)>,
    judge: Judge,
}

/// A copy that is, or might be.
#[derive(Clone, Copy, Debug)]
struct Place {
    node: NodeId,
    object: ObjectId,
    /// How the node uses the object.
    own: Usage,
    /// Where there is a copy now that will go.
    leaving: Option<NodeId>,
    /// The node has just read or written the object.
    is_at_hand: bool,
}

/// What values are computed from.
#[derive(Clone, Debug)]
struct Judge {
    settings: Settings,
    usage: Vec<Usage>,
    outages: Outages,
}

impl Judge {
    /// What there is of an object beside the copy.
    fn standing<S: Store>(&self, store: &S, place: &Place) -> Standing {
        let Place { node, object, leaving, .. } = *place;
        let copies = store.copies(object);
        if copies.len() > SAFE {
            return Standing { others: copies.len() as u32 - 1, lost_without: 0.0, lost_with: 0.0 };
        }
        let (home, down, disk) = (store.home(object), self.outages.share(), self.settings.outage[1]);
        let (mut others, mut apart, mut alone) = (0, 1.0, 1.0);
        for other in copies.iter().filter(|other| **other != node && Some(**other) != leaving) {
            others += 1;
            // A copy at home goes with the original, unless only the disk fails.
            if *other == home {
                alone *= down;
            } else {
                apart *= down;
            }
        }
        let original = if store.has_original(object) { down + disk * alone } else { alone.max(f32::MIN_POSITIVE) };
        let lost_without = original * apart;
        let lost_with = match node == home {
            true if store.has_original(object) => (down + disk * alone * down) * apart,
            // What fails together does not protect.
            false if others == 0 && store.group(node) == store.group(home) => {
                lost_without * (down + self.settings.shared * (1.0 - down))
            }
            _ => lost_without * down,
        };
        Standing { others, lost_without, lost_with }
    }

    fn demand(&self, place: &Place, now: f32) -> Demand {
        let half_life = self.settings.half_life;
        let (all, own) = (self.usage[place.object as usize].at(now, half_life), place.own.at(now, half_life));
        let own_reads = own.reads_per_second(half_life);
        let own_writes = own.writes_per_second(half_life);
        Demand {
            own_reads,
            reads: all.reads_per_second(half_life).max(own_reads),
            own_writes,
            writes: all.writes_per_second(half_life).max(own_writes),
        }
    }

    /// The value of a copy, seconds per second.
    fn value<S: Store>(&self, store: &S, place: &Place, now: f32) -> f32 {
        let Settings { formula, goals, .. } = self.settings;
        formula.value(&store.costs(place.object), goals, &self.demand(place, now), &self.standing(store, place))
    }

    /// The value of each byte of a copy.
    fn density<S: Store>(&self, store: &S, place: &Place, now: f32) -> f32 {
        let bytes = if mutant::is("valued.bytes") { 1.0 } else { store.bytes(place.object) as f32 };
        self.value(store, place, now) / bytes
    }
}

impl Valued {
    pub fn new(nodes: usize, objects: usize, settings: Settings) -> Valued {
        let outages = Outages::new(nodes, settings.outage[0], settings.half_life.0 * nodes as f32);
        Valued {
            keepers: (0..nodes).map(|node| Keeper::new(node as u32 + 1)).collect(),
            ghosts: (0..nodes).map(|_| Ghosts::new(settings.ghosts)).collect(),
            floors: alloc::vec![(0.0, f32::NEG_INFINITY); nodes],
            judge: Judge { settings, usage: alloc::vec![Usage::default(); objects], outages },
        }
    }

    /// What a node keeps.
    pub fn keeper(&self, node: NodeId) -> &Keeper {
        &self.keepers[usize::from(node)]
    }

    /// A node has read an object, wherever that was.
    pub fn read<S: Store>(&mut self, store: &mut S, node: NodeId, object: ObjectId, now: f32) {
        let half_life = self.judge.settings.half_life;
        if let Some(kept) = self.keepers[usize::from(node)].get_mut(object) {
            kept.usage.read(1.0, now, half_life);
            kept.unreported += 1;
            if kept.unreported >= REPORT_AFTER {
                let reads = core::mem::take(&mut kept.unreported);
                self.judge.usage[object as usize].read(reads.into(), now, half_life);
            }
            return;
        }
        self.judge.usage[object as usize].read(1.0, now, half_life);
        let mut own = self.ghosts[usize::from(node)].usage(object);
        own.read(1.0, now, half_life);
        self.consider(store, node, object, own, now);
    }

    /// A node has written an object. [`Valued::write`] must have been called before.
    pub fn written<S: Store>(&mut self, store: &mut S, node: NodeId, object: ObjectId, now: f32) {
        if self.keepers[usize::from(node)].get(object).is_none() {
            let mut own = self.ghosts[usize::from(node)].usage(object);
            own.write(now, self.judge.settings.half_life);
            self.consider(store, node, object, own, now);
        }
    }

    /// A node is about to write an object: copies that cost more than they are worth go instead of being brought up to date.
    pub fn write<S: Store>(&mut self, store: &mut S, node: NodeId, object: ObjectId, now: f32) {
        let half_life = self.judge.settings.half_life;
        self.judge.usage[object as usize].write(now, half_life);
        if let Some(kept) = self.keepers[usize::from(node)].get_mut(object) {
            kept.usage.write(now, half_life);
        }
        let mut at = 0;
        while let Some(holder) = store.copies(object).get(at).copied() {
            at += 1;
            let Some(kept) = self.keepers[usize::from(holder)].get(object) else { continue };
            let place = Place { node: holder, object, own: kept.usage, leaving: None, is_at_hand: true };
            let value = self.judge.value(store, &place, now);
            let scale = self.judge.demand(&place, now).writes * store.costs(object).update;
            if holder != node && self.judge.settings.change.drops(value, scale) && store.may_drop(object, holder) {
                self.forget(holder, object, now);
                store.drop(object, holder);
                at -= 1;
            }
        }
    }

    /// A node does not have a copy and could have one now for nothing; or another node might take it.
    fn consider<S: Store>(&mut self, store: &mut S, node: NodeId, object: ObjectId, own: Usage, now: f32) {
        if !self.place(store, Place { node, object, own, leaving: None, is_at_hand: true }, now) {
            let half_life = self.judge.settings.half_life;
            self.ghosts[usize::from(node)].remember(object, own, now, half_life);
        }
        self.offer(store, object, now);
    }

    /// Keeps a copy if it is worth more than what must go for it.
    fn place<S: Store>(&mut self, store: &mut S, place: Place, now: f32) -> bool {
        let Place { node, object, own, is_at_hand, .. } = place;
        let bytes = store.bytes(object);
        let density = self.judge.density(store, &place, now);
        let create = if is_at_hand { 0.0 } else { store.costs(object).create / bytes as f32 };
        let change = self.judge.settings.change;
        if !change.creates(density, 0.0, create) {
            return false;
        }
        let floor = self.floor(store, node, bytes, now);
        if !floor.is_some_and(|floor| change.creates(density, floor, create)) {
            return false;
        }
        while store.room(node) < bytes.into() {
            let Some(victim) = self.victim(store, node, now) else { return false };
            if !change.creates(density, victim.density, create) {
                return false;
            }
            self.evict(store, node, victim, now, is_at_hand);
        }
        let is_made = store.create(object, node, is_at_hand);
        if is_made {
            self.keepers[usize::from(node)].insert(Kept { object, bytes, usage: own, unreported: 0 });
        }
        is_made
    }

    /// What would have to go from a node for so many bytes, by the byte, or nearly; `None`: nothing may go.
    fn floor<S: Store>(&mut self, store: &S, node: NodeId, bytes: u32, now: f32) -> Option<f32> {
        if store.room(node) >= bytes.into() {
            return Some(0.0);
        }
        let (floor, at) = self.floors[usize::from(node)];
        if now - at < self.judge.settings.half_life.0 * BELIEVED {
            return Some(floor);
        }
        self.victim(store, node, now).map(|victim| victim.density)
    }

    /// The least valuable copy of a node, of some that are looked at.
    fn victim<S: Store>(&mut self, store: &S, node: NodeId, now: f32) -> Option<Victim> {
        let (judge, samples) = (&self.judge, self.judge.settings.samples);
        let victim = self.keepers[usize::from(node)].victim(samples, |kept| {
            let may_go = store.may_drop(kept.object, node);
            let place = Place { node, object: kept.object, own: kept.usage, leaving: None, is_at_hand: true };
            may_go.then(|| judge.density(store, &place, now))
        });
        if let Some(victim) = victim {
            self.floors[usize::from(node)] = (victim.density, now);
        }
        victim
    }

    /// A copy goes. The only one is offered to other nodes first, unless it went for another that was offered.
    fn evict<S: Store>(&mut self, store: &mut S, node: NodeId, victim: Victim, now: f32, may_offer: bool) {
        self.forget(node, victim.object, now);
        if may_offer && store.copies(victim.object).len() == 1 {
            self.offer_beside(store, victim.object, now, Some(node));
        }
        store.drop(victim.object, node);
    }

    /// A node keeps a copy no longer, but remembers how it used it.
    fn forget(&mut self, node: NodeId, object: ObjectId, now: f32) {
        let half_life = self.judge.settings.half_life;
        if let Some(gone) = self.keepers[usize::from(node)].remove(object) {
            self.judge.usage[object as usize].read(gone.unreported.into(), now, half_life);
            self.ghosts[usize::from(node)].remember(object, gone.usage, now, half_life);
        }
    }

    /// Asks some nodes whether they take a copy, as long as there are few.
    fn offer<S: Store>(&mut self, store: &mut S, object: ObjectId, now: f32) {
        if store.copies(object).len() <= 1 {
            self.offer_beside(store, object, now, None);
        }
    }

    fn offer_beside<S: Store>(&mut self, store: &mut S, object: ObjectId, now: f32, leaving: Option<NodeId>) {
        let mut cheapest: Option<(f32, NodeId)> = None;
        for _ in 0..self.judge.settings.offers {
            let nodes = self.keepers.len();
            let node = self.keepers[0].below(nodes) as NodeId;
            if !store.is_up(node) || Some(node) == leaving || store.copies(object).contains(&node) {
                continue;
            }
            let Some(least) = self.floor(store, node, store.bytes(object), now) else { continue };
            if cheapest.is_none_or(|(cheapest, _)| least < cheapest) {
                cheapest = Some((least, node));
            }
        }
        if let Some((_, node)) = cheapest {
            let own = self.ghosts[usize::from(node)].usage(object);
            self.place(store, Place { node, object, own, leaving, is_at_hand: false }, now);
        }
    }

    /// A node is about to leave: copies that only it has are offered to the others.
    pub fn leaving<S: Store>(&mut self, store: &mut S, node: NodeId, now: f32) {
        let kept: Vec<ObjectId> = self.keepers[usize::from(node)].iter().map(|kept| kept.object).collect();
        for object in kept {
            if store.copies(object).len() == 1 {
                self.forget(node, object, now);
                self.offer_beside(store, object, now, Some(node));
            }
        }
    }

    /// A node is down: what it kept in memory is gone.
    pub fn down(&mut self, node: NodeId, now: f32) {
        self.keepers[usize::from(node)].clear();
        self.ghosts[usize::from(node)].clear();
        self.judge.outages.began(now);
    }

    /// A node is up again, with nothing in memory.
    pub fn up(&mut self, _node: NodeId, now: f32) {
        self.judge.outages.ended(now);
    }

    /// The memory of a node has gone although that is no outage: it left.
    pub fn left(&mut self, node: NodeId) {
        self.keepers[usize::from(node)].clear();
        self.ghosts[usize::from(node)].clear();
    }
}
