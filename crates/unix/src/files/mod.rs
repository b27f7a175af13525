//! Descriptors, open files and what they can be open on.

mod backing;
mod channel;
mod descriptors;
mod devices;
mod open_file;
mod random;
mod sound;
mod synthesize;
mod terminal;
mod text;
mod told;
mod watchers;
mod watching;

pub use backing::NodeBacking;
pub use channel::{ChannelStream, Channels};
pub use descriptors::{Descriptor, DescriptorTable, Recipe, Slot};
pub use devices::{MemoryDevice, device_stream};
pub use open_file::{Body, OpenFile};
pub use random::{Random, give_random};
pub use sound::{Samples, sound_stream};
pub use synthesize::{consider, is_worth_routines, remember, synthesize, synthesize_positioned, watched};
pub use terminal::{CELLS_MAJOR, Cells, WINDOW_MAJOR, WINDOWS};
pub use terminal::{PtyMaster, TERMINAL_MAJOR, Terminal, Terminals, TtyStream, node_of as terminal_node};
pub use text::TextFile;
pub use told::{Hearer, Told};
pub use watchers::{Mark, Watcher, Watchers};
