//! A processor's record: slots that synthesized code reaches by their addresses. A processor of this machine is a set of host processes, of
//! which one has the baton.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering};

use machine::{LocalCell, LocalValue, Nanos, PROCESSORS_MAX, ProcessorNumber};
use machine_x86::{MANAGED_STATE, Slots, THREAD_AREA_BYTES};

use crate::counts::Counts;
use crate::sample_clock;
use crate::translation::PutOff;

/// Everything that belongs to one processor, which alone reaches it, without a lock. Synthesized code has the addresses of its fields
/// folded in.
#[repr(C)]
pub struct Cpu {
    pub slots: Slots,
    /// The end of the running thread's area: where traps build their record.
    pub stack_top: u64,
    /// The translation that is active, as an address; 0: none.
    pub root: u64,
    /// The host process that runs: who has the baton (`hosts.rs`).
    pub host: u64,
    /// The kernel stack that the next host process goes on with.
    pub handed_sp: u64,
    /// The last epoch that was given out: a page's mapping is there if it was made in its translation's epoch.
    pub epoch: u64,
    /// The timer's signal came while the kernel ran.
    pub timer_pending: u64,
    /// When the timer is set to go off.
    pub alarm: LocalValue<Option<Nanos>>,
    /// When to look at descriptors although programs compute; nobody waits for one: never.
    pub tick: LocalValue<Option<Nanos>>,
    /// A change of its mappings that is not made yet.
    pub put_off: LocalCell<PutOff>,
    pub samples: sample_clock::Words,
    /// What is told at the end with `counts=1`.
    pub counts: Counts,
}

impl Cpu {
    fn new() -> Cpu {
        Cpu {
            slots: Slots::new(),
            stack_top: 0,
            root: 0,
            host: 0,
            handed_sp: 0,
            epoch: 1,
            timer_pending: 0,
            alarm: LocalValue::new(None),
            tick: LocalValue::new(None),
            put_off: LocalCell::new(PutOff::nothing()),
            samples: sample_clock::Words::new(),
            counts: Counts::new(),
        }
    }
}

/// Stands in as a thread while boot runs, and as vector owner when the real one has gone: an area of a thread that does not exist, all
/// zeros at first, so its number is 0.
#[repr(C, align(32768))]
struct DummyArea([u8; THREAD_AREA_BYTES as usize]);

/// A record, and what is too large to be written at once.
#[repr(C)]
struct Processor {
    cpu: Cpu,
    dummy: DummyArea,
}

/// The records of the processors, zeros until each starts.
#[repr(transparent)]
pub struct Processors([UnsafeCell<MaybeUninit<Processor>>; PROCESSORS_MAX]);

// SAFETY: one host process of a processor has the baton; handlers of its signals only store whole words that the code below reads whole.
unsafe impl Sync for Processors {}

pub static PROCESSORS: Processors = Processors([const { UnsafeCell::new(MaybeUninit::zeroed()) }; PROCESSORS_MAX]);

machine::relies_on_one_processor!(
    "each processor has host processes of its own, whose `Own` page would say which it is"
);

fn this() -> *mut Processor {
    PROCESSORS.0[0].get().cast()
}

/// Which one runs this.
pub fn number() -> ProcessorNumber {
    let before = this() as usize - PROCESSORS.0[0].get() as usize;
    ProcessorNumber((before / size_of::<Processor>()) as u32)
}

/// The record of the processor that runs this.
pub fn cpu() -> *mut Cpu {
    this().cast()
}

/// The area that stands in for a thread's.
pub fn dummy_area() -> u64 {
    // SAFETY: the record is never freed; only the address is taken.
    unsafe { &raw const (*this()).dummy as u64 }
}

/// When the timer goes off, and when to look at descriptors.
pub fn timers() -> (&'static LocalValue<Option<Nanos>>, &'static LocalValue<Option<Nanos>>) {
    // SAFETY: the record is never freed.
    unsafe { (&(*cpu()).alarm, &(*cpu()).tick) }
}

/// The timer's signal came while the kernel ran, which has not looked yet.
pub fn timer_is_pending() -> bool {
    // SAFETY: the slot is a word; the handler only sets it.
    unsafe { (&raw const (*cpu()).timer_pending).read_volatile() != 0 }
}

/// The managed vector state that the host has switched on.
fn vector_features() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: CPUID.1:ECX.OSXSAVE was checked at start.
    unsafe { core::arch::asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") high, options(nomem, nostack)) };
    let on = (low as u64 | (high as u64) << 32) & MANAGED_STATE;
    if on & 0xE0 == 0xE0 { on } else { on & 0b111 }
}

/// Room for the vector state in a thread's area.
const VECTOR_BYTES_MAX: usize = 4096;

/// Bytes of an XSAVE image in the standard layout that holds the managed state. A virtual machine's monitor is asked by
/// each CPUID, which takes microseconds, so one tells for all state that the host has switched on, as long as that is
/// little enough to be true of the managed state.
fn vector_bytes() -> usize {
    let all = core::arch::x86_64::__cpuid_count(13, 0).ebx as usize;
    if all <= VECTOR_BYTES_MAX {
        return all.max(512 + 64);
    }
    let features = vector_features();
    let end = |bit: u32| {
        let leaf = core::arch::x86_64::__cpuid_count(13, bit);
        (leaf.eax + leaf.ebx) as usize
    };
    (2..63).filter(|bit| features & 1 << bit != 0).map(end).max().unwrap_or(0).max(512 + 64)
}

/// CPUID.1:EDX, which programs are told.
static FEATURES: AtomicU32 = AtomicU32::new(0);

/// CPUID.1:EDX, once [`measure`] has been called.
pub fn feature_word() -> u32 {
    FEATURES.load(Ordering::Relaxed)
}

/// Finds out what the processor has, for its record.
///
/// # Errors
/// What the kernel cannot do without.
pub fn measure() -> Result<(), &'static str> {
    // SAFETY: boot is alone, and nothing was in the record.
    unsafe { cpu().write(Cpu::new()) };
    let one = core::arch::x86_64::__cpuid(1);
    if one.ecx & 1 << 27 == 0 {
        return Err("a host that has switched XSAVE on");
    }
    if core::arch::x86_64::__cpuid_count(7, 0).ebx & 1 == 0 {
        return Err("a processor with FSGSBASE");
    }
    FEATURES.store(one.edx, Ordering::Relaxed);
    let (features, bytes) = (vector_features(), vector_bytes());
    if bytes > VECTOR_BYTES_MAX {
        return Err("a vector state of at most 4096 bytes");
    }
    // SAFETY: the slots are words; no thread runs yet.
    unsafe {
        (*cpu()).slots.manage_vectors(features, bytes);
    }
    Ok(())
}
