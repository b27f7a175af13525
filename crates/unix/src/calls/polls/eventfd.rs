//! `eventfd`.

use abi::Errno;
use abi::file::{O_CLOEXEC, O_NONBLOCK, O_RDWR};
use abi::poll::{EFD_CLOEXEC, EFD_NONBLOCK, EFD_SEMAPHORE};
use alloc::sync::Arc;
use kernel::counter::EventCounter;

use crate::call::{Call, CallResult};
use crate::calls::times::timerfd::add_file;
use crate::files::open_file::OpenFile;
use crate::files::synthesize;

/// Error: `EINVAL` for unknown flags.
pub fn eventfd(call: &Call<'_>, count: u32, flags: u32) -> CallResult {
    if flags & !(EFD_SEMAPHORE | EFD_CLOEXEC | EFD_NONBLOCK) != 0 {
        return Err(Errno::EINVAL);
    }
    let counter = EventCounter::new(count.into(), flags & EFD_SEMAPHORE != 0)?;
    if let Some(makers) = call.unix.makers() {
        counter.synthesize(makers);
    }
    let mut file = OpenFile::stream(Arc::new(counter), O_RDWR | flags & O_NONBLOCK);
    synthesize::synthesize(call.unix, &mut file);
    add_file(call, file, flags & O_CLOEXEC != 0)
}
