//! What a process holds of the memory, its own and the kernel's. Computed when somebody asks; nothing is counted before.

use alloc::sync::Arc;

use abi::siginfo::SigInfo;
use kernel::charge::{Bill, Held, Kept};
use machine::Held as Lock;

use crate::calls::sockets::carried::Carried;
use crate::emulator::Unix;
use crate::files::descriptors::DescriptorTable;
use crate::limits::THREAD_BYTES;
use crate::task::process::Process;
use crate::task::thread::Task;

/// What would come back if the process went. What it shares with others is divided by their number. Others run between parts of it:
/// it is as exact as a look at something that moves.
pub fn of(lock: Lock<'_>, unix: &Unix, process: &Process) -> Bill {
    let mut bill = Bill::new();
    add_pages(lock, unix, process, &mut bill);
    let mut signals = process.pending.borrow().queued();
    let mut threads = size_of::<Process>();
    process.each_task(|task| {
        threads += size_of::<Task>() + THREAD_BYTES;
        signals += task.pending.borrow().queued();
    });
    bill.add(Held::new(Kept::Threads, threads));
    bill.add(Held::new(Kept::Signals, signals * size_of::<SigInfo>()));
    bill.add(process.timers.held());
    add_files(lock, unix, process, &mut bill);
    unix.shm.charge(process.pid, &mut bill);
    unix.families.messages.borrow().charge(process.pid, &mut bill);
    unix.families.semaphores.bill(process.pid, &mut bill);
    unix.families.aio.bill(process.pid, &mut bill);
    bill
}

/// Areas and pages, and descriptors, that are looked at between two safe points.
const PAGES: u64 = 64;
const FILES: usize = 64;

/// The quaspace's. It is kept by nobody here while others run, so that its last user is the one who gives it back.
fn add_pages(lock: Lock<'_>, unix: &Unix, process: &Process, bill: &mut Bill) {
    let (mut pages, mut holders, mut next) = (Bill::new(), 1, Some(0));
    while let Some(from) = next
        && let Some(space) = process.space()
    {
        if from == 0 {
            space.borrow().charge(&mut pages);
            // Besides the processes that share it, this function has it.
            holders = Arc::strong_count(&space) - 1;
        }
        next = space.borrow().charge_some(&mut pages, from, PAGES);
        drop(space);
        if next.is_some() {
            unix.scheduler.breathe(lock);
        }
    }
    bill.join_part(&pages, holders);
}

/// The open files of all descriptor tables, and what is in flight to them.
fn add_files(lock: Lock<'_>, unix: &Unix, process: &Process, bill: &mut Bill) {
    let owner = process.pid.into();
    let mut next = Some(0);
    while let Some(from) = next
        && let Some(files) = process.table()
    {
        // The caller's copy of the reference is not a holder.
        let tables = Arc::strong_count(&files) - 1;
        next = files.some_files(from, FILES, &mut |file| file.charge(owner, tables * Arc::strong_count(file), bill));
        drop(files);
        if next.is_some() {
            unix.scheduler.breathe(lock);
        }
    }
    // What is in flight is found through words of the sockets themselves: nobody else searches meanwhile.
    let mut carried = Carried::new(&unix.flight);
    let mut is_threads_own = false;
    process.each_files(|files: &Arc<DescriptorTable>| {
        let tables = Arc::strong_count(files) - 1;
        bill.share(files.held(), tables);
        files.each_file(&mut |file| {
            let holders = tables * Arc::strong_count(file);
            if is_threads_own {
                file.charge(owner, holders, bill);
            }
            carried.add(file, holders);
        });
        is_threads_own = true;
    });
    carried.charge(owner, bill);
}
