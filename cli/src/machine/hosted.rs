//! One life of the hosted machine: a child process that has this one's standard descriptors.

use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use signal_hook::consts::{SIGCONT, SIGWINCH};

use super::epilogue::{Ending, Last};
use super::session::{Console, Event, FATAL, Wishes, inherited_pair, listen, send_window_size, set_up_failure};
use super::{relay, terminal};
use crate::failure::{Failure, UNAVAILABLE};

/// How the hosted machine is made.
pub struct Hosted<'a> {
    pub image: &'a Path,
    /// The memory file with the boot archive, which becomes the machine's memory.
    pub archive: RawFd,
    /// Memory behind the archive.
    pub memory_mib: u64,
    pub tsc_hz: u64,
    /// Tops of the trees that the machine sees of the host, inheritable descriptors.
    pub trees: Vec<RawFd>,
    /// The machine stops before its first page is mapped, until a debugger continues it.
    pub wait_for_debugger: bool,
    /// Calls and call sites are counted.
    pub counts: bool,
    /// Synthesized code is named for `perf report`.
    pub perf_map: bool,
    /// Words for the image's own command line.
    pub arguments: &'a str,
}

/// Starts the machine, follows it to its end, and returns the exit status for the tool.
pub fn run(machine: &Hosted<'_>, console: Console, wishes: &Wishes) -> Result<u8, Failure> {
    let failed = set_up_failure;
    let Console { terminals, events, inbox, is_in_session } = console;
    is_in_session.store(true, Ordering::Relaxed);
    let (ours, machines) = inherited_pair().map_err(failed)?;
    // Whoever sees what the program says may ask already.
    let askers = listen(ours.try_clone().map_err(failed)?, wishes.verbose);
    let mut child = start(machine, machines.as_raw_fd())?;
    drop(machines);
    if machine.wait_for_debugger {
        terminal::say(how_to_attach(machine.image, child.id()).as_bytes());
    }
    let control = ours.try_clone().map_err(failed)?;
    relay::control(ours, wishes.clone(), events, askers).map_err(failed)?;
    let mut last = Last::default();
    let ending = follow(&mut child, &inbox, &mut last, wishes, &|| {
        if terminals.any() {
            send_window_size(terminals, &control);
        }
    });
    let status = child.wait().ok();
    terminal::restore();
    if let Some(path) = &wishes.trace {
        crate::see::write_trace(&last.trace, path)?;
    }
    last.conclude(ending, status)
}

fn start(machine: &Hosted<'_>, control: RawFd) -> Result<Child, Failure> {
    let mut command = Command::new(machine.image);
    command.arg(format!("archive={}", machine.archive));
    command.arg(format!("control={control}"));
    command.arg(format!("memory_mib={}", machine.memory_mib));
    command.arg(format!("tsc_hz={}", machine.tsc_hz));
    for tree in &machine.trees {
        command.arg(format!("tree={tree}"));
    }
    command.args(machine.wait_for_debugger.then_some("gdb=1"));
    command.args(machine.counts.then_some("counts=1"));
    command.args(machine.perf_map.then_some("perf_map=1"));
    command.args(machine.arguments.split_whitespace());
    command.env_clear();
    // SAFETY: between fork and exec only one system call is made: no allocation, no lock.
    unsafe {
        // However this process ends, the machine goes with it.
        command.pre_exec(|| {
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
            Ok(())
        });
    }
    command
        .spawn()
        .map_err(|error| Failure::new(UNAVAILABLE, format!("cannot start {}: {error}", machine.image.display()), ""))
}

/// The command that connects gdb.
fn how_to_attach(image: &Path, process: u32) -> String {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/"));
    let script = project.join("bin/hosted/synthesis.gdb");
    format!("synth: connect with: gdb {} -p {process} -x {}\n", image.display(), script.display())
}

/// Hears what the machine says until its end of the control socket closes, which is when it ends.
fn follow(
    child: &mut Child,
    inbox: &Receiver<Event>,
    last: &mut Last,
    wishes: &Wishes,
    send_size: &dyn Fn(),
) -> Ending {
    let deadline = wishes.timeout.map(|timeout| Instant::now() + timeout);
    loop {
        let event = match deadline {
            Some(at) => inbox.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(Event::Exit { status, signal }) => last.exit = Some((status, signal)),
            Ok(Event::Panic(text)) => last.panic = Some(text),
            Ok(Event::Failure(text)) => last.failure.get_or_insert_default().extend(text),
            Ok(Event::Trace(records)) => last.trace.push(records),
            Ok(Event::ControlBroken(error)) => last.broken = Some(error),
            Ok(Event::Signal(signal)) if FATAL.contains(&signal) => {
                let _ = child.kill();
                return Ending::Killed(signal);
            }
            Ok(Event::Signal(SIGWINCH)) => send_size(),
            Ok(Event::Signal(SIGCONT)) => {
                terminal::resume();
                send_size();
            }
            Ok(Event::Drained) | Err(RecvTimeoutError::Disconnected) => return Ending::Stopped,
            Err(RecvTimeoutError::Timeout) => {
                let _ = child.kill();
                return Ending::TimedOut;
            }
            Ok(_) => {}
        }
    }
}
