//! A store behind which pages come late, in any order, or not at all, as a seed wants it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use abi::Errno;
use kernel::file::{Credentials, FinalLink, Mount, Namespace, NewNode, Node, PageStore, Time, View, Volume};
use kernel::schedule::{AlarmCall, AlarmTarget, Bell, Scheduler};
use kernel::space::Arrival;
use machine::{KernelCell, Nanos, PAGE_BYTES};
use machine_sim::Random;
use unix::boot::Ingredients;

/// Where the volume is mounted.
pub const FOLDER: &str = "/late";

/// How the store behaves.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    pub seed: u64,
    /// Longest way of a page.
    pub delay_ns_max: u64,
    /// In one of how many ways it fails; 0: never.
    pub fails_once_in: u64,
    /// In one of how many cases a page is there before the call returns; 0: never.
    pub at_once_in: u64,
}

/// The manner of the run that begins: `join` is a plain function.
static MANNER: KernelCell<Option<Manner>> = KernelCell::new(None);

/// From now on runs have such a store.
pub fn set_manner(manner: Manner) {
    MANNER.set(Some(manner));
}

/// The run's store. The kernel of a run is never freed, but what its store keeps is.
static THE: KernelCell<Option<Arc<SlowStore>>> = KernelCell::new(None);

/// The run is over.
pub fn release() {
    let store = THE.borrow_mut().take();
    if let Some(store) = store {
        let mut state = store.state.borrow_mut();
        state.bytes.clear();
        state.held.clear();
    }
}

/// Mounts a volume that is kept by a slow store.
pub fn join(ingredients: &Ingredients, _: &bootimage::ConfigView<'_>, names: Namespace) -> Result<Namespace, String> {
    let manner = MANNER.get().ok_or("nobody has said how slow the store shall be")?;
    mount(ingredients, &names, manner).map_err(|error| format!("the slow volume: {error:?}"))?;
    Ok(names)
}

fn mount(ingredients: &Ingredients, names: &Namespace, manner: Manner) -> Result<(), Errno> {
    let credentials = Credentials::root();
    let view = View::new(names.root(), names.root(), &credentials);
    names.make_directory(view, FOLDER.as_bytes(), 0o777, Time::default())?;
    let point = names.lookup(view, FOLDER.as_bytes(), FinalLink::Follow)?;
    let store = SlowStore::new(manner)?;
    *THE.borrow_mut() = Some(store.clone());
    let volume = Volume::kept(ingredients.pool, store)?;
    let root = Node::root(&volume, NewNode { mode: 0o777, user: 0, group: 0, now: Time::default() })?;
    let text = |text: &str| Arc::from(text.as_bytes());
    names.mount(Mount { point, root, source: text("slow"), kind: text("slow"), options: Arc::from([].as_slice()) })
}

/// Pages by file and number.
type Place = (u64, u64);

pub struct SlowStore {
    manner: Manner,
    state: KernelCell<State>,
}

struct State {
    random: Random,
    /// What is kept for good.
    bytes: BTreeMap<Place, Vec<u8>>,
    /// What is kept, or on its way to it.
    held: BTreeSet<Place>,
    ways: Vec<Way>,
    bell: Option<Bell>,
}

/// A page under way.
struct Way {
    due: Nanos,
    place: Place,
    kind: Kind,
    arrival: Arrival,
}

enum Kind {
    Fetch,
    /// What the page held when it set out, if that is what shall be kept; else what it holds at the end. No place: it was cut.
    Put {
        taken: Option<Vec<u8>>,
        is_cut: bool,
    },
}

impl SlowStore {
    fn new(manner: Manner) -> Result<Arc<SlowStore>, Errno> {
        let state = State {
            random: Random::new(manner.seed),
            bytes: BTreeMap::new(),
            held: BTreeSet::new(),
            ways: Vec::new(),
            bell: None,
        };
        let store = Arc::new(SlowStore { manner, state: KernelCell::new(state) });
        let scheduler = Scheduler::the().ok_or(Errno::EIO)?;
        scheduler.make_bell_room()?;
        store.state.borrow_mut().bell = Some(scheduler.add_bell(Arc::new(Due(store.clone()))));
        Ok(store)
    }

