//! The numbers of these calls.

use abi::nr;

use super::{attributes, notify, open, receive, send};
use crate::call::Entry;

pub const CALLS: &[Entry] = &[
    (nr::MQ_OPEN, |call, [a, b, c, d, ..]| open::mq_open(call, a, b as u32, c as u32, d)),
    (nr::MQ_UNLINK, |call, [a, ..]| open::mq_unlink(call, a)),
    (nr::MQ_TIMEDSEND, |call, arguments| send(call, arguments)),
    (nr::MQ_TIMEDRECEIVE, |call, arguments| receive(call, arguments)),
    (nr::MQ_NOTIFY, |call, [a, b, ..]| notify(call, a, b)),
    (nr::MQ_GETSETATTR, |call, [a, b, c, ..]| attributes(call, a, b, c)),
];
