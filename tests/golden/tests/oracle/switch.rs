//! The synchronous switch (S-62): who leaves through `sw_out` finds its values again, whatever the others did with the
//! registers.

use std::hint::black_box;

use codestore::{Code, Maker};
use golden::bench;
use machine::{Entered, Held, SwitchOut};
use machine_pc::UserCall;
use synth::{Abs32, Draft, template};

use crate::race::Race;

template! {
    /// Stands for all other threads: loses every register, then switches back as `sw_in` does.
    pub struct Others { kernel_sp: Abs32 }
    "mov rax, -1",
    "mov rbx, rax",
    "mov rcx, rax",
    "mov rdx, rax",
    "mov rsi, rax",
    "mov rdi, rax",
    "mov rbp, rax",
    "mov r8, rax",
    "mov r9, rax",
    "mov r10, rax",
    "mov r11, rax",
    "mov r12, rax",
    "mov r13, rax",
    "mov r14, rax",
    "mov r15, rax",
    "movq xmm0, rax",
    "movq xmm1, rax",
    "movq xmm6, rax",
    "movq xmm7, rax",
    "movq xmm15, rax",
    "mov rsp, qword ptr [{kernel_sp}]",
    "ret",
}

/// A thread's words that its `sw_out` uses: stack pointer, successor, bases.
pub struct Switch {
    out: Code<UserCall>,
    _others: Code<UserCall>,
}

impl Switch {
    pub fn new() -> Switch {
        let words = vec![0u64; 4].leak();
        let at = |index: usize| Abs32(&raw const words[index] as u64);
        let templates = machine_pc::thread_templates();
        let (_, template) = templates.iter().find(|(name, _)| *name == "thread.sw_out").expect("sw_out");
        let mut draft = Draft::new();
        draft.append(template, &[at(0).into(), at(1).into(), at(2).into(), at(3).into()]);
        let publish = |draft| bench().store.publish("bench.switch", Maker::new("bench"), draft).expect("room for code");
        let (out, others) = (publish(draft), publish(Others { kernel_sp: at(0) }.draft()));
        words[1] = others.entry().address();
        Switch { out, _others: others }
    }

    pub fn step(&mut self, race: &mut Race) {
        let values = [0; 12].map(|_: u64| race.random.bits());
        // SAFETY: the code stores the stack pointer; what it jumps to comes back with it.
        let out = unsafe { SwitchOut::new(self.out.entry().address()) };
        // SAFETY: a test has no lock.
        let entered = unsafe { Entered::new() };
        assert_eq!(across(entered.held(), out, values), values, "a value was lost over a switch");
    }
}

/// All values are live in registers, as many as there are, when the thread leaves.
#[inline(never)]
fn across(held: Held<'_>, out: SwitchOut, values: [u64; 12]) -> [u64; 12] {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = values.map(|value| black_box(value) ^ 1);
    out.leave(held);
    [a ^ 1, b ^ 1, c ^ 1, d ^ 1, e ^ 1, f ^ 1, g ^ 1, h ^ 1, i ^ 1, j ^ 1, k ^ 1, l ^ 1]
}
