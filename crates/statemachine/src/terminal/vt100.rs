//! The VT-100 of the window system: 24 lines of 80 columns (S-107, S-116). After DEC's "VT100 User Guide" (EK-VT100-UG);
//! where that leaves room, as the console of Linux does.
//!
//! Characters, line ends, tabs, scrolling and the usual cursor movements are done in the machine; what moves or clears many
//! cells, attributes, modes and reports are outside, which finds the sequence's bytes in array 1. Bytes are characters: no
//! UTF-8. Control characters within a sequence are ignored.
//!
//! The cells lie in a ring of 2048, of which the 1920 up to the cursor's row and below it are on the screen: scrolling moves
//! no cell but clears one row. `AT` counts on for ever, modulo 2^32, which 2048 divides. A row's first cell is a multiple of 16.

use super::{on, within};
use crate::language::Value::Input;
use crate::language::{Machine, State, Step, Step::*, Test};

pub const COLUMNS: u32 = 80;
pub const ROWS: u32 = 24;

/// Words that others look at.
pub mod vt_words {
    /// The cursor's cell in the ring.
    pub const AT: u16 = 0;
    /// The column may be 80 until the next character.
    pub const COLUMN: u16 = 1;
    pub const ROW: u16 = 2;
    /// Above each character: its attribute, in the second byte of a cell.
    pub const ATTRIBUTE: u16 = 3;
    /// What is cleared, twice.
    pub const BLANK: u16 = 4;
    /// First and last row of what scrolls.
    pub const TOP: u16 = 5;
    pub const BOTTOM: u16 = 6;
    /// Not 0: those are not the first and the last of the screen.
    pub const HAS_MARGINS: u16 = 7;
    /// Not 0: what is behind the last column stays there.
    pub const NO_WRAP: u16 = 8;
    /// Numbers of a control sequence.
    pub const FIRST: u16 = 9;
    pub const SECOND: u16 = 10;
    /// How many numbers have begun, but one.
    pub const COUNT: u16 = 11;
    /// Bytes in array 1.
    pub const LENGTH: u16 = 12;
}

/// What is outside.
pub mod vt_outside {
    /// The rows between the margins move up by one, the last becomes blank.
    pub const SCROLL: u16 = 16;
    /// They move down by one.
    pub const SCROLL_BACK: u16 = 17;
    pub const BELL: u16 = 18;
    /// A control sequence whose bytes are in array 1, the last of them included.
    pub const SEQUENCE: u16 = 19;
    /// RIS.
    pub const RESET: u16 = 20;
    /// The cursor and its attributes are saved (DECSC), and come back (DECRC).
    pub const SAVE: u16 = 21;
    pub const RESTORE: u16 = 22;
}

use vt_outside::*;
use vt_words::*;

/// Array 0: the cells.
pub const SCREEN: u16 = 0;
/// Cells in the ring.
pub const CELLS: usize = 2048;
/// Array 1: the bytes of a sequence.
pub const TEXT: u16 = 1;
pub const SEQUENCE_BYTES: usize = 64;
/// Largest number of a sequence.
const MOST: u32 = 9999;
const MINUS_ONE: u32 = u32::MAX;
const MINUS_ROW: u32 = COLUMNS.wrapping_neg();

const GROUND: u16 = 0;
const ESCAPE: u16 = 1;
const PARAMETER: u16 = 2;
const IGNORE: u16 = 3;
const STRING: u16 = 4;

/// Scratch.
const ROW_START: u16 = 13;
/// Always 0.
const ZERO: u16 = 14;

