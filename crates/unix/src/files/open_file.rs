//! An open file: what `open` makes and descriptors share (POSIX "open file description").

use alloc::sync::Arc;
use core::cell::Cell;

use abi::Errno;
use abi::file::{O_ACCMODE, O_APPEND, O_NONBLOCK, O_PATH, O_RDONLY, O_WRONLY};
use kernel::file::{Content, Node};
use kernel::stream::{Ready, Stream};
use machine::KernelCell;

/// What a file is open on.
#[derive(Clone)]
pub enum Body {
    /// A regular file, a directory, or anything opened with `O_PATH`: all is in the node.
    Node,
    /// Anything that is read and written in order.
    Stream(Arc<dyn Stream>),
    /// A file of a virtual directory (/proc): its content was taken at open.
    Virtual(Arc<[u8]>),
}

pub struct OpenFile {
    pub body: Body,
    node: Option<Arc<Node>>,
    flags: Cell<u32>,
    /// Offset of the next read or write, in bytes (of a directory: the cookie).
    position: Cell<u64>,
    /// Synthesized entry points of `read` and `write`, kept alive with the file.
    pub code: KernelCell<FileCode>,
    /// `begin_write` of the node was called.
    counts_as_writer: Cell<bool>,
    /// Who gets SIGIO (`F_SETOWN`).
    pub owner: Cell<i32>,
}

/// The synthesized routines of one open file.
#[derive(Default)]
pub struct FileCode {
    pub read: Option<codestore::Code<kernel::FileCall>>,
    pub write: Option<codestore::Code<kernel::FileCall>>,
}

impl OpenFile {
    pub fn new(body: Body, node: Option<Arc<Node>>, flags: u32) -> OpenFile {
        OpenFile {
            body,
            node,
            flags: Cell::new(flags),
            position: Cell::new(0),
            code: KernelCell::new(FileCode::default()),
            counts_as_writer: Cell::new(false),
            owner: Cell::new(0),
        }
    }

    pub fn stream(stream: Arc<dyn Stream>, flags: u32) -> OpenFile {
        OpenFile::new(Body::Stream(stream), None, flags)
    }

    /// Remembers that the node was told of a writer, so that it is told when the file is closed.
    pub fn count_as_writer(&self) {
        self.counts_as_writer.set(true);
    }

    pub fn node(&self) -> Option<&Arc<Node>> {
        self.node.as_ref()
    }

    pub fn flags(&self) -> u32 {
        self.flags.get()
    }

    pub fn set_flags(&self, flags: u32) {
        self.flags.set(flags);
    }

    pub fn position(&self) -> u64 {
        self.position.get()
    }

    pub fn set_position(&self, position: u64) {
        self.position.set(position);
    }

    /// Address of the position word, for templates.
    pub fn position_word(&self) -> u64 {
        self.position.as_ptr() as u64
    }

    pub fn is_path_only(&self) -> bool {
        self.flags() & O_PATH != 0
    }

    pub fn is_readable(&self) -> bool {
        self.flags() & O_ACCMODE != O_WRONLY && !self.is_path_only()
    }

    pub fn is_writable(&self) -> bool {
        self.flags() & O_ACCMODE != O_RDONLY && !self.is_path_only()
    }

    pub fn is_nonblocking(&self) -> bool {
        self.flags() & O_NONBLOCK != 0
    }

    pub fn is_appending(&self) -> bool {
        self.flags() & O_APPEND != 0
    }

    pub fn as_stream(&self) -> Option<&Arc<dyn Stream>> {
        match &self.body {
            Body::Stream(stream) => Some(stream),
            _ => None,
        }
    }

    /// The stream, if it is of this type.
    pub fn stream_of<T: Stream>(&self) -> Option<&T> {
        self.as_stream()?.as_any().downcast_ref()
    }

    /// The content of a regular file.
    pub fn content(&self) -> Option<&Content> {
        match self.body {
            Body::Node => self.node()?.content(),
            _ => None,
        }
    }

    pub fn is_directory(&self) -> bool {
        matches!(self.body, Body::Node) && self.node().is_some_and(|node| node.is_directory())
    }

    pub fn is_seekable(&self) -> bool {
        !matches!(self.body, Body::Stream(_))
    }

    pub fn ready(&self) -> Ready {
        match &self.body {
            Body::Stream(stream) => stream.ready(),
            _ => Ready::READABLE.with(Ready::WRITABLE),
        }
    }

    /// Entry points of the synthesized `read` and `write`, where there are some.
    pub fn entry_points(&self) -> (Option<u64>, Option<u64>) {
        let code = self.code.borrow();
        (code.read.as_ref().map(|code| code.entry()), code.write.as_ref().map(|code| code.entry()))
    }

    /// Error: `EBADF` when not open for reading.
    pub fn check_readable(&self) -> Result<(), Errno> {
        if self.is_readable() { Ok(()) } else { Err(Errno::EBADF) }
    }

    /// Error: `EBADF` when not open for writing.
    pub fn check_writable(&self) -> Result<(), Errno> {
        if self.is_writable() { Ok(()) } else { Err(Errno::EBADF) }
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        if self.counts_as_writer.get()
            && let Some(node) = &self.node
        {
            node.end_write();
        }
        if let Some(node) = &self.node {
            // A whole-file lock belongs to the open file.
            node.locks().borrow_mut().unlock_whole(self as *const OpenFile as u64);
        }
    }
}
