//! Layer 2: the hosted machine: Linux processes, one for each quaspace, without privilege (S-33, S-127).
//!
//! Program and kernel share a process's address space and its privilege level: there is no isolation between the
//! two, and the kernel trusts the program not to touch it. In return a call is a jump. The processes share the kernel (`hosts.rs`).
//!
//! ```text
//!   mov eax, nr          jmp stub ─► mov eax, nr; lea rcx, back; jmp [slot] ─► thread.dispatch ─► routine ─► jmp rcx
//!   syscall        ═►    syscall                                                                  (slow end in Rust)
//!   back:                back:
//! ```
//! The `syscall` of a site that was not patched raises SIGSYS (syscall user dispatch), whose handler goes on in the
//! same dispatch. This crate knows the host and nothing of programs, files or calls.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod call;
mod channels;
mod clock;
mod counts;
mod cpu;
mod debug;
mod entry;
mod foreign;
mod frames;
mod guards;
mod heap;
mod host;
mod hosts;
mod layout;
mod lines;
mod names;
mod patch;
mod sample_clock;
mod signals;
mod start;
mod stubs;
mod thread_code;
mod threads;
mod translation;
mod upcall;
mod windows;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use codestore::{CodeMemory, CodeStore};
use machine::{
    Channel, Channels, Claimed, Clock, Dma, Entered, Entry, FileEntry, Fragment, FrameSource, HeapLive, Held,
    KernelCell, LINES_MAX, Line, LineError, Lines, Machine, Memory, Nanos, NoFrames, Practice, Procedure, Processor,
    ProcessorNumber, Received, Rewritten, SampleClock, SampleEntry, SampleProcedure, Samples, ScheduleWords, Start,
    SwitchOut, Threads, Translation, Tte, TteId, Upcalls,
};
use machine_x86::{X86Tte, upcalls};
use synth::Template;

pub use clock::epoch_nanos;
pub use heap::Heap;
pub use machine_x86::{USER_LIMIT, UserCall, parameters as clock_parameters};
pub use start::{Booted, Parameters, boot, panic};
pub use thread_code::each_class;

use crate::channels::{HostChannels, LINES};
use crate::host::PollFd;
use crate::layout::{CODE, CODE_ALIAS, CODE_BYTES};
use crate::threads::HostedGround;
use crate::translation::HostTranslation;

/// How often a running program is interrupted to look at descriptors that somebody waits for.
const TICK_NS: u64 = 10_000_000;

/// The hosted machine. One value, made by [`boot`].
pub struct HostedMachine {
    channels: KernelCell<HostChannels>,
    trap_only: bool,
    /// Calls and sites are counted for the host tool.
    counts_calls: bool,
}

struct HostedCodeMemory;

impl CodeMemory for HostedCodeMemory {
    /// Both views are mapped whole at start; the host supplies pages at the first touch.
    fn extend(&self, _page: usize) -> Result<(), NoFrames> {
        Ok(())
    }

    fn serialize(&self) {
        machine_x86::serialize_in_process();
    }
}

// SAFETY: boot maps one memory file at both addresses, executable at the first and writable at the second (R2).
static STORE: CodeStore = unsafe { CodeStore::new(CODE, CODE_ALIAS, CODE_BYTES as usize, &HostedCodeMemory) };

static MEMORY_FD: AtomicI32 = AtomicI32::new(-1);

/// The memory file whose pages are the frames.
pub(crate) fn memory_fd() -> i32 {
    MEMORY_FD.load(Ordering::Relaxed)
}

pub(crate) fn set_memory_fd(fd: i32) {
    MEMORY_FD.store(fd, Ordering::Relaxed);
}

