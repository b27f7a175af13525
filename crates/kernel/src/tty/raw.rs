//! The raw tty (S-95): what the device's interrupt has picked up, and the cooked tty has not taken yet.
//!
//! ```text
//!   device ── interrupt ──► put ──► ring ──► peek, skip ──► cooked tty
//! ```
//! An SP-SC queue (S-38): the producer is the handler, machine code that saves what it uses and may run in the midst of the
//! kernel's Rust (S-78, S-79); the consumer is whoever the handler's chained signal lets in (S-80). On a machine without such a
//! handler, and for what the handler had no room for, Rust is the producer, between interrupts.
//!
//! Invariant: `head` has one writer at a time, the producer; `tail` one, the consumer; `tail <= head <= tail + RAW_BYTES`.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use codestore::Code;
use machine::{DeviceEntry, Fragment, Keeps, Machine, Nanos, ReceiveCode, SampleClock, try_collect};
use quaject::{Contract, fragments, quaject};
use synth::{Abs32, Fact, Target, template};

use super::ring::NoMemory;
use crate::call::Makers;
use crate::interrupt::{Chain, HandlerRoutine, NOTHING};

/// Bytes of the ring: twice what the device gives at once, so that there is room for it while half a ring is kept.
pub const RAW_BYTES: usize = 8192;

/// Register contract of the raw tty's handler: entered by the device's interrupt through its slot, interrupts off, every
/// register kept, left through the machine's end.
pub enum RawHandler {}

impl Keeps<DeviceEntry> for RawHandler {}

impl Contract for RawHandler {
    const NAME: &'static str = "raw handler";
    const PEEPHOLES: bool = false;
    type Routine = HandlerRoutine;
}

/// What the handler knows by address.
#[repr(C)]
#[derive(Default)]
struct RawWords {
    /// One past the newest byte, and the oldest; they count on.
    head: AtomicU32,
    tail: AtomicU32,
    /// The handler has chained a signal to the tty.
    chained: AtomicU32,
}

template! {
    /// Saves the registers that the handler uses (S-79). Cost: 4 instructions.
    pub struct RawSave {}
    "push rax",
    "push rcx",
    "push rsi",
    "push rdi",
}

template! {
    /// Puts ecx bytes at rsi into the ring, all or none: then it leaves through `none`, with rax kept on the stack. A
    /// single byte is what a key sends. Keeps rax; clobbers rcx, rsi, rdi. Cost: 14 instructions, 27 for more bytes, each moved
    /// by one more.
    pub struct PutReceived { head: Abs32, tail: Abs32, bytes: Abs32, none: Target }
    where { MOST = RAW_BYTES, MASK = RAW_BYTES - 1 }
    "push rax",
    "mov edi, dword ptr [{head}]",
    "mov eax, edi",
    "sub eax, dword ptr [{tail}]",
    "add eax, ecx",
    "cmp eax, {MOST}",
    ".byte 0x0f, 0x87",                     // ja none
    ".long {none}",
    "and edi, {MASK}",
    "cmp ecx, 1",
    "jne 70f",
    "movzx ecx, byte ptr [rsi]",
    "mov byte ptr [{bytes} + rdi], cl",
    "inc dword ptr [{head}]",
    "jmp 72f",
    "70:",
    "cld",
    "push rdx",
    "mov edx, {MOST}",
    "sub edx, edi",
    "cmp edx, ecx",
    "cmova edx, ecx",
    "sub ecx, edx",                         // behind the ring's end
    "xchg ecx, edx",
    "lea rdi, [{bytes} + rdi]",
    "rep movsb",
    "mov rdi, {bytes}",
    "mov ecx, edx",
    "rep movsb",
    "add eax, dword ptr [{tail}]",
    "mov dword ptr [{head}], eax",
    "pop rdx",
    "72:",
    "pop rax",
}

template! {
    /// Chains a signal to the cooked tty (S-80). Cost: 2 instructions.
    pub struct ChainTty { chained: Abs32, chain_at: Abs32, chain: Imm32 }
    "mov dword ptr [{chained}], 1",
    "mov dword ptr [{chain_at}], {chain}",
}

template! {
    /// Gives the registers back. Cost: 4 instructions.
    pub struct RawRestore {}
    "pop rdi",
    "pop rsi",
    "pop rcx",
    "pop rax",
}

template! {
    /// Forgets what `PutReceived` kept. Cost: 1 instruction.
    pub struct DropKept {}
    "pop rax",
}

fragments! {
    /// The end of an interrupt: the tty is told.
    list Tell<'a> of HandlerRoutine { chained: Abs32, chain: Chain, end: &'a Fragment } {
        paste ChainTty { chained, chain_at: chain.at, chain: chain.order };
        paste RawRestore {};
        paste (end);
    }
}

