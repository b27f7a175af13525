//! One life of a virtual machine, from its start to the status it leaves.

use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use bootimage::control::{ControlError, Record};
use rustix::io::FdFlags;
use signal_hook::consts::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};

use super::epilogue::{Ending, Last};
use super::escape;
use super::qemu::{self, Machine, Port};
use super::relay;
use super::terminal::{self, Terminals};
use crate::failure::{Failure, SIGNALLED, TOOL, UNAVAILABLE};
use crate::see::{Door, Listener, TraceFile};

/// What the threads of a session report.
pub enum Event {
    Signal(i32),
    /// The user has typed the keys that end a run.
    Escape,
    Exit {
        status: i32,
        signal: u32,
    },
    Panic(Vec<u8>),
    /// Records of the trace of a traced run.
    Trace(Vec<u8>),
    /// Why the kernel cannot run the program.
    Failure(Vec<u8>),
    ControlBroken(ControlError),
    /// A descriptor of the host takes no more bytes.
    OutputFailed(io::Error),
    /// A relay has written all there was.
    Drained,
    DebugText(Vec<u8>),
    MonitorText(Vec<u8>),
}

/// How long a guest may take to stop after its last word before it is stopped.
const LAST_WORD_GRACE: Duration = Duration::from_secs(2);
/// How often the machine is looked at when nothing is reported.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long output may take to drain when the run was cut short.
const CUT_SHORT_GRACE: Duration = Duration::from_secs(1);
/// Signals that end the run.
pub const FATAL: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// What the user asked for that concerns the session.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    pub verbose: bool,
    /// What programs and machine count is shown at the end.
    pub counts: bool,
    /// A program that crashes is told in a line.
    pub crash_report: bool,
    pub timeout: Option<Duration>,
    /// Where the trace of the run goes.
    pub trace: Option<TraceFile>,
}

/// The tool's side of a session from the first moment: the terminal is raw, so that what is typed early reaches the
/// guest as it is, and signals that would end the tool put the terminal back first.
pub struct Console {
    pub terminals: Terminals,
    /// Signals that came, a byte each.
    pub signals: UnixStream,
    arrivals: Arc<UnixStream>,
    is_in_session: Arc<AtomicBool>,
}

impl Console {
    /// # Errors
    /// The system gives no socket.
    pub fn take() -> Result<Console, Failure> {
        let terminals = Terminals::of_process();
        let (signals, arrivals) = UnixStream::pair().map_err(set_up_failure)?;
        let console = Console { terminals, signals, arrivals: Arc::new(arrivals), is_in_session: Arc::default() };
        for signal in FATAL.into_iter().chain([SIGCONT, SIGWINCH]) {
            console.watch(signal)?;
        }
        terminals.make_raw();
        Ok(console)
    }

    /// From here on signals are events of the session.
    pub fn begin_session(&self) {
        self.is_in_session.store(true, Ordering::Relaxed);
    }

    /// Has a signal reported. Before the session there is nobody to tell: a fatal one ends the tool at once.
    fn watch(&self, signal: i32) -> Result<(), Failure> {
        let (arrivals, is_in_session) = (self.arrivals.clone(), self.is_in_session.clone());
        let take = move || {
            if FATAL.contains(&signal) && !is_in_session.load(Ordering::Relaxed) {
                terminal::restore();
                signal_hook::low_level::exit(signalled(signal).into());
            }
            let flags = rustix::net::SendFlags::DONTWAIT | rustix::net::SendFlags::NOSIGNAL;
            let _ = rustix::net::send(&arrivals, &[signal as u8], flags);
        };
        // SAFETY: the action allocates nothing and waits for nothing: it tries a lock, and makes calls that a signal's
        // action may make (signal-safety(7)).
        unsafe { signal_hook::low_level::register(signal, take) }.map(drop).map_err(set_up_failure)
    }
}

/// Reports signals as events, from a thread of its own.
fn report_signals(mut signals: UnixStream, events: Sender<Event>) -> io::Result<()> {
    thread::Builder::new().spawn(move || {
        let mut signal = [0];
        while signals.read_exact(&mut signal).is_ok() {
            let _ = events.send(Event::Signal(signal[0].into()));
        }
    })?;
    Ok(())
}

pub fn set_up_failure(error: io::Error) -> Failure {
    Failure::new(TOOL, format!("cannot set up the run: {error}"), "")
}

