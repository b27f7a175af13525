//! `read`, `write`, `pread`, `pwrite` and `lseek` of files: several open files on few nodes, which also change underneath them.
//! Some of the files are kept by a store, and their pages go there and come back.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use abi::{Errno, nr};
use golden::{Access, Bench, Outcome, Way, bench};
use kernel::file::limits::FILE_BYTES_MAX;
use kernel::file::{Content, CounterClock, Credentials, NewNode, Node, PageStore, Positioned, Time, Volume, Window};
use kernel::space::Arrival;
use quaject::Made;

use crate::race::{Around, Race, in_rax, program, range};

const NODES: usize = 3;
const OPENS: usize = 5;
/// Positions are chosen below this; more pages than a window has slots.
const BYTES: u64 = 40 * 4096 + 100;

/// When a time was noted: in which operation, and the counter before and after it.
#[derive(Clone, Copy, Default, Debug)]
struct Noted {
    operation: u64,
    counter: (u64, u64),
}

struct File {
    node: Arc<Node>,
    bytes: Vec<u8>,
    accessed: Noted,
    modified: Noted,
}

struct Open {
    file: usize,
    window: Box<Made<Window>>,
    positioned: Box<Made<Positioned>>,
    position: u64,
}

pub struct Files {
    files: Vec<File>,
    opens: Vec<Open>,
    credentials: Credentials,
}

/// The counter as a time: its billions are the seconds.
struct Clock;

fn time_of(counter: u64) -> Time {
    Time { seconds: (counter / 1_000_000_000) as i64, nanos: (counter % 1_000_000_000) as u32 }
}

impl CounterClock for Clock {
    fn time_of_counter(&self, counter: u64) -> Time {
        time_of(counter)
    }
}

impl Noted {
    fn contains(&self, time: Time) -> bool {
        time_of(self.counter.0) <= time && time <= time_of(self.counter.1)
    }
}

/// A store that brings pages at once.
#[derive(Default)]
struct AtOnce(Mutex<BTreeMap<(u64, u64), Vec<u8>>>);

impl AtOnce {
    fn of(&self, file: u64, pages: Range<u64>) -> Vec<u64> {
        let kept = self.0.lock().unwrap();
        kept.range((file, pages.start)..(file, pages.end)).map(|((_, index), _)| *index).collect()
    }
}

impl PageStore for AtOnce {
    fn holds(&self, file: u64, index: u64) -> bool {
        self.0.lock().unwrap().contains_key(&(file, index))
    }

    fn next_page(&self, file: u64, from: u64) -> Option<u64> {
        self.of(file, from..u64::MAX).first().copied()
    }

    fn pages(&self, file: u64) -> u64 {
        self.of(file, 0..u64::MAX).len() as u64
    }

    fn fetch(&self, file: u64, index: u64, arrival: Arrival) {
        arrival.page().write(0, &self.0.lock().unwrap()[&(file, index)]);
        arrival.tell(Ok(()));
    }

    fn put(&self, file: u64, index: u64, arrival: Arrival) {
        let mut bytes = vec![0; 4096];
        arrival.page().read(0, &mut bytes);
        self.0.lock().unwrap().insert((file, index), bytes);
        arrival.tell(Ok(()));
    }

    fn cut(&self, file: u64, pages: Range<u64>) {
        self.of(file, pages).into_iter().for_each(|index| _ = self.0.lock().unwrap().remove(&(file, index)));
    }
}

impl File {
    fn new(is_kept: bool) -> File {
        let volume = match is_kept {
            true => Volume::kept(bench().pool, Arc::new(AtOnce::default())).unwrap(),
            false => Volume::in_memory(bench().pool).unwrap(),
        };
        volume.set_clock(&Clock);
        let new = NewNode { mode: 0o644, user: 0, group: 0, now: Time::default() };
        let node = Node::nameless(&volume, b"", new).expect("room for a node");
        File { node, bytes: Vec::new(), accessed: Noted::default(), modified: Noted::default() }
    }

    fn content(&self) -> &Content {
        self.node.content().expect("a regular file")
    }

    /// As whoever uses a file does first. With this store nothing is ever on its way.
    fn bring(&self, position: u64, bytes: usize) {
        let coming = self.content().bring(position..position.saturating_add(bytes as u64));
        assert!(coming.expect("room for pages").is_none(), "the store brings pages at once");
    }

    fn bring_edges(&self, range: Range<u64>) {
        assert!(self.content().bring_edges(range).expect("room for pages").is_none());
    }

