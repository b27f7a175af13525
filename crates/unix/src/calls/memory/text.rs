//! Text that the machine has rewritten, as the program brought it.

use core::ops::Range;

use kernel::space::Space;
use machine::Rewritten;

use crate::emulator::Unix;

/// A site of two bytes borrows a no-op at most this far away, and one must not go without the other.
const PAIR_BYTES_MAX: u64 = 256;

/// Takes back what the machine rewrote in `range`: somebody is about to look at it, to change it, or to move it to where the machine's
/// jumps would lead elsewhere.
pub fn restore(unix: &Unix, space: &mut Space, range: Range<u64>) {
    unix.machine.rewritten_text(&mut |Rewritten { address, now, original }| {
        let mut there = [0; 16];
        let there = &mut there[..now.len()];
        // Wherever a no-op goes the site that borrowed it goes, too.
        let around = if now.len() == 2 { 2 * PAIR_BYTES_MAX } else { PAIR_BYTES_MAX };
        let touches =
            address.0 < range.end.saturating_add(around) && range.start < address.0 + now.len() as u64 + around;
        let is_text = touches && space.is_text(address.0, now.len());
        if is_text && space.peek_bytes(address.0, there).is_ok() && there == now {
            // Without memory the site stays as it is; it does the same.
            let _ = space.poke_bytes(address.0, original);
        }
    });
}
