//! Replacing a process's program (execve).

mod execute;
pub(super) mod table;

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use abi::file::O_RDONLY;
use abi::process::CAP_SETUID;
use kernel::file::{File, FinalLink, Node, NodeKind, SET_GROUP, SET_USER};
use kernel::space::{FaultKind, FixedPages, Kind, MapRequest, Placement, Space, View};
use machine::{Held, KernelCell, PAGE_BYTES, Protection, Registers, try_filled, try_to_vec};

use super::memory::errno_of;
use crate::calls::parts::{COPY_BYTES, forget_strings};
use crate::emulator::Unix;
use crate::exec::elf::{self, FileBytes, Image};
use crate::exec::plan::{self, Mapper, Plan, Source};
use crate::exec::script::{self, Rewrites};
use crate::exec::stack::{self, Arguments, ProgramFacts};
use crate::files::backing::NodeBacking;
use crate::task::capabilities::{CapabilitySets, ProgramChange};
use crate::task::process::{Execution, Process};

/// A program ready to run: its quaspace, and the registers it starts with.
pub struct Loaded {
    pub space: Space,
    pub registers: Registers,
    pub executable: Arc<Node>,
    pub execution: Arc<Execution>,
    pub identity: Identity,
    pub arguments: (u64, u64),
    pub environment: (u64, u64),
}

/// What to run, as the caller named it.
pub struct Wanted {
    pub path: Vec<u8>,
    pub argv: Vec<Vec<u8>>,
    pub envp: Vec<Vec<u8>>,
}

/// Effective ids that a program starts with, by its set-user and set-group bits.
#[derive(Clone, Copy)]
pub struct Identity {
    pub user: u32,
    pub group: u32,
    pub capabilities: CapabilitySets,
    /// The program runs with more rights than its caller: the C library trusts no variable then (AT_SECURE).
    pub is_secure: bool,
    /// Others of the process's user may look into it: it has no other rights than they, and they can read the program.
    pub is_dumpable: bool,
}

impl Identity {
    fn of(process: &Process, node: &Node) -> Identity {
        let (user_ids, group_ids) = (process.user_ids.get(), process.group_ids.get());
        let meta = node.meta();
        // What is outside of the machine gives nobody other rights there.
        let counts =
            !process.settings.get().no_new_privileges && !node.is_elsewhere() && !node.volume().rules().no_set_id;
        let user = if counts && meta.mode & SET_USER != 0 { meta.user } else { user_ids.effective };
        // Set-group without group execution means mandatory locking, not another group.
        let takes_group = counts && meta.mode & (SET_GROUP | 0o010) == SET_GROUP | 0o010;
        let group = if takes_group { meta.group } else { group_ids.effective };
        let is_other = user != user_ids.real || group != group_ids.real;
        let credentials = process.credentials.borrow();
        let ids_change = user != user_ids.effective || !credentials.in_group(group);
        let is_watched = is_watched(process);
        let (held, secure_bits) = (process.capabilities(), process.settings.get().secure_bits);
        let change = ProgramChange { real: user_ids.real, effective: user, ids_change, is_watched };
        let capabilities = held.after_execution(change, secure_bits);
        let is_refused =
            ids_change && is_watched && (process.settings.get().no_new_privileges || !process.can(CAP_SETUID));
        let (user, group) = if is_refused { (user_ids.real, group_ids.real) } else { (user, group) };
        let is_secure = is_other || capabilities.are_raised(user_ids.real);
        let read = kernel::file::Access { read: true, ..Default::default() };
        let is_own = user == user_ids.real && group == group_ids.real;
        Identity { user, group, capabilities, is_secure, is_dumpable: is_own && credentials.permit(node, read).is_ok() }
    }
}

/// Whether others could abuse the rights of a program that this process executes: who traces it, or shares its folders
/// (Linux `cap_bprm_creds_from_file`).
fn is_watched(process: &Process) -> bool {
    let refuses = process.settings.get().no_new_privileges;
    let mut is_watched = false;
    process.each_task(|task| {
        is_watched |= task.watch.tracing.borrow().as_ref().is_some_and(|tracing| !tracing.is_privileged);
    });
    let is_shared = Arc::strong_count(&process.place.borrow()) > 1;
    refuses || is_watched || is_shared
}

