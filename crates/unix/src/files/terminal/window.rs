//! Text windows: `/dev/tty1` to `/dev/tty8`, terminals whose line is a screen in memory, which `/dev/vcs1` and `/dev/vcsa1` show
//! (vcs(4)). There is no keyboard: a reader waits until `TIOCSTI` types something, or a program asks the terminal who it is.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use kernel::file::VirtualFile;
use kernel::screen::{COLUMNS, Machines, ROWS, TextWindow};
use kernel::stream::{Io, UserRange};
use kernel::tty::{Gate, WindowSize};
use machine::{KernelCell, try_collect};

use super::ends::write_pieces;
use super::{Line, Terminal};
use crate::devices::Device;
use crate::emulator::Unix;
use crate::files::open_file::Body;
use crate::files::terminal::registry::Terminals;
use crate::files::text::TextFile;
use crate::limits::PIECE_BYTES;

/// Windows that there can be. A window is made when it is first opened, and stays.
pub const WINDOWS: u32 = 8;
/// Major numbers of windows and of what they show (Linux `devices.txt`).
pub const WINDOW_MAJOR: u32 = 4;
const CELLS_MAJOR: u32 = 7;
/// Minor number from which on attributes are shown, too.
const WITH_ATTRIBUTES: u32 = 128;

/// All windows, and the machines that they share.
#[derive(Default)]
pub struct Windows {
    list: KernelCell<[Option<Arc<Terminal>>; WINDOWS as usize]>,
    machines: KernelCell<Option<Arc<Machines>>>,
}

impl Windows {
    #[expect(clippy::disallowed_methods, reason = "WINDOWS at most")]
    pub fn list(&self) -> Vec<Arc<Terminal>> {
        self.list.borrow().iter().flatten().cloned().collect()
    }

    /// Window `number`, from 1; 0 is the first, too. `None`: it was not made yet.
    fn get(&self, number: u32) -> Option<Arc<Terminal>> {
        self.list.borrow().get(number.max(1) as usize - 1)?.clone()
    }
}

impl Terminals {
    /// Window `number`; made if it is not there. Errors: `ENXIO`, `ENOMEM`.
    pub(super) fn window(&self, unix: &'static Unix, number: u32) -> Result<Arc<Terminal>, Errno> {
        if number > WINDOWS {
            return Err(Errno::ENXIO);
        }
        if let Some(window) = self.windows.get(number) {
            return Ok(window);
        }
        let mut machines = self.windows.machines.borrow_mut();
        let machines = match &*machines {
            Some(machines) => machines.clone(),
            None => machines.insert(Machines::new()).clone(),
        };
        let number = number.max(1);
        let terminal = Terminal::new(unix, number, Line::Window(Box::new(TextWindow::new(&machines))))?;
        if let (Line::Window(window), Some(makers)) = (&terminal.line, unix.makers()) {
            window.synthesize(&terminal.tty.borrow(), makers);
        }
        let size = WindowSize { rows: ROWS as u16, columns: COLUMNS as u16, ..WindowSize::default() };
        // Nobody listens for the change of size yet.
        let _ = terminal.tty.borrow_mut().set_window_size(size);
        self.windows.list.borrow_mut()[number as usize - 1] = Some(terminal.clone());
        Ok(terminal)
    }

    /// What a device of major number [`CELLS_MAJOR`] shows now. Error: `ENXIO` when there is no such window.
    pub fn shown(&self, minor: u32) -> Result<Vec<u8>, Errno> {
        let terminal = self.windows.get(minor % WITH_ATTRIBUTES).ok_or(Errno::ENXIO)?;
        let Line::Window(window) = &terminal.line else { return Err(Errno::ENXIO) };
        let cells = window.cells();
        Ok(match minor / WITH_ATTRIBUTES {
            0 => try_collect(cells.into_iter().map(|cell| cell as u8))?,
            1 => {
                let cursor = window.cursor();
                let head = [ROWS as u8, COLUMNS as u8, cursor.column as u8, cursor.row as u8];
                try_collect(head.into_iter().chain(cells.into_iter().flat_map(u16::to_le_bytes)))?
            }
            _ => return Err(Errno::ENXIO),
        })
    }
}

/// `/dev/vcsN` and `/dev/vcsaN`. (The windows themselves are terminals.)
pub(crate) const DEVICE: Device = Device {
    names: |show| {
        // The window that is seen first has no number.
        show(format_args!("vcs"), (CELLS_MAJOR, 0), 0o660);
        show(format_args!("vcsa"), (CELLS_MAJOR, WITH_ATTRIBUTES), 0o660);
        for number in 1..=WINDOWS {
            show(format_args!("vcs{number}"), (CELLS_MAJOR, number), 0o660);
            show(format_args!("vcsa{number}"), (CELLS_MAJOR, number + WITH_ATTRIBUTES), 0o660);
        }
    },
    open: |call, node, (major, minor), _| {
        let cells = Arc::new(Cells { unix: call.unix, minor });
        (major == CELLS_MAJOR).then(|| TextFile::open(node, cells).map(|file| Body::File(file)))
    },
    request: Device::no_request,
};

/// What such a device shows, as a file: each read looks anew.
struct Cells {
    unix: &'static Unix,
    minor: u32,
}

impl VirtualFile for Cells {
    fn content(&self) -> Result<Vec<u8>, Errno> {
        self.unix.terminals.shown(self.minor)
    }

    fn window(&self, position: u64, bytes: usize) -> Option<Result<Vec<u8>, Errno>> {
        let from = |shown: Vec<u8>| try_collect(shown.into_iter().skip(position as usize).take(bytes));
        Some(self.content().and_then(|shown| Ok(from(shown)?)))
    }
}

impl Terminal {
    pub fn window(&self) -> Option<&TextWindow> {
        match &self.line {
            Line::Window(window) => Some(window),
            _ => None,
        }
    }

    /// A program's write to a window: what the synthesized routine has left of it.
    pub(super) fn write_window(
        &self,
        io: &Io<'_>,
        from: UserRange,
        put: impl FnMut(&[u8]) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let (done, answer) = self.window().map_or_else(Default::default, |window| window.resume(from));
        self.hear(&answer);
        match write_pieces(io, from.after(done), PIECE_BYTES, put) {
            Ok(bytes) => Ok(done + bytes),
            Err(_) if done > 0 => Ok(done),
            Err(error) => Err(error),
        }
    }

    /// Past the tty's ring, while it is open for that. Returns whether it is.
    pub(super) fn put_through(&self, bytes: &[u8]) -> bool {
        let (Some(window), gate) = (self.window(), self.tty.borrow().gate()) else { return false };
        if gate == Gate::Closed {
            return false;
        }
        let answer = window.put(gate, bytes, &self.tty.borrow());
        self.hear(&answer);
        true
    }

    /// What waits in the tty's ring. Returns the number of bytes.
    pub(super) fn show(&self, window: &TextWindow) -> usize {
        let mut piece = [0; 512];
        let mut shown = 0;
        loop {
            let taken = self.tty.borrow_mut().take_output(&mut piece);
            if taken == 0 {
                return shown;
            }
            let answer = window.put(Gate::Raw, &piece[..taken], &self.tty.borrow());
            self.hear(&answer);
            shown += taken;
        }
    }

    /// What the terminal answers comes as if it were typed.
    fn hear(&self, answer: &[u8]) {
        if !answer.is_empty() {
            let effects = self.tty.borrow_mut().device_input(answer);
            self.apply(effects);
        }
    }
}
