//! The numbers of these calls.

use abi::nr;

use super::{messages, semaphores};
use crate::call::Entry;

pub const CALLS: &[Entry] = &[
    (nr::SEMGET, |call, [a, b, c, ..]| semaphores::semget(call, a, b, c)),
    (nr::SEMOP, |call, [a, b, c, ..]| semaphores::semtimedop(call, a, b, c, 0)),
    (nr::SEMTIMEDOP, |call, [a, b, c, d, ..]| semaphores::semtimedop(call, a, b, c, d)),
    (nr::SEMCTL, |call, [a, b, c, d, ..]| crate::calls::sysv::semaphores::control::semctl(call, a, b, c as u32, d)),
    (nr::MSGGET, |call, [a, b, ..]| messages::msgget(call, a, b)),
    (nr::MSGSND, |call, [a, b, c, d, ..]| messages::msgsnd(call, a, b, c, d as u32)),
    (nr::MSGRCV, |call, [a, b, c, d, e, _]| messages::msgrcv(call, [a, b, c, d, e])),
    (nr::MSGCTL, |call, [a, b, c, ..]| messages::msgctl(call, a, b as u32, c)),
];
