//! Programs: Rust functions in place of instructions, and the little processor that runs them.
//!
//! The text page of a program has no bytes that matter, only places that its instruction pointer can name:
//!
//! ```text
//!   TEXT + 0x0100  SITE      syscall, two bytes; AFTER is behind it
//!   TEXT + 0x0200  COMPUTE   somewhere in the middle of a computation
//!   TEXT + 0x0300  RESTORER  rt_sigreturn, where a signal's handler returns to
//!   TEXT + 0x1000  entry(n)  program or signal handler n
//! ```
//! So the kernel's own tricks work as they do on a processor: it sets the pointer back by two to make a call again, and
//! sends a thread into a handler by naming it.

use std::cell::RefCell;
use std::sync::Arc;

use machine::{Exception, Registers, TteId};

use crate::SimMachine;
use crate::entry::entered;

/// A program or a signal handler. A handler finds the signal's number in `User::argument`.
pub type Program = Arc<dyn Fn(&User) + Send + Sync>;

/// Where a program's text begins, and its size: one segment that can be run.
pub const TEXT: u64 = 0x40_0000;
pub const TEXT_BYTES: u64 = 0x2000;
const SITE: u64 = TEXT + 0x100;
const AFTER: u64 = SITE + 2;
/// Where a program stands while it computes.
pub const COMPUTE: u64 = TEXT + 0x200;
const RESTORER: u64 = TEXT + 0x300;
const ENTRIES: u64 = TEXT + 0x1000;
/// Programs that a plan can have.
pub const PROGRAMS: usize = 256;

/// Selectors and flags of a program, as Linux has them.
const USER_CODE: u64 = 0x33;
const USER_DATA: u64 = 0x2B;
const INTERRUPTS_ON: u64 = 0x202;

const RT_SIGACTION: u64 = 13;
const RT_SIGRETURN: u64 = 15;
const EXIT: u64 = 60;
const CLONE: u64 = 56;
const SA_RESTORER: u64 = 0x0400_0000;

/// The address of program `number`.
pub fn entry(number: usize) -> u64 {
    assert!(number < PROGRAMS, "so many programs have no addresses");
    ENTRIES + number as u64 * 16
}

/// A thread at user level.
pub struct User {
    machine: &'static SimMachine,
    id: TteId,
    registers: RefCell<Registers>,
}

impl User {
    pub(crate) fn new(machine: &'static SimMachine, id: TteId, mut registers: Registers) -> User {
        // As the other machines have it, whatever the kernel says.
        (registers.cs, registers.ss) = (USER_CODE, USER_DATA);
        registers.rflags |= INTERRUPTS_ON;
        User { machine, id, registers: RefCell::new(registers) }
    }

    /// The thread's whole life.
    pub(crate) fn run(&self) {
        let start = *self.registers.borrow();
        // A child begins behind its parent's call; the parent has left the program's number in r15.
        let program = if start.rip == AFTER { start.r15 } else { (start.rip - ENTRIES) / 16 };
        self.before_user();
        self.settle(start.rip);
        (self.machine.plan.programs[program as usize])(self);
        self.call(EXIT, [0; 6]);
        unreachable!("a thread came back from its exit")
    }

