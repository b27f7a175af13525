//! A device that does as it should, or lies.
#![allow(dead_code, reason = "each test uses its own part")]

use std::cell::{Cell, RefCell};

use machine::{Dma, Memory, NoFrames};
use machine_sim::{Plan, Random, SimMachine};
use virtio::{QueuePlace, Transport, feature};

/// The head of a chain and its buffers: address, bytes, whether the device writes.
pub type Chain = (u16, Vec<(u64, u32, bool)>);

/// What the device does instead of what it should.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lie {
    None,
    /// Is finished with this head, whatever it has.
    Id(u32),
    /// Is finished with the same chain again.
    Twice,
    /// Has written so many bytes more than there was room for.
    Longer(u32),
    /// Its used index is so far ahead.
    Jump(u16),
    /// Never answers.
    Silence,
    /// Gives chains back without a byte.
    Nothing,
}

/// What the device does in the moment between the driver's word and its look at the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meanwhile {
    Nothing,
    /// Is finished with the next chain.
    Finishes,
    /// Falls asleep: it wants to be told.
    Sleeps,
}

pub struct Fake {
    pub machine: &'static SimMachine,
    pub features: u64,
    pub lie: Cell<Lie>,
    pub queue_size: u16,
    /// Does not come back from a reset.
    pub never_resets: bool,
    /// Does not take what it offered.
    pub refuses: bool,
    pub accepted: Cell<u64>,
    pub notified: Cell<u32>,
    pub meanwhile: Cell<Meanwhile>,
    status: Cell<u8>,
    place: Cell<Option<QueuePlace>>,
    seen: Cell<u16>,
    used: Cell<u16>,
    random: RefCell<Random>,
}

/// Each test has a machine of its own, whose frames are all for devices.
pub fn machine() -> &'static SimMachine {
    let machine = SimMachine::new(Plan { frames: 64, ..Plan::new(1) });
    machine.give_devices(machine.take_frames());
    machine
}

pub fn dma(machine: &'static SimMachine) -> impl Fn(usize) -> Result<Dma, NoFrames> {
    |pages| machine.dma(pages)
}

impl Fake {
    pub fn new(seed: u64, features: u64) -> Fake {
        Fake {
            machine: machine(),
            features: features | feature::VERSION_1,
            lie: Cell::new(Lie::None),
            queue_size: 16,
            never_resets: false,
            refuses: false,
            accepted: Cell::new(0),
            notified: Cell::new(0),
            meanwhile: Cell::new(Meanwhile::Nothing),
            status: Cell::new(0),
            place: Cell::new(None),
            seen: Cell::new(0),
            used: Cell::new(0),
            random: RefCell::new(Random::new(seed)),
        }
    }

    /// One that is otherwise.
    pub fn with(change: impl FnOnce(&mut Fake)) -> Fake {
        let mut device = Fake::new(1, 0);
        change(&mut device);
        device
    }

    fn read<const N: usize>(&self, address: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.machine.bus_read(address, &mut bytes);
        bytes
    }

    fn half(&self, address: u64) -> u16 {
        u16::from_le_bytes(self.read(address))
    }

    fn place(&self) -> QueuePlace {
        self.place.get().expect("the queue is installed")
    }

    /// Chains that the driver has offered and the device has not looked at.
    pub fn offered(&self) -> u16 {
        self.half(self.place().available + 2).wrapping_sub(self.seen.get())
    }

    fn descriptor(&self, table: u64, index: u16) -> (u64, u32, u16, u16) {
        let bytes: [u8; 16] = self.read(table + 16 * u64::from(index));
        let part =
            |range: std::ops::Range<usize>| bytes[range].iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
        (part(0..8), part(8..12) as u32, part(12..14) as u16, part(14..16) as u16)
    }

    /// The next offered chain.
    pub fn take(&self) -> Option<Chain> {
        if self.offered() == 0 || self.lie.get() == Lie::Silence {
            return None;
        }
        let place = self.place();
        let slot = u64::from(self.seen.get() % place.size);
        self.seen.set(self.seen.get().wrapping_add(1));
        let head = self.half(place.available + 4 + 2 * slot);
        let (mut table, mut at, mut buffers) = (place.descriptors, head, Vec::new());
        loop {
            let (address, bytes, flags, next) = self.descriptor(table, at);
            if flags & 4 != 0 {
                assert!(table == place.descriptors && flags & 1 == 0, "a table in a table, or one that goes on");
                (table, at) = (address, 0);
                continue;
            }
            buffers.push((address, bytes, flags & 2 != 0));
            assert!(buffers.len() <= 64, "a chain that does not end");
            if flags & 1 == 0 {
                return Some((head, buffers));
            }
            at = next;
        }
    }

