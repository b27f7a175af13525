//! Trees of nodes that go at once.

use alloc::sync::Arc;

use super::node::{Node, Parent};

/// Nodes that nobody else keeps: a whole tree may go at once, and neither the stack nor the heap may have to grow for that. Each
/// keeps the next in place of its parent.
#[derive(Default)]
pub(super) struct Doomed(Option<Arc<Node>>);

impl Doomed {
    pub(super) fn add(&mut self, node: Arc<Node>) {
        let mut next = Some(node);
        while let Some(node) = next.take() {
            if Arc::strong_count(&node) > 1 {
                return;
            }
            let link = self.0.take().map_or(Parent::None, Parent::Held);
            if let Parent::Held(parent) = core::mem::replace(&mut node.place.borrow_mut().parent, link) {
                next = Some(parent);
            }
            self.0 = Some(node);
        }
    }

    pub(super) fn take(&mut self) -> Option<Node> {
        let node = Arc::into_inner(self.0.take()?)?;
        if let Parent::Held(next) = core::mem::replace(&mut node.place.borrow_mut().parent, Parent::None) {
            self.0 = Some(next);
        }
        Some(node)
    }
}
