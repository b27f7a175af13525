//! The machines of a terminal: the tty's line editor and output filter, and the VT-100 (S-96, S-107, S-116).

mod cook;
mod edit;
mod vt100;

pub use cook::{COOK, DARK, cook_words};
pub use edit::{EDIT, EDIT_ECHO_BYTES, EDIT_RING_BYTES, EDIT_SEES_COOK, edit_outside, edit_words};
pub use vt100::{CELLS, COLUMNS, ROWS, SCREEN, SEQUENCE_BYTES, TEXT, VT100, vt_outside, vt_words};

use crate::language::{Row, Step};

/// A row for one byte.
const fn on(byte: u8, steps: &'static [Step]) -> Row {
    Row { first: byte, last: byte, steps }
}

/// A row for several.
const fn within(first: u8, last: u8, steps: &'static [Step]) -> Row {
    Row { first, last, steps }
}
