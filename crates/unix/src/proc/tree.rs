//! Directories that are tables of entries.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use kernel::file::{
    Data, LinkTarget, Listed, NewNode, Node, NodeKind, VirtualDirectory, VirtualFile, VirtualLink, Visit,
};

use machine::Held;

use crate::emulator::Unix;

/// What the entries of a table tell about: the machine, or one process.
pub trait Subject: Clone + Send + Sync + 'static {
    /// User and group of the whole.
    fn owner(&self) -> (u32, u32);

    /// User and group of an entry with these permission bits.
    fn keeper(&self, unix: &Unix, kind: NodeKind, mode: u32) -> (u32, u32) {
        let _ = (unix, kind, mode);
        self.owner()
    }

    /// What a window that is opened now shows, whatever comes of the subject.
    fn bound(&self) -> Self {
        self.clone()
    }

    /// Entries can still be looked up (`ESRCH` if not) and listed.
    fn is_there(&self) -> bool {
        true
    }
}

/// The machine as a whole.
#[derive(Clone, Copy)]
pub struct Whole;

impl Subject for Whole {
    fn owner(&self) -> (u32, u32) {
        (0, 0)
    }
}

pub type Reader<S> = fn(&'static Unix, &S) -> Result<Vec<u8>, Errno>;
/// Takes what one `write` brought.
pub type Writer<S> = fn(Held<'_>, &'static Unix, &S, &[u8]) -> Result<(), Errno>;

/// Up to so many bytes from a position on.
pub type WindowReader<S> = fn(&'static Unix, &S, u64, usize) -> Result<Vec<u8>, Errno>;
pub type WindowWriter<S> = fn(Held<'_>, &'static Unix, &S, u64, &[u8]) -> Result<usize, Errno>;

/// What stands behind a name.
pub enum What<S: 'static> {
    File(Reader<S>),
    /// A file that nobody may open for writing, whatever their rights.
    Fixed(Reader<S>),
    Setting(Reader<S>, Writer<S>),
    /// Bytes by position, which nobody keeps.
    Window(WindowReader<S>, WindowWriter<S>),
    Table(&'static [Entry<S>]),
    Directory(fn(&'static Unix, &S) -> Arc<dyn VirtualDirectory>),
    Link(fn(&'static Unix, &S) -> Result<LinkTarget, Errno>),
}

/// One name of a table.
pub struct Entry<S: 'static> {
    pub name: &'static str,
    /// Permission bits.
    pub mode: u32,
    pub what: What<S>,
}

/// A file that everybody may read.
pub const fn file<S>(name: &'static str, read: Reader<S>) -> Entry<S> {
    Entry { name, mode: 0o444, what: What::File(read) }
}

/// A file that everybody may read and nobody may write.
pub const fn fixed<S>(name: &'static str, read: Reader<S>) -> Entry<S> {
    Entry { name, mode: 0o444, what: What::Fixed(read) }
}

/// A file that only the owner may read.
pub const fn private<S>(name: &'static str, read: Reader<S>) -> Entry<S> {
    Entry { name, mode: 0o400, what: What::File(read) }
}

/// A file that the owner may write.
pub const fn setting<S>(name: &'static str, read: Reader<S>, write: Writer<S>) -> Entry<S> {
    Entry { name, mode: 0o644, what: What::Setting(read, write) }
}

pub const fn table<S>(name: &'static str, entries: &'static [Entry<S>]) -> Entry<S> {
    Entry { name, mode: 0o555, what: What::Table(entries) }
}

pub const fn link<S>(name: &'static str, target: fn(&'static Unix, &S) -> Result<LinkTarget, Errno>) -> Entry<S> {
    Entry { name, mode: 0o777, what: What::Link(target) }
}

impl<S> Entry<S> {
    pub fn kind(&self) -> NodeKind {
        match self.what {
            What::File(_) | What::Fixed(_) | What::Setting(..) | What::Window(..) => NodeKind::Regular,
            What::Table(_) | What::Directory(_) => NodeKind::Directory,
            What::Link(_) => NodeKind::Symlink,
        }
    }
}

/// A directory whose names are the entries of a table.
pub struct Table<S: Subject> {
    pub unix: &'static Unix,
    pub subject: S,
    pub entries: &'static [Entry<S>],
}

impl<S: Subject> Table<S> {
    fn data(&self, entry: &'static Entry<S>) -> Data {
        let (unix, subject) = (self.unix, self.subject.clone());
        match &entry.what {
            What::File(_) | What::Fixed(_) | What::Setting(..) => {
                Data::VirtualFile(Arc::new(TableFile { unix, subject, entry }))
            }
            What::Window(..) => Data::VirtualFile(Arc::new(TableFile { unix, subject: subject.bound(), entry })),
            What::Table(entries) => Data::VirtualDirectory(Arc::new(Table { unix, subject, entries })),
            What::Directory(make) => Data::VirtualDirectory(make(unix, &subject)),
            What::Link(target) => Data::VirtualLink(Arc::new(TableLink { unix, subject, target: *target })),
        }
    }
}

impl<S: Subject> VirtualDirectory for Table<S> {
    fn lookup(&self, this: &Arc<Node>, name: &[u8]) -> Result<Arc<Node>, Errno> {
        if !self.subject.is_there() {
            return Err(Errno::ESRCH);
        }
        let entry = self.entries.iter().find(|entry| entry.name.as_bytes() == name).ok_or(Errno::ENOENT)?;
        let owner = self.subject.keeper(self.unix, entry.kind(), entry.mode);
        Ok(produce(self.unix, this, name, (entry.kind(), entry.mode), owner, self.data(entry)))
    }

    fn list(&self, this: &Arc<Node>, from: u64, visit: &mut dyn FnMut(&Listed<'_>) -> Visit) {
        if !self.subject.is_there() {
            return;
        }
        for (cookie, entry) in (0..).zip(self.entries).skip(from as usize) {
            if show(this, cookie, entry.kind(), entry.name.as_bytes(), visit) == Visit::Stop {
                return;
            }
        }
    }

    fn subdirectories(&self) -> u32 {
        self.entries.iter().filter(|entry| entry.kind() == NodeKind::Directory).count() as u32
    }
}

struct TableFile<S: 'static> {
    unix: &'static Unix,
    subject: S,
    entry: &'static Entry<S>,
}

impl<S: Subject> VirtualFile for TableFile<S> {
    fn content(&self) -> Result<Vec<u8>, Errno> {
        match self.entry.what {
            What::File(read) | What::Fixed(read) | What::Setting(read, _) => read(self.unix, &self.subject),
            // Whoever may not look may not open it.
            What::Window(read, _) => read(self.unix, &self.subject, 0, 0),
            _ => Err(Errno::EINVAL),
        }
    }

    fn window(&self, position: u64, bytes: usize) -> Option<Result<Vec<u8>, Errno>> {
        match self.entry.what {
            What::Window(read, _) => Some(read(self.unix, &self.subject, position, bytes)),
            _ => None,
        }
    }

    fn is_fixed(&self) -> bool {
        matches!(self.entry.what, What::Fixed(_))
    }

    fn write(&self, held: Held<'_>, position: u64, bytes: &[u8]) -> Result<usize, Errno> {
        match self.entry.what {
            What::Window(_, write) => write(held, self.unix, &self.subject, position, bytes),
            What::Setting(_, write) => write(held, self.unix, &self.subject, bytes).map(|()| bytes.len()),
            _ => Err(Errno::EINVAL),
        }
    }
}

struct TableLink<S> {
    unix: &'static Unix,
    subject: S,
    target: fn(&'static Unix, &S) -> Result<LinkTarget, Errno>,
}

impl<S: Subject> VirtualLink for TableLink<S> {
    fn target(&self) -> Result<LinkTarget, Errno> {
        (self.target)(self.unix, &self.subject)
    }
}

/// A node of a produced directory.
pub fn produce(
    unix: &Unix,
    parent: &Arc<Node>,
    name: &[u8],
    (kind, mode): (NodeKind, u32),
    (user, group): (u32, u32),
    data: Data,
) -> Arc<Node> {
    let new = NewNode { mode, user, group, now: unix.wall_time() };
    Node::produce(parent, name, number_of(parent, name), kind, data, new)
}

/// Shows one name of a produced directory; cookies are dense.
pub fn show(
    parent: &Node,
    cookie: u64,
    kind: NodeKind,
    name: &[u8],
    visit: &mut dyn FnMut(&Listed<'_>) -> Visit,
) -> Visit {
    visit(&Listed { cookie, next: cookie + 1, number: number_of(parent, name), kind, name })
}

/// The number of a produced node: the same whenever the name is looked up. It is a hash (FNV-1a, 64 bits) of
/// the path, because nothing remembers which numbers are taken.
fn number_of(parent: &Node, name: &[u8]) -> u64 {
    const PRIME: u64 = 0x100_0000_01b3;
    let start = parent.number() ^ 0xcbf2_9ce4_8422_2325;
    let hash = name.iter().fold(start.wrapping_mul(PRIME), |hash, byte| (hash ^ *byte as u64).wrapping_mul(PRIME));
    (hash ^ hash >> 48) & 0xFFFF_FFFF_FFFF
}

/// A decimal number as names and settings have it: digits only, no leading zero in a name of more digits.
pub fn parse_number(text: &[u8]) -> Option<u32> {
    if text.is_empty() || (text.len() > 1 && text[0] == b'0') {
        return None;
    }
    core::str::from_utf8(text).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parse_number;

    #[test]
    fn a_process_has_one_name() {
        assert_eq!(parse_number(b"1"), Some(1));
        assert_eq!(parse_number(b"0"), Some(0));
        assert_eq!(parse_number(b"4294967295"), Some(u32::MAX));
        for other in [b"".as_slice(), b"01", b"+1", b"-1", b"1a", b" 1", b"4294967296", b"\xff"] {
            assert_eq!(parse_number(other), None);
        }
    }
}
