//! Accesses that `synth trace` recorded from real programs (`bench/redundancy/record.py` made the files).

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::synthetic::{Arrivals, PAGE};
use super::{Size, Workload};
use crate::{Access, Hardware};

/// One program's accesses: two bytes each, the page's number and the highest bit for a write.
#[derive(Clone, Copy, Debug)]
pub struct Recording {
    pub name: &'static str,
    words: &'static [u8],
}

const WRITE: u16 = 1 << 15;

impl Recording {
    pub fn accesses(&self) -> impl ExactSizeIterator<Item = (u32, bool)> {
        self.words.chunks_exact(2).map(|pair| {
            let word = u16::from_le_bytes([pair[0], pair[1]]);
            (u32::from(word & !WRITE), word & WRITE != 0)
        })
    }

    /// Pages that occur.
    pub fn pages(&self) -> u32 {
        self.accesses().map(|(page, _)| page + 1).max().unwrap_or(0)
    }
}

macro_rules! recordings {
    ($($name:literal),*) => {
        [$(Recording { name: $name, words: include_bytes!(concat!("../../recordings/", $name, ".accesses")) }),*]
    };
}

pub const RECORDINGS: [Recording; 4] = recordings!("sqlite", "shell", "tar", "perl");

/// A node goes on with the same program so often, when a piece of it is over.
const STAYS: f64 = 0.8;
/// Accesses of a piece.
const PIECE: usize = 1500;

/// Where a node is.
#[derive(Clone, Copy)]
struct Player {
    recording: usize,
    at: usize,
    left: usize,
}

/// Each node runs a program, and at times another one; who runs the same program uses the same pages.
pub fn workload(size: Size, hardware: &Hardware, seed: u64) -> Workload {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_mul(31) + 99);
    let all: Vec<Vec<(u32, bool)>> = RECORDINGS.iter().map(|recording| recording.accesses().collect()).collect();
    let mut first = Vec::new();
    let mut pages = 0;
    for recording in &RECORDINGS {
        first.push(pages);
        pages += recording.pages();
    }
    let start = |recording: usize, random: &mut Xoshiro256PlusPlus| Player {
        recording,
        at: random.random_range(0..all[recording].len()),
        left: PIECE,
    };
    let mut players: Vec<Player> = (0..size.nodes).map(|node| start(node % RECORDINGS.len(), &mut random)).collect();
    let per_second = hardware.accesses * size.nodes as f64;
    let mut arrivals = Arrivals::new(per_second);
    let accesses = (0..size.accesses).map(|_| {
        let node = random.random_range(0..size.nodes);
        let player = &mut players[node];
        if player.left == 0 {
            player.left = PIECE;
            if random.random::<f64>() >= STAYS {
                *player = start(random.random_range(0..RECORDINGS.len()), &mut random);
            }
        }
        let Player { recording, at, .. } = *player;
        player.left -= 1;
        player.at = (at + 1) % all[recording].len();
        let (page, is_write) = all[recording][at];
        Access { at: arrivals.next(&mut random), object: first[recording] + page, node: node as u16, is_write }
    });
    let accesses = accesses.collect();
    let seconds = size.accesses as f64 / per_second;
    Workload { nodes: size.nodes, seconds, bytes: vec![PAGE; pages as usize], accesses, events: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_programs_that_read_and_write() {
        for recording in RECORDINGS {
            let writes = recording.accesses().filter(|(_, is_write)| *is_write).count();
            let (count, pages) = (recording.accesses().len(), recording.pages());
            assert!(count > 2000 && pages > 200 && writes > 20, "{}: {count} {pages} {writes}", recording.name);
            assert!(writes * 2 < count * 2 && (pages as usize) < count, "{}", recording.name);
        }
    }
}
