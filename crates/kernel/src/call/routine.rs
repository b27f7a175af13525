//! Assembling a routine: fragments of ours, fragments of the machine, the way out.

use machine::Sleeping;
use quaject::Makers;
use synth::{Abs32, Draft, Fact, Imm32, Label, Paste, Target, jump, template};

use super::fragments::AtMost;
use super::watch;

/// The way to the Rust twin, with all registers as at entry.
const SLOW: Label = Label(0);
/// As `SLOW`, but rdx must become 1 again first.
const SLOW_ONE: Label = Label(1);
/// As `SLOW`, but rdi, rsi and rcx stand on the stack.
pub(crate) const SLOW_MANY: Label = Label(2);
/// Where instructions of a machine go that refuse, behind `Keep`.
pub(crate) const REFUSED: Target = Target::Label(SLOW_MANY);
/// As `SLOW_MANY`, but a filter's registers stand on the stack behind those.
const SLOW_FILTER: Label = Label(4);
/// The part for any number of bytes.
const MANY: Label = Label(6);

/// A part that others of the routine call.
const INNER: Label = Label(5);

/// As `SLOW_MANY`, but rdx, r8 and r9 stand on the stack behind those.
const SLOW_PAGES: Label = Label(3);

/// Somebody waits whom the call would have to wake.
const WAKE: Label = Label(7);
/// There is nothing to do the call with.
const SLEEP: Label = Label(8);
/// As `SLEEP`, but rdx must become 1 again first.
const SLEEP_ONE: Label = Label(9);

/// Another part of the routine.
const OTHER: Label = Label(10);

template! {
    /// Somebody waits: the machine links the sleeper in and makes the call anew. Cost: 3 instructions.
    pub struct GoWake { number: Imm32, queue: Abs32, wake: Target }
    "push {number}",
    "mov rax, {queue}",
    jump!(jmp wake),
}

template! {
    /// The thread sleeps until the call can be done, unless a word says that it must not, or nothing is asked for. Cost: 7 instructions.
    pub struct GoSleep { may_sleep: Abs32, number: Imm32, queue: Abs32, sleep: Target, slow: Target }
    "test rdx, rdx",
    jump!(je slow),
    "cmp qword ptr [{may_sleep}], 0",
    jump!(je slow),
    "push {number}",
    "mov rax, {queue}",
    jump!(jmp sleep),
}

template! {
    /// Ends in the Rust twin. In: registers as at entry, rax lost. Cost: 2 instructions.
    pub struct GoSlow { number: Imm32, slow: Target }
    "mov eax, {number}",
    ".byte 0xe9",
    ".long {slow}",
}

template! {
    /// Ends a part in which rdx, which was 1, was used. Falls through to `GoSlow`.
    pub struct RestoreOne {}
    "mov edx, 1",
}

template! {
    /// Ends a part that had three registers on the stack. Falls through to `GoSlow`.
    pub struct RestoreMany {}
    "pop rcx",
    "pop rsi",
    "pop rdi",
}

template! {
    /// Ends a part that had a filter's registers on the stack, and one more word. Falls through to `RestoreMany`.
    pub struct RestoreFilter {}
    "pop rdx",
    "pop r11",
    "pop r10",
    "pop r9",
    "pop r8",
    "pop rdx",
}

template! {
    /// Ends a part that had r9, r8 and rdx on the stack. Falls through to `RestoreMany`.
    pub struct RestorePages {}
    "pop r9",
    "pop r8",
    "pop rdx",
}

template! {
    /// An operation on a stream is done: the scheduler's gauge (S-31) counts it. Cost: 1 instruction.
    pub struct Count { gauge: Abs32 }
    "inc qword ptr [{gauge}]",
}

/// A routine in the making.
pub struct Routine {
    makers: Makers,
    draft: Draft,
    number: u32,
    has_filter: bool,
    has_pages: bool,
    sleeps: Option<Sleeps>,
    wakes: Option<Abs32>,
}

/// Where a call sleeps that finds nothing.
#[derive(Clone, Copy)]
pub struct Sleeps {
    /// The queue's words.
    pub queue: Abs32,
    /// A word that is 0 when the call must not sleep: it is done in Rust then.
    pub may_sleep: Abs32,
    /// Calls for more are done in Rust.
    pub most: Option<Imm32>,
}

/// Number of rax.
const RAX: u8 = 0;

impl quaject::Routine for Routine {
    fn begin(makers: Makers, number: u64) -> Routine {
        let mut draft = Draft::new();
        draft.assume(RAX, number);
        Routine { makers, draft, number: number as u32, has_filter: false, has_pages: false, sleeps: None, wakes: None }
    }

