//! Settings of a terminal: `TCGETS` and its kin.

use abi::Errno;
use abi::tty::*;
use kernel::tty::termios::{TERMIOS_BYTES, TERMIOS2_BYTES};
use kernel::tty::{Queue, Termios};

use super::wait_until_sent;
use crate::call::{Call, CallResult};
use crate::files::terminal::Terminal;

/// When a change takes effect, and what it throws away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Now,
    Drained,
    DrainedAndFlushed,
}

/// How a program lays out the settings.
#[derive(Clone, Copy)]
enum Layout {
    /// `struct termio`, 18 bytes: 16-bit modes, 8 control characters.
    Short,
    Usual,
    WithSpeeds,
}

const TERMIO_BYTES: usize = 18;
const TERMIO_CHARACTERS: usize = 8;

pub fn serve(call: &Call<'_>, terminal: &Terminal, request: u32, argument: u64) -> CallResult {
    let set = |layout, when| set(call, terminal, argument, layout, when);
    match request {
        TCGETS => {
            let bytes = terminal.tty.borrow().termios().to_bytes();
            call.copy_out(argument, &bytes).map(|()| 0)
        }
        TCGETS2 => {
            let bytes = terminal.tty.borrow().termios().to_bytes2();
            call.copy_out(argument, &bytes).map(|()| 0)
        }
        TCGETA => {
            let bytes = short(terminal.tty.borrow().termios());
            call.copy_out(argument, &bytes).map(|()| 0)
        }
        TCSETS => set(Layout::Usual, When::Now),
        TCSETSW => set(Layout::Usual, When::Drained),
        TCSETSF => set(Layout::Usual, When::DrainedAndFlushed),
        TCSETS2 => set(Layout::WithSpeeds, When::Now),
        TCSETSW2 => set(Layout::WithSpeeds, When::Drained),
        TCSETSF2 => set(Layout::WithSpeeds, When::DrainedAndFlushed),
        TCSETA => set(Layout::Short, When::Now),
        TCSETAW => set(Layout::Short, When::Drained),
        TCSETAF => set(Layout::Short, When::DrainedAndFlushed),
        TIOCGSOFTCAR => {
            let local = terminal.tty.borrow().termios().c_cflag & CLOCAL != 0;
            call.write(argument, &u32::from(local)).map(|()| 0)
        }
        _ => Err(Errno::ENOTTY),
    }
}

fn set(call: &Call<'_>, terminal: &Terminal, argument: u64, layout: Layout, when: When) -> CallResult {
    terminal.permit_change(call.task)?;
    let old = *terminal.tty.borrow().termios();
    let new = read(call, argument, layout, &old)?;
    if when == When::DrainedAndFlushed {
        let effects = terminal.tty.borrow_mut().flush(Queue::Input);
        terminal.apply(effects);
    }
    if when != When::Now {
        wait_until_sent(call, terminal)?;
    }
    let effects = terminal.tty.borrow_mut().set_termios(new);
    terminal.apply(effects);
    terminal.made_room();
    Ok(0)
}

fn read(call: &Call<'_>, address: u64, layout: Layout, old: &Termios) -> Result<Termios, Errno> {
    match layout {
        Layout::Usual => {
            let mut bytes = [0; TERMIOS_BYTES];
            call.copy_in(address, &mut bytes)?;
            Ok(old.with_bytes(&bytes))
        }
        Layout::WithSpeeds => {
            let mut bytes = [0; TERMIOS2_BYTES];
            call.copy_in(address, &mut bytes)?;
            Ok(old.with_bytes2(&bytes))
        }
        Layout::Short => {
            let mut bytes = [0; TERMIO_BYTES];
            call.copy_in(address, &mut bytes)?;
            Ok(with_short(old, &bytes))
        }
    }
}

fn short(termios: &Termios) -> [u8; TERMIO_BYTES] {
    let mut bytes = [0; TERMIO_BYTES];
    let modes = [termios.c_iflag, termios.c_oflag, termios.c_cflag, termios.c_lflag];
    for (place, mode) in bytes.chunks_exact_mut(2).zip(modes) {
        place.copy_from_slice(&(mode as u16).to_le_bytes());
    }
    bytes[8] = termios.c_line;
    bytes[9..9 + TERMIO_CHARACTERS].copy_from_slice(&termios.c_cc[..TERMIO_CHARACTERS]);
    bytes
}

/// The lower halves of the modes and the first control characters are replaced.
fn with_short(old: &Termios, bytes: &[u8; TERMIO_BYTES]) -> Termios {
    let lower = |mode: u32, at: usize| mode & !0xFFFF | u32::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let mut c_cc = old.c_cc;
    c_cc[..TERMIO_CHARACTERS].copy_from_slice(&bytes[9..9 + TERMIO_CHARACTERS]);
    let new = Termios {
        c_iflag: lower(old.c_iflag, 0),
        c_oflag: lower(old.c_oflag, 2),
        c_cflag: lower(old.c_cflag, 4),
        c_lflag: lower(old.c_lflag, 6),
        c_line: bytes[8],
        c_cc,
        ..*old
    };
    old.with_bytes(&new.to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_settings_come_back_as_they_were() {
        let old = Termios::default();
        assert_eq!(with_short(&old, &short(&old)), old);
    }

    #[test]
    fn short_settings_leave_the_rest_alone() {
        let old = Termios::default();
        let mut bytes = short(&old);
        bytes[0..2].copy_from_slice(&0u16.to_le_bytes());
        bytes[9] = 0x18;
        let new = with_short(&old, &bytes);
        assert_eq!((new.c_iflag & 0xFFFF, new.c_cc[0]), (0, 0x18));
        assert_eq!(new.c_cc[TERMIO_CHARACTERS..], old.c_cc[TERMIO_CHARACTERS..]);
    }
}