/// The bytes of a program file, in memory or outside of the machine.
struct ProgramFile<'k> {
    held: Held<'k>,
    unix: &'static Unix,
    node: Arc<Node>,
    opening: Option<Arc<dyn File>>,
}

impl<'k> ProgramFile<'k> {
    /// Errors: `EACCES` when it may not be executed or read, or is no regular file.
    fn open(
        held: Held<'k>,
        unix: &'static Unix,
        process: &Process,
        node: &Arc<Node>,
    ) -> Result<ProgramFile<'k>, Errno> {
        check_executable(process, node)?;
        node.prepare()?;
        let opening = if node.is_elsewhere() { Some(node.open(O_RDONLY)?) } else { None };
        Ok(ProgramFile { held, unix, node: node.clone(), opening })
    }

    fn backing(&self) -> Result<Arc<NodeBacking>, Errno> {
        let path = self.unix.names.path_of(&self.node, self.unix.names.root())?;
        NodeBacking::open(&self.node, &path, self.opening.as_ref(), false)
    }
}

impl FileBytes for ProgramFile<'_> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, Errno> {
        if let Some(opening) = &self.opening {
            return opening.read_at(offset, into);
        }
        let content = self.node.content().ok_or(Errno::EACCES)?;
        loop {
            let Some(coming) = content.bring(offset..offset.saturating_add(into.len() as u64))? else {
                return Ok(content.read_at(offset, into));
            };
            self.unix.await_coming(self.held, &coming)?;
        }
    }

    fn size(&self) -> u64 {
        match &self.opening {
            Some(opening) => opening.size(),
            None => self.node.content().map_or(0, |content| content.size()),
        }
    }
}

/// Why a program is not loaded. Linux finds some faults before and some after the old program is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoadError {
    /// `execve` returns it to the old program.
    Refused(Errno),
    /// Linux has no program to return to by then: `SIGSEGV`.
    Lost(Errno),
}

impl From<Errno> for LoadError {
    fn from(errno: Errno) -> LoadError {
        LoadError::Refused(errno)
    }
}

/// Finds the file, follows `#!` lines, and loads what they lead to into a fresh quaspace.
pub fn load(
    held: Held<'_>,
    unix: &'static Unix,
    process: &Process,
    node: Arc<Node>,
    mut wanted: Wanted,
) -> Result<Loaded, LoadError> {
    let mut node = node;
    let mut rewrites = Rewrites::default();
    let name = wanted.path.clone();
    let file = loop {
        let file = ProgramFile::open(held, unix, process, &node)?;
        let mut first = [0; 256];
        let bytes = file.read_at(0, &mut first)?;
        let Some(script) = script::parse(&first[..bytes])? else { break file };
        rewrites.count()?;
        wanted.argv = script.rewrite(&wanted.path, wanted.argv)?;
        wanted.path = try_to_vec(&script.interpreter).map_err(Errno::from)?;
        node = find(unix, process, &wanted.path)?;
    };
    let image = elf::parse(&file).map_err(|error| error.program_errno())?;
    let interpreter = match &image.interp {
        None => None,
        Some(path) => {
            let node = find(unix, process, path)?;
            let file = ProgramFile::open(held, unix, process, &node)?;
            let image = elf::parse_interpreter(&file).map_err(|error| error.interpreter_errno())?;
            Some((file, image))
        }
    };
    build(held, unix, process, Parts { file, image, interpreter, wanted, name })
}

struct Parts<'k> {
    file: ProgramFile<'k>,
    image: Image,
    interpreter: Option<(ProgramFile<'k>, Image)>,
    wanted: Wanted,
    /// The path given to execve, before any script was followed.
    name: Vec<u8>,
}

fn find(unix: &Unix, process: &Process, path: &[u8]) -> Result<Arc<Node>, Errno> {
    let place = process.place.borrow().borrow().clone();
    let credentials = process.credentials.borrow().clone();
    let view = kernel::file::View::new(&place.root, &place.directory, &credentials);
    unix.names.lookup(view, path, FinalLink::Follow)
}

/// Error: `EACCES`.
fn check_executable(process: &Process, node: &Node) -> Result<(), Errno> {
    let execute = kernel::file::Access { execute: true, ..Default::default() };
    if node.kind() != NodeKind::Regular || (node.content().is_none() && !node.is_elsewhere()) {
        return Err(Errno::EACCES);
    }
    process.credentials.borrow().permit(node, execute)
}

