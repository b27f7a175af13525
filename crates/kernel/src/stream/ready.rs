//! What a stream can do without sleeping.

/// Linux's poll bits (`asm-generic/poll.h`), because every program's question is in them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ready(pub u32);

impl Ready {
    pub const IN: Ready = Ready(0x001);
    pub const PRIORITY: Ready = Ready(0x002);
    pub const OUT: Ready = Ready(0x004);
    pub const ERROR: Ready = Ready(0x008);
    pub const HANG_UP: Ready = Ready(0x010);
    pub const READ_NORMAL: Ready = Ready(0x040);
    pub const WRITE_NORMAL: Ready = Ready(0x100);
    pub const READ_HANG_UP: Ready = Ready(0x2000);
    pub const READABLE: Ready = Ready(0x041);
    pub const WRITABLE: Ready = Ready(0x104);
    pub const NONE: Ready = Ready(0);

    pub const fn with(self, other: Ready) -> Ready {
        Ready(self.0 | other.0)
    }

    pub const fn with_if(self, condition: bool, other: Ready) -> Ready {
        if condition { self.with(other) } else { self }
    }

    pub const fn intersects(self, other: Ready) -> bool {
        self.0 & other.0 != 0
    }
}

/// Counters that only grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Changes whenever more can be read.
    pub arrived: u64,
    /// Changes whenever there is more room to write.
    pub departed: u64,
}
