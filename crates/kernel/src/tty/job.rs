//! Job control: who the tty belongs to, and what a process in the background may do with it.
//!
//! Pure decisions: the caller brings the facts about the process, and does what is decided.

use super::signal::Signal;

/// A process, process group or session number.
pub type ProcessNumber = i32;

/// The session that has this tty as its controlling terminal, and its foreground group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct JobControl {
    /// The session, once its leader has acquired the tty.
    pub session: Option<ProcessNumber>,
    /// The group that gets signals from keys.
    pub foreground: Option<ProcessNumber>,
}

/// What the decisions need to know of a process that uses the tty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caller {
    /// Its process group.
    pub group: ProcessNumber,
    /// Its session.
    pub session: ProcessNumber,
    /// Whether it leads its session.
    pub leads_session: bool,
    /// Whether this very tty is its controlling terminal.
    pub controlled_here: bool,
    /// Whether it has any controlling terminal.
    pub controlled: bool,
    /// Whether it ignores or blocks SIGTTIN.
    pub ignores_ttin: bool,
    /// Whether it ignores or blocks SIGTTOU.
    pub ignores_ttou: bool,
    /// Whether its group is orphaned: no member has a parent of the session outside the group.
    pub orphaned: bool,
}

/// May it go on?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Yes.
    Granted,
    /// No: EIO.
    Refused,
    /// Send the signal to the caller's whole group and restart the call (ERESTARTSYS).
    Stop(Signal),
}

/// Why a call of job control fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobError {
    /// It is not the caller's controlling terminal: ENOTTY.
    NotControlling,
    /// The caller is in the background and may not: EIO from `TCSETS` and its kind, ENOTTY from `TIOCSPGRP`.
    Orphaned,
    /// SIGTTOU for the caller's group, then restart (ERESTARTSYS).
    Stop,
    /// A negative number: EINVAL.
    Invalid,
    /// No such group: ESRCH.
    NoSuchGroup,
    /// A group of another session, or a tty that is not to be had: EPERM.
    NotPermitted,
}

impl JobControl {
    /// Before a read.
    pub fn check_read(&self, caller: &Caller) -> Access {
        match self.is_background(caller) {
            false => Access::Granted,
            true if caller.ignores_ttin || caller.orphaned => Access::Refused,
            true => Access::Stop(Signal::TerminalInput),
        }
    }

    /// Before a change of settings, a flush, a drain, `TIOCSPGRP`; with `TOSTOP` before a write.
    pub fn check_change(&self, caller: &Caller) -> Access {
        match self.is_background(caller) {
            false => Access::Granted,
            true if caller.ignores_ttou => Access::Granted,
            true if caller.orphaned => Access::Refused,
            true => Access::Stop(Signal::TerminalOutput),
        }
    }

    /// `TIOCGPGRP`: the foreground group, 0 if there is none.
    pub fn foreground_for(&self, caller: &Caller) -> Result<ProcessNumber, JobError> {
        let number = self.foreground.unwrap_or(0);
        if caller.controlled_here { Ok(number) } else { Err(JobError::NotControlling) }
    }

    /// `TIOCGSID`.
    pub fn session_for(&self, caller: &Caller) -> Result<ProcessNumber, JobError> {
        self.session.filter(|_| caller.controlled_here).ok_or(JobError::NotControlling)
    }

    /// `TIOCSPGRP`. `session_of` tells the session of an existing group.
    pub fn set_foreground(
        &mut self,
        group: ProcessNumber,
        caller: &Caller,
        session_of: impl FnOnce(ProcessNumber) -> Option<ProcessNumber>,
    ) -> Result<(), JobError> {
        match self.check_change(caller) {
            Access::Granted => {}
            Access::Refused => return Err(JobError::Orphaned),
            Access::Stop(_) => return Err(JobError::Stop),
        }
        if !caller.controlled_here || self.session != Some(caller.session) {
            return Err(JobError::NotControlling);
        }
        if group < 0 {
            return Err(JobError::Invalid);
        }
        match session_of(group) {
            None => Err(JobError::NoSuchGroup),
            Some(session) if session != caller.session => Err(JobError::NotPermitted),
            Some(_) => {
                self.foreground = Some(group);
                Ok(())
            }
        }
    }

