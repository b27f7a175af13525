//! Workloads from distributions.

use rand::Rng;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, Exp1, LogNormal, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use redundancy::NodeId;

use super::{Kind, Size, Workload};
use crate::failure::{Event, Happening};
use crate::{Access, Hardware};

pub const PAGE: u32 = 4096;

/// Times of accesses: a Poisson process.
#[derive(Clone, Debug)]
pub struct Arrivals {
    now: f64,
    gap: f64,
}

impl Arrivals {
    pub fn new(per_second: f64) -> Arrivals {
        Arrivals { now: 0.0, gap: 1.0 / per_second }
    }

    pub fn next(&mut self, random: &mut impl Rng) -> f64 {
        let unit: f64 = Exp1.sample(random);
        self.now += unit * self.gap;
        self.now
    }
}

/// Objects by Zipf's law, in an order of their own.
#[derive(Clone, Debug)]
pub struct Popularity {
    zipf: Zipf<f64>,
    order: Vec<u32>,
}

impl Popularity {
    pub fn new(objects: usize, exponent: f64, random: &mut impl Rng) -> Popularity {
        let mut order: Vec<u32> = (0..objects as u32).collect();
        order.shuffle(random);
        Popularity { zipf: Zipf::new(objects as f64, exponent).expect("a positive exponent"), order }
    }

    pub fn pick(&self, random: &mut impl Rng) -> u32 {
        self.order[self.rank(random)]
    }

    fn rank(&self, random: &mut impl Rng) -> usize {
        (self.zipf.sample(random) as usize - 1).min(self.order.len() - 1)
    }

    /// The objects from the most popular on.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// A share of the objects change places with others.
    fn drift(&mut self, share: f64, random: &mut impl Rng) {
        let objects = self.order.len();
        for _ in 0..(objects as f64 * share / 2.0) as usize {
            self.order.swap(random.random_range(0..objects), random.random_range(0..objects));
        }
    }
}

/// What differs between the workloads.
struct Plan {
    exponent: f64,
    writes: f64,
    /// Parts of the run after each of which popularity drifts.
    drifts: usize,
    scans: f64,
    /// Objects, from the most popular, that have a writer of their own.
    written: usize,
    /// Share of accesses that go to favourites of the node's party.
    favourites: f64,
    /// How many parties there are.
    parties: usize,
    is_diurnal: bool,
    has_files: bool,
    is_churning: bool,
}

fn plan(kind: Kind, size: Size) -> Plan {
    let base = Plan {
        exponent: 0.9,
        writes: 0.05,
        drifts: 1,
        scans: 0.0,
        written: 0,
        favourites: 0.0,
        parties: 1,
        is_diurnal: false,
        has_files: false,
        is_churning: false,
    };
    match kind {
        Kind::Drift => Plan { drifts: 40, ..base },
        Kind::Scans => Plan { scans: 1.0 / 3.0, ..base },
        Kind::Writers => Plan { exponent: 0.8, writes: 0.02, written: size.objects / 10, ..base },
        Kind::Diurnal => Plan { favourites: 0.7, parties: 4, is_diurnal: true, has_files: true, ..base },
        Kind::Churn => Plan { exponent: 0.8, favourites: 0.5, parties: size.nodes, is_churning: true, ..base },
        Kind::Steady | Kind::Recorded => base,
    }
}

const SCAN: u32 = 500;
/// How often the day turns in a run.
const DAYS: f64 = 2.0;

pub fn workload(kind: Kind, size: Size, hardware: &Hardware, seed: u64) -> Workload {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_mul(31) + kind as u64);
    let plan = plan(kind, size);
    let per_second = hardware.accesses * size.nodes as f64;
    let seconds = size.accesses as f64 / per_second;
    let bytes = bytes(&plan, size, &mut random);
    let mut common = Popularity::new(size.objects, plan.exponent, &mut random);
    let parties: Vec<Popularity> =
        (0..plan.parties).map(|_| Popularity::new(size.objects, plan.exponent, &mut random)).collect();
    let mut scans = vec![(0u32, 0u32); size.nodes];
    let mut arrivals = Arrivals::new(per_second);
    let mut accesses = Vec::with_capacity(size.accesses);
    for turn in 0..size.accesses {
        if (turn + 1).is_multiple_of(size.accesses.div_ceil(plan.drifts)) {
            common.drift(0.05, &mut random);
        }
        let at = arrivals.next(&mut random);
        let node = node(&plan, size, at / seconds, &mut random);
        let own = &parties[usize::from(node) % plan.parties];
        let mut is_write = random.random::<f64>() < plan.writes;
        let mut writer = node;
        let object = if random.random::<f64>() < plan.scans {
            is_write = false;
            scan(&mut scans[usize::from(node)], size, &mut random)
        } else if random.random::<f64>() < plan.favourites {
            own.pick(&mut random)
        } else {
            let rank = common.rank(&mut random);
            let object = common.order[rank];
            if rank < plan.written && random.random::<bool>() {
                (is_write, writer) = (true, (object as usize % size.nodes) as NodeId);
            }
            object
        };
        accesses.push(Access { at, object, node: writer, is_write });
    }
    let events = if plan.is_churning { churn(size, seconds, &mut random) } else { Vec::new() };
    Workload { nodes: size.nodes, seconds, bytes, accesses, events }
}

fn bytes(plan: &Plan, size: Size, random: &mut impl Rng) -> Vec<u32> {
    if !plan.has_files {
        return vec![PAGE; size.objects];
    }
    // Files: median 6 KB, one in a hundred above 60.
    let files = LogNormal::new((6144.0f64).ln(), 1.0).expect("a positive deviation");
    (0..size.objects).map(|_| (files.sample(random) as u32).clamp(1024, 64 << 10)).collect()
}

/// Who accesses: everybody alike, or by day.
fn node(plan: &Plan, size: Size, part: f64, random: &mut impl Rng) -> NodeId {
    loop {
        let node = random.random_range(0..size.nodes);
        if !plan.is_diurnal {
            return node as NodeId;
        }
        let zone = (node % plan.parties) as f64 / plan.parties as f64;
        let awake = 0.5 + 0.5 * (std::f64::consts::TAU * (part * DAYS + zone)).cos();
        if random.random::<f64>() < awake * awake + 0.02 {
            return node as NodeId;
        }
    }
}

/// The next object of a node's scan.
fn scan((next, left): &mut (u32, u32), size: Size, random: &mut impl Rng) -> u32 {
    if *left == 0 {
        (*next, *left) = (random.random_range(0..size.objects as u32), SCAN.min(size.objects as u32 / 4));
    }
    *left -= 1;
    *next = (*next + 1) % size.objects as u32;
    *next
}

/// Each node leaves once or so and comes back later, one after the other.
fn churn(size: Size, seconds: f64, random: &mut impl Rng) -> Vec<Event> {
    let mut nodes: Vec<NodeId> = (0..size.nodes as NodeId).collect();
    nodes.shuffle(random);
    let step = seconds / (nodes.len() + 2) as f64;
    let mut events = Vec::new();
    for (turn, node) in nodes.into_iter().enumerate() {
        let at = step * (turn as f64 + random.random::<f64>());
        events.push(Event { at, node, what: Happening::Leave });
        events.push(Event { at: at + 2.0 * step, node, what: Happening::Join });
    }
    events.sort_by(|a, b| a.at.total_cmp(&b.at));
    events
}
