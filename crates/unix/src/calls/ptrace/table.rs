//! The numbers of these calls.

use abi::nr;

use super::ptrace;
use crate::call::Entry;

pub const CALLS: &[Entry] = &[(nr::PTRACE, |call, [a, b, c, d, ..]| ptrace(call, a, b, c, d))];
