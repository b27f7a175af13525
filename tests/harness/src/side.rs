//! The two sides of a comparison.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::options::Options;

/// Where a program runs.
#[derive(Clone)]
pub enum Side {
    /// The host's Linux: the oracle.
    Host {
        /// The folder that stands for the guest's `GUEST_HOME`.
        home: PathBuf,
    },
    /// Synthesis in its virtual machine.
    Synthesis {
        /// The words that start a program there.
        runner: Vec<String>,
        /// The root file system to pack.
        root: PathBuf,
        /// Guest memory.
        mem: String,
    },
}

/// The folder of the tests inside the guest.
pub const GUEST_HOME: &str = "/tmp/t";

impl Side {
    /// The oracle, with `home` as the folder of the tests.
    pub fn host(home: &Path) -> Side {
        Side::Host { home: home.into() }
    }

    /// The side under test, with a root file system.
    pub fn synthesis(options: &Options, root: &Path) -> Side {
        Side::Synthesis { runner: options.runner.clone(), root: root.into(), mem: options.mem.clone() }
    }

    /// The folder of the tests as a program on this side sees it.
    pub fn home(&self) -> &Path {
        match self {
            Side::Host { home } => home,
            Side::Synthesis { .. } => Path::new(GUEST_HOME),
        }
    }

    /// A word for reports.
    pub fn name(&self) -> &'static str {
        match self {
            Side::Host { .. } => "host",
            Side::Synthesis { .. } => "synthesis",
        }
    }

    /// The same at a terminal: with a prompt that no user's settings change.
    pub fn terminal_command(&self, program: &str, args: &[String], limit: Duration) -> Command {
        let settings = [("TERM", "vt100"), ("PS1", "$ ")];
        match self {
            Side::Host { .. } => {
                let mut command = self.command(program, args, limit);
                command.envs(settings);
                command
            }
            Side::Synthesis { runner, root, mem } => {
                let mut runner = runner.clone();
                runner.extend(settings.iter().flat_map(|(name, value)| ["--env".into(), format!("{name}={value}")]));
                let side = Side::Synthesis { runner, root: root.clone(), mem: mem.clone() };
                let mut command = side.command(program, args, limit);
                command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
                command
            }
        }
    }

    /// The command that runs `program`, which must be at the same path on both sides.
    pub fn command(&self, program: &str, args: &[String], limit: Duration) -> Command {
        match self {
            Side::Host { home } => {
                let mut command = Command::new(program);
                command.args(args).current_dir(home).env_clear().envs(environment());
                command
            }
            Side::Synthesis { runner, root, mem } => {
                let mut command = runner_command(runner);
                command.arg("--root").arg(root).args(["--mem", mem, "--cwd", GUEST_HOME]);
                command.args(["--timeout", &limit.as_secs().to_string()]);
                for (name, value) in environment() {
                    command.arg("--env").arg(format!("{name}={value}"));
                }
                command.arg(program).args(args);
                command
            }
        }
    }
}

/// What programs find in their environment on both sides.
fn environment() -> [(&'static str, &'static str); 4] {
    [("PATH", "/usr/bin:/bin"), ("LC_ALL", "C"), ("TZ", "UTC"), ("HOME", "/")]
}

/// The tool, ready for options and a program.
pub fn runner_command(runner: &[String]) -> Command {
    let mut command = Command::new(&runner[0]);
    command.args(&runner[1..]);
    command
}
