//! What is open where content is asked for, not kept here: a file or directory of a store, a computed text.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::ops::Range;

use abi::Errno;
use machine::{CarryCode, Hold, PAGE_BYTES};

use super::node::Node;
use super::virtual_tree::{Listed, Visit};
use crate::charge::Held;
use crate::space::{Arrival, BackingError, Page, Supply};
use crate::stream::{Io, UserRange};

/// An open file or directory whose content is asked for, each time. It lives as long as the open file, or the maps
/// made from it. What is left out cannot be done with it.
pub trait File: Any + Send + Sync {
    fn node(&self) -> &Arc<Node>;

    /// Bytes, now.
    fn size(&self) -> u64;

    /// Where a seek from the end starts.
    fn end(&self) -> u64 {
        self.size()
    }

    /// It has bytes that writing adds to, and of which the limits for files hold; else they are computed.
    fn has_bytes(&self) -> bool {
        true
    }

    /// What it keeps of the kernel's memory.
    fn held(&self) -> Held {
        Held::NOTHING
    }

    /// Reads to the program. Errors: `EFAULT`, those of the other side.
    fn read(&self, io: &Io<'_>, position: u64, to: UserRange) -> Result<usize, Errno>;

    /// Writes from the program; appends if opened so. Errors: `EFAULT`, `EFBIG`, `ENOSPC`, those of the other side.
    fn write(&self, io: &Io<'_>, position: u64, from: UserRange) -> Result<usize, Errno>;

    fn read_at(&self, position: u64, into: &mut [u8]) -> Result<usize, Errno>;

    fn write_at(&self, position: u64, from: &[u8]) -> Result<usize, Errno>;

    /// Fills pages in a row, from page `first` of the file on, which should have `_size_bytes`, without waiting. Those that are dropped
    /// have failed.
    fn fetch(self: Arc<Self>, first: u64, _size_bytes: u64, arrivals: Vec<Arrival>) {
        read_into(&*self, first, arrivals);
    }

    /// The next data from `position` on. Error: `ENXIO`.
    fn seek_data(&self, position: u64) -> Result<u64, Errno> {
        if position < self.size() { Ok(position) } else { Err(Errno::ENXIO) }
    }

    /// The next hole, or the end. Error: `ENXIO`.
    fn seek_hole(&self, position: u64) -> Result<u64, Errno> {
        let size = self.size();
        if position < size { Ok(size) } else { Err(Errno::ENXIO) }
    }

    fn resize(&self, _bytes: u64) -> Result<(), Errno> {
        Err(Errno::EINVAL)
    }

    /// `fallocate` with Linux's mode.
    fn allocate(&self, _mode: u32, _range: Range<u64>) -> Result<(), Errno> {
        Err(Errno::ENOTSUP)
    }

    /// Everything written so far is kept safe.
    fn sync(&self) -> Result<(), Errno> {
        Ok(())
    }

    /// The data and what is needed to find it.
    fn sync_data(&self) -> Result<(), Errno> {
        self.sync()
    }

    /// Changes append, direct and the like.
    fn set_flags(&self, _flags: u32) -> Result<(), Errno> {
        Ok(())
    }

    /// Takes or gives up a record lock against others that belongs to this opening. Error: `EAGAIN`.
    fn lock(&self, _hold: Hold, _first: u64, _last: u64) -> Result<(), Errno> {
        Ok(())
    }

    fn lock_in_the_way(&self, _hold: Hold, _first: u64, _last: u64) -> Result<Option<machine::LockedRange>, Errno> {
        Ok(None)
    }

    /// Its maps show pages of this machine's, which do not go by themselves when the file is cut.
    fn keeps_pages(&self) -> bool {
        false
    }

    /// The locks that belong to this opening are held by it; else by its node, as those of files in memory.
    fn locks_itself(&self) -> bool {
        true
    }

    /// `flock` against others. Error: `EAGAIN`.
    fn lock_whole(&self, _hold: Hold) -> Result<(), Errno> {
        Ok(())
    }

    /// Shows the entries of a directory from cookie `from` on, `.` and `..` among them, until `visit` stops; `bytes` is about how
    /// much the caller can take.
    fn list(&self, _from: u64, _bytes: usize, _visit: &mut dyn FnMut(&Listed<'_>) -> Visit) -> Result<(), Errno> {
        Err(Errno::ENOTDIR)
    }

    /// Its pages for maps; if `is_writable`, for shared ones that may be written to. Error: `ENODEV`.
    fn map(self: Arc<Self>, _is_writable: bool) -> Result<Arc<dyn MappedFile>, Errno> {
        Err(Errno::ENODEV)
    }

    /// The instructions that carry its bytes, for its synthesized routines.
    fn carrier(&self) -> Option<Carrier> {
        None
    }
}

/// What carries the bytes of an open file: the code, which jumps to [`REFUSED`](crate::call::REFUSED) before it has done anything,
/// and the name by which it knows the file.
pub struct Carrier {
    pub code: CarryCode,
    pub handle: i32,
}

/// The pages of a file that its store keeps.
pub trait MappedFile: Send + Sync {
    /// The page `index` of the file; one that must come is on its way afterwards. Errors: it lies behind the end, or there is no room.
    fn page(&self, index: u64) -> Result<Supply, BackingError>;

    /// Shows those of the pages `range` that are there already, in their order.
    fn visit(&self, range: Range<u64>, show: &mut dyn FnMut(u64, &Page));

    /// What was written goes to where it is safe.
    fn sync(&self) -> Result<(), Errno>;
}

/// Fills pages by reads that do not wait long.
pub(super) fn read_into<F: File + ?Sized>(file: &F, first: u64, arrivals: Vec<Arrival>) {
    for (index, arrival) in (first..).zip(arrivals) {
        let (mut piece, mut done) = ([0; 512], 0);
        let end = loop {
            match file.read_at(index * PAGE_BYTES as u64 + done as u64, &mut piece) {
                Ok(0) => break Ok(()),
                Ok(_) => arrival.page().write(done, &piece),
                Err(error) => break Err(error),
            }
            done += piece.len();
            if done == PAGE_BYTES {
                break Ok(());
            }
            piece.fill(0);
        };
        arrival.page().fill(done, PAGE_BYTES - done, 0);
        arrival.tell(end);
    }
}
