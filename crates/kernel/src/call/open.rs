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
use codestore::Code;
use machine::{CallEntry, Keeps, Tte};
use quaject::{Contract, Makers, Routine, quaject};
use synth::{Abs32, Draft, Fact, Imm32, Label, Paste, Target, jump, template};

use crate::symtab::{SamePath, paste_name};

/// Register contract of routines in a thread's call table: entered by `jmp` from the dispatch, on the program's stack;
/// rax = call number, arguments in rdi, rsi, rdx, r10, r8, r9, rcx and r11 as `syscall` left them. All but rax, rcx and r11 kept.
pub enum CallCode {}

impl Keeps<CallEntry> for CallCode {}

/// What a routine does depends on the names that it knows, so the plan for one would not serve the next.
impl Contract for CallCode {
    const NAME: &'static str = "call";
    const PEEPHOLES: bool = false;
    type Routine = CallRoutine;
}

const SLOW: Label = Label(0);
/// Another part, in a routine that knows no names.
const NONE: Label = Label(1);
/// The part that goes to Rust when there is more on the stack.
const LATE: Label = Label(2);

/// A routine of a call table in the making.
pub struct CallRoutine {
    makers: Makers,
    draft: Draft,
}

impl Routine for CallRoutine {
    fn begin(makers: Makers, _: u64) -> CallRoutine {
        CallRoutine { makers, draft: Draft::new() }
    }

    fn finish(self) -> Draft {
        self.draft
    }
}

/// What a declaration's callentries use, and the words in front of their fragments.
impl CallRoutine {
    /// The part that goes to Rust.
    pub fn slow(&self) -> Target {
        Target::Label(SLOW)
    }

    pub fn begin_slow(&mut self) {
        self.draft.place(SLOW);
    }

    /// Rust itself, from the kernel stack.
    pub fn rust(&self) -> Target {
        Target::Address(self.makers.machine.slow_call().address())
    }

    pub fn user_limit(&self) -> Abs32 {
        Abs32(self.makers.machine.user_limit_word())
    }

    pub fn paste(&mut self, fragment: impl Paste) {
        fragment.paste(&mut self.draft);
    }

    /// The part for nothing.
    pub fn none(&self) -> Target {
        Target::Label(NONE)
    }

    pub fn begin_none(&mut self) {
        self.draft.place(NONE);
    }

    /// Appends a fragment that touches program memory, on the kernel stack.
    pub fn paste_user(&mut self, fragment: impl Paste) {
        let from = self.draft.len();
        self.paste(fragment);
        self.draft.land(from, SLOW);
    }

    /// As `slow`, with more on the stack.
    pub fn begin_late(&mut self) {
        self.draft.place(LATE);
    }

    /// As `paste_user`, with more on the stack.
    pub fn paste_user_late(&mut self, fragment: impl Paste) {
        let from = self.draft.len();
        self.paste(fragment);
        self.draft.land(from, LATE);
    }

    /// Back to the program, from the kernel stack.
    pub fn leave(&mut self) {
        self.paste(self.makers.machine.leave());
    }

    /// From here on on the thread's kernel stack, where a fault of program memory may happen.
    pub fn enter_kernel(&mut self, tte: &dyn Tte) {
        tte.append_kernel_stack(&mut self.draft);
        self.paste(self.makers.machine.open_user());
    }

