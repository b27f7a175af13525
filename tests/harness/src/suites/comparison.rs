//! The suites that are lists of cases: the host runs them, Synthesis runs them, and what they left is compared.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::batch::{self, Ran};
use crate::case::{self, Case, Shell};
use crate::compare::compare;
use crate::options::Options;
use crate::programs;
use crate::report::Tally;
use crate::root::{Root, find_program};
use crate::side::Side;

/// Which list of cases.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    /// The data files of `tests/differential`.
    Differential,
    /// `faults.c`, `held.c`.
    Faults,
    /// `signals.c`, `mm.c`, `files.c`, `seals.c`, `resolve.c`, `packets.c`, `vector.c`, `cores.c`, `turns.c`, `closing.c`, `handover.c`,
    /// `futexes.c`, `asked.c`, `raises.c`,
    /// `tasks.c`, `trace.c`,
    /// `pumps.c`, `stale.c`, `transfers.c`, `user_calls.c`, `rights.c`, `capabilities.c`, `processes.c`, `mounts.c`,
    /// `xattrs.c`, `inet.c`.
    Semantics,
    /// `pointers.c`.
    Pointers,
    /// `churn.c`, `churn_ends.c`.
    Leaks,
    /// The dynamic tools of `tests/differential` once more, with `user/memory` in place of the C library's `malloc`.
    Libraries,
}

impl Suite {
    pub(super) fn name(self) -> &'static str {
        match self {
            Suite::Differential => "differential",
            Suite::Faults => "faults",
            Suite::Semantics => "semantics",
            Suite::Pointers => "pointers",
            Suite::Leaks => "leaks",
            Suite::Libraries => "libraries",
        }
    }

    pub(super) fn cases(self, options: &Options) -> Result<Vec<Case>, String> {
        let sources: &[&str] = match self {
            Suite::Differential => return differential_cases(&options.repo),
            Suite::Faults => &["faults", "held"],
            Suite::Semantics => {
                const ALL: &[&str] = &[
                    "signals",
                    "mm",
                    "files",
                    "seals",
                    "resolve",
                    "packets",
                    "epolls",
                    "driven",
                    "shuffle",
                    "bounded",
                    "handles",
                    "inotify",
                    "ipc",
                    "mqueue",
                    "sockets",
                    "vector",
                    "cores",
                    "turns",
                    "closing",
                    "handover",
                    "futexes",
                    "flows",
                    "asked",
                    "raises",
                    "inet",
                    "inet_options",
                    "local_options",
                    "tasks",
                    "trace",
                    "pumps",
                    "stale",
                    "transfers",
                    "user_calls",
                    "rights",
                    "capabilities",
                    "processes",
                    "mounts",
                    "xattrs",
                ];
                // The last six change their users, print them or mount volumes, and programs on the virtual machine are root's.
                if is_root() { ALL } else { &ALL[..ALL.len() - 6] }
            }
            Suite::Pointers => &["pointers"],
            Suite::Leaks => &["churn", "churn_ends"],
            Suite::Libraries => return preloaded_cases(&options.repo),
        };
        let mut cases = Vec::new();
        for source in sources.iter().filter(|source| options.may_choose(&format!("{}/{source}/", self.name()))) {
            cases.extend(program_cases(options, source)?);
        }
        // It becomes another user; see above.
        cases.retain(|case| is_root() || case.name != "sockets/names_with_rights");
        Ok(cases)
    }
}

/// Prints the names of all cases.
///
/// # Errors
/// A sentence when the cases cannot be read or built.
pub fn list(options: &Options) -> Result<(), String> {
    for suite in [Suite::Differential, Suite::Semantics, Suite::Faults, Suite::Pointers, Suite::Leaks, Suite::Libraries]
    {
        for case in suite.cases(options)? {
            println!("{} {}", suite.name(), case.name);
        }
    }
    Ok(())
}

fn differential_cases(repo: &Path) -> Result<Vec<Case>, String> {
    let folder = repo.join("tests/differential");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .map_err(|error| format!("cannot read {}: {error}", folder.display()))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "cases"))
        .collect();
    files.sort();
    let mut cases: Vec<Case> = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        cases.extend(case::parse(&file.display().to_string(), &text)?);
    }
    let mut names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("two cases are named {}", pair[0])),
        None => Ok(cases),
    }
}

