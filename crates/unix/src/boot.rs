//! From the boot archive to the first program.
#![expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "before any program runs")]

mod folders;
mod network;

pub use folders::{Join, join as join_folders, join_shares};

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::sync::Weak;
use alloc::vec::Vec;

use abi::Errno;
use bootimage::control::Record;
use bootimage::{Archive, ConfigView, FdKind, Kind};
use codestore::CodeStore;
use kernel::call::{Makers, SimpleCode};
use kernel::file::{Credentials, Namespace, NewNode, NewSpecial, Node, NodeKind, Time, View, Volume};
use kernel::net::Network;
use kernel::playback::Playback;
use kernel::schedule::{Scheduler, WaitQueue};
use kernel::sound::Sound;
use kernel::space::{FramePool, Page};
use kernel::stream::Stream;
use kernel::thread::Thread;
use kernel::tty::WindowSize;
use machine::{CALLS_MAX, Channel, Frames, Held, KernelCell, KernelValue, Machine, Nanos, PAGE_BYTES, Start, TryGrow};

use crate::calls::futexes::FutexTable;
use crate::calls::images::{LoadError, Wanted, install as install_program, load_first, task_name};
use crate::calls::sockets::flight::Flight;
use crate::calls::sockets::names::SocketNames;
use crate::calls::system::SystemNames;
use crate::devices::table;
use crate::emulator::EachClass;
use crate::emulator::{Options, Unix};
use crate::entrance;
use crate::files::channel::{ChannelStream, Channels};
use crate::files::descriptors::{DescriptorTable, Slot};
use crate::files::lock_waits::LockWaits;
use crate::files::open_file::{Body, OpenFile};
use crate::files::random::Random;
use crate::files::synthesize;
use crate::files::terminal::ends::TtyStream;
use crate::files::terminal::registry::{Terminals, node_of as terminal_node};
use crate::inspect::monitor::Desk;
use crate::inspect::port::ControlPort;
use crate::inspect::trace::Tracing;
pub use crate::inspect::{MONITOR, MonitorHooks, NO_MONITOR};
pub use crate::limits::RESERVE_FRAMES;
use crate::task::limits::Limits;
use crate::task::process::{Family, NewProcess, Place, Process};
use crate::task::table::TaskTable;
use crate::task::thread::Task;

/// What the machine's main function knows and the emulator needs.
pub struct Ingredients {
    pub machine: &'static dyn Machine,
    pub store: &'static CodeStore,
    /// The classes of quajects that the machine makes.
    pub classes: EachClass,
    pub pool: &'static FramePool,
    /// The boot archive, and the frame that holds its first byte.
    pub archive: &'static [u8],
    /// Joins trees of names outside of the machine ([`join_folders`]), or folders that devices share ([`join_shares`]), so that an
    /// image has no code for what its machine has not.
    pub join: Join,
    /// [`MONITOR`], or [`NO_MONITOR`], so that an image without it has no code for it.
    pub monitor: &'static MonitorHooks,
    /// The frames that the archive lies in, which become the files' own.
    pub archive_frames: Frames,
    /// Wall clock at time zero of the machine's clock, nanoseconds since 1970.
    pub epoch: Epoch,
    /// Counter at time zero and its scale, for the programs' time page.
    pub counter: (u64, u64),
}

/// What the machine knows of the time of day, in nanoseconds since 1970 at time zero of its clock.
#[derive(Clone, Copy, Debug)]
pub enum Epoch {
    /// The host's own, by a clock that both share: files outside must not seem to come from the future.
    Exact(u64),
    /// A clock chip's, which tells whole seconds: it is this or up to a second later.
    Second(u64),
    /// The machine has no clock.
    Unknown,
}

impl Epoch {
    /// The time at which the system starts. A clock that runs beats the archive's time, which is that of its making: the archive
    /// may be old. A chip's second is made finer by an archive that is not older than a start takes; that is also what keeps
    /// files that were just packed from coming from the future.
    fn nanos(self, archive: u64) -> u64 {
        const START_TAKES: u64 = 2 * Nanos::PER_SECOND;
        match self {
            Epoch::Exact(nanos) => nanos,
            Epoch::Second(chip) if (chip.saturating_sub(START_TAKES)..chip + Nanos::PER_SECOND).contains(&archive) => {
                archive.max(chip)
            }
            Epoch::Second(chip) => chip,
            Epoch::Unknown => archive,
        }
    }
}

/// Why the machine has nothing to run.
pub struct StartError {
    /// One line for a person, without its end.
    pub line: String,
    /// What the host tool exits with: 126 or 127 as in a shell, 70 when the machine itself is at fault.
    pub status: i32,
}

