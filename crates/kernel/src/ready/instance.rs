//! `epoll_wait` as code: an executable data structure, one stretch for each file that the instance watches.
//!
//! The descriptor leads to `epoll.wait`, which is one jump through the instance's slot. The slot leads to `epoll.look`, made for the
//! files that are watched now; whoever changes them, or closes one, has it lead to Rust again first. Only files whose answer depends on
//! nothing but what they are ready for are watched by code: edges and single shots are Rust's.

use alloc::boxed::Box;
use core::mem::offset_of;

use abi::nr;
use abi::poll::EpollEvent;
use codestore::Code;
use machine::{FileEntry, KernelCell};
use quaject::{Makers, Slot, Straight, quaject};
use synth::{Abs32, Draft, Fact, Imm32, Label, Paste, Target, jump, template};

use super::{RUST_LOOKS, Readiness};
use crate::call::FileCall;
use crate::call::fragments::{GiveBack, Keep};
use crate::call::{GoSlow, RestoreMany};

/// The most events that a program may ask for, by what it says.
const EVENTS_MAX: u32 = (i32::MAX / EpollEvent::BYTES as i32) as u32;
/// Most files that are watched by code.
pub const WATCHED_MAX: usize = 16;

/// A file that an instance watches: how to ask it, for what, and what the program is told with it.
pub struct Watched<'a> {
    pub ready: &'a Code<Readiness>,
    pub events: u32,
    pub data: u64,
}

template! {
    /// To where the instance's files are looked at. Cost: 1 instruction.
    pub struct ThroughSlot { look: Abs32 }
    "jmp qword ptr [{look}]",
}

template! {
    /// There is room for all files at once, in the program's half. In: rsi, edx of `epoll_wait`. Out: rax lost. Cost: 11 instructions.
    pub struct RoomForAll { files: Imm32, most: Imm32, user_limit: Abs32, slow: Target }
    "cmp edx, {files}",
    jump!(jb slow),
    "cmp edx, {most}",
    jump!(ja slow),
    "cmp rsi, qword ptr [{user_limit}]",
    jump!(jae slow),
    "mov eax, edx",
    "lea rax, [rax + rax*2]",
    "lea rax, [rsi + rax*4]",
    "cmp rax, qword ptr [{user_limit}]",
    jump!(ja slow),
}

template! {
    /// No event yet. Cost: 1 instruction.
    pub struct NoEvent {}
    "xor edi, edi",
}

template! {
    /// Asks a file; is it ready, the program's next record says so. In: rsi = the record, edi = records before it. Cost: 10 instructions, 5
    /// when it is not.
    pub struct AskWatched { ready: Target, events: Imm32, low: Imm32, high: Imm32, slow_many: Target }
    where { RUST = RUST_LOOKS }
    jump!(call ready),
    "test al, {RUST}",
    jump!(jne slow_many),
    "and eax, {events}",
    "jz 71f",
    "mov dword ptr [rsi], eax",
    "mov dword ptr [rsi + 4], {low}",
    "mov dword ptr [rsi + 8], {high}",
    "add rsi, 12",
    "inc edi",
    "71:",
}

template! {
    /// So many events, or none and the program does not wait. Cost: 3 instructions, 5 without an event.
    pub struct CountEvents { slow_many: Target }
    "mov eax, edi",
    "test eax, eax",
    "jnz 71f",
    "test r10d, r10d",
    jump!(jne slow_many),
    "71:",
}

/// A look at files in the making.
pub struct Look {
    makers: Makers,
    draft: Draft,
    number: u32,
}

const SLOW: Label = Label(0);
const SLOW_MANY: Label = Label(1);

impl quaject::Routine for Look {
    fn begin(makers: Makers, number: u64) -> Look {
        Look { makers, draft: Draft::new(), number: number as u32 }
    }

    fn finish(mut self) -> Draft {
        let slow = Target::Address(self.makers.machine.slow_call().address());
        let number = Imm32(self.number);
        self.draft.place(SLOW_MANY);
        self.paste(RestoreMany {});
        self.draft.place(SLOW);
        self.paste(GoSlow { number, slow });
        self.draft
    }
}

/// What the declaration uses, and the words in front of its fragments.
impl Look {
    fn slow(&self) -> Target {
        Target::Label(SLOW)
    }

    fn slow_many(&self) -> Target {
        Target::Label(SLOW_MANY)
    }

