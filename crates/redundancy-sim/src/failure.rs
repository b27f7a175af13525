//! What fails when.

use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use redundancy::NodeId;

/// What happens to a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Happening {
    /// It crashes: its memory is lost, its disk out of reach.
    Down,
    Up,
    /// Its disk alone fails.
    DiskDown,
    /// The disk is back, restored from a log that is current.
    DiskUp,
    /// It goes, announced; others take over its originals.
    Leave,
    /// It is back, with nothing.
    Join,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Event {
    pub at: f64,
    pub node: NodeId,
    pub what: Happening,
}

/// How often what fails.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Failures {
    pub name: &'static str,
    /// Share of time for which a node is down by itself.
    pub node: f64,
    /// Share of time for which a disk is down while its node is up.
    pub disk: f64,
    /// Share of time for which a whole group is down.
    pub group: f64,
    /// Mean length of an outage, as a share of the run. Real nodes fail once in months; a run is seconds to minutes long.
    /// So failures are brought nearer to each other: what is kept is the share of time, and that an outage is long against
    /// the time in which copies are made.
    pub length: f64,
}

impl Failures {
    pub const NONE: Failures = Failures { name: "none", node: 0.0, disk: 0.0, group: 0.0, length: 0.04 };
    pub const RARE: Failures = Failures { name: "rare", node: 0.01, disk: 0.005, group: 0.0025, length: 0.04 };
    pub const OFTEN: Failures = Failures { name: "often", node: 0.05, disk: 0.025, group: 0.0125, length: 0.04 };

    /// The events of a run, in order of time.
    pub fn events(&self, nodes: usize, groups: usize, seconds: f64, seed: u64) -> Vec<Event> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ 0xFA11);
        let mut events = Vec::new();
        for node in 0..nodes as NodeId {
            self.alternate(self.node, seconds, &mut random, |at, is_down| {
                events.push(Event { at, node, what: if is_down { Happening::Down } else { Happening::Up } });
            });
            self.alternate(self.disk, seconds, &mut random, |at, is_down| {
                events.push(Event { at, node, what: if is_down { Happening::DiskDown } else { Happening::DiskUp } });
            });
        }
        for group in 0..groups {
            self.alternate(self.group, seconds, &mut random, |at, is_down| {
                let what = if is_down { Happening::Down } else { Happening::Up };
                let members = (group..nodes).step_by(groups);
                events.extend(members.map(|node| Event { at, node: node as NodeId, what }));
            });
        }
        events.sort_by(|a, b| a.at.total_cmp(&b.at));
        events
    }

    /// Up and down in turn, each for a time that is exponentially distributed.
    fn alternate(&self, share: f64, seconds: f64, random: &mut Xoshiro256PlusPlus, mut note: impl FnMut(f64, bool)) {
        if share == 0.0 {
            return;
        }
        let down = self.length * seconds;
        let up = down * (1.0 - share) / share;
        let mut after = |mean: f64| {
            let unit: f64 = Exp1.sample(random);
            mean * unit
        };
        let mut at = after(up);
        while at < seconds {
            note(at, true);
            at += after(down);
            note(at, false);
            at += after(up);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_have_their_share_of_time() {
        let failures = Failures { length: 0.0001, ..Failures::OFTEN };
        let events = failures.events(8, 2, 100.0, 5);
        let mut down = 0.0;
        for event in &events {
            match event.what {
                Happening::DiskDown => down -= event.at.min(100.0),
                Happening::DiskUp => down += event.at.min(100.0),
                _ => {}
            }
        }
        let share = down / 800.0;
        assert!((share / failures.disk - 1.0).abs() < 0.1, "{share}");
        assert!(events.windows(2).all(|pair| pair[0].at <= pair[1].at));
    }
}
