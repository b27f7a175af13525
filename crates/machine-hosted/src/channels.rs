//! Channels on the host's own descriptors: 0, 1 and 2, and a pipe to the tool.

use machine::{Channel, Received};

use crate::host::{self, EAGAIN, POLLIN, POLLOUT, PollFd};

/// A pipe that is ready to be written takes at least this much without blocking (POSIX PIPE_BUF on Linux).
const PIPE_BYTES: usize = 4096;
const FORMAT: u32 = 0o170_000;
const PIPE: u32 = 0o010_000;
const SOCKET: u32 = 0o140_000;

/// Where records go when no tool listens.
pub const STANDARD_ERROR: i32 = 2;

/// One direction of one channel.
#[derive(Clone, Copy, Debug)]
struct Line {
    fd: i32,
    /// Never blocks: a file, or a device such as /dev/null.
    is_file: bool,
    /// Somebody found it not ready and waits.
    is_wanted: bool,
}

impl Line {
    fn new(fd: i32) -> Line {
        let format = host::file_mode(fd).unwrap_or(0) & FORMAT;
        Line { fd, is_file: format != PIPE && format != SOCKET && !host::is_terminal(fd), is_wanted: false }
    }

    fn is_ready(&mut self, events: i16) -> bool {
        let ready = self.is_file || host::poll_now(self.fd, events) != 0;
        self.is_wanted = !ready;
        ready
    }
}

/// Lines that may be waited for.
pub const LINES: usize = 7;

pub struct HostChannels {
    input: Line,
    /// Standard input when it is a terminal.
    terminal_input: Option<Line>,
    outputs: [Line; 3],
    /// Records from the tool, and to it.
    control: Line,
    /// Where the host tells what happens to its files, once somebody wants to know.
    changes: Option<Line>,
    escape: Escape,
}

/// The keys that end a run whose program ignores everything, as the tool's `machine/escape.rs` has them for the pc: this machine
/// reads the terminal itself.
struct Escape {
    /// How many have come in a row, and when the first.
    count: u32,
    since_ns: u64,
}

impl Escape {
    /// Ctrl-].
    const KEY: u8 = 0x1d;
    const TIMES: u32 = 3;
    const WITHIN_NS: u64 = 1_000_000_000;

    /// Whether these bytes complete the sequence.
    fn is_complete(&mut self, typed: &[u8]) -> bool {
        if !typed.contains(&Escape::KEY) {
            self.count = 0;
            return false;
        }
        let now = host::monotonic_nanos();
        for byte in typed {
            if *byte != Escape::KEY {
                self.count = 0;
                continue;
            }
            if self.count == 0 || now - self.since_ns > Escape::WITHIN_NS {
                (self.count, self.since_ns) = (0, now);
            }
            self.count += 1;
            if self.count == Escape::TIMES {
                return true;
            }
        }
        false
    }
}

impl HostChannels {
    pub fn new(control: i32) -> HostChannels {
        let terminal = [1, 2, 0].into_iter().find(|fd| host::is_terminal(*fd)).unwrap_or(1);
        HostChannels {
            input: Line::new(0),
            // What is typed is news from the start: the kernel first looks when it is told.
            terminal_input: host::is_terminal(0).then(|| Line { is_wanted: true, ..Line::new(0) }),
            outputs: [Line::new(1), Line::new(2), Line::new(terminal)],
            control: Line { is_wanted: control != STANDARD_ERROR, ..Line::new(control) },
            changes: None,
            escape: Escape { count: 0, since_ns: 0 },
        }
    }

    /// From now on there is news when this descriptor can be read; said again whenever all has been read.
    pub fn await_changes(&mut self, fd: i32) {
        self.changes = Some(Line { fd, is_file: false, is_wanted: true });
    }

    fn output(&mut self, channel: Channel) -> &mut Line {
        match channel {
            Channel::StandardError => &mut self.outputs[1],
            Channel::Terminal => &mut self.outputs[2],
            _ => &mut self.outputs[0],
        }
    }

    fn input(&mut self, channel: Channel) -> Option<&mut Line> {
        match channel {
            Channel::StandardInput => Some(&mut self.input),
            Channel::Terminal => self.terminal_input.as_mut(),
            Channel::Control if self.control.fd != STANDARD_ERROR => Some(&mut self.control),
            _ => None,
        }
    }

