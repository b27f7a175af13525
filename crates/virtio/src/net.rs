//! The network device (virtio 1.2, 5.1): frames of an Ethernet come and go, each with a header that says what is known of its sums.
//!
//! A frame that comes may lie in several buffers, in a row on the queue (5.1.6.4). One that goes lies in one, behind its header.

use alloc::vec::Vec;

use machine::{Dma, NoFrames, PAGE_BYTES, SumPlace, TryGrow, try_filled};

use crate::{Misbehaved, Piece, Queue, Refused, StartError, Token, Transport, feature, start};

/// Features of this device (5.1.3).
mod own {
    /// The device fills in sums of what it is given.
    pub const SUMS: u64 = 1 << 0;
    /// The driver takes frames whose sums are not filled in: they come from the same host.
    pub const TAKES_PARTIAL_SUMS: u64 = 1 << 1;
    pub const MTU: u64 = 1 << 3;
    pub const ADDRESS: u64 = 1 << 5;
    /// What was sent as one piece on the host may come as one. Needs both of the above.
    pub const TAKES_LONG_4: u64 = 1 << 7;
    pub const TAKES_LONG_6: u64 = 1 << 8;
    pub const MERGES: u64 = 1 << 15;
}

/// In front of each frame (5.1.6).
const HEADER_BYTES: usize = 12;
const NEEDS_SUM: u8 = 1;
const SUM_IS_VALID: u8 = 2;

/// Header and frame of the usual size, and half of a page.
const BUFFER_BYTES: usize = 2048;
const BUFFERS_OF_PAGE: usize = PAGE_BYTES / BUFFER_BYTES;
/// The longest frame that is sent.
const SENT_BYTES_MAX: usize = BUFFER_BYTES - HEADER_BYTES;
/// Entries of each queue.
const ENTRIES: u16 = 128;

/// The device is used no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NetLost {
    Misbehaved(Misbehaved),
    /// A frame without a header, or one in more buffers than came.
    Frame,
}

/// A frame that has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    pub bytes: usize,
    /// Its sums need not be looked at.
    pub is_checked: bool,
}

/// Why a frame is not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotSent {
    /// All buffers are under way.
    Full,
    /// It is longer than a buffer.
    Long,
    Lost(NetLost),
}

/// Buffers of one direction, two in a page.
struct Buffers {
    pages: Vec<Dma>,
    /// By the place of a chain in the queue: the buffer that it is.
    of_chain: Vec<u16>,
}

impl Buffers {
    fn make(count: usize, dma: &impl Fn(usize) -> Result<Dma, NoFrames>) -> Result<Buffers, StartError> {
        let pages_wanted = count.clamp(1, ENTRIES.into()).div_ceil(BUFFERS_OF_PAGE);
        let mut pages = Vec::new();
        pages.room_for_exact(pages_wanted).map_err(|_| StartError::NoMemory)?;
        while pages.len() < pages_wanted {
            let Ok(page) = dma(1) else { break };
            pages.put(page);
        }
        let of_chain = try_filled(0, ENTRIES.into()).map_err(|_| StartError::NoMemory)?;
        if pages.is_empty() { Err(StartError::NoMemory) } else { Ok(Buffers { pages, of_chain }) }
    }

    fn count(&self) -> usize {
        self.pages.len() * BUFFERS_OF_PAGE
    }

    fn place(&self, buffer: usize) -> (&Dma, usize) {
        (&self.pages[buffer / BUFFERS_OF_PAGE], buffer % BUFFERS_OF_PAGE * BUFFER_BYTES)
    }

    fn address(&self, buffer: usize) -> u64 {
        let (page, offset) = self.place(buffer);
        page.bus_address(offset)
    }

    fn read(&self, buffer: usize, offset: usize, into: &mut [u8]) {
        let (page, start) = self.place(buffer);
        page.read(start + offset, into);
    }

    fn write(&self, buffer: usize, offset: usize, from: &[u8]) {
        let (page, start) = self.place(buffer);
        page.write(start + offset, from);
    }

    fn note(&mut self, token: Token, buffer: usize) {
        self.of_chain[token.place()] = buffer as u16;
    }

    fn of(&self, token: Token) -> usize {
        self.of_chain[token.place()].into()
    }
}

pub struct Net<T: Transport> {
    transport: T,
    inbound: Queue,
    outbound: Queue,
    coming: Buffers,
    going: Buffers,
    /// Buffers for frames that go which nobody uses.
    free: Vec<u16>,
    features: u64,
    address: [u8; 6],
    mtu: u16,
    lost: Option<NetLost>,
}

