//! What there is, who holds it, and what an access costs. Policies decide; the world enforces.

use redundancy::{Costs, NodeId, ObjectId, Store, mutant};

use crate::failure::{Event, Happening};
use crate::{Holders, Line, Scene};

/// What a reader needs, and what a writer reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// A read takes any copy; a write brings all copies up to date that can be reached, one of which there must be.
    Available,
    /// As before, but a node looks only into its own memory and asks the home else, where each write must go: a file server.
    Primary,
    /// A read takes any copy; a write must reach all of `copies` fixed nodes and the home.
    WriteAll { copies: usize },
    /// Of the home and `voters - 1` fixed nodes a read and a write must reach the majority. Nodes without a copy vote too.
    Majority { voters: usize },
}

/// Where a read was served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    Local,
    Remote(NodeId),
    Original,
}

/// What was done beside serving accesses.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Work {
    /// Copies that were made.
    pub created: u64,
    /// Bytes that went over the network to make copies and to bring them up to date.
    pub moved: u64,
    /// Writes that were lost: their only copies were in memories, and crashed.
    pub lost_writes: u64,
}

/// The state of a run.
#[derive(Clone, Debug)]
pub struct World {
    pub scene: Scene,
    pub now: f64,
    pub work: Work,
    homes: Vec<NodeId>,
    holders: Holders,
    used: Vec<u64>,
    /// The original is older than the copies.
    is_stale: Vec<bool>,
    /// Reasons for which a node, and its disk, are down.
    down: Vec<u8>,
    disk_down: Vec<u8>,
    lines: Vec<Line>,
    disks: Vec<Line>,
    /// Mean of the latest waits for a line and a disk.
    waits: [f64; 2],
    turn: usize,
}

/// How much the latest wait counts in the mean.
const LATEST: f64 = 1.0 / 256.0;

