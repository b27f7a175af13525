//! Bombs: programs that take all memory of one kind (`programs/bombs.c`), each twice, under a shell that is the first process and
//! beside a neighbour that works. Both must live and find everything working; the bomb is killed, or refused.

use super::streams::tool_is_there;
use crate::options::Options;
use crate::process::{self, Outcome};
use crate::programs::{self, Linking};
use crate::report::Tally;
use crate::root::find_program;
use crate::side::runner_command;

/// Little, so that a bomb is full soon.
const MEMORY: &str = "64M";

/// What the first process does. The neighbour works all the while, so somebody besides the bomb asks for memory.
const SCRIPT: &str = r#"
/bombs innocent & neighbour=$!
for round in first second; do
    /bombs KIND & bomb=$!
    wait $bomb
    case $? in
    137) echo "$round: killed" ;;
    12) echo "$round: refused" ;;
    *) echo "$round: status $?" ;;
    esac
    [ "$(echo works | cat)" = works ] || echo "$round: the shell does not work"
done
kill -TERM $neighbour
wait $neighbour
echo "neighbour: $?"
"#;

/// Runs each kind of bomb.
///
/// # Errors
/// A sentence when tool, shell or program are not there.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    tool_is_there(options)?;
    let program = programs::build(options, "bombs", Linking::Static)?;
    let cat = find_program("cat").ok_or("cat is not on this host")?;
    let with = [format!("{}:/bombs", program.display()), cat.display().to_string()];
    for kind in programs::names(&program)? {
        let name = format!("bombs/{kind}");
        if options.selects(&name) && options.is_hosted() && kind == "tables" {
            tally.skip(
                &name,
                "the hosted machine's page tables are the host's; its notes of them take minutes to fill memory",
            );
        } else if options.selects(&name) {
            tally.record(&name, explode(options, &with, &kind));
        }
    }
    Ok(())
}

fn explode(options: &Options, with: &[String; 2], kind: &str) -> Result<(), String> {
    let mut command = runner_command(&options.runner);
    let seconds = options.case_timeout.as_secs().to_string();
    command.args(["--mem", MEMORY, "--timeout", &seconds]);
    for file in with {
        command.args(["--with", file]);
    }
    command.args(["sh", "-c", &SCRIPT.replace("KIND", kind)]);
    let outcome = process::run(command, Vec::new(), options.case_timeout * 2)?;
    judge(&outcome).map_err(|wrong| {
        let (said, told) = (outcome.stdout.escape_ascii(), outcome.stderr.escape_ascii());
        format!("{wrong}; status {}, {said}; told: {told}", outcome.status)
    })
}

fn judge(outcome: &Outcome) -> Result<(), &'static str> {
    let said = String::from_utf8_lossy(&outcome.stdout).replace('\r', "");
    let told = String::from_utf8_lossy(&outcome.stderr).replace('\r', "");
    let lines: Vec<&str> = said.lines().collect();
    let [first, second, neighbour] = lines[..] else { return Err("not three lines") };
    let ended = |line: &str, round: &str| {
        let how = line.strip_prefix(round).unwrap_or_default();
        how == ": killed" || how == ": refused"
    };
    if outcome.status != 0 || !ended(first, "first") || !ended(second, "second") || neighbour != "neighbour: 0" {
        return Err("somebody else suffered");
    }
    let sentences = told.lines().filter(|line| line.contains(" killed for want of memory: ")).count();
    if told.contains("process 1 (") {
        return Err("the first process was sentenced");
    }
    let kills = [first, second].iter().filter(|line| line.ends_with("killed")).count();
    if sentences < kills { Err("nobody was told of it") } else { Ok(()) }
}
