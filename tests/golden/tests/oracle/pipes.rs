//! `pipe.read` and `pipe.write`.

use std::collections::VecDeque;
use std::sync::Arc;

use abi::{Errno, nr};
use codestore::Code;
use golden::{Access, Way, bench};
use kernel::pipe::{ATOMIC_BYTES, CAPACITY_DEFAULT, Pipe, PipeCode, PipeEnd, Side};
use kernel::schedule::WaitQueue;
use kernel::stream::Stream;

use crate::race::{Around, Race, in_rax, program, range};
use crate::watched::Watched;

/// The longest piece that the twin copies under one fault check.
const PIECE_BYTES: usize = 4096;

/// A pipe and its model.
pub struct Pipes {
    pipe: Option<Arc<Pipe>>,
    code: Option<PipeCode>,
    reader: Option<PipeEnd>,
    writer: Option<PipeEnd>,
    /// The same routines with a watch around them: `read` and `write`.
    watched: Option<[Watched; 2]>,
    queue: VecDeque<u8>,
    head: usize,
    tail: usize,
}

impl Pipes {
    pub fn new() -> Pipes {
        Pipes {
            pipe: None,
            code: None,
            reader: None,
            writer: None,
            watched: None,
            queue: VecDeque::new(),
            head: 0,
            tail: 0,
        }
    }

    fn pipe(&self) -> Arc<Pipe> {
        self.pipe.clone().expect("a pipe is open")
    }

    fn reopen(&mut self, race: &mut Race) {
        let entries = |code: &Option<PipeCode>| {
            code.as_ref().map(|code| [&code.read, &code.write].map(|code| code.as_ref().map(Code::entry)))
        };
        let before = entries(&self.code);
        *self = Pipes::new();
        let pipe = Pipe::new(Some(bench().makers())).expect("memory for a pipe");
        self.code = pipe.code();
        race.same("a new pipe uses the code of the last", before.is_none() || entries(&self.code) == before, true);
        self.watched = Some([Watched::new(&pipe, nr::READ, "empty"), Watched::new(&pipe, nr::WRITE, "full")]);
        self.reader = Some(PipeEnd::new(&pipe, Side::Read, race.scheduler));
        self.writer = Some(PipeEnd::new(&pipe, Side::Write, race.scheduler));
        self.pipe = Some(pipe);
    }

    pub fn step(&mut self, race: &mut Race) {
        if self.pipe.is_none() || race.random.once_in(2000) {
            self.reopen(race);
        }
        match race.random.below(400) {
            0 => self.toggle_reader(race),
            1 => self.toggle_writer(race),
            2 => self.drain(race),
            // More writes for a while, then more reads, so that every fill comes.
            _ if race.random.below(8) < 3 + 2 * (race.operation >> 10 & 1) => self.write(race),
            _ => self.read(race),
        }
        race.same("fill", self.pipe().fill(), self.queue.len());
    }

    fn toggle_reader(&mut self, race: &Race) {
        self.reader = match self.reader.take() {
            Some(_) => None,
            None => Some(PipeEnd::new(&self.pipe(), Side::Read, race.scheduler)),
        };
    }

    fn toggle_writer(&mut self, race: &Race) {
        self.writer = match self.writer.take() {
            Some(_) => None,
            None => Some(PipeEnd::new(&self.pipe(), Side::Write, race.scheduler)),
        };
    }

    /// Reads everything and compares it.
    fn drain(&mut self, race: &Race) {
        let Some(reader) = &self.reader else { return };
        let mut all = vec![0; self.queue.len()];
        if !all.is_empty() {
            race.same("drained", reader.read_kernel(&race.io(), &mut all), Ok(all.len()));
        }
        self.tail += all.len();
        if all.len() > 1 {
            (self.head, self.tail) = (0, 0);
        }
        race.same("content of the pipe", VecDeque::from(all), std::mem::take(&mut self.queue));
    }

    /// The routine of a call, half the time the watched one.
    fn entry(&mut self, race: &mut Race, number: u64) -> u64 {
        let at = usize::from(number == nr::WRITE);
        if race.random.once_in(2)
            && let Some(watched) = &mut self.watched
        {
            watched.iter().for_each(|watched| watched.check(race));
            return watched[at].enter();
        }
        let code = self.code.as_ref().expect("code");
        [&code.read, &code.write][at].as_ref().expect("a routine").entry().address()
    }

    fn room(&self) -> usize {
        CAPACITY_DEFAULT - self.queue.len()
    }

    /// The length of the next piece that the twin copies.
    fn piece(wanted: usize, at: usize) -> usize {
        wanted.min(CAPACITY_DEFAULT - at % CAPACITY_DEFAULT).min(PIECE_BYTES)
    }

    fn write(&mut self, race: &mut Race) {
        if self.writer.is_none() {
            return;
        }
        let to_end = CAPACITY_DEFAULT - self.head % CAPACITY_DEFAULT;
        let mut bytes = race.bytes(&[self.room(), to_end]) as u64;
        let mut address = program().buffer(&mut race.random, bytes as usize);
        if race.random.once_in(200) {
            bytes = race.random.pick(&[u64::MAX, 1 << 63, i64::MAX as u64, 1 << 62, 1 << 40, 1 << 32]);
        }
        if to_end < ATOMIC_BYTES && race.random.once_in(4) {
            // An atomic write that fills the pipe, turns round its end and faults behind that.
            bytes = self.room().min(ATOMIC_BYTES) as u64;
            address = program().fault_after(to_end as u64 + race.random.below(bytes + 1));
        }
        program().scramble(&mut race.random, address, bytes.min(300_000) as usize);
        let from = program().bytes(address, bytes.min(300_000) as usize);
        let around = Around::take(address, bytes.min(300_000) as usize);
        let pipe = self.pipe();
        let waits = race.random.once_in(30).then(|| set_waiting(pipe.readable()));
        let entry = self.entry(race, nr::WRITE);
        let writer = self.writer.as_ref().expect("a writer");
        let outcome = race.file_call("pipe.write", entry, nr::WRITE, (address, bytes), |race| {
            writer.write(&race.io(), range(address, bytes)?)
        });
        let expected = range(address, bytes).and_then(|range| self.model_write(&from, range.bytes));
        race.same("result of write", outcome.result, in_rax(expected.map(|bytes| bytes as u64)));
        around.check(race, &[], &[]);
        check_waiting(race, waits, pipe.readable(), outcome.way, expected.is_ok_and(|bytes| bytes > 0));
    }

