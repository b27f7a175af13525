//! What ACPI's tables say of this machine: windows of virtio devices, PCI, I/O APICs, and how it is switched off.
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

use crate::layout::direct;
use crate::registers::{in16, out8, out16};
use crate::{apic, pci};
use machine::Line;

/// Virtio devices over memory-mapped registers call themselves so in ACPI.
const VIRTIO_WINDOW: &[u8] = b"LNRO0005";
/// So do host bridges of PCI Express, where they are not named by a number; firmware that gives functions no windows does that.
const PCI_EXPRESS: &[u8] = b"PNP0A08";
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

/// Motherboard resources, which the window of configuration spaces must be among (PCI Firmware specification 3.0, 4.1.2).
const MOTHERBOARD: &[u8] = b"PNP0C02";

/// Where devices are to be looked for.
#[derive(Default)]
pub struct Firmware {
    pub windows: alloc::vec::Vec<Window>,
    pci_window: Option<firmware::PciWindow>,
    /// Memory that the PCI bus hears.
    pci_room: Option<core::ops::Range<u64>>,
}

impl Firmware {
    /// PCI, if there is one. Without a window of memory it is reached by ports, as all PCs can.
    pub fn pci_root(&self) -> Option<pci::Root> {
        let window = self.pci_window.filter(|window| window.physical < SEEN && window.end() <= SEEN);
        let way = match window {
            Some(window) => pci::Way::Memory { physical: window.physical, last_bus: window.last_bus },
            None if pci::has_ports() => pci::Way::Ports,
            None => return None,
        };
        Some(pci::Root { way, room: self.pci_room.clone().unwrap_or_default() })
    }
}

/// Reads the tables that `root` leads to. What they say of I/O APICs and of switching off is kept; the rest is
/// returned.
pub fn read(root: u64) -> Firmware {
    let Some(tables) = (root != 0).then(|| Tables::find(root, &Direct)).flatten() else { return Default::default() };
    let declared = tables.declarations();
    if let Some(power_off) = tables.power_off(&declared) {
        POWER_OFF.store(Box::into_raw(Box::new(power_off)), Ordering::Release);
    }
    for found in tables.io_apics().filter(|found| found.physical < SEEN) {
        apic::add_io(found.physical, found.first);
    }
    let named = |id: &'static [u8]| declared.devices.iter().filter(move |device| device.id == id);
    let pci_room = named(PCI_EXPRESS).find_map(|device| room(device.resources));
    // QEMU's `microvm` has no table for it.
    let reserved = || pci_room.as_ref().and_then(|_| named(MOTHERBOARD).find_map(|device| buses(device.resources)));
    Firmware {
        windows: named(VIRTIO_WINDOW).filter_map(|device| window(device.resources)).collect(),
        pci_window: tables.pci_windows().find(|window| window.first_bus == 0).or_else(reserved),
        pci_room,
    }
}

/// A window of configuration spaces among the resources: 1 MiB for each bus.
fn buses(uses: &[u8]) -> Option<firmware::PciWindow> {
    resources(uses).find_map(|resource| match resource {
        Resource::Window { physical, bytes } if physical & 0xF_FFFF == 0 && bytes & 0xF_FFFF == 0 => {
            let last_bus = u8::try_from((bytes >> 20).checked_sub(1)?).ok()?;
            Some(firmware::PciWindow { physical, first_bus: 0, last_bus })
        }
        _ => None,
    })
}

/// The largest range of memory below 4 GB among the resources.
fn room(uses: &[u8]) -> Option<core::ops::Range<u64>> {
    let ranges = resources(uses).filter_map(|resource| match resource {
        Resource::Window { physical, bytes } => Some(physical..physical.checked_add(bytes)?),
        Resource::Interrupt { .. } => None,
    });
    ranges.filter(|range| range.start != 0 && range.end <= SEEN).max_by_key(|range| range.end - range.start)
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
