//! A synthesized `open` and `close` (S-9, S-89): the call for a few paths that a thread opens again and again.
//!
//! The factored call compares what the program passes with what it passed before. If it is one of those, the name still
//! leads to the same file (the namespace's generation has not moved), and opening that file leaves no trace, then all that is
//! left of `open` is: take the lowest free descriptor and store the file's entry points behind it. The open file itself is
//! only made when somebody looks at the descriptor (*pending*), which for most uses of /dev/null is never; closing
//! a pending descriptor takes the entry points away again.
//!
//! Both routines have only rax to work with, and need no more. `close` stays on the program's stack; `open` leaves it before
//! it looks at the path, because a fault on the program's stack would store the kernel's registers there.

use abi::nr;
use codestore::{Code, Maker, PublishError};
use machine::Tte;
use machine::stages::{self, Stage};
use quaject::Makers;
use synth::{Abs32, Draft, Fact, Imm32, Label, Target, jump, template};

use crate::symtab::{SamePath, paste_name};

/// Register contract of routines in a thread's call table: entered by `jmp` from the dispatch, on the program's stack;
/// rax = call number, arguments in rdi, rsi, rdx, r10, r8, r9, rcx and r11 as `syscall` left them. All but rax, rcx and r11 kept.
pub enum CallCode {}

const SLOW: Label = Label(0);

template! {
    /// The path is absolute and the program's, and names lead where they did. In: rdi, rsi of `openat`. Cost: 6 instructions.
    pub struct SameOpen { generation_word: Abs32, generation: Imm32, user_limit: Abs32, slow: Target }
    "cmp edi, -100",                        // AT_FDCWD; the path is absolute
    jump!(jne slow),
    "cmp dword ptr [{generation_word}], {generation}",
    jump!(jne slow),
    "cmp rsi, qword ptr [{user_limit}]",
    jump!(jae slow),
}

template! {
    /// The flags are those of before. In: rdx of `openat`. Cost: 2 instructions.
    pub struct SameFlags { flags: Imm32, next: Target }
    "cmp edx, {flags}",
    jump!(jne next),
}

template! {
    /// The lowest free descriptor gets the file's entry points and is pending. Out: rax = descriptor. Cost: 7 instructions.
    pub struct Install { free: Abs32, pending: Abs32, reads: Abs32, writes: Abs32, recipes: Abs32, read_entry: Abs32, write_entry: Abs32, recipe: Imm32, slow: Target }
    "bsf rax, qword ptr [{free}]",
    jump!(je slow), // none of the first 64 is free
    "btr qword ptr [{free}], rax",
    "bts qword ptr [{pending}], rax",
    "mov qword ptr [{reads} + rax*8], {read_entry}",
    "mov qword ptr [{writes} + rax*8], {write_entry}",
    "mov dword ptr [{recipes} + rax*4], {recipe}",
}

template! {
    /// A pending descriptor is free again. Cost: 10 instructions.
    pub struct Uninstall { free: Abs32, pending: Abs32, reads: Abs32, writes: Abs32, slow_entry: Abs32, slow: Target }
    "cmp rdi, 64",
    jump!(jae slow),
    "mov rax, qword ptr [{pending}]",
    "btr rax, rdi",
    jump!(jae slow), // not pending
    "mov qword ptr [{pending}], rax",
    "bts qword ptr [{free}], rdi",
    "mov qword ptr [{reads} + rdi*8], {slow_entry}",
    "mov qword ptr [{writes} + rdi*8], {slow_entry}",
    "xor eax, eax",
}

template! {
    /// Ends in Rust. In: registers as at the call but rax. Cost: 2 instructions.
    pub struct ToRust { number: Imm32, slow: Target }
    "mov eax, {number}",
    jump!(jmp slow),
}

/// Addresses of a descriptor table's words that the routines use.
#[derive(Clone, Copy, Debug)]
pub struct ClosePlan {
    /// Bit per descriptor below 64: free.
    pub free: u64,
    /// Bit per descriptor below 64: open, but nobody has looked yet.
    pub pending: u64,
    pub reads: u64,
    pub writes: u64,
    /// What an entry holds while there is no routine.
    pub slow_entry: u64,
}

/// Most names that one routine knows.
pub const OPEN_NAMES_MAX: usize = 4;

/// What is folded into a synthesized open.
pub struct OpenPlan<'a> {
    pub table: ClosePlan,
    /// Array of 32-bit words: which recipe a pending descriptor was opened by.
    pub recipes: u64,
    pub generation_word: u64,
    pub generation: u64,
    /// At most [`OPEN_NAMES_MAX`]; those behind are not known to the routine.
    pub names: &'a [OpenName<'a>],
}

/// A file that a synthesized open opens.
pub struct OpenName<'a> {
    /// Absolute path, without its NUL; at least 3 bytes.
    pub path: &'a [u8],
    pub flags: u32,
    pub read_entry: u64,
    pub write_entry: u64,
    pub recipe: u32,
}

