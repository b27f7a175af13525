//! What people ask a running kernel, and what it says: the payloads of REQUEST and ANSWER records.
//!
//! ```text
//!   REQUEST   0 u32 number   4 u16 opcode   6 u16 zero   8 u64 cursor   16 arguments of the opcode
//!   ANSWER    0 u32 number   4 u16 status   6 u16 zero   8 u64 cursor   16 items of the opcode
//! ```
//!
//! The number comes back with the answer. One request gets one answer of at most [`ANSWER_BYTES_MAX`]; when there is
//! more to say its cursor is not zero, and whoever wants the rest asks the same again with that cursor. So the kernel
//! keeps nothing for anybody, does a bounded piece of work each time, and is never told faster than it is read.
//!
//! All numbers are little-endian; a text is its length (u16) and its bytes. An answer with a status other than
//! [`status::DONE`] holds bare text for a person, or nothing.

use alloc::vec::Vec;

/// Length of the head of both payloads.
pub const HEAD_BYTES: usize = 16;
/// Longest payload of an answer. With the record's header it fits three pages, the control port has eight.
pub const ANSWER_BYTES_MAX: usize = 3 * 4096 - 8;
/// Longest payload of a request.
pub const REQUEST_BYTES_MAX: usize = 4096;

/// What is asked for.
pub mod opcode {
    /// Version, machine, time: `u32 version, u64 now_ns, u64 tasks`.
    pub const HELLO: u16 = 1;
    /// Threads of programs, by number: see [`Task`](super::Task).
    pub const TASKS: u16 = 2;
    /// Live routines, by address: `u64 address, u32 bytes, text name, text maker`.
    pub const ROUTINES: u16 = 3;
    /// One birth certificate. Arguments: `u64 address`, anywhere in the routine. First page: `u64 address, u32 bytes,
    /// u32 references, text name, text maker, text contract, u32 templates`; then for each template `text name,
    /// u32 offset, u32 bytes, u16 holes`, for each hole `text name, u8 kind, u64 value, u64 now, text meaning, text end`.
    pub const ROUTINE: u16 = 4;
    /// The bytes of a routine. Arguments: `u64 address`.
    pub const BYTES: u16 = 5;
    /// The entries of a descriptor. Arguments: `u32 process, u32 descriptor`. `text what, u64 slow`, then for `read`, `write`
    /// and `lseek` `u64 bound` (what the dispatch finds now), `u64 own` (the open file's routine, 0 for none).
    pub const DESCRIPTOR: u16 = 6;
    /// The entries of a thread. Arguments: `u32 thread`. `u32 entries`, then `text name, u64 address` of each.
    pub const THREAD: u16 = 7;
    /// Gauges: `text name, u64 value`; twelve of the kernel, then calls done in Rust, by the call's name.
    pub const GAUGES: u16 = 8;
    /// Open descriptors, by process and number: see [`Stream`](super::Stream).
    pub const STREAMS: u16 = 9;
    /// Begins a trace. Arguments: `u32 records` to keep, `u32 process`, the only one that is traced (0: all).
    pub const TRACE_BEGIN: u16 = 10;
    /// Ends it: nothing more is recorded. Asked again, it gives the records' memory back.
    pub const TRACE_END: u16 = 11;
    /// Records from number `cursor` on: `u64 lost` (overwritten before they were read), then records of 32 bytes
    /// ([`TraceRecord`](super::TraceRecord)). There are no more when none comes.
    pub const TRACE_READ: u16 = 12;
    /// Names for the records: see [`TraceName`](super::TraceName).
    pub const TRACE_NAMES: u16 = 13;
    /// The monitor. Arguments: `u8` of [`monitor`](super::monitor), then its own.
    pub const MONITOR: u16 = 64;
}

