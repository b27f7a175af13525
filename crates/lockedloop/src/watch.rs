//! Whether a loop is locked.

use crate::units::Part;

/// How a loop stands to what it follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It has not been in step long enough.
    Seeking,
    /// In step.
    Locked,
    /// It was in step and is no more, or nothing has come for long; it goes on at its last frequency.
    Lost,
}

/// Tells whether errors are small for long enough.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    within: Part,
    locks_after: u32,
    loses_after: u32,
    state: State,
    /// Measurements in a row that speak against the state.
    against: u32,
}

impl Watch {
    /// Locked after so many errors in a row that are at most `within`; lost after so many larger ones.
    pub const fn new(within: Part, locks_after: u32, loses_after: u32) -> Watch {
        Watch { within, locks_after, loses_after, state: State::Seeking, against: 0 }
    }

    pub fn state(&self) -> State {
        self.state
    }

    /// Takes note of an error. True: this one has lost the lock.
    pub fn note(&mut self, error: Part) -> bool {
        let is_small = error.abs() <= self.within;
        if is_small != (self.state == State::Locked) {
            self.against += 1;
        } else {
            self.against = 0;
        }
        match self.state {
            State::Locked if self.against >= self.loses_after => self.lose(),
            State::Seeking | State::Lost if self.against >= self.locks_after => {
                (self.state, self.against) = (State::Locked, 0);
                false
            }
            _ => false,
        }
    }

    /// The lock is lost, if there was one.
    pub fn lose(&mut self) -> bool {
        self.against = 0;
        let was_locked = self.state == State::Locked;
        if was_locked {
            self.state = State::Lost;
        }
        was_locked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_error_alone_changes_nothing() {
        let (small, large) = (Part(1), Part(1000));
        let mut watch = Watch::new(Part(10), 3, 2);
        for error in [small, small, large, small, small] {
            assert!(!watch.note(error));
            assert_eq!(watch.state(), State::Seeking);
        }
        watch.note(small);
        assert_eq!(watch.state(), State::Locked);
        assert!(!watch.note(large) && !watch.note(small) && !watch.note(large));
        assert_eq!(watch.state(), State::Locked);
        assert!(watch.note(Part(-1000)));
        assert_eq!(watch.state(), State::Lost);
    }
}
