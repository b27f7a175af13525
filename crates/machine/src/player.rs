//! Players: devices that play frames of sound out of a ring.

use crate::Procedure;

/// How a ring is gone round: its first `period_bytes * periods` bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Frames a second, one of [`Player::rates`].
    pub hertz: u32,
    /// After so many bytes the device tells.
    pub period_bytes: usize,
    pub periods: usize,
}

/// The device does not do what it should, and is heard no more until it is told to play again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlayerLost;

/// A device that goes round a ring of frames and plays them: two samples of 16 bits each, little-endian, left and right. It plays what
/// the ring holds, whether that is new or not. No call sleeps.
pub trait Player: Send + Sync {
    /// Frames a second that it can play, from few to many; at least one.
    fn rates(&self) -> &[u32];
    /// Bytes that a ring has at most, and periods.
    fn limits(&self) -> (usize, usize);
    /// Begins to play the ring from its first byte.
    fn play(&self, pace: Pace) -> Result<(), PlayerLost>;
    /// Plays nothing any more.
    fn halt(&self);
    /// Stores bytes into the ring, whose end they do not cross.
    fn write(&self, offset: usize, from: &[u8]);
    /// The byte of the ring that is played now.
    fn position(&self) -> Result<usize, PlayerLost>;
    /// Bytes from there on that are under way already.
    fn fetched_ahead(&self) -> usize;
    /// The procedure is called between interrupts, when a period has ended.
    fn when_period(&self, procedure: Procedure);
}
