//! Least recently used goes first.

use super::Cache;
use super::chain::Chains;

pub struct Lru(Chains);

impl Default for Lru {
    fn default() -> Lru {
        Lru(Chains::new(1))
    }
}

impl Cache for Lru {
    fn hit(&mut self, object: u32) {
        self.0.renew(0, object);
    }

    fn insert(&mut self, object: u32, bytes: u32, _cost: f32) {
        self.0.push(0, object, bytes, 0);
    }

    fn pop(&mut self) -> Option<(u32, u32)> {
        self.0.pop(0).map(|(object, bytes, _)| (object, bytes))
    }

    fn remove(&mut self, object: u32) {
        self.0.remove(object);
    }

    fn clear(&mut self) {
        *self = Lru::default();
    }
}
