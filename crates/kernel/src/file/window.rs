//! The window of an open file: the words that its synthesized `read` and `write` work with (S-89, S-97).
//!
//! ```text
//!   position ─► page number ─► slot (number modulo 16) ─► address of the page's bytes ─► copy
//! ```
//! The window remembers where recently used pages of the file are. It is right as long as the file's `layout` word is the
//! one it was filled under; the routine compares the two. Everything the window does not know (another page, the end
//! of the file, a page boundary, a time that must be noted) is done by the Rust twin, which then fills the slot.

use alloc::boxed::Box;
use core::convert::Infallible;
use core::mem::offset_of;

use abi::nr;
use machine::{KernelCell, KernelValue, Machine, PAGE_BYTES};
use quaject::{Made, Makers, Quaject, create, fragments, quaject};
use synth::{Abs32, Fact, Imm32, Target, template};

use super::content::{Content, ContentWords};
use crate::call::fragments::{GiveBack, Keep, MoveMany, OneToMost, UserAddress};
use crate::call::{FileCall, Routine};
use crate::space::Supply;

const SLOTS: usize = 16;
/// A page number that no file has.
const NO_PAGE: u64 = u64::MAX;

/// One remembered page.
#[repr(C)]
struct Slot {
    index: KernelValue<u64>,
    address: KernelValue<u64>,
}

/// Where recently used pages of a file are. Invariant: the slots are right while `layout` is that of the file.
#[repr(C)]
pub(super) struct SeenPages {
    /// Address of the file's [`ContentWords`]; of `NO_CONTENT` while they belong to nobody.
    words: KernelValue<u64>,
    /// The file's `layout` under which the slots were filled.
    layout: KernelValue<u64>,
    slots: [Slot; SLOTS],
}

/// The places of its words, to fold into templates.
pub(super) struct Places {
    pub words: Abs32,
    pub layout: Abs32,
    pub slots: Abs32,
    pub addresses: Abs32,
}

template! {
    /// No page has left the file since the slots were filled. Out: rcx = the file's words, rdi lost. Cost: 4 instructions.
    pub struct SameLayout { words: Abs32, layout: Abs32, slow_many: Target }
    where { LAYOUT = offset_of!(ContentWords, layout) }
    "mov rcx, qword ptr [{words}]",
    "mov rdi, qword ptr [rcx + {LAYOUT}]",
    "cmp rdi, qword ptr [{layout}]",
    ".byte 0x0f, 0x85",                     // jne slow
    ".long {slow_many}",
}

template! {
    /// Out: rax = position. Cost: 1 instruction.
    pub struct Position { position: Abs32 }
    "mov rax, qword ptr [{position}]",
}

template! {
    /// All bytes lie before the end of the file. In: rax = position. Out: rcx and rdi lost. Cost: 4 instructions.
    pub struct BeforeEnd { words: Abs32, slow_many: Target }
    where { SIZE = offset_of!(ContentWords, size_bytes) }
    "mov rcx, qword ptr [{words}]",
    "lea rdi, [rax + rdx]",
    "cmp rdi, qword ptr [rcx + {SIZE}]",
    ".byte 0x0f, 0x87",                     // ja slow
    ".long {slow_many}",
}

template! {
    /// The page is in the window. In: rax = position. Out: rcx = address of the page's bytes, rdi lost. Cost: 8 instructions.
    pub struct FindPage { slots: Abs32, addresses: Abs32, slow_many: Target }
    "mov rdi, rax",
    "shr rdi, 12",
    "mov ecx, edi",
    "and ecx, 15",
    "shl ecx, 4",
    "cmp rdi, qword ptr [rcx + {slots}]",
    ".byte 0x0f, 0x85",                     // jne slow: not in the window
    ".long {slow_many}",
    "mov rcx, qword ptr [rcx + {addresses}]",
}

template! {
    /// All bytes lie in the page. Out: rcx = address of the first, rax lost. Cost: 5 instructions.
    pub struct InPage { slow_many: Target }
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
    "add qword ptr [{position}], rdx",
    "mov eax, edx",
}

fragments! {
    /// The buffer is the program's, more than nothing and at most a page, and the slots are right. More is done in Rust, and
    /// nothing, which must move no time.
    pub(super) list PagesKnown of Routine { user_limit: Abs32, words: Abs32, layout: Abs32, slow: Target, slow_many: Target } {
        paste UserAddress { user_limit, slow };
        paste OneToMost { most: Imm32(PAGE_BYTES as u32 - 1), slow };
        paste Keep {};
        paste SameLayout { words, layout, slow_many };
    }
}

fragments! {
    /// From the page of the position in rax to the program.
    pub(super) list FromPage of Routine {
        words: Abs32, slots: Abs32, addresses: Abs32, absent: Target, beyond: Target, slow_many: Target,
    } {
        paste BeforeEnd { words, slow_many: beyond };
        paste FindPage { slots, addresses, slow_many: absent };
        paste InPage { slow_many };
        paste ReadReady { words };
        paste_user_many MoveMany {};
        paste GiveBack {};
    }
}

