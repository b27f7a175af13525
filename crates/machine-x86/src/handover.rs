//! Falling asleep and waking somebody as code (S-56, S-73): what a routine jumps to that finds nothing to take, or somebody who waits.
//!
//! ```text
//!   routine: empty ─► cpu.sleep ─► the successor's sw_in      ...      somebody's sw_in ─► cpu.woken ─► the call, once more
//!   routine: somebody waits ─► cpu.wake: links the sleeper in behind the running thread ─► the call, once more
//! ```
//! The call is made anew from its first instruction, so nothing that was looked at before the sleep is believed after it: the
//! descriptor may lead elsewhere, and the routine may have gone. Whatever is unusual goes to the Rust twin, with the program's registers
//! as they were.
//!
//! Where the call must not be made anew, because what was waited for is an event and no state (a futex), the thread *rests*: who wakes
//! it tells it so (`TteRecord::answer`), and the call is done.
//!
//! A thread that sleeps so has put its program's registers on its kernel stack, and holds nothing: the queue's word names its
//! record, the record the queue's words. Whoever links it in, in code or in Rust, takes it out of the queue's count; when it runs, it
//! clears both words itself. Between the two, who takes the file away that it slept at has it kept for the call (S-20).

use core::mem::offset_of;

use machine::{FileEntry, Keeps, Registers, WaitWords};
use quaject::{Contract, Straight, quaject};
use synth::{Abs32, Draft, Imm32, Target, jump, template};

use crate::area::THREAD_AREA_BYTES;
use crate::slots::Slots;
use crate::thread::TteRecord;

/// Register contract of falling asleep and of waking: entered by `jmp` from a routine, on the thread's kernel stack, with the number
/// of the call on top of the program's stack pointer, rax = the queue's words, all other registers the program's.
pub enum Handing {}

impl Contract for Handing {
    const NAME: &'static str = "hand-over";
    const PEEPHOLES: bool = false;
    type Routine = Straight;
}

impl Keeps<FileEntry> for Handing {}

/// A program's registers on the kernel stack of a thread that sleeps by code, from the lowest address on.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Asleep {
    r15: u64,
    r14: u64,
    r13: u64,
    r12: u64,
    rbp: u64,
    rbx: u64,
    r10: u64,
    r9: u64,
    r8: u64,
    rdx: u64,
    rsi: u64,
    rdi: u64,
    r11: u64,
    rcx: u64,
    number: u64,
    rsp: u64,
}

impl Asleep {
    /// What `area`'s thread has put away.
    pub fn of(area: u64) -> *const Asleep {
        (area + THREAD_AREA_BYTES - size_of::<Asleep>() as u64) as *const Asleep
    }

    /// The program's registers as at its call.
    pub fn registers(&self) -> Registers {
        let Asleep { r15, r14, r13, r12, rbp, rbx, r10, r9, r8, rdx, rsi, rdi, r11, rcx, number, rsp } = *self;
        let (cs, ss) = (u64::from(crate::USER_CODE), u64::from(crate::USER_DATA));
        Registers {
            r15,
            r14,
            r13,
            r12,
            rbp,
            rbx,
            r10,
            r9,
            r8,
            rdx,
            rsi,
            rdi,
            r11,
            rcx,
            rax: number,
            cause: number,
            error: 0,
            rip: rcx,
            cs,
            rflags: r11,
            rsp,
            ss,
        }
    }
}

template! {
    /// Puts the program's registers away, and looks whether the thread may fall asleep: nobody else sleeps in this queue, nothing
    /// waits for the thread itself, and switches are nobody's business. In: rax = the queue's words. Out: rbx = the thread, r12 = its
    /// processor. Cost: 25 instructions.
    pub struct PutAway { refused: Target }
    where {
        AREA = THREAD_AREA_BYTES, CPU = offset_of!(TteRecord, cpu), ATTENTION = offset_of!(TteRecord, attention),
        COUNT = offset_of!(WaitWords, count), SLEEPER = offset_of!(WaitWords, sleeper), DUE = offset_of!(Slots, words.due)
    }
    "push rcx",
    "push r11",
    "push rdi",
    "push rsi",
    "push rdx",
    "push r8",
    "push r9",
    "push r10",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov rbx, rsp",
    "and rbx, -{AREA}",
    "mov r12, qword ptr [rbx + {CPU}]",
    "mov rcx, qword ptr [rax + {COUNT}]",
    "or rcx, qword ptr [rax + {SLEEPER}]",
    jump!(jne refused),
    "cmp qword ptr [r12 + {DUE}], 0",       // the kernel wants to see everything
    jump!(je refused),
    "mov rcx, qword ptr [rbx + {ATTENTION}]",
    "cmp byte ptr [rcx], 0",
    jump!(jne refused),
}

