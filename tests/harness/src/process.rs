//! Running one host process with bounded time, with its output kept apart and in order.

use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// What a program left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Every byte of standard output.
    pub stdout: Vec<u8>,
    /// Every byte of standard error.
    pub stderr: Vec<u8>,
    /// As a shell says it: the exit status, or 128 + the signal.
    pub status: i32,
}

/// A process in a group of its own, so that all of it can be ended together.
pub struct Running {
    child: Child,
    events: Receiver<Event>,
    ended_streams: u8,
}

/// Something that a running process did.
pub enum Event {
    /// Bytes on standard output.
    Stdout(Vec<u8>),
    /// Bytes on standard error.
    Stderr(Vec<u8>),
    /// One of the two streams came to its end.
    StreamEnd,
}

/// Why no further event came.
pub enum Silence {
    /// Nothing happened in the given time.
    TimedOut,
    /// Both streams are at their end.
    Ended,
}

impl Running {
    /// Starts `command`; `stdin` is given to it and then closed.
    ///
    /// # Errors
    /// A sentence when the program cannot be started.
    pub fn start(mut command: Command, stdin: Vec<u8>) -> Result<Running, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        if stdin.is_empty() {
            command.stdin(Stdio::null());
        }
        let mut child = command.spawn().map_err(|error| format!("cannot start {command:?}: {error}"))?;
        if let Some(mut pipe) = child.stdin.take() {
            // A reader that goes away early is its own affair: the outcome tells.
            std::thread::spawn(move || drop(pipe.write_all(&stdin)));
        }
        let (sender, events) = channel();
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let to = sender.clone();
        std::thread::spawn(move || forward(out, |bytes| to.send(Event::Stdout(bytes)), || to.send(Event::StreamEnd)));
        std::thread::spawn(move || {
            forward(err, |bytes| sender.send(Event::Stderr(bytes)), || sender.send(Event::StreamEnd))
        });
        Ok(Running { child, events, ended_streams: 0 })
    }

    /// The process's number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next event before `deadline`.
    pub fn next(&mut self, deadline: Instant) -> Result<Event, Silence> {
        loop {
            if self.ended_streams == 2 {
                return Err(Silence::Ended);
            }
            match self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Event::StreamEnd) => self.ended_streams += 1,
                Ok(event) => return Ok(event),
                Err(RecvTimeoutError::Timeout) => return Err(Silence::TimedOut),
                Err(RecvTimeoutError::Disconnected) => return Err(Silence::Ended),
            }
        }
    }

    /// Waits for the end of a process whose streams have ended; kills it when it lingers.
    pub fn wait(mut self) -> i32 {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return shell_status(status),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
                _ => return self.kill(),
            }
        }
    }

    /// Ends the whole group: first politely, so that the tool can end its machine, then for certain.
    pub fn kill(mut self) -> i32 {
        let group = Pid::from_child(&self.child);
        let _ = kill_process_group(group, Signal::TERM);
        for _ in 0..100 {
            if let Ok(Some(status)) = self.child.try_wait() {
                let _ = kill_process_group(group, Signal::KILL);
                return shell_status(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = kill_process_group(group, Signal::KILL);
        self.child.wait().map_or(-1, shell_status)
    }
}

fn forward<R: Read, E1, E2>(
    stream: Option<R>,
    send: impl Fn(Vec<u8>) -> Result<(), E1>,
    end: impl FnOnce() -> Result<(), E2>,
) {
    if let Some(mut stream) = stream {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            if send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    }
    let _ = end();
}

/// A status as a shell says it.
pub fn shell_status(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Runs `command` to its end.
///
/// # Errors
/// A sentence when it cannot be started or takes longer than `limit`; the latter carries what was printed so far.
pub fn run(command: Command, stdin: Vec<u8>, limit: Duration) -> Result<Outcome, String> {
    let shown = format!("{command:?}");
    let mut running = Running::start(command, stdin)?;
    let deadline = Instant::now() + limit;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    loop {
        match running.next(deadline) {
            Ok(Event::Stdout(bytes)) => stdout.extend(bytes),
            Ok(Event::Stderr(bytes)) => stderr.extend(bytes),
            Ok(Event::StreamEnd) => {}
            Err(Silence::Ended) => return Ok(Outcome { stdout, stderr, status: running.wait() }),
            Err(Silence::TimedOut) => {
                running.kill();
                let tail =
                    |bytes: &[u8]| String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(600)..]).into_owned();
                return Err(format!(
                    "not finished after {} s: {shown}\nstdout so far: {:?}\nstderr so far: {:?}",
                    limit.as_secs(),
                    tail(&stdout),
                    tail(&stderr)
                ));
            }
        }
    }
}