    /// A node for each name: it opens its file, or goes on to the next.
    fn names(&mut self, (opens, names): (&Opens, &[OpenName<'_>])) {
        let names = &names[..names.len().min(OPEN_NAMES_MAX)];
        for (number, name) in names.iter().enumerate() {
            let next = if number + 1 < names.len() { Label(SLOW.0 + 1 + number as u8) } else { SLOW };
            self.node(opens, name, Target::Label(next));
            self.draft.place(next);
        }
    }

    fn node(&mut self, opens: &Opens, name: &OpenName<'_>, next: Target) {
        let from = self.draft.len();
        self.paste(SameFlags { flags: Imm32(name.flags), next });
        paste_name(&mut self.draft, name.path, next);
        self.draft.land(from, SLOW);
        self.paste(Install {
            free: Abs32(opens.table.free),
            pending: Abs32(opens.table.pending),
            reads: Abs32(opens.table.reads),
            writes: Abs32(opens.table.writes),
            recipes: Abs32(opens.recipes),
            read_entry: Abs32(name.read_entry),
            write_entry: Abs32(name.write_entry),
            recipe: Imm32(name.recipe),
            slow: self.slow(),
        });
        self.paste(self.makers.machine.leave());
    }

    /// Back to the program, on whose stack the routine still is.
    pub fn leave_direct(&mut self) {
        self.paste(self.makers.machine.leave_direct());
    }
}

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
pub struct TableWords {
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

/// A file that a synthesized open opens.
pub struct OpenName<'a> {
    /// Absolute path, without its NUL; at least 3 bytes.
    pub path: &'a [u8],
    pub flags: u32,
    pub read_entry: u64,
    pub write_entry: u64,
    pub recipe: u32,
}

quaject! {
    /// The opens of one thread: `openat` for a few paths, and `close` of what that has opened. The names are a symbol table as
    /// code (S-109, S-12): each is a node that compares the path with its own; behind the last one is Rust.
    pub quaject Opens ("opens", made by "openat", at most 0 inactive)
    facts(FACTS)
    pastes(SameFlags, SamePath, Install)
    data {
        pub table: TableWords,
        /// Address of an array of 32-bit words: which recipe a pending descriptor was opened by.
        pub recipes: u64,
        /// Address of the word that moves when any name changes, and what it was.
        pub generation_word: u64,
        pub generation: u64,
    }
    factors(opens) {
        let free = Abs32(opens.table.free);
        let pending = Abs32(opens.table.pending);
        let reads = Abs32(opens.table.reads);
        let writes = Abs32(opens.table.writes);
        let slow_entry = Abs32(opens.table.slow_entry);
        let generation_word = Abs32(opens.generation_word);
        let generation = Imm32(opens.generation as u32);
    }
    callouts OpensCallouts<'a> {
        /// The thread.
        tte: &'a dyn Tte,
        /// What it opens; at most [`OPEN_NAMES_MAX`], those behind are not known to the routine.
        known: &'a [OpenName<'a>],
    }
    callbacks {}
    callentries OpensCode {
        open: CallCode(nr::OPENAT) named "call.open" needs(tte, known) uses(user_limit, rust) {
            // Nothing is lost yet, and the program's stack is still in force.
            paste SameOpen { generation_word, generation, user_limit, slow: Target::Address(tte.slow_entry().address()) };
            enter_kernel (*tte);
            names ((opens, *known));
            begin_slow;
            paste ToRust { number: Imm32(nr::OPENAT as u32), slow: rust };
        }
        close: CallCode(nr::CLOSE) named "call.close" needs(tte) uses(slow) {
            paste Uninstall { free, pending, reads, writes, slow_entry, slow };
            leave_direct;
            begin_slow;
            paste ToRust { number: Imm32(nr::CLOSE as u32), slow: Target::Address(tte.slow_entry().address()) };
        }
    }
}

impl Opens {
    /// `openat` of these files. `None` without room for code.
    pub fn open(&self, makers: Makers, known: &[OpenName<'_>], tte: &dyn Tte) -> Option<Code<CallCode>> {
        let callouts = OpensCallouts { tte: Some(tte), known: Some(known) };
        OpensCode::open(self, makers, &callouts).create(makers)
    }

    /// `close` of a pending descriptor. `None` without room for code.
    pub fn close(&self, makers: Makers, tte: &dyn Tte) -> Option<Code<CallCode>> {
        OpensCode::close(self, makers, &OpensCallouts { tte: Some(tte), known: None }).create(makers)
    }
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
