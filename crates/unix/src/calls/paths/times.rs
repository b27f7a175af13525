//! When a file was used: utime, utimes, futimesat, utimensat.

use abi::Errno;
use abi::file::{AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW};
use kernel::file::{Node, Time, TimeChange};

use super::HERE;
use super::locate::{check_flags, final_link, locate};
use crate::call::{Call, CallResult};

/// `tv_nsec` values with a meaning of their own (`linux/stat.h`).
const UTIME_NOW: i64 = 0x3FFF_FFFF;
const UTIME_OMIT: i64 = 0x3FFF_FFFE;

/// Access and modification time.
type Pair = [TimeChange; 2];
const BOTH_NOW: Pair = [TimeChange::Now; 2];

/// Errors: `EINVAL` for a time that is none, those of a lookup, `EPERM`, `EACCES`, `EROFS`.
pub fn utimensat(call: &Call<'_>, directory: u64, path: u64, times: u64, flags: u64) -> CallResult {
    let stamps = if times == 0 { None } else { Some(call.read::<[i64; 4]>(times)?) };
    if stamps.is_some_and(|[_, first, _, second]| first == UTIME_OMIT && second == UTIME_OMIT) {
        return Ok(0);
    }
    if path == 0 && directory as i32 != AT_FDCWD {
        if flags as u32 != 0 {
            return Err(Errno::EINVAL);
        }
        let file = call.file(directory)?;
        let changes = changes(stamps)?;
        return file.node().map_or(Ok(0), |node| set(call, node, changes));
    }
    let flags = check_flags(flags, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)?;
    let node = locate(call, directory, path, flags, final_link(flags))?.node(Errno::EPERM)?;
    set(call, &node, changes(stamps)?)
}

fn changes(stamps: Option<[i64; 4]>) -> Result<Pair, Errno> {
    let Some([first, first_nanos, second, second_nanos]) = stamps else { return Ok(BOTH_NOW) };
    Ok([change(first, first_nanos)?, change(second, second_nanos)?])
}

fn change(seconds: i64, nanos: i64) -> Result<TimeChange, Errno> {
    match nanos {
        UTIME_NOW => Ok(TimeChange::Now),
        UTIME_OMIT => Ok(TimeChange::Omit),
        0..1_000_000_000 => Ok(TimeChange::Set(Time { seconds, nanos: nanos as u32 })),
        _ => Err(Errno::EINVAL),
    }
}

/// Times in microseconds; also `utimes`.
pub fn futimesat(call: &Call<'_>, directory: u64, path: u64, times: u64) -> CallResult {
    let changes = if times == 0 {
        BOTH_NOW
    } else {
        let [first, first_micros, second, second_micros] = call.read::<[i64; 4]>(times)?;
        let valid = 0..1_000_000;
        if !valid.contains(&first_micros) || !valid.contains(&second_micros) {
            return Err(Errno::EINVAL);
        }
        [change(first, first_micros * 1000)?, change(second, second_micros * 1000)?]
    };
    if path == 0 && directory as i32 != AT_FDCWD {
        let file = call.file(directory)?;
        return file.node().map_or(Ok(0), |node| set(call, node, changes));
    }
    let node = locate(call, directory, path, 0, final_link(0))?.node(Errno::EPERM)?;
    set(call, &node, changes)
}

/// Times in seconds.
pub fn utime(call: &Call<'_>, path: u64, times: u64) -> CallResult {
    let changes = if times == 0 {
        BOTH_NOW
    } else {
        call.read::<[i64; 2]>(times)?.map(|seconds| TimeChange::Set(Time { seconds, nanos: 0 }))
    };
    let node = locate(call, HERE, path, 0, final_link(0))?.node(Errno::EPERM)?;
    set(call, &node, changes)
}

fn set(call: &Call<'_>, node: &Node, [accessed, modified]: Pair) -> CallResult {
    let who = call.process().credentials.borrow();
    call.unix.names.set_times(&who, node, accessed, modified, call.now()).map(|()| 0)
}
