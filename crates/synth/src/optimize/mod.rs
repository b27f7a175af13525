//! The specialized peephole optimizer (S-14; SOSP'89 2.3, thesis chapter 3): what pasted fragments do twice is done once.
//!
//! ```text
//!   draft ─ decode ─► instructions ─ facts, forward ─► verdicts ─ flags, backward ─► plan: what to cut, what to rewrite
//! ```
//! - *dead test elimination*: a comparison that was already made on unchanged operands, with its branch;
//! - *redundant loads and stores*: of what was just loaded or stored, in a register that still holds it;
//! - *jump threading*: a jump to a jump, also past what is known to do nothing on this way; a jump to the next instruction;
//! - code that no way leads to any more;
//! - the short form of jumps that do not go far.
//!
//! A template without holes of which nothing can be known counts as one instruction, and is decoded once.
//!
//! Memory is assumed to stay only for words named by their address, because those are the kernel's own and nobody runs
//! between two instructions of a routine but a page fault: an access of the program's memory ends what is known.
//! Flags are nobody's at the ends of a routine and where faults land.

mod decode;
mod facts;
mod flow;
mod instruction;
mod operand;
mod plan;

#[cfg(test)]
mod tests;

pub use decode::decode;
pub use instruction::{Flags, Instruction, Kind, Memory};
pub use plan::Plan;

use crate::draft::Draft;

/// Longer drafts are left as they are: what is kept for each instruction is for routines.
const BYTES_MAX: usize = 4096;

/// How to make a draft better. `None`: it has an instruction that is not known here, or a value that does not fit.
pub fn optimize(draft: &Draft) -> Option<Plan> {
    if draft.len() > BYTES_MAX || draft.has_error() {
        return None;
    }
    let mut flow = flow::Flow::of(draft)?;
    flow.improve();
    Some(Plan::of(draft, &flow))
}
