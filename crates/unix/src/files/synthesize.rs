//! What `open` synthesizes (S-89): the routines behind a file's `read` and `write` entries.

use alloc::boxed::Box;

use abi::file::O_NOATIME;
use kernel::call::{FileCode, Makers};
use kernel::file::{Ferry, Positioned, PositionedCallouts, Window, WindowCallouts};
use kernel::stream::Stream;
use quaject::Made;

use crate::emulator::Unix;
use crate::files::open_file::{Body, OpenFile};

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

/// A stream may have got routines since it was opened. Whether the file has one for this call now.
pub fn gain(unix: &Unix, file: &OpenFile, stream: &dyn Stream, number: u64) -> bool {
    if !file.has_routine(number)
        && let Some(makers) = unix.makers()
    {
        let made = stream.callentries(makers);
        let mut code = file.code.borrow_mut();
        code.read = made.read.filter(|_| file.is_readable());
        code.write = made.write.filter(|_| file.is_writable());
    }
    file.has_routine(number)
}

/// A file outside of the machine has the routines of its ferry; one in memory has none yet (see [`consider`]).
fn synthesize_file(unix: &Unix, file: &mut OpenFile) {
    if let Some(opening) = file.outside()
        && let Some(ferry) = Ferry::open(&**opening, unix.makers())
    {
        set_out(file, ferry);
    }
}

/// A file in memory gets routines when Rust has done this many calls on it that moved all they were asked to, and not up to the
/// end: who reads or writes a file in one piece, as most do, pays nothing.
const WHOLE_CALLS: u8 = 2;

/// Counts a call that moved all it was asked to; whether the file has had enough of them for routines.
#[inline(always)]
pub fn is_worth_routines(file: &OpenFile) -> bool {
    file.count_whole_call() >= WHOLE_CALLS
}

/// Makes the routines of a file that is worth them.
///
/// Returns whether the file has some now, and had none before.
pub fn consider(unix: &Unix, file: &OpenFile) -> bool {
    let (Some(makers), Some(content)) = (unix.makers(), file.content()) else { return false };
    if file.window().is_some() {
        return false;
    }
    let window = Window::open(content, makers);
    if let Some(made) = window.callentries() {
        let mut code = file.code.borrow_mut();
        // The routine notes the access time.
        code.read = made.read.filter(|_| file.is_readable() && file.flags() & O_NOATIME == 0);
        // Appending writes go to the end, wherever the position is.
        code.write = made.write.filter(|_| file.is_writable() && !file.is_appending());
        code.seek = made.seek;
    }
    file.set_window(window);
    true
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
        let positioned = file.positioned().and_then(|made| made.callentries_for(makers, &PositionedCallouts {}));
        let (pread, pwrite) = positioned.map_or((None, None), |code| (code.read, code.write));
        return FileCode { read: code.read, write: code.write, seek: code.seek, pread, pwrite };
    }
    let callouts = file.outside().and_then(|opening| Ferry::callouts(&**opening));
    let (Some(ferry), Some(callouts)) = (file.ferry(), callouts) else { return FileCode::default() };
    let code = ferry.callentries_for(makers, &callouts).unwrap_or_default();
    FileCode { read: code.read, write: code.write, seek: code.seek, pread: code.pread, pwrite: code.pwrite }
}

/// A `pread` or `pwrite` of a regular file gets a routine when Rust has done this many: making it costs about 15 of them, and a
/// program that reads the head of a library makes one.
const POSITIONED_CALLS: u8 = 8;

/// Counts a positioned call on a file; the file that has had enough of them gets routines for them.
///
/// Returns whether it has some.
pub fn synthesize_positioned(unix: &Unix, file: &OpenFile) -> bool {
    if file.positioned().is_some() {
        return true;
    }
    let (Some(content), Some(makers)) = (file.content(), unix.makers()) else { return false };
    if file.count_positioned_call() < POSITIONED_CALLS {
        return false;
    }
    let positioned = Positioned::open(content, makers);
    if let Some(made) = positioned.callentries() {
        let mut code = file.code.borrow_mut();
        code.pread = made.read.filter(|_| file.is_readable() && file.flags() & O_NOATIME == 0);
        code.pwrite = made.write.filter(|_| file.is_writable() && !file.is_appending());
    }
    file.set_positioned(positioned);
    true
}

/// After the Rust twin has moved bytes of a file that has routines, at this position: the next ones may be there for them.
pub fn remember(unix: &Unix, file: &OpenFile, position: u64) {
    if let Some(node) = file.node()
        && (file.window().is_some() || file.positioned().is_some())
    {
        node.show_page(unix.machine, position);
    }
}
