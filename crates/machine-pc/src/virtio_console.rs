//! The multiport virtio console (virtio 1.2, 5.3) over virtio-mmio (4.2): the raw server behind the
//! machine's channels.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use machine::{Channel, NoFrames, PAGE_BYTES, ReceiveCode, Received, SendCode};
use synth::Target;

use crate::layout::direct;
use crate::virtqueue::{SIZE, Virtqueue};
use crate::{receive, transmit};

/// Device id of a console (5.3.1).
const CONSOLE: u32 = 3;
const MULTIPORT: u32 = 1 << 1;
/// Register that tells the device about new buffers of a queue (4.2.2).
pub const QUEUE_NOTIFY: u64 = 0x50;
/// Registers that say why the device interrupts, and that this was seen.
pub const INTERRUPT_STATUS: u64 = 0x60;
pub const INTERRUPT_ACKNOWLEDGE: u64 = 0x64;
/// Ports 1..=5 carry the channels in the order of [`Channel`].
const PORTS: usize = 6;
const DEVICE_READY: u16 = 0;
const PORT_ADD: u16 = 1;
const PORT_READY: u16 = 3;
const PORT_OPEN: u16 = 6;

/// One device's registers.
#[derive(Clone, Copy)]
struct Mmio(u64);

impl Mmio {
    fn read(self, offset: u64) -> u32 {
        // SAFETY: the command line said that a virtio-mmio window is here; it lies in the direct map.
        unsafe { (direct(self.0 + offset) as *const u32).read_volatile() }
    }

    fn write(self, offset: u64, value: u32) {
        // SAFETY: as in `read`; only registers of virtio 1.2, 4.2.2 are written.
        unsafe { (direct(self.0 + offset) as *mut u32).write_volatile(value) }
    }
}

struct Port {
    receive: Virtqueue,
    transmit: Virtqueue,
    /// Received buffers not yet read: index, bytes, bytes already read.
    waiting: VecDeque<(u16, usize, usize)>,
    host_open: bool,
    was_open: bool,
    /// The interrupt's handler takes buffers, so Rust leaves those that it cannot take whole.
    by_code: bool,
}

pub struct Console {
    mmio: Mmio,
    control_receive: Virtqueue,
    control_transmit: Virtqueue,
    ports: Vec<Option<Port>>,
}

/// Whether a virtio console answers at this window.
pub fn is_console(base: u64) -> bool {
    let mmio = Mmio(base);
    mmio.read(0) == 0x7472_6976 && mmio.read(4) == 2 && mmio.read(8) == CONSOLE
}

impl Console {
    /// Starts the device (3.1.1) with its control queues and the ports of the channels.
    pub fn start(base: u64) -> Result<Console, NoFrames> {
        let mmio = Mmio(base);
        mmio.write(0x70, 0);
        mmio.write(0x70, 1 | 2);
        mmio.write(0x24, 0);
        mmio.write(0x20, MULTIPORT);
        mmio.write(0x24, 1);
        mmio.write(0x20, 1); // VERSION_1
        mmio.write(0x70, 1 | 2 | 8);
        let mut console = Console {
            mmio,
            control_receive: Virtqueue::new(SIZE, false)?,
            control_transmit: Virtqueue::new(SIZE, true)?,
            ports: (0..PORTS).map(|_| None).collect(),
        };
        for number in 1..PORTS {
            // The standard streams carry the bulk; the others a few records.
            let depth = if number >= 3 { SIZE } else { 8 };
            let port = Port {
                receive: Virtqueue::new(if number == 4 || number == 5 { 1 } else { depth }, false)?,
                transmit: Virtqueue::new(if number == 3 { 1 } else { depth }, true)?,
                waiting: VecDeque::with_capacity(SIZE as usize),
                host_open: false,
                was_open: false,
                by_code: false,
            };
            console.install(2 * number as u32 + 2, &port.receive);
            console.install(2 * number as u32 + 3, &port.transmit);
            console.ports[number] = Some(port);
        }
        console.install(2, &console.control_receive);
        console.install(3, &console.control_transmit);
        mmio.write(0x70, 1 | 2 | 8 | 4);
        for index in 0..console.control_receive.buffer_count() {
            console.control_receive.offer(index, PAGE_BYTES);
        }
        mmio.write(QUEUE_NOTIFY, 2);
        for number in 1..PORTS {
            if let Some(port) = &mut console.ports[number] {
                for index in 0..port.receive.buffer_count() {
                    port.receive.offer(index, PAGE_BYTES);
                }
            }
            mmio.write(QUEUE_NOTIFY, 2 * number as u32 + 2);
        }
        console.say(u32::MAX, DEVICE_READY, 1);
        Ok(console)
    }

