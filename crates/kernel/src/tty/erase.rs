//! Erasing: a character, a word, the whole line, and showing that on screen or on paper.

use super::Tty;
use super::bytes::{is_alphanumeric, is_control};
use super::output::is_continuation;
use super::termios::{cc, lflag};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    Character,
    Word,
    Line,
}

impl Tty {
    /// Erases as `key` (VERASE, VWERASE or VKILL) says. Nothing happens on an empty line.
    pub(super) fn erase(&mut self, key: u8) {
        if self.input.line_is_empty() {
            return;
        }
        let extent = if key == self.key(cc::VERASE) {
            Extent::Character
        } else if key == self.key(cc::VWERASE) {
            Extent::Word
        } else {
            Extent::Line
        };
        if extent == Extent::Line && !self.kills_visibly() {
            return self.kill_line();
        }
        self.erase_characters(extent);
        if self.input.line_is_empty() && self.echoes() {
            self.finish_erasing();
        }
    }

    /// Whether killing a line rubs it out on the screen.
    fn kills_visibly(&self) -> bool {
        let needed = lflag::ECHO | lflag::ECHOK | lflag::ECHOKE | lflag::ECHOE;
        self.termios.c_lflag & needed == needed
    }

    fn kill_line(&mut self) {
        self.input.cut_from(self.input.line_start());
        if self.echoes() {
            self.finish_erasing();
            self.echo_byte(self.key(cc::VKILL));
            if self.termios.local(lflag::ECHOK) {
                self.add_echo(b'\n');
            }
        }
    }

    fn erase_characters(&mut self, extent: Extent) {
        let mut in_word = false;
        while let Some(start) = self.last_character() {
            let first = self.input.at(start);
            if extent == Extent::Word {
                let of_word = is_alphanumeric(first) || first == b'_';
                if in_word && !of_word {
                    return;
                }
                in_word |= of_word;
            }
            let end = self.input.head();
            self.input.cut_from(start);
            if self.echoes() {
                self.echo_erasure(start, end, extent);
            }
            if extent == Extent::Character {
                return;
            }
        }
    }

    /// Index of the first byte of the last character typed. `None` on an empty line, and when there
    /// are only continuation bytes: half a character is not erased.
    fn last_character(&self) -> Option<u64> {
        let typed = self.input.line_start()..self.input.head();
        typed.rev().find(|&index| !is_continuation(self.input.at(index), &self.termios))
    }

    /// Shows that the character in `start..end`, just cut off, is gone.
    fn echo_erasure(&mut self, start: u64, end: u64, extent: Extent) {
        let first = self.input.at(start);
        if self.termios.local(lflag::ECHOPRT) {
            self.print_erased(start, end);
        } else if extent == Extent::Character && !self.termios.local(lflag::ECHOE) {
            self.echo_byte(self.key(cc::VERASE));
        } else if first == b'\t' {
            self.erase_tab();
        } else if !is_control(first) {
            self.rub_out();
        } else if self.termios.local(lflag::ECHOCTL) {
            self.rub_out();
            self.rub_out();
        }
    }

    /// For terminals that print: the erased characters, backwards, between `\` and `/`.
    fn print_erased(&mut self, start: u64, end: u64) {
        if !self.input.erasing {
            self.add_echo(b'\\');
            self.input.erasing = true;
        }
        self.echo_byte(self.input.at(start));
        for index in start + 1..end {
            self.add_echo(self.input.at(index));
            self.reserve_echo();
            self.echo.add_move_back();
        }
    }

    /// Ends the `\...` of `print_erased`.
    pub(super) fn finish_erasing(&mut self) {
        if core::mem::take(&mut self.input.erasing) {
            self.add_echo(b'/');
        }
    }

    fn rub_out(&mut self) {
        for byte in *b"\x08 \x08" {
            self.add_echo(byte);
        }
    }

    /// How far back a tab reaches depends on the columns before it, since the line's start or the
    /// previous tab. The line's start on the screen is known only when the echo is shown.
    fn erase_tab(&mut self) {
        let mut columns = 0;
        let mut after_tab = false;
        for index in (self.input.line_start()..self.input.head()).rev() {
            let byte = self.input.at(index);
            if byte == b'\t' {
                after_tab = true;
                break;
            }
            columns += self.columns_of(byte);
        }
        self.reserve_echo();
        self.echo.add_erase_tab(columns, after_tab);
    }

    fn columns_of(&self, byte: u8) -> u32 {
        if is_control(byte) {
            if self.termios.local(lflag::ECHOCTL) { 2 } else { 0 }
        } else {
            u32::from(!is_continuation(byte, &self.termios))
        }
    }
}
