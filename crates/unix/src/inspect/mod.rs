//! What people ask a running kernel, answered: `synth ps`, `code`, `graph`, `top`, `trace`.
//!
//! Requests come as records of the host tool and are answered where they are found, in the interrupt of the device: a
//! bounded piece of work each, with nothing kept for the asker (`bootimage::inspect`). Nothing that is asked changes
//! what programs see. To add a question: a number in `bootimage::inspect::opcode` and a line in [`QUESTIONS`].

mod code;
mod gauges;
pub(crate) mod monitor;
pub(crate) mod port;
mod streams;
mod tasks;
pub(crate) mod trace;

pub use monitor::{MONITOR, MonitorHooks, NO_MONITOR};

use alloc::vec::Vec;
use machine::TryGrow;

use bootimage::inspect::{ANSWER_BYTES_MAX, Fields, Head, Items, REQUEST_BYTES_MAX, opcode, status};

use crate::emulator::Unix;

/// Why a request gets no items.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// No such opcode.
    Unknown,
    /// The arguments are too short or make no sense.
    Bad,
    /// What was asked for is not there.
    Absent,
    NoMemory,
    /// Somebody else does this already.
    Busy,
}

impl Refusal {
    fn status(self) -> u16 {
        match self {
            Refusal::Unknown => status::UNKNOWN,
            Refusal::Bad => status::BAD,
            Refusal::Absent => status::ABSENT,
            Refusal::NoMemory => status::NO_MEMORY,
            Refusal::Busy => status::BUSY,
        }
    }
}

/// What an answer of one page ends with: where the next page begins, 0 when that was all.
type Cursor = u64;

/// One request under way.
pub(crate) struct Question<'a> {
    unix: &'static Unix,
    /// Where this page begins; 0 for the first.
    cursor: Cursor,
    arguments: Fields<'a>,
}

impl Question<'_> {
    fn u32(&mut self) -> Result<u32, Refusal> {
        self.arguments.u32().ok_or(Refusal::Bad)
    }

    fn u64(&mut self) -> Result<u64, Refusal> {
        self.arguments.u64().ok_or(Refusal::Bad)
    }
}

type Answerer = fn(&mut Question<'_>, &mut Items) -> Result<Cursor, Refusal>;

const QUESTIONS: &[(u16, Answerer)] = &[
    (opcode::HELLO, hello),
    (opcode::TASKS, tasks::list),
    (opcode::STREAMS, streams::list),
    (opcode::ROUTINES, code::list),
    (opcode::ROUTINE, code::certificate),
    (opcode::BYTES, code::bytes),
    (opcode::DESCRIPTOR, code::descriptor),
    (opcode::THREAD, code::thread),
    (opcode::GAUGES, gauges::list),
    (opcode::TRACE_BEGIN, trace::begin),
    (opcode::TRACE_END, trace::end),
    (opcode::TRACE_READ, trace::read),
    (opcode::TRACE_NAMES, trace::names),
];

/// The version of the questions and answers.
const VERSION: u32 = 1;

fn hello(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let unix = question.unix;
    out.u32(VERSION).u64(unix.machine.now().0).u64(unix.tasks.task_count() as u64);
    Ok(0)
}

/// The payload of the answer to a request's payload, whatever that is. `None` for one without a number.
fn answer(unix: &'static Unix, request: &[u8]) -> Option<Vec<u8>> {
    let number = u32::from_le_bytes(*request.first_chunk()?);
    let mut bytes = Vec::new();
    let Some((head, arguments)) = Head::split(request) else {
        Head { number, what: status::BAD, cursor: 0 }.put(&mut bytes);
        return Some(bytes);
    };
    if bytes.room_for(ANSWER_BYTES_MAX).is_err() {
        Head { what: status::NO_MEMORY, cursor: 0, ..head }.put(&mut bytes);
        return Some(bytes);
    }
    Head { what: status::DONE, cursor: 0, ..head }.put(&mut bytes);
    let mut items = Items::after(bytes);
    let mut question = Question { unix, cursor: head.cursor, arguments: Fields(arguments) };
    let monitors = (opcode::MONITOR, unix.monitor.answer);
    let mut all = QUESTIONS.iter().chain(core::iter::once(&monitors));
    let known = all.find(|(opcode, _)| *opcode == head.what && request.len() <= REQUEST_BYTES_MAX);
    let result = known.map_or(Err(Refusal::Unknown), |(_, answerer)| answerer(&mut question, &mut items));
    let (what, cursor) = match result {
        Ok(cursor) => (status::DONE, cursor),
        Err(refusal) => {
            items.bytes.truncate(bootimage::inspect::HEAD_BYTES);
            (refusal.status(), 0)
        }
    };
    let mut bytes = items.bytes;
    bytes[4..6].copy_from_slice(&what.to_le_bytes());
    bytes[8..16].copy_from_slice(&cursor.to_le_bytes());
    Some(bytes)
}
