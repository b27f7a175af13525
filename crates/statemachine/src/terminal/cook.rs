//! CookTTYout with Linux's default settings (`OPOST`, `ONLCR`): line ends, and the column for tabs and erasing.

use super::{on, within};
use crate::language::Value::{Const, Input};
use crate::language::{Machine, State, Step::*, Test};

/// Words that others share.
pub mod cook_words {
    pub const COLUMN: u16 = 0;
    /// Where the line being typed began; a new line begins at the left.
    pub const LINE_COLUMN: u16 = 1;
    pub const COUNT: usize = 2;
}

use cook_words::{COLUMN, LINE_COLUMN};

/// Takes everything and shows nothing: what stands behind an editor that does not echo.
pub const DARK: Machine =
    Machine { name: "dark", words: &[], arrays: &[], sets: &[], states: &[State { name: "dark", rows: &[] }] };

/// The output filter.
pub const COOK: Machine = Machine {
    name: "cook",
    words: &["column", "line_column"],
    arrays: &[],
    sets: &[],
    states: &[State {
        name: "text",
        rows: &[
            on(b'\n', &[Set(COLUMN, 0), Set(LINE_COLUMN, 0), Emit(Const(b'\r')), Emit(Const(b'\n'))]),
            on(b'\r', &[Set(COLUMN, 0), Set(LINE_COLUMN, 0), Emit(Input)]),
            on(b'\t', &[Emit(Input), Or(COLUMN, 7), Add(COLUMN, 1)]),
            on(8, &[Emit(Input), When(Test::Is(COLUMN, 0), &[], &[Add(COLUMN, u32::MAX)])]),
            within(0, 31, &[Emit(Input)]),
            on(127, &[Emit(Input)]),
            within(0, 255, &[Emit(Input), Add(COLUMN, 1)]),
        ],
    }],
};
