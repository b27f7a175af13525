//! The interfacer's connections, built (S-18, S-91 to S-93): two ports go in, what lies between them comes out. What it is,
//! `quaject::interface::combine` decides and nobody else.
//!
//! ```text
//!   active ─ Fragment    the instructions, for the active quaject's callouts: one routine (Collapsing Layers)
//!   active ─ Procedure   the procedure itself, or behind a monitor
//!   active ─ active      the two ends of a queue
//!   Stream ─ Stream      a pump: a thread of the kernel
//! ```

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::any::Any;

use abi::Errno;
use machine::SendCode;
use quaject::interface::combine;
use quaject::{Connection, End, Number, Offer};

use super::{GetEnd, PutEnd, QueueNeed, Users, open};
use crate::monitor::{Callers, Monitor};
use crate::pump::{self, Ends, Pump};
use crate::schedule::Scheduler;
use crate::stream::Stream;

/// A procedure that takes items.
pub type Procedure<T> = Box<dyn FnMut(T)>;

/// One end of a connection, and what the interfacer can build it from.
pub enum Port<T> {
    /// A thread, an interrupt or several: it calls when it wants to.
    Active(Number),
    /// Passive; its instructions. `Multiple`: it bears callers at the same time.
    Fragment(Number, SendCode),
    /// Passive; called with each item.
    Procedure(Number, Procedure<T>),
    /// Passive; an open stream, and what must live as long.
    Stream(Arc<dyn Stream>, Arc<dyn Any + Send + Sync>),
}

/// What surrounds a connection.
pub struct Ground {
    /// Whether callers can meet.
    pub callers: Callers,
    /// Both ends are in one thread.
    pub same_thread: bool,
    /// Items that a queue or a monitor keeps.
    pub capacity: usize,
    /// Runs the thread of a pump.
    pub scheduler: Option<&'static Scheduler>,
    /// The user in whose name a pump runs.
    pub owner: u32,
}

/// What lies between two ends.
pub enum Connected<T: 'static> {
    /// To be pasted into the active quaject's routine, as its callout.
    Pasted(SendCode),
    Called(Procedure<T>),
    Monitored(Monitor<Procedure<T>, T>),
    Queued(PutEnd<T>, GetEnd<T>),
    Pumped(Arc<Pump>),
}

impl<T> Port<T> {
    /// What `combine` needs to know.
    #[inline(always)]
    pub fn end(&self) -> End {
        match self {
            Port::Active(number) => End::active(*number),
            Port::Fragment(number, _) => End::passive(*number, Offer::Fragment),
            Port::Procedure(number, _) => End::passive(*number, Offer::Entry),
            Port::Stream(..) => End::passive(Number::Multiple, Offer::Entry),
        }
    }
}

/// Connects two ports by what costs least.
///
/// Errors: `EINVAL` when a port has not what the connection is built from; for pumps those of [`pump::start`].
// Inlined, so that a caller whose ports are known has the code of its own connection only.
#[inline(always)]
pub fn connect<T: 'static>(producer: Port<T>, consumer: Port<T>, ground: &Ground) -> Result<Connected<T>, Errno> {
    let connection = combine(producer.end(), consumer.end());
    match (producer, consumer) {
        (Port::Fragment(_, code), Port::Active(_)) | (Port::Active(_), Port::Fragment(_, code))
            if connection == Connection::Paste =>
        {
            Ok(Connected::Pasted(code))
        }
        (Port::Active(_), Port::Procedure(_, procedure)) => match connection {
            Connection::Call => Ok(Connected::Called(procedure)),
            Connection::Monitor => {
                let work = |state: &mut Procedure<T>, item| state(item);
                Ok(Connected::Monitored(Monitor::new(ground.callers, procedure, work, ground.capacity)))
            }
            _ => Err(Errno::EINVAL),
        },
        (Port::Active(_), Port::Active(_)) => {
            let Connection::Queue { producers, consumers } = connection else { return Err(Errno::EINVAL) };
            let (producers, consumers) = (producers.into(), consumers.into());
            let (put, get) =
                open(&QueueNeed { producers, consumers, same_thread: ground.same_thread }, ground.capacity);
            Ok(Connected::Queued(put, get))
        }
        (Port::Stream(input, first), Port::Stream(output, second)) if connection == Connection::Pump => {
            let ends = Ends { input, output, keep: Arc::new((first, second)) };
            Ok(Connected::Pumped(pump::start(ground.scheduler.ok_or(Errno::EINVAL)?, ground.owner, ends)?))
        }
        _ => Err(Errno::EINVAL),
    }
}

impl From<Number> for Users {
    fn from(number: Number) -> Users {
        match number {
            Number::Single => Users::One,
            Number::Multiple => Users::Many,
        }
    }
}
