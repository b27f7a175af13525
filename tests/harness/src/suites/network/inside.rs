//! A machine that runs beside a test, and ports that lead into it.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::options::Options;
use crate::process::{Event, Running, Silence};
use crate::side::runner_command;

/// How long a machine may take to begin and to end, and a connection to answer.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Where programs inside listen.
pub const INSIDE: u16 = 7000;

pub struct Inside {
    running: Running,
    until: Instant,
    stdout: String,
    stderr: String,
}

impl Inside {
    /// Starts a machine with these options of the tool, in which the program runs.
    pub fn start(options: &Options, before: &[&str], program: &Path, words: &[&str]) -> Result<Inside, String> {
        let mut command = runner_command(&options.runner);
        command.args(before).args(["--timeout", "100"]).arg(program).args(words);
        let until = Instant::now() + 2 * PATIENCE;
        let (stdout, stderr) = (String::new(), String::new());
        Ok(Inside { running: Running::start(command, Vec::new())?, until, stdout, stderr })
    }

    /// The same for a server: it has printed this line. Before that nobody may knock, as QEMU's network asks a machine that does not
    /// answer again after six seconds, then after twelve, and so on.
    pub fn serve(
        options: &Options,
        before: &[&str],
        program: &Path,
        words: &[&str],
        line: &str,
    ) -> Result<Inside, String> {
        let mut inside = Inside::start(options, before, program, words)?;
        while !inside.stdout.lines().chain(inside.stderr.lines()).any(|one| one.contains(line)) {
            if !inside.hear() {
                return Err(inside.failure(&format!("it never said {line:?}")));
            }
        }
        Ok(inside)
    }

    /// Takes in what it prints next. False: it ended, or the time is over.
    fn hear(&mut self) -> bool {
        match self.running.next(self.until) {
            Ok(Event::Stdout(bytes)) => self.stdout.push_str(&String::from_utf8_lossy(&bytes)),
            Ok(Event::Stderr(bytes)) => self.stderr.push_str(&String::from_utf8_lossy(&bytes)),
            Ok(Event::StreamEnd) => {}
            Err(Silence::TimedOut | Silence::Ended) => return false,
        }
        true
    }

    fn failure(self, what: &str) -> String {
        let (stdout, stderr) = (&self.stdout, &self.stderr);
        let text = format!("{what}\n{stdout}{stderr}");
        self.running.kill();
        text
    }

    /// What it printed, if it ended well.
    pub fn end(mut self) -> Result<String, String> {
        while self.hear() {}
        if Instant::now() >= self.until {
            return Err(self.failure("it did not end"));
        }
        match self.running.wait() {
            0 => Ok(self.stdout),
            status => Err(format!("status {status}\n{}{}", self.stdout, self.stderr)),
        }
    }

    /// Has a server that never ends leave, by the tool.
    pub fn stop(self) {
        self.running.kill();
    }
}

pub fn expect(what: &str, printed: &str, expected: &str) -> Result<(), String> {
    if printed.trim() == expected { Ok(()) } else { Err(format!("{what}: printed {printed:?}, not {expected:?}")) }
}

/// A port of the loopback that nobody has now.
pub fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}

pub fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// What leads a port of the host inside.
pub fn forward(port: u16, protocol: &str) -> String {
    format!("127.0.0.1:{port}:{INSIDE}{protocol}")
}
