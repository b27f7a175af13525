//! Time and memory against size.

use std::time::Instant;

use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use redundancy::NodeId;

use crate::failure::Failures;
use crate::policy::{Kind, Setting};
use crate::workload::Arrivals;
use crate::{Access, Hardware, Scene, World, run};

/// What one size came to.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub kind: Kind,
    pub nodes: usize,
    pub objects: usize,
    pub accesses: u64,
    /// Seconds on this machine.
    pub seconds: f64,
    /// Bytes of this process that came with the run: what an earlier run in the same process has left free does not come with it.
    pub bytes: u64,
    /// Mean time of an access, and the share of those that found a copy.
    pub access_seconds: f64,
    pub availability: f64,
}

/// Accesses for each object.
const EACH: u64 = 5;
const PAGE: u32 = 4096;
const SHARE: f64 = 0.1;

/// Nodes and objects of the sizes that are measured.
pub const SIZES: [(usize, usize); 5] =
    [(10, 100_000), (30, 300_000), (100, 1_000_000), (300, 3_000_000), (1000, 10_000_000)];

/// Runs a policy at one size, nodes crashing now and then.
pub fn measure(kind: Kind, nodes: usize, objects: usize) -> Point {
    let resident = resident_bytes();
    let began = Instant::now();
    let hardware = Hardware::TODAY;
    let accesses = EACH * objects as u64;
    let seconds = accesses as f64 / (hardware.accesses * nodes as f64);
    let scene = Scene::new(hardware, nodes, vec![PAGE; objects], SHARE);
    let events = Failures::RARE.events(nodes, scene.groups, seconds, 1);
    let setting = *Setting::choices(kind).last().expect("each policy has choices");
    let mut policy = setting.make(&scene, seconds);
    let mut world = World::new(scene);
    let outcome = run(&mut world, stream(nodes, objects, accesses), &events, policy.as_mut(), seconds * 0.25);
    let bytes = resident_bytes().saturating_sub(resident);
    Point {
        kind,
        nodes,
        objects,
        accesses,
        seconds: began.elapsed().as_secs_f64(),
        bytes,
        access_seconds: outcome.access_seconds(),
        availability: outcome.availability(),
    }
}

/// Zipf 0.9, made as it is used.
fn stream(nodes: usize, objects: usize, count: u64) -> impl Iterator<Item = Access> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut arrivals = Arrivals::new(Hardware::TODAY.accesses * nodes as f64);
    let zipf = Zipf::new(objects as f64, 0.9).expect("a positive exponent");
    (0..count).map(move |_| {
        let rank = zipf.sample(&mut random) as u64 - 1;
        // Popular objects lie apart: a step that has no factor in common with any of the sizes.
        let object = (rank * 7_368_787 % objects as u64) as u32;
        let word = random.next_u64();
        let node = (((word >> 32) * nodes as u64) >> 32) as NodeId;
        Access { at: arrivals.next(&mut random), object, node, is_write: word & 31 == 0 }
    })
}

/// Memory of this process, in bytes; 0 where there is no /proc.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}
