//! Random operations, raced against a model that knows only pages and their first byte.
//!
//! A failure prints its seed; `SPACE_SEED=n cargo test -p kernel model` runs that one alone.

use alloc::rc::Rc;

use means::Random;

use super::*;

/// First bytes of a file's pages, or of shared memory.
type Store = Rc<KernelCell<Vec<u8>>>;

#[derive(Clone)]
enum Source {
    Zero { value: u8 },
    Private { store: Store, index: usize, copy: Option<u8> },
    Shared { store: Store, index: usize },
}

impl Source {
    fn value(&self) -> Result<u8, FaultKind> {
        match self {
            Source::Zero { value } => Ok(*value),
            Source::Private { copy: Some(value), .. } => Ok(*value),
            Source::Private { store, index, .. } | Source::Shared { store, index } => {
                store.borrow().get(*index).copied().ok_or(FaultKind::PastEndOfFile)
            }
        }
    }

    fn set(&mut self, new: u8) -> Result<(), FaultKind> {
        self.value()?;
        match self {
            Source::Zero { value } => *value = new,
            Source::Private { copy, .. } => *copy = Some(new),
            Source::Shared { store, index } => store.borrow_mut()[*index] = new,
        }
        Ok(())
    }

    /// As it is after its page was dropped.
    fn untouched(&self) -> Source {
        match self.clone() {
            Source::Zero { .. } => Source::Zero { value: 0 },
            Source::Private { store, index, .. } => Source::Private { store, index, copy: None },
            shared => shared,
        }
    }

    /// The untouched page `pages` behind this one.
    fn further(&self, pages: usize) -> Source {
        match self.untouched() {
            Source::Private { store, index, copy } => Source::Private { store, index: index + pages, copy },
            Source::Shared { store, index } => Source::Shared { store, index: index + pages },
            zero => zero,
        }
    }
}

#[derive(Clone)]
struct Cell {
    protection: Protection,
    source: Source,
}

#[derive(Clone, Default)]
struct Model(BTreeMap<u64, Cell>);

impl Model {
    fn remove(&mut self, start: u64, pages: u64) {
        for page in 0..pages {
            self.0.remove(&(start + page * PAGE));
        }
    }

    fn read(&self, page: u64) -> Result<u8, FaultKind> {
        let cell = self.0.get(&page).ok_or(FaultKind::Unmapped)?;
        let accessible = cell.protection.read || cell.protection.execute;
        if accessible { cell.source.value() } else { Err(FaultKind::Denied) }
    }

    fn write(&mut self, page: u64, value: u8) -> Result<(), FaultKind> {
        let cell = self.0.get_mut(&page).ok_or(FaultKind::Unmapped)?;
        if cell.protection.write { cell.source.set(value) } else { Err(FaultKind::Denied) }
    }
}

/// A quaspace beside its model.
struct Pair {
    space: Space,
    model: Model,
}

struct World {
    pool: &'static FramePool,
    random: Random,
    file: Arc<File>,
    file_store: Store,
    pairs: Vec<Pair>,
}

const WINDOW: u64 = 0x1f_0000;
const WINDOW_PAGES: u64 = 48;
const FILE_PAGES: usize = 24;

impl World {
    fn new(pool: &'static FramePool, seed: u64) -> World {
        let random = Random::new(seed);
        let file_store = Rc::new(KernelCell::new((1..=FILE_PAGES as u8).collect()));
        let pairs = vec![Pair { space: space(pool), model: Model::default() }];
        World { pool, random, file: file(pool, FILE_PAGES), file_store, pairs }
    }

    /// A page of the window, or one that is mapped anywhere.
    fn some_page(&mut self, pair: usize) -> u64 {
        let mapped = &self.pairs[pair].model.0;
        if self.random.below(3) == 0 && !mapped.is_empty() {
            let index = self.random.below(mapped.len() as u64) as usize;
            *mapped.keys().nth(index).unwrap()
        } else {
            WINDOW + self.random.below(WINDOW_PAGES) * PAGE
        }
    }

    fn step(&mut self) {
        let index = self.random.below(self.pairs.len() as u64) as usize;
        match self.random.below(100) {
            0..20 => self.map(index),
            20..30 => self.unmap(index),
            30..42 => self.protect(index),
            42..50 => self.remap(index),
            50..54 => self.drop_pages(index),
            54..57 => self.fork(index),
            57..60 if self.pairs.len() > 1 => drop(self.pairs.swap_remove(index)),
            60..80 => self.read(index),
            _ => self.write(index),
        }
    }

