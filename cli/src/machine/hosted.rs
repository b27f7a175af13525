//! One life of the hosted machine: a child process that has this one's standard descriptors.

use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::SIGCONT;

use super::epilogue::{Ending, Last};
use super::relay::Control;
use super::session::{Console, Event, FATAL, Wishes, inherited_pair, listen, send_window_size, set_up_failure};
use super::terminal::{self, Terminals};
use crate::checkout::project_root;
use crate::failure::{Failure, UNAVAILABLE};
use crate::see::{Door, TraceFile};

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

/// How long the records of a traced run may take that is cut short.
const RESCUE_GRACE: Duration = Duration::from_secs(5);

/// Starts the machine, follows it to its end, and returns the exit status for the tool.
pub fn run(machine: &Hosted<'_>, console: Console, wishes: &Wishes) -> Result<u8, Failure> {
    let failed = set_up_failure;
    console.begin_session();
    let (ours, machines) = inherited_pair().map_err(failed)?;
    // Whoever sees what the program says may ask already.
    let (askers, door) = listen(ours.try_clone().map_err(failed)?, wishes.verbose);
    let mut child = start(machine, machines.as_raw_fd())?;
    drop(machines);
    if machine.wait_for_debugger {
        terminal::say(how_to_attach(machine.image, child.id()).as_bytes());
    }
    let control = ours.try_clone().map_err(failed)?;
    let mut session = Session {
        terminals: console.terminals,
        signals: console.signals,
        control,
        said: Control::new(ours, wishes.clone(), askers),
        door,
        last: Last::default(),
    };
    let ending = session.follow(wishes.timeout);
    if matches!(ending, Ending::Killed(_) | Ending::TimedOut) {
        if let Some(file) = &wishes.trace {
            session.rescue(file);
        }
        let _ = child.kill();
    }
    let status = child.wait().ok();
    terminal::restore();
    if let Some(file) = &wishes.trace {
        file.write(&session.last.trace)?;
    }
    session.last.conclude(ending, status)
}

fn start(machine: &Hosted<'_>, control: RawFd) -> Result<Child, Failure> {
    let mut command = Command::new(machine.image);
    command.arg(format!("archive={}", machine.archive));
    command.arg(format!("control={control}"));
    // However this process ends, the machine goes with it: it asks the host for that itself, so that it can be
    // started without a fork.
    command.arg(format!("tool={}", std::process::id()));
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
    command
        .spawn()
        .map_err(|error| Failure::new(UNAVAILABLE, format!("cannot start {}: {error}", machine.image.display()), ""))
}

/// The command that connects gdb.
fn how_to_attach(image: &Path, process: u32) -> String {
    let script = project_root().join("bin/hosted/synthesis.gdb");
    format!("synth: connect with: gdb {} -p {process} -x {}\n", image.display(), script.display())
}

/// What one thread waits for: the machine's words, signals, and people who ask.
struct Session {
    terminals: Terminals,
    signals: UnixStream,
    control: UnixStream,
    said: Control,
    door: Option<Door>,
    last: Last,
}

impl Session {
    /// Follows the machine until its end of the control socket closes, which is when it ends.
    fn follow(&mut self, timeout: Option<Duration>) -> Ending {
        // A time too far off to be expressed is no limit.
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let [words, signal, asker] = match self.wait(deadline) {
                Ok(ready) => ready,
                Err(Errno::INTR) => continue,
                // Nobody can follow it any more: as when its socket closes.
                Err(_) => return Ending::Stopped,
            };
            if signal && let Some(ending) = self.take_signal() {
                return ending;
            }
            if asker && let Some(door) = &self.door {
                door.answer();
            }
            if words && !self.said.hear(&mut |event| note(&mut self.last, event)) {
                return Ending::Stopped;
            }
            if deadline.is_some_and(|at| Instant::now() >= at) {
                return Ending::TimedOut;
            }
        }
    }

    /// Has the trace fetched, and carries questions and answers meanwhile.
    fn rescue(&mut self, file: &TraceFile) {
        let file = file.clone();
        let asker = thread::spawn(move || file.rescue());
        let deadline = Instant::now() + RESCUE_GRACE;
        while !asker.is_finished() && Instant::now() < deadline {
            let look_again = Instant::now() + Duration::from_millis(20);
            match self.wait(Some(look_again)) {
                Ok([words, _, asker]) => {
                    if asker && let Some(door) = &self.door {
                        door.answer();
                    }
                    if words && !self.said.hear(&mut |event| note(&mut self.last, event)) {
                        return;
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }

    /// Which of the three have something: words, a signal, an asker. None of them: the deadline has come.
    fn wait(&self, deadline: Option<Instant>) -> Result<[bool; 3], Errno> {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let door = self.door.as_ref().map_or(self.signals.as_fd(), AsFd::as_fd);
        let mut waiting = [
            PollFd::new(&self.said, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::from_borrowed_fd(door, PollFlags::IN),
        ];
        poll(&mut waiting, left.as_ref())?;
        Ok(waiting.map(|one| !one.revents().is_empty()))
    }

    fn take_signal(&mut self) -> Option<Ending> {
        let mut signal = [0];
        self.signals.read_exact(&mut signal).ok()?;
        let signal = i32::from(signal[0]);
        if FATAL.contains(&signal) {
            return Some(Ending::Killed(signal));
        }
        if signal == SIGCONT {
            terminal::resume();
        }
        if self.terminals.any() {
            send_window_size(self.terminals, &self.control);
        }
        None
    }
}

fn note(last: &mut Last, event: Event) {
    match event {
        Event::Exit { status, signal } => last.exit = Some((status, signal)),
        Event::Panic(text) => last.panic = Some(text),
        Event::Failure(text) => last.failure.get_or_insert_default().extend(text),
        Event::Trace(records) => last.trace.push(records),
        Event::ControlBroken(error) => last.broken = Some(error),
        _ => {}
    }
}
