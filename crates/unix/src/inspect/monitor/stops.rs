//! Threads of programs that people stop, step and start (S-52, S-53), and places where they stop.
//!
//! ```text
//!   HALT, a breakpoint, the last step ─► standing ──GO──► going       (a breakpoint under it is lifted for one step)
//!                                            └───STEP n─► stepping n
//! ```
//! No signal is sent and no parent is told: the program cannot see it, but for its text at a breakpoint. While a thread
//! steps, all its calls are done in Rust.
#![expect(clippy::disallowed_methods, reason = "the monitor is the owner of the machine, who makes few stops")]

use alloc::sync::Arc;
use alloc::vec::Vec;

use bootimage::inspect::{Items, monitor as op};
use kernel::space::{Space, USER_LIMIT};
use kernel::thread::State;
use machine::{Exception, Held, KernelCell, Registers};

use crate::emulator::Unix;
use crate::inspect::{Cursor, Question, Refusal};
use crate::task::process::Process;
use crate::task::thread::Task;

/// Breakpoints, and threads, at a time.
const STOPS_MAX: usize = 64;
/// Vectors (SDM vol. 3A, table 6-1).
const DEBUG: u8 = 1;
const BREAKPOINT: u8 = 3;
/// The flags that people may change: the arithmetic ones and DF.
const FLAGS: u64 = 0xCD5;
/// INT3.
const TRAP: u8 = 0xCC;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It shall stand still before it goes back to its program.
    Wanted,
    Still,
    Going,
    /// So many instructions are left; it came from here.
    Stepping {
        left: u32,
        from: u64,
    },
}

struct Halt {
    tid: u32,
    standing: Standing,
    /// One of `ASKED`, `BROKE`, `STEPPED`.
    why: u8,
    /// As the program has them, or shall have them.
    registers: Registers,
    /// The breakpoint under it, until it has stepped over.
    lifted: Option<u64>,
}

struct Break {
    process: u32,
    address: u64,
    original: u8,
}

pub struct Stops {
    halts: KernelCell<Vec<Halt>>,
    breaks: KernelCell<Vec<Break>>,
}

impl Stops {
    pub const fn new() -> Stops {
        Stops { halts: KernelCell::new(Vec::new()), breaks: KernelCell::new(Vec::new()) }
    }

    fn with<R>(&self, tid: u32, see: impl FnOnce(&mut Halt) -> R) -> Option<R> {
        self.halts.borrow_mut().iter_mut().find(|halt| halt.tid == tid).map(see)
    }

    /// The halt of a thread, made if there is none.
    fn enter(&self, unix: &Unix, tid: u32) -> Result<(), Refusal> {
        let mut halts = self.halts.borrow_mut();
        halts.retain(|halt| unix.tasks.task(halt.tid).is_some());
        if halts.iter().any(|halt| halt.tid == tid) {
            return Ok(());
        }
        if halts.len() >= STOPS_MAX {
            return Err(Refusal::Busy);
        }
        let registers = Registers::default();
        halts.push(Halt { tid, standing: Standing::Going, why: op::ASKED, registers, lifted: None });
        Ok(())
    }

    /// Bytes as they are without breakpoints.
    pub fn hide(&self, process: u32, address: u64, bytes: &mut [u8]) {
        for (at, byte) in (address..).zip(bytes) {
            if let Some(original) = self.breakpoint(process, at) {
                *byte = original;
            }
        }
    }

    /// Whether a breakpoint lies in so many bytes from an address on.
    pub fn has_break(&self, process: u32, address: u64, bytes: usize) -> bool {
        let breaks = self.breaks.borrow();
        breaks.iter().any(|known| known.process == process && known.address.wrapping_sub(address) < bytes as u64)
    }

    /// The original byte of a breakpoint.
    fn breakpoint(&self, process: u32, address: u64) -> Option<u8> {
        let breaks = self.breaks.borrow();
        let found = breaks.iter().find(|known| (known.process, known.address) == (process, address));
        found.map(|known| known.original)
    }

    /// The process whose breakpoints a process meets: its own, or those of who has the memory with it (vfork).
    fn owner(&self, unix: &Unix, process: &Process) -> u32 {
        let breaks = self.breaks.borrow();
        if breaks.iter().any(|known| known.process == process.pid) {
            return process.pid;
        }
        let space_of = |process: &Process| process.space().map(|space| Arc::as_ptr(&space));
        let shares =
            |number: &u32| unix.tasks.process(*number).is_some_and(|other| space_of(&other) == space_of(process));
        breaks.iter().map(|known| known.process).find(shares).unwrap_or(process.pid)
    }

    /// A child's copy of the memory is without the traps of its maker, who alone is to stop.
    pub fn leave_out(&self, maker: u32, copy: &mut Space) {
        for known in self.breaks.borrow().iter().filter(|known| known.process == maker) {
            let mut there = [0];
            if copy.peek_bytes(known.address, &mut there).is_ok() && there == [TRAP] {
                // Without memory the child meets the trap, and ends.
                let _ = copy.poke_bytes(known.address, &[known.original]);
            }
        }
    }

