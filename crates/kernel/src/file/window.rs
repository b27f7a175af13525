//! The window of an open file: the words that its synthesized `read` and `write` work with (S-89, S-97).
//!
//! ```text
//!   position ─► page number ─► slot (number modulo 16) ─► address of the page's bytes ─► copy
//! ```
//! The window remembers where recently used pages of the file are. It is right as long as the file's `layout` word is the
//! one it was filled under; the routine compares the two. Everything the window does not know (another page, the end
//! of the file, a page boundary, a time that must be noted) is done by the Rust twin, which then fills the slot.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::Cell;
use core::mem::offset_of;

use abi::nr;
use codestore::{Code, Maker, PublishError};
use machine::{KernelCell, Machine, PAGE_BYTES};
use synth::{Abs32, Fact, template};

use super::content::{Content, ContentWords};
use crate::call::{FileCall, Makers, Routine};

const SLOTS: usize = 16;
/// A page number that no file has.
const NO_PAGE: u64 = u64::MAX;

/// One remembered page.
#[repr(C)]
struct Slot {
    index: Cell<u64>,
    address: Cell<u64>,
}

#[repr(C)]
pub struct Window {
    /// Offset of the next read or write, in bytes.
    pub position: Cell<u64>,
    /// Address of the file's [`ContentWords`]; of `NO_CONTENT` while the window belongs to nobody.
    words: Cell<u64>,
    /// The file's `layout` under which the slots were filled.
    layout: Cell<u64>,
    slots: [Slot; SLOTS],
}

/// A window and the routines that know its address. It never moves, and it goes back to the inactive list when its file is
/// closed (R4), so opening another file costs no new code.
pub struct WindowCode {
    pub window: Window,
    code: Option<WindowRoutines>,
}

/// The routines of one window.
pub struct WindowRoutines {
    pub read: Code<FileCall>,
    pub write: Code<FileCall>,
    pub seek: Code<FileCall>,
}

#[allow(clippy::vec_box, reason = "the code knows the address of the window, so it must not move")]
static INACTIVE: KernelCell<Vec<Box<WindowCode>>> = KernelCell::new(Vec::new());
const INACTIVE_MAX: usize = 32;

template! {
    /// Finds the bytes in the window. In: rdx = bytes, rsi = the program's buffer. Out: rcx = address of the first byte in
    /// the file's page; rdi, rsi and rcx of the program on the stack; eax lost. Cost: 29 instructions.
    pub struct Find { user_limit: Abs32, slow: Target, slow_many: Target, words: Abs32, position: Abs32, layout: Abs32, slots: Abs32, addresses: Abs32 }
    where { LAYOUT = offset_of!(ContentWords, layout), SIZE = offset_of!(ContentWords, size_bytes) }
    "cmp rsi, qword ptr [{user_limit}]",
    ".byte 0x0f, 0x83",                     // jae slow
    ".long {slow}",
    "lea rax, [rdx - 1]",
    "cmp rax, 4095",
    ".byte 0x0f, 0x87",                     // ja slow: more than a page, or nothing, which must move no time
    ".long {slow}",
    "push rdi",
    "push rsi",
    "push rcx",
    "mov rcx, qword ptr [{words}]",
    "mov rax, qword ptr [{position}]",
    "mov rdi, qword ptr [rcx + {LAYOUT}]",
    "cmp rdi, qword ptr [{layout}]",
    ".byte 0x0f, 0x85",                     // jne slow: a page has left the file
    ".long {slow_many}",
    "lea rdi, [rax + rdx]",
    "cmp rdi, qword ptr [rcx + {SIZE}]",
    ".byte 0x0f, 0x87",                     // ja slow: beyond the end
    ".long {slow_many}",
    "mov rdi, rax",
    "shr rdi, 12",
    "mov ecx, edi",
    "and ecx, 15",
    "shl ecx, 4",
    "cmp rdi, qword ptr [rcx + {slots}]",
    ".byte 0x0f, 0x85",                     // jne slow: not in the window
    ".long {slow_many}",
    "mov rcx, qword ptr [rcx + {addresses}]",
    "and eax, 4095",
    "add rcx, rax",
    "add eax, edx",
    "cmp eax, 4096",
    ".byte 0x0f, 0x87",                     // ja slow: into the next page
    ".long {slow_many}",
}

