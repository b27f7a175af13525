//! Interrupt lines: each that is claimed has a vector and a slot of its own, on a processor that was chosen.
//!
//! ```text
//!   the line comes ── slot ─┬─ a device's own handler, synthesized (S-78): may run in the midst of the kernel's Rust
//!                           └─ the default: masks the line, queues it and chains (S-80). When the kernel is left, or waits,
//!                              the procedures of the queued lines are called in their order, and each line is opened again
//! ```

use alloc::sync::Arc;
use core::fmt;

use crate::{DeviceEntry, Entry, KernelCell};

/// Lines that may be claimed at a time: vectors of one class of the pc's local APIC (SDM vol. 3A, 11.8.3.1).
pub const LINES_MAX: usize = 16;

/// How a wire is raised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trigger {
    pub is_level: bool,
    pub is_low: bool,
}

/// A device's line, as who found the device names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Line {
    /// A wire. On the pc `number` is the global system interrupt, on the hosted machine a descriptor of the host, raised while it can
    /// be read.
    Wired { number: u32, trigger: Trigger },
    /// None: the device stores a [`Message`] that it is told (MSI).
    Message,
}

impl Line {
    /// An edge, active high: the ISA's way.
    pub const fn edge(number: u32) -> Line {
        Line::Wired { number, trigger: Trigger { is_level: false, is_low: false } }
    }

    /// A level, active high: the way of virtio's windows.
    pub const fn level(number: u32) -> Line {
        Line::Wired { number, trigger: Trigger { is_level: true, is_low: false } }
    }
}

/// What a device stores, and where, to interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    pub address: u64,
    pub data: u32,
}

/// A processor. The first is the one that boots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessorNumber(pub u32);

impl ProcessorNumber {
    pub const FIRST: ProcessorNumber = ProcessorNumber(0);
}

/// Why a line is not claimed, or leads to no code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineError {
    /// The machine has no such line.
    Absent,
    /// Somebody has claimed it.
    Claimed,
    /// [`LINES_MAX`] lines are claimed.
    Full,
    /// The machine has no such processor, or it does not run.
    NoProcessor,
    /// The machine enters no code by an interrupt.
    NoCode,
}

/// What a line chains to: called between interrupts, when the kernel is left or waits. Must not sleep.
pub type Procedure = Arc<dyn Fn() + Send + Sync>;

/// The machine's interrupt controllers.
pub trait Lines {
    /// Has `line` come to processor `on`, where it chains to `procedure` until its owner has a handler of its own.
    fn claim(&self, line: Line, on: ProcessorNumber, procedure: Procedure) -> Result<Claimed, LineError>;
}

/// What a machine does for a line that is claimed, by its place.
pub trait LineControl: Send + Sync {
    fn lead(&self, place: usize, entry: Option<Entry<DeviceEntry>>) -> Result<(), LineError>;
    fn message(&self, place: usize) -> Option<Message>;
    fn give_back(&self, place: usize);
}

/// A line that is somebody's as long as this lives.
pub struct Claimed {
    place: usize,
    control: &'static dyn LineControl,
}

impl Claimed {
    /// For a machine that has claimed `place` of its table.
    pub fn new(place: usize, control: &'static dyn LineControl) -> Claimed {
        Claimed { place, control }
    }

    /// Has the line's interrupt go to a handler that ends as one does; whoever leads it there keeps the code alive. A message that the
    /// device was told is another one then.
    pub fn lead_to(&self, entry: Entry<DeviceEntry>) -> Result<(), LineError> {
        self.control.lead(self.place, Some(entry))
    }

    /// Back to the procedure.
    pub fn lead_back(&self) {
        // Everything can be led to where it came from.
        let _ = self.control.lead(self.place, None);
    }

    /// What a device without a wire is to be told.
    pub fn message(&self) -> Option<Message> {
        self.control.message(self.place)
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        self.control.give_back(self.place);
    }
}

impl fmt::Debug for Claimed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}", self.place)
    }
}

/// A machine's claimed lines and the queue of those that have come: the default handler's two words.
pub struct LineTable(KernelCell<State>);

struct State {
    claimed: [Option<(Line, Procedure)>; LINES_MAX],
    /// Places of lines that have come, in their order. Each is in it once at most, so it is never full.
    queue: [u8; LINES_MAX],
    first: usize,
    count: usize,
}

impl State {
    fn is_queued(&self, place: usize) -> bool {
        (0..self.count).any(|at| self.queue[(self.first + at) % LINES_MAX] as usize == place)
    }

    fn pop(&mut self) -> Option<usize> {
        self.count = self.count.checked_sub(1)?;
        let place = self.queue[self.first] as usize;
        self.first = (self.first + 1) % LINES_MAX;
        Some(place)
    }
}

impl LineTable {
    pub const fn new() -> LineTable {
        let claimed = [const { None }; LINES_MAX];
        LineTable(KernelCell::new(State { claimed, queue: [0; LINES_MAX], first: 0, count: 0 }))
    }