    /// The running thread goes back to its program; does nothing for threads that nobody watches.
    pub fn before_user(&self, held: Held<'_>, unix: &'static Unix, task: &Arc<Task>, registers: &mut Registers) {
        if self.halts.borrow().is_empty() {
            return;
        }
        match self.with(task.tid, |halt| halt.standing) {
            Some(Standing::Wanted) => self.stand(held, unix, task, registers, op::ASKED),
            // The instruction was a call.
            Some(Standing::Stepping { from, .. }) if from != registers.rip => self.stepped(held, unix, task, registers),
            // So that the end of a call comes here.
            Some(Standing::Stepping { .. }) => task.call_attention(),
            _ => {}
        }
    }

    /// The program raised an exception: true if it is ours.
    pub fn exception(
        &self,
        held: Held<'_>,
        unix: &'static Unix,
        task: &Arc<Task>,
        registers: &mut Registers,
        exception: &Exception,
    ) -> bool {
        if self.halts.borrow().is_empty() && self.breaks.borrow().is_empty() {
            return false;
        }
        let before = registers.rip.wrapping_sub(1);
        if exception.vector == BREAKPOINT && self.breakpoint(self.owner(unix, &task.process), before).is_some() {
            registers.rip = before;
            if self.enter(unix, task.tid).is_ok() {
                self.stand(held, unix, task, registers, op::BROKE);
                return true;
            }
        }
        let is_step = exception.vector == DEBUG && task.thread.is_stepping();
        let stands = self.with(task.tid, |halt| halt.lifted.is_none() && halt.standing == Standing::Still);
        if !is_step || stands != Some(false) {
            return false;
        }
        self.stepped(held, unix, task, registers);
        true
    }

    /// One instruction was done.
    fn stepped(&self, held: Held<'_>, unix: &'static Unix, task: &Arc<Task>, registers: &mut Registers) {
        if let Some(address) = self.with(task.tid, |halt| halt.lifted.take()).flatten() {
            self.set_byte(unix, &task.process, address, true);
        }
        let is_last = self.with(task.tid, |halt| match &mut halt.standing {
            Standing::Stepping { left: left @ 2.., from } => {
                (*left, *from) = (*left - 1, registers.rip);
                false
            }
            Standing::Stepping { .. } => true,
            _ => {
                task.thread.end_step(registers);
                false
            }
        });
        if is_last == Some(true) {
            task.thread.end_step(registers);
            self.stand(held, unix, task, registers, op::STEPPED);
        } else {
            task.call_attention();
        }
    }

    /// Stands still until somebody has it go on, or end.
    fn stand(&self, held: Held<'_>, unix: &'static Unix, task: &Arc<Task>, registers: &mut Registers, why: u8) {
        let shown = task.thread.without_step(registers);
        self.with(task.tid, |halt| (halt.standing, halt.why, halt.registers) = (Standing::Still, why, shown));
        while self.with(task.tid, |halt| halt.standing) == Some(Standing::Still) && !task.is_ending() {
            task.thread.stop();
            unix.scheduler.safe_point(held);
        }
        // The trap flag is not people's.
        let mut wanted = self.with(task.tid, |halt| halt.registers).unwrap_or(shown);
        wanted.rflags = wanted.rflags & FLAGS | registers.rflags & !FLAGS;
        *registers = wanted;
        task.thread.arrange_step(registers);
        task.call_attention();
    }

    /// Puts the trap or the original byte at a breakpoint, if the other one is there.
    fn set_byte(&self, unix: &Unix, process: &Process, address: u64, trap: bool) {
        let Some(original) = self.breakpoint(self.owner(unix, process), address) else { return };
        let (old, new) = if trap { (original, TRAP) } else { (TRAP, original) };
        if let Some(space) = process.space() {
            let (mut space, mut there) = (space.borrow_mut(), [0]);
            if space.peek_bytes(address, &mut there).is_ok() && there == [old] {
                // Without memory the program goes on as it is.
                let _ = space.poke_bytes(address, &[new]);
            }
        }
    }

    /// Lets a thread that stands still go on.
    fn go(&self, unix: &'static Unix, task: &Arc<Task>, steps: u32) -> Result<(), Refusal> {
        let rip = self.with(task.tid, |halt| (halt.standing == Standing::Still).then_some(halt.registers.rip));
        let rip = rip.flatten().ok_or(Refusal::Absent)?;
        let is_at_break = self.breakpoint(self.owner(unix, &task.process), rip).is_some();
        if is_at_break {
            self.set_byte(unix, &task.process, rip, false);
        }
        self.with(task.tid, |halt| {
            halt.lifted = is_at_break.then_some(rip);
            halt.standing = if steps > 0 { Standing::Stepping { left: steps, from: rip } } else { Standing::Going };
        });
        let tte = task.thread.tte();
        // What was bound by name would not be stepped through.
        task.bindings.unbind_descriptor_calls(tte);
        task.bindings.unbind_constants(tte);
        task.bindings.unbind_signals(tte);
        tte.set_debugged(steps > 0 || task.watch.is_traced());
        if steps > 0 || is_at_break {
            task.thread.step(unix.scheduler);
        } else {
            task.thread.start(unix.scheduler);
        }
        Ok(())
    }
}

