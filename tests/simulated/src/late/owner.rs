//! One thread, one file, and a model of it: everything that can be done to a file, in random order, while its pages come and go.

use abi::nr;
use machine_sim::{TEXT, TEXT_BYTES, User, entry};

use super::files::{
    LateMemory, O_CREAT, O_RDWR, PAGE, PRIVATE, SHARED, close, loaded, map, open, path, patterns, read_at, same,
    send_away, sure, unmap, write_at,
};
use super::scene::{Number, Report, SCRATCH, done, page};
use crate::calls::Calls;

/// The file has at most so many bytes.
const BYTES_MAX: u64 = 10 * PAGE;
const FUTEX_WAIT: u64 = 0;
const FUTEX_WAKE: u64 = 1;
const EAGAIN: i64 = -11;
const EINTR: i64 = -4;
const ETXTBSY: i64 = -26;
/// KEEP_SIZE and PUNCH_HOLE.
const PUNCH: u64 = 3;
/// Status of a child that has found everything right.
const RIGHT: u64 = 7;
const EXECUTED: u64 = 9;

struct Owner<'a> {
    user: &'a User,
    file: u64,
    name: String,
    /// What the file holds.
    model: Vec<u8>,
    /// Room for the whole file.
    buffer: u64,
    /// A page of small things.
    scratch: u64,
    late: LateMemory,
    /// Tag of the next bytes.
    tag: u64,
}

pub fn owner(user: &User, report: &Report) {
    let (page, [number, times, ..]) = page(user);
    let name = format!("own{number}.{}", user.id().0);
    let scratch = page + SCRATCH;
    let file = open(user, &name, O_RDWR | O_CREAT, scratch);
    let late = LateMemory::new(user, &format!("memory{name}"), 5, BYTES_MAX, SHARED);
    let buffer = user.map(BYTES_MAX);
    let mut owner = Owner { user, file, name, model: Vec::new(), buffer, scratch, late, tag: number * 100 };
    for _ in 0..times {
        owner.act();
    }
    send_away(user, file);
    owner.compare_all();
    close(user, file);
    done(report);
}

