//! Whether frames may wait that nobody has looked at and of which no interrupt will tell.

use machine::{KernelValue, Nanos};

/// Since when, if some do.
pub(super) struct Backlog(KernelValue<Option<Nanos>>);

impl Backlog {
    pub const fn new() -> Backlog {
        Backlog(KernelValue::new(None))
    }

    /// Somebody has looked, and there may be more.
    pub fn is_left(&self, is_left: bool, now: Nanos) {
        self.0.set(is_left.then_some(now));
    }

    /// When it is to be looked again, where something else is due at `next`. It stays so, however often it is asked: who comes in between
    /// does not put it off.
    pub fn before(&self, next: Option<Nanos>) -> Option<Nanos> {
        self.0.get().into_iter().chain(next).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program's call in between once replaced the time by that of the next repetition, a second later or never.
    #[test]
    fn what_is_left_is_looked_at_whoever_comes_in_between() {
        let backlog = Backlog::new();
        assert_eq!((backlog.before(None), backlog.before(Some(Nanos(9)))), (None, Some(Nanos(9))));
        backlog.is_left(true, Nanos(5));
        for next in [None, Some(Nanos(1_000_000_000)), Some(Nanos(5))] {
            assert_eq!(backlog.before(next), Some(Nanos(5)));
        }
        assert_eq!(backlog.before(Some(Nanos(3))), Some(Nanos(3)));
        backlog.is_left(false, Nanos(6));
        assert_eq!(backlog.before(None), None);
    }
}
