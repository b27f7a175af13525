//! The best that could be done by who knows the future, on small cases: dynamic programming over all states of all memories.
//!
//! It is a bound for every policy of this crate: an object may come into memories only when it is accessed, but then into any,
//! and what is in memories may be copied between them at any time, for nothing. Nothing waits in queues, and a write that only a
//! crashed memory had is not held against it.

use redundancy::NodeId;

use crate::failure::{Event, Happening};
use crate::{Access, Scene};

const OBJECTS_MAX: usize = 8;
const NODES_MAX: usize = 3;

/// Which objects each node has in memory, a bit each.
type State = [u8; NODES_MAX];

struct Search<'a> {
    scene: &'a Scene,
    states: Vec<State>,
    /// Least cost so far of being in each state.
    least: Vec<f64>,
    down: [u8; NODES_MAX],
    disk_down: [u8; NODES_MAX],
    failure_seconds: f64,
}

/// The least mean cost of an attempted access, a failure counting as so many seconds; homes stay where they are, so nobody may
/// leave.
///
/// # Panics
/// When the case is not small, or a node leaves.
pub fn least_cost(scene: &Scene, accesses: &[Access], events: &[Event], failure_seconds: f64) -> f64 {
    assert!(scene.nodes <= NODES_MAX && scene.bytes.len() <= OBJECTS_MAX, "the case is not small");
    let mut search = Search::new(scene, failure_seconds);
    let mut events = events.iter().peekable();
    let mut attempted = 0u32;
    for access in accesses {
        while let Some(event) = events.next_if(|event| event.at <= access.at) {
            search.happen(event);
        }
        if search.down[usize::from(access.node)] == 0 {
            attempted += 1;
            search.access(access);
        }
    }
    search.least.iter().copied().fold(f64::INFINITY, f64::min) / f64::from(attempted.max(1))
}

impl Search<'_> {
    fn new(scene: &Scene, failure_seconds: f64) -> Search<'_> {
        let sets: Vec<u8> =
            (0..1u16 << scene.bytes.len()).map(|set| set as u8).filter(|set| fits(scene, *set)).collect();
        let mut states = vec![[0; NODES_MAX]];
        for node in 0..scene.nodes {
            let with = |state: State| {
                sets.iter().map(move |set| {
                    let mut state = state;
                    state[node] = *set;
                    state
                })
            };
            states = states.into_iter().flat_map(with).collect();
        }
        let least = states.iter().map(|state| if *state == [0; NODES_MAX] { 0.0 } else { f64::INFINITY }).collect();
        Search { scene, states, least, down: [0; NODES_MAX], disk_down: [0; NODES_MAX], failure_seconds }
    }

    fn happen(&mut self, event: &Event) {
        let node = usize::from(event.node);
        match event.what {
            Happening::Down => {
                self.down[node] += 1;
                self.move_free(0);
            }
            Happening::Up => self.down[node] -= 1,
            Happening::DiskDown => self.disk_down[node] += 1,
            Happening::DiskUp => self.disk_down[node] -= 1,
            Happening::Leave | Happening::Join => panic!("nobody may leave"),
        }
    }

    fn access(&mut self, access: &Access) {
        if access.is_write {
            // Copies may go before it.
            self.move_free(0);
        }
        let costs: Vec<f64> = self.states.iter().map(|state| self.cost(state, access)).collect();
        self.least.iter_mut().zip(costs).for_each(|(least, cost)| *least += cost);
        self.move_free(1 << access.object);
    }

    /// From each state to each whose objects the old one has, or that are `new`; what a node that is down had is lost, and it
    /// can have nothing.
    fn move_free(&mut self, new: u8) {
        let union = |state: &State| {
            let up = state.iter().zip(self.down).filter(|(_, down)| *down == 0);
            up.fold(0, |all, (set, _)| all | set)
        };
        let mut best = [f64::INFINITY; 1 << OBJECTS_MAX];
        for (state, least) in self.states.iter().zip(&self.least) {
            let cell = &mut best[usize::from(union(state) | new)];
            *cell = cell.min(*least);
        }
        // The least of all that have these objects and more.
        for bit in 0..OBJECTS_MAX {
            for set in (0..best.len()).filter(|set| set >> bit & 1 == 0) {
                best[set] = best[set].min(best[set | 1 << bit]);
            }
        }
        for (state, least) in self.states.iter().zip(&mut self.least) {
            let is_possible = state.iter().zip(self.down).all(|(set, down)| down == 0 || *set == 0);
            *least = if is_possible { best[usize::from(union(state))] } else { f64::INFINITY };
        }
    }

    fn cost(&self, state: &State, access: &Access) -> f64 {
        let Access { node, object, is_write, .. } = *access;
        let (hardware, bytes) = (&self.scene.hardware, self.scene.bytes[object as usize]);
        let home = self.scene.homes[object as usize];
        let has_original = self.down[usize::from(home)] == 0 && self.disk_down[usize::from(home)] == 0;
        let has = |node: NodeId| state[usize::from(node)] >> object & 1 != 0;
        let others = (0..self.scene.nodes as NodeId).filter(|other| *other != node && has(*other)).count();
        let way = if home == node { 0.0 } else { hardware.remote(bytes) };
        if !(has_original || has(node) || others > 0) {
            return self.failure_seconds;
        }
        if is_write {
            let copies =
                if others > 0 { hardware.network_latency + hardware.transfer(bytes) * others as f64 } else { 0.0 };
            let original = if has_original { way + hardware.disk_write(bytes) } else { 0.0 };
            return hardware.local(bytes).max(copies).max(original);
        }
        match () {
            () if has(node) => hardware.local(bytes),
            () if others > 0 => hardware.remote(bytes),
            () => hardware.disk_read(bytes) + way,
        }
    }
}

