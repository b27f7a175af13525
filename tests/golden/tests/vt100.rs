//! The text window's VT-100 against screens that another terminal made of the same texts: pyte, which others wrote.
//! `pyte_vectors.py` made `vt100.txt` and compares any number of random texts.

use golden::bench;
use kernel::screen::{COLUMNS, Machines, ROWS, TextWindow};
use kernel::tty::{Gate, Tty};

const VECTORS: &str = include_str!("../vt100.txt");

/// What pyte shows of a text.
#[derive(PartialEq, Debug)]
struct Shown {
    cursor: (u32, u32),
    rows: Vec<String>,
}

/// What a window shows of a text that comes in pieces of `piece` bytes.
fn shown(window: &TextWindow, tty: &Tty, text: &[u8], piece: usize) -> Shown {
    text.chunks(piece).for_each(|piece| drop(window.put(Gate::Raw, piece, tty)));
    let cells = window.cells();
    let row = |cells: &[u16]| {
        let text: String = cells.iter().map(|cell| char::from(*cell as u8)).collect();
        text.trim_end().to_string()
    };
    let cursor = window.cursor();
    Shown { cursor: (cursor.row, cursor.column), rows: cells.chunks(COLUMNS as usize).map(row).collect() }
}

fn vectors() -> Vec<(Vec<u8>, Shown)> {
    let mut all: Vec<(Vec<u8>, Shown)> = Vec::new();
    for line in VECTORS.lines() {
        let (what, rest) = line.split_once(' ').expect("two words");
        let number = |word: &str| word.parse::<u32>().expect("a number");
        match what {
            "text" | "more" => {
                if what == "text" {
                    all.push((Vec::new(), Shown { cursor: (0, 0), rows: vec![String::new(); ROWS as usize] }));
                }
                let byte = |at| u8::from_str_radix(&rest[at..at + 2], 16).expect("hexadecimal");
                let text = &mut all.last_mut().expect("a text").0;
                text.extend((0..rest.len() / 2).map(|at| byte(2 * at)));
            }
            "cursor" => {
                let (row, column) = rest.split_once(' ').expect("two numbers");
                all.last_mut().expect("a text").1.cursor = (number(row), number(column));
            }
            _ => {
                let (row, text) = rest.split_once(' ').expect("a row");
                all.last_mut().expect("a text").1.rows[number(row) as usize] = text.to_string();
            }
        }
    }
    all
}

#[test]
fn the_vt100_shows_what_pyte_shows() {
    let machines = Machines::new();
    let vectors = vectors();
    assert!(vectors.len() >= 16);
    for (number, (text, pyte)) in vectors.iter().enumerate() {
        for (is_code, piece) in [(true, text.len()), (true, 7), (false, text.len())] {
            let tty = Tty::new(16).expect("memory for a tty");
            let window = TextWindow::new(&machines);
            if is_code {
                window.synthesize(&tty, bench().makers());
                assert!(window.code().is_some(), "room for code");
            }
            assert_eq!(shown(&window, &tty, text, piece), *pyte, "text {number}, code {is_code}, pieces of {piece}");
        }
    }
}