impl From<String> for StartError {
    fn from(line: String) -> StartError {
        StartError { line, status: MACHINE_FAILED }
    }
}

/// Exit status when it is not the program's fault (`EX_SOFTWARE`).
const MACHINE_FAILED: i32 = 70;

/// Starts the emulator and its first program, and returns the first program's thread, which the machine enters.
///
/// # Errors
/// What is wrong; the machine has nothing to run.
pub fn start(held: Held<'_>, mut ingredients: Ingredients) -> Result<Arc<Thread>, StartError> {
    let archive =
        Archive::parse(ingredients.archive).map_err(|error| format!("the boot archive is damaged: {error:?}"))?;
    let config = archive.config();
    let scheduler = Scheduler::start(ingredients.machine).map_err(|_| String::from("not enough memory"))?;
    kernel::file::share::begin();
    scheduler.zero_when_idle(ingredients.pool);
    let epoch = ingredients.epoch.nanos(config.epoch_ns);
    let now = time_of(epoch);
    let frames = core::mem::replace(&mut ingredients.archive_frames, Frames::none());
    let names = fill_names(&ingredients, ArchivePages { pool: ingredients.pool, frames, next: 0 }, &archive, now)
        .map_err(|error| format!("the file system cannot be filled: {error:?}"))?;
    let names = (ingredients.join)(&ingredients, &config, names)?;
    let channels: &'static Channels = Box::leak(Box::default());
    let options = Options {
        generic: config.flags.generic,
        strace: config.flags.strace,
        verbose: config.flags.verbose,
        trace: config.flags.trace,
    };
    let Ingredients { machine, store, .. } = ingredients;
    let makers = options.binds_code().then_some(Makers::new(machine, store));
    let futexes = FutexTable::new(makers);
    let network = Box::leak(Box::new(Network::new(scheduler, makers, network::plan(config.network))));
    let unix =
        emulator(&ingredients, &config, options, Made { scheduler, names, channels, makers, epoch, futexes, network });
    entrance::install(unix);
    if machine.must_poll() {
        kernel::server::start(scheduler, unix.entrance()).map_err(|_| String::from("not enough memory"))?;
    }
    unix.names.memory().set_clock(unix.entrance());
    unix.names.nameless().share_clock(unix.names.memory());
    if let Some(makers) = unix.makers() {
        SimpleCode::shared(makers);
        unix.scheduler.bind_timer(makers);
    }
    *unix.vdso_pages.borrow_mut() = vdso_pages(unix, ingredients.counter);
    crate::proc::mount(unix).map_err(|error| format!("/proc cannot be mounted: {error:?}"))?;
    let first = first_program(held, unix, &config).map_err(|error| program_failure(config.program, error))?;
    unix.names.note_clock(unix.wall_time());
    // From here on threads run, and can sleep.
    kernel::file::share::let_sleep(unix.entrance());
    Ok(first)
}

/// What boot made on the way to the emulator.
struct Made {
    scheduler: &'static Scheduler,
    names: Namespace,
    channels: &'static Channels,
    makers: Option<Makers>,
    epoch: u64,
    futexes: FutexTable,
    network: &'static Network,
}

