//! What a processor is to the kernel.

use core::sync::atomic::AtomicU64;

use synth::{Fact, Template};

use crate::{Entry, FileEntry, ProcessorNumber, ScheduleWords, Upcalls, VirtAddr};

/// Text of a program that the machine has rewritten. Another program may have other text there.
#[derive(Clone, Copy, Debug)]
pub struct Rewritten<'a> {
    pub address: VirtAddr,
    pub now: &'a [u8],
    /// What the program has brought.
    pub original: &'a [u8],
}

/// Falling asleep and waking as code. Both are entered by `jmp` on the thread's kernel stack, with the number of the call on top of the
/// program's stack pointer, rax = address of the queue's [`crate::WaitWords`], all other registers as at the call. The call is made anew
/// from its first instruction when the thread has been woken, or has woken another; or it is done in Rust, where something is unusual.
#[derive(Clone, Copy)]
pub struct Sleeping {
    /// The running thread sleeps in the queue. Nobody else does so by code, so a queue holds one such sleeper at most.
    pub sleep: Entry<FileEntry>,
    /// Who sleeps in the queue runs next.
    pub wake: Entry<FileEntry>,
    /// As `sleep`, but who is answered ([`crate::Tte::answer`]) has done its call, with result 0.
    pub rest: Entry<FileEntry>,
    /// Who rests in the queue is answered and runs next; the call is done, with result 1.
    pub rouse: Entry<FileEntry>,
}

/// What a processor is to the kernel: how it is entered and left, and the instructions that are its own.
pub trait Processor: Send + Sync {
    /// The processor that runs this.
    fn number(&self) -> ProcessorNumber;
    /// The words that this processor's scheduler shares with the machine.
    ///
    /// The machine pre-empts programs by itself (S-81): while no alarm is due within the longest quantum, an interrupt of the timer
    /// that finds a program running can only mean that the quantum is over. The machine then switches to the thread's
    /// successor, unless that is the thread itself, sets the timer for the successor's quantum, and `armed` to
    /// [`crate::NEVER`]; `Upcalls::timer` is not called.
    fn schedule_words(&self) -> &'static ScheduleWords;
    /// The gauge of this processor (S-31): counts operations on streams, by routines and by Rust. The machine puts what came
    /// to it during a turn on the account of the thread that ran, and gives it its quantum by it (S-71).
    fn gauge(&self) -> &'static AtomicU64 {
        static UNREAD: AtomicU64 = AtomicU64::new(0);
        &UNREAD
    }
    /// From now on the kernel is entered through `upcalls`.
    fn set_upcalls(&self, upcalls: &'static dyn Upcalls);
    /// The code to paste that loads the running thread's tag into rax, in a routine on the kernel stack.
    fn load_tag(&self) -> Option<Template> {
        None
    }
    /// The code to paste that loads the number of the running thread's quaspace ([`crate::Translation::number`]) into rax, in a routine
    /// on the kernel stack.
    fn load_quaspace(&self) -> Option<Template> {
        None
    }
    /// The routine of a call that is the same for all threads, for those that [`crate::Tte::bind_common_call`] binds to it. It is
    /// entered as from a descriptor, and must stay.
    fn offer_call(&self, number: usize, entry: Entry<FileEntry>) {
        let _ = (number, entry);
    }
    /// Shows all text of programs that the machine has ever rewritten.
    fn rewritten_text(&self, visit: &mut dyn FnMut(Rewritten<'_>)) {
        let _ = visit;
    }
    /// Does `act` with no interrupt in between, though interrupts may nest in the kernel (S-78).
    fn between_interrupts(&self, act: &mut dyn FnMut()) {
        act();
    }
    /// Has `Upcalls::chained` called as soon as the kernel is left, if the machine can do so.
    fn ask_for_chained(&self) {}
    /// What the holes of the machine's own templates stand for.
    fn facts(&self) -> &'static [Fact] {
        &[]
    }
    /// Ends the machine.
    fn power_off(&self) -> !;
    /// Entropy for programs: 8 random bytes, or a fixed sequence under a repeatable clock.
    fn random(&self) -> u64;
    /// Bytes of devices that have gone into it.
    fn device_entropy(&self) -> u64 {
        0
    }
    /// EDX of CPUID leaf 1: what programs see as AT_HWCAP.
    fn feature_word(&self) -> u32;
    /// The vector features that programs may use (XCR0), as signal frames name them.
    fn vector_features(&self) -> u64;
    /// Bytes of an XSAVE image with these features.
    fn vector_bytes(&self) -> usize;
    /// The code to paste where a synthesized routine touches the program's memory (S-88), if any is needed.
    fn open_user(&self) -> Option<Template>;
    /// The code to paste behind that where the routine goes on in the kernel, and neither back to the program nor to Rust.
    fn close_user(&self) -> Option<Template> {
        None
    }
    /// The code to paste in front of instructions on strings, if routines can be entered with the program's direction flag.
    fn upwards(&self) -> Option<Template> {
        None
    }
    /// The code that ends a synthesized call routine: back to the program, result in rax.
    fn leave(&self) -> Template;
    /// The code that ends a routine that has not left the program's stack; result in rax.
    fn leave_direct(&self) -> Template;
    /// The code that ends a routine which has loaded all registers of the program: what an interrupt pushes is on top of the stack.
    /// `None`: not without Rust.
    fn leave_whole(&self) -> Option<Template> {
        None
    }
    /// Where a synthesized call routine goes to be done in Rust; rax holds the call number again.
    fn slow_call(&self) -> Entry<FileEntry>;
    /// Where routines go that find nothing to take, or somebody who waits; `None`: to Rust.
    fn sleeping(&self) -> Option<Sleeping> {
        None
    }
    /// The address of a word that holds the first address a program may not use.
    fn user_limit_word(&self) -> u64;
}
