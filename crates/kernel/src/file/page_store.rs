//! Where the bytes of a volume's files are kept, if that is not memory: a disk, a network.

use core::ops::Range;

use abi::Errno;
use machine::Moment;

use crate::space::Arrival;

/// What a file is found to be when it is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fresh {
    pub bytes: u64,
    pub modified: Moment,
    pub changed: Moment,
}

/// The pages of files, by number, at a place that takes its time. Which pages there are it knows at once.
///
/// No call of it waits. A page that is asked for comes when [`Arrival::tell`] says so: later, in any order, or before the call
/// returns. The kernel asks for a page only while it has none, and gives it only while nobody else takes it away, so no page is on
/// two ways at a time.
pub trait PageStore: Send + Sync {
    /// Whether page `index` of `file` is kept; else it is a hole.
    fn holds(&self, file: u64, index: u64) -> bool;

    /// The first page from `from` on that is kept.
    fn next_page(&self, file: u64, from: u64) -> Option<u64>;

    /// Pages of `file` that are kept.
    fn pages(&self, file: u64) -> u64;

    /// The file is going to be used, by somebody who can wait: this call may. What is told has changed since it was seen.
    ///
    /// Errors: its pages cannot be had.
    fn prepare(&self, _file: u64) -> Result<Option<Fresh>, Errno> {
        Ok(None)
    }

    /// What is changed is to be put there.
    fn is_written(&self) -> bool {
        true
    }

    /// Pages behind one that must come that should come with it.
    fn ahead(&self) -> u64 {
        0
    }

    /// Fills the page; at the latest from [`PageStore::go`] on.
    fn fetch(&self, file: u64, index: u64, arrival: Arrival);

    /// All that is needed now has been asked for.
    fn go(&self) {}

    /// Keeps what the page holds at some time between now and the end. From now on it is kept; if it fails, nobody has relied on it.
    fn put(&self, file: u64, index: u64, arrival: Arrival);

    /// These pages are holes from now on, whatever is on its way.
    fn cut(&self, file: u64, pages: Range<u64>);
}
