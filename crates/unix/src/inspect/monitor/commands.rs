//! The commands: what a line can begin with, besides expressions.

use alloc::format;
use alloc::string::String;

use super::{Answer, Line, Wrong, jobs, names, parts, show};

pub struct Command {
    pub name: &'static str,
    arguments: &'static str,
    does: &'static str,
    pub run: fn(&Line<'_>) -> Answer,
}

const fn command(
    name: &'static str,
    arguments: &'static str,
    does: &'static str,
    run: fn(&Line<'_>) -> Answer,
) -> Command {
    Command { name, arguments, does, run }
}

/// All there are. Whatever begins with none of these words is an expression.
pub const COMMANDS: &[Command] = &[
    command("help", "", "these lines", help),
    command("list", "[PATTERN]", "quajects with their callentries, routines, variables", show::list),
    command("gauges", "[PATTERN]", "all gauges", show::gauges),
    command("threads", "", "the threads of programs", show::threads),
    command("x", "ADDRESS [COUNT]", "words of memory, in hexadecimal", show::memory),
    command("code", "NAME|ADDRESS", "a routine's templates and bytes", show::code),
    command("why", "NAME|ADDRESS", "what was folded into a routine, and until when it holds", show::why),
    command("new", "KIND [SIZE]", "makes a quaject: gauge queue switch pump monitor clock probe", parts::new),
    command("connect", "PRODUCER CONSUMER", "connects two; the interfacer says how", parts::connect),
    command("remove", "QUAJECT", "takes it away, and what leads to it", parts::remove),
    command("probe", "CALLENTRY [TIMES]", "counts calls and ticks around it", parts::probe),
    command("run", "CALLENTRY(ARGUMENTS)", "points a new thread of the kernel at it", jobs::run),
    command("jobs", "", "what these threads did", jobs::list),
    command("names", "[START]", "all names that begin so", list_names),
];

fn help(_: &Line<'_>) -> Answer {
    let mut text =
        String::from("EXPRESSION: C's operators on 64-bit words; $x = 1, *(u8 *)pipe.read, gauge.switches\n");
    for Command { name, arguments, does, .. } in COMMANDS {
        let usage = format!("{name} {arguments}");
        text += &format!("{usage:<30}{does}\n");
    }
    Ok(text)
}

fn list_names(line: &Line<'_>) -> Answer {
    let mut text = String::new();
    for name in names::beginning_with(line.unix, line.rest) {
        text += &name;
        text.push('\n');
    }
    Ok(text)
}

/// What a command needs.
pub fn usage(name: &str) -> Wrong {
    let found = COMMANDS.iter().find(|command| command.name == name);
    Wrong::new(found.map_or(String::new(), |command| format!("{} {}: {}", name, command.arguments, command.does)))
}
