//! What this crate cannot do, though it has the machine in its hands: it forbids unsafe code, and what can forge hardware (a frame, a
//! code address, a root of translation) is a type that only its owner makes. Each of these would take the machine over if it compiled;
//! the error is named (a nightly compiler checks which it is).
//!
//! A frame is no number, neither to write to
//! ```compile_fail,E0423
//! fn overwrite(machine: &dyn machine::Machine) {
//!     machine.write(machine::FrameNumber(0x200), 0, &[0xCC; 4096]);
//! }
//! ```
//! ```compile_fail,E0308
//! fn overwrite(machine: &dyn machine::Machine) {
//!     machine.write(0x200, 0, &[0xCC; 4096]);
//! }
//! ```
//! nor to show to a program, nor to reckon with,
//! ```compile_fail,E0423
//! fn show(space: &dyn machine::Translation, all: machine::Protection) {
//!     let _ = space.map(machine::VirtAddr(0x1000), machine::FrameNumber(1), all);
//! }
//! ```
//! ```compile_fail,E0616
//! fn next(mapping: &mut machine::Mapping) {
//!     mapping.frame.0 += 1;
//! }
//! ```
//! and neither the frame of a page nor the pool's memory is to be had.
//! ```compile_fail,E0624
//! fn later(page: kernel::space::Page, machine: &dyn machine::Machine) {
//!     let frame = page.frame();
//!     drop(page);
//!     machine.fill(frame, 0, 4096, 0xCC);
//! }
//! ```
//! ```compile_fail,E0624
//! fn memory(pool: &kernel::space::FramePool) {
//!     pool.memory();
//! }
//! ```
//! Frames are not adopted twice, nor made.
//! ```compile_fail,E0308
//! fn adopt(pool: &'static kernel::space::FramePool, frame: machine::FrameNumber) {
//!     pool.adopt(frame);
//! }
//! ```
//! ```compile_fail,E0133
//! let frames = machine::Frames::new(0..0x1000);
//! ```
//! A call leads to code of its contract, not to a number,
//! ```compile_fail,E0308
//! fn bind(tte: &dyn machine::Tte) {
//!     tte.bind_call(0, Some(0x1234_5678));
//! }
//! ```
//! ```compile_fail,E0133
//! fn bind(tte: &dyn machine::Tte) {
//!     tte.bind_call(0, Some(machine::Entry::new(0x1234_5678)));
//! }
//! ```
//! and so do alarms, the timer and the clock of samples;
//! ```compile_fail,E0308
//! fn alarm(scheduler: &kernel::schedule::Scheduler, what: kernel::schedule::AlarmTarget) {
//!     scheduler.set_alarm_anew(None, machine::Nanos(1), what, 0x1234_5678, || ());
//! }
//! ```
//! ```compile_fail,E0308
//! fn ring(machine: &dyn machine::Machine) {
//!     machine.schedule_words().routine.store(0x1234_5678);
//! }
//! ```
//! the alarms that the timer's code takes are alarms.
//! ```compile_fail,E0599
//! fn ring(machine: &dyn machine::Machine) {
//!     machine.schedule_words().alarms.store(0x1234_5678, core::sync::atomic::Ordering::Relaxed);
//! }
//! ```
//! ```compile_fail,E0308
//! fn sample(clock: machine::SampleClock) {
//!     clock.slot.store(0x1234_5678);
//! }
//! ```
//! and none leads to code of another contract.
//! ```compile_fail,E0308
//! fn bind(tte: &dyn machine::Tte, device: machine::Entry<machine::DeviceEntry>) {
//!     tte.bind_call(0, Some(device));
//! }
//! ```
//! ```compile_fail,E0308
//! fn bind(tte: &dyn machine::Tte, timer: machine::Entry<machine::TimerEntry>) {
//!     tte.bind_call(0, Some(timer.under()));
//! }
//! ```
//! ```compile_fail,E0451
//! fn entries(tte: &dyn machine::Tte) {
//!     let entries = machine::DescriptorEntries { address: 0x1000, count: 9, _table: std::sync::Arc::new(()) };
//!     let _ = tte.bind_descriptor_call(0, entries);
//! }
//! ```
//! Nobody says by himself that his code keeps a machine's contract,
//! ```compile_fail,E0117
//! impl machine::Keeps<machine::CallEntry> for machine::DeviceEntry {}
//! ```
//! and nobody leads the processor by tables of his own.
//! ```compile_fail,E0423
//! let root = machine::Root(0x1000);
//! ```
//! ```compile_fail,E0200
//! # use machine::{FrameNumber, Mapping, NoFrames, Protection, Translation, VirtAddr};
//! struct Mine;
//! impl Translation for Mine {
//!     fn map(&self, _: VirtAddr, _: FrameNumber, _: Protection) -> Result<(), NoFrames> { Ok(()) }
//!     fn unmap(&self, _: VirtAddr) -> Option<Mapping> { None }
//!     fn protect(&self, _: VirtAddr, _: Protection) {}
//!     fn query(&self, _: VirtAddr) -> Option<Mapping> { None }
//!     fn next_present(&self, _: VirtAddr, _: VirtAddr) -> Option<(VirtAddr, Mapping)> { None }
//! }
//! ```
//! Nobody says that the kernel's lock is held, who was not told.
//! ```compile_fail,E0133
//! let entered = machine::Entered::new();
//! ```
//! ```compile_fail,E0423
//! let held = machine::Held(core::marker::PhantomData);
//! ```
//! What several threads reach may change threads.
//! ```compile_fail,E0277
//! fn share<T: Sync>(_: &T) {}
//! share(&machine::KernelCell::new(std::rc::Rc::new(0)));
//! ```
//!
//! What it may do, so that the above does not fail for want of a dependency:
//! ```
//! fn bind(tte: &dyn machine::Tte, code: machine::Entry<machine::CallEntry>) {
//!     tte.bind_call(0, Some(code));
//! }
//! fn fill(page: &kernel::space::Page) {
//!     page.fill(0, 4096, 0xCC);
//! }
//! fn adopt(pool: &'static kernel::space::FramePool, frames: &mut machine::Frames) {
//!     drop(pool.adopt(frames));
//! }
//! fn show(space: &dyn machine::Translation, seen: machine::Mapping) {
//!     let _ = space.map(machine::VirtAddr(0x1000), seen.frame, seen.protection);
//! }
//! ```