    fn user_limit(&self) -> Abs32 {
        Abs32(self.makers.machine.user_limit_word())
    }

    fn paste(&mut self, fragment: impl Paste) {
        fragment.paste(&mut self.draft);
    }

    /// A stretch for each file. What was written before a fault is written again by Rust.
    fn files(&mut self, files: &[Watched<'_>]) {
        self.paste(self.makers.machine.open_user());
        let from = self.draft.len();
        for file in files {
            self.paste(AskWatched {
                ready: Target::Address(file.ready.entry().address()),
                events: Imm32(file.events),
                low: Imm32(file.data as u32),
                high: Imm32((file.data >> 32) as u32),
                slow_many: Target::Label(SLOW_MANY),
            });
        }
        self.draft.land(from, SLOW_MANY);
    }

    fn leave(&mut self) {
        self.paste(self.makers.machine.leave());
    }
}

quaject! {
    /// An instance of `epoll` as routines see it.
    pub quaject Instance ("epoll", made by "epoll_wait", at most 0 inactive)
    facts(FACTS)
    pastes(AskWatched)
    data {
        /// Leads to the look at the files, or to Rust.
        look: Slot<FileCall>,
    }
    factors(instance) {
        let look = Abs32(core::ptr::from_ref(instance) as u64 + offset_of!(Instance, look) as u64);
    }
    callouts InstanceCallouts<'a> {
        /// What is watched now.
        watched: &'a [Watched<'a>],
    }
    callbacks {}
    callentries InstanceCode {
        wait: FileCall by Straight (nr::EPOLL_WAIT) named "epoll.wait" uses() {
            paste ThroughSlot { look };
        }
        look: FileCall by Look (nr::EPOLL_WAIT) named "epoll.look" needs(watched) uses(user_limit, slow, slow_many) {
            paste RoomForAll { files: Imm32(watched.len() as u32), most: Imm32(EVENTS_MAX), user_limit, slow };
            paste Keep {};
            paste NoEvent {};
            files (watched);
            paste CountEvents { slow_many };
            paste GiveBack {};
            leave;
        }
    }
}

/// The code of an instance: the way in, which stays, and the look at what is watched now.
pub struct Looks {
    instance: Box<Instance>,
    wait: Code<FileCall>,
    look: KernelCell<Option<Code<FileCall>>>,
    unconnected: machine::Entry<FileEntry>,
}

impl Looks {
    /// A way in that leads to Rust. `None` without room.
    pub fn new(makers: Makers) -> Option<Looks> {
        let unconnected = makers.machine.slow_call();
        let instance = machine::try_box(Instance { look: Slot::new(unconnected.under()) }).ok()?;
        let wait = InstanceCode::wait(&instance, makers, &InstanceCallouts::default()).create(makers)?;
        Some(Looks { instance, wait, look: KernelCell::new(None), unconnected })
    }

    /// For the descriptors of the instance.
    pub fn wait(&self) -> &Code<FileCall> {
        &self.wait
    }

    /// From now on these files are looked at by code, until [`Looks::forget`]; their readiness must stay so long.
    pub fn look_at(&self, makers: Makers, watched: &[Watched<'_>]) {
        let callouts = InstanceCallouts { watched: Some(watched) };
        let Some(code) = InstanceCode::look(&self.instance, makers, &callouts).create(makers) else { return };
        self.instance.look.store(code.entry());
        *self.look.borrow_mut() = Some(code);
    }

    /// What is watched changes: Rust looks.
    pub fn forget(&self) {
        self.instance.look.store(self.unconnected.under());
        self.look.borrow_mut().take();
    }
}

/// What the holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::value(
        "look",
        "slot: the look at the files that are watched, or Rust",
        "epoll_ctl, or the end of a watched file",
    ),
    Fact::value("files", "how many files are watched", "epoll_ctl, or the end of a watched file"),
    Fact::value("most", "most events that a program may ask for", "never"),
    Fact::value("ready", "readiness of a watched file", "epoll_ctl, or the end of a watched file"),
    Fact::value("events", "what the program wants to know of the file", "epoll_ctl, or the end of a watched file"),
    Fact::value("low", "what the program is told with it: lower half", "epoll_ctl, or the end of a watched file"),
    Fact::value("high", "its upper half", "epoll_ctl, or the end of a watched file"),
];
