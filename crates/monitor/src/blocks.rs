//! Small quajects for people to play with: building blocks of words, synthesized for their data (S-32, S-120).
//!
//! All callentries are functions of words in C's calling convention: arguments in rdi and rsi, the answer in rax, all
//! other caller-saved registers lost. [`NOTHING`] is the answer of who has none. A callout is a slot that is called, or
//! the called one's instructions, pasted ([`Way`]).

#![allow(unsafe_code, reason = "the template macro names linker symbols")]

use alloc::vec::Vec;

use synth::{Abs32, Draft, Imm32, Label, Target, Template, template};

/// The answer of an empty queue, a full one, a busy monitor, a callout that leads nowhere.
pub const NOTHING: u64 = u64::MAX;

/// What a callentry does, and a callout wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// Answers a word.
    Gives,
    /// Takes a word.
    Takes,
    /// Neither: only people and threads call it.
    Does,
    /// A callback: tells a word to whom it is bound, and asks for no answer.
    Tells,
}

/// A callentry of a kind. `pastes`: its instructions can stand in the caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Callentry {
    pub name: &'static str,
    pub birth: &'static str,
    pub arguments: u8,
    pub flow: Flow,
    pub pastes: bool,
}

const fn callentry(name: &'static str, birth: &'static str, arguments: u8, flow: Flow, pastes: bool) -> Callentry {
    Callentry { name, birth, arguments, flow, pastes }
}

/// What all quajects of one kind have in common. `shared`: several may call at a time.
#[derive(Debug)]
pub struct Kind {
    pub name: &'static str,
    pub callentries: &'static [Callentry],
    pub callouts: &'static [(&'static str, Flow)],
    pub shared: bool,
}

/// Words of data that every quaject has, in front of its slots. The first one can be set.
pub const DATA_WORDS: usize = 6;

/// Places in [`KINDS`].
pub const GAUGE: usize = 0;
pub const QUEUE: usize = 1;
pub const SWITCH: usize = 2;
pub const PUMP: usize = 3;
pub const MONITOR: usize = 4;
pub const CLOCK: usize = 5;
pub const PROBE: usize = 6;
/// A stream of a program, a byte a word. It is made by its own request, as the next.
pub const STREAM: usize = 7;
/// Around a callentry of a program's stream.
pub const WATCH: usize = 8;

/// All that there is; people can make those before [`STREAM`].
pub static KINDS: [Kind; 9] = {
    use Flow::{Does, Gives, Takes, Tells};
    [
        Kind {
            name: "gauge",
            callentries: &[
                callentry("add", "gauge.add", 1, Takes, true),
                callentry("read", "gauge.read", 0, Gives, false),
            ],
            callouts: &[],
            shared: true,
        },
        Kind {
            name: "queue",
            callentries: &[
                callentry("put", "queue.put", 1, Takes, false),
                callentry("get", "queue.get", 0, Gives, false),
            ],
            callouts: &[("full", Tells)],
            shared: false,
        },
        Kind {
            name: "switch",
            callentries: &[
                callentry("route", "switch.route", 2, Does, false),
                callentry("send", "switch.send", 1, Takes, false),
            ],
            callouts: &[("0", Takes), ("1", Takes), ("2", Takes), ("3", Takes)],
            shared: true,
        },
        Kind {
            name: "pump",
            callentries: &[callentry("turn", "pump.turn", 1, Does, false)],
            callouts: &[("in", Gives), ("out", Takes), ("done", Tells)],
            shared: false,
        },
        Kind {
            name: "monitor",
            callentries: &[callentry("enter", "monitor.enter", 1, Takes, false)],
            callouts: &[("out", Takes)],
            shared: true,
        },
        Kind {
            name: "clock",
            callentries: &[callentry("read", "clock.read", 0, Gives, true)],
            callouts: &[],
            shared: true,
        },
        Kind {
            name: "probe",
            callentries: &[callentry("call", "probe.call", 1, Takes, false)],
            callouts: &[("out", Takes)],
            shared: true,
        },
        Kind {
            name: "stream",
            callentries: &[
                callentry("get", "stream.get", 0, Gives, false),
                callentry("put", "stream.put", 1, Takes, false),
            ],
            callouts: &[],
            shared: true,
        },
        Kind {
            name: "watch",
            callentries: &[
                callentry("calls", "watch.calls", 0, Gives, false),
                callentry("ticks", "watch.ticks", 0, Gives, false),
            ],
            callouts: &[("told", Tells)],
            shared: true,
        },
    ]
};

/// How a routine reaches what it calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Through the slot at this address.
    Slot(u64),
    /// [`gauge_add`]'s instructions for the gauge at this address stand here.
    Gauge(u64),
    /// [`clock_read`]'s instructions stand here.
    Clock,
}

