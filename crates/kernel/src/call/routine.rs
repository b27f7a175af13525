//! Assembling a routine: fragments of ours, fragments of the machine, the way out.

use codestore::{Code, CodeStore, Maker, PublishError};
use machine::Machine;
use synth::{Abs32, Draft, Fact, Imm32, Label, Target, template};

use super::FileCall;

/// Who can make routines: the machine for its fragments, the store to publish in.
#[derive(Clone, Copy)]
pub struct Makers {
    pub machine: &'static dyn Machine,
    pub store: &'static CodeStore,
}

/// The way to the Rust twin, with all registers as at entry.
const SLOW: Label = Label(0);
/// As `SLOW`, but rdx must become 1 again first.
const SLOW_ONE: Label = Label(1);
/// As `SLOW`, but rdi, rsi and rcx stand on the stack.
const SLOW_MANY: Label = Label(2);
/// As `SLOW_MANY`, but a filter's registers stand on the stack behind those.
const SLOW_FILTER: Label = Label(4);
/// The part for any number of bytes.
const MANY: Label = Label(3);

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

/// A routine in the making.
pub struct Routine {
    makers: Makers,
    draft: Draft,
    number: u32,
    has_filter: bool,
}

impl Routine {
    /// A routine for system call `number`.
    pub fn new(makers: Makers, number: u64) -> Routine {
        Routine { makers, draft: Draft::new(), number: number as u32, has_filter: false }
    }

    pub fn slow(&self) -> Target {
        Target::Label(SLOW)
    }

    pub fn slow_one(&self) -> Target {
        Target::Label(SLOW_ONE)
    }

    pub fn slow_many(&self) -> Target {
        Target::Label(SLOW_MANY)
    }

    pub fn many(&self) -> Target {
        Target::Label(MANY)
    }

    pub fn machine(&self) -> &'static dyn Machine {
        self.makers.machine
    }

    pub fn user_limit(&self) -> Abs32 {
        Abs32(self.makers.machine.user_limit_word())
    }

    /// Appends a fragment that does not touch program memory.
    pub fn paste(&mut self, append: impl FnOnce(&mut Draft)) {
        append(&mut self.draft);
    }

    /// Appends a fragment that moves one byte of program memory; rdx is 1 or lost.
    pub fn paste_user_one(&mut self, append: impl FnOnce(&mut Draft)) {
        self.paste_user(SLOW_ONE, append);
    }

    /// Appends a fragment that moves program memory while rdi, rsi and rcx stand on the stack.
    pub fn paste_user_many(&mut self, append: impl FnOnce(&mut Draft)) {
        self.paste_user(SLOW_MANY, append);
    }

    /// Appends a fragment that moves program memory while a filter's registers stand on the stack.
    pub fn paste_user_filter(&mut self, append: impl FnOnce(&mut Draft)) {
        self.has_filter = true;
        self.paste_user(SLOW_FILTER, append);
    }

    /// Appends a fragment that moves program memory with nothing on the stack.
    pub fn paste_user_plain(&mut self, append: impl FnOnce(&mut Draft)) {
        self.paste_user(SLOW, append);
    }

    fn paste_user(&mut self, landing: Label, append: impl FnOnce(&mut Draft)) {
        if let Some(open) = self.makers.machine.open_user() {
            self.draft.append(&open, &[]);
        }
        let from = self.draft.len();
        append(&mut self.draft);
        self.draft.land(from, landing);
    }

    /// The end of one way through: back to the program with the result in rax.
    pub fn leave(&mut self) {
        self.draft.append(&self.makers.machine.leave(), &[]);
    }

    /// The part for any number of bytes begins here.
    pub fn begin_many(&mut self) {
        self.draft.place(MANY);
    }

    /// Appends the ways out and publishes.
    pub fn publish(mut self, name: &'static str, maker: Maker) -> Result<Code<FileCall>, PublishError> {
        let slow = GoSlow { number: Imm32(self.number), slow: Target::Address(self.makers.machine.slow_call()) };
        if self.has_filter {
            self.draft.place(SLOW_FILTER);
            RestoreFilter {}.append_to(&mut self.draft);
        }
        self.draft.place(SLOW_MANY);
        RestoreMany {}.append_to(&mut self.draft);
        self.draft.place(SLOW);
        slow.append_to(&mut self.draft);
        self.draft.place(SLOW_ONE);
        RestoreOne {}.append_to(&mut self.draft);
        slow.append_to(&mut self.draft);
        self.makers.store.publish(name, maker, self.draft)
    }
}

/// For the golden listings.
pub fn templates() -> [synth::Template; 4] {
    [GoSlow::template(), RestoreOne::template(), RestoreMany::template(), RestoreFilter::template()]
}

/// What the holes that many routines have stand for.
pub const FACTS: &[Fact] = &[
    Fact::word("user_limit", "first address a program may not use (S-87)", "never"),
    Fact::value("slow", "way to the Rust twin, for whatever is unusual", "never"),
    Fact::value("slow_one", "way to the Rust twin that makes rdx 1 again", "never"),
    Fact::value("slow_many", "way to the Rust twin that gives three registers back", "never"),
    Fact::value("many", "the part for any number of bytes", "never"),
    Fact::value("none", "way to the Rust twin when the device has no room", "never"),
    Fact::value("number", "number of the call that the Rust twin does", "never"),
    Fact::value("most", "most bytes that one buffer of the device takes, less one", "never"),
];
