//! Verbs go to codecs by a ring, and answers come by another (4.4). One verb is under way at a time.

use core::sync::atomic::{Ordering, fence};

use machine::{Dma, NoFrames, Width};

use crate::Lost;
use crate::controller::Controller;
use crate::registers::*;

/// Where the rings lie in their page: each begins at a multiple of 128 bytes.
const VERBS: usize = 0;
const ANSWERS: usize = 2048;
/// Bit 4 of an answer's second word: nobody has asked for it (4.4.2.1).
const UNASKED: u64 = 1 << 4;
/// Those that are passed over before the answer.
const UNASKED_MOST: usize = 256;

pub struct Commands {
    page: Dma,
    verbs: Ring,
    answers: Ring,
}

/// Where the last entry lies that we have written or read.
struct Ring {
    entries: u16,
    last: u16,
}

impl Ring {
    /// The ring of the most entries that the controller can do, as its size register says (3.3.24).
    fn largest<R: Registers>(registers: &R, size: u32) -> Ring {
        let (entries, code) = match registers.read8(size) >> 4 {
            can if can & 4 != 0 => (256, 2),
            can if can & 2 != 0 => (16, 1),
            _ => (2, 0),
        };
        registers.write8(size, code);
        Ring { entries, last: 0 }
    }

    fn advance(&mut self) -> usize {
        self.last = (self.last + 1) % self.entries;
        usize::from(self.last)
    }
}

impl Commands {
    pub fn start<R: Registers>(
        controller: &Controller<R>,
        dma: &impl Fn(usize) -> Result<Dma, NoFrames>,
    ) -> Result<Commands, Lost> {
        let page = dma(1).map_err(|_| Lost::NoMemory)?;
        if !controller.reaches(page.bus_address(0)) {
            return Err(Lost::NoMemory);
        }
        controller.write8(VERBS_CONTROL, 0);
        controller.write8(ANSWERS_CONTROL, 0);
        controller.wait(|own| (own.read8(VERBS_CONTROL) | own.read8(ANSWERS_CONTROL)) & RING_RUNS == 0)?;
        let place = |low: u32, high: u32, offset: usize| {
            let address = page.bus_address(offset);
            controller.write32(low, address as u32);
            controller.write32(high, (address >> 32) as u32);
        };
        place(VERBS_LOW, VERBS_HIGH, VERBS);
        place(ANSWERS_LOW, ANSWERS_HIGH, ANSWERS);
        let verbs = Ring::largest(&**controller, VERBS_SIZE);
        let answers = Ring::largest(&**controller, ANSWERS_SIZE);
        controller.write16(VERBS_WRITTEN, 0);
        // Not all hardware shows the bit of the reset (3.3.21 says that it does), so a wait for it decides nothing; a ring that was not
        // reset is found out by the first verb.
        controller.write16(VERBS_READ, VERBS_READ_RESET);
        let _ = controller.wait(|own| own.read16(VERBS_READ) & VERBS_READ_RESET != 0);
        controller.write16(VERBS_READ, 0);
        controller.write16(ANSWERS_WRITTEN, ANSWERS_WRITTEN_RESET);
        controller.write16(ANSWERS_COUNT, 1);
        controller.write8(VERBS_CONTROL, RING_RUNS);
        controller.write8(ANSWERS_CONTROL, RING_RUNS | RING_TELLS);
        Ok(Commands { page, verbs, answers })
    }

    /// Sends a verb to a codec and waits for its answer.
    pub fn ask<R: Registers>(&mut self, controller: &Controller<R>, codec: u8, verb: u32) -> Result<u32, Lost> {
        let at = self.verbs.advance();
        self.page.store(VERBS + 4 * at, Width::Four, (u32::from(codec) << 28 | verb).into());
        // The verb is there before the controller hears of it.
        fence(Ordering::Release);
        controller.write16(VERBS_WRITTEN, self.verbs.last);
        for _ in 0..UNASKED_MOST {
            let [answer, from] = self.next_answer(controller)?;
            if from & UNASKED == 0 {
                return if from & 15 == u64::from(codec) { Ok(answer as u32) } else { Err(Lost::Answer) };
            }
        }
        Err(Lost::Answer)
    }

    fn next_answer<R: Registers>(&mut self, controller: &Controller<R>) -> Result<[u64; 2], Lost> {
        let before = self.answers.last;
        controller.wait(|own| own.read16(ANSWERS_WRITTEN) != before)?;
        if controller.read16(ANSWERS_WRITTEN) >= self.answers.entries {
            return Err(Lost::Answer);
        }
        // What was stored before the pointer moved.
        fence(Ordering::Acquire);
        let at = ANSWERS + 8 * self.answers.advance();
        // The controller waits for this after as many answers as it was told (3.3.28).
        controller.write8(ANSWERS_STATUS, ANSWERS_ALL);
        Ok([0, 4].map(|word| self.page.load(at + word, Width::Four)))
    }
}
