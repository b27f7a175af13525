//! What is there to be measured, and not for what a machine is for.

use synth::Target;

use crate::{DeviceEntry, Entry, Fragment, ReceiveCode, SampleProcedure};

/// What only those ask who measure: handlers without their devices.
pub trait Practice: Send + Sync {
    /// `Channels::receive_code` for a line that no device knows; `None` where there is none.
    fn practice_code(&self, none: Target) -> Option<ReceiveCode> {
        let _ = none;
        None
    }
    /// Raises the device's interrupt `count` times, led to `entry`, each with a byte on that line.
    fn practice(&self, entry: Entry<DeviceEntry>, count: u32) {
        let _ = (entry, count);
    }
    /// Raises the samples' interrupt `count` times, one after the other.
    fn raise_samples(&self, count: u32);
    /// The end of a handler that is called as a procedure, without the interrupt, and the compiled one of that kind; `None` where
    /// interrupts can be raised.
    fn sample_procedure(&self) -> Option<(Fragment, Entry<SampleProcedure>)> {
        None
    }
    /// Calls a handler that ends as a procedure `count` times.
    fn call_samples(&self, entry: Entry<SampleProcedure>, count: u32) {
        let _ = (entry, count);
    }
}