    /// Writes `bytes` bytes; `from` is as much of them as can be read.
    fn model_write(&mut self, from: &[u8], bytes: usize) -> Result<usize, Errno> {
        if bytes == 0 {
            return Ok(0);
        }
        if self.reader.is_none() {
            return Err(Errno::EPIPE);
        }
        let mut done = 0;
        let needed = if bytes <= ATOMIC_BYTES { bytes } else { 1 };
        if self.room() < needed {
            return Err(Errno::EAGAIN);
        }
        // What must not be torn comes whole or not at all.
        if bytes <= ATOMIC_BYTES && from.len() < bytes {
            return Err(Errno::EFAULT);
        }
        while done < bytes && self.room() > 0 {
            let part = Self::piece((bytes - done).min(self.room()), self.head);
            if done + part > from.len() {
                return if done > 0 { Ok(done) } else { Err(Errno::EFAULT) };
            }
            self.queue.extend(&from[done..done + part]);
            self.head += part;
            done += part;
        }
        Ok(done)
    }

    fn read(&mut self, race: &mut Race) {
        if self.reader.is_none() {
            return;
        }
        let to_end = CAPACITY_DEFAULT - self.tail % CAPACITY_DEFAULT;
        let mut bytes = race.bytes(&[self.queue.len(), to_end]) as u64;
        let address = program().buffer(&mut race.random, bytes as usize);
        if race.random.once_in(200) {
            bytes = race.random.pick(&[u64::MAX, 1 << 63, i64::MAX as u64, 1 << 62, 1 << 40, 1 << 32]);
        }
        let around = Around::take(address, bytes.min(300_000) as usize);
        let pipe = self.pipe();
        let waits = race.random.once_in(30).then(|| set_waiting(pipe.writable()));
        let entry = self.entry(race, nr::READ);
        let reader = self.reader.as_ref().expect("a reader");
        let outcome = race.file_call("pipe.read", entry, nr::READ, (address, bytes), |race| {
            reader.read(&race.io(), range(address, bytes)?)
        });
        let (expected, given, more) = match range(address, bytes) {
            Ok(range) => self.model_read(address, range.bytes),
            Err(error) => (Err(error), Vec::new(), self.in_reach(address, bytes)),
        };
        race.same("result of read", outcome.result, in_rax(expected.map(|bytes| bytes as u64)));
        around.check(race, &given, &more);
        check_waiting(race, waits, pipe.writable(), outcome.way, expected.is_ok_and(|bytes| bytes > 0));
    }

    /// What a routine may have given before it met the end of the program's memory. The call is an error, and then the
    /// buffer's content is nobody's business.
    fn in_reach(&self, address: u64, bytes: u64) -> Vec<u8> {
        let wanted = (self.queue.len() as u64).min(bytes) as usize;
        self.queue.iter().take(program().reachable(address, wanted, Access::Write)).copied().collect()
    }

    /// The result of a read, the bytes that it gives, and those that may stand behind them when it faulted.
    fn model_read(&mut self, address: u64, bytes: usize) -> (Result<usize, Errno>, Vec<u8>, Vec<u8>) {
        if bytes == 0 || self.queue.is_empty() && self.writer.is_none() {
            return (Ok(0), Vec::new(), Vec::new());
        }
        if self.queue.is_empty() {
            return (Err(Errno::EAGAIN), Vec::new(), Vec::new());
        }
        let wanted = bytes.min(self.queue.len());
        let reachable = program().reachable(address, wanted, Access::Write);
        let mut done = 0;
        while done < wanted {
            let part = Self::piece(wanted - done, self.tail + done);
            if done + part > reachable {
                break;
            }
            done += part;
        }
        let more: Vec<u8> = self.queue.iter().take(reachable).skip(done).copied().collect();
        let given: Vec<u8> = self.queue.drain(..done).collect();
        self.tail += done;
        if bytes != 1 && done > 0 && self.queue.is_empty() {
            (self.head, self.tail) = (0, 0);
        }
        let result = if done == 0 { Err(Errno::EFAULT) } else { Ok(done) };
        (result, given, more)
    }
}

/// Pretends that somebody sleeps in the queue.
fn set_waiting(queue: &WaitQueue) {
    // SAFETY: the word is an atomic that lives as long as the queue.
    unsafe { (queue.count_word() as *mut u64).write_volatile(1) };
}

/// A call with a sleeper at the other side is done in Rust, which wakes when bytes have moved.
fn check_waiting(race: &Race, waits: Option<()>, queue: &WaitQueue, way: Way, moved: bool) {
    if waits.is_none() {
        return;
    }
    race.same("way while somebody waits", way, Way::Slow);
    let word = queue.count_word() as *mut u64;
    // SAFETY: as in `set_waiting`.
    let count = unsafe { word.read_volatile() };
    race.same("sleepers after the call", count, u64::from(!moved));
    // SAFETY: as in `set_waiting`.
    unsafe { word.write_volatile(0) };
}
