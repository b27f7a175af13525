//! Where the host's signals become calls, faults and interrupts.
//!
//! Handlers run on a stack of their own, with all signals that are not faults blocked. A handler answers at once what
//! needs no thread (a page that the kernel supplies, a caught call that goes on in the thread's dispatch); everything
//! else it turns into a trap: it stores the program's registers in the record at the top of the thread's kernel stack
//! and returns there.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use machine::{Access, Entered, PAGE_LOST, Registers, VirtAddr};
use machine_x86::{USER_CODE, USER_DATA, upcalls};

use crate::cpu::cpu;
use crate::entry::{
    hosted_call_record, hosted_iretq, hosted_on_alarm, hosted_on_call, hosted_on_child, hosted_on_fault,
    hosted_on_news, hosted_restorer, hosted_trap,
};
use crate::host::{self, HostError, SA_NOCLDSTOP, SA_NODEFER, SA_ONSTACK, SA_RESTART, SA_SIGINFO, SIGCHLD};
use crate::layout::{is_code, is_user, text};
use crate::threads::{current, user_registers};
use crate::translation::active;
use crate::{STORE, debug, guards, hosts, patch, start, threads, upcall, windows};

const SIGILL: i32 = 4;
const SIGTRAP: i32 = 5;
const SIGBUS: i32 = 7;
const SIGFPE: i32 = 8;
const SIGSEGV: i32 = 11;
pub const SIGALRM: i32 = 14;
const SIGSYS: i32 = 31;

/// How soon an alarm that met a synthesized routine comes again, and one that met Rust, which looks at the flag when it is done.
const RETRY_NS: u64 = 50_000;
const RETRY_IN_RUST_NS: u64 = 1_000_000;
/// The same when a debugger may have stopped that code: its single steps must get somewhere between two alarms.
const RETRY_TRACED_NS: u64 = 100_000_000;

/// The registers in the host's signal frame (`struct sigcontext`, x86-64), behind the 40 bytes in front of them.
#[repr(C)]
pub struct Context {
    front: [u64; 5],
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    pub rdi: u64,
    pub rsi: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub rdx: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rsp: u64,
    pub rip: u64,
    pub rflags: u64,
    selectors: u64,
    error: u64,
    trap: u64,
    old_mask: u64,
    cr2: u64,
}

/// The front of the host's `siginfo_t`.
#[repr(C)]
pub struct Info {
    signal: i32,
    errno: i32,
    code: i32,
    pad: i32,
    address: u64,
    call: i32,
    architecture: u32,
}

/// SIGHUP, SIGINT, SIGQUIT, SIGTERM: how people end a run.
const ENDING: [i32; 4] = [1, 2, 3, 15];

/// Sets the handlers. Where a tool started the machine, how the run ends is the tool's affair.
pub fn start(has_tool: bool) -> Result<(), HostError> {
    let restorer = (&raw const hosted_restorer) as u64;
    let fault = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    let mask = 1 << (SIGALRM - 1);
    // SAFETY: the handlers follow the convention.
    unsafe {
        let child = SA_ONSTACK | SA_RESTART | SA_NOCLDSTOP;
        host::set_handler(SIGCHLD, (&raw const hosted_on_child) as u64, child, restorer, mask)?;
        let told = SA_ONSTACK | SA_RESTART;
        host::set_handler(guards::SIGNAL, (&raw const hosted_on_news) as u64, told, restorer, mask)?;
        for signal in [SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV] {
            host::set_handler(signal, (&raw const hosted_on_fault) as u64, fault, restorer, mask)?;
        }
        host::set_handler(
            SIGSYS,
            (&raw const hosted_on_call) as u64,
            SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
            restorer,
            mask,
        )?;
        let interrupt = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
        host::set_handler(SIGALRM, (&raw const hosted_on_alarm) as u64, interrupt, restorer, mask)?;
        // The host tool decides what a closed pipe means; the program gets its own signal from the kernel.
        const SIGPIPE: i32 = 13;
        const IGNORE: u64 = 1;
        host::set_handler(SIGPIPE, IGNORE, 0, restorer, 0)?;
        // A file that grows too large is an error of the call alone.
        const SIGXFSZ: i32 = 25;
        host::set_handler(SIGXFSZ, IGNORE, 0, restorer, 0)?;
        // A terminal and timeout(1) signal the tool's whole group. The tool ends the machine, and may fetch its trace before; when
        // the tool is gone, so is the machine.
        for signal in ENDING.into_iter().filter(|_| has_tool) {
            host::set_handler(signal, IGNORE, 0, restorer, 0)?;
        }
    }
    host::unblock_all_signals();
    Ok(())
}