impl Owner<'_> {
    fn size(&self) -> u64 {
        self.model.len() as u64
    }

    /// A range inside the file, which is not empty.
    fn range(&self) -> (u64, u64) {
        let from = self.user.below(self.size());
        (from, 1 + self.user.below((self.size() - from).min(2 * PAGE)))
    }

    fn act(&mut self) {
        let choice = if self.model.is_empty() { 0 } else { self.user.below(21) };
        self.user.note(&format!("{}: {choice}, {:#x} bytes", self.name, self.size()));
        match choice {
            0..=2 => self.write(),
            3..=5 => self.read(),
            6 => self.truncate(),
            7 => self.punch(),
            8 => self.allocate(),
            9 | 10 => self.store_by_map(),
            11 => self.copy_privately(),
            12 => self.fork(),
            13 => self.through_a_pipe(),
            14 => self.copy_to_another(),
            15 => self.lock(),
            16 => self.look_from_outside(),
            17 => self.wait_on_a_word(),
            18 => self.execute(),
            19 => self.kill(),
            _ => self.write_by_parts(),
        }
        match self.user.below(4) {
            0 => self.compare_all(),
            1 | 2 => send_away(self.user, self.file),
            _ => {}
        }
        if self.user.below(4) == 0 {
            self.late.again(self.user, SHARED);
        }
    }

    fn change(&mut self, from: u64, bytes: &[u8]) {
        let end = from as usize + bytes.len();
        self.model.resize(self.model.len().max(end), 0);
        self.model[from as usize..end].copy_from_slice(bytes);
    }

    /// Memory to copy from or to, half of the times late.
    fn memory(&self) -> u64 {
        if self.user.below(2) == 0 { self.late.address } else { self.buffer }
    }

    fn fresh(&mut self, bytes: u64) -> Vec<u8> {
        self.tag += 1;
        patterns(self.tag, 0, bytes)
    }

    fn write(&mut self) {
        let from = self.user.below((self.size() + PAGE).min(BYTES_MAX - 1));
        let bytes = 1 + self.user.below((BYTES_MAX - from).min(3 * PAGE));
        let data = self.fresh(bytes);
        let memory = self.memory();
        self.user.store(memory, &data);
        let memory = if memory == self.late.address {
            self.late.again(self.user, SHARED);
            self.late.address
        } else {
            memory
        };
        write_at(self.user, self.file, memory, bytes, from);
        self.change(from, &data);
    }

    fn write_by_parts(&mut self) {
        let bytes = 3 * (1 + self.user.below(PAGE));
        let from = self.user.below(self.size().min(BYTES_MAX - bytes));
        let data = self.fresh(bytes);
        self.user.store(self.buffer, &data);
        let third = bytes / 3;
        let parts: Vec<u8> =
            (0..3).flat_map(|part| [self.buffer + part * third, third]).flat_map(u64::to_le_bytes).collect();
        self.user.store(self.scratch, &parts);
        let written = sure(self.user, nr::PWRITEV, [self.file, self.scratch, 3, from, 0, 0]);
        assert!(written > 0 && written <= bytes);
        self.change(from, &data[..written as usize]);
        let read = sure(self.user, nr::PREADV, [self.file, self.scratch, 3, from, 0, 0]);
        let wanted = &self.model[from as usize..(from + bytes).min(self.size()) as usize];
        assert!(read > 0 && read <= wanted.len() as u64);
        same(&loaded(self.user, self.buffer, read), &wanted[..read as usize], "by parts");
    }

    fn read(&self) {
        let (from, bytes) = self.range();
        let memory = self.memory();
        assert_eq!(read_at(self.user, self.file, memory, bytes, from), bytes, "the file is too short");
        self.compare(from, &loaded(self.user, memory, bytes), "read");
    }

    fn compare(&self, from: u64, found: &[u8], how: &str) {
        let wanted = &self.model[from as usize..from as usize + found.len()];
        same(found, wanted, &format!("{how}: {} ({:#x} bytes) from {from:#x}", self.name, self.size()));
    }

    fn compare_all(&self) {
        let read = read_at(self.user, self.file, self.buffer, BYTES_MAX, 0);
        assert_eq!(read, self.size(), "the file's size");
        self.compare(0, &loaded(self.user, self.buffer, read), "at last");
    }

    fn truncate(&mut self) {
        let size = self.user.below(BYTES_MAX);
        sure(self.user, nr::FTRUNCATE, [self.file, size, 0, 0, 0, 0]);
        self.model.resize(size as usize, 0);
    }

    fn punch(&mut self) {
        let (from, bytes) = self.range();
        sure(self.user, nr::FALLOCATE, [self.file, PUNCH, from, bytes, 0, 0]);
        self.model[from as usize..(from + bytes) as usize].fill(0);
    }

    fn allocate(&mut self) {
        let from = self.user.below(BYTES_MAX - 1);
        let bytes = 1 + self.user.below(BYTES_MAX - from);
        sure(self.user, nr::FALLOCATE, [self.file, 0, from, bytes, 0, 0]);
        self.model.resize(self.model.len().max((from + bytes) as usize), 0);
    }

    fn store_by_map(&mut self) {
        const MS_SYNC: u64 = 4;
        let address = map(self.user, self.file, BYTES_MAX, SHARED, 0);
        for _ in 0..1 + self.user.below(4) {
            let (from, bytes) = self.range();
            let data = self.fresh(bytes.min(600));
            self.user.store(address + from, &data);
            self.change(from, &data);
            let (from, bytes) = self.range();
            self.compare(from, &loaded(self.user, address + from, bytes), "shared map");
            if self.user.below(3) == 0 {
                sure(self.user, nr::MSYNC, [address, BYTES_MAX, MS_SYNC, 0, 0, 0]);
            }
        }
        unmap(self.user, address, BYTES_MAX);
    }

    fn copy_privately(&mut self) {
        let address = map(self.user, self.file, BYTES_MAX, PRIVATE, 0);
        let (from, bytes) = self.range();
        let data = self.fresh(bytes);
        self.user.store(address + from, &data);
        same(&loaded(self.user, address + from, bytes), &data, "the private copy");
        let (other, more) = self.range();
        let found = loaded(self.user, address + other, more);
        let own = |at: u64| (from..from + bytes).contains(&at);
        let right = (other..).zip(&found).all(|(at, byte)| own(at) || *byte == self.model[at as usize]);
        assert!(right, "a private map shows other bytes than the file");
        unmap(self.user, address, BYTES_MAX);
        self.read();
    }

    /// A child reads the file by a map that it has inherited, and stores into it.
    fn fork(&mut self) {
        let address = map(self.user, self.file, BYTES_MAX, SHARED, 0);
        let (from, bytes) = self.range();
        let words = [address, from, bytes, self.size(), self.tag];
        self.user.store(self.scratch, &words.map(u64::to_le_bytes).concat());
        self.user.store(self.buffer, &self.model);
        self.child(Number::Forked, RIGHT);
        let left = loaded(self.user, address + from, bytes);
        same(&left, &patterns(self.tag + 7, 0, bytes), "what the child has stored");
        self.change(from, &left);
        unmap(self.user, address, BYTES_MAX);
    }

    fn child(&self, program: Number, status: u64) {
        self.user.store(self.scratch + 40, &self.buffer.to_le_bytes());
        let child = self.user.fork(program as usize, self.scratch);
        assert!(child > 0, "fork: {child}");
        assert_eq!(u64::from(self.status_of(child)), status << 8, "the child's status");
    }

    fn status_of(&self, child: i64) -> u32 {
        let word = self.scratch + 48;
        loop {
            match self.user.call(nr::WAIT4, [child as u64, word, 0, 0, 0, 0]) {
                EINTR => {}
                pid => {
                    assert_eq!(pid, child, "wait4");
                    break;
                }
            }
        }
        self.user.load_u32(word)
    }

    /// A child that waits for pages all the time is killed, wherever it sleeps.
    fn kill(&self) {
        const SIGKILL: u64 = 9;
        let address = map(self.user, self.file, BYTES_MAX, SHARED, 0);
        let words = [address, self.size(), self.file];
        self.user.store(self.scratch, &words.map(u64::to_le_bytes).concat());
        let child = self.user.fork(Number::Doomed as usize, self.scratch);
        assert!(child > 0, "fork: {child}");
        self.user.sleep(self.user.below(300_000), self.scratch + 64);
        assert_eq!(self.user.call(nr::KILL, [child as u64, SIGKILL, 0, 0, 0, 0]), 0);
        assert_eq!(u64::from(self.status_of(child)), SIGKILL, "how the child ended");
        unmap(self.user, address, BYTES_MAX);
    }

    fn through_a_pipe(&self) {
        let (read, write) = self.user.pipe(0, self.scratch);
        let (from, bytes) = self.range();
        self.user.store(self.scratch, &from.to_le_bytes());
        let number = if self.user.below(2) == 0 { nr::SENDFILE } else { nr::SPLICE };
        let moved = match number {
            nr::SENDFILE => sure(self.user, number, [write, self.file, self.scratch, bytes, 0, 0]),
            _ => sure(self.user, number, [self.file, self.scratch, write, 0, bytes, 0]),
        };
        assert!(moved > 0 && moved <= bytes, "{moved} of {bytes} bytes");
        let mut found = Vec::new();
        while (found.len() as u64) < moved {
            let count = sure(self.user, nr::READ, [read, self.late.address, moved - found.len() as u64, 0, 0, 0]);
            found.extend(loaded(self.user, self.late.address, count));
        }
        self.compare(from, &found, "through a pipe");
        close(self.user, read);
        close(self.user, write);
    }

    fn copy_to_another(&self) {
        let other = open(self.user, &format!("copy{}", self.name), O_RDWR | O_CREAT, self.scratch);
        let (from, bytes) = self.range();
        let to = self.user.below(PAGE);
        self.user.store(self.scratch, &[from, to].map(u64::to_le_bytes).concat());
        let arguments = [self.file, self.scratch, other, self.scratch + 8, bytes, 0];
        let copied = sure(self.user, nr::COPY_FILE_RANGE, arguments);
        assert!(copied > 0 && copied <= bytes);
        send_away(self.user, other);
        assert_eq!(read_at(self.user, other, self.buffer, copied, to), copied);
        self.compare(from, &loaded(self.user, self.buffer, copied), "the copy");
        close(self.user, other);
    }

    fn lock(&self) {
        let pages = self.size().next_multiple_of(PAGE);
        let address = map(self.user, self.file, pages, if self.user.below(2) == 0 { SHARED } else { PRIVATE }, 0);
        sure_of_memory(self.user, nr::MLOCK, address, pages);
        let (from, bytes) = self.range();
        self.compare(from, &loaded(self.user, address + from, bytes), "locked map");
        unmap(self.user, address, pages);
    }

    /// `process_vm_readv`, of the thread's own process.
    fn look_from_outside(&self) {
        let address = map(self.user, self.file, BYTES_MAX, SHARED, 0);
        let (from, bytes) = self.range();
        let pid = self.user.call(nr::GETPID, [0; 6]) as u64;
        let mut done = 0;
        while done < bytes {
            let words = [self.late.address + done, bytes - done, address + from + done, bytes - done];
            self.user.store(self.scratch, &words.map(u64::to_le_bytes).concat());
            let arguments = [pid, self.scratch, 1, self.scratch + 16, 1, 0];
            done += sure(self.user, nr::PROCESS_VM_READV, arguments);
        }
        self.compare(from, &loaded(self.user, self.late.address, bytes), "seen from outside");
        unmap(self.user, address, BYTES_MAX);
    }

    fn wait_on_a_word(&self) {
        if self.size() < 4 {
            return;
        }
        let word = self.user.below(self.size() - 3) & !3;
        let mut value = [0; 4];
        value.copy_from_slice(&self.model[word as usize..word as usize + 4]);
        let address = map(self.user, self.file, BYTES_MAX, SHARED, 0);
        let woken = sure(self.user, nr::FUTEX, [address + word, FUTEX_WAKE, 9, 0, 0, 0]);
        assert_eq!(woken, 0);
        send_away(self.user, self.file);
        let other = u64::from(u32::from_le_bytes(value) ^ 1);
        loop {
            match self.user.call(nr::FUTEX, [address + word, FUTEX_WAIT, other, 0, 0, 0]) {
                EAGAIN => break,
                result => assert!(result == -14 || result == EINTR, "futex: {result}"),
            }
        }
        unmap(self.user, address, BYTES_MAX);
    }

    /// A program that lies in a file whose pages are away.
    fn execute(&mut self) {
        let program = open(self.user, &format!("program{}", self.name), O_RDWR | O_CREAT, self.scratch);
        let image = crate::boot::program_at(entry(Number::Executed as usize));
        let room = self.user.map(TEXT_BYTES + PAGE);
        self.user.store(room, &image);
        write_at(self.user, program, room, image.len() as u64, 0);
        unmap(self.user, room, TEXT_BYTES + PAGE);
        send_away(self.user, program);
        close(self.user, program);
        let name = format!("program{}", self.name);
        path(self.user, &name, self.scratch + 64);
        self.user.store(self.scratch, &[self.scratch + 64, 0].map(u64::to_le_bytes).concat());
        self.user.store(self.scratch + 16, &1u64.to_le_bytes());
        self.child(Number::Forked, EXECUTED);
    }
}

