//! Which epoll instances may watch each other: Linux' rules (`fs/eventpoll.c`).
//!
//! ```text
//!   file ──► instance ──► instance ──► … at most NESTS_MAX arrows between instances
//! ```
//! A file that many instances watch, which others watch, wakes along all ways up from it; so there may be only so many of each
//! length. A walk marks where it was: instances are far fewer than the ways between them.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use abi::Errno;
use kernel::schedule::Scheduler;
use machine::{Held, NoMemory, TryGrow};

use super::PART;
use super::epoll::{Epoll, FIRST, FIRST_OTHER};
use crate::files::open_file::OpenFile;
use crate::files::watchers::{Mark, Watcher};

/// Arrows between instances that may lie behind each other (Linux `EP_MAX_NESTS`); one more is `ELOOP`.
const NESTS_MAX: usize = 4;

/// Ways up from a file to an instance that nobody watches, by the number of instances between the two; one more is `EINVAL`.
/// Of those without any there may be more.
const WAYS_MAX: [usize; NESTS_MAX + 1] = [usize::MAX, 500, 100, 50, 10];

pub fn begin_walk() -> u64 {
    static WALKS: AtomicU64 = AtomicU64::new(0);
    WALKS.fetch_add(1, Relaxed) + 1
}

/// Whether `outer`, which `holder` is, may watch `inner`. Errors: `ELOOP`, `ENOMEM`.
pub fn permit(holder: &OpenFile, outer: &Epoll, inner: &Epoll) -> Result<(), Errno> {
    let below = depth_below(begin_walk(), inner, outer, 0)?;
    if below <= NESTS_MAX && below + 1 + depth_above(begin_walk(), holder) <= NESTS_MAX {
        Ok(())
    } else {
        Err(Errno::ELOOP)
    }
}

/// How many instances lie behind each other below `at`; too many if `outer` is among them.
fn depth_below(walk: u64, at: &Epoll, outer: &Epoll, nests: usize) -> Result<usize, NoMemory> {
    if at.mark().get().walk == walk {
        return Ok(at.mark().get().depth);
    }
    at.mark().set(Mark { walk, depth: 0 });
    let mut depth = 0;
    for inner in &at.instances()? {
        let Some(inner) = inner.stream_of::<Epoll>() else { continue };
        if core::ptr::eq(inner, outer) || nests > NESTS_MAX {
            depth = NESTS_MAX + 1;
        } else {
            depth = depth.max(depth_below(walk, inner, outer, nests + 1)? + 1);
        }
        if depth > NESTS_MAX {
            break;
        }
    }
    at.mark().set(Mark { walk, depth });
    Ok(depth)
}

/// How many lie behind each other above.
fn depth_above(walk: u64, at: &OpenFile) -> usize {
    let mut depth = 0;
    let Ok(()) = at.watchers.each(|watcher| {
        let mark = watcher.mark().get();
        let above = match watcher.own_file() {
            _ if mark.walk == walk => mark.depth,
            Some(own) => depth_above(walk, &own),
            None => 0,
        };
        watcher.mark().set(Mark { walk, depth: above });
        depth = depth.max(above + 1);
        Ok::<(), Infallible>(())
    });
    depth
}

/// Counts the ways up from all files below `from`. Error: `EINVAL`.
pub fn count_ways_from_below(held: Held<'_>, scheduler: &Scheduler, from: &Epoll) -> Result<(), Errno> {
    let walk = begin_walk();
    let mut instances = from.instances()?;
    count_ways_from(held, scheduler, from)?;
    from.mark().set(Mark { walk, depth: 0 });
    while let Some(file) = instances.pop() {
        let Some(instance) = file.stream_of::<Epoll>().filter(|it| it.mark().get().walk != walk) else { continue };
        instance.mark().set(Mark { walk, depth: 0 });
        instances.try_extend(instance.instances()?)?;
        count_ways_from(held, scheduler, instance)?;
    }
    Ok(())
}

/// The same from those that one instance watches itself.
fn count_ways_from(held: Held<'_>, scheduler: &Scheduler, instance: &Epoll) -> Result<(), Errno> {
    let mut from = Some(FIRST_OTHER);
    while let Some(first) = from {
        let mut files = Vec::new();
        from = instance.some_files(first, PART, &mut files)?;
        for file in &files {
            count_ways(file)?;
            scheduler.breathe(held);
        }
    }
    Ok(())
}

/// Counts the ways up from a file. Error: `EINVAL`.
pub fn count_ways(file: &OpenFile) -> Result<(), Errno> {
    go_up(file, 0, &mut [0; WAYS_MAX.len()])
}

fn go_up(from: &OpenFile, nests: usize, counts: &mut [usize; WAYS_MAX.len()]) -> Result<(), Errno> {
    if nests > NESTS_MAX {
        return Err(Errno::EINVAL);
    }
    from.watchers.each(|watcher| match watcher.own_file() {
        Some(own) if !own.watchers.is_empty() => go_up(&own, nests + 1, counts),
        _ => {
            counts[nests] += 1;
            if counts[nests] > WAYS_MAX[nests] { Err(Errno::EINVAL) } else { Ok(()) }
        }
    })
}

impl Epoll {
    /// The instances that it watches itself.
    fn instances(&self) -> Result<Vec<Arc<OpenFile>>, NoMemory> {
        self.files_between(FIRST, FIRST_OTHER)
    }
}
