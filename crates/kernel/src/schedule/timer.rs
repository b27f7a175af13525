//! The timer's interrupt as code (S-78, S-79, S-80).
//!
//! ```text
//!   interrupt ─► timer.interrupt ─ nothing is due ─► timer.kernel: the quantum, by the machine (S-81)
//!                      └ jmp [routine] ─► the first alarm's own code ─► timer.next: the next alarm ─► back
//!                                               └ somebody waits, or others are ready ─► timer.kernel
//! ```
//! What is to be done at an alarm is an address, stored when the alarm is set. For an alarm of Rust it is that of `timer.kernel`.
//! The handler saves three registers and calls no Rust, so it may come into the kernel's Rust while that is open; there
//! `timer.kernel` has the machine chain the kernel's own part. `timer.nesting` is bound while interrupts nest: it lets the
//! higher levels in.

use core::mem::offset_of;
use core::sync::atomic::AtomicU64;

use codestore::Code;
use machine::{AlarmEntry, Keeps, ScheduleWords, TimerCode, TimerEntry};
use quaject::{Contract, quaject};
use synth::{Abs32, Fact, Target, template};

use super::alarm::Entry;
use crate::call::Makers;
use crate::interrupt::HandlerRoutine;

/// Register contract of the timer's code: on the stack of whoever was interrupted lie rcx, rdx, rax and the interrupt's
/// frame; rax = nanoseconds since boot. The two handlers are entered with the frame alone.
pub enum TimerHandler {}

impl Keeps<TimerEntry> for TimerHandler {}
impl Keeps<AlarmEntry> for TimerHandler {}

impl Contract for TimerHandler {
    const NAME: &'static str = "timer handler";
    const PEEPHOLES: bool = false;
    type Routine = HandlerRoutine;
}

template! {
    /// Saves what the handler uses (S-79). Cost: 3 instructions.
    pub struct TimerSave {}
    "push rax",
    "push rdx",
    "push rcx",
}

template! {
    /// Gives it back. Cost: 3 instructions.
    pub struct TimerRestore {}
    "pop rcx",
    "pop rdx",
    "pop rax",
}

template! {
    /// Decides: an alarm, or the quantum. Cost: 3 instructions.
    pub struct TimerLook { due: Abs32, routine: Abs32, kernel: Target }
    "cmp rax, qword ptr [{due}]",
    ".byte 0x0f, 0x82",                     // jb kernel
    ".long {kernel}",
    "jmp qword ptr [{routine}]",
}

template! {
    /// Hands the interrupt on. Cost: 1 instruction.
    pub struct TimerLeave { to: Target }
    ".byte 0xe9",
    ".long {to}",
}

template! {
    /// An alarm that counts what nobody waits for; it is the kernel's if somebody does, or if others are ready, for whom the
    /// timer would have to be set. Clobbers nothing. Cost: 10 instructions, 11 in the kernel.
    pub struct CountAlarm {
        waiting: Abs32, ready: Abs32, unread: Abs32, ever: Abs32, at: Abs32, inside: Abs32, kernel: Target, next: Target
    }
    "cmp qword ptr [{waiting}], 0",
    ".byte 0x0f, 0x85",                     // jne kernel
    ".long {kernel}",
    "cmp qword ptr [{ready}], 1",
    ".byte 0x0f, 0x87",                     // ja kernel
    ".long {kernel}",
    "inc qword ptr [{unread}]",
    "inc qword ptr [{ever}]",
    "mov qword ptr [{at}], 0",
    "test byte ptr [rsp + 32], 3",          // the interrupted code segment
    "jne 70f",
    "inc qword ptr [{inside}]",
    "70:",
    ".byte 0xe9",
    ".long {next}",
}

template! {
    /// Takes the first alarm out and sees when the next is due. In: rax = now. Out: ecx = nanoseconds until then, at least 1; leaves
    /// through `none` if there is none. Clobbers rdx. Cost: 18 instructions.
    pub struct NextAlarm { rung: Abs32, count: Abs32, alarms: Abs32, routine: Abs32, due: Abs32, armed: Abs32, none: Target }
    where { SHIFT = size_of::<Entry>().trailing_zeros(), ENTRY = size_of::<Entry>(), ROUTINE = offset_of!(Entry, routine) }
    "inc qword ptr [{rung}]",
    "dec qword ptr [{count}]",
    "mov rcx, qword ptr [{count}]",
    "shl rcx, {SHIFT}",
    "add rcx, qword ptr [{alarms}]",
    "mov rdx, qword ptr [rcx - {ENTRY} + {ROUTINE}]",
    "mov qword ptr [{routine}], rdx",
    "mov rcx, qword ptr [rcx - {ENTRY}]",
    "mov qword ptr [{due}], rcx",
    "mov qword ptr [{armed}], rcx",
    "cmp rcx, -1",
    ".byte 0x0f, 0x84",                     // je none
    ".long {none}",
    "mov edx, 1",
    "sub rcx, rax",
    "cmovbe rcx, rdx",                      // due already
    "mov eax, -1",
    "cmp rcx, rax",
    "cmova ecx, eax",                       // later than the timer can wait
}

