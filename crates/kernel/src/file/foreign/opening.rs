//! What `open` of a file or directory outside of the machine gives.

use alloc::sync::Arc;
use core::ops::Range;

use abi::Errno;
use machine::{About, Foreign, Handle, Hold, LockedRange, try_filled};

use super::super::attributes::NodeKind;
use super::super::directory::FIRST_COOKIE;
use super::super::limits::{FILE_BYTES_MAX, TRANSFER_BYTES_MAX};
use super::super::node::Node;
use super::super::opened::{Carrier, File, MappedFile};
use super::super::virtual_tree::{Listed, Visit};
use super::{ForeignNode, ForeignTree, errno_of, foreign};
use crate::call::REFUSED;
use crate::stream::{Io, UserRange};

/// Linux's `O_…` flags that describe only the opening, or this machine.
const O_CREAT_EXCL_NOCTTY: u32 = 0o700;
const O_CLOEXEC: u32 = 0o2_000_000;
const O_NONBLOCK: u32 = 0o4_000;
const O_ASYNC: u32 = 0o20_000;
const O_NOFOLLOW: u32 = 0o400_000;
const O_TMPFILE: u32 = 0o20_000_000;

/// Directory cookies with this bit are of the volume laid over.
const OVER: u64 = 1 << 63;

/// An opening on the other side. It lives as long as the open file, or the maps made from it.
pub struct Opening {
    node: Arc<Node>,
    far: &'static dyn Foreign,
    handle: Handle,
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.far.release(self.handle);
    }
}

/// Flags that mean something on the other side.
pub(super) fn flags_there(flags: u32) -> u32 {
    flags & !(O_CREAT_EXCL_NOCTTY | O_CLOEXEC | O_NONBLOCK | O_ASYNC | O_NOFOLLOW | O_TMPFILE)
}

impl ForeignTree {
    /// Opens a regular file or directory outside of the machine with Linux's flags, `O_TRUNC` among them.
    /// Errors: those of the other side.
    pub(super) fn open(&self, node: &Arc<Node>, flags: u32) -> Result<Arc<dyn File>, Errno> {
        let foreign = foreign(node)?;
        let directory = if node.is_directory() { 0o200_000 } else { 0 };
        let flags = flags_there(flags) & !0o200_000 | directory;
        let handle = match open_by_name(node, foreign, flags) {
            Some(handle) => handle,
            None => self.ask(|far| far.open(foreign.place, flags))?,
        };
        Ok(Opening::new(node, self.far, handle))
    }
}

/// Opens a regular file by the name under which it was found last. To open a place again takes the other side three times
/// as long, but it is the same file for certain; here that is checked afterwards, so nothing may be truncated.
fn open_by_name(node: &Arc<Node>, foreign: &ForeignNode, flags: u32) -> Option<Handle> {
    const O_TRUNC: u32 = 0o1_000;
    if node.kind() != NodeKind::Regular || flags & O_TRUNC != 0 {
        return None;
    }
    let (directory, name, far) = (node.parent()?, node.name(), foreign.far);
    let handle = far.open_name(super::foreign(&directory).ok()?.place, &name, flags).ok()?;
    let same = |about: &About| (about.device, about.number) == (foreign.device, node.number());
    if far.about(handle).is_ok_and(|about| same(&about)) {
        return Some(handle);
    }
    far.release(handle);
    None
}

impl Opening {
    pub(super) fn new(node: &Arc<Node>, far: &'static dyn Foreign, handle: Handle) -> Arc<Opening> {
        Arc::new(Opening { node: node.clone(), far, handle })
    }

    pub(super) fn far(&self) -> (&'static dyn Foreign, Handle) {
        (self.far, self.handle)
    }

    /// Some file systems leave the kind out of their listings.
    fn kind_of(&self, record: &Record<'_>) -> NodeKind {
        match record.kind {
            1 => NodeKind::Fifo,
            2 => NodeKind::CharDevice(0, 0),
            4 => NodeKind::Directory,
            6 => NodeKind::BlockDevice(0, 0),
            8 => NodeKind::Regular,
            10 => NodeKind::Symlink,
            12 => NodeKind::Socket,
            _ => {
                self.far.about_name(self.handle, record.name).map_or(NodeKind::Regular, |about| super::kind_of(&about))
            }
        }
    }
}

impl File for Opening {
    fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Bytes of the file, now.
    fn size(&self) -> u64 {
        self.far.about(self.handle).map_or(0, |about| about.bytes)
    }

    /// Reads to the program. Errors: `EFAULT`, those of the other side.
    fn read(&self, _io: &Io<'_>, position: u64, to: UserRange) -> Result<usize, Errno> {
        if position > FILE_BYTES_MAX {
            return Err(Errno::EINVAL);
        }
        self.far.read_user(self.handle, position, to.address, to.bytes.min(TRANSFER_BYTES_MAX)).map_err(errno_of)
    }

    /// Writes from the program; appends if opened so. Errors: `EFAULT`, `EFBIG`, `ENOSPC`, those of the other side.
    fn write(&self, _io: &Io<'_>, position: u64, from: UserRange) -> Result<usize, Errno> {
        if position > FILE_BYTES_MAX {
            return Err(Errno::EFBIG);
        }
        self.far.write_user(self.handle, position, from.address, from.bytes.min(TRANSFER_BYTES_MAX)).map_err(errno_of)
    }