    fn callback(&self, name: &'static str, unconnected: Target) -> Target {
        match (self.makers.watch().and_then(|watch| watch.callback), unconnected) {
            (Some((bound, ways)), Target::Label(label)) if bound == name => Target::Address(ways[usize::from(label.0)]),
            _ => unconnected,
        }
    }

    fn finish(mut self) -> Draft {
        let slow = self.makers.watch().map_or_else(|| self.makers.machine.slow_call().address(), |watch| watch.slow);
        let slow = GoSlow { number: Imm32(self.number), slow: Target::Address(slow) };
        if self.has_filter {
            self.draft.place(SLOW_FILTER);
            self.paste(RestoreFilter {});
        }
        if self.has_pages {
            self.draft.place(SLOW_PAGES);
            self.paste(RestorePages {});
        }
        self.finish_sleep();
        self.draft.place(SLOW_MANY);
        self.paste(RestoreMany {});
        self.draft.place(SLOW);
        self.paste(slow);
        self.draft.place(SLOW_ONE);
        self.paste(RestoreOne {});
        self.paste(slow);
        self.draft
    }
}

impl Routine {
    /// Whether threads sleep and wake by code, on this machine and in this routine.
    fn sleeping(&self) -> Option<Sleeping> {
        if self.makers.watch().is_some() { None } else { self.makers.machine.sleeping() }
    }

    fn machine_sleeping(&self) -> Sleeping {
        self.makers.machine.sleeping().expect("such routines are made where threads sleep by code")
    }

    fn finish_sleep(&mut self) {
        let Some(Sleeping { sleep, wake, .. }) = self.sleeping() else { return };
        let (number, slow) = (Imm32(self.number), Target::Label(SLOW));
        if let Some(queue) = self.wakes {
            self.draft.place(WAKE);
            self.paste(GoWake { number, queue, wake: Target::Address(wake.address()) });
        }
        if let Some(Sleeps { queue, may_sleep, most }) = self.sleeps {
            self.draft.place(SLEEP_ONE);
            self.paste(RestoreOne {});
            self.draft.place(SLEEP);
            self.paste(most.map(|most| AtMost { most, slow }));
            self.paste(GoSleep { may_sleep, number, queue, sleep: Target::Address(sleep.address()), slow });
        }
    }

    /// Threads that come here sleep in this queue.
    pub fn sleeps(&mut self, sleeps: Sleeps) {
        self.sleeps = Some(sleeps);
    }

    /// Who sleeps in the queue with these words is woken.
    pub fn wakes(&mut self, queue: Abs32) {
        self.wakes = Some(queue);
    }
}

/// What a declaration's callentries use, and the words in front of their fragments.
impl Routine {
    /// Done in Rust, with the program's registers but rax.
    pub fn slow(&self) -> Target {
        Target::Label(SLOW)
    }

    /// As `slow`, where rdx was 1 and is lost.
    pub fn slow_one(&self) -> Target {
        Target::Label(SLOW_ONE)
    }

    /// As `slow`, where `Keep` was pasted.
    pub fn slow_many(&self) -> Target {
        Target::Label(SLOW_MANY)
    }

    /// To who sleeps and must be woken; the callentry says [in which queue](Routine::wakes).
    pub fn wake(&self) -> Target {
        Target::Label(if self.sleeping().is_some() { WAKE } else { SLOW })
    }

    /// To sleep; the callentry says [where](Routine::sleeps).
    pub fn sleep(&self) -> Target {
        Target::Label(if self.sleeping().is_some() { SLEEP } else { SLOW })
    }

    /// As `sleep`, where rdx was 1 and is lost.
    pub fn sleep_one(&self) -> Target {
        Target::Label(if self.sleeping().is_some() { SLEEP_ONE } else { SLOW_ONE })
    }

    /// To the machine's code that has the thread rest, with the number of the call on the stack and the queue's words in rax; in
    /// routines that are made where there is such code.
    pub fn rest(&self) -> Target {
        Target::Address(self.machine_sleeping().rest.address())
    }

    /// To the machine's code that answers who rests, in the same way.
    pub fn rouse(&self) -> Target {
        Target::Address(self.machine_sleeping().rouse.address())
    }

    /// Program memory is not touched any more.
    pub fn close_user(&mut self) {
        let close = self.makers.machine.close_user();
        self.paste(close);
    }

    /// The running thread's quaspace goes into rax.
    pub fn load_quaspace(&mut self) {
        let load = self.makers.machine.load_quaspace();
        self.paste(load);
    }

    /// As `slow_many`, where rdx, r8 and r9 were pushed, too.
    pub fn slow_pages(&self) -> Target {
        Target::Label(SLOW_PAGES)
    }

    /// The part for any number of bytes.
    pub fn many(&self) -> Target {
        Target::Label(MANY)
    }

    /// The part that the others call.
    pub fn inner(&self) -> Target {
        Target::Label(INNER)
    }