impl Way {
    fn append_to(self, draft: &mut Draft) {
        match self {
            Way::Slot(slot) => CallSlot { slot: Abs32(slot) }.append_to(draft),
            Way::Gauge(word) => AddToGauge { word: Abs32(word) }.append_to(draft),
            Way::Clock => ReadClock {}.append_to(draft),
        }
    }
}

template! {
    /// In: arguments. Out: rax.
    pub struct CallSlot { slot: Abs32 }
    "call qword ptr [{slot}]",
}

template! {
    /// In: rdi = how much. Out: rax = the sum.
    pub struct AddToGauge { word: Abs32 }
    "mov rax, rdi",
    "add rax, qword ptr [{word}]",
    "mov qword ptr [{word}], rax",
}

template! {
    /// Out: rax = the processor's counter. Clobbers rdx.
    pub struct ReadClock {}
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
}

template! {
    /// Out: rax.
    pub struct LoadWordAt { word: Abs32 }
    "mov rax, qword ptr [{word}]",
}

template! {
    pub struct ReturnWord {}
    "ret",
}

template! {
    /// Answers nothing.
    pub struct AnswerNothing {}
    "mov rax, -1",
    "ret",
}

template! {
    /// In: rdi = a word. Out: rax = 1. Clobbers rcx. Leaves through `full`.
    pub struct PutWord { head: Abs32, tail: Abs32, capacity: Imm32, mask: Imm32, words: Abs32, full: Target }
    "mov rax, qword ptr [{head}]",
    "mov rcx, rax",
    "sub rcx, qword ptr [{tail}]",
    "cmp rcx, {capacity}",
    ".byte 0x0f, 0x83",
    ".long {full}",
    "mov ecx, eax",
    "and ecx, {mask}",
    "mov qword ptr [rcx*8 + {words}], rdi",
    "inc rax",
    "mov qword ptr [{head}], rax",
    "mov eax, 1",
}

template! {
    /// Out: rax = the word. Clobbers rcx, rdx. Leaves through `empty`.
    pub struct GetWord { head: Abs32, tail: Abs32, mask: Imm32, words: Abs32, empty: Target }
    "mov rdx, qword ptr [{tail}]",
    "cmp rdx, qword ptr [{head}]",
    ".byte 0x0f, 0x84",
    ".long {empty}",
    "mov ecx, edx",
    "and ecx, {mask}",
    "mov rax, qword ptr [rcx*8 + {words}]",
    "inc rdx",
    "mov qword ptr [{tail}], rdx",
}

template! {
    /// In: rdi = key, rsi = a word. Goes to the key's slot with rdi = the word. Leaves through `none`.
    pub struct Route { ways: Imm32, slots: Abs32, none: Target }
    "cmp rdi, {ways}",
    ".byte 0x0f, 0x83",
    ".long {none}",
    "mov rax, qword ptr [rdi*8 + {slots}]",
    "mov rdi, rsi",
    "jmp rax",
}

template! {
    /// In: rdi = a word. Goes to the slot whose number stands in `way`. Leaves through `none`.
    pub struct Send { way: Abs32, ways: Imm32, slots: Abs32, none: Target }
    "mov rax, qword ptr [{way}]",
    "cmp rax, {ways}",
    ".byte 0x0f, 0x83",
    ".long {none}",
    "jmp qword ptr [rax*8 + {slots}]",
}

template! {
    /// Tells a word in rdi, and leaves with nothing.
    pub struct TellAndAnswerNothing { slot: Abs32 }
    "sub rsp, 8",
    "call qword ptr [{slot}]",
    "add rsp, 8",
    "mov rax, -1",
    "ret",
}

template! {
    /// A word that was not taken last time comes first: at `put`.
    pub struct PumpHeld { held: Abs32, put: Target }
    "cmp qword ptr [{held}], 0",
    ".byte 0x0f, 0x85",
    ".long {put}",
}

template! {
    /// Keeps the word until it is taken.
    pub struct PumpHold { word: Abs32, held: Abs32 }
    "mov qword ptr [{word}], rax",
    "mov qword ptr [{held}], 1",
}

template! {
    /// Out: rdi = the word.
    pub struct PumpTake { word: Abs32 }
    "mov rdi, qword ptr [{word}]",
}

template! {
    /// Leaves through `end` if the word was not taken.
    pub struct PumpTaken { end: Target }
    "cmp rax, -1",
    ".byte 0x0f, 0x84",
    ".long {end}",
}

template! {
    /// Adds up what was carried, and tells it if it is something.
    pub struct PumpDone { total: Abs32, done: Abs32 }
    "test r12, r12",
    "je 79f",
    "add qword ptr [{total}], r12",
    "mov rdi, r12",
    "call qword ptr [{done}]",
    "79:",
}

