//! Layer 2: the pc machine: x86-64 with page tables, APICs and virtio, booted through PVH.
//!
//! This crate knows hardware and nothing of programs, files or calls; it meets the kernel in the
//! traits of `machine`. It is one of the few crates with `unsafe` code.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]
#![no_std]

extern crate alloc;

mod acpi;
mod apic;
mod batch;
mod boot;
mod call;
mod clock;
mod cpu;
mod devices;
mod entropy;
mod frames;
mod handover;
mod heap;
mod layout;
mod leaf;
mod lines;
mod nesting;
mod net;
mod paging;
mod pci;
mod pvh;
mod ram;
mod receive;
mod registers;
mod sample_clock;
mod shares;
mod sound;
mod start;
mod thread_code;
mod threads;
mod timer;
mod transmit;
mod trap;
mod upcall;
mod virtio_console;
mod virtqueue;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use codestore::{CodeMemory, CodeStore};
use machine::{
    Channel, Channels, Claimed, Clock, Courier, DeviceEntry, Dma, Entered, Entry, FileEntry, FrameSource, HeapLive,
    Held, KernelCell, KernelOnce, Line, LineError, Lines, Link, Machine, Memory, Nanos, NoFrames, Player, Practice,
    Procedure, Processor, ProcessorNumber, ReceiveCode, Received, SampleClock, SampleEntry, Samples, ScheduleWords,
    SendCode, Sleeping, Start, SwitchOut, Threads, TimerCode, TimerEntry, Translation, Tte, TteId, Upcalls,
};
use machine_x86::X86Tte;
use synth::{Target, Template};

pub use call::templates as call_templates;
pub use clock::{cmos_seconds, kvm_date};
pub use handover::{synthesize as handover_codes, templates as handover_templates};
pub use heap::Heap;
pub use machine_x86::{USER_LIMIT, UserCall, parameters as clock_parameters};
pub use pvh::BootInfo;
pub use receive::{receive_code, templates as receive_templates};
pub use sample_clock::templates as sample_templates;
pub use start::{Booted, boot, panic, say_early};
pub use thread_code::{each_class, templates as thread_templates};
pub use timer::templates as timer_templates;
pub use transmit::{FACTS as TRANSMIT_FACTS, send_code, templates as transmit_templates};
pub use virtqueue::{QueueWords, SIZE as QUEUE_SIZE};

use crate::cpu::Features;
use crate::frames::{FRAMES, TABLE_FRAMES};
use crate::layout::{CODE, CODE_BYTES};
use crate::paging::{NO_EXECUTE, PcTranslation, WRITE, map_kernel};
use crate::threads::PcGround;
use crate::virtio_console::Console;

/// The pc. One value, made by [`boot`].
pub struct PcMachine {
    features: Features,
    console: KernelCell<Option<Console>>,
    /// `None` while devices are polled.
    console_line: Option<Claimed>,
    random: KernelCell<u64>,
    polls: bool,
    /// The word `space=N` of the command line.
    access_space: u32,
    handover: KernelOnce<handover::HandoverCodes>,
}

/// The writable alias of the code store lies right behind its executable mapping.
const CODE_ALIAS: u64 = CODE + CODE_BYTES;

struct PcCodeMemory;

impl CodeMemory for PcCodeMemory {
    fn extend(&self, page: usize) -> Result<(), NoFrames> {
        let physical = FRAMES.take()?.physical_address();
        let offset = page as u64 * 4096;
        // SAFETY: 1. The frame is fresh. 2. The executable mapping is not writable, the alias not executable (R2).
        unsafe {
            map_kernel(CODE_ALIAS + offset, physical, WRITE | NO_EXECUTE, &FRAMES)?;
            map_kernel(CODE + offset, physical, 0, &FRAMES)
        }
    }

    fn serialize(&self) {
        machine_x86::serialize();
    }
}

// SAFETY: `PcCodeMemory::extend` maps one frame at both addresses; nobody else knows the ranges.
static STORE: CodeStore = unsafe { CodeStore::new(CODE, CODE_ALIAS, CODE_BYTES as usize, &PcCodeMemory) };

