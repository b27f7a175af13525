//! Time: how fast the counter counts, and the date.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use core::arch::x86_64::__cpuid;
use core::cell::UnsafeCell;

use machine::Nanos;
use machine_x86::read_tsc;

use crate::apic;
use crate::layout::IMAGE_WINDOW;
use crate::registers::{in8, out8, write_msr};

/// Ticks of the processor's counter in a second, by the first that says so: the host's tool (0: it does not know), the processor,
/// the hypervisor, KVM's clock page, the interval timer; at last a timer of which hypervisors let a tick be a nanosecond.
pub fn counter_rate(told: u64) -> u64 {
    if told != 0 {
        return told;
    }
    let sources = [by_processor, by_hypervisor, by_kvm, by_interval_timer];
    sources.into_iter().find_map(|ask| ask()).unwrap_or_else(by_local_timer)
}

/// CPUID 15h (SDM vol. 2A): the crystal's rate, and the counter's ratio to it.
fn by_processor() -> Option<u64> {
    if __cpuid(0).eax < 0x15 {
        return None;
    }
    let ratio = __cpuid(0x15);
    let crystal = u64::from(ratio.ecx);
    let hertz = (crystal * u64::from(ratio.ebx)).checked_div(u64::from(ratio.eax))?;
    (hertz != 0).then_some(hertz)
}

/// The highest leaf of the hypervisor, if there is one, and its name.
fn hypervisor() -> Option<(u32, [u32; 3])> {
    const IS_GUEST: u32 = 1 << 31;
    if __cpuid(1).ecx & IS_GUEST == 0 {
        return None;
    }
    let first = __cpuid(0x4000_0000);
    Some((first.eax, [first.ebx, first.ecx, first.edx]))
}

/// QEMU makes the processor's instructions out of others (its accelerator TCG).
pub fn is_emulated() -> bool {
    hypervisor().is_some_and(|(_, name)| name == [b"TCGT", b"CGTC", b"GTCG"].map(|four| u32::from_le_bytes(*four)))
}

/// Leaf 40000010h, which several hypervisors have: kHz of the counter.
fn by_hypervisor() -> Option<u64> {
    const TIMING: u32 = 0x4000_0010;
    let (highest, _) = hypervisor()?;
    let kilohertz = (TIMING..0x4000_0100).contains(&highest).then(|| __cpuid(TIMING).eax)?;
    (kilohertz != 0).then(|| u64::from(kilohertz) * 1000)
}

/// What KVM writes (Linux, Documentation/virt/kvm/x86/msr.rst): the clock's record, and the date at which that clock began.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct KvmClock {
    version: u32,
    pad: u32,
    counter: u64,
    nanos: u64,
    multiplier: u32,
    shift: i8,
    flags: [u8; 3],
}

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct KvmDate {
    version: u32,
    seconds: u32,
    nanos: u32,
}

/// A place that the hypervisor writes into.
struct Shared<T>(UnsafeCell<T>);

// SAFETY: only boot looks at these places, on one processor.
unsafe impl<T> Sync for Shared<T> {}

static KVM_CLOCK: Shared<KvmClock> = Shared(UnsafeCell::new(KvmClock {
    version: 0,
    pad: 0,
    counter: 0,
    nanos: 0,
    multiplier: 0,
    shift: 0,
    flags: [0; 3],
}));
static KVM_DATE: Shared<KvmDate> = Shared(UnsafeCell::new(KvmDate { version: 0, seconds: 0, nanos: 0 }));

const KVM_DATE_REGISTER: u32 = 0x4B56_4D00;
const KVM_CLOCK_REGISTER: u32 = 0x4B56_4D01;

impl<T: Copy> Shared<T> {
    /// Has the hypervisor fill the place in, by the register that takes its address with `flags`.
    fn filled_by(&self, register: u32, flags: u64) -> T {
        let physical = self.0.get() as u64 - IMAGE_WINDOW;
        // SAFETY: 1. KVM says that it has the register. 2. It writes as many bytes as the record has, at once: the one processor
        // runs only afterwards. 3. The place is the image's own, behind the window.
        unsafe {
            write_msr(register, physical | flags);
            self.0.get().read_volatile()
        }
    }
}

/// KVM's clock as it is now, and no longer kept up.
fn kvm_clock() -> Option<KvmClock> {
    /// The registers of above (feature 3 of leaf 40000001h).
    const HAS_CLOCK: u32 = 1 << 3;
    let (_, name) = hypervisor()?;
    let is_kvm = name == [0x4B4D_564B, 0x564B_4D56, 0x4D];
    if !is_kvm || __cpuid(0x4000_0001).eax & HAS_CLOCK == 0 {
        return None;
    }
    const IS_ON: u64 = 1;
    let clock = KVM_CLOCK.filled_by(KVM_CLOCK_REGISTER, IS_ON);
    // SAFETY: 0 ends the updates.
    unsafe { write_msr(KVM_CLOCK_REGISTER, 0) };
    (clock.multiplier != 0 && clock.version & 1 == 0).then_some(clock)
}

