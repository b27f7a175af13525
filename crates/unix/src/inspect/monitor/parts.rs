//! Quajects of people: building blocks of words, made, connected, probed and removed by name.
//!
//! Their code is bounded: a pump carries at most 4,096 words a turn, callouts lead to no quaject that leads back
//! ([`Parts::leads_to`]), and what gives only meets what takes.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use codestore::{Code, Maker, WordCall};
use monitor::Symbol;
use monitor::blocks::{self, QueueAt, Way};
use quaject::{Connection, End, Number, Offer, interface};
use synth::Draft;

use super::commands::usage;
use super::{Answer, Line, Wrong};
use crate::emulator::Unix;

/// Quajects that there can be: the deepest chain of calls fits a kernel stack.
const PARTS_MAX: usize = 64;
/// Most words of a queue.
const QUEUE_WORDS_MAX: u64 = 1 << 12;
/// Ways of a switch.
const WAYS: usize = 4;
/// Words of data in front of the slots: a gauge's count, a monitor's flag, a probe's ticks and calls, a queue's head and
/// tail.
const DATA_WORDS: usize = 2;

/// What a callentry does, and a callout wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flow {
    /// Answers a word.
    Gives,
    /// Takes a word.
    Takes,
    /// Neither: only people and threads call it.
    Does,
}

/// A callentry of a kind: name, arguments, flow, and whether its instructions can be pasted.
type Callentry = (&'static str, usize, Flow, Offer);

/// What all quajects of one kind have in common.
struct Kind {
    name: &'static str,
    callentries: &'static [Callentry],
    callouts: &'static [(&'static str, Flow)],
    /// Births of its routines, by callentry.
    births: &'static [&'static str],
    /// A callentry that several may call at a time.
    number: Number,
    code: fn(&Part) -> Vec<Draft>,
}

static KINDS: [Kind; 7] = [
    Kind {
        name: "gauge",
        callentries: &[("add", 1, Flow::Takes, Offer::Fragment), ("read", 0, Flow::Gives, Offer::Entry)],
        callouts: &[],
        births: &["gauge.add", "gauge.read"],
        number: Number::Multiple,
        code: |part| alloc::vec![blocks::gauge_add(part.word(0)), blocks::word_read(part.word(0))],
    },
    Kind {
        name: "queue",
        callentries: &[("put", 1, Flow::Takes, Offer::Entry), ("get", 0, Flow::Gives, Offer::Entry)],
        callouts: &[],
        births: &["queue.put", "queue.get"],
        number: Number::Single,
        code: |part| alloc::vec![blocks::queue_put(part.queue()), blocks::queue_get(part.queue())],
    },
    Kind {
        name: "switch",
        callentries: &[("route", 2, Flow::Does, Offer::Entry)],
        callouts: &[("0", Flow::Takes), ("1", Flow::Takes), ("2", Flow::Takes), ("3", Flow::Takes)],
        births: &["switch.route"],
        number: Number::Multiple,
        code: |part| alloc::vec![blocks::switch_route(part.slot(0), WAYS as u32)],
    },
    Kind {
        name: "pump",
        callentries: &[("turn", 1, Flow::Does, Offer::Entry)],
        callouts: &[("in", Flow::Gives), ("out", Flow::Takes)],
        births: &["pump.turn"],
        number: Number::Single,
        code: |part| alloc::vec![blocks::pump_turn(part.way(0), part.way(1))],
    },
    Kind {
        name: "monitor",
        callentries: &[("enter", 1, Flow::Takes, Offer::Entry)],
        callouts: &[("out", Flow::Takes)],
        births: &["monitor.enter"],
        number: Number::Multiple,
        code: |part| alloc::vec![blocks::monitor_enter(part.word(0), part.way(0))],
    },
    Kind {
        name: "clock",
        callentries: &[("read", 0, Flow::Gives, Offer::Fragment)],
        callouts: &[],
        births: &["clock.read"],
        number: Number::Multiple,
        code: |_| alloc::vec![blocks::clock_read()],
    },
    Kind {
        name: "probe",
        callentries: &[("call", 1, Flow::Takes, Offer::Entry)],
        callouts: &[("out", Flow::Takes)],
        births: &["probe.call"],
        number: Number::Multiple,
        code: |part| alloc::vec![blocks::probe_call(part.word(0), part.word(1), part.way(0))],
    },
];

