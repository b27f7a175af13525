//! What closing a descriptor does beside dropping the file.

use alloc::sync::Arc;

use abi::process::WaitStatus;
use kernel::schedule::WaitQueue;
use kernel::stream::{Caller, Io, Waits};
use machine::Held;

use super::descriptors::{Descriptor, DescriptorTable, Slot};
use super::emptying;
use super::open_file::OpenFile;
use crate::emulator::Unix;
use crate::task::process::Process;

/// A call has taken a file out of a table. Threads that sleep by code in a call on it keep the file until that call ends.
pub fn let_go(unix: &Unix, process: &Process, from: (&Arc<DescriptorTable>, Descriptor), slot: Slot) {
    // The process's, and the caller's.
    const OWNERS: usize = 2;
    let is_shared = process.live_tasks() > 1 || Arc::strong_count(from.0) > OWNERS;
    if is_shared && let Some(stream) = slot.file.as_stream() {
        stream.each_queue(&mut |queue| keep_for_sleeper(unix, queue, from, &slot.file));
    }
    release(unix, process, slot);
}

fn keep_for_sleeper(unix: &Unix, queue: &WaitQueue, from: (&Arc<DescriptorTable>, Descriptor), file: &Arc<OpenFile>) {
    let sleeper = unix.scheduler.sleeper(queue);
    if let Some(task) = sleeper.and_then(|thread| unix.tasks.of_thread(thread.id())) {
        task.keep_file(unix.scheduler, from, file);
    }
}

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

/// Descriptors that are closed between two safe points.
const PART: usize = 16;

/// Closes the descriptors of a process for which `choose` says so (at `exec`, at the end).
pub fn release_where(
    held: Held<'_>,
    unix: &Unix,
    process: &Process,
    files: &DescriptorTable,
    choose: fn(&Slot) -> bool,
) {
    let (mut next, mut closed) = (0, 0);
    while let Some((descriptor, slot)) = files.remove_first(next..usize::MAX, choose) {
        next = descriptor.index() + 1;
        let large = slot.file.node().filter(|node| emptying::is_long_to_empty(node)).cloned();
        linger_at_end(held, unix, process, &slot);
        release(unix, process, slot);
        large.iter().for_each(|node| emptying::empty(held, unix.scheduler, node));
        closed += 1;
        if closed % PART == 0 {
            unix.scheduler.breathe(held);
        }
    }
}

/// A process that ends by itself closes what it has left open as if it had done so before.
fn linger_at_end(held: Held<'_>, unix: &Unix, process: &Process, slot: &Slot) {
    let is_killed = matches!(process.ending.get(), Some(WaitStatus::Killed { .. }));
    let Some(stream) = slot.file.as_stream().filter(|stream| stream.lingers_at_end() && !is_killed) else { return };
    if Arc::strong_count(&slot.file) == 1 {
        stream.linger(&Io { waits: Waits::ForAll(held), scheduler: unix.scheduler, caller: &Nobody });
    }
}

/// A process that ends has no thread that a signal could reach.
struct Nobody;

impl Caller for Nobody {
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// Somebody has let go of a table: with nobody else left, its descriptors are closed.
pub fn release_last(held: Held<'_>, unix: &Unix, process: &Process, files: Option<Arc<DescriptorTable>>) {
    if let Some(files) = files.and_then(Arc::into_inner) {
        release_where(held, unix, process, &files, |_| true);
    }
}
