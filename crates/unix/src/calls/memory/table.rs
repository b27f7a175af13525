//! The numbers of these calls.

use abi::Errno;
use abi::nr;

use super::{advice, arch_prctl, brk, lock, map};
use crate::call::Entry;

pub const CALLS: &[Entry] = &[
    (nr::BRK, |call, [a, ..]| brk(call, a)),
    (nr::MMAP, |call, arguments| map::mmap(call, arguments)),
    (nr::MUNMAP, |call, [a, b, ..]| map::munmap(call, a, b)),
    (nr::MREMAP, |call, [a, b, c, d, e, _]| map::mremap(call, [a, b, c, d, e])),
    (nr::REMAP_FILE_PAGES, |call, [a, b, c, d, _, _]| map::remap_file_pages(call, [a, b, c, d])),
    (nr::MPROTECT, |call, [a, b, c, ..]| map::mprotect(call, a, b, c)),
    (nr::PKEY_MPROTECT, |call, [a, b, c, d, ..]| map::pkey_mprotect(call, [a, b, c, d])),
    // The processor's protection keys are not used: Linux without them says the same.
    (nr::PKEY_ALLOC, |_, _| Err(Errno::EINVAL)),
    (nr::PKEY_FREE, |_, _| Err(Errno::EINVAL)),
    (nr::MAP_SHADOW_STACK, |_, _| Err(Errno::ENOTSUP)),
    (nr::MADVISE, |call, [a, b, c, ..]| advice::madvise(call, a, b, c)),
    (nr::MSYNC, |call, [a, b, c, ..]| advice::msync(call, a, b, c)),
    (nr::MINCORE, |call, [a, b, c, ..]| advice::mincore(call, a, b, c)),
    (nr::MLOCK, |call, [a, b, ..]| lock::mlock(call, a, b)),
    (nr::MLOCK2, |call, [a, b, c, ..]| lock::mlock2(call, a, b, c)),
    (nr::MUNLOCK, |call, [a, b, ..]| lock::munlock(call, a, b)),
    (nr::MLOCKALL, |call, [a, ..]| lock::mlockall(call, a)),
    (nr::MUNLOCKALL, |call, _| lock::munlockall(call)),
    (nr::ARCH_PRCTL, |call, [a, b, ..]| arch_prctl(call, a, b)),
];
