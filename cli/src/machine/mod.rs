//! The virtual machine: how it is accelerated, started, talked to and ended.

pub mod accel;
pub mod clock;
mod epilogue;
pub mod escape;
pub mod hosted;
pub mod kernel;
pub mod net;
mod qemu;
mod relay;
mod session;
pub mod sound;
pub mod terminal;

pub use clock::tsc_hz;
pub use qemu::{Archive, Folder, HIGH_MEMORY_OFFSET, Machine};
pub use session::{Console, Wishes, run};
