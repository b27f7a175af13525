//! Packets that go: datagrams and messages of ICMP, with their order kept for each sender.

use alloc::sync::Arc;
use core::net::IpAddr;

use machine::{Nanos, NoMemory, TryGrow, try_filled};
use smoltcp::iface::{SocketHandle, SocketSet, SocketStorage};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::socket::raw::{PacketBuffer, PacketMetadata, Socket};
use smoltcp::wire::{IpAddress, IpProtocol, IpRepr};

use crate::manner::Marks;
use crate::port::Port;
use crate::stack::Stack;
use crate::timers::Who;
use crate::{Failure, News, Watcher};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SenderId(pub(crate) u32);

/// Packets that wait for a neighbour's address, or for room, and their bytes.
const PACKETS: usize = 16;
const BYTES: usize = 32_768;
/// How long the first of them waits for a neighbour's address.
const PATIENCE: Nanos = Nanos(3_000_000_000);

/// What goes behind the packet's own header.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    pub from: IpAddr,
    pub to: IpAddr,
    pub protocol: u8,
    pub hops: u8,
    pub marks: Marks,
    pub priority: u32,
    pub parts: [&'a [u8]; 2],
}

pub(crate) struct Sender {
    pub sockets: SocketSet<'static>,
    handle: SocketHandle,
    watcher: Option<Arc<dyn Watcher>>,
    pub at: Option<Nanos>,
    /// Since when nothing has gone.
    waits_since: Option<Nanos>,
    pub is_stalled: bool,
    marks: Marks,
    pub priority: u32,
}

impl Sender {
    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.handle)
    }

    fn fill(&mut self) -> usize {
        self.socket().send_queue()
    }
}

fn new_socket() -> Result<Socket<'static>, NoMemory> {
    let packets = |count: usize, bytes: usize| -> Result<PacketBuffer<'static>, NoMemory> {
        Ok(PacketBuffer::new(try_filled(PacketMetadata::EMPTY, count)?, try_filled(0, bytes)?))
    };
    // It is never shown what comes.
    Ok(Socket::new(None, None, packets(1, 1)?, packets(PACKETS, BYTES)?))
}

impl Stack {
    pub fn open_sender(&mut self, watcher: Arc<dyn Watcher>) -> Result<SenderId, NoMemory> {
        let mut storage = alloc::vec::Vec::new();
        storage.room_for_exact(1)?;
        storage.put(SocketStorage::EMPTY);
        let mut sockets = SocketSet::new(storage);
        let handle = sockets.add(new_socket()?);
        let sender = Sender {
            sockets,
            handle,
            watcher: Some(watcher),
            at: None,
            waits_since: None,
            is_stalled: false,
            marks: Marks::default(),
            priority: 0,
        };
        self.make_room_to_stall()?;
        self.senders.add(sender).map(SenderId)
    }

    /// Whether a packet of so many bytes would find room.
    pub fn sender_has_room(&self, id: SenderId) -> bool {
        self.senders.get(id.0).is_none_or(|sender| {
            let socket: &Socket<'static> = sender.sockets.get(sender.handle);
            socket.send_queue() + 2048 <= BYTES && socket.can_send()
        })
    }

    /// Sends a packet. Errors: `NetUnreachable`, `TooLong`, `Full`.
    pub fn send_packet(&mut self, id: SenderId, now: Nanos, packet: &Packet<'_>) -> Result<(), Failure> {
        if !self.reaches(packet.to) || packet.from.is_ipv4() != packet.to.is_ipv4() {
            return Err(Failure::NetUnreachable);
        }
        let body: usize = packet.parts.iter().map(|part| part.len()).sum();
        let (from, to) = (IpAddress::from(packet.from), IpAddress::from(packet.to));
        let header = IpRepr::new(from, to, IpProtocol::from(packet.protocol), body, packet.hops);
        let whole = header.header_len() + body;
        if whole > self.link.mtu().into() {
            return Err(Failure::TooLong);
        }
        let Some(sender) = self.senders.get_mut(id.0) else { return Err(Failure::Full) };
        (sender.marks, sender.priority) = (packet.marks, packet.priority);
        let room = sender.socket().send(whole).map_err(|_| Failure::Full)?;
        let (head, mut rest) = room.split_at_mut(header.header_len());
        header.emit(head, &ChecksumCapabilities::default());
        for part in packet.parts {
            let (place, behind) = rest.split_at_mut(part.len());
            place.copy_from_slice(part);
            rest = behind;
        }
        self.settle_sender(id.0, now);
        Ok(())
    }

    /// Has it send what it may.
    pub(crate) fn settle_sender(&mut self, number: u32, now: Nanos) {
        let Some(sender) = self.senders.get_mut(number) else { return };
        let before = sender.fill();
        let port = Port { marks: sender.marks, ..Port::new(self.link, &mut self.scratch) };
        let sent = Stack::flush(&mut self.interface, port, &mut sender.sockets, now, PACKETS);
        self.has_sent |= sent.frames > 0;
        let after = sender.fill();
        if after == 0 || sent.count > 0 || sent.is_full {
            sender.waits_since = None;
        } else if now.0.saturating_sub(sender.waits_since.get_or_insert(now).0) >= PATIENCE.0 {
            // Nobody has that address. What was to go there first goes nowhere, and the others are asked about anew.
            sender.waits_since = None;
            if let Ok(new) = new_socket() {
                *sender.socket() = new;
            }
            if let Some(watcher) = &sender.watcher {
                watcher.failed(Failure::HostUnreachable);
            }
        }
        if sent.is_full && !sender.is_stalled {
            sender.is_stalled = true;
            self.note_stalled(Who::Sender(number));
        }
        let Some(sender) = self.senders.get_mut(number) else { return };
        let after = sender.fill();
        if let Some(watcher) = sender.watcher.as_ref().filter(|_| after < before) {
            watcher.changed(News { arrived: false, departed: true });
        }
        let is_left = sender.watcher.is_none();
        let next = if after == 0 { None } else { sent.next };
        self.set_time(Who::Sender(number), next);
        if is_left && after == 0 {
            self.remove_sender(number);
        }
    }

    fn remove_sender(&mut self, number: u32) {
        self.set_time(Who::Sender(number), None);
        self.no_longer_stalled(Who::Sender(number));
        self.senders.remove(number);
    }

    /// What was given to it goes still.
    pub fn close_sender(&mut self, id: SenderId) {
        let Some(sender) = self.senders.get_mut(id.0) else { return };
        sender.watcher = None;
        if sender.fill() == 0 {
            self.remove_sender(id.0);
        }
    }
}