impl<T: Transport> Net<T> {
    /// Starts the device with up to `buffers` buffers for each direction; with fewer where memory is short.
    pub fn start(
        transport: T,
        buffers: usize,
        dma: impl Fn(usize) -> Result<Dma, NoFrames>,
    ) -> Result<Net<T>, StartError> {
        const LONG: u64 = own::TAKES_LONG_4 | own::TAKES_LONG_6;
        let offered = transport.device_features();
        let takes_long = own::MERGES | own::TAKES_PARTIAL_SUMS;
        let long = if offered & takes_long == takes_long { LONG } else { 0 };
        let wanted = own::SUMS | own::TAKES_PARTIAL_SUMS | own::MTU | own::ADDRESS | own::MERGES | long;
        let (inbound, outbound, features) = start(&transport, wanted | feature::EVENT_INDEX, |transport, features| {
            let inbound = Queue::install(transport, 0, ENTRIES, features, &dma)?;
            let outbound = Queue::install(transport, 1, ENTRIES, features, &dma)?;
            Ok((inbound, outbound, features))
        })?;
        let (coming, going) = (Buffers::make(buffers, &dma)?, Buffers::make(buffers, &dma)?);
        let mut free = Vec::new();
        free.room_for_exact(going.count()).map_err(|_| StartError::NoMemory)?;
        (0..going.count()).for_each(|buffer| free.put(buffer as u16));
        let (address, mtu) = (address_of(&transport, features), mtu_of(&transport, features));
        let mut net = Net { transport, inbound, outbound, coming, going, free, features, address, mtu, lost: None };
        for buffer in 0..net.coming.count() {
            net.post(buffer);
        }
        net.outbound.want_no_news();
        net.inbound.expect_news(&net.transport);
        net.tell();
        Ok(net)
    }

    pub fn address(&self) -> [u8; 6] {
        self.address
    }

    /// The longest packet in a frame.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Whether it fills in sums of what is sent.
    pub fn sums(&self) -> bool {
        self.features & own::SUMS != 0
    }

    /// Has the device fill a buffer.
    fn post(&mut self, buffer: usize) {
        let piece = Piece::FromDevice { address: self.coming.address(buffer), bytes: BUFFER_BYTES as u32 };
        // With fewer entries than buffers the rest stays unused.
        if let Ok(token) = self.inbound.offer(&[piece]) {
            self.coming.note(token, buffer);
        }
    }

    /// Tells the device of what was offered.
    pub fn tell(&mut self) {
        tell(&mut self.inbound, &self.transport);
        tell(&mut self.outbound, &self.transport);
    }

    fn lose<R>(&mut self, what: NetLost) -> Result<R, NetLost> {
        self.lost = Some(what);
        Err(what)
    }

    /// A buffer that has come, and how many bytes of it.
    fn next_buffer(&mut self) -> Result<Option<(usize, usize)>, NetLost> {
        match self.inbound.finished() {
            Ok(finished) => Ok(finished.map(|one| (self.coming.of(one.token), one.written as usize))),
            Err(what) => self.lose(NetLost::Misbehaved(what)),
        }
    }

    /// The next frame that has come: its first bytes are in `into`. One that has no room there is lost.
    pub fn receive(&mut self, into: &mut [u8]) -> Result<Option<Frame>, NetLost> {
        if let Some(what) = self.lost {
            return Err(what);
        }
        let Some((buffer, written)) = self.next_buffer()? else {
            // It may wait for buffers, of which it has some again.
            tell(&mut self.inbound, &self.transport);
            return Ok(None);
        };
        let mut header = [0; HEADER_BYTES];
        let Some(first) = written.checked_sub(HEADER_BYTES) else { return self.lose(NetLost::Frame) };
        self.coming.read(buffer, 0, &mut header);
        let buffers = if self.features & own::MERGES == 0 { 1 } else { u16::from_le_bytes([header[10], header[11]]) };
        let Some(more) = buffers.checked_sub(1) else { return self.lose(NetLost::Frame) };
        let mut bytes = self.take_buffer(buffer, HEADER_BYTES, first, 0, into);
        for _ in 0..more {
            let Some((buffer, written)) = self.next_buffer()? else { return self.lose(NetLost::Frame) };
            bytes = self.take_buffer(buffer, 0, written, bytes, into);
        }
        let is_checked = header[0] & (NEEDS_SUM | SUM_IS_VALID) != 0;
        // A frame that was cut is one of no bytes: nothing in it is true.
        Ok(Some(Frame { bytes: if bytes > into.len() { 0 } else { bytes }, is_checked }))
    }

