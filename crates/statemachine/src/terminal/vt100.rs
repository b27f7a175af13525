//! The VT-100 of the window system: 24 lines of 80 columns (S-107, S-116). After DEC's "VT100 User Guide" (EK-VT100-UG).
//!
//! Characters, line ends, tabs and the usual cursor movements are done in the machine; what moves or clears many cells is
//! outside. Attributes and modes are parsed and left to the outside too.

use super::{on, within};
use crate::language::Value::Input;
use crate::language::{Machine, State, Step, Step::*, Test};

pub const COLUMNS: u32 = 80;
pub const ROWS: u32 = 24;

/// Words that others look at.
pub mod vt_words {
    /// The cursor's cell: row * 80 + column; the column may be 80 until the next character.
    pub const AT: u16 = 0;
    pub const COLUMN: u16 = 1;
    /// Numbers of a control sequence.
    pub const FIRST: u16 = 2;
    pub const SECOND: u16 = 3;
    /// How many numbers have begun.
    pub const COUNT: u16 = 4;
    /// The saved cursor.
    pub const SAVED_AT: u16 = 5;
    pub const SAVED_COLUMN: u16 = 6;
}

/// What is outside.
pub mod vt_outside {
    /// All rows move up by one, the last becomes blank.
    pub const SCROLL: u16 = 16;
    /// All rows move down by one.
    pub const SCROLL_BACK: u16 = 17;
    pub const BELL: u16 = 18;
    /// ED with the first number.
    pub const ERASE_SCREEN: u16 = 19;
    /// EL with the first number.
    pub const ERASE_LINE: u16 = 20;
    /// Another sequence: attributes, modes, reports.
    pub const OTHER: u16 = 21;
    /// RIS.
    pub const RESET: u16 = 22;
}

use vt_outside::*;
use vt_words::*;

/// Array 0: the cells, of which the first 1920 are used.
const SCREEN: u16 = 0;
const CELL_BYTES: u32 = 2048;
const LAST_ROW: u32 = COLUMNS * (ROWS - 1);
/// Largest number of a sequence.
const MOST: u32 = 9999;
const MINUS_ONE: u32 = u32::MAX;
const MINUS_ROW: u32 = COLUMNS.wrapping_neg();

const GROUND: u16 = 0;
const ESCAPE: u16 = 1;
const SEQUENCE: u16 = 2;
const IGNORE: u16 = 3;

const LINE_FEED: Step = When(Test::Below(AT, LAST_ROW), &[Add(AT, COLUMNS)], &[Outside(SCROLL)]);
/// The column 80 is behind the last cell: AT is the next row's first then.
const LINE_FEED_AT_EDGE: Step = When(
    Test::Is(COLUMN, COLUMNS),
    &[When(Test::Below(AT, LAST_ROW + 1), &[Add(AT, COLUMNS)], &[Outside(SCROLL)])],
    &[LINE_FEED],
);
const WRAP: &[Step] =
    &[Set(COLUMN, 0), When(Test::Is(AT, COLUMNS * ROWS), &[Add(AT, MINUS_ROW), Outside(SCROLL)], &[])];
const PRINT: &[Step] =
    &[When(Test::Is(COLUMN, COLUMNS), WRAP, &[]), Store(SCREEN, AT, Input), Add(AT, 1), Add(COLUMN, 1)];
const RETURN: &[Step] = &[SubtractWord(AT, COLUMN), Set(COLUMN, 0)];
/// To the next multiple of eight, at most to the last column.
const TAB: &[Step] = &[When(
    Test::Below(COLUMN, 72),
    &[SubtractWord(AT, COLUMN), Or(COLUMN, 7), Add(COLUMN, 1), AddWord(AT, COLUMN)],
    &[When(Test::Below(COLUMN, COLUMNS), &[SubtractWord(AT, COLUMN), Set(COLUMN, 79), Add(AT, 79)], &[])],
)];
const BACK: Step = When(Test::Is(COLUMN, 0), &[], &[Add(COLUMN, MINUS_ONE), Add(AT, MINUS_ONE)]);

/// A number that was not given, or is 0, counts as 1.
const AT_LEAST_ONE: Step = When(Test::Is(FIRST, 0), &[Set(FIRST, 1)], &[]);
/// From behind the last cell onto it.
const ON_SCREEN: Step = When(Test::Is(COLUMN, COLUMNS), &[Add(COLUMN, MINUS_ONE), Add(AT, MINUS_ONE)], &[]);