/// A page that fails makes `mlock` fail, with or without a word for it.
fn sure_of_memory(user: &User, number: u64, address: u64, bytes: u64) {
    const ENOMEM: i64 = -12;
    for _ in 0..200 {
        match user.call(number, [address, bytes, 0, 0, 0, 0]) {
            0 => return,
            -5 | ENOMEM => {}
            other => panic!("call {number}: {other}"),
        }
    }
    panic!("call {number} fails for ever")
}

/// A child. Its page says what it has to do: look and store, or execute.
pub fn forked(user: &User, _: &Report) {
    let scratch = user.given();
    let [address, from, bytes, size, tag, model] = [0, 8, 16, 24, 32, 40].map(|at| user.load_word(scratch + at));
    if bytes == 1 && from == 0 {
        loop {
            let result = user.call(nr::EXECVE, [scratch + 64, scratch, scratch + 8, 0, 0, 0]);
            // The store has failed; or a child of another thread has the file open to write, until it ends.
            assert!(matches!(result, -5 | ETXTBSY), "execve: {result}");
            user.sleep(10_000, scratch + 128);
        }
    }
    same(&loaded(user, address, size), &loaded(user, model, size), "the map that was inherited");
    user.store(address + from, &patterns(tag + 7, 0, bytes));
    user.call(nr::EXIT_GROUP, [RIGHT, 0, 0, 0, 0, 0]);
}

/// Reads a file by map and by call, and sends it away, until it is killed.
pub fn doomed(user: &User, _: &Report) {
    let [address, size, file] = [0, 8, 16].map(|at| user.load_word(user.given() + at));
    let buffer = user.map(PAGE);
    loop {
        loaded(user, address + user.below(size), 1);
        user.call(nr::PREAD64, [file, buffer, PAGE.min(size), user.below(size), 0, 0]);
        user.call(nr::FADVISE64, [file, 0, 0, 4, 0, 0]);
    }
}

/// A program out of a late file: its text is what was written.
pub fn executed(user: &User, _: &Report) {
    let scratch = user.map(PAGE);
    super::scene::handle_bus_errors(user, scratch);
    let image = crate::boot::program_at(entry(Number::Executed as usize));
    let found = loaded(user, TEXT, image.len() as u64);
    same(&found, &image, "the program's text");
    user.call(nr::EXIT_GROUP, [EXECUTED, 0, 0, 0, 0, 0]);
}
