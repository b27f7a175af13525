//! The cases of the other suites while allocations of the kernel fail: in images that are built for it (`bin/*/build.sh --failing`),
//! `tests/programs/starving.c` runs each case with several seeds. A program may work, see an error, or be ended. The kernel may not
//! panic, nor hang, nor hold more afterwards than before.
//!
//! Many cases share a boot. One that ends or hangs the machine fails by name, and those after it get a new boot.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use super::comparison::{self, Suite};
use super::streams::tool_is_there;
use crate::case::Case;
use crate::options::Options;
use crate::process::{Event, Running, Silence};
use crate::programs::{self, Linking};
use crate::report::Tally;
use crate::side::Side;

/// Whose cases are tried.
const SUITES: [Suite; 5] = [Suite::Semantics, Suite::Faults, Suite::Pointers, Suite::Leaks, Suite::Differential];

/// What the usual test run tries: something of each family of calls, and what once failed.
const CHOICE: &[&str] =
    &["semantics/seals/", "semantics/mounts/", "semantics/tasks/", "semantics/processes/", "differential/dash/"];

/// The first seed and how many each case gets; five in a row have a rate each. `SYNTH_SEEDS=FIRST:COUNT` asks for others.
const SEEDS: (u32, u32) = (1, 5);
const FEW_SEEDS: (u32, u32) = (2, 2);

/// A boot, and a case with all its seeds, may take so long.
const BOOT_LIMIT: Duration = Duration::from_secs(60);
const CASE_LIMIT: Duration = Duration::from_secs(300);

/// How one case is run: as in the other suites, but its memory begins to fail when all is prepared.
const SCRIPT: &str = r#"R=$1; i=$2; B=/bin/busybox
while read f; do $B cp "$R/in/$f" .; done <"$R/cases/$i.with"
read shell <"$R/cases/$i.shell"
path=/usr/bin:/bin:$R/bin
case $shell in
busybox) set -- $B sh; path=$R/bb:$R/bin ;;
*) set -- /bin/$shell ;;
esac
: >started
[ -z "$SEED" ] || echo "$SEED" >/proc/synthesis/failing
exec $B env -i PATH="$path" LC_ALL=C TZ=UTC HOME=/ R="$R" "$@" "$R/cases/$i.sh"
"#;

/// Runs all cases.
///
/// # Errors
/// A sentence when the tool is not there, or the image or a program cannot be built.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    run_with(options, SEEDS, tally)
}

/// Runs a choice of them with few seeds.
///
/// # Errors
/// As [`run`].
pub fn run_choice(options: &Options, tally: &mut Tally) -> Result<(), String> {
    let mut options = options.clone();
    options.choice = CHOICE;
    run_with(&options, FEW_SEEDS, tally)
}

fn run_with(options: &Options, seeds: (u32, u32), tally: &mut Tally) -> Result<(), String> {
    tool_is_there(options)?;
    let mut starved = options.clone();
    // Instructions count as time, so that a failure comes again.
    let of_machine: &[&str] = if options.is_hosted() { &["--memory", "/tmp"] } else { &["--icount"] };
    starved.runner.extend(of_machine.iter().map(|word| String::from(*word)));
    starved.runner.extend(["--kernel".into(), build_image(options)?.display().to_string()]);
    let starving = programs::build(options, "starving", Linking::Static)?;
    for suite in SUITES {
        let name = |case: &Case| format!("{}/{}", suite.name(), case.name);
        let mut cases = suite.cases(options)?;
        cases.retain(|case| options.selects(&name(case)) && comparison::missing(case).is_none());
        if cases.is_empty() {
            continue;
        }
        tally.progress(&format!("allocation: {} cases of {}", cases.len(), suite.name()));
        cases.iter_mut().for_each(|case| case.uses.push(starving.display().to_string()));
        let work = options.repo.join("target/synth-tests").join(format!("allocation-{}", machine(options)));
        let home = options.scratch.join(format!("synth-tests-allocation-{}", std::process::id()));
        let root = comparison::lay_out(&work, &home, &cases)?;
        // The host runs nothing here.
        let _ = std::fs::remove_dir_all(&home);
        let script = root.home().join("starve.sh");
        std::fs::write(&script, SCRIPT).map_err(|error| format!("cannot write {}: {error}", script.display()))?;
        let table = Table { side: Side::synthesis(&starved, root.path()), seeds: seeds_or(seeds) };
        table.starve(&cases, |case, result| tally.record(&format!("allocation/{}", name(case)), result));
    }
    Ok(())
}

