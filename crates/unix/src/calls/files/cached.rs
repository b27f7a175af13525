//! What of a file is in memory (`cachestat`).

use abi::Errno;
use machine::PAGE_BYTES;

use crate::call::{Call, CallResult};

/// Writes five counts of pages: in memory, changed, being written, gone, gone a short time ago. Files in memory are all there,
/// and nowhere else; those of the host are kept by the host. A length of 0 goes to the end.
///
/// Errors: `EINVAL` for flags, `EBADF`, `EFAULT`; `EOPNOTSUPP` for what has no pages.
pub fn cachestat(call: &Call<'_>, descriptor: u64, range: u64, counts: u64, flags: u32) -> CallResult {
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    let file = call.file(descriptor)?;
    let [first, bytes]: [u64; 2] = call.read(range)?;
    let is_elsewhere = file.outside().is_some();
    let content = file.content();
    if content.is_none() && !is_elsewhere {
        return Err(Errno::EOPNOTSUPP);
    }
    let end = if bytes == 0 { u64::MAX } else { first.saturating_add(bytes) };
    let mut present = 0;
    if let Some(content) = content {
        let mut at = first / PAGE_BYTES as u64 * PAGE_BYTES as u64;
        while at < end {
            let Ok(start) = content.seek_data(at) else { break };
            let stop = content.seek_hole(start)?.min(end);
            if start >= end {
                break;
            }
            present += stop.div_ceil(PAGE_BYTES as u64) - start / PAGE_BYTES as u64;
            at = stop.next_multiple_of(PAGE_BYTES as u64);
        }
    }
    call.write(counts, &[present, 0, 0, 0, 0])?;
    Ok(0)
}
