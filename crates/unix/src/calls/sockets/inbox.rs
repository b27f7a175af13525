//! What has come for a socket and was not read: messages with what goes beside them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use abi::Errno;
use machine::{TryGrow, TryQueue, try_to_vec};

use super::parcel::{Parcel, Received};
use super::unix::UnixSocket;
use crate::limits::PIECE_BYTES;

/// What one sender sent at once, or a stream's bytes that came in a row.
#[derive(Default)]
pub(super) struct Message {
    pub(super) bytes: Vec<u8>,
    /// Bytes of it that were taken.
    pub(super) start: usize,
    /// The sender's address, of a datagram.
    pub(super) from: Vec<u8>,
    pub(super) parcel: Parcel,
}

/// What has come and was not read. Datagrams keep their bounds.
#[derive(Default)]
pub(super) struct Inbox {
    pub(super) messages: VecDeque<Message>,
    pub(super) bytes: usize,
}

impl Message {
    /// The bytes that were taken out of it last are its own again; `None` if others are.
    fn give_back(&mut self, bytes: &[u8]) -> Option<&mut Message> {
        let start = self.start.checked_sub(bytes.len())?;
        if self.bytes[start..self.start] != *bytes {
            return None;
        }
        self.start = start;
        Some(self)
    }

    /// Bytes of a stream have no bounds: they join what came last.
    pub(super) fn takes(&self, bytes: usize, parcel: &Parcel) -> bool {
        self.parcel.rights.is_none()
            && self.parcel.credentials == parcel.credentials
            && self.bytes.len() + bytes <= PIECE_BYTES
    }
}

impl UnixSocket {
    /// The program's buffer did not take what was received: a stream keeps it; a datagram is gone, as on Linux.
    pub fn keep(&self, received: Received) {
        if self.is_stream() && !self.flow.put_back(&received) {
            let Received { mut bytes, credentials, rights, last, is_last_cut, .. } = received;
            self.empty_ring();
            let mut inbox = self.inbox.borrow_mut();
            inbox.bytes += bytes.len();
            let parcel = Parcel { credentials, rights };
            let front = inbox.messages.front_mut().filter(|_| is_last_cut);
            // What goes with the last message goes with it again, and not with those before.
            let parcel = match front.and_then(|front| front.give_back(&bytes[bytes.len() - last..])) {
                Some(front) => {
                    front.parcel.rights = parcel.rights;
                    bytes.truncate(bytes.len() - last);
                    Parcel { credentials, rights: None }
                }
                None => parcel,
            };
            // `put` has left room for it.
            let mut put = |bytes: Vec<u8>, parcel| {
                if !bytes.is_empty() {
                    let _ = inbox.messages.try_push_front(Message { bytes, parcel, ..Message::default() });
                }
            };
            if parcel.rights.is_some()
                && let Ok(tail) = try_to_vec(&bytes[bytes.len() - last..])
            {
                bytes.truncate(bytes.len() - last);
                put(tail, parcel);
                put(bytes, Parcel { credentials, rights: None });
            } else {
                put(bytes, parcel);
            }
            drop(inbox);
            self.gate();
        }
    }

    pub(super) fn take(&self, room: usize, peek: bool) -> Result<Option<Received>, Errno> {
        if self.is_stream() {
            return self.take_stream(room, peek);
        }
        let mut inbox = self.inbox.borrow_mut();
        let Some(first) = inbox.messages.front_mut() else { return Ok(None) };
        let whole = first.bytes.len();
        if peek {
            let (bytes, from) = (try_to_vec(&first.bytes[..whole.min(room)])?, try_to_vec(&first.from)?);
            let Parcel { credentials, rights } = first.parcel.part(true)?;
            return Ok(Some(Received { bytes, whole, from, credentials, rights, ..Received::default() }));
        }
        inbox.bytes -= whole;
        let Some(Message { mut bytes, from, parcel, .. }) = inbox.messages.pop_front() else { return Ok(None) };
        bytes.truncate(room);
        let Parcel { credentials, rights } = parcel;
        Ok(Some(Received { bytes, whole, from, credentials, rights, ..Received::default() }))
    }

    /// Bytes of several messages, up to one with descriptors; with credentials, of one sender.
    fn take_stream(&self, room: usize, peek: bool) -> Result<Option<Received>, Errno> {
        let mut inbox = self.inbox.borrow_mut();
        let flowing = self.flow.fill();
        if inbox.messages.is_empty() && flowing == 0 {
            return Ok(None);
        }
        let mut received = Received::default();
        received.bytes.room_for_exact(room.min(flowing + inbox.bytes))?;
        // What is in the ring came first.
        self.flow.take(&mut received.bytes, room.min(flowing), peek);
        let (mut place, mut is_first) = (0, flowing == 0);
        while let Some(message) = inbox.messages.get_mut(place) {
            let parcel = &mut message.parcel;
            let is_other = self.passes_credentials.get() && parcel.credentials != received.credentials;
            if !is_first && (is_other || received.bytes.len() == room) {
                break;
            }
            let left = &message.bytes[message.start..];
            let part = left.len().min(room - received.bytes.len());
            received.bytes.try_extend_from_slice(&left[..part])?;
            (received.credentials, received.rights) = (parcel.credentials, parcel.part(peek)?.rights);
            (received.last, received.is_last_cut) = (part, part < left.len());
            is_first = false;
            if peek {
                place += 1;
            } else {
                message.start += part;
                if message.start < message.bytes.len() {
                    break;
                }
                inbox.messages.pop_front();
            }
            if received.rights.is_some() {
                break;
            }
        }
        received.whole = received.bytes.len();
        if !peek {
            inbox.bytes -= received.whole - room.min(flowing);
            let is_drained = inbox.messages.is_empty();
            drop(inbox);
            if is_drained {
                self.gate();
            }
        }
        Ok(Some(received))
    }

    /// Takes what is in the ring among the messages, as the first: something older must be put before it.
    fn empty_ring(&self) {
        let mut bytes = Vec::new();
        if self.flow.fill() > 0 && bytes.room_for_exact(self.flow.fill()).is_ok() {
            self.flow.take(&mut bytes, self.flow.fill(), false);
            let mut inbox = self.inbox.borrow_mut();
            inbox.bytes += bytes.len();
            let _ = inbox.messages.try_push_front(Message { bytes, ..Message::default() });
        }
    }
}
