//! The line editor in code (S-96, S-11, S-116): bursts of input go through a state machine that edits the line and shows the
//! echo, `edit x cook` as one, from the device's bytes straight to both rings.
//!
//! ```text
//!   device_input ──▶ machine ──▶ line, marks        as long as each byte is the usual case
//!        │              └─────▶ output ring
//!        └─────▶ receive.rs ──▶ the same            for the one byte at which the machine left
//! ```
//! The machine does the usual case of a byte whole, or leaves and has done nothing of it. It is made for a tty and its
//! settings: which byte is which key. Other settings have other code, made when it is worth it and kept for when they come
//! back, as they do with shells that edit lines themselves.
//!
//! In a burst with a key that signals or stops output Rust alone works: what was typed before such a key is not shown yet
//! when it comes.

use alloc::vec::Vec;

use quaject::Makers;
use statemachine::terminal::{EDIT_ECHO_BYTES, edit_outside, edit_words};

use super::keys::{Keys, Setting};
use super::termios::lflag;
use super::{Effects, Tty};
use crate::automaton::{Automaton, Shared};

/// Bytes behind the output ring, where the machine may go on when it comes to the end within a byte.
pub(super) const OVERHANG_BYTES: usize = EDIT_ECHO_BYTES;

/// Bytes that should have come under one setting before code is made for it: what Rust does in the time that the making takes.
pub const EDITOR_WORTH_BYTES: usize = 2048;
/// Routines kept for settings that may come back.
const KEPT: usize = 2;

/// The editor's code.
#[derive(Default)]
pub(super) struct LineEditor {
    /// As in `Tty::work_in_code`.
    pub(super) worth_bytes: usize,
    /// By settings, the newest last.
    made: Vec<(Setting, Automaton)>,
    bound: Bound,
    /// Bytes that the machine took: a gauge (S-31).
    taken: u64,
}

/// What there is for the settings of now.
#[derive(Default)]
enum Bound {
    /// Nobody has looked.
    #[default]
    Unknown,
    /// No machine does what they ask for.
    Unusual,
    /// So many bytes have come, and no code was made yet.
    Counting(Keys, usize),
    /// The last of those made.
    Made(Keys),
}

impl Tty {
    /// Where the code for the settings of now begins, if there is some.
    pub fn editor(&self) -> Option<u64> {
        let made = self.editor.made.last().filter(|_| matches!(self.editor.bound, Bound::Made(_)));
        made.map(|made| made.1.entry())
    }

    /// Bytes of input that code has taken so far.
    pub fn edited_in_code(&self) -> u64 {
        self.editor.taken
    }

    /// Other settings: the code for them is looked for when input comes.
    pub(super) fn unbind_editor(&mut self) {
        self.editor.bound = Bound::Unknown;
    }

    /// Whether the machine may work on a burst: there is code, and none of the bytes is a key for which all must be in Rust.
    pub(super) fn editor_takes(&mut self, burst: &[u8]) -> bool {
        let Some(makers) = self.makers else { return false };
        if matches!(self.editor.bound, Bound::Unknown) {
            self.look_for_editor();
        }
        if let Bound::Counting(keys, seen) = &mut self.editor.bound {
            *seen = seen.saturating_add(burst.len());
            if *seen < self.editor.worth_bytes {
                return false;
            }
            let keys = *keys;
            self.make_editor(keys, makers);
        }
        match &self.editor.bound {
            Bound::Made(keys) => !keys.stop(burst),
            _ => false,
        }
    }

    #[expect(clippy::disallowed_methods, reason = "one was removed before")]
    fn look_for_editor(&mut self) {
        let setting = Setting::of(&self.termios);
        let found = self.editor.made.iter().position(|made| made.0 == setting);
        self.editor.bound = match (Keys::of(&self.termios), found) {
            (None, _) => Bound::Unusual,
            (Some(keys), None) => Bound::Counting(keys, 0),
            (Some(keys), Some(at)) => {
                let made = self.editor.made.remove(at);
                self.editor.made.push(made);
                Bound::Made(keys)
            }
        };
    }

    #[expect(clippy::disallowed_methods, reason = "KEPT at most")]
    fn make_editor(&mut self, keys: Keys, makers: Makers) {
        let arrays = [self.input.ring().base(), self.input.words().marks.as_ptr() as u64];
        let [column, line_column] = self.output.columns();
        let words: &[_] = &[(edit_words::COLUMN, column), (edit_words::LINE_COLUMN, line_column)];
        // Without echo the editor counts no columns.
        let shared = Shared { arrays: &arrays, words: if keys.echoes() { words } else { &[] } };
        let machine = keys.machine(&self.termios, &self.input.special);
        let made = Automaton::synthesize(keys.variant(), makers, &machine, &shared);
        let Some(made) = made else {
            self.editor.bound = Bound::Unusual;
            return;
        };
        if self.editor.made.len() == KEPT {
            self.editor.made.remove(0);
        }
        self.editor.made.push((Setting::of(&self.termios), made));
        self.editor.bound = Bound::Made(keys);
    }

    /// Has the machine take as much of `bytes` as it does (`Effects::accepted`). Returns whether it may go on in this burst,
    /// once Rust has done the next byte.
    pub(super) fn edit(&mut self, bytes: &[u8], effects: &mut Effects) -> bool {
        let Some((_, machine)) = self.editor.made.last() else { return false };
        if self.input.literal_next || self.input.erasing {
            return true;
        }
        let echoes = self.termios.local(lflag::ECHO);
        if echoes {
            // What was echoed before goes first.
            self.echo.show_all(&mut self.output, &self.termios);
        }
        if self.output.is_stopped() || echoes && !self.echo.is_empty() {
            return false;
        }
        let (head, start) = (self.input.head(), self.input.line_start());
        machine.word(edit_words::HEAD).set(head as u32);
        machine.word(edit_words::START).set(start as u32);
        machine.word(edit_words::LITERAL_NEXT).set(0);
        machine.restart();
        let mut rest = &bytes[..self.input.raw_room().min(bytes.len())];
        let given = rest.len();
        let mut goes_on = true;
        while !rest.is_empty() {
            // Without echo nothing is emitted.
            let room = if echoes { self.output.echo_room() } else { Some((0, 0)) };
            let Some((to, limit)) = room else {
                goes_on = false;
                break;
            };
            let eaten = machine.eat(rest, to, limit);
            self.output.stored(eaten.emitted);
            let left = usize::from(eaten.outside == u64::from(edit_outside::KEY));
            rest = &rest[eaten.taken - left..];
            if left == 1 {
                break;
            }
        }
        let ended = machine.word(edit_words::START).get().wrapping_sub(start as u32);
        let typed = machine.word(edit_words::HEAD).get().wrapping_sub(head as u32) as i32;
        self.input.edited(head.wrapping_add_signed(typed.into()), start + u64::from(ended));
        self.input.literal_next = machine.word(edit_words::LITERAL_NEXT).get() != 0;
        effects.wake_readers |= ended != 0;
        let taken = given - rest.len();
        effects.accepted += taken;
        self.editor.taken += taken as u64;
        self.searched_bytes = self.searched_bytes.saturating_sub(taken);
        goes_on
    }
}
