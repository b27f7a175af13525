//! From the arguments of an `…at` call to what they name.

use alloc::sync::Arc;

use abi::Errno;
use abi::file::{AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_FOLLOW, AT_SYMLINK_NOFOLLOW};
use kernel::file::{FinalLink, Node};

use crate::call::Call;
use crate::files::open_file::OpenFile;

/// What a call is about: a node, or an open file that may have none (a pipe).
pub enum Located {
    Node(Arc<Node>),
    File(Arc<OpenFile>),
}

impl Located {
    /// The node. Error: `error` for an open file that has none.
    pub fn node(self, error: Errno) -> Result<Arc<Node>, Errno> {
        match self {
            Located::Node(node) => Ok(node),
            Located::File(file) => file.node().cloned().ok_or(error),
        }
    }
}

/// Error: `EINVAL` for flags outside `known`.
pub fn check_flags(flags: u64, known: u32) -> Result<u32, Errno> {
    let flags = flags as u32;
    if flags & !known == 0 { Ok(flags) } else { Err(Errno::EINVAL) }
}

/// Where the last link of a path leads with these flags, for calls that follow by default.
pub fn final_link(flags: u32) -> FinalLink {
    if flags & AT_SYMLINK_NOFOLLOW != 0 { FinalLink::Keep } else { FinalLink::Follow }
}

/// As `final_link`, for calls that do not follow by default.
pub fn final_link_kept(flags: u32) -> FinalLink {
    if flags & AT_SYMLINK_FOLLOW != 0 { FinalLink::Follow } else { FinalLink::Keep }
}

/// The node that `path` names.
pub fn lookup(call: &Call<'_>, directory: u64, path: &[u8], last: FinalLink) -> Result<Arc<Node>, Errno> {
    call.with_view(directory, path, |view| call.unix.names.lookup(view, path, last))
}

/// What `path` names; an empty path names the descriptor itself if the flags allow that.
pub fn locate(call: &Call<'_>, directory: u64, path: u64, flags: u32, last: FinalLink) -> Result<Located, Errno> {
    let path = call.read_path(path)?;
    if !path.is_empty() || flags & AT_EMPTY_PATH == 0 {
        return lookup(call, directory, &path, last).map(Located::Node);
    }
    locate_descriptor(call, directory)
}

/// What a descriptor itself stands for; `AT_FDCWD` is the working directory.
pub fn locate_descriptor(call: &Call<'_>, directory: u64) -> Result<Located, Errno> {
    if directory as i32 == AT_FDCWD {
        return Ok(Located::Node(call.process().place.borrow().borrow().directory.clone()));
    }
    call.any_file(directory).map(Located::File)
}