fn fits(scene: &Scene, set: u8) -> bool {
    let bytes = scene.bytes.iter().enumerate().filter(|(object, _)| set >> object & 1 != 0);
    bytes.map(|(_, bytes)| u64::from(*bytes)).sum::<u64>() <= scene.budget
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hardware;

    /// On one node with objects of one size it is Belady's rule: count the misses of what is needed latest.
    #[test]
    fn one_node_is_beladys_minimum() {
        let hardware = Hardware::TODAY;
        let mut scene = Scene::new(hardware, 1, vec![4096; 6], 0.5);
        scene.has_queues = false;
        let mut word = 9u32;
        let objects: Vec<u32> = (0..300)
            .map(|_| {
                word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (word >> 24) % 6
            })
            .collect();
        let mut kept: Vec<u32> = Vec::new();
        let mut misses = 0;
        for (at, object) in objects.iter().enumerate() {
            if kept.contains(object) {
                continue;
            }
            misses += 1;
            kept.push(*object);
            if kept.len() > 3 {
                let next = |kept: &u32| objects[at + 1..].iter().position(|later| later == kept).unwrap_or(usize::MAX);
                let latest = (0..kept.len()).max_by_key(|place| next(&kept[*place])).unwrap();
                kept.remove(latest);
            }
        }
        let accesses: Vec<Access> = objects
            .iter()
            .enumerate()
            .map(|(at, object)| Access { at: at as f64, object: *object, node: 0, is_write: false })
            .collect();
        let found = least_cost(&scene, &accesses, &[], 1.0);
        let (hit, miss) = (hardware.local(4096), hardware.disk_read(4096));
        let expected = (misses as f64 * miss + (300 - misses) as f64 * hit) / 300.0;
        // Belady must take each object in; who need not can do a little better.
        assert!(found <= expected + 1e-12 && found > 0.9 * expected, "{found} {expected}");
    }

    #[test]
    fn what_nobody_can_reach_fails() {
        let scene = Scene::new(Hardware::TODAY, 2, vec![4096; 2], 1.0);
        let object = (0..2).find(|object| scene.homes[*object as usize] == 0).unwrap_or(0);
        let home = scene.homes[object as usize];
        let access = Access { at: 1.0, object, node: 1 - home, is_write: false };
        let events = [Event { at: 0.5, node: home, what: Happening::Down }];
        assert_eq!(least_cost(&scene, &[access], &events, 7.0), 7.0);
    }
}
