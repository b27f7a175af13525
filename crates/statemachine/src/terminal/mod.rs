//! The machines of a terminal: the tty's line editor and output filter, and the VT-100 (S-96, S-107, S-116).

mod cook;
mod edit;
mod vt100;

pub use cook::{COOK, DARK, cook_words};
pub use edit::{EDIT, EDIT_ECHO_BYTES, EDIT_RING_BYTES, EDIT_SEES_COOK, edit_outside, edit_words};
pub use vt100::{CELLS, COLUMNS, ROWS, SCREEN, SEQUENCE_BYTES, TEXT, VT100, vt_outside, vt_words};

use crate::graph::Graph;
use crate::language::{Row, Step};
use crate::product::Product;

/// A row for one byte.
const fn on(byte: u8, steps: &'static [Step]) -> Row {
    Row { first: byte, last: byte, steps }
}

/// A row for several.
const fn within(first: u8, last: u8, steps: &'static [Step]) -> Row {
    Row { first, last, steps }
}

/// What a text window runs on: the output filter with the VT-100 behind it.
///
/// # Panics
/// Where the tables are wrong, as the other products here.
pub fn cook_vt100() -> Product {
    Product::of(&Graph::of(&COOK), &Graph::of(&VT100)).expect("tables that can be joined")
}

/// What a terminal with echo edits lines on.
pub fn edit_cook() -> Graph {
    // Bytes that go on a character have no column, as control characters have none.
    let cook = Graph::of(&COOK).with_bytes(|byte| if (0x80..0xc0).contains(&byte) { 1 } else { byte });
    Product::sharing(&Graph::of(&EDIT), &cook, EDIT_SEES_COOK).expect("tables that can be joined").graph
}

/// And one without.
pub fn edit_unseen() -> Graph {
    Product::of(&Graph::of(&EDIT), &Graph::of(&DARK)).expect("tables that can be joined").graph
}
