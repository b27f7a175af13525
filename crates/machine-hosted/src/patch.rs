//! Call sites: from a trap to a jump.

use crate::signals::Context;

/// Looks whether the call instruction in front of `rip` can be replaced by a jump.
pub fn consider(_context: &Context) {}
