//! What a byte from the device does: enters the line, edits it, ends it, signals, stops output.

use super::bytes::{is_control, lower};
use super::termios::{DISABLED, cc, iflag, lflag};
use super::{CookTtyOut, Effects, Signal, Tty};

impl Tty {
    /// Callentry of the device: bytes arrived. Takes as many as have room (`Effects::accepted`).
    /// The device keeps the others, and offers them again, with newer ones behind, when
    /// `device_may_resume` says so or more arrive. ^S and ^Q among them work at once.
    pub fn device_input(&mut self, bytes: &[u8]) -> Effects {
        let mut effects = Effects::default();
        if self.hung_up {
            effects.accepted = bytes.len();
            return effects;
        }
        if self.termios.is_raw() {
            let room = self.input.raw_room().min(bytes.len());
            effects.accepted = self.input.put_slice(&bytes[..room]);
            self.searched_bytes = 0;
        } else if self.means_only_itself(bytes) {
            let room = self.input.raw_room().min(bytes.len());
            effects.accepted = self.input.put_slice(&bytes[..room]);
            self.searched_bytes = self.searched_bytes.saturating_sub(room);
            self.search_flow_control(&bytes[room..], &mut effects);
        } else {
            let spread = if self.termios.input(iflag::PARMRK) { 3 } else { 1 };
            let mut in_code = self.editor_takes(bytes);
            loop {
                if in_code {
                    in_code = self.edit(&bytes[effects.accepted..], &mut effects);
                }
                let Some(&byte) = bytes.get(effects.accepted) else { break };
                if !self.input.make_room(spread, self.termios.local(lflag::ICANON)) {
                    break;
                }
                self.receive(byte, &mut effects);
                self.searched_bytes = self.searched_bytes.saturating_sub(1);
                effects.accepted += 1;
            }
            self.search_flow_control(&bytes[effects.accepted..], &mut effects);
        }
        self.refused_input = effects.accepted < bytes.len();
        self.end_of_burst(&mut effects);
        effects
    }

    /// The device saw a break condition on the line.
    pub fn device_break(&mut self) -> Effects {
        let mut effects = Effects::default();
        if self.termios.input(iflag::IGNBRK) {
            return effects;
        }
        if self.termios.input(iflag::BRKINT) {
            self.signal(Signal::Interrupt, &mut effects);
        } else {
            if self.termios.input(iflag::PARMRK) {
                self.input.put(0xff);
                self.input.put(0);
            }
            self.input.put(0);
        }
        self.end_of_burst(&mut effects);
        effects
    }

    /// The device received `byte` with wrong parity or framing.
    pub fn device_damaged(&mut self, byte: u8) -> Effects {
        let mut effects = Effects::default();
        match (self.termios.input(iflag::INPCK), self.termios.input(iflag::PARMRK)) {
            _ if self.termios.input(iflag::IGNPAR) => return effects,
            (true, true) => [0xff, 0, byte].into_iter().for_each(|byte| self.input.put(byte)),
            (true, false) => self.input.put(0),
            (false, _) => self.input.put(byte),
        }
        self.end_of_burst(&mut effects);
        effects
    }

    /// Whether all that happens to a burst is that it can be read: no lines, no echo, and no key among its bytes.
    fn means_only_itself(&self, burst: &[u8]) -> bool {
        let plain = !self.termios.local(lflag::ICANON | lflag::ECHO | lflag::EXTPROC)
            && !self.termios.input(iflag::ISTRIP | iflag::IUCLC | iflag::PARMRK);
        plain
            && !self.input.literal_next
            && !self.output.is_stopped()
            && !burst.iter().any(|&byte| self.input.special.contains(byte))
    }

    /// Shows the echo of a burst, and tells readers without lines what they have.
    fn end_of_burst(&mut self, effects: &mut Effects) {
        if self.termios.local(lflag::ECHO | lflag::ECHONL) {
            self.echo.show_all(&mut self.output, &self.termios);
        }
        if !self.termios.is_canonical() && self.input.len() > 0 {
            effects.wake_readers = true;
        }
        self.throttle();
        effects.output_pending = self.output.pending() > 0;
        self.settle();
    }