    pub fn send(&mut self, channel: Channel, bytes: &[u8]) -> usize {
        if channel == Channel::Control {
            send_all(self.control.fd, bytes);
            return bytes.len();
        }
        let line = self.output(channel);
        if !line.is_ready(POLLOUT) {
            return 0;
        }
        let part = if line.is_file { bytes } else { &bytes[..bytes.len().min(PIPE_BYTES)] };
        match host::write(line.fd, part) {
            Ok(count) => count,
            Err(error) if error.0 == EAGAIN || error.0 == host::EINTR => {
                line.is_wanted = true;
                0
            }
            // Nobody reads any more: the run ends as the tool itself would.
            Err(error) if error.0 == host::EPIPE => end_by_broken_pipe(self.control.fd),
            // A full disk or a terminal that hung up: what is left goes nowhere, as on the pc.
            Err(_) => bytes.len(),
        }
    }

    pub fn sendable(&mut self, channel: Channel) -> usize {
        if channel == Channel::Control || self.output(channel).is_ready(POLLOUT) { PIPE_BYTES } else { 0 }
    }

    pub fn receive(&mut self, channel: Channel, into: &mut [u8]) -> Received {
        let Some(line) = self.input(channel) else { return Received::Nothing };
        if into.is_empty() {
            // Asked only whether the end is reached: readable without a byte to read.
            let found = if line.is_file { 0 } else { host::poll_now(line.fd, POLLIN) };
            let ended = found != 0 && host::readable_bytes(line.fd) == Ok(0);
            return if ended { Received::End } else { Received::Nothing };
        }
        if !line.is_ready(POLLIN) {
            return Received::Nothing;
        }
        match host::read(line.fd, into) {
            Ok(0) => Received::End,
            Ok(count) => {
                if channel == Channel::Terminal && self.escape.is_complete(&into[..count]) {
                    end_by_keys(self.control.fd);
                }
                Received::Bytes(count)
            }
            Err(error) if error.0 == EAGAIN || error.0 == host::EINTR => {
                line.is_wanted = true;
                Received::Nothing
            }
            Err(_) => Received::End,
        }
    }

    pub fn receivable(&mut self, channel: Channel) -> usize {
        let Some(line) = self.input(channel) else { return 0 };
        if line.is_file {
            return 1;
        }
        if line.is_ready(POLLIN) { host::readable_bytes(line.fd).unwrap_or(1) } else { 0 }
    }

    /// Somebody waits for a descriptor.
    pub fn is_awaited(&self) -> bool {
        let inputs = [&self.input, &self.control].into_iter().chain(&self.terminal_input).chain(&self.changes);
        inputs.chain(&self.outputs).any(|line| line.is_wanted)
    }

    /// What to wait for: descriptors that somebody found not ready. Returns how many entries are used.
    pub fn awaited(&self, entries: &mut [PollFd]) -> usize {
        let inputs = [&self.input, &self.control].into_iter().chain(&self.terminal_input).chain(&self.changes);
        let inputs = inputs.map(|line| (line, POLLIN));
        let outputs = self.outputs.iter().map(|line| (line, POLLOUT));
        let mut count = 0;
        for (line, events) in inputs.chain(outputs).filter(|(line, _)| line.is_wanted) {
            entries[count] = PollFd { fd: line.fd, events, found: 0 };
            count += 1;
        }
        count
    }

    /// Whoever waited for one of these will look again.
    pub fn forget_ready(&mut self, entries: &[PollFd]) {
        let is_ready = |fd: i32, events: i16| {
            entries.iter().any(|entry| entry.fd == fd && entry.events == events && entry.found != 0)
        };
        let inputs = [&mut self.input, &mut self.control].into_iter().chain(&mut self.terminal_input);
        for line in inputs.chain(&mut self.changes) {
            line.is_wanted &= !is_ready(line.fd, POLLIN);
        }
        for line in &mut self.outputs {
            line.is_wanted &= !is_ready(line.fd, POLLOUT);
        }
    }
}

/// Tells the tool that SIGPIPE ended the run (`control::EXIT` of the boot-image crate).
fn end_by_broken_pipe(control: i32) -> ! {
    const EXIT: u8 = 1;
    const SIGPIPE: u8 = 13;
    send_all(control, &[EXIT, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, SIGPIPE, 0, 0, 0]);
    host::exit(0)
}

/// The user has typed the sequence: the tool ends the run, as it does when somebody signals it.
#[cold]
fn end_by_keys(control: i32) {
    const SIGTERM: i32 = 15;
    send_all(STANDARD_ERROR, b"\r\nsynth: ended by Ctrl-], three times\r\n");
    let tool = host::parent().ok().filter(|_| control != STANDARD_ERROR);
    if tool.is_none_or(|tool| host::send_signal(tool, SIGTERM).is_err()) {
        host::exit(128 + SIGTERM)
    }
}

/// Records may not be torn.
pub fn send_all(fd: i32, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match host::write(fd, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.0 == host::EINTR => {}
            Err(_) => return,
        }
    }
}