    fn send(&self, place: Place, kind: Kind, arrival: Arrival) {
        let scheduler = Scheduler::the().expect("the kernel runs");
        let now = scheduler.machine().now();
        let mut state = self.state.borrow_mut();
        let at_once = self.manner.at_once_in > 0 && state.random.once_in(self.manner.at_once_in);
        let delay = 1 + state.random.below(self.manner.delay_ns_max);
        let due = if at_once { now } else { now.saturating_add(Nanos(delay)) };
        state.ways.push(Way { due, place, kind, arrival });
        let bell = state.bell.expect("the store has a bell");
        drop(state);
        if at_once {
            self.deliver(now);
        } else {
            scheduler.set_alarm(due, AlarmTarget::Call(bell));
        }
    }

    /// Ends the ways that are due, the first first; what fails is the seed's.
    fn deliver(&self, now: Nanos) {
        loop {
            let mut state = self.state.borrow_mut();
            let next = state.ways.iter().enumerate().filter(|(_, way)| way.due <= now).min_by_key(|(_, way)| way.due);
            let Some(index) = next.map(|(index, _)| index) else { return };
            let way = state.ways.swap_remove(index);
            let fails = self.manner.fails_once_in > 0 && state.random.once_in(self.manner.fails_once_in);
            let outcome = if fails { Err(Errno::EIO) } else { state.end(&way) };
            drop(state);
            if fails && way.place.1.is_multiple_of(2) {
                // Who says nothing has failed as well.
                drop(way.arrival);
            } else {
                way.arrival.tell(outcome);
            }
        }
    }
}

impl State {
    fn end(&mut self, way: &Way) -> Result<(), Errno> {
        let page = way.arrival.page();
        match &way.kind {
            Kind::Fetch => match self.bytes.get(&way.place) {
                Some(bytes) => page.write(0, bytes),
                // It was cut meanwhile: nobody may ever see this.
                None => page.fill(0, PAGE_BYTES, 0xDB),
            },
            Kind::Put { is_cut: true, .. } => {}
            Kind::Put { taken, .. } => {
                let mut bytes = vec![0; PAGE_BYTES];
                page.read(0, &mut bytes);
                self.bytes.insert(way.place, taken.clone().unwrap_or(bytes));
            }
        }
        Ok(())
    }
}

/// The alarm of a way.
struct Due(Arc<SlowStore>);

impl AlarmCall for Due {
    fn ring(&self, now: Nanos) {
        self.0.deliver(now);
    }
}

impl PageStore for SlowStore {
    fn holds(&self, file: u64, index: u64) -> bool {
        self.state.borrow().held.contains(&(file, index))
    }

    fn next_page(&self, file: u64, from: u64) -> Option<u64> {
        self.state.borrow().held.range((file, from)..(file + 1, 0)).next().map(|(_, index)| *index)
    }

    fn pages(&self, file: u64) -> u64 {
        self.state.borrow().held.range((file, 0)..(file + 1, 0)).count() as u64
    }

    fn fetch(&self, file: u64, index: u64, arrival: Arrival) {
        assert!(self.holds(file, index), "page {index} of file {file} is asked for and was never kept");
        self.send((file, index), Kind::Fetch, arrival);
    }

    fn put(&self, file: u64, index: u64, arrival: Arrival) {
        let place = (file, index);
        let early = {
            let mut state = self.state.borrow_mut();
            assert!(!state.is_under_way(place), "page {index} of file {file} is on two ways");
            state.held.insert(place);
            state.random.once_in(2)
        };
        let mut bytes = vec![0; PAGE_BYTES];
        arrival.page().read(0, &mut bytes);
        self.send(place, Kind::Put { taken: early.then_some(bytes), is_cut: false }, arrival);
    }

    fn cut(&self, file: u64, pages: Range<u64>) {
        let mut state = self.state.borrow_mut();
        let range = (file, pages.start)..(file, pages.end);
        let cut: Vec<Place> = state.held.range(range.clone()).copied().collect();
        for place in cut {
            state.held.remove(&place);
            state.bytes.remove(&place);
        }
        for way in state.ways.iter_mut().filter(|way| range.contains(&way.place)) {
            if let Kind::Put { is_cut, .. } = &mut way.kind {
                *is_cut = true;
            }
        }
    }
}

impl State {
    fn is_under_way(&self, place: Place) -> bool {
        self.ways.iter().any(|way| way.place == place && matches!(way.kind, Kind::Put { is_cut: false, .. }))
    }
}
