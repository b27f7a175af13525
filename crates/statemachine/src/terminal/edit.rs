//! CookTTYin with Linux's default settings: canonical editing (erase, kill, word erase, literal next) with echo.
//!
//! It emits the echo, before the output filter. Lines and the one being typed stand in array 0, the marks of their ends in
//! array 1. It does the usual case of a byte whole or leaves with the number `KEY` and everything as it was before that byte:
//! keys that need more than the line (signals, flow control, end of file, reprint), the erasure of a tab and of a part of a
//! character, and of lines so long that their erasure would be a screen of echo. Only `KILL` and `ERASE_WORD` may have erased
//! some of what they are to erase, which is the same as if they came when the rest was there.

use super::cook::cook_words;
use super::{on, within};
use crate::language::Value::{Const, Flipped, Input};
use crate::language::{Machine, Row, State, Step, Step::*, Test, Word};

/// Words that others look at.
pub mod edit_words {
    /// One past the newest byte of array 0.
    pub const HEAD: u16 = 0;
    /// First byte of the line being typed.
    pub const START: u16 = 1;
    /// The cursor's column, which the output filter counts.
    pub const COLUMN: u16 = 2;
    /// Column at which the line being typed began.
    pub const LINE_COLUMN: u16 = 3;
    /// 1: the next byte is literal.
    pub const LITERAL_NEXT: u16 = 4;
}

/// What is outside.
pub mod edit_outside {
    /// A key that is no editing, or not the usual case of it. The byte has not been taken.
    pub const KEY: u16 = 1;
}

/// Bytes of the arrays: the ring of input, and a bit for each of its places.
pub const EDIT_RING_BYTES: u32 = 4096;
/// Most bytes that are emitted for one taken.
pub const EDIT_ECHO_BYTES: usize = 6 * LONGEST as usize;

/// The editor's words that are the output filter's, for [`crate::product_sharing`].
pub const EDIT_SEES_COOK: &[(Word, Word)] =
    &[(edit_words::COLUMN, cook_words::COLUMN), (edit_words::LINE_COLUMN, cook_words::LINE_COLUMN)];

use edit_outside::KEY;
use edit_words::{COLUMN, HEAD, LINE_COLUMN, LITERAL_NEXT, START};

const LAST: u16 = 5;
const IN_WORD: u16 = 6;
const LENGTH: u16 = 7;

const LINES: u16 = 0;
const MARKS: u16 = 1;

const CONTROLS: u16 = 0;
/// What word erase takes for a part of a word, in Latin-1.
const OF_WORDS: u16 = 1;
/// What is erased outside: a tab goes back to where it began; one character may have several of the others.
const UNUSUAL: u16 = 2;

/// Most bytes of a line that are erased at once.
const LONGEST: u32 = 40;

/// The line may be empty.
const BEGIN: u16 = 0;
/// It is not.
const TYPING: u16 = 1;
const LITERAL: u16 = 2;

const ALWAYS: Test = Test::Same(0, 0);
const LEAVE: &[Step] = &[Outside(KEY), Go(BEGIN)];

/// The first byte of a line notes where on the screen the line begins.
const NOTE: Step = When(Test::Same(HEAD, START), &[Move(LINE_COLUMN, COLUMN)], &[]);
const PUT: Step = When(ALWAYS, &[Store(LINES, HEAD, Input), Add(HEAD, 1), Go(TYPING)], &[]);
const TYPED: &[Step] = &[Emit(Input), PUT];
const FIRST_TYPED: &[Step] = &[NOTE, Emit(Input), PUT];
const TYPED_CONTROL: &[Step] = &[Emit(Const(b'^')), Emit(Flipped(0x40)), PUT];
const FIRST_TYPED_CONTROL: &[Step] = &[NOTE, When(ALWAYS, TYPED_CONTROL, &[])];
const LITERALLY: &[Step] = &[Set(LITERAL_NEXT, 0), When(ALWAYS, FIRST_TYPED, &[])];
const CONTROL_LITERALLY: &[Step] = &[Set(LITERAL_NEXT, 0), When(ALWAYS, FIRST_TYPED_CONTROL, &[])];
const NEXT_LITERALLY: &[Step] = &[Emit(Const(b'^')), Emit(Const(8)), Set(LITERAL_NEXT, 1), Go(LITERAL)];
const END: &[Step] = &[
    Emit(Const(b'\n')),
    Store(LINES, HEAD, Const(b'\n')),
    Mark(MARKS, HEAD),
    Add(HEAD, 1),
    Move(START, HEAD),
    Go(BEGIN),
];

