//! A system of the monitor's own: a `synth run` whose input the monitor holds.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::MonitorOptions;
use crate::failure::{Failure, TOOL, UNAVAILABLE};
use crate::see::client::Client;

/// How long a system may take to answer first.
const BOOT_TIME: Duration = Duration::from_secs(30);
/// How long it may take to end.
const END_TIME: Duration = Duration::from_secs(5);

pub struct System {
    child: Child,
    input: Option<ChildStdin>,
    /// Who carries what the system says.
    carriers: Vec<JoinHandle<()>>,
}

impl System {
    /// Starts the tool once more, with the options that are its.
    pub fn boot(options: &MonitorOptions) -> Result<System, Failure> {
        let failed = |error| Failure::new(TOOL, format!("cannot start a system: {error}"), "");
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args(["run", "--monitor"]);
        for (wanted, option) in
            [(options.hosted, "--hosted"), (options.generic, "--generic"), (options.icount, "--icount")]
        {
            command.args(wanted.then_some(option));
        }
        command.args(options.timeout.map(|seconds| format!("--timeout={seconds}")));
        for files in &options.with {
            command.arg("--with").arg(files);
        }
        if options.argv.is_empty() {
            command.args(["busybox", "sh"]);
        } else {
            command.args(&options.argv);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let input = child.stdin.take();
        // Through us, so that the tool below leaves the terminal alone.
        let carriers = [
            child.stdout.take().map(|from| pass_on(from, std::io::stdout())),
            child.stderr.take().map(|from| pass_on(from, std::io::stderr())),
        ];
        Ok(System { child, input, carriers: carriers.into_iter().flatten().collect() })
    }

    /// Waits until the system answers.
    pub fn connect(&mut self) -> Result<Client, Failure> {
        let end = Instant::now() + BOOT_TIME;
        loop {
            match Client::connect(Some(self.child.id())) {
                Ok(client) => return Ok(client),
                Err(failure) if Instant::now() > end => return Err(failure),
                Err(_) => thread::sleep(Duration::from_millis(20)),
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                let error = format!("the system ended before it could be asked ({status})");
                return Err(Failure::new(UNAVAILABLE, error, "give it a program that runs for a while"));
            }
        }
    }

    /// Gives the program a line.
    pub fn type_in(&mut self, text: &str) {
        if let Some(input) = &mut self.input {
            let _ = writeln!(input, "{text}").and_then(|()| input.flush());
        }
    }
}

impl Drop for System {
    fn drop(&mut self) {
        self.input = None;
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let end = Instant::now() + END_TIME;
        while let Ok(None) = self.child.try_wait() {
            if Instant::now() > end {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
            thread::sleep(Duration::from_millis(10));
        }
        // What it said before its end is not lost with us.
        for carrier in self.carriers.drain(..) {
            let _ = carrier.join();
        }
    }
}

fn pass_on(mut from: impl Read + Send + 'static, mut to: impl Write + Send + 'static) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if to.write_all(&bytes[..count]).and_then(|()| to.flush()).is_err() {
                break;
            }
        }
    })
}
