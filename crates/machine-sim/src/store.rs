//! A code store without room: the simulated machine runs no code, and the kernel must do without.

use codestore::{CodeMemory, CodeStore};
use machine::NoFrames;

struct NoCode;

impl CodeMemory for NoCode {
    fn extend(&self, _page: usize) -> Result<(), NoFrames> {
        Err(NoFrames)
    }

    fn serialize(&self) {}
}

// SAFETY: the store has no bytes, so nothing is ever written or run.
static STORE: CodeStore = unsafe { CodeStore::new(0, 0, 0, &NoCode) };

/// A store that is full from the start.
pub fn code_store() -> &'static CodeStore {
    &STORE
}
