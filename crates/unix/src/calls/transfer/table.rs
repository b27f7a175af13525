//! The numbers of these calls.

use abi::nr;

use super::{At, copies, extent, lseek, pread, pwrite, read, vectors, write};
use crate::call::Entry;

pub const CALLS: &[Entry] = &[
    (nr::READ, |call, [a, b, c, ..]| read(call, a, b, c)),
    (nr::WRITE, |call, [a, b, c, ..]| write(call, a, b, c)),
    (nr::LSEEK, |call, [a, b, c, ..]| lseek(call, a, b as i64, c)),
    (nr::PREAD64, |call, [a, b, c, d, ..]| pread(call, a, b, c, d)),
    (nr::PWRITE64, |call, [a, b, c, d, ..]| pwrite(call, a, b, c, d)),
    (nr::READV, |call, [a, b, c, ..]| vectors::readv(call, a, [b, c], At::Position)),
    (nr::WRITEV, |call, [a, b, c, ..]| vectors::writev(call, a, [b, c], At::Position)),
    (nr::PREADV, |call, [a, b, c, d, ..]| vectors::readv(call, a, [b, c], At::Offset(d))),
    (nr::PWRITEV, |call, [a, b, c, d, ..]| vectors::writev(call, a, [b, c], At::Offset(d))),
    (nr::PREADV2, |call, [a, b, c, d, _, f]| vectors::preadv2(call, a, [b, c], d, f as u32)),
    (nr::PWRITEV2, |call, [a, b, c, d, _, f]| vectors::pwritev2(call, a, [b, c], d, f as u32)),
    (nr::SENDFILE, |call, [a, b, c, d, ..]| copies::sendfile(call, a, b, c, d)),
    (nr::COPY_FILE_RANGE, |call, [a, b, c, d, e, f]| copies::copy_file_range(call, [a, b], [c, d], e, f)),
    (nr::SPLICE, |call, [a, b, c, d, e, f]| copies::splice(call, [a, b], [c, d], e, f as u32)),
    (nr::TEE, |call, [a, b, c, d, ..]| copies::tee(call, a, b, c, d as u32)),
    (nr::VMSPLICE, |call, [a, b, c, d, ..]| copies::vmsplice(call, a, [b, c], d as u32)),
    (nr::TRUNCATE, |call, [a, b, ..]| extent::truncate(call, a, b as i64)),
    (nr::FTRUNCATE, |call, [a, b, ..]| extent::ftruncate(call, a, b as i64)),
    (nr::FALLOCATE, |call, [a, b, c, d, ..]| extent::fallocate(call, a, b as u32, c as i64, d as i64)),
    (nr::FADVISE64, |call, [a, b, c, d, ..]| extent::fadvise(call, a, b as i64, c as i64, d as u32)),
    (nr::READAHEAD, |call, [a, ..]| extent::readahead(call, a)),
    (nr::FSYNC, |call, [a, ..]| extent::fsync(call, a)),
    (nr::FDATASYNC, |call, [a, ..]| extent::fdatasync(call, a)),
    (nr::SYNCFS, |call, [a, ..]| extent::syncfs(call, a)),
    (nr::SYNC, |_, _| extent::sync()),
    (nr::SYNC_FILE_RANGE, |call, [a, b, c, d, ..]| extent::sync_file_range(call, a, [b, c], d as u32)),
    (nr::VHANGUP, |call, _| extent::vhangup(call)),
];
