//! Several threads at one file or pipe, with memory whose pages come late.

use abi::nr;
use machine_sim::User;

use super::files::{
    LateMemory, O_APPEND, O_CREAT, O_RDWR, PAGE, PRIVATE, SHARED, close, loaded, open, patterns, read_at, same,
    send_away, sure, write_at,
};
use super::scene::{Report, SCRATCH, done, page};
use crate::calls::Calls;

/// Records of a file that two read, and bytes of each.
pub const RECORDS: u64 = 120;
const RECORD_BYTES: u64 = 96;
/// Records that each of two adds to one file, or writes to one pipe, and the longest.
const ADDED: u64 = 6;
const ADDED_BYTES_MAX: u64 = 3000;

/// A file of records, sent away, and open for both.
pub fn make_records(user: &User, file: u64, scratch: u64) -> u64 {
    let opened = open(user, &format!("records{file}"), O_RDWR | O_CREAT, scratch);
    let memory = user.map((RECORDS * RECORD_BYTES).next_multiple_of(PAGE));
    for record in 0..RECORDS {
        let mut bytes = patterns(record, 0, RECORD_BYTES);
        bytes[..8].copy_from_slice(&record.to_le_bytes());
        user.store(memory + record * RECORD_BYTES, &bytes);
    }
    write_at(user, opened, memory, RECORDS * RECORD_BYTES, 0);
    send_away(user, opened);
    opened
}

/// Two of them share a position: each record goes to one of them, whole.
pub fn sharing_reader(user: &User, report: &Report) {
    let (page, [file, opened, ..]) = page(user);
    let name = format!("sink{}", user.id().0);
    let mut late = LateMemory::new(user, &name, 1, PAGE * 2, PRIVATE);
    loop {
        let is_late = user.below(3) == 0;
        if is_late && user.below(4) == 0 {
            late.again(user, if user.below(2) == 0 { SHARED } else { PRIVATE });
        }
        // Over the end of a page, so that the second one is late when the first is here.
        let buffer = if is_late { late.address + PAGE - user.below(RECORD_BYTES) } else { page + SCRATCH };
        let count = sure(user, nr::READ, [opened, buffer, RECORD_BYTES, 0, 0, 0]);
        if count == 0 {
            break;
        }
        assert_eq!(count, RECORD_BYTES, "a record was torn");
        let bytes = loaded(user, buffer, RECORD_BYTES);
        let record = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
        same(&bytes[8..], &patterns(record, 0, RECORD_BYTES)[8..], &format!("record {record}"));
        report.records.lock().expect("nobody panicked with it").entry(file).or_default().push(record);
    }
    done(report);
}

/// A file that two add to.
pub fn make_appended(user: &User, file: u64, scratch: u64) -> u64 {
    open(user, &format!("added{file}"), O_RDWR | O_CREAT | O_APPEND, scratch)
}

/// A record as the two write it: who, which, how long, and bytes that follow from these.
fn added(tag: u64, number: u64, bytes: u64) -> Vec<u8> {
    let mut record = patterns(tag * 1000 + number, 0, bytes);
    record[..8].copy_from_slice(&(tag << 32 | number << 16 | bytes).to_le_bytes());
    record
}

/// Adds records, some from memory that is late; the last of both looks at the whole.
pub fn appender(user: &User, report: &Report) {
    let (page, [file, opened, tag, shared]) = page(user);
    let mut late = LateMemory::new(user, &format!("source{file}.{tag}"), 2, PAGE * 2, SHARED);
    for number in 0..ADDED {
        let bytes = 16 + user.below(ADDED_BYTES_MAX);
        let record = added(tag, number, bytes);
        let from = if user.below(2) == 0 {
            let offset = PAGE - user.below(bytes.min(PAGE));
            user.store(late.address + offset, &record);
            late.again(user, SHARED);
            late.address + offset
        } else {
            user.store(page + PAGE, &record);
            page + PAGE
        };
        assert_eq!(sure(user, nr::WRITE, [opened, from, bytes, 0, 0, 0]), bytes, "a record was torn");
        if user.below(3) == 0 {
            send_away(user, opened);
        }
    }
    let others = user.load_word(shared);
    user.store(shared, &(others + 1).to_le_bytes());
    if others == 1 {
        look_at_added(user, opened);
    }
    done(report);
}

fn look_at_added(user: &User, opened: u64) {
    let room = (2 * ADDED * (ADDED_BYTES_MAX + 16)).next_multiple_of(PAGE);
    let memory = user.map(room);
    send_away(user, opened);
    let bytes = read_at(user, opened, memory, room, 0);
    check_added(&loaded(user, memory, bytes));
}

