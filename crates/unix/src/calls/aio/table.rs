//! The numbers of these calls.

use abi::nr;

use super::{get_events, io_cancel, io_destroy, io_setup, io_submit, pget_events};
use crate::call::Entry;

pub const CALLS: &[Entry] = &[
    (nr::IO_SETUP, |call, [a, b, ..]| io_setup(call, a, b)),
    (nr::IO_DESTROY, |call, [a, ..]| io_destroy(call, a)),
    (nr::IO_SUBMIT, |call, [a, b, c, ..]| io_submit(call, a, b as i64, c)),
    (nr::IO_GETEVENTS, |call, [a, b, c, d, e, _]| get_events(call, [a, b, c, d, e])),
    (nr::IO_PGETEVENTS, |call, arguments| pget_events(call, arguments)),
    (nr::IO_CANCEL, |call, [a, b, ..]| io_cancel(call, a, b)),
];
