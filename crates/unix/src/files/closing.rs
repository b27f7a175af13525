//! What closing a descriptor does beside dropping the file.

use alloc::sync::Arc;

use super::descriptors::{DescriptorTable, Slot};
use crate::emulator::Unix;
use crate::task::process::Process;

/// Record locks of the process on the node go, and those who wait for one look again.
pub fn release(unix: &Unix, process: &Process, slot: Slot) {
    let has_node = slot.file.node().is_some();
    if let Some(stream) = slot.file.as_stream() {
        stream.closed_by(process.pid);
    }
    if let Some(node) = slot.file.node() {
        let released = node.locks().borrow_mut().unlock_all(process.pid.into());
        if released {
            node.settle_outside();
        }
    }
    drop(slot);
    if has_node {
        unix.scheduler.wake(&unix.lock_waits.released);
    }
}

/// Closes the descriptors of a process for which `choose` says so (at `exec`, at the end).
pub fn release_where(unix: &Unix, process: &Process, files: &DescriptorTable, choose: fn(&Slot) -> bool) {
    let mut next = 0;
    while let Some((descriptor, slot)) = files.remove_first(next..usize::MAX, choose) {
        next = descriptor.index() + 1;
        release(unix, process, slot);
    }
}

/// Somebody has let go of a table: with nobody else left, its descriptors are closed.
pub fn release_last(unix: &Unix, process: &Process, files: Option<Arc<DescriptorTable>>) {
    if let Some(files) = files.and_then(Arc::into_inner) {
        release_where(unix, process, &files, |_| true);
    }
}
