//! What an open file's synthesized `read` and `write` work with (S-89, S-97).
//!
//! ```text
//!   position ─► leaf of the file's page map ─► address of the page's bytes ─► copy, and on to the next page
//! ```
//! The routines move any number of bytes up to 64 KiB, over the borders of pages, and up to the end of the file. What they find
//! no address for (a hole, a leaf that is not there yet, a page that has to be allocated, all pages of a file whose reads or writes
//! somebody must see) is done by the Rust twin, from the start of the call: a copy that was begun is only made again.

use alloc::boxed::Box;
use core::convert::Infallible;
use core::mem::offset_of;

use abi::nr;
use machine::{KernelCell, KernelValue, Machine};
use quaject::{Made, Makers, Quaject, create, fragments, quaject};
use synth::{Abs32, Fact, Imm32, Target, template};

use super::content::{Content, ContentWords};
use super::node::Node;
use crate::call::fragments::{GiveBack, Keep, MoveMany, OneToMost, UserAddress};
use crate::call::{FileCall, Routine};

/// Most bytes of one call; more would keep interrupts off for long.
const BYTES_MAX: u32 = 64 << 10;

/// The words of the file that a routine serves; those of no file while it is closed.
#[repr(C)]
pub(super) struct Served {
    words: KernelValue<u64>,
}

template! {
    /// The whole buffer is the program's, how much of it is used does not matter. Out: rax lost. Cost: 3 instructions.
    pub struct BufferBelow { user_limit: Abs32, slow: Target }
    "lea rax, [rsi + rdx]",
    "cmp rax, qword ptr [{user_limit}]",
    ".byte 0x0f, 0x87",                     // ja slow
    ".long {slow}",
}

template! {
    /// Out: rax = position. Cost: 1 instruction.
    pub struct Position { position: Abs32 }
    "mov rax, qword ptr [{position}]",
}

template! {
    /// What is left of the file, at most what is asked for. In: rax = position. Out: rdx = bytes, r8 = the program's address, which
    /// with r9 stand on the stack as they were; rcx = the file's words, rdi lost. Cost: 10 instructions.
    pub struct UpToEnd { words: Abs32, slow_many: Target }
    where { SIZE = offset_of!(ContentWords, size_bytes) }
    "mov rcx, qword ptr [{words}]",
    "mov rdi, qword ptr [rcx + {SIZE}]",
    "sub rdi, rax",
    ".byte 0x0f, 0x86",                     // jbe slow: nothing is left
    ".long {slow_many}",
    "push rdx",
    "push r8",
    "push r9",
    "mov r8, rsi",
    "cmp rdi, rdx",
    "cmovb rdx, rdi",
}

template! {
    /// No hole would come between the file and what is written. The rest as in `UpToEnd`, of all bytes. Cost: 7 instructions.
    pub struct NotBehindEnd { words: Abs32, slow_many: Target }
    where { SIZE = offset_of!(ContentWords, size_bytes) }
    "mov rcx, qword ptr [{words}]",
    "cmp rax, qword ptr [rcx + {SIZE}]",
    ".byte 0x0f, 0x87",                     // ja slow
    ".long {slow_many}",
    "push rdx",
    "push r8",
    "push r9",
    "mov r8, rsi",
}

template! {
    /// The first read since the last change leaves its time (relatime), as the counter's value. In: rcx = the file's words. Cost:
    /// 2 instructions, 11 for the first read.
    pub struct NoteRead {}
    where { NOTED = offset_of!(ContentWords, read_is_noted), READ = offset_of!(ContentWords, read_at) }
    "cmp qword ptr [rcx + {NOTED}], 0",
    "jne 70f",
    "push rdx",
    "push rax",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "mov qword ptr [rcx + {READ}], rax",
    "mov qword ptr [rcx + {NOTED}], 1",
    "pop rax",
    "pop rdx",
    "70:",
}