template! {
    /// A function of the kernel does it. In: rdi = a word. `number` is that of the quaject.
    pub struct DoneInRust { number: Imm32, function: Target }
    "mov rsi, rdi",
    "mov edi, {number}",
    ".byte 0xe9",
    ".long {function}",
}

template! {
    /// In: rdi = most words; more than 4,096 are not carried. rbx = how many may still come, r12 = how many came.
    pub struct BeginPump {}
    "push rbx",
    "push r12",
    "sub rsp, 8",
    "mov ebx, 4096",
    "cmp rdi, rbx",
    "cmovb rbx, rdi",
    "xor r12d, r12d",
}

template! {
    /// Leaves through `end` when as many came as may.
    pub struct PumpMore { end: Target }
    "sub rbx, 1",
    ".byte 0x0f, 0x82",
    ".long {end}",
}

template! {
    /// One more has been put; back to `again`.
    pub struct PumpPut { held: Abs32, again: Target }
    "mov qword ptr [{held}], 0",
    "inc r12",
    ".byte 0xe9",
    ".long {again}",
}

template! {
    /// Out: rax = how many came.
    pub struct EndPump {}
    "mov rax, r12",
    "add rsp, 8",
    "pop r12",
    "pop rbx",
    "ret",
}

template! {
    /// Leaves through `busy` if somebody is in; else lets in.
    pub struct EnterMonitor { word: Abs32, busy: Target }
    "cmp qword ptr [{word}], 0",
    ".byte 0x0f, 0x85",
    ".long {busy}",
    "mov qword ptr [{word}], 1",
    "sub rsp, 8",
}

template! {
    pub struct LeaveMonitor { word: Abs32 }
    "add rsp, 8",
    "mov qword ptr [{word}], 0",
    "ret",
}

template! {
    /// Notes the processor's counter; the arguments stay.
    pub struct BeginProbe {}
    "push rbx",
    "mov r10, rdx",
    "rdtsc",
    "shl rdx, 32",
    "lea rbx, [rax + rdx]",
    "mov rdx, r10",
}

template! {
    /// Adds what the call took to `ticks`, and one to `calls`. Out: rax as it was.
    pub struct EndProbe { ticks: Abs32, calls: Abs32 }
    "mov rcx, rax",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "sub rax, rbx",
    "add qword ptr [{ticks}], rax",
    "inc qword ptr [{calls}]",
    "mov rax, rcx",
    "pop rbx",
    "ret",
}

const NONE: Label = Label(0);
const AGAIN: Label = Label(1);
const PUT: Label = Label(2);

fn answer_nothing(draft: &mut Draft) {
    draft.place(NONE);
    AnswerNothing {}.append_to(draft);
}

/// `add(amount)`: the sum.
pub fn gauge_add(word: u64) -> Draft {
    let mut draft = Draft::new();
    Way::Gauge(word).append_to(&mut draft);
    ReturnWord {}.append_to(&mut draft);
    draft
}

/// `read()`: the word.
pub fn word_read(word: u64) -> Draft {
    let mut draft = Draft::new();
    LoadWordAt { word: Abs32(word) }.append_to(&mut draft);
    ReturnWord {}.append_to(&mut draft);
    draft
}

/// `read()`: the processor's counter.
pub fn clock_read() -> Draft {
    let mut draft = Draft::new();
    Way::Clock.append_to(&mut draft);
    ReturnWord {}.append_to(&mut draft);
    draft
}

/// Where a queue's words are: head, tail, the slot of who is told that it is full, then `capacity` words, a power of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueAt {
    pub full: u64,
    pub head: u64,
    pub tail: u64,
    pub words: u64,
    pub capacity: u32,
}

/// `put(word)`: 1.
pub fn queue_put(at: QueueAt) -> Draft {
    let mut draft = Draft::new();
    let QueueAt { head, tail, words, capacity, full } = at;
    PutWord {
        head: Abs32(head),
        tail: Abs32(tail),
        capacity: Imm32(capacity),
        mask: Imm32(capacity - 1),
        words: Abs32(words),
        full: Target::Label(NONE),
    }
    .append_to(&mut draft);
    ReturnWord {}.append_to(&mut draft);
    draft.place(NONE);
    TellAndAnswerNothing { slot: Abs32(full) }.append_to(&mut draft);
    draft
}

