//! Messages that wait at a socket, what goes with them, and what a receiver gets.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use abi::Errno;
use abi::socket::Ucred;
use machine::{TryGrow, TryQueue, try_to_vec};

use super::flight::Rights;
use super::flow::Flow;
use crate::limits::PIECE_BYTES;
use crate::task::process::Process;

/// What goes beside bytes.
#[derive(Default)]
pub struct Parcel {
    pub credentials: Option<Ucred>,
    pub rights: Option<Rights>,
    /// What is for the family alone.
    pub beside: Vec<Beside>,
}

/// A piece of control data that a datagram brings.
#[derive(Clone, Copy, Debug)]
pub struct Beside {
    pub level: u32,
    pub kind: u32,
    pub bytes: usize,
    pub content: [u8; Beside::BYTES],
}

impl Beside {
    pub const BYTES: usize = 44;
}

/// What a receiver gets.
#[derive(Default)]
pub struct Received {
    pub bytes: Vec<u8>,
    /// A datagram's true size.
    pub whole: usize,
    pub from: Vec<u8>,
    pub credentials: Option<Ucred>,
    pub rights: Option<Rights>,
    pub beside: Vec<Beside>,
    /// How many of a stream's bytes are the last message's, and whether there is more of that.
    pub last: usize,
    pub is_last_cut: bool,
}

impl Received {
    /// Takes more of a stream until the first of these counts of bytes is there, and never more than the second; of one sender where
    /// that is told. What cannot be joined is kept for the next.
    pub fn fill_up(
        &mut self,
        [least, room]: [usize; 2],
        tells_senders: bool,
        mut receive: impl FnMut(usize) -> Result<Received, Errno>,
        keep: impl Fn(Received),
    ) {
        while self.bytes.len() < least && self.rights.is_none() {
            match receive(room - self.bytes.len()) {
                Ok(more) if more.whole == 0 && more.rights.is_none() => break,
                Ok(more) if tells_senders && more.credentials != self.credentials => {
                    keep(more);
                    break;
                }
                Ok(more) => {
                    if self.bytes.try_extend_from_slice(&more.bytes).is_err() {
                        keep(more);
                        break;
                    }
                    self.rights = more.rights;
                }
                Err(_) => break,
            }
        }
        self.whole = self.bytes.len();
    }
}

impl Parcel {
    fn is_empty(&self) -> bool {
        self.credentials.is_none() && self.rights.is_none()
    }

    /// What it holds; its files only once, unless somebody just looks. Error: `ENOMEM`, for who looks.
    pub fn part(&mut self, peek: bool) -> Result<Parcel, Errno> {
        let rights = match &self.rights {
            Some(rights) if peek => rights.duplicate()?,
            _ => self.rights.take(),
        };
        Ok(Parcel { credentials: self.credentials, rights, beside: Vec::new() })
    }
}

/// What one sender sent at once, or a stream's bytes that came in a row.
#[derive(Default)]
pub struct Message {
    pub bytes: Vec<u8>,
    /// Bytes of it that were taken.
    pub start: usize,
    /// The sender's address, of a datagram.
    pub from: Vec<u8>,
    pub parcel: Parcel,
}

/// What has come and was not read. Datagrams keep their bounds.
#[derive(Default)]
pub struct Inbox {
    pub messages: VecDeque<Message>,
    pub bytes: usize,
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
    pub fn takes(&self, bytes: usize, parcel: &Parcel) -> bool {
        self.parcel.rights.is_none()
            && self.parcel.credentials == parcel.credentials
            && self.bytes.len() + bytes <= PIECE_BYTES
    }
}

impl Inbox {
    /// The program's buffer did not take what was received: it stands before all else again.
    pub fn keep(&mut self, flow: &Flow, received: Received) {
        let Received { mut bytes, credentials, rights, last, is_last_cut, .. } = received;
        let parcel = Parcel { credentials, rights, beside: Vec::new() };
        if parcel.is_empty() && flow.put_back(&bytes) {
            return;
        }
        self.empty_ring(flow);
        self.bytes += bytes.len();
        let front = self.messages.front_mut().filter(|_| is_last_cut);
        // What goes with the last message goes with it again, and not with those before.
        let parcel = match front.and_then(|front| front.give_back(&bytes[bytes.len() - last..])) {
            Some(front) => {
                front.parcel.rights = parcel.rights;
                bytes.truncate(bytes.len() - last);
                Parcel { credentials, ..Parcel::default() }
            }
            None => parcel,
        };
        if parcel.rights.is_some()
            && let Ok(tail) = try_to_vec(&bytes[bytes.len() - last..])
        {
            bytes.truncate(bytes.len() - last);
            self.put_first(tail, parcel);
            self.put_first(bytes, Parcel { credentials, ..Parcel::default() });
        } else {
            self.put_first(bytes, parcel);
        }
    }

