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
//! Two state machines, one thread at each, are joined whoever is active: they become one machine (S-11).

use crate::choice::{Way, cheapest};

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
    /// Its states and steps, to be multiplied with another machine's.
    Machine,
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
    /// Both are state machines: their product, without the queue between them (horizontal Collapsing Layers).
    Product,
}

const fn queue(
    producers: Number,
    consumers: Number,
    cost: u32,
    serves: fn(&(End, End)) -> bool,
) -> Way<Connection, (End, End)> {
    Way { kind: Connection::Queue { producers, consumers }, cost, serves }
}

/// All there are. Costs: instructions that it adds to one transfer, about; only their order matters.
pub const CONNECTIONS: &[Way<Connection, (End, End)>] = {
    use Number::{Multiple, Single};
    &[
        Way { kind: Connection::Product, cost: 0, serves: |(p, c)| machines(*p, *c) },
        Way { kind: Connection::Paste, cost: 1, serves: |(p, c)| pastes(*p, *c) },
        Way { kind: Connection::Call, cost: 2, serves: |(p, c)| calls(*p, *c) },
        Way { kind: Connection::Monitor, cost: 12, serves: |(p, c)| passive_of(*p, *c).is_some() },
        queue(Single, Single, 10, |(p, c)| both_active(*p, *c) && is_single(*p) && is_single(*c)),
        queue(Multiple, Single, 20, |(p, c)| both_active(*p, *c) && is_single(*c)),
        queue(Single, Multiple, 22, |(p, c)| both_active(*p, *c) && is_single(*p)),
        queue(Multiple, Multiple, 30, |(p, c)| both_active(*p, *c)),
        Way { kind: Connection::Pump, cost: 200, serves: |_| true },
    ]
};

/// What connects the ends at least cost. There is always something: a pump needs nothing of them.
pub(crate) fn choose(producer: End, consumer: End) -> Connection {
    cheapest(CONNECTIONS, &(producer, consumer)).unwrap_or(Connection::Pump)
}

fn machines(producer: End, consumer: End) -> bool {
    [producer, consumer].iter().all(|end| end.offer == Offer::Machine && is_single(*end))
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
    use super::Connection::{Call, Monitor, Paste, Product, Pump};
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
        let (machine, shared_machine) = (End::passive(Single, Offer::Machine), End::passive(Multiple, Offer::Machine));
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
            // S-11, machine and machine, whoever has the thread; beside anything else it is a procedure.
            (machine, machine, Product),
            (CALLER, machine, Call),
            (machine, entry, Pump),
            (machine, shared_machine, Pump),
        ];
        for (producer, consumer, expected) in table {
            assert_eq!(combine(producer, consumer), expected, "{producer:?} to {consumer:?}");
        }
    }

    #[test]
    fn every_pair_of_ends_is_connected() {
        let ends = [Activity::Active, Activity::Passive].into_iter().flat_map(|activity| {
            [Single, Multiple].into_iter().flat_map(move |number| {
                [Offer::Fragment, Offer::Entry, Offer::Machine].map(|offer| End { activity, number, offer })
            })
        });
        let ends: alloc::vec::Vec<End> = ends.collect();
        for producer in &ends {
            for consumer in &ends {
                let ends = (*producer, *consumer);
                let chosen = choose(*producer, *consumer);
                assert!(CONNECTIONS.iter().any(|way| way.kind == chosen && (way.serves)(&ends)));
            }
        }
    }
}
