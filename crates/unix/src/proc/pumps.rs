//! /proc/synthesis/pumps: threads of the kernel that carry bytes from one stream to another (S-30).
//!
//! `echo '3 4' > /proc/synthesis/pumps` starts one from the writer's descriptor 3 to its descriptor 4. It holds the open
//! files, so the descriptors may be closed, and it ends with its input. `stop N` ends pump N. Reading gives a line for
//! each: number, standing, bytes carried, bytes a second.

use alloc::sync::Arc;
use alloc::vec::Vec;

use core::any::Any;
use core::fmt::Write;

use abi::Errno;
use kernel::link::{Ground, Port, connect};
use kernel::monitor::Callers;
use kernel::pipe::PipeEnd;
use kernel::pump::{self, Standing};

use super::root::caller;
use super::text::Lines;
use super::tree::Whole;
use machine::Held;

use crate::emulator::Unix;
use crate::files::channel::ChannelStream;
use crate::files::descriptors::Descriptor;
use crate::files::open_file::{Body, OpenFile};
use crate::files::sound::Samples;

pub fn show(unix: &'static Unix, _: &Whole) -> Result<Vec<u8>, Errno> {
    let now = unix.machine.now();
    let mut text = Lines::default();
    for pump in pump::all()? {
        let standing = match pump.standing() {
            Standing::Running => "running",
            Standing::Finished => "finished",
            Standing::Stopped => "stopped",
            Standing::Failed(_) => "failed",
        };
        let _ = writeln!(text, "{} {standing} {} {}", pump.id().0, pump.bytes().total(), pump.bytes().rate(now));
    }
    text.whole()
}

/// Errors: `EINVAL` for what is no command; `EBADF` for descriptors that are not open, or not that way; `EINVAL` for
/// what is no pipe or channel; `ESRCH` for a pump that does not run, `EPERM` for another user's; those of [`pump::start`].
pub fn command(_: Held<'_>, unix: &'static Unix, _: &Whole, text: &[u8]) -> Result<(), Errno> {
    let text = core::str::from_utf8(text).map_err(|_| Errno::EINVAL)?;
    let mut words = text.split_ascii_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some("stop"), Some(id), None) => stop(unix, number(id)?),
        (Some(input), Some(output), None) => start(unix, number(input)?, number(output)?),
        _ => Err(Errno::EINVAL),
    }
}

fn number(word: &str) -> Result<u64, Errno> {
    word.parse().map_err(|_| Errno::EINVAL)
}

/// Errors: `ESRCH`; `EPERM` for another user's.
fn stop(unix: &'static Unix, id: u64) -> Result<(), Errno> {
    let user = user(unix)?;
    let runs = |pump: &&Arc<pump::Pump>| u64::from(pump.id().0) == id && pump.standing() == Standing::Running;
    let pumps = pump::all()?;
    let pump = pumps.iter().find(runs).ok_or(Errno::ESRCH)?;
    if user != 0 && user != pump.owner() {
        return Err(Errno::EPERM);
    }
    pump.stop();
    Ok(())
}

/// In whose name the caller acts.
fn user(unix: &Unix) -> Result<u32, Errno> {
    Ok(caller(unix)?.process.user_ids.get().effective)
}

fn start(unix: &'static Unix, input: u64, output: u64) -> Result<(), Errno> {
    let task = caller(unix)?;
    let open = |number| task.file(Descriptor::from_register(number)).ok_or(Errno::EBADF);
    let (input, output) = (open(input)?, open(output)?);
    if !input.is_readable() || !output.is_writable() {
        return Err(Errno::EBADF);
    }
    // Others ask who reads or writes them, and a pump is nobody.
    let stream = |file: &OpenFile| match &file.body {
        Body::Stream(stream) if serves(stream.as_any()) => Ok(stream.clone()),
        _ => Err(Errno::EINVAL),
    };
    // Nobody calls: both are passive, so the interfacer builds a pump.
    let ends = (Port::<u8>::Stream(stream(&input)?, input), Port::Stream(stream(&output)?, output));
    let ground = Ground {
        callers: Callers::UnderLock,
        same_thread: false,
        capacity: 0,
        scheduler: Some(unix.scheduler),
        owner: user(unix)?,
    };
    connect(ends.0, ends.1, &ground).map(|_| ())
}

fn serves(stream: &dyn Any) -> bool {
    stream.is::<PipeEnd>() || stream.is::<ChannelStream>() || stream.is::<Samples>()
}
