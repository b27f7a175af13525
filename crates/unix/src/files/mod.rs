//! Descriptors, open files and what they can be open on.

mod backing;
mod channel;
mod descriptors;
pub(crate) mod memory;
mod open_file;
mod random;
pub(crate) mod sound;
mod synthesize;
mod terminal;
mod text;
mod told;
mod watchers;
mod watching;

pub use backing::NodeBacking;
pub use channel::{ChannelStream, Channels};
pub use descriptors::{Descriptor, DescriptorTable, Recipe, Slot};
pub use memory::MemoryDevice;
pub use open_file::{Body, OpenFile};
pub use random::{Random, give_random};
pub use sound::Samples;
pub use synthesize::{consider, is_worth_routines, remember, synthesize, synthesize_positioned, watched};
pub(crate) use terminal::window as windows;
pub use terminal::{PtyMaster, TERMINAL_MAJOR, Terminal, Terminals, TtyStream, node_of as terminal_node};
pub use terminal::{WINDOW_MAJOR, WINDOWS};
pub use text::TextFile;
pub use told::{Hearer, Told};
pub use watchers::{Mark, Watcher, Watchers};
