//! Quajects of people: building blocks of words, made, connected, called and removed.
//!
//! Their code is bounded: a pump carries at most 4,096 words a turn, callouts lead to no quaject that leads back
//! ([`Parts::leads_to`]), and what gives only meets what takes.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use bootimage::inspect::Items;
use bootimage::inspect::monitor::CALLOUT;
use codestore::{Code, Maker, WordCall};
use monitor::blocks::{self, Flow, KINDS, Kind, QueueAt, Way};
use quaject::{Connection, End, Number, Offer, interface};
use synth::Draft;

use super::{Cursor, Question, Refusal, TIMES_MAX};
use crate::emulator::Unix;

/// Quajects that there can be: the deepest chain of calls fits a kernel stack.
const PARTS_MAX: usize = 64;
/// Most words of a queue.
const QUEUE_WORDS_MAX: usize = 1 << 12;
/// Words of data in front of the slots: a gauge's count, a monitor's flag, a probe's ticks and calls, a queue's head and
/// tail.
const DATA_WORDS: usize = 2;

/// What a callout leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Link {
    part: u32,
    callentry: usize,
    connection: Connection,
}

struct Part {
    /// Its place in [`KINDS`].
    kind: usize,
    number: u32,
    /// Data, slots, and the words of a queue; code knows the addresses.
    words: Box<[AtomicU64]>,
    links: Vec<Option<Link>>,
    /// What pasted callouts stand for.
    ways: Vec<Option<Way>>,
    code: Vec<Code<WordCall>>,
}

impl Part {
    fn kind(&self) -> &'static Kind {
        &KINDS[self.kind]
    }

    fn word(&self, index: usize) -> u64 {
        self.words[index].as_ptr() as u64
    }

    fn way(&self, callout: usize) -> Way {
        self.ways[callout].unwrap_or(Way::Slot(self.word(DATA_WORDS + callout)))
    }

    fn draft(&self, callentry: usize) -> Draft {
        let queue = || {
            let capacity = (self.words.len() - DATA_WORDS) as u32;
            QueueAt { head: self.word(0), tail: self.word(1), words: self.word(DATA_WORDS), capacity }
        };
        match (self.kind, callentry) {
            (blocks::GAUGE, 0) => blocks::gauge_add(self.word(0)),
            (blocks::GAUGE, _) => blocks::word_read(self.word(0)),
            (blocks::QUEUE, 0) => blocks::queue_put(queue()),
            (blocks::QUEUE, _) => blocks::queue_get(queue()),
            (blocks::SWITCH, _) => blocks::switch_route(self.word(DATA_WORDS), self.links.len() as u32),
            (blocks::PUMP, _) => blocks::pump_turn(self.way(0), self.way(1)),
            (blocks::MONITOR, _) => blocks::monitor_enter(self.word(0), self.way(0)),
            (blocks::CLOCK, _) => blocks::clock_read(),
            (_, _) => blocks::probe_call(self.word(0), self.word(1), self.way(0)),
        }
    }

    /// Makes the routines for the callouts as they are now.
    fn synthesize(&mut self, unix: &'static Unix) -> Result<(), Refusal> {
        let mut code = Vec::new();
        for (number, callentry) in self.kind().callentries.iter().enumerate() {
            code.push(publish(unix, callentry.birth, self.draft(number))?);
        }
        self.code = code;
        Ok(())
    }
}

fn publish(unix: &'static Unix, name: &'static str, draft: Draft) -> Result<Code<WordCall>, Refusal> {
    unix.store.publish(name, Maker::new("monitor"), draft).map_err(|_| Refusal::NoMemory)
}

pub struct Parts {
    all: Vec<Part>,
    made: u32,
    /// Where callouts go that lead nowhere.
    nowhere: Option<Code<WordCall>>,
}

/// One end that a request names: the part's place, and its callentry or callout.
#[derive(Clone, Copy)]
struct Side {
    part: usize,
    is_callout: bool,
    place: usize,
}

impl Parts {
    pub const fn new() -> Parts {
        Parts { all: Vec::new(), made: 0, nowhere: None }
    }

    /// The callentry that begins at an address, and how many arguments it takes.
    pub fn callentry_at(&self, entry: u64) -> Option<(Code<WordCall>, u8)> {
        self.all.iter().find_map(|part| {
            let at = part.code.iter().position(|code| code.entry() == entry)?;
            Some((part.code[at].clone(), part.kind().callentries[at].arguments))
        })
    }

    fn place(&self, number: u32) -> Result<usize, Refusal> {
        self.all.iter().position(|part| part.number == number).ok_or(Refusal::Absent)
    }

    fn nowhere(&self) -> u64 {
        self.nowhere.as_ref().map_or(0, Code::entry)
    }

