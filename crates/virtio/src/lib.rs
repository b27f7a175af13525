//! Virtio 1.2 from the driver's side: transports, split queues, drivers. A device is not believed: what it says is checked against what
//! it was given, and one that lies is used no more.
//!
//! ```text
//!   driver (entropy, net, share) ── Queue ── Dma: descriptors, rings, tables of indirect ones
//!          └────────── Transport ── Window: registers in memory (mmio, or what PCI's capabilities name)
//! ```
//! Must never touch memory but through `machine::Dma`, nor a register but through a [`Window`] that a machine made; never wait without
//! being told how long; and never know what a program is.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod entropy;
mod net;
mod queue;
mod share;
mod start;
mod transport;

pub use entropy::{Entropy, Lost};
pub use net::{Frame, Net, NetLost, NotSent};
pub use queue::{Finished, Misbehaved, Piece, Queue, Refused, Token};
pub use share::Share;
pub use start::{StartError, start};
pub use transport::mmio::{Mmio, device_id};
pub use transport::pci::{ConfigSpace, NotVirtio, Pci, capability, kind};
pub use transport::{QueuePlace, Transport, Window};

/// Features that this crate knows (virtio 1.2, 6).
pub mod feature {
    pub const INDIRECT: u64 = 1 << 28;
    pub const EVENT_INDEX: u64 = 1 << 29;
    pub const VERSION_1: u64 = 1 << 32;
}

/// What a device is (virtio 1.2, 5).
pub mod id {
    pub const NET: u32 = 1;
    pub const CONSOLE: u32 = 3;
    pub const ENTROPY: u32 = 4;
    /// A folder shared by 9P.
    pub const SHARE: u32 = 9;
}