    fn receive(&mut self, byte: u8, effects: &mut Effects) {
        let mut byte = byte;
        if self.termios.input(iflag::ISTRIP) {
            byte &= 0x7f;
        }
        if self.termios.input(iflag::IUCLC) && self.termios.local(lflag::IEXTEN) {
            byte = lower(byte);
        }
        if core::mem::take(&mut self.input.literal_next) {
            self.receive_plain(byte, effects);
        } else if self.termios.local(lflag::EXTPROC) {
            self.input.put(byte);
        } else if self.input.special.contains(byte) {
            self.receive_special(byte, effects);
        } else {
            self.receive_plain(byte, effects);
        }
    }

    /// A byte that means only itself.
    fn receive_plain(&mut self, byte: u8, effects: &mut Effects) {
        self.start_on_any_key(effects);
        if self.echoes() {
            self.finish_erasing();
            self.echo_typed(byte);
            self.commit_echo();
        }
        self.put_typed(byte);
    }

    fn receive_special(&mut self, byte: u8, effects: &mut Effects) {
        if self.receive_flow_control(byte, effects) {
            return;
        }
        if let Some(signal) = self.signal_key(byte) {
            return self.receive_signal_key(byte, signal, effects);
        }
        self.start_on_any_key(effects);
        let byte = match byte {
            b'\r' if self.termios.input(iflag::IGNCR) => return,
            b'\r' if self.termios.input(iflag::ICRNL) => b'\n',
            b'\n' if self.termios.input(iflag::INLCR) => b'\r',
            byte => byte,
        };
        if self.termios.local(lflag::ICANON) && self.receive_editing(byte, effects) {
            return;
        }
        if self.echoes() {
            self.finish_erasing();
            if byte == b'\n' {
                self.add_echo(b'\n');
            } else {
                self.echo_typed(byte);
            }
            self.commit_echo();
        }
        self.put_typed(byte);
    }

    /// Obeys ^S and ^Q in bytes that have no room yet: with a full input, and a program that waits
    /// in a write, ^Q would otherwise never get through.
    fn search_flow_control(&mut self, refused: &[u8], effects: &mut Effects) {
        let searched = core::mem::take(&mut self.searched_bytes);
        for &byte in refused.iter().skip(searched) {
            self.receive_flow_control(byte, effects);
        }
        self.searched_bytes = refused.len();
    }

    /// ^Q and ^S. True when `byte` was one of them.
    fn receive_flow_control(&mut self, byte: u8, effects: &mut Effects) -> bool {
        let keys = [self.key(cc::VSTART), self.key(cc::VSTOP)];
        if !self.termios.input(iflag::IXON) || byte == DISABLED || !keys.contains(&byte) {
            return false;
        }
        if self.searched_bytes > 0 {
            return true;
        }
        if byte == self.key(cc::VSTART) {
            self.start_output(effects);
            self.show_echo();
        } else {
            self.change_flow(CookTtyOut::stop);
        }
        true
    }

    fn signal_key(&self, byte: u8) -> Option<Signal> {
        let keys = [(cc::VINTR, Signal::Interrupt), (cc::VQUIT, Signal::Quit), (cc::VSUSP, Signal::TerminalStop)];
        let found = keys.into_iter().find(|&(key, _)| self.key(key) == byte);
        found.filter(|_| self.termios.local(lflag::ISIG)).map(|(_, signal)| signal)
    }

    fn receive_signal_key(&mut self, byte: u8, signal: Signal, effects: &mut Effects) {
        self.signal(signal, effects);
        if self.termios.input(iflag::IXON) {
            self.start_output(effects);
        }
        if self.echoes() {
            self.echo_byte(byte);
            self.commit_echo();
        } else {
            self.show_echo();
        }
    }

    /// Signals the foreground group, and forgets what is underway in both directions unless `NOFLSH`.
    fn signal(&mut self, signal: Signal, effects: &mut Effects) {
        effects.signals.insert(signal);
        if !self.termios.local(lflag::NOFLSH) {
            self.echo.clear();
            self.flush_output();
            self.flush_input();
            effects.wake_writers = true;
        }
    }