/// Each of the four moves is repeated as often as the number says, and stops at the edge.
const UP: &[Step] = &[
    AT_LEAST_ONE,
    ON_SCREEN,
    While(
        Test::Differ(FIRST, ZERO),
        &[When(Test::Below(AT, COLUMNS), &[Go(GROUND)], &[Add(AT, MINUS_ROW), Add(FIRST, MINUS_ONE)])],
    ),
    Go(GROUND),
];
const DOWN: &[Step] = &[
    AT_LEAST_ONE,
    ON_SCREEN,
    While(
        Test::Differ(FIRST, ZERO),
        &[When(Test::Below(AT, LAST_ROW), &[Add(AT, COLUMNS), Add(FIRST, MINUS_ONE)], &[Go(GROUND)])],
    ),
    Go(GROUND),
];
const RIGHT: &[Step] = &[
    AT_LEAST_ONE,
    ON_SCREEN,
    While(
        Test::Differ(FIRST, ZERO),
        &[When(Test::Below(COLUMN, 79), &[Add(COLUMN, 1), Add(AT, 1), Add(FIRST, MINUS_ONE)], &[Go(GROUND)])],
    ),
    Go(GROUND),
];
const LEFT: &[Step] = &[
    AT_LEAST_ONE,
    ON_SCREEN,
    While(
        Test::Differ(FIRST, ZERO),
        &[When(
            Test::Is(COLUMN, 0),
            &[Go(GROUND)],
            &[Add(COLUMN, MINUS_ONE), Add(AT, MINUS_ONE), Add(FIRST, MINUS_ONE)],
        )],
    ),
    Go(GROUND),
];
/// CUP: row and column from 1.
const PLACE: &[Step] = &[
    AT_LEAST_ONE,
    When(Test::Is(SECOND, 0), &[Set(SECOND, 1)], &[]),
    When(Test::Below(FIRST, ROWS + 1), &[], &[Set(FIRST, ROWS)]),
    When(Test::Below(SECOND, COLUMNS + 1), &[], &[Set(SECOND, COLUMNS)]),
    Move(COLUMN, SECOND),
    Add(COLUMN, MINUS_ONE),
    Move(AT, FIRST),
    Add(AT, MINUS_ONE),
    Multiply(AT, COLUMNS),
    AddWord(AT, COLUMN),
    Go(GROUND),
];
/// Always 0.
const ZERO: u16 = 7;

const DIGIT: &[Step] = &[When(
    Test::Is(COUNT, 0),
    &[Digit(FIRST, Input, MOST)],
    &[When(Test::Is(COUNT, 1), &[Digit(SECOND, Input, MOST)], &[])],
)];

/// The terminal.
pub const VT100: Machine = Machine {
    name: "vt100",
    words: &["at", "column", "first", "second", "count", "saved_at", "saved_column", "zero"],
    arrays: &[CELL_BYTES],
    sets: &[],
    states: &[
        State {
            name: "ground",
            rows: &[
                within(32, 126, PRINT),
                within(160, 255, PRINT),
                within(10, 12, &[LINE_FEED_AT_EDGE]),
                on(b'\r', RETURN),
                on(b'\t', TAB),
                on(8, &[BACK]),
                on(7, &[Outside(BELL)]),
                on(27, &[Go(ESCAPE)]),
            ],
        },
        State {
            name: "escape",
            rows: &[
                on(b'[', &[Set(FIRST, 0), Set(SECOND, 0), Set(COUNT, 0), Go(SEQUENCE)]),
                on(b'7', &[Move(SAVED_AT, AT), Move(SAVED_COLUMN, COLUMN), Go(GROUND)]),
                on(b'8', &[Move(AT, SAVED_AT), Move(COLUMN, SAVED_COLUMN), Go(GROUND)]),
                on(b'D', &[ON_SCREEN, LINE_FEED, Go(GROUND)]),
                on(b'E', &[ON_SCREEN, SubtractWord(AT, COLUMN), Set(COLUMN, 0), LINE_FEED, Go(GROUND)]),
                on(
                    b'M',
                    &[
                        ON_SCREEN,
                        When(Test::Below(AT, COLUMNS), &[Outside(SCROLL_BACK)], &[Add(AT, MINUS_ROW)]),
                        Go(GROUND),
                    ],
                ),
                on(
                    b'c',
                    &[Set(AT, 0), Set(COLUMN, 0), Set(SAVED_AT, 0), Set(SAVED_COLUMN, 0), Outside(RESET), Go(GROUND)],
                ),
                within(b' ', b'/', &[Go(IGNORE)]),
                on(27, &[]),
                within(0, 255, &[Go(GROUND)]),
            ],
        },
        State {
            name: "sequence",
            rows: &[
                within(b'0', b'9', DIGIT),
                on(b';', &[Add(COUNT, 1)]),
                on(b'A', UP),
                on(b'B', DOWN),
                on(b'C', RIGHT),
                on(b'D', LEFT),
                on(b'H', PLACE),
                on(b'f', PLACE),
                on(b'J', &[ON_SCREEN, Outside(ERASE_SCREEN), Go(GROUND)]),
                on(b'K', &[ON_SCREEN, Outside(ERASE_LINE), Go(GROUND)]),
                within(b'@', b'~', &[Outside(OTHER), Go(GROUND)]),
                on(27, &[Go(ESCAPE)]),
                on(24, &[Go(GROUND)]),
                on(26, &[Go(GROUND)]),
                // `?` and its like: kept for nobody.
                within(0, 255, &[]),
            ],
        },
        State {
            name: "ignore",
            rows: &[within(b' ', b'/', &[]), on(27, &[Go(ESCAPE)]), within(0, 255, &[Go(GROUND)])],
        },
    ],
};
