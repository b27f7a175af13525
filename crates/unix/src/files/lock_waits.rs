//! Who waits for an advisory lock.

use alloc::vec::Vec;

use kernel::schedule::WaitQueue;
use machine::KernelCell;

/// Who waits for a lock.
pub struct LockWaits {
    /// Woken whenever a lock is given up. Locks are rare, so one queue serves all files.
    pub released: WaitQueue,
    /// (who waits, who holds what it waits for), by owner number, to find a circle before it closes.
    pub edges: KernelCell<Vec<(u64, u64)>>,
}

impl LockWaits {
    pub const fn new() -> LockWaits {
        LockWaits { released: WaitQueue::new(), edges: KernelCell::new(Vec::new()) }
    }

    /// Whether `holder` waits, perhaps through others, for `owner`.
    pub fn closes_circle(&self, owner: u64, holder: u64) -> bool {
        let edges = self.edges.borrow();
        let mut at = holder;
        // A path without a circle visits each edge once.
        for _ in 0..=edges.len() {
            if at == owner {
                return true;
            }
            let Some((_, next)) = edges.iter().find(|(waiter, _)| *waiter == at) else { return false };
            at = *next;
        }
        false
    }
}
