//! The line of the console: the machine's terminal channel.

use alloc::vec;
use alloc::vec::Vec;

use kernel::tty::Tty;
use machine::{Channel, KernelCell, Machine, Received};
use queue::spsc::{self, Consumer, Producer};

use super::Terminal;

/// Most bytes kept that the tty has no room for. What exceeds it stays in the channel, which holds up the sender.
const KEPT_BYTES: usize = 4096;
/// Most bytes handed to the channel at once: one of its buffers.
const SENT_BYTES: usize = 4096;

/// Bytes on their way between the channel and the tty.
pub struct Console {
    /// Received, and not yet taken by the tty: an SP-SC queue, for the channel is one producer and the tty one consumer
    /// (S-38). What the tty refuses stays in it.
    kept: KernelCell<Kept>,
    /// Room for moving bytes.
    scratch: KernelCell<Vec<u8>>,
}

type Kept = (Producer<u8>, Consumer<u8>);

impl Console {
    pub fn new() -> Console {
        Console { kept: KernelCell::new(spsc::pair(KEPT_BYTES)), scratch: KernelCell::new(vec![0; SENT_BYTES]) }
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
            let waiting = self.kept.borrow_mut().1.peek(&mut scratch[..KEPT_BYTES]);
            if waiting == 0 {
                break;
            }
            let effects = terminal.tty.borrow_mut().device_input(&scratch[..waiting]);
            drop(scratch);
            self.kept.borrow_mut().1.skip(effects.accepted);
            terminal.apply(effects);
            if received == 0 || effects.accepted < waiting {
                break;
            }
        }
    }

    /// Takes what the channel has, behind what is kept already.
    fn receive(&self, terminal: &Terminal) -> usize {
        let machine = terminal.unix.machine;
        let mut kept = self.kept.borrow_mut();
        let free = kept.0.room();
        let room = machine.receivable(Channel::Terminal).min(free);
        if room == 0 && free < KEPT_BYTES {
            return 0;
        }
        let mut scratch = self.scratch.borrow_mut();
        let received = machine.receive(Channel::Terminal, &mut scratch[..room]);
        let bytes = if let Received::Bytes(bytes) = received { bytes } else { 0 };
        kept.0.put_slice(&scratch[..bytes]);
        drop((kept, scratch));
        if received == Received::End {
            terminal.hang_up();
        }
        bytes
    }
}
