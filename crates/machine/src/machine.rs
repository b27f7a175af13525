//! The machine as a whole.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::AtomicU64;

use synth::{Draft, Fact, HoleValue, Target, Template};

use crate::{
    DeviceEntry, Dma, Entry, FileEntry, Foreign, FrameNumber, Lines, Nanos, NoFrames, PhysicalMemory, SampleEntry,
    SampleProcedure, ScheduleWords, Threads, TimerEntry, Translation, Upcalls, UserMemory, VirtAddr,
};

/// A byte channel to the world outside the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channel {
    /// Records to and from the host tool.
    Control,
    Terminal,
    StandardInput,
    StandardOutput,
    StandardError,
}

/// What a channel had to give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    Bytes(usize),
    /// Nothing now; `Upcalls::device` will tell.
    Nothing,
    /// The other side has closed and all its bytes have been read.
    End,
}

/// Instructions of the machine to paste, with what belongs into their holes.
pub struct Fragment {
    pub template: Template,
    pub holes: Vec<HoleValue>,
}

impl synth::Paste for &Fragment {
    fn paste(self, draft: &mut Draft) {
        self.append_to(draft);
    }
}

impl Fragment {
    pub fn append_to(&self, draft: &mut Draft) {
        draft.append(&self.template, &self.holes);
    }
}

/// The code that sends bytes to a channel: the routine fills the buffer between the two fragments. If it does not come
/// to the second one nothing has happened.
pub struct SendCode {
    /// Chooses a buffer. Out: rdi = where its bytes go, eax = its number. Clobbers rcx. Leaves through `none` with rax,
    /// rcx and rdi lost.
    pub choose: Fragment,
    /// Gives the buffer to the device. In: eax = its number, edx = how many bytes it holds, at least 1 and at most
    /// `bytes_max`. Clobbers rcx, rdi.
    pub send: Fragment,
    /// Size of a buffer.
    pub bytes_max: usize,
}

/// The code that takes in what the terminal's device has received. A handler of the device's interrupt is made of it; it may run
/// in the midst of the kernel's Rust, and ends as one of samples does.
pub struct ReceiveCode {
    /// Two accesses that tell the device that its interrupt is seen. Clobbers rax, rsi.
    pub acknowledge: [Fragment; 2],
    /// Looks at the next buffer that is filled. Out: rax = its number, rsi = its bytes, ecx = how many. Clobbers rdi. Leaves
    /// through `none` if there is none.
    pub look: Fragment,
    /// Takes that buffer from what is filled, and gives it back to the device. In: eax = its number. Clobbers rcx, rdi.
    pub give_back: Fragment,
}

/// A periodic interrupt of its own that goes straight to synthesized code, for devices with samples (S-78, S-82). The
/// interrupt is one jump through `slot`; who is bound there ends with `end`.
pub struct SampleClock {
    /// Holds the handler's entry; an aligned store replaces the handler while it is used. A handler may store another entry
    /// itself, the next interrupt's.
    pub slot: &'static AtomicU64,
    /// Tells the interrupt controller and goes back to what was interrupted. Needs no register.
    pub end: Fragment,
    /// A store of the second to the first has `Upcalls::chained` called when the interrupt, and the kernel if it was in the
    /// midst of something, are done (S-80).
    pub chain: (u64, u32),
    /// A handler that saves what compiled code may use and calls `Upcalls::sample`.
    pub compiled: Entry<SampleEntry>,
    /// The same two for handlers that are called as procedures, to measure them without the interrupt, on a machine that
    /// can do so.
    pub as_procedure: Option<(Fragment, Entry<SampleProcedure>)>,
}

/// What a handler of the timer's interrupt is made of (S-78). It may run in the midst of the kernel's Rust.
pub struct TimerCode {
    /// Reads the clock. Out: rax = nanoseconds since boot. Clobbers rdx.
    pub now: Fragment,
    /// Has the timer go off in ecx nanoseconds, at least 1.
    pub arm: Fragment,
    /// Lets interrupts of higher levels in.
    pub open: Fragment,
    /// Keeps all interrupts out.
    pub close: Fragment,
    /// Ends the interrupt. Needs no register.
    pub end: Fragment,
    /// Where the interrupt goes that is not the handler's, with registers and stack as they were: to a switch or to
    /// `Upcalls::timer`; if it came into the kernel's Rust, as soon as that is left.
    pub kernel: Entry<TimerEntry>,
}

