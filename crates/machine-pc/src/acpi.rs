//! What ACPI's tables say of this machine: windows of virtio devices, I/O APICs, and how it is switched off.
//!
//! Read once, at boot, if the loader names the tables: at the end of a kernel's life there may be no memory for it.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use alloc::boxed::Box;
use core::sync::atomic::{AtomicPtr, Ordering};

use firmware::resources::{Resource, Trigger, resources};
use firmware::{PowerOff, Register, Tables, Write};

use crate::apic;
use crate::layout::direct;
use crate::registers::{in16, out8, out16};
use machine::Line;

/// Virtio devices over memory-mapped registers call themselves so in ACPI.
const VIRTIO_WINDOW: &[u8] = b"LNRO0005";
/// The direct map reaches all below.
const SEEN: u64 = 4 << 30;

/// Physical memory through the direct map.
struct Direct;

impl<'a> firmware::Memory<'a> for Direct {
    fn bytes(&self, physical: u64, count: usize) -> Option<&'a [u8]> {
        let end = physical.checked_add(count as u64)?;
        // SAFETY: 1. The direct map has the first 4 GB. 2. Tables lie in memory that the loader did not call usable, or in the
        // first megabyte: nobody writes there.
        (physical != 0 && end <= SEEN)
            .then(|| unsafe { core::slice::from_raw_parts(direct(physical) as *const u8, count) })
    }
}

/// A device's window and its interrupt.
pub struct Window {
    pub physical: u64,
    pub line: Line,
}

static POWER_OFF: AtomicPtr<PowerOff> = AtomicPtr::new(core::ptr::null_mut());

/// Reads the tables that `root` leads to. What they say of I/O APICs and of switching off is kept; the windows of virtio
/// devices are returned.
pub fn read(root: u64) -> alloc::vec::Vec<Window> {
    let Some(tables) = (root != 0).then(|| Tables::find(root, &Direct)).flatten() else { return Default::default() };
    let declared = tables.declarations();
    if let Some(power_off) = tables.power_off(&declared) {
        POWER_OFF.store(Box::into_raw(Box::new(power_off)), Ordering::Release);
    }
    for found in tables.io_apics().filter(|found| found.physical < SEEN) {
        apic::add_io(found.physical, found.first);
    }
    let devices = declared.devices.iter().filter(|device| device.id == VIRTIO_WINDOW);
    devices.filter_map(|device| window(device.resources)).collect()
}

fn window(uses: &[u8]) -> Option<Window> {
    let mut at = None;
    let mut line = None;
    for resource in resources(uses) {
        match resource {
            Resource::Window { physical, .. } => at = at.or(Some(physical)),
            Resource::Interrupt { line: number, trigger: Trigger { is_level, is_low } } => {
                line = line.or(Some(Line::Wired { number, trigger: machine::Trigger { is_level, is_low } }));
            }
        }
    }
    Some(Window { physical: at.filter(|physical| *physical < SEEN)?, line: line? })
}

/// Switches the machine off, if ACPI said how. Comes back if that is not so, or not true.
pub fn power_off() {
    // SAFETY: what is stored there is never changed or freed.
    let Some(how) = (unsafe { POWER_OFF.load(Ordering::Acquire).as_ref() }) else { return };
    if let (Some((port, value)), Some(Write::Word(Register::Port(control), _))) = (how.enable, how.writes[0]) {
        // SAFETY: the tables name the ports for this (ACPI 6.5, 4.8.3.2.1): the firmware gives the registers away, soon.
        unsafe {
            if in16(control) & 1 == 0 {
                out8(port, value);
                for _ in 0..100_000 {
                    if in16(control) & 1 != 0 {
                        break;
                    }
                }
            }
        }
    }
    how.writes.into_iter().flatten().for_each(write);
}

fn write(what: Write) {
    // SAFETY: the tables say that these registers switch the machine off; the direct map has those in memory (checked).
    unsafe {
        match what {
            Write::Byte(Register::Port(port), value) => out8(port, value),
            Write::Word(Register::Port(port), value) => out16(port, value),
            Write::Byte(Register::Memory(at), value) if at < SEEN => (direct(at) as *mut u8).write_volatile(value),
            Write::Word(Register::Memory(at), value) if at < SEEN - 1 => (direct(at) as *mut u16).write_volatile(value),
            Write::Byte(..) | Write::Word(..) => {}
        }
    }
}
