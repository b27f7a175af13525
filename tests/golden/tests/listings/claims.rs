//! What the doc comment of a template says of it, and whether its cost is true.

use std::collections::BTreeSet;
use std::fs;

use iced_x86::{FlowControl, Instruction};
use synth::Template;

use crate::{disassembly, root};

const SOURCES: &[&str] = &[
    "kernel/src/call/fragments.rs",
    "kernel/src/call/routine.rs",
    "kernel/src/call/simple.rs",
    "kernel/src/call/open.rs",
    "kernel/src/symtab/code.rs",
    "kernel/src/channel.rs",
    "kernel/src/call/watch.rs",
    "kernel/src/trace/template.rs",
    "kernel/src/tty/template.rs",
    "kernel/src/interrupt.rs",
    "kernel/src/tty/raw.rs",
    "kernel/src/schedule/timer.rs",
    "machine-pc/src/timer.rs",
    "kernel/src/sound/template.rs",
    "machine-pc/src/sample_clock.rs",
    "machine-pc/src/transmit.rs",
    "machine-pc/src/receive.rs",
    "kernel/src/automaton.rs",
    "kernel/src/tty/cooker.rs",
    "kernel/src/screen/template.rs",
    "kernel/src/pipe/template.rs",
    "kernel/src/counter/template.rs",
    "kernel/src/futex/template.rs",
    "kernel/src/ready/pipe.rs",
    "kernel/src/ready/counter.rs",
    "kernel/src/ready/poll.rs",
    "kernel/src/ready/instance.rs",
    "kernel/src/signal/template.rs",
    "kernel/src/signal/raise.rs",
    "kernel/src/file/window.rs",
    "kernel/src/file/positioned.rs",
    "kernel/src/file/foreign/ferry.rs",
    "machine-pc/src/call.rs",
    "machine-pc/src/thread_code.rs",
    "machine-pc/src/lib.rs",
    "machine-x86/src/thread_code.rs",
    "machine-x86/src/handover.rs",
    "machine-pc/src/handover.rs",
    "statemachine/src/template.rs",
];

/// The doc comment of a template, from the source.
pub fn doc_comment(template: &Template) -> Vec<String> {
    let name = template.shape.name;
    let declaration = format!("pub struct {name} {{");
    // A macro that makes `FillFirst` and `FillSecond` declares `$Fill`.
    let by_macro = |line: &str| {
        let parameter = line.strip_prefix("pub struct $").and_then(|rest| rest.split(' ').next());
        parameter.is_some_and(|parameter| name.starts_with(parameter))
    };
    for source in SOURCES {
        let path = root().join("crates").join(source);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let found = (1..lines.len()).find(|at| {
            (lines[*at].starts_with(&declaration) || by_macro(lines[*at])) && lines[at - 1].starts_with("///")
        });
        if let Some(at) = found {
            let first = lines[..at].iter().rposition(|line| !line.starts_with("///")).map_or(0, |before| before + 1);
            return lines[first..at].iter().map(|line| line.trim_start_matches('/').trim().to_string()).collect();
        }
    }
    panic!("the source of template {name} is in none of the files that this test reads");
}

/// The numbers after `Cost:`.
fn claimed(template: &Template) -> Vec<usize> {
    let doc = doc_comment(template).join(" ");
    let Some((_, cost)) = doc.split_once("Cost:") else { return Vec::new() };
    let sentence = cost.split(". ").next().unwrap_or(cost);
    sentence.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

/// `None` if the claim is true: each number is the length of one way through the template. A way begins at the first
/// instruction, or behind one that does not fall through; or it is a way less the instructions before a second entry.
pub fn check_cost(template: &Template) -> Option<String> {
    let code = disassembly::decode(template.bytes);
    let mut entries = vec![0];
    entries.extend((1..code.len()).filter(|at| ends_way(&code[at - 1])));
    // `sw_in` begins behind the address space part of `sw_in_mmu`.
    entries.extend((template.shape.name == "SwitchIn").then_some(2));
    let mut possible = BTreeSet::new();
    for entry in entries {
        ways(&code, entry, 0, &mut possible);
    }
    let claimed = claimed(template);
    let first = {
        let mut first = BTreeSet::new();
        ways(&code, 0, 0, &mut first);
        first
    };
    let wrong = claimed.iter().any(|claim| !possible.contains(claim))
        || claimed.first().is_some_and(|claim| !first.contains(claim));
    wrong.then(|| {
        format!(
            "{}: claims a cost of {claimed:?} instructions, its ways take {first:?} of {possible:?}",
            template.shape.name
        )
    })
}

/// `None` if the listed routine keeps what debuggers rely on to find its caller (`machine-hosted/src/debug/unwind.rs`): the
/// return address is in rcx until rcx is pushed, and then only rdi and rsi lie above it.
pub fn check_return_address(name: &str, listing: &str) -> Option<String> {
    let code: Vec<&str> = listing.lines().filter_map(|line| line.split_once("  ")).map(|(_, code)| code).collect();
    let holds = (0..code.len()).filter(|at| code[*at] == "push rcx").all(|at| {
        let before = |distance: usize| at.checked_sub(distance).map_or("", |at| code[at]);
        before(1) == "push rsi" && before(2) == "push rdi" && !before(3).starts_with("push")
    });
    // Where an interrupt goes back to is always on the stack.
    let is_call = code.last() != Some(&"iretq") && !name.starts_with("timer.");
    (is_call && !holds).then(|| format!("{name}: pushes rcx, but not right behind rdi and rsi"))
}

fn ends_way(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Return
    )
}

/// Adds the length of every way from instruction `at`: jumps inside the template go both ways, jumps out of it are not taken.
fn ways(code: &[Instruction], at: usize, done: usize, lengths: &mut BTreeSet<usize>) {
    let Some(instruction) = code.get(at) else {
        lengths.insert(done);
        return;
    };
    if ends_way(instruction) {
        lengths.insert(done + 1);
        return;
    }
    ways(code, at + 1, done + 1, lengths);
    if instruction.flow_control() == FlowControl::ConditionalBranch {
        let target = code.iter().position(|other| other.ip() == instruction.near_branch_target());
        let end = code.last().map(Instruction::next_ip) == Some(instruction.near_branch_target());
        let target = target.or(end.then_some(code.len()));
        if let Some(target) = target.filter(|target| *target > at) {
            ways(code, target, done + 1, lengths);
        }
    }
}