    /// What is dirty goes to the store, and nothing stays in memory.
    fn send_away(&self) {
        let mut next = 0;
        while let Some((after, coming)) = self.content().flush_next(next, u64::MAX).expect("memory") {
            assert_eq!(coming.outcome(), Some(Ok(())));
            next = after;
        }
        self.content().release_clean(0..u64::MAX);
        assert!(!self.content().is_kept() || self.content().pages_present() == 0, "a page stays in memory");
    }
}

impl Open {
    fn new(files: &[File], file: usize) -> Open {
        let (content, makers) = (files[file].content(), bench().makers());
        let positioned = Positioned::open(content, makers);
        Open { file, window: Window::open(content, makers), positioned, position: 0 }
    }

    fn close(self) {
        Window::close(self.window);
        Positioned::close(self.positioned);
    }

    /// The twin has moved bytes.
    fn remember(&self, node: &Node, at: At, bytes: usize) {
        if let At::Position(position) = at {
            self.window.position.set(position + bytes as u64);
        }
        let (At::Position(position) | At::Offset(position)) = at;
        node.show_page(bench(), position);
    }
}

/// Offsets that are errors, or lie behind every file.
const FAR: [u64; 5] = [u64::MAX, u64::MAX - 4096, 1 << 63, i64::MAX as u64, FILE_BYTES_MAX];

/// Where a call reads or writes.
#[derive(Clone, Copy)]
enum At {
    /// At the file's position, which moves.
    Position(u64),
    /// Where its argument says.
    Offset(u64),
}

impl At {
    fn choose(race: &mut Race, open: &Open, size: u64) -> At {
        match race.random.below(60) {
            0 => At::Offset(race.random.pick(&FAR)),
            1..20 => At::Offset(Files::a_position(race, size)),
            _ => At::Position(open.position),
        }
    }

    /// Error: `EINVAL` for a negative offset.
    fn place(self) -> Result<u64, Errno> {
        let (At::Position(place) | At::Offset(place)) = self;
        if (place as i64) < 0 { Err(Errno::EINVAL) } else { Ok(place) }
    }

    /// The fourth argument.
    fn argument(self) -> Option<u64> {
        match self {
            At::Position(_) => None,
            At::Offset(offset) => Some(offset),
        }
    }
}

/// What a read or write is about.
struct Chosen {
    place: At,
    position: u64,
    /// What the call asks for.
    bytes: u64,
    /// At most so many of them have an address.
    shown: usize,
    address: u64,
}

impl Chosen {
    fn by(race: &mut Race, open: &Open, file: &File) -> Chosen {
        let size = file.bytes.len() as u64;
        let place = At::choose(race, open, size);
        let position = place.place().unwrap_or(0);
        let bytes = Chosen::a_length(race, position, size);
        let shown = bytes.min(300_000) as usize;
        Chosen { place, position, bytes, shown, address: program().buffer(&mut race.random, shown) }
    }

    fn a_length(race: &mut Race, position: u64, size: u64) -> u64 {
        if race.random.once_in(300) {
            return race.random.pick(&[u64::MAX, 1 << 63, i64::MAX as u64, 1 << 62, 1 << 40]);
        }
        let to_page_end = 4096 - (position % 4096) as usize;
        let to_end = size.saturating_sub(position) as usize;
        race.bytes(&[to_page_end, to_end, to_page_end]) as u64
    }
}

impl Files {
    pub fn new() -> Files {
        let files: Vec<File> = (0..NODES).map(|at| File::new(at > 0)).collect();
        let opens = (0..OPENS).map(|at| Open::new(&files, at % NODES)).collect();
        Files { files, opens, credentials: Credentials::root() }
    }

    pub fn step(&mut self, race: &mut Race) {
        let at = race.random.below(OPENS as u64) as usize;
        match race.random.below(200) {
            0 if race.random.once_in(2) => self.reopen(race, at),
            0 if race.random.once_in(4) => self.replace(race),
            1 => self.resize(race),
            2 => self.punch(race),
            3 => self.files[race.random.index(NODES)].send_away(),
            4..9 => self.check_times(race),
            9 => self.check_content(race),
            10..60 => self.seek(race, at),
            60..130 => self.read(race, at),
            _ => self.write(race, at),
        }
        let open = &self.opens[at];
        race.same("position", open.window.position.get(), open.position);
    }

    fn reopen(&mut self, race: &mut Race, at: usize) {
        let file = race.random.below(NODES as u64) as usize;
        self.opens.swap_remove(at).close();
        self.opens.push(Open::new(&self.files, file));
    }

    /// All opens of one file are closed, and it is gone; a new one comes in its place.
    fn replace(&mut self, race: &mut Race) {
        let gone = race.random.below(NODES as u64) as usize;
        let (closed, kept): (Vec<Open>, Vec<Open>) = self.opens.drain(..).partition(|open| open.file == gone);
        self.opens = kept;
        closed.into_iter().for_each(Open::close);
        self.files[gone] = File::new(gone > 0);
        while self.opens.len() < OPENS {
            let file = race.random.below(NODES as u64) as usize;
            self.opens.push(Open::new(&self.files, file));
        }
    }

