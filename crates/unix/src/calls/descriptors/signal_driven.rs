//! Signal-driven input and output: `O_ASYNC`, `F_SETSIG`, `F_SETOWN`.
//!
//! ```text
//!   a stream's queue is woken ──► the kernel's thread: which files have news? ──► a signal to each file's owner
//! ```
//! The thread stands in the waiting queues of the files, as any thread that sleeps does, so synthesized routines wake it, too, and
//! files that nobody wants to hear of cost nothing. It holds no file between two looks: a file that is closed goes at once. It
//! starts with the first file, and has no more work than there are signals.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use abi::Errno;
use abi::file::{F_OWNER_PGRP, F_OWNER_PID, F_OWNER_TID, O_ASYNC, OwnerEx};
use abi::siginfo::{Cause, POLL_HUP, POLL_IN, POLL_OUT, SI_SIGIO, SigInfo};
use abi::signal::{SIGBUS, SIGCHLD, SIGFPE, SIGILL, SIGIO, SIGSEGV, SIGSYS, SIGTRAP};
use kernel::pipe::PipeEnd;
use kernel::stream::{Progress, Ready, Stream};
use kernel::thread::Thread;
use machine::{Held, KernelCell, Nanos, Start, TryGrow};

use crate::call::{Call, CallResult};
use crate::calls::signals::send::{try_send_to_process, try_send_to_task};
use crate::emulator::Unix;
use crate::files::open_file::OpenFile;
use crate::files::told::{Hearer, Told};
use crate::task::process::Process;

/// The open files with `O_ASYNC`, and the thread that tells of them.
pub struct SignalDriven {
    watched: KernelCell<Vec<Watched>>,
    thread: KernelCell<Option<Arc<Thread>>>,
}

/// What the thread knows of a file.
struct Watched {
    file: Weak<OpenFile>,
    /// The descriptor by which the flag was set: `si_fd`.
    descriptor: i32,
    seen: Seen,
}

/// How a file was at the last look.
#[derive(Clone, Copy, PartialEq)]
struct Seen {
    ready: Ready,
    progress: Option<Progress>,
}

impl Seen {
    fn of(stream: &dyn Stream) -> Seen {
        Seen { ready: stream.ready(), progress: stream.progress() }
    }
}

/// The thread gets no argument.
static THE: KernelCell<Option<&'static Unix>> = KernelCell::new(None);

impl SignalDriven {
    pub const fn new() -> SignalDriven {
        SignalDriven { watched: KernelCell::new(Vec::new()), thread: KernelCell::new(None) }
    }
}

/// The flag `O_ASYNC` of a file goes on or off. It stays off for files that never tell anybody.
///
/// Error: `ENOMEM`, and the flag stays as it was.
pub fn set(call: &Call<'_>, file: &Arc<OpenFile>, descriptor: i32, on: bool) -> Result<(), Errno> {
    let driven = &call.unix.families.signal_driven;
    let mut flags = file.flags() & !O_ASYNC;
    if on && let Some(stream) = file.as_stream().filter(|stream| stream.tells_by_signal()) {
        let thread = thread(call.unix)?;
        let mut watched = driven.watched.borrow_mut();
        watched.retain(|one| one.file.strong_count() > 0);
        watched.try_push(Watched { file: Arc::downgrade(file), descriptor, seen: Seen::of(&**stream) })?;
        let mut listens = Ok(false);
        stream.each_queue(&mut |queue| {
            if listens.is_ok() {
                listens = call.unix.scheduler.listen(queue, &thread);
            }
        });
        if let Err(error) = listens {
            watched.pop();
            return Err(error.into());
        }
        drop(watched);
        flags |= O_ASYNC;
    } else {
        driven.watched.borrow_mut().retain(|one| !core::ptr::eq(one.file.as_ptr(), Arc::as_ptr(file)));
    }
    file.set_flags(flags);
    Ok(())
}

/// The thread, started if it does not run yet. Error: `ENOMEM`.
fn thread(unix: &'static Unix) -> Result<Arc<Thread>, Errno> {
    let mut thread = unix.families.signal_driven.thread.borrow_mut();
    if let Some(thread) = &*thread {
        return Ok(thread.clone());
    }
    let tte = unix.machine.create_tte(Start::Kernel(tell)).map_err(|_| Errno::ENOMEM)?;
    let new = Thread::new(tte);
    THE.set(Some(unix));
    unix.scheduler.enlist(&new)?;
    unix.scheduler.unblock(&new);
    *thread = Some(new.clone());
    Ok(new)
}