/// What a program that begins touches of its stack below its arguments.
const STACK_AHEAD_BYTES: u64 = 3 * PAGE_BYTES as u64;

fn build(held: Held<'_>, unix: &'static Unix, process: &Process, parts: Parts<'_>) -> Result<Loaded, LoadError> {
    let execution = Execution::begin(&parts.file.node)?;
    let limits = process.limits.borrow().clone();
    let stack_limit = limits.stack_bytes();
    let bias = match &parts.interpreter {
        None => 0,
        Some((_, image)) => {
            plan::interpreter_bias(image, plan::mmap_top(stack_limit)).ok_or(LoadError::Lost(Errno::ENOMEM))?
        }
    };
    let interpreter = parts.interpreter.as_ref().map(|(_, image)| (image, bias));
    let plan = Plan::new(&parts.image, interpreter).map_err(|error| LoadError::Lost(error.errno()))?;
    let translation = unix.machine.new_translation().map_err(|_| Errno::ENOMEM)?;
    let mut space = Space::with_limits(unix.pool, translation, limits.space());
    // Mapped first, so that nothing else is placed where the stack will grow.
    let stack_protection = Protection { read: true, write: true, execute: plan.stack_executable };
    let top = space
        .map_stack(stack_limit.clamp(PAGE_BYTES as u64 * 32, 8 << 20).min(1 << 17), stack_protection)
        .map_err(|error| LoadError::Lost(errno_of(error)))?;
    let mut mapper = SpaceMapper {
        held,
        unix,
        space: &mut space,
        program: parts.file.backing()?,
        interpreter: parts.interpreter.as_ref().map(|(file, _)| file.backing()).transpose()?,
    };
    plan::load(&plan, &mut mapper).map_err(LoadError::Lost)?;
    space.set_break_start(plan.brk_start, 0);
    let vdso = map_vdso(unix, &mut space)?;
    let identity = Identity::of(process, &parts.file.node);
    let facts = facts(unix, process, &parts.image, &plan, vdso, identity);
    let arguments = Arguments { path: &parts.name, argv: &parts.wanted.argv, envp: &parts.wanted.envp };
    let initial = stack::build(&arguments, &facts, top, stack_limit, &|| unix.scheduler.breathe(held))?;
    let touched = initial.stack_pointer - initial.stack_pointer % PAGE_BYTES as u64 - STACK_AHEAD_BYTES;
    space.supply_segment(touched, STACK_AHEAD_BYTES);
    for (index, part) in initial.bytes.chunks(COPY_BYTES).enumerate() {
        if index > 0 {
            unix.scheduler.breathe(held);
        }
        let at = initial.stack_pointer + (index * COPY_BYTES) as u64;
        space.write_bytes(at, part).map_err(|_| Errno::ENOMEM)?;
    }
    for strings in [parts.wanted.argv, parts.wanted.envp] {
        forget_strings(held, unix.scheduler, strings);
    }
    let registers = Registers { rip: plan.start, rsp: initial.stack_pointer, rflags: 0x202, ..Registers::default() };
    Ok(Loaded {
        space,
        registers,
        executable: parts.file.node,
        execution,
        identity,
        arguments: (initial.arguments.start, initial.arguments.end),
        environment: (initial.environment.start, initial.environment.end),
    })
}

fn facts(
    unix: &Unix,
    process: &Process,
    image: &Image,
    plan: &Plan,
    vdso: Option<u64>,
    identity: Identity,
) -> ProgramFacts {
    let (user, group) = (process.user_ids.get(), process.group_ids.get());
    let mut random = [0; 16];
    random[..8].copy_from_slice(&unix.machine.random().to_le_bytes());
    random[8..].copy_from_slice(&unix.machine.random().to_le_bytes());
    ProgramFacts {
        phdr: plan.phdr,
        phentsize: image.phentsize,
        phnum: image.phnum,
        interpreter_base: plan.interpreter_base,
        entry: plan.entry,
        uid: user.real,
        euid: identity.user,
        gid: group.real,
        egid: identity.group,
        secure: identity.is_secure,
        random,
        hwcap: unix.machine.feature_word(),
        // FSGSBASE instructions are allowed in programs.
        hwcap2: 2,
        vdso,
        signal_frame_bytes: 3632,
    }
}

