//! Robust futexes: a thread that ends marks the locks it held (`linux/futex.h`, robust_list).

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use abi::Field;
use abi::process::{FUTEX_OWNER_DIED, FUTEX_TID_MASK, FUTEX_WAITERS, RobustList};
use machine::{Held, VirtAddr};

use crate::calls::{coming, futexes};
use crate::emulator::Unix;
use crate::task::thread::Task;

/// Locks looked at; a longer list is cut, since the program may have made a circle of it.
const LOCKS_MAX: usize = 2048;

/// Walks the ending thread's list, in the thread's own quaspace. A bad address ends the walk.
pub fn release(held: Held<'_>, unix: &'static Unix, task: &Arc<Task>) {
    let head = task.robust_list.swap(0, Ordering::Relaxed);
    if head == 0 {
        return;
    }
    let Some(list) = read::<RobustList>(held, unix, task, head) else { return };
    let lock_of = |entry: u64| (entry & !1).wrapping_add_signed(list.futex_offset);
    let mut entry = list.list;
    for _ in 0..LOCKS_MAX {
        if entry & !1 == head {
            break;
        }
        // The entry is read before its lock is marked: afterwards another thread may free it.
        let next = read::<u64>(held, unix, task, entry & !1);
        if entry != list.list_op_pending && !mark(held, unix, task, lock_of(entry)) {
            return;
        }
        let Some(next) = next else { return };
        entry = next;
    }
    if list.list_op_pending & !1 != 0 {
        mark(held, unix, task, lock_of(list.list_op_pending));
    }
}

/// Marks one lock if the thread holds it, and wakes one who waits for it. `false`: a bad address.
fn mark(held: Held<'_>, unix: &'static Unix, task: &Arc<Task>, address: u64) -> bool {
    let Some(word) = read::<u32>(held, unix, task, address).filter(|_| address.is_multiple_of(4)) else { return false };
    if word & FUTEX_TID_MASK != task.tid {
        return true;
    }
    let left = word & FUTEX_WAITERS | FUTEX_OWNER_DIED;
    if !coming::store_at_end(held, unix, task, address, &left.to_le_bytes()) {
        return false;
    }
    if word & FUTEX_WAITERS != 0
        && let Some(space) = task.process.space()
    {
        futexes::wake_address(unix, &space, address, 1);
    }
    true
}

fn read<T: Field>(held: Held<'_>, unix: &Unix, task: &Task, address: u64) -> Option<T> {
    let mut bytes = [0; 24];
    let bytes = &mut bytes[..T::BYTES];
    while unix.machine.copy_in(VirtAddr(address), bytes).is_err() {
        task.await_at_end(held).ok()?;
    }
    Some(T::get(bytes))
}