    fn install(&self, number: u32, queue: &Virtqueue) {
        queue.words.notify.set(direct(self.mmio.0 + QUEUE_NOTIFY));
        self.mmio.write(0x30, number);
        self.mmio.write(0x38, SIZE as u32);
        for (offset, address) in [0x80, 0x90, 0xA0].into_iter().zip(queue.addresses()) {
            self.mmio.write(offset, address as u32);
            self.mmio.write(offset + 4, (address >> 32) as u32);
        }
        self.mmio.write(0x44, 1);
    }

    /// Sends a control message; when no buffer is idle the message is one the device can do without.
    fn say(&mut self, port: u32, event: u16, value: u16) {
        self.control_transmit.reclaim();
        let Some(index) = self.control_transmit.take_idle() else { return };
        let message = (port as u64) | (event as u64) << 32 | (value as u64) << 48;
        // SAFETY: the buffer is a whole frame and ours until offered.
        unsafe { self.control_transmit.buffer(index).cast::<u64>().write_volatile(message) };
        self.control_transmit.offer(index, 8);
        self.mmio.write(QUEUE_NOTIFY, 3);
    }

    /// Acknowledges the interrupt and takes in control messages. True if the interrupt was ours.
    pub fn interrupt(&mut self) -> bool {
        let status = self.mmio.read(INTERRUPT_STATUS);
        if status != 0 {
            self.mmio.write(INTERRUPT_ACKNOWLEDGE, status);
        }
        self.take_control();
        status != 0
    }

    fn take_control(&mut self) {
        let mut any = false;
        while let Some((index, bytes)) = self.control_receive.finished() {
            // SAFETY: the device has finished with this whole frame.
            let message = unsafe { self.control_receive.buffer(index).cast::<u64>().read_volatile() };
            self.control_receive.offer(index, PAGE_BYTES);
            any = true;
            if bytes >= 8 {
                self.hear(message as u32, (message >> 32) as u16, (message >> 48) as u16);
            }
        }
        if any {
            self.mmio.write(QUEUE_NOTIFY, 2);
        }
    }

    fn hear(&mut self, number: u32, event: u16, value: u16) {
        let Some(Some(port)) = self.ports.get_mut(number as usize) else { return };
        match event {
            PORT_ADD => {
                self.say(number, PORT_READY, 1);
                self.say(number, PORT_OPEN, 1);
            }
            PORT_OPEN => {
                port.host_open = value != 0;
                port.was_open |= value != 0;
            }
            _ => {}
        }
    }

    fn port(&mut self, channel: Channel) -> Option<(usize, &mut Port)> {
        let number = channel as usize + 1;
        self.ports[number].as_mut().map(|port| (number, port))
    }

    pub fn send(&mut self, channel: Channel, bytes: &[u8]) -> usize {
        let mmio = self.mmio;
        let Some((number, port)) = self.port(channel) else { return 0 };
        let queue = &port.transmit;
        let mut sent = 0;
        loop {
            queue.reclaim();
            let before = sent;
            while sent < bytes.len() {
                let Some(index) = queue.take_idle() else { break };
                let part = (bytes.len() - sent).min(PAGE_BYTES);
                // SAFETY: 1. The buffer is a whole frame and ours until offered. 2. `part` fits both.
                unsafe { queue.buffer(index).copy_from_nonoverlapping(bytes[sent..].as_ptr(), part) };
                queue.offer(index, part);
                sent += part;
            }
            if sent > before && queue.wants_notification() {
                mmio.write(QUEUE_NOTIFY, 2 * number as u32 + 3);
            }
            // The caller will wait for room, unless there is some already.
            if sent == bytes.len() || !queue.expect_news() {
                return sent;
            }
        }
    }