impl HostedMachine {
    fn start(parameters: &Parameters) -> &'static HostedMachine {
        let machine = Box::leak(Box::new(HostedMachine {
            channels: KernelCell::new(HostChannels::new(parameters.control_fd)),
            trap_only: parameters.trap_only,
            counts_calls: parameters.counts,
        }));
        MACHINE.store((&raw const *machine) as u64, Ordering::Release);
        machine
    }

    /// The store of synthesized code.
    pub fn code_store(&self) -> &'static CodeStore {
        &STORE
    }

    /// Devices get their frames from the kernel's pool.
    ///
    /// # Safety
    /// Each frame that the pool gives is one that nobody else uses until it is given back.
    pub unsafe fn use_frames_of(&self, pool: &'static dyn FrameSource) {
        frames::use_pool(pool);
    }

    /// The boot archive: the first bytes of memory.
    pub fn archive(&self, bytes: u64) -> &'static [u8] {
        // SAFETY: 1. The memory file begins with the archive. 2. Only the emulator takes its pages over, file by file,
        // and then no longer reads them here.
        unsafe { core::slice::from_raw_parts(layout::DIRECT_MAP as *const u8, bytes as usize) }
    }

    /// Leaves the boot stack for a program's first thread, and gives the lock back.
    ///
    /// # Safety
    /// Called once, at the end of boot.
    pub unsafe fn enter_first(&self, thread: &dyn Tte, entered: Entered) -> ! {
        start::catch_calls();
        self.keep_ticking();
        let first = thread.entries().sw_in_mmu;
        drop(entered);
        // SAFETY: the thread's entry switches address space, stack and slots before anything else.
        unsafe { core::arch::asm!("jmp {}", in(reg) first, options(noreturn)) }
    }

    /// An alarm came while a program ran, or is overdue: devices, then the kernel's own alarm.
    pub(crate) fn serve_alarm(&self, held: Held<'_>, kernel: &'static dyn Upcalls) {
        let (alarm, _) = cpu::timers();
        self.wait_for_devices(held, kernel, Some(0));
        if alarm.get().is_some_and(|at| at <= machine_x86::now()) {
            alarm.set(None);
            kernel.timer(held);
        }
        self.keep_alarms();
    }

    /// The signal came, which may be earlier than anybody wants it.
    pub(crate) fn alarm_came(&self, held: Held<'_>, kernel: &'static dyn Upcalls) {
        hosts::take_lost(|quaspace| kernel.quaspace_lost(held, quaspace));
        if self.next_alarm().is_some_and(|at| at > machine_x86::now()) {
            self.keep_alarms();
        } else {
            self.serve_alarm(held, kernel);
        }
    }

    fn next_alarm(&self) -> Option<Nanos> {
        let (alarm, tick) = cpu::timers();
        [alarm.get(), tick.get()].into_iter().flatten().min()
    }

    /// Sees that the signal comes to the host process that runs.
    pub(crate) fn keep_alarms(&self) {
        if let Some(at) = self.next_alarm() {
            hosts::set_alarm(at.0);
        }
        if cpu::timer_is_pending() {
            signals::retry_alarm(true);
        }
    }

    /// Tells the kernel if a descriptor that somebody waits for has news, at once or within `nanos`.
    fn wait_for_devices(&self, held: Held<'_>, kernel: &'static dyn Upcalls, nanos: Option<u64>) {
        let mut entries = [PollFd { fd: -1, events: 0, found: 0 }; LINES + LINES_MAX];
        let channels = self.channels.borrow().awaited(&mut entries);
        let count = channels + lines::awaited(&mut entries[channels..]);
        if count == 0 && nanos == Some(0) {
            self.keep_ticking();
            return;
        }
        // SAFETY: the host waits for descriptors, and nothing else happens.
        let found = unsafe { held.given_up(|| host::wait_for(&mut entries[..count], nanos)) };
        if found > 0 {
            let (channels, raised) = entries[..count].split_at(channels);
            if channels.iter().any(|entry| entry.found != 0) {
                self.channels.borrow_mut().forget_ready(channels);
                kernel.device();
            }
            lines::came(raised);
        }
        self.keep_ticking();
    }

    /// Ticks while somebody waits for a descriptor and programs run.
    fn keep_ticking(&self) {
        self.set_ticking(self.channels.borrow().is_awaited() || lines::is_awaited());
    }

    fn set_ticking(&self, on: bool) {
        let (_, tick) = cpu::timers();
        let at = Nanos(machine_x86::now().0 + TICK_NS);
        match tick.get() {
            _ if !on => tick.set(None),
            Some(soon) if soon < at && soon > machine_x86::now() => {}
            _ => {
                tick.set(Some(at));
                hosts::set_alarm(at.0);
            }
        }
    }

    pub(crate) fn with_channels<R>(&self, act: impl FnOnce(&mut HostChannels) -> R) -> R {
        let result = act(&mut self.channels.borrow_mut());
        self.keep_ticking();
        result
    }
}

