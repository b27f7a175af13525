//! The way of a call through a thread's own code: `thread.dispatch`, `thread.by_descriptor`, `thread.slow_call`.

use codestore::{Code, Maker};
use golden::{Way, bench};
use kernel::call::{CallCode, FileCall};
use machine::Processor;
use machine_pc::UserCall;
use synth::{Abs32, Draft, HoleValue, Imm32, Target, template};

use crate::race::Race;

/// Calls in a thread's table, as the template has it folded in.
const CALLS: usize = 464;
const DESCRIPTORS: usize = 16;
/// Call `n` and descriptor `n` answer this and `n`.
const CALL_ANSWER: u64 = 1000;
const DESCRIPTOR_ANSWER: u64 = 2000;

template! {
    /// Answers a number.
    pub struct Answer { value: Imm32 }
    "mov eax, {value}",
}

pub struct Dispatch {
    dispatch: Code<UserCall>,
    by_descriptor: Code<UserCall>,
    slow_call: Code<UserCall>,
    /// The last word of the kernel stack: the program's stack pointer is stored here.
    user_sp: u64,
    _calls: Vec<Code<CallCode>>,
    _descriptors: Vec<Code<FileCall>>,
}

fn thread_code(name: &'static str, values: &[HoleValue]) -> Code<UserCall> {
    let templates = machine_pc::thread_templates();
    let (_, template) = templates.iter().find(|(known, _)| *known == name).expect("a template of the thread");
    let mut draft = Draft::new();
    draft.append(template, values);
    bench().store.publish(name, Maker::new("bench"), draft).expect("room for code")
}

fn answer<C>(value: u64, leave: synth::Template) -> Code<C> {
    let mut draft = Answer { value: Imm32(value as u32) }.draft();
    draft.append(&leave, &[]);
    bench().store.publish("bench.answer", Maker::new("bench"), draft).expect("room for code")
}

impl Dispatch {
    pub fn new() -> Dispatch {
        let word = |words: &'static [u64]| Abs32(words.as_ptr() as u64);
        let calls: Vec<_> = (0..CALLS as u64).map(|call| answer(CALL_ANSWER + call, bench().leave_direct())).collect();
        let descriptors: Vec<_> =
            (0..DESCRIPTORS as u64).map(|at| answer(DESCRIPTOR_ANSWER + at, bench().leave())).collect();
        let table: Vec<u64> = calls.iter().map(|code| code.entry().address()).collect();
        let entries: Vec<u64> = descriptors.iter().map(|code| code.entry().address()).collect();
        let (table, entries) = (word(table.leak()), word(entries.leak()));
        let stack = vec![0u64; 64].leak();
        let user_sp = Abs32(&raw const stack[63] as u64);
        let common = Target::Address(bench().slow_call().address());
        let slow_call = thread_code("thread.slow_call", &[user_sp.into(), common.into()]);
        let slow = Target::Address(slow_call.entry().address());
        Dispatch {
            dispatch: thread_code("thread.dispatch", &[table.into(), slow.into()]),
            by_descriptor: thread_code(
                "thread.by_descriptor",
                &[user_sp.into(), Imm32(DESCRIPTORS as u32).into(), entries.into(), common.into()],
            ),
            slow_call,
            user_sp: user_sp.0,
            _calls: calls,
            _descriptors: descriptors,
        }
    }

    pub fn step(&mut self, race: &mut Race) {
        let wild = race.random.bits() >> race.random.below(64);
        let (number, descriptor) = match race.random.below(3) {
            0 => (race.random.below(CALLS as u64 + 2), race.random.below(DESCRIPTORS as u64 + 2)),
            1 => (wild, wild),
            _ => (race.random.below(CALLS as u64), race.random.below(DESCRIPTORS as u64)),
        };
        let arguments = [descriptor, race.random.bits(), race.random.bits()];
        let (name, code, answered) = match race.random.below(5) {
            0 => ("thread.slow_call", &self.slow_call, None),
            1 | 2 => {
                let answer = (number < CALLS as u64).then(|| CALL_ANSWER + number);
                ("thread.dispatch", &self.dispatch, answer)
            }
            _ => {
                let answer = (descriptor < DESCRIPTORS as u64).then(|| DESCRIPTOR_ANSWER + descriptor);
                ("thread.by_descriptor", &self.by_descriptor, answer)
            }
        };
        let outcome = race.caller.thread_call(code.entry().address(), number, arguments, &[self.user_sp]);
        race.same("answer of the call", outcome.result, answered.unwrap_or(number));
        race.same("way of the call", outcome.way, if answered.is_some() { Way::Fast } else { Way::Slow });
        // The slow end is what `thread.slow_call` is for.
        race.count(name, if name == "thread.slow_call" { Way::Fast } else { outcome.way });
    }
}
