//! Which mechanism connects two ends (S-32, S-91 to S-93; SOSP'89 5.2): the rule, written once.
//!
//! ```text
//!               consumer passive                    consumer active
//!   producer  ┌───────────────────────────────────┬──────────────────────────────┐
//!   active    │ one caller: its code pasted in,   │ queue: SP-SC, MP-SC, SP-MC,  │
//!             │ or a call; several: monitor       │ MP-MC                        │
//!             ├───────────────────────────────────┼──────────────────────────────┤
//!   passive   │ pump: a thread reads and writes   │ as above, the other way      │
//!             └───────────────────────────────────┴──────────────────────────────┘
//! ```

/// Whether an end does the calling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Activity {
    /// It calls when it wants to.
    Active,
    /// It is called.
    Passive,
}

/// How many threads are at an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Number {
    Single,
    /// Several, that can be there at the same time.
    Multiple,
}

/// How an end can be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer {
    /// Its instructions, to be pasted into the caller's.
    Fragment,
    /// An address to call.
    Entry,
}

/// One end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    pub activity: Activity,
    pub number: Number,
    pub offer: Offer,
}

impl End {
    pub const fn active(number: Number) -> End {
        End { activity: Activity::Active, number, offer: Offer::Entry }
    }

    pub const fn passive(number: Number, offer: Offer) -> End {
        End { activity: Activity::Passive, number, offer }
    }
}

/// What lies between two connected quajects. Of a queue: whether several produce, whether several consume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Connection {
    /// The passive end's instructions stand in the active end's routine (Collapsing Layers).
    Paste,
    Call,
    /// Calls, one at a time.
    Monitor,
    Queue {
        producers: Number,
        consumers: Number,
    },
    /// A thread of its own, which reads from one and writes to the other.
    Pump,
}

/// One implementation of a connection, and when it serves.
pub struct Implementation {
    pub connection: Connection,
    /// Instructions that it adds to one transfer, about: only their order matters.
    pub cost: u32,
    serves: fn(End, End) -> bool,
}

const fn queue(producers: Number, consumers: Number, cost: u32, serves: fn(End, End) -> bool) -> Implementation {
    Implementation { connection: Connection::Queue { producers, consumers }, cost, serves }
}

/// All there are. The rule of S-32: of those that serve, the one that costs least.
pub const IMPLEMENTATIONS: [Implementation; 8] = {
    use Number::{Multiple, Single};
    [
        Implementation { connection: Connection::Paste, cost: 0, serves: pastes },
        Implementation { connection: Connection::Call, cost: 2, serves: calls },
        Implementation { connection: Connection::Monitor, cost: 12, serves: |p, c| passive_of(p, c).is_some() },
        queue(Single, Single, 10, |p, c| both_active(p, c) && is_single(p) && is_single(c)),
        queue(Multiple, Single, 20, |p, c| both_active(p, c) && is_single(c)),
        queue(Single, Multiple, 22, |p, c| both_active(p, c) && is_single(p)),
        queue(Multiple, Multiple, 30, both_active),
        Implementation { connection: Connection::Pump, cost: 200, serves: |_, _| true },
    ]
};

/// The implementation that connects the ends at least cost. There is always one: a pump needs nothing of them.
pub(crate) fn cheapest(producer: End, consumer: End) -> &'static Implementation {
    const ALL: &[Implementation] = &IMPLEMENTATIONS;
    let serving = ALL.iter().filter(|implementation| (implementation.serves)(producer, consumer));
    serving.min_by_key(|implementation| implementation.cost).unwrap_or(&ALL[ALL.len() - 1])
}

/// The caller and the called, if exactly one end is passive.
fn passive_of(producer: End, consumer: End) -> Option<(End, End)> {
    match (producer.activity, consumer.activity) {
        (Activity::Active, Activity::Passive) => Some((producer, consumer)),
        (Activity::Passive, Activity::Active) => Some((consumer, producer)),
        _ => None,
    }
}

/// Several callers are let in one at a time only where the called end does not bear several itself.
fn calls(producer: End, consumer: End) -> bool {
    passive_of(producer, consumer)
        .is_some_and(|(caller, called)| is_single(caller) || called.number == Number::Multiple)
}

fn pastes(producer: End, consumer: End) -> bool {
    calls(producer, consumer)
        && passive_of(producer, consumer).is_some_and(|(_, called)| called.offer == Offer::Fragment)
}

fn both_active(producer: End, consumer: End) -> bool {
    producer.activity == Activity::Active && consumer.activity == Activity::Active
}

fn is_single(end: End) -> bool {
    end.number == Number::Single
}

#[cfg(test)]
mod tests {
    use super::Connection::{Call, Monitor, Paste, Pump};
    use super::Number::{Multiple, Single};
    use super::*;
    use crate::interface::combine;

    const CALLER: End = End::active(Single);
    const CALLERS: End = End::active(Multiple);

    fn queue(producers: Number, consumers: Number) -> Connection {
        Connection::Queue { producers, consumers }
    }

    #[test]
    fn the_cheapest_connection_that_serves_is_chosen() {
        let entry = End::passive(Single, Offer::Entry);
        let shared = End::passive(Multiple, Offer::Entry);
        let fragment = End::passive(Single, Offer::Fragment);
        let shared_fragment = End::passive(Multiple, Offer::Fragment);
        let table = [
            // S-91, active and passive.
            (CALLER, fragment, Paste),
            (fragment, CALLER, Paste),
            (CALLER, entry, Call),
            (entry, CALLER, Call),
            (CALLERS, entry, Monitor),
            (CALLERS, fragment, Monitor),
            (entry, CALLERS, Monitor),
            // An end that bears several callers needs no monitor in front.
            (CALLERS, shared, Call),
            (CALLERS, shared_fragment, Paste),
            // S-92, active and active.
            (CALLER, CALLER, queue(Single, Single)),
            (CALLERS, CALLER, queue(Multiple, Single)),
            (CALLER, CALLERS, queue(Single, Multiple)),
            (CALLERS, CALLERS, queue(Multiple, Multiple)),
            // S-93, passive and passive, as xclock.
            (entry, entry, Pump),
            (shared, fragment, Pump),
        ];
        for (producer, consumer, expected) in table {
            assert_eq!(combine(producer, consumer), expected, "{producer:?} to {consumer:?}");
        }
    }

    #[test]
    fn every_pair_of_ends_is_connected() {
        let ends = [Activity::Active, Activity::Passive].into_iter().flat_map(|activity| {
            [Single, Multiple]
                .into_iter()
                .flat_map(move |number| [Offer::Fragment, Offer::Entry].map(|offer| End { activity, number, offer }))
        });
        let ends: alloc::vec::Vec<End> = ends.collect();
        for producer in &ends {
            for consumer in &ends {
                let chosen = cheapest(*producer, *consumer);
                assert!((chosen.serves)(*producer, *consumer));
            }
        }
    }
}
