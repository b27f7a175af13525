//! Job control: what the tty has to know of a process, and the signals it sends.

use alloc::sync::Arc;

use abi::Errno;
use abi::siginfo::SigInfo;
use abi::signal::{SIG_IGN, SIGTTIN, SIGTTOU};
use kernel::tty::{Access, Caller, ProcessNumber, Signal};

use super::Terminal;
use crate::calls::life::family::is_orphaned_group;
use crate::calls::signals::send::{send_to_group, send_to_process};
use crate::task::process::Process;
use crate::task::thread::Task;

impl Terminal {
    /// The facts about a task that decide what it may do here.
    pub fn caller(&self, task: &Arc<Task>) -> Caller {
        let process = &task.process;
        let family = process.family.get();
        let job = self.tty.borrow().job();
        let controlled_here = self.controls(process);
        // What only matters in the background costs a walk over all processes.
        let background = controlled_here && job.foreground.is_some_and(|group| group != family.group as ProcessNumber);
        Caller {
            group: family.group as ProcessNumber,
            session: family.session as ProcessNumber,
            leads_session: process.pid == family.session,
            controlled_here,
            controlled: family.has_terminal,
            ignores_ttin: background && withholds(task, SIGTTIN),
            ignores_ttou: background && withholds(task, SIGTTOU),
            orphaned: background && is_orphaned_group(self.unix, family.group),
        }
    }

    /// Whether this is the controlling terminal of a process.
    pub fn controls(&self, process: &Process) -> bool {
        let family = process.family.get();
        family.has_terminal && self.tty.borrow().job().session == Some(family.session as ProcessNumber)
    }

    /// Errors: `EIO`; `EINTR` after the caller's group was sent SIGTTIN.
    pub fn permit_read(&self, task: &Arc<Task>) -> Result<(), Errno> {
        if self.tty.borrow().job().foreground == Some(task.process.family.get().group as ProcessNumber) {
            return Ok(());
        }
        let caller = self.caller(task);
        let access = self.tty.borrow().job().check_read(&caller);
        self.obey(access, &caller)
    }

    /// Before changes, and before writes with `TOSTOP`. Errors: `EIO`; `EINTR` after the caller's group was sent SIGTTOU.
    pub fn permit_change(&self, task: &Arc<Task>) -> Result<(), Errno> {
        let caller = self.caller(task);
        let access = self.tty.borrow().job().check_change(&caller);
        self.obey(access, &caller)
    }

    fn obey(&self, access: Access, caller: &Caller) -> Result<(), Errno> {
        match access {
            Access::Granted => Ok(()),
            Access::Refused => Err(Errno::EIO),
            Access::Stop(signal) => {
                self.signal_group(Some(caller.group), signal);
                Err(Errno::EINTR)
            }
        }
    }

    /// Sends a signal of the kernel to a group; none and 0 are nobody.
    pub fn signal_group(&self, group: Option<ProcessNumber>, signal: Signal) {
        let Some(group) = group.filter(|group| *group > 0) else { return };
        send_to_group(self.unix, group as u32, &SigInfo::kernel(signal as u32));
    }

    pub(super) fn signal_process(&self, process: &Arc<Process>, signal: Signal) {
        send_to_process(self.unix, process, &SigInfo::kernel(signal as u32));
    }

    /// The terminal is nobody's any more: its session's processes have none. Returns the foreground group that was.
    pub fn leave_session(&self) -> Option<ProcessNumber> {
        let session = self.tty.borrow().job().session;
        let foreground = self.tty.borrow_mut().change_job(|job| job.release());
        if let Some(session) = session {
            for process in self.unix.tasks.processes() {
                let mut family = process.family.get();
                if family.session == session as u32 {
                    family.has_terminal = false;
                    process.family.set(family);
                }
            }
        }
        // A leader of another session that opens it now gets it.
        self.unix.tasks.unbind_opens();
        foreground
    }

    /// `TIOCSCTTY`, or `open` by a session leader without a terminal. Error: `EPERM`.
    pub fn acquire(&self, process: &Process, caller: &Caller) -> Result<(), Errno> {
        self.tty.borrow_mut().change_job(|job| job.acquire(caller)).map_err(|_| Errno::EPERM)?;
        let mut family = process.family.get();
        family.has_terminal = true;
        process.family.set(family);
        Ok(())
    }
}

/// A process leads a session and ends or gives up its terminal: the foreground group hears of it.
pub(super) fn disassociate(terminal: &Terminal, signals: &[Signal]) {
    let foreground = terminal.tty.borrow().job().foreground;
    for signal in signals {
        terminal.signal_group(foreground, *signal);
    }
    terminal.leave_session();
}

/// Whether the task blocks or ignores a signal.
fn withholds(task: &Task, signal: u32) -> bool {
    task.mask.borrow().blocked().contains(signal) || task.process.actions().borrow().of(signal).sa_handler == SIG_IGN
}
