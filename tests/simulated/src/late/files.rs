//! Calls on files as the programs here write them. A way of the store may fail: then the call says so, and is made again.

use abi::nr;
use machine_sim::User;

use super::store::FOLDER;
use crate::calls::Calls;

pub const PAGE: u64 = 4096;
const EIO: i64 = -5;
const EFAULT: i64 = -14;

pub const O_RDWR: u64 = 2;
pub const O_CREAT: u64 = 0o100;
pub const O_APPEND: u64 = 0o2000;
pub const SHARED: u64 = 1;
pub const PRIVATE: u64 = 2;
const READ_WRITE: u64 = 3;
/// `POSIX_FADV_DONTNEED`.
const DONT_NEED: u64 = 4;
/// How often a call that fails by the store is made again: the store fails one way in three at most.
const TRIES: u32 = 200;

/// Byte `position` of the file with this tag.
pub fn pattern(tag: u64, position: u64) -> u8 {
    (tag.wrapping_mul(31).wrapping_add(position).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

pub fn patterns(tag: u64, from: u64, bytes: u64) -> Vec<u8> {
    (from..from + bytes).map(|position| pattern(tag, position)).collect()
}

/// A call that the store may have failed, until it has not.
pub fn sure(user: &User, number: u64, arguments: [u64; 6]) -> u64 {
    for _ in 0..TRIES {
        match user.call(number, arguments) {
            EIO | EFAULT => {}
            result => {
                assert!(result >= 0, "call {number}{arguments:x?}: {result}");
                return result as u64;
            }
        }
    }
    panic!("call {number}{arguments:x?} fails for ever")
}

/// An open file in the slow folder. `scratch`: 64 bytes of memory.
pub fn open(user: &User, name: &str, flags: u64, scratch: u64) -> u64 {
    path(user, name, scratch);
    let file = user.call(nr::OPEN, [scratch, flags, 0o777, 0, 0, 0]);
    assert!(file > 0, "open of {name}: {file}");
    file as u64
}

pub fn path(user: &User, name: &str, scratch: u64) {
    user.store(scratch, format!("{FOLDER}/{name}\0").as_bytes());
}

pub fn close(user: &User, file: u64) {
    assert_eq!(user.call(nr::CLOSE, [file, 0, 0, 0, 0, 0]), 0);
}

/// Writes all of memory `from`, from `position` on.
pub fn write_at(user: &User, file: u64, from: u64, bytes: u64, position: u64) {
    let mut done = 0;
    while done < bytes {
        let count = sure(user, nr::PWRITE64, [file, from + done, bytes - done, position + done, 0, 0]);
        assert!(count > 0, "pwrite of {} bytes wrote none", bytes - done);
        done += count;
    }
}

/// Reads up to `bytes` bytes to `to`; fewer only at the end.
pub fn read_at(user: &User, file: u64, to: u64, bytes: u64, position: u64) -> u64 {
    let mut done = 0;
    while done < bytes {
        let count = sure(user, nr::PREAD64, [file, to + done, bytes - done, position + done, 0, 0]);
        if count == 0 {
            break;
        }
        done += count;
    }
    done
}

/// Two runs of bytes are the same; else the first that are not are told.
pub fn same(found: &[u8], wanted: &[u8], what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}: bytes");
    if let Some(at) = found.iter().zip(wanted).position(|(found, wanted)| found != wanted) {
        let differing = found.iter().zip(wanted).filter(|(found, wanted)| found != wanted).count();
        let (found, wanted) = (found[at], wanted[at]);
        panic!("{what}: byte {at:#x} is {found:#x}, not {wanted:#x}; {differing} differ");
    }
}

pub fn loaded(user: &User, address: u64, bytes: u64) -> Vec<u8> {
    let mut data = vec![0; bytes as usize];
    user.load(address, &mut data);
    data
}

/// The file is kept, and its pages are out of memory, but for those that somebody shows.
pub fn send_away(user: &User, file: u64) {
    sure(user, nr::FSYNC, [file, 0, 0, 0, 0, 0]);
    sure(user, nr::FADVISE64, [file, 0, 0, DONT_NEED, 0, 0]);
}

/// Pages of a file as memory.
pub fn map(user: &User, file: u64, bytes: u64, kind: u64, offset: u64) -> u64 {
    let address = user.call(nr::MMAP, [0, bytes, READ_WRITE, kind, file, offset]);
    assert!(address > 0, "mmap of a file: {address}");
    address as u64
}

pub fn unmap(user: &User, address: u64, bytes: u64) {
    assert_eq!(user.call(nr::MUNMAP, [address, bytes, 0, 0, 0, 0]), 0);
}

/// Memory whose pages must come first: the bytes of a file with this tag, which are sent away before.
pub struct LateMemory {
    pub address: u64,
    bytes: u64,
    file: u64,
}

impl LateMemory {
    pub fn new(user: &User, name: &str, tag: u64, bytes: u64, kind: u64) -> LateMemory {
        let bytes = bytes.next_multiple_of(PAGE);
        let scratch = user.map(bytes);
        let file = open(user, name, O_RDWR | O_CREAT, scratch);
        user.store(scratch, &patterns(tag, 0, bytes));
        write_at(user, file, scratch, bytes, 0);
        unmap(user, scratch, bytes);
        send_away(user, file);
        LateMemory { address: map(user, file, bytes, kind, 0), bytes, file }
    }

    /// The pages are late once more; what a private map had is lost.
    pub fn again(&mut self, user: &User, kind: u64) {
        unmap(user, self.address, self.bytes);
        send_away(user, self.file);
        self.address = map(user, self.file, self.bytes, kind, 0);
    }
}
