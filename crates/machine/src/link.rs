//! Links: devices that carry frames of an Ethernet.

use crate::Procedure;

/// Where the sum of a frame stands that the device shall fill in: over all bytes from `start` on, at `offset` from there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SumPlace {
    pub start: u16,
    pub offset: u16,
}

/// A frame that has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrived {
    /// 0: it was too long, and is lost.
    pub bytes: usize,
    /// Its sums need not be looked at.
    pub is_checked: bool,
}

/// A device that sends and receives frames. No call waits.
pub trait Link: Send + Sync {
    /// Its address on the Ethernet.
    fn address(&self) -> [u8; 6];
    /// The longest packet in a frame.
    fn mtu(&self) -> u16;
    /// Whether it fills in sums of what is sent.
    fn sums(&self) -> bool;
    /// The next frame that has come, in `into`; `None`: there is none, and there never will be if the device is lost.
    fn receive(&self, into: &mut [u8]) -> Option<Arrived>;
    /// Whether a frame could be sent now.
    fn has_room(&self) -> bool;
    /// Gives a frame to the device, which hears of it by [`Link::tell`]. False: it is lost.
    fn send(&self, frame: &[u8], sum: Option<SumPlace>) -> bool;
    /// Tells the device of what was sent.
    fn tell(&self);
    /// Has the procedure called when a frame comes, and if `for_room` also when one has gone. True: something has come meanwhile.
    fn expect_news(&self, for_room: bool) -> bool;
    /// The procedure is called between interrupts.
    fn when_news(&self, procedure: Procedure);
}
