//! The entropy device (virtio 1.2, 5.4): it fills what it is given with random bytes.

use machine::{Dma, NoFrames, PAGE_BYTES};

use crate::{Misbehaved, Piece, Queue, Refused, StartError, Token, Transport, feature, start};

/// Why nothing is to be had from the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    Misbehaved(Misbehaved),
    /// It gives buffers back without a byte.
    Empty,
}

const ZEROS: [u8; 256] = [0; 256];

/// One buffer goes back and forth.
pub struct Entropy<T: Transport> {
    transport: T,
    queue: Queue,
    buffer: Dma,
    asked: Option<Token>,
}

impl<T: Transport> Entropy<T> {
    /// Starts the device; `dma` gives pages.
    pub fn start(transport: T, dma: impl Fn(usize) -> Result<Dma, NoFrames>) -> Result<Entropy<T>, StartError> {
        const QUEUE: u16 = 0;
        const ENTRIES: u16 = 4;
        let queue = start(&transport, feature::EVENT_INDEX, |transport, features| {
            Queue::install(transport, QUEUE, ENTRIES, features, &dma)
        })?;
        let buffer = dma(1).map_err(|NoFrames| StartError::NoMemory)?;
        Ok(Entropy { transport, queue, buffer, asked: None })
    }

    /// Asks for up to `bytes` bytes, at most a page, unless the device is busy with it. It interrupts when it has some.
    pub fn ask(&mut self, bytes: usize) -> Result<(), Lost> {
        if self.asked.is_some() {
            return Ok(());
        }
        let bytes = bytes.clamp(1, PAGE_BYTES) as u32;
        let piece = Piece::FromDevice { address: self.buffer.bus_address(0), bytes };
        match self.queue.offer(&[piece]) {
            Ok(token) => self.asked = Some(token),
            Err(Refused::Broken(what)) => return Err(Lost::Misbehaved(what)),
            // One piece in an empty queue of at least one entry.
            Err(Refused::Full | Refused::Malformed) => return Err(Lost::Empty),
        }
        self.queue.expect_news(&self.transport);
        if self.queue.must_tell(&self.transport) {
            self.transport.notify(self.queue.number());
        }
        Ok(())
    }

    /// What has come, if something has: the first bytes of `into` are random. Bytes that do not fit are not used again.
    pub fn take(&mut self, into: &mut [u8]) -> Result<usize, Lost> {
        self.transport.interrupt_cause();
        let Some(finished) = self.queue.finished().map_err(Lost::Misbehaved)? else { return Ok(0) };
        self.asked = None;
        let count = into.len().min(finished.written as usize);
        if count == 0 {
            return Err(Lost::Empty);
        }
        self.buffer.read(0, &mut into[..count]);
        // Who gets them is the only one who has them.
        for at in (0..finished.written as usize).step_by(ZEROS.len()) {
            self.buffer.write(at, &ZEROS[..ZEROS.len().min(finished.written as usize - at)]);
        }
        Ok(count)
    }

    /// Asks and waits, as long as `patience` lasts: how many bytes came.
    pub fn fill(&mut self, into: &mut [u8], mut patience: impl FnMut() -> bool) -> Result<usize, Lost> {
        let mut filled = 0;
        while filled < into.len() {
            self.ask(into.len() - filled)?;
            let count = self.take(&mut into[filled..])?;
            filled += count;
            if count == 0 && !patience() {
                break;
            }
        }
        Ok(filled)
    }
}

impl<T: Transport> Drop for Entropy<T> {
    /// The device forgets the buffer before it becomes somebody else's.
    fn drop(&mut self) {
        self.transport.set_status(0);
    }
}
