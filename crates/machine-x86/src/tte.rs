//! Thread table entries (S-50). An entry owns a thread area and the code synthesized for it.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use alloc::sync::Arc;
use core::arch::{asm, global_asm};
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, offset_of};
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use codestore::Code;
use machine::{
    BadVectorState, CallEntry, DescriptorEntries, Entered, Entries, Entry, FloatWords, Held, KernelCell, Nanos,
    NoFrames, Place, Registers, SOFTWARE_BYTES, Sorted, Start, Translation, Tte, TteId, UserFault, VirtAddr, WaitWords,
};
use quaject::Factored;
use synth::{Abs32, Draft, Imm32, Target};

use crate::area::{Body, THREAD_AREA_BYTES, record, user_registers};
use crate::ground::Ground;
use crate::handover::Asleep;
use crate::thread::{CALLS, Codes, Descriptors, ThreadCallouts, ThreadCode, TteRecord, UserCall};
use crate::thread_code::ToKernelStack;
use crate::{USER_CODE, USER_DATA, clock, ring, vector};

global_asm!(
    ".pushsection .text",
    ".globl kernel_thread_start",
    "kernel_thread_start:",
    "mov rbx, rsp",
    "and rbx, -{area}",
    "mov rdi, [rbx + {start}]",
    "call {begin}",
    "ud2",
    ".popsection",
    area = const THREAD_AREA_BYTES,
    start = const offset_of!(TteRecord, start),
    begin = sym begin_in_kernel,
);

