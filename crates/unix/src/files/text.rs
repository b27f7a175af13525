//! A file whose content is computed (`/proc/meminfo`, `/dev/vcs1`), open.

use alloc::sync::Arc;

use abi::Errno;
use kernel::charge::{Held, Kept};
use kernel::file::{File, Node, VirtualFile};
use kernel::stream::{Io, UserRange};
use machine::{KernelCell, try_filled};

use crate::limits::PIECE_BYTES;

/// It shows the content as it was taken at the last read from the start, so that a program may keep it open and watch it.
pub struct TextFile {
    node: Arc<Node>,
    source: Arc<dyn VirtualFile>,
    taken: KernelCell<Arc<[u8]>>,
}

impl TextFile {
    /// Errors: those of the source.
    pub fn open(node: &Arc<Node>, source: Arc<dyn VirtualFile>) -> Result<Arc<TextFile>, Errno> {
        let content = source.content()?;
        Ok(TextFile::holding(node, source, &content))
    }

    /// What cannot be read is there to be written to.
    pub fn open_for_writing(node: &Arc<Node>, source: Arc<dyn VirtualFile>) -> Arc<TextFile> {
        TextFile::holding(node, source, &[])
    }

    fn holding(node: &Arc<Node>, source: Arc<dyn VirtualFile>, content: &[u8]) -> Arc<TextFile> {
        Arc::new(TextFile { node: node.clone(), source, taken: KernelCell::new(content.into()) })
    }

    /// Shows up to `bytes` bytes from `position` on, and returns how many there were.
    fn show(&self, position: u64, bytes: usize, take: impl FnOnce(&[u8]) -> Result<(), Errno>) -> Result<usize, Errno> {
        if let Some(seen) = self.source.window(position, bytes.min(PIECE_BYTES)) {
            let seen = seen?;
            let part = &seen[..seen.len().min(bytes)];
            return take(part).map(|()| part.len());
        }
        if position == 0 {
            let fresh = self.source.content()?;
            *self.taken.borrow_mut() = fresh.into();
        }
        let taken = self.taken.borrow().clone();
        let from = usize::try_from(position).ok().and_then(|position| taken.get(position..)).unwrap_or(&[]);
        let part = &from[..from.len().min(bytes)];
        take(part).map(|()| part.len())
    }
}

impl File for TextFile {
    fn node(&self) -> &Arc<Node> {
        &self.node
    }

    fn has_bytes(&self) -> bool {
        false
    }

    /// As `stat` has it.
    fn size(&self) -> u64 {
        0
    }

    fn end(&self) -> u64 {
        self.taken.borrow().len() as u64
    }

    fn read(&self, io: &Io<'_>, position: u64, to: UserRange) -> Result<usize, Errno> {
        self.show(position, to.bytes, |seen| io.copy_out(to.address, seen))
    }

    fn write(&self, io: &Io<'_>, position: u64, from: UserRange) -> Result<usize, Errno> {
        let mut bytes = try_filled(0, from.bytes.min(PIECE_BYTES))?;
        io.copy_in(from.address, &mut bytes)?;
        self.source.write(io.held().ok_or(Errno::EAGAIN)?, position, &bytes)
    }

    fn read_at(&self, position: u64, into: &mut [u8]) -> Result<usize, Errno> {
        self.show(position, into.len(), |seen| {
            into[..seen.len()].copy_from_slice(seen);
            Ok(())
        })
    }

    fn write_at(&self, _position: u64, _from: &[u8]) -> Result<usize, Errno> {
        Err(Errno::EINVAL)
    }

    fn held(&self) -> Held {
        Held::new(Kept::OpenFiles, self.taken.borrow().len())
    }
}
