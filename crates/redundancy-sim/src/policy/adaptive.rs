//! ARC (N. Megiddo, D. Modha: *ARC: A Self-Tuning, Low Overhead Replacement Cache*, FAST 2003), in bytes.

use super::Cache;
use super::chain::Chains;

/// Seen once, seen again, and what was of either lately.
const RECENT: u8 = 0;
const FREQUENT: u8 = 1;
const RECENT_GHOSTS: u8 = 2;
const FREQUENT_GHOSTS: u8 = 3;

pub struct Arc {
    lists: Chains,
    capacity: f64,
    /// Bytes that `RECENT` should have.
    target: f64,
    /// Where the object goes that is to be inserted.
    next: u8,
    from_frequent: bool,
}

impl Arc {
    pub fn new(capacity: u64) -> Arc {
        Arc { lists: Chains::new(4), capacity: capacity as f64, target: 0.0, next: RECENT, from_frequent: false }
    }

    fn bytes(&self, list: u8) -> f64 {
        self.lists.bytes(list) as f64
    }

    fn trim(&mut self) {
        while self.bytes(RECENT) + self.bytes(RECENT_GHOSTS) > self.capacity && self.lists.len(RECENT_GHOSTS) > 0 {
            self.lists.pop(RECENT_GHOSTS);
        }
        let all = |arc: &Arc| (RECENT..=FREQUENT_GHOSTS).map(|list| arc.bytes(list)).sum::<f64>();
        while all(self) > 2.0 * self.capacity && self.lists.len(FREQUENT_GHOSTS) > 0 {
            self.lists.pop(FREQUENT_GHOSTS);
        }
    }
}

impl Cache for Arc {
    fn hit(&mut self, object: u32) {
        if matches!(self.lists.list_of(object), Some(RECENT | FREQUENT)) {
            self.lists.renew(FREQUENT, object);
        }
    }

    fn miss(&mut self, object: u32) {
        let (recent, frequent) = (self.bytes(RECENT_GHOSTS), self.bytes(FREQUENT_GHOSTS));
        let list = self.lists.list_of(object);
        self.next = if matches!(list, Some(RECENT_GHOSTS | FREQUENT_GHOSTS)) { FREQUENT } else { RECENT };
        self.from_frequent = list == Some(FREQUENT_GHOSTS);
        let Some((bytes, _)) = (self.next == FREQUENT).then(|| self.lists.remove(object)).flatten() else { return };
        let bytes = f64::from(bytes);
        if list == Some(RECENT_GHOSTS) {
            let step = (frequent / recent.max(1.0)).max(1.0) * bytes;
            self.target = (self.target + step).min(self.capacity);
        } else {
            let step = (recent / frequent.max(1.0)).max(1.0) * bytes;
            self.target = (self.target - step).max(0.0);
        }
    }

    fn insert(&mut self, object: u32, bytes: u32, _cost: f32) {
        self.lists.remove(object);
        let next = std::mem::replace(&mut self.next, RECENT);
        self.lists.push(next, object, bytes, 0);
        self.trim();
    }

    fn pop(&mut self) -> Option<(u32, u32)> {
        let recent = self.bytes(RECENT);
        let is_recent = recent > self.target || (self.from_frequent && recent >= self.target && recent > 0.0);
        let order = if is_recent { [RECENT, FREQUENT] } else { [FREQUENT, RECENT] };
        let list = order.into_iter().find(|list| self.lists.len(*list) > 0)?;
        let (object, bytes, _) = self.lists.pop(list)?;
        self.lists.push(list + 2, object, bytes, 0);
        Some((object, bytes))
    }

    fn remove(&mut self, object: u32) {
        self.lists.remove(object);
    }

    fn clear(&mut self) {
        *self = Arc::new(self.capacity as u64);
    }
}
