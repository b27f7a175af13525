//! All policies with the settings that tuning may choose from.

use redundancy::{Change, Formula, Goals, HalfLife, Settings};

use super::caching::AtWrites;
use super::greedy_dual::CostOf;
use super::{Arc, ByValue, Caching, Clock, Fixed, GreedyDual, Lhd, Lru, Policy, Proportional, S3Fifo};
use crate::Scene;

/// A policy, its settings left open.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A buffer cache on each node that knows nothing of the others: what the authors compared with.
    Alone,
    Lru,
    Clock,
    Arc,
    S3Fifo,
    GreedyDual,
    Lhd,
    Fixed,
    WriteAll,
    Majority,
    Proportional,
    /// Valued redundancy with the formula that looks at one node only.
    ByFrequency,
    Valued,
}

impl Kind {
    pub const ALL: [Kind; 13] = [
        Kind::Alone,
        Kind::Lru,
        Kind::Clock,
        Kind::Arc,
        Kind::S3Fifo,
        Kind::GreedyDual,
        Kind::Lhd,
        Kind::Fixed,
        Kind::WriteAll,
        Kind::Majority,
        Kind::Proportional,
        Kind::ByFrequency,
        Kind::Valued,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Alone => "LRU, each alone",
            Kind::Lru => "LRU",
            Kind::Clock => "CLOCK",
            Kind::Arc => "ARC",
            Kind::S3Fifo => "S3-FIFO",
            Kind::GreedyDual => "GreedyDual-Size",
            Kind::Lhd => "LHD",
            Kind::Fixed => "fixed k",
            Kind::WriteAll => "read one, write all",
            Kind::Majority => "majority",
            Kind::Proportional => "proportional",
            Kind::ByFrequency => "valued, frequency",
            Kind::Valued => "valued",
        }
    }
}

/// A policy with its settings.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setting {
    pub kind: Kind,
    at_writes: AtWrites,
    /// Copies, voters, rounds, a period: a whole number.
    count: usize,
    /// A share or an exponent.
    share: f32,
    /// A half-life as a share of the run.
    half_life: f32,
    formula: Formula,
    cost_of: CostOf,
}

const HALF_LIVES: [f32; 3] = [0.03, 0.12, 0.5];

impl Setting {
    fn of(kind: Kind) -> Setting {
        Setting {
            kind,
            at_writes: AtWrites::Update,
            count: 0,
            share: 0.0,
            half_life: 0.0,
            formula: Formula::Marginal,
            cost_of: CostOf::Miss,
        }
    }

    /// What tuning may choose from: at most six for each policy, ours too.
    pub fn choices(kind: Kind) -> Vec<Setting> {
        let base = Setting::of(kind);
        let counts = |counts: &[usize]| counts.iter().map(|count| Setting { count: *count, ..base }).collect();
        let shares = |shares: &[f32]| shares.iter().map(|share| Setting { share: *share, ..base }).collect::<Vec<_>>();
        let cached = |settings: Vec<Setting>| {
            let both =
                |setting| [AtWrites::Update, AtWrites::Invalidate].map(|at_writes| Setting { at_writes, ..setting });
            settings.into_iter().flat_map(both).collect()
        };
        let lived = |settings: Vec<Setting>| {
            let each = |setting| HALF_LIVES.map(|half_life| Setting { half_life, ..setting });
            settings.into_iter().flat_map(each).collect()
        };
        match kind {
            Kind::Alone | Kind::Lru | Kind::Arc => cached(vec![base]),
            Kind::Clock => cached(counts(&[1, 3])),
            Kind::S3Fifo => cached(shares(&[0.05, 0.1, 0.25])),
            Kind::GreedyDual => {
                cached([CostOf::Miss, CostOf::Seconds].map(|cost_of| Setting { cost_of, ..base }).to_vec())
            }
            Kind::Lhd => cached(counts(&[2, 8])),
            Kind::Fixed | Kind::WriteAll => counts(&[1, 2, 3]),
            Kind::Majority => counts(&[3, 5]),
            Kind::Proportional => lived(shares(&[1.0, 0.5])),
            Kind::ByFrequency => lived(vec![Setting { formula: Formula::Frequency, ..base }]),
            Kind::Valued => {
                lived([Formula::Marginal, Formula::Ratio].map(|formula| Setting { formula, ..base }).to_vec())
            }
        }
    }

    /// The settings in words.
    pub fn words(&self) -> String {
        let writes = if self.at_writes == AtWrites::Update { "update" } else { "invalidate" };
        match self.kind {
            Kind::Alone | Kind::Lru | Kind::Arc => writes.into(),
            Kind::Clock => format!("{} rounds, {writes}", self.count),
            Kind::S3Fifo => format!("small {}, {writes}", self.share),
            Kind::GreedyDual => format!("{:?}, {writes}", self.cost_of),
            Kind::Lhd => format!("period {}, {writes}", self.count),
            Kind::Fixed | Kind::WriteAll => format!("k = {}", self.count),
            Kind::Majority => format!("{} voters", self.count),
            Kind::Proportional => format!("exponent {}, half-life {}", self.share, self.half_life),
            Kind::ByFrequency | Kind::Valued => format!("{:?}, half-life {}", self.formula, self.half_life),
        }
    }

    /// The policy for a run of so many seconds.
    pub fn make(&self, scene: &Scene, seconds: f64) -> Box<dyn Policy> {
        let (nodes, objects, budget) = (scene.nodes, scene.bytes.len(), scene.budget);
        let at_writes = self.at_writes;
        let half_life = HalfLife(self.half_life * seconds as f32);
        match self.kind {
            Kind::Alone => Box::new(Caching::new(nodes, at_writes, Lru::default).alone()),
            Kind::Lru => Box::new(Caching::new(nodes, at_writes, Lru::default)),
            Kind::Clock => Box::new(Caching::new(nodes, at_writes, || Clock::new(self.count as u8))),
            Kind::Arc => Box::new(Caching::new(nodes, at_writes, || Arc::new(budget))),
            Kind::S3Fifo => Box::new(Caching::new(nodes, at_writes, || S3Fifo::new(budget, self.share.into()))),
            Kind::GreedyDual => Box::new(Caching::new(nodes, at_writes, || GreedyDual::new(self.cost_of))),
            Kind::Lhd => Box::new(Caching::new(nodes, at_writes, || Lhd::new(self.count as u32))),
            Kind::Fixed => Box::new(Fixed::available(nodes, self.count)),
            Kind::WriteAll => Box::new(Fixed::write_all(nodes, self.count)),
            Kind::Majority => Box::new(Fixed::majority(nodes, self.count)),
            Kind::Proportional => Box::new(Proportional::new(nodes, objects, half_life, self.share)),
            Kind::ByFrequency | Kind::Valued => {
                Box::new(ByValue::new(nodes, objects, settings(scene, self.formula, half_life)))
            }
        }
    }
}

/// Settings of valued redundancy; the goals are those by which all policies are tuned.
pub fn settings(scene: &Scene, formula: Formula, half_life: HalfLife) -> Settings {
    let goals = Goals { failure_seconds: scene.hardware.failure_seconds() as f32 };
    let total: u64 = scene.bytes.iter().map(|bytes| u64::from(*bytes)).sum();
    let mean = (total / scene.bytes.len().max(1) as u64).max(1);
    let ghosts = ((4 * scene.budget / mean) as usize).clamp(64, 1 << 16);
    let change = Change { margin: 0.1, horizon: half_life.0 };
    Settings { formula, ghosts, change, ..Settings::new(goals, half_life) }
}
