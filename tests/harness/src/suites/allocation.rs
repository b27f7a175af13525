//! Programs of the other suites while allocations of the kernel fail: in images that are built for it (`bin/*/build.sh --failing`),
//! `tests/programs/starving.c` runs each case with several seeds. A program may work, see an error, or be ended. The kernel may not
//! panic, nor hang, nor hold more afterwards than before.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::streams::tool_is_there;
use crate::options::Options;
use crate::process;
use crate::programs::{self, Linking};
use crate::report::Tally;
use crate::side::runner_command;

/// Test programs: all cases of each are tried.
const PROGRAMS: [&str; 20] = [
    "files",
    "packets",
    "sockets",
    "epolls",
    "inotify",
    "ipc",
    "mqueue",
    "signals",
    "mm",
    "tasks",
    "trace",
    "closing",
    "seals",
    "xattrs",
    "mounts",
    "rights",
    "processes",
    "transfers",
    "user_calls",
    "vector",
];

/// A shell with pipes, jobs, folders and what /proc shows.
const SHELL: &str = "mkdir -p a/b; for i in 1 2 3 4; do echo $i > a/$i; ln -s $i a/b/l$i; done; cat a/* | sort -r | head -n 2; \
                     (sleep 0 & wait); find . -type l | wc -l; cat /proc/self/maps /proc/self/status /proc/mounts >/dev/null; \
                     ls -l /proc/self/fd; tar cf t.tar a; tar tf t.tar; rm -rf a";

/// Seeds of each case; four have one rate each. `SYNTH_SEEDS=FIRST:COUNT` asks for others.
const SEEDS: (u32, u32) = (1, 8);
const LIMIT: Duration = Duration::from_secs(900);

/// Runs all programs.
///
/// # Errors
/// A sentence when the tool is not there, or the image or a program cannot be built.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    tool_is_there(options)?;
    let image = build_image(options)?;
    let starving = programs::build(options, "starving", Linking::Static)?;
    for source in PROGRAMS {
        let name = format!("allocation/{source}");
        if options.selects(&name) {
            let program = programs::build(options, source, Linking::Static)?;
            let words = [program.display().to_string()];
            tally.record(&name, starve(options, &image, &starving, &program, &words));
        }
    }
    let name = "allocation/shell";
    if options.selects(name) {
        let busybox = Path::new("/bin/busybox");
        let words = ["--", "/bin/busybox", "sh", "-c", SHELL].map(String::from);
        tally.record(name, starve(options, &image, &starving, busybox, &words));
    }
    Ok(())
}

fn build_image(options: &Options) -> Result<PathBuf, String> {
    let machine = if options.is_hosted() { "hosted" } else { "pc" };
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

fn starve(options: &Options, image: &Path, starving: &Path, program: &Path, words: &[String]) -> Result<(), String> {
    let (first, count) = seeds_or(SEEDS);
    let mut command = runner_command(&options.runner);
    // Instructions count as time, so that a failure comes again.
    let of_machine: &[&str] = if options.is_hosted() { &["--memory", "/tmp"] } else { &["--icount", "--mem", "128M"] };
    command.args(of_machine).arg("--kernel").arg(image);
    command.arg("--with").arg(starving).arg("--with").arg(program);
    command.arg(starving).args([first, count].map(|number| number.to_string())).args(words);
    let again = format!("{command:?}");
    let outcome = process::run(command, Vec::new(), LIMIT)?;
    match outcome.status {
        0 => Ok(()),
        status => Err(format!(
            "seeds {first} to {}: status {status}; again with\n{again}\n{}{}",
            first + count - 1,
            last_lines(&outcome.stdout),
            last_lines(&outcome.stderr)
        )),
    }
}

fn last_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(24)..].iter().map(|line| format!("{line}\n")).collect()
}