/// The first turn of a thread of the kernel's own: it enters the kernel for good.
extern "C" fn begin_in_kernel(function: u64) -> ! {
    // SAFETY: `X86Tte::fill` has stored a function of `Start::Kernel`.
    let function = unsafe { core::mem::transmute::<u64, fn(Held<'_>) -> !>(function) };
    // SAFETY: 1. This is where the thread's Rust begins, on its stack; it never ends. 2. Who left for this thread has given the
    // lock up.
    let entered = unsafe { Entered::new() };
    function(entered.held())
}

unsafe extern "C" {
    static kernel_thread_start: u8;
}

/// The attention byte of a thread that has none.
static ALWAYS: u8 = 1;

/// The preemption word of a thread whose program has none.
static NO_WORD: u64 = 0;

/// A routine of one thread alone, and what its code has the addresses of.
struct Own {
    _code: Code<UserCall>,
    _entries: Option<DescriptorEntries>,
}

/// One thread's area and synthesized code.
pub struct X86Tte<G: Ground> {
    id: TteId,
    area: u64,
    code: ManuallyDrop<Codes>,
    /// Bit per call that may be bound to a routine.
    bound: KernelCell<[u64; CALLS.div_ceil(64)]>,
    /// Routines of this thread alone, by call number.
    own: KernelCell<Sorted<usize, Own>>,
    attention: KernelCell<Option<Arc<AtomicU8>>>,
    /// Where the call table stands aside while all calls are diverted.
    pub(crate) aside: KernelCell<Option<Arc<[AtomicU64]>>>,
    ground: PhantomData<fn(G)>,
}

impl<G: Ground> X86Tte<G> {
    pub fn create(start: Start) -> Result<X86Tte<G>, NoFrames> {
        let Body { id, area, code } = Body::take::<G>()?;
        let code = ManuallyDrop::new(code);
        let (bound, own) = (KernelCell::default(), KernelCell::new(Sorted::new()));
        let aside = KernelCell::new(None);
        let tte = X86Tte { id, area, code, bound, own, attention: KernelCell::new(None), aside, ground: PhantomData };
        tte.fill(start);
        Ok(tte)
    }

    /// Lays out the record, the vector state and the first stack frame.
    fn fill(&self, start: Start) {
        let registers = user_registers(self.area) as u64;
        let (first, function) = match start {
            Start::User(_) => (G::first_return(), 0),
            Start::Kernel(function) => ((&raw const kernel_thread_start) as u64, function as usize as u64),
        };
        let tte = self.record();
        // SAFETY: 1. The area is mapped and not yet known to anybody else. 2. The stack word
        // lies below the Registers record, inside the stack.
        unsafe {
            (*tte).kernel_sp = registers - 8;
            (*tte).cpu = G::slots();
            (*tte).id = self.id.0 as u64;
            (*tte).tag = 0;
            (*tte).switch_in = self.entries().sw_in;
            (*tte).ran = 0;
            (*tte).moved = 0;
            (*tte).adjusted_at = 0;
            (*tte).quantum = machine::QUANTUM_MOST_NS;
            (*tte).next_quantum = self.entries().quantum;
            (*tte).attention = &raw const ALWAYS as u64;
            (*tte).preemption_word = &raw const NO_WORD as u64;
            (*tte).start = function;
            (*tte).debugged = 0;
            (*tte).sleeps_at = 0;
            (*tte).answer = 0;
            (*tte).next = 0;
            (*tte).after = core::ptr::null_mut();
            (*tte).root = 0;
            (*tte).fs_base = 0;
            (*tte).gs_base = 0;
            (*tte).switch_out = self.code.switch_out.entry().address();
            ((registers - 8) as *mut u64).write(first);
        }
        self.erase_vector_state();
        if let Start::User(values) = start {
            self.set_registers(&values);
        }
    }

    pub(crate) fn record(&self) -> *mut TteRecord {
        record(self.area)
    }

    fn is_running(&self) -> bool {
        G::current() == self.record()
    }

    /// The thread as whom its code is made for.
    fn quaject(&self) -> &TteRecord {
        // SAFETY: the record is mapped while the TTE lives, and nobody else runs while it is looked at.
        unsafe { &*self.record() }
    }

    /// Publishes a callentry that there is once for each call, and binds it.
    fn bind_own(
        &self,
        number: usize,
        factored: Factored<UserCall>,
        entries: Option<DescriptorEntries>,
    ) -> Result<(), NoFrames> {
        let code = factored.create(G::makers().of_thread(self.id).of_call(number)).ok_or(NoFrames)?;
        self.bind_call(number, Some(code.entry().under()));
        self.own.borrow_mut().insert(number, Own { _code: code, _entries: entries });
        Ok(())
    }

    /// The words of the queue in which the thread sleeps by code, or slept and has not run since.
    fn sleeps_at(&self) -> u64 {
        // SAFETY: the record is mapped while the TTE lives.
        unsafe { (&raw const (*self.record()).sleeps_at).read_volatile() }
    }

    /// Who sleeps by code is about to be ready.
    fn leave_queue(&self) {
        if self.sleeps_by_code() {
            // SAFETY: the words are a queue's that lives: who drops one has its sleeper forget it.
            let words = unsafe { &*(self.sleeps_at() as *const WaitWords) };
            words.count.store(words.count.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        }
    }

    /// All calls are done in Rust again.
    fn unbind_all(&self) {
        let bound = self.bound.get();
        for (word, mut bits) in bound.into_iter().enumerate() {
            while bits != 0 {
                let number = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                self.bind_call(number, None);
            }
        }
    }
}

impl<G: Ground> Tte for X86Tte<G> {
    fn id(&self) -> TteId {
        self.id
    }

    fn registers(&self) -> Registers {
        if self.sleeps_at() != 0 {
            // SAFETY: it has not run since it fell asleep, and has put them away there.
            return unsafe { (*Asleep::of(self.area)).registers() };
        }
        // SAFETY: the record at the stack top belongs to the thread; it is not running its program.
        unsafe { *user_registers(self.area) }
    }

    fn set_registers(&self, registers: &Registers) {
        let mut values = *registers;
        values.cs = USER_CODE as u64;
        values.ss = USER_DATA as u64;
        // Programs keep arithmetic flags, TF, DF, NT off, AC, ID; IF is always on.
        values.rflags = values.rflags & 0x25_0DD5 | 0x202;
        // SAFETY: as in `registers`.
        unsafe { *user_registers(self.area) = values };
    }

    fn thread_pointer(&self) -> u64 {
        if self.is_running() {
            let base;
            // SAFETY: the machine has checked that FSGSBASE is on.
            unsafe { asm!("rdfsbase {}", out(reg) base) };
            return base;
        }
        // SAFETY: the record is mapped while the TTE lives.
        unsafe { (*self.record()).fs_base }
    }

    fn set_thread_pointer(&self, base: u64) {
        // SAFETY: the record is mapped; `base` is checked by the caller to be a user address.
        unsafe {
            (*self.record()).fs_base = base;
            if self.is_running() {
                asm!("wrfsbase {}", in(reg) base);
            }
        }
    }

    fn set_gs_base(&self, base: u64) {
        // SAFETY: as in `set_thread_pointer`.
        unsafe {
            (*self.record()).gs_base = base;
            if self.is_running() {
                asm!("wrgsbase {}", in(reg) base);
            }
        }
    }

    fn gs_base(&self) -> u64 {
        if self.is_running() {
            let base;
            // SAFETY: the machine has checked that FSGSBASE is on.
            unsafe { asm!("rdgsbase {}", out(reg) base) };
            return base;
        }
        // SAFETY: the record is mapped while the TTE lives.
        unsafe { (*self.record()).gs_base }
    }

    fn set_quaspace(&self, quaspace: Option<&dyn Translation>) {
        // SAFETY: the record is mapped; an aligned store.
        unsafe { (*self.record()).root = quaspace.map_or(0, |quaspace| quaspace.root().word()) };
    }

    fn link_in(&self, place: Place) {
        self.leave_queue();
        // SAFETY: 1. Records of threads are mapped while they are in the ring. 2. Interrupts that change it are off.
        unsafe {
            let mut beside = G::current();
            if place == Place::Last && !(*beside).after.is_null() {
                beside = (*beside).before;
            }
            ring::insert(G::slots(), beside, self.record(), G::MMU_BYTES);
        }
    }

    fn sleeps_by_code(&self) -> bool {
        // SAFETY: the record is mapped while the TTE lives.
        self.sleeps_at() != 0 && unsafe { (*self.record()).after.is_null() }
    }

    fn answer(&self) {
        // SAFETY: the record is mapped; an aligned 8-byte store.
        unsafe { (&raw mut (*self.record()).answer).write_volatile(1) };
    }

    fn take_answer(&self) -> bool {
        // SAFETY: as in `answer`.
        unsafe { core::mem::replace(&mut (*self.record()).answer, 0) != 0 }
    }

    fn sleep_elsewhere(&self, queue: &'static WaitWords) {
        if self.sleeps_by_code() {
            self.leave_queue();
            // SAFETY: the words are a queue's that lives, and name this thread.
            unsafe { (*(self.sleeps_at() as *const WaitWords)).sleeper.store(0, Ordering::Relaxed) };
            queue.count.store(queue.count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            queue.sleeper.store(self.area, Ordering::Relaxed);
            // SAFETY: the record is mapped.
            unsafe { (&raw mut (*self.record()).sleeps_at).write_volatile(&raw const *queue as u64) };
        }
    }

    fn link_out(&self) {
        // SAFETY: as in `link_in`.
        unsafe { ring::remove(G::slots(), self.record(), G::MMU_BYTES) };
    }

    fn relink(&self) {
        // SAFETY: as in `link_in`.
        unsafe { ring::relink(G::slots(), self.record(), G::MMU_BYTES) };
    }

    fn float_words(&self) -> FloatWords {
        vector::float_words(self.area)
    }

    fn save_vector_state(&self, to: VirtAddr, software: &[u8; SOFTWARE_BYTES]) -> Result<(), UserFault> {
        vector::save::<G>(self.area, to, software)
    }

    fn load_vector_state(&self, from: VirtAddr, bytes: usize, features: u64) -> Result<(), BadVectorState> {
        vector::load::<G>(self.area, from, bytes, features)
    }

    fn reset_vector_state(&self) {
        vector::reset::<G>(self.area);
    }

    fn erase_vector_state(&self) {
        vector::erase::<G>(self.area);
    }

    fn inherit_vector_state(&self) {
        vector::inherit::<G>(self.area);
    }

    fn copy_vector_state(&self, into: &mut [u8]) {
        vector::copy::<G>(self.area, into);
    }

    fn replace_vector_state(&self, from: &[u8], features: u64) -> Result<(), BadVectorState> {
        vector::replace::<G>(self.area, from, features)
    }

    fn set_debugged(&self, debugged: bool) {
        self.unbind_all();
        // SAFETY: the record is mapped; an aligned 8-byte store.
        unsafe { (&raw mut (*self.record()).debugged).write_volatile(u64::from(debugged)) };
    }

    fn bind_call(&self, number: usize, entry: Option<Entry<CallEntry>>) {
        // SAFETY: the record is mapped.
        let entry = entry.filter(|_| unsafe { (*self.record()).debugged } == 0);
        self.set_call(number, entry.unwrap_or(self.slow_entry()).address());
        if entry.is_none() {
            self.own.borrow_mut().remove(&number);
        } else {
            self.bound.borrow_mut()[number / 64] |= 1 << (number % 64);
        }
    }

    fn bind_common_call(&self, number: usize) {
        self.bind_call(number, Some(self.code.by_call.entry().under()));
    }

    fn call_entry(&self, number: usize) -> u64 {
        self.call(number)
    }

    fn divert_calls(&self, to: Option<(Entry<CallEntry>, Arc<[AtomicU64]>)>) {
        self.divert(to);
    }

    fn bind_descriptor_call(&self, number: usize, entries: DescriptorEntries) -> Result<(), NoFrames> {
        let descriptors = Descriptors { entries: Abs32(entries.address()), count: Imm32(entries.count()) };
        let rust = Some(Target::Address(G::slow_call().address()));
        let callouts = ThreadCallouts { rust, descriptors: Some(descriptors), ..Default::default() };
        self.bind_own(number, ThreadCode::by_descriptor(self.quaject(), G::makers(), &callouts), Some(entries))
    }

    fn append_kernel_stack(&self, draft: &mut Draft) {
        ToKernelStack { user_sp: self.quaject().user_sp() }.append_to(draft);
    }

    fn set_tag(&self, tag: u64) {
        // SAFETY: the record is mapped; an aligned 8-byte store.
        unsafe { (&raw mut (*self.record()).tag).write_volatile(tag) };
    }

    fn set_attention_byte(&self, byte: Arc<AtomicU8>) {
        // SAFETY: as in `set_tag`; the byte is kept as long as its address stands there.
        unsafe { (&raw mut (*self.record()).attention).write_volatile(byte.as_ptr() as u64) };
        *self.attention.borrow_mut() = Some(byte);
    }

    fn set_preemption_word(&self, address: Option<VirtAddr>) {
        let address = address.map_or(&raw const NO_WORD as u64, |address| address.0);
        // SAFETY: as in `set_tag`.
        unsafe { (&raw mut (*self.record()).preemption_word).write_volatile(address) };
    }

    fn quantum(&self) -> Nanos {
        // SAFETY: the record is mapped.
        Nanos(unsafe { (&raw const (*self.record()).quantum).read_volatile() })
    }

    fn set_quantum(&self, quantum: Nanos) {
        // SAFETY: as in `set_tag`.
        unsafe { (&raw mut (*self.record()).quantum).write_volatile(quantum.0.clamp(1, u32::MAX as u64)) };
    }

    fn ran(&self) -> Nanos {
        // SAFETY: the record is mapped.
        clock::duration(unsafe { (&raw const (*self.record()).ran).read_volatile() })
    }

    fn slow_entry(&self) -> Entry<CallEntry> {
        self.code.slow.entry().under()
    }

    fn bind_constant_call(&self, number: usize, value: u32) -> Result<(), NoFrames> {
        let answer = |draft: &mut Draft| G::constant(value, draft);
        let callouts = ThreadCallouts { answer: Some(&answer), ..Default::default() };
        self.bind_own(number, ThreadCode::constant(self.quaject(), G::makers(), &callouts), None)
    }

    fn entries(&self) -> Entries {
        let sw_in_mmu = self.code.switch_in.entry().address();
        // SAFETY: the record is mapped.
        let root = unsafe { (*self.record()).root };
        let quantum = self.area + offset_of!(TteRecord, quantum) as u64;
        let (sw_out, dispatch) = (self.code.switch_out.entry().address(), self.code.dispatch.entry().address());
        Entries { sw_in: sw_in_mmu + G::MMU_BYTES, sw_in_mmu, root, quantum, sw_out, dispatch }
    }
}

impl<G: Ground> Drop for X86Tte<G> {
    fn drop(&mut self) {
        assert!(!self.is_running(), "a thread dropped its own TTE");
        vector::disown::<G>(self.area);
        self.divert(None);
        self.unbind_all();
        // SAFETY: `code` is not used again.
        let code = unsafe { ManuallyDrop::take(&mut self.code) };
        Body { id: self.id, area: self.area, code }.put_away::<G>();
    }
}
