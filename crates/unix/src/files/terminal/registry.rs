//! All terminals, by their numbers, and opening them.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use abi::file::O_NOCTTY;
use abi::process::CAP_SYS_ADMIN;
use kernel::file::{Credentials, FinalLink, NewSpecial, Node, NodeKind, View};
use kernel::stream::Stream;
use kernel::tty::{Signal, WindowSize};
use machine::{KernelCell, TryGrow};

use super::console::Console;
use super::job::disassociate;
use super::window::Windows;
use super::{Line, TERMINAL_MAJOR, Terminal};
use crate::emulator::Unix;
use crate::files::terminal::ends::TtyStream;
use crate::files::terminal::pty::Pty;
use crate::files::terminal::pty::PtyMaster;
use crate::files::terminal::window::WINDOW_MAJOR;
use crate::task::process::Process;
use crate::task::thread::Task;

/// Pseudo terminals in all; then `ENOSPC`, as on Linux.
const TERMINALS_MAX: usize = 256;

/// Group of terminals, mode of their nodes.
const TTY_GROUP: u32 = 5;
const TTY_MODE: u32 = 0o620;

pub struct Terminals {
    /// A terminal's place is its number. 0 is the console.
    list: KernelCell<Vec<Option<Arc<Terminal>>>>,
    pub(super) windows: Windows,
}

impl Terminals {
    #[allow(clippy::new_without_default, reason = "there is one, made at boot")]
    pub fn new() -> Terminals {
        Terminals { list: KernelCell::new(Vec::new()), windows: Windows::default() }
    }

    /// Connects the console to the machine's channel, as controlling terminal of session `session`. Error: `ENOMEM`.
    pub fn start(&self, unix: &'static Unix, size: WindowSize, session: u32) -> Result<Arc<Terminal>, Errno> {
        let console = self.add(unix, Line::Console(Console::new().map_err(|_| Errno::ENOMEM)?))?;
        if let (Line::Console(line), Some(makers)) = (&console.line, unix.makers()) {
            line.serve_by_code(makers);
        }
        {
            let mut tty = console.tty.borrow_mut();
            // Nobody listens for the change of size yet.
            let _ = tty.set_window_size(size);
            tty.change_job(|job| (job.session, job.foreground) = (Some(session as i32), Some(session as i32)));
        }
        Ok(console)
    }

    fn add(&self, unix: &'static Unix, line: Line) -> Result<Arc<Terminal>, Errno> {
        let mut list = self.list.borrow_mut();
        let number = list.iter().position(Option::is_none).unwrap_or(list.len());
        if number >= TERMINALS_MAX {
            return Err(Errno::ENOSPC);
        }
        let terminal = Terminal::new(unix, number as u32, line)?;
        if number == list.len() {
            list.try_push(None)?;
        }
        list[number] = Some(terminal.clone());
        drop(list);
        if let Err(error) = make_node(unix, terminal.number) {
            self.list.borrow_mut()[number] = None;
            return Err(error);
        }
        Ok(terminal)
    }

    pub(super) fn add_pty(&self, unix: &'static Unix) -> Result<Arc<Terminal>, Errno> {
        self.add(unix, Line::Pty(Pty::new()))
    }

    pub(super) fn remove_pty(&self, terminal: &Terminal) {
        self.list.borrow_mut()[terminal.number as usize] = None;
        remove_node(terminal.unix, terminal.number);
    }

    pub fn get(&self, number: u32) -> Option<Arc<Terminal>> {
        self.list.borrow().get(number as usize)?.clone()
    }

    pub fn console(&self) -> Option<Arc<Terminal>> {
        self.get(0)
    }

    /// The controlling terminal of a process.
    pub fn of_process(&self, process: &Process) -> Option<Arc<Terminal>> {
        if !process.family.get().has_terminal {
            return None;
        }
        let found = self.list.borrow().iter().flatten().find(|terminal| terminal.controls(process)).cloned();
        found.or_else(|| self.windows.list().into_iter().find(|window| window.controls(process)))
    }

    /// Whether the handler of the console's device has chained a signal.
    pub fn take_signal(&self) -> bool {
        let list = self.list.borrow();
        let console = list.first().and_then(Option::as_ref);
        console.is_some_and(|console| matches!(&console.line, Line::Console(line) if line.take_signal()))
    }

    /// A device of the machine has news.
    pub fn device(&self) {
        if let Some(console) = self.console() {
            console.device();
        }
    }