/// The ring turns by a row; the new last row, where the cursor is, becomes blank.
const TURN: &[Step] = &[
    Add(AT, COLUMNS),
    Move(ROW_START, AT),
    SubtractWord(ROW_START, COLUMN),
    Blank(SCREEN, ROW_START, BLANK),
    Add(ROW_START, 16),
    Blank(SCREEN, ROW_START, BLANK),
    Add(ROW_START, 16),
    Blank(SCREEN, ROW_START, BLANK),
    Add(ROW_START, 16),
    Blank(SCREEN, ROW_START, BLANK),
    Add(ROW_START, 16),
    Blank(SCREEN, ROW_START, BLANK),
];
const SCROLLS: Step = When(Test::Is(HAS_MARGINS, 0), TURN, &[Outside(SCROLL)]);
/// Below the margins the last row is the end.
const DOWN_ONE: Step = When(Test::Below(ROW, ROWS - 1), &[Add(ROW, 1), Add(AT, COLUMNS)], &[]);
const INDEX: Step = When(Test::Same(ROW, BOTTOM), &[SCROLLS], &[DOWN_ONE]);
/// From behind the last cell onto it.
const ON_SCREEN: Step = When(Test::Is(COLUMN, COLUMNS), &[Add(COLUMN, MINUS_ONE), Add(AT, MINUS_ONE)], &[]);
const RETURN: &[Step] = &[SubtractWord(AT, COLUMN), Set(COLUMN, 0)];
const LINE_FEED: &[Step] = &[ON_SCREEN, INDEX];
const WRAP: Step = When(
    Test::Is(NO_WRAP, 0),
    &[SubtractWord(AT, COLUMN), Set(COLUMN, 0), INDEX],
    &[Add(COLUMN, MINUS_ONE), Add(AT, MINUS_ONE)],
);
const PRINT: &[Step] = &[
    When(Test::Is(COLUMN, COLUMNS), &[WRAP], &[]),
    StoreCell(SCREEN, AT, Input, ATTRIBUTE),
    Add(AT, 1),
    Add(COLUMN, 1),
];
/// To the next multiple of eight, at most to the last column.
const TAB: &[Step] = &[When(
    Test::Below(COLUMN, 72),
    &[SubtractWord(AT, COLUMN), Or(COLUMN, 7), Add(COLUMN, 1), AddWord(AT, COLUMN)],
    &[When(Test::Below(COLUMN, COLUMNS), &[SubtractWord(AT, COLUMN), Set(COLUMN, 79), Add(AT, 79)], &[])],
)];
const BACK: &[Step] = &[ON_SCREEN, When(Test::Is(COLUMN, 0), &[], &[Add(COLUMN, MINUS_ONE), Add(AT, MINUS_ONE)])];

/// A number that was not given, or is 0, counts as 1.
const AT_LEAST_ONE: Step = When(Test::Is(FIRST, 0), &[Set(FIRST, 1)], &[]);