impl PcMachine {
    /// The store of synthesized code.
    pub fn code_store(&self) -> &'static CodeStore {
        &STORE
    }

    pub fn smap(&self) -> bool {
        self.features.smap
    }

    /// The machine takes its frames from the kernel's pool from now on; returns physical bytes that boot did not
    /// use after all.
    ///
    /// # Safety
    /// Each frame that the pool gives is RAM that nobody else uses until it is given back.
    pub unsafe fn use_frames_of(&self, pool: &'static dyn FrameSource) -> machine::Frames {
        FRAMES.hand_over(pool)
    }

    /// The boot archive in the direct map; empty if the loader left none.
    pub fn archive(&self, info: &BootInfo) -> &'static [u8] {
        let range = info.archive.clone().unwrap_or(0..0);
        // SAFETY: 1. The loader said that the module is here; boot kept its frames out of every allocator. 2. Only the
        // emulator takes its pages over, file by file, and then no longer reads them here.
        unsafe {
            core::slice::from_raw_parts(layout::direct(range.start) as *const u8, (range.end - range.start) as usize)
        }
    }

    /// Leaves the boot stack for a program's first thread, and gives the lock back.
    ///
    /// # Safety
    /// Called once, at the end of boot; `root` is the thread's quaspace.
    pub unsafe fn enter_first(&self, thread: &dyn Tte, entered: Entered) -> ! {
        let first = thread.entries().sw_in_mmu;
        drop(entered);
        // SAFETY: the thread's entry switches address space, stack and slots before anything else.
        unsafe { core::arch::asm!("jmp {}", in(reg) first, options(noreturn)) }
    }

    /// What the processor gives, or its counter.
    fn processor_random(&self) -> u64 {
        if self.features.rdrand {
            let (mut value, mut good): (u64, u8) = (0, 0);
            for _ in 0..10 {
                // SAFETY: CPUID reports RDRAND.
                unsafe { core::arch::asm!("rdrand {}", "setc {}", out(reg) value, out(reg_byte) good) };
                if good != 0 {
                    return value;
                }
            }
            return value;
        }
        // SplitMix64 over the counter: no secret, but no two programs get the same bytes.
        let mut state = self.random.borrow_mut();
        *state = state.wrapping_add(machine_x86::read_tsc() | 1);
        let mut value = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        value ^ value >> 31
    }

    fn with_console<R>(&self, default: R, act: impl FnOnce(&mut Console) -> R) -> R {
        match self.console.borrow_mut().as_mut() {
            Some(console) => act(console),
            None => default,
        }
    }
}

machine_x86::memory!(PcMachine, PcGround);

impl Threads for PcMachine {
    fn create_tte(&self, start: Start) -> Result<Box<dyn Tte>, NoFrames> {
        Ok(Box::new(X86Tte::<PcGround>::create(start)?))
    }

    fn current_tte(&self) -> TteId {
        // SAFETY: every thread runs on the stack of its own area.
        TteId(unsafe { (*machine_x86::current_by_stack()).id } as u32)
    }

    fn set_idle(&self, idle: &dyn Tte) {
        machine_x86::set_idle::<PcGround>(idle);
    }

    fn ready_order(&self) -> Vec<TteId> {
        machine_x86::ready_order::<PcGround>()
    }

    fn sleeper(&self, word: u64) -> TteId {
        machine_x86::sleeper::<PcGround>(word)
    }

    fn forget_queue(&self, sleeper: u64) {
        machine_x86::forget_queue(sleeper);
    }

    fn successor(&self) -> (TteId, Nanos) {
        machine_x86::successor::<PcGround>()
    }

    fn switch_out(&self) -> SwitchOut {
        nesting::close();
        machine_x86::switch_out::<PcGround>()
    }

    fn wait_for_interrupt(&self, held: Held<'_>) {
        // SAFETY: 1. Only the idle thread comes here; `sti; hlt` cannot miss an interrupt between the two. 2. Nothing but interrupts
        // comes in between.
        unsafe { held.given_up(|| core::arch::asm!("sti", "hlt", "cli")) };
    }

    fn serve_interrupts(&self, held: Held<'_>) {
        let was_open = nesting::suspend();
        // SAFETY: as above; interrupts come in behind the instruction that follows `sti`.
        unsafe { held.given_up(|| core::arch::asm!("sti", "nop", "cli")) };
        if was_open {
            nesting::open();
        }
    }
}

