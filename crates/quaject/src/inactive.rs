//! Inactive lists (R4): reuse beats re-creation.

use alloc::boxed::Box;
use alloc::vec::Vec;

use machine::KernelCell;

use crate::create::{Made, Quaject};

/// Closed quajects of one class. Their code knows where they lie, so they wait in their boxes, and the next quaject of the
/// class is one of them. Nobody can be inside the code: whoever runs it holds its open file, and that is gone.
pub struct Inactive<Q: Quaject> {
    #[allow(clippy::vec_box, reason = "code knows the addresses, so a quaject must not move")]
    list: KernelCell<Vec<Box<Made<Q>>>>,
    /// Longer lists would keep memory that nobody needs.
    most: usize,
}

impl<Q: Quaject> Inactive<Q> {
    pub const fn new(most: usize) -> Inactive<Q> {
        Inactive { list: KernelCell::new(Vec::new()), most }
    }

    pub fn take(&self) -> Option<Box<Made<Q>>> {
        self.list.borrow_mut().pop()
    }

    /// Keeps a quaject that its owner has brought back to its first state; with a full list it is freed.
    pub fn give(&self, quaject: Box<Made<Q>>) {
        if !quaject.is_whole() {
            // There was no room for its code then; there may be when it is revived.
            quaject.forget_code();
        }
        let mut list = self.list.borrow_mut();
        if list.len() < self.most {
            list.push(quaject);
            return;
        }
        drop(list);
        drop(quaject);
    }

    pub fn len(&self) -> usize {
        self.list.borrow().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
