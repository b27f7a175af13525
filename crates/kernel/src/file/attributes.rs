//! What a node is, in numbers: its kind, its times and the record that `stat` shows.

/// A moment of wall-clock time. Ordered as time is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Time {
    /// Seconds since 1970-01-01 UTC.
    pub seconds: i64,
    /// 0..1_000_000_000.
    pub nanos: u32,
}

/// Turns values of the processor's counter into wall-clock time.
pub trait CounterClock: Send + Sync {
    fn time_of_counter(&self, counter: u64) -> Time;
}

/// What kind of thing a node is; it never changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum NodeKind {
    Regular,
    Directory,
    Symlink,
    /// Major and minor number.
    CharDevice(u32, u32),
    /// Major and minor number.
    BlockDevice(u32, u32),
    Fifo,
    Socket,
}

impl NodeKind {
    /// The file type bits of `st_mode` (POSIX `S_IFMT`).
    pub const fn mode_bits(self) -> u32 {
        match self {
            NodeKind::Fifo => 0o010000,
            NodeKind::CharDevice(..) => 0o020000,
            NodeKind::Directory => 0o040000,
            NodeKind::BlockDevice(..) => 0o060000,
            NodeKind::Regular => 0o100000,
            NodeKind::Symlink => 0o120000,
            NodeKind::Socket => 0o140000,
        }
    }

    /// `d_type` of a directory listing: the file type bits, shifted down.
    pub const fn listing_type(self) -> u8 {
        (self.mode_bits() >> 12) as u8
    }

    pub const fn is_device(self) -> bool {
        matches!(self, NodeKind::CharDevice(..) | NodeKind::BlockDevice(..))
    }

    /// Major and minor number of a device, `(0, 0)` for anything else.
    pub const fn device_numbers(self) -> (u32, u32) {
        match self {
            NodeKind::CharDevice(major, minor) | NodeKind::BlockDevice(major, minor) => (major, minor),
            _ => (0, 0),
        }
    }
}

/// The permission bits and their three companions.
pub const SET_USER: u32 = 0o4000;
pub const SET_GROUP: u32 = 0o2000;
pub const STICKY: u32 = 0o1000;
/// All mode bits that `chmod` may set.
pub const MODE_BITS: u32 = 0o7777;

/// Everything `stat` tells, independent of any record layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attributes {
    /// Device number of the volume: major, minor.
    pub volume_device: (u32, u32),
    pub number: u64,
    pub kind: NodeKind,
    /// Permission bits with set-user, set-group and sticky; without the file type.
    pub mode: u32,
    pub links: u32,
    pub user: u32,
    pub group: u32,
    pub size_bytes: u64,
    /// Storage in use, in units of 512 bytes.
    pub blocks_512: u64,
    pub accessed: Time,
    pub modified: Time,
    pub changed: Time,
    pub born: Time,
}

/// What can change about a node besides its data.
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// Permission bits with set-user, set-group and sticky.
    pub mode: u32,
    pub user: u32,
    pub group: u32,
    pub links: u32,
    pub accessed: Time,
    pub modified: Time,
    pub changed: Time,
    pub born: Time,
}

/// How a new node looks.
#[derive(Clone, Copy, Debug)]
pub struct NewNode {
    pub mode: u32,
    pub user: u32,
    pub group: u32,
    pub now: Time,
}

/// What `statfs` tells about a volume. Blocks are pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VolumeNumbers {
    /// File system type number (Linux `f_type`).
    pub magic: u64,
    pub block_bytes: u64,
    pub blocks: u64,
    pub blocks_free: u64,
    pub nodes: u64,
    pub nodes_free: u64,
    pub name_bytes_max: u64,
    pub device: (u32, u32),
}
