//! Requests that every file knows (Linux `do_vfs_ioctl`).

use alloc::sync::Arc;

use abi::Errno;
use abi::file::{O_ASYNC, O_NONBLOCK};
use abi::tty::*;
use kernel::file::NodeKind;

use crate::call::{Call, CallResult, int};
use crate::calls::descriptors::signal_driven::set as set_signal_driven;
use crate::files::descriptors::Descriptor;
use crate::files::open_file::{Body, OpenFile};
use crate::files::terminal::TERMINAL_MAJOR;

/// `FS_IOC_SETFLAGS`, `FIDEDUPERANGE` (`linux/fs.h`).
const FS_IOC_SETFLAGS: u32 = 0x4008_6602;
const FIDEDUPERANGE: u32 = 0xC018_9436;
/// Block size of file systems, in bytes, and of the one that holds terminals (Linux `devpts`).
const BLOCK_BYTES: u32 = 4096;
const TERMINAL_BLOCK_BYTES: u32 = 1024;

/// `None` when the request is for what the file is open on.
pub fn serve(
    call: &Call<'_>,
    descriptor: u64,
    file: &Arc<OpenFile>,
    request: u32,
    argument: u64,
) -> Option<CallResult> {
    Some(match request {
        FIOCLEX => set_close_on_exec(call, descriptor, true),
        FIONCLEX => set_close_on_exec(call, descriptor, false),
        FIONBIO => set_nonblocking(call, file, argument),
        FIOASYNC => set_asynchronous(call, descriptor, file, argument),
        FIOQSIZE => query_size(call, file, argument),
        FIGETBSZ => call.write(argument, &block_bytes(file)).map(|()| 0),
        FICLONE => clone(call, file, argument),
        FICLONERANGE | FIDEDUPERANGE => clone_range(call, file, argument),
        FS_IOC_GETFLAGS if has_attributes(file) => call.write(argument, &0u32).map(|()| 0),
        FS_IOC_SETFLAGS if has_attributes(file) => set_attributes(call, argument),
        FIONREAD => return readable_bytes(call, file, argument),
        _ => return None,
    })
}

fn block_bytes(file: &OpenFile) -> u32 {
    // /dev/tty and /dev/console lie in /dev, not in /dev/pts.
    let in_devpts = file.node().is_some_and(|node| matches!(node.kind(), NodeKind::CharDevice(TERMINAL_MAJOR, _)));
    if in_devpts { TERMINAL_BLOCK_BYTES } else { BLOCK_BYTES }
}

fn set_close_on_exec(call: &Call<'_>, descriptor: u64, close_on_exec: bool) -> CallResult {
    call.files().set_close_on_exec(Descriptor::from_register(descriptor), close_on_exec)?;
    Ok(0)
}

fn set_nonblocking(call: &Call<'_>, file: &Arc<OpenFile>, argument: u64) -> CallResult {
    let on: u32 = call.read(argument)?;
    let others = file.flags() & !O_NONBLOCK;
    file.set_flags(if on != 0 { others | O_NONBLOCK } else { others });
    call.files().rebind(file);
    Ok(0)
}

/// Error: `ENOTTY` where there is no SIGIO.
fn set_asynchronous(call: &Call<'_>, descriptor: u64, file: &Arc<OpenFile>, argument: u64) -> CallResult {
    let on = call.read::<u32>(argument)? != 0;
    let changes = on != (file.flags() & O_ASYNC != 0);
    if !changes {
        return Ok(0);
    }
    if !file.as_stream().is_some_and(|stream| stream.tells_by_signal()) {
        return Err(Errno::ENOTTY);
    }
    set_signal_driven(call, file, int(descriptor), on).map(|()| 0)
}

/// What the file takes up, in bytes. Error: `ENOTTY` for what is no file.
fn query_size(call: &Call<'_>, file: &OpenFile, argument: u64) -> CallResult {
    let size = match file.node() {
        Some(node) if has_attributes(file) => node.attributes().blocks_512 * 512,
        _ => return Err(Errno::ENOTTY),
    };
    call.write(argument, &size).map(|()| 0)
}

fn has_attributes(file: &OpenFile) -> bool {
    match &file.body {
        Body::Node => true,
        Body::File(opening) => opening.has_bytes(),
        Body::Stream(_) => false,
    }
}

/// No attribute can be set; to set none is fine. Error: `ENOTSUP`.
fn set_attributes(call: &Call<'_>, argument: u64) -> CallResult {
    match call.read::<u32>(argument)? {
        0 => Ok(0),
        _ => Err(Errno::ENOTSUP),
    }
}

/// Nothing can be cloned, but programs tell the errors apart.
fn clone(call: &Call<'_>, to: &OpenFile, descriptor: u64) -> CallResult {
    let from = call.file(descriptor)?;
    if from.as_stream().is_some() != to.as_stream().is_some() {
        return Err(Errno::EXDEV);
    }
    if from.is_directory() || to.is_directory() {
        return Err(Errno::EISDIR);
    }
    if !from.has_data() || !to.has_data() {
        return Err(Errno::EINVAL);
    }
    from.check_readable()?;
    to.check_writable()?;
    if to.is_appending() { Err(Errno::EBADF) } else { Err(Errno::ENOTSUP) }
}

/// The descriptor is the record's first field.
fn clone_range(call: &Call<'_>, to: &OpenFile, argument: u64) -> CallResult {
    let descriptor: u64 = call.read(argument)?;
    clone(call, to, descriptor)
}

/// `FIONREAD` of regular files, pipes, inotify instances, sockets and channels; terminals have their own.
fn readable_bytes(call: &Call<'_>, file: &OpenFile, argument: u64) -> Option<CallResult> {
    let bytes = match file.as_stream() {
        Some(stream) => stream.readable_bytes()? as u32,
        None if file.has_data() => (file.size() as i64).wrapping_sub(file.position() as i64) as u32,
        None => return None,
    };
    Some(call.write(argument, &bytes).map(|()| 0))
}
