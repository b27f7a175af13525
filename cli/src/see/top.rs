//! `synth top`: the gauges of a running system, live.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use bootimage::inspect::{Task, opcode};
use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::client::Client;
use super::trace::{Counter, interrupted};
use super::{Which, ps};
use crate::failure::Failure;

#[derive(Args, Debug)]
pub struct TopOptions {
    /// Print one picture and end
    #[arg(long)]
    pub once: bool,
    /// Print each picture as an object on a line of its own: gauges and calls as they stand, the threads as `ps --json`
    #[arg(long)]
    pub json: bool,
    /// Seconds from picture to picture
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    pub every: f64,
    /// Count synthesized calls, too, by tracing them; without it only calls done in Rust are counted
    #[arg(long)]
    pub calls: bool,
    #[command(flatten)]
    pub which: Which,
}

/// Gauges of the kernel that come before the calls.
const KERNEL_GAUGES: usize = 12;
/// Calls that are shown.
const CALLS_SHOWN: usize = 12;
/// Threads that are shown.
const TASKS_SHOWN: usize = 12;

/// All gauges at one moment.
#[derive(Clone, Default)]
struct Sample {
    kernel: BTreeMap<String, u64>,
    calls: BTreeMap<String, u64>,
    tasks: Vec<Task>,
}

impl Sample {
    fn line(&self) -> String {
        let threads: Vec<_> = self.tasks.iter().map(ps::as_json).collect();
        serde_json::json!({ "gauges": self.kernel, "calls": self.calls, "threads": threads }).to_string() + "\n"
    }
}

/// The keys that people press while they look: q ends, as in other programs of this name.
struct Keys {
    /// The terminal's modes to go back to.
    before: Option<Termios>,
}

impl Keys {
    /// Takes keys one by one, if there is a terminal to press them at.
    fn listen(is_screen: bool) -> Keys {
        let stdin = rustix::stdio::stdin();
        let before = tcgetattr(stdin).ok().filter(|_| is_screen);
        if let Some(before) = &before {
            let mut modes = before.clone();
            modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            let _ = tcsetattr(stdin, OptionalActions::Now, &modes);
        }
        Keys { before }
    }

    fn asked_to_end(&self) -> bool {
        let stdin = rustix::stdio::stdin();
        let mut key = [0];
        while self.before.is_some()
            && poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&Timespec::default())) == Ok(1)
            && rustix::io::read(stdin, &mut key) == Ok(1)
        {
            if matches!(key[0], b'q' | b'Q') {
                return true;
            }
        }
        false
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, before);
        }
    }
}

pub fn top(client: &mut Client, options: &TopOptions) -> Result<u8, Failure> {
    let is_over = interrupted()?;
    let every = Duration::try_from_secs_f64(options.every.clamp(0.05, 3600.0)).unwrap_or(Duration::from_secs(1));
    let mut counter = if options.calls { Some(Counter::begin(client)?) } else { None };
    let result = show(client, options, every, &mut counter, &|| is_over.load(Ordering::Relaxed));
    if counter.is_some() {
        client.ask(opcode::TRACE_END, &[])?;
        client.ask(opcode::TRACE_END, &[])?;
    }
    result.map(|()| 0)
}

fn show(
    client: &mut Client,
    options: &TopOptions,
    every: Duration,
    counter: &mut Option<Counter>,
    is_over: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    let is_screen = std::io::stdout().is_terminal() && !options.once && !options.json;
    let keys = Keys::listen(is_screen);
    let is_over = &|| is_over() || keys.asked_to_end();
    let mut before = sample(client, counter)?;
    loop {
        wait(client, every, counter, is_over)?;
        if is_over() {
            return Ok(());
        }
        let now = sample(client, counter)?;
        let picture = if options.json { now.line() } else { picture(&before, &now, options.calls) };
        // Home, then clear what a longer picture left.
        super::print(&if is_screen { format!("\x1b[H\x1b[J{picture}") } else { picture });
        if options.once {
            return Ok(());
        }
        before = now;
    }
}

/// Waits, and counts meanwhile.
fn wait(
    client: &mut Client,
    every: Duration,
    counter: &mut Option<Counter>,
    is_over: &dyn Fn() -> bool,
) -> Result<(), Failure> {
    let end = Instant::now() + every;
    while Instant::now() < end && !is_over() {
        let more = match counter {
            Some(counter) => counter.count(client)?,
            None => false,
        };
        if !more {
            sleep(Duration::from_millis(20).min(end.saturating_duration_since(Instant::now())));
        }
    }
    Ok(())
}

/// Gauges by name.
pub type Gauges = BTreeMap<String, u64>;

/// Gauges of the kernel, and calls done in Rust.
pub fn gauges(client: &mut Client) -> Result<(Gauges, Gauges), Failure> {
    let sample = sample(client, &mut None)?;
    Ok((sample.kernel, sample.calls))
}

