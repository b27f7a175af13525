//! CookTTYout with Linux's default settings (`OPOST`, `ONLCR`): line ends, and the column for tabs and erasing.

use super::{on, within};
use crate::language::Value::{Const, Input};
use crate::language::{Machine, State, Step::*, Test};

const COLUMN: u16 = 0;

/// The output filter.
pub const COOK: Machine = Machine {
    name: "cook",
    words: &["column"],
    arrays: &[],
    sets: &[],
    states: &[State {
        name: "text",
        rows: &[
            on(b'\n', &[Emit(Const(b'\r')), Emit(Const(b'\n')), Set(COLUMN, 0)]),
            on(b'\r', &[Emit(Input), Set(COLUMN, 0)]),
            on(b'\t', &[Emit(Input), Or(COLUMN, 7), Add(COLUMN, 1)]),
            on(8, &[Emit(Input), When(Test::Is(COLUMN, 0), &[], &[Add(COLUMN, u32::MAX)])]),
            within(0, 31, &[Emit(Input)]),
            on(127, &[Emit(Input)]),
            within(0, 255, &[Emit(Input), Add(COLUMN, 1)]),
        ],
    }],
};