fn task(question: &mut Question<'_>) -> Result<Arc<Task>, Refusal> {
    question.unix.tasks.task(question.u32()?).ok_or(Refusal::Absent)
}

pub fn halt(question: &mut Question<'_>, _: &mut Items) -> Result<Cursor, Refusal> {
    let (unix, task) = (question.unix, task(question)?);
    let stops = &unix.desk.stops;
    stops.enter(unix, task.tid)?;
    stops.with(task.tid, |halt| {
        if halt.standing != Standing::Still {
            halt.standing = Standing::Wanted;
        }
    });
    task.call_attention();
    Ok(0)
}

/// With 0 steps the thread goes on.
pub fn go(question: &mut Question<'_>, _: &mut Items) -> Result<Cursor, Refusal> {
    let (unix, task, steps) = (question.unix, task(question)?, question.u32()?);
    unix.desk.stops.go(unix, &task, steps)?;
    Ok(0)
}

pub fn set_break(question: &mut Question<'_>, _: &mut Items) -> Result<Cursor, Refusal> {
    let (unix, number, address) = (question.unix, question.u32()?, question.u64()?);
    let wanted = question.arguments.u8() != Some(0);
    let stops = &unix.desk.stops;
    let process = unix.tasks.process(number).ok_or(Refusal::Absent)?;
    if !wanted {
        stops.set_byte(unix, &process, address, false);
        stops.breaks.borrow_mut().retain(|known| (known.process, known.address) != (number, address));
        return Ok(0);
    }
    if stops.breakpoint(number, address).is_some() || stops.breaks.borrow().len() >= STOPS_MAX {
        return Err(Refusal::Busy);
    }
    let space = process.space().ok_or(Refusal::Absent)?;
    let mut original = [0];
    space.borrow_mut().peek_bytes(address, &mut original).map_err(|_| Refusal::Bad)?;
    space.borrow_mut().poke_bytes(address, &[TRAP]).map_err(|_| Refusal::Bad)?;
    stops.breaks.borrow_mut().push(Break { process: number, address, original: original[0] });
    Ok(0)
}

/// The registers that people see, in the order of requests.
fn words(r: &mut Registers) -> [&mut u64; 18] {
    [
        &mut r.rax,
        &mut r.rbx,
        &mut r.rcx,
        &mut r.rdx,
        &mut r.rsi,
        &mut r.rdi,
        &mut r.rbp,
        &mut r.rsp,
        &mut r.r8,
        &mut r.r9,
        &mut r.r10,
        &mut r.r11,
        &mut r.r12,
        &mut r.r13,
        &mut r.r14,
        &mut r.r15,
        &mut r.rip,
        &mut r.rflags,
    ]
}

/// Arguments: `u32 thread, u8 register, u64 value`, for a thread that stands still.
pub fn set_register(question: &mut Question<'_>, _: &mut Items) -> Result<Cursor, Refusal> {
    let (unix, task) = (question.unix, task(question)?);
    let (number, value) = (question.arguments.u8().ok_or(Refusal::Bad)?, question.u64()?);
    let stops = &unix.desk.stops;
    let done = stops.with(task.tid, |halt| {
        let is_still = halt.standing == Standing::Still && task.thread.state() == State::Stopped;
        let mut words = words(&mut halt.registers);
        let count = words.len();
        let word = words.get_mut(usize::from(number)).ok_or(Refusal::Bad)?;
        match usize::from(number) {
            _ if !is_still => return Err(Refusal::Absent),
            // Code and stack of a program are in its own half.
            at if at == count - 2 && value >= USER_LIMIT => return Err(Refusal::Bad),
            at if at == count - 1 => **word = value & FLAGS | **word & !FLAGS,
            _ => **word = value,
        }
        Ok(0)
    });
    done.ok_or(Refusal::Absent)?
}

/// `u32 thread, u8 standing, u8 why`, 18 registers, 16 bytes at rip.
pub fn list(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    for halt in &*question.unix.desk.stops.halts.borrow() {
        let Some(task) = question.unix.tasks.task(halt.tid) else { continue };
        let still = halt.standing == Standing::Still && task.thread.state() == State::Stopped;
        out.u32(halt.tid).u8(still.into()).u8(halt.why);
        let mut registers = halt.registers;
        let rip = registers.rip;
        words(&mut registers).into_iter().for_each(|word| _ = out.u64(*word));
        let mut bytes = [0; 16];
        if let Some(space) = task.process.space() {
            let _ = space.borrow_mut().peek_bytes(rip, &mut bytes);
        }
        question.unix.desk.stops.hide(task.process.pid, rip, &mut bytes);
        out.bytes.extend_from_slice(&bytes);
        if !out.keep() {
            break;
        }
    }
    Ok(0)
}