/// What the monitor asks for. Kinds, callentries and callouts are numbered as in `monitor::blocks::KINDS`.
pub mod monitor {
    /// Operations (`monitor::encode`): `u64 value, u8` how it ended (`monitor::Ended`).
    pub const EVALUATE: u8 = 1;
    /// The address of the variable of a name, made if it is new: `u64`.
    pub const VARIABLE: u8 = 2;
    /// `text name, u64 value` of each.
    pub const VARIABLES: u8 = 3;
    /// Arguments: `u64 address, u32 count`. So many words of the kernel's own memory, as far as it is there.
    pub const MEMORY: u8 = 4;
    /// `u32 number, u8 kind, u64 data`, for each callentry `u64 entry`, for each callout `u8 connection` ([`CONNECTIONS`]),
    /// `u32 quaject, u8 callentry`, `text`: the stream or the routine that it is of, and its words of data.
    pub const PARTS: u8 = 5;
    /// Arguments: `u8 kind, u32 words`. `u32 number`.
    pub const NEW: u8 = 6;
    /// Arguments: producer and consumer, each `u32 number, u8 end`: a callentry, or [`CALLOUT`] and a callout.
    /// `u8 connection, u32 number` of the quaject between them, 0 for none. BAD: nothing flows there; BUSY: calls would
    /// come back to where they began.
    pub const CONNECT: u8 = 7;
    /// Arguments: `u32 number`.
    pub const REMOVE: u8 = 8;
    /// Arguments: `u64 entry, u32 times`: calls it.
    pub const TIMES: u8 = 9;
    /// Arguments: `u64 entry`, six words: points a new thread at it. `u32 job, u32 thread`.
    pub const RUN: u8 = 10;
    /// `u32 job, u8 done, u64 answer` of each.
    pub const JOBS: u8 = 11;

    /// Arguments: `u32 thread`: it stands still before it goes back to its program.
    pub const HALT: u8 = 12;
    /// Arguments: `u32 thread, u32 steps`: one that stands still goes on, for so many instructions (0: no end). ABSENT: it
    /// does not stand still.
    pub const GO: u8 = 13;
    /// Arguments: `u32 process, u64 address, u8` 1 sets, 0 takes away.
    pub const BREAK: u8 = 14;
    /// Threads that were stopped: `u32 thread, u8` 1 when it stands still, `u8` why, 18 words (rax, rbx, rcx, rdx, rsi, rdi,
    /// rbp, rsp, r8 to r15, rip, rflags), 16 bytes at rip.
    pub const STANDING: u8 = 15;

    /// Arguments: `u32 thread, u32 descriptor`. `u32 number` of the stream as a quaject. BAD: it asks who reads or writes it.
    pub const OPEN: u8 = 16;
    /// Arguments: `u64 entry` of a routine that a descriptor leads to, then the name of a callback of its quaject, or
    /// nothing. `u32 number` of a watch: counts and times it, and is told of the callback. BUSY: it is watched.
    pub const WATCH: u8 = 17;
    /// Arguments: `u32 number, u8 end`: a callout leads nowhere again.
    pub const UNBIND: u8 = 18;
    /// Arguments: `u32 number, u64 value` of its first word.
    pub const SET: u8 = 19;

    /// Arguments: `u32 process`. `u64 start, u64 end, u64 offset, text name` of each area that shows a file, by address.
    pub const AREAS: u8 = 20;
    /// Arguments: `u32 process, u64 start` of such an area, `u64 offset` in its file: bytes from there on, nothing behind its
    /// last page.
    pub const FILE: u8 = 21;
    /// Arguments: `u32 process, u64 address, u32 bytes`. The bytes, as they are without breakpoints.
    pub const PEEK: u8 = 22;
    /// Arguments: `u32 process, u64 address`, bytes. BAD: no private memory is there; BUSY: a breakpoint is.
    pub const POKE: u8 = 23;
    /// Arguments: `u32 thread, u8 register` in the order of [`STANDING`], `u64 value`. ABSENT: it does not stand still.
    pub const REGISTER: u8 = 24;

    /// Why a thread stands still.
    pub const ASKED: u8 = 0;
    pub const BROKE: u8 = 1;
    pub const STEPPED: u8 = 2;

    pub const CALLOUT: u8 = 0x80;
    pub const CONNECTIONS: [&str; 7] = ["nothing", "paste", "call", "monitor", "queue", "pump", "product"];
}

/// How a request went.
pub mod status {
    pub const DONE: u16 = 0;
    /// No such opcode.
    pub const UNKNOWN: u16 = 1;
    /// The arguments are too short or make no sense.
    pub const BAD: u16 = 2;
    /// What was asked for is not there, or not any more.
    pub const ABSENT: u16 = 3;
    /// No memory for the answer.
    pub const NO_MEMORY: u16 = 4;
    /// Somebody else does this already.
    pub const BUSY: u16 = 5;
}

/// What a program's thread is doing.
pub mod state {
    pub const RUNNING: u8 = 0;
    pub const READY: u8 = 1;
    pub const ASLEEP: u8 = 2;
    pub const ENDED: u8 = 3;
    pub const STOPPED: u8 = 4;
    pub const ZOMBIE: u8 = 5;
}

