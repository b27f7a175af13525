//! Lines that the plan raises, and memory for devices that are not there.

use machine::{
    Claimed, DeviceEntry, Dma, DmaMemory, Entry, FrameNumber, Frames, Line, LineControl, LineError, LineTable, Lines,
    LocalValue, Message, NoFrames, PhysicalMemory, Procedure, ProcessorNumber, Width,
};

use crate::SimMachine;

/// The table, a bit for each masked place, and one for each raised while it was.
#[derive(Default)]
pub struct SimLines {
    table: LineTable,
    masked: LocalValue<u32>,
    waiting: LocalValue<u32>,
}

impl SimLines {
    fn place_of(&self, number: u32) -> Option<usize> {
        let is = |line| matches!(line, Some(Line::Wired { number: own, .. }) if own == number);
        (0..machine::LINES_MAX).find(|place| is(self.table.line(*place)))
    }

    /// The line is raised: the default handler masks and queues it. One that is masked comes when it is opened.
    pub fn raise(&self, number: u32) {
        let Some(place) = self.place_of(number) else { return };
        let bit = 1 << place;
        if self.masked.get() & bit != 0 {
            self.waiting.set(self.waiting.get() | bit);
        } else if self.table.came(place) {
            self.masked.set(self.masked.get() | bit);
        }
    }

    /// What the default handler chains to.
    pub fn serve(&self) {
        self.table.serve(|place, line| {
            let bit = 1 << place;
            self.masked.set(self.masked.get() & !bit);
            if self.waiting.get() & bit != 0
                && let Line::Wired { number, .. } = line
            {
                self.waiting.set(self.waiting.get() & !bit);
                self.raise(number);
            }
        });
    }
}

impl Lines for SimMachine {
    fn claim(&self, line: Line, on: ProcessorNumber, procedure: Procedure) -> Result<Claimed, LineError> {
        if on != ProcessorNumber::FIRST {
            return Err(LineError::NoProcessor);
        }
        let place = self.lines.table.claim(line, procedure)?;
        Ok(Claimed::new(place, self.the()))
    }
}

impl LineControl for SimMachine {
    fn lead(&self, _place: usize, entry: Option<Entry<DeviceEntry>>) -> Result<(), LineError> {
        if entry.is_some() { Err(LineError::NoCode) } else { Ok(()) }
    }

    fn message(&self, place: usize) -> Option<Message> {
        (self.lines.table.line(place)? == Line::Message).then_some(Message { address: 0, data: place as u32 })
    }

    fn give_back(&self, place: usize) {
        self.lines.table.release(place);
        for bits in [&self.lines.masked, &self.lines.waiting] {
            bits.set(bits.get() & !(1 << place));
        }
    }
}

impl SimMachine {
    pub(crate) fn dma_pages(&self, pages: usize) -> Result<Dma, NoFrames> {
        // Frames that no pool has got: a plan for devices leaves some.
        let mut free = self.device_frames.borrow_mut();
        if free.count() < pages {
            return Err(NoFrames);
        }
        let row = free.split(pages as u32);
        (0..pages as u32).for_each(|index| self.fill(row.number(index), 0, machine::PAGE_BYTES, 0));
        Ok(Dma::new(row, self.the()))
    }

    /// Frames for devices, of those that the machine has.
    pub fn give_devices(&self, frames: Frames) {
        *self.device_frames.borrow_mut() = frames;
    }
}

/// What a device does with memory, by addresses of the bus.
impl SimMachine {
    /// # Panics
    /// If the range is not memory of the machine: a device of a test must not do that.
    pub fn bus_read(&self, address: u64, into: &mut [u8]) {
        self.frames.bytes(address, into.len(), |bytes| into.copy_from_slice(bytes));
    }

    /// # Panics
    /// As `bus_read`.
    pub fn bus_write(&self, address: u64, from: &[u8]) {
        self.frames.bytes(address, from.len(), |bytes| bytes.copy_from_slice(from));
    }
}

impl DmaMemory for SimMachine {
    fn load(&self, frame: FrameNumber, offset: usize, width: Width) -> u64 {
        let mut bytes = [0; 8];
        PhysicalMemory::read(self, frame, offset, &mut bytes[..width.bytes()]);
        u64::from_le_bytes(bytes)
    }

    fn store(&self, frame: FrameNumber, offset: usize, width: Width, value: u64) {
        PhysicalMemory::write(self, frame, offset, &value.to_le_bytes()[..width.bytes()]);
    }

    fn read(&self, frame: FrameNumber, offset: usize, into: &mut [u8]) {
        PhysicalMemory::read(self, frame, offset, into);
    }

    fn write(&self, frame: FrameNumber, offset: usize, from: &[u8]) {
        PhysicalMemory::write(self, frame, offset, from);
    }

    fn code_address(&self, _frame: FrameNumber) -> u64 {
        0
    }

    /// One owner at a time: what comes back is given to the next.
    fn give_back(&self, frames: Frames) {
        let mut free = self.device_frames.borrow_mut();
        if free.count() == 0 {
            *free = frames;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use machine::Nanos;

    use super::*;
    use crate::Plan;

    #[test]
    fn lines_of_a_plan_chain_in_order_and_what_is_masked_comes_later() {
        let plan = Plan { lines: vec![(10, 3), (10, 4), (10, 3), (20, 3)], ..Plan::new(1) };
        let machine = SimMachine::new(plan);
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let note = |number: u32| -> Procedure {
            let seen = seen.clone();
            Arc::new(move || seen.lock().unwrap().push(number))
        };
        let three = machine.claim(Line::level(3), ProcessorNumber::FIRST, note(3)).unwrap();
        let four = machine.claim(Line::level(4), ProcessorNumber::FIRST, note(4)).unwrap();
        machine.raise_planned(Nanos(15));
        assert_eq!(*seen.lock().unwrap(), [3, 4], "3 came again while it was masked");
        machine.raise_planned(Nanos(15));
        assert_eq!(*seen.lock().unwrap(), [3, 4, 3]);
        drop(three);
        machine.raise_planned(Nanos(25));
        assert_eq!(*seen.lock().unwrap(), [3, 4, 3], "given back");
        drop(four);
    }

    #[test]
    fn memory_of_a_device_is_in_a_row_and_comes_back() {
        let machine = SimMachine::new(Plan::new(1));
        assert!(machine.dma_pages(1).is_err(), "no frames for devices");
        let mut frames = machine.take_frames();
        machine.give_devices(frames.split(2));
        let dma = machine.dma_pages(2).unwrap();
        dma.write(4090, b"across a page");
        let mut back = [0; 13];
        dma.read(4090, &mut back);
        assert_eq!(&back, b"across a page");
        dma.store(4096, Width::Four, 7);
        assert_eq!((dma.load(4096, Width::Four), dma.bus_address(4097)), (7, dma.bus_address(0) + 4097));
        drop(dma);
        assert!(machine.dma_pages(2).is_ok());
    }
}
