//! The choice among the implementations of a building block (S-32), written once for all blocks and connections: each states
//! its ways with what each costs and whom it serves, and the cheapest that serves is taken.

/// One implementation of a block.
pub struct Way<Kind: 'static, Need: ?Sized + 'static> {
    pub kind: Kind,
    /// Instructions of its usual case, as far as they differ between the ways.
    pub cost: u32,
    pub serves: fn(&Need) -> bool,
}

/// The rule: the cheapest way that serves the need. `None` when none does.
pub fn cheapest<Kind: Copy, Need: ?Sized>(ways: &[Way<Kind, Need>], need: &Need) -> Option<Kind> {
    ways.iter().filter(|way| (way.serves)(need)).min_by_key(|way| way.cost).map(|way| way.kind)
}