/// The thread's work: a look at the files, then sleep until a queue is woken.
fn tell(held: Held<'_>) -> ! {
    let unix = THE.get().expect("whoever starts the thread says for whom");
    let own = unix.scheduler.current();
    loop {
        let (mut place, mut hears_all) = (0, true);
        while let Some((file, descriptor, news)) = next_news(unix, &own, &mut place, &mut hears_all) {
            news.into_iter().flatten().for_each(|event| send(unix, &file, descriptor, event));
        }
        // What could not be listened to is looked at again.
        let again = unix.machine.now().saturating_add(LOOK_AGAIN);
        unix.scheduler.sleep(held, &[], (!hears_all).then_some(again));
    }
}

/// When memory for listening may be there again.
const LOOK_AGAIN: Nanos = Nanos(10_000_000);

/// The next file from `place` on that has something new. `hears_all` is false afterwards if a queue could not be listened to.
fn next_news(
    unix: &'static Unix,
    own: &Arc<Thread>,
    place: &mut usize,
    hears_all: &mut bool,
) -> Option<(Arc<OpenFile>, i32, [Option<Event>; 2])> {
    let mut watched = unix.families.signal_driven.watched.borrow_mut();
    watched.retain(|one| one.file.strong_count() > 0);
    while let Some(one) = watched.get_mut(*place) {
        *place += 1;
        let Some(file) = one.file.upgrade() else { continue };
        let Some(stream) = file.as_stream() else { continue };
        let mut was_woken = false;
        // First the queues, then the look: what comes in between wakes again.
        stream.each_queue(&mut |queue| {
            let listens = unix.scheduler.listen(queue, own);
            *hears_all &= listens.is_ok();
            was_woken |= listens.unwrap_or(true);
        });
        if !was_woken {
            continue;
        }
        let before = core::mem::replace(&mut one.seen, Seen::of(&**stream));
        let is_pipe = stream.as_any().is::<PipeEnd>();
        let news =
            if is_pipe { news_of_pipe(one.seen.ready) } else { news(before, one.seen, file.found_no_room.get()) };
        if news[1].is_some() {
            file.found_no_room.set(false);
        }
        return Some((file.clone(), one.descriptor, news));
    }
    None
}

/// What happened, with the bits of `poll` that tell it in `si_band`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Event {
    code: i32,
    band: i64,
}

/// POLLIN | POLLRDNORM; POLLOUT | POLLWRNORM | POLLWRBAND; POLLHUP | POLLERR.
const INPUT: Event = Event { code: POLL_IN, band: 0x041 };
const OUTPUT: Event = Event { code: POLL_OUT, band: 0x304 };
const HANG_UP: Event = Event { code: POLL_HUP, band: 0x018 };

/// An end of a pipe tells whatever the other end does, and of its going as of input or room.
fn news_of_pipe(now: Ready) -> [Option<Event>; 2] {
    [
        now.intersects(Ready::READABLE.with(Ready::HANG_UP)).then_some(INPUT),
        now.intersects(Ready::WRITABLE.with(Ready::ERROR)).then_some(OUTPUT),
    ]
}

/// More to read; and more room for a writer that has looked for some, or room for one that could not write before.
fn news(before: Seen, now: Seen, found_no_room: bool) -> [Option<Event>; 2] {
    let is_new = |bits: Ready| now.ready.intersects(bits) && !before.ready.intersects(bits);
    let (arrived, departed) = match (before.progress, now.progress) {
        (Some(before), Some(now)) => (before.arrived != now.arrived, before.departed != now.departed),
        _ => (true, true),
    };
    let input = if is_new(Ready::HANG_UP) {
        Some(HANG_UP)
    } else {
        let ends = is_new(Ready::READ_HANG_UP);
        (now.ready.intersects(Ready::READABLE) && (arrived || ends || is_new(Ready::READABLE))).then_some(INPUT)
    };
    let has_room = now.ready.intersects(Ready::WRITABLE) && (found_no_room && departed || is_new(Ready::WRITABLE));
    [input, has_room.then_some(OUTPUT)]
}

/// Sends the signal of `file` to whom it names. With a signal of its own choice it tells the descriptor; one that finds no room,
/// and one of nobody's choice, is a plain `SIGIO`.
fn send(unix: &'static Unix, file: &OpenFile, descriptor: i32, event: Event) {
    let told = file.told.get();
    let plain = SigInfo::kernel(SIGIO);
    let detailed = (told.signal != 0).then(|| SigInfo {
        signo: told.signal as i32,
        errno: 0,
        // These signals have codes of their own that mean something else.
        code: if has_codes(told.signal) { SI_SIGIO } else { event.code },
        cause: Cause::Poll { band: event.band, fd: descriptor },
    });
    let info = detailed.unwrap_or(plain);
    match told.whom {
        Hearer::Nobody => {}
        Hearer::Thread(tid) => {
            let task = unix.tasks.task(tid).filter(|task| told.may_tell(users(&task.process)));
            if let Some(task) = task
                && try_send_to_task(unix, &task, &info).is_err()
            {
                let _ = try_send_to_task(unix, &task, &plain);
            }
        }
        Hearer::Process(pid) => {
            unix.tasks.process(pid).iter().for_each(|process| to_process(unix, told, process, &info))
        }
        Hearer::Group(group) => {
            let members = unix.tasks.processes();
            let is_member = |process: &Arc<Process>| process.family.get().group == group && !process.is_zombie();
            members.filter(is_member).for_each(|process| to_process(unix, told, &process, &info));
        }
    }
}

