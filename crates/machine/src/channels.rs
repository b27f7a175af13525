//! Byte channels to the world outside the machine.

use synth::Target;

use crate::{DeviceEntry, Entry, Fragment};

/// A byte channel to the world outside the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channel {
    /// Records to and from the host tool.
    Control,
    Terminal,
    StandardInput,
    StandardOutput,
    StandardError,
}

/// What a channel had to give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    Bytes(usize),
    /// Nothing now; `Upcalls::device` will tell.
    Nothing,
    /// The other side has closed and all its bytes have been read.
    End,
}

/// The code that sends bytes to a channel: the routine fills the buffer between the two fragments. If it does not come
/// to the second one nothing has happened.
pub struct SendCode {
    /// Chooses a buffer. Out: rdi = where its bytes go, eax = its number. Clobbers rcx. Leaves through `none` with rax,
    /// rcx and rdi lost.
    pub choose: Fragment,
    /// Gives the buffer to the device. In: eax = its number, edx = how many bytes it holds, at least 1 and at most
    /// `bytes_max`. Clobbers rcx, rdi.
    pub send: Fragment,
    /// Size of a buffer.
    pub bytes_max: usize,
}

/// The code that takes in what the terminal's device has received. A handler of the device's interrupt is made of it; it may run
/// in the midst of the kernel's Rust, and ends as one of samples does.
pub struct ReceiveCode {
    /// Two accesses that tell the device that its interrupt is seen. Clobbers rax, rsi.
    pub acknowledge: [Fragment; 2],
    /// Looks at the next buffer that is filled. Out: rax = its number, rsi = its bytes, ecx = how many. Clobbers rdi. Leaves
    /// through `none` if there is none.
    pub look: Fragment,
    /// Takes that buffer from what is filled, and gives it back to the device. In: eax = its number. Clobbers rcx, rdi.
    pub give_back: Fragment,
}

/// Byte channels to the world outside of the machine, and the code that moves their bytes.
pub trait Channels: Send + Sync {
    /// Takes as many bytes as the channel has room for.
    fn send(&self, channel: Channel, bytes: &[u8]) -> usize;
    fn receive(&self, channel: Channel, into: &mut [u8]) -> Received;
    /// Bytes that `receive` would give now.
    fn receivable(&self, channel: Channel) -> usize;
    /// Room that `send` has now.
    fn sendable(&self, channel: Channel) -> usize;
    /// All that was sent has reached the other side.
    fn is_drained(&self, channel: Channel) -> bool;
    /// The code to paste that sends to a channel, if the machine has such; it jumps to `none` when the channel has no room.
    fn send_code(&self, channel: Channel, none: Target) -> Option<SendCode> {
        let _ = (channel, none);
        None
    }
    /// The code to paste that receives from [`Channel::Terminal`], if the machine has such; it leaves through `none`.
    fn receive_code(&self, none: Target) -> Option<ReceiveCode> {
        let _ = none;
        None
    }
    /// Has the device's interrupt go to a handler that is made of `receive_code`. From now on `Upcalls::device` is not called,
    /// and `receive` gives whole buffers of the terminal's device, between interrupts.
    fn bind_receiver(&self, entry: Entry<DeviceEntry>) {
        let _ = entry;
    }
    /// Instructions that do nothing, to put between two accesses of a device: some devices freeze when they are used twice in a
    /// row, as code without calls does (S-23).
    fn access_space(&self) -> u32 {
        0
    }
    /// Devices do not interrupt: somebody must look at them (S-94).
    fn must_poll(&self) -> bool {
        false
    }
}
