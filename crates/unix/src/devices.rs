//! Character devices: their names, what an open of one gives, and the requests that it alone knows.

use alloc::sync::Arc;
use core::fmt;

use abi::Errno;
use kernel::file::Node;

use crate::call::{Call, CallResult};
use crate::calls::terminal;
use crate::files::open_file::{Body, OpenFile};
use crate::files::terminal::window as windows;
use crate::files::{memory, sound};

/// Major and minor number (Linux `devices.txt`).
pub type Numbers = (u32, u32);

/// Shows a name below `/dev/`, its numbers and the mode of its node.
pub type Name<'a> = dyn FnMut(fmt::Arguments<'_>, Numbers, u32) + 'a;

/// What an open gives.
pub type Opened = Result<Body, Errno>;

/// A family of devices.
pub struct Device {
    /// Shows the names that are there from the start.
    pub names: fn(&mut Name<'_>),
    /// What is open when a program opens one; `None`: these numbers are another's.
    pub open: fn(&Call<'_>, &Arc<Node>, Numbers, u32) -> Option<Opened>,
    /// A request (`ioctl`); `None`: the file is open on something else.
    pub request: fn(&Call<'_>, &Arc<OpenFile>, u32, u64) -> Option<CallResult>,
}

impl Device {
    /// For devices that know no requests.
    pub fn no_request(_: &Call<'_>, _: &Arc<OpenFile>, _: u32, _: u64) -> Option<CallResult> {
        None
    }
}

/// All of them, a line for each.
static DEVICES: &[&Device] = &[&memory::DEVICE, &terminal::DEVICE, &windows::DEVICE, &sound::DEVICE];

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
