//! What goes through a stream, and what its program waits for.

use alloc::vec::Vec;
use core::any::Any;

use ::net::{ConnectionId, Phase};
use abi::Errno;
use machine::{Nanos, NoMemory, TryGrow};

use super::super::events::Events;
use super::{Joined, State, Tcp};
use crate::call::{FileCode, Makers};
use crate::charge::{Held, Kept};
use crate::schedule::WaitQueue;
use crate::stream::{Io, Progress, Ready, SocketRecord, Stream, UserRange};

impl Tcp {
    /// Bytes that can be read.
    pub fn unread(&self) -> usize {
        let kept = self.kept.borrow().len();
        kept + match &*self.state.borrow() {
            State::Joined(joined) => joined.inbound.fill(),
            State::Far(id) => self.far(|stack, _| stack.readable(*id)).unwrap_or(0),
            _ => 0,
        }
    }

    /// Bytes on their way (`SIOCOUTQ`).
    pub fn unsent(&self) -> usize {
        self.corked_bytes()
            + match &*self.state.borrow() {
                State::Joined(joined) => joined.outbound.fill(),
                State::Far(id) => self.far(|stack, _| stack.unsent(*id)).unwrap_or(0),
                _ => 0,
            }
    }

    /// Nothing will come behind what can be read.
    fn has_end(&self) -> bool {
        match &*self.state.borrow() {
            State::Joined(joined) => joined.inbound.is_ended(),
            State::Far(id) => self.far(|stack, _| stack.has_end(*id)).unwrap_or(true),
            State::Over => true,
            _ => false,
        }
    }

    /// Waits until so much can be read; false: nothing will come. Errors: `ENOTCONN`, the connection's own, `EAGAIN`, `EINTR`.
    fn await_bytes(&self, io: &Io<'_>, room: usize, deadline: Option<Nanos>) -> Result<bool, Errno> {
        let least = (self.options.get().low_water as usize).min(room);
        loop {
            let unread = self.unread();
            if unread >= least || unread > 0 && (self.reads_ended.get() || self.has_end()) {
                return Ok(true);
            }
            if unread == 0
                && let Some(error) = self.take_error()
            {
                return Err(error);
            }
            if self.reads_ended.get() || self.has_end() {
                return Ok(false);
            }
            if matches!(*self.state.borrow(), State::Idle | State::Listening { .. }) {
                return Err(Errno::ENOTCONN);
            }
            match io.wait_until(&self.events.readable, deadline) {
                // What has come is better than nothing.
                Err(_) if unread > 0 => return Ok(true),
                other => other?,
            }
        }
    }

    /// Takes out what has come, up to `room` bytes, or looks at it.
    pub fn receive(&self, io: &Io<'_>, room: usize, peek: bool) -> Result<Vec<u8>, Errno> {
        let deadline = io.deadline(self.options.get().receive_timeout);
        let mut bytes = Vec::new();
        if room == 0 || !self.await_bytes(io, room, deadline)? {
            return Ok(bytes);
        }
        self.take_kept(&mut bytes, room, peek)?;
        let rest = room - bytes.len();
        if rest == 0 {
            return Ok(bytes);
        }
        if let Some(joined) = self.joined() {
            joined.inbound.take(&mut bytes, rest, peek)?;
        } else if let Some(id) = self.far_id() {
            let start = bytes.len();
            let count = rest.min(self.unread());
            bytes.try_resize(start + count, 0)?;
            let taken = self.far(|stack, now| take_far(stack, now, id, &mut bytes[start..], peek)).unwrap_or(0);
            bytes.truncate(start + taken);
        }
        Ok(bytes)
    }

    fn take_kept(&self, bytes: &mut Vec<u8>, room: usize, peek: bool) -> Result<(), NoMemory> {
        let mut kept = self.kept.borrow_mut();
        let part = room.min(kept.len());
        if part > 0 {
            bytes.try_extend_from_slice(&kept[..part])?;
            if !peek {
                kept.drain(..part);
                drop(kept);
                self.leave_to_rust();
            }
        }
        Ok(())
    }

    /// The program did not take what was received: it can be received again.
    pub fn keep(&self, bytes: Vec<u8>) {
        let mut kept = self.kept.borrow_mut();
        let mut all = bytes;
        // Without memory what was kept before is lost, as what a program that gives wrong addresses has deserved.
        let _ = all.try_extend_from_slice(&kept);
        *kept = all;
        drop(kept);
        self.leave_to_rust();
    }

    /// Errors: `EPIPE`, `ENOTCONN`, the connection's own.
    pub fn check_writable(&self) -> Result<(), Errno> {
        if let Some(error) = self.take_error() {
            return Err(error);
        }
        let is_connected = match &*self.state.borrow() {
            State::Joined(_) | State::Pending => true,
            State::Far(id) => self.far(|stack, _| stack.phase(*id)) != Some(Phase::Closed),
            State::Over | State::Idle | State::Listening { .. } => false,
        };
        if self.writes_ended.get() || !is_connected { Err(Errno::EPIPE) } else { Ok(()) }
    }