    /// Editing keys and the ends of lines. True when `byte` was consumed.
    fn receive_editing(&mut self, byte: u8, effects: &mut Effects) -> bool {
        let extended = self.termios.local(lflag::IEXTEN);
        if byte == self.key(cc::VERASE) || byte == self.key(cc::VKILL) || (extended && byte == self.key(cc::VWERASE)) {
            self.erase(byte);
            self.commit_echo();
        } else if extended && byte == self.key(cc::VLNEXT) {
            self.begin_literal();
        } else if extended && self.echoes() && byte == self.key(cc::VREPRINT) {
            self.reprint(byte);
        } else if byte == b'\n' {
            if self.termios.local(lflag::ECHO | lflag::ECHONL) {
                self.add_echo(b'\n');
                self.commit_echo();
            }
            self.end_line(byte, effects);
        } else if byte == self.key(cc::VEOF) {
            self.end_line(DISABLED, effects);
        } else if byte == self.key(cc::VEOL) || (extended && byte == self.key(cc::VEOL2)) {
            self.end_line_with_key(byte, effects);
        } else {
            return false;
        }
        true
    }

    fn end_line(&mut self, byte: u8, effects: &mut Effects) {
        self.input.put_end(byte);
        effects.wake_readers = true;
    }

    fn end_line_with_key(&mut self, byte: u8, effects: &mut Effects) {
        if self.echoes() {
            self.echo_typed(byte);
            self.commit_echo();
        }
        if byte == 0xff && self.termios.input(iflag::PARMRK) {
            self.input.put(byte);
        }
        self.end_line(byte, effects);
    }

    /// ^V: the next byte is literal. A caret marks the place until it comes.
    fn begin_literal(&mut self) {
        self.input.literal_next = true;
        if self.echoes() {
            self.finish_erasing();
            if self.termios.local(lflag::ECHOCTL) {
                self.add_echo(b'^');
                self.add_echo(b'\x08');
                self.commit_echo();
            }
        }
    }

    /// ^R: shows the line being typed anew.
    fn reprint(&mut self, key: u8) {
        self.finish_erasing();
        self.echo_byte(key);
        self.add_echo(b'\n');
        for index in self.input.line_start()..self.input.head() {
            self.echo_byte(self.input.at(index));
        }
        self.commit_echo();
    }

    fn start_on_any_key(&mut self, effects: &mut Effects) {
        if self.output.is_stopped_by_key() && self.termios.c_iflag & XON_ANY == XON_ANY {
            self.start_output(effects);
            self.show_echo();
        }
    }

    pub(super) fn start_output(&mut self, effects: &mut Effects) {
        if self.change_flow(CookTtyOut::start) {
            effects.wake_writers = true;
        }
    }

    /// Puts a byte into the line; with `PARMRK` a real 0xff is told from a mark by being doubled.
    fn put_typed(&mut self, byte: u8) {
        if byte == 0xff && self.termios.input(iflag::PARMRK) {
            self.input.put(byte);
        }
        self.input.put(byte);
    }

    /// Echoes a byte that enters the line; the first one notes where on the screen the line begins.
    fn echo_typed(&mut self, byte: u8) {
        if self.input.line_is_empty() {
            self.reserve_echo();
            self.echo.add_mark_line_start();
        }
        self.echo_byte(byte);
    }

    /// Echoes a byte, a control character as `^X` if the settings say so.
    pub(super) fn echo_byte(&mut self, byte: u8) {
        self.reserve_echo();
        if self.termios.local(lflag::ECHOCTL) && is_control(byte) && byte != b'\t' {
            self.echo.add_caret(byte);
        } else {
            self.echo.add(byte);
        }
    }

    /// Echoes a byte as it is.
    pub(super) fn add_echo(&mut self, byte: u8) {
        self.reserve_echo();
        self.echo.add(byte);
    }

    /// Makes sure that one operation fits into the queue of echo.
    pub(super) fn reserve_echo(&mut self) {
        if self.echo.free() < 3 {
            self.echo.show_all(&mut self.output, &self.termios);
        }
    }

    fn commit_echo(&mut self) {
        self.echo.commit(&mut self.output, &self.termios);
    }

    pub(super) fn show_echo(&mut self) {
        self.echo.show(&mut self.output, &self.termios);
    }

    pub(super) fn echoes(&self) -> bool {
        self.termios.local(lflag::ECHO)
    }

    pub(super) fn key(&self, place: usize) -> u8 {
        self.termios.c_cc[place]
    }
}

/// Both must be set for any key to start the output.
const XON_ANY: u32 = iflag::IXON | iflag::IXANY;