    /// Takes a place for a line.
    pub fn claim(&self, line: Line, procedure: Procedure) -> Result<usize, LineError> {
        let mut state = self.0.borrow_mut();
        let is_taken = |claimed: &Option<(Line, Procedure)>| matches!(claimed, Some((known, _)) if same(*known, line));
        if state.claimed.iter().any(is_taken) {
            return Err(LineError::Claimed);
        }
        let place = state.claimed.iter().position(Option::is_none).ok_or(LineError::Full)?;
        state.claimed[place] = Some((line, procedure));
        Ok(place)
    }

    /// Gives a place back; a line that is queued is forgotten.
    pub fn release(&self, place: usize) {
        let mut state = self.0.borrow_mut();
        let gone = state.claimed[place].take();
        for _ in 0..state.count {
            let Some(queued) = state.pop() else { break };
            if queued != place {
                let end = (state.first + state.count) % LINES_MAX;
                state.queue[end] = queued as u8;
                state.count += 1;
            }
        }
        drop(state);
        drop(gone);
    }

    pub fn line(&self, place: usize) -> Option<Line> {
        self.0.borrow().claimed.get(place)?.as_ref().map(|(line, _)| *line)
    }

    /// The line has come: it is queued, once. False: nobody has claimed it.
    pub fn came(&self, place: usize) -> bool {
        let mut state = self.0.borrow_mut();
        if state.claimed.get(place).is_none_or(Option::is_none) {
            return false;
        }
        if !state.is_queued(place) {
            let end = (state.first + state.count) % LINES_MAX;
            state.queue[end] = place as u8;
            state.count += 1;
        }
        true
    }

    /// Calls the procedures of the lines that are queued now, in their order, and has each line opened by `open` when its procedure
    /// has returned. What comes meanwhile waits for the next time.
    pub fn serve(&self, open: impl Fn(usize, Line)) {
        let waiting = self.0.borrow().count;
        for _ in 0..waiting {
            let mut state = self.0.borrow_mut();
            let Some(place) = state.pop() else { return };
            let Some((line, procedure)) = state.claimed[place].clone() else { continue };
            drop(state);
            procedure();
            // The procedure may have given its line up.
            if self.line(place) == Some(line) {
                open(place, line);
            }
        }
    }
}

impl Default for LineTable {
    fn default() -> LineTable {
        LineTable::new()
    }
}

/// A wire has one owner, however it is raised; messages are as many as there are devices.
fn same(one: Line, other: Line) -> bool {
    match (one, other) {
        (Line::Wired { number: one, .. }, Line::Wired { number: other, .. }) => one == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn nothing() -> Procedure {
        Arc::new(|| ())
    }

    fn opened(table: &LineTable) -> Vec<usize> {
        let seen = KernelCell::new(Vec::new());
        table.serve(|place, _| seen.borrow_mut().push(place));
        seen.borrow().clone()
    }

    #[test]
    fn a_wire_has_one_owner_and_a_message_any_number() {
        let table = LineTable::new();
        let place = table.claim(Line::level(5), nothing()).unwrap();
        assert_eq!(table.claim(Line::edge(5), nothing()), Err(LineError::Claimed));
        assert_ne!(table.claim(Line::Message, nothing()), table.claim(Line::Message, nothing()));
        table.release(place);
        assert_eq!(table.claim(Line::edge(5), nothing()), Ok(place), "given back");
        let claimed = (0..LINES_MAX).filter(|_| table.claim(Line::Message, nothing()).is_ok()).count();
        assert_eq!(claimed, LINES_MAX - 3);
        assert_eq!(table.claim(Line::Message, nothing()), Err(LineError::Full));
    }

    #[test]
    fn lines_are_served_once_in_the_order_in_which_they_came() {
        let table = LineTable::new();
        let count = Arc::new(AtomicU32::new(0));
        let counting = count.clone();
        let procedure: Procedure = Arc::new(move || {
            counting.fetch_add(1, Ordering::Relaxed);
        });
        let places = [1, 2, 3].map(|number| table.claim(Line::level(number), procedure.clone()).unwrap());
        for place in [places[2], places[0], places[2]] {
            assert!(table.came(place));
        }
        assert!(!table.came(9), "nobody's");
        assert_eq!(opened(&table), [places[2], places[0]]);
        assert_eq!(count.load(Ordering::Relaxed), 2);
        assert!(opened(&table).is_empty());
    }

    #[test]
    fn a_line_that_is_given_back_is_neither_served_nor_opened() {
        let table = Arc::new(LineTable::new());
        let [first, second] = [1, 2].map(|number| table.claim(Line::level(number), nothing()).unwrap());
        let releasing = table.clone();
        // A procedure that gives its own line up.
        let own = LINES_MAX.min(2);
        let third = table.claim(Line::level(3), Arc::new(move || releasing.release(own))).unwrap();
        assert_eq!(third, own);
        for place in [first, second, third] {
            table.came(place);
        }
        table.release(first);
        assert_eq!(opened(&table), [second]);
        assert_eq!(table.line(third), None);
    }

    #[test]
    fn a_line_that_comes_while_it_is_served_waits_for_the_next_time() {
        let table = Arc::new(LineTable::new());
        let again = table.clone();
        let place = table.claim(Line::edge(1), Arc::new(move || assert!(again.came(0)))).unwrap();
        table.came(place);
        assert_eq!(opened(&table), [place]);
        assert_eq!(opened(&table), [place], "it came again");
    }
}