impl Lines for PcMachine {
    fn claim(&self, line: Line, on: ProcessorNumber, procedure: Procedure) -> Result<Claimed, LineError> {
        lines::claim(line, on, procedure)
    }
}

impl Processor for PcMachine {
    fn number(&self) -> ProcessorNumber {
        cpu::number()
    }

    fn schedule_words(&self) -> &'static ScheduleWords {
        // SAFETY: the processor's record is never freed.
        unsafe { &(*cpu::this()).slots.words }
    }

    fn gauge(&self) -> &'static AtomicU64 {
        // SAFETY: the processor's record is never freed.
        unsafe { &(*cpu::this()).slots.gauge }
    }

    fn set_upcalls(&self, upcalls: &'static dyn Upcalls) {
        machine_x86::set_upcalls(upcalls);
    }

    fn between_interrupts(&self, act: &mut dyn FnMut()) {
        nesting::between_interrupts(act);
    }

    fn ask_for_chained(&self) {
        apic::ask_for_chained();
    }

    fn facts(&self) -> &'static [synth::Fact] {
        transmit::FACTS
    }

    fn power_off(&self) -> ! {
        start::power_off()
    }

    fn random(&self) -> u64 {
        self.processor_random() ^ entropy::word()
    }

    fn device_entropy(&self) -> u64 {
        entropy::given()
    }

    fn feature_word(&self) -> u32 {
        core::arch::x86_64::__cpuid(1).edx
    }

    fn vector_features(&self) -> u64 {
        // SAFETY: the processor's record lives as long as the machine.
        unsafe { (*cpu::this()).slots.vector_mask }
    }

    fn vector_bytes(&self) -> usize {
        self.features.xsave_bytes
    }

    fn open_user(&self) -> Option<Template> {
        self.features.smap.then(call::OpenUser::template)
    }

    fn load_tag(&self) -> Option<Template> {
        Some(machine_x86::LoadTag::template())
    }

    fn close_user(&self) -> Option<Template> {
        self.features.smap.then(call::CloseUser::template)
    }

    fn load_quaspace(&self) -> Option<Template> {
        Some(machine_x86::LoadQuaspace::template())
    }

    fn offer_call(&self, number: usize, entry: Entry<FileEntry>) {
        machine_x86::offer_call::<PcGround>(number, entry);
    }

    fn leave_direct(&self) -> Template {
        call::LeaveDirect::template()
    }

    fn leave_whole(&self) -> Option<Template> {
        Some(call::LeaveWhole::template())
    }

    fn leave(&self) -> Template {
        call::Leave::template()
    }

    fn slow_call(&self) -> Entry<FileEntry> {
        <PcGround as machine_x86::Ground>::slow_call()
    }

    fn sleeping(&self) -> Option<Sleeping> {
        self.handover.get().map(handover::HandoverCodes::entries)
    }

    fn user_limit_word(&self) -> u64 {
        machine_x86::user_limit_word()
    }
}

impl Memory for PcMachine {
    fn dma(&self, pages: usize) -> Result<Dma, NoFrames> {
        machine_x86::dma::<PcGround>(pages)
    }

    fn reclaim(&self) -> usize {
        machine_x86::release_inactive::<PcGround>() + heap::trim()
    }

    fn heap_pages(&self) -> usize {
        heap::room()
    }

    fn heap_live(&self) -> HeapLive {
        heap::live()
    }

    fn new_translation(&self) -> Result<Arc<dyn Translation>, NoFrames> {
        Ok(Arc::new(PcTranslation::new(&TABLE_FRAMES)?))
    }

    fn activate(&self, quaspace: Option<&dyn Translation>) {
        let root = quaspace.map_or(paging::kernel_root(), |quaspace| quaspace.root().word());
        // SAFETY: every root shares the kernel half.
        unsafe { registers::write_cr3(root) };
    }

    fn peek(&self, address: u64) -> Option<u64> {
        paging::peek(address)
    }

    fn kernel_range(&self) -> core::ops::Range<u64> {
        layout::IMAGE_WINDOW..u64::MAX
    }

