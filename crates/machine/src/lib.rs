//! Layer 1: what a machine is, as words and traits; no implementation lives here
//! but the instructions that Rust code itself must contain to leave a thread (`SwitchOut`).
//!
//! Two machines implement these traits: `machine-pc` (bare hardware) and `machine-hosted`
//! (a Linux process). Everything above layer 2 knows only this crate.
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

mod cell;
mod channels;
mod clock;
mod courier;
mod dma;
mod entry;
pub mod failing;
mod foreign;
mod fragment;
mod frames;
mod grow;
mod lines;
mod link;
mod lock;
mod machine;
mod memory;
mod ordered;
mod player;
mod practice;
mod processor;
mod registers;
mod ring;
mod samples;
mod sorted;
pub mod stages;
pub mod stretch;
mod switch;
mod thread;
mod time;
mod translation;
mod words;

pub use cell::{KernelCell, KernelOnce, KernelOwn, KernelSlots, KernelValue, LocalCell, LocalValue};
pub use channels::{Channel, Channels, ReceiveCode, Received, SendCode};
pub use clock::{Clock, TimerCode};
pub use courier::{Courier, CourierLost};
pub use dma::{Dma, DmaMemory, Width};
pub use entry::{
    AlarmEntry, CallEntry, DescriptorEntries, DeviceEntry, Entry, FileEntry, Keeps, ReadyEntry, SampleEntry,
    SampleProcedure, Slot, TimerEntry,
};
pub use foreign::{
    About, CarryCode, Extended, Foreign, Handle, Hold, LastLink, LockedRange, Moment, Refused, Room, Stamp,
    WINDOW_PAGES,
};
pub use fragment::Fragment;
pub use frames::{FrameNumber, Frames};
pub use grow::{
    NoMemory, Text, TryGrow, TryQueue, try_arc, try_arc_cyclic, try_arc_list, try_arc_slice, try_box, try_box_slice,
    try_collect, try_filled, try_text, try_to_vec,
};
pub use lines::{
    Claimed, LINES_MAX, Line, LineControl, LineError, LineTable, Lines, Message, Procedure, ProcessorNumber, Trigger,
};
pub use link::{Arrived, Link, SumPlace};
pub use lock::{Entered, Held, PROCESSORS_MAX, abandon, arm};
pub use machine::Machine;
pub use memory::{
    BLOCK_BYTES_MAX, ENTRY_BYTES_MAX, FrameSource, HeapLive, KERNEL_FRAMES_MIN, Memory, PAGE_BYTES, PhysicalMemory,
    UserMemory,
};
pub use ordered::Ordered;
pub use player::{Pace, Player, PlayerLost};
pub use practice::Practice;
pub use processor::{Processor, Rewritten, Sleeping};
pub use registers::Registers;
pub use ring::Ring;
pub use samples::{SampleClock, Samples};
pub use sorted::Sorted;
pub use switch::SwitchOut;
pub use thread::{
    Access, BadVectorState, CALLS_MAX, Entries, Exception, FloatWords, GAUGE_FULL, GAUGE_PERIOD_NS, PAGE_LOST, Place,
    QUANTUM_LEAST_NS, QUANTUM_MOST_NS, SOFTWARE_AT, SOFTWARE_BYTES, Start, THREAD_FACTS, Threads, Tte, TteId, Upcalls,
};
pub use time::Nanos;
pub use translation::{Change, Mapping, NoFrames, Protection, Root, Shown, Translation, UserFault, VirtAddr};
pub use words::{Alarm, AlarmsWord, NEVER, ScheduleWords, WaitWords};