    fn read_at(&self, position: u64, into: &mut [u8]) -> Result<usize, Errno> {
        self.far.read(self.handle, position, into).map_err(errno_of)
    }

    fn write_at(&self, position: u64, from: &[u8]) -> Result<usize, Errno> {
        self.far.write(self.handle, position, from).map_err(errno_of)
    }

    /// The next data from `position` on. Error: `ENXIO`.
    fn seek_data(&self, position: u64) -> Result<u64, Errno> {
        self.far.seek(self.handle, position, 3).map_err(errno_of)
    }

    /// The next hole. Error: `ENXIO`.
    fn seek_hole(&self, position: u64) -> Result<u64, Errno> {
        self.far.seek(self.handle, position, 4).map_err(errno_of)
    }

    fn resize(&self, bytes: u64) -> Result<(), Errno> {
        self.far.resize(self.handle, bytes).map_err(errno_of)
    }

    /// `fallocate` with Linux's mode.
    fn allocate(&self, mode: u32, range: Range<u64>) -> Result<(), Errno> {
        self.far.allocate(self.handle, mode, range.start, range.end - range.start).map_err(errno_of)
    }

    /// Everything written so far is kept safe.
    fn sync(&self) -> Result<(), Errno> {
        self.far.sync(self.handle, false).map_err(errno_of)
    }

    /// The data and what is needed to find it.
    fn sync_data(&self) -> Result<(), Errno> {
        self.far.sync(self.handle, true).map_err(errno_of)
    }

    fn set_flags(&self, flags: u32) -> Result<(), Errno> {
        self.far.set_flags(self.handle, flags_there(flags)).map_err(errno_of)
    }

    /// Takes or gives up a record lock that belongs to this opening. Error: `EAGAIN`.
    fn lock(&self, hold: Hold, first: u64, last: u64) -> Result<(), Errno> {
        self.far.lock(self.handle, hold, first, last).map_err(errno_of)
    }

    fn lock_in_the_way(&self, hold: Hold, first: u64, last: u64) -> Result<Option<LockedRange>, Errno> {
        self.far.lock_in_the_way(self.handle, hold, first, last).map_err(errno_of)
    }

    /// `flock`. Error: `EAGAIN`.
    fn lock_whole(&self, hold: Hold) -> Result<(), Errno> {
        self.far.lock_whole(self.handle, hold).map_err(errno_of)
    }

    /// Shows the entries of a directory from cookie `from` on, until `visit` stops; `bytes` is about how much the
    /// caller can take. Cookies are the other side's; those of the directory laid over come behind them.
    fn list(&self, from: u64, bytes: usize, visit: &mut dyn FnMut(&Listed<'_>) -> Visit) -> Result<(), Errno> {
        let over = foreign(&self.node).ok().and_then(|foreign| foreign.over.borrow().clone());
        let mut cookie = from;
        if from & OVER == 0 {
            let mut records = try_filled(0, bytes.clamp(512, 32_768))?;
            loop {
                let used = self.far.list(self.handle, cookie, &mut records).map_err(errno_of)?;
                if used == 0 {
                    break;
                }
                for record in Records(&records[..used]) {
                    let hidden = over.as_ref().is_some_and(|over| over.child(record.name).is_ok());
                    let listed = Listed { cookie, next: record.next, kind: self.kind_of(&record), ..record.listed() };
                    if !hidden && visit(&listed) == Visit::Stop {
                        return Ok(());
                    }
                    cookie = record.next;
                }
            }
        }
        let Some(over) = over else { return Ok(()) };
        let start = if from & OVER != 0 { from & !OVER } else { FIRST_COOKIE };
        over.list(start.max(FIRST_COOKIE), &mut |listed| {
            visit(&Listed { cookie: listed.cookie | OVER, next: listed.next | OVER, ..*listed })
        })
    }

    fn map(self: Arc<Self>, is_writable: bool) -> Result<Arc<dyn MappedFile>, Errno> {
        Ok(self.pages(is_writable))
    }

    fn carrier(&self) -> Option<Carrier> {
        Some(Carrier { code: self.far.carry_code(REFUSED)?, handle: self.handle.0 })
    }
}

/// One `linux_dirent64`.
struct Record<'a> {
    number: u64,
    next: u64,
    kind: u8,
    name: &'a [u8],
}

impl<'a> Record<'a> {
    fn listed(&self) -> Listed<'a> {
        Listed { cookie: 0, next: self.next, number: self.number, kind: NodeKind::Regular, name: self.name }
    }
}

struct Records<'a>(&'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        const HEADER_BYTES: usize = 19;
        let header = self.0.get(..HEADER_BYTES)?;
        let word = |at: usize| header[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
        let bytes = usize::from(u16::from_le_bytes([header[16], header[17]]));
        let (record, rest) = self.0.split_at_checked(bytes.max(HEADER_BYTES))?;
        self.0 = rest;
        let name = &record[HEADER_BYTES..];
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        Some(Record { number: word(0), next: word(8), kind: header[18], name: &name[..end] })
    }
}
