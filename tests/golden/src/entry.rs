//! Entering a routine as a thread's dispatch does, and looking at what comes back.
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "one proof for what a test does with its own memory")]

use core::arch::global_asm;
use core::mem::offset_of;
use std::sync::{Once, OnceLock};

use crate::bench::bench;
use means::Random;

/// Register numbers.
const RAX: usize = 0;
const RDX: usize = 2;
const RSP: usize = 4;
const RSI: usize = 6;
const RDI: usize = 7;
const R10: usize = 10;

#[repr(C)]
struct Frame {
    /// By register number; word 4 is rsp.
    registers: [u64; 16],
    entry: u64,
    host_stack: u64,
}

global_asm!(
    ".pushsection .text",
    ".globl golden_enter",
    "golden_enter:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov [rdi + {HOST}], rsp",
    "mov [rip + golden_frame], rdi",
    "mov rax, [rdi + {ENTRY}]",
    "mov [rip + golden_target], rax",
    "mov rax, [rdi]",
    "mov rcx, [rdi + 8]",
    "mov rdx, [rdi + 16]",
    "mov rbx, [rdi + 24]",
    "mov rsp, [rdi + 32]",
    "mov rbp, [rdi + 40]",
    "mov rsi, [rdi + 48]",
    "mov r8, [rdi + 64]",
    "mov r9, [rdi + 72]",
    "mov r10, [rdi + 80]",
    "mov r11, [rdi + 88]",
    "mov r12, [rdi + 96]",
    "mov r13, [rdi + 104]",
    "mov r14, [rdi + 112]",
    "mov r15, [rdi + 120]",
    "mov rdi, [rdi + 56]",
    "jmp qword ptr [rip + golden_target]",
    ".globl golden_back",
    "golden_back:",
    "mov [rip + golden_target], rdi",
    "mov rdi, [rip + golden_frame]",
    "mov [rdi], rax",
    "mov [rdi + 8], rcx",
    "mov [rdi + 16], rdx",
    "mov [rdi + 24], rbx",
    "mov [rdi + 32], rsp",
    "mov [rdi + 40], rbp",
    "mov [rdi + 48], rsi",
    "mov rax, [rip + golden_target]",
    "mov [rdi + 56], rax",
    "mov [rdi + 64], r8",
    "mov [rdi + 72], r9",
    "mov [rdi + 80], r10",
    "mov [rdi + 88], r11",
    "mov [rdi + 96], r12",
    "mov [rdi + 104], r13",
    "mov [rdi + 112], r14",
    "mov [rdi + 120], r15",
    "mov rsp, [rdi + {HOST}]",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    ".popsection",
    ".pushsection .bss.golden, \"aw\", @nobits",
    "golden_frame: .skip 8",
    "golden_target: .skip 8",
    ".popsection",
    HOST = const offset_of!(Frame, host_stack),
    ENTRY = const offset_of!(Frame, entry),
);

unsafe extern "C" {
    fn golden_enter(frame: *mut Frame);
    static golden_back: u8;
}

const STACK_WORDS: usize = 512;
/// What lies on the stacks where nobody may store.
const CANARY: u64 = 0x5AFE_5AFE_5AFE_5AFE;

/// Which way a routine took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Fast,
    /// It gave up: the Rust twin does the call.
    Slow,
}

#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub way: Way,
    /// What the program would find in rax.
    pub result: u64,
}

/// The program that calls: its registers are random at each call, and must be the same afterwards.
pub struct Caller {
    kernel_stack: Box<[u64; STACK_WORDS]>,
    program_stack: Box<[u64; STACK_WORDS]>,
    random: Random,
    /// The fourth argument of the next call, if it has one.
    pub fourth: Option<u64>,
}

impl Caller {
    pub fn new(seed: u64) -> Caller {
        FAULTS.call_once(catch_faults);
        Caller {
            kernel_stack: Box::new([CANARY; STACK_WORDS]),
            program_stack: Box::new([CANARY; STACK_WORDS]),
            random: Random::new(seed),
            fourth: None,
        }
    }

    /// Enters a routine with the contract [`kernel::FileCall`].
    pub fn file_call(&mut self, entry: u64, number: u64, arguments: [u64; 3]) -> Outcome {
        let top = STACK_WORDS - 8;
        self.program_stack[top] = (&raw const golden_back) as u64;
        self.kernel_stack[top] = &raw const self.program_stack[top] as u64;
        let stack = &raw const self.kernel_stack[top] as u64;
        let outcome = self.enter(entry, stack, number, arguments, &[stack]);
        assert_eq!(self.kernel_stack[top], &raw const self.program_stack[top] as u64, "the stack's top was changed");
        assert_eq!(self.kernel_stack[top + 1..], [CANARY; 7], "stored above the stack");
        assert!(self.program_stack[..top].iter().all(|word| *word == CANARY), "stored on the program's stack");
        outcome
    }

    /// Enters a routine with the contract [`kernel::call::CallCode`].
    pub fn call(&mut self, entry: u64, number: u64, arguments: [u64; 3]) -> Outcome {
        let stack = &raw const self.program_stack[STACK_WORDS - 8] as u64;
        self.thread_call(entry, number, arguments, &[stack])
    }