    /// `TIOCSCTTY` without stealing, and `open` of a tty by a session leader without one.
    pub fn acquire(&mut self, caller: &Caller) -> Result<(), JobError> {
        if caller.leads_session && self.session == Some(caller.session) {
            return Ok(());
        }
        if !caller.leads_session || caller.controlled || self.session.is_some() {
            return Err(JobError::NotPermitted);
        }
        self.session = Some(caller.session);
        self.foreground = Some(caller.group);
        Ok(())
    }

    /// The session leader exits or gives the tty up: the tty is free. Returns the foreground group
    /// that was, which gets SIGHUP and SIGCONT.
    pub fn release(&mut self) -> Option<ProcessNumber> {
        self.session = None;
        self.foreground.take()
    }

    fn is_background(&self, caller: &Caller) -> bool {
        caller.controlled_here && self.foreground.is_some_and(|group| group != caller.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELL: Caller = Caller {
        group: 10,
        session: 10,
        leads_session: true,
        controlled_here: true,
        controlled: true,
        ignores_ttin: false,
        ignores_ttou: false,
        orphaned: false,
    };
    const JOB: JobControl = JobControl { session: Some(10), foreground: Some(11) };

    #[test]
    fn the_background_is_stopped_or_refused() {
        assert_eq!(JOB.check_read(&SHELL), Access::Stop(Signal::TerminalInput));
        assert_eq!(JOB.check_read(&Caller { ignores_ttin: true, ..SHELL }), Access::Refused);
        assert_eq!(JOB.check_read(&Caller { orphaned: true, ..SHELL }), Access::Refused);
        assert_eq!(JOB.check_read(&Caller { group: 11, ..SHELL }), Access::Granted);
        assert_eq!(JOB.check_read(&Caller { controlled_here: false, ..SHELL }), Access::Granted);
        assert_eq!(JOB.check_change(&SHELL), Access::Stop(Signal::TerminalOutput));
        assert_eq!(JOB.check_change(&Caller { ignores_ttou: true, orphaned: true, ..SHELL }), Access::Granted);
        assert_eq!(JOB.check_change(&Caller { orphaned: true, ..SHELL }), Access::Refused);
    }

    #[test]
    fn a_shell_moves_jobs_to_the_foreground() {
        let mut job = JobControl::default();
        assert_eq!(job.acquire(&Caller { leads_session: false, ..SHELL }), Err(JobError::NotPermitted));
        assert_eq!(job.acquire(&Caller { controlled: false, ..SHELL }), Ok(()));
        assert_eq!(job.acquire(&SHELL), Ok(()));
        assert_eq!(job.set_foreground(12, &SHELL, |_| Some(10)), Ok(()));
        assert_eq!(job.set_foreground(10, &SHELL, |_| Some(10)), Err(JobError::Stop));
        let ignoring = Caller { ignores_ttou: true, ..SHELL };
        assert_eq!(job.set_foreground(-1, &ignoring, |_| Some(10)), Err(JobError::Invalid));
        assert_eq!(job.set_foreground(13, &ignoring, |_| None), Err(JobError::NoSuchGroup));
        assert_eq!(job.set_foreground(13, &ignoring, |_| Some(9)), Err(JobError::NotPermitted));
        assert_eq!(job.set_foreground(10, &ignoring, |_| Some(10)), Ok(()));
        assert_eq!(job.foreground_for(&SHELL), Ok(10));
        assert_eq!(job.release(), Some(10));
        assert_eq!(job.session_for(&SHELL), Err(JobError::NotControlling));
    }
}
