//! What messages are made of.

/// The client's name for a place or an opening on the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fid(pub u32);

/// No fid: no authentication.
pub const NO_FID: Fid = Fid(u32::MAX);
/// The tag of the first message.
pub const NO_TAG: u16 = u16::MAX;

/// The server's name for a file, whatever its path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Qid {
    pub kind: u8,
    /// Changes with the file, as far as the server knows.
    pub version: u32,
    pub path: u64,
}

/// What `stat` tells. Times are seconds and nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    pub qid: Qid,
    pub mode: u32,
    pub user: u32,
    pub group: u32,
    pub links: u64,
    pub device: u64,
    pub bytes: u64,
    pub blocks_512: u64,
    pub accessed: (u64, u64),
    pub modified: (u64, u64),
    pub changed: (u64, u64),
}

/// A new value for a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TimeWish {
    #[default]
    Keep,
    Now,
    At(u64, u64),
}

/// Attributes to be set; what is `None` stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Change {
    pub mode: Option<u32>,
    pub user: Option<u32>,
    pub group: Option<u32>,
    pub bytes: Option<u64>,
    pub accessed: TimeWish,
    pub modified: TimeWish,
}

/// What `statfs` tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Space {
    pub magic: u32,
    pub block_bytes: u32,
    pub blocks: u64,
    pub blocks_free: u64,
    pub blocks_available: u64,
    pub nodes: u64,
    pub nodes_free: u64,
    pub name_bytes_max: u32,
}

/// A name in a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    pub qid: Qid,
    /// Where the next one begins.
    pub next: u64,
    /// As Linux's `d_type`.
    pub kind: u8,
    pub name: &'a [u8],
}

/// How far a walk has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Walked {
    /// To the last name; what it is. The new fid stands for it.
    Whole(Qid),
    /// So many names; the new fid stands for nothing.
    Part(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockKind {
    Read,
    Write,
    None,
}

/// A lock on `first..first + bytes`; 0 bytes: to the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockRecord {
    pub kind: LockKind,
    pub first: u64,
    pub bytes: u64,
    pub process: u32,
}

/// Linux's flags for opening, which the protocol has taken over.
pub mod open {
    pub const READ: u32 = 0;
    pub const WRITE: u32 = 1;
    pub const READ_WRITE: u32 = 2;
}