    /// As `call`, for a routine that moves to the thread's kernel stack on its way.
    pub fn moving_call(&mut self, entry: u64, number: u64, arguments: [u64; 3]) -> Outcome {
        let stack = &raw const self.program_stack[STACK_WORDS - 8] as u64;
        self.thread_call(entry, number, arguments, &[stack, bench().thread_stack()])
    }

    /// Enters a routine on the program's stack that gives up on one of these stacks.
    pub fn thread_call(&mut self, entry: u64, number: u64, arguments: [u64; 3], slow_stacks: &[u64]) -> Outcome {
        let top = STACK_WORDS - 8;
        self.program_stack[top] = (&raw const golden_back) as u64;
        let stack = &raw const self.program_stack[top] as u64;
        let outcome = self.enter(entry, stack, number, arguments, slow_stacks);
        assert!(self.program_stack[..top].iter().all(|word| *word == CANARY), "stored below the program's stack");
        outcome
    }

    fn enter(&mut self, entry: u64, stack: u64, number: u64, arguments: [u64; 3], slow_stacks: &[u64]) -> Outcome {
        let mut registers = [0; 16].map(|_: u64| self.random.bits());
        registers[RAX] = number;
        registers[RSP] = stack;
        [registers[RDI], registers[RSI], registers[RDX]] = arguments;
        registers[R10] = self.fourth.take().unwrap_or(registers[R10]);
        let mut frame = Frame { registers, entry, host_stack: 0 };
        let mark = &raw const *bench().mark as *mut u64;
        // SAFETY: 1. The routine keeps its contract or the test ends here. 2. The mark is only stored by code.
        let slow = unsafe {
            mark.write_volatile(0);
            golden_enter(&mut frame);
            mark.read_volatile()
        };
        let result = frame.registers[RAX];
        let mut expected = registers;
        expected[RAX] = if slow == 0 { result } else { number };
        expected[RSP] = &raw const self.program_stack[STACK_WORDS - 7] as u64;
        assert_eq!(
            frame.registers, expected,
            "a register changed (rax rcx rdx rbx rsp rbp rsi rdi r8…), slow {slow:x}"
        );
        if slow == 0 {
            return Outcome { way: Way::Fast, result };
        }
        assert!(slow_stacks.contains(&slow), "gave up with another stack: {slow:x}, not one of {slow_stacks:x?}");
        Outcome { way: Way::Slow, result }
    }
}

/// Asked at each fault, with its address: true if the page is there now, and the instruction can run again.
pub type Supply = fn(usize) -> bool;

static SUPPLY: OnceLock<Supply> = OnceLock::new();

/// Executes code that ends in `ret` with these registers (rax first; rsp is given), and leaves there what they are then.
/// Faults land where the bench's store says, unless `supply` brings the page.
pub fn execute(entry: u64, registers: &mut [u64; 16], supply: Supply) {
    FAULTS.call_once(catch_faults);
    assert!(*SUPPLY.get_or_init(|| supply) as usize == supply as usize, "one supply for all");
    let mut stack = Box::new([CANARY; STACK_WORDS]);
    let top = STACK_WORDS - 8;
    stack[top] = (&raw const golden_back) as u64;
    registers[RSP] = &raw const stack[top] as u64;
    let mut frame = Frame { registers: *registers, entry, host_stack: 0 };
    // SAFETY: the caller's code is made to be executed here; what it breaks is this test alone.
    unsafe { golden_enter(&mut frame) };
    *registers = frame.registers;
    registers[RSP] = registers[RSP].wrapping_sub(&raw const stack[top + 1] as u64);
}

static FAULTS: Once = Once::new();

/// A fault inside a routine continues at its landing, as in the kernel.
fn catch_faults() {
    const BYTES: usize = 64 << 10;
    // SAFETY: 1. The signal stack is never freed. 2. `on_fault` touches only what a fault in a routine leaves alone.
    unsafe {
        let stack =
            libc::stack_t { ss_sp: Box::leak(Box::new([0u8; BYTES])).as_mut_ptr().cast(), ss_flags: 0, ss_size: BYTES };
        assert_eq!(libc::sigaltstack(&stack, core::ptr::null_mut()), 0);
        let mut action: libc::sigaction = core::mem::zeroed();
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        assert_eq!(libc::sigaction(libc::SIGSEGV, &action, core::ptr::null_mut()), 0);
    }
}

extern "C" fn on_fault(_signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system passes valid records.
    let address = unsafe { (*info).si_addr() } as usize;
    if SUPPLY.get().is_some_and(|supply| supply(address)) {
        return;
    }
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: the system passes valid records.
    let rip = unsafe { &mut (*context).uc_mcontext.gregs[libc::REG_RIP as usize] };
    match bench().store.landing(*rip as u64) {
        Some(landing) => *rip = landing as i64,
        None => {
            let name = bench().store.birth(*rip as u64).map_or("no routine", |birth| birth.name);
            eprintln!("fault at {address:#x}, rip {:#x} in {name}, without a landing", *rip);
            // SAFETY: ends the program without running anything else.
            unsafe { libc::_exit(1) };
        }
    }
}
