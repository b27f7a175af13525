//! Calls that name files: stat and its kin, directories, links, times, owners.

mod extended;
mod listing;
mod locate;
mod names;
mod ownership;
mod place;
mod stat;
pub(super) mod table;
mod times;
mod volumes;

use abi::file::AT_FDCWD;

/// What calls without a directory argument start at.
const HERE: u64 = AT_FDCWD as u64;
/// `AT_SYMLINK_NOFOLLOW`, as it comes in a register.
const NO_FOLLOW: u64 = abi::file::AT_SYMLINK_NOFOLLOW as u64;