/// Builds the library and has every program that is linked dynamically use it.
fn preloaded_cases(repo: &Path) -> Result<Vec<Case>, String> {
    let built = Command::new(repo.join("user/memory/build.sh")).output();
    let built = built.map_err(|error| format!("cannot run user/memory/build.sh: {error}"))?;
    if !built.status.success() {
        return Err(format!("user/memory/build.sh failed:\n{}", String::from_utf8_lossy(&built.stderr)));
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(repo.join("target"), PathBuf::from);
    let library = target.join("user/libsynthmalloc.so").display().to_string();
    let mut cases = differential_cases(repo)?;
    cases.retain(|case| case.shell != Shell::Busybox);
    for case in &mut cases {
        case.uses.push(library.clone());
        case.script.insert_str(0, "export LD_PRELOAD=\"$R/bin/libsynthmalloc.so\"\n");
    }
    Ok(cases)
}

/// A case for each name that the test program prints when it gets `list`, statically and dynamically linked.
///
/// After each comes a small program of its own: the kernel must have survived.
fn program_cases(options: &Options, source: &str) -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    for kind in programs::kinds(source) {
        let program = programs::build(options, source, *kind)?;
        for name in programs::names(&program)? {
            let file = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            cases.push(Case {
                name: format!("{file}/{name}"),
                shell: Shell::Busybox,
                uses: vec![program.display().to_string()],
                files: Vec::new(),
                with: Vec::new(),
                script: format!("\"$R/bin/{file}\" {name}; s=$?\necho still here | cat\nexit $s\n"),
            });
        }
    }
    Ok(cases)
}

/// Runs a suite on both sides and counts each case.
///
/// # Errors
/// A sentence when nothing could be tried.
pub fn run(suite: Suite, options: &Options, tally: &mut Tally) -> Result<(), String> {
    let name = |case: &Case| format!("{}/{}", suite.name(), case.name);
    let mut cases = suite.cases(options)?;
    cases.retain(|case| options.selects(&name(case)));
    cases.retain(|case| match missing(case) {
        Some(program) => {
            tally.skip(&name(case), &format!("{program} is not on this host"));
            false
        }
        None => true,
    });
    if cases.is_empty() {
        return Ok(());
    }
    find_program(batch::DRIVER_SHELL).ok_or("the tests need /bin/busybox: install busybox-static")?;
    let work = options.repo.join("target/synth-tests").join(suite.name());
    let host_home = options.scratch.join(format!("synth-tests-{}-{}", suite.name(), std::process::id()));
    let root = lay_out(&work, &host_home, &cases)?;

    tally.progress(&format!("{}: {} cases on the host", suite.name(), cases.len()));
    let expected = run_side(&Side::host(&host_home), cases.len(), options);
    tally.progress(&format!("{}: {} cases on Synthesis", suite.name(), cases.len()));
    let side = Side::synthesis(options, root.path());
    let actual = run_side(&side, cases.len(), options);
    for ((case, expected), actual) in cases.iter().zip(expected).zip(actual) {
        let homes = (host_home.as_path(), side.home());
        tally.record(&name(case), judge(case, expected, actual, homes));
    }
    if !options.keep {
        let _ = fs::remove_dir_all(&host_home);
    }
    Ok(())
}

fn judge(case: &Case, expected: Ran, actual: Ran, homes: (&Path, &Path)) -> Result<(), String> {
    let result = match (expected, actual) {
        (Ok(expected), Ok(_)) if expected.stdout.is_empty() => {
            Err("it prints nothing on the host, so it shows nothing\n".into())
        }
        (Ok(expected), Ok(actual)) => compare(&expected, &actual, homes),
        (Err(story), _) => Err(format!("the oracle did not finish: {story}")),
        (_, Err(story)) => Err(story),
    };
    result.map_err(|story| {
        let script: String = case.script.lines().take(8).map(|line| format!("  | {line}\n")).collect();
        format!("{} runs:\n{script}{story}", case.shell.word())
    })
}

pub(super) fn missing(case: &Case) -> Option<&str> {
    let shell = if case.shell == Shell::Busybox { "busybox" } else { case.shell.word() };
    case.uses
        .iter()
        .map(String::as_str)
        .chain([shell])
        .find(|program| find_program(program).is_none())
        .or_else(|| case.files.iter().map(String::as_str).find(|file| !Path::new(file).exists()))
}

/// The guest's root with all that the cases use, and the same folder of tests on both sides.
pub(super) fn lay_out(work: &Path, host_home: &Path, cases: &[Case]) -> Result<Root, String> {
    let mut root = Root::create(&work.join("root"))?;
    root.add_program(batch::DRIVER_SHELL)?;
    let guest_home = root.home();
    for home in [guest_home.as_path(), host_home] {
        batch::lay_out(home, cases)?;
    }
    for case in cases {
        if case.shell != Shell::Busybox {
            root.add_program(case.shell.word())?;
        }
        for program in &case.uses {
            add_program(&mut root, &[&guest_home, host_home], program)?;
        }
        for file in &case.files {
            root.add_files(Path::new(file))?;
        }
    }
    Ok(root)
}

