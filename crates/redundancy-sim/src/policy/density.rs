//! LHD (N. Beckmann, H. Chen, A. Cidon: *LHD: Improving Cache Hit Rate by Maximizing Hit Density*, NSDI 2018): what goes is, of a
//! sample, what is expected to bring the fewest hits for the room and time that it takes. Ages are counted in accesses.

use redundancy::Index;

use super::Cache;

const AGES: usize = 64;
const CLASSES: usize = 12;
const SAMPLES: usize = 32;
/// What is left of the counts at each reckoning.
const KEPT: f64 = 0.9;

#[derive(Clone, Copy, Debug)]
struct Entry {
    object: u32,
    bytes: u32,
    at: u32,
    class: u8,
}

#[derive(Clone, Copy, Debug)]
struct Counts {
    hits: [f64; AGES],
    evictions: [f64; AGES],
    density: [f64; AGES],
}

pub struct Lhd {
    entries: Vec<Entry>,
    index: Index,
    classes: Vec<Counts>,
    now: u32,
    /// Ages are divided by 2 to this power.
    shift: u32,
    next_reckoning: u32,
    random: u32,
    /// Accesses between two reckonings, as a multiple of entries.
    period: u32,
}

impl Lhd {
    pub fn new(period: u32) -> Lhd {
        let mut counts = Counts { hits: [0.0; AGES], evictions: [0.0; AGES], density: [0.0; AGES] };
        // Before anything is known: like LRU.
        (0..AGES).for_each(|age| counts.density[age] = 1.0 / (age + 1) as f64);
        let classes = vec![counts; CLASSES];
        Lhd {
            entries: Vec::new(),
            index: Index::new(),
            classes,
            now: 0,
            shift: 0,
            next_reckoning: 256,
            random: 0x9E37_79B9,
            period,
        }
    }

    fn age(&self, entry: &Entry) -> usize {
        (((self.now - entry.at) >> self.shift) as usize).min(AGES - 1)
    }

    /// New objects are one class, the others are sorted by their last age.
    fn class(age: usize) -> u8 {
        (1 + (usize::BITS - age.leading_zeros()) as usize).min(CLASSES - 1) as u8
    }

    fn tick(&mut self) {
        self.now += 1;
        if self.now >= self.next_reckoning {
            self.reckon();
            self.next_reckoning = self.now + (self.entries.len() as u32 * self.period).max(256);
        }
    }

    /// Hit density by class and age: expected hits over expected time that is left.
    fn reckon(&mut self) {
        let (mut young, mut old) = (0.0, 0.0);
        for counts in &mut self.classes {
            let (mut hits, mut events, mut time) = (0.0, 0.0, 0.0);
            for age in (0..AGES).rev() {
                hits += counts.hits[age];
                events += counts.hits[age] + counts.evictions[age];
                time += events;
                counts.density[age] = if time > 0.0 { hits / time } else { 1.0 / (age + 1) as f64 * 1e-3 };
            }
            for age in 0..AGES {
                *(if age < AGES / 4 { &mut young } else { &mut old }) += counts.hits[age] + counts.evictions[age];
                counts.hits[age] *= KEPT;
                counts.evictions[age] *= KEPT;
            }
        }
        self.stretch(young, old);
    }

    /// Ages that are counted should cover the life of entries.
    fn stretch(&mut self, young: f64, old: f64) {
        let saturated: f64 = self.classes.iter().map(|counts| counts.hits[AGES - 1] + counts.evictions[AGES - 1]).sum();
        if saturated > 0.02 * (young + old) && self.shift < 24 {
            self.shift += 1;
        } else if old < 0.01 * young && self.shift > 0 {
            self.shift -= 1;
        }
    }

    fn density(&self, entry: &Entry) -> f64 {
        self.classes[usize::from(entry.class)].density[self.age(entry)] / f64::from(entry.bytes)
    }

    fn take(&mut self, object: u32) -> Option<Entry> {
        let at = self.index.remove(object)? as usize;
        let gone = self.entries.swap_remove(at);
        if let Some(moved) = self.entries.get(at) {
            self.index.set(moved.object, at as u32);
        }
        Some(gone)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        ((u64::from(self.random) * limit as u64) >> 32) as usize
    }
}

impl Cache for Lhd {
    fn hit(&mut self, object: u32) {
        self.tick();
        let Some(at) = self.index.get(object) else { return };
        let entry = self.entries[at as usize];
        let age = self.age(&entry);
        self.classes[usize::from(entry.class)].hits[age] += 1.0;
        self.entries[at as usize] = Entry { at: self.now, class: Lhd::class(age), ..entry };
    }

    fn insert(&mut self, object: u32, bytes: u32, _cost: f32) {
        self.tick();
        self.index.set(object, self.entries.len() as u32);
        self.entries.push(Entry { object, bytes, at: self.now, class: 0 });
    }

    fn pop(&mut self) -> Option<(u32, u32)> {
        let len = self.entries.len();
        let all = len <= SAMPLES;
        let mut least: Option<(f64, Entry)> = None;
        for turn in 0..SAMPLES.min(len) {
            let at = if all { turn } else { self.below(len) };
            let entry = self.entries[at];
            let density = self.density(&entry);
            if least.is_none_or(|(least, _)| density < least) {
                least = Some((density, entry));
            }
        }
        let (_, entry) = least?;
        let age = self.age(&entry);
        self.classes[usize::from(entry.class)].evictions[age] += 1.0;
        self.take(entry.object);
        Some((entry.object, entry.bytes))
    }

    fn remove(&mut self, object: u32) {
        self.take(object);
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.index.clear();
    }
}