/// Starts `machine`, relays until it ends, and returns the exit status for the tool.
pub fn run(machine: &Machine, console: Console, wishes: &Wishes) -> Result<u8, Failure> {
    let failed = set_up_failure;
    let (events, inbox) = mpsc::channel();
    console.begin_session();
    console.watch(SIGCHLD)?;
    let terminals = console.terminals;
    report_signals(console.signals, events.clone()).map_err(failed)?;
    let sockets = Sockets::new(terminals).map_err(failed)?;
    let arguments = machine.arguments(|port| sockets.guest_fd(port), sockets.debug.1.as_raw_fd());
    if wishes.verbose {
        let words: Vec<_> = arguments.iter().map(|word| word.to_string_lossy()).collect();
        terminal::say(format!("synth: {} {}\n", qemu::PROGRAM, words.join(" ")).as_bytes());
    }
    let child = start(&arguments)?;
    let control = sockets.relay(terminals, wishes, &events).map_err(failed)?;
    let mut session = Session { child, control, terminals, inbox, last: Last::default(), relays: 0, drained: 0 };
    session.relays = 3 + usize::from(terminals.any()) + terminals.is_tty[1..].iter().filter(|tty| !**tty).count();
    if let Some(stderr) = session.child.stderr.take() {
        relay::monitor_messages(stderr, events).map_err(failed)?;
    }
    let ending = session.follow(wishes);
    let status = session.child.wait().ok();
    terminal::restore();
    if let Some(file) = &wishes.trace {
        file.write(&session.last.trace)?;
    }
    session.last.conclude(ending, status)
}

fn start(arguments: &[std::ffi::OsString]) -> Result<Child, Failure> {
    let mut command = Command::new(qemu::PROGRAM);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // In a group of its own: a terminal and timeout(1) signal the tool's whole group, and the tool ends the machine when it has
    // fetched what it wants.
    command.process_group(0);
    // SAFETY: between fork and exec only one system call is made: no allocation, no lock.
    unsafe {
        // However this process ends, the machine goes with it.
        command.pre_exec(|| {
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
            Ok(())
        });
    }
    command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::new(
            UNAVAILABLE,
            format!("{} is not installed", qemu::PROGRAM),
            "install it: sudo apt-get install qemu-system-x86",
        ),
        _ => Failure::new(UNAVAILABLE, format!("cannot start {}: {error}", qemu::PROGRAM), ""),
    })
}

/// Our end and the guest's end of each port in use.
struct Sockets {
    ports: Vec<(Port, UnixStream, UnixStream)>,
    debug: (UnixStream, UnixStream),
}

impl Sockets {
    fn new(terminals: Terminals) -> io::Result<Self> {
        let is_used = |port: Port| match port {
            Port::Control => true,
            Port::Tty => terminals.any(),
            Port::In => !terminals.is_tty[0],
            Port::Out => !terminals.is_tty[1],
            Port::Err => !terminals.is_tty[2],
        };
        let ports = Port::ALL.into_iter().filter(|&port| is_used(port));
        let ports = ports.map(|port| inherited_pair().map(|(ours, guests)| (port, ours, guests)));
        Ok(Sockets { ports: ports.collect::<io::Result<_>>()?, debug: inherited_pair()? })
    }

    fn guest_fd(&self, wanted: Port) -> Option<RawFd> {
        self.ports.iter().find(|(port, ..)| *port == wanted).map(|(_, _, guests)| guests.as_raw_fd())
    }

