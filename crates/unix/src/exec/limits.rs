//! The limits of `execve`, and what happens when one is reached.

/// The first address a program may not use, less the last page, as on Linux with four-level page
/// tables. A segment that reaches it kills the program.
pub const USER_END: u64 = 0x7fff_ffff_f000;

/// Where position-independent programs start without randomization: two thirds of the user space.
pub const PROGRAM_BASE: u64 = 0x5555_5555_4000;

/// Bytes of a file that decide how it is executed; a longer `#!` line is cut here.
pub const FIRST_BYTES: usize = 256;

/// Times a `#!` line may lead to another file; one more is ELOOP.
pub const REWRITES_MAX: usize = 5;

/// Bytes of a program header table; more is ENOEXEC (ELIBBAD for an interpreter).
pub const PROGRAM_HEADERS_BYTES_MAX: usize = 65536;

/// Bytes of an interpreter's path with its NUL; more is ENOEXEC.
pub const INTERPRETER_PATH_BYTES_MAX: u64 = 4096;

/// Bytes of one argument or environment string with its NUL; more is E2BIG.
pub const STRING_BYTES_MAX: u64 = 131_072;

/// Bytes of all strings and their pointers that are granted however small the stack limit is.
pub const ARGUMENTS_BYTES_MIN: u64 = 131_072;

/// Bytes of all strings and their pointers, however large the stack limit is; more is E2BIG.
pub const ARGUMENTS_BYTES_MAX: u64 = 6 << 20;

/// Bytes kept free below the stack's top for its growth when the stack limit is smaller.
pub const STACK_GAP_BYTES_MIN: u64 = 128 << 20;

/// The gap for the stack never takes more than five sixths of the user space.
pub const STACK_GAP_BYTES_MAX: u64 = USER_END / 6 * 5;

/// Bytes that stay free between the lowest the stack may reach and the next mapping.
pub const STACK_GUARD_BYTES: u64 = 1 << 20;
