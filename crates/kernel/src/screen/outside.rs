//! What the VT-100's machine leaves to its surroundings: margins, clearing, attributes, modes, reports. Where the standards
//! leave room, as the console of Linux does (console_codes(4)).

use alloc::format;
use alloc::vec::Vec;
use core::cell::Cell;

use machine::KernelValue;

use statemachine::terminal::{CELLS, COLUMNS, ROWS, SCREEN, SEQUENCE_BYTES, TEXT, vt_outside, vt_words as words};
use statemachine::{Memory, Outside};

/// Bytes of answers in one piece of output, as a reader can have waiting.
const ANSWER_BYTES_MAX: usize = 4096;
/// Numbers of a sequence that count.
const NUMBERS: usize = 16;
/// Light grey on black.
const USUAL_COLORS: u8 = 0x07;
/// The colour of what is underlined: cyan.
const UNDERLINED: u8 = 0x03;
/// VGA's colours in the order of ANSI's.
const COLORS: [u8; 8] = [0, 4, 2, 6, 1, 5, 3, 7];

/// How characters look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Look {
    /// Foreground, and background in the upper half.
    colors: u8,
    bold: bool,
    underlined: bool,
    blinking: bool,
    reversed: bool,
}

const USUAL: Look = Look { colors: USUAL_COLORS, bold: false, underlined: false, blinking: false, reversed: false };

impl Look {
    /// The attribute byte of VGA text.
    fn attribute(self) -> u8 {
        let mut colors = self.colors;
        if self.underlined {
            colors = colors & 0xf0 | UNDERLINED;
        }
        if self.reversed {
            colors = colors & 0x88 | colors.rotate_left(4) & 0x77;
        }
        colors ^ u8::from(self.blinking) << 7 ^ u8::from(self.bold) << 3
    }

    /// That of what is cleared.
    fn blank(self) -> u8 {
        self.colors ^ u8::from(self.blinking) << 7
    }

    /// SGR, one number.
    fn change(&mut self, number: u32) {
        match number {
            0 => *self = USUAL,
            1 => self.bold = true,
            4 => self.underlined = true,
            5 => self.blinking = true,
            7 => self.reversed = true,
            21 => self.underlined = true,
            22 => self.bold = false,
            24 => self.underlined = false,
            25 => self.blinking = false,
            27 => self.reversed = false,
            30..=37 => self.colors = self.colors & 0xf0 | COLORS[number as usize - 30],
            39 => self.colors = self.colors & 0xf0 | USUAL_COLORS & 0x0f,
            40..=47 => self.colors = self.colors & 0x0f | COLORS[number as usize - 40] << 4,
            49 => self.colors = self.colors & 0x0f | USUAL_COLORS & 0xf0,
            90..=97 => self.colors = self.colors & 0xf0 | COLORS[number as usize - 90] | 8,
            100..=107 => self.colors = self.colors & 0x0f | COLORS[number as usize - 100] << 4,
            _ => {}
        }
    }
}

/// How the next character looks, and what DECSC saved: row, column, look.
pub(super) struct Style {
    now: KernelValue<Look>,
    saved: KernelValue<(u32, u32, Look)>,
}

impl Default for Style {
    fn default() -> Style {
        Style { now: KernelValue::new(USUAL), saved: KernelValue::new((0, 0, USUAL)) }
    }
}

/// The surroundings of a VT-100 while its machine runs.
pub(super) struct Surroundings<'a> {
    memory: Memory<'a>,
    style: &'a Style,
    /// What the terminal says to the host.
    pub answer: Vec<u8>,
}

impl Outside for Surroundings<'_> {
    fn call(&mut self, number: u16, _: Memory<'_>) {
        match number {
            vt_outside::SCROLL => self.move_up(self.word(words::TOP), self.word(words::BOTTOM), 1),
            vt_outside::SCROLL_BACK => self.move_down(self.word(words::TOP), self.word(words::BOTTOM), 1),
            vt_outside::SEQUENCE => self.sequence(),
            vt_outside::RESET => self.reset(),
            vt_outside::SAVE => self.save(),
            vt_outside::RESTORE => self.restore(),
            // There is no bell.
            _ => {}
        }
    }
}

