//! Any host process of the hosted machine may be killed at any time: the program that it showed ends as by SIGKILL and the others go on,
//! or, where it was the one that ran, the run ends with one line and a status; nothing of it is left on the host then.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use means::Random;
use rustix::process::{Pid, Signal, kill_process};

use crate::options::Options;
use crate::side::runner_command;

/// Kills in the tests; `SYNTH_KILLS` asks for another number.
const KILLS: usize = 40;
/// How long what is left may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(10);
/// Several processes at each moment, that start, wait, hand bytes on and end.
const LOAD: &str = "while :; do busybox seq 3000 | busybox cat | busybox wc > /dev/null; /bin/true & busybox true; wait; echo round; done";
/// So many rounds after a kill show that the system goes on.
const ROUNDS: usize = 3;

/// Kills one of the host processes after a random time, again and again.
pub fn run(options: &Options) -> Result<(), String> {
    let kills = std::env::var("SYNTH_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    let seed = Random::seed();
    let mut random = Random::new(seed);
    let mut survived = 0;
    for number in 0..kills {
        let goes_on =
            kill_one(options, &mut random).map_err(|error| format!("SYNTH_SEED={seed}, kill {number}: {error}"))?;
        survived += usize::from(goes_on);
    }
    // Of several processes one runs.
    if survived * 4 > kills { Ok(()) } else { Err(format!("SYNTH_SEED={seed}: {survived} of {kills} went on")) }
}

/// Whether the system went on.
fn kill_one(options: &Options, random: &mut Random) -> Result<bool, String> {
    let mut command = runner_command(&options.runner);
    command.args(["--timeout", "30", "sh", "-c", LOAD]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut tool = command.spawn().map_err(|error| error.to_string())?;
    let deadline = Instant::now() + GONE_WITHIN;
    let mut hosts = Vec::new();
    while hosts.len() < 2 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
        hosts = hosts_of(tool.id());
    }
    std::thread::sleep(Duration::from_micros(random.below(30_000)));
    hosts = hosts_of(tool.id());
    if hosts.len() < 2 {
        let _ = tool.kill().and_then(|()| tool.wait());
        return Err(format!("there is one host process: {hosts:?}"));
    }
    let chosen = hosts[random.below(hosts.len() as u64) as usize];
    // One that has just ended by itself is no less gone.
    let _ = Pid::from_raw(chosen as i32).map(|process| kill_process(process, Signal::KILL));
    let goes_on = goes_on(&mut tool);
    if goes_on {
        let _ = Pid::from_raw(tool.id() as i32).map(|process| kill_process(process, Signal::TERM));
    }
    hosts.extend(hosts_of(tool.id()));
    let is_gone = |process: &u32| !PathBuf::from(format!("/proc/{process}/stat")).exists() || is_zombie(*process);
    let deadline = Instant::now() + GONE_WITHIN;
    let mut status = None;
    while Instant::now() < deadline {
        status = tool.try_wait().map_err(|error| error.to_string())?;
        if status.is_some() && hosts.iter().all(is_gone) {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let left: Vec<u32> = hosts.iter().copied().filter(|process| !is_gone(process)).collect();
    match status {
        Some(status) if !status.success() && left.is_empty() => Ok(goes_on),
        ended => {
            let _ = tool.kill().and_then(|()| tool.wait());
            Err(format!("killed {chosen} of {hosts:?}: the tool ended with {ended:?}, left are {left:?}"))
        }
    }
}

/// Whether the load makes more rounds than those that were on their way, or the run ends.
fn goes_on(tool: &mut Child) -> bool {
    let Some(output) = tool.stdout.take() else { return false };
    let (told, rounds) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let seen = BufReader::new(output).lines().map_while(Result::ok);
        seen.for_each(|_| told.send(Instant::now()).unwrap_or_default());
    });
    let killed = Instant::now();
    let after = std::iter::from_fn(|| rounds.recv_timeout(GONE_WITHIN).ok()).filter(|when| *when > killed);
    after.take(ROUNDS + 1).count() > ROUNDS
}

/// The first host process and its children.
fn hosts_of(tool: u32) -> Vec<u32> {
    let all: Vec<(u32, u32)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let process = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let (name, rest) = stat.split_once(')')?;
            let parent = rest.split_whitespace().nth(1)?.parse().ok()?;
            name.ends_with("(synthesis-hoste").then_some((process, parent))
        })
        .collect();
    let Some((first, _)) = all.iter().find(|(_, parent)| *parent == tool) else { return Vec::new() };
    let children = all.iter().filter(|(_, parent)| parent == first).map(|(process, _)| *process);
    core::iter::once(*first).chain(children).collect()
}

fn is_zombie(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.split_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z'))
}
