//! When somebody must look again.

use machine::{Nanos, Ordered};

/// Who looks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Who {
    /// What belongs to no connection: DHCP, neighbours, router solicitations.
    Base,
    Connection(u32),
    Sender(u32),
}

/// At most one time for each.
pub struct Timers {
    by_time: Ordered<(Nanos, Who), ()>,
}

impl Timers {
    pub const fn new() -> Timers {
        Timers { by_time: Ordered::new() }
    }

    /// `at` stands where who it is for keeps it.
    pub fn set(&mut self, who: Who, at: &mut Option<Nanos>, new: Option<Nanos>) {
        if *at == new {
            return;
        }
        if let Some(old) = at.take() {
            self.by_time.remove(&(old, who));
        }
        if let Some(new) = new {
            self.by_time.put((new, who), ());
            *at = Some(new);
        }
    }

    pub fn next(&self) -> Option<Nanos> {
        self.by_time.first().map(|((at, _), ())| *at)
    }

    /// The first that is due. It stays until it is set anew.
    pub fn due(&self, now: Nanos) -> Option<Who> {
        self.by_time.first().map(|(key, ())| *key).filter(|(at, _)| *at <= now).map(|(_, who)| who)
    }

    /// Those that are due until `horizon`, into `into`: how many.
    pub fn due_until(&self, horizon: Nanos, into: &mut [Who]) -> usize {
        let due = self.by_time.iter().map(|(key, ())| *key).take_while(|(at, _)| *at <= horizon);
        into.iter_mut().zip(due).map(|(place, (_, who))| *place = who).count()
    }
}
