//! Monitors (S-26): several callers, one at a time.
//!
//! Two ways. Under the kernel's lock (`machine::Held`) callers come one at a time anyway, and a cell that notices mistakes is enough.
//! Where they can meet (an interrupt and what it interrupted, two processors), the first one works and the others leave
//! their work with it (`queue::serial`): optimistic, nobody waits, nothing is locked out.

use alloc::boxed::Box;

use machine::KernelCell;
use queue::Full;
use queue::serial::{Done, Serial};

use crate::link::{Way, cheapest};

/// Who may call a monitor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Callers {
    /// Slow paths only: the kernel's lock orders them.
    UnderLock,
    /// Anybody at any time.
    AnyTime,
}

/// How a monitor orders its callers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MonitorKind {
    Cell,
    Serial,
}

const WAYS: &[Way<MonitorKind, Callers>] = &[
    Way { kind: MonitorKind::Cell, cost: 4, serves: |callers| *callers == Callers::UnderLock },
    Way { kind: MonitorKind::Serial, cost: 40, serves: |_| true },
];

/// State that callers work on one at a time. `W` is a piece of work, and the procedure that does it belongs to the
/// monitor: who works serves the others' work as well.
pub struct Monitor<S, W> {
    way: Guard<S, W>,
    work: fn(&mut S, W),
}

enum Guard<S, W> {
    Cell(KernelCell<S>),
    Serial(Box<Serial<S, W>>),
}

impl<S, W> Monitor<S, W> {
    /// A monitor for these callers, with room for `capacity` pieces of work that wait.
    pub fn new(callers: Callers, state: S, work: fn(&mut S, W), capacity: usize) -> Monitor<S, W> {
        let way = match cheapest(WAYS, &callers) {
            Some(MonitorKind::Cell) => Guard::Cell(KernelCell::new(state)),
            _ => Guard::Serial(Box::new(Serial::new(state, capacity))),
        };
        Monitor { way, work }
    }

    /// How it orders its callers.
    pub fn kind(&self) -> MonitorKind {
        match self.way {
            Guard::Cell(_) => MonitorKind::Cell,
            Guard::Serial(_) => MonitorKind::Serial,
        }
    }

    /// Callentry: has `work` done, now or by who is in the monitor. Gives it back when too much waits.
    pub fn call(&self, work: W) -> Result<Done, Full<W>> {
        match &self.way {
            Guard::Cell(state) => {
                (self.work)(&mut state.borrow_mut(), work);
                Ok(Done::Here)
            }
            Guard::Serial(serial) => serial.submit(work, self.work),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    #[test]
    fn the_callers_decide_the_kind() {
        let kind = |callers| Monitor::new(callers, 0, |sum: &mut u64, work: u64| *sum += work, 2).kind();
        assert_eq!(kind(Callers::UnderLock), MonitorKind::Cell);
        assert_eq!(kind(Callers::AnyTime), MonitorKind::Serial);
    }

    /// As an interrupt that comes while the monitor works.
    #[test]
    fn who_calls_from_inside_leaves_its_work() {
        type Work = (u64, Option<Arc<Probe>>);
        struct Probe {
            monitor: Monitor<Vec<u64>, Work>,
            sum: AtomicU64,
        }
        fn work(done: &mut Vec<u64>, (number, inner): Work) {
            if let Some(probe) = inner {
                assert_eq!(probe.monitor.call((number + 1, None)), Ok(Done::Left));
                probe.sum.store(1, Relaxed);
            }
            done.push(number);
            assert!(done.is_sorted(), "the inner work was done before the outer ended");
        }
        impl PartialEq for Probe {
            fn eq(&self, _: &Probe) -> bool {
                true
            }
        }
        impl core::fmt::Debug for Probe {
            fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                out.write_str("probe")
            }
        }
        let monitor = Monitor::new(Callers::AnyTime, Vec::new(), work, 2);
        let probe = Arc::new(Probe { monitor, sum: AtomicU64::new(0) });
        assert_eq!(probe.monitor.call((1, Some(probe.clone()))), Ok(Done::Here));
        assert_eq!(probe.monitor.call((5, None)), Ok(Done::Here));
        assert_eq!(probe.sum.load(Relaxed), 1);
    }
}
