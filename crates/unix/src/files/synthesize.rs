//! What `open` synthesizes (S-89): the routines behind a file's `read` and `write` entries.

use alloc::boxed::Box;

use abi::file::O_NOATIME;
use kernel::call::{FileCode, Makers};
use kernel::file::{Ferry, Window, WindowCallouts};
use quaject::Made;

use super::{Body, OpenFile};
use crate::emulator::Unix;

/// Gives a fresh open file the callentries of what it is open on, as far as the file may use them. What has none is done in
/// Rust.
pub fn synthesize(unix: &Unix, file: &mut OpenFile) {
    let Body::Stream(stream) = &file.body else { return synthesize_file(unix, file) };
    let Some(makers) = unix.makers() else { return };
    let code = stream.callentries(makers);
    *file.code.borrow_mut() = FileCode {
        read: code.read.filter(|_| file.is_readable()),
        write: code.write.filter(|_| file.is_writable()),
        ..FileCode::default()
    };
}

/// A regular file gets a window and the routines that work with it.
fn synthesize_file(unix: &Unix, file: &mut OpenFile) {
    if let Some(opening) = file.outside() {
        let ferry = Ferry::open(opening, unix.makers());
        return ferry.map_or((), |ferry| set_out(file, ferry));
    }
    let Some(content) = file.content() else { return };
    let window = Window::open(content, unix.makers());
    if let Some(code) = window.callentries() {
        *file.code.borrow_mut() = FileCode {
            // The routine notes the access time.
            read: code.read.filter(|_| file.is_readable() && file.flags() & O_NOATIME == 0),
            // Appending writes go to the end, wherever the position is.
            write: code.write.filter(|_| file.is_writable() && !file.is_appending()),
            seek: code.seek,
            ..FileCode::default()
        };
    }
    file.set_window(window);
}

/// A regular file outside of the machine gets the routines of its ferry.
fn set_out(file: &mut OpenFile, ferry: Box<Made<Ferry>>) {
    if let Some(code) = ferry.callentries() {
        // The host appends, wherever it is told to write: then the position is not known.
        let (reads, writes) = (file.is_readable(), file.is_writable() && !file.is_appending());
        *file.code.borrow_mut() = FileCode {
            read: code.read.filter(|_| reads),
            write: code.write.filter(|_| writes),
            seek: code.seek,
            pread: code.pread.filter(|_| reads),
            pwrite: code.pwrite.filter(|_| writes),
        };
    }
    file.set_ferry(ferry);
}

/// The routines of an open file made anew for who watches them (`Makers::watching`); the file keeps its own.
pub fn watched(file: &OpenFile, makers: Makers) -> FileCode {
    if let Body::Stream(stream) = &file.body {
        return stream.callentries(makers);
    }
    if let Some(window) = file.window() {
        let code = window.callentries_for(makers, &WindowCallouts {}).unwrap_or_default();
        return FileCode { read: code.read, write: code.write, seek: code.seek, ..FileCode::default() };
    }
    let callouts = file.outside().and_then(|opening| Ferry::callouts(opening));
    let (Some(ferry), Some(callouts)) = (file.ferry(), callouts) else { return FileCode::default() };
    let code = ferry.callentries_for(makers, &callouts).unwrap_or_default();
    FileCode { read: code.read, write: code.write, seek: code.seek, pread: code.pread, pwrite: code.pwrite }
}

/// After the Rust twin has moved bytes at `position`: the next ones may be there for the routines.
pub fn remember(unix: &Unix, file: &OpenFile, position: u64) {
    // Writing to a file with set-user or set-group rights takes them away: that is done in Rust, every time.
    if let (Some(window), Some(content)) = (file.window(), file.content())
        && window.has_code()
        && !(file.is_writable() && file.node().is_some_and(|node| node.loses_privilege_when_written()))
    {
        window.remember(unix.machine, content, position);
    }
}
