//! Threads that carry bytes between the host's descriptors and the guest's ports. Each holds one buffer and reads only
//! when the last piece is written, so a slow side slows the other: nothing piles up.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Instant;

use bootimage::control::{Decoder, Record};
use rustix::event::{PollFd, PollFlags, poll};

use super::escape::Escape;
use super::session::{Event, Wishes};
use super::terminal;
use crate::see::Listener;

const BUFFER_BYTES: usize = 64 * 1024;

/// Carries a host descriptor to a guest port. At the end of input the sending half is closed, which the monitor tells
/// the guest after the last byte; closing both halves could overtake bytes.
pub fn input_to_guest(host: BorrowedFd<'static>, guest: UnixStream) -> io::Result<()> {
    let mut host = File::from(host.try_clone_to_owned()?);
    thread::Builder::new().spawn(move || {
        let mut guest = guest;
        // An error of input is its end; an error of the guest is seen elsewhere.
        let _ = copy(&mut host, &mut guest, |_| ());
        let _ = guest.shutdown(Shutdown::Write);
        // The monitor takes a socket without a peer for closed at once: keep it until the process ends.
        std::mem::forget(guest);
    })?;
    Ok(())
}

/// Carries what is typed at the host's terminal to the guest's port, and reports the keys that end the run. At the end, when the
/// terminal has hung up, nothing is closed: the port carries output, too.
pub fn keys_to_guest(host: BorrowedFd<'static>, guest: UnixStream, events: Sender<Event>) -> io::Result<()> {
    let mut host = File::from(host.try_clone_to_owned()?);
    thread::Builder::new().spawn(move || {
        let mut guest = guest;
        let mut escape = Escape::default();
        let _ = copy(&mut host, &mut guest, |typed| {
            if escape.is_complete(typed, Instant::now()) {
                let _ = events.send(Event::Escape);
            }
        });
        std::mem::forget(guest);
    })?;
    Ok(())
}

/// Carries a guest port to a host descriptor; reports `Drained` when the monitor has gone and all is written.
pub fn guest_to_host(guest: UnixStream, host: BorrowedFd<'static>, events: Sender<Event>) -> io::Result<()> {
    let mut host = File::from(host.try_clone_to_owned()?);
    thread::Builder::new().spawn(move || {
        let mut guest = guest;
        let event = match copy(&mut guest, &mut host, |_| ()) {
            Err(CopyError::Write(error)) => Event::OutputFailed(error),
            _ => Event::Drained,
        };
        let _ = events.send(event);
    })?;
    Ok(())
}

/// What the machine says over the control port: text is shown, answers go to who asked, the rest is reported.
pub struct Control {
    guest: UnixStream,
    wishes: Wishes,
    askers: Listener,
    decoder: Decoder,
    buffer: Vec<u8>,
}

impl Control {
    pub fn new(guest: UnixStream, wishes: Wishes, askers: Listener) -> Control {
        Control { guest, wishes, askers, decoder: Decoder::new(), buffer: vec![0; BUFFER_BYTES] }
    }

    /// Waits for some bytes and takes the records in them; false when there is nothing more to come.
    pub fn hear(&mut self, report: &mut dyn FnMut(Event)) -> bool {
        let Ok(count @ 1..) = read(&mut self.guest, &mut self.buffer) else {
            report(Event::Drained);
            return false;
        };
        self.decoder.feed(&self.buffer[..count]);
        loop {
            match self.decoder.next() {
                Ok(Some(record)) => {
                    if let Some(event) = show_or_tell(&record, &self.wishes, &self.askers) {
                        report(event);
                    }
                }
                Ok(None) => return true,
                Err(error) => {
                    report(Event::ControlBroken(error));
                    report(Event::Drained);
                    return false;
                }
            }
        }
    }

    /// Hears all there is, in a thread of its own.
    pub fn keep(mut self, events: Sender<Event>) -> io::Result<()> {
        thread::Builder::new().spawn(move || while self.hear(&mut |event| drop(events.send(event))) {})?;
        Ok(())
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.guest.as_fd()
    }
}