    /// Makes one; its place.
    fn add(&mut self, unix: &'static Unix, kind: usize, size: usize) -> Result<usize, Refusal> {
        if self.all.len() >= PARTS_MAX {
            return Err(Refusal::Busy);
        }
        if self.nowhere.is_none() {
            self.nowhere = Some(publish(unix, "monitor.nowhere", blocks::unconnected())?);
        }
        let is_queue = kind == blocks::QUEUE;
        let callouts = KINDS[kind].callouts.len();
        let (more, first) = if is_queue { (size, 0) } else { (callouts, self.nowhere()) };
        let word = |at| AtomicU64::new(if at < DATA_WORDS { 0 } else { first });
        let mut part = Part {
            kind,
            number: self.made + 1,
            words: (0..DATA_WORDS + more).map(word).collect(),
            links: alloc::vec![None; callouts],
            ways: alloc::vec![None; callouts],
            code: Vec::new(),
        };
        part.synthesize(unix)?;
        self.made += 1;
        self.all.push(part);
        Ok(self.all.len() - 1)
    }

    /// Whether calls to part `from` come to part `to`.
    fn leads_to(&self, from: u32, to: u32) -> bool {
        let mut open = alloc::vec![from];
        // Without cycles, each is met once on each way; there are fewer than 2 * PARTS_MAX links.
        let mut seen = Vec::new();
        while let Some(number) = open.pop() {
            if number == to {
                return true;
            }
            if !seen.contains(&number) {
                seen.push(number);
                let links = self.all.iter().filter(|part| part.number == number).flat_map(|part| part.links.iter());
                open.extend(links.flatten().map(|link| link.part));
            }
        }
        false
    }

    /// Binds a callout to a callentry, or to nothing.
    fn bind(&mut self, unix: &'static Unix, part: usize, callout: usize, link: Option<Link>) -> Result<(), Refusal> {
        let to = link.and_then(|link| Some((&self.all[self.place(link.part).ok()?], link)));
        let entry = to.map_or(self.nowhere(), |(to, link)| to.code[link.callentry].entry());
        let way = to.filter(|(_, link)| link.connection == Connection::Paste).map(|(to, _)| match to.kind {
            blocks::GAUGE => Way::Gauge(to.word(0)),
            _ => Way::Clock,
        });
        let part = &mut self.all[part];
        part.links[callout] = link;
        part.words[DATA_WORDS + callout].store(entry, Ordering::Release);
        if part.ways[callout] != way {
            part.ways[callout] = way;
            part.synthesize(unix)?;
            let number = part.number;
            self.entries_changed(number);
        }
        Ok(())
    }

    /// The routines of a part are new ones: slots that lead to it get their addresses.
    fn entries_changed(&mut self, number: u32) {
        let Ok(changed) = self.place(number) else { return };
        for part in &self.all {
            for (callout, link) in part.links.iter().enumerate() {
                if let Some(link) = link.filter(|link| link.part == number) {
                    let entry = self.all[changed].code[link.callentry].entry();
                    part.words[DATA_WORDS + callout].store(entry, Ordering::Release);
                }
            }
        }
    }

    /// An end as a request names it.
    fn side(&self, question: &mut Question<'_>) -> Result<Side, Refusal> {
        let (part, end) = (self.place(question.u32()?)?, question.arguments.u8().ok_or(Refusal::Bad)?);
        let (is_callout, place) = (end & CALLOUT != 0, usize::from(end & !CALLOUT));
        let kind = self.all[part].kind();
        let count = if is_callout { kind.callouts.len() } else { kind.callentries.len() };
        if place < count { Ok(Side { part, is_callout, place }) } else { Err(Refusal::Bad) }
    }

    /// What an end does with words: a callout that takes them stands where they are produced.
    fn produces(&self, side: Side) -> Option<bool> {
        let kind = self.all[side.part].kind();
        let flow = if side.is_callout { kind.callouts[side.place].1 } else { kind.callentries[side.place].flow };
        match flow {
            Flow::Does => None,
            Flow::Gives => Some(!side.is_callout),
            Flow::Takes => Some(side.is_callout),
        }
    }

    /// The end as the interfacer sees it: callouts call, callentries are called.
    fn end(&self, side: Side, peer: Side) -> End {
        let kind = self.all[side.part].kind();
        if side.is_callout {
            let callers = self.all.iter().flat_map(|part| part.links.iter().flatten());
            let number = self.all[peer.part].number;
            let taken =
                !peer.is_callout && callers.clone().any(|link| (link.part, link.callentry) == (number, peer.place));
            return End::active(if taken { Number::Multiple } else { Number::Single });
        }
        // A switch has addresses only, no place for instructions.
        let can = kind.callentries[side.place].pastes && peer.is_callout && self.all[peer.part].kind != blocks::SWITCH;
        let number = if kind.shared { Number::Multiple } else { Number::Single };
        End::passive(number, if can { Offer::Fragment } else { Offer::Entry })
    }