    /// Is finished with a chain.
    pub fn finish(&self, head: u16, written: u32) {
        let lie = self.lie.get();
        let (id, written) = match lie {
            Lie::Id(id) => (id, written),
            Lie::Longer(more) => (head.into(), written + more),
            Lie::Nothing => (head.into(), 0),
            _ => (head.into(), written),
        };
        self.put_used(id, written);
        if lie == Lie::Twice {
            self.put_used(id, written);
        }
        if let Lie::Jump(ahead) = lie {
            self.machine.bus_write(self.place().used + 2, &self.used.get().wrapping_add(ahead).to_le_bytes());
        }
    }

    fn put_used(&self, id: u32, written: u32) {
        let place = self.place();
        let slot = u64::from(self.used.get() % place.size);
        self.machine.bus_write(place.used + 4 + 8 * slot, &id.to_le_bytes());
        self.machine.bus_write(place.used + 8 + 8 * slot, &written.to_le_bytes());
        self.used.set(self.used.get().wrapping_add(1));
        self.machine.bus_write(place.used + 2, &self.used.get().to_le_bytes());
    }

    /// Whether the device would interrupt for what it is finished with since `before`.
    pub fn interrupts_since(&self, before: u16) -> bool {
        let place = self.place();
        if self.accepted.get() & feature::EVENT_INDEX != 0 {
            let event = self.half(place.available + 4 + 2 * u64::from(place.size));
            let now = self.used.get();
            return now.wrapping_sub(event).wrapping_sub(1) < now.wrapping_sub(before);
        }
        self.half(place.available) & 1 == 0
    }

    pub fn used_index(&self) -> u16 {
        self.used.get()
    }

    /// Asks to be told at the next chain.
    pub fn want_to_be_told(&self) {
        let place = self.place();
        self.machine.bus_write(place.used + 4 + 8 * u64::from(place.size), &self.seen.get().to_le_bytes());
    }

    /// Fills a chain with bytes and is finished with it, as an entropy device.
    pub fn serve_entropy(&self, most: u32) {
        while let Some((head, buffers)) = self.take() {
            let mut written = 0;
            for (address, bytes, writes) in buffers {
                assert!(writes, "an entropy device is given nothing to read");
                let bytes: Vec<u8> = (0..bytes.min(most)).map(|_| self.random.borrow_mut().below(256) as u8).collect();
                self.machine.bus_write(address, &bytes);
                written += bytes.len() as u32;
            }
            self.finish(head, written);
        }
    }
}

impl Transport for &Fake {
    fn device_features(&self) -> u64 {
        self.features
    }

    fn accept_features(&self, features: u64) {
        assert_eq!(features & !self.features, 0, "what was not offered");
        self.accepted.set(features);
    }

    fn status(&self) -> u8 {
        if self.never_resets {
            return 1;
        }
        if self.refuses { self.status.get() & !8 } else { self.status.get() }
    }

    fn set_status(&self, status: u8) {
        self.status.set(status);
    }

    fn queue_size_max(&self, number: u16) -> u16 {
        if number == 0 { self.queue_size } else { 0 }
    }

    fn install(&self, number: u16, place: QueuePlace) {
        assert_eq!(number, 0);
        self.place.set(Some(place));
    }

    fn notify(&self, number: u16) {
        assert_eq!(number, 0);
        self.notified.set(self.notified.get() + 1);
    }

    fn order(&self) {
        match self.meanwhile.replace(Meanwhile::Nothing) {
            Meanwhile::Nothing => {}
            Meanwhile::Finishes => self.take().into_iter().for_each(|(head, _)| self.finish(head, 0)),
            Meanwhile::Sleeps => self.want_to_be_told(),
        }
    }

    fn interrupt_cause(&self) -> u32 {
        1
    }

    fn configuration(&self, _offset: u32) -> u8 {
        0
    }
}