template! {
    /// All bytes, which are some, lie in one page, and before the end of the file. In: rax = position. Out: rcx = the file's words, rdi
    /// lost. Cost: 7 instructions.
    pub struct InOnePage { words: Abs32, many: Target }
    where { SIZE = offset_of!(ContentWords, size_bytes) }
    "mov rcx, qword ptr [{words}]",
    "lea rdi, [rax + rdx - 1]",
    "cmp rdi, qword ptr [rcx + {SIZE}]",
    ".byte 0x0f, 0x83",                     // jae many: up to the end, or longer
    ".long {many}",
    "xor rdi, rax",
    "cmp rdi, 4095",
    ".byte 0x0f, 0x87",                     // ja many: the last byte lies in another page
    ".long {many}",
}

template! {
    /// Where the page of the position is. In: rax = position, rcx = the file's words. Out: rcx = address of the byte there, rax and rdi
    /// lost. Cost: 14 instructions.
    pub struct FindPage { absent: Target }
    where { LEAVES = offset_of!(ContentWords, leaves), DIRECTORY = offset_of!(ContentWords, directory) }
    "mov rdi, rax",
    "shr rdi, 18",
    "cmp rdi, qword ptr [rcx + {LEAVES}]",
    ".byte 0x0f, 0x83",                     // jae absent: no leaf
    ".long {absent}",
    "mov rcx, qword ptr [rcx + {DIRECTORY}]",
    "mov rdi, qword ptr [rcx + rdi * 8]",
    "mov ecx, eax",
    "shr ecx, 12",
    "and ecx, 63",
    "mov rcx, qword ptr [rdi + rcx * 8]",
    "test rcx, rcx",
    ".byte 0x0f, 0x84",                     // jz absent: a hole, or no leaf
    ".long {absent}",
    "and eax, 4095",
    "add rcx, rax",
}

template! {
    /// The registers for a copy of edx bytes from the file: rcx = address in it. Cost: 4 instructions.
    pub struct FromThere {}
    "mov rdi, rsi",
    "mov rsi, rcx",
    "mov ecx, edx",
    "shr ecx, 3",
}

template! {
    /// The same to the file. Cost: 3 instructions.
    pub struct ToThere {}
    "mov rdi, rcx",
    "mov ecx, edx",
    "shr ecx, 3",
}

template! {
    /// From the pages of the file to the program. In: rax = position, rcx = the file's words, rdx = bytes, r8 = the program's address.
    /// Out: rax = position behind the last, all others of the copy lost. The directory is looked at anew for each leaf and each part of a
    /// page: a fault of the program may have put pages into this very file, and then the directory moves. A leaf stays where it is.
    /// Besides one instruction for each 8 bytes. Twelve more for each further whole page of
    /// a leaf. Cost: 28 or 30 instructions for a whole page, 33, 34, 35 or 36 for a part of one.
    pub struct FromPages { words: Abs32, absent: Target }
    where { LEAVES = offset_of!(ContentWords, leaves), DIRECTORY = offset_of!(ContentWords, directory) }
    "70:",
    "mov rdi, rax",
    "shr rdi, 18",
    "cmp rdi, qword ptr [rcx + {LEAVES}]",
    ".byte 0x0f, 0x83",                     // jae absent
    ".long {absent}",
    "mov rcx, qword ptr [rcx + {DIRECTORY}]",
    "mov rcx, qword ptr [rcx + rdi * 8]",
    "mov edi, eax",
    "shr edi, 12",
    "and edi, 63",
    "lea r9, [rcx + rdi * 8]",
    "mov rsi, qword ptr [r9]",
    "test rsi, rsi",
    ".byte 0x0f, 0x84",                     // jz absent
    ".long {absent}",
    "mov edi, eax",
    "and edi, 4095",
    "jnz 71f",
    "cmp rdx, 4096",
    "jb 71f",
    "mov rdi, r8",
    "72:",                                  // whole pages of the leaf
    "mov ecx, 512",
    "rep movsq",
    "add r9, 8",
    "sub rdx, 4096",
    "add rax, 4096",
    "test eax, 262143",
    "jz 73f",
    "cmp rdx, 4096",
    "jb 73f",
    "mov rsi, qword ptr [r9]",
    "test rsi, rsi",
    "jnz 72b",
    "73:",
    "mov r8, rdi",
    "jmp 75f",
    "71:",                                  // a part of a page
    "add rsi, rdi",
    "mov ecx, 4096",
    "sub ecx, edi",
    "cmp rcx, rdx",
    "cmova rcx, rdx",
    "add rax, rcx",
    "sub rdx, rcx",
    "mov rdi, r8",
    "add r8, rcx",
    "shr ecx, 3",
    "rep movsq",
    "mov ecx, r8d",
    "sub ecx, edi",
    "jz 75f",
    "rep movsb",
    "75:",
    "test rdx, rdx",
    "mov rcx, qword ptr [{words}]",
    "jnz 70b",
}

