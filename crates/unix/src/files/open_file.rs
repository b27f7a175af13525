//! An open file: what `open` makes and descriptors share (POSIX "open file description").

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::cell::Ref;

use abi::Errno;
use abi::file::{O_ACCMODE, O_APPEND, O_NONBLOCK, O_PATH, O_RDONLY, O_RDWR, O_WRONLY};
use abi::nr;
use abi::poll::{IN_CLOSE_NOWRITE, IN_CLOSE_WRITE};
use kernel::call::FileCode;
use kernel::charge::{Bill, Held, Kept};
use kernel::file::{AccessTimes, Content, Ferry, File, Node, Positioned, Window};
use kernel::pipe::PipeEnd;
use kernel::stream::{Ready, Stream};
use machine::{KernelCell, KernelOnce, KernelValue};
use quaject::Made;

use super::backing::node_held;
use super::told::Told;
use crate::files::asked::Asked;
use crate::files::watchers::Watchers;

/// What a file is open on.
#[derive(Clone)]
pub enum Body {
    /// A regular file, a directory, or anything opened with `O_PATH`: all is in the node.
    Node,
    /// Anything that is read and written in order.
    Stream(Arc<dyn Stream>),
    /// What is asked for at positions: a regular file or directory that its file system's store keeps, a computed text.
    File(Arc<dyn File>),
}

pub struct OpenFile {
    node: Option<Arc<Node>>,
    pub body: Body,
    flags: KernelValue<u32>,
    /// Offset of the next read or write, in bytes (of a directory: the cookie), where there is no window.
    position: KernelValue<u64>,
    /// The window of a regular file: its position, and the words of its synthesized routines.
    window: KernelOnce<Box<Made<Window>>>,
    /// Calls at its position that Rust did, and that moved all they were asked to.
    whole_calls: KernelValue<u8>,
    /// The words of its `pread` and `pwrite`, once it has had some.
    positioned: KernelOnce<Box<Made<Positioned>>>,
    /// Positioned calls that Rust did.
    positioned_calls: KernelValue<u8>,
    /// The same for a regular file outside of the machine.
    ferry: Option<Box<Made<Ferry>>>,
    /// Synthesized entry points of `read` and `write`, kept alive with the file.
    pub code: KernelCell<FileCode>,
    /// `begin_write` of the node was called.
    counts_as_writer: KernelValue<bool>,
    /// Who watches the node has been told of the opening, and will be told of the closing.
    pub(super) is_in_use: KernelValue<bool>,
    /// Who is told by a signal that the file became ready (`O_ASYNC`).
    pub told: KernelValue<Told>,
    /// A write found no room: with `O_ASYNC` a signal tells when there is some.
    pub found_no_room: KernelValue<bool>,
    /// Messages that hold it on their way.
    in_flight: KernelValue<usize>,
    /// How often `poll` has asked in Rust whether it is ready, and what it got for that.
    polls: KernelValue<u8>,
    pub asked: Asked,
    /// The epoll instances that watch it.
    pub watchers: Watchers,
}

impl OpenFile {
    pub fn new(body: Body, node: Option<Arc<Node>>, flags: u32) -> OpenFile {
        let file = OpenFile {
            body,
            node,
            flags: KernelValue::new(flags),
            position: KernelValue::new(0),
            window: KernelOnce::new(),
            whole_calls: KernelValue::new(0),
            positioned: KernelOnce::new(),
            positioned_calls: KernelValue::new(0),
            ferry: None,
            code: KernelCell::new(FileCode::default()),
            counts_as_writer: KernelValue::new(false),
            is_in_use: KernelValue::new(false),
            told: KernelValue::new(Told::default()),
            found_no_room: KernelValue::new(false),
            in_flight: KernelValue::new(0),
            polls: KernelValue::new(0),
            asked: Asked::new(),
            watchers: Watchers::new(),
        };
        file.tell_waiting();
        file
    }

    pub fn stream(stream: Arc<dyn Stream>, flags: u32) -> OpenFile {
        OpenFile::new(Body::Stream(stream), None, flags)
    }

    /// Gives a regular file its window, which has the position from then on.
    pub fn set_window(&self, window: Box<Made<Window>>) {
        window.position.set(self.position());
        let _ = self.window.set(window);
    }

