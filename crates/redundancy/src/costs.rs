//! What accesses and copies cost, and what is wanted of them.

/// Seconds that accesses and copies of an object of one size take. The overview (3.4) names creation and maintenance:
/// storage, which [`Keeper`](crate::Keeper) counts in bytes, update of all copies, and collection, which costs no time here.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Costs {
    /// A read from the reader's own memory.
    pub local: f32,
    /// A read from another node's memory.
    pub remote: f32,
    /// A read of the original: a disk, and usually the network.
    pub original: f32,
    /// To bring one more copy up to date after a write: time of the writer's line.
    pub update: f32,
    /// To make a copy on a node that has not just read the object.
    pub create: f32,
}

/// What is wanted, in one currency: seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Goals {
    /// Seconds of access time that one failed attempt counts as. It is the exchange rate between the two goals of the
    /// overview, mean access time and apparent availability: 0 asks for speed alone.
    pub failure_seconds: f32,
}

impl Goals {
    /// From the access time and the share of failed attempts that are thought equally bad: who would accept 1 ms in the mean
    /// to be rid of one failure in 100 holds a failure for 0.1 s.
    pub fn equally_bad(seconds: f32, failures: f32) -> Goals {
        Goals { failure_seconds: seconds / failures }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rarer_failure_weighs_more() {
        let (often, seldom) = (Goals::equally_bad(0.001, 0.01), Goals::equally_bad(0.001, 0.001));
        assert!((often.failure_seconds - 0.1).abs() < 1e-6);
        assert!(seldom.failure_seconds > often.failure_seconds);
    }
}
