//! Descriptors, open files and what they can be open on.

mod backing;
mod channel;
mod descriptors;
mod devices;
mod open_file;

pub use backing::NodeBacking;
pub use channel::{ChannelStream, Channels};
pub use descriptors::{Descriptor, DescriptorTable, Slot};
pub use devices::{MemoryDevice, device_stream};
pub use open_file::{Body, OpenFile};