    /// Adds a buffer's bytes to a frame and gives it back to the device. Bytes of the frame now, also those that were lost.
    fn take_buffer(&mut self, buffer: usize, offset: usize, count: usize, at: usize, into: &mut [u8]) -> usize {
        if let Some(room) = into.get_mut(at..at + count) {
            self.coming.read(buffer, offset, room);
        }
        self.post(buffer);
        at + count
    }

    /// Acknowledges an interrupt.
    pub fn acknowledge(&self) {
        self.transport.interrupt_cause();
    }

    /// The device shall interrupt when a frame comes. True if one has come meanwhile, so that there is nothing to wait for.
    pub fn expect_frames(&mut self) -> bool {
        self.lost.is_none() && self.inbound.expect_news(&self.transport)
    }

    /// Nobody wants to be told of frames: somebody looks.
    pub fn want_no_frames(&mut self) {
        self.inbound.want_no_news();
    }

    /// Takes back the buffers of what was sent.
    fn collect(&mut self) -> Result<(), NetLost> {
        loop {
            match self.outbound.finished() {
                Ok(None) => return Ok(()),
                // There is room: each buffer is there once.
                Ok(Some(finished)) => self.free.put(self.going.of(finished.token) as u16),
                Err(what) => return self.lose(NetLost::Misbehaved(what)),
            }
        }
    }

    /// Whether a frame could be sent now.
    pub fn has_room(&mut self) -> bool {
        self.lost.is_none() && (!self.free.is_empty() || self.collect().is_ok() && !self.free.is_empty())
    }

    /// The device shall interrupt when something was sent. True if something was sent meanwhile.
    pub fn expect_room(&mut self) -> bool {
        self.lost.is_none() && self.outbound.expect_news(&self.transport)
    }

    /// Room is not waited for any more.
    pub fn want_no_room(&mut self) {
        self.outbound.want_no_news();
    }

    /// Gives a frame to the device, which hears of it by [`Net::tell`].
    pub fn send(&mut self, frame: &[u8], sum: Option<SumPlace>) -> Result<(), NotSent> {
        if let Some(what) = self.lost {
            return Err(NotSent::Lost(what));
        }
        if frame.is_empty() || frame.len() > SENT_BYTES_MAX {
            return Err(NotSent::Long);
        }
        if self.free.is_empty() {
            self.collect().map_err(NotSent::Lost)?;
        }
        let Some(buffer) = self.free.pop() else { return Err(NotSent::Full) };
        let mut header = [0; HEADER_BYTES];
        if let Some(place) = sum.filter(|_| self.sums()) {
            header[0] = NEEDS_SUM;
            header[6..8].copy_from_slice(&place.start.to_le_bytes());
            header[8..10].copy_from_slice(&place.offset.to_le_bytes());
        }
        self.going.write(buffer.into(), 0, &header);
        self.going.write(buffer.into(), HEADER_BYTES, frame);
        let address = self.going.address(buffer.into());
        let piece = Piece::ToDevice { address, bytes: (HEADER_BYTES + frame.len()) as u32 };
        match self.outbound.offer(&[piece]) {
            Ok(token) => {
                self.going.note(token, buffer.into());
                Ok(())
            }
            Err(refused) => {
                self.free.put(buffer);
                Err(match refused {
                    Refused::Full => NotSent::Full,
                    Refused::Malformed => NotSent::Long,
                    Refused::Broken(what) => NotSent::Lost(NetLost::Misbehaved(what)),
                })
            }
        }
    }
}

fn tell(queue: &mut Queue, transport: &impl Transport) {
    if queue.must_tell(transport) {
        transport.notify(queue.number());
    }
}

impl<T: Transport> Drop for Net<T> {
    /// The device forgets the buffers before they become somebody else's.
    fn drop(&mut self) {
        self.transport.set_status(0);
    }
}

/// The device's own address, or one that nobody else has by chance (the bit for addresses that were not bought is set).
fn address_of(transport: &impl Transport, features: u64) -> [u8; 6] {
    if features & own::ADDRESS == 0 {
        return [0x02, 0, 0, 0, 0, 1];
    }
    let address = core::array::from_fn(|at| transport.configuration(at as u32));
    // Nobody is called by the address of many.
    if address[0] & 1 != 0 { [0x02, 0, 0, 0, 0, 1] } else { address }
}

fn mtu_of(transport: &impl Transport, features: u64) -> u16 {
    const USUAL: u16 = 1500;
    const LEAST: u16 = 576;
    if features & own::MTU == 0 {
        return USUAL;
    }
    u16::from_le_bytes([transport.configuration(10), transport.configuration(11)]).clamp(LEAST, USUAL)
}
