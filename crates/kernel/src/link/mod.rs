//! What lies between two quajects, built: the interfacer's connections ([`connect`]), and the choice of a queue.
//!
//! Every block states its ways with what each costs and whom it serves; the rule is [`quaject::cheapest`] (S-32).

mod collapse;
mod connect;

pub use collapse::{Joined, join};
pub use connect::{Connected, Ground, Port, connect};
pub use quaject::{Way, cheapest};

use alloc::boxed::Box;

use queue::{Get, Put, dedicated, mpmc, mpsc, spmc, spsc};

/// How many use one end of something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Users {
    One,
    Many,
}

/// What a queue is needed for.
#[derive(Clone, Copy, Debug)]
pub struct QueueNeed {
    pub producers: Users,
    pub consumers: Users,
    /// Both ends are in one thread.
    pub same_thread: bool,
}

/// The kinds of `crates/queue`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QueueKind {
    Dedicated,
    SingleSingle,
    ManySingle,
    SingleMany,
    ManyMany,
}

/// Costs: instructions of put and get together, rounded from docs/queues.md.
const QUEUES: &[Way<QueueKind, QueueNeed>] = &[
    Way { kind: QueueKind::Dedicated, cost: 20, serves: |need| need.same_thread },
    Way {
        kind: QueueKind::SingleSingle,
        cost: 22,
        serves: |need| need.producers == Users::One && need.consumers == Users::One,
    },
    Way { kind: QueueKind::ManySingle, cost: 40, serves: |need| need.consumers == Users::One },
    Way { kind: QueueKind::SingleMany, cost: 40, serves: |need| need.producers == Users::One },
    Way { kind: QueueKind::ManyMany, cost: 60, serves: |_| true },
];

impl QueueNeed {
    /// The cheapest kind of queue that serves.
    pub fn choose(&self) -> QueueKind {
        cheapest(QUEUES, self).unwrap_or(QueueKind::ManyMany)
    }
}

/// The end of a queue that items are put into.
pub type PutEnd<T> = Box<dyn Put<T>>;
/// The end of a queue that items are taken from.
pub type GetEnd<T> = Box<dyn Get<T>>;

/// A queue for `capacity` items, of the cheapest kind that serves, as its two ends. With many producers or consumers
/// it is one end of several: who needs more uses the kind's own `pair`.
pub fn open<T: 'static>(need: &QueueNeed, capacity: usize) -> (PutEnd<T>, GetEnd<T>) {
    fn boxed<T, P: Put<T> + 'static, G: Get<T> + 'static>(ends: (P, G)) -> (PutEnd<T>, GetEnd<T>) {
        (Box::new(ends.0), Box::new(ends.1))
    }
    match need.choose() {
        QueueKind::Dedicated => boxed(dedicated::pair(capacity)),
        QueueKind::SingleSingle => boxed(spsc::pair(capacity)),
        QueueKind::ManySingle => boxed(mpsc::pair(capacity)),
        QueueKind::SingleMany => boxed(spmc::pair(capacity)),
        QueueKind::ManyMany => boxed(mpmc::pair(capacity)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_queue_that_serves_is_chosen() {
        use Users::{Many, One};
        let choose = |producers, consumers, same_thread| QueueNeed { producers, consumers, same_thread }.choose();
        assert_eq!(choose(One, One, true), QueueKind::Dedicated);
        assert_eq!(choose(One, One, false), QueueKind::SingleSingle);
        assert_eq!(choose(Many, One, false), QueueKind::ManySingle);
        assert_eq!(choose(One, Many, false), QueueKind::SingleMany);
        assert_eq!(choose(Many, Many, false), QueueKind::ManyMany);
    }

    #[test]
    fn every_kind_passes_items() {
        for (producers, consumers) in [(Users::One, Users::One), (Users::Many, Users::One), (Users::Many, Users::Many)]
        {
            let (mut put, mut get) = open(&QueueNeed { producers, consumers, same_thread: false }, 2);
            assert_eq!(put.put(7), Ok(()));
            assert_eq!((get.get(), get.get()), (Some(7), None));
        }
    }
}