template! {
    /// The queue and the thread know each other, and the thread's account is brought up to date: `charge`. In: rax = the queue's
    /// words, rbx = the thread, r12 = its processor. Clobbers rax, rdx. Cost: 16 instructions.
    pub struct LieDown {}
    where {
        COUNT = offset_of!(WaitWords, count), SLEEPER = offset_of!(WaitWords, sleeper), SLEEPS_AT = offset_of!(TteRecord, sleeps_at),
        SWITCHES = offset_of!(Slots, words.switches), SINCE = offset_of!(Slots, since), RAN = offset_of!(TteRecord, ran),
        GAUGE = offset_of!(Slots, gauge), SEEN = offset_of!(Slots, gauge_seen), MOVED = offset_of!(TteRecord, moved)
    }
    "mov qword ptr [rax + {COUNT}], 1",
    "mov qword ptr [rax + {SLEEPER}], rbx",
    "mov qword ptr [rbx + {SLEEPS_AT}], rax",
    "inc qword ptr [r12 + {SWITCHES}]",
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "mov rdx, rax",
    "sub rax, qword ptr [r12 + {SINCE}]",
    "mov qword ptr [r12 + {SINCE}], rdx",
    "add qword ptr [rbx + {RAN}], rax",
    "mov rax, qword ptr [r12 + {GAUGE}]",
    "mov rdx, rax",
    "sub rdx, qword ptr [r12 + {SEEN}]",
    "mov qword ptr [r12 + {SEEN}], rax",
    "add qword ptr [rbx + {MOVED}], rdx",
}

template! {
    /// Takes the thread out of the ready ring: `ring::remove`. In: rbx = the thread, r12 = its processor. Clobbers rax, rcx, rdx, rsi,
    /// rdi, r8, r9, r10. Cost: 26 instructions, 14 for the last thread of the ring.
    pub struct LeaveRing { mmu_bytes: Imm32 }
    where {
        BEFORE = offset_of!(TteRecord, before), AFTER = offset_of!(TteRecord, after), READY = offset_of!(Slots, words.ready),
        FIRST = offset_of!(Slots, first), IDLE = offset_of!(Slots, idle), QUANTUM = offset_of!(TteRecord, quantum),
        SWITCH_IN = offset_of!(TteRecord, switch_in), NEXT_QUANTUM = offset_of!(TteRecord, next_quantum),
        NEXT = offset_of!(TteRecord, next), ROOT = offset_of!(TteRecord, root)
    }
    "mov rdi, qword ptr [rbx + {BEFORE}]",
    "mov rsi, qword ptr [rbx + {AFTER}]",
    "mov rdx, qword ptr [r12 + {IDLE}]",
    "mov qword ptr [rbx + {AFTER}], 0",
    "dec qword ptr [r12 + {READY}]",
    "cmp rsi, rbx",
    "je 71f",
    "mov qword ptr [rdi + {AFTER}], rsi",
    "mov qword ptr [rsi + {BEFORE}], rdi",
    "mov qword ptr [r12 + {FIRST}], rsi",
    "lea rcx, [rsi + {QUANTUM}]",
    "mov rax, qword ptr [rsi + {SWITCH_IN}]",
    "mov r8, qword ptr [rsi + {ROOT}]",
    "mov r10, rax",
    "sub r10, {mmu_bytes}",
    "mov r9, r10",
    "cmp r8, qword ptr [rdi + {ROOT}]",
    "cmove r10, rax",
    "test r8, r8",                          // a thread of the kernel runs in any quaspace
    "cmovz r10, rax",
    "cmovz r9, rax",
    "mov qword ptr [rdi + {NEXT_QUANTUM}], rcx",
    "mov qword ptr [rdi + {NEXT}], r10",
    "mov qword ptr [rdx + {NEXT_QUANTUM}], rcx",
    "mov qword ptr [rdx + {NEXT}], r9",
    "jmp 72f",
    "71:",
    "mov qword ptr [r12 + {FIRST}], 0",
    "lea rcx, [rdx + {QUANTUM}]",
    "mov rax, qword ptr [rdx + {SWITCH_IN}]",
    "mov qword ptr [rbx + {NEXT_QUANTUM}], rcx",
    "mov qword ptr [rbx + {NEXT}], rax",
    "mov qword ptr [rdx + {NEXT_QUANTUM}], rcx",
    "mov qword ptr [rdx + {NEXT}], rax",
    "72:",
}