    /// Who put messages here has left room for one more.
    fn put_first(&mut self, bytes: Vec<u8>, parcel: Parcel) {
        if !bytes.is_empty() {
            let _ = self.messages.try_push_front(Message { bytes, parcel, ..Message::default() });
        }
    }

    /// The first message, as far as there is room; its rest is lost.
    pub fn take(&mut self, room: usize, peek: bool) -> Result<Option<Received>, Errno> {
        let Some(first) = self.messages.front_mut() else { return Ok(None) };
        let whole = first.bytes.len();
        if peek {
            let (bytes, from) = (try_to_vec(&first.bytes[..whole.min(room)])?, try_to_vec(&first.from)?);
            let Parcel { credentials, rights, .. } = first.parcel.part(true)?;
            return Ok(Some(Received { bytes, whole, from, credentials, rights, ..Received::default() }));
        }
        self.bytes -= whole;
        let Some(Message { mut bytes, from, parcel, .. }) = self.messages.pop_front() else { return Ok(None) };
        bytes.truncate(room);
        let Parcel { credentials, rights, .. } = parcel;
        Ok(Some(Received { bytes, whole, from, credentials, rights, ..Received::default() }))
    }

    /// Bytes of the ring and of several messages, up to one with descriptors; with credentials, of one sender.
    pub fn take_stream(
        &mut self,
        flow: &Flow,
        room: usize,
        peek: bool,
        tells_senders: bool,
    ) -> Result<Option<Received>, Errno> {
        let flowing = flow.fill();
        if self.messages.is_empty() && flowing == 0 {
            return Ok(None);
        }
        let mut received = Received::default();
        received.bytes.room_for_exact(room.min(flowing + self.bytes))?;
        // What is in the ring came first.
        flow.take(&mut received.bytes, room.min(flowing), peek);
        let (mut place, mut is_first) = (0, flowing == 0);
        while let Some(message) = self.messages.get_mut(place) {
            let parcel = &mut message.parcel;
            let is_other = tells_senders && parcel.credentials != received.credentials;
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
                self.messages.pop_front();
            }
            if received.rights.is_some() {
                break;
            }
        }
        received.whole = received.bytes.len();
        if !peek {
            self.bytes -= received.whole - room.min(flowing);
        }
        Ok(Some(received))
    }

    /// Lets the bytes of all messages go on by the ring, if they fit into it and nothing goes with them; how many.
    pub fn pour(&mut self, flow: &Flow) -> usize {
        if self.bytes > flow.room() || !self.messages.iter().all(|message| message.parcel.is_empty()) {
            return 0;
        }
        self.messages.drain(..).for_each(|message| flow.pour(&message.bytes[message.start..]));
        core::mem::take(&mut self.bytes)
    }

    /// What goes with the first message from `place` on that something goes with.
    pub fn take_rights(&mut self, place: &mut usize) -> Option<Rights> {
        loop {
            let message = self.messages.get_mut(*place)?;
            *place += 1;
            if let Some(rights) = message.parcel.rights.take() {
                return Some(rights);
            }
        }
    }

    /// Bytes that the messages take.
    pub fn held_bytes(&self) -> usize {
        let texts: usize = self.messages.iter().map(|message| message.bytes.capacity() + message.from.capacity()).sum();
        self.messages.capacity() * size_of::<Message>() + texts
    }

    /// Takes what is in the ring among the messages, as the first: something older must be put before it.
    fn empty_ring(&mut self, flow: &Flow) {
        let mut bytes = Vec::new();
        if flow.fill() > 0 && bytes.room_for_exact(flow.fill()).is_ok() {
            flow.take(&mut bytes, flow.fill(), false);
            self.bytes += bytes.len();
            self.put_first(bytes, Parcel::default());
        }
    }
}

/// Who sends, as receivers are told.
pub fn sender(process: &Process) -> Ucred {
    Ucred { pid: process.pid as i32, uid: process.user_ids.get().real, gid: process.group_ids.get().real }
}