quaject! {
    /// The raw tty of a device.
    pub quaject RawTty ("raw tty", made by "boot", at most 0 inactive)
    facts(FACTS)
    data { words: Box<RawWords>, bytes: Box<[AtomicU8]> }
    factors(raw) {
        let word = |word: &AtomicU32| Abs32(core::ptr::from_ref(word) as u64);
        let head = word(&raw.words.head);
        let tail = word(&raw.words.tail);
        let chained = word(&raw.words.chained);
        let bytes = Abs32(raw.bytes.as_ptr() as u64);
    }
    callouts RawCallouts<'a> {
        /// The device's instructions.
        device: &'a ReceiveCode,
        /// How a handler chains the rest, and the machine's end of an interrupt.
        clock: &'a SampleClock,
    }
    callbacks {}
    callentries RawCode {
        /// Moves what the device has received into the ring, one of its buffers an interrupt, and chains the rest.
        interrupt: RawHandler(0) named "raw.interrupt" needs(device, clock) uses(no_room) {
            paste RawSave {};
            paste (&device.acknowledge[0]);
            space;
            paste (&device.acknowledge[1]);
            paste (&device.look);
            paste PutReceived { head, tail, bytes, none: no_room };
            paste (&device.give_back);
            include Tell { chained, chain: Chain::from(*clock), end: &clock.end };
            begin_no_room;
            paste DropKept {};
            begin_nothing;
            include Tell { chained, chain: Chain::from(*clock), end: &clock.end };
        }
        /// An interrupt that does nothing, to be measured.
        null: RawHandler(0) named "raw.null" needs(clock) uses() {
            paste (&clock.end);
        }
    }
}

impl RawTty {
    /// An empty ring. Nothing is allocated later.
    pub fn new() -> Result<RawTty, NoMemory> {
        let bytes = try_collect((0..RAW_BYTES).map(|_| AtomicU8::new(0))).map_err(|_| NoMemory)?;
        Ok(RawTty { words: Box::default(), bytes: bytes.into_boxed_slice() })
    }

    /// Bytes that fit.
    pub fn room(&self) -> usize {
        RAW_BYTES - self.len()
    }

    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.words.head.load(Ordering::Acquire).wrapping_sub(self.words.tail.load(Ordering::Relaxed)) as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Callentry of a producer in Rust: puts as many as fit and returns their number.
    pub fn put(&self, bytes: &[u8]) -> usize {
        let count = self.room().min(bytes.len());
        let head = self.words.head.load(Ordering::Relaxed);
        for (index, byte) in (head..).zip(&bytes[..count]) {
            self.place(index).store(*byte, Ordering::Relaxed);
        }
        self.words.head.store(head.wrapping_add(count as u32), Ordering::Release);
        count
    }

    /// Copies the oldest bytes, and leaves them; returns how many.
    pub fn peek(&self, into: &mut [u8]) -> usize {
        let count = self.len().min(into.len());
        let tail = self.words.tail.load(Ordering::Relaxed);
        for (at, byte) in into[..count].iter_mut().enumerate() {
            *byte = self.place(tail.wrapping_add(at as u32)).load(Ordering::Relaxed);
        }
        count
    }

    /// Takes the oldest `count` bytes out.
    pub fn skip(&self, count: usize) {
        let tail = self.words.tail.load(Ordering::Relaxed);
        self.words.tail.store(tail.wrapping_add(count.min(self.len()) as u32), Ordering::Release);
    }

    /// Whether the handler has chained a signal since the last time.
    pub fn take_signal(&self) -> bool {
        self.words.chained.load(Ordering::Relaxed) != 0 && self.words.chained.swap(0, Ordering::Relaxed) != 0
    }

    fn place(&self, index: u32) -> &AtomicU8 {
        &self.bytes[index as usize % RAW_BYTES]
    }

    /// The handler; `None` on a machine that has no such code, or no room for it.
    pub fn synthesize(&self, makers: Makers) -> Option<Code<RawHandler>> {
        let device = makers.machine.receive_code(Target::Label(NOTHING))?;
        let clock = makers.machine.sample_clock()?;
        self.interrupt(&device, &clock, makers)
    }

    fn interrupt(&self, device: &ReceiveCode, clock: &SampleClock, makers: Makers) -> Option<Code<RawHandler>> {
        let callouts = RawCallouts { device: Some(device), clock: Some(clock) };
        RawCode::interrupt(self, makers, &callouts).create(makers)
    }
}

/// Has the device's interrupt go to `handler`.
pub fn bind(machine: &dyn Machine, handler: &Code<RawHandler>) {
    machine.bind_receiver(handler.entry().under());
}

/// How long `count` interrupts of a key take, at most [`RAW_BYTES`], on a line of their own without a device: each finds a byte,
/// and puts it into a ring. `None`: the machine cannot do so.
pub fn measure(makers: Makers, count: u32) -> Option<Nanos> {
    let machine = makers.machine;
    let practice = machine.practice()?;
    let (raw, clock) = (RawTty::new().ok()?, machine.sample_clock()?);
    let device = practice.practice_code(Target::Label(NOTHING))?;
    let handler = raw.interrupt(&device, &clock, makers)?;
    let callouts = RawCallouts { device: None, clock: Some(&clock) };
    let null = RawCode::null(&raw, makers, &callouts).create(makers)?;
    // The slot's jump and the null handler's two instructions are part of an interrupt.
    const ENTRY_AND_END: u64 = 3;
    let [took, without] = [&handler, &null].map(|handler| {
        let before = machine.now();
        practice.practice(handler.entry().under(), count);
        machine.now().saturating_sub(before)
    });
    (raw.len() == count as usize).then(|| Nanos(took.saturating_sub(without).0 + ENTRY_AND_END * u64::from(count)))
}

/// What the handler's holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::half("head", "bytes received so far", "never"),
    Fact::half("tail", "bytes that the tty has taken so far", "never"),
    Fact::value("bytes", "the raw tty's ring", "never"),
    Fact::half("chained", "a signal to the tty is chained", "never"),
    Fact::word("chain_at", "register of the interrupt controller", "never"),
    Fact::word("end_of_interrupt", "register of the interrupt controller", "never"),
    Fact::value("chain", "the processor's order to itself to do what is chained", "never"),
];