machine_x86::memory!(HostedMachine, HostedGround);

impl Threads for HostedMachine {
    fn create_tte(&self, start: Start) -> Result<Box<dyn Tte>, NoFrames> {
        Ok(Box::new(X86Tte::<HostedGround>::create(start)?))
    }

    fn current_tte(&self) -> TteId {
        // SAFETY: the slot names the running thread's area.
        TteId(unsafe { (*threads::current()).id } as u32)
    }

    fn set_idle(&self, idle: &dyn Tte) {
        machine_x86::set_idle::<HostedGround>(idle);
    }

    fn ready_order(&self) -> Vec<TteId> {
        machine_x86::ready_order::<HostedGround>()
    }

    fn successor(&self) -> (TteId, Nanos) {
        machine_x86::successor::<HostedGround>()
    }

    fn switch_out(&self) -> SwitchOut {
        machine_x86::switch_out::<HostedGround>()
    }

    fn wait_for_interrupt(&self, held: Held<'_>) {
        let (alarm, _) = cpu::timers();
        let kernel = upcalls();
        let wait = alarm.get().map(|at| at.saturating_sub(machine_x86::now()).0);
        self.set_ticking(false);
        self.wait_for_devices(held, kernel, wait);
        if alarm.get().is_some_and(|at| at <= machine_x86::now()) {
            alarm.set(None);
            kernel.timer(held);
        }
        upcall::serve_timer(held, kernel);
    }

    fn serve_interrupts(&self, held: Held<'_>) {
        self.serve_alarm(held, upcalls());
    }
}

impl Lines for HostedMachine {
    fn claim(&self, line: Line, on: ProcessorNumber, procedure: Procedure) -> Result<Claimed, LineError> {
        let claimed = lines::claim(line, on, procedure);
        self.keep_ticking();
        claimed
    }
}

impl Processor for HostedMachine {
    fn number(&self) -> ProcessorNumber {
        cpu::number()
    }

    fn schedule_words(&self) -> &'static ScheduleWords {
        // SAFETY: the processor's record is never freed.
        unsafe { &(*cpu::cpu()).slots.words }
    }

    fn gauge(&self) -> &'static AtomicU64 {
        // SAFETY: the processor's record is never freed.
        unsafe { &(*cpu::cpu()).slots.gauge }
    }

    fn set_upcalls(&self, upcalls: &'static dyn Upcalls) {
        machine_x86::set_upcalls(upcalls);
    }

    fn power_off(&self) -> ! {
        if self.counts_calls {
            start::tell_counts();
        }
        host::exit(0)
    }

    fn rewritten_text(&self, visit: &mut dyn FnMut(Rewritten<'_>)) {
        patch::visit(visit);
    }

    fn random(&self) -> u64 {
        host::random_word()
    }

    fn feature_word(&self) -> u32 {
        cpu::feature_word()
    }

    fn vector_features(&self) -> u64 {
        // SAFETY: the slot is a word.
        unsafe { (*cpu::cpu()).slots.vector_mask }
    }

    fn vector_bytes(&self) -> usize {
        // SAFETY: the slot is a word.
        unsafe { (*cpu::cpu()).slots.vector_bytes }
    }

    fn open_user(&self) -> Option<Template> {
        None
    }

    fn upwards(&self) -> Option<Template> {
        Some(call::Upwards::template())
    }

    fn load_tag(&self) -> Option<Template> {
        Some(machine_x86::LoadTag::template())
    }

    fn leave(&self) -> Template {
        call::Leave::template()
    }

    fn leave_direct(&self) -> Template {
        call::LeaveDirect::template()
    }

    fn slow_call(&self) -> Entry<FileEntry> {
        <threads::HostedGround as machine_x86::Ground>::slow_call()
    }

    fn user_limit_word(&self) -> u64 {
        machine_x86::user_limit_word()
    }
}

