//! Who accesses what when.

mod recorded;
mod synthetic;

pub use recorded::{RECORDINGS, Recording};
pub use synthetic::{Arrivals, Popularity};

use crate::failure::Event;
use crate::{Access, Hardware};

/// A workload, its figures left open.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// The same popularity for all, for ever: the case in which the best answer can be computed.
    Steady,
    Drift,
    Scans,
    Writers,
    Diurnal,
    Churn,
    Recorded,
}

impl Kind {
    pub const ALL: [Kind; 7] =
        [Kind::Steady, Kind::Drift, Kind::Scans, Kind::Writers, Kind::Diurnal, Kind::Churn, Kind::Recorded];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Steady => "steady",
            Kind::Drift => "drift",
            Kind::Scans => "scans",
            Kind::Writers => "hot writers",
            Kind::Diurnal => "diurnal",
            Kind::Churn => "join and leave",
            Kind::Recorded => "recorded",
        }
    }

    pub fn what(self) -> &'static str {
        match self {
            Kind::Steady => "Zipf 0.9 for ever, all nodes alike, one access in twenty writes",
            Kind::Drift => "Zipf 0.9; forty times in a run a twentieth of the objects change places",
            Kind::Scans => "Zipf 0.9, and a third of all accesses read on and on through 500 objects",
            Kind::Writers => "Zipf 0.8; each of the most popular tenth is written by one node in half of its accesses",
            Kind::Diurnal => "files of 1 to 64 KB; groups of nodes are awake in turn, with favourites of their own",
            Kind::Churn => "Zipf 0.8, half of it favourites of the node; nodes leave and come back, announced",
            Kind::Recorded => "pages of files and of memory that sqlite, a shell, tar and perl used, by synth trace",
        }
    }
}

/// How large.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Size {
    pub nodes: usize,
    pub objects: usize,
    pub accesses: usize,
}

impl Size {
    pub const FULL: Size = Size { nodes: 12, objects: 4000, accesses: 80_000 };
    pub const QUICK: Size = Size { nodes: 6, objects: 200, accesses: 1_000 };
}

/// Accesses and what belongs to them.
#[derive(Clone, Debug)]
pub struct Workload {
    pub nodes: usize,
    pub seconds: f64,
    /// Bytes of each object.
    pub bytes: Vec<u32>,
    pub accesses: Vec<Access>,
    /// Nodes that join and leave.
    pub events: Vec<Event>,
}

impl Workload {
    pub fn new(kind: Kind, size: Size, hardware: &Hardware, seed: u64) -> Workload {
        match kind {
            Kind::Recorded => recorded::workload(size, hardware, seed),
            _ => synthetic::workload(kind, size, hardware, seed),
        }
    }
}