    pub fn sendable(&mut self, channel: Channel) -> usize {
        let Some((_, port)) = self.port(channel) else { return 0 };
        let queue = &port.transmit;
        queue.reclaim();
        if queue.idle_count() == 0 && queue.expect_news() {
            queue.reclaim();
        }
        queue.idle_count() * PAGE_BYTES
    }

    pub fn is_drained(&mut self, channel: Channel) -> bool {
        let Some((_, port)) = self.port(channel) else { return true };
        let queue = &port.transmit;
        queue.reclaim();
        while !queue.is_drained() && queue.expect_news() {
            queue.reclaim();
        }
        queue.is_drained()
    }

    /// The code that sends to a channel; jumps to `none` when no buffer is idle.
    pub fn send_code(&self, channel: Channel, none: Target) -> Option<SendCode> {
        let number = channel as usize + 1;
        let port = self.ports[number].as_ref()?;
        Some(transmit::send_code(&port.transmit.words, 2 * number as u32 + 3, none))
    }

    /// The code that receives from the terminal.
    pub fn receive_code(&self, none: Target) -> Option<ReceiveCode> {
        let number = Channel::Terminal as usize + 1;
        let port = self.ports[number].as_ref()?;
        Some(receive::receive_code(&port.receive.words, 2 * number as u32 + 2, none))
    }

    /// From now on that code runs whenever the device interrupts.
    pub fn serve_by_code(&mut self) {
        if let Some((_, port)) = self.port(Channel::Terminal) {
            port.by_code = true;
        }
    }

    pub fn receive(&mut self, channel: Channel, into: &mut [u8]) -> Received {
        self.take_control();
        let mmio = self.mmio;
        let Some((number, port)) = self.port(channel) else { return Received::End };
        port.collect(into.len());
        let mut copied = 0;
        let mut returned = false;
        while copied < into.len() {
            let Some((index, bytes, read)) = port.waiting.front_mut() else { break };
            let part = (*bytes - *read).min(into.len() - copied);
            // SAFETY: 1. The device has finished with the buffer. 2. `read + part` lies inside what it wrote.
            unsafe {
                let from = port.receive.buffer(*index).add(*read);
                into[copied..].as_mut_ptr().copy_from_nonoverlapping(from, part);
            }
            copied += part;
            *read += part;
            if read == bytes {
                let index = *index;
                port.waiting.pop_front();
                port.receive.offer(index, PAGE_BYTES);
                returned = true;
            }
        }
        let ended = copied == 0 && port.was_open && !port.host_open;
        if returned {
            mmio.write(QUEUE_NOTIFY, 2 * number as u32 + 2);
        }
        match copied {
            0 if ended => Received::End,
            0 => Received::Nothing,
            bytes => Received::Bytes(bytes),
        }
    }

    pub fn receivable(&mut self, channel: Channel) -> usize {
        self.take_control();
        let Some((_, port)) = self.port(channel) else { return 0 };
        if port.by_code {
            return port.receive.look().map_or(0, |(_, bytes)| bytes);
        }
        port.collect(usize::MAX);
        port.waiting.iter().map(|(_, bytes, read)| bytes - read).sum()
    }
}

impl Port {
    /// Takes in what the device has finished with: all of it, or whole buffers with at most `room` bytes.
    fn collect(&mut self, room: usize) {
        let mut taken = 0;
        while let Some((_, bytes)) = self.receive.look() {
            taken += bytes;
            if self.by_code && taken > room {
                return;
            }
            let Some((index, bytes)) = self.receive.finished() else { return };
            if bytes == 0 {
                self.receive.offer(index, PAGE_BYTES);
            } else {
                self.waiting.push_back((index, bytes, 0));
            }
        }
    }
}