fn to_process(unix: &'static Unix, told: Told, process: &Arc<Process>, info: &SigInfo) {
    if told.may_tell(users(process)) && try_send_to_process(unix, process, info).is_err() {
        let _ = try_send_to_process(unix, process, &SigInfo::kernel(SIGIO));
    }
}

fn has_codes(signal: u32) -> bool {
    matches!(signal, SIGILL | SIGFPE | SIGSEGV | SIGBUS | SIGTRAP | SIGCHLD | SIGSYS)
}

/// `F_SETOWN`: a process, or as a negative number a group. Errors: `EINVAL`, `ESRCH` for nobody.
pub fn set_owner(call: &Call<'_>, file: &OpenFile, number: i32) -> CallResult {
    let number = if number == i32::MIN { return Err(Errno::EINVAL) } else { number };
    let whom = match number {
        0 => Hearer::Nobody,
        ..0 => Hearer::Group(number.unsigned_abs()),
        _ => Hearer::Process(number as u32),
    };
    own(call, file, whom)
}

/// `F_SETOWN_EX`. Errors: `EFAULT`, `EINVAL`, `ESRCH`.
pub fn set_owner_of_kind(call: &Call<'_>, file: &OpenFile, address: u64) -> CallResult {
    let wanted: OwnerEx = call.read(address)?;
    let number = wanted.pid as u32;
    let whom = match wanted.r#type {
        F_OWNER_TID | F_OWNER_PID | F_OWNER_PGRP if number == 0 => Hearer::Nobody,
        F_OWNER_TID => Hearer::Thread(number),
        F_OWNER_PID => Hearer::Process(number),
        F_OWNER_PGRP => Hearer::Group(number),
        _ => return Err(Errno::EINVAL),
    };
    own(call, file, whom)
}

fn own(call: &Call<'_>, file: &OpenFile, whom: Hearer) -> CallResult {
    let tasks = &call.unix.tasks;
    let is_there = match whom {
        Hearer::Nobody => true,
        Hearer::Thread(tid) => tasks.task(tid).is_some(),
        Hearer::Process(pid) => tasks.process(pid).is_some() || tasks.task(pid).is_some(),
        Hearer::Group(group) => tasks.processes().any(|process| process.family.get().group == group),
    };
    if !is_there {
        return Err(Errno::ESRCH);
    }
    let ids = call.process().user_ids.get();
    file.told.set(Told { whom, real: ids.real, effective: ids.effective, ..file.told.get() });
    Ok(0)
}

/// `F_GETOWN`.
pub fn owner(file: &OpenFile) -> CallResult {
    Ok(match file.told.get().whom {
        Hearer::Nobody => 0,
        Hearer::Thread(number) | Hearer::Process(number) => number.into(),
        Hearer::Group(group) => -i64::from(group) as u64,
    })
}

/// `F_GETOWN_EX`. Error: `EFAULT`.
pub fn owner_of_kind(call: &Call<'_>, file: &OpenFile, address: u64) -> CallResult {
    let (r#type, pid) = match file.told.get().whom {
        Hearer::Nobody => (F_OWNER_TID, 0),
        Hearer::Thread(tid) => (F_OWNER_TID, tid),
        Hearer::Process(pid) => (F_OWNER_PID, pid),
        Hearer::Group(group) => (F_OWNER_PGRP, group),
    };
    call.write(address, &OwnerEx { r#type, pid: pid as i32 }).map(|()| 0)
}

/// `F_SETSIG`. Error: `EINVAL` for no signal.
pub fn set_signal(file: &OpenFile, signal: u64) -> CallResult {
    if signal > SIGNALS {
        return Err(Errno::EINVAL);
    }
    file.told.set(Told { signal: signal as u32, ..file.told.get() });
    Ok(0)
}

/// The highest number of a signal.
const SIGNALS: u64 = 64;

/// Real and saved.
fn users(process: &Process) -> [u32; 2] {
    let ids = process.user_ids.get();
    [ids.real, ids.saved]
}
