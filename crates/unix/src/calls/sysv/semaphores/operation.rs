//! Operations on semaphores that are done together or not at all.

use alloc::vec::Vec;

use machine::KernelValue;

use abi::Errno;
use kernel::schedule::WaitQueue;

use super::{Semaphore, VALUE_MAX};
use crate::calls::sysv::objects::IPC_NOWAIT;
use crate::emulator::Unix;

const SEM_UNDO: u16 = 0x1000;

#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub semaphore: u16,
    /// 0: waits until the value is 0.
    pub change: i16,
    pub waits: bool,
    /// The end of the process takes the change back.
    pub takes_back: bool,
}

impl Operation {
    /// From `struct sembuf`: number, change, flags.
    pub fn from_words([semaphore, change, flags]: [u16; 3]) -> Operation {
        Operation {
            semaphore,
            change: change as i16,
            waits: u32::from(flags) & IPC_NOWAIT == 0,
            takes_back: flags & SEM_UNDO != 0,
        }
    }
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Where {
    Growth,
    Zero,
}

/// What became of operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Done,
    /// The operation at this place cannot be done now.
    Blocked(usize),
    /// The same, and it has been noted.
    Waits,
    Failed(Errno),
}

/// Operations under way.
pub struct Pending {
    pub operations: Vec<Operation>,
    pub pid: u32,
    /// The operation that could not be done when they were tried last.
    pub stops_at: KernelValue<usize>,
    pub result: KernelValue<Option<Result<(), Errno>>>,
    pub woken: WaitQueue,
}

impl Pending {
    pub fn new(operations: Vec<Operation>, pid: u32) -> Pending {
        Pending {
            operations,
            pid,
            stops_at: KernelValue::new(0),
            result: KernelValue::new(None),
            woken: WaitQueue::new(),
        }
    }

    /// The operation that stopped them does not want to wait.
    pub fn stop_is_refused(&self) -> bool {
        !self.operations[self.stops_at.get()].waits
    }

    /// Whether what stopped them has changed: otherwise they stop there again.
    pub fn may_go_on(&self, semaphores: &[Semaphore]) -> bool {
        let at = self.operations[self.stops_at.get()];
        // Operations before it may have changed the same semaphore.
        let value = i32::from(semaphores[at.semaphore as usize].value);
        let is_touched_before = self.operations[..self.stops_at.get()].iter().any(|one| one.semaphore == at.semaphore);
        is_touched_before || if at.change == 0 { value == 0 } else { value + i32::from(at.change) >= 0 }
    }

    /// Tells who waits what became of it.
    pub fn finish(&self, unix: &Unix, outcome: Outcome) {
        self.result.set(Some(match outcome {
            Outcome::Failed(error) => Err(error),
            _ => Ok(()),
        }));
        unix.scheduler.wake(&self.woken);
    }
}

/// Does the operations in their order, or, if one cannot be done, none. `undo` has a place for each semaphore if any is to be
/// taken back.
pub fn apply(operations: &[Operation], semaphores: &mut [Semaphore], undo: Option<&mut [i16]>) -> Outcome {
    let mut undo = undo;
    for (place, operation) in operations.iter().enumerate() {
        if let Err(outcome) = apply_one(operation, semaphores, undo.as_deref_mut()) {
            for done in operations[..place].iter().rev() {
                take_back(done, semaphores, undo.as_deref_mut());
            }
            return match outcome {
                Outcome::Blocked(_) => Outcome::Blocked(place),
                other => other,
            };
        }
    }
    Outcome::Done
}

fn apply_one(operation: &Operation, semaphores: &mut [Semaphore], undo: Option<&mut [i16]>) -> Result<(), Outcome> {
    let semaphore = &mut semaphores[operation.semaphore as usize];
    let value = i32::from(semaphore.value) + i32::from(operation.change);
    if value < 0 || operation.change == 0 && value != 0 {
        return Err(Outcome::Blocked(0));
    }
    if value > VALUE_MAX {
        return Err(Outcome::Failed(Errno::ERANGE));
    }
    if operation.takes_back
        && let Some(undo) = undo
    {
        let place = &mut undo[operation.semaphore as usize];
        let more = i32::from(*place) - i32::from(operation.change);
        if !(-VALUE_MAX - 1..=VALUE_MAX).contains(&more) {
            return Err(Outcome::Failed(Errno::ERANGE));
        }
        *place = more as i16;
    }
    semaphore.value = value as u16;
    Ok(())
}

fn take_back(operation: &Operation, semaphores: &mut [Semaphore], undo: Option<&mut [i16]>) {
    let semaphore = &mut semaphores[operation.semaphore as usize];
    semaphore.value = (i32::from(semaphore.value) - i32::from(operation.change)) as u16;
    if operation.takes_back
        && let Some(undo) = undo
    {
        undo[operation.semaphore as usize] += operation.change;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(semaphore: u16, change: i16, flags: u16) -> Operation {
        Operation::from_words([semaphore, change as u16, flags])
    }

    #[test]
    fn operations_that_stop_leave_nothing_behind() {
        let mut semaphores = [Semaphore { value: 3, pid: 0 }, Semaphore { value: 0, pid: 0 }];
        let mut undo = [0i16; 2];
        let stopped = [one(0, -2, SEM_UNDO), one(0, 1, 0), one(1, -1, 0)];
        assert_eq!(apply(&stopped, &mut semaphores, Some(&mut undo)), Outcome::Blocked(2));
        assert_eq!((semaphores[0].value, undo), (3, [0, 0]));
        let done = [one(0, -3, SEM_UNDO), one(0, 0, 0), one(1, 5, 0)];
        assert_eq!(apply(&done, &mut semaphores, Some(&mut undo)), Outcome::Done);
        assert_eq!((semaphores[0].value, semaphores[1].value, undo), (0, 5, [3, 0]));
        let large = [one(1, 32_767, 0)];
        assert_eq!(apply(&large, &mut semaphores, None), Outcome::Failed(Errno::ERANGE));
    }
}