template! {
    /// Who sleeps comes back at `back`. Out: the flags are equal if the successor does not come back from a sleep by code, so that
    /// Rust may run between the two programs. Clobbers rcx. Cost: 3 instructions.
    pub struct ComeBackAt { back: Abs32 }
    where {
        NEXT_QUANTUM = offset_of!(TteRecord, next_quantum), QUANTUM = offset_of!(TteRecord, quantum),
        SLEEPS_AT = offset_of!(TteRecord, sleeps_at)
    }
    "push {back}",
    "mov rcx, qword ptr [rbx + {NEXT_QUANTUM}]",
    "cmp qword ptr [rcx - {QUANTUM} + {SLEEPS_AT}], 0",
}

template! {
    /// Leaves for the successor: as `sw_out`. Cost: 6 instructions.
    pub struct LeaveFor {}
    where {
        FS = offset_of!(TteRecord, fs_base), GS = offset_of!(TteRecord, gs_base), KERNEL_SP = offset_of!(TteRecord, kernel_sp),
        NEXT = offset_of!(TteRecord, next)
    }
    "rdfsbase rax",
    "mov qword ptr [rbx + {FS}], rax",
    "rdgsbase rax",
    "mov qword ptr [rbx + {GS}], rax",
    "mov qword ptr [rbx + {KERNEL_SP}], rsp",
    "jmp qword ptr [rbx + {NEXT}]",
}

template! {
    /// The sleeper runs again, and the queue forgets it, if it is still there. Out: rbx = the thread, r12 = its processor. Clobbers rax.
    /// Cost: 8 instructions.
    pub struct WakeUp {}
    where {
        AREA = THREAD_AREA_BYTES, CPU = offset_of!(TteRecord, cpu), SLEEPS_AT = offset_of!(TteRecord, sleeps_at),
        SLEEPER = offset_of!(WaitWords, sleeper)
    }
    "mov rbx, rsp",
    "and rbx, -{AREA}",
    "mov r12, qword ptr [rbx + {CPU}]",
    "mov rax, qword ptr [rbx + {SLEEPS_AT}]",
    "test rax, rax",
    "jz 71f",
    "mov qword ptr [rax + {SLEEPER}], 0",
    "mov qword ptr [rbx + {SLEEPS_AT}], 0",
    "71:",
}

template! {
    /// Something waits for the thread itself, or not: the flags are equal then. Clobbers rcx. Cost: 2 instructions.
    pub struct LookAround {}
    where { ATTENTION = offset_of!(TteRecord, attention) }
    "mov rcx, qword ptr [rbx + {ATTENTION}]",
    "cmp byte ptr [rcx], 0",
}

template! {
    /// Takes the program's registers again, and the number of its call; all flags are kept. Cost: 15 instructions.
    pub struct TakeRegisters {}
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "pop r10",
    "pop r9",
    "pop r8",
    "pop rdx",
    "pop rsi",
    "pop rdi",
    "pop r11",
    "pop rcx",
    "pop rax",
}

template! {
    /// Makes the call anew; in Rust, if something waits for the thread itself. Cost: 3 instructions.
    pub struct CallAgain { dispatch: Abs32, slow: Target }
    jump!(jne slow),
    "pop rsp",
    "jmp qword ptr [{dispatch}]",
}

template! {
    /// Was the thread told that its call is done, and does nothing wait for it? Clobbers rcx. Cost: 6 instructions.
    pub struct IsAnswered { no: Target }
    where { ATTENTION = offset_of!(TteRecord, attention), ANSWER = offset_of!(TteRecord, answer) }
    "mov rcx, qword ptr [rbx + {ATTENTION}]",
    "cmp byte ptr [rcx], 0",
    jump!(jne no),
    "cmp qword ptr [rbx + {ANSWER}], 0",
    jump!(je no),
    "mov qword ptr [rbx + {ANSWER}], 0",
}

template! {
    /// The call was done with result 0. Cost: 1 instruction.
    pub struct AnswerZero {}
    "xor eax, eax",
}

template! {
    /// Who rests is told that its call is done, and another one may rest in the queue before it runs. In: rax = the queue's words, rdi
    /// = the processor, rsi = its record. Clobbers rax. Cost: 4 instructions.
    pub struct TellAnswer {}
    where {
        ANSWER = offset_of!(TteRecord, answer), SLEEPER = offset_of!(WaitWords, sleeper), ANSWERED = offset_of!(Slots, answered),
        SLEEPS_AT = offset_of!(TteRecord, sleeps_at)
    }
    "mov qword ptr [rsi + {ANSWER}], 1",
    "mov qword ptr [rax + {SLEEPER}], 0",
    "lea rax, [rdi + {ANSWERED}]",
    "mov qword ptr [rsi + {SLEEPS_AT}], rax",
}