/// A program of the host goes where it is on the host; a test program, given by its path, goes to `bin` of the tests.
fn add_program(root: &mut Root, homes: &[&Path], program: &str) -> Result<(), String> {
    root.add_program_libraries(program)?;
    let path = Path::new(program);
    let Some(file) = path.file_name().filter(|_| path.is_absolute()) else { return root.add_program(program) };
    for home in homes {
        let target = home.join("bin").join(file);
        if !target.exists() {
            fs::copy(path, &target).map_err(|error| format!("cannot copy {program}: {error}"))?;
        }
    }
    Ok(())
}

/// Splits the cases over the jobs and puts the results back in order.
pub(super) fn run_side(side: &Side, count: usize, options: &Options) -> Vec<Ran> {
    let numbers: Vec<usize> = (0..count).collect();
    let jobs = if options.own_boot { count } else { options.jobs.min(count) };
    let per_job = count.div_ceil(jobs);
    let queue = std::sync::Mutex::new(numbers.chunks(per_job));
    let results = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.min(jobs) {
            scope.spawn(|| {
                loop {
                    let Some(chunk) = queue.lock().ok().and_then(|mut queue| queue.next()) else { return };
                    let ran = batch::run(side, chunk, options.case_timeout);
                    if let Ok(mut results) = results.lock() {
                        results.extend(ran);
                    }
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_by_key(|&(number, _)| number);
    results.into_iter().map(|(_, ran)| ran).collect()
}

/// Whether the host's side of a comparison runs as root.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|about| std::os::unix::fs::MetadataExt::uid(&about) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of the shells behind which a command follows.
    const KEYWORDS: &str = "if then else elif while until do ! time exec command eval";
    /// What dash and bash do themselves.
    const BUILT_IN: &str = "fi for done case esac in function echo printf test [ [[ true false kill pwd cd set unset export read exit \
        return shift trap wait umask ulimit type hash times local alias unalias jobs getopts readonly break continue declare typeset let \
        mapfile readarray shopt builtin caller fg bg . : source";

    /// The script without what is quoted and without the text of here-documents.
    fn bare(script: &str) -> String {
        let mut lines = script.lines();
        let mut text = String::new();
        while let Some(line) = lines.next() {
            let mut quote = None;
            for letter in line.chars() {
                match quote {
                    Some(open) => quote = Some(open).filter(|_| letter != open),
                    None if letter == '\'' || letter == '"' => quote = Some(letter),
                    None => text.push(letter),
                }
            }
            text.push('\n');
            if let Some((_, word)) = line.split_once("<<").filter(|(_, rest)| !rest.starts_with('<')) {
                let end: String = word
                    .chars()
                    .skip_while(|c| "-'\"\\".contains(*c))
                    .take_while(char::is_ascii_alphanumeric)
                    .collect();
                lines.by_ref().find(|line| line.trim() == end);
            }
        }
        text
    }

    /// Programs that start the program which they are told.
    const STARTERS: [&str; 7] = ["env", "nice", "nohup", "setsid", "strace", "timeout", "xargs"];

    /// The words where a command may begin, and those that name one for a program that starts others.
    fn commands(script: &str) -> Vec<String> {
        let text = bare(script);
        let mut found = Vec::new();
        for piece in text.split([';', '|', '&', '(', ')', '`', '\n', '{', '}']) {
            let is_one_of = |list: &str, word: &str| list.split_whitespace().any(|known| known == word);
            let is_before = |word: &&str| word.contains('=') || is_one_of(KEYWORDS, word);
            let mut words = piece.split_whitespace().skip_while(is_before).peekable();
            let mut is_first = true;
            while let Some(command) = words.next() {
                if !(is_first && is_one_of(BUILT_IN, command)) {
                    found.push(command.to_string());
                }
                is_first = false;
                if !STARTERS.contains(&command) {
                    break;
                }
                let is_setting =
                    |word: &&str| word.starts_with(|c: char| c == '-' || c.is_ascii_digit()) || word.contains('=');
                while words.next_if(is_setting).is_some() {}
            }
        }
        found
    }

    /// Otherwise a case passes beside others that pack what it uses, and fails where `--filter` takes it alone.
    #[test]
    fn every_case_names_the_programs_that_it_uses() {
        let repo = PathBuf::from(env!("SYNTHESIS_ROOT"));
        let mut wrong = Vec::new();
        for case in differential_cases(&repo).unwrap().iter().filter(|case| case.shell != Shell::Busybox) {
            let name_of = |path: &str| path.rsplit('/').next().map(String::from).unwrap_or_default();
            let mut named: Vec<String> = case.uses.iter().chain(&case.files).map(|path| name_of(path)).collect();
            named.push(case.shell.word().into());
            for command in commands(&case.script) {
                let program = name_of(&command);
                if find_program(&program).is_some() && !named.contains(&program) {
                    wrong.push(format!("{} uses {program}", case.name));
                }
            }
        }
        assert!(wrong.is_empty(), "not in @uses: {wrong:#?}");
    }
}