/// What a callout leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Link {
    part: u32,
    callentry: usize,
    connection: Connection,
}

struct Part {
    kind: &'static Kind,
    number: u32,
    /// Data, slots, and the words of a queue; code knows the addresses.
    words: Box<[AtomicU64]>,
    links: Vec<Option<Link>>,
    /// What pasted callouts stand for.
    ways: Vec<Option<Way>>,
    code: Vec<Code<WordCall>>,
}

impl Part {
    fn word(&self, index: usize) -> u64 {
        self.words[index].as_ptr() as u64
    }

    fn slot(&self, callout: usize) -> u64 {
        self.word(DATA_WORDS + callout)
    }

    fn way(&self, callout: usize) -> Way {
        self.ways[callout].unwrap_or(Way::Slot(self.slot(callout)))
    }

    fn queue(&self) -> QueueAt {
        let capacity = (self.words.len() - DATA_WORDS) as u32;
        QueueAt { head: self.word(0), tail: self.word(1), words: self.word(DATA_WORDS), capacity }
    }

    fn name(&self) -> String {
        format!("{}.{}", self.kind.name, self.number)
    }

    /// Whether a callout's code is in a routine, where other code can be pasted; a switch only has addresses.
    fn pastes(&self) -> bool {
        self.kind.name != "switch"
    }

    /// Makes the routines for the callouts as they are now.
    fn synthesize(&mut self, unix: &'static Unix) -> Result<(), Wrong> {
        let drafts = (self.kind.code)(self);
        let mut code = Vec::new();
        for (draft, name) in drafts.into_iter().zip(self.kind.births) {
            let made = unix.store.publish::<WordCall>(name, Maker::new("new"), draft);
            code.push(made.map_err(|error| Wrong::new(format!("no room for the code: {error:?}")))?);
        }
        self.code = code;
        Ok(())
    }
}

/// One end that a line names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Named {
    Callentry(usize, usize),
    Callout(usize, usize),
}

pub struct Parts {
    all: Vec<Part>,
    made: u32,
    /// Where callouts go that lead nowhere.
    nowhere: Option<Code<WordCall>>,
}

impl Parts {
    pub const fn new() -> Parts {
        Parts { all: Vec::new(), made: 0, nowhere: None }
    }

    /// The routine that begins at an address.
    pub fn code_at(&self, entry: u64) -> Option<Code<WordCall>> {
        self.all.iter().flat_map(|part| &part.code).find(|code| code.entry() == entry).cloned()
    }

    /// `queue.1.put` as a function, `queue.1` as its data.
    pub fn symbol(&self, name: &str) -> Option<Symbol> {
        match self.named(name) {
            Some(Named::Callentry(part, entry)) => {
                let part = &self.all[part];
                Some(Symbol::Function {
                    entry: part.code.get(entry)?.entry(),
                    arguments: part.kind.callentries[entry].1,
                })
            }
            Some(Named::Callout(part, callout)) => Some(Symbol::Word(self.all[part].slot(callout))),
            None => Some(Symbol::Word(self.all[self.part(name)?].word(0))),
        }
    }

    /// The routine of a callentry, and how many arguments it takes.
    pub fn callentry(&self, name: &str) -> Option<(Code<WordCall>, usize)> {
        let Named::Callentry(part, entry) = self.named(name)? else { return None };
        let part = &self.all[part];
        Some((part.code.get(entry)?.clone(), part.kind.callentries[entry].1))
    }

    pub fn names(&self) -> impl Iterator<Item = String> {
        self.all.iter().flat_map(|part| {
            let entries = part.kind.callentries.iter().map(|entry| entry.0);
            let callouts = part.kind.callouts.iter().map(|callout| callout.0);
            entries.chain(callouts).map(|end| format!("{}.{end}", part.name())).chain([part.name()])
        })
    }

    /// A line for each: data, callentries, callouts and what they lead to.
    pub fn described(&self) -> impl Iterator<Item = String> {
        self.all.iter().map(|part| {
            let mut line = format!("{:<12}", part.name());
            for (entry, arguments, ..) in part.kind.callentries {
                line += &format!("  {entry}({})", &"a, b"[..[0, 1, 4][(*arguments).min(2)]]);
            }
            for (callout, link) in part.kind.callouts.iter().zip(&part.links) {
                let to = link.and_then(|link| {
                    let to = self.all.iter().find(|part| part.number == link.part)?;
                    Some(format!("{}.{} ({:?})", to.name(), to.kind.callentries[link.callentry].0, link.connection))
                });
                line += &format!("  {} -> {}", callout.0, to.as_deref().unwrap_or("nowhere"));
            }
            line + &format!("  words {:#x}\n", part.word(0))
        })
    }