    fn a_position(race: &mut Race, size: u64) -> u64 {
        // What has grown much grows no further.
        let size = if size > 2 * BYTES { BYTES } else { size };
        match race.random.below(8) {
            0 => size,
            1 => size.saturating_sub(race.random.below(5000)),
            2 => (race.random.below(40) * 4096 + race.random.below(20)).saturating_sub(10),
            3 => race.random.below(40) * 4096,
            4 => 0,
            // Often a place where the window has been.
            5 | 6 => race.random.below(6 * 4096),
            _ => race.random.below(BYTES),
        }
    }

    fn resize(&mut self, race: &mut Race) {
        let file = &mut self.files[race.random.below(NODES as u64) as usize];
        let size = Self::a_position(race, file.bytes.len() as u64);
        let before = Bench::counter();
        file.bring_edges(size..size);
        race.same("truncate", file.node.truncate(size, &self.credentials, time_of(before)), Ok(()));
        file.bytes.resize(size as usize, 0);
        file.modified = Noted { operation: race.operation, counter: (before, before) };
    }

    fn punch(&mut self, race: &mut Race) {
        let file = &mut self.files[race.random.below(NODES as u64) as usize];
        let start = Self::a_position(race, file.bytes.len() as u64);
        let end = start + race.random.below(3 * 4096);
        file.bring_edges(start..end);
        file.content().punch_hole(start..end).unwrap();
        let size = file.bytes.len();
        file.bytes[size.min(start as usize)..size.min(end as usize)].fill(0);
    }

    fn check_content(&mut self, race: &mut Race) {
        let file = &self.files[race.random.below(NODES as u64) as usize];
        race.same("size", file.content().size(), file.bytes.len() as u64);
        let mut all = vec![0xAA; file.bytes.len()];
        file.bring(0, all.len());
        file.content().read_at(0, &mut all);
        let differs = all.iter().zip(&file.bytes).position(|(now, model)| now != model);
        race.same("first byte of the file that differs", differs, None);
    }

    fn check_times(&mut self, race: &mut Race) {
        let file = &self.files[race.random.below(NODES as u64) as usize];
        let meta = file.node.meta();
        race.same(
            "access time as noted",
            (meta.accessed, file.accessed.contains(meta.accessed)),
            (meta.accessed, true),
        );
        let modified = (meta.modified, file.modified.contains(meta.modified));
        race.same("modification time as noted", modified, (meta.modified, true));
        race.same("change time", meta.changed, meta.modified);
    }

    fn seek(&mut self, race: &mut Race, at: usize) {
        let open = &mut self.opens[at];
        let size = self.files[open.file].bytes.len() as u64;
        let offset = match race.random.below(30) {
            0 => race.random.pick(&[u64::MAX, 1 << 63, i64::MAX as u64]),
            _ => Self::a_position(race, size),
        };
        let whence = race.random.below(12);
        // A position that has gone far comes back.
        let whence = if whence > 3 || open.position.max(size) > 2 * BYTES { 0 } else { whence };
        // The upper half of an `int` argument does not count.
        let register = whence | race.random.pick(&[0, 0, 0xDEAD_0000_0000]);
        let entry = open.window.callentries().and_then(|code| code.seek).expect("room for code").entry();
        let descriptor = race.random.below(8);
        let mut outcome = race.caller.file_call(entry.address(), nr::LSEEK, [descriptor, offset, register]);
        race.count("file.seek", outcome.way);
        let offset = offset as i64;
        let wanted = match whence {
            0 => Ok(offset),
            1 => (open.position as i64).checked_add(offset).ok_or(Errno::EOVERFLOW),
            2 => (size as i64).checked_add(offset).ok_or(Errno::EOVERFLOW),
            _ => Err(Errno::EINVAL),
        };
        let wanted = wanted.and_then(|position| u64::try_from(position).map_err(|_| Errno::EINVAL));
        race.same("way of seek", outcome.way == Way::Fast, whence == 0 && offset >= 0);
        if outcome.way == Way::Slow {
            if let Ok(position) = wanted {
                open.window.position.set(position);
            }
            outcome.result = in_rax(wanted);
        }
        race.same("result of seek", outcome.result, in_rax(wanted));
        open.position = wanted.unwrap_or(open.position);
    }

