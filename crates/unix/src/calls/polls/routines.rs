//! When `poll` and `epoll_wait` become code: for files that are asked often, in threads that ask often.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::nr;
use abi::poll::{EPOLLERR, EPOLLHUP};
use kernel::ready::instance::{Looks, WATCHED_MAX, Watched};
use kernel::ready::poll::Polls;
use machine::{DescriptorEntries, NoMemory, try_collect};

use super::epoll::{Epoll, MODE_BITS};
use crate::call::Call;
use crate::files::asked::{AskedCode, SYNTHESIZED};
use crate::files::open_file::OpenFile;
use crate::task::bindings::BOUND;

/// Making what a file is ready for as code costs about so many calls of `poll` in Rust.
const ASKED_IN_RUST: u8 = 6;
/// Calls in Rust on files that have code before a thread's call becomes code.
const CALLS_IN_RUST: u8 = 2;

/// One file was asked by `poll`.
#[inline(always)]
pub fn polled(call: &Call<'_>, file: &Arc<OpenFile>) {
    if file.is_worth_asking(ASKED_IN_RUST) {
        make_ready(call, file);
    }
    if file.asked.ready().is_some() && call.task.bindings.polls.times.get() != BOUND {
        bind_poll(call);
    }
}

/// Has the file say by code what it is ready for, where it can.
#[cold]
fn make_ready(call: &Call<'_>, file: &Arc<OpenFile>) {
    if file.asked.ready().is_none()
        && let Some(makers) = call.unix.makers()
        && let Some(stream) = file.as_stream()
        && let Some(code) = stream.readiness(makers)
    {
        file.asked.set(AskedCode::Ready(code));
        call.files().bind_routines(file);
    }
}

#[cold]
fn bind_poll(call: &Call<'_>) {
    let polls = &call.task.bindings.polls;
    if polls.times.get() < CALLS_IN_RUST {
        return polls.times.set(polls.times.get() + 1);
    }
    let Some(makers) = call.unix.makers() else { return };
    let files = call.files();
    let table = files.asked();
    let words = Polls { ready: table.ready.as_ptr() as u64, count: SYNTHESIZED as u64 };
    let tte = call.task.thread.tte();
    // Without room for code the call stays as it is.
    if let Some(code) = words.poll(makers.of_thread(tte.id()), tte) {
        tte.bind_call(nr::POLL as usize, Some(code.entry().under()));
        *polls.code.borrow_mut() = Some((code, table.clone()));
        polls.times.set(BOUND);
    }
}

/// An instance's files were asked by `epoll_wait`.
#[inline(always)]
pub fn waited(call: &Call<'_>, holder: &Arc<OpenFile>, epoll: &Epoll) {
    if epoll.is_worth_look(ASKED_IN_RUST) {
        make_look(call, holder, epoll);
    }
    if holder.asked.wait().is_some() && call.task.bindings.polls.waits.get() != BOUND {
        bind_wait(call);
    }
}

/// Has the instance look at its files by code, where all of them can say what they are ready for.
#[cold]
fn make_look(call: &Call<'_>, holder: &Arc<OpenFile>, epoll: &Epoll) {
    let Some(makers) = call.unix.makers() else { return };
    let Ok(Some(files)) = watched(epoll) else { return };
    files.iter().for_each(|(file, ..)| make_ready(call, file));
    let each = files.iter().filter_map(|(file, events, data)| {
        let events = events & !MODE_BITS & !(EPOLLERR | EPOLLHUP);
        Some(Watched { ready: file.asked.ready()?, events, data: *data })
    });
    let Ok(watched) = try_collect(each) else { return };
    let Some(looks) = epoll.looks(|| Looks::new(makers)).filter(|_| watched.len() == files.len()) else { return };
    looks.look_at(makers, &watched);
    if holder.asked.wait().is_none() {
        holder.asked.set(AskedCode::Wait(looks.wait().clone()));
        call.files().bind_routines(holder);
    }
}

/// The files, what is asked of them, and what is told with it; `None`: code cannot answer for them.
type WatchedFiles = Vec<(Arc<OpenFile>, u32, u64)>;

fn watched(epoll: &Epoll) -> Result<Option<WatchedFiles>, NoMemory> {
    if !(1..=WATCHED_MAX).contains(&epoll.count()) {
        return Ok(None);
    }
    let files = epoll.plain_items()?;
    Ok(if files.len() == epoll.count() { Some(files) } else { None })
}

#[cold]
fn bind_wait(call: &Call<'_>) {
    let polls = &call.task.bindings.polls;
    if polls.waits.get() < CALLS_IN_RUST {
        return polls.waits.set(polls.waits.get() + 1);
    }
    let entries = DescriptorEntries::of(call.files().asked(), |table| &table.waits);
    if call.task.thread.tte().bind_descriptor_call(nr::EPOLL_WAIT as usize, entries).is_ok() {
        polls.waits.set(BOUND);
    }
}