/// The head of a request or an answer. `what` is the opcode or the status.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    pub number: u32,
    pub what: u16,
    pub cursor: u64,
}

impl Head {
    /// Takes the head off the front of a payload; `None` when it is too short or its zeros are not.
    pub fn split(payload: &[u8]) -> Option<(Head, &[u8])> {
        let mut fields = Fields(payload);
        let (number, what, zero, cursor) = (fields.u32()?, fields.u16()?, fields.u16()?, fields.u64()?);
        (zero == 0).then_some((Head { number, what, cursor }, fields.0))
    }

    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.number.to_le_bytes());
        out.extend(self.what.to_le_bytes());
        out.extend([0, 0]);
        out.extend(self.cursor.to_le_bytes());
    }
}

/// Bytes that fields are taken from, front to back. Every answer is `None` once they have run out.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(front)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.u16()?;
        self.take(length.into())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The items of an answer in the making. An item is there whole or not at all.
pub struct Items {
    pub bytes: Vec<u8>,
    /// Where the item under way begins.
    begun: usize,
}

impl Items {
    /// `bytes` already hold what stands before the items.
    pub fn after(bytes: Vec<u8>) -> Items {
        let begun = bytes.len();
        Items { bytes, begun }
    }

    pub fn u8(&mut self, value: u8) -> &mut Items {
        self.bytes.push(value);
        self
    }

    pub fn u16(&mut self, value: u16) -> &mut Items {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub fn u32(&mut self, value: u32) -> &mut Items {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub fn u64(&mut self, value: u64) -> &mut Items {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// At most 1,024 bytes of text; the rest is left out.
    pub fn text(&mut self, text: &[u8]) -> &mut Items {
        let text = &text[..text.len().min(1024)];
        self.u16(text.len() as u16);
        self.bytes.extend_from_slice(text);
        self
    }

    /// Ends an item. `false`: it does not fit and is taken back.
    #[must_use]
    pub fn keep(&mut self) -> bool {
        let fits = self.bytes.len() <= ANSWER_BYTES_MAX;
        if !fits {
            self.bytes.truncate(self.begun);
        }
        self.begun = self.bytes.len();
        fits
    }

    /// Bytes that an item may still have.
    pub fn room(&self) -> usize {
        ANSWER_BYTES_MAX.saturating_sub(self.bytes.len())
    }
}

/// One thread of a program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Task {
    pub thread: u32,
    pub process: u32,
    pub parent: u32,
    /// The machine's number of it, as records of a trace have it.
    pub tte: u32,
    /// See [`state`].
    pub state: u8,
    pub descriptors: u32,
    /// The call it is in, while it sleeps; `u16::MAX` for none.
    pub call: u16,
    /// The call's first three arguments.
    pub arguments: [u64; 3],
    pub ran_ns: u64,
    pub quantum_ns: u64,
    /// Calls that were done in Rust.
    pub calls: u64,
    pub name: Vec<u8>,
    /// What the first argument of the call is open on, where that is a descriptor.
    pub waits_for: Vec<u8>,
}

impl Task {
    pub fn put(&self, out: &mut Items) {
        out.u32(self.thread).u32(self.process).u32(self.parent).u32(self.tte).u8(self.state);
        out.u32(self.descriptors).u16(self.call);
        for word in self.arguments {
            out.u64(word);
        }
        out.u64(self.ran_ns).u64(self.quantum_ns).u64(self.calls).text(&self.name).text(&self.waits_for);
    }

    pub fn get(from: &mut Fields<'_>) -> Option<Task> {
        Some(Task {
            thread: from.u32()?,
            process: from.u32()?,
            parent: from.u32()?,
            tte: from.u32()?,
            state: from.u8()?,
            descriptors: from.u32()?,
            call: from.u16()?,
            arguments: [from.u64()?, from.u64()?, from.u64()?],
            ran_ns: from.u64()?,
            quantum_ns: from.u64()?,
            calls: from.u64()?,
            name: from.text()?.to_vec(),
            waits_for: from.text()?.to_vec(),
        })
    }
}

/// First bytes of a TRACE record, and of a name.
pub mod trace {
    /// Records follow.
    pub const RECORDS: u8 = 1;
    /// A name follows.
    pub const NAME: u8 = 2;
    /// `u64`: so many records are missing before those that follow.
    pub const LOST: u8 = 3;

    pub const THREAD_NAME: u8 = 1;
    pub const ROUTINE_NAME: u8 = 2;
}

/// One record of a trace; the kernel's module `trace` says what the words mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TraceRecord {
    pub time_ns: u64,
    pub kind: u16,
    pub tte: u16,
    pub number: u32,
    pub words: [u64; 2],
}

impl TraceRecord {
    pub fn get(from: &mut Fields<'_>) -> Option<TraceRecord> {
        Some(TraceRecord {
            time_ns: from.u64()?,
            kind: from.u16()?,
            tte: from.u16()?,
            number: from.u32()?,
            words: [from.u64()?, from.u64()?],
        })
    }
}

/// What a number in the records of a trace stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TraceName {
    /// From record `from` on, thread `tte` of the machine is this thread.
    Thread { from: u64, tte: u32, thread: u32, process: u32, name: Vec<u8> },
    /// The name of routines.
    Routine { number: u64, name: Vec<u8> },
}

