//! The machine of the tests: real memory, real code, no hardware.
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "one proof for what a test does with its own memory")]

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use codestore::{Code, CodeMemory, CodeStore, Maker};
use kernel::call::{CallCode, FileCall, Makers};
use kernel::space::FramePool;
use machine::{
    BadVectorState, CallEntry, Channel, Channels, Clock, DescriptorEntries, Entries, Entry, FileEntry, FloatWords,
    FrameNumber, Machine, Memory, Nanos, NoFrames, PAGE_BYTES, PhysicalMemory, Place, Processor, ReceiveCode, Received,
    Registers, SOFTWARE_BYTES, SampleClock, SampleEntry, Samples, ScheduleWords, SendCode, Sleeping, Start, SwitchOut,
    Threads, Translation, Tte, TteId, Upcalls, UserFault, UserMemory, VirtAddr,
};
use synth::{Abs32, Draft, Target, Template, template};

use crate::arena::low_memory;
use crate::device::Device;
use crate::line::Line;
use crate::program::Program;
use crate::sample;

const FRAMES: u32 = 4096;
const CODE_BYTES: usize = 4 << 20;

template! {
    /// In place of `sysret`: the program's stack holds the address where the test goes on.
    pub struct BenchLeave {}
    "pop rsp",
    "ret",
}

template! {
    /// The same for routines on the program's stack.
    pub struct BenchLeaveDirect {}
    "ret",
}

/// The tag of the thread that the tests are.
pub const TAG: u64 = 77;

template! {
    /// Loads it.
    pub struct BenchTag {}
    where { TAG_VALUE = TAG }
    "mov eax, {TAG_VALUE}",
}

template! {
    /// Notes that a routine gave up, and where its stack was.
    pub struct NoteSlow { mark: Abs32 }
    "mov qword ptr [{mark}], rsp",
}

/// The machine and what is made on it. One per test program.
pub struct Bench {
    pub program: Program,
    pub store: &'static CodeStore,
    pub pool: &'static FramePool,
    /// Stack pointer of the last routine that gave up; 0: none did.
    pub mark: Box<u64>,
    /// Where the channels lead.
    pub device: Device,
    pub line: Line,
    frames: usize,
    user_limit: Box<u64>,
    slow: OnceLock<(Code<FileCall>, Code<CallCode>)>,
    thread_stack: Box<[u64; 64]>,
    /// Routines get the fragments of the pc: to be looked at, not run.
    pc_fragments: AtomicBool,
    /// What a machine with slow devices says.
    pub access_space: AtomicU32,
}

// SAFETY: the tests that use the bench run in one thread.
unsafe impl Sync for Bench {}
// SAFETY: as above.
unsafe impl Send for Bench {}

/// The bench.
pub fn bench() -> &'static Bench {
    static BENCH: OnceLock<&'static Bench> = OnceLock::new();
    BENCH.get_or_init(|| Box::leak(Box::new(Bench::new())))
}

struct Frames(usize);
struct Mapped;

/// How often the stores' processor was serialized.
pub static SERIALIZED: AtomicUsize = AtomicUsize::new(0);

impl CodeMemory for Mapped {
    fn extend(&self, _page: usize) -> Result<(), NoFrames> {
        Ok(())
    }

    fn serialize(&self) {
        SERIALIZED.fetch_add(1, Ordering::Relaxed);
        machine_x86::serialize_in_process();
    }
}

/// One memory, mapped twice: to run and to write (R2).
pub fn code_store(capacity_bytes: usize) -> &'static CodeStore {
    assert!(capacity_bytes <= CODE_BYTES);
    // SAFETY: fresh mappings of a fresh file; the store alone knows both.
    let store = unsafe {
        let file = libc::memfd_create(c"code".as_ptr(), 0);
        assert!(file >= 0 && libc::ftruncate(file, CODE_BYTES as i64) == 0);
        let run = libc::PROT_READ | libc::PROT_EXEC;
        let shared = libc::MAP_SHARED;
        let executable = libc::mmap(null_mut(), CODE_BYTES, run, shared | libc::MAP_32BIT, file, 0);
        let writable = libc::mmap(null_mut(), CODE_BYTES, libc::PROT_READ | libc::PROT_WRITE, shared, file, 0);
        assert!(executable != libc::MAP_FAILED && writable != libc::MAP_FAILED);
        CodeStore::new(executable as u64, writable as u64, capacity_bytes, &Mapped)
    };
    Box::leak(Box::new(store))
}