/// `openat` for a few paths and one thread. The names are a symbol table as code (S-109, S-12): each is a node that compares
/// the path with its own and opens its file, or goes on to the next node; behind the last one is Rust.
pub fn cached_open(makers: Makers, plan: &OpenPlan<'_>, tte: &dyn Tte) -> Result<Code<CallCode>, PublishError> {
    let _stage = stages::enter(Stage::Factor);
    let mut draft = Draft::new();
    // Nothing is lost yet, and the program's stack is still in force.
    let early = Target::Address(tte.slow_entry());
    SameOpen {
        generation_word: Abs32(plan.generation_word),
        generation: Imm32(plan.generation as u32),
        user_limit: Abs32(makers.machine.user_limit_word()),
        slow: early,
    }
    .append_to(&mut draft);
    tte.append_kernel_stack(&mut draft);
    if let Some(open) = makers.machine.open_user() {
        draft.append(&open, &[]);
    }
    let names = &plan.names[..plan.names.len().min(OPEN_NAMES_MAX)];
    for (number, name) in names.iter().enumerate() {
        let next = if number + 1 < names.len() { Label(SLOW.0 + 1 + number as u8) } else { SLOW };
        append_node(makers, &mut draft, plan, name, next);
        draft.place(next);
    }
    finish(makers, draft, nr::OPENAT, makers.machine.slow_call(), "call.open")
}

/// Opens the file of one name, or goes on at `next`.
fn append_node(makers: Makers, draft: &mut Draft, plan: &OpenPlan<'_>, name: &OpenName<'_>, next: Label) {
    let from = draft.len();
    SameFlags { flags: Imm32(name.flags), next: Target::Label(next) }.append_to(draft);
    paste_name(draft, name.path, Target::Label(next));
    draft.land(from, SLOW);
    Install {
        free: Abs32(plan.table.free),
        pending: Abs32(plan.table.pending),
        reads: Abs32(plan.table.reads),
        writes: Abs32(plan.table.writes),
        recipes: Abs32(plan.recipes),
        read_entry: Abs32(name.read_entry),
        write_entry: Abs32(name.write_entry),
        recipe: Imm32(name.recipe),
        slow: Target::Label(SLOW),
    }
    .append_to(draft);
    draft.append(&makers.machine.leave(), &[]);
}

/// `close` of a pending descriptor.
pub fn cached_close(makers: Makers, table: &ClosePlan, thread_slow: u64) -> Result<Code<CallCode>, PublishError> {
    let mut draft = Draft::new();
    Uninstall {
        free: Abs32(table.free),
        pending: Abs32(table.pending),
        reads: Abs32(table.reads),
        writes: Abs32(table.writes),
        slow_entry: Abs32(table.slow_entry),
        slow: Target::Label(SLOW),
    }
    .append_to(&mut draft);
    draft.append(&makers.machine.leave_direct(), &[]);
    finish(makers, draft, nr::CLOSE, thread_slow, "call.close")
}

fn finish(
    makers: Makers,
    mut draft: Draft,
    number: u64,
    rust: u64,
    name: &'static str,
) -> Result<Code<CallCode>, PublishError> {
    draft.place(SLOW);
    ToRust { number: Imm32(number as u32), slow: Target::Address(rust) }.append_to(&mut draft);
    makers.store.publish(name, Maker::new("openat"), draft)
}

/// For the golden listings.
pub fn templates() -> [synth::Template; 6] {
    [
        SameOpen::template(),
        SameFlags::template(),
        SamePath::template(),
        Install::template(),
        Uninstall::template(),
        ToRust::template(),
    ]
}

/// What the holes stand for.
pub const FACTS: &[Fact] = &[
    Fact::value("flags", "flags of the open that was done twice", "compared at each call"),
    Fact::word("generation_word", "moves when any name changes (mkdir, rename, unlink, chmod, mount...)", "never"),
    Fact::value("generation", "what that word was: the path leads to the same file", "compared at each call"),
    Fact::value("offset", "place in the path", "never"),
    Fact::value("bytes", "four bytes of the path", "compared at each call"),
    Fact::word("free", "bit for each free descriptor below 64", "the process gets another table: exec, unshare"),
    Fact::word("pending", "bit for each descriptor that nobody has looked at", "as free"),
    Fact::value("reads", "this process's entries of read, by descriptor", "as free"),
    Fact::value("writes", "this process's entries of write, by descriptor", "as free"),
    Fact::value("recipes", "how pending descriptors become open files", "as free"),
    Fact::value("recipe", "number of the recipe for this file", "as free"),
    Fact::value("read_entry", "read of the file that is opened", "credentials, limits or the table change"),
    Fact::value("write_entry", "write of the file that is opened", "credentials, limits or the table change"),
    Fact::value("slow_entry", "what an entry without a routine holds", "never"),
];