impl TraceName {
    pub fn get(fields: &mut Fields<'_>) -> Option<TraceName> {
        let (kind, from, tte, thread, process) =
            (fields.u8()?, fields.u64()?, fields.u32()?, fields.u32()?, fields.u32()?);
        let name = fields.text()?.to_vec();
        match kind {
            trace::THREAD_NAME => Some(TraceName::Thread { from, tte, thread, process, name }),
            trace::ROUTINE_NAME => Some(TraceName::Routine { number: from, name }),
            _ => None,
        }
    }
}

/// What an open descriptor leads to.
pub mod stream {
    pub const PIPE: u8 = 1;
    pub const TERMINAL: u8 = 2;
    /// A stream of the host tool.
    pub const CHANNEL: u8 = 3;
    pub const FILE: u8 = 4;
    pub const DIRECTORY: u8 = 5;
    pub const DEVICE: u8 = 6;
    pub const SOCKET: u8 = 7;
    pub const OTHER: u8 = 8;
}

/// One open descriptor.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stream {
    pub process: u32,
    pub descriptor: u32,
    /// See [`stream`].
    pub kind: u8,
    /// Bit 0: open for reading, 1: for writing, 2: its `read` is synthesized, 3: its `write`.
    pub ways: u8,
    /// The same for all descriptors of one thing.
    pub identity: u64,
    /// Bytes in the pipe; position in the file.
    pub gauge: u64,
    /// Bytes the pipe can hold; size of the file.
    pub limit: u64,
    pub name: Vec<u8>,
}

impl Stream {
    pub fn put(&self, out: &mut Items) {
        out.u32(self.process).u32(self.descriptor).u8(self.kind).u8(self.ways);
        out.u64(self.identity).u64(self.gauge).u64(self.limit).text(&self.name);
    }

    pub fn get(from: &mut Fields<'_>) -> Option<Stream> {
        Some(Stream {
            process: from.u32()?,
            descriptor: from.u32()?,
            kind: from.u8()?,
            ways: from.u8()?,
            identity: from.u64()?,
            gauge: from.u64()?,
            limit: from.u64()?,
            name: from.text()?.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back_and_short_ones_are_refused() {
        let head = Head { number: 7, what: opcode::TASKS, cursor: 1 << 40 };
        let mut bytes = Vec::new();
        head.put(&mut bytes);
        bytes.push(9);
        assert_eq!(Head::split(&bytes), Some((head, &[9][..])));
        assert_eq!(Head::split(&bytes[..15]), None);
        bytes[6] = 1;
        assert_eq!(Head::split(&bytes), None);
    }

    #[test]
    fn tasks_and_streams_come_back() {
        let task = Task { thread: 3, call: 9, name: b"cat".to_vec(), arguments: [1, 2, 3], ..Task::default() };
        let stream = Stream { process: 1, descriptor: 4, ways: 3, name: b"/x".to_vec(), ..Stream::default() };
        let mut items = Items::after(Vec::new());
        task.put(&mut items);
        stream.put(&mut items);
        let mut fields = Fields(&items.bytes);
        assert_eq!(Task::get(&mut fields), Some(task));
        assert_eq!(Stream::get(&mut fields), Some(stream));
        assert!(fields.is_empty() && Task::get(&mut fields).is_none());
    }

    #[test]
    fn an_item_that_does_not_fit_is_taken_back_whole() {
        let mut items = Items::after(vec![0; ANSWER_BYTES_MAX - 10]);
        items.u64(1);
        assert!(items.keep());
        items.u8(1).u64(2);
        assert!(!items.keep());
        assert_eq!(items.bytes.len(), ANSWER_BYTES_MAX - 2);
    }
}