    /// Sends one part of what `source` gives; 0: there is no room.
    pub(super) fn send_part(&self, source: &Source<'_>) -> Result<usize, Errno> {
        if let Some(joined) = self.joined() {
            if joined.outbound.is_deaf() {
                return self.send_to_nobody(&joined, source.len());
            }
            let makers = self.network.makers;
            let sent = match source {
                Source::Program(io, range) => joined.outbound.write(io, *range, makers),
                Source::Kernel(bytes) => joined.outbound.put(bytes, makers),
            }?;
            self.network.note_looped(sent);
            return Ok(sent);
        }
        let Some(id) = self.far_id() else { return Ok(0) };
        let mut done = 0;
        let sent = self.far(|stack, now| {
            stack.send(id, now, |room| {
                let part = source.copy(done, room)?;
                done += part;
                Ok::<usize, Errno>(part)
            })
        });
        sent.unwrap_or(Err(Errno::EPIPE))
    }

    /// What is sent to who has gone is lost, and the next call hears of it.
    fn send_to_nobody(&self, joined: &Joined, bytes: usize) -> Result<usize, Errno> {
        joined.inbound.end();
        self.give_up(Errno::EPIPE);
        Ok(bytes)
    }

    /// Sends all, unless `io` says not to wait; what was sent before an error counts.
    fn send_all(&self, io: &Io<'_>, source: Source<'_>) -> Result<usize, Errno> {
        let deadline = io.deadline(self.options.get().send_timeout);
        let mut done = 0;
        loop {
            let result = self.send_next(io, &source.after(done), deadline);
            match result {
                Ok(part) => done += part,
                Err(error) => return if done > 0 { Ok(done) } else { Err(error) },
            }
            if done >= source.len() {
                return Ok(done);
            }
        }
    }

    fn send_next(&self, io: &Io<'_>, source: &Source<'_>, deadline: Option<Nanos>) -> Result<usize, Errno> {
        loop {
            self.check_writable()?;
            let corked = self.cork(source).transpose();
            match corked.unwrap_or_else(|| self.send_part(source)) {
                Ok(0) if source.len() > 0 => io.wait_until(&self.events.writable, deadline)?,
                Err(Errno::EFAULT) if matches!(source, Source::Program(..)) => io.await_page()?,
                other => return other,
            }
        }
    }
}

/// Copies what has come from far away.
fn take_far(stack: &mut ::net::Stack, now: Nanos, id: ConnectionId, into: &mut [u8], peek: bool) -> usize {
    if peek {
        return stack.peek(id, into);
    }
    let mut done = 0;
    let taken = stack.receive(id, now, |bytes| {
        let part = bytes.len().min(into.len() - done);
        into[done..done + part].copy_from_slice(&bytes[..part]);
        done += part;
        Ok::<usize, Errno>(part)
    });
    taken.unwrap_or(0)
}

/// Where bytes come from that are sent.
pub(super) enum Source<'a> {
    Program(&'a Io<'a>, UserRange),
    Kernel(&'a [u8]),
}

impl Source<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Source::Program(_, range) => range.bytes,
            Source::Kernel(bytes) => bytes.len(),
        }
    }

    fn after(&self, done: usize) -> Source<'_> {
        match self {
            Source::Program(io, range) => Source::Program(io, range.after(done)),
            Source::Kernel(bytes) => Source::Kernel(&bytes[done..]),
        }
    }

    /// Error: `EFAULT`.
    pub(super) fn copy(&self, done: usize, into: &mut [u8]) -> Result<usize, Errno> {
        match self {
            Source::Program(io, range) => {
                let rest = range.after(done).first(into.len());
                let copied = io.machine().copy_in(rest.address, &mut into[..rest.bytes]);
                copied.map(|()| rest.bytes).map_err(|_| Errno::EFAULT)
            }
            Source::Kernel(bytes) => {
                let part = into.len().min(bytes.len() - done);
                into[..part].copy_from_slice(&bytes[done..done + part]);
                Ok(part)
            }
        }
    }
}

impl Tcp {
    fn read_far(&self, io: &Io<'_>, id: ConnectionId, to: UserRange) -> Result<usize, Errno> {
        let mut done = 0;
        let read = self.far(|stack, now| {
            stack.receive(id, now, |bytes| {
                let rest = to.after(done).first(bytes.len());
                io.machine().copy_out(rest.address, &bytes[..rest.bytes]).map_err(|_| Errno::EFAULT)?;
                done += rest.bytes;
                Ok(rest.bytes)
            })
        });
        read.unwrap_or(Ok(0))
    }
}

impl Stream for Tcp {
    fn readable_bytes(&self) -> Option<usize> {
        Some(self.unread())
    }

