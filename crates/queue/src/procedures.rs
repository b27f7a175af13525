//! Queues of procedures (S-44): the form that chained interrupt and signal procedures have in the papers.
//!
//! Procedure chaining (S-47): instead of locking out who runs now, a thread or an interrupt queues what is to be done
//! after it. Many may chain; one runs, in the order of the queue.

use crate::ends::Full;
use crate::mpsc;

/// What is to be called, and with what.
#[derive(Clone, Copy, Debug)]
pub struct Procedure {
    pub call: fn(usize),
    pub argument: usize,
}

/// The end procedures are chained at. Clone it for each thread.
#[derive(Clone)]
pub struct Chain(mpsc::Producer<Procedure>);

/// The end they run at.
pub struct Runner(mpsc::Consumer<Procedure>);

/// A queue for `capacity` procedures.
pub fn pair(capacity: usize) -> (Chain, Runner) {
    let (producer, consumer) = mpsc::pair(capacity);
    (Chain(producer), Runner(consumer))
}

impl Chain {
    /// Has `call(argument)` done by the next `run`, or says that there is no room.
    pub fn chain(&self, call: fn(usize), argument: usize) -> Result<(), Full<Procedure>> {
        self.0.put(Procedure { call, argument })
    }

    /// The same, with `between` done in the midst of it: see [`mpsc::Producer::put_with`].
    pub fn chain_with(&self, call: fn(usize), argument: usize, between: impl FnOnce()) -> Result<(), Full<Procedure>> {
        self.0.put_with(Procedure { call, argument }, between)
    }
}

impl Runner {
    /// Takes the next procedure, for who calls it itself.
    pub fn take(&mut self) -> Option<Procedure> {
        self.0.get()
    }

    /// Whether nothing is chained.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Calls what is chained, at most `most` procedures, and returns their number. What they chain runs too.
    pub fn run(&mut self, most: usize) -> usize {
        for done in 0..most {
            match self.take() {
                Some(procedure) => (procedure.call)(procedure.argument),
                None => return done,
            }
        }
        most
    }
}
