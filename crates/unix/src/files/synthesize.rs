//! What `open` synthesizes (S-89): the routines behind a file's `read` and `write` entries.

use abi::file::O_NOATIME;
use codestore::Code;
use kernel::FileCall;
use kernel::call::{Makers, null_read, null_write, zero_read};
use kernel::file::WindowCode;
use kernel::pipe::PipeEnd;

use super::{Body, ChannelStream, FileCode, MemoryDevice, OpenFile, TtyStream};
use crate::emulator::Unix;

/// Routines without data of their own: one copy serves every open file of the device (R4).
#[derive(Clone)]
pub struct SimpleCode {
    null_read: Code<FileCall>,
    null_write: Code<FileCall>,
    zero_read: Code<FileCall>,
}

impl SimpleCode {
    pub fn make(makers: Makers) -> Option<SimpleCode> {
        Some(SimpleCode {
            null_read: null_read(makers).ok()?,
            null_write: null_write(makers).ok()?,
            zero_read: zero_read(makers).ok()?,
        })
    }
}

/// Gives a fresh open file its routines. What has none is done in Rust.
pub fn synthesize(unix: &Unix, file: &mut OpenFile) {
    let Body::Stream(stream) = &file.body else { return synthesize_file(unix, file) };
    let stream = stream.as_any();
    let code = if let Some(device) = stream.downcast_ref::<MemoryDevice>() {
        device_code(unix, *device)
    } else if let Some(end) = stream.downcast_ref::<PipeEnd>() {
        let code = end.pipe().code();
        let (read, write) = code.map_or((None, None), |code| (Some(code.read), Some(code.write)));
        FileCode { read, write, seek: None }
    } else if let Some(channel) = stream.downcast_ref::<ChannelStream>() {
        FileCode { read: None, write: channel.write_code(unix.makers()), seek: None }
    } else if let Some(tty) = stream.downcast_ref::<TtyStream>() {
        let code = tty.terminal().code();
        FileCode { read: code.read, write: code.write, seek: None }
    } else {
        return;
    };
    *file.code.borrow_mut() = FileCode {
        read: code.read.filter(|_| file.is_readable()),
        write: code.write.filter(|_| file.is_writable()),
        seek: None,
    };
}

/// A regular file gets a window and the routines that work with it.
fn synthesize_file(unix: &Unix, file: &mut OpenFile) {
    let Some(content) = file.content() else { return };
    let window = WindowCode::take(content, unix.makers());
    if let Some(code) = window.code() {
        *file.code.borrow_mut() = FileCode {
            // The routine notes the access time.
            read: Some(code.read.clone()).filter(|_| file.is_readable() && file.flags() & O_NOATIME == 0),
            // Appending writes go to the end, wherever the position is.
            write: Some(code.write.clone()).filter(|_| file.is_writable() && !file.is_appending()),
            seek: Some(code.seek.clone()),
        };
    }
    file.set_window(window);
}

/// After the Rust twin has moved bytes at `position`: the next ones may be there for the routines.
pub fn remember(unix: &Unix, file: &OpenFile, position: u64) {
    // Writing to a file with set-user or set-group rights takes them away: that is done in Rust, every time.
    if let (Some(body), Some(content)) = (file.window(), file.content())
        && body.code().is_some()
        && !(file.is_writable() && file.node().is_some_and(|node| node.loses_privilege_when_written()))
    {
        body.window.remember(unix.machine, content, position);
    }
}

fn device_code(unix: &Unix, device: MemoryDevice) -> FileCode {
    let Some(simple) = unix.simple_code() else { return FileCode::default() };
    match device {
        MemoryDevice::Null => FileCode { read: Some(simple.null_read), write: Some(simple.null_write), seek: None },
        MemoryDevice::Zero => FileCode { read: Some(simple.zero_read), write: Some(simple.null_write), seek: None },
        MemoryDevice::Full | MemoryDevice::Random => FileCode::default(),
    }
}
