//! What `open` of a file or directory outside of the machine gives.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use abi::Errno;
use machine::{About, Foreign, Handle, Hold, KernelValue, LockedRange, PAGE_BYTES, VirtAddr, try_filled};

use super::super::attributes::NodeKind;
use super::super::directory::FIRST_COOKIE;
use super::super::limits::{FILE_BYTES_MAX, TRANSFER_BYTES_MAX};
use super::super::node::Node;
use super::super::opened::{Carrier, File, MappedFile, read_into};
use super::super::share::{self, Pages};
use super::super::virtual_tree::{Listed, Visit};
use super::{ForeignNode, ForeignTree, SharedNode, errno_of, foreign};
use crate::call::REFUSED;
use crate::space::Arrival;
use crate::stream::{Io, UserRange};

/// Linux's `O_…` flags that describe only the opening, or this machine.
const O_CREAT_EXCL_NOCTTY: u32 = 0o700;
const O_CLOEXEC: u32 = 0o2_000_000;
const O_NONBLOCK: u32 = 0o4_000;
const O_ASYNC: u32 = 0o20_000;
const O_NOFOLLOW: u32 = 0o400_000;
const O_TMPFILE: u32 = 0o20_000_000;
const O_TRUNC: u32 = 0o1_000;
const O_APPEND: u32 = 0o2_000;
const O_ACCMODE: u32 = 3;

/// Directory cookies with this bit are of the volume laid over.
const OVER: u64 = 1 << 63;

/// An opening on the other side. It lives as long as the open file, or the maps made from it.
pub struct Opening {
    node: Arc<Node>,
    far: &'static dyn Foreign,
    handle: KernelValue<Handle>,
    /// How it was opened.
    flags: u32,
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.give_back();
        self.shared().into_iter().for_each(SharedNode::closed);
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
            None => self.ask(|far| far.open(foreign.place(), flags))?,
        };
        if let Some(shared) = foreign.shared.as_ref().filter(|_| flags & O_TRUNC != 0) {
            shared.cut(0);
        }
        Ok(Opening::new(node, self.far, (handle, flags)))
    }
}

/// Opens a regular file by the name under which it was found last. To open a place again takes the other side three times
/// as long, but it is the same file for certain; here that is checked afterwards, so nothing may be truncated.
fn open_by_name(node: &Arc<Node>, foreign: &ForeignNode, flags: u32) -> Option<Handle> {
    if node.kind() != NodeKind::Regular || flags & O_TRUNC != 0 {
        return None;
    }
    let (directory, name, far) = (node.parent()?, node.name(), foreign.far);
    let handle = far.open_name(super::foreign(&directory).ok()?.place(), &name, flags).ok()?;
    let same = |about: &About| (about.device, about.number) == (foreign.device, node.number());
    if far.about(handle).is_ok_and(|about| same(&about)) {
        return Some(handle);
    }
    far.release(handle);
    None
}

/// Opens at once what has a name in a directory, if that is a regular file which nobody has looked up yet: its opening is its place, too.
/// `None`: it must be looked up. Nothing but the opening itself is done there, so nothing may be truncated.
impl ForeignTree {
    pub(super) fn open_child(&self, directory: &Arc<Node>, name: &[u8], flags: u32) -> Option<Arc<dyn File>> {
        let at = foreign(directory).ok()?;
        if self.share.is_some() || flags & O_TRUNC != 0 || !at.is_bare_at(name) {
            return None;
        }
        let far = self.far;
        let regular = |about: &About| super::kind_of(about) == NodeKind::Regular;
        let seen = far.about_name(at.place(), name).ok().filter(regular)?;
        let key = (seen.device, seen.number);
        if self.known(key, &seen).is_some() {
            return None;
        }
        let flags = flags_there(flags) & !0o200_000;
        let handle = far.open_name(at.place(), name, flags).ok()?;
        // Another file may have the name by now.
        let about = far.about(handle).ok().filter(|about| regular(about) && (about.device, about.number) == key);
        let Some(about) = about else {
            far.release(handle);
            return None;
        };
        let node = self.adopt_known(directory.volume(), handle, &about).ok()?;
        node.show_in(directory, name);
        Some(Opening::new(&node, far, (handle, flags)))
    }
}

