//! A local socket as a stream of bytes, and its end.

use core::any::Any;

use abi::Errno;
use abi::socket::SOCK_DGRAM;
use kernel::call::{FileCode, Makers};
use kernel::charge::{Held, Kept};
use kernel::schedule::WaitQueue;
use kernel::stream::{Io, Progress, Ready, SocketRecord, Stream, UserRange};
use machine::try_filled;

use super::super::parcel::{Parcel, Received};
use super::UnixSocket;
use crate::limits::PIECE_BYTES;

impl Stream for UnixSocket {
    fn readable_bytes(&self) -> Option<usize> {
        Some(self.readable_now())
    }

    fn read(&self, io: &Io<'_>, to: UserRange) -> Result<usize, Errno> {
        if to.bytes == 0 {
            return Ok(0);
        }
        if self.has_no_messages()
            && let Some(read) = self.flow.read(io, to)
        {
            self.tell_of_room();
            return Ok(read);
        }
        let received = self.receive(io, to.bytes, false)?;
        if let Err(error) = io.copy_out(to.address, &received.bytes) {
            self.keep(received);
            return Err(error);
        }
        Ok(received.bytes.len())
    }

    fn write(&self, io: &Io<'_>, from: UserRange) -> Result<usize, Errno> {
        let whole = if self.is_stream() { PIECE_BYTES } else { self.message_bytes_max() + 1 };
        let mut done = 0;
        self.check_writable()?;
        loop {
            let rest = from.after(done);
            if let Some(part) = self.flow.write(io, rest) {
                done += part;
                if done >= from.bytes {
                    return Ok(done);
                }
                continue;
            }
            let mut piece = try_filled(0, rest.bytes.min(whole))?;
            let copied = io.copy_in(rest.address, &mut piece);
            match copied.and_then(|()| self.send(io, &piece, None, Parcel::default())) {
                Ok(part) => done += part,
                Err(error) => return if done > 0 { Ok(done) } else { Err(error) },
            }
            if done >= from.bytes {
                return Ok(done);
            }
        }
    }

    fn read_kernel(&self, io: &Io<'_>, into: &mut [u8]) -> Result<usize, Errno> {
        let Received { bytes, .. } = self.receive(io, into.len(), false)?;
        into[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn write_kernel(&self, io: &Io<'_>, from: &[u8]) -> Result<usize, Errno> {
        self.send(io, from, None, Parcel::default())
    }

    fn ready(&self) -> Ready {
        let standing = self.standing.get();
        if standing.backlog.is_some() {
            return Ready::NONE.with_if(!self.waiting.borrow().is_empty(), Ready::READABLE);
        }
        let unconnected = !standing.connected && self.kind != SOCK_DGRAM;
        let peer = self.peer();
        let full = peer.as_ref().is_some_and(|peer| !peer.has_much_room(self) || peer.has_too_many());
        let has_data = !self.has_no_messages() || self.flow.fill() > 0;
        Ready::NONE
            .with_if(has_data || standing.reads_ended, Ready::READABLE)
            .with_if(standing.reads_ended, Ready::READ_HANG_UP)
            .with_if(!full, Ready::WRITABLE)
            .with_if(self.error.get().is_some(), Ready::ERROR)
            .with_if(unconnected || standing.reads_ended && standing.writes_ended, Ready::HANG_UP)
    }

    fn tells_by_signal(&self) -> bool {
        true
    }

    fn each_queue<'a>(&'a self, visit: &mut dyn FnMut(&'a WaitQueue)) {
        visit(&self.readable);
        visit(&self.writable);
    }

    fn does_not_wait(&self) {
        self.flow.does_not_wait();
    }

    fn gains_code(&self) -> bool {
        self.flow.has_ring()
    }

    fn callentries(&self, makers: Makers) -> FileCode {
        self.flow.callentries(makers)
    }

    fn progress(&self) -> Option<Progress> {
        Some(self.flow.add_to(self.progress.get()))
    }

    fn descriptor_lost(&self) {
        self.unix.flight.descriptor_lost(self.unix, self);
    }

    /// What came for it. The files among that are not counted here: see `flight.rs`.
    fn held(&self) -> Held {
        let waiting = self.waiting.borrow();
        let connections: usize = waiting.iter().map(|connection| connection.held_bytes()).sum();
        Held::new(Kept::Sockets, self.held_bytes() + connections)
    }

    fn socket(&self) -> Option<&SocketRecord> {
        Some(&self.record)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        let is_unread = !self.has_no_messages() || self.flow.fill() > 0;
        if let Some(peer) = self.peer().filter(|_| is_unread && self.kind != SOCK_DGRAM) {
            peer.error.set(Some(Errno::ECONNRESET));
        }
        self.shut_down(true, true);
        self.lose_rights();
        for connection in core::mem::take(&mut *self.waiting.borrow_mut()) {
            // Nobody has accepted it, and nobody will.
            if let Some(peer) = connection.peer() {
                peer.error.set(Some(Errno::ECONNRESET));
            }
        }
        self.unix.flight.socket_ended(self.unix);
    }
}
