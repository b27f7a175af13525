//! Generated state machines: entered, left for the outside, entered again.

use core::arch::asm;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use codestore::{Code, Maker};
use statemachine::{Block, Graph, Memory, Outside, generate};
use synth::Draft;

use crate::bench::bench;

/// The contract of a machine's code: see [`generate`].
pub struct MachineCode;

/// A machine as code, and its block of memory.
pub struct Automaton {
    code: Code<MachineCode>,
    block: Block,
    /// Nothing is outside: what is asked for is left undone. For measurements.
    pub is_alone: bool,
    /// Set the trap flag while the code runs, and count its instructions.
    pub counts: bool,
}

/// Instructions counted so far.
pub static INSTRUCTIONS: AtomicU64 = AtomicU64::new(0);

extern "C" fn step(_: i32) {
    INSTRUCTIONS.store(INSTRUCTIONS.load(Relaxed) + 1, Relaxed);
}

impl Automaton {
    /// Generates a machine and publishes its code.
    pub fn new(name: &'static str, graph: &Graph) -> Automaton {
        let block = Block::new(graph);
        let mut draft = Draft::new();
        let made = generate(graph, &block.places(), &mut draft);
        let code = bench().store.publish(name, Maker::new("bench"), draft).expect("room for code");
        let start = made.states.iter().find(|(id, _)| *id == 0).expect("a first state").1;
        block.state().set(code.entry().address() + u64::from(start));
        Automaton { code, block, is_alone: false, counts: false }
    }

    pub fn entry(&self) -> u64 {
        self.code.entry().address()
    }

    /// Feeds `input`; emitted bytes go to `output`, which has room for `slack` more than is looked for. Returns how much
    /// was taken and emitted.
    pub fn run(&mut self, input: &[u8], output: &mut [u8], slack: usize, outside: &mut impl Outside) -> (usize, usize) {
        let (start, end) = (input.as_ptr() as u64, input.as_ptr_range().end as u64);
        let first = output.as_mut_ptr() as u64;
        let limit = first + output.len().saturating_sub(slack) as u64;
        let (mut from, mut to) = (start, first);
        loop {
            let number = self.enter(&mut from, end, &mut to, limit);
            if number == 0 {
                return ((from - start) as usize, (to - first) as usize);
            }
            if !self.is_alone {
                outside.call(number as u16, self.memory());
            }
        }
    }

    fn enter(&mut self, from: &mut u64, end: u64, to: &mut u64, limit: u64) -> u64 {
        let result: u64;
        let trap: u64 = if self.counts { 0x100 } else { 0 };
        // SAFETY: 1. The code keeps its contract: it reads `from..end`, stores from `to` on and in its block, which this
        // has exclusively, and returns. 2. The trap flag is for the handler that `count` installed.
        unsafe {
            asm!(
                "push r11", "push r11", "pushfq", "or qword ptr [rsp], r11", "popfq",
                "call r12",
                "pushfq", "and qword ptr [rsp], -257", "popfq",
                "pop r11", "pop r11",
                inout("r11") trap => _, out("r14") _, out("r15") _, in("r12") self.code.entry().address(),
                inout("rsi") *from, in("rdx") end, inout("rdi") *to, in("r8") limit,
                lateout("rax") result, out("rcx") _, out("r9") _, out("r10") _,
            );
        }
        result
    }

    /// Counts instructions from now on, by single steps. The count has four more for each entry, and the call.
    pub fn count(&mut self) {
        // SAFETY: the handler only stores in an atomic.
        unsafe { libc::signal(libc::SIGTRAP, step as extern "C" fn(i32) as usize) };
        self.counts = true;
    }

    pub fn memory(&self) -> Memory<'_> {
        self.block.memory()
    }
}