    /// Counts one more call that moved all it was asked to, and returns how many there were.
    pub fn count_whole_call(&self) -> u8 {
        self.whole_calls.set(self.whole_calls.get().saturating_add(1));
        self.whole_calls.get()
    }

    /// Gives a regular file outside of the machine its ferry, before anybody else sees the open file.
    pub fn set_ferry(&mut self, ferry: Box<Made<Ferry>>) {
        self.ferry = Some(ferry);
    }

    pub fn window(&self) -> Option<&Made<Window>> {
        self.window.get().map(|window| &**window)
    }

    pub fn positioned(&self) -> Option<&Made<Positioned>> {
        self.positioned.get().map(|positioned| &**positioned)
    }

    /// Gives a regular file what its `pread` and `pwrite` need; it has a window already.
    pub fn set_positioned(&self, positioned: Box<Made<Positioned>>) {
        let _ = self.positioned.set(positioned);
    }

    /// `poll` asks once more; whether it was so often that the file is worth code. It is said once.
    #[inline(always)]
    pub fn is_worth_asking(&self, most: u8) -> bool {
        let times = self.polls.get();
        if times <= most {
            self.polls.set(times + 1);
        }
        times == most
    }

    /// Counts one more positioned call that Rust does, and returns how many there were.
    pub fn count_positioned_call(&self) -> u8 {
        self.positioned_calls.set(self.positioned_calls.get().saturating_add(1));
        self.positioned_calls.get()
    }

    pub fn ferry(&self) -> Option<&Made<Ferry>> {
        self.ferry.as_deref()
    }

    /// Remembers that the node was told of a writer, so that it is told when the file is closed.
    pub fn count_as_writer(&self) {
        self.counts_as_writer.set(true);
    }

    /// Messages that hold it on their way.
    pub fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    /// Remembers whether a write of `bytes` bytes found no room for all of them.
    pub fn note_room(&self, written: &Result<usize, Errno>, bytes: usize) {
        let found_none = match written {
            Ok(written) => *written < bytes,
            Err(error) => *error == Errno::EAGAIN,
        };
        if found_none {
            self.found_no_room.set(true);
        }
    }

    /// So many more messages hold it, or fewer.
    pub fn count_flights(&self, more: isize) {
        self.in_flight.set(self.in_flight.get().saturating_add_signed(more));
    }

    pub fn node(&self) -> Option<&Arc<Node>> {
        self.node.as_ref()
    }

    pub fn flags(&self) -> u32 {
        self.flags.get()
    }

    pub fn set_flags(&self, flags: u32) {
        self.flags.set(flags);
        self.tell_waiting();
    }

    /// A stream's routines sleep only while everybody waits.
    fn tell_waiting(&self) {
        if self.is_nonblocking()
            && let Some(stream) = self.as_stream()
        {
            stream.does_not_wait();
        }
    }

    fn position_cell(&self) -> &KernelValue<u64> {
        match (self.window.get(), &self.ferry) {
            (Some(window), _) => &window.position,
            (None, Some(ferry)) => &ferry.position,
            (None, None) => &self.position,
        }
    }

    pub fn position(&self) -> u64 {
        self.position_cell().get()
    }

    pub fn set_position(&self, position: u64) {
        self.position_cell().set(position);
    }

    pub fn is_path_only(&self) -> bool {
        self.flags() & O_PATH != 0
    }

    pub fn is_readable(&self) -> bool {
        matches!(self.flags() & O_ACCMODE, O_RDONLY | O_RDWR) && !self.is_path_only()
    }

    pub fn is_writable(&self) -> bool {
        matches!(self.flags() & O_ACCMODE, O_WRONLY | O_RDWR) && !self.is_path_only()
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
        matches!(self.body, Body::Node | Body::File(_)) && self.node().is_some_and(|node| node.is_directory())
    }

    /// The opening of a regular file with bytes that its store keeps.
    pub fn outside(&self) -> Option<&Arc<dyn File>> {
        match &self.body {
            Body::File(opening) if opening.has_bytes() && !self.is_directory() => Some(opening),
            _ => None,
        }
    }

    /// A regular file with bytes of its own, wherever they are.
    pub fn has_data(&self) -> bool {
        self.content().is_some() || self.outside().is_some()
    }

