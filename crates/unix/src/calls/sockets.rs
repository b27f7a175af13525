//! Sockets.
use super::Entry;
use alloc::collections::BTreeMap;
use alloc::sync::Weak;
use alloc::vec::Vec;
use machine::KernelCell;

/// Sockets by their abstract names.
pub struct SocketNames(KernelCell<BTreeMap<Vec<u8>, Weak<()>>>);
impl SocketNames {
    pub const fn new() -> SocketNames {
        SocketNames(KernelCell::new(BTreeMap::new()))
    }
}
pub const CALLS: &[Entry] = &[];