template! {
    /// From the program to the pages of the file, as `FromPages`.
    pub struct ToPages { words: Abs32, absent: Target }
    where { LEAVES = offset_of!(ContentWords, leaves), DIRECTORY = offset_of!(ContentWords, directory) }
    "70:",
    "mov rdi, rax",
    "shr rdi, 18",
    "cmp rdi, qword ptr [rcx + {LEAVES}]",
    ".byte 0x0f, 0x83",                     // jae absent
    ".long {absent}",
    "mov rcx, qword ptr [rcx + {DIRECTORY}]",
    "mov rcx, qword ptr [rcx + rdi * 8]",
    "mov edi, eax",
    "shr edi, 12",
    "and edi, 63",
    "lea r9, [rcx + rdi * 8]",
    "mov rdi, qword ptr [r9]",
    "test rdi, rdi",
    ".byte 0x0f, 0x84",                     // jz absent
    ".long {absent}",
    "mov esi, eax",
    "and esi, 4095",
    "jnz 71f",
    "cmp rdx, 4096",
    "jb 71f",
    "mov rsi, r8",
    "72:",                                  // whole pages of the leaf
    "mov ecx, 512",
    "rep movsq",
    "add r9, 8",
    "sub rdx, 4096",
    "add rax, 4096",
    "test eax, 262143",
    "jz 73f",
    "cmp rdx, 4096",
    "jb 73f",
    "mov rdi, qword ptr [r9]",
    "test rdi, rdi",
    "jnz 72b",
    "73:",
    "mov r8, rsi",
    "jmp 75f",
    "71:",                                  // a part of a page
    "add rdi, rsi",
    "mov ecx, 4096",
    "sub ecx, esi",
    "cmp rcx, rdx",
    "cmova rcx, rdx",
    "add rax, rcx",
    "sub rdx, rcx",
    "mov rsi, r8",
    "add r8, rcx",
    "shr ecx, 3",
    "rep movsq",
    "mov ecx, r8d",
    "sub ecx, esi",
    "jz 75f",
    "rep movsb",
    "75:",
    "test rdx, rdx",
    "mov rcx, qword ptr [{words}]",
    "jnz 70b",
}

template! {
    /// The counter's value is left for whoever asks for the file's times, and the next read notes its own. Out: rax, rdx, rcx lost.
    /// Cost: 6 instructions.
    pub struct Stamp { words: Abs32 }
    where { WRITTEN = offset_of!(ContentWords, written_at), NOTED = offset_of!(ContentWords, read_is_noted) }
    "mov rcx, qword ptr [{words}]",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "mov qword ptr [rcx + {WRITTEN}], rax",
    "mov qword ptr [rcx + {NOTED}], 0",
}

