//! Devices that carry frames. Such a device is started when somebody wants it: a program without a network pays nothing for it.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use machine::{Arrived, Claimed, KernelCell, Link, Procedure, SumPlace};
use virtio::{Net, StartError};

use crate::devices::{self, Bus, Device};
use crate::threads::PcGround;

/// Frames that may have come and not been looked at, and that may be under way.
const BUFFERS: usize = 64;

/// The devices that nobody has started yet, in their order.
static FOUND: KernelCell<Vec<Device>> = KernelCell::new(Vec::new());

/// Keeps the devices that carry frames, until somebody wants one.
pub fn keep(found: &mut Vec<Device>) {
    while let Some(device) = devices::take(found, virtio::id::NET) {
        FOUND.borrow_mut().push(device);
    }
}

struct Carrier {
    device: KernelCell<Net<Bus>>,
    address: [u8; 6],
    mtu: u16,
    sums: bool,
    /// `None` while devices are polled.
    _line: Option<Claimed>,
    news: Arc<KernelCell<Option<Procedure>>>,
}

/// Starts the next device; `None` if there is none, or it cannot be driven.
pub fn next(polls: bool) -> Option<&'static dyn Link> {
    loop {
        let next = {
            let mut found = FOUND.borrow_mut();
            if found.is_empty() { None } else { Some(found.remove(0)) }
        };
        if let Ok(carrier) = start(next?, polls) {
            return Some(Box::leak(Box::new(carrier)));
        }
    }
}

fn start(device: Device, polls: bool) -> Result<Carrier, StartError> {
    let news: Arc<KernelCell<Option<Procedure>>> = Arc::new(KernelCell::new(None));
    let told = news.clone();
    let came = move || {
        let procedure = told.borrow().clone();
        procedure.into_iter().for_each(|procedure| procedure());
    };
    let (bus, line) = device.open(polls, Arc::new(came)).map_err(|_| StartError::Silent)?;
    let device = Net::start(bus, BUFFERS, machine_x86::dma::<PcGround>)?;
    let (address, mtu, sums) = (device.address(), device.mtu(), device.sums());
    Ok(Carrier { device: KernelCell::new(device), address, mtu, sums, _line: line, news })
}

impl Link for Carrier {
    fn address(&self) -> [u8; 6] {
        self.address
    }

    fn mtu(&self) -> u16 {
        self.mtu
    }

    fn sums(&self) -> bool {
        self.sums
    }

    fn receive(&self, into: &mut [u8]) -> Option<Arrived> {
        let frame = self.device.borrow_mut().receive(into).ok()??;
        Some(Arrived { bytes: frame.bytes, is_checked: frame.is_checked })
    }

    fn has_room(&self) -> bool {
        self.device.borrow_mut().has_room()
    }

    fn send(&self, frame: &[u8], sum: Option<SumPlace>) -> bool {
        self.device.borrow_mut().send(frame, sum).is_ok()
    }

    fn tell(&self) {
        self.device.borrow_mut().tell();
    }

    fn expect_news(&self, for_room: bool) -> bool {
        let mut device = self.device.borrow_mut();
        device.acknowledge();
        let has_room = for_room && device.expect_room();
        if !for_room {
            device.want_no_room();
        }
        device.expect_frames() || has_room
    }

    fn when_news(&self, procedure: Procedure) {
        *self.news.borrow_mut() = Some(procedure);
    }
}