    /// One more part.
    pub fn other(&self) -> Target {
        Target::Label(OTHER)
    }

    pub fn begin_other(&mut self) {
        self.draft.place(OTHER);
    }

    pub fn user_limit(&self) -> Abs32 {
        Abs32(self.makers.machine.user_limit_word())
    }

    /// Appends a fragment that does not touch program memory.
    pub fn paste(&mut self, fragment: impl Paste) {
        fragment.paste(&mut self.draft);
    }

    /// Appends a fragment that moves one byte of program memory; rdx is 1 or lost.
    pub fn paste_user_one(&mut self, fragment: impl Paste) {
        self.paste_user(SLOW_ONE, fragment);
    }

    /// Appends a fragment that moves program memory while all registers but rax are as at entry.
    pub fn paste_user_plain(&mut self, fragment: impl Paste) {
        self.paste_user(SLOW, fragment);
    }

    /// Appends a fragment that moves program memory by instructions on strings, while rdi, rsi and rcx stand on the stack.
    pub fn paste_user_many(&mut self, fragment: impl Paste) {
        if let Some(upwards) = self.makers.machine.upwards() {
            self.paste(upwards);
        }
        self.paste_user(SLOW_MANY, fragment);
    }

    /// Appends a fragment that moves program memory while a filter's registers stand on the stack.
    pub fn paste_user_filter(&mut self, fragment: impl Paste) {
        self.has_filter = true;
        self.paste_user(SLOW_FILTER, fragment);
    }

    /// As `paste_user_many`, while rdx, r8 and r9 stand on the stack behind those.
    pub fn paste_user_pages(&mut self, fragment: impl Paste) {
        self.has_pages = true;
        if let Some(upwards) = self.makers.machine.upwards() {
            self.paste(upwards);
        }
        self.paste_user(SLOW_PAGES, fragment);
    }

    fn paste_user(&mut self, landing: Label, fragment: impl Paste) {
        if let Some(open) = self.makers.machine.open_user() {
            self.paste(open);
        }
        let from = self.draft.len();
        self.paste(fragment);
        self.draft.land(from, landing);
    }

    /// The end of one way through an operation on a stream: counted, and back to the program with the result in rax.
    pub fn leave(&mut self) {
        self.paste(Count { gauge: Abs32(self.makers.machine.gauge().as_ptr() as u64) });
        self.leave_uncounted();
    }

    /// As `leave`, where nothing was read or written.
    pub fn leave_uncounted(&mut self) {
        match self.makers.watch() {
            None => self.paste(self.makers.machine.leave()),
            Some(watch) => self.paste(watch::GoThrough { to: Target::Address(watch.leave) }),
        }
    }

    /// The part that the others call begins here.
    pub fn begin_inner(&mut self) {
        self.draft.place(INNER);
    }

    /// The part for any number of bytes begins here.
    pub fn begin_many(&mut self) {
        self.draft.place(MANY);
    }
}

/// What the holes that many routines have stand for.
pub const FACTS: &[Fact] = &[
    Fact::word("gauge", "operations on streams, of all threads", "never"),
    Fact::word("user_limit", "first address a program may not use (S-87)", "never"),
    Fact::value("slow", "way to the Rust twin, for whatever is unusual", "never"),
    Fact::value("slow_one", "way to the Rust twin that makes rdx 1 again", "never"),
    Fact::value("slow_many", "way to the Rust twin that gives three registers back", "never"),
    Fact::value("slow_pages", "way to the Rust twin that gives six registers back", "never"),
    Fact::value("many", "the part for any number of bytes", "never"),
    Fact::value("empty", "way to the Rust twin when there is nothing to take", "never"),
    Fact::value("full", "way to the Rust twin when there is no room", "never"),
    Fact::value("none", "way to the Rust twin when the device has no room", "never"),
    Fact::value("number", "number of the call that the Rust twin does", "never"),
    Fact::value(
        "queue",
        "the words of the queue in which one sleeps",
        "never: it stays as long as somebody sleeps in it",
    ),
    Fact::word("may_sleep", "0: the call must not sleep, but answer", "never: each change stores another number"),
    Fact::value("wake", "the machine's code that wakes who sleeps in a queue", "never"),
    Fact::value("sleep", "the machine's code that has the thread sleep in a queue", "never"),
    Fact::value("most", "most bytes that the routine does at once, or one less", "never"),
];

/// For the golden listings: what every routine may end with.
pub fn templates() -> impl Iterator<Item = synth::Template> {
    [
        GoWake::template(),
        GoSleep::template(),
        GoSlow::template(),
        RestoreOne::template(),
        RestoreMany::template(),
        RestoreFilter::template(),
        RestorePages::template(),
        Count::template(),
    ]
    .into_iter()
}