template! {
    /// The file ends behind what was written, or later. In: rax = position behind the last byte, rcx = the file's words. Cost: 3
    /// instructions.
    pub struct EndsThere {}
    where { SIZE = offset_of!(ContentWords, size_bytes) }
    "cmp rax, qword ptr [rcx + {SIZE}]",
    "jbe 70f",
    "mov qword ptr [rcx + {SIZE}], rax",
    "70:",
}

template! {
    /// The end of what `UpToEnd` began. Cost: 3 instructions.
    pub struct GiveBackBytes {}
    "pop r9",
    "pop r8",
    "pop rdx",
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
    /// `Stamp` keeps the count. Cost: 1 instruction.
    pub struct KeepCount {}
    "mov rdi, rdx",
}

template! {
    /// The end of what `KeepCount` began. Cost: 1 instruction.
    pub struct GiveBackCount {}
    "mov rdx, rdi",
}

template! {
    /// `Stamp` keeps what was written, and where it ended. Cost: 2 instructions.
    pub struct KeepDone {}
    "mov rdi, rdx",
    "mov rsi, rax",
}

template! {
    /// The end of what `KeepDone` began. Cost: 2 instructions.
    pub struct GiveBackDone {}
    "mov rdx, rdi",
    "mov rax, rsi",
}

template! {
    /// The position moves, all that was asked for is the result. Cost: 2 instructions.
    pub struct AdvanceAll { position: Abs32 }
    "add qword ptr [{position}], rdx",
    "mov eax, edx",
}

template! {
    /// The position moves; by how much is the result. In: rax = position behind the last byte. Out: rcx lost. Cost: 3 instructions.
    pub struct Advance { position: Abs32 }
    "mov rcx, rax",
    "sub rax, qword ptr [{position}]",
    "mov qword ptr [{position}], rcx",
}

fragments! {
    /// The buffer begins in the program's half (where it ends is seen by touching it); more than nothing is asked for and at most
    /// 64 KiB. More is done in Rust, and nothing, which must move no time.
    pub(super) list BufferBegins of Routine { user_limit: Abs32, slow: Target } {
        paste UserAddress { user_limit, slow };
        paste OneToMost { most: Imm32(BYTES_MAX - 1), slow };
        paste Keep {};
    }
}

fragments! {
    /// The same of a buffer that ends there, too: a call that is refused must not have changed the file.
    pub(super) list BufferKnown of Routine { user_limit: Abs32, slow: Target } {
        paste OneToMost { most: Imm32(BYTES_MAX - 1), slow };
        paste BufferBelow { user_limit, slow };
        paste Keep {};
    }
}

fragments! {
    /// From one page at the position in rax to the program.
    pub(super) list FromOnePage of Routine { words: Abs32, many: Target } {
        paste InOnePage { words, many };
        paste NoteRead {};
        paste FindPage { absent: many };
        paste FromThere {};
        paste_user_many MoveMany {};
        paste GiveBack {};
    }
}

fragments! {
    /// From the program to one page at the position in rax.
    pub(super) list ToOnePage of Routine { words: Abs32, many: Target } {
        paste InOnePage { words, many };
        paste FindPage { absent: many };
        paste ToThere {};
        paste_user_many MoveMany {};
        paste KeepCount {};
        paste Stamp { words };
        paste GiveBackCount {};
        paste GiveBack {};
    }
}

fragments! {
    /// From the pages at the position in rax to the program; rax is then the position behind them.
    pub(super) list FromFile of Routine { words: Abs32, ended: Target, absent: Target } {
        paste UpToEnd { words, slow_many: ended };
        paste NoteRead {};
        paste_user_pages FromPages { words, absent };
        paste GiveBackBytes {};
    }
}

fragments! {
    /// From the program to the pages at the position in rax; rax is then the position behind them.
    pub(super) list ToFile of Routine { words: Abs32, ended: Target, absent: Target } {
        paste NotBehindEnd { words, slow_many: ended };
        paste_user_pages ToPages { words, absent };
        paste EndsThere {};
        paste KeepDone {};
        paste Stamp { words };
        paste GiveBackDone {};
        paste GiveBackBytes {};
    }
}

