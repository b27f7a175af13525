//! The machine's side of a thread: its table entry (TTE, S-50) and the traps it takes.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU8, AtomicU64};

use synth::{Draft, Fact};

use crate::{
    CallEntry, DescriptorEntries, Entry, Held, Nanos, NoFrames, Registers, SwitchOut, Translation, UserFault, VirtAddr,
    WaitWords,
};

/// Names a TTE. Small, reused after the TTE is dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct TteId(pub u32);

/// Limits of a thread's quantum (S-70); a new thread has the most. The papers name a few hundred microseconds.
pub const QUANTUM_LEAST_NS: u64 = 200_000;
pub const QUANTUM_MOST_NS: u64 = 1_000_000;
/// Over so much running a thread's rate of I/O is taken (S-75).
pub const GAUGE_PERIOD_NS: u64 = 200_000;
/// Operations on streams in a millisecond of running that earn the longest quantum.
pub const GAUGE_FULL: u64 = 20;

/// Where an XSAVE image has bytes for software, and how many (SDM vol. 1, 10.5.1).
pub const SOFTWARE_AT: usize = 464;
pub const SOFTWARE_BYTES: usize = 48;

/// System calls a thread's table covers; larger numbers take the slow end.
pub const CALLS_MAX: usize = 464;

/// The vector-state image was not one that the processor accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadVectorState;

/// What tells which floating-point exception was raised (SDM vol. 1, 8.1.3, 8.1.5, 10.2.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FloatWords {
    pub x87_control: u16,
    pub x87_status: u16,
    pub mxcsr: u32,
}

/// A thread table entry: register save area, kernel stack, vector state and the synthesized
/// `sw_in`, `sw_in_mmu` and `sw_out` (S-50, S-57). Dropping one that is linked or running is a
/// kernel bug and panics.
pub trait Tte: Send + Sync {
    fn id(&self) -> TteId;

    /// The program's registers as saved at its last entry into the kernel.
    fn registers(&self) -> Registers;
    fn set_registers(&self, registers: &Registers);

    /// The thread-local-storage base (FS on x86-64).
    fn thread_pointer(&self) -> u64;
    fn set_thread_pointer(&self, base: u64);
    fn set_gs_base(&self, base: u64);
    fn gs_base(&self) -> u64;

    /// The quaspace the thread runs in; `None` for kernel-only threads, which run in whatever is
    /// active. Synthesizes `sw_in_mmu` anew.
    fn set_quaspace(&self, quaspace: Option<&dyn Translation>);

    /// Links this thread into the ready ring, which it is not in: the entries that lead from thread to thread are stored,
    /// with or without the address-space switch as each pair needs (S-58). Beside a thread that is not in the ring means
    /// behind the first of it.
    fn link_in(&self, place: Place);
    /// Takes this thread out of the ready ring, if it is in. Leaving it leads to who followed it, else to the idle thread.
    fn link_out(&self);
    /// Whether the thread sleeps by code ([`crate::Sleeping`]). `link_in` takes it out of its queue's count.
    fn sleeps_by_code(&self) -> bool {
        false
    }
    /// Who rests by code ([`crate::Sleeping::rest`]) is told that its call is done: when it runs, or when the call is done in Rust.
    fn answer(&self) {}
    /// Whether that has been said since it was last asked for.
    fn take_answer(&self) -> bool {
        false
    }
    /// Who sleeps by code sleeps in this queue from now on, in which nobody does; the words stay as long as it does.
    fn sleep_elsewhere(&self, queue: &'static WaitWords) {
        let _ = queue;
    }
    /// Stores the links from and to this thread anew, because it has changed its quaspace.
    fn relink(&self);

    /// The x87 control and status words and MXCSR of the running thread.
    fn float_words(&self) -> FloatWords;
    /// Writes the running thread's vector registers to its program's memory, in the processor's standard XSAVE layout,
    /// with x87 and SSE marked as present, and `software` in the bytes that the processor leaves to software. Error: a page that the
    /// program may not write.
    fn save_vector_state(&self, to: VirtAddr, software: &[u8; SOFTWARE_BYTES]) -> Result<(), UserFault>;
    /// Loads the running thread's vector registers from the first `bytes` of such an image: `features` of those it
    /// holds, the others become initial. Error: an image that the processor would refuse or that cannot be read; the
    /// registers are initial then.
    fn load_vector_state(&self, from: VirtAddr, bytes: usize, features: u64) -> Result<(), BadVectorState>;
    fn reset_vector_state(&self);

    /// As `reset_vector_state`, and nothing of the old state stays behind in the image either, which signal frames show.
    fn erase_vector_state(&self) {
        self.reset_vector_state();
    }
    /// Takes over a copy of the running thread's vector state.
    fn inherit_vector_state(&self);

    /// Copies the vector state of this thread, which is not in its program, into `into`, in the processor's standard
    /// XSAVE layout; what does not fit is cut.
    fn copy_vector_state(&self, into: &mut [u8]);
    /// Gives this thread, which is not in its program, the vector state of such an image: `features` of those it holds,
    /// the others become initial. Error: an image that the processor would refuse; the state is initial then.
    fn replace_vector_state(&self, image: &[u8], features: u64) -> Result<(), BadVectorState>;