/// The emulator. It is large, and boot's stack is not: who calls has not much on it.
#[inline(never)]
fn emulator(ingredients: &Ingredients, config: &ConfigView<'_>, options: Options, made: Made) -> &'static Unix {
    Box::leak(Box::new(Unix {
        machine: ingredients.machine,
        store: ingredients.store,
        machine_classes: ingredients.classes,
        scheduler: made.scheduler,
        pool: ingredients.pool,
        names: made.names,
        tasks: TaskTable::new(),
        channels: made.channels,
        terminals: Terminals::new(),
        control: ControlPort::new(),
        tracing: Tracing::new(),
        desk: Desk::new(),
        monitor: ingredients.monitor,
        call_counts: [const { KernelValue::new(0) }; CALLS_MAX],
        lock_waits: LockWaits::new(),
        options,
        sound: Sound::new(ingredients.machine, made.makers),
        playback: Playback::new(made.scheduler),
        shm: crate::calls::shm::Segments::new(),
        families: crate::families::Families::new(),
        epoch: KernelCell::new(Nanos(made.epoch)),
        system_names: SystemNames::new(config.hostname),
        random: Random::default(),
        clock_sets: KernelValue::new(0),
        clock_set: WaitQueue::new(),
        futexes: made.futexes,
        socket_names: SocketNames::new(),
        flight: Flight::new(),
        network: made.network,
        first: KernelCell::new(None),
        morgue: KernelCell::new(Vec::new()),
        has_dead: KernelValue::new(false),
        want: crate::calls::memory::exhaustion::Want::new(),
        summary: KernelCell::new(Default::default()),
        boot_report: KernelCell::new(None),
        vdso_pages: KernelCell::new(None),
    }))
}

/// The sentence for a first program that does not run.
fn program_failure(program: &[u8], error: LoadError) -> StartError {
    let reason = match error {
        LoadError::Refused(Errno::ENOENT) => "it or its interpreter is not in the guest",
        LoadError::Refused(Errno::ENOEXEC) => "it is not a program for x86-64",
        LoadError::Lost(Errno::ENOMEM) => "its segments do not fit into a program's memory",
        LoadError::Lost(Errno::EINVAL) => "its segments or its entry point are malformed",
        LoadError::Lost(_) => "its segments cannot be mapped where they want to be",
        LoadError::Refused(errno) => errno.message(),
    };
    let status = if error == LoadError::Refused(Errno::ENOENT) { 127 } else { 126 };
    StartError { line: format!("{}: {reason}", String::from_utf8_lossy(program)), status }
}

fn time_of(epoch_ns: u64) -> Time {
    Time { seconds: (epoch_ns / Nanos::PER_SECOND) as i64, nanos: (epoch_ns % Nanos::PER_SECOND) as u32 }
}

/// The time page, filled, and the vDSO's image.
fn vdso_pages(unix: &Unix, (counter, scale): (u64, u64)) -> Option<[Page; 2]> {
    let (time, image) = (unix.pool.allocate_zeroed()?, unix.pool.allocate_zeroed()?);
    image.write(0, &vdso::IMAGE[..vdso::IMAGE.len().min(PAGE_BYTES)]);
    let page = vdso::TimePage {
        seq: 0,
        features: 0,
        tsc_base: counter,
        mult: scale,
        mono_base_ns: 0,
        realtime_offset_ns: unix.epoch.get().0,
    };
    let next = page.publish(|offset, value| time.write(offset, &value.to_le_bytes()));
    let _ = next;
    Some([time, image])
}

/// Builds the first file system from the archive's entries.
fn fill_names(
    ingredients: &Ingredients,
    mut pages: ArchivePages,
    archive: &Archive<'_>,
    now: Time,
) -> Result<Namespace, Errno> {
    // The archive's frames become the files' own: what they hold is no part of what is free now.
    let frames = ingredients.pool.free_frames() + ingredients.archive.len().div_ceil(PAGE_BYTES);
    let volume = Volume::in_memory_limited(ingredients.pool, frames as u64)?;
    let root_entry = archive.entry(0).ok_or(Errno::EINVAL)?;
    let new = NewNode { mode: root_entry.mode, user: root_entry.uid, group: root_entry.gid, now };
    let root = Node::root(&volume, new)?;
    let names = Namespace::new(root.clone())?;
    let mut nodes: Vec<Arc<Node>> = Vec::with_capacity(archive.len() as usize);
    nodes.push(root.clone());
    let credentials = Credentials::root();
    let view = View::new(&root, &root, &credentials);
    for entry in archive.entries().skip(1) {
        let stamp = Time { seconds: entry.mtime_s, nanos: entry.mtime_ns };
        let special = |kind| NewSpecial { kind, mode: entry.mode };
        let node = match entry.kind {
            Kind::Directory => names.make_directory(view, entry.path, entry.mode, stamp)?,
            Kind::Symlink { target } => names.make_symlink(view, target, entry.path, stamp)?,
            Kind::CharDevice { major, minor } => {
                names.make_special(view, entry.path, special(NodeKind::CharDevice(major, minor)), stamp)?
            }
            Kind::Fifo => names.make_special(view, entry.path, special(NodeKind::Fifo), stamp)?,
            Kind::File { data, offset } => {
                let node = names.make_special(view, entry.path, special(NodeKind::Regular), stamp)?;
                pages.adopt(&node, data.len(), offset)?;
                node
            }
            Kind::HardLink { to } => {
                let node = nodes.get(to as usize).ok_or(Errno::EINVAL)?.clone();
                names.link_node(&node, view, entry.path, stamp)?;
                node
            }
        };
        finish_node(&names, &credentials, &node, &entry, stamp)?;
        nodes.push(node);
    }
    make_standard_names(&names, view, now)?;
    Ok(names)
}

/// Mode bits that creation does not set, the owner, and the times.
fn finish_node(
    names: &Namespace,
    credentials: &Credentials,
    node: &Arc<Node>,
    entry: &bootimage::Entry<'_>,
    stamp: Time,
) -> Result<(), Errno> {
    if (entry.uid, entry.gid) != (0, 0) {
        names.set_owner(credentials, node, Some(entry.uid), Some(entry.gid), stamp)?;
    }
    if !node.is_symlink() && node.meta().mode != entry.mode {
        names.set_mode(credentials, node, entry.mode, stamp)?;
    }
    let set = kernel::file::TimeChange::Set(stamp);
    names.set_times(credentials, node, set, set, stamp)
}

/// What is left of the archive's own frames; `next` is the archive's page that the first of them holds.
struct ArchivePages {
    pool: &'static FramePool,
    frames: Frames,
    next: u32,
}

impl ArchivePages {
    /// Frames become a file's pages: nothing is copied. Files come in the order in which they lie in the archive.
    fn adopt(&mut self, node: &Node, bytes: usize, offset: u64) -> Result<(), Errno> {
        if bytes == 0 {
            return Ok(());
        }
        let content = node.content().ok_or(Errno::EINVAL)?;
        let first = (offset / PAGE_BYTES as u64) as u32;
        // What lies between files is nobody's: it is not given to the pool.
        let _between = self.frames.split(first.checked_sub(self.next).ok_or(Errno::EINVAL)?);
        let pages = bytes.div_ceil(PAGE_BYTES);
        for index in 0..pages {
            let page = self.pool.adopt(&mut self.frames).ok_or(Errno::EINVAL)?;
            content.adopt_page(page, (bytes - index * PAGE_BYTES).min(PAGE_BYTES))?;
        }
        self.next = first + pages as u32;
        Ok(())
    }
}

/// Directories and devices that every system has, where the archive lacks them.
fn make_standard_names(names: &Namespace, view: View<'_>, now: Time) -> Result<(), Errno> {
    let exists_is_fine = |made: Result<Arc<Node>, Errno>| match made {
        Err(error) if error != Errno::EEXIST => Err(error),
        _ => Ok(()),
    };
    const DIRECTORIES: [(&[u8], u32); 8] = [
        (b"/dev", 0o755),
        (b"/dev/pts", 0o755),
        (b"/dev/shm", 0o1777),
        (b"/proc", 0o555),
        (b"/sys", 0o555),
        (b"/tmp", 0o1777),
        (b"/root", 0o700),
        (b"/etc", 0o755),
    ];
    for (path, mode) in DIRECTORIES {
        exists_is_fine(names.make_directory(view, path, mode, now))?;
    }
    let mut made = Ok(());
    table::each_name(&mut |name, (major, minor), mode| {
        let special = NewSpecial { kind: NodeKind::CharDevice(major, minor), mode };
        let path = format!("/dev/{name}");
        if made.is_ok() {
            made = exists_is_fine(names.make_special(view, path.as_bytes(), special, now));
        }
    });
    made?;
    const LINKS: [(&[u8], &[u8]); 4] = [
        (b"/dev/fd", b"/proc/self/fd"),
        (b"/dev/stdin", b"/proc/self/fd/0"),
        (b"/dev/stdout", b"/proc/self/fd/1"),
        (b"/dev/stderr", b"/proc/self/fd/2"),
    ];
    for (path, target) in LINKS {
        exists_is_fine(names.make_symlink(view, target, path, now))?;
    }
    Ok(())
}

/// Makes process 1 with the program of the configuration.
fn first_program(held: Held<'_>, unix: &'static Unix, config: &ConfigView<'_>) -> Result<Arc<Thread>, LoadError> {
    let root = unix.names.root().clone();
    let credentials = folders::user(config);
    let view = View::new(&root, &root, &credentials);
    let directory = unix.names.lookup(view, config.cwd, kernel::file::FinalLink::Follow)?;
    let pid = unix.tasks.take_id(&unix.families.tunables).ok_or(Errno::EAGAIN)?;
    let files = Arc::new(DescriptorTable::new(unix.machine.slow_call()));
    let size = WindowSize { rows: config.rows, columns: config.columns, ..WindowSize::default() };
    unix.terminals.start(unix, size, pid)?;
    open_standard_files(unix, &files, config)?;
    let process = Process::new(NewProcess {
        pid,
        parent: Weak::new(),
        space: None,
        files,
        place: Arc::new(KernelCell::new(Place { root, directory, umask: config.umask })),
        actions: Arc::new(KernelCell::new(crate::signal::actions::Actions::new())),
        family: Family { group: pid, session: pid, has_terminal: true },
        limits: Limits::default(),
        branch: Arc::default(),
        started: unix.machine.now(),
    });
    process.belong_to(credentials);
    let strings = |list: &mut dyn Iterator<Item = &[u8]>| list.map(<[u8]>::to_vec).collect::<Vec<_>>();
    let wanted =
        Wanted { path: config.program.to_vec(), argv: strings(&mut config.argv()), envp: strings(&mut config.env()) };
    let loaded = load_first(held, unix, &process, wanted)?;
    let (registers, _) = install_program(&process, loaded);
    let tte = unix.machine.create_tte(Start::User(registers)).map_err(|_| Errno::ENOMEM)?;
    let thread = Thread::new(tte);
    let space = process.space().ok_or(Errno::ENOMEM)?;
    thread.tte().set_quaspace(Some(&**space.borrow().translation()));
    unix.scheduler.enlist(&thread).map_err(Errno::from)?;
    unix.scheduler.unblock(&thread);
    unix.tasks.make_room(thread.id()).map_err(Errno::from)?;
    process.tasks.borrow_mut().room_for(1).map_err(Errno::from)?;
    let task = Task::new(pid, &process, &thread, task_name(config.program));
    unix.tasks.add_task(&task);
    unix.tasks.add_process(&process);
    if unix.options.trace {
        unix.tracing.begin_run(unix);
    }
    *unix.first.borrow_mut() = Some(process);
    // What is left until the program's first instruction is the switch to it.
    unix.boot_report.set(Some(unix.machine.now()));
    Ok(thread)
}

/// Descriptors 0, 1 and 2 as the host tool has them.
fn open_standard_files(unix: &'static Unix, files: &DescriptorTable, config: &ConfigView<'_>) -> Result<(), Errno> {
    use abi::file::{O_RDONLY, O_WRONLY};
    let channels =
        [(Channel::StandardInput, O_RDONLY), (Channel::StandardOutput, O_WRONLY), (Channel::StandardError, O_WRONLY)];
    let terminal = standard_terminal(unix)?;
    for (index, (channel, flags)) in channels.into_iter().enumerate() {
        let file = match config.fds[index] {
            FdKind::Closed => continue,
            FdKind::Stream => {
                let stream: Arc<dyn Stream> = ChannelStream::new(channel, unix.machine, unix.channels);
                let mut file = OpenFile::stream(stream, flags);
                synthesize(unix, &mut file);
                Arc::new(file)
            }
            FdKind::Tty => terminal.clone(),
        };
        files.add(Slot { file, close_on_exec: false }, index, 3)?;
    }
    Ok(())
}

/// The console, open as a shell's descriptors are: one open file behind all of them.
fn standard_terminal(unix: &'static Unix) -> Result<Arc<OpenFile>, Errno> {
    let console = unix.terminals.console().ok_or(Errno::ENXIO)?;
    let node = terminal_node(unix, &console)?;
    let body = Body::Stream(TtyStream::new(&console));
    let mut file = OpenFile::new(body, Some(node), abi::file::O_RDWR);
    synthesize(unix, &mut file);
    Ok(Arc::new(file))
}

/// Tells the host tool why there is nothing to run, and the status to end with.
pub fn report_failure(machine: &dyn Machine, failure: &StartError) {
    let mut record = Vec::new();
    Record::Failure(failure.line.as_bytes()).encode(&mut record);
    Record::Exit { status: failure.status, signal: 0 }.encode(&mut record);
    machine.send(Channel::Control, &record);
    for _ in 0..50_000_000u64 {
        if machine.is_drained(Channel::Control) {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Epoch;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_clock_that_runs_beats_the_archive() {
        let chip = 1_900_000_000 * SECOND;
        for archive in [0, chip - 400 * 86_400 * SECOND, chip - 3 * SECOND, chip + SECOND, chip + 86_400 * SECOND] {
            assert_eq!(Epoch::Second(chip).nanos(archive), chip, "archive {archive}");
            assert_eq!(Epoch::Exact(chip).nanos(archive), chip);
            assert_eq!(Epoch::Unknown.nanos(archive), archive);
        }
    }

    #[test]
    fn an_archive_of_the_same_moment_tells_the_part_of_the_second() {
        let chip = 1_900_000_000 * SECOND;
        assert_eq!(Epoch::Second(chip).nanos(chip + 7), chip + 7);
        assert_eq!(Epoch::Second(chip).nanos(chip - 7), chip);
    }
}
