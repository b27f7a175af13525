//! CLOCK with a counter: what was used since the hand passed stays for another round (F. Corbató, 1968). With more than one bit
//! it is what A. Smith called generalized CLOCK (1978).

use super::Cache;
use super::chain::Chains;

pub struct Clock {
    ring: Chains,
    most: u8,
}

impl Clock {
    /// Rounds that a copy can earn.
    pub fn new(most: u8) -> Clock {
        Clock { ring: Chains::new(1), most }
    }
}

impl Cache for Clock {
    fn hit(&mut self, object: u32) {
        let most = self.most;
        if let Some(mark) = self.ring.mark(object) {
            *mark = (*mark + 1).min(most);
        }
    }

    fn insert(&mut self, object: u32, bytes: u32, _cost: f32) {
        self.ring.push(0, object, bytes, 0);
    }

    fn pop(&mut self) -> Option<(u32, u32)> {
        loop {
            let (object, bytes, mark) = self.ring.pop(0)?;
            if mark == 0 {
                return Some((object, bytes));
            }
            self.ring.push(0, object, bytes, mark - 1);
        }
    }

    fn remove(&mut self, object: u32) {
        self.ring.remove(object);
    }

    fn clear(&mut self) {
        self.ring = Chains::new(1);
    }
}
