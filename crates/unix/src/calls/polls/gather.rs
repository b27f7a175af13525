//! The files of a wait. Few are looked at, and then slept on, while nobody else can change them. With many others run in between:
//! then the caller enters all queues first and looks afterwards, and who woke it meanwhile is remembered.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use machine::{Nanos, NoMemory};

use super::PART;
use super::epoll::{Epoll, FIRST};
use super::nesting::begin_walk;
use crate::call::Call;
use crate::files::open_file::OpenFile;
use crate::files::watchers::{Mark, Watcher};

/// All files there are to look at, or those that were given.
type Gathered = Result<Vec<Arc<OpenFile>>, Vec<Arc<OpenFile>>>;

/// The files, and what the instances among them watch, if that is few; else the files alone.
///
/// # Errors
/// No memory for a list.
pub fn few(files: Vec<Arc<OpenFile>>) -> Result<Gathered, NoMemory> {
    let (given, walk) = (files.len(), begin_walk());
    let (mut all, mut at) = (files, 0);
    while let Some(file) = all.get(at) {
        let file = file.clone();
        if let Some(instance) = unseen(&file, walk) {
            instance.some_files(FIRST, PART + 1, &mut all)?;
        }
        at += 1;
        if all.len() > PART {
            all.truncate(given);
            return Ok(Err(all));
        }
    }
    Ok(Ok(all))
}

/// The instance that a file is, if this walk has not been there.
fn unseen(file: &OpenFile, walk: u64) -> Option<&Epoll> {
    let instance = file.stream_of::<Epoll>().filter(|instance| instance.mark().get().walk != walk)?;
    instance.mark().set(Mark { walk, depth: 0 });
    Some(instance)
}

/// Asks `look` once the caller is in the queues of all `files`, and again when it has been woken or the time is over.
pub fn look_and_sleep(
    call: &Call<'_>,
    files: Vec<Arc<OpenFile>>,
    deadline: Option<Nanos>,
    look: &mut dyn FnMut() -> Result<u64, Errno>,
) -> Result<u64, Errno> {
    let scheduler = call.unix.scheduler;
    let wait = scheduler.begin_wait();
    let mut files = files;
    let mut ready = enter_all(call, &mut files).map_err(Errno::from).and_then(|()| look());
    let is_over = || deadline.is_some_and(|deadline| deadline <= call.unix.machine.now());
    let sleeps = ready == Ok(0) && !call.task.is_interrupted() && !is_over();
    if sleeps {
        scheduler.sleep_unless_woken(call.held, wait, deadline);
    }
    for part in files.chunks(PART) {
        for stream in part.iter().filter_map(|file| file.as_stream()) {
            stream.each_queue(&mut |queue| scheduler.leave_queue(queue));
        }
        scheduler.breathe(call.held);
    }
    if sleeps {
        ready = look();
    }
    ready
}

/// Enters the queues of the files and of all that instances among them watch. An instance's own queue comes before what it
/// watches: who adds a file meanwhile wakes the caller.
///
/// # Errors
/// No memory; then the caller may be in some of them.
fn enter_all(call: &Call<'_>, all: &mut Vec<Arc<OpenFile>>) -> Result<(), NoMemory> {
    let (scheduler, walk) = (call.unix.scheduler, begin_walk());
    let mut at = 0;
    while let Some(file) = all.get(at).cloned() {
        if let Some(stream) = file.as_stream() {
            let mut entered = Ok(());
            stream.each_queue(&mut |queue| {
                if entered.is_ok() {
                    entered = scheduler.enter_queue(queue);
                }
            });
            entered?;
        }
        let mut from = unseen(&file, walk).map(|_| FIRST);
        while let (Some(first), Some(instance)) = (from, file.stream_of::<Epoll>()) {
            from = instance.some_files(first, PART, all)?;
            scheduler.breathe(call.held);
        }
        at += 1;
        if at % PART == 0 {
            scheduler.breathe(call.held);
        }
    }
    Ok(())
}
