//! The numbers of these calls.

use abi::nr;

use super::execute;
use crate::call::Entry;

pub const CALLS: &[Entry] = &[
    (nr::EXECVE, |call, [a, b, c, ..]| execute::execve(call, a, b, c)),
    (nr::EXECVEAT, |call, [a, b, c, d, e, _]| execute::execveat(call, [a, b, c, d, e])),
];