template! {
    /// Gives back what `FindSleeper` has put away, and the number of the call. Cost: 6 instructions.
    pub struct PutBack {}
    "pop rdi",
    "pop rsi",
    "pop rdx",
    "pop rcx",
    "pop rbx",
    "pop rax",
}

template! {
    /// One was woken: that is the call's result. Cost: 1 instruction.
    pub struct OneWoken {}
    "mov eax, 1",
}

template! {
    /// The call is done in Rust. Cost: 1 instruction.
    pub struct CallRust { slow: Target }
    jump!(jmp slow),
}

template! {
    /// Finds who sleeps in a queue, if nobody else waits there; not if the kernel wants to see everything, nor if the timer is not set
    /// for a turn among several. In: rax = the queue's words. Out: rbx = the thread, rdi = its processor, rsi = the sleeper. Clobbers
    /// rcx. Cost: 23 instructions, 20 if others are ready.
    pub struct FindSleeper { refused: Target }
    where {
        AREA = THREAD_AREA_BYTES, CPU = offset_of!(TteRecord, cpu), COUNT = offset_of!(WaitWords, count),
        SLEEPER = offset_of!(WaitWords, sleeper), DUE = offset_of!(Slots, words.due), READY = offset_of!(Slots, words.ready),
        ARMED = offset_of!(Slots, words.armed), SOON = offset_of!(Slots, words.soon), AFTER = offset_of!(TteRecord, after)
    }
    "push rbx",
    "push rcx",
    "push rdx",
    "push rsi",
    "push rdi",
    "mov rbx, rsp",
    "and rbx, -{AREA}",
    "mov rdi, qword ptr [rbx + {CPU}]",
    "mov rsi, qword ptr [rax + {SLEEPER}]",
    "test rsi, rsi",
    jump!(je refused),
    "cmp qword ptr [rax + {COUNT}], 1",
    jump!(jne refused),
    "cmp qword ptr [rsi + {AFTER}], 0",     // it is ready already, and somebody else waits
    jump!(jne refused),
    "cmp qword ptr [rdi + {DUE}], 0",
    jump!(je refused),
    "cmp qword ptr [rdi + {READY}], 1",
    "jne 71f",
    "mov rcx, qword ptr [rdi + {ARMED}]",
    "cmp rcx, qword ptr [rdi + {SOON}]",
    jump!(jne refused),
    "71:",
    "mov qword ptr [rax + {COUNT}], 0",
}

template! {
    /// Links a thread in behind the running one (S-73): `ring::insert`. In: rbx = the running thread, rdi = its processor, rsi = the other
    /// one, which has a quaspace. Clobbers rax, rcx, rdx, rdi. Cost: 26 instructions.
    pub struct LinkIn { mmu_bytes: Imm32 }
    where {
        READY = offset_of!(Slots, words.ready), BEFORE = offset_of!(TteRecord, before), AFTER = offset_of!(TteRecord, after),
        QUANTUM = offset_of!(TteRecord, quantum), SWITCH_IN = offset_of!(TteRecord, switch_in),
        NEXT_QUANTUM = offset_of!(TteRecord, next_quantum), NEXT = offset_of!(TteRecord, next), ROOT = offset_of!(TteRecord, root)
    }
    "inc qword ptr [rdi + {READY}]",
    "mov rdi, qword ptr [rbx + {AFTER}]",
    "mov qword ptr [rsi + {AFTER}], rdi",
    "mov qword ptr [rsi + {BEFORE}], rbx",
    "mov qword ptr [rbx + {AFTER}], rsi",
    "mov qword ptr [rdi + {BEFORE}], rsi",
    "mov rax, qword ptr [rdi + {ROOT}]",
    "mov rcx, qword ptr [rdi + {SWITCH_IN}]",
    "mov rdx, rcx",
    "sub rdx, {mmu_bytes}",
    "cmp rax, qword ptr [rsi + {ROOT}]",
    "cmove rdx, rcx",
    "test rax, rax",                        // a thread of the kernel runs in any quaspace
    "cmovz rdx, rcx",
    "lea rcx, [rdi + {QUANTUM}]",
    "mov qword ptr [rsi + {NEXT_QUANTUM}], rcx",
    "mov qword ptr [rsi + {NEXT}], rdx",
    "mov rcx, qword ptr [rsi + {SWITCH_IN}]",
    "mov rax, qword ptr [rsi + {ROOT}]",
    "mov rdx, rcx",
    "sub rdx, {mmu_bytes}",
    "cmp rax, qword ptr [rbx + {ROOT}]",
    "cmove rdx, rcx",
    "lea rcx, [rsi + {QUANTUM}]",
    "mov qword ptr [rbx + {NEXT_QUANTUM}], rcx",
    "mov qword ptr [rbx + {NEXT}], rdx",
}

