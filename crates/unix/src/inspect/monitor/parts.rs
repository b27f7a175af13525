//! Quajects of people: building blocks of words, made, connected, called and removed.
//!
//! Their code is bounded: a pump carries at most 4,096 words a turn, callouts lead to no quaject that leads back
//! ([`Parts::leads_to`]), and what gives only meets what takes. What a watched routine tells runs between a program and the
//! kernel, so it never comes to a stream, which is Rust.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "the monitor is the owner of the machine, who makes few parts"
)]

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use bootimage::inspect::Items;
use bootimage::inspect::monitor::CALLOUT;
use codestore::{Code, Maker, WordCall};
use monitor::blocks::{self, DATA_WORDS, Flow, KINDS, Kind, PumpAt, QueueAt, Way};
use quaject::{Connection, End, Number, Offer, interface};
use synth::Draft;

use super::streams::{self, Tap};
use super::watches::Watching;
use super::{TIMES_MAX, jobs};
use crate::emulator::Unix;
use crate::inspect::{Cursor, Question, Refusal};

/// Quajects that there can be: the deepest chain of calls fits a kernel stack.
const PARTS_MAX: usize = 64;
/// Most words of a queue.
const QUEUE_WORDS_MAX: usize = 1 << 12;
/// What a callout leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Link {
    part: u32,
    callentry: usize,
    connection: Connection,
}

/// What a part is of the system itself.
pub enum Bond {
    None,
    Stream(Tap),
    Watch(Watching),
}

pub struct Part {
    /// Its place in [`KINDS`].
    kind: usize,
    pub number: u32,
    /// Data (a gauge's count, a monitor's flag, a probe's ticks and calls, a queue's head and tail, a switch's way), slots,
    /// and the words of a queue; code knows the addresses.
    pub words: Box<[AtomicU64]>,
    pub bond: Bond,
    links: Vec<Option<Link>>,
    /// What pasted callouts stand for.
    ways: Vec<Option<Way>>,
    code: Vec<Code<WordCall>>,
}

