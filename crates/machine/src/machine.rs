//! The machine as a whole.

use crate::{Channels, Clock, Foreign, Lines, Memory, Practice, Processor, Samples, Threads};

/// One of the machines: the sum of its parts. Cold calls come through here; hot paths paste the machine's fragments.
pub trait Machine: Processor + Memory + Threads + Lines + Channels + Clock + Samples + Send + Sync {
    /// The trees of names outside of the machine, if it has such.
    fn foreign(&self) -> Option<&'static dyn Foreign> {
        None
    }
    /// What measures the machine's handlers, if it can be done.
    fn practice(&self) -> Option<&dyn Practice> {
        None
    }
}
