//! Sending, blocking and handling signals.

mod deliver;
mod send;
mod stop;

pub use deliver::{before_user, fault, interrupted_as, page_fault};
pub use send::{send_to_group, send_to_process, send_to_task};

use super::Entry;

pub const CALLS: &[Entry] = &[];
