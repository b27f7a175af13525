//! Devices that share folders of the host: carriers of their messages.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use machine::{Claimed, Courier, CourierLost, KernelCell, Procedure};
use virtio::{Share, StartError};

use crate::devices::{self, Bus, Device};
use crate::threads::PcGround;

/// Messages that may be under way to one device.
const SLOTS: usize = 8;
/// Pages of a message: 64 KiB of data, and what stands before them.
const PAGES: usize = 17;

/// The devices that nobody has started yet, in their order.
static FOUND: KernelCell<Vec<Device>> = KernelCell::new(Vec::new());

/// Keeps the devices that share folders, until somebody wants one.
pub fn keep(found: &mut Vec<Device>) {
    while let Some(device) = devices::take(found, virtio::id::SHARE) {
        FOUND.borrow_mut().push(device);
    }
}

struct Shared {
    device: KernelCell<Share<Bus>>,
    label: Vec<u8>,
    slots: usize,
    room: usize,
    /// `None` while devices are polled.
    _line: Option<Claimed>,
    answered: Arc<KernelCell<Option<Procedure>>>,
}

/// Starts the next device; `None` if there is none, or it cannot be driven.
pub fn next(polls: bool) -> Option<&'static dyn Courier> {
    loop {
        let next = {
            let mut found = FOUND.borrow_mut();
            if found.is_empty() { None } else { Some(found.remove(0)) }
        };
        if let Ok(shared) = start(next?, polls) {
            return Some(Box::leak(Box::new(shared)));
        }
    }
}

fn start(device: Device, polls: bool) -> Result<Shared, StartError> {
    let answered: Arc<KernelCell<Option<Procedure>>> = Arc::new(KernelCell::new(None));
    let news = answered.clone();
    let came = move || {
        let procedure = news.borrow().clone();
        procedure.into_iter().for_each(|procedure| procedure());
    };
    let (bus, line) = device.open(polls, Arc::new(came)).map_err(|_| StartError::Silent)?;
    let device = Share::start(bus, SLOTS, PAGES, machine_x86::dma::<PcGround>)?;
    let (label, slots, room) = (device.label().to_vec(), device.slots(), device.room());
    Ok(Shared { device: KernelCell::new(device), label, slots, room, _line: line, answered })
}

impl Courier for Shared {
    fn label(&self) -> &[u8] {
        &self.label
    }

    fn slots(&self) -> usize {
        self.slots
    }

    fn room(&self) -> usize {
        self.room
    }

    fn write(&self, slot: usize, offset: usize, bytes: &[u8]) {
        self.device.borrow().write(slot, offset, bytes);
    }

    fn read(&self, slot: usize, offset: usize, into: &mut [u8]) {
        self.device.borrow().read(slot, offset, into);
    }

    fn send(&self, slot: usize, bytes: usize) -> Result<(), CourierLost> {
        self.device.borrow_mut().send(slot, bytes).map_err(|_| CourierLost)
    }

    fn next_answer(&self) -> Result<Option<(usize, usize)>, CourierLost> {
        self.device.borrow_mut().next_answer().map_err(|_| CourierLost)
    }

    fn when_answered(&self, procedure: Procedure) {
        *self.answered.borrow_mut() = Some(procedure);
    }
}
