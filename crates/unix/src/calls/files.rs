//! Opening and closing.

mod cached;
mod fifo;
mod nameless;
mod resolve;
pub(super) mod table;

use alloc::sync::Arc;

use abi::Errno;
use abi::file::{
    O_ACCMODE, O_APPEND, O_ASYNC, O_CLOEXEC, O_CREAT, O_DIRECT, O_DIRECTORY, O_DSYNC, O_EXCL, O_LARGEFILE, O_NOATIME,
    O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_PATH, O_RDONLY, O_SYNC, O_TMPFILE, O_TRUNC, O_WRONLY,
};
use kernel::file::{Access, Create, Data, File, Limits, Node, NodeKind, OpenHow, View};

use machine::stages::{self, Stage};

use super::coming::anew;
use super::open_cache;
use crate::call::{Call, CallResult};
use crate::calls::parts;
use crate::calls::transfer::extent::forget_mappings;
use crate::devices;
use crate::files::closing::let_go;
use crate::files::descriptors::{Descriptor, Slot};
use crate::files::open_file::{Body, OpenFile};
use crate::files::synthesize;
use crate::files::text::TextFile;

/// Flags that `open` knows; it ignores others, `openat2` does not.
const KNOWN: u32 = O_ACCMODE
    | O_CREAT
    | O_EXCL
    | O_NOCTTY
    | O_TRUNC
    | O_APPEND
    | O_NONBLOCK
    | O_SYNC
    | O_DSYNC
    | O_ASYNC
    | O_DIRECT
    | O_LARGEFILE
    | O_NOFOLLOW
    | O_NOATIME
    | O_CLOEXEC
    | O_PATH
    | O_TMPFILE
    | O_DIRECTORY;
/// What counts beside `O_PATH`.
const KNOWN_WITH_PATH: u32 = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

pub fn close(call: &Call<'_>, descriptor: u64) -> CallResult {
    let (files, descriptor) = (call.files(), Descriptor::from_register(descriptor));
    let slot = files.remove(descriptor)?;
    if let Some(stream) = slot.file.as_stream().filter(|stream| stream.lingers() && Arc::strong_count(&slot.file) == 1)
    {
        call.with_io(false, |io| stream.linger(io));
    }
    let node = slot.file.node().filter(|node| parts::is_long_to_empty(node)).cloned();
    let_go(call.unix, call.process(), (&files, descriptor), slot);
    node.iter().for_each(|node| parts::empty(call.held, call.unix.scheduler, node));
    Ok(0)
}

pub fn openat(call: &Call<'_>, directory: u64, path: u64, flags: u32, mode: u32) -> CallResult {
    let path = call.read_path(path)?;
    let asked = flags;
    let mut flags = flags & KNOWN | O_LARGEFILE;
    if flags & O_PATH != 0 {
        flags &= KNOWN_WITH_PATH;
    }
    finish(call, flags, || {
        let file = open_path(call, directory, &path, flags, mode)?;
        open_cache::consider(call, &path, asked, &file);
        Ok(file)
    })
}

/// Opens a file and gives it a descriptor, if there is one to give.
fn finish(call: &Call<'_>, flags: u32, open: impl FnOnce() -> Result<OpenFile, Errno>) -> CallResult {
    let limit = call.process().limits.borrow().descriptors();
    if !call.files().has_free(limit) {
        return Err(Errno::EMFILE);
    }
    let file = Arc::new(open()?);
    let slot = Slot { file, close_on_exec: flags & O_CLOEXEC != 0 };
    call.files().add(slot, 0, limit).map(|descriptor| descriptor.0.into())
}

/// How the flags of `open` read.
fn how(call: &Call<'_>, flags: u32, mode: u32) -> OpenHow {
    let create = Create { mode: masked(call, mode), exclusive: flags & O_EXCL != 0 };
    OpenHow {
        access: access(flags),
        create: (flags & O_CREAT != 0).then_some(create),
        truncate: flags & O_TRUNC != 0,
        directory: flags & O_DIRECTORY != 0,
        no_follow: flags & O_NOFOLLOW != 0 || flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL,
        path_only: flags & O_PATH != 0,
        no_access_time: flags & O_NOATIME != 0,
        flags,
    }
}

fn access(flags: u32) -> Access {
    let access = flags & O_ACCMODE;
    Access { read: access != O_WRONLY, write: access != O_RDONLY, execute: false }
}

/// A mode without the bits that the process's umask takes away.
fn masked(call: &Call<'_>, mode: u32) -> u32 {
    mode & 0o7777 & !call.process().place.borrow().borrow().umask
}

