//! What a process holds of the memory, its own and the kernel's. Computed when somebody asks; nothing is counted before.

use alloc::sync::Arc;

use abi::siginfo::SigInfo;
use kernel::charge::{Bill, Held, Kept};

use crate::calls::sockets::carried::Carried;
use crate::emulator::Unix;
use crate::files::descriptors::DescriptorTable;
use crate::limits::THREAD_BYTES;
use crate::task::process::Process;
use crate::task::thread::Task;

/// What would come back if the process went. What it shares with others is divided by their number.
pub fn of(unix: &Unix, process: &Process) -> Bill {
    let mut bill = Bill::new();
    if let Some(space) = process.space() {
        let mut pages = Bill::new();
        space.borrow().charge(&mut pages);
        // Besides the processes that share it, this function has it.
        bill.join_part(&pages, Arc::strong_count(&space) - 1);
    }
    let mut signals = process.pending.borrow().queued();
    let mut threads = size_of::<Process>();
    process.each_task(|task| {
        threads += size_of::<Task>() + THREAD_BYTES;
        signals += task.pending.borrow().queued();
    });
    bill.add(Held::new(Kept::Threads, threads));
    bill.add(Held::new(Kept::Signals, signals * size_of::<SigInfo>()));
    bill.add(process.timers.held());
    add_files(unix, process, &mut bill);
    unix.shm.charge(process.pid, &mut bill);
    unix.families.messages.borrow().charge(process.pid, &mut bill);
    unix.families.semaphores.bill(process.pid, &mut bill);
    unix.families.aio.bill(process.pid, &mut bill);
    bill
}

/// The open files of all descriptor tables, and what is in flight to them.
fn add_files(unix: &Unix, process: &Process, bill: &mut Bill) {
    let owner = process.pid.into();
    let mut carried = Carried::new(&unix.flight);
    process.each_files(|files: &Arc<DescriptorTable>| {
        // The caller's copy of the reference is not a holder.
        let tables = Arc::strong_count(files) - 1;
        bill.share(files.held(), tables);
        files.each_file(&mut |file| {
            let holders = tables * Arc::strong_count(file);
            file.charge(owner, holders, bill);
            carried.add(file, holders);
        });
    });
    carried.charge(owner, bill);
}
