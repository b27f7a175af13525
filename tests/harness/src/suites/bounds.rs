//! What bounds the work of a call (R9): operations on twice as many objects cost about twice as much, and no call keeps interrupts
//! out for longer than `docs/bounds.md` says.
//!
//! Both count instructions, in an image that is built for it (`bin/pc/build.sh --bounds`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::comparison::{self, Suite};
use crate::options::Options;
use crate::programs::{self, Linking};
use crate::report::Tally;
use crate::side::Side;

/// Twice as many may cost so much more: trees become deeper, lists are moved.
const GROWTH_MOST: f64 = 2.6;

/// Instructions for which a call may keep interrupts out if `docs/bounds.md` does not say otherwise: 50 us at 1 GHz.
const STRETCH_MOST: u64 = 50_000;

/// Where the image keeps its table.
const TABLE: &str = "/proc/synthesis/bounds";

/// The suites whose programs are measured. Theirs is every call, in the usual and in strange ways.
const MEASURED: [Suite; 3] = [Suite::Semantics, Suite::Faults, Suite::Pointers];

/// Checks growth, then the stretches of the programs of other suites.
///
/// # Errors
/// A sentence when the image cannot be built or nothing could be tried.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    if options.is_hosted() {
        tally.skip("bounds", "the host's scheduler decides what a hosted call takes");
        return Ok(());
    }
    let mut counted = options.clone();
    counted.runner.push("--icount".into());
    // Another image, an older one, may be measured by hand.
    if !counted.runner.iter().any(|word| word == "--kernel") {
        let image = build_image(options)?;
        counted.runner.extend(["--kernel".into(), image.display().to_string()]);
    }
    counted.filter = None;
    check_growth(&counted, options, tally)?;
    if options.selects("bounds/stretches") {
        check_stretches(&counted, tally)?;
    }
    Ok(())
}

fn build_image(options: &Options) -> Result<PathBuf, String> {
    let is_develop = std::env::var("SYNTH_KERNELS").is_ok_and(|kind| kind == "develop");
    let (folder, profile) = if is_develop { ("pc-bounds-develop", "develop") } else { ("pc-bounds", "release") };
    let mut build = Command::new(options.repo.join("bin/pc/build.sh"));
    build.arg("--bounds").args(is_develop.then_some("--develop"));
    let built = build.output().map_err(|error| format!("cannot run bin/pc/build.sh: {error}"))?;
    if !built.status.success() {
        return Err(format!("the measuring image does not build:\n{}", String::from_utf8_lossy(&built.stderr)));
    }
    Ok(options.repo.join(format!("target/{folder}/x86_64-unknown-linux-gnu/{profile}/synthesis-pc")))
}

/// Each operation of `growth.c` on so many objects and on twice as many, each in a boot of its own.
fn check_growth(counted: &Options, options: &Options, tally: &mut Tally) -> Result<(), String> {
    let program = programs::build(options, "growth", Linking::Static)?;
    for line in programs::names(&program)? {
        let Some((name, count)) = line.split_once(' ') else { return Err(format!("growth.c lists {line:?}")) };
        let case = format!("bounds/growth/{name}");
        if !options.selects(&case) {
            continue;
        }
        let count: u64 = count.parse().map_err(|_| format!("growth.c lists {line:?}"))?;
        let result = cost(counted, &program, name, count).and_then(|once| {
            let twice = cost(counted, &program, name, 2 * count)?;
            let growth = twice as f64 / once.max(1) as f64;
            let story = format!("{name}: {once} instructions for {count}, {twice} for {}: x {growth:.2}", 2 * count);
            tally.progress(&story);
            if growth <= GROWTH_MOST { Ok(()) } else { Err(format!("{story}, and {GROWTH_MOST} is the most\n")) }
        });
        tally.record(&case, result);
    }
    Ok(())
}