fn machine(options: &Options) -> &'static str {
    if options.is_hosted() { "hosted" } else { "pc" }
}

fn build_image(options: &Options) -> Result<PathBuf, String> {
    let machine = machine(options);
    let script = options.repo.join("bin").join(machine).join("build.sh");
    let built = Command::new("sh").arg(&script).args(["--failing", "--develop"]).output();
    let built = built.map_err(|error| format!("cannot run {}: {error}", script.display()))?;
    if !built.status.success() {
        return Err(format!("{} --failing failed:\n{}", script.display(), String::from_utf8_lossy(&built.stderr)));
    }
    let folder = format!("target/{machine}-failing-develop/x86_64-unknown-linux-gnu/develop/synthesis-{machine}");
    Ok(options.repo.join(folder))
}

/// The first seed and how many: `SYNTH_SEEDS`, or `usual`.
pub(super) fn seeds_or(usual: (u32, u32)) -> (u32, u32) {
    let asked = std::env::var("SYNTH_SEEDS").ok();
    let parsed = asked.as_deref().and_then(|text| text.split_once(':'));
    parsed.and_then(|(first, count)| Some((first.parse().ok()?, count.parse().ok()?))).unwrap_or(usual)
}

/// A laid table, and nothing to eat.
struct Table {
    side: Side,
    seeds: (u32, u32),
}

impl Table {
    /// Runs the cases in as few boots as it takes, and says of each what became of it.
    fn starve(&self, cases: &[Case], mut tell: impl FnMut(&Case, Result<(), String>)) {
        let mut left = 0..cases.len();
        while !left.is_empty() {
            let (done, story) = self.one_boot(left.clone());
            for number in left.by_ref().take(done) {
                tell(&cases[number], Ok(()));
            }
            let stuck = story.and_then(|story| Some((left.next()?, story)));
            if let Some((number, story)) = stuck {
                tell(&cases[number], Err(format!("{story}\nagain with\n{:?}\n", self.command(number..number + 1))));
            }
        }
    }

    fn command(&self, numbers: std::ops::Range<usize>) -> Command {
        let home = self.side.home().display();
        let (first, count) = self.seeds;
        let mut words = vec![first.to_string(), count.to_string(), home.to_string()];
        words.extend(numbers.clone().map(|number| number.to_string()));
        let limit = BOOT_LIMIT + CASE_LIMIT * numbers.len() as u32;
        self.side.command(&format!("{home}/bin/starving"), &words, limit)
    }

    /// How many cases came to their end, and why the next one did not.
    fn one_boot(&self, numbers: std::ops::Range<usize>) -> (usize, Option<String>) {
        let count = numbers.len();
        let mut running = match Running::start(self.command(numbers), Vec::new()) {
            Ok(running) => running,
            Err(story) => return (0, Some(story)),
        };
        let (mut stdout, mut stderr, mut done) = (Vec::new(), Vec::new(), 0);
        let mut deadline = Instant::now() + BOOT_LIMIT + CASE_LIMIT;
        let reason = loop {
            match running.next(deadline) {
                Ok(Event::Stdout(bytes)) => stdout.extend(bytes),
                Ok(Event::Stderr(bytes)) => stderr.extend(bytes),
                Ok(Event::StreamEnd) => {}
                Err(Silence::TimedOut) => {
                    running.kill();
                    break Some(format!("hangs, ended after {} s", CASE_LIMIT.as_secs()));
                }
                Err(Silence::Ended) => {
                    let status = running.wait();
                    break (status != 0 || done < count).then(|| format!("ended with status {status}"));
                }
            }
            let now = String::from_utf8_lossy(&stdout).lines().filter(|line| line.starts_with("done ")).count();
            if now > done {
                (done, deadline) = (now, Instant::now() + CASE_LIMIT);
            }
        };
        let story = reason.map(|reason| format!("{reason}\n{}{}", last_lines(&stdout), last_lines(&stderr)));
        (done.min(count), story)
    }
}

fn last_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("done ")).collect();
    lines[lines.len().saturating_sub(24)..].iter().map(|line| format!("{line}\n")).collect()
}
