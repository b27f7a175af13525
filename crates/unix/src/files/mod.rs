//! Descriptors, open files and what they can be open on.

pub(crate) mod asked;
pub(crate) mod backing;
pub(crate) mod channel;
pub(crate) mod closing;
pub(crate) mod descriptors;
pub(crate) mod dsp;
pub(crate) mod emptying;
pub(crate) mod lock_waits;
pub(crate) mod memory;
pub(crate) mod open_file;
pub(crate) mod random;
pub(crate) mod sound;
pub(crate) mod synthesize;
pub(crate) mod terminal;
pub(crate) mod text;
pub(crate) mod told;
pub(crate) mod watchers;
mod watching;

pub use backing::NodeBacking;
pub use channel::{ChannelStream, Channels};
pub use descriptors::{Descriptor, DescriptorTable, Recipe, Slot};
pub use memory::MemoryDevice;
pub use open_file::{Body, OpenFile};
pub use random::{Random, give_random};
pub use sound::Samples;
pub use synthesize::{consider, gain, is_worth_routines, remember, synthesize, synthesize_positioned, watched};
pub use terminal::{PtyMaster, TERMINAL_MAJOR, Terminal, Terminals, TtyStream, node_of as terminal_node};
pub use terminal::{WINDOW_MAJOR, WINDOWS};
pub use text::TextFile;
pub use told::{Hearer, Told};
pub use watchers::{Mark, Watcher, Watchers};
