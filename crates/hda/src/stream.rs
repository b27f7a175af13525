//! A stream descriptor for output: a ring of samples that the controller fetches by itself, over and over (4.5).

use core::sync::atomic::{Ordering, fence};

use alloc::vec::Vec;

use machine::{Dma, NoFrames, PAGE_BYTES, Pace, TryGrow, Width};

use crate::Lost;
use crate::controller::Controller;
use crate::registers::{self, Registers, stream as register};

/// Pages of samples: more than half a second at 48,000 frames a second.
const PAGES: usize = 32;
/// Entries of a list fill its page: address, bytes, and whether its end is told (3.6.3).
const ENTRY_BYTES: usize = 16;
const ENTRIES_MOST: usize = PAGE_BYTES / ENTRY_BYTES;
const TELLS_END: u64 = 1;
/// The number by which converter and descriptor know each other; 0 is nobody's (4.5.2).
pub const NUMBER: u8 = 1;

pub struct Stream {
    /// Where its registers begin.
    base: u32,
    list: Dma,
    pages: Vec<Dma>,
    /// Bytes of the ring that is played.
    bytes: usize,
}

impl Stream {
    /// # Errors
    /// `NoMemory`, `NoOutput`.
    pub fn make<R: Registers>(
        controller: &Controller<R>,
        dma: &impl Fn(usize) -> Result<Dma, NoFrames>,
    ) -> Result<Stream, Lost> {
        let base = registers::STREAMS + registers::STREAM_BYTES * controller.first_output()?;
        let page = || dma(1).ok().filter(|page| controller.reaches(page.bus_address(0))).ok_or(Lost::NoMemory);
        let list = page()?;
        let mut pages = Vec::new();
        pages.room_for_exact(PAGES).map_err(|_| Lost::NoMemory)?;
        for _ in 0..PAGES {
            pages.put(page()?);
        }
        Ok(Stream { base, list, pages, bytes: 0 })
    }

    pub const RING_BYTES: usize = PAGES * PAGE_BYTES;
    /// Each page may cut a period in two.
    pub const PERIODS_MOST: usize = ENTRIES_MOST - PAGES;

    /// Its bit among those of all descriptors.
    pub fn bit(&self) -> u32 {
        1 << ((self.base - registers::STREAMS) / registers::STREAM_BYTES)
    }

    /// Begins to play the ring from its first byte.
    pub fn begin<R: Registers>(&mut self, controller: &Controller<R>, pace: Pace, format: u16) -> Result<(), Lost> {
        self.halt(controller)?;
        let entries = self.list_pieces(pace).ok_or(Lost::NoMemory)?;
        let address = self.list.bus_address(0);
        controller.write8(self.base + register::NUMBER, NUMBER << 4);
        controller.write32(self.base + register::BYTES, self.bytes as u32);
        controller.write16(self.base + register::LAST, entries as u16 - 1);
        controller.write16(self.base + register::FORMAT, format);
        controller.write32(self.base + register::LIST_LOW, address as u32);
        controller.write32(self.base + register::LIST_HIGH, (address >> 32) as u32);
        // List and samples are there before the controller looks.
        fence(Ordering::Release);
        let tells = register::TELLS_PERIODS | register::TELLS_ERRORS;
        controller.write8(self.base + register::CONTROL, register::RUNS | tells);
        Ok(())
    }

    /// Lists the pieces of all periods, which pages cut; the end of each period is told. `None`: they do not fit.
    fn list_pieces(&mut self, pace: Pace) -> Option<usize> {
        let (period, mut entries) = (pace.period_bytes, 0);
        self.bytes = period.checked_mul(pace.periods).filter(|bytes| *bytes <= Stream::RING_BYTES)?;
        let mut at = 0;
        while at < self.bytes {
            let (to_page_end, to_period_end) = (PAGE_BYTES - at % PAGE_BYTES, period - at % period);
            let bytes = to_page_end.min(to_period_end);
            let tells = if bytes == to_period_end { TELLS_END } else { 0 };
            let entry = ENTRY_BYTES * entries;
            if entry == PAGE_BYTES {
                return None;
            }
            let address = self.pages[at / PAGE_BYTES].bus_address(at % PAGE_BYTES);
            self.list.store(entry, Width::Eight, address);
            self.list.store(entry + 8, Width::Four, bytes as u64);
            self.list.store(entry + 12, Width::Four, tells);
            (at, entries) = (at + bytes, entries + 1);
        }
        // A list has at least two (3.3.38).
        (entries > 1).then_some(entries)
    }

    /// Stops and forgets (4.5.4): the descriptor begins from its first byte next time.
    pub fn halt<R: Registers>(&self, controller: &Controller<R>) -> Result<(), Lost> {
        let control = self.base + register::CONTROL;
        controller.write8(control, 0);
        controller.wait(|own| own.read8(control) & register::RUNS == 0)?;
        controller.write8(control, register::RESET);
        controller.wait(|own| own.read8(control) & register::RESET != 0)?;
        controller.write8(control, 0);
        controller.wait(|own| own.read8(control) & register::RESET == 0)
    }

    pub fn write(&self, offset: usize, from: &[u8]) {
        let mut done = 0;
        while done < from.len() {
            let at = offset + done;
            let bytes = (PAGE_BYTES - at % PAGE_BYTES).min(from.len() - done);
            self.pages[at / PAGE_BYTES].write(at % PAGE_BYTES, &from[done..done + bytes]);
            done += bytes;
        }
    }

    /// The byte of the ring that is played now.
    pub fn position<R: Registers>(&self, controller: &Controller<R>) -> Result<usize, Lost> {
        if controller.read8(self.base + register::STATUS) & register::LIST_ERROR != 0 {
            return Err(Lost::Position);
        }
        match controller.read32(self.base + register::POSITION) as usize {
            // Its end is its beginning.
            at if at == self.bytes => Ok(0),
            at if at < self.bytes => Ok(at),
            _ => Err(Lost::Position),
        }
    }

    /// How many bytes the controller may be ahead of what it plays (3.3.39).
    pub fn fetched_ahead<R: Registers>(&self, controller: &Controller<R>) -> usize {
        usize::from(controller.read16(self.base + register::FETCHED)).min(PAGE_BYTES) + 1
    }

    /// It interrupts again at the next period's end.
    pub fn acknowledge<R: Registers>(&self, controller: &Controller<R>) {
        controller.write8(self.base + register::STATUS, register::PERIOD | register::LATE);
    }
}