impl Bench {
    fn new() -> Bench {
        let frames = low_memory(FRAMES as usize * PAGE_BYTES, libc::PROT_READ | libc::PROT_WRITE);
        let program = Program::new(frames);
        let memory = Box::leak(Box::new(Frames(frames)));
        // SAFETY: they lie in memory that was just made for them.
        let usable = unsafe { machine::Frames::new(0..FRAMES) };
        let pool = Box::leak(Box::new(FramePool::new(memory, vec![usable], 0)));
        let user_limit = Box::new(program.limit());
        let pc_fragments = AtomicBool::new(false);
        Bench {
            program,
            store: code_store(CODE_BYTES),
            pool,
            mark: Box::new(0),
            device: Device::new(),
            line: Line::new(),
            frames,
            user_limit,
            slow: OnceLock::new(),
            thread_stack: Box::new([0; 64]),
            pc_fragments,
            access_space: AtomicU32::new(0),
        }
    }

    pub fn makers(&'static self) -> Makers {
        Makers::new(self, self.store)
    }

    /// From now on routines are made with the fragments of the pc. They can be read, but not run here.
    pub fn use_pc_fragments(&self) {
        self.slow();
        self.pc_fragments.store(true, Ordering::Relaxed);
    }

    fn pc_fragment(&self, index: usize) -> Option<Template> {
        self.pc_fragments.load(Ordering::Relaxed).then(|| machine_pc::call_templates()[index])
    }

    fn of_pc_thread(&self, named: &str) -> Option<Template> {
        let of_pc = || machine_pc::thread_templates().into_iter().find(|(name, _)| *name == named);
        let found = self.pc_fragments.load(Ordering::Relaxed).then(of_pc).flatten();
        found.map(|(_, template)| template)
    }

    fn slow(&self) -> &(Code<FileCall>, Code<CallCode>) {
        self.slow.get_or_init(|| {
            let note = || NoteSlow { mark: Abs32(&raw const *self.mark as u64) }.draft();
            let (mut file, mut call) = (note(), note());
            BenchLeave {}.append_to(&mut file);
            BenchLeaveDirect {}.append_to(&mut call);
            let publish = |draft| self.store.publish("bench.slow", Maker::new("bench"), draft);
            let file = publish(file).expect("room for code");
            let call = self.store.publish("bench.slow_direct", Maker::new("bench"), call).expect("room for code");
            (file, call)
        })
    }

    /// Where routines on the program's stack give up.
    pub fn slow_direct(&self) -> Entry<CallEntry> {
        self.slow().1.entry().under()
    }

    /// The last word of the kernel stack of [`OnlyTte`], where the program's stack pointer goes.
    pub fn thread_stack(&self) -> u64 {
        &raw const self.thread_stack[63] as u64
    }

    /// The processor's counter.
    pub fn counter() -> u64 {
        // SAFETY: reading the counter has no effect.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
}

impl Frames {
    fn at(&self, frame: FrameNumber, offset: usize, bytes: usize) -> *mut u8 {
        assert!(offset + bytes <= PAGE_BYTES, "range leaves the frame");
        (self.0 + frame.number() as usize * PAGE_BYTES + offset) as *mut u8
    }
}

impl PhysicalMemory for Frames {
    fn read(&self, frame: FrameNumber, offset: usize, into: &mut [u8]) {
        // SAFETY: the range lies inside the frame.
        unsafe { into.as_mut_ptr().copy_from_nonoverlapping(self.at(frame, offset, into.len()), into.len()) };
    }

    fn write(&self, frame: FrameNumber, offset: usize, from: &[u8]) {
        // SAFETY: the range lies inside the frame.
        unsafe { self.at(frame, offset, from.len()).copy_from_nonoverlapping(from.as_ptr(), from.len()) };
    }

    fn fill(&self, frame: FrameNumber, offset: usize, bytes: usize, value: u8) {
        // SAFETY: the range lies inside the frame.
        unsafe { self.at(frame, offset, bytes).write_bytes(value, bytes) };
    }

    fn copy(&self, from: FrameNumber, to: FrameNumber) {
        // SAFETY: both are whole frames; they may be the same.
        unsafe { self.at(to, 0, PAGE_BYTES).copy_from(self.at(from, 0, PAGE_BYTES), PAGE_BYTES) };
    }

    fn read_u64(&self, frame: FrameNumber, offset: usize) -> u64 {
        let mut word = [0; 8];
        self.read(frame, offset, &mut word);
        u64::from_le_bytes(word)
    }

    fn write_u64(&self, frame: FrameNumber, offset: usize, value: u64) {
        self.write(frame, offset, &value.to_le_bytes());
    }
}

impl PhysicalMemory for Bench {
    fn read(&self, frame: FrameNumber, offset: usize, into: &mut [u8]) {
        Frames(self.frames).read(frame, offset, into);
    }