    fn map(&mut self, pair: usize) {
        let pages = 1 + self.random.below(12);
        let first = self.random.below(FILE_PAGES as u64);
        let (kind, source) = match self.random.below(4) {
            0 => {
                let source = Source::Private { store: self.file_store.clone(), index: first as usize, copy: None };
                (Kind::FilePrivate(view(&self.file, first)), source)
            }
            1 => {
                let source = Source::Shared { store: self.file_store.clone(), index: first as usize };
                (Kind::FileShared(view(&self.file, first)), source)
            }
            2 => {
                let backing = AnonymousMemory::new(self.pool, pages * PAGE, false).unwrap();
                let store = Rc::new(KernelCell::new(vec![0; pages as usize]));
                (Kind::SharedAnonymous(View { backing, first_page: 0 }), Source::Shared { store, index: 0 })
            }
            _ => (Kind::Anonymous, Source::Zero { value: 0 }),
        };
        let protection = self.random.pick(&[RW, RW, RW, READ, NONE, RX]);
        let placement = [Placement::Anywhere, Placement::Fixed, Placement::FixedIfFree][self.random.below(3) as usize];
        let address = WINDOW + self.random.below(WINDOW_PAGES) * PAGE;
        // Populating a writable private map copies the file as it is now; the model cannot know
        // for which pages there was a frame.
        let copies = protection.write && matches!(kind, Kind::FilePrivate(_));
        let populate = !copies && self.random.below(4) == 0;
        let request = MapRequest { address, placement, populate, ..MapRequest::anonymous(pages * PAGE, protection) };
        let Pair { space, model } = &mut self.pairs[pair];
        let used = (0..pages).any(|page| model.0.contains_key(&(address + page * PAGE)));
        let start = match space.map(request.of(kind)) {
            Ok(start) => start,
            Err(error) => {
                assert!(error == MapError::Exists && used && placement == Placement::FixedIfFree, "{error:?}");
                return;
            }
        };
        assert!(start == address || (placement == Placement::Anywhere && used));
        model.remove(start, if placement == Placement::Fixed { pages } else { 0 });
        for page in 0..pages {
            let cell = Cell { protection, source: source.further(page as usize) };
            assert!(model.0.insert(start + page * PAGE, cell).is_none(), "placed over something");
        }
    }

    fn unmap(&mut self, pair: usize) {
        let (start, pages) = (self.some_page(pair), 1 + self.random.below(8));
        let Pair { space, model } = &mut self.pairs[pair];
        space.unmap(start, pages * PAGE).unwrap();
        model.remove(start, pages);
    }

    fn protect(&mut self, pair: usize) {
        let (start, pages) = (self.some_page(pair), 1 + self.random.below(8));
        let protection = self.random.pick(&[RW, RW, RW, READ, NONE, RX]);
        let Pair { space, model } = &mut self.pairs[pair];
        let result = space.protect(start, pages * PAGE, protection);
        for page in 0..pages {
            let Some(cell) = model.0.get_mut(&(start + page * PAGE)) else {
                return assert_eq!(result, Err(MapError::NoMemory));
            };
            cell.protection = protection;
        }
        assert_eq!(result, Ok(()));
    }

    fn drop_pages(&mut self, pair: usize) {
        let (start, pages) = (self.some_page(pair), 1 + self.random.below(8));
        let Pair { space, model } = &mut self.pairs[pair];
        let result = space.advise(start, pages * PAGE, Advice::DontNeed);
        let mut has_gap = false;
        for page in 0..pages {
            match model.0.get_mut(&(start + page * PAGE)) {
                Some(cell) => cell.source = cell.source.untouched(),
                None => has_gap = true,
            }
        }
        assert_eq!(result, if has_gap { Err(MapError::NoMemory) } else { Ok(()) });
    }