    /// The host's terminal has another size.
    pub fn set_window_size(&self, size: WindowSize) {
        if let Some(console) = self.console() {
            let effects = console.tty.borrow_mut().set_window_size(size);
            console.apply(effects);
        }
    }

    /// Opens a terminal's device for a program; `None` when the device is no terminal.
    ///
    /// Errors: `ENXIO` for /dev/tty without a controlling terminal and for a number that is none; `EIO` while a pseudo
    /// terminal is locked or when it has hung up; `EBUSY` for an exclusive one.
    pub fn open(
        &self,
        task: &Arc<Task>,
        unix: &'static Unix,
        device: (u32, u32),
        flags: u32,
    ) -> Result<Option<Arc<dyn Stream>>, Errno> {
        let terminal = match device {
            (5, 0) => self.of_process(&task.process),
            (5, 1) => self.console(),
            (5, 2) => return Ok(Some(PtyMaster::open(unix)?)),
            (TERMINAL_MAJOR, number) => self.get(number),
            (WINDOW_MAJOR, number) => Some(self.window(unix, number)?),
            _ => return Ok(None),
        };
        let terminal = terminal.ok_or(Errno::ENXIO)?;
        if terminal.master().is_some_and(|pty| pty.locked.get() || terminal.tty.borrow().is_hung_up()) {
            return Err(Errno::EIO);
        }
        if terminal.exclusive.get() && !task.process.can(CAP_SYS_ADMIN) {
            return Err(Errno::EBUSY);
        }
        if flags & O_NOCTTY == 0 && ![(5, 0), (5, 1), (WINDOW_MAJOR, 0)].contains(&device) {
            // A leader with a terminal, and a terminal with a session, keep theirs: that is no error.
            let _ = terminal.acquire(&task.process, &terminal.caller(task));
        }
        Ok(Some(TtyStream::new(&terminal)))
    }

    /// A process has ended. The end of a session's leader is the end of the session's terminal.
    pub fn process_ended(&self, process: &Process) {
        if process.family.get().session == process.pid
            && let Some(terminal) = self.of_process(process)
        {
            disassociate(&terminal, &[Signal::HangUp]);
        }
    }

    /// `TIOCNOTTY`, `setsid`: the process has no terminal any more, nor has its session when it is the leader.
    pub fn give_up(&self, process: &Process) {
        if process.family.get().session == process.pid
            && let Some(terminal) = self.of_process(process)
        {
            disassociate(&terminal, &[Signal::HangUp, Signal::Continue]);
        }
        let mut family = process.family.get();
        family.has_terminal = false;
        process.family.set(family);
        process.unbind_opens();
    }
}

/// Runs `act` with the kernel's own view of the names.
fn with_root<R>(unix: &Unix, act: impl FnOnce(View<'_>) -> R) -> R {
    let root = unix.names.root().clone();
    let credentials = Credentials::root();
    act(View::new(&root, &root, &credentials))
}

#[expect(clippy::disallowed_macros, reason = "a short name")]
fn make_node(unix: &Unix, number: u32) -> Result<(), Errno> {
    let path = format!("/dev/pts/{number}");
    let special = NewSpecial { kind: NodeKind::CharDevice(TERMINAL_MAJOR, number), mode: TTY_MODE };
    with_root(unix, |view| {
        let node = match unix.names.make_special(view, path.as_bytes(), special, unix.wall_time()) {
            Err(Errno::EEXIST) => return Ok(()),
            made => made?,
        };
        unix.names.set_owner(view.credentials, &node, None, Some(TTY_GROUP), unix.wall_time())
    })
}

#[expect(clippy::disallowed_macros, reason = "a short name")]
fn remove_node(unix: &Unix, number: u32) {
    let path = format!("/dev/pts/{number}");
    // It may be gone already, for root can remove it.
    let _ = with_root(unix, |view| unix.names.unlink(view, path.as_bytes(), unix.wall_time()));
}

/// The node of a terminal. Errors: as for any path.
#[expect(clippy::disallowed_macros, reason = "a short name")]
pub fn node_of(unix: &Unix, terminal: &Terminal) -> Result<Arc<Node>, Errno> {
    let folder = if terminal.window().is_some() { "tty" } else { "pts/" };
    let path = format!("/dev/{folder}{}", terminal.number);
    with_root(unix, |view| unix.names.lookup(view, path.as_bytes(), FinalLink::Follow))
}
