//! The multiport virtio console (virtio 1.2, 5.3): the raw server behind the machine's channels. Its registers are `crates/virtio`'s; its
//! queues are its own, because code works with their words.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use machine::{Channel, NoFrames, PAGE_BYTES, ReceiveCode, Received, SendCode};
use synth::Target;
use virtio::{QueuePlace, StartError, Transport};

use crate::devices::Bus;
use crate::layout::direct;
use crate::virtqueue::{SIZE, Virtqueue};
use crate::{receive, transmit};

const MULTIPORT: u64 = 1 << 1;
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
    bus: Bus,
    control_receive: Virtqueue,
    control_transmit: Virtqueue,
    ports: Vec<Option<Port>>,
}

/// The queues of a console: control's two, and the ports'.
type Queues = (Virtqueue, Virtqueue, Vec<Option<Port>>);

fn no_memory(_: NoFrames) -> StartError {
    StartError::NoMemory
}

/// Makes the queues, and tells the device of them.
fn install_all(bus: &Bus) -> Result<Queues, StartError> {
    let control_receive = Virtqueue::new(SIZE, false).map_err(no_memory)?;
    let control_transmit = Virtqueue::new(SIZE, true).map_err(no_memory)?;
    let mut ports: Vec<Option<Port>> = (0..PORTS).map(|_| None).collect();
    for (number, place) in ports.iter_mut().enumerate().skip(1) {
        let port = Port::new(number).map_err(no_memory)?;
        install(bus, 2 * number as u16 + 2, &port.receive)?;
        install(bus, 2 * number as u16 + 3, &port.transmit)?;
        *place = Some(port);
    }
    install(bus, 2, &control_receive)?;
    install(bus, 3, &control_transmit)?;
    Ok((control_receive, control_transmit, ports))
}

fn install(bus: &Bus, number: u16, queue: &Virtqueue) -> Result<(), StartError> {
    if let Some(window) = bus.window() {
        queue.words.notify.set(direct(window + QUEUE_NOTIFY));
    }
    if bus.queue_size_max(number) < SIZE {
        return Err(StartError::NoQueue);
    }
    let [descriptors, available, used] = queue.addresses();
    bus.install(number, QueuePlace { size: SIZE, descriptors, available, used });
    Ok(())
}

impl Console {
    /// Starts the device with its control queues and the ports of the channels.
    pub fn start(bus: Bus) -> Result<Console, StartError> {
        let (control_receive, control_transmit, ports) =
            virtio::start(&bus, MULTIPORT, |bus, features| match features & MULTIPORT {
                0 => Err(StartError::Features),
                _ => install_all(bus),
            })?;
        let mut console = Console { bus, control_receive, control_transmit, ports };
        for index in 0..console.control_receive.buffer_count() {
            console.control_receive.offer(index, PAGE_BYTES);
        }
        console.bus.notify(2);
        for number in 1..PORTS {
            if let Some(port) = &mut console.ports[number] {
                for index in 0..port.receive.buffer_count() {
                    port.receive.offer(index, PAGE_BYTES);
                }
            }
            console.bus.notify(2 * number as u16 + 2);
        }
        console.say(u32::MAX, DEVICE_READY, 1);
        Ok(console)
    }

    /// Sends a control message; when no buffer is idle the message is one the device can do without.
    fn say(&mut self, port: u32, event: u16, value: u16) {
        self.control_transmit.reclaim();
        let Some(index) = self.control_transmit.take_idle() else { return };
        let message = (port as u64) | (event as u64) << 32 | (value as u64) << 48;
        // SAFETY: the buffer is a whole frame and ours until offered.
        unsafe { self.control_transmit.buffer(index).cast::<u64>().write_volatile(message) };
        self.control_transmit.offer(index, 8);
        self.bus.notify(3);
    }