fn sample(client: &mut Client, counter: &mut Option<Counter>) -> Result<Sample, Failure> {
    let bytes = client.ask(opcode::GAUGES, &[])?.unwrap_or_default();
    let get = |from: &mut bootimage::inspect::Fields<'_>| {
        Some((String::from_utf8_lossy(from.text()?).into_owned(), from.u64()?))
    };
    let mut gauges = client.items(&bytes, get)?;
    let calls = gauges.split_off(KERNEL_GAUGES.min(gauges.len()));
    let calls = match counter {
        Some(counter) => counter.calls.clone(),
        None => calls.into_iter().collect(),
    };
    Ok(Sample { kernel: gauges.into_iter().collect(), calls, tasks: ps::tasks(client)? })
}

/// One picture: what is, and how fast what grows has grown.
fn picture(before: &Sample, now: &Sample, counts_all: bool) -> String {
    let value = |name: &str| now.kernel.get(name).copied().unwrap_or(0);
    let seconds = (value("now_ns").saturating_sub(before.kernel.get("now_ns").copied().unwrap_or(0))) as f64 / 1e9;
    let seconds = if seconds > 0.0 { seconds } else { 1.0 };
    let rate = |old: Option<&u64>, new: u64| new.saturating_sub(old.copied().unwrap_or(0)) as f64 / seconds;
    let kernel = |name: &str| rate(before.kernel.get(name), value(name));
    let mut text = String::new();
    let frames = |name: &str| value(name) * 4 / 1024;
    let _ = writeln!(
        text,
        "up {}   threads {} ({} ready)   memory {} of {} MiB free",
        ps::time(value("now_ns")),
        value("tasks"),
        value("ready"),
        frames("free_frames"),
        frames("total_frames")
    );
    let _ = writeln!(
        text,
        "code {} bytes in {} routines, {} KiB can be held   syntheses {:.0}/s",
        value("code_bytes"),
        value("routines"),
        value("code_capacity") / 1024,
        kernel("syntheses")
    );
    let _ = writeln!(
        text,
        "switches {:.0}/s, {:.0}/s by the timer alone   new threads {:.1}/s",
        kernel("switches"),
        kernel("preemptions"),
        kernel("created")
    );
    text += &call_lines(before, now, seconds, counts_all);
    text + &task_lines(before, now, seconds)
}

fn call_lines(before: &Sample, now: &Sample, seconds: f64, counts_all: bool) -> String {
    let delta = |name: &String, new: &u64| new.saturating_sub(before.calls.get(name).copied().unwrap_or(0));
    let mut calls: Vec<_> = now.calls.iter().map(|(name, new)| (delta(name, new), name)).collect();
    calls.retain(|(count, _)| *count > 0);
    calls.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let all: u64 = calls.iter().map(|(count, _)| count).sum();
    let which = if counts_all { "calls" } else { "calls done in Rust" };
    let mut text = format!("\n{which}: {:.0}/s\n", all as f64 / seconds);
    for pair in calls[..calls.len().min(CALLS_SHOWN)].chunks(4) {
        for (count, name) in pair {
            let _ = write!(text, "  {name:<14}{:>8.0}/s", *count as f64 / seconds);
        }
        text.push('\n');
    }
    text
}

fn task_lines(before: &Sample, now: &Sample, seconds: f64) -> String {
    let old = |task: &Task| before.tasks.iter().find(|old| old.thread == task.thread);
    let share = |task: &Task| {
        let ran = task.ran_ns.saturating_sub(old(task).map_or(0, |old| old.ran_ns));
        ran as f64 / 1e7 / seconds
    };
    let calls = |task: &Task| task.calls.saturating_sub(old(task).map_or(0, |old| old.calls)) as f64 / seconds;
    let mut tasks: Vec<_> = now.tasks.iter().map(|task| (share(task), task)).collect();
    tasks.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.thread.cmp(&b.1.thread)));
    let mut text = String::from("\n  TID STATE      CPU    RUST CALLS  QUANTUM NAME             WAITS FOR\n");
    for (share, task) in tasks.into_iter().take(TASKS_SHOWN) {
        let _ = writeln!(
            text,
            "{:>5} {:<8} {share:>5.1} % {:>9.0}/s {:>5} us {:<16} {}",
            task.thread,
            ps::state_name(task.state),
            calls(task),
            task.quantum_ns / 1000,
            String::from_utf8_lossy(&task.name),
            ps::waits_for(task)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(now_ns: u64, switches: u64, reads: u64) -> Sample {
        let kernel = [("now_ns", now_ns), ("switches", switches), ("tasks", 1)];
        let task = Task { thread: 7, ran_ns: now_ns / 2, call: u16::MAX, name: b"cat".to_vec(), ..Task::default() };
        Sample {
            kernel: kernel.into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
            calls: [("read".to_string(), reads)].into(),
            tasks: vec![task],
        }
    }

    #[test]
    fn what_grows_is_shown_for_each_second() {
        let text = picture(&at(0, 10, 100), &at(2_000_000_000, 30, 1100), false);
        assert!(text.contains("switches 10/s"), "{text}");
        assert!(text.contains("read               500/s"), "{text}");
        assert!(text.contains("    7 running   50.0 %"), "{text}");
    }
}
