//! A program at a pseudo-terminal, driven by a script of keys and expectations.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Action, LocalModes, Winsize, tcflow, tcgetattr, tcsetwinsize};

use crate::process::shell_status;

/// One thing that happens at the keyboard or on the screen.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// These bytes are typed.
    Type(&'static str),
    /// This text appears after what was expected before.
    Expect(&'static str),
    /// The window gets this many rows and columns.
    Resize(u16, u16),
    /// Nothing appears for this time. That something does not come can only be watched for a while.
    Silence(Duration),
    /// The program ends with this status, as a shell says it.
    End(i32),
}

/// What no program prints.
const END_MARK: &[u8] = b"\0end of the test\0";

/// What was on the screen, from first to last byte.
pub struct Transcript(pub Vec<u8>);

struct Terminal {
    child: Child,
    keyboard: File,
    slave: OwnedFd,
    screen: Receiver<Vec<u8>>,
    seen: Vec<u8>,
    expected_to: usize,
}

/// Plays a script with `command` on a new terminal of 24 rows and 80 columns.
///
/// # Errors
/// The step that failed, with the screen up to then; or that the terminal was not left as it was found.
pub fn play(command: Command, steps: &[Step], limit: Duration) -> Result<Transcript, String> {
    let (mut terminal, before) = Terminal::open(command)?;
    for (index, step) in steps.iter().enumerate() {
        if let Err(message) = terminal.step(step, limit) {
            terminal.end();
            let screen = terminal.seen.escape_ascii().to_string();
            let tail = screen.len().saturating_sub(1500);
            return Err(format!("step {} {step:?}: {message}\nscreen: {}", index + 1, &screen[tail..]));
        }
    }
    terminal.end();
    let after = local_modes(&terminal.slave);
    if after != before {
        return Err(format!("the terminal was left changed: {before:?} became {after:?}"));
    }
    Ok(Transcript(terminal.seen))
}

impl Terminal {
    fn open(command: Command) -> Result<(Terminal, LocalModes), String> {
        let tell = |error: std::io::Error| format!("cannot open a pseudo-terminal: {error}");
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).map_err(|e| tell(e.into()))?;
        grantpt(&master).map_err(|error| tell(error.into()))?;
        unlockpt(&master).map_err(|error| tell(error.into()))?;
        let name = ptsname(&master, Vec::new()).map_err(|error| tell(error.into()))?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).map_err(|error| tell(error.into()))?;
        set_size(&master, 24, 80)?;
        let modes = local_modes(&slave);
        let stdio = || slave.try_clone().map(Stdio::from).map_err(tell);
        // setsid(1) makes the terminal the controlling one, so that Ctrl-C means something.
        let mut session = Command::new("setsid");
        session.arg("--ctty").arg(command.get_program()).args(command.get_args());
        session.env_clear();
        // Which kernel is meant.
        session.envs(std::env::var_os("SYNTH_KERNELS").map(|kernels| ("SYNTH_KERNELS", kernels)));
        session.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(folder) = command.get_current_dir() {
            session.current_dir(folder);
        }
        session.stdin(stdio()?).stdout(stdio()?).stderr(stdio()?);
        let child = session.spawn().map_err(|error| format!("cannot start setsid (util-linux): {error}"))?;
        let keyboard = File::from(master);
        let mut reader = keyboard.try_clone().map_err(tell)?;
        let (sender, screen) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Ok((Terminal { child, keyboard, slave, screen, seen: Vec::new(), expected_to: 0 }, modes))
    }

    fn step(&mut self, step: &Step, limit: Duration) -> Result<(), String> {
        match step {
            Step::Type(keys) => self.keyboard.write_all(keys.as_bytes()).map_err(|error| error.to_string()),
            Step::Resize(rows, columns) => set_size(&self.keyboard, *rows, *columns),
            Step::Silence(time) => {
                let before = self.seen.len();
                self.read_until(Instant::now() + *time, |seen| seen.len() > before);
                if self.seen.len() == before { Ok(()) } else { Err("something appeared".into()) }
            }
            Step::Expect(text) => self.expect(text.as_bytes(), limit),
            Step::End(status) => self.expect_end(*status, limit),
        }
    }

    fn expect(&mut self, text: &[u8], limit: Duration) -> Result<(), String> {
        let from = self.expected_to;
        let find = |seen: &[u8]| seen[from..].windows(text.len()).position(|window| window == text);
        self.read_until(Instant::now() + limit, |seen| find(seen).is_some());
        let at = find(&self.seen).ok_or_else(|| format!("did not appear in {} s", limit.as_secs()))?;
        self.expected_to = from + at + text.len();
        Ok(())
    }

    fn expect_end(&mut self, expected: i32, limit: Duration) -> Result<(), String> {
        let deadline = Instant::now() + limit;
        let Some(status) = self.wait(deadline)? else {
            return Err(format!("it did not end in {} s", limit.as_secs()));
        };
        self.read_all(deadline)?;
        if status == expected { Ok(()) } else { Err(format!("it ended with status {status}")) }
    }

    /// The status, as a shell says it, of a program that ends before the deadline. What it prints meanwhile is read.
    fn wait(&mut self, deadline: Instant) -> Result<Option<i32>, String> {
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().map_err(|error| error.to_string())? {
                return Ok(Some(shell_status(status)));
            }
            self.read_until(Instant::now() + Duration::from_millis(5), |_| false);
        }
        Ok(None)
    }

    /// Reads all that was printed. What we print ourselves comes last: all is here when that is.
    fn read_all(&mut self, deadline: Instant) -> Result<(), String> {
        let told = |error: rustix::io::Errno| format!("cannot print the end mark: {error}");
        // Nobody may have left the output stopped.
        tcflow(&self.slave, Action::OOn).map_err(told)?;
        rustix::io::write(&self.slave, END_MARK).map_err(told)?;
        self.read_until(deadline, |seen| seen.ends_with(END_MARK));
        let Some(printed) = self.seen.strip_suffix(END_MARK) else {
            return Err("the end mark did not come back from the terminal".into());
        };
        self.seen.truncate(printed.len());
        Ok(())
    }

    fn read_until(&mut self, deadline: Instant, done: impl Fn(&[u8]) -> bool) {
        while !done(&self.seen) {
            match self.screen.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.seen.extend(bytes),
                Err(_) => return,
            }
        }
    }

    /// Ends the program if it still runs: politely through its own group, then for certain.
    fn end(&mut self) {
        for signal in [rustix::process::Signal::TERM, rustix::process::Signal::KILL] {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            let _ = rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal);
            let _ = self.wait(Instant::now() + Duration::from_secs(2));
        }
        let _ = self.child.wait();
    }
}

fn local_modes(terminal: &OwnedFd) -> LocalModes {
    tcgetattr(terminal).map(|modes| modes.local_modes).unwrap_or(LocalModes::empty())
}

fn set_size(terminal: impl rustix::fd::AsFd, rows: u16, columns: u16) -> Result<(), String> {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).map_err(|error| format!("cannot set the window size: {error}"))
}
