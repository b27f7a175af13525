//! The timer of the bench: a clock that stands until it is set, and what the pc's timer would be told.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use codestore::{Code, Maker};
use machine::{Fragment, Samples, TimerCode};
use synth::{Abs32, Draft, template};

use crate::bench::bench;

template! {
    /// In place of the counter.
    pub struct BenchTime { clock: Abs32 }
    "mov rax, qword ptr [{clock}]",
}

template! {
    /// In place of `sti` and `cli`, which programs may not use.
    pub struct BenchNothing {}
    "nop",
}

template! {
    /// The interrupt is the kernel's.
    pub struct BenchKernel { mark: Abs32 }
    "inc dword ptr [{mark}]",
}

/// What code and tests share.
#[derive(Default)]
pub struct Clock {
    pub now: AtomicU64,
    /// What the timer was set to; 0: it was not.
    pub count: AtomicU32,
    /// Interrupts left to the kernel.
    pub kernel: AtomicU32,
}

/// The entry that stands for the kernel's.
pub struct KernelEntry;

impl machine::Keeps<machine::TimerEntry> for KernelEntry {}

impl Clock {
    /// What a handler is made of; the code is the kernel's entry.
    pub fn code(&self) -> (TimerCode, Code<KernelEntry>) {
        let word = |address: u64| vec![Abs32(address).into()];
        let end = || bench().sample_clock().expect("the bench has one").end;
        let mut draft = Draft::new();
        BenchKernel { mark: Abs32(&raw const self.kernel as u64) }.append_to(&mut draft);
        end().append_to(&mut draft);
        let kernel = bench().store.publish("bench.timer", Maker::new("bench"), draft).expect("room for code");
        let [_, arm, ..] = machine_pc::timer_templates();
        let nothing = || Fragment { template: BenchNothing::template(), holes: vec![] };
        let code = TimerCode {
            now: Fragment { template: BenchTime::template(), holes: word(&raw const self.now as u64) },
            arm: Fragment { template: arm, holes: word(&raw const self.count as u64) },
            open: nothing(),
            close: nothing(),
            end: end(),
            kernel: kernel.entry().under(),
        };
        (code, kernel)
    }

    /// The same with the pc's own clock: to be looked at, not run.
    pub fn pc_code(&self) -> (TimerCode, Code<KernelEntry>) {
        let (code, kernel) = self.code();
        let [time, _, _, open, close] = machine_pc::timer_templates();
        let words = [&raw const self.now as u64, &raw const self.now as u64].map(|word| Abs32(word).into());
        let plain = |template| Fragment { template, holes: vec![] };
        let now = Fragment { template: time, holes: words.into() };
        (TimerCode { now, open: plain(open), close: plain(close), ..code }, kernel)
    }

    /// How often the kernel was asked, and what the timer was set to, since the last time.
    pub fn take(&self) -> (u32, u32) {
        (self.kernel.swap(0, Relaxed), self.count.swap(0, Relaxed))
    }
}