    fn remap(&mut self, pair: usize) {
        let (address, old, new) = (self.some_page(pair), 1 + self.random.below(5), 1 + self.random.below(8));
        let fixed = WINDOW + self.random.below(WINDOW_PAGES) * PAGE;
        let (target, keep_old) = match self.random.below(6) {
            0 => (RemapTarget::InPlace, false),
            1 | 2 => (RemapTarget::Anywhere, false),
            3 => (RemapTarget::Anywhere, old == new),
            4 => (RemapTarget::Fixed(fixed), false),
            _ => (RemapTarget::Fixed(fixed), old == new),
        };
        let remap = Remap { address, old_bytes: old * PAGE, new_bytes: new * PAGE, target, keep_old };
        let Pair { space, model } = &mut self.pairs[pair];
        let result = space.remap(remap);
        let overlap = fixed < address + old * PAGE && address < fixed + new * PAGE;
        if !model.0.contains_key(&address) {
            return assert_eq!(result, Err(MapError::Fault));
        }
        if matches!(target, RemapTarget::Fixed(_)) {
            if overlap {
                return assert_eq!(result, Err(MapError::Invalid));
            }
            // These go even if the move is then refused, as on Linux.
            model.remove(fixed, new);
            model.remove(address + new * PAGE, old.saturating_sub(new));
        }
        match result {
            Ok(start) => model.relocate(remap, start),
            Err(error) => assert!(matches!(error, MapError::Fault | MapError::NoMemory), "{error:?}"),
        }
    }

    fn fork(&mut self, pair: usize) {
        let Pair { space, model } = &mut self.pairs[pair];
        if let Ok(child) = space.fork_whole(tables(self.pool)) {
            let model = model.clone();
            self.pairs.push(Pair { space: child, model });
        }
        if self.pairs.len() > 4 {
            self.pairs.remove(0);
        }
    }

    fn read(&mut self, pair: usize) {
        let page = self.some_page(pair);
        let Pair { space, model } = &mut self.pairs[pair];
        let result = byte(space, page);
        assert!(result == model.read(page) || result == Err(FaultKind::OutOfMemory), "{page:#x} {result:?}");
    }

    fn write(&mut self, pair: usize) {
        let (page, value) = (self.some_page(pair), self.random.bits() as u8);
        let Pair { space, model } = &mut self.pairs[pair];
        let result = poke(space, page, value);
        if result != Err(FaultKind::OutOfMemory) {
            assert_eq!(result, model.write(page, value), "{page:#x}");
        }
    }

    /// Every page of every quaspace is as the model says.
    fn check_all(&mut self) {
        for Pair { space, model } in &mut self.pairs {
            check(space);
            assert_eq!(space.total_bytes, model.0.len() as u64 * PAGE);
            let unmerged = |((&start, area), (&next_start, next)): ((&u64, &Area), (&u64, &Area))| {
                area.end == next_start && area.can_absorb(start, next)
            };
            assert!(!space.areas.iter().zip(space.areas.iter().skip(1)).any(unmerged), "areas not merged");
            for &page in model.0.keys() {
                let result = byte(space, page);
                assert!(result == model.read(page) || result == Err(FaultKind::OutOfMemory), "{page:#x} {result:?}");
            }
        }
    }
}

impl Model {
    fn relocate(&mut self, remap: Remap, start: u64) {
        let (old, new) = (remap.old_bytes / PAGE, remap.new_bytes / PAGE);
        if start == remap.address && new <= old {
            // Shrinking in place looks only at the first page, as on Linux.
            return self.remove(start + new * PAGE, old - new);
        }
        let first = self.0[&remap.address].clone();
        let cells: Vec<Cell> = (0..new)
            .map(|page| match self.0.get(&(remap.address + page * PAGE)) {
                Some(cell) if page < old => cell.clone(),
                _ => Cell { protection: first.protection, source: first.source.further(page as usize) },
            })
            .collect();
        for page in 0..old.min(new) {
            let address = remap.address + page * PAGE;
            match self.0.get_mut(&address) {
                Some(cell) if remap.keep_old => cell.source = cell.source.untouched(),
                Some(_) => drop(self.0.remove(&address)),
                None => panic!("a range with a gap moved"),
            }
        }
        for (page, cell) in cells.into_iter().enumerate() {
            self.0.insert(start + page as u64 * PAGE, cell);
        }
    }
}

fn run(frames: u32, seed: u64) {
    std::println!("frames {frames}, seed {seed}");
    let pool = pool(frames);
    let free = pool.free_frames();
    let mut world = World::new(pool, seed);
    for step in 0..600 {
        world.step();
        if step % 40 == 39 {
            world.check_all();
        }
    }
    world.check_all();
    drop(world);
    assert_eq!(pool.free_frames(), free, "frames leaked");
}

fn seeds(count: u64) -> core::ops::Range<u64> {
    match std::env::var("SPACE_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..count,
    }
}

#[test]
fn random_operations_agree_with_the_model() {
    seeds(100).for_each(|seed| run(2048, seed));
}

#[test]
fn random_operations_agree_with_the_model_when_frames_are_scarce() {
    seeds(100).for_each(|seed| run(64, seed));
}