    /// Bytes of a regular file.
    pub fn size(&self) -> u64 {
        match self.outside() {
            Some(opening) => opening.size(),
            None => self.content().map_or(0, |content| content.size()),
        }
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

    /// The number under which this open file holds locks: its address, which no process has as its number.
    pub fn lock_owner(&self) -> u64 {
        core::ptr::from_ref(self) as u64
    }

    /// The synthesized `read`, `write` and `lseek`, where there are some.
    pub fn callentries(&self) -> Option<Ref<'_, FileCode>> {
        // Whoever resizes a pipe takes the code from the files behind descriptors; a file on its way through a socket
        // still has routines that know where the bytes were.
        if self.stream_of::<PipeEnd>().is_some_and(|end| !end.pipe().has_code()) {
            return None;
        }
        if self.content().is_some() {
            self.withdraw_routines();
        }
        // Of a stream that is watched; a file's routines find no page in their window.
        if self.as_stream().is_some() && self.node.as_ref().is_some_and(|node| node.is_data_watched()) {
            return None;
        }
        Some(self.code.borrow())
    }

    /// Takes away what a regular file in memory may not have any more: its routines know nothing of rules.
    fn withdraw_routines(&self) {
        let Some(node) = &self.node else { return };
        if node.volume().rules().access_times == AccessTimes::Strict {
            // The routine notes one read after each change.
            let mut code = self.code.borrow_mut();
            (code.read, code.pread) = (None, None);
        }
        if node.content().is_some_and(|content| content.seals().forbid_writes()) {
            let mut code = self.code.borrow_mut();
            (code.write, code.pwrite) = (None, None);
        }
    }

    /// Whether it has a routine for this call.
    #[inline(always)]
    pub fn has_routine(&self, number: u64) -> bool {
        let code = self.code.borrow();
        match number {
            nr::READ => code.read.is_some(),
            nr::WRITE => code.write.is_some(),
            nr::LSEEK => code.seek.is_some(),
            nr::PREAD64 => code.pread.is_some(),
            _ => code.pwrite.is_some(),
        }
    }

    /// The addresses of `callentries`, for whoever only wants to see them.
    pub fn entry_points(&self) -> [Option<u64>; 3] {
        let Some(code) = self.callentries() else { return [None; 3] };
        [&code.read, &code.write, &code.seek].map(|code| code.as_ref().map(|code| code.entry().address()))
    }

    /// Adds what would come back if nobody had the file, to the bill of one of so many holders; `owner` holds locks on it.
    pub fn charge(&self, owner: u64, holders: usize, bill: &mut Bill) {
        let window = self.window.get().map_or(0, |_| size_of::<Window>());
        bill.share(Held::new(Kept::OpenFiles, size_of::<OpenFile>() + window), holders);
        match &self.body {
            Body::Node => self.node.iter().for_each(|node| bill.share(node_held(node), holders)),
            Body::Stream(stream) => bill.share(stream.held(), holders * Arc::strong_count(stream)),
            Body::File(opening) => bill.share(opening.held(), holders),
        }
        if let Some(node) = &self.node {
            let locks = node.locks().borrow();
            bill.share(locks.held(self.lock_owner()), holders);
            bill.share(locks.held(owner), Arc::strong_count(node));
        }
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
        let address = core::ptr::from_ref(self) as usize;
        self.watchers.end(address);
        if self.is_in_use.get() {
            self.tell(if self.is_writable() { IN_CLOSE_WRITE } else { IN_CLOSE_NOWRITE });
        }
        if let Some(window) = self.window.take() {
            Window::close(window);
        }
        if let Some(positioned) = self.positioned.take() {
            Positioned::close(positioned);
        }
        if let Some(ferry) = self.ferry.take() {
            Ferry::close(ferry);
        }
        if self.counts_as_writer.get()
            && let Some(node) = &self.node
        {
            node.end_write();
        }
        if let Some(node) = &self.node {
            // Whole-file locks and Linux's own record locks belong to the open file.
            let owner = self.lock_owner();
            let mut locks = node.locks().borrow_mut();
            locks.unlock_whole(owner);
            let released = locks.unlock_all(owner);
            drop(locks);
            if released {
                node.settle_outside();
            }
        }
    }
}
