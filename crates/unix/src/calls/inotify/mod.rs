//! Watching files and directories (inotify).
//!
//! ```text
//!   mod.rs        the calls
//!   instance.rs   an instance: its watches, and its queue of events as a stream
//!   users.rs      how many instances and watches each user has
//! ```
//! What happens, and whom it is told, is in `kernel::file` (`watch.rs`).

pub(crate) mod instance;
pub(super) mod table;
pub(crate) mod users;

use alloc::sync::Arc;

use abi::Errno;
use abi::file::{AT_FDCWD, O_CLOEXEC, O_NONBLOCK, O_RDONLY};
use abi::poll::*;
use kernel::file::{Access, FinalLink, Node};

use crate::call::{Call, CallResult};
use crate::calls::times::timerfd::add_file;
use crate::files::open_file::OpenFile;

pub use instance::Inotify;

/// What a watch may be asked for: events, and how it shall be.
const EVENTS: u32 = 0xFFF;
const MODES: u32 = IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK | IN_MASK_CREATE | IN_MASK_ADD | IN_ONESHOT;
/// Newer than the headers that our numbers are compared with.
const IN_MASK_CREATE: u32 = 0x1000_0000;
/// What Linux also counts as something asked for (`ALL_INOTIFY_BITS`).
const ALSO: u32 = 0x2000 | 0x4000 | 0x8000 | IN_ISDIR;

/// Errors: `EINVAL` for unknown flags, `EMFILE` for too many instances of the user, or descriptors.
fn inotify_init(call: &Call<'_>, flags: u32) -> CallResult {
    if flags & !(IN_CLOEXEC | IN_NONBLOCK) != 0 {
        return Err(Errno::EINVAL);
    }
    let instance = Inotify::new(call)?;
    let file = OpenFile::stream(instance, O_RDONLY | flags & O_NONBLOCK);
    add_file(call, file, flags & O_CLOEXEC != 0)
}

/// The instance behind a descriptor, and whoever keeps it.
fn instance(call: &Call<'_>, descriptor: u64) -> Result<Arc<Inotify>, Errno> {
    let file = call.file(descriptor)?;
    file.stream_of::<Inotify>().and_then(Inotify::shared).ok_or(Errno::EINVAL)
}

/// Errors: `EINVAL` for a mask that asks for nothing or contradicts itself, or what is no instance; `EBADF`, those of a
/// lookup, `ENOTDIR` (`IN_ONLYDIR`), `EACCES`, `EEXIST` (`IN_MASK_CREATE`), `ENOSPC` for too many watches of the user.
fn add_watch(call: &Call<'_>, descriptor: u64, path: u64, mask: u32) -> CallResult {
    if mask & (EVENTS | MODES | ALSO) == 0 {
        return Err(Errno::EINVAL);
    }
    call.file(descriptor)?;
    if mask & (IN_MASK_ADD | IN_MASK_CREATE) == IN_MASK_ADD | IN_MASK_CREATE {
        return Err(Errno::EINVAL);
    }
    let instance = instance(call, descriptor)?;
    let path = call.read_path(path)?;
    let last = if mask & IN_DONT_FOLLOW != 0 { FinalLink::Keep } else { FinalLink::Follow };
    let node = call.with_view(AT_FDCWD as u64, &path, |view| call.unix.names.lookup(view, &path, last))?;
    if mask & IN_ONLYDIR != 0 && !node.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    // A link itself may be watched by everyone.
    if !node.is_symlink() {
        call.permit(&node, Access { read: true, ..Access::default() })?;
    }
    if node.volume().store().tells() {
        call.unix.families.inotify.watch_outside(node.volume());
    }
    let number =
        instance.watch(&node, mask & (EVENTS | IN_ONESHOT | IN_EXCL_UNLINK), mask & (IN_MASK_ADD | IN_MASK_CREATE))?;
    withdraw_routines(call, &node);
    Ok(number as u64)
}

/// What machine code does with the watched nodes is done in Rust from now on, where those who watch are told.
fn withdraw_routines(call: &Call<'_>, node: &Arc<Node>) {
    call.unix.names.watch_started();
    let mut from = Some(0);
    while let Some(cookie) = from {
        from = node.hide_pages(cookie);
        if from.is_some() {
            call.unix.scheduler.let_others_run(call.held);
        }
    }
    rebind_streams(call);
}

/// Synthesized routines of streams with names are bound, or not, as they are watched now.
fn rebind_streams(call: &Call<'_>) {
    for process in call.unix.tasks.processes() {
        process.each_files(|files| files.rebind_where(&Node::is_special));
    }
}

/// Errors: `EBADF`, `EINVAL` for what is no instance, or no watch of it.
fn rm_watch(call: &Call<'_>, descriptor: u64, number: i32) -> CallResult {
    call.file(descriptor)?;
    instance(call, descriptor)?.unwatch(number)?;
    rebind_streams(call);
    Ok(0)
}