fn cost(counted: &Options, program: &Path, name: &str, count: u64) -> Result<u64, String> {
    let mut command = crate::side::runner_command(&counted.runner);
    let limit = counted.case_timeout.as_secs().to_string();
    command.args(["--mem", &counted.mem, "--timeout", &limit]).arg(program).args([name, &count.to_string()]);
    let output = command.output().map_err(|error| format!("cannot run the tool: {error}\n"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| {
        let story = String::from_utf8_lossy(&output.stderr);
        format!("{name} {count} printed {text:?} and ended with {}: {}\n", output.status, story.trim())
    })
}

/// The longest stretch of a cause, how many there were, and a case with the longest.
#[derive(Clone)]
struct Stretch {
    longest: u64,
    count: u64,
    case: String,
}

/// Runs the programs, puts their tables together and compares them with the document's limits.
fn check_stretches(counted: &Options, tally: &mut Tally) -> Result<(), String> {
    let mut all: BTreeMap<String, Stretch> = BTreeMap::new();
    for suite in MEASURED {
        tally.progress(&format!("bounds: {}", suite.name()));
        for (case, table) in measure(suite, counted)? {
            for line in table.lines() {
                note(&mut all, &case, line);
            }
        }
    }
    let mut rows: Vec<(&String, &Stretch)> = all.iter().collect();
    rows.sort_by_key(|(_, stretch)| std::cmp::Reverse(stretch.longest));
    let text: String = rows
        .iter()
        .map(|(cause, stretch)| format!("{} {} {cause} ({})\n", stretch.longest, stretch.count, stretch.case))
        .collect();
    let file = counted.repo.join("target/synth-tests/bounds.txt");
    fs::write(&file, &text).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    let limits = limits(&counted.repo)?;
    for (cause, stretch) in rows {
        let most = limits.get(cause).copied().unwrap_or(STRETCH_MOST);
        let result = if stretch.longest <= most {
            Ok(())
        } else {
            let Stretch { longest, count, case } = stretch;
            Err(format!("{longest} instructions without a safe point, in {case} (of {count}); {most} is the most\n"))
        };
        tally.record(&format!("bounds/stretches/{cause}"), result);
    }
    Ok(())
}

/// What the image says after each case.
fn measure(suite: Suite, counted: &Options) -> Result<Vec<(String, String)>, String> {
    let mut cases = suite.cases(counted)?;
    cases.retain(|case| comparison::missing(case).is_none());
    for case in &mut cases {
        let body = case.script.replace("exit $s\n", "");
        case.script = format!("({body}) >/dev/null 2>&1 </dev/null\n/bin/busybox cat {TABLE}\n");
    }
    let work = counted.repo.join("target/synth-tests/bounds");
    let home = counted.scratch.join(format!("synth-tests-bounds-{}", std::process::id()));
    let root = comparison::lay_out(&work, &home, &cases)?;
    let ran = comparison::run_side(&Side::synthesis(counted, root.path()), cases.len(), counted);
    let _ = fs::remove_dir_all(&home);
    // A case that fails is another suite's business.
    let tables = cases.iter().zip(ran).filter_map(|(case, ran)| {
        let outcome = ran.ok()?;
        Some((format!("{}/{}", suite.name(), case.name), String::from_utf8_lossy(&outcome.stdout).into_owned()))
    });
    let tables: Vec<(String, String)> = tables.collect();
    if tables.is_empty() { Err(format!("no case of {} came to its end", suite.name())) } else { Ok(tables) }
}

/// A line of the image's table: the longest, how many, of what.
fn note(all: &mut BTreeMap<String, Stretch>, case: &str, line: &str) {
    let mut words = line.splitn(3, ' ');
    let mut number = || words.next().and_then(|word| word.parse::<u64>().ok());
    let (Some(longest), Some(count)) = (number(), number()) else { return };
    let Some(cause) = words.next() else { return };
    let known = all.entry(cause.into()).or_insert_with(|| Stretch { longest: 0, count: 0, case: String::new() });
    // A boot's table grows from case to case.
    known.count = known.count.max(count);
    if longest > known.longest {
        *known = Stretch { longest, case: case.into(), ..known.clone() };
    }
}

/// The limits that `docs/bounds.md` states: rows of a table whose first column is a call and whose second is a number.
fn limits(repo: &Path) -> Result<BTreeMap<String, u64>, String> {
    let file = repo.join("docs/bounds.md");
    let text = fs::read_to_string(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let row = |line: &str| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        let name = cells.next()?.trim_matches('`').to_string();
        let most = cells.next()?.replace(',', "").parse().ok()?;
        Some((name, most))
    };
    // Other tables follow the one of the limits: of two rows the first counts.
    Ok(text.lines().rev().filter_map(row).collect())
}