/// Text of a program that the machine has rewritten. Another program may have other text there.
#[derive(Clone, Copy, Debug)]
pub struct Rewritten<'a> {
    pub address: VirtAddr,
    pub now: &'a [u8],
    /// What the program has brought.
    pub original: &'a [u8],
}

/// What of the kernel's heap is in use: whatever is left behind shows here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HeapLive {
    /// Blocks, and pages of those that are large.
    pub blocks: usize,
    /// Their sizes, as the heap rounds them.
    pub bytes: usize,
}

/// One of the two machines. Cold calls come through here; hot paths paste the machine's fragments.
pub trait Machine: PhysicalMemory + UserMemory + Threads + Lines + Send + Sync {
    /// Frames in a row, all zeros, for a device.
    fn dma(&self, pages: usize) -> Result<Dma, NoFrames>;
    /// Time since boot, never going back.
    fn now(&self) -> Nanos;
    /// The time at which the processor's counter had this value.
    fn time_of_counter(&self, counter: u64) -> Nanos;
    /// Asks for `Upcalls::timer` at `at`, and at no other time.
    fn set_alarm(&self, at: Nanos);
    /// The words that this processor's scheduler shares with the machine.
    ///
    /// The machine pre-empts programs by itself (S-81): while no alarm is due within the longest quantum, an interrupt of the timer
    /// that finds a program running can only mean that the quantum is over. The machine then switches to the thread's
    /// successor, unless that is the thread itself, sets the timer for the successor's quantum, and `armed` to
    /// [`crate::NEVER`]; `Upcalls::timer` is not called.
    fn schedule_words(&self) -> &'static ScheduleWords;
    /// Puts the time since the last call, or since the machine pre-empted, on the account of the running thread
    /// (`Tte::ran`). Returns the time.
    fn charge(&self) -> Nanos {
        self.now()
    }
    /// The gauge of this processor (S-31): counts operations on streams, by routines and by Rust. The machine puts what came
    /// to it during a turn on the account of the thread that ran, and gives it its quantum by it (S-71).
    fn gauge(&self) -> &'static AtomicU64 {
        static UNREAD: AtomicU64 = AtomicU64::new(0);
        &UNREAD
    }
    fn new_translation(&self) -> Result<Arc<dyn Translation>, NoFrames>;
    /// Activates a quaspace for the current thread (exec), or the kernel's own tables.
    fn activate(&self, quaspace: Option<&dyn Translation>);
    /// From now on the kernel is entered through `upcalls`.
    fn set_upcalls(&self, upcalls: &'static dyn Upcalls);

    /// Takes as many bytes as the channel has room for.
    fn send(&self, channel: Channel, bytes: &[u8]) -> usize;
    fn receive(&self, channel: Channel, into: &mut [u8]) -> Received;
    /// Bytes that `receive` would give now.
    fn receivable(&self, channel: Channel) -> usize;
    /// Room that `send` has now.
    fn sendable(&self, channel: Channel) -> usize;
    /// All that was sent has reached the other side.
    fn is_drained(&self, channel: Channel) -> bool;
    /// The code to paste that sends to a channel, if the machine has such; it jumps to `none` when the channel has no room.
    fn send_code(&self, channel: Channel, none: Target) -> Option<SendCode> {
        let _ = (channel, none);
        None
    }
    /// The code to paste that receives from [`Channel::Terminal`], if the machine has such; it leaves through `none`.
    fn receive_code(&self, none: Target) -> Option<ReceiveCode> {
        let _ = none;
        None
    }
    /// Has the device's interrupt go to a handler that is made of `receive_code`. From now on `Upcalls::device` is not called,
    /// and `receive` gives whole buffers of the terminal's device, between interrupts.
    fn bind_receiver(&self, entry: Entry<DeviceEntry>) {
        let _ = entry;
    }
    /// `receive_code` for a line that no device knows, to measure a handler, if the machine can do so.
    fn practice_code(&self, none: Target) -> Option<ReceiveCode> {
        let _ = none;
        None
    }
    /// Raises the device's interrupt `count` times, led to `entry`, each with a byte on that line.
    fn practice(&self, entry: Entry<DeviceEntry>, count: u32) {
        let _ = (entry, count);
    }
    /// The code to paste that loads the running thread's tag into rax, in a routine on the kernel stack.
    fn load_tag(&self) -> Option<Template> {
        None
    }
    /// Shows all text of programs that the machine has ever rewritten.
    fn rewritten_text(&self, visit: &mut dyn FnMut(Rewritten<'_>)) {
        let _ = visit;
    }
    /// Instructions that do nothing, to put between two accesses of a device: some devices freeze when they are used twice in a
    /// row, as code without calls does (S-23).
    fn access_space(&self) -> u32 {
        0
    }

    /// Devices do not interrupt: somebody must look at them (S-94).
    fn must_poll(&self) -> bool {
        false
    }
    /// Gives back frames that the machine keeps for later use, because memory is out; returns how many.
    fn reclaim(&self) -> usize {
        0
    }
    /// Pages that the kernel's heap could take now.
    fn heap_pages(&self) -> usize {
        usize::MAX
    }
    /// What of the kernel's heap is in use.
    fn heap_live(&self) -> HeapLive {
        HeapLive::default()
    }
    /// The sample clock, if the machine has one.
    fn sample_clock(&self) -> Option<SampleClock> {
        None
    }
    /// Stores a handler's entry into the slot.
    fn bind_sample_handler(&self, entry: Entry<SampleEntry>) {
        let _ = entry;
    }
    /// Does `act` with no interrupt in between, though interrupts may nest in the kernel (S-78).
    fn between_interrupts(&self, act: &mut dyn FnMut()) {
        act();
    }
    /// What a handler of the timer's interrupt is made of, if the machine has such.
    fn timer_code(&self) -> Option<TimerCode> {
        None
    }
    /// Has the timer's interrupt go to `plain`, and to `nesting` while interrupts nest in the kernel.
    fn bind_timer(&self, plain: Entry<TimerEntry>, nesting: Entry<TimerEntry>) {
        let _ = (plain, nesting);
    }
    /// Starts the sample clock at about `hertz` interrupts a second, or stops it at 0; returns how many thousandths of an
    /// interrupt really come in a second. 0: this machine's clock only comes when it is raised.
    fn run_sample_clock(&self, hertz: u32) -> u64 {
        let _ = hertz;
        0
    }
    /// Has `Upcalls::chained` called as soon as the kernel is left, if the machine can do so.
    fn ask_for_chained(&self) {}
    /// Raises the interrupt `count` times, one after the other, to measure it.
    fn raise_samples(&self, count: u32) {
        let _ = count;
    }
    /// Calls a handler that ends as a procedure `count` times.
    fn call_samples(&self, entry: Entry<SampleProcedure>, count: u32) {
        let _ = (entry, count);
    }
    /// The trees of names outside of the machine, if it has such.
    fn foreign(&self) -> Option<&'static dyn Foreign> {
        None
    }
    /// What the holes of the machine's own templates stand for.
    fn facts(&self) -> &'static [Fact] {
        &[]
    }
    /// The eight bytes at `address`, if the kernel's own data or code is there. Touches nothing else.
    fn peek(&self, address: u64) -> Option<u64> {
        let _ = address;
        None
    }
    /// Where all of the kernel's own data and code lies, and no device: what people may look at. Some of it may be absent.
    fn kernel_range(&self) -> Range<u64> {
        0..0
    }
    /// Ends the machine.
    fn power_off(&self) -> !;
    /// Entropy for programs: 8 random bytes, or a fixed sequence under a repeatable clock.
    fn random(&self) -> u64;
    /// EDX of CPUID leaf 1: what programs see as AT_HWCAP.
    fn feature_word(&self) -> u32;
    /// The vector features that programs may use (XCR0), as signal frames name them.
    fn vector_features(&self) -> u64;
    /// Bytes of an XSAVE image with these features.
    fn vector_bytes(&self) -> usize;
    /// The code to paste where a synthesized routine touches the program's memory (S-88), if any is needed.
    fn open_user(&self) -> Option<Template>;
    /// The code to paste in front of instructions on strings, if routines can be entered with the program's direction flag.
    fn upwards(&self) -> Option<Template> {
        None
    }
    /// The code that ends a synthesized call routine: back to the program, result in rax.
    fn leave(&self) -> Template;
    /// The code that ends a routine that has not left the program's stack; result in rax.
    fn leave_direct(&self) -> Template;
    /// The address at which synthesized code finds a frame's bytes.
    fn frame_address(&self, frame: FrameNumber) -> u64;
    /// Where a synthesized call routine goes to be done in Rust; rax holds the call number again.
    fn slow_call(&self) -> Entry<FileEntry>;
    /// The address of a word that holds the first address a program may not use.
    fn user_limit_word(&self) -> u64;
}