    pub fn machine(&self) -> &'static SimMachine {
        self.machine
    }

    pub fn id(&self) -> TteId {
        self.id
    }

    /// A number of the seed, below `limit`.
    pub fn below(&self, limit: u64) -> u64 {
        self.machine.below(limit)
    }

    /// The first argument register: of a handler, the signal.
    pub fn argument(&self) -> u64 {
        self.registers.borrow().rdi
    }

    /// The number that `clone` gave this thread.
    pub fn given(&self) -> u64 {
        self.registers.borrow().r14
    }

    /// Adds a line to the trace.
    pub fn note(&self, text: &str) {
        self.machine.note(format_args!("{text}"));
    }

    /// One piece of a computation, in which an interrupt may come. The registers must survive it.
    pub fn compute(&self) {
        let before = {
            let mut registers = self.registers.borrow_mut();
            registers.rip = COMPUTE;
            registers.rbx = self.machine.below(u64::MAX);
            *registers
        };
        let vector = self.machine.below(u64::MAX);
        self.machine.with_record(self.id, |record| record.vector = vector);
        self.interrupt_point();
        self.settle(COMPUTE);
        self.registers.borrow_mut().cause = before.cause;
        assert_eq!(*self.registers.borrow(), before, "an interrupt changed the program's registers");
        let after = self.machine.with_record(self.id, |record| record.vector);
        assert_eq!(after, vector, "an interrupt changed the program's vector registers");
    }

    /// Makes a system call; the result as the register has it, an error as a small negative number.
    pub fn call(&self, number: u64, arguments: [u64; 6]) -> i64 {
        self.compute();
        let saved = *self.registers.borrow();
        {
            let mut registers = self.registers.borrow_mut();
            registers.rip = SITE;
            registers.rax = number;
            [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9] = arguments;
        }
        self.settle(AFTER);
        let result = self.registers.borrow().rax;
        *self.registers.borrow_mut() = saved;
        self.machine.note(format_args!("call {number} = {}", result as i64));
        self.compute();
        result as i64
    }

    /// `clone`: a thread or process that runs `program` and is given `given`. `arguments` as for the call.
    pub fn clone(&self, program: usize, given: u64, arguments: [u64; 6]) -> i64 {
        {
            let mut registers = self.registers.borrow_mut();
            registers.r15 = program as u64;
            registers.r14 = given;
        }
        self.call(CLONE, arguments)
    }

    /// `rt_sigaction` with program `handler`, or 0 and 1 as the call has them, and the usual restorer. `scratch`: 32 bytes
    /// of the program's memory.
    pub fn handle(&self, signal: u64, handler: u64, flags: u64, scratch: u64) -> i64 {
        let words = [handler, flags | SA_RESTORER, RESTORER, 0];
        self.store(scratch, &words.map(u64::to_le_bytes).concat());
        self.call(RT_SIGACTION, [signal, scratch, 0, 8, 0, 0])
    }

    /// Writes the program's memory, as its instructions would: one that faults is done again when the kernel has supplied the
    /// page, or the program's handler has run.
    pub fn store(&self, address: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            done += self.machine.write_program(address + done as u64, &bytes[done..]);
            if done < bytes.len() {
                self.fault(address + done as u64, true);
            }
        }
    }

    /// As `store`.
    pub fn load(&self, address: u64, into: &mut [u8]) {
        let mut done = 0;
        while done < into.len() {
            done += self.machine.read_program(address + done as u64, &mut into[done..]);
            if done < into.len() {
                self.fault(address + done as u64, false);
            }
        }
    }

    /// An access to `address` has faulted, and the kernel did not supply the page at once.
    fn fault(&self, address: u64, is_write: bool) {
        const PAGE_FAULT: u8 = 14;
        const BY_PROGRAM: u64 = 4;
        const BY_WRITE: u64 = 2;
        let before = *self.registers.borrow();
        let mut registers = Registers { rip: COMPUTE, ..before };
        *self.registers.borrow_mut() = registers;
        self.save();
        let error = BY_PROGRAM | if is_write { BY_WRITE } else { 0 };
        self.machine.note(format_args!("page fault at {address:#x}"));
        let exception = Exception { vector: PAGE_FAULT, error, address };
        let entered = entered();
        self.machine.kernel().exception(entered.held(), self.id, &mut registers, exception);
        drop(entered);
        *self.registers.borrow_mut() = registers;
        self.before_user();
        self.settle(COMPUTE);
        *self.registers.borrow_mut() = before;
    }

    pub fn load_word(&self, address: u64) -> u64 {
        let mut word = [0; 8];
        self.load(address, &mut word);
        u64::from_le_bytes(word)
    }

    pub fn load_u32(&self, address: u64) -> u32 {
        let mut word = [0; 4];
        self.load(address, &mut word);
        u32::from_le_bytes(word)
    }

    fn interrupt_point(&self) {
        self.save();
        self.machine.step();
        self.before_user();
    }

    fn save(&self) {
        let registers = *self.registers.borrow();
        self.machine.with_record(self.id, |record| record.registers = registers);
    }

    fn before_user(&self) {
        let mut registers = *self.registers.borrow();
        let entered = entered();
        self.machine.kernel().before_user(entered.held(), self.id, &mut registers);
        *self.registers.borrow_mut() = registers;
    }

    /// Runs calls and signal handlers until the thread stands at `place` again.
    fn settle(&self, place: u64) {
        loop {
            let at = self.registers.borrow().rip;
            match at {
                _ if at == place => return,
                SITE => self.enter_kernel(AFTER),
                RESTORER => {
                    self.registers.borrow_mut().rax = RT_SIGRETURN;
                    self.enter_kernel(RESTORER + 9);
                }
                ENTRIES.. => self.run_handler(at),
                _ => panic!("a program's thread stands at {at:#x}, where there is nothing"),
            }
        }
    }

    fn enter_kernel(&self, back: u64) {
        let mut registers = {
            let mut registers = self.registers.borrow_mut();
            registers.rip = back;
            registers.rcx = back;
            registers.r11 = registers.rflags;
            registers.cause = registers.rax;
            *registers
        };
        self.save();
        let entered = entered();
        self.machine.kernel().system_call(entered.held(), self.id, &mut registers);
        *self.registers.borrow_mut() = registers;
    }

    fn run_handler(&self, at: u64) {
        let program = (at - ENTRIES) / 16;
        let at_entry = *self.registers.borrow();
        let signal = at_entry.rdi;
        self.machine.note(format_args!("signal {signal}: handler {program}"));
        (self.machine.plan.programs[program as usize])(self);
        let mut registers = self.registers.borrow_mut();
        *registers = at_entry;
        registers.rip = self.load_word(at_entry.rsp);
        registers.rsp += 8;
    }
}