quaject! {
    /// The window of an open file.
    pub quaject Window ("file", made by "open", at most 32 inactive)
    facts(FACTS)
    data {
        /// Offset of the next read or write, in bytes.
        pub position: KernelValue<u64>,
        served: Served,
    }
    factors(window) {
        let position = Abs32(window.position.as_ptr() as u64);
        let words = window.served.place();
    }
    callouts WindowCallouts {}
    callbacks {
        /// Rust finds the page, and the file's map has it from then on.
        absent: slow_pages,
        /// Rust says that nothing is left, or makes a hole.
        ended: slow_many,
    }
    callentries WindowCode {
        read: FileCall(nr::READ) named "file.read" uses(user_limit, slow, slow_many, slow_pages, many) {
            include BufferBegins { user_limit, slow };
            paste Position { position };
            include FromOnePage { words, many };
            paste AdvanceAll { position };
            leave;
            begin_many;
            paste BufferBelow { user_limit, slow: slow_many };
            paste Position { position };
            include FromFile { words, ended, absent };
            paste Advance { position };
            paste GiveBack {};
            leave;
        }
        write: FileCall(nr::WRITE) named "file.write" uses(user_limit, slow, slow_many, slow_pages, many) {
            include BufferKnown { user_limit, slow };
            paste Position { position };
            include ToOnePage { words, many };
            paste AdvanceAll { position };
            leave;
            begin_many;
            paste Position { position };
            include ToFile { words, ended, absent };
            paste Advance { position };
            paste GiveBack {};
            leave;
        }
        seek: FileCall(nr::LSEEK) named "file.seek" uses(slow) {
            paste SeekSet { slow, position };
            leave_uncounted;
        }
    }
}

/// Stands in for a file while a window has none: it is empty.
static NO_CONTENT: KernelCell<ContentWords> = KernelCell::new(ContentWords::new());

impl Served {
    pub(super) fn none() -> Served {
        Served { words: KernelValue::new(NO_CONTENT.borrow().address()) }
    }

    /// The file to look at from now on.
    pub(super) fn open(&self, content: &Content) {
        self.words.set(content.words().address());
    }

    /// The file is closed.
    pub(super) fn close(&self) {
        self.words.set(NO_CONTENT.borrow().address());
    }

    pub(super) fn place(&self) -> Abs32 {
        Abs32(self.words.as_ptr() as u64)
    }
}

impl Node {
    /// Rust has moved bytes of this file at `position`: the next ones there may be moved by routines, if nobody has to see it.
    pub fn show_page(&self, machine: &'static dyn Machine, position: u64) {
        if let Some(content) = self.content()
            && !self.loses_privilege_when_written()
            && !self.is_data_watched()
        {
            content.show_page(machine, position);
        }
    }
}

impl Window {
    /// A window for an open file, from the inactive list or new. Its routines are there if there was room for code.
    pub fn open(content: &Content, makers: Makers) -> Box<Made<Window>> {
        let make = || Ok::<_, Infallible>(Window { position: KernelValue::new(0), served: Served::none() });
        let Ok(window) = create::allocate(make);
        window.synthesize(makers, &WindowCallouts {});
        window.served.open(content);
        window
    }

    /// Gives the window back; the file is closed.
    pub fn close(window: Box<Made<Window>>) {
        window.served.close();
        window.position.set(0);
        Window::inactive().give(window);
    }
}

/// What the holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::word(
        "words",
        "address of the file's size, times and page map",
        "the open file is closed: the window serves another",
    ),
    Fact::value("absent", "way to the Rust twin, which finds the page", "never"),
    Fact::value("ended", "way to the Rust twin at the end of the file", "never"),
    Fact::word("position", "offset of the next byte", "the open file is closed"),
];
