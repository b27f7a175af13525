//! The numbers of these calls.

use crate::call::int;
use abi::nr;

use super::ioctl;
use crate::call::Entry;

pub const CALLS: &[Entry] = &[(nr::IOCTL, |call, [a, b, c, ..]| ioctl(call, a, int(b) as u32, c))];