/// The time page and the vDSO, in that order.
fn map_vdso(unix: &'static Unix, space: &mut Space) -> Result<Option<u64>, Errno> {
    let Some(pages) = unix.vdso_pages.borrow().clone() else { return Ok(None) };
    let page = PAGE_BYTES as u64;
    let read = Protection { read: true, ..Protection::default() };
    let request = |address, bytes, kind, protection| MapRequest {
        address,
        bytes,
        placement: Placement::Anywhere,
        protection,
        limit: protection,
        kind,
        no_reserve: false,
        populate: false,
        locked: false,
    };
    let whole = request(0, 2 * page, Kind::Anonymous, Protection::default());
    let start = space.map(whole).map_err(errno_of)?;
    let [time, image] = pages;
    let view = |name, page| View { backing: FixedPages::new(name, Vec::from([page])), first_page: 0 };
    space.map(request(start, page, Kind::Special(view("[vvar]", time)), read).at(start)).map_err(errno_of)?;
    let execute = Protection { execute: true, ..read };
    let code = request(start + page, page, Kind::Special(view("[vdso]", image)), execute).at(start + page);
    space.map(code).map_err(errno_of)?;
    Ok(Some(start + page))
}

struct SpaceMapper<'a> {
    held: Held<'a>,
    unix: &'static Unix,
    space: &'a mut Space,
    program: Arc<NodeBacking>,
    interpreter: Option<Arc<NodeBacking>>,
}

impl Mapper for SpaceMapper<'_> {
    fn map_file(&mut self, source: Source, addr: u64, len: u64, prot: Protection, offset: u64) -> Result<(), Errno> {
        let backing = match (source, &self.interpreter) {
            (Source::Interpreter, Some(backing)) => backing.clone(),
            _ => self.program.clone(),
        };
        let view = View { backing, first_page: offset / PAGE_BYTES as u64 };
        let request = MapRequest::anonymous(len, prot).at(addr).of(Kind::FilePrivate(view));
        self.space.map(request).map_err(errno_of)?;
        self.space.supply_segment(addr, len);
        Ok(())
    }

    fn map_anonymous(&mut self, addr: u64, len: u64, prot: Protection) -> Result<(), Errno> {
        self.space.map(MapRequest::anonymous(len, prot).at(addr)).map_err(errno_of)?;
        self.space.supply_segment(addr, len);
        Ok(())
    }

    fn zero(&mut self, addr: u64, len: u64) -> Result<(), Errno> {
        let zeros = try_filled(0, len as usize)?;
        loop {
            match self.space.poke_bytes(addr, &zeros) {
                Err(FaultKind::Coming) => {}
                Err(FaultKind::Failed) => return Err(Errno::EIO),
                result => return result.map_err(|_| Errno::ENOMEM),
            }
            // Nobody else knows the quaspace yet.
            self.space.take_coming().map_or(Ok(()), |coming| self.unix.await_coming(self.held, &coming))?;
        }
    }
}

/// Loads the first program into its process; the caller makes the thread.
pub(crate) fn load_first(
    held: Held<'_>,
    unix: &'static Unix,
    process: &Arc<Process>,
    wanted: Wanted,
) -> Result<Loaded, LoadError> {
    let node = find(unix, process, &wanted.path)?;
    load(held, unix, process, node, wanted)
}

/// Gives a process its new program. Returns the registers to start with, and the old quaspace, to be dropped
/// when it is no longer active.
pub fn install(process: &Process, loaded: Loaded) -> (Registers, Option<Arc<KernelCell<Space>>>) {
    *process.executable.borrow_mut() = Some(loaded.executable);
    let before = process.execution.borrow_mut().replace(loaded.execution);
    drop(before);
    process.arguments.set(loaded.arguments);
    process.environment.set(loaded.environment);
    process.stack_start.set(loaded.registers.rsp);
    let space = Arc::new(KernelCell::new(loaded.space));
    let old = process.space.borrow_mut().replace(space);
    if let Some(old) = &old {
        process.note_peak(old);
    }
    (loaded.registers, old)
}

/// The last part of a path, as a task's name.
pub fn task_name(path: &[u8]) -> [u8; 16] {
    let last = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let mut name = [0; 16];
    let bytes = last.len().min(15);
    name[..bytes].copy_from_slice(&last[..bytes]);
    name
}
