//! The three standard streams: opened before `main`, flushed at exit.

use core::fmt::{Arguments, Write};
use core::ptr::NonNull;

use ground::say;

use crate::region::Region;
use crate::stream::{self, Buffering, Direction, OpenError, Words};
use crate::transfer;

/// Runs before `main`. The macros of the header go straight to the standard streams' addresses, so these must be there.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = open_standard;

extern "C" fn open_standard() {
    for number in 0..3 {
        let fd = number as i32;
        // SAFETY: asks about a descriptor only.
        let is_terminal = unsafe { libc::isatty(fd) } == 1;
        let (direction, buffering) = match number {
            0 => (Direction::In, Buffering::Full),
            1 if is_terminal => (Direction::Out, Buffering::Line),
            1 => (Direction::Out, Buffering::Full),
            _ => (Direction::Out, Buffering::None),
        };
        let opened = Region::standard(number)
            .map_err(OpenError::Memory)
            .and_then(|region| stream::open_in(region, fd, direction, buffering));
        if let Err(error) = opened {
            let (place, errno) = (Region::of_standard(number).code(), error.errno());
            tell(format_args!(
                "error: synthio: no memory for standard stream {number} at {place:#x} (errno {errno})\n"
            ));
            say("help: the program or another copy of the library uses that address; link the library once\n");
            // SAFETY: ends the process.
            unsafe { libc::abort() };
        }
    }
    // SAFETY: the function stays as long as the program (the library cannot be unloaded: see `flush_at_exit`).
    unsafe { libc::atexit(flush_at_exit) };
}

struct StandardError;

impl Write for StandardError {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        say(text);
        Ok(())
    }
}

fn tell(text: Arguments) {
    let _ = StandardError.write_fmt(text);
}

extern "C" fn flush_at_exit() {
    stream::flush_all();
}

/// Flushes standard output if it is sent by lines: what a program asked its user must be seen before it waits for the answer.
pub fn flush_lines() {
    let mut at: NonNull<Words> = Region::of_standard(1).stream();
    // SAFETY: standard streams are mapped before `main` and never unmapped; one thread at a time uses streams.
    let words = unsafe { at.as_mut() };
    if words.buffering == Buffering::Line && words.direction == Direction::Out && words.fd >= 0 {
        transfer::flush(words);
    }
}