impl Part {
    fn kind(&self) -> &'static Kind {
        &KINDS[self.kind]
    }

    pub fn word(&self, index: usize) -> u64 {
        self.words[index].as_ptr() as u64
    }

    fn way(&self, callout: usize) -> Way {
        self.ways[callout].unwrap_or(Way::Slot(self.word(DATA_WORDS + callout)))
    }

    fn draft(&self, callentry: usize) -> Draft {
        let queue = || {
            let first = DATA_WORDS + self.links.len();
            let capacity = (self.words.len() - first) as u32;
            let full = self.word(DATA_WORDS);
            QueueAt { head: self.word(0), tail: self.word(1), full, words: self.word(first), capacity }
        };
        let pump =
            || PumpAt { word: self.word(0), held: self.word(1), total: self.word(2), done: self.word(DATA_WORDS + 2) };
        let ways = self.links.len() as u32;
        match (self.kind, callentry) {
            (blocks::GAUGE, 0) => blocks::gauge_add(self.word(0)),
            (blocks::GAUGE, _) => blocks::word_read(self.word(0)),
            (blocks::QUEUE, 0) => blocks::queue_put(queue()),
            (blocks::QUEUE, _) => blocks::queue_get(queue()),
            (blocks::SWITCH, 0) => blocks::switch_route(self.word(DATA_WORDS), ways),
            (blocks::SWITCH, _) => blocks::switch_send(self.word(0), self.word(DATA_WORDS), ways),
            (blocks::PUMP, _) => blocks::pump_turn(pump(), self.way(0), self.way(1)),
            (blocks::MONITOR, _) => blocks::monitor_enter(self.word(0), self.way(0)),
            (blocks::CLOCK, _) => blocks::clock_read(),
            (blocks::STREAM, 0) => blocks::done_in_rust(self.number, streams::GET as usize as u64),
            (blocks::STREAM, _) => blocks::done_in_rust(self.number, streams::PUT as usize as u64),
            (blocks::WATCH, at) => blocks::word_read(self.word(at)),
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
    /// Watches that were taken away while a thread or an open file still had their code.
    lingering: Vec<Part>,
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
        Parts { all: Vec::new(), lingering: Vec::new(), made: 0, nowhere: None }
    }

    /// The callentry that begins at an address, and how many arguments it takes.
    pub fn callentry_at(&self, entry: u64) -> Option<(Code<WordCall>, u8)> {
        self.all.iter().find_map(|part| {
            let at = part.code.iter().position(|code| code.entry().address() == entry)?;
            Some((part.code[at].clone(), part.kind().callentries[at].arguments))
        })
    }

    fn place(&self, number: u32) -> Result<usize, Refusal> {
        self.all.iter().position(|part| part.number == number).ok_or(Refusal::Absent)
    }

    fn nowhere(&self) -> u64 {
        self.nowhere.as_ref().map_or(0, |code| code.entry().address())
    }

    pub fn get(&self, number: u32) -> Option<&Part> {
        self.all.iter().find(|part| part.number == number)
    }

    /// What streams there are, each with its part.
    pub fn taps(&self) -> impl Iterator<Item = (&Part, &Tap)> {
        self.all.iter().filter_map(|part| if let Bond::Stream(tap) = &part.bond { Some((part, tap)) } else { None })
    }

    /// Whether the routine that starts here is watched.
    pub fn is_watched(&self, entry: u64) -> bool {
        self.all.iter().any(|part| matches!(&part.bond, Bond::Watch(watching) if watching.is_of(entry)))
    }

    /// A pump's routine.
    pub fn turn(&self, number: u32) -> Option<Code<WordCall>> {
        self.get(number).filter(|part| part.kind == blocks::PUMP).map(|part| part.code[0].clone())
    }

    /// The streams that a part's callouts lead to.
    pub fn streams_of(&self, number: u32) -> impl Iterator<Item = &Part> {
        let links = self.get(number).into_iter().flat_map(|part| part.links.iter().flatten());
        links.filter_map(|link| self.get(link.part)).filter(|part| part.kind == blocks::STREAM)
    }

    /// Frees the watches that were taken away, when nobody is inside any more.
    fn sweep(&mut self, unix: &'static Unix) {
        self.lingering.retain(|part| matches!(&part.bond, Bond::Watch(watching) if watching.is_entered(unix, part)));
    }

    /// Makes one; its place.
    fn add(&mut self, unix: &'static Unix, kind: usize, size: usize) -> Result<usize, Refusal> {
        self.sweep(unix);
        if self.all.len() + self.lingering.len() >= PARTS_MAX {
            return Err(Refusal::Busy);
        }
        if self.nowhere.is_none() {
            self.nowhere = Some(publish(unix, "monitor.nowhere", blocks::unconnected())?);
        }
        let is_queue = kind == blocks::QUEUE;
        let callouts = KINDS[kind].callouts.len();
        let (slots, more) = (DATA_WORDS..DATA_WORDS + callouts, if is_queue { size } else { 0 });
        let word = |at| AtomicU64::new(if slots.contains(&at) { self.nowhere() } else { 0 });
        let mut part = Part {
            kind,
            number: self.made + 1,
            words: (0..slots.end + more).map(word).collect(),
            bond: Bond::None,
            links: alloc::vec![None; callouts],
            ways: alloc::vec![None; callouts],
            code: Vec::new(),
        };
        part.synthesize(unix)?;
        self.made += 1;
        self.all.push(part);
        Ok(self.all.len() - 1)
    }

    /// Binds a part that was just made to what it is of the system; without that it goes.
    pub fn make(
        &mut self,
        unix: &'static Unix,
        kind: usize,
        bond: impl FnOnce(&Part) -> Result<Bond, Refusal>,
    ) -> Result<u32, Refusal> {
        let place = self.add(unix, kind, 0)?;
        match bond(&self.all[place]) {
            Ok(bond) => self.all[place].bond = bond,
            Err(refusal) => {
                self.all.remove(place);
                return Err(refusal);
            }
        }
        Ok(self.all[place].number)
    }

    /// Whether a call of `caller` to `called` would bring what a watched routine tells to a stream.
    fn would_tell_streams(&self, caller: u32, called: u32) -> bool {
        let leads = |kind, from: Option<u32>, to: Option<u32>| {
            let mut all = self.all.iter().filter(|part| part.kind == kind);
            all.any(|part| self.leads_to(from.unwrap_or(part.number), to.unwrap_or(part.number)))
        };
        leads(blocks::WATCH, None, Some(caller)) && leads(blocks::STREAM, Some(called), None)
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
        let entry = to.map_or(self.nowhere(), |(to, link)| to.code[link.callentry].entry().address());
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
                    part.words[DATA_WORDS + callout].store(entry.address(), Ordering::Release);
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
            Flow::Takes | Flow::Tells => Some(side.is_callout),
        }
    }

    /// The end as the interfacer sees it: callouts call, callentries are called.
    fn end(&self, side: Side, peer: Side) -> End {
        let kind = self.all[side.part].kind();
        if side.is_callout {
            let taken = !peer.is_callout && !self.callers(peer).is_empty();
            return End::active(if taken { Number::Multiple } else { Number::Single });
        }
        // A switch has addresses only, and who tells has a slot: no place for instructions.
        let has_place =
            |kind: &Kind| kind.callouts[peer.place].1 != Flow::Tells && kind.name != KINDS[blocks::SWITCH].name;
        let can = kind.callentries[side.place].pastes && peer.is_callout && has_place(self.all[peer.part].kind());
        let number = if kind.shared { Number::Multiple } else { Number::Single };
        End::passive(number, if can { Offer::Fragment } else { Offer::Entry })
    }

    fn tie(&mut self, unix: &'static Unix, from: Side, to: Side, connection: Connection) -> Result<(), Refusal> {
        let (caller, called) = (self.all[from.part].number, self.all[to.part].number);
        if self.leads_to(called, caller) || self.would_tell_streams(caller, called) {
            return Err(Refusal::Busy);
        }
        self.bind(unix, from.part, from.place, Some(Link { part: called, callentry: to.place, connection }))
    }

    /// The callouts that lead to a callentry.
    fn callers(&self, to: Side) -> Vec<Side> {
        let number = self.all[to.part].number;
        let mut callers = Vec::new();
        for (part, caller) in self.all.iter().enumerate() {
            let leads =
                |link: &Option<Link>| link.is_some_and(|link| (link.part, link.callentry) == (number, to.place));
            let places = caller.links.iter().enumerate().filter(|(_, link)| leads(link));
            callers.extend(places.map(|(place, _)| Side { part, is_callout: true, place }));
        }
        callers
    }

    /// Has the interfacer decide, and builds it: the connection, and the number of what stands between.
    fn connect(&mut self, unix: &'static Unix, from: Side, mut to: Side) -> Result<(Connection, u32), Refusal> {
        // What stands behind a monitor is reached through it.
        let callers = if to.is_callout { Vec::new() } else { self.callers(to) };
        if let Some(caller) = callers.into_iter().find(|caller| self.all[caller.part].kind == blocks::MONITOR) {
            to = Side { part: caller.part, is_callout: false, place: 0 };
        }
        let connection = interface::combine(self.end(from, to), self.end(to, from));
        Ok((connection, self.join(unix, from, to, connection)?))
    }

    /// Builds what the interfacer chose; the number of what it put in between, 0 for nothing.
    fn join(&mut self, unix: &'static Unix, from: Side, to: Side, connection: Connection) -> Result<u32, Refusal> {
        let callout = |part, place| Side { part, is_callout: true, place };
        let callentry = |part, place| Side { part, is_callout: false, place };
        let between = match connection {
            Connection::Pump => {
                let pump = self.add(unix, blocks::PUMP, 0)?;
                self.tie(unix, callout(pump, 0), from, Connection::Call)?;
                self.connect(unix, callout(pump, 1), to)?;
                if [from, to].iter().any(|side| self.all[side.part].kind == blocks::STREAM) {
                    jobs::pump(unix, self.all[pump].number)?;
                }
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
                let callers = self.callers(to);
                let monitor = self.add(unix, blocks::MONITOR, 0)?;
                self.tie(unix, callout(monitor, 0), to, Connection::Call)?;
                // One at a time: those who were there first, too.
                for caller in callers.into_iter().chain([from]) {
                    self.tie(unix, caller, callentry(monitor, 0), Connection::Call)?;
                }
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
    let mut parts = question.unix.desk.parts.borrow_mut();
    parts.sweep(question.unix);
    for part in parts.all.iter().filter(|part| u64::from(part.number) >= question.cursor) {
        out.u32(part.number).u8(part.kind as u8).u64(part.word(0));
        part.code.iter().for_each(|code| _ = out.u64(code.entry().address()));
        for link in &part.links {
            let (connection, to, callentry) =
                link.map_or((0, 0, 0), |link| (code_of(link.connection), link.part, link.callentry as u8));
            out.u8(connection).u32(to).u8(callentry);
        }
        match &part.bond {
            Bond::None => out.text(b""),
            Bond::Stream(tap) => out.text(&tap.describe(question.unix)),
            Bond::Watch(watching) => out.text(watching.name().as_bytes()),
        };
        part.words[..DATA_WORDS].iter().for_each(|word| _ = out.u64(word.load(Ordering::Relaxed)));
        if !out.keep() {
            return Ok(part.number.into());
        }
    }
    Ok(0)
}

pub fn new(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let (kind, size) = (question.arguments.u8().ok_or(Refusal::Bad)?, question.u32()? as usize);
    if usize::from(kind) >= blocks::STREAM || !size.is_power_of_two() || size > QUEUE_WORDS_MAX {
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
    let (connection, between) = parts.connect(question.unix, from, to)?;
    out.u8(code_of(connection)).u32(between);
    Ok(0)
}

/// A callout leads nowhere again.
pub fn unbind(question: &mut Question<'_>, _: &mut Items) -> Result<Cursor, Refusal> {
    let mut parts = question.unix.desk.parts.borrow_mut();
    let side = parts.side(question)?;
    if !side.is_callout {
        return Err(Refusal::Bad);
    }
    parts.bind(question.unix, side.part, side.place, None)?;
    Ok(0)
}

/// The first word of a quaject.
pub fn set(question: &mut Question<'_>, _: &mut Items) -> Result<Cursor, Refusal> {
    let parts = question.unix.desk.parts.borrow();
    let (number, value) = (question.u32()?, question.u64()?);
    parts.get(number).ok_or(Refusal::Absent)?.words[0].store(value, Ordering::Relaxed);
    drop(parts);
    question.unix.desk.moved(question.unix);
    Ok(0)
}

pub fn remove(question: &mut Question<'_>, _: &mut Items) -> Result<Cursor, Refusal> {
    let unix = question.unix;
    let mut parts = unix.desk.parts.borrow_mut();
    let number = question.u32()?;
    let place = parts.place(number)?;
    for part in 0..parts.all.len() {
        for callout in 0..parts.all[part].links.len() {
            if parts.all[part].links[callout].is_some_and(|link| link.part == number) {
                parts.bind(unix, part, callout, None)?;
            }
        }
    }
    let gone = parts.all.remove(place);
    if let Bond::Watch(watching) = &gone.bond {
        // Nobody is told any more; who has entered its code leaves it first.
        gone.words[DATA_WORDS].store(parts.nowhere(), Ordering::Release);
        watching.restore(unix);
        parts.lingering.push(gone);
        parts.sweep(unix);
        return Ok(0);
    }
    drop(parts);
    drop(gone);
    unix.desk.moved(unix);
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