/// The program runs at this address, not the kernel. A stub counts as the program: it only loads registers; so does any
/// place that a wild jump leads to.
fn is_program(rip: u64) -> bool {
    !is_code(rip) && !text().contains(&rip)
}

/// A system call instruction of the program (or one that this kernel must not let through).
pub extern "C" fn on_call(_signal: i32, info: &Info, context: &mut Context) {
    const AUDIT_ARCH_X86_64: u32 = 0xC000_003E;
    const ENOSYS: i64 = 38;
    if info.architecture != AUDIT_ARCH_X86_64 {
        // INT 0x80: calls of another machine are not served.
        context.rax = -ENOSYS as u64;
        return;
    }
    // SAFETY: the slots are words; the program runs, so no kernel code is under way.
    unsafe { (*cpu()).counts.by_trap += 1 };
    context.rax = info.call as u32 as u64;
    context.rcx = context.rip;
    if context.rflags & (DIRECTION | DISTURBING_FLAGS) != 0 {
        // Synthesized code takes the flags as they are: it would copy backwards. Rust serves the call, and the site stays.
        context.r11 = context.rflags;
        let number = context.rax;
        trap(context, number, 0, 0);
        context.rip = (&raw const hosted_call_record) as u64;
        return;
    }
    patch::consider(context);
    // The kernel is never stepped through: a step over a call ends where the kernel says so.
    context.rflags &= !TRAP_FLAG;
    // SAFETY: as above.
    context.rip = unsafe { (*cpu()).slots.dispatch };
}

const DEBUG: u64 = 1;
const GENERAL_PROTECTION: u64 = 13;
const PAGE_FAULT: u64 = 14;
const ALIGNMENT: u64 = 17;
const TRAP_FLAG: u64 = 0x100;
const DIRECTION: u64 = 0x400;
/// A program that sets it gets a fault for each access that is not aligned (SDM vol. 3A, 6.15, interrupt 17).
const ALIGNMENT_CHECK: u64 = 0x4_0000;
/// With it the next IRETQ faults (SDM vol. 2A, IRET).
const NESTED_TASK: u64 = 0x4000;
/// Code and stack segment, the first and the last of the four selectors, and what the host gives programs of 64 bits.
const SEGMENTS: u64 = 0xFFFF_0000_0000_FFFF;
const OWN_SEGMENTS: u64 = USER_CODE as u64 | (USER_DATA as u64) << 48;
/// Flags that the kernel must not run with.
pub const DISTURBING_FLAGS: u64 = ALIGNMENT_CHECK | NESTED_TASK;

pub extern "C" fn on_fault(signal: i32, info: &Info, context: &mut Context) {
    if info.code <= 0 {
        // Sent by a process, not by the processor.
        return;
    }
    // SAFETY: what follows leaves for nobody, and is dropped as this returns to where the fault was.
    let _entered = unsafe { Entered::by_fault() };
    if context.trap == PAGE_FAULT
        && signal == SIGSEGV
        && !is_program(context.rip)
        && show_kernel_page(context.cr2, info.code)
    {
        return;
    }
    if matches!(context.trap, PAGE_FAULT | GENERAL_PROTECTION)
        && is_code(context.rip)
        && let Some(landing) = STORE.landing_of_asked(context.rip)
    {
        context.rip = landing;
        return;
    }
    if context.selectors as u16 != USER_CODE {
        // A far jump has led into code of 32 bits, which is not there on this machine.
        trap(context, GENERAL_PROTECTION, 0, 0);
        return;
    }
    // A bus error means that the host has nothing behind a page that is there: a file became shorter.
    if context.trap == PAGE_FAULT && signal != SIGBUS && is_user(context.cr2) && resolve(context) {
        return;
    }
    if is_program(context.rip) {
        let address = if context.trap == PAGE_FAULT { context.cr2 } else { 0 };
        let error = if signal == SIGBUS { context.error | PAGE_LOST } else { context.error };
        trap(context, context.trap, error, address);
        return;
    }
    if context.trap == DEBUG {
        // A step from a stub, or of a program that set the flag itself, has come into the kernel.
        context.rflags &= !TRAP_FLAG;
        return;
    }
    if context.trap == ALIGNMENT {
        // A program with the check on has come here by a stub.
        context.rflags &= !ALIGNMENT_CHECK;
        return;
    }
    // A copy that begins below the limit may begin with its last word, at an address that no page can have.
    if matches!(context.trap, PAGE_FAULT | GENERAL_PROTECTION)
        && let Some(landing) = machine_x86::landing(context.rip).or_else(|| STORE.landing(context.rip))
    {
        context.rip = landing;
        return;
    }
    if context.rip == (&raw const hosted_iretq) as u64 {
        bad_return(context);
        return;
    }
    start::epitaph(&registers_of(context), signal, info.address)
}