template! {
    /// The first read since the last change leaves its time (relatime), as the counter's value. Then the registers for the
    /// copy. Cost: 7 instructions, 14 for the first read.
    pub struct ReadReady { words: Abs32 }
    where { NOTED = offset_of!(ContentWords, read_is_noted), READ = offset_of!(ContentWords, read_at) }
    "mov rdi, qword ptr [{words}]",
    "cmp qword ptr [rdi + {NOTED}], 0",
    "jne 70f",
    "push rdx",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "mov qword ptr [rdi + {READ}], rax",
    "mov qword ptr [rdi + {NOTED}], 1",
    "pop rdx",
    "70:",
    "mov rdi, rsi",
    "mov rsi, rcx",
    "mov ecx, edx",
    "shr ecx, 3",
}

template! {
    /// The bytes must be the program's to the last: a copy that stops at the limit would have changed the file, though the
    /// call is refused whole. Then the registers for the copy to the file. Cost: 6 instructions.
    pub struct WriteReady { user_limit: Abs32, slow_many: Target }
    "lea rax, [rsi + rdx]",
    "cmp rax, qword ptr [{user_limit}]",
    ".byte 0x0f, 0x87",                     // ja slow
    ".long {slow_many}",
    "mov rdi, rcx",
    "mov ecx, edx",
    "shr ecx, 3",
}

template! {
    /// Moves edx bytes from rsi to rdi: eight an instruction, then single ones.
    pub struct MovePart {}
    "rep movsq",
    "test dl, 7",
    "jz 78f",
    "mov ecx, edx",
    "and ecx, 7",
    "rep movsb",
    "78:",
}

template! {
    /// Leaves the counter's value for whoever asks for the file's times, and makes the next read note its own.
    pub struct Stamp { words: Abs32 }
    where { WRITTEN = offset_of!(ContentWords, written_at), NOTED = offset_of!(ContentWords, read_is_noted) }
    "mov rdi, rdx",
    "mov rcx, qword ptr [{words}]",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "mov rdx, rdi",
    "mov qword ptr [rcx + {WRITTEN}], rax",
    "mov qword ptr [rcx + {NOTED}], 0",
}

template! {
    /// `lseek` to a place from the start; other seeks are done in Rust. Cost: 6 instructions.
    pub struct SeekSet { slow: Target, position: Abs32 }
    "test edx, edx",
    ".byte 0x0f, 0x85",                     // jne slow: not SEEK_SET
    ".long {slow}",
    "test rsi, rsi",
    ".byte 0x0f, 0x88",                     // js slow: negative
    ".long {slow}",
    "mov qword ptr [{position}], rsi",
    "mov rax, rsi",
}

template! {
    /// The position moves; the count is the result.
    pub struct Advance { position: Abs32 }
    "pop rcx",
    "pop rsi",
    "pop rdi",
    "add qword ptr [{position}], rdx",
    "mov eax, edx",
}

/// Stands in for a file while a window has none: its layout is one that no window has.
static NO_CONTENT: KernelCell<ContentWords> = KernelCell::new(ContentWords::none());

impl WindowCode {
    /// A window for a file just opened, from the inactive list or new. Its routines are there if `makers` are given and
    /// there was room for code.
    pub fn take(content: &Content, makers: Option<Makers>) -> Box<WindowCode> {
        let reused = INACTIVE.borrow_mut().pop();
        let mut body = reused.unwrap_or_else(|| Box::new(WindowCode { window: Window::new(), code: None }));
        if body.code.is_none()
            && let Some(makers) = makers
        {
            body.code = body.window.synthesize(makers).ok();
        }
        body.window.words.set(&raw const *content.words() as u64);
        body.window.forget(content);
        body
    }

    /// Gives the window back; the file is closed.
    pub fn give(self: Box<WindowCode>) {
        self.window.words.set(NO_CONTENT.borrow().address());
        self.window.position.set(0);
        let mut inactive = INACTIVE.borrow_mut();
        if inactive.len() < INACTIVE_MAX {
            inactive.push(self);
        }
    }

