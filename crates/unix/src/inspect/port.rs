//! The port to the host tool: records out, records in.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bootimage::control::{Decoder, Record, header, kind};
use kernel::tty::WindowSize;
use machine::{Channel, Held, KernelCell, KernelValue, Received, TryQueue, try_collect, try_to_vec};

use crate::emulator::Unix;

/// Requests that wait until the port has room for their answers. The tool has one request under way for each asker.
const WAITING_MAX: usize = 16;

pub(crate) struct ControlPort {
    incoming: KernelCell<Decoder>,
    waiting: KernelCell<VecDeque<Vec<u8>>>,
    /// Part of a record is out: nothing else may be sent until the rest has followed.
    is_torn: KernelValue<bool>,
}

impl ControlPort {
    pub const fn new() -> ControlPort {
        ControlPort {
            incoming: KernelCell::new(Decoder::new()),
            waiting: KernelCell::new(VecDeque::new()),
            is_torn: KernelValue::new(false),
        }
    }

    /// Sends a record; sleeps for room.
    pub fn tell(&self, held: Held<'_>, unix: &Unix, kind: u8, payload: &[u8]) {
        while self.is_torn.get() {
            unix.scheduler.sleep(held, &[unix.channels.output()], None);
        }
        self.is_torn.set(true);
        for part in [&header(kind, payload.len() as u32)[..], payload] {
            self.send(held, unix, part);
        }
        self.is_torn.set(false);
        // Whoever found a torn record waits where those wait who look for room.
        unix.channels.wake_writers(unix.scheduler);
    }

    fn send(&self, held: Held<'_>, unix: &Unix, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let sent = unix.machine.send(Channel::Control, bytes);
            bytes = &bytes[sent..];
            if sent == 0 {
                unix.scheduler.sleep(held, &[unix.channels.output()], None);
            }
        }
    }

    /// A device of the machine has news: hears what the tool says, and answers as far as there is room.
    pub fn device(&self, unix: &'static Unix) {
        self.hear(unix);
        while self.answer_next(unix) {
            self.hear(unix);
        }
    }

    /// Takes records in. A broken stream of records is not read on; what nobody has room for stays in the channel.
    fn hear(&self, unix: &'static Unix) {
        let mut bytes = [0; 256];
        while self.waiting.borrow().len() < WAITING_MAX
            && unix.machine.receivable(Channel::Control) > 0
            && let Received::Bytes(count) = unix.machine.receive(Channel::Control, &mut bytes)
        {
            let mut incoming = self.incoming.borrow_mut();
            incoming.feed(&bytes[..count]);
            while let Ok(Some(record)) = incoming.next() {
                match record {
                    Record::WindowSize { rows, columns, x_pixels, y_pixels } => {
                        unix.terminals.set_window_size(WindowSize { rows, columns, x_pixels, y_pixels });
                    }
                    // Without memory it is not answered; the tool waits no longer than it likes.
                    Record::Request(request) => {
                        let _ = try_to_vec(request).and_then(|copy| self.waiting.borrow_mut().try_push_back(copy));
                    }
                    _ => {}
                }
            }
        }
    }

    /// Answers the request that came first; `false` when there is none or no room, which the device will tell.
    fn answer_next(&self, unix: &'static Unix) -> bool {
        let room = bootimage::inspect::ANSWER_BYTES_MAX + 8;
        if self.is_torn.get() || self.waiting.borrow().is_empty() {
            return false;
        }
        // Asking whether all is drained asks for the interrupt, too. The hosted machine always takes a whole record.
        if unix.machine.sendable(Channel::Control) < room && !unix.machine.is_drained(Channel::Control) {
            return false;
        }
        let Some(request) = self.waiting.borrow_mut().pop_front() else { return false };
        if let Some(answer) = super::answer(unix, &request) {
            let record = try_collect(header(kind::ANSWER, answer.len() as u32).into_iter().chain(answer));
            record.iter().for_each(|record| _ = unix.machine.send(Channel::Control, record));
        }
        true
    }
}