    fn tie(&mut self, unix: &'static Unix, from: Side, to: Side, connection: Connection) -> Result<(), Refusal> {
        let (caller, called) = (self.all[from.part].number, self.all[to.part].number);
        if self.leads_to(called, caller) {
            return Err(Refusal::Busy);
        }
        self.bind(unix, from.part, from.place, Some(Link { part: called, callentry: to.place, connection }))
    }

    /// Builds what the interfacer chose; the number of what it put in between, 0 for nothing.
    fn join(&mut self, unix: &'static Unix, from: Side, to: Side, connection: Connection) -> Result<u32, Refusal> {
        let callout = |part, place| Side { part, is_callout: true, place };
        let callentry = |part, place| Side { part, is_callout: false, place };
        let between = match connection {
            Connection::Pump => {
                let pump = self.add(unix, blocks::PUMP, 0)?;
                self.tie(unix, callout(pump, 0), from, Connection::Call)?;
                self.tie(unix, callout(pump, 1), to, Connection::Call)?;
                pump
            }
            Connection::Queue { .. } => {
                let queue = self.add(unix, blocks::QUEUE, 16)?;
                self.tie(unix, from, callentry(queue, 0), Connection::Call)?;
                self.tie(unix, to, callentry(queue, 1), Connection::Call)?;
                queue
            }
            // Everybody runs under the kernel's lock: those who get need no monitor.
            Connection::Monitor if from.is_callout => {
                let monitor = self.add(unix, blocks::MONITOR, 0)?;
                self.tie(unix, callout(monitor, 0), to, Connection::Call)?;
                self.tie(unix, from, callentry(monitor, 0), Connection::Call)?;
                monitor
            }
            _ => {
                let (active, passive) = if from.is_callout { (from, to) } else { (to, from) };
                return self.tie(unix, active, passive, connection).map(|()| 0);
            }
        };
        Ok(self.all[between].number)
    }
}

fn code_of(connection: Connection) -> u8 {
    match connection {
        Connection::Paste => 1,
        Connection::Call => 2,
        Connection::Monitor => 3,
        Connection::Queue { .. } => 4,
        Connection::Pump => 5,
        // Nothing that people make is a state machine.
        Connection::Product => 6,
    }
}

pub fn list(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    for part in &question.unix.desk.parts.borrow().all {
        out.u32(part.number).u8(part.kind as u8).u64(part.word(0));
        part.code.iter().for_each(|code| _ = out.u64(code.entry()));
        for link in &part.links {
            let (connection, to, callentry) =
                link.map_or((0, 0, 0), |link| (code_of(link.connection), link.part, link.callentry as u8));
            out.u8(connection).u32(to).u8(callentry);
        }
    }
    Ok(0)
}

pub fn new(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let (kind, size) = (question.arguments.u8().ok_or(Refusal::Bad)?, question.u32()? as usize);
    if usize::from(kind) >= KINDS.len() || !size.is_power_of_two() || size > QUEUE_WORDS_MAX {
        return Err(Refusal::Bad);
    }
    let mut parts = question.unix.desk.parts.borrow_mut();
    let place = parts.add(question.unix, kind.into(), size)?;
    out.u32(parts.all[place].number);
    Ok(0)
}

pub fn connect(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let mut parts = question.unix.desk.parts.borrow_mut();
    let (from, to) = (parts.side(question)?, parts.side(question)?);
    if parts.produces(from) != Some(true) || parts.produces(to) != Some(false) {
        return Err(Refusal::Bad);
    }
    let connection = interface::combine(parts.end(from, to), parts.end(to, from));
    let between = parts.join(question.unix, from, to, connection)?;
    out.u8(code_of(connection)).u32(between);
    Ok(0)
}

pub fn remove(question: &mut Question<'_>, _: &mut Items) -> Result<Cursor, Refusal> {
    let mut parts = question.unix.desk.parts.borrow_mut();
    let number = question.u32()?;
    let place = parts.place(number)?;
    for part in 0..parts.all.len() {
        for callout in 0..parts.all[part].links.len() {
            if parts.all[part].links[callout].is_some_and(|link| link.part == number) {
                parts.bind(question.unix, part, callout, None)?;
            }
        }
    }
    parts.all.remove(place);
    Ok(0)
}

/// Calls a callentry so often, with nothing.
pub fn times(question: &mut Question<'_>, _: &mut Items) -> Result<Cursor, Refusal> {
    let found = question.unix.desk.parts.borrow().callentry_at(question.u64()?);
    let ((code, _), times) = (found.ok_or(Refusal::Absent)?, question.u32()?);
    // Called with nothing a pump's turn carries nothing, so each is short.
    (0..times.min(TIMES_MAX)).for_each(|_| _ = code.call([0; 6]));
    Ok(0)
}