impl World {
    pub fn new(scene: Scene) -> World {
        let (nodes, objects) = (scene.nodes, scene.bytes.len());
        World {
            now: 0.0,
            work: Work::default(),
            homes: scene.homes.clone(),
            holders: Holders::new(objects),
            used: vec![0; nodes],
            is_stale: vec![false; objects],
            down: vec![0; nodes],
            disk_down: vec![0; nodes],
            lines: vec![Line::default(); nodes],
            disks: vec![Line::default(); nodes],
            waits: [0.0; 2],
            turn: 0,
            scene,
        }
    }

    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        0..self.scene.nodes as NodeId
    }

    pub fn has(&self, object: ObjectId, node: NodeId) -> bool {
        self.holders.has(object, node)
    }

    pub fn used(&self, node: NodeId) -> u64 {
        self.used[usize::from(node)]
    }

    /// Whether the original is older than the copies.
    pub fn is_stale(&self, object: ObjectId) -> bool {
        self.is_stale[object as usize]
    }

    /// Whether the disk with the original can be reached.
    pub fn reaches_original(&self, object: ObjectId) -> bool {
        let home = usize::from(self.homes[object as usize]);
        self.down[home] == 0 && self.disk_down[home] == 0
    }

    fn send(&mut self, from: NodeId, seconds: f64) -> f64 {
        if !self.scene.has_queues {
            return 0.0;
        }
        let wait = self.lines[usize::from(from)].take(self.now, seconds);
        self.waits[0] += (wait - self.waits[0]) * LATEST;
        wait
    }

    fn disk(&mut self, node: NodeId, seconds: f64) -> f64 {
        if !self.scene.has_queues {
            return 0.0;
        }
        let wait = self.disks[usize::from(node)].take(self.now, seconds);
        self.waits[1] += (wait - self.waits[1]) * LATEST;
        wait
    }

    /// Of two holders the one whose line is freer.
    fn nearest(&mut self, object: ObjectId) -> Option<NodeId> {
        let copies = self.holders.of(object);
        let count = copies.len();
        self.turn = self.turn.wrapping_add(1);
        match count {
            0 => None,
            1 => Some(copies[0]),
            _ => {
                let pair = [copies[self.turn % count], copies[(self.turn + 1) % count]];
                let [a, b] = pair.map(|node| self.lines[usize::from(node)].wait(self.now));
                Some(if a <= b { pair[0] } else { pair[1] })
            }
        }
    }

    /// Seconds that a read takes, and from where it was served; `None`: it fails.
    pub fn read(&mut self, node: NodeId, object: ObjectId, protocol: Protocol) -> Option<(f64, Found)> {
        let votes = match protocol {
            Protocol::Majority { voters } => self.majority(node, object, voters)?,
            _ => 0.0,
        };
        let bytes = self.scene.bytes[object as usize];
        let hardware = self.scene.hardware;
        if self.has(object, node) {
            return Some((hardware.local(bytes).max(votes), Found::Local));
        }
        if protocol != Protocol::Primary
            && let Some(holder) = self.nearest(object)
        {
            let wait = self.send(holder, hardware.transfer(bytes));
            return Some(((wait + hardware.remote(bytes)).max(votes), Found::Remote(holder)));
        }
        Some((self.read_original(node, object)?.max(votes), Found::Original))
    }

    fn read_original(&mut self, node: NodeId, object: ObjectId) -> Option<f64> {
        if !self.has_original(object) {
            return None;
        }
        let (home, bytes, hardware) =
            (self.homes[object as usize], self.scene.bytes[object as usize], self.scene.hardware);
        let service = hardware.disk_read(bytes);
        let mut seconds = service + self.disk(home, service);
        if home != node {
            seconds += hardware.remote(bytes) + self.send(home, hardware.transfer(bytes));
        }
        Some(seconds)
    }

    /// Seconds until the majority of voters has answered with versions; `None`: there is no majority.
    fn majority(&self, node: NodeId, object: ObjectId, voters: usize) -> Option<f64> {
        let home = self.homes[object as usize];
        let fixed = (0..voters - 1).map(|turn| self.scene.hashed(object, turn));
        let needed = if mutant::is("majority.half") { voters / 2 } else { voters / 2 + 1 };
        let up = fixed.chain([home]).filter(|voter| self.is_up(*voter));
        let (count, own) = up.fold((0, 0), |(count, own), voter| (count + 1, own + usize::from(voter == node)));
        (count >= needed).then_some(if needed <= own { 0.0 } else { self.scene.hardware.network_latency })
    }

    /// Seconds that a write takes; `None`: it fails. Copies that are there are brought up to date.
    pub fn write(&mut self, node: NodeId, object: ObjectId, protocol: Protocol) -> Option<f64> {
        let is_at_original = self.reaches_original(object);
        let is_allowed = match protocol {
            Protocol::Available => is_at_original || !self.holders.of(object).is_empty(),
            Protocol::Primary => is_at_original,
            Protocol::WriteAll { copies } => {
                is_at_original && (0..copies).all(|turn| self.is_up(self.scene.hashed(object, turn)))
            }
            Protocol::Majority { voters } => {
                self.majority(node, object, voters).is_some() && (is_at_original || !self.holders.of(object).is_empty())
            }
        };
        if !is_allowed {
            return None;
        }
        let (bytes, hardware) = (self.scene.bytes[object as usize], self.scene.hardware);
        let mut seconds = hardware.local(bytes);
        let copies = self.holders.of(object).iter().filter(|holder| **holder != node).count();
        if copies > 0 {
            let service = hardware.transfer(bytes) * copies as f64;
            self.work.moved += u64::from(bytes) * copies as u64;
            seconds = seconds.max(self.send(node, service) + service + hardware.network_latency);
        }
        if is_at_original {
            let home = self.homes[object as usize];
            let service = hardware.disk_write(bytes);
            let way =
                if home == node { 0.0 } else { hardware.remote(bytes) + self.send(node, hardware.transfer(bytes)) };
            seconds = seconds.max(way + service + self.disk(home, service));
        }
        self.is_stale[object as usize] = !is_at_original;
        Some(seconds)
    }

    /// A message to each holder but `node` that its copy is void; they drop it.
    pub fn invalidate(&mut self, node: NodeId, object: ObjectId, mut note: impl FnMut(NodeId)) {
        let mut at = 0;
        while let Some(holder) = self.holders.of(object).get(at).copied() {
            if holder == node || !self.may_drop(object, holder) {
                at += 1;
                continue;
            }
            note(holder);
            self.drop(object, holder);
        }
    }

    /// Something happens to a node. The policy is told by the caller.
    pub fn happen(&mut self, event: Event) {
        let node = usize::from(event.node);
        match event.what {
            Happening::Down => {
                self.down[node] += 1;
                self.lose_memory(event.node);
            }
            Happening::Leave => {
                self.down[node] += 1;
                self.hand_over(event.node);
                self.lose_memory(event.node);
            }
            Happening::DiskDown => self.disk_down[node] += 1,
            Happening::DiskUp => self.disk_down[node] = self.disk_down[node].saturating_sub(1),
            Happening::Up | Happening::Join => self.down[node] = self.down[node].saturating_sub(1),
        }
        if matches!(event.what, Happening::Up | Happening::DiskUp | Happening::Join) {
            self.reconcile(event.node);
        }
        if event.what == Happening::Join && self.is_up(event.node) {
            self.take_back(event.node);
        }
    }

    /// The copies in a node's memory are gone. Where they were the only current ones, what was written last is lost, and the
    /// original counts again.
    fn lose_memory(&mut self, node: NodeId) {
        if mutant::is("world.crash") {
            return;
        }
        for object in 0..self.homes.len() as ObjectId {
            if self.holders.remove(object, node)
                && self.holders.of(object).is_empty()
                && std::mem::take(&mut self.is_stale[object as usize])
            {
                self.work.lost_writes += 1;
            }
        }
        self.used[usize::from(node)] = 0;
    }

    /// The others take the originals of a node that leaves, by turns, and what only that one had.
    fn hand_over(&mut self, node: NodeId) {
        let heirs: Vec<NodeId> = self.nodes().filter(|heir| self.is_up(*heir)).collect();
        if heirs.is_empty() {
            return;
        }
        for object in 0..self.homes.len() {
            let is_last = self.is_stale[object] && self.holders.of(object as ObjectId) == [node];
            if self.homes[object] == node || is_last {
                let heir = heirs[object % heirs.len()];
                self.homes[object] = heir;
                let is_current = self.disk_down[usize::from(heir)] == 0;
                self.is_stale[object] &= !is_current;
            }
        }
    }

    /// A node that comes back takes the originals that it had at the begin, where those who have them can be reached.
    fn take_back(&mut self, node: NodeId) {
        for object in 0..self.homes.len() {
            let is_own = self.scene.homes[object] == node && !self.is_stale[object];
            if is_own && self.disk_down[usize::from(node)] == 0 && self.reaches_original(object as ObjectId) {
                self.homes[object] = node;
            }
        }
    }

    /// Originals that can be reached again are brought up to date.
    fn reconcile(&mut self, node: NodeId) {
        if mutant::is("world.reconcile") {
            return;
        }
        for object in 0..self.homes.len() as ObjectId {
            if self.homes[object as usize] == node && self.reaches_original(object) {
                self.is_stale[object as usize] = false;
            }
        }
    }
}

