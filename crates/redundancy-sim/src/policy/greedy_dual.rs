//! GreedyDual-Size (P. Cao, S. Irani: *Cost-Aware WWW Proxy Caching Algorithms*, 1997): cost over size, raised by the value of
//! what went last.

use std::collections::{BTreeSet, HashMap};

use super::Cache;

/// What counts as cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CostOf {
    /// Each miss the same.
    Miss,
    /// The seconds that it took to get the object.
    Seconds,
}

pub struct GreedyDual {
    cost_of: CostOf,
    /// Value (the bits of a positive number, which sort like it) and object.
    order: BTreeSet<(u64, u32)>,
    /// Value, bytes, cost.
    kept: HashMap<u32, (u64, u32, f64)>,
    last: f64,
}

impl GreedyDual {
    pub fn new(cost_of: CostOf) -> GreedyDual {
        GreedyDual { cost_of, order: BTreeSet::new(), kept: HashMap::new(), last: 0.0 }
    }

    fn put(&mut self, object: u32, bytes: u32, cost: f64) {
        let value = (self.last + cost / f64::from(bytes)).to_bits();
        self.order.insert((value, object));
        self.kept.insert(object, (value, bytes, cost));
    }
}

impl Cache for GreedyDual {
    fn hit(&mut self, object: u32) {
        if let Some((value, bytes, cost)) = self.kept.get(&object).copied() {
            self.order.remove(&(value, object));
            self.put(object, bytes, cost);
        }
    }

    fn insert(&mut self, object: u32, bytes: u32, cost: f32) {
        let cost = if self.cost_of == CostOf::Miss { 1.0 } else { cost.into() };
        self.put(object, bytes, cost);
    }

    fn pop(&mut self) -> Option<(u32, u32)> {
        let (value, object) = self.order.pop_first()?;
        self.last = f64::from_bits(value);
        let (_, bytes, _) = self.kept.remove(&object)?;
        Some((object, bytes))
    }

    fn remove(&mut self, object: u32) {
        if let Some((value, ..)) = self.kept.remove(&object) {
            self.order.remove(&(value, object));
        }
    }

    fn clear(&mut self) {
        *self = GreedyDual::new(self.cost_of);
    }
}