    /// Acknowledges the interrupt and takes in control messages. True if the interrupt was ours.
    pub fn interrupt(&mut self) -> bool {
        let cause = self.bus.interrupt_cause();
        self.take_control();
        cause != 0
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
            self.bus.notify(2);
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

    fn port(&mut self, channel: Channel) -> Option<(u16, &Bus, &mut Port)> {
        let number = channel as usize + 1;
        self.ports[number].as_mut().map(|port| (number as u16, &self.bus, port))
    }

    pub fn send(&mut self, channel: Channel, bytes: &[u8]) -> usize {
        let Some((number, bus, port)) = self.port(channel) else { return 0 };
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
                bus.notify(2 * number + 3);
            }
            // The caller will wait for room, unless there is some already.
            if sent == bytes.len() || !queue.expect_news(bus) {
                return sent;
            }
        }
    }

    pub fn sendable(&mut self, channel: Channel) -> usize {
        let Some((_, bus, port)) = self.port(channel) else { return 0 };
        let queue = &port.transmit;
        queue.reclaim();
        if queue.idle_count() == 0 && queue.expect_news(bus) {
            queue.reclaim();
        }
        queue.idle_count() * PAGE_BYTES
    }

    pub fn is_drained(&mut self, channel: Channel) -> bool {
        let Some((_, bus, port)) = self.port(channel) else { return true };
        let queue = &port.transmit;
        queue.reclaim();
        while !queue.is_drained() && queue.expect_news(bus) {
            queue.reclaim();
        }
        queue.is_drained()
    }

    /// The templates know the registers of a window; behind PCI a queue is told by 16 bits and no interrupt is asked why it came.
    fn has_code(&self) -> bool {
        self.bus.window().is_some()
    }

    /// The code that sends to a channel; jumps to `none` when no buffer is idle.
    pub fn send_code(&self, channel: Channel, none: Target) -> Option<SendCode> {
        self.has_code().then_some(())?;
        let number = channel as usize + 1;
        let port = self.ports[number].as_ref()?;
        Some(transmit::send_code(&port.transmit.words, 2 * number as u32 + 3, none))
    }

    /// The code that receives from the terminal.
    pub fn receive_code(&self, none: Target) -> Option<ReceiveCode> {
        self.has_code().then_some(())?;
        let number = Channel::Terminal as usize + 1;
        let port = self.ports[number].as_ref()?;
        Some(receive::receive_code(&port.receive.words, 2 * number as u32 + 2, none))
    }

    /// From now on that code runs whenever the device interrupts.
    pub fn serve_by_code(&mut self) {
        if let Some((_, _, port)) = self.port(Channel::Terminal) {
            port.by_code = true;
        }
    }

    pub fn receive(&mut self, channel: Channel, into: &mut [u8]) -> Received {
        self.take_control();
        let Some((number, bus, port)) = self.port(channel) else { return Received::End };
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
            bus.notify(2 * number + 2);
        }
        match copied {
            0 if ended => Received::End,
            0 => Received::Nothing,
            bytes => Received::Bytes(bytes),
        }
    }

    pub fn receivable(&mut self, channel: Channel) -> usize {
        self.take_control();
        let Some((_, _, port)) = self.port(channel) else { return 0 };
        if port.by_code {
            return port.receive.look().map_or(0, |(_, bytes)| bytes);
        }
        port.collect(usize::MAX);
        port.waiting.iter().map(|(_, bytes, read)| bytes - read).sum()
    }
}

impl Port {
    fn new(number: usize) -> Result<Port, NoFrames> {
        // The standard streams carry the bulk; the others a few records.
        let depth = if number >= 3 { SIZE } else { 8 };
        Ok(Port {
            receive: Virtqueue::new(if number == 4 || number == 5 { 1 } else { depth }, false)?,
            transmit: Virtqueue::new(if number == 3 { 1 } else { depth }, true)?,
            waiting: VecDeque::with_capacity(SIZE as usize),
            host_open: false,
            was_open: false,
            by_code: false,
        })
    }

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
