//! Character devices: their names, what an open of one gives, and the requests that it alone knows.

pub(crate) mod table;

use alloc::sync::Arc;
use core::fmt;

use abi::Errno;
use kernel::file::Node;

use crate::call::{Call, CallResult};
use crate::files::open_file::{Body, OpenFile};

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