    fn frame_address(&self, frame: machine::FrameNumber) -> u64 {
        layout::direct(frame.physical_address())
    }
}

impl Channels for PcMachine {
    fn send(&self, channel: Channel, bytes: &[u8]) -> usize {
        self.with_console(bytes.len(), |console| console.send(channel, bytes))
    }

    fn receive(&self, channel: Channel, into: &mut [u8]) -> Received {
        self.with_console(Received::End, |console| console.receive(channel, into))
    }

    fn receivable(&self, channel: Channel) -> usize {
        self.with_console(0, |console| console.receivable(channel))
    }

    fn sendable(&self, channel: Channel) -> usize {
        self.with_console(usize::MAX, |console| console.sendable(channel))
    }

    fn is_drained(&self, channel: Channel) -> bool {
        self.with_console(true, |console| console.is_drained(channel))
    }

    fn send_code(&self, channel: Channel, none: Target) -> Option<SendCode> {
        self.console.borrow().as_ref()?.send_code(channel, none)
    }

    fn receive_code(&self, none: Target) -> Option<ReceiveCode> {
        self.console.borrow().as_ref()?.receive_code(none)
    }

    fn bind_receiver(&self, entry: Entry<DeviceEntry>) {
        self.with_console((), Console::serve_by_code);
        let led = self.console_line.as_ref().map(|line| line.lead_to(entry));
        debug_assert_ne!(led, Some(Err(LineError::Absent)), "a line that was routed once");
    }

    fn access_space(&self) -> u32 {
        self.access_space
    }

    fn must_poll(&self) -> bool {
        self.polls
    }
}

impl Clock for PcMachine {
    fn now(&self) -> Nanos {
        machine_x86::now()
    }

    fn time_of_counter(&self, counter: u64) -> Nanos {
        machine_x86::time_of(counter)
    }

    fn set_alarm(&self, at: Nanos) {
        let left = at.saturating_sub(machine_x86::now()).0;
        apic::start_timer(u32::try_from(left).unwrap_or(u32::MAX).max(1));
    }

    fn charge(&self) -> Nanos {
        machine_x86::time_of(machine_x86::charge::<PcGround>())
    }

    fn timer_code(&self) -> Option<TimerCode> {
        timer::code()
    }

    fn bind_timer(&self, plain: Entry<TimerEntry>, nesting: Entry<TimerEntry>) {
        timer::bind(plain, nesting);
    }
}

impl Samples for PcMachine {
    fn sample_clock(&self) -> Option<SampleClock> {
        sample_clock::find()
    }

    fn bind_sample_handler(&self, entry: Entry<SampleEntry>) {
        sample_clock::bind(entry);
    }

    fn run_sample_clock(&self, hertz: u32) -> u64 {
        sample_clock::run(hertz)
    }
}

impl Practice for PcMachine {
    fn practice_code(&self, none: Target) -> Option<ReceiveCode> {
        receive::practice_code(none)
    }

    fn practice(&self, entry: Entry<DeviceEntry>, count: u32) {
        receive::practice(entry, count);
    }

    fn raise_samples(&self, count: u32) {
        sample_clock::raise(count);
    }
}

impl Machine for PcMachine {
    fn with_lock(&self, act: &mut dyn FnMut(Held<'_>)) {
        // SAFETY: the kernel's Rust runs on a thread's stack and holds the lock, which stays with it: this entry is none of its own.
        let entered = unsafe { Entered::by_fault() };
        act(entered.held());
    }

    fn next_courier(&self) -> Option<&'static dyn Courier> {
        shares::next(self.polls)
    }

    fn next_link(&self) -> Option<&'static dyn Link> {
        net::next(self.polls)
    }

    fn next_player(&self) -> Option<&'static dyn Player> {
        sound::next(self.polls)
    }

    fn practice(&self) -> Option<&dyn Practice> {
        Some(self)
    }
}

static MACHINE: AtomicU64 = AtomicU64::new(0);

/// The machine, for the trap entries, which get no argument.
pub(crate) fn the() -> &'static PcMachine {
    // SAFETY: `boot` stores the leaked machine before the first trap can come.
    unsafe { &*(MACHINE.load(Ordering::Relaxed) as *const PcMachine) }
}