impl KvmClock {
    /// Nanoseconds = ticks * 2^shift * multiplier / 2^32.
    fn hertz(&self) -> u64 {
        let scaled = (u128::from(Nanos::PER_SECOND) << 64) / u128::from(self.multiplier);
        (scaled >> (32 + i32::from(self.shift)).clamp(0, 127)) as u64
    }

    fn nanos_at(&self, counter: u64) -> u64 {
        let ticks = u128::from(counter.wrapping_sub(self.counter));
        let shifted = if self.shift < 0 { ticks >> -self.shift } else { ticks << self.shift };
        self.nanos.wrapping_add(((shifted * u128::from(self.multiplier)) >> 32) as u64)
    }
}

fn by_kvm() -> Option<u64> {
    kvm_clock().map(|clock| clock.hertz()).filter(|hertz| *hertz != 0)
}

/// Nanoseconds since 1970 by KVM, which tells the host's date to the nanosecond.
pub fn kvm_date() -> Option<u64> {
    let clock = kvm_clock()?;
    let date = KVM_DATE.filled_by(KVM_DATE_REGISTER, 0);
    let began = u64::from(date.seconds) * Nanos::PER_SECOND + u64::from(date.nanos);
    (date.seconds != 0 && date.version & 1 == 0).then(|| began + clock.nanos_at(read_tsc()))
}

/// Counts ticks while channel 2 of the interval timer (Intel 8254) counts 10 ms down; `None` where there is none.
fn by_interval_timer() -> Option<u64> {
    const TICKS_HZ: u64 = 1_193_182;
    const COUNT: u64 = TICKS_HZ / 100;
    /// Port B of the PC: gate of channel 2, its way to the speaker, its output.
    const PORT: u16 = 0x61;
    const GATE: u8 = 1;
    const SPEAKER: u8 = 2;
    const OUTPUT: u8 = 1 << 5;
    /// Channel 2, both bytes, mode 0: the output is low until the count is over.
    const ONCE: u8 = 0b1011_0000;
    // SAFETY: these ports are the timer's and its gate's on every PC, and lead nowhere on others; the speaker stays off.
    unsafe {
        let before = in8(PORT);
        out8(PORT, before & !(GATE | SPEAKER));
        out8(0x43, ONCE);
        out8(0x42, COUNT as u8);
        out8(0x42, (COUNT >> 8) as u8);
        out8(PORT, before & !SPEAKER | GATE);
        let start = read_tsc();
        let is_there = in8(PORT) & (OUTPUT | GATE) == GATE;
        let mut end = start;
        // No counter is so fast that it counts so far in 10 ms.
        while is_there && end - start < 1 << 30 && in8(PORT) & OUTPUT == 0 {
            end = read_tsc();
        }
        out8(PORT, before);
        (is_there && end - start < 1 << 30).then(|| (end - start) * TICKS_HZ / COUNT)
    }
}

/// Against the local APIC's timer, of which a tick is then taken for a nanosecond.
fn by_local_timer() -> u64 {
    const WINDOW_NS: u32 = 2_000_000;
    apic::count_down(u32::MAX);
    let first = apic::timer_count();
    let start = read_tsc();
    while first.wrapping_sub(apic::timer_count()) < WINDOW_NS {
        core::hint::spin_loop();
    }
    let ticks = read_tsc() - start;
    apic::count_down(0);
    ticks * (Nanos::PER_SECOND / WINDOW_NS as u64)
}

/// Seconds since 1970 from the CMOS clock (Motorola MC146818, BCD or binary), UTC.
pub fn cmos_seconds() -> u64 {
    let read = |register: u8| {
        // SAFETY: ports 0x70/0x71 are the CMOS clock on every PC; reading registers 0..=11 has no effect.
        unsafe {
            out8(0x70, register);
            in8(0x71)
        }
    };
    let sample = || [0, 2, 4, 7, 8, 9].map(read);
    // Two equal samples in a row are not torn by an update; a missing clock reads 0xFF at once.
    let mut values = sample();
    for _ in 0..100 {
        let again = sample();
        if again == values {
            break;
        }
        values = again;
    }
    let status = read(11);
    let number =
        |value: u8| if status & 4 == 0 { (value & 15) as u64 + (value >> 4) as u64 * 10 } else { value as u64 };
    // Where the clock counts to twelve, the hour's highest bit means the afternoon.
    const COUNTS_TO_24: u8 = 2;
    let is_afternoon = status & COUNTS_TO_24 == 0 && values[2] & 0x80 != 0;
    values[2] &= 0x7F;
    let [second, minute, mut hour, day, month, year] = values.map(number);
    if status & COUNTS_TO_24 == 0 {
        hour = hour % 12 + u64::from(is_afternoon) * 12;
    }
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return 0;
    }
    days_from_civil(2000 + year % 100, month, day) * 86_400 + hour * 3_600 + minute * 60 + second
}

/// Days from 1970-01-01 to a Gregorian date.
fn days_from_civil(year: u64, month: u64, day: u64) -> u64 {
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    const BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    (year - 1970) * 365 + leaps(year - 1) - leaps(1969)
        + BEFORE[month as usize - 1]
        + u64::from(leap && month > 2)
        + day
        - 1
}