template! {
    /// The call is made anew. Cost: 2 instructions.
    pub struct CallAnew { dispatch: Abs32 }
    "pop rsp",
    "jmp qword ptr [{dispatch}]",
}

quaject! {
    /// What a processor does for threads that sleep and wake by code: one for all.
    pub quaject Handover ("handover", made by "boot", at most 0 inactive)
    data {
        /// Address of the processor's slot for the running thread's dispatch.
        pub dispatch: u64,
        /// Bytes in front of `sw_in` that only `sw_in_mmu` executes.
        pub mmu_bytes: u64,
    }
    factors(handover) {
        let dispatch = Abs32(handover.dispatch);
        let mmu_bytes = Imm32(handover.mmu_bytes as u32);
    }
    callouts HandoverCallouts<'a> {
        /// Does a call in Rust, on the kernel stack.
        rust: Target,
        /// Where a sleeper comes back, and who rests.
        back: u64,
        answered: u64,
        /// Where who may not sleep goes.
        down: Target,
        /// The machine's instructions for vector registers on the way out, and back.
        leave_vectors: &'a dyn Fn(&mut Draft),
        take_vectors: &'a dyn Fn(&mut Draft),
        /// The machine's instructions that lead back to the program.
        leave: &'a dyn Fn(&mut Draft),
    }
    callbacks {}
    callentries HandoverCode {
        /// The thread must not sleep here.
        refused: Handing(0) named "cpu.refused" needs(rust) uses() {
            paste TakeRegisters {};
            paste CallRust { slow: *rust };
        }
        /// A thread that slept by code runs again.
        woken: Handing(0) named "cpu.woken" needs(rust, take_vectors) uses() {
            paste WakeUp {};
            paste (*take_vectors);
            paste LookAround {};
            paste TakeRegisters {};
            paste CallAgain { dispatch, slow: *rust };
        }
        /// The running thread sleeps in a queue.
        sleep: Handing(0) named "cpu.sleep" needs(back, down, leave_vectors) uses() {
            paste PutAway { refused: *down };
            paste LieDown {};
            paste LeaveRing { mmu_bytes };
            paste ComeBackAt { back: Abs32(*back) };
            paste (*leave_vectors);
            paste LeaveFor {};
        }
        /// A thread that rested by code runs again.
        answered: Handing(0) named "cpu.answered" needs(rust, take_vectors, leave) uses(inner) {
            paste WakeUp {};
            paste (*take_vectors);
            paste IsAnswered { no: inner };
            paste TakeRegisters {};
            paste AnswerZero {};
            paste (*leave);
            begin_inner;
            paste TakeRegisters {};
            paste CallRust { slow: *rust };
        }
        /// The running thread rests in a queue.
        rest: Handing(0) named "cpu.rest" needs(answered, down, leave_vectors) uses() {
            paste PutAway { refused: *down };
            paste LieDown {};
            paste LeaveRing { mmu_bytes };
            paste ComeBackAt { back: Abs32(*answered) };
            paste (*leave_vectors);
            paste LeaveFor {};
        }
        /// Who rests in a queue is answered and ready; the call of who woke it is done.
        rouse: Handing(0) named "cpu.rouse" needs(rust, leave) uses(inner) {
            paste FindSleeper { refused: inner };
            paste TellAnswer {};
            paste LinkIn { mmu_bytes };
            paste PutBack {};
            paste OneWoken {};
            paste (*leave);
            begin_inner;
            paste PutBack {};
            paste CallRust { slow: *rust };
        }
        /// Who sleeps in a queue is ready, and the call of who woke it is made anew: it finds nobody.
        wake: Handing(0) named "cpu.wake" needs(rust) uses(inner) {
            paste FindSleeper { refused: inner };
            paste LinkIn { mmu_bytes };
            paste PutBack {};
            paste CallAnew { dispatch };
            begin_inner;
            paste PutBack {};
            paste CallRust { slow: *rust };
        }
    }
}
