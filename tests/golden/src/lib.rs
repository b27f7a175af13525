//! Layer 7: a bench for synthesized code on the host. It has a machine that is real enough to make and run call routines
//! in this process: memory below 2 GB, a code store, a program's memory with holes in it, and a way in and out.
//!
//! ```text
//!   automaton.rs generated state machines
//!   arena.rs     the allocator: everything that code names lies below 2 GB
//!   bench.rs     the machine and its fragments
//!   device.rs    the other side of the ring that routines send through
//!   program.rs   the memory of the program that calls
//!   entry.rs     enters a routine as a thread's dispatch does, and looks at what comes back
//!   sample.rs    raises the sample clock
//! ```

mod arena;
mod automaton;
mod bench;
mod clock;
mod device;
mod entry;
mod line;
mod program;
mod sample;

pub use arena::low_memory;
pub use automaton::{Automaton, INSTRUCTIONS};
pub use bench::{Bench, OnlyTte, SERIALIZED, TAG, bench, code_store};
pub use clock::{Clock, KernelEntry};
pub use device::{BUFFERS, Device};
pub use entry::{Caller, Outcome, Supply, Way, execute};
pub use line::Line;
pub use means::Random;
pub use program::{AREA_BYTES, Access, Program};
pub use sample::raise as raise_sample;