/// Each of the four moves is repeated as often as the number says, and stops at the edge; up and down also at a margin.
const UP: &[Step] = &[
    AT_LEAST_ONE,
    ON_SCREEN,
    While(
        Test::Differ(FIRST, ZERO),
        &[
            When(Test::Same(ROW, TOP), &[Go(GROUND)], &[]),
            When(Test::Is(ROW, 0), &[Go(GROUND)], &[Add(ROW, MINUS_ONE), Add(AT, MINUS_ROW), Add(FIRST, MINUS_ONE)]),
        ],
    ),
    Go(GROUND),
];
const DOWN: &[Step] = &[
    AT_LEAST_ONE,
    ON_SCREEN,
    While(
        Test::Differ(FIRST, ZERO),
        &[
            When(Test::Same(ROW, BOTTOM), &[Go(GROUND)], &[]),
            When(Test::Is(ROW, ROWS - 1), &[Go(GROUND)], &[Add(ROW, 1), Add(AT, COLUMNS), Add(FIRST, MINUS_ONE)]),
        ],
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
/// CUP: row and column from 1. The cursor goes by the distance to where it is.
const PLACE: &[Step] = &[
    AT_LEAST_ONE,
    When(Test::Is(SECOND, 0), &[Set(SECOND, 1)], &[]),
    When(Test::Below(FIRST, ROWS + 1), &[], &[Set(FIRST, ROWS)]),
    When(Test::Below(SECOND, COLUMNS + 1), &[], &[Set(SECOND, COLUMNS)]),
    Add(FIRST, MINUS_ONE),
    Add(SECOND, MINUS_ONE),
    SubtractWord(AT, COLUMN),
    Move(COLUMN, SECOND),
    AddWord(AT, COLUMN),
    Multiply(ROW, COLUMNS),
    SubtractWord(AT, ROW),
    Move(ROW, FIRST),
    Multiply(FIRST, COLUMNS),
    AddWord(AT, FIRST),
    Go(GROUND),
];

const KEEP: Step =
    When(Test::Below(LENGTH, SEQUENCE_BYTES as u32 - 1), &[Store(TEXT, LENGTH, Input), Add(LENGTH, 1)], &[]);
const DIGIT: &[Step] = &[
    KEEP,
    When(
        Test::Is(COUNT, 0),
        &[Digit(FIRST, Input, MOST)],
        &[When(Test::Is(COUNT, 1), &[Digit(SECOND, Input, MOST)], &[])],
    ),
];
const BEGIN: &[Step] = &[Set(FIRST, 0), Set(SECOND, 0), Set(COUNT, 0), Set(LENGTH, 0), Go(PARAMETER)];

/// The terminal.
pub const VT100: Machine = Machine {
    name: "vt100",
    words: &[
        "at",
        "column",
        "row",
        "attribute",
        "blank",
        "top",
        "bottom",
        "has_margins",
        "no_wrap",
        "first",
        "second",
        "count",
        "length",
        "row_start",
        "zero",
    ],
    arrays: &[2 * CELLS as u32, SEQUENCE_BYTES as u32],
    sets: &[],
    states: &[
        State {
            name: "ground",
            rows: &[
                within(32, 126, PRINT),
                within(160, 255, PRINT),
                within(10, 12, LINE_FEED),
                on(b'\r', RETURN),
                on(b'\t', TAB),
                on(8, BACK),
                on(7, &[Outside(BELL)]),
                on(27, &[Go(ESCAPE)]),
                on(0x9b, BEGIN),
            ],
        },
        State {
            name: "escape",
            rows: &[
                on(b'[', BEGIN),
                on(b'7', &[Outside(SAVE), Go(GROUND)]),
                on(b'8', &[Outside(RESTORE), Go(GROUND)]),
                on(b'D', &[ON_SCREEN, INDEX, Go(GROUND)]),
                on(b'E', &[SubtractWord(AT, COLUMN), Set(COLUMN, 0), INDEX, Go(GROUND)]),
                on(
                    b'M',
                    &[
                        ON_SCREEN,
                        When(
                            Test::Same(ROW, TOP),
                            &[Outside(SCROLL_BACK)],
                            &[When(Test::Is(ROW, 0), &[], &[Add(ROW, MINUS_ONE), Add(AT, MINUS_ROW)])],
                        ),
                        Go(GROUND),
                    ],
                ),
                on(b'c', &[Outside(RESET), Go(GROUND)]),
                within(b' ', b'/', &[Go(IGNORE)]),
                on(b']', &[Go(STRING)]),
                on(b'P', &[Go(STRING)]),
                within(b'^', b'_', &[Go(STRING)]),
                on(27, &[]),
                within(0, 255, &[Go(GROUND)]),
            ],
        },
        State {
            name: "parameter",
            rows: &[
                within(b'0', b'9', DIGIT),
                on(b';', &[KEEP, Add(COUNT, 1)]),
                on(b'A', UP),
                on(b'B', DOWN),
                on(b'C', RIGHT),
                on(b'D', LEFT),
                on(b'H', PLACE),
                on(b'f', PLACE),
                within(b'@', b'~', &[Store(TEXT, LENGTH, Input), Add(LENGTH, 1), Outside(SEQUENCE), Go(GROUND)]),
                on(27, &[Go(ESCAPE)]),
                on(24, &[Go(GROUND)]),
                on(26, &[Go(GROUND)]),
                within(b' ', b'?', &[KEEP]),
                within(0, 255, &[]),
            ],
        },
        State {
            name: "ignore",
            rows: &[within(b' ', b'/', &[]), on(27, &[Go(ESCAPE)]), within(0, 255, &[Go(GROUND)])],
        },
        State {
            name: "string",
            // As xterm does; a VT-100 knows no strings, but programs send titles.
            rows: &[on(7, &[Go(GROUND)]), on(27, &[Go(ESCAPE)]), on(24, &[Go(GROUND)]), on(26, &[Go(GROUND)])],
        },
    ],
};