/// Opens a path; the flags that describe only the opening are not kept.
pub fn open_path(call: &Call<'_>, directory: u64, path: &[u8], flags: u32, mode: u32) -> Result<OpenFile, Errno> {
    open_seen(call, directory, path, flags, mode, Limits::default())
}

/// As `open_path`, by a walk with limits.
fn open_seen(
    call: &Call<'_>,
    directory: u64,
    path: &[u8],
    flags: u32,
    mode: u32,
    limits: Limits,
) -> Result<OpenFile, Errno> {
    let kept = flags & !(O_CREAT | O_EXCL | O_TRUNC | O_CLOEXEC);
    if flags & O_TMPFILE == O_TMPFILE && flags & O_PATH == 0 {
        let made = nameless::make(call, directory, path, flags, mode, limits)?;
        return open_found(call, &made.node, kept, made.opening);
    }
    if flags & (O_CREAT | O_DIRECTORY | O_PATH) == O_CREAT | O_DIRECTORY {
        return Err(Errno::EINVAL);
    }
    let how = how(call, flags, mode);
    let opened = {
        let _stage = stages::enter(Stage::Lookup);
        call.with_view(directory, start(path, limits), |view| {
            call.unix.names.open(limited(view, limits), path, how, call.now())
        })?
    };
    if opened.is_to_be_cut {
        parts::shorten(call.held, call.unix.scheduler, &opened.node, 0);
        opened.node.truncate(0, &call.process().credentials.borrow(), call.now())?;
    }
    if how.truncate && !opened.created && opened.node.content().is_some() {
        forget_mappings(call, &opened.node, 0..u64::MAX);
    }
    // Outside of the machine opening and cutting off are one step.
    let cut = if opened.created || !opened.node.is_elsewhere() { 0 } else { flags & O_TRUNC };
    open_found(call, &opened.node, kept | cut, opened.opening)
}

/// The path whose start matters: with a root of its own, even an absolute one starts at the directory.
fn start(path: &[u8], limits: Limits) -> &[u8] {
    if limits.in_root { b"." } else { path }
}

/// The same view with limits: some make the directory where the walk starts the root.
fn limited(view: View<'_>, limits: Limits) -> View<'_> {
    let root = if limits.beneath || limits.in_root { view.directory } else { view.root };
    View { root, limits, ..view }
}

/// Opens a node that was found and may be opened. May sleep: a fifo waits for its other side.
/// `O_NOCTTY` counts here and is not kept.
pub fn open_node(call: &Call<'_>, node: &Arc<Node>, flags: u32) -> Result<OpenFile, Errno> {
    open_found(call, node, flags, None)
}

/// As `open_node`; a file outside of the machine may be open already.
fn open_found(
    call: &Call<'_>,
    node: &Arc<Node>,
    flags: u32,
    opening: Option<Arc<dyn File>>,
) -> Result<OpenFile, Errno> {
    if flags & O_PATH != 0 {
        return Ok(OpenFile::new(Body::Node, Some(node.clone()), flags));
    }
    if let Some(opened) = crate::proc::descriptors::reopen(call.unix, node, flags) {
        let mut file = opened?;
        synthesize(call.unix, &mut file);
        file.begin_use();
        return Ok(file);
    }
    let body = match node.kind() {
        NodeKind::CharDevice(major, minor) => devices::table::open(call, node, (major, minor), flags)?,
        NodeKind::BlockDevice(..) | NodeKind::Socket => return Err(Errno::ENXIO),
        NodeKind::Fifo => Body::Stream(fifo::open(call, node, flags)?),
        NodeKind::Symlink => return Err(Errno::ELOOP),
        NodeKind::Directory | NodeKind::Regular if node.is_elsewhere() => {
            Body::File(opening.map_or_else(|| node.open(flags), Ok)?)
        }
        NodeKind::Directory => Body::Node,
        NodeKind::Regular => match node.data() {
            Data::VirtualFile(file) if access(flags).write && file.is_fixed() => return Err(Errno::EACCES),
            Data::VirtualFile(file) if access(flags).read => {
                Body::File(anew(call, || TextFile::open(node, file.clone()))?)
            }
            Data::VirtualFile(file) => Body::File(TextFile::open_for_writing(node, file.clone())),
            _ => Body::Node,
        },
    };
    let mut file = OpenFile::new(body, Some(node.clone()), flags & !(O_NOCTTY | O_TRUNC));
    if file.has_data() && file.is_writable() {
        node.begin_write()?;
        file.count_as_writer();
    }
    synthesize(call.unix, &mut file);
    file.begin_use();
    Ok(file)
}