/// Kernel memory that another host process mapped, and this one not yet.
fn show_kernel_page(address: u64, code: i32) -> bool {
    const NOTHING_MAPPED: i32 = 1;
    threads::show_area(address) || code == NOTHING_MAPPED && windows::show(address)
}

/// The page-fault error code (SDM vol. 3A, 4.7) as an access.
fn access_of(context: &Context) -> Access {
    Access { address: VirtAddr(context.cr2), write: context.error & 2 != 0, execute: context.error & 16 != 0 }
}

/// Supplies the page if program and kernel agree that it may be had.
fn resolve(context: &Context) -> bool {
    let access = access_of(context);
    let Some(space) = active() else { return false };
    if space.bring_in(access) {
        return true;
    }
    upcalls().page_fault(upcall::thread(), access) && active().is_some_and(|space| space.has(access))
}

/// IRETQ refused to go to the address the program wants to be at: the fault is the program's, there.
fn bad_return(context: &mut Context) {
    let frame = context.rsp as *const u64;
    // SAFETY: the instruction's five words lie on the kernel stack.
    unsafe {
        context.rip = *frame;
        context.rflags = *frame.add(2);
        context.rsp = *frame.add(3);
    }
    trap(context, GENERAL_PROTECTION, 0, 0);
}

pub extern "C" fn on_child(_signal: i32, _info: &Info, _context: &mut Context) {
    hosts::child_ended();
}

/// Something that is guarded has moved. It is looked at before the next question about a name.
pub extern "C" fn on_news(_signal: i32, _info: &Info, _context: &mut Context) {
    guards::has_news();
}

pub extern "C" fn on_alarm(_signal: i32, _info: &Info, context: &mut Context) {
    if !hosts::alarm_came() {
        return;
    }
    if context.selectors as u16 != USER_CODE {
        trap(context, GENERAL_PROTECTION, 0, 0);
        return;
    }
    if is_program(context.rip) {
        trap(context, upcall::TIMER, 0, 0);
        return;
    }
    // SAFETY: the slot is a word.
    unsafe { (*cpu()).timer_pending = 1 };
    // The kernel looks at the flag when it leaves by its slow end; a synthesized routine does not look, so the alarm
    // comes again.
    retry_alarm(is_code(context.rip));
}

/// Has the alarm come again soon: it met kernel code, which looks at the flag at its end or does not.
pub fn retry_alarm(is_routine: bool) {
    hosts::set_alarm_in(match is_routine {
        _ if debug::expects_debugger() => RETRY_TRACED_NS,
        true => RETRY_NS,
        false => RETRY_IN_RUST_NS,
    });
}

fn registers_of(context: &Context) -> Registers {
    Registers {
        r15: context.r15,
        r14: context.r14,
        r13: context.r13,
        r12: context.r12,
        rbp: context.rbp,
        rbx: context.rbx,
        r11: context.r11,
        r10: context.r10,
        r9: context.r9,
        r8: context.r8,
        rax: context.rax,
        rcx: context.rcx,
        rdx: context.rdx,
        rsi: context.rsi,
        rdi: context.rdi,
        cause: context.trap,
        error: context.error,
        rip: context.rip,
        cs: USER_CODE as u64,
        rflags: context.rflags,
        rsp: context.rsp,
        ss: USER_DATA as u64,
    }
}

/// Makes the interrupted program enter the kernel by the trap entry.
fn trap(context: &mut Context, cause: u64, error: u64, address: u64) {
    const NOT_FOR_RUST: u64 = DIRECTION | TRAP_FLAG | DISTURBING_FLAGS;
    let record = user_registers();
    // SAFETY: the thread is in its program, so its kernel stack is empty and the record is free.
    unsafe {
        *record = Registers { cause, error, ..registers_of(context) };
        (*current()).fault_address = address;
    }
    context.rip = (&raw const hosted_trap) as u64;
    context.rsp = record as u64;
    context.rflags &= !NOT_FOR_RUST;
    context.selectors = context.selectors & !SEGMENTS | OWN_SEGMENTS;
}
