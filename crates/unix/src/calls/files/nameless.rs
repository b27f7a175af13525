//! Files without a name: `O_TMPFILE` and memfd_create.

use abi::Errno;
use abi::file::{MFD_ALLOW_SEALING, MFD_CLOEXEC, O_CLOEXEC, O_CREAT, O_LARGEFILE, O_RDWR};
use kernel::file::{FinalLink, Limits, NewNode, Node, Opened, Seals};
use machine::{TryGrow, try_to_vec};

use super::{access, finish, masked, open_node};
use crate::call::{Call, CallResult};

/// Longest name of a memory file in bytes; it only appears in /proc.
const NAME_BYTES_MAX: usize = 249;
/// `memfd_create`: the file is, or is not, to be executed.
const MFD_NOEXEC_SEAL: u32 = 8;
const MFD_EXEC: u32 = 16;

/// A file in the volume of a directory, for `O_TMPFILE`.
///
/// Errors: `EINVAL` when it is not opened for writing or shall be created, those of a lookup, `ENOTDIR`, `EACCES`,
/// `EROFS`, `ENOTSUP`, `ENOSPC`.
pub fn make(
    call: &Call<'_>,
    directory: u64,
    path: &[u8],
    flags: u32,
    mode: u32,
    limits: Limits,
) -> Result<Opened, Errno> {
    if !access(flags).write || flags & O_CREAT != 0 {
        return Err(Errno::EINVAL);
    }
    let place = call.with_view(directory, super::start(path, limits), |view| {
        call.unix.names.lookup(super::limited(view, limits), path, FinalLink::Follow)
    })?;
    if !place.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    let who = call.process().credentials.borrow().clone();
    call.unix.names.create_nameless(&who, &place, masked(call, mode), flags, call.now())
}

/// Errors: `EINVAL` for unknown flags or a name that is too long, `EFAULT`, `EMFILE`, `ENOSPC`.
pub fn memfd_create(call: &Call<'_>, name: u64, flags: u32) -> CallResult {
    let both = MFD_NOEXEC_SEAL | MFD_EXEC;
    if flags & !(MFD_CLOEXEC | MFD_ALLOW_SEALING | both) != 0 || flags & both == both {
        return Err(Errno::EINVAL);
    }
    let name = call.read_string(name, NAME_BYTES_MAX, Errno::EINVAL)?;
    let never_executed = flags & MFD_NOEXEC_SEAL != 0;
    let seals = match () {
        _ if never_executed => Seals::EXEC,
        _ if flags & MFD_ALLOW_SEALING != 0 => Seals::NONE,
        _ => Seals::SEAL,
    };
    let close_on_exec = if flags & MFD_CLOEXEC != 0 { O_CLOEXEC } else { 0 };
    finish(call, close_on_exec, || {
        let mode = if never_executed { 0o666 } else { 0o777 };
        let who = call.process().credentials.borrow().clone();
        let new = NewNode { mode, user: who.user, group: who.group, now: call.now() };
        let mut label = try_to_vec(b"memfd:")?;
        label.try_extend_from_slice(&name)?;
        let node = Node::nameless(call.unix.names.nameless(), &label, new)?;
        if let Some(content) = node.content() {
            content.set_first_seals(seals);
        }
        open_node(call, &node, O_RDWR | O_LARGEFILE)
    })
}
