//! Carriers of messages: a device that answers questions in any order.

use crate::Procedure;

/// The device is gone, or has said what cannot be: it is used no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CourierLost;

/// A device that is given questions and brings answers, each on a slot of its own that has room for [`Courier::room`] bytes both ways.
///
/// No call waits. Who uses it gives a slot to one question at a time, and reads the answer when [`Courier::next_answer`] has named
/// the slot.
pub trait Courier: Send + Sync {
    /// What the device calls itself.
    fn label(&self) -> &[u8];
    fn slots(&self) -> usize;
    fn room(&self) -> usize;
    /// Writes bytes of the slot's question, which is not under way.
    fn write(&self, slot: usize, offset: usize, bytes: &[u8]);
    /// Reads bytes of the slot's answer.
    fn read(&self, slot: usize, offset: usize, into: &mut [u8]);
    /// Gives the first `bytes` bytes of the slot's question to the device.
    fn send(&self, slot: usize, bytes: usize) -> Result<(), CourierLost>;
    /// A slot whose answer has come, and how many bytes the device says that it has.
    fn next_answer(&self) -> Result<Option<(usize, usize)>, CourierLost>;
    /// Has `procedure` called between interrupts when answers may have come.
    fn when_answered(&self, procedure: Procedure);
}