const LOAD_LAST: Step = When(ALWAYS, &[Add(HEAD, u32::MAX), Load(LAST, LINES, HEAD)], &[]);
const RUB_OUT: &[Step] = &[Emit(Const(8)), Emit(Const(b' ')), Emit(Const(8))];
const RUB_OUT_TWO: &[Step] =
    &[Emit(Const(8)), Emit(Const(b' ')), Emit(Const(8)), Emit(Const(8)), Emit(Const(b' ')), Emit(Const(8))];
/// The character in `LAST` goes from the screen.
const SHOW_ERASED: Step = When(Test::In(LAST, CONTROLS), RUB_OUT_TWO, RUB_OUT);
/// So does the character there, unless it is unusual: it stays, and so does the rest of the work.
const ERASE_LAST: Step = When(Test::In(LAST, UNUSUAL), &[Add(HEAD, 1), Outside(KEY), Go(BEGIN)], &[SHOW_ERASED]);

const ERASE: &[Step] = &[When(Test::Differ(HEAD, START), &[LOAD_LAST, ERASE_LAST], &[]), Go(BEGIN)];
const MEASURE: Step = When(ALWAYS, &[Move(LENGTH, HEAD), SubtractWord(LENGTH, START)], &[]);
const KILL: &[Step] = &[
    MEASURE,
    When(
        Test::Below(LENGTH, LONGEST + 1),
        &[While(Test::Differ(HEAD, START), &[LOAD_LAST, ERASE_LAST]), Go(BEGIN)],
        LEAVE,
    ),
];
const ERASE_WORD: &[Step] = &[
    MEASURE,
    Set(IN_WORD, 0),
    When(
        Test::Below(LENGTH, LONGEST + 1),
        &[
            While(
                Test::Differ(HEAD, START),
                &[
                    LOAD_LAST,
                    When(
                        Test::In(LAST, OF_WORDS),
                        &[Set(IN_WORD, 1)],
                        // The byte before the word stays.
                        &[When(Test::Is(IN_WORD, 1), &[Add(HEAD, 1), Go(BEGIN)], &[])],
                    ),
                    ERASE_LAST,
                ],
            ),
            Go(BEGIN),
        ],
        LEAVE,
    ),
];

/// The rows of a state in which keys are keys.
const fn rows(typed: &'static [Step], control: &'static [Step]) -> [Row; 13] {
    [
        on(b'\n', END),
        on(b'\r', END),
        on(127, ERASE),
        on(0x15, KILL),
        on(0x17, ERASE_WORD),
        on(0x16, NEXT_LITERALLY),
        // ^C ^D ^Q ^R ^S ^Z ^\: signals, end of file, flow control, reprint.
        within(3, 4, LEAVE),
        within(0x11, 0x13, LEAVE),
        on(0x1a, LEAVE),
        on(0x1c, LEAVE),
        on(b'\t', typed),
        within(0, 31, control),
        within(0, 255, typed),
    ]
}

/// The line editor.
pub const EDIT: Machine = Machine {
    name: "edit",
    words: &["head", "start", "column", "line_column", "literal_next", "last", "in_word", "length"],
    arrays: &[EDIT_RING_BYTES, EDIT_RING_BYTES / 8],
    sets: &[
        &[(0, 8), (10, 31), (127, 127)],
        &[(b'0', b'9'), (b'A', b'Z'), (b'a', b'z'), (b'_', b'_'), (0xc0, 0xd6), (0xd8, 0xf6), (0xf8, 0xff)],
        &[(b'\t', b'\t'), (0x80, 0xbf)],
    ],
    states: &[
        State { name: "begin", rows: &rows(FIRST_TYPED, FIRST_TYPED_CONTROL) },
        State { name: "typing", rows: &rows(TYPED, TYPED_CONTROL) },
        State {
            name: "literal",
            rows: &[
                on(b'\t', LITERALLY),
                within(0, 31, CONTROL_LITERALLY),
                on(127, CONTROL_LITERALLY),
                within(0, 255, LITERALLY),
            ],
        },
    ],
};
