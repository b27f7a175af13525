//! CookTTYin with Linux's default settings: canonical editing (erase, kill, word erase, literal next) with echo.
//!
//! It emits the echo, before the output filter. Finished lines and the one being typed stand in array 0; keys that need
//! more than the line (signals, flow control, end of file, reprint) and the erasure of a tab are outside.

use super::{on, within};
use crate::language::Value::{Const, Flipped, Input};
use crate::language::{Machine, State, Step, Step::*, Test};

/// Words that others look at.
pub mod edit_words {
    /// One past the newest byte of array 0.
    pub const HEAD: u16 = 0;
    /// First byte of the line being typed.
    pub const START: u16 = 1;
}

/// What is outside.
pub mod edit_outside {
    /// A line is finished.
    pub const LINE: u16 = 1;
    /// A key that is no editing.
    pub const KEY: u16 = 2;
    /// A tab was erased: how far back it reached is known to the output filter.
    pub const TAB_ERASED: u16 = 3;
}

use edit_outside::{KEY, LINE, TAB_ERASED};
use edit_words::{HEAD, START};

const LAST: u16 = 2;
const IN_WORD: u16 = 3;

const LINES: u16 = 0;

const CONTROLS: u16 = 0;
/// What word erase takes for a part of a word, in Latin-1.
const OF_WORDS: u16 = 1;

const TYPING: u16 = 0;
const LITERAL: u16 = 1;

const PUT: &[Step] = &[Store(LINES, HEAD, Input), Add(HEAD, 1), Go(TYPING)];
const TYPED: &[Step] = &[Emit(Input), When(Test::Same(0, 0), PUT, &[])];
const TYPED_CONTROL: &[Step] = &[Emit(Const(b'^')), Emit(Flipped(0x40)), When(Test::Same(0, 0), PUT, &[])];
const END: &[Step] =
    &[Emit(Const(b'\n')), Store(LINES, HEAD, Const(b'\n')), Add(HEAD, 1), Move(START, HEAD), Outside(LINE)];

const LOAD_LAST: &[Step] = &[Add(HEAD, u32::MAX), Load(LAST, LINES, HEAD)];
const RUB_OUT: &[Step] = &[Emit(Const(8)), Emit(Const(b' ')), Emit(Const(8))];
const RUB_OUT_TWO: &[Step] =
    &[Emit(Const(8)), Emit(Const(b' ')), Emit(Const(8)), Emit(Const(8)), Emit(Const(b' ')), Emit(Const(8))];
/// The character in `LAST` goes from the screen.
const SHOW_ERASED: Step =
    When(Test::In(LAST, CONTROLS), RUB_OUT_TWO, &[When(Test::Is(LAST, b'\t' as u32), &[Outside(TAB_ERASED)], RUB_OUT)]);
const ALWAYS: Test = Test::Same(0, 0);

const ERASE: &[Step] = &[When(Test::Differ(HEAD, START), &[When(ALWAYS, LOAD_LAST, &[]), SHOW_ERASED], &[])];
const KILL: &[Step] = &[While(Test::Differ(HEAD, START), &[When(ALWAYS, LOAD_LAST, &[]), SHOW_ERASED])];
const ERASE_WORD: &[Step] = &[
    Set(IN_WORD, 0),
    While(
        Test::Differ(HEAD, START),
        &[
            When(ALWAYS, LOAD_LAST, &[]),
            When(
                Test::In(LAST, OF_WORDS),
                &[Set(IN_WORD, 1)],
                // The byte before the word stays.
                &[When(Test::Is(IN_WORD, 1), &[Add(HEAD, 1), Go(TYPING)], &[])],
            ),
            SHOW_ERASED,
        ],
    ),
];

/// The line editor.
pub const EDIT: Machine = Machine {
    name: "edit",
    words: &["head", "start", "last", "in_word"],
    arrays: &[4096],
    sets: &[
        &[(0, 8), (10, 31), (127, 127)],
        &[(b'0', b'9'), (b'A', b'Z'), (b'a', b'z'), (b'_', b'_'), (0xc0, 0xd6), (0xd8, 0xf6), (0xf8, 0xff)],
    ],
    states: &[
        State {
            name: "typing",
            rows: &[
                on(b'\n', END),
                on(b'\r', END),
                on(127, ERASE),
                on(0x15, KILL),
                on(0x17, ERASE_WORD),
                on(0x16, &[Emit(Const(b'^')), Emit(Const(8)), Go(LITERAL)]),
                // ^C ^D ^Q ^R ^S ^Z ^\: signals, end of file, flow control, reprint.
                within(3, 4, &[Outside(KEY)]),
                within(0x11, 0x13, &[Outside(KEY)]),
                on(0x1a, &[Outside(KEY)]),
                on(0x1c, &[Outside(KEY)]),
                on(b'\t', TYPED),
                within(0, 31, TYPED_CONTROL),
                within(0, 255, TYPED),
            ],
        },
        State {
            name: "literal",
            rows: &[on(b'\t', TYPED), within(0, 31, TYPED_CONTROL), on(127, TYPED_CONTROL), within(0, 255, TYPED)],
        },
    ],
};