fragments! {
    /// From the program to the page of the position in rax.
    pub(super) list ToPage of Routine {
        user_limit: Abs32, words: Abs32, slots: Abs32, addresses: Abs32, absent: Target, beyond: Target, slow_many: Target,
    } {
        paste BeforeEnd { words, slow_many: beyond };
        paste FindPage { slots, addresses, slow_many: absent };
        paste InPage { slow_many };
        paste WriteReady { user_limit, slow_many };
        paste_user_many MoveMany {};
        paste Stamp { words };
        paste GiveBack {};
    }
}

quaject! {
    /// The window of an open file.
    pub quaject Window ("file", made by "open", at most 32 inactive)
    data {
        /// Offset of the next read or write, in bytes.
        pub position: KernelValue<u64>,
        seen: SeenPages,
    }
    factors(window) {
        let position = Abs32(window.position.as_ptr() as u64);
        let Places { words, layout, slots, addresses } = window.seen.places();
    }
    callouts WindowCallouts {}
    callbacks {
        /// Rust finds the page, and the window remembers it.
        absent: slow_many,
        /// Rust reads up to the end, or makes the file longer.
        beyond: slow_many,
    }
    callentries WindowCode {
        read: FileCall(nr::READ) named "file.read" uses(user_limit, slow, slow_many) {
            include PagesKnown { user_limit, words, layout, slow, slow_many };
            paste Position { position };
            include FromPage { words, slots, addresses, absent, beyond, slow_many };
            paste Advance { position };
            leave;
        }
        write: FileCall(nr::WRITE) named "file.write" uses(user_limit, slow, slow_many) {
            include PagesKnown { user_limit, words, layout, slow, slow_many };
            paste Position { position };
            include ToPage { user_limit, words, slots, addresses, absent, beyond, slow_many };
            paste Advance { position };
            leave;
        }
        seek: FileCall(nr::LSEEK) named "file.seek" uses(slow) {
            paste SeekSet { slow, position };
            leave_uncounted;
        }
    }
}

/// Stands in for a file while a window has none: its layout is one that no window has.
static NO_CONTENT: KernelCell<ContentWords> = KernelCell::new(ContentWords::none());

impl SeenPages {
    pub(super) fn new() -> SeenPages {
        let slot = || Slot { index: KernelValue::new(NO_PAGE), address: KernelValue::new(0) };
        SeenPages {
            words: KernelValue::new(NO_CONTENT.borrow().address()),
            layout: KernelValue::new(0),
            slots: core::array::from_fn(|_| slot()),
        }
    }

    /// The file to look at from now on.
    pub(super) fn open(&self, content: &Content) {
        self.words.set(&raw const *content.words() as u64);
        self.forget(content);
    }

    /// The file is closed.
    pub(super) fn close(&self) {
        self.words.set(NO_CONTENT.borrow().address());
    }

    fn forget(&self, content: &Content) {
        self.layout.set(content.words().layout.get());
        for slot in &self.slots {
            slot.index.set(NO_PAGE);
        }
    }

    /// Remembers the page at `position`, which the Rust twin has just used.
    pub(super) fn remember(&self, machine: &dyn Machine, content: &Content, position: u64) {
        if self.layout.get() != content.words().layout.get() {
            self.forget(content);
        }
        let index = position / PAGE_BYTES as u64;
        if let Ok(Supply::Now(page)) = content.page(index)
            && content.will_be_seen(index)
        {
            let slot = &self.slots[index as usize % SLOTS];
            slot.address.set(machine.frame_address(page.frame()));
            slot.index.set(index);
        }
    }

    pub(super) fn places(&self) -> Places {
        Places {
            words: Abs32(self.words.as_ptr() as u64),
            layout: Abs32(self.layout.as_ptr() as u64),
            slots: Abs32(self.slots[0].index.as_ptr() as u64),
            addresses: Abs32(self.slots[0].address.as_ptr() as u64),
        }
    }
}

impl Window {
    /// A window for a file just opened, from the inactive list or new. Its routines are there if `makers` are given and
    /// there was room for code.
    pub fn open(content: &Content, makers: Option<Makers>) -> Box<Made<Window>> {
        let make = || Ok::<_, Infallible>(Window { position: KernelValue::new(0), seen: SeenPages::new() });
        let Ok(window) = create::allocate(make);
        if let Some(makers) = makers {
            window.synthesize(makers, &WindowCallouts {});
        }
        window.seen.open(content);
        window
    }

    /// Gives the window back; the file is closed.
    pub fn close(window: Box<Made<Window>>) {
        window.seen.close();
        window.position.set(0);
        Window::inactive().give(window);
    }

    /// Remembers the page at `position`, which the Rust twin has just used.
    pub fn remember(&self, machine: &dyn Machine, content: &Content, position: u64) {
        self.seen.remember(machine, content, position);
    }
}

/// For the golden listings.
pub fn templates() -> [synth::Template; 10] {
    [
        SameLayout::template(),
        Position::template(),
        BeforeEnd::template(),
        FindPage::template(),
        InPage::template(),
        ReadReady::template(),
        WriteReady::template(),
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