/// Every record of both is there once, whole, and in its writer's order.
fn check_added(mut rest: &[u8]) {
    let mut next = [0, 0];
    while !rest.is_empty() {
        let head = u64::from_le_bytes(rest[..8].try_into().expect("a head"));
        let (tag, number, bytes) = (head >> 32, head >> 16 & 0xFFFF, head & 0xFFFF);
        assert_eq!(next[tag as usize & 1], number, "a record is missing, or doubled");
        next[tag as usize & 1] += 1;
        same(&rest[..bytes as usize], &added(tag, number, bytes), &format!("record {number} of {tag}"));
        rest = &rest[bytes as usize..];
    }
    assert_eq!(next, [ADDED, ADDED], "records were lost");
}

/// Makes a file longer and longer, says how long it is, and sends it away now and then.
pub fn growing_writer(user: &User, report: &Report) {
    let (page, [file, length, bytes, _]) = page(user);
    let opened = open(user, &format!("growing{file}"), O_RDWR | O_CREAT, page + SCRATCH);
    let mut at = 0;
    while at < bytes {
        let part = (1 + user.below(2 * PAGE - SCRATCH)).min(bytes - at);
        user.store(page + SCRATCH, &patterns(file, at, part));
        let mut done = 0;
        while done < part {
            done += sure(user, nr::WRITE, [opened, page + SCRATCH + done, part - done, 0, 0, 0]);
        }
        at += part;
        user.store(length, &at.to_le_bytes());
        if user.below(3) == 0 {
            send_away(user, opened);
        }
    }
    close(user, opened);
    done(report);
}

/// What the writer says to be there is there, by reads and by a map.
pub fn growing_reader(user: &User, report: &Report) {
    let (page, [file, length, bytes, _]) = page(user);
    let opened = open(user, &format!("growing{file}"), O_RDWR | O_CREAT, page + SCRATCH);
    let mut there = 0;
    while there < bytes {
        there = user.load_word(length);
        if there == 0 {
            user.sleep(20_000, page + SCRATCH);
            continue;
        }
        let from = user.below(there);
        let part = (1 + user.below(PAGE)).min(there - from);
        let found = if user.below(2) == 0 {
            assert_eq!(read_at(user, opened, page + SCRATCH, part, from), part, "the file is too short");
            loaded(user, page + SCRATCH, part)
        } else {
            let map = super::files::map(user, opened, bytes, if user.below(2) == 0 { SHARED } else { PRIVATE }, 0);
            let found = loaded(user, map + from, part);
            super::files::unmap(user, map, bytes);
            found
        };
        same(&found, &patterns(file, from, part), &format!("bytes from {from} of {there}"));
    }
    close(user, opened);
    done(report);
}

/// Writes records to a pipe, out of memory that is late; another one does the same. They are short enough not to be torn.
pub fn pipe_writer(user: &User, report: &Report) {
    let (_, [opened, tag, shared, _]) = page(user);
    let mut late = LateMemory::new(user, &format!("piped{tag}"), tag, PAGE * 2, SHARED);
    for number in 0..ADDED {
        let bytes = 16 + user.below(ADDED_BYTES_MAX);
        let record = added(tag & 1, number, bytes);
        let offset = PAGE - user.below(bytes.min(PAGE));
        user.store(late.address + offset, &record);
        if user.below(2) == 0 {
            late.again(user, SHARED);
        }
        assert_eq!(sure(user, nr::WRITE, [opened, late.address + offset, bytes, 0, 0, 0]), bytes);
    }
    let others = user.load_word(shared);
    user.store(shared, &(others + 1).to_le_bytes());
    if others == 1 {
        close(user, opened);
    }
    done(report);
}

/// Reads all of it, to memory that is late.
pub fn pipe_reader(user: &User, report: &Report) {
    let (_, [opened, file, ..]) = page(user);
    let mut late = LateMemory::new(user, &format!("drained{file}"), 3, PAGE * 3, SHARED);
    let mut all = Vec::new();
    loop {
        let wanted = 1 + user.below(2 * PAGE);
        let to = late.address + user.below(PAGE);
        let count = sure(user, nr::READ, [opened, to, wanted, 0, 0, 0]);
        if count == 0 {
            break;
        }
        all.extend(loaded(user, to, count));
        if user.below(2) == 0 {
            late.again(user, SHARED);
        }
    }
    check_added(&all);
    close(user, opened);
    done(report);
}
