//! The controller's registers (3.3).

/// A window of registers, from its first byte on, and the time. A machine makes one where a controller is.
pub trait Registers {
    fn read8(&self, offset: u32) -> u8;
    fn read16(&self, offset: u32) -> u16;
    fn read32(&self, offset: u32) -> u32;
    fn write8(&self, offset: u32, value: u8);
    fn write16(&self, offset: u32, value: u16);
    fn write32(&self, offset: u32, value: u32);
    /// Nanoseconds, for waits.
    fn now(&self) -> u64;
}

/// Global capabilities (3.3.2).
pub const CAPABILITIES: u32 = 0x00;
/// Global control (3.3.7).
pub const CONTROL: u32 = 0x08;
pub const RUNS: u32 = 1 << 0;
/// Which codecs have said that they are there (3.3.9).
pub const CODECS: u32 = 0x0E;
/// Who may interrupt (3.3.14).
pub const INTERRUPTS: u32 = 0x20;
pub const ALL_INTERRUPTS: u32 = 1 << 31;
/// The ring of verbs (3.3.18 to 3.3.24).
pub const VERBS_LOW: u32 = 0x40;
pub const VERBS_HIGH: u32 = 0x44;
pub const VERBS_WRITTEN: u32 = 0x48;
pub const VERBS_READ: u32 = 0x4A;
pub const VERBS_READ_RESET: u16 = 1 << 15;
pub const VERBS_CONTROL: u32 = 0x4C;
pub const VERBS_SIZE: u32 = 0x4E;
/// The ring of answers (3.3.25 to 3.3.31).
pub const ANSWERS_LOW: u32 = 0x50;
pub const ANSWERS_HIGH: u32 = 0x54;
pub const ANSWERS_WRITTEN: u32 = 0x58;
pub const ANSWERS_WRITTEN_RESET: u16 = 1 << 15;
pub const ANSWERS_COUNT: u32 = 0x5A;
pub const ANSWERS_CONTROL: u32 = 0x5C;
pub const ANSWERS_STATUS: u32 = 0x5D;
pub const ANSWERS_ALL: u8 = 0b101;
pub const ANSWERS_SIZE: u32 = 0x5E;
/// Both rings: they are fetched and stored while this is set; answers are told by bit 0.
pub const RING_RUNS: u8 = 1 << 1;
pub const RING_TELLS: u8 = 1 << 0;

/// Where the registers of stream descriptors begin, and how many bytes each has (3.3.35).
pub const STREAMS: u32 = 0x80;
pub const STREAM_BYTES: u32 = 0x20;

/// Registers of a stream descriptor, from its first byte on (3.3.35 to 3.3.43).
pub mod stream {
    pub const CONTROL: u32 = 0x00;
    /// The upper byte of the control register: the stream's number.
    pub const NUMBER: u32 = 0x02;
    pub const STATUS: u32 = 0x03;
    pub const POSITION: u32 = 0x04;
    pub const BYTES: u32 = 0x08;
    pub const LAST: u32 = 0x0C;
    pub const FETCHED: u32 = 0x10;
    pub const FORMAT: u32 = 0x12;
    pub const LIST_LOW: u32 = 0x18;
    pub const LIST_HIGH: u32 = 0x1C;

    pub const RESET: u8 = 1 << 0;
    pub const RUNS: u8 = 1 << 1;
    pub const TELLS_PERIODS: u8 = 1 << 2;
    pub const TELLS_ERRORS: u8 = 1 << 4;

    /// A piece whose end is told has been played.
    pub const PERIOD: u8 = 1 << 2;
    pub const LATE: u8 = 1 << 3;
    pub const LIST_ERROR: u8 = 1 << 4;
}
