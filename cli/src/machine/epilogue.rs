//! What is left when the machine has ended, and the status that follows from it.

use std::io;
use std::process::ExitStatus;

use bootimage::control::ControlError;
use signal_hook::consts::SIGPIPE;

use super::session::signalled;
use crate::failure::{Failure, MACHINE_DIED, NOT_EXECUTABLE, NOT_FOUND, TIMED_OUT, TOOL};

/// How a session came to its end.
#[derive(Debug)]
pub enum Ending {
    /// The machine stopped, or was stopped after its last word.
    Stopped,
    TimedOut,
    /// The tool got a signal.
    Killed(i32),
    /// A descriptor of the host took no more bytes.
    OutputFailed(io::Error),
}

/// The last words of guest and monitor.
#[derive(Debug, Default)]
pub struct Last {
    /// Status and signal of the program.
    pub exit: Option<(i32, u32)>,
    /// The kernel's epitaph.
    pub panic: Option<Vec<u8>>,
    /// Why the kernel could not run the program.
    pub failure: Option<Vec<u8>>,
    pub broken: Option<ControlError>,
    /// The end of what came over the debug console.
    pub debug: Vec<u8>,
    /// What the monitor printed.
    pub monitor: Vec<u8>,
    /// Records of the trace, when the run was traced.
    pub trace: Vec<Vec<u8>>,
}

impl Last {
    /// The exit status of the tool, or the failure to tell.
    pub fn conclude(self, ending: Ending, monitor_status: Option<ExitStatus>) -> Result<u8, Failure> {
        match ending {
            Ending::Killed(signal) => return Ok(signalled(signal)),
            Ending::OutputFailed(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(signalled(SIGPIPE)),
            Ending::OutputFailed(error) => return Err(Failure::new(TOOL, format!("cannot write output: {error}"), "")),
            Ending::TimedOut => {
                return Err(Failure::new(TIMED_OUT, "the program did not end in time", "give it more with --timeout"));
            }
            Ending::Stopped => {}
        }
        if let Some(epitaph) = &self.panic {
            let text = format!("the kernel panicked\n{}", shown(epitaph));
            return Err(Failure::new(MACHINE_DIED, text, "run again with --verbose for the messages before it"));
        }
        if let Some(reason) = &self.failure {
            let status = self.exit.map_or(NOT_EXECUTABLE, |(status, _)| status as u8);
            return Err(Failure::new(status, shown(reason), help_for(status)));
        }
        match self.exit {
            Some((status, 0)) => Ok(status as u8),
            Some((_, signal)) => Ok(signalled(signal as i32)),
            None => Err(self.without_exit(monitor_status)),
        }
    }

    fn without_exit(&self, monitor_status: Option<ExitStatus>) -> Failure {
        let status = monitor_status.map_or("unknown".into(), |status| status.to_string());
        let mut text = format!("the virtual machine ended without the program's status (monitor: {status})");
        if let Some(error) = &self.broken {
            text += &format!("\nthe control port carried something else: {error:?}");
        }
        for words in [&self.monitor, &self.debug] {
            if !words.is_empty() {
                text += &format!("\n{}", shown(words));
            }
        }
        Failure::new(MACHINE_DIED, text, "run again with --verbose; a program larger than memory needs --mem")
    }
}

fn help_for(status: u8) -> &'static str {
    match status {
        NOT_FOUND => "give the file a place in the guest with --with HOST:GUEST or --root",
        MACHINE_DIED => "give the machine more memory with --mem, or run again with --verbose",
        _ => "the file cannot be a Linux program for x86-64 as it is; a program larger than memory needs --mem",
    }
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(last: Last, ending: Ending) -> u8 {
        match last.conclude(ending, None) {
            Ok(status) => status,
            Err(failure) => failure.status,
        }
    }

    fn exited(status: i32, signal: u32) -> Last {
        Last { exit: Some((status, signal)), ..Last::default() }
    }

    #[test]
    fn the_programs_status_is_the_tools() {
        assert_eq!(status(exited(0, 0), Ending::Stopped), 0);
        assert_eq!(status(exited(300, 0), Ending::Stopped), 44);
        assert_eq!(status(exited(0, 11), Ending::Stopped), 139);
    }

    #[test]
    fn a_program_that_cannot_run_is_told_with_its_reason() {
        let last = Last { failure: Some(b"/bin/x: Exec format error".into()), ..exited(126, 0) };
        let failure = last.conclude(Ending::Stopped, None).unwrap_err();
        assert_eq!((failure.status, failure.error.as_str()), (126, "/bin/x: Exec format error"));
    }

    #[test]
    fn ends_of_the_machine_have_statuses_of_their_own() {
        assert_eq!(status(Last::default(), Ending::Stopped), 70);
        assert_eq!(status(Last { panic: Some(b"why".into()), ..exited(0, 0) }, Ending::Stopped), 70);
        assert_eq!(status(exited(0, 0), Ending::TimedOut), 124);
        assert_eq!(status(Last::default(), Ending::Killed(2)), 130);
        assert_eq!(status(Last::default(), Ending::OutputFailed(io::ErrorKind::BrokenPipe.into())), 141);
        assert_eq!(status(Last::default(), Ending::OutputFailed(io::ErrorKind::StorageFull.into())), 125);
    }
}