quaject! {
    /// The timer: what the scheduler and the code of its alarms share. It borrows the scheduler's words, which stay.
    pub quaject AlarmClock ("timer", made by "boot", at most 0 inactive)
    facts(FACTS)
    data { words: &'static ScheduleWords }
    factors(timer) {
        let routine = Abs32(core::ptr::from_ref(&timer.words.routine) as u64);
        let due = word(&timer.words.due);
        let rung = word(&timer.words.rung);
        let armed = word(&timer.words.armed);
        let count = word(&timer.words.alarm_count);
        let alarms = Abs32(timer.words.alarms.address());
        let ready = word(&timer.words.ready);
        let inside = word(&timer.words.rung_inside);
    }
    callouts AlarmCallouts<'a> {
        /// The machine's instructions around ours.
        code: &'a TimerCode,
        /// The timer's own `kernel`.
        rust: Target,
        /// The timer's own `next`.
        behind: Target,
        /// What an alarm counts.
        counts: &'a CountWords<'a>,
    }
    callbacks {}
    callentries AlarmCode {
        /// The interrupt is the kernel's.
        kernel: TimerHandler(0) named "timer.kernel" needs(code) uses() {
            paste (&code.close);
            paste TimerRestore {};
            paste TimerLeave { to: Target::Address(code.kernel.address()) };
        }
        /// The first alarm has rung.
        next: TimerHandler(0) named "timer.next" needs(code) uses(nothing) {
            paste (&code.close);
            paste NextAlarm { rung, count, alarms, routine, due, armed, none: nothing };
            paste (&code.arm);
            begin_nothing;
            paste TimerRestore {};
            paste (&code.end);
        }
        interrupt: TimerHandler(0) named "timer.interrupt" needs(code, rust) uses() {
            paste TimerSave {};
            paste (&code.now);
            paste TimerLook { due, routine, kernel: *rust };
        }
        /// As `interrupt`, while interrupts nest.
        nesting: TimerHandler(0) named "timer.nesting" needs(code, rust) uses() {
            paste TimerSave {};
            paste (&code.open);
            paste (&code.now);
            paste TimerLook { due, routine, kernel: *rust };
        }
        /// An alarm that counts: one for each timer of a program.
        count: TimerHandler(0) named "timer.count" needs(rust, behind, counts) uses() {
            paste CountAlarm {
                waiting: Abs32(counts.waiting), ready, unread: word(counts.unread), ever: word(counts.ever), at: word(counts.at),
                inside, kernel: *rust, next: *behind,
            };
        }
    }
}

/// The machine's templates around ours are the same for both entries.
pub struct TimerCodes {
    timer: AlarmClock,
    pub interrupt: Code<TimerHandler>,
    pub nesting: Code<TimerHandler>,
    kernel: Code<TimerHandler>,
    next: Code<TimerHandler>,
}

/// The words that a counting alarm changes: see [`CountAlarm`].
pub struct CountWords<'a> {
    /// How many wait.
    pub waiting: u64,
    pub unread: &'a AtomicU64,
    pub ever: &'a AtomicU64,
    /// When it is set for.
    pub at: &'a AtomicU64,
}

fn word(word: &AtomicU64) -> Abs32 {
    Abs32(core::ptr::from_ref(word) as u64)
}

impl TimerCodes {
    /// The handler of the timer's interrupt. `None`: no room.
    pub fn synthesize(makers: Makers, code: &TimerCode, words: &'static ScheduleWords) -> Option<TimerCodes> {
        let timer = AlarmClock { words };
        let mut callouts = AlarmCallouts { code: Some(code), ..Default::default() };
        let kernel = AlarmCode::kernel(&timer, makers, &callouts).create(makers)?;
        let next = AlarmCode::next(&timer, makers, &callouts).create(makers)?;
        callouts.rust = Some(Target::Address(kernel.entry().address()));
        let interrupt = AlarmCode::interrupt(&timer, makers, &callouts).create(makers)?;
        let nesting = AlarmCode::nesting(&timer, makers, &callouts).create(makers)?;
        Some(TimerCodes { timer, interrupt, nesting, kernel, next })
    }

    /// Where alarms go that are Rust's.
    pub fn kernel(&self) -> machine::Entry<AlarmEntry> {
        self.kernel.entry().under()
    }

    /// Where alarms go that have rung.
    pub fn next(&self) -> u64 {
        self.next.entry().address()
    }

    /// What to do at an alarm that counts. It must not be set any more when the code is dropped. `None`: no room.
    pub fn count(&self, makers: Makers, counts: &CountWords<'_>) -> Option<Code<TimerHandler>> {
        let [rust, behind] = [self.kernel().address(), self.next()].map(|entry| Some(Target::Address(entry)));
        let callouts = AlarmCallouts { rust, behind, counts: Some(counts), code: None };
        AlarmCode::count(&self.timer, makers, &callouts).create(makers)
    }
}

/// What the holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::word("due", "when the first alarm is due", "never: each change of the alarms stores another time"),
    Fact::word("routine", "what the first alarm does", "never: each change of the alarms stores another address"),
    Fact::value("kernel", "the interrupt is the kernel's", "never"),
    Fact::value("to", "the machine's entry of the timer's interrupt", "never"),
    Fact::word("waiting", "who waits for the timer", "the timer is closed"),
    Fact::word("ready", "threads in the ready ring", "never"),
    Fact::word("unread", "expirations that nobody has read", "the timer is closed"),
    Fact::word("ever", "expirations", "the timer is closed"),
    Fact::word("at", "when the timer goes off", "the timer is closed"),
    Fact::word("inside", "alarms that rang in the kernel", "never"),
    Fact::value("next", "takes the alarm out", "never"),
    Fact::word("rung", "alarms that rang without the kernel", "never"),
    Fact::word("count", "set alarms", "never"),
    Fact::word("alarms", "the set alarms, the first one last", "never"),
    Fact::word("armed", "when the timer goes off", "never"),
    Fact::word("clock_base", "the counter at time zero", "never"),
    Fact::word("clock_scale", "nanoseconds a tick", "never"),
    Fact::word("timer_count", "register of the interrupt controller", "never"),
    Fact::word("end_of_interrupt", "register of the interrupt controller", "never"),
];
