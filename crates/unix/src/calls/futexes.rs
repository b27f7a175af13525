//! Futexes and the scheduling calls.

use alloc::sync::Arc;

use kernel::space::Space;
use machine::KernelCell;

use super::Entry;
use crate::emulator::Unix;

/// Wakes up to `count` threads that wait for the word at `address` in `space`.
pub fn wake_address(_unix: &'static Unix, _space: &Arc<KernelCell<Space>>, _address: u64, _count: u32) {}

pub const CALLS: &[Entry] = &[];