    pub fn code(&self) -> Option<&WindowRoutines> {
        self.code.as_ref()
    }
}

impl Window {
    fn new() -> Window {
        let slot = || Slot { index: Cell::new(NO_PAGE), address: Cell::new(0) };
        Window {
            position: Cell::new(0),
            words: Cell::new(NO_CONTENT.borrow().address()),
            layout: Cell::new(0),
            slots: core::array::from_fn(|_| slot()),
        }
    }

    fn forget(&self, content: &Content) {
        self.layout.set(content.words().layout.get());
        for slot in &self.slots {
            slot.index.set(NO_PAGE);
        }
    }

    /// Remembers the page at `position`, which the Rust twin has just used.
    pub fn remember(&self, machine: &dyn Machine, content: &Content, position: u64) {
        if self.layout.get() != content.words().layout.get() {
            self.forget(content);
        }
        let index = position / PAGE_BYTES as u64;
        if let Ok(Some(page)) = content.page(index) {
            let slot = &self.slots[index as usize % SLOTS];
            slot.address.set(machine.frame_address(page.frame()));
            slot.index.set(index);
        }
    }

    fn word(&self, offset: usize) -> Abs32 {
        Abs32(&raw const *self as u64 + offset as u64)
    }

    fn find(&self, routine: &Routine) -> Find {
        let slots = offset_of!(Window, slots);
        Find {
            user_limit: routine.user_limit(),
            slow: routine.slow(),
            slow_many: routine.slow_many(),
            words: self.word(offset_of!(Window, words)),
            position: self.word(offset_of!(Window, position)),
            layout: self.word(offset_of!(Window, layout)),
            slots: self.word(slots + offset_of!(Slot, index)),
            addresses: self.word(slots + offset_of!(Slot, address)),
        }
    }

    fn synthesize(&self, makers: Makers) -> Result<WindowRoutines, PublishError> {
        let words = self.word(offset_of!(Window, words));
        let advance = Advance { position: self.word(offset_of!(Window, position)) };
        let mut read = Routine::new(makers, nr::READ);
        let find = self.find(&read);
        read.paste(|draft| find.append_to(draft));
        read.paste(|draft| ReadReady { words }.append_to(draft));
        read.paste_user_many(|draft| MovePart {}.append_to(draft));
        read.paste(|draft| advance.append_to(draft));
        read.leave();
        let mut write = Routine::new(makers, nr::WRITE);
        let find = self.find(&write);
        write.paste(|draft| find.append_to(draft));
        let (user_limit, slow_many) = (write.user_limit(), write.slow_many());
        write.paste(|draft| WriteReady { user_limit, slow_many }.append_to(draft));
        write.paste_user_many(|draft| MovePart {}.append_to(draft));
        write.paste(|draft| Stamp { words }.append_to(draft));
        write.paste(|draft| advance.append_to(draft));
        write.leave();
        let mut seek = Routine::new(makers, nr::LSEEK);
        let seek_set = SeekSet { slow: seek.slow(), position: self.word(offset_of!(Window, position)) };
        seek.paste(|draft| seek_set.append_to(draft));
        seek.leave();
        let maker = Maker::new("open");
        Ok(WindowRoutines {
            read: read.publish("file.read", maker)?,
            write: write.publish("file.write", maker)?,
            seek: seek.publish("file.seek", maker)?,
        })
    }
}

/// For the golden listings.
pub fn templates() -> [synth::Template; 7] {
    [
        Find::template(),
        ReadReady::template(),
        WriteReady::template(),
        MovePart::template(),
        Stamp::template(),
        SeekSet::template(),
        Advance::template(),
    ]
}

/// What the holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::word(
        "words",
        "address of the file's layout, size and times",
        "the open file is closed: the window serves another",
    ),
    Fact::word("position", "offset of the next byte", "the open file is closed"),
    Fact::word(
        "layout",
        "the file's layout when the slots were filled",
        "compared at each call: truncation, a page that goes",
    ),
    Fact::value("slots", "pages of the file that are remembered", "layout moves, or the open file is closed"),
    Fact::value("addresses", "where those pages are", "layout moves, or the open file is closed"),
];