impl Memory for HostedMachine {
    fn dma(&self, pages: usize) -> Result<Dma, NoFrames> {
        machine_x86::dma::<HostedGround>(pages)
    }

    fn reclaim(&self) -> usize {
        heap::trim()
    }

    fn heap_pages(&self) -> usize {
        heap::room()
    }

    fn heap_live(&self) -> HeapLive {
        heap::live()
    }

    fn new_translation(&self) -> Result<Arc<dyn Translation>, NoFrames> {
        Ok(Arc::new(HostTranslation::new()))
    }

    fn activate(&self, quaspace: Option<&dyn Translation>) {
        translation::enter(quaspace.map_or(0, |quaspace| quaspace.root().word()));
    }

    fn peek(&self, address: u64) -> Option<u64> {
        layout::KERNEL.contains(&address).then(|| host::peek(address)).flatten()
    }

    fn kernel_range(&self) -> core::ops::Range<u64> {
        layout::KERNEL
    }

    fn frame_address(&self, frame: machine::FrameNumber) -> u64 {
        layout::direct(frame.physical_address())
    }
}

impl Channels for HostedMachine {
    fn send(&self, channel: Channel, bytes: &[u8]) -> usize {
        self.with_channels(|channels| channels.send(channel, bytes))
    }

    fn receive(&self, channel: Channel, into: &mut [u8]) -> Received {
        self.with_channels(|channels| channels.receive(channel, into))
    }

    fn receivable(&self, channel: Channel) -> usize {
        self.with_channels(|channels| channels.receivable(channel))
    }

    fn sendable(&self, channel: Channel) -> usize {
        self.with_channels(|channels| channels.sendable(channel))
    }

    fn is_drained(&self, _channel: Channel) -> bool {
        true
    }
}

impl Clock for HostedMachine {
    fn now(&self) -> Nanos {
        machine_x86::now()
    }

    fn charge(&self) -> Nanos {
        machine_x86::time_of(machine_x86::charge::<HostedGround>())
    }

    fn time_of_counter(&self, counter: u64) -> Nanos {
        machine_x86::time_of(counter)
    }

    fn set_alarm(&self, at: Nanos) {
        let (alarm, _) = cpu::timers();
        alarm.set(Some(at));
        hosts::set_alarm(at.0);
    }
}

impl Samples for HostedMachine {
    fn sample_clock(&self) -> Option<SampleClock> {
        Some(sample_clock::find())
    }

    fn bind_sample_handler(&self, entry: Entry<SampleEntry>) {
        sample_clock::bind(entry);
    }
}

impl Practice for HostedMachine {
    fn raise_samples(&self, count: u32) {
        sample_clock::raise(count);
    }

    fn sample_procedure(&self) -> Option<(Fragment, Entry<SampleProcedure>)> {
        Some(sample_clock::procedure())
    }

    fn call_samples(&self, entry: Entry<SampleProcedure>, count: u32) {
        sample_clock::call(entry, count);
    }
}

impl Machine for HostedMachine {
    fn foreign(&self) -> Option<&'static dyn machine::Foreign> {
        foreign::trees()
    }

    fn practice(&self) -> Option<&dyn Practice> {
        Some(self)
    }
}

static MACHINE: AtomicU64 = AtomicU64::new(0);

/// The machine, for the entries, which get no argument.
pub(crate) fn the() -> &'static HostedMachine {
    // SAFETY: `boot` stores the leaked machine before the first signal can come.
    unsafe { &*(MACHINE.load(Ordering::Relaxed) as *const HostedMachine) }
}
