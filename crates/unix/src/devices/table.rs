//! All devices.

use alloc::sync::Arc;

use abi::Errno;
use kernel::file::Node;

use super::{Device, Name, Numbers};
use crate::call::{Call, CallResult};
use crate::calls::terminal;
use crate::files::open_file::{Body, OpenFile};
use crate::files::terminal::window;
use crate::files::{dsp, memory, sound};

/// All of them, a line for each.
static DEVICES: &[&Device] = &[&memory::DEVICE, &terminal::DEVICE, &window::DEVICE, &sound::DEVICE, &dsp::DEVICE];

/// Shows the names of all devices.
pub fn each_name(show: &mut Name<'_>) {
    DEVICES.iter().for_each(|device| (device.names)(show));
}

/// Error: `ENXIO`; those of the device.
pub fn open(call: &Call<'_>, node: &Arc<Node>, numbers: Numbers, flags: u32) -> Result<Body, Errno> {
    DEVICES.iter().find_map(|device| (device.open)(call, node, numbers, flags)).unwrap_or(Err(Errno::ENXIO))
}

/// Error: `ENOTTY`; those of the device.
pub fn request(call: &Call<'_>, file: &Arc<OpenFile>, request: u32, argument: u64) -> CallResult {
    let mut served = DEVICES.iter().filter_map(|device| (device.request)(call, file, request, argument));
    served.next().unwrap_or(Err(Errno::ENOTTY))
}