impl Opening {
    /// The other side gets the opening back, or the node that it lends its place to does it. A node that others use gets a place of its
    /// own: locks and rights to write must not outlive the opening.
    fn give_back(&self) {
        let handle = self.handle.get();
        let Some(lent) = foreign(&self.node).ok().filter(|foreign| foreign.place() == handle) else {
            return self.far.release(handle);
        };
        if Arc::strong_count(&self.node) > 1
            && let Ok(own) = self.far.place_of(handle)
        {
            lent.place.set(own);
            self.far.release(handle);
        }
    }

    /// What the other side calls `handle`, with the flags by which it was opened.
    pub(super) fn new(node: &Arc<Node>, far: &'static dyn Foreign, (handle, flags): (Handle, u32)) -> Arc<Opening> {
        let opening = Arc::new(Opening { node: node.clone(), far, handle: KernelValue::new(handle), flags });
        if let Some(shared) = opening.shared() {
            shared.openings.set(shared.openings.get() + 1);
        }
        opening
    }

    /// What is known of the file, if its folder is asked by messages.
    fn shared(&self) -> Option<&SharedNode> {
        foreign(&self.node).ok()?.shared.as_ref()
    }

    /// What maps have written goes to the other side.
    fn put_pages(&self) -> Result<(), Errno> {
        self.shared().and_then(SharedNode::pages).map_or(Ok(()), |pages| pages.put_and_wait())
    }

    fn map_shared(self: &Arc<Self>, shared: &SharedNode, is_writable: bool) -> Result<Arc<dyn MappedFile>, Errno> {
        let pages = match shared.pages() {
            Some(pages) => pages,
            None => {
                // Pages are fetched when those that were put before are there.
                shared.puts.settle()?;
                let pages = Pages::new(shared.share, self, shared.puts.clone())?;
                // Another thread may have been faster meanwhile.
                match shared.pages() {
                    Some(faster) => faster,
                    None => {
                        *shared.pages.borrow_mut() = Arc::downgrade(&pages);
                        pages
                    }
                }
            }
        };
        Ok(pages.show(self, is_writable)?)
    }