fn show_or_tell(record: &Record<'_>, wishes: &Wishes, askers: &Listener) -> Option<Event> {
    match *record {
        Record::Log(text) => say_if(wishes.verbose, text),
        Record::Stats(text) => say_if(wishes.verbose || wishes.counts, text),
        Record::Crash(text) if wishes.verbose => terminal::say(&[b"synth: ", text].concat()),
        Record::Crash(text) => say_if(wishes.crash_report, &crash_line(text)),
        Record::Notice(text) => terminal::say(&[b"synth: ", text, b"\n"].concat()),
        Record::Strace(text) => terminal::say(text),
        Record::Panic(text) => return Some(Event::Panic(text.to_vec())),
        Record::Failure(text) => return Some(Event::Failure(text.to_vec())),
        Record::Exit { status, signal } => return Some(Event::Exit { status, signal }),
        Record::Answer(payload) => askers.answer(payload),
        Record::Trace(payload) => return Some(Event::Trace(payload.to_vec())),
        // Only the host sends these.
        Record::WindowSize { .. } | Record::Request(_) => {}
    }
    None
}

fn say_if(wished: bool, text: &[u8]) {
    if wished {
        terminal::say(text);
    }
}

/// The first line of a crash report: process, signal, place.
fn crash_line(text: &[u8]) -> Vec<u8> {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    [b"synth: ", line, b"\n"].concat()
}

/// Keeps the last bytes of the debug console.
pub fn debug_console(mut guest: UnixStream, verbose: bool, events: Sender<Event>) -> io::Result<()> {
    thread::Builder::new().spawn(move || {
        let mut tail = Vec::new();
        let mut buffer = vec![0; 4096];
        while let Ok(count @ 1..) = read(&mut guest, &mut buffer) {
            if verbose {
                terminal::say(&buffer[..count]);
            }
            tail.extend_from_slice(&buffer[..count]);
            let surplus = tail.len().saturating_sub(BUFFER_BYTES);
            tail.drain(..surplus);
        }
        // What was shown as it came is not told again.
        let untold = if verbose { Vec::new() } else { tail };
        let _ = events.send(Event::DebugText(untold));
    })?;
    Ok(())
}

/// Keeps the first bytes of what the monitor says.
pub fn monitor_messages(mut stderr: impl Read + Send + 'static, events: Sender<Event>) -> io::Result<()> {
    thread::Builder::new().spawn(move || {
        let mut head = Vec::new();
        let _ = (&mut stderr).take(BUFFER_BYTES as u64).read_to_end(&mut head);
        let _ = events.send(Event::MonitorText(head));
        let _ = io::copy(&mut stderr, &mut io::sink());
    })?;
    Ok(())
}

enum CopyError {
    Read,
    Write(io::Error),
}

/// Copies until the end; each piece is shown before it is written.
fn copy(
    from: &mut (impl Read + AsFd),
    to: &mut (impl Write + AsFd),
    mut show: impl FnMut(&[u8]),
) -> Result<(), CopyError> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = read(from, &mut buffer).map_err(|_| CopyError::Read)?;
        if count == 0 {
            return Ok(());
        }
        show(&buffer[..count]);
        write_all(to, &buffer[..count]).map_err(CopyError::Write)?;
    }
}

/// Reads some bytes; waits when another process has made the description non-blocking.
fn read(from: &mut (impl Read + AsFd), buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(from.as_fd(), PollFlags::IN)?,
            result => return result,
        }
    }
}

fn write_all(to: &mut (impl Write + AsFd), mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match to.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait(to.as_fd(), PollFlags::OUT)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn wait(fd: BorrowedFd<'_>, flags: PollFlags) -> io::Result<()> {
    poll(&mut [PollFd::new(&fd, flags)], None)?;
    Ok(())
}