    fn write(&self, frame: FrameNumber, offset: usize, from: &[u8]) {
        Frames(self.frames).write(frame, offset, from);
    }

    fn fill(&self, frame: FrameNumber, offset: usize, bytes: usize, value: u8) {
        Frames(self.frames).fill(frame, offset, bytes, value);
    }

    fn copy(&self, from: FrameNumber, to: FrameNumber) {
        Frames(self.frames).copy(from, to);
    }

    fn read_u64(&self, frame: FrameNumber, offset: usize) -> u64 {
        Frames(self.frames).read_u64(frame, offset)
    }

    fn write_u64(&self, frame: FrameNumber, offset: usize, value: u64) {
        Frames(self.frames).write_u64(frame, offset, value);
    }
}

impl UserMemory for Bench {
    fn copy_in(&self, from: VirtAddr, into: &mut [u8]) -> Result<(), UserFault> {
        self.program.copy_in(from, into)
    }

    fn copy_out(&self, to: VirtAddr, from: &[u8]) -> Result<(), UserFault> {
        self.program.copy_out(to, from)
    }

    fn copy_in_frame(&self, from: VirtAddr, frame: FrameNumber, offset: usize, bytes: usize) -> usize {
        self.program.copy_in_frame(from, frame, offset, bytes)
    }

    fn copy_out_frame(&self, to: VirtAddr, frame: FrameNumber, offset: usize, bytes: usize) -> usize {
        self.program.copy_out_frame(to, frame, offset, bytes)
    }

    fn zero_out(&self, to: VirtAddr, bytes: usize) -> usize {
        self.program.zero_out(to, bytes)
    }
}

impl Threads for Bench {
    fn create_tte(&self, _start: Start) -> Result<Box<dyn Tte>, NoFrames> {
        Ok(Box::new(OnlyTte))
    }

    fn current_tte(&self) -> TteId {
        TteId(0)
    }

    fn set_idle(&self, _idle: &dyn Tte) {}

    fn ready_order(&self) -> Vec<TteId> {
        Vec::new()
    }

    fn successor(&self) -> (TteId, Nanos) {
        (TteId(0), Nanos(0))
    }

    fn switch_out(&self) -> SwitchOut {
        unreachable!("nobody sleeps in these tests")
    }

    fn wait_for_interrupt(&self, _: machine::Held<'_>) {
        unreachable!("nobody is idle in these tests")
    }
}

impl machine::Lines for Bench {
    fn claim(
        &self,
        _line: machine::Line,
        _on: machine::ProcessorNumber,
        _procedure: machine::Procedure,
    ) -> Result<machine::Claimed, machine::LineError> {
        Err(machine::LineError::Absent)
    }
}

impl Processor for Bench {
    fn number(&self) -> machine::ProcessorNumber {
        machine::ProcessorNumber::FIRST
    }

    fn schedule_words(&self) -> &'static ScheduleWords {
        static WORDS: ScheduleWords = ScheduleWords::new();
        &WORDS
    }

    fn facts(&self) -> &'static [synth::Fact] {
        machine_pc::TRANSMIT_FACTS
    }

    fn set_upcalls(&self, _upcalls: &'static dyn Upcalls) {}

    fn power_off(&self) -> ! {
        std::process::exit(0)
    }

    fn random(&self) -> u64 {
        4
    }

    fn feature_word(&self) -> u32 {
        0
    }

    fn vector_bytes(&self) -> usize {
        0
    }

    fn vector_features(&self) -> u64 {
        3
    }

    fn open_user(&self) -> Option<Template> {
        self.pc_fragment(0)
    }

    fn close_user(&self) -> Option<Template> {
        self.pc_fragment(4)
    }

    fn leave(&self) -> Template {
        self.pc_fragment(1).unwrap_or_else(BenchLeave::template)
    }

    fn leave_whole(&self) -> Option<Template> {
        self.pc_fragment(5)
    }

    fn leave_direct(&self) -> Template {
        self.pc_fragment(2).unwrap_or_else(BenchLeaveDirect::template)
    }

    fn load_tag(&self) -> Option<Template> {
        Some(self.of_pc_thread("thread.tag").unwrap_or_else(BenchTag::template))
    }

    fn load_quaspace(&self) -> Option<Template> {
        self.of_pc_thread("thread.quaspace")
    }

    fn slow_call(&self) -> Entry<FileEntry> {
        self.slow().0.entry().under()
    }

    /// Shown in listings; here nobody sleeps.
    fn sleeping(&self) -> Option<Sleeping> {
        let there = self.slow_call();
        self.pc_fragments.load(Ordering::Relaxed).then_some(Sleeping {
            sleep: there,
            wake: there,
            rest: there,
            rouse: there,
        })
    }

    fn user_limit_word(&self) -> u64 {
        &raw const *self.user_limit as u64
    }
}