    /// Reads from a file whose carrier does not reach programs. What maps hold is newer than what the other side has.
    fn read_shared(&self, shared: &SharedNode, io: &Io<'_>, position: u64, to: UserRange) -> Result<usize, Errno> {
        shared.puts.settle()?;
        let bytes = to.bytes.min(TRANSFER_BYTES_MAX);
        let mut buffer = share::buffer(bytes.min(share::PIECE_BYTES))?;
        let mut done = 0;
        while done < bytes {
            let asked = (bytes - done).min(buffer.len());
            let at = position.saturating_add(done as u64);
            let count = match self.read_at(at, &mut buffer[..asked]) {
                Ok(count) => count,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            };
            let copied = copy_by_pages(to.after(done), count, |target, range| io.copy_out(target, &buffer[range]));
            match copied {
                Ok(copied) => done += copied,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
            if copied != Ok(asked) {
                break;
            }
        }
        Ok(done)
    }

    /// Writes to such a file.
    fn write_shared(&self, io: &Io<'_>, position: u64, from: UserRange) -> Result<usize, Errno> {
        let bytes = from.bytes.min(TRANSFER_BYTES_MAX);
        let mut buffer = share::buffer(bytes.min(share::PIECE_BYTES))?;
        let mut done = 0;
        while done < bytes {
            let asked = (bytes - done).min(buffer.len());
            let copied = copy_by_pages(from.after(done), asked, |source, range| io.copy_in(source, &mut buffer[range]));
            let written = match copied {
                Ok(copied) => self.write_at(position.saturating_add(done as u64), &buffer[..copied]),
                Err(error) => Err(error),
            };
            match written {
                Ok(written) => done += written,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
            if written != Ok(asked) {
                break;
            }
        }
        Ok(done)
    }

    pub(in crate::file) fn far(&self) -> (&'static dyn Foreign, Handle) {
        (self.far, self.handle.get())
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
            _ => self
                .far
                .about_name(self.handle.get(), record.name)
                .map_or(NodeKind::Regular, |about| super::kind_of(&about)),
        }
    }
}

/// Copies `bytes` bytes from or to a program's memory, page by page, so that what lies before a bad page is copied.
fn copy_by_pages(
    memory: UserRange,
    bytes: usize,
    mut copy: impl FnMut(VirtAddr, Range<usize>) -> Result<(), Errno>,
) -> Result<usize, Errno> {
    let mut done = 0;
    while done < bytes {
        let at = memory.after(done).address;
        let piece = (bytes - done).min(PAGE_BYTES - at.0 as usize % PAGE_BYTES);
        match copy(at, done..done + piece) {
            Ok(()) => done += piece,
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}

impl File for Opening {
    fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Bytes of the file, now.
    fn size(&self) -> u64 {
        self.far.about(self.handle.get()).map_or(0, |about| about.bytes)
    }

    /// Reads to the program. Errors: `EFAULT`, those of the other side.
    fn read(&self, io: &Io<'_>, position: u64, to: UserRange) -> Result<usize, Errno> {
        if position > FILE_BYTES_MAX {
            return Err(Errno::EINVAL);
        }
        if let Some(shared) = self.shared() {
            return self.read_shared(shared, io, position, to);
        }
        self.far.read_user(self.handle.get(), position, to.address, to.bytes.min(TRANSFER_BYTES_MAX)).map_err(errno_of)
    }

    /// Writes from the program; appends if opened so. Errors: `EFAULT`, `EFBIG`, `ENOSPC`, those of the other side.
    fn write(&self, io: &Io<'_>, position: u64, from: UserRange) -> Result<usize, Errno> {
        if position > FILE_BYTES_MAX {
            return Err(Errno::EFBIG);
        }
        if self.shared().is_some() {
            return self.write_shared(io, position, from);
        }
        self.far
            .write_user(self.handle.get(), position, from.address, from.bytes.min(TRANSFER_BYTES_MAX))
            .map_err(errno_of)
    }

    fn read_at(&self, position: u64, into: &mut [u8]) -> Result<usize, Errno> {
        let count = self.far.read(self.handle.get(), position, into).map_err(errno_of)?;
        if let Some(pages) = self.shared().and_then(SharedNode::pages) {
            pages.lay_over(position, &mut into[..count]);
        }
        Ok(count)
    }

    fn write_at(&self, position: u64, from: &[u8]) -> Result<usize, Errno> {
        let Some(shared) = self.shared() else {
            return self.far.write(self.handle.get(), position, from).map_err(errno_of);
        };
        shared.puts.settle()?;
        let count = self.far.write(self.handle.get(), position, from).map_err(errno_of)?;
        if let Some(pages) = shared.pages() {
            let appends = shared.share.appends(self.handle.get());
            let position = if appends { self.size().saturating_sub(count as u64) } else { position };
            pages.take_over(position, &from[..count]);
        }
        Ok(count)
    }

    /// Of a share nobody waits: the pages come. Others read them.
    fn fetch(self: Arc<Self>, first: u64, size_bytes: u64, arrivals: Vec<Arrival>) {
        match self.shared() {
            Some(shared) => share::fetch(shared.share, self.clone(), (first, size_bytes), arrivals),
            None => read_into(&*self, first, arrivals),
        }
    }

    /// The next data from `position` on. Error: `ENXIO`.
    fn seek_data(&self, position: u64) -> Result<u64, Errno> {
        self.far.seek(self.handle.get(), position, 3).map_err(errno_of)
    }

    /// The next hole. Error: `ENXIO`.
    fn seek_hole(&self, position: u64) -> Result<u64, Errno> {
        self.far.seek(self.handle.get(), position, 4).map_err(errno_of)
    }

    fn resize(&self, bytes: u64) -> Result<(), Errno> {
        if let Some(shared) = self.shared() {
            shared.puts.settle()?;
        }
        self.far.resize(self.handle.get(), bytes).map_err(errno_of)?;
        self.shared().into_iter().for_each(|shared| shared.cut(bytes));
        Ok(())
    }

    /// `fallocate` with Linux's mode.
    fn allocate(&self, mode: u32, range: Range<u64>) -> Result<(), Errno> {
        self.far.allocate(self.handle.get(), mode, range.start, range.end - range.start).map_err(errno_of)
    }

    /// Everything written so far is kept safe.
    fn sync(&self) -> Result<(), Errno> {
        self.put_pages()?;
        self.far.sync(self.handle.get(), false).map_err(errno_of)
    }

    /// The data and what is needed to find it.
    fn sync_data(&self) -> Result<(), Errno> {
        self.put_pages()?;
        self.far.sync(self.handle.get(), true).map_err(errno_of)
    }

    fn set_flags(&self, flags: u32) -> Result<(), Errno> {
        let Some(shared) = self.shared() else {
            return self.far.set_flags(self.handle.get(), flags_there(flags)).map_err(errno_of);
        };
        if (flags & O_APPEND != 0) == shared.share.appends(self.handle.get()) {
            return self.far.set_flags(self.handle.get(), flags_there(flags)).map_err(errno_of);
        }
        // The protocol cannot change it, but the same file can be opened again.
        let flags = self.flags & O_ACCMODE | flags & O_APPEND;
        let other = self.far.open(foreign(&self.node)?.place(), flags).map_err(errno_of)?;
        self.far.release(self.handle.replace(other));
        Ok(())
    }

    /// Takes or gives up a record lock that belongs to this opening. Error: `EAGAIN`.
    fn lock(&self, hold: Hold, first: u64, last: u64) -> Result<(), Errno> {
        self.far.lock(self.handle.get(), hold, first, last).map_err(errno_of)
    }

    fn lock_in_the_way(&self, hold: Hold, first: u64, last: u64) -> Result<Option<LockedRange>, Errno> {
        self.far.lock_in_the_way(self.handle.get(), hold, first, last).map_err(errno_of)
    }

    /// `flock`. Error: `EAGAIN`.
    fn lock_whole(&self, hold: Hold) -> Result<(), Errno> {
        self.far.lock_whole(self.handle.get(), hold).map_err(errno_of)
    }

    /// Shows the entries of a directory from cookie `from` on, until `visit` stops; `bytes` is about how much the
    /// caller can take. Cookies are the other side's; those of the directory laid over come behind them.
    fn list(&self, from: u64, bytes: usize, visit: &mut dyn FnMut(&Listed<'_>) -> Visit) -> Result<(), Errno> {
        let over = foreign(&self.node).ok().and_then(|foreign| foreign.over.borrow().clone());
        let mut cookie = from;
        if from & OVER == 0 {
            let mut records = try_filled(0, bytes.clamp(512, 32_768))?;
            let mut has_shown = false;
            loop {
                // What was shown is given first; who asks again learns whether there is more.
                if has_shown {
                    return Ok(());
                }
                let used = self.far.list(self.handle.get(), cookie, &mut records).map_err(errno_of)?;
                if used == 0 {
                    break;
                }
                for record in Records(&records[..used]) {
                    let hidden = over.as_ref().is_some_and(|over| over.child(record.name).is_ok());
                    let listed = Listed { cookie, next: record.next, kind: self.kind_of(&record), ..record.listed() };
                    if !hidden && visit(&listed) == Visit::Stop {
                        return Ok(());
                    }
                    has_shown |= !hidden;
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
        match self.shared() {
            Some(shared) => self.map_shared(shared, is_writable),
            None => Ok(self.pages(is_writable)),
        }
    }

    fn keeps_pages(&self) -> bool {
        self.shared().is_some()
    }

    fn locks_itself(&self) -> bool {
        self.shared().is_none()
    }

    fn carrier(&self) -> Option<Carrier> {
        Some(Carrier { code: self.far.carry_code(REFUSED)?, handle: self.handle.get().0 })
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
