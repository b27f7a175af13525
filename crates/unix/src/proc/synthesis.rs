//! /proc/synthesis: the kernel's gauges, and the code it has written for itself.

use alloc::vec::Vec;
use core::fmt::Write;
use core::sync::atomic::Ordering;

use abi::Errno;
use codestore::Birth;
use quaject::Class;

use super::text::{Lines, written};
use super::tree::{Entry, What, Whole, file};
use super::{interrupts, pumps};
use crate::emulator::Unix;

pub const ENTRIES: &[Entry<Whole>] = &[
    file("code", code),
    file("gauges", gauges),
    file("quajects", quajects),
    #[cfg(feature = "stages")]
    file("stages", stages),
    #[cfg(feature = "bounds")]
    file("bounds", bounds),
    #[cfg(feature = "failing")]
    Entry { name: "failing", mode: 0o600, what: What::Setting(super::failing::show, super::failing::command) },
    Entry { name: "interrupts", mode: 0o600, what: What::Setting(interrupts::show, interrupts::command) },
    Entry { name: "pumps", mode: 0o666, what: What::Setting(pumps::show, pumps::command) },
];

fn gauges(unix: &'static Unix, _: &Whole) -> Result<Vec<u8>, Errno> {
    // Frames that the machine keeps for later use are free frames to whoever looks for a leak.
    unix.machine.reclaim();
    let heap = unix.machine.heap_live();
    written(format_args!(
        "free_frames {}\ntotal_frames {}\ncode_bytes {}\ncode_routines {}\nswitches {}\npreemptions {}\nready {}\ntasks {}\n\
         processes {}\nthreads {}\nheap_bytes {}\nheap_blocks {}\nheap_pages {}\ndevice_entropy_bytes {}\n\
         underruns {}\n",
        unix.pool.free_frames(),
        unix.pool.total_frames(),
        unix.store.live_bytes(),
        unix.store.live_routines(),
        unix.scheduler.switch_count(),
        unix.scheduler.preemption_count(),
        unix.scheduler.ready_count(),
        unix.tasks.task_count(),
        unix.tasks.process_count(),
        unix.scheduler.thread_count(),
        heap.bytes,
        heap.blocks,
        heap.pages,
        unix.machine.device_entropy(),
        unix.playback.underruns()
    ))
}

/// What the call before the open that asks took: a line for each figure.
#[cfg(feature = "stages")]
fn stages(_: &'static Unix, _: &Whole) -> Result<Vec<u8>, Errno> {
    let counts = machine::stages::before_last();
    let mut text = Lines::default();
    let _ = writeln!(
        text,
        "call {}\nroutines {}\nbytes {}\ncounting {}",
        counts.call, counts.routines, counts.code_bytes, counts.counting
    );
    for (name, ticks) in machine::stages::NAMES.into_iter().zip(counts.ticks) {
        let _ = writeln!(text, "{name} {ticks}");
    }
    text.whole()
}

/// A line for each way into the kernel that was gone: how often, and the ticks of the longest stretch without a safe point.
#[cfg(feature = "bounds")]
fn bounds(_: &'static Unix, _: &Whole) -> Result<Vec<u8>, Errno> {
    machine::stretch::interrupted_by(bounds_measured)
}

#[cfg(feature = "bounds")]
fn bounds_measured() -> Result<Vec<u8>, Errno> {
    let mut text = Lines::default();
    for measured in machine::stretch::measured() {
        let name =
            measured.cause.map_or_else(|other| other, |number| abi::nr::name(number).unwrap_or("(unknown call)"));
        let _ = writeln!(text, "{} {} {name}", measured.longest, measured.count);
    }
    text.whole()
}

/// One paragraph for each class of quajects: what it declares, and its gauges.
fn quajects(unix: &'static Unix, _: &Whole) -> Result<Vec<u8>, Errno> {
    let mut text = Lines::default();
    unix.each_class(|class| describe(&mut text, class));
    text.whole()
}

fn describe(text: &mut Lines, class: &Class) {
    let gauges = &class.gauges;
    let [made, routines, revived, refused, planned, saved] =
        [&gauges.made, &gauges.routines, &gauges.revived, &gauges.refused, &gauges.planned, &gauges.bytes_saved]
            .map(|gauge| gauge.load(Ordering::Relaxed));
    let _ = writeln!(
        text,
        "{} by {}: made {made} routines {routines} revived {revived} refused {refused} planned {planned} bytes_saved {saved}",
        class.name, class.made_by
    );
    for field in class.data {
        let _ = writeln!(text, "  data {} at {} bytes {}", field.name, field.offset, field.bytes);
    }
    for entry in class.callentries {
        let _ = write!(text, "  callentry {} ({})", entry.name, entry.contract);
        entry.routines.iter().for_each(|routine| _ = write!(text, " {routine}"));
        let _ = writeln!(text);
    }
    for callout in class.callouts {
        let _ = writeln!(text, "  callout {callout}");
    }
    for callback in class.callbacks {
        let _ = writeln!(text, "  callback {} unconnected {}", callback.name, callback.default);
    }
}

/// One line for each live routine: address, bytes, name, maker. Below it, the templates it was made of and what
/// their holes were filled with.
fn code(unix: &'static Unix, _: &Whole) -> Result<Vec<u8>, Errno> {
    let mut text = Lines::default();
    unix.store.each_birth(|birth, bytes| certificate(&mut text, birth, bytes));
    text.whole()
}

fn certificate(text: &mut Lines, birth: &Birth, code: &[u8]) {
    let _ = writeln!(text, "{:016x} {} {} {}", birth.address, birth.bytes, birth.name, birth.maker);
    for origin in birth.origins.iter() {
        let _ = writeln!(text, "  {} at {} bytes {}", origin.shape.name, origin.offset, origin.bytes);
        for (name, hole) in origin.holes(birth.address, code) {
            let _ = writeln!(text, "    {name} {:?} {:#x}", hole.kind, hole.value);
        }
    }
}
