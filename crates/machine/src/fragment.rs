//! Instructions of the machine to paste.

use alloc::vec::Vec;

use synth::{Draft, HoleValue, Template};

/// Instructions of the machine to paste, with what belongs into their holes.
pub struct Fragment {
    pub template: Template,
    pub holes: Vec<HoleValue>,
}

impl synth::Paste for &Fragment {
    fn paste(self, draft: &mut Draft) {
        self.append_to(draft);
    }
}

impl Fragment {
    pub fn append_to(&self, draft: &mut Draft) {
        draft.append(&self.template, &self.holes);
    }
}
