//! Random bytes of a virtio device, mixed into what the processor gives. A machine without the device goes without, and so does one
//! whose device lies.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use machine::{Claimed, KernelCell};
use virtio::Entropy;

use crate::devices::{Bus, Device};
use crate::threads::PcGround;

/// Bytes that are asked for at a time, and kept.
const STORE_BYTES: usize = 64;
/// How long boot waits for the first of them, in nanoseconds: a device that takes longer gives them later.
const PATIENCE_NS: u64 = 2_000_000;

struct Source {
    device: Entropy<Bus>,
    store: [u8; STORE_BYTES],
    /// Bytes of the store that nobody has got.
    left: usize,
    /// `None` while devices are polled.
    line: Option<Claimed>,
}

static SOURCE: KernelCell<Option<Source>> = KernelCell::new(None);
static GIVEN: AtomicU64 = AtomicU64::new(0);

/// Starts the device, and has its first bytes. Without memory or a line there is none.
pub fn start(device: Device, polls: bool) {
    let Ok((bus, line)) = device.open(polls, Arc::new(collect)) else { return };
    let Ok(mut device) = Entropy::start(bus, machine_x86::dma::<PcGround>) else { return };
    let mut store = [0; STORE_BYTES];
    let until = machine_x86::now().0 + PATIENCE_NS;
    let Ok(left) = device.fill(&mut store, || machine_x86::now().0 < until) else { return };
    *SOURCE.borrow_mut() = Some(Source { device, store, left, line });
}

/// What the device's line chains to: it has bytes.
fn collect() {
    let mut source = SOURCE.borrow_mut();
    let Some(own) = source.as_mut() else { return };
    match own.device.take(&mut own.store) {
        Ok(0) => {}
        Ok(count) => own.left = count,
        // Who wants bytes next finds out that it is broken, and gives it up.
        Err(_) => own.left = 0,
    }
}

/// Eight bytes of the device's, if it has given some; zeros otherwise. More are asked for when the store is empty.
pub fn word() -> u64 {
    let mut source = SOURCE.borrow_mut();
    let Some(own) = source.as_mut() else { return 0 };
    if own.left < 8 {
        if own.line.is_none() {
            // Nobody interrupts, so it is looked here.
            own.left = own.device.take(&mut own.store).unwrap_or(0);
        }
        if own.left < 8 && own.device.ask(STORE_BYTES).is_err() {
            *source = None;
            return 0;
        }
        if own.left < 8 {
            return 0;
        }
    }
    own.left -= 8;
    let mut word = [0; 8];
    let taken = &mut own.store[own.left..own.left + 8];
    word.copy_from_slice(taken);
    taken.fill(0);
    GIVEN.fetch_add(8, Ordering::Relaxed);
    u64::from_le_bytes(word)
}

/// Bytes that have gone into `Processor::random`.
pub fn given() -> u64 {
    GIVEN.load(Ordering::Relaxed)
}