impl<'a> Surroundings<'a> {
    pub fn new(memory: Memory<'a>, style: &'a Style) -> Surroundings<'a> {
        Surroundings { memory, style, answer: Vec::new() }
    }

    fn word(&self, word: u16) -> u32 {
        self.memory.words[usize::from(word)].get()
    }

    fn set(&self, word: u16, number: u32) {
        self.memory.words[usize::from(word)].set(number);
    }

    /// The ring's number of a row's first cell.
    fn row(&self, row: u32) -> u32 {
        let cursor = self.word(words::COLUMN) + COLUMNS * self.word(words::ROW);
        self.word(words::AT).wrapping_sub(cursor).wrapping_add(COLUMNS * row)
    }

    fn get(&self, number: u32) -> u16 {
        let (at, cells) = (2 * (number as usize % CELLS), &self.memory.arrays[usize::from(SCREEN)]);
        u16::from_le_bytes([cells[at].get(), cells[at + 1].get()])
    }

    fn put(&self, number: u32, cell: u16) {
        let (at, cells) = (2 * (number as usize % CELLS), &self.memory.arrays[usize::from(SCREEN)]);
        let [low, high] = cell.to_le_bytes();
        cells[at].set(low);
        cells[at + 1].set(high);
    }

    /// Answers a question. Who asks more than a terminal's reader can have waiting is not heard.
    #[expect(clippy::disallowed_methods, reason = "ANSWER_BYTES_MAX, and one answer more")]
    fn tell(&mut self, answer: &[u8]) {
        if self.answer.len() < ANSWER_BYTES_MAX {
            self.answer.extend_from_slice(answer);
        }
    }

    /// All cells, row by row.
    #[expect(clippy::disallowed_methods, reason = "a screen")]
    pub fn cells(&self) -> Vec<u16> {
        let first = self.row(0);
        (0..COLUMNS * ROWS).map(|at| self.get(first.wrapping_add(at))).collect()
    }

    fn clear(&self, row: u32, columns: core::ops::Range<u32>) {
        let blank = (self.word(words::BLANK) as u16).to_le_bytes();
        let cells = self.memory.arrays[usize::from(SCREEN)].as_chunks().0;
        let first = self.row(row).wrapping_add(columns.start) as usize % CELLS;
        let set = |[low, high]: &[Cell<u8>; 2]| {
            low.set(blank[0]);
            high.set(blank[1]);
        };
        // As a row in a ring: what goes over the end is at its beginning.
        let (end, behind) = (first + columns.len(), (first + columns.len()).saturating_sub(CELLS));
        cells[first..end.min(CELLS)].iter().chain(&cells[..behind]).for_each(set);
    }

    fn clear_rows(&self, rows: core::ops::Range<u32>) {
        rows.for_each(|row| self.clear(row, 0..COLUMNS));
    }

    fn copy_row(&self, from: u32, to: u32) {
        let (from, to) = (self.row(from), self.row(to));
        (0..COLUMNS).for_each(|column| self.put(to.wrapping_add(column), self.get(from.wrapping_add(column))));
    }

    /// Rows `top` to `bottom` move up; those that come in are blank.
    fn move_up(&self, top: u32, bottom: u32, by: u32) {
        let by = by.min(bottom + 1 - top);
        (top + by..=bottom).for_each(|row| self.copy_row(row, row - by));
        self.clear_rows(bottom + 1 - by..bottom + 1);
    }

    fn move_down(&self, top: u32, bottom: u32, by: u32) {
        let by = by.min(bottom + 1 - top);
        (top + by..=bottom).rev().for_each(|row| self.copy_row(row - by, row));
        self.clear_rows(top..top + by);
    }

    /// Puts the cursor, at most onto the edge.
    fn go(&self, row: u32, column: u32) {
        let (row, column) = (row.min(ROWS - 1), column.min(COLUMNS - 1));
        self.set(words::AT, self.row(row).wrapping_add(column));
        self.set(words::ROW, row);
        self.set(words::COLUMN, column);
    }

    /// The cursor; from behind the last cell it goes onto it.
    fn cursor(&self) -> (u32, u32) {
        let (row, column) = (self.word(words::ROW), self.word(words::COLUMN));
        self.go(row, column);
        (row, column.min(COLUMNS - 1))
    }

    /// Where movements from this row up and down end.
    fn edges(&self, row: u32) -> (u32, u32) {
        let (top, bottom) = (self.word(words::TOP), self.word(words::BOTTOM));
        (if row < top { 0 } else { top }, if row > bottom { ROWS - 1 } else { bottom })
    }

    fn look(&self, look: Look) {
        self.style.now.set(look);
        self.set(words::ATTRIBUTE, u32::from(look.attribute()) << 8);
        let blank = u32::from(look.blank()) << 8 | u32::from(b' ');
        self.set(words::BLANK, blank << 16 | blank);
    }

    /// DECSC. What is behind the last cell stays there.
    fn save(&self) {
        self.style.saved.set((self.word(words::ROW), self.word(words::COLUMN), self.style.now.get()));
    }

    fn restore(&self) {
        let (row, column, look) = self.style.saved.get();
        self.go(row, column);
        self.look(look);
    }

    /// RIS: as the window was at first.
    pub fn reset(&self) {
        self.go(0, 0);
        self.look(USUAL);
        self.style.saved.set((0, 0, USUAL));
        self.set_margins(0, ROWS - 1);
        self.set(words::NO_WRAP, 0);
        self.clear_rows(0..ROWS);
    }

    fn set_margins(&self, top: u32, bottom: u32) {
        self.set(words::TOP, top);
        self.set(words::BOTTOM, bottom);
        self.set(words::HAS_MARGINS, u32::from((top, bottom) != (0, ROWS - 1)));
    }

    /// A control sequence: perhaps a private mark, numbers, its name.
    fn sequence(&mut self) {
        let text: [u8; SEQUENCE_BYTES] =
            core::array::from_fn(|at| self.memory.arrays[usize::from(TEXT)].get(at).map_or(0, Cell::get));
        let length = (self.word(words::LENGTH) as usize).clamp(1, SEQUENCE_BYTES);
        let (name, text) = (text[length - 1], &text[..length - 1]);
        let (mark, text) = match text {
            [mark @ b'<'..=b'?', rest @ ..] => (*mark, rest),
            _ => (0, text),
        };
        if !text.iter().all(|byte| byte.is_ascii_digit() || *byte == b';') {
            return;
        }
        let mut numbers = [0; NUMBERS];
        let mut count = 0;
        for (place, number) in numbers.iter_mut().zip(text.split(|byte| *byte == b';')) {
            *place = number.iter().fold(0u32, |all, digit| (all * 10 + u32::from(digit - b'0')).min(9999));
            count += 1;
        }
        match (mark, name) {
            (0, name) => self.control(name, &numbers[..count]),
            (b'?', b'h' | b'l') if numbers[..count].contains(&7) => self.set(words::NO_WRAP, u32::from(name == b'l')),
            _ => {}
        }
    }

    fn control(&mut self, name: u8, numbers: &[u32]) {
        let (first, second) = (numbers[0], numbers.get(1).copied().unwrap_or(0));
        let some = first.max(1);
        let (row, column) = (self.word(words::ROW), self.word(words::COLUMN).min(COLUMNS - 1));
        match name {
            b'@' => self.insert(some),
            b'E' => self.go((row + some).min(self.edges(row).1), 0),
            b'F' => self.go(row.saturating_sub(some).max(self.edges(row).0), 0),
            b'G' | b'`' => self.go(row, some - 1),
            b'a' => self.go(row, column + some),
            b'd' => self.go(some - 1, column),
            b'e' => self.go(row + some, column),
            b'J' => self.erase_screen(first),
            b'K' => self.erase_line(first),
            b'L' | b'M' => self.shift_lines(name, some),
            b'P' => self.delete(some),
            b'X' => {
                self.cursor();
                self.clear(row, column..(column + some).min(COLUMNS));
            }
            b'c' if first == 0 => self.tell(b"\x1b[?6c"),
            b'm' => {
                let mut look = self.style.now.get();
                numbers.iter().for_each(|number| look.change(*number));
                self.look(look);
            }
            b'n' if first == 5 => self.tell(b"\x1b[0n"),
            b'n' if first == 6 => {
                #[expect(clippy::disallowed_macros, reason = "two numbers")]
                let place = format!("\x1b[{};{}R", row + 1, column + 1);
                self.tell(place.as_bytes());
            }
            b'r' => {
                let bottom = if second == 0 { ROWS } else { second };
                if some < bottom && bottom <= ROWS {
                    self.set_margins(some - 1, bottom - 1);
                    self.go(0, 0);
                }
            }
            b's' => self.save(),
            b'u' => self.restore(),
            _ => {}
        }
    }

    /// ED.
    fn erase_screen(&self, what: u32) {
        let (row, column) = self.cursor();
        match what {
            0 => {
                self.clear(row, column..COLUMNS);
                self.clear_rows(row + 1..ROWS);
            }
            1 => {
                self.clear_rows(0..row);
                self.clear(row, 0..column + 1);
            }
            2 | 3 => self.clear_rows(0..ROWS),
            _ => {}
        }
    }

    /// EL.
    fn erase_line(&self, what: u32) {
        let (row, column) = self.cursor();
        match what {
            0 => self.clear(row, column..COLUMNS),
            1 => self.clear(row, 0..column + 1),
            2 => self.clear(row, 0..COLUMNS),
            _ => {}
        }
    }

    /// ICH.
    fn insert(&self, count: u32) {
        let (row, column) = self.cursor();
        let count = count.min(COLUMNS - column);
        let first = self.row(row);
        let places = (column + count..COLUMNS).rev().map(|column| first.wrapping_add(column));
        places.for_each(|at| self.put(at, self.get(at.wrapping_sub(count))));
        self.clear(row, column..column + count);
    }

    /// DCH.
    fn delete(&self, count: u32) {
        let (row, column) = self.cursor();
        let count = count.min(COLUMNS - column);
        let first = self.row(row);
        let places = (column..COLUMNS - count).map(|column| first.wrapping_add(column));
        places.for_each(|at| self.put(at, self.get(at.wrapping_add(count))));
        self.clear(row, COLUMNS - count..COLUMNS);
    }

    /// IL and DL: lines from the cursor's to the bottom margin.
    fn shift_lines(&self, name: u8, count: u32) {
        let (row, _) = self.cursor();
        let (_, bottom) = self.edges(row);
        match name {
            b'L' => self.move_down(row, bottom, count),
            _ => self.move_up(row, bottom, count),
        }
    }
}
