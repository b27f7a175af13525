//! The text window's VT-100 against screens that another terminal made of the same texts: pyte, which others wrote.
//! `pyte_vectors.py` made `vt100.txt` and compares any number of random texts.

use golden::{bench, code_store};
use kernel::call::Makers;
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

/// The VT-100 alone is made when it is needed; until then, and where there is no room for it then, its state is the other's.
#[test]
fn a_window_goes_on_interpreted_when_the_second_machine_finds_no_room() {
    let machines = Machines::new();
    let tty = Tty::new(16).expect("memory for a tty");
    let store = code_store(1 << 20);
    let [code, model] = [(); 2].map(|()| TextWindow::new(&machines));
    code.synthesize(&tty, Makers::new(bench(), store));
    store.limit(store.live_bytes());
    let pieces: [(Gate, &[u8]); 4] = [
        (Gate::Cooked, b"one\ntwo\x1b[3"),
        (Gate::Raw, b"1mred\n\x1b[2"),
        (Gate::Cooked, b";5Hup\n"),
        (Gate::Raw, b"x"),
    ];
    for (number, (gate, piece)) in pieces.into_iter().enumerate() {
        for window in [&code, &model] {
            window.put(gate, piece, &tty);
        }
        assert_eq!(code.code().is_some(), number == 0, "piece {number}");
        assert_eq!(code.standing(), model.standing(), "piece {number}");
        assert_eq!((code.cursor(), code.cells()), (model.cursor(), model.cells()), "piece {number}");
    }
}
