//! Shows text as a text window would, for comparison with other VT-100s: each line of the input is a text, in hexadecimal.
//! Prints the cursor's row and column, then the screen's characters and attributes, in hexadecimal, too.
//! `tests/golden/pyte_vectors.py` drives it.

use std::io::stdin;

use golden::bench;
use kernel::screen::{Machines, TextWindow};
use kernel::tty::{Gate, Tty};

fn main() {
    let machines = Machines::new();
    for line in stdin().lines() {
        let line = line.expect("text");
        let byte = |at| u8::from_str_radix(&line[at..at + 2], 16).expect("hexadecimal");
        let text: Vec<u8> = (0..line.len() / 2).map(|at| byte(2 * at)).collect();
        let tty = Tty::new(16).expect("memory for a tty");
        let window = TextWindow::new(&machines);
        window.synthesize(&tty, bench().makers());
        assert!(window.code().is_some(), "room for code");
        window.put(Gate::Raw, &text, &tty);
        let cursor = window.cursor();
        let cells: String = window.cells().iter().map(|cell| format!("{cell:04x}")).collect();
        println!("{} {} {cells}", cursor.row, cursor.column);
    }
}
