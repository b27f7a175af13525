//! Lines of this machine are descriptors of the host: one is raised while it can be read (an eventfd, a timerfd, a socket). Raised lines
//! are found where the channels' descriptors are: at the tick while programs run, and at once while the machine waits.

use machine::{
    Claimed, DeviceEntry, Entry, KernelValue, LINES_MAX, Line, LineControl, LineError, LineTable, Message, Procedure,
    ProcessorNumber,
};

use crate::host::{self, PollFd};

const POLLIN: i16 = 1;
const POLLNVAL: i16 = 0x20;

static TABLE: LineTable = LineTable::new();
/// A bit for each place: its line is looked at. The others are masked.
static OPEN: KernelValue<u32> = KernelValue::new(0);

struct Control;

/// Has `line` chain to `procedure`.
pub fn claim(line: Line, on: ProcessorNumber, procedure: Procedure) -> Result<Claimed, LineError> {
    if on != ProcessorNumber::FIRST {
        return Err(LineError::NoProcessor);
    }
    let Line::Wired { number, .. } = line else { return Err(LineError::Absent) };
    let mut entry = [PollFd { fd: number as i32, events: POLLIN, found: 0 }];
    host::wait_for(&mut entry, Some(0));
    if entry[0].found & POLLNVAL != 0 {
        return Err(LineError::Absent);
    }
    let place = TABLE.claim(line, procedure)?;
    open(place);
    Ok(Claimed::new(place, &Control))
}

fn open(place: usize) {
    OPEN.set(OPEN.get() | 1 << place);
}

fn mask(place: usize) {
    OPEN.set(OPEN.get() & !(1 << place));
}

fn is_open(place: usize) -> bool {
    OPEN.get() & 1 << place != 0
}

/// Somebody waits for a line.
pub fn is_awaited() -> bool {
    OPEN.get() != 0
}

/// What to wait for; returns how many entries are used.
pub fn awaited(entries: &mut [PollFd]) -> usize {
    let lines = (0..LINES_MAX).filter(|place| is_open(*place)).filter_map(|place| TABLE.line(place));
    let mut count = 0;
    for (entry, line) in entries.iter_mut().zip(lines) {
        if let Line::Wired { number, .. } = line {
            *entry = PollFd { fd: number as i32, events: POLLIN, found: 0 };
            count += 1;
        }
    }
    count
}

/// The default handler of those that were found raised, and what it chains to: nothing of the kernel is under way here.
pub fn came(entries: &[PollFd]) {
    for place in 0..LINES_MAX {
        let Some(Line::Wired { number, .. }) = TABLE.line(place) else { continue };
        let is_raised = entries.iter().any(|entry| entry.fd == number as i32 && entry.found != 0);
        if is_raised && TABLE.came(place) {
            mask(place);
        }
    }
    TABLE.serve(|place, _| open(place));
}

impl LineControl for Control {
    /// A signal enters no code of the kernel's (`sample_clock.rs` says why).
    fn lead(&self, _place: usize, entry: Option<Entry<DeviceEntry>>) -> Result<(), LineError> {
        if entry.is_some() { Err(LineError::NoCode) } else { Ok(()) }
    }

    fn message(&self, _place: usize) -> Option<Message> {
        None
    }

    fn give_back(&self, place: usize) {
        mask(place);
        TABLE.release(place);
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;
    use core::sync::atomic::{AtomicU32, Ordering};
    use std::io::{Read, Write, pipe};
    use std::os::fd::AsRawFd;

    use super::*;

    /// What the machine does when it waits.
    fn look() {
        let mut entries = [const { PollFd { fd: -1, events: 0, found: 0 } }; LINES_MAX];
        let count = awaited(&mut entries);
        host::wait_for(&mut entries[..count], Some(0));
        came(&entries[..count]);
    }

    #[test]
    fn a_descriptor_that_can_be_read_chains_once_for_each_look_until_it_is_given_back() {
        let (mut reader, mut writer) = pipe().unwrap();
        let line = Line::level(reader.as_raw_fd() as u32);
        let count = Arc::new(AtomicU32::new(0));
        let counting = count.clone();
        let procedure: Procedure = Arc::new(move || {
            counting.fetch_add(1, Ordering::Relaxed);
        });
        let seen = || count.load(Ordering::Relaxed);
        let claimed = claim(line, ProcessorNumber::FIRST, procedure.clone()).unwrap();
        assert_eq!(claim(line, ProcessorNumber::FIRST, procedure.clone()).unwrap_err(), LineError::Claimed);
        assert_eq!(claim(line, ProcessorNumber(1), procedure.clone()).unwrap_err(), LineError::NoProcessor);
        assert_eq!(claim(Line::Message, ProcessorNumber::FIRST, procedure.clone()).unwrap_err(), LineError::Absent);
        let absent = Line::level(1 << 20);
        assert_eq!(claim(absent, ProcessorNumber::FIRST, procedure.clone()).unwrap_err(), LineError::Absent);
        look();
        assert_eq!(seen(), 0);
        writer.write_all(b"x").unwrap();
        look();
        look();
        assert_eq!(seen(), 2, "a level: nobody has read it");
        reader.read_exact(&mut [0]).unwrap();
        look();
        assert_eq!(seen(), 2);
        writer.write_all(b"x").unwrap();
        drop(claimed);
        assert!(!is_awaited());
        look();
        assert_eq!(seen(), 2, "given back");
        claim(line, ProcessorNumber::FIRST, procedure).unwrap();
    }
}
