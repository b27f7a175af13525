//! What an open file tells those who watch its node.

use abi::Errno;
use abi::poll::IN_OPEN;

use crate::files::open_file::OpenFile;

impl OpenFile {
    /// A program has opened the file: who watches the node is told, now and when it is closed.
    pub fn begin_use(&self) {
        self.resume_use();
        self.tell(IN_OPEN);
    }

    /// The same for a file that was opened by machine code, while nobody watched.
    pub fn resume_use(&self) {
        self.is_in_use.set(true);
    }

    /// Tells those who watch the node.
    pub fn tell(&self, what: u32) {
        if let Some(node) = self.node() {
            node.happened(what);
        }
    }

    /// Bytes went through the file, or not: those who watch it are told.
    #[inline]
    pub fn tell_moved(&self, what: u32, moved: Result<usize, Errno>) -> Result<usize, Errno> {
        if let Some(node) = self.node()
            && moved.is_ok_and(|bytes| bytes > 0)
        {
            node.data_happened(what);
        }
        moved
    }
}
