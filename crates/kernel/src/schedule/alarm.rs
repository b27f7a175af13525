//! Alarms (S-77): what happens at which time.

use alloc::sync::Arc;

use machine::{Nanos, Sorted, TteId};

/// Names a set alarm; the time comes first, so that ids sort by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AlarmId(Nanos, u64);

/// What an alarm does.
pub enum AlarmTarget {
    /// Unblocks a thread.
    Thread(TteId),
    /// Calls a procedure in interrupt context: it must not sleep.
    Call(Arc<dyn Ring>),
}

/// A procedure for an alarm.
pub trait Ring {
    fn ring(&self, now: Nanos);
}

pub struct Alarms {
    pending: Sorted<AlarmId, AlarmTarget>,
    count: u64,
}

impl Alarms {
    pub fn new() -> Alarms {
        Alarms { pending: Sorted::new(), count: 0 }
    }

    pub fn set(&mut self, at: Nanos, target: AlarmTarget) -> AlarmId {
        self.count += 1;
        let id = AlarmId(at, self.count);
        self.pending.insert(id, target);
        id
    }

    pub fn cancel(&mut self, id: AlarmId) {
        self.pending.remove(&id);
    }

    pub fn next(&self) -> Option<Nanos> {
        self.pending.entries().first().map(|(id, _)| id.0)
    }

    pub fn take_due(&mut self, now: Nanos) -> Option<AlarmTarget> {
        let id = self.pending.entries().first().map(|(id, _)| *id).filter(|id| id.0 <= now)?;
        self.pending.remove(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_ring_in_order_and_never_early() {
        let mut alarms = Alarms::new();
        for (at, id) in [(30, 3), (10, 1), (20, 2), (20, 4)] {
            alarms.set(Nanos(at), AlarmTarget::Thread(TteId(id)));
        }
        let cancelled = alarms.set(Nanos(5), AlarmTarget::Thread(TteId(9)));
        alarms.cancel(cancelled);
        let mut due = |now| match alarms.take_due(Nanos(now)) {
            Some(AlarmTarget::Thread(id)) => Some(id.0),
            _ => None,
        };
        assert_eq!((due(9), due(10), due(19)), (None, Some(1), None));
        assert_eq!((due(25), due(25), due(25)), (Some(2), Some(4), None));
        assert_eq!((due(30), due(99)), (Some(3), None));
    }
}