impl Store for World {
    fn bytes(&self, object: ObjectId) -> u32 {
        self.scene.bytes[object as usize]
    }

    /// With the latest waits.
    fn costs(&self, object: ObjectId) -> Costs {
        let (hardware, bytes) = (&self.scene.hardware, self.scene.bytes[object as usize]);
        let remote = hardware.remote(bytes) + self.waits[0];
        Costs {
            local: hardware.local(bytes) as f32,
            remote: remote as f32,
            original: (hardware.disk_read(bytes) + self.waits[1] + remote) as f32,
            update: (hardware.transfer(bytes) + self.waits[0]) as f32,
            create: (hardware.transfer(bytes) + self.waits[0]) as f32,
        }
    }

    fn copies(&self, object: ObjectId) -> &[NodeId] {
        self.holders.of(object)
    }

    fn home(&self, object: ObjectId) -> NodeId {
        self.homes[object as usize]
    }

    fn has_original(&self, object: ObjectId) -> bool {
        self.reaches_original(object) && !self.is_stale[object as usize]
    }

    fn is_up(&self, node: NodeId) -> bool {
        self.down[usize::from(node)] == 0
    }

    fn group(&self, node: NodeId) -> u16 {
        self.scene.group(node)
    }

    fn room(&self, node: NodeId) -> u64 {
        self.scene.budget.saturating_sub(self.used[usize::from(node)])
    }

    fn create(&mut self, object: ObjectId, node: NodeId, is_at_hand: bool) -> bool {
        let bytes = self.bytes(object);
        let has_room = self.room(node) >= bytes.into() || mutant::is("world.room");
        if !self.is_up(node) || !has_room || self.has(object, node) {
            return false;
        }
        if !is_at_hand {
            let transfer = self.scene.hardware.transfer(bytes);
            match self.nearest(object) {
                Some(holder) => self.send(holder, transfer),
                None if self.has_original(object) => self.read_original(node, object).unwrap_or(0.0),
                None => return false,
            };
            self.work.moved += u64::from(bytes);
        }
        self.work.created += 1;
        self.used[usize::from(node)] += u64::from(bytes);
        self.holders.add(object, node);
        true
    }

    fn may_drop(&self, object: ObjectId, _node: NodeId) -> bool {
        !self.is_stale[object as usize] || self.holders.of(object).len() > 1 || mutant::is("world.last")
    }

    /// # Panics
    /// When the only current copy would go.
    fn drop(&mut self, object: ObjectId, node: NodeId) {
        assert!(self.may_drop(object, node), "the last copy of {object}");
        if self.holders.remove(object, node) && !mutant::is("world.used") {
            self.used[usize::from(node)] -= u64::from(self.scene.bytes[object as usize]);
        }
    }
}