    fn read(&mut self, race: &mut Race, at: usize) {
        let (open, files) = (&mut self.opens[at], &mut self.files);
        let file = &mut files[open.file];
        let Chosen { place, position, bytes, shown, address } = Chosen::by(race, open, file);
        let around = Around::take(address, shown);
        let start = Bench::counter();
        let twin = |_: &Race| {
            let (position, range) = (place.place()?, range(address, bytes)?);
            file.bring(position, range.bytes);
            let read = file.content().read_user(bench(), position, range.address, range.bytes)?;
            if read > 0 {
                file.node.note_read(time_of(Bench::counter()));
            }
            open.remember(&file.node, place, read);
            Ok(read)
        };
        let (name, number, code) = match place {
            At::Position(_) => ("file.read", nr::READ, open.window.callentries().and_then(|code| code.read)),
            At::Offset(_) => ("file.pread", nr::PREAD64, open.positioned.callentries().and_then(|code| code.read)),
        };
        race.caller.fourth = place.argument();
        let outcome =
            race.file_call(name, code.expect("room for code").entry().address(), number, (address, bytes), twin);
        let noted = Noted { operation: race.operation, counter: (start, Bench::counter()) };
        let expected = place.place().and_then(|_| range(address, bytes)).and_then(|range| {
            let left = (file.bytes.len() as u64).saturating_sub(position).min(range.bytes as u64) as usize;
            let reachable = program().reachable(address, left, Access::Write);
            if reachable == 0 && left > 0 { Err(Errno::EFAULT) } else { Ok(reachable) }
        });
        race.same("result of read", outcome.result, in_rax(expected.map(|bytes| bytes as u64)));
        let given = expected.unwrap_or(0);
        let from = position.min(file.bytes.len() as u64) as usize;
        // A routine may give bytes before it finds that the range leaves the program: the buffer of a call that fails.
        let reach = program().reachable(address, bytes.min(4096) as usize, Access::Write);
        let more = if expected.is_err() { &file.bytes[from..file.bytes.len().min(from + reach)] } else { &[] };
        around.check(race, &file.bytes[from..from + given], more);
        if let At::Position(_) = place {
            open.position += given as u64;
        }
        let stale = file.accessed.operation <= file.modified.operation;
        // A read that faulted at its first byte may or may not move the access time: both are right (Linux moves it).
        let faulted = outcome.way == Way::Slow && given == 0 && noted.contains(file.node.meta().accessed);
        if stale && (given > 0 || faulted && expected.is_err()) {
            file.accessed = noted;
        }
    }

    fn write(&mut self, race: &mut Race, at: usize) {
        let (open, files) = (&mut self.opens[at], &mut self.files);
        let file = &mut files[open.file];
        let Chosen { place, position, bytes, shown, address } = Chosen::by(race, open, file);
        program().scramble(&mut race.random, address, shown);
        let around = Around::take(address, shown);
        let start = Bench::counter();
        let credentials = &self.credentials;
        let twin = |_: &Race| {
            let (position, range) = (place.place()?, range(address, bytes)?);
            let mut written = 0;
            if range.bytes > 0 {
                file.bring(position, range.bytes);
                written = file.content().write_user(bench(), position, range.address, range.bytes)?;
                file.node.note_write(credentials, time_of(Bench::counter()));
            }
            open.remember(&file.node, place, written);
            Ok(written)
        };
        let (name, number, code) = match place {
            At::Position(_) => ("file.write", nr::WRITE, open.window.callentries().and_then(|code| code.write)),
            At::Offset(_) => ("file.pwrite", nr::PWRITE64, open.positioned.callentries().and_then(|code| code.write)),
        };
        race.caller.fourth = place.argument();
        let code = code.expect("room for code");
        let outcome: Outcome = race.file_call(name, code.entry().address(), number, (address, bytes), twin);
        let noted = Noted { operation: race.operation, counter: (start, Bench::counter()) };
        let expected = place.place().and_then(|_| range(address, bytes)).and_then(|range| {
            match program().reachable(address, range.bytes, Access::Read) {
                _ if range.bytes == 0 => Ok(0),
                _ if position >= FILE_BYTES_MAX => Err(Errno::EFBIG),
                0 => Err(Errno::EFAULT),
                reachable => Ok(reachable),
            }
        });
        race.same("result of write", outcome.result, in_rax(expected.map(|bytes| bytes as u64)));
        around.check(race, &[], &[]);
        let taken = program().bytes(address, expected.unwrap_or(0));
        if !taken.is_empty() {
            let (from, to) = (position as usize, position as usize + taken.len());
            file.bytes.resize(file.bytes.len().max(to), 0);
            file.bytes[from..to].copy_from_slice(&taken);
            file.modified = noted;
        }
        if let At::Position(_) = place {
            open.position += taken.len() as u64;
        }
    }
}
