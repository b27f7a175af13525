//! The Sound-IO device server at full rate: no sample is lost while handlers are replaced, nor while the kernel works for others, nor
//! any key typed meanwhile.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::options::Options;
use crate::process;
use crate::report::Tally;
use crate::side::runner_command;
use crate::terminal::{self, Step};

/// A second of the CD.
const FRAMES: &str = "44100";
/// What another program copies meanwhile, between forks and programs executed.
const MEGABYTES: &str = "100";

/// # Errors
/// When the program cannot be built.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    let folder = options.repo.join("target/tests");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let program = build(&options.repo.join("bench/sound/sound.c"), &folder.join("sound"))?;
    tally.record(
        "sound/no_sample_is_lost_while_handlers_are_replaced",
        at_full_rate(options, &program, ["live", FRAMES]),
    );
    tally.record(
        "sound/no_sample_of_an_element_is_lost_while_handlers_are_replaced",
        at_full_rate(options, &program, ["elements", FRAMES]),
    );
    tally.record(
        "sound/no_interrupt_is_lost_while_the_kernel_is_busy",
        at_full_rate(options, &program, ["busy", MEGABYTES]),
    );
    if !options.is_hosted() {
        tally.record("sound/nothing_typed_is_lost_while_interrupts_nest_in_the_kernel", typed(options, &program));
        tally.record("sound/a_pump_carries_the_cd_to_the_loudspeaker", pumped(options));
        tally.record("sound/an_alarm_rings_in_the_midst_of_the_kernel", alarms_inside(options, &folder));
    }
    Ok(())
}

/// Builds a program; its path.
fn build(source: &Path, program: &Path) -> Result<String, String> {
    let built = Command::new("gcc").args(["-O", "-Wall", "-static", "-o"]).args([program, source]).output();
    let built = built.map_err(|error| format!("cannot run gcc: {error}"))?;
    if !built.status.success() {
        return Err(String::from_utf8_lossy(&built.stderr).into_owned());
    }
    Ok(program.display().to_string())
}

/// Keys in as many bursts, while the kernel is busy and samples come: the raw tty's handler interrupts the kernel's Rust, and
/// is interrupted by the sample clock's next.
fn typed(options: &Options, program: &str) -> Result<(), String> {
    const BURST: usize = 26 * 20;
    const BURSTS: usize = 40;
    let keys: String = ('a'..='z').cycle().take(BURST).collect();
    let keys: &'static str = keys.leak();
    let mut command = runner_command(&options.runner);
    command.args(["--icount", program, "busy", MEGABYTES, &(BURST * BURSTS).to_string()]);
    let bursts = [Step::Type(keys); BURSTS];
    let steps = [&[Step::Expect("listening")], &bursts[..], &[Step::Expect("typed, in order"), Step::End(0)]].concat();
    terminal::play(command, &steps, options.case_timeout.max(Duration::from_secs(120))).map(|_| ())
}

/// A shell joins the CD to the D/A converter by a pump and goes on; the pump's thread carries the samples at the clock's rate.
fn pumped(options: &Options) -> Result<(), String> {
    const SECOND_BYTES: u32 = 44_100 * 4;
    const SCRIPT: &str = "exec 3</dev/cd 4>/dev/da; echo '3 4' >/proc/synthesis/pumps || exit 1; exec 3<&- 4>&-
        start=$(cut -d' ' -f1 /proc/uptime)
        until read pump standing bytes rate </proc/synthesis/pumps && [ $bytes -ge 352800 ]; do sleep 0.1; done
        echo $standing $bytes $start $(cut -d' ' -f1 /proc/uptime); echo stop $pump >/proc/synthesis/pumps";
    let mut command = runner_command(&options.runner);
    command.args(["--icount", "--timeout", "60", "busybox", "sh", "-c", SCRIPT]);
    let outcome = process::run(command, Vec::new(), options.case_timeout.max(Duration::from_secs(120)))?;
    let told = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let words: Vec<&str> = told.split_whitespace().collect();
    let ["running", bytes, start, end] = words[..] else {
        return Err(format!("status {}: {told}{}", outcome.status, String::from_utf8_lossy(&outcome.stderr)));
    };
    let number = |word: &str| word.parse::<f64>().map_err(|_| format!("no number: {told}"));
    let rate = number(bytes)? / (number(end)? - number(start)?).max(0.01);
    // The pump stops to look around for up to a tenth of a second, as the shell does.
    let is_right = (0.8..1.2).contains(&(rate / f64::from(SECOND_BYTES)));
    if is_right { Ok(()) } else { Err(format!("{rate} bytes a second instead of {SECOND_BYTES}: {told}")) }
}

/// Alarms that fall into long calls while the timer nests (S-78): none is lost, and some ring before the call is over.
fn alarms_inside(options: &Options, folder: &Path) -> Result<(), String> {
    let program = build(&options.repo.join("bench/tables/interrupts.c"), &folder.join("interrupts"))?;
    let mut command = runner_command(&options.runner);
    command.args(["--icount", "--kernel-arguments", "nest", "--timeout", "60", &program, "inside", "200"]);
    let outcome = process::run(command, Vec::new(), options.case_timeout.max(Duration::from_secs(120)))?;
    let told = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let inside: u32 = told.trim().rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let error = String::from_utf8_lossy(&outcome.stderr).into_owned();
    if outcome.status == 0 && inside > 0 { Ok(()) } else { Err(format!("status {}: {told}{error}", outcome.status)) }
}

/// The hosted machine's clock does not run by itself, and says so.
fn at_full_rate(options: &Options, program: &str, words: [&str; 2]) -> Result<(), String> {
    let is_hosted = options.is_hosted();
    let mut command = runner_command(&options.runner);
    // By instructions, so that a busy host delivers all interrupts.
    command.args(if is_hosted { &[][..] } else { &["--icount"] }).arg(program).args(words);
    let outcome = process::run(command, Vec::new(), options.case_timeout.max(Duration::from_secs(120)))?;
    let told = [outcome.stdout.as_slice(), &outcome.stderr].concat();
    let as_wanted = match is_hosted {
        true => outcome.status == 1 && String::from_utf8_lossy(&told).contains("No such device or address"),
        false => outcome.status == 0,
    };
    if as_wanted { Ok(()) } else { Err(format!("status {}: {}", outcome.status, told.escape_ascii())) }
}
