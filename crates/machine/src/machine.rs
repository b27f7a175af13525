//! The machine as a whole.

use crate::{
    Channels, Clock, Courier, Foreign, Held, Lines, Link, Memory, Player, Practice, Processor, Samples, Threads,
};

/// One of the machines: the sum of its parts. Cold calls come through here; hot paths paste the machine's fragments.
pub trait Machine: Processor + Memory + Threads + Lines + Channels + Clock + Samples + Send + Sync {
    /// The trees of names outside of the machine, if it has such.
    fn foreign(&self) -> Option<&'static dyn Foreign> {
        None
    }
    /// For who holds the lock, as all of the kernel's Rust does, but was not handed it: a store of files, whose callers do not say that
    /// they may leave for another thread, and hold nothing. Not called on a machine whose stores answer at once.
    fn with_lock(&self, act: &mut dyn FnMut(Held<'_>)) {
        let _ = act;
    }
    /// Starts the next device that carries messages to who shares a folder; `None`: there is no other.
    fn next_courier(&self) -> Option<&'static dyn Courier> {
        None
    }
    /// Starts the next device that carries frames; `None`: there is no other.
    fn next_link(&self) -> Option<&'static dyn Link> {
        None
    }
    /// Starts the next device that plays sound; `None`: there is no other.
    fn next_player(&self) -> Option<&'static dyn Player> {
        None
    }
    /// What measures the machine's handlers, if it can be done.
    fn practice(&self) -> Option<&dyn Practice> {
        None
    }
}