    fn part(&self, name: &str) -> Option<usize> {
        let (kind, number) = name.split_once('.')?;
        let number = number.parse().ok()?;
        self.all.iter().position(|part| part.kind.name == kind && part.number == number)
    }

    fn named(&self, name: &str) -> Option<Named> {
        let (part, end) = name.rsplit_once('.')?;
        let part = self.part(part)?;
        let kind = self.all[part].kind;
        let entry = kind.callentries.iter().position(|entry| entry.0 == end);
        let callout = kind.callouts.iter().position(|callout| callout.0 == end);
        entry.map(|at| Named::Callentry(part, at)).or(callout.map(|at| Named::Callout(part, at)))
    }

    fn add(&mut self, unix: &'static Unix, kind: &'static Kind, size: u64) -> Result<usize, Wrong> {
        if self.all.len() >= PARTS_MAX {
            return Err(Wrong::new(format!("there are {PARTS_MAX} already; remove one")));
        }
        if self.nowhere.is_none() {
            let code = unix.store.publish("monitor.nowhere", Maker::new("new"), blocks::unconnected());
            self.nowhere = Some(code.map_err(|error| Wrong::new(format!("no room for the code: {error:?}")))?);
        }
        let nowhere = self.nowhere.as_ref().map_or(0, Code::entry);
        let more = if kind.name == "queue" { size as usize } else { kind.callouts.len() };
        let words = (0..DATA_WORDS + more)
            .map(|at| AtomicU64::new(if at >= DATA_WORDS && kind.name != "queue" { nowhere } else { 0 }));
        let count = kind.callouts.len();
        let mut part = Part {
            kind,
            number: self.made + 1,
            words: words.collect(),
            links: alloc::vec![None; count],
            ways: alloc::vec![None; count],
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
        let mut seen = Vec::new();
        while let Some(number) = open.pop() {
            if number == to {
                return true;
            }
            if seen.contains(&number) {
                continue;
            }
            seen.push(number);
            let part = self.all.iter().find(|part| part.number == number);
            open.extend(part.into_iter().flat_map(|part| part.links.iter().flatten().map(|link| link.part)));
        }
        false
    }

    /// How many callouts lead to a callentry.
    fn callers(&self, part: u32, callentry: usize) -> usize {
        let links = self.all.iter().flat_map(|part| part.links.iter().flatten());
        links.filter(|link| (link.part, link.callentry) == (part, callentry)).count()
    }

    /// Binds a callout to a callentry, or to nothing.
    fn bind(&mut self, unix: &'static Unix, part: usize, callout: usize, link: Option<Link>) -> Result<(), Wrong> {
        let to = link.and_then(|link| self.all.iter().find(|part| part.number == link.part));
        let entry = match (to, link) {
            (Some(to), Some(link)) => to.code.get(link.callentry).map(Code::entry),
            _ => None,
        };
        let way = match (to, link) {
            (Some(to), Some(Link { connection: Connection::Paste, .. })) if to.kind.name == "gauge" => {
                Some(Way::Gauge(to.word(0)))
            }
            (Some(_), Some(Link { connection: Connection::Paste, .. })) => Some(Way::Clock),
            _ => None,
        };
        let nowhere = self.nowhere.as_ref().map_or(0, Code::entry);
        let part = &mut self.all[part];
        part.links[callout] = link;
        part.words[DATA_WORDS + callout].store(entry.unwrap_or(nowhere), Ordering::Release);
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
        let Some(part) = self.all.iter().find(|part| part.number == number) else { return };
        let entries: Vec<u64> = part.code.iter().map(Code::entry).collect();
        for part in &self.all {
            for (callout, link) in part.links.iter().enumerate() {
                if let Some(link) = link.filter(|link| link.part == number) {
                    part.words[DATA_WORDS + callout].store(entries[link.callentry], Ordering::Release);
                }
            }
        }
    }
}

fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// `new KIND [SIZE]`
pub fn new(line: &Line<'_>) -> Answer {
    let mut words = line.words();
    let kind = words.next().and_then(kind).ok_or_else(|| usage("new"))?;
    let size = match words.next() {
        Some(word) => word.parse::<u64>().map_err(|_| usage("new"))?,
        None => 16,
    };
    if !size.is_power_of_two() || size > QUEUE_WORDS_MAX {
        return Err(Wrong::new(format!("a queue has 1 to {QUEUE_WORDS_MAX} words, a power of two")));
    }
    let mut parts = line.unix.desk.parts.borrow_mut();
    let at = parts.add(line.unix, kind, size)?;
    let part = &parts.all[at];
    let bytes: usize =
        part.code.iter().map(|code| line.unix.store.birth(code.entry()).map_or(0, |b| b.bytes as usize)).sum();
    Ok(format!("{}  {} callentries, {bytes} bytes of code\n", part.name(), part.code.len()))
}

/// Active ends call, passive ones are called.
fn end(parts: &Parts, named: Named, peer: Named) -> (u32, Flow, End) {
    match named {
        Named::Callout(part, callout) => {
            (parts.all[part].number, parts.all[part].kind.callouts[callout].1, End::active(Number::Single))
        }
        Named::Callentry(part, entry) => {
            let kind = parts.all[part].kind;
            let (_, _, flow, offer) = kind.callentries[entry];
            let pastes = matches!(peer, Named::Callout(part, _) if parts.all[part].pastes());
            let offer = if pastes { offer } else { Offer::Entry };
            (parts.all[part].number, flow, End::passive(kind.number, offer))
        }
    }
}

/// `connect PRODUCER CONSUMER`
pub fn connect(line: &Line<'_>) -> Answer {
    let unix = line.unix;
    let mut words = line.words();
    let (Some(from), Some(to), None) = (words.next(), words.next(), words.next()) else { return Err(usage("connect")) };
    let mut parts = unix.desk.parts.borrow_mut();
    let named = |name| {
        parts
            .named(name)
            .ok_or_else(|| Wrong::new(format!("{name} is no callentry or callout of a quaject; list shows them")))
    };
    let (producer, consumer) = (named(from)?, named(to)?);
    let (first, second) = (end(&parts, producer, consumer), end(&parts, consumer, producer));
    let gives = |named, flow| match named {
        // A callout that takes stands where something is produced.
        Named::Callout(..) => flow == Flow::Takes,
        Named::Callentry(..) => flow == Flow::Gives,
    };
    let takes = |named, flow| match named {
        Named::Callout(..) => flow == Flow::Gives,
        Named::Callentry(..) => flow == Flow::Takes,
    };
    if !gives(producer, first.1) || !takes(consumer, second.1) {
        return Err(Wrong::new(format!("{from} does not produce what {to} consumes")));
    }
    let (callee, mut caller_end, callee_end) = match (producer, consumer) {
        (Named::Callout(..), Named::Callentry(part, entry)) => (Some((part, entry)), first.2, second.2),
        (Named::Callentry(part, entry), Named::Callout(..)) => (Some((part, entry)), second.2, first.2),
        _ => (None, first.2, second.2),
    };
    if let Some((part, entry)) = callee
        && parts.callers(parts.all[part].number, entry) > 0
    {
        caller_end.number = Number::Multiple;
    }
    let connection = interface::combine(caller_end, callee_end);
    join(unix, &mut parts, producer, consumer, connection)
}

/// Builds what the interfacer chose.
fn join(unix: &'static Unix, parts: &mut Parts, producer: Named, consumer: Named, connection: Connection) -> Answer {
    let (active, passive) = match (producer, consumer) {
        (Named::Callout(a, c), Named::Callentry(p, e)) | (Named::Callentry(p, e), Named::Callout(a, c)) => {
            ((a, c), (p, e))
        }
        (Named::Callentry(from, get), Named::Callentry(to, put)) => {
            let pump = insert(unix, parts, "pump")?;
            tie(unix, parts, (pump, 0), (from, get), Connection::Call)?;
            tie(unix, parts, (pump, 1), (to, put), Connection::Call)?;
            let name = parts.all[pump].name();
            return Ok(format!("{connection:?}: {name}, a thread that calls {name}.turn carries the words\n"));
        }
        (Named::Callout(from, out), Named::Callout(to, into)) => {
            let queue = insert(unix, parts, "queue")?;
            tie(unix, parts, (from, out), (queue, 0), Connection::Call)?;
            tie(unix, parts, (to, into), (queue, 1), Connection::Call)?;
            return Ok(format!("{connection:?}: {} between them\n", parts.all[queue].name()));
        }
    };
    if connection == Connection::Monitor && parts.all[passive.0].kind.callentries[passive.1].2 == Flow::Takes {
        let monitor = insert(unix, parts, "monitor")?;
        tie(unix, parts, (monitor, 0), passive, Connection::Call)?;
        tie(unix, parts, active, (monitor, 0), Connection::Call)?;
        return Ok(format!("{connection:?}: {} lets one in at a time\n", parts.all[monitor].name()));
    }
    // Everybody runs under the kernel's lock, so those who get need no monitor.
    let connection = if connection == Connection::Monitor { Connection::Call } else { connection };
    tie(unix, parts, active, passive, connection)?;
    let (caller, callee) = (&parts.all[active.0], &parts.all[passive.0]);
    let entry = callee.kind.callentries[passive.1].0;
    Ok(match connection {
        Connection::Paste => format!(
            "{connection:?}: the code of {}.{entry} stands in {}\n",
            callee.name(),
            caller.kind.births.first().unwrap_or(&"")
        ),
        _ => format!(
            "{connection:?}: {}.{} leads to {}.{entry}\n",
            caller.name(),
            caller.kind.callouts[active.1].0,
            callee.name()
        ),
    })
}

fn insert(unix: &'static Unix, parts: &mut Parts, name: &str) -> Result<usize, Wrong> {
    let kind = kind(name).ok_or_else(|| usage("new"))?;
    parts.add(unix, kind, 16)
}

fn tie(
    unix: &'static Unix,
    parts: &mut Parts,
    active: (usize, usize),
    passive: (usize, usize),
    connection: Connection,
) -> Result<(), Wrong> {
    let (from, to) = (parts.all[active.0].number, parts.all[passive.0].number);
    if parts.leads_to(to, from) {
        return Err(Wrong::new("calls would come back to where they began"));
    }
    parts.bind(unix, active.0, active.1, Some(Link { part: to, callentry: passive.1, connection }))
}

/// `remove QUAJECT`
pub fn remove(line: &Line<'_>) -> Answer {
    let unix = line.unix;
    let mut parts = unix.desk.parts.borrow_mut();
    let at = parts.part(line.rest.trim()).ok_or_else(|| Wrong::new(format!("there is no quaject {}", line.rest)))?;
    take_away(unix, &mut parts, at)?;
    Ok(String::new())
}

fn take_away(unix: &'static Unix, parts: &mut Parts, at: usize) -> Result<(), Wrong> {
    let number = parts.all[at].number;
    for part in 0..parts.all.len() {
        for callout in 0..parts.all[part].links.len() {
            if parts.all[part].links[callout].is_some_and(|link| link.part == number) {
                parts.bind(unix, part, callout, None)?;
            }
        }
    }
    parts.all.remove(at);
    Ok(())
}

/// `probe CALLENTRY [TIMES]`: a probe is put before it, called, and taken away.
pub fn probe(line: &Line<'_>) -> Answer {
    let unix = line.unix;
    let mut words = line.words();
    let name = words.next().ok_or_else(|| usage("probe"))?;
    let times = words.next().map_or(Ok(1000), str::parse::<u64>).map_err(|_| usage("probe"))?.clamp(1, 10_000);
    let mut parts = unix.desk.parts.borrow_mut();
    let Some(Named::Callentry(part, entry)) = parts.named(name) else {
        return Err(Wrong::new(format!("{name} is no callentry of a quaject; list shows them")));
    };
    let probe = insert(unix, &mut parts, "probe")?;
    let tied = tie(unix, &mut parts, (probe, 0), (part, entry), Connection::Call);
    let code = parts.all[probe].code[0].clone();
    if tied.is_ok() {
        (0..times).for_each(|_| _ = code.call([0; 6]));
    }
    let [ticks, calls] = [0, 1].map(|word| parts.all[probe].words[word].load(Ordering::Relaxed));
    // An empty probe: what the measuring itself takes.
    parts.bind(unix, probe, 0, None)?;
    (0..times).for_each(|_| _ = code.call([0; 6]));
    let both = parts.all[probe].words[0].load(Ordering::Relaxed);
    take_away(unix, &mut parts, probe)?;
    tied?;
    let own = both.saturating_sub(ticks);
    Ok(format!("{calls} calls, {} ticks each; a call of nothing takes {}\n", ticks / calls.max(1), own / calls.max(1)))
}
