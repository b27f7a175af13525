//! Address spaces: `mmap`, `mprotect`, `mremap`, `madvise`, `msync` (`asm-generic/mman.h`, `asm/mman.h`).

use crate::record::numbers;

/// No access at all.
pub const PROT_NONE: u32 = 0;

numbers! {
    /// Protection bits.
    PROTECTIONS: u32 { PROT_READ = 1, PROT_WRITE = 2, PROT_EXEC = 4, PROT_GROWSDOWN = 0x100_0000, PROT_GROWSUP = 0x200_0000 }
}
/// Mask of the kind of mapping in `mmap`'s flags.
pub const MAP_TYPE: u32 = 0xf;
/// A mapping of neither kind; `mmap` refuses it.
pub const MAP_FILE: u32 = 0;
numbers! {
    /// Kinds of mapping, under the mask `MAP_TYPE`.
    MAP_TYPES: u32 { MAP_SHARED = 1, MAP_PRIVATE = 2, MAP_SHARED_VALIDATE = 3 }
}
numbers! {
    /// Flags of `mmap` besides the kind.
    MAP_FLAGS: u32 {
        MAP_32BIT = 0x40, MAP_FIXED = 0x10, MAP_ANONYMOUS = 0x20, MAP_GROWSDOWN = 0x100, MAP_DENYWRITE = 0x800,
        MAP_EXECUTABLE = 0x1000, MAP_LOCKED = 0x2000, MAP_NORESERVE = 0x4000, MAP_POPULATE = 0x8000,
        MAP_NONBLOCK = 0x1_0000, MAP_STACK = 0x2_0000, MAP_HUGETLB = 0x4_0000, MAP_SYNC = 0x8_0000,
        MAP_FIXED_NOREPLACE = 0x10_0000,
    }
}
numbers! {
    /// Flags of `mremap`.
    MREMAP_FLAGS: u32 { MREMAP_MAYMOVE = 1, MREMAP_FIXED = 2, MREMAP_DONTUNMAP = 4 }
}
numbers! {
    /// Advice of `madvise`.
    MADVICE: u32 {
        MADV_NORMAL = 0, MADV_RANDOM = 1, MADV_SEQUENTIAL = 2, MADV_WILLNEED = 3, MADV_DONTNEED = 4, MADV_FREE = 8,
        MADV_REMOVE = 9, MADV_DONTFORK = 10, MADV_DOFORK = 11, MADV_MERGEABLE = 12, MADV_UNMERGEABLE = 13,
        MADV_HUGEPAGE = 14, MADV_NOHUGEPAGE = 15, MADV_DONTDUMP = 16, MADV_DODUMP = 17, MADV_WIPEONFORK = 18,
        MADV_KEEPONFORK = 19, MADV_COLD = 20, MADV_PAGEOUT = 21, MADV_POPULATE_READ = 22, MADV_POPULATE_WRITE = 23,
        MADV_DONTNEED_LOCKED = 24, MADV_COLLAPSE = 25,
    }
}
numbers! {
    /// Flags of `msync`.
    MSYNC_FLAGS: u32 { MS_ASYNC = 1, MS_INVALIDATE = 2, MS_SYNC = 4 }
}
numbers! {
    /// Flags of `mlockall`.
    MLOCKALL_FLAGS: u32 { MCL_CURRENT = 1, MCL_FUTURE = 2, MCL_ONFAULT = 4 }
}
