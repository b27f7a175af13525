//! Streams to the world outside the machine: the standard streams when they are not the terminal.

use alloc::sync::Arc;
use core::any::Any;

use abi::Errno;
use kernel::call::{FileCode, Makers};
use kernel::channel::{ConsoleCode, console};
use kernel::charge::Held;
use kernel::schedule::{Scheduler, WaitQueue};
use kernel::stream::{Io, Nameless, Ready, Stream, UserRange};
use machine::{Channel, KernelCell, Machine, Received, try_filled};

use crate::limits::PIECE_BYTES;

/// Channels have numbers that no pipe will reach.
const FIRST_NUMBER: u64 = 1 << 40;

/// Waiting queues of the channels; the device interrupt wakes them all.
#[derive(Default)]
pub struct Channels {
    input: WaitQueue,
    output: WaitQueue,
}

impl Channels {
    /// A device of the machine has news.
    pub fn wake(&self, scheduler: &Scheduler) {
        scheduler.wake(&self.input);
        scheduler.wake(&self.output);
    }

    /// Whoever looks for room in an output shall look again.
    pub fn wake_writers(&self, scheduler: &Scheduler) {
        scheduler.wake(&self.output);
    }

    pub fn output(&self) -> &WaitQueue {
        &self.output
    }
}

/// One channel as a stream, to read from or to write to.
pub struct ChannelStream {
    channel: Channel,
    machine: &'static dyn Machine,
    channels: &'static Channels,
    /// The synthesized `write`, made when the channel is first opened.
    code: KernelCell<Option<ConsoleCode>>,
}

impl ChannelStream {
    pub fn new(channel: Channel, machine: &'static dyn Machine, channels: &'static Channels) -> Arc<ChannelStream> {
        Arc::new(ChannelStream { channel, machine, channels, code: KernelCell::new(None) })
    }

    /// Which stream it is, for people.
    pub fn name(&self) -> &'static str {
        match self.channel {
            Channel::StandardInput => "standard input",
            Channel::StandardOutput => "standard output",
            Channel::StandardError => "standard error",
            Channel::Terminal => "terminal",
            Channel::Control => "control",
        }
    }

    /// A number that no pipe and no other channel has.
    pub fn number(&self) -> u64 {
        FIRST_NUMBER + self.channel as u64
    }

    /// Bytes that a read would give now.
    pub fn receivable(&self) -> usize {
        self.machine.receivable(self.channel)
    }

    fn is_input(&self) -> bool {
        self.channel == Channel::StandardInput
    }

    fn receive(&self, io: &Io<'_>, into: &mut [u8]) -> Result<usize, Errno> {
        if !self.is_input() {
            return Err(Errno::EBADF);
        }
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            match self.machine.receive(self.channel, into) {
                Received::Bytes(bytes) => return Ok(bytes),
                Received::End => return Ok(0),
                Received::Nothing => io.wait(&self.channels.input)?,
            }
        }
    }
}

impl Stream for ChannelStream {
    fn readable_bytes(&self) -> Option<usize> {
        Some(self.receivable())
    }

    fn read(&self, io: &Io<'_>, to: UserRange) -> Result<usize, Errno> {
        let mut piece = try_filled(0, to.bytes.min(PIECE_BYTES))?;
        let bytes = self.receive(io, &mut piece)?;
        io.copy_out(to.address, &piece[..bytes])?;
        Ok(bytes)
    }

    fn write(&self, io: &Io<'_>, from: UserRange) -> Result<usize, Errno> {
        let mut piece = try_filled(0, from.bytes.min(PIECE_BYTES))?;
        let mut done = 0;
        while done < from.bytes {
            let rest = from.after(done);
            let part = &mut piece[..rest.bytes.min(PIECE_BYTES)];
            let written = io.copy_in(rest.address, part);
            match written.and_then(|()| self.write_kernel(io, part)) {
                Ok(bytes) => {
                    done += bytes;
                    if bytes < part.len() {
                        break;
                    }
                }
                Err(error) => return if done > 0 { Ok(done) } else { Err(error) },
            }
        }
        Ok(done)
    }

    fn read_kernel(&self, io: &Io<'_>, into: &mut [u8]) -> Result<usize, Errno> {
        self.receive(io, into)
    }

    fn write_kernel(&self, io: &Io<'_>, from: &[u8]) -> Result<usize, Errno> {
        if self.is_input() {
            return Err(Errno::EBADF);
        }
        let mut done = 0;
        while done < from.len() {
            let sent = self.machine.send(self.channel, &from[done..]);
            done += sent;
            if sent == 0
                && let Err(error) = io.wait(&self.channels.output)
            {
                return if done > 0 { Ok(done) } else { Err(error) };
            }
        }
        Ok(done)
    }

    fn held(&self) -> Held {
        Held::NOTHING
    }

    fn ready(&self) -> Ready {
        if self.is_input() {
            let mut nothing = [0; 0];
            let ended = self.machine.receivable(self.channel) == 0
                && self.machine.receive(self.channel, &mut nothing) == Received::End;
            let ready = Ready::NONE.with_if(self.machine.receivable(self.channel) > 0, Ready::READABLE);
            ready.with_if(ended, Ready::HANG_UP)
        } else {
            Ready::NONE.with_if(self.machine.sendable(self.channel) > 0, Ready::WRITABLE)
        }
    }

    fn tells_by_signal(&self) -> bool {
        true
    }

    fn each_queue<'a>(&'a self, visit: &mut dyn FnMut(&'a WaitQueue)) {
        visit(if self.is_input() { &self.channels.input } else { &self.channels.output });
    }

    fn callentries(&self, makers: Makers) -> FileCode {
        if self.is_input() {
            return FileCode::default();
        }
        if makers.watch().is_some() {
            return FileCode { write: console(self.channel, makers).write, ..FileCode::default() };
        }
        let write = self.code.borrow_mut().get_or_insert_with(|| console(self.channel, makers)).write.clone();
        FileCode { write, ..FileCode::default() }
    }

    /// The other end is a pipe as far as a program can tell.
    fn nameless(&self) -> Nameless {
        Nameless::Pipe(self.number())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
