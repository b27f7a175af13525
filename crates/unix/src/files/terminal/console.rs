//! The line of the console: the machine's terminal channel.

use alloc::vec::Vec;

use codestore::Code;
use kernel::call::Makers;
use kernel::tty::raw::{self, RAW_BYTES, RawHandler, RawTty};
use kernel::tty::{NoMemory, Tty};
use machine::{Channel, KernelCell, Machine, Received, try_filled};

use super::Terminal;

/// Most bytes handed to the channel at once: one of its buffers.
const SENT_BYTES: usize = 4096;

/// Bytes on their way between the channel and the tty.
pub struct Console {
    /// Received, and not yet taken by the tty. What the tty refuses stays in it; what has no room here stays in the channel,
    /// which holds up the sender.
    raw: RawTty,
    /// The device's interrupt goes here, if it goes to code.
    handler: KernelCell<Option<Code<RawHandler>>>,
    /// Room for moving bytes.
    scratch: KernelCell<Vec<u8>>,
}

impl Console {
    pub fn new() -> Result<Console, NoMemory> {
        let scratch = KernelCell::new(try_filled(0, RAW_BYTES).map_err(|_| NoMemory)?);
        Ok(Console { raw: RawTty::new()?, handler: KernelCell::new(None), scratch })
    }

    /// Has the device's interrupt go to code of its own, made for this ring, if the machine can do so.
    pub fn serve_by_code(&self, makers: Makers) {
        let handler = self.raw.synthesize(makers);
        if let Some(handler) = &handler {
            raw::bind(makers.machine, handler);
        }
        *self.handler.borrow_mut() = handler;
    }

    /// Whether the handler has chained a signal: the device has news.
    pub fn take_signal(&self) -> bool {
        self.raw.take_signal()
    }

    /// Moves output from the tty to the channel while that has room.
    pub fn take_from(&self, machine: &dyn Machine, tty: &KernelCell<Tty>) -> usize {
        let mut scratch = self.scratch.borrow_mut();
        let mut tty = tty.borrow_mut();
        let mut moved = 0;
        loop {
            // Nothing leaves the tty that the channel does not take.
            let room = machine.sendable(Channel::Terminal).min(SENT_BYTES);
            let taken = tty.take_output(&mut scratch[..room]);
            if taken == 0 {
                return moved;
            }
            machine.send(Channel::Terminal, &scratch[..taken]);
            moved += taken;
        }
    }

    /// All that was handed to the channel has left the machine.
    pub fn has_sent_all(&self, machine: &dyn Machine) -> bool {
        machine.is_drained(Channel::Terminal)
    }

    /// Moves input from the channel to the terminal's tty while that has room.
    pub fn give_to(&self, terminal: &Terminal) {
        loop {
            let received = self.receive(terminal);
            let mut scratch = self.scratch.borrow_mut();
            // The tty looks for ^S and ^Q in all that waits, so it is shown all.
            let waiting = self.raw.peek(&mut scratch);
            if waiting == 0 {
                break;
            }
            let effects = terminal.tty.borrow_mut().device_input(&scratch[..waiting]);
            drop(scratch);
            self.raw.skip(effects.accepted);
            terminal.apply(effects);
            if received == 0 || effects.accepted < waiting {
                break;
            }
        }
    }

    /// Takes what the channel has, behind what is kept already.
    fn receive(&self, terminal: &Terminal) -> usize {
        let machine = terminal.unix.machine;
        let mut scratch = self.scratch.borrow_mut();
        let (mut received, mut bytes) = (Received::Nothing, 0);
        // The handler puts into the ring, too.
        machine.between_interrupts(&mut || {
            let room = machine.receivable(Channel::Terminal).min(self.raw.room());
            if room > 0 || self.raw.is_empty() {
                received = machine.receive(Channel::Terminal, &mut scratch[..room]);
                bytes = if let Received::Bytes(bytes) = received { bytes } else { 0 };
                self.raw.put(&scratch[..bytes]);
            }
        });
        drop(scratch);
        if received == Received::End {
            terminal.hang_up();
        }
        bytes
    }
}
