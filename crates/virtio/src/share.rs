//! The device that shares a folder (virtio 1.2, 5.15, with QEMU's configuration): messages of 9P go out and answers come back, on slots.
//! What they say is not this crate's matter.

use alloc::vec::Vec;

use machine::{Dma, NoFrames, TryGrow, try_filled};

use crate::{Misbehaved, Piece, Queue, Refused, StartError, Token, Transport, feature, start};

/// The device has a name for its folder (feature bit).
const HAS_LABEL: u64 = 1;
/// Longer names are cut.
const LABEL_BYTES_MAX: usize = 64;
/// Two descriptors each, and a queue has 128.
const SLOTS_MAX: usize = 32;

/// Room for a question and for its answer.
struct Slot {
    question: Dma,
    answer: Dma,
    sent: Option<Token>,
}

pub struct Share<T: Transport> {
    transport: T,
    queue: Queue,
    slots: Vec<Slot>,
    label: Vec<u8>,
}

impl<T: Transport> Share<T> {
    /// Starts the device with up to `slots` slots of `pages` pages each way; with fewer where memory is short.
    pub fn start(
        transport: T,
        slots: usize,
        pages: usize,
        dma: impl Fn(usize) -> Result<Dma, NoFrames>,
    ) -> Result<Share<T>, StartError> {
        const QUEUE: u16 = 0;
        let most = slots.clamp(1, SLOTS_MAX);
        let wanted = HAS_LABEL | feature::INDIRECT | feature::EVENT_INDEX;
        let queue = start(&transport, wanted, |transport, features| {
            Queue::install(transport, QUEUE, 2 * most as u16, features, &dma)
        })?;
        let mut slots = Vec::new();
        slots.room_for_exact(most).map_err(|_| StartError::NoMemory)?;
        while slots.len() < most.min(usize::from(queue.size()) / 2) {
            let (Ok(question), Ok(answer)) = (dma(pages), dma(pages)) else { break };
            slots.put(Slot { question, answer, sent: None });
        }
        let label = label(&transport)?;
        if slots.is_empty() { Err(StartError::NoMemory) } else { Ok(Share { transport, queue, slots, label }) }
    }

    pub fn label(&self) -> &[u8] {
        &self.label
    }

    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Bytes of a question, and of an answer.
    pub fn room(&self) -> usize {
        self.slots.first().map_or(0, |slot| slot.question.bytes())
    }

    /// # Panics
    /// If there is no such slot, or no room; as `read`.
    pub fn write(&self, slot: usize, offset: usize, bytes: &[u8]) {
        self.slots[slot].question.write(offset, bytes);
    }

    pub fn read(&self, slot: usize, offset: usize, into: &mut [u8]) {
        self.slots[slot].answer.read(offset, into);
    }

    /// Gives the first `bytes` bytes of the slot's question to the device. Errors: `Malformed` for a slot that is under way, or for no
    /// bytes.
    pub fn send(&mut self, slot: usize, bytes: usize) -> Result<(), Refused> {
        let room = self.room();
        let Some(slot) = self.slots.get_mut(slot).filter(|slot| slot.sent.is_none() && bytes <= room) else {
            return Err(Refused::Malformed);
        };
        let question = Piece::ToDevice { address: slot.question.bus_address(0), bytes: bytes as u32 };
        let answer = Piece::FromDevice { address: slot.answer.bus_address(0), bytes: slot.answer.bytes() as u32 };
        slot.sent = Some(self.queue.offer(&[question, answer])?);
        self.queue.expect_news(&self.transport);
        if self.queue.must_tell(&self.transport) {
            self.transport.notify(self.queue.number());
        }
        Ok(())
    }

    /// A slot whose answer has come, and how many bytes of it.
    pub fn next_answer(&mut self) -> Result<Option<(usize, usize)>, Misbehaved> {
        self.transport.interrupt_cause();
        loop {
            if let Some(finished) = self.queue.finished()? {
                let place = self.slots.iter().position(|slot| slot.sent == Some(finished.token));
                // The queue knows its chains, so there is one.
                let Some(place) = place else { continue };
                self.slots[place].sent = None;
                return Ok(Some((place, finished.written as usize)));
            }
            // The next one interrupts, unless it has come by now.
            if !self.queue.expect_news(&self.transport) {
                return Ok(None);
            }
        }
    }
}

fn label<T: Transport>(transport: &T) -> Result<Vec<u8>, StartError> {
    let bytes = usize::from(transport.configuration(0)) | usize::from(transport.configuration(1)) << 8;
    let mut label = try_filled(0, bytes.min(LABEL_BYTES_MAX)).map_err(|_| StartError::NoMemory)?;
    label.iter_mut().zip(2..).for_each(|(byte, at)| *byte = transport.configuration(at));
    Ok(label)
}
