//! Tables of names, kept dense: one text for all names of a table instead of a pointer and a length for each.

/// Numbers with names, in the order of their declaration.
#[derive(Clone, Copy)]
pub struct Names {
    /// The names, a space after each.
    pub(crate) names: &'static str,
    pub(crate) values: &'static [u64],
}

impl Names {
    /// Each name with its number.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.names.split(' ').zip(self.values.iter().copied())
    }
}

/// Line `index` of a text.
pub(crate) fn line(text: &'static str, index: usize) -> Option<&'static str> {
    text.lines().nth(index)
}