    /// Starts the relays and closes the guest's ends here. Returns the control socket for writing.
    fn relay(self, terminals: Terminals, wishes: &Wishes, events: &Sender<Event>) -> io::Result<UnixStream> {
        use rustix::stdio::{stderr, stdin, stdout};
        let mut control = None;
        for (port, ours, guests) in self.ports {
            drop(guests);
            match port {
                Port::Control => {
                    control = Some(ours.try_clone()?);
                    let (askers, door) = listen(ours.try_clone()?, wishes.verbose);
                    door.map_or(Ok(()), Door::keep)?;
                    relay::Control::new(ours, wishes.clone(), askers).keep(events.clone())?;
                }
                Port::Tty => {
                    if terminals.is_tty[0] {
                        relay::keys_to_guest(stdin(), ours.try_clone()?, events.clone())?;
                    }
                    let output = terminals.output().unwrap_or(stdout());
                    relay::guest_to_host(ours, output, events.clone())?;
                }
                Port::In => relay::input_to_guest(stdin(), ours)?,
                Port::Out => relay::guest_to_host(ours, stdout(), events.clone())?,
                Port::Err => relay::guest_to_host(ours, stderr(), events.clone())?,
            }
        }
        drop(self.debug.1);
        relay::debug_console(self.debug.0, wishes.verbose, events.clone())?;
        control.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// Lets people ask the system while it runs. A run does not fail because nobody can ask it.
pub fn listen(control: UnixStream, verbose: bool) -> (Listener, Option<Door>) {
    let listener = Listener::default();
    let door = listener.open(control);
    if let Err(error) = &door
        && verbose
    {
        terminal::say(format!("synth: this system cannot be asked: {error}\n").as_bytes());
    }
    (listener, door.ok())
}

/// A connected pair whose second end is inherited by the monitor.
pub fn inherited_pair() -> io::Result<(UnixStream, UnixStream)> {
    let (ours, guests) = UnixStream::pair()?;
    rustix::io::fcntl_setfd(&guests, FdFlags::empty())?;
    Ok((ours, guests))
}

struct Session {
    child: Child,
    control: UnixStream,
    terminals: Terminals,
    inbox: Receiver<Event>,
    last: Last,
    /// How many events of the kinds `Drained`, `OutputFailed`, `DebugText` and `MonitorText` will come in all.
    relays: usize,
    drained: usize,
}

impl Session {
    /// Handles events until the machine has ended and its output is written.
    fn follow(&mut self, wishes: &Wishes) -> Ending {
        let timeout = wishes.timeout;
        // A time too far off to be expressed is no limit.
        let mut limit = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut grace = None;
        loop {
            if self.has_ended() && self.drained >= self.relays {
                return Ending::Stopped;
            }
            let next = grace.or(limit).map(|at: Instant| at.saturating_duration_since(Instant::now()));
            // A death whose signal came before the wait is noticed within a second.
            let wait = next.unwrap_or(LOOK_AGAIN).min(LOOK_AGAIN);
            match self.inbox.recv_timeout(wait) {
                Err(_) if next.is_none_or(|next| next > wait) => {}
                // The guest's last word is long past. What it wrote is still carried out, however slow the reader.
                Err(_) if grace.is_some() => {
                    let _ = self.child.kill();
                    grace = None;
                }
                Err(_) => return self.cut_short(Ending::TimedOut, wishes),
                Ok(Event::Signal(SIGCHLD)) => {}
                Ok(Event::Signal(SIGWINCH)) => self.send_window_size(),
                Ok(Event::Signal(SIGCONT)) => {
                    terminal::resume();
                    self.send_window_size();
                }
                Ok(Event::Signal(signal)) => return self.cut_short(Ending::Killed(signal), wishes),
                Ok(Event::Escape) => {
                    terminal::say(format!("\n{}\n", escape::ENDED).as_bytes());
                    return self.cut_short(Ending::Killed(SIGTERM), wishes);
                }
                Ok(Event::OutputFailed(error)) => {
                    self.drained += 1;
                    return self.cut_short(Ending::OutputFailed(error), wishes);
                }
                Ok(other) => {
                    if self.note(other) {
                        // The guest has nothing more to say: it has a moment to stop by itself.
                        grace = Some(Instant::now() + LAST_WORD_GRACE);
                        limit = None;
                    }
                }
            }
        }
    }

    /// Notes an event; returns whether it was the guest's last word.
    fn note(&mut self, event: Event) -> bool {
        match event {
            Event::Exit { status, signal } => self.last.exit = Some((status, signal)),
            Event::Panic(text) => self.last.panic.get_or_insert_default().extend(text),
            Event::Failure(text) => self.last.failure.get_or_insert_default().extend(text),
            Event::ControlBroken(error) => self.last.broken = Some(error),
            Event::Trace(records) => {
                self.last.trace.push(records);
                return false;
            }
            Event::DebugText(text) => {
                self.last.debug = text;
                self.drained += 1;
                return false;
            }
            Event::MonitorText(text) => {
                self.last.monitor = text;
                self.drained += 1;
                return false;
            }
            Event::Drained | Event::OutputFailed(_) => {
                self.drained += 1;
                return false;
            }
            Event::Signal(_) | Event::Escape => return false,
        }
        true
    }

    /// Ends the machine now, and gives what it has written a moment to arrive.
    fn cut_short(&mut self, ending: Ending, wishes: &Wishes) -> Ending {
        if let Some(file) = &wishes.trace {
            file.rescue();
        }
        let _ = self.child.kill();
        let deadline = Instant::now() + CUT_SHORT_GRACE;
        while self.drained < self.relays {
            let Ok(event) = self.inbox.recv_timeout(deadline.saturating_duration_since(Instant::now())) else { break };
            self.note(event);
        }
        ending
    }

    fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(ExitStatus { .. })) | Err(_))
    }

    fn send_window_size(&mut self) {
        if !self.terminals.any() {
            return;
        }
        send_window_size(self.terminals, &self.control);
    }
}

/// Tells the machine how large the terminal is now.
pub fn send_window_size(terminals: Terminals, control: &UnixStream) {
    let [rows, columns, x_pixels, y_pixels] = terminals.window_size();
    let mut record = Vec::new();
    Record::WindowSize { rows, columns, x_pixels, y_pixels }.encode(&mut record);
    // A guest that does not read its control port must not stop the tool.
    let flags = rustix::net::SendFlags::DONTWAIT | rustix::net::SendFlags::NOSIGNAL;
    let _ = rustix::net::send(control, &record, flags);
}

/// The status of a tool that was itself ended by `signal`.
pub fn signalled(signal: i32) -> u8 {
    SIGNALLED.wrapping_add(signal as u8)
}