/// `get()`: the oldest word.
pub fn queue_get(at: QueueAt) -> Draft {
    let mut draft = Draft::new();
    let QueueAt { head, tail, words, capacity, .. } = at;
    GetWord {
        head: Abs32(head),
        tail: Abs32(tail),
        mask: Imm32(capacity - 1),
        words: Abs32(words),
        empty: Target::Label(NONE),
    }
    .append_to(&mut draft);
    ReturnWord {}.append_to(&mut draft);
    answer_nothing(&mut draft);
    draft
}

/// `route(key, word)`: what the key's way answers.
pub fn switch_route(slots: u64, ways: u32) -> Draft {
    let mut draft = Draft::new();
    Route { ways: Imm32(ways), slots: Abs32(slots), none: Target::Label(NONE) }.append_to(&mut draft);
    answer_nothing(&mut draft);
    draft
}

/// `send(word)`: what the way answers whose number stands in `way`.
pub fn switch_send(way: u64, slots: u64, ways: u32) -> Draft {
    let mut draft = Draft::new();
    Send { way: Abs32(way), ways: Imm32(ways), slots: Abs32(slots), none: Target::Label(NONE) }.append_to(&mut draft);
    answer_nothing(&mut draft);
    draft
}

/// Where a pump's words are: the one that was not taken yet and whether there is one, all that were carried, the slot of
/// who is told of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PumpAt {
    pub word: u64,
    pub held: u64,
    pub total: u64,
    pub done: u64,
}

/// `turn(most)`: how many words went from `input` to `output`. A word that is not taken stays with the pump.
pub fn pump_turn(at: PumpAt, input: Way, output: Way) -> Draft {
    let mut draft = Draft::new();
    let (word, held, end) = (Abs32(at.word), Abs32(at.held), Target::Label(NONE));
    BeginPump {}.append_to(&mut draft);
    draft.place(AGAIN);
    PumpMore { end }.append_to(&mut draft);
    PumpHeld { held, put: Target::Label(PUT) }.append_to(&mut draft);
    input.append_to(&mut draft);
    PumpTaken { end }.append_to(&mut draft);
    PumpHold { word, held }.append_to(&mut draft);
    draft.place(PUT);
    PumpTake { word }.append_to(&mut draft);
    output.append_to(&mut draft);
    // A gauge whose instructions stand here takes everything, whatever its sum is.
    if !matches!(output, Way::Gauge(_)) {
        PumpTaken { end }.append_to(&mut draft);
    }
    PumpPut { held, again: Target::Label(AGAIN) }.append_to(&mut draft);
    draft.place(NONE);
    PumpDone { total: Abs32(at.total), done: Abs32(at.done) }.append_to(&mut draft);
    EndPump {}.append_to(&mut draft);
    draft
}

/// What a function of the kernel does for quaject `number`, in C's calling convention.
pub fn done_in_rust(number: u32, function: u64) -> Draft {
    let mut draft = Draft::new();
    DoneInRust { number: Imm32(number), function: Target::Address(function) }.append_to(&mut draft);
    draft
}

/// `enter(word)`: what the callout answers; one at a time.
pub fn monitor_enter(busy: u64, output: Way) -> Draft {
    let mut draft = Draft::new();
    EnterMonitor { word: Abs32(busy), busy: Target::Label(NONE) }.append_to(&mut draft);
    output.append_to(&mut draft);
    LeaveMonitor { word: Abs32(busy) }.append_to(&mut draft);
    answer_nothing(&mut draft);
    draft
}

/// `call(…)`: what the callout answers; how long it took is added up.
pub fn probe_call(ticks: u64, calls: u64, output: Way) -> Draft {
    let mut draft = Draft::new();
    BeginProbe {}.append_to(&mut draft);
    output.append_to(&mut draft);
    EndProbe { ticks: Abs32(ticks), calls: Abs32(calls) }.append_to(&mut draft);
    draft
}

/// What a callout leads to that is not connected.
pub fn unconnected() -> Draft {
    let mut draft = Draft::new();
    AnswerNothing {}.append_to(&mut draft);
    draft
}

/// Every template, for the golden listings.
pub(crate) fn all() -> Vec<Template> {
    [
        CallSlot::template(),
        AddToGauge::template(),
        ReadClock::template(),
        LoadWordAt::template(),
        ReturnWord::template(),
        AnswerNothing::template(),
        PutWord::template(),
        GetWord::template(),
        Route::template(),
        BeginPump::template(),
        PumpMore::template(),
        Send::template(),
        TellAndAnswerNothing::template(),
        PumpHeld::template(),
        PumpHold::template(),
        PumpTake::template(),
        PumpTaken::template(),
        PumpDone::template(),
        DoneInRust::template(),
        PumpPut::template(),
        EndPump::template(),
        EnterMonitor::template(),
        LeaveMonitor::template(),
        BeginProbe::template(),
        EndProbe::template(),
    ]
    .into()
}