    /// `true`: a debugger looks at the thread (S-55). All its calls are done in Rust, whatever is bound meanwhile, and
    /// no text is rewritten for it. What was bound stays unbound afterwards.
    fn set_debugged(&self, debugged: bool);
    /// Binds system call `number` in this thread's call table to a routine; `None`: done in Rust.
    fn bind_call(&self, number: usize, entry: Option<Entry<CallEntry>>);
    /// Binds system call `number` to the routine that all threads have ([`crate::Processor::offer_call`]).
    fn bind_common_call(&self, number: usize) {
        let _ = number;
    }
    /// Synthesizes the dispatch of a call on descriptors (`fd → entry`) for this thread and binds it: it moves to the
    /// kernel stack and jumps through word `rdi` of `entries`; other descriptors are done in Rust.
    fn bind_descriptor_call(&self, number: usize, entries: DescriptorEntries) -> Result<(), NoFrames>;
    /// Appends code that moves to this thread's kernel stack: before a routine touches the program's memory, because a
    /// fault on the program's own stack would store the kernel's registers there.
    fn append_kernel_stack(&self, draft: &mut Draft);
    /// A number that routines find with the running thread (`Machine::load_tag`): the kernel's tag of it, at first 0.
    fn set_tag(&self, tag: u64) {
        let _ = tag;
    }
    /// The byte that is not zero when the kernel wants `Upcalls::before_user` before the thread goes back to its program.
    /// Without one the kernel is always asked.
    fn set_attention_byte(&self, byte: Arc<AtomicU8>) {
        let _ = byte;
    }
    /// A word of the program's memory: when it is not zero, or not there, as the thread goes on after the machine has
    /// pre-empted it, the kernel is asked first (`Upcalls::before_user`). `None`: there is none.
    fn set_preemption_word(&self, address: Option<VirtAddr>) {
        let _ = address;
    }
    /// How long the thread may run at a time while others are ready.
    fn quantum(&self) -> Nanos {
        Nanos(QUANTUM_MOST_NS)
    }
    fn set_quantum(&self, quantum: Nanos) {
        let _ = quantum;
    }
    /// How long the thread has been the running one, up to the last `Machine::charge` or switch.
    fn ran(&self) -> Nanos {
        Nanos(0)
    }
    /// Leads every call to `entry`; what the call table held, and what is bound from now on, stands in the table given,
    /// which has at least [`CALLS_MAX`] words. `None`: the call table is what it was, with what was bound meanwhile.
    fn divert_calls(&self, to: Option<(Entry<CallEntry>, Arc<[AtomicU64]>)>) {
        let _ = to;
    }
    /// The address that the thread's call table holds for system call `number`, to look at.
    fn call_entry(&self, number: usize) -> u64 {
        let _ = number;
        self.slow_entry().address()
    }
    /// Where code that has not left the program's stack goes to have the call done in Rust; rax = call number.
    fn slow_entry(&self) -> Entry<CallEntry>;
    /// Synthesizes a call that is one constant now (S-14) and binds it.
    fn bind_constant_call(&self, number: usize, value: u32) -> Result<(), NoFrames>;

    /// The entry point `sw_in` of this thread, for those who link by code address.
    fn entries(&self) -> Entries;
}

/// Where a thread comes into the ready ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Behind the running thread: it runs next (S-73).
    Next,
    /// In front of it: it runs after all others.
    Last,
}

/// Code addresses of a TTE's synthesized entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entries {
    pub sw_in: u64,
    pub sw_in_mmu: u64,
    /// The quaspace's root (0: kernel-only), to choose between the two.
    pub root: u64,
    /// Address of the word that holds the thread's quantum; 0 where the machine does not pre-empt by itself.
    pub quantum: u64,
    pub sw_out: u64,
    pub dispatch: u64,
}

/// How a new thread begins.
pub enum Start {
    /// At user level with these registers.
    User(Registers),
    /// In the kernel, in this function, which never returns.
    Kernel(fn(Held<'_>) -> !),
}

/// An access that the processor refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    pub address: VirtAddr,
    pub write: bool,
    pub execute: bool,
}

/// An exception raised by a program that no quaspace could resolve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exception {
    /// SDM vol. 3A, table 6-1.
    pub vector: u8,
    pub error: u64,
    /// CR2 for page faults, else 0.
    pub address: u64,
}

/// Bit of a page fault's error code: the page is mapped, but what it shows is gone (a file outside of the machine
/// became shorter).
pub const PAGE_LOST: u64 = 1 << 31;

