//! S3-FIFO (J. Yang and others: *FIFO Queues are All You Need for Cache Eviction*, SOSP 2023), in bytes.

use super::Cache;
use super::chain::Chains;

const SMALL: u8 = 0;
const MAIN: u8 = 1;
const GHOSTS: u8 = 2;
/// Uses are counted up to this.
const MOST: u8 = 3;

pub struct S3Fifo {
    lists: Chains,
    capacity: u64,
    /// Share of the small queue.
    share: f64,
    next: u8,
}

impl S3Fifo {
    pub fn new(capacity: u64, share: f64) -> S3Fifo {
        S3Fifo { lists: Chains::new(3), capacity, share, next: SMALL }
    }

    fn pop_small(&mut self) -> Option<(u32, u32)> {
        while let Some((object, bytes, uses)) = self.lists.pop(SMALL) {
            if uses <= 1 {
                self.lists.push(GHOSTS, object, bytes, 0);
                while self.lists.bytes(GHOSTS) > self.capacity {
                    self.lists.pop(GHOSTS);
                }
                return Some((object, bytes));
            }
            self.lists.push(MAIN, object, bytes, 0);
        }
        None
    }

    fn pop_main(&mut self) -> Option<(u32, u32)> {
        while let Some((object, bytes, uses)) = self.lists.pop(MAIN) {
            if uses == 0 {
                return Some((object, bytes));
            }
            self.lists.push(MAIN, object, bytes, uses - 1);
        }
        None
    }
}

impl Cache for S3Fifo {
    fn hit(&mut self, object: u32) {
        if let Some(mark) = self.lists.mark(object) {
            *mark = (*mark + 1).min(MOST);
        }
    }

    fn miss(&mut self, object: u32) {
        let is_ghost = self.lists.list_of(object) == Some(GHOSTS);
        self.next = if is_ghost { MAIN } else { SMALL };
        if is_ghost {
            self.lists.remove(object);
        }
    }

    fn insert(&mut self, object: u32, bytes: u32, _cost: f32) {
        self.lists.remove(object);
        let next = std::mem::replace(&mut self.next, SMALL);
        self.lists.push(next, object, bytes, 0);
    }

    fn pop(&mut self) -> Option<(u32, u32)> {
        let is_large = self.lists.bytes(SMALL) as f64 >= self.share * self.capacity as f64;
        if is_large || self.lists.len(MAIN) == 0 {
            self.pop_small().or_else(|| self.pop_main())
        } else {
            self.pop_main().or_else(|| self.pop_small())
        }
    }

    fn remove(&mut self, object: u32) {
        self.lists.remove(object);
    }

    fn clear(&mut self) {
        *self = S3Fifo::new(self.capacity, self.share);
    }
}