impl Memory for Bench {
    fn dma(&self, _pages: usize) -> Result<machine::Dma, NoFrames> {
        Err(NoFrames)
    }

    fn new_translation(&self) -> Result<Arc<dyn Translation>, NoFrames> {
        Err(NoFrames)
    }

    fn activate(&self, _quaspace: Option<&dyn Translation>) {}

    fn frame_address(&self, frame: FrameNumber) -> u64 {
        (self.frames + frame.number() as usize * PAGE_BYTES) as u64
    }
}

impl Channels for Bench {
    fn access_space(&self) -> u32 {
        self.access_space.load(Ordering::Relaxed)
    }

    fn send(&self, _channel: Channel, bytes: &[u8]) -> usize {
        bytes.len()
    }

    fn receive(&self, _channel: Channel, _into: &mut [u8]) -> Received {
        Received::End
    }

    fn receivable(&self, _channel: Channel) -> usize {
        0
    }

    fn sendable(&self, _channel: Channel) -> usize {
        usize::MAX
    }

    fn is_drained(&self, _channel: Channel) -> bool {
        true
    }

    fn send_code(&self, _channel: Channel, none: Target) -> Option<SendCode> {
        Some(self.device.send_code(none))
    }

    fn receive_code(&self, none: Target) -> Option<ReceiveCode> {
        Some(self.line.receive_code(none))
    }
}

impl Clock for Bench {
    fn now(&self) -> Nanos {
        Nanos(Bench::counter())
    }

    fn time_of_counter(&self, counter: u64) -> Nanos {
        Nanos(counter)
    }

    fn set_alarm(&self, _at: Nanos) {}
}

impl Samples for Bench {
    fn sample_clock(&self) -> Option<SampleClock> {
        Some(sample::find())
    }

    fn bind_sample_handler(&self, entry: Entry<SampleEntry>) {
        sample::bind(entry);
    }
}

impl Machine for Bench {}

/// The thread that the test is.
pub struct OnlyTte;

impl Tte for OnlyTte {
    fn id(&self) -> TteId {
        TteId(0)
    }

    fn registers(&self) -> Registers {
        Registers::default()
    }

    fn set_registers(&self, _registers: &Registers) {}

    fn thread_pointer(&self) -> u64 {
        0
    }

    fn set_thread_pointer(&self, _base: u64) {}

    fn set_gs_base(&self, _base: u64) {}

    fn gs_base(&self) -> u64 {
        0
    }

    fn set_quaspace(&self, _quaspace: Option<&dyn Translation>) {}

    fn link_in(&self, _place: Place) {}

    fn link_out(&self) {}

    fn relink(&self) {}

    fn float_words(&self) -> FloatWords {
        FloatWords::default()
    }

    fn save_vector_state(&self, _to: VirtAddr, _software: &[u8; SOFTWARE_BYTES]) -> Result<(), UserFault> {
        Err(UserFault)
    }

    fn load_vector_state(&self, _from: VirtAddr, _bytes: usize, _features: u64) -> Result<(), BadVectorState> {
        Err(BadVectorState)
    }

    fn reset_vector_state(&self) {}

    fn append_kernel_stack(&self, draft: &mut Draft) {
        draft.append(&machine_pc::call_templates()[3], &[Abs32(bench().thread_stack()).into()]);
    }

    fn inherit_vector_state(&self) {}

    fn copy_vector_state(&self, _into: &mut [u8]) {}

    fn replace_vector_state(&self, _image: &[u8], _features: u64) -> Result<(), BadVectorState> {
        Ok(())
    }

    fn set_debugged(&self, _debugged: bool) {}

    fn bind_call(&self, _number: usize, _entry: Option<Entry<CallEntry>>) {}

    fn bind_descriptor_call(&self, _number: usize, _entries: DescriptorEntries) -> Result<(), NoFrames> {
        Err(NoFrames)
    }

    fn slow_entry(&self) -> Entry<CallEntry> {
        bench().slow_direct()
    }

    fn bind_constant_call(&self, _number: usize, _value: u32) -> Result<(), NoFrames> {
        Err(NoFrames)
    }

    fn entries(&self) -> Entries {
        Entries { sw_in: 0, sw_in_mmu: 0, root: 0, quantum: 0, sw_out: 0, dispatch: 0 }
    }
}