/// What the machine asks of the kernel. Every function runs in the current thread, which `thread` names, with
/// interrupts off and the kernel's lock held; those that return nothing return to the program, possibly after other threads have run.
pub trait Upcalls: Send + Sync {
    /// The program made system call `registers.rax`; the result goes back into `rax`. Does what `before_user` does,
    /// too. True: no other register of the program has changed, so it may go back the short way.
    fn system_call(&'static self, held: Held<'_>, thread: TteId, registers: &mut Registers) -> bool;
    /// The program faulted outside memory management.
    fn exception(&'static self, held: Held<'_>, thread: TteId, registers: &mut Registers, exception: Exception);
    /// A user address was not accessible: supply the page. `false`: the program may not do this. Leaves for nobody, so that a copy
    /// in the midst of the kernel's Rust may fault.
    fn page_fault(&'static self, thread: TteId, access: Access) -> bool;
    /// Replaces bytes of the running program's code, in a copy of its own, for a machine that catches calls in the
    /// program's text. The rights of the page do not change. `false`: the program may write these bytes itself, or
    /// there is no memory; nothing is certain about the bytes then.
    fn rewrite_text(&'static self, thread: TteId, address: VirtAddr, bytes: &[u8]) -> bool;
    /// The alarm set by `Machine::set_alarm` went off.
    fn timer(&'static self, held: Held<'_>);
    /// A device of the machine has news. Leaves for nobody.
    fn device(&'static self);
    /// What was chained is to be done now (S-80): the kernel was about to be left for this thread, or waited.
    fn chained(&'static self, held: Held<'_>) {
        let _ = held;
    }
    /// What showed this quaspace ([`crate::Translation::number`]) was killed by somebody outside: its programs end as by SIGKILL.
    fn quaspace_lost(&'static self, held: Held<'_>, number: u64) {
        let _ = (held, number);
    }
    /// The sample clock, while its handler is the compiled one. Interrupt context: no sleep, no lock, no allocation.
    fn sample(&'static self) {}
    /// Just before the thread goes back to its program: signals, exit, rescheduling.
    fn before_user(&'static self, held: Held<'_>, thread: TteId, registers: &mut Registers);
}

/// Makes threads.
pub trait Threads {
    fn create_tte(&self, start: Start) -> Result<Box<dyn Tte>, NoFrames>;
    fn current_tte(&self) -> TteId;
    /// The thread that runs while the ready ring is empty: called once. From it one comes to the first of the ring.
    fn set_idle(&self, idle: &dyn Tte);
    /// The threads in the ready ring in the order in which they will run, from the first on.
    fn ready_order(&self) -> Vec<TteId>;
    /// Whom leaving the running thread leads to, and how long that one may run at a time.
    fn successor(&self) -> (TteId, Nanos);
    /// The thread that a queue's words name as sleeping there by code; by its number, where no code does so.
    fn sleeper(&self, word: u64) -> TteId {
        TteId(word as u32)
    }
    /// A queue goes away whose words name this thread.
    fn forget_queue(&self, sleeper: u64) {
        let _ = sleeper;
    }
    /// How the current thread leaves for its successor in the ring.
    fn switch_out(&self) -> SwitchOut;
    /// Gives the lock up and waits for an interrupt. Only the idle thread calls this.
    fn wait_for_interrupt(&self, held: Held<'_>);
    /// Gives the lock up and lets interrupts in that wait.
    fn serve_interrupts(&self, held: Held<'_>) {
        let _ = held;
    }
}

/// What the holes of a thread's own code stand for, on either machine.
pub const THREAD_FACTS: &[Fact] = &[
    Fact::word("root", "the thread's quaspace", "exec: the word changes, the code stays"),
    Fact::word("kernel_sp", "the thread's kernel stack while another runs", "the thread ends"),
    Fact::word("next", "slot: sw_in of the next ready thread", "each change of the ready ring stores another"),
    Fact::word("rsp0", "stack for the next trap from a program", "never"),
    Fact::word("cpu_top", "stack of the running thread", "never"),
    Fact::value("stack_top", "end of this thread's kernel stack", "the thread ends"),
    Fact::word("cpu_dispatch", "slot: dispatch of the running thread", "each switch stores another"),
    Fact::value("dispatch", "this thread's dispatch; in cpu.entry the slot that leads to it", "the thread ends"),
    Fact::word("fs_base", "thread-local storage while another runs", "the thread ends"),
    Fact::word("gs_base", "GS base while another runs", "the thread ends"),
    Fact::value("common_calls", "routines of calls that are the same for all threads, by call number", "never"),
    Fact::value("calls", "this thread's call table", "the thread ends"),
    Fact::word(
        "user_sp",
        "the program's stack pointer during a call; the code also has its address",
        "the thread ends",
    ),
    Fact::value("common", "entry of all calls that are done in Rust", "never"),
    Fact::value("change_space", "exchanges the mappings of two quaspaces", "never"),
    Fact::value("mmu_bytes", "bytes of sw_in_mmu in front of sw_in", "never"),
    Fact::value("back", "where a thread that slept by code comes back", "never"),
    Fact::value("no", "the part for who was not told that its call is done", "never"),
    Fact::value("refused", "way to Rust for a thread that must not sleep here", "never"),
    Fact::value("count", "descriptors whose calls are synthesized", "never"),
    Fact::value("entries", "this process's entries, by descriptor", "the process gets another table: exec, unshare"),
    Fact::value("value", "the answer of the call", "fork, setuid, setpgid, the parent's end: Rust answers again"),
];