    fn read(&self, io: &Io<'_>, to: UserRange) -> Result<usize, Errno> {
        if to.bytes == 0 {
            return Ok(0);
        }
        let deadline = io.deadline(self.options.get().receive_timeout);
        loop {
            if !self.await_bytes(io, to.bytes, deadline)? {
                return Ok(0);
            }
            let has_kept = !self.kept.borrow().is_empty();
            let given = if has_kept {
                let bytes = self.receive(io, to.bytes, false)?;
                if let Err(error) = io.copy_out(to.address, &bytes) {
                    self.keep(bytes);
                    return Err(error);
                }
                Ok(bytes.len())
            } else if let Some(joined) = self.joined() {
                joined.inbound.read(io, to)
            } else if let Some(id) = self.far_id() {
                self.read_far(io, id, to)
            } else {
                return Ok(0);
            };
            match given {
                Err(Errno::EFAULT) => io.await_page()?,
                other => return other,
            }
        }
    }

    fn write(&self, io: &Io<'_>, from: UserRange) -> Result<usize, Errno> {
        if from.bytes == 0 {
            return self.check_writable().map(|()| 0);
        }
        self.send_all(io, Source::Program(io, from))
    }

    fn read_kernel(&self, io: &Io<'_>, into: &mut [u8]) -> Result<usize, Errno> {
        let bytes = self.receive(io, into.len(), false)?;
        into[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn write_kernel(&self, io: &Io<'_>, from: &[u8]) -> Result<usize, Errno> {
        self.send_all(io, Source::Kernel(from))
    }

    fn ready(&self) -> Ready {
        if let State::Listening { ready, far, .. } = &*self.state.borrow() {
            let has_far = || self.far_listener(*far, |stack, id| stack.first_ready(id)).flatten().is_some();
            return Ready::NONE.with_if(!ready.is_empty() || has_far(), Ready::READABLE);
        }
        let has_error = self.has_error();
        if self.is_opening() {
            return Ready::NONE.with_if(has_error, Ready::ERROR);
        }
        let is_idle = matches!(*self.state.borrow(), State::Idle);
        let is_over = match &*self.state.borrow() {
            State::Over => true,
            State::Far(id) => self.far(|stack, _| stack.phase(*id)) == Some(Phase::Closed),
            _ => false,
        };
        let has_end = self.reads_ended.get() || !is_idle && self.has_end();
        let is_done = self.writes_ended.get();
        Ready::NONE
            .with_if(self.unread() >= self.options.get().low_water as usize || has_end, Ready::READABLE)
            .with_if(has_end, Ready::READ_HANG_UP)
            .with_if(is_done || self.has_room(), Ready::WRITABLE)
            .with_if(has_error, Ready::ERROR)
            .with_if(is_idle || is_over || has_end && is_done, Ready::HANG_UP)
    }

    fn tells_by_signal(&self) -> bool {
        true
    }

    fn each_queue<'a>(&'a self, visit: &mut dyn FnMut(&'a WaitQueue)) {
        visit(&self.events.readable);
        visit(&self.events.writable);
    }

    fn does_not_wait(&self) {
        self.is_nonblocking.set(true);
        if let Some(joined) = self.joined() {
            joined.inbound.does_not_wait();
        }
    }

    fn gains_code(&self) -> bool {
        self.joined().is_some_and(|joined| joined.inbound.has_ring() || joined.outbound.has_ring())
    }

    fn callentries(&self, makers: Makers) -> FileCode {
        let Some(joined) = self.joined() else { return FileCode::default() };
        let inbound = joined.inbound.code(makers).unwrap_or_default();
        let outbound = joined.outbound.code(makers).unwrap_or_default();
        FileCode { read: inbound.read, write: outbound.write, ..FileCode::default() }
    }

    fn progress(&self) -> Option<Progress> {
        let Progress { arrived, departed } = self.events.progress();
        let Some(joined) = self.joined() else { return Some(Progress { arrived, departed }) };
        let ([written, _], [_, read]) = (joined.inbound.counts(), joined.outbound.counts());
        Some(Progress { arrived: arrived.wrapping_add(written), departed: departed.wrapping_add(read) })
    }

    fn held(&self) -> Held {
        let state = self.state.borrow();
        let bytes = match &*state {
            State::Joined(joined) => joined.inbound.held_bytes(),
            State::Far(_) => 131_072,
            State::Listening { ready, .. } => ready.len() * (size_of::<Tcp>() + 512),
            _ => 0,
        };
        Held::new(Kept::Sockets, size_of::<Tcp>() + size_of::<Events>() + bytes)
    }

    fn socket(&self) -> Option<&SocketRecord> {
        Some(&self.record)
    }

    fn lingers(&self) -> bool {
        self.options.get().linger.is_some_and(|seconds| seconds > 0) && self.far_id().is_some()
    }

    /// Until all that was written has got there, and its end (socket(7), `SO_LINGER`). Nobody waits for somebody on this machine, who
    /// has it already.
    fn linger(&self, io: &Io<'_>) {
        let Some(id) = self.far_id().filter(|_| self.unread() == 0) else { return };
        let seconds = u64::from(self.options.get().linger.unwrap_or(0));
        let deadline = self.network.now().saturating_add(Nanos(seconds.saturating_mul(Nanos::PER_SECOND)));
        // One that is not connected has nothing to wait for.
        let _ = self.shut_down(false, true);
        while self.far(|stack, _| stack.is_delivered(id)) == Some(false) {
            if io.wait_until(&self.events.writable, Some(deadline)).is_err() {
                return;
            }
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
