//! Waiting for children (wait4, waitid).

use alloc::sync::{Arc, Weak};
use core::sync::atomic::Ordering;

use abi::Errno;
use abi::process::{
    __WALL, __WCLONE, __WNOTHREAD, P_ALL, P_PGID, P_PID, P_PIDFD, Rusage, WCONTINUED, WEXITED, WNOHANG, WNOWAIT,
    WSTOPPED, WaitStatus,
};
use abi::siginfo::SigInfo;
use abi::signal::SIGCHLD;
use abi::time::Timeval;
use machine::try_to_vec;

use super::family;
use crate::call::{Call, CallResult};
use crate::calls::pidfd;
use crate::signal::child::{Child, child_info};
use crate::task::process::{Life, Process, Report, Usage};
use crate::task::tracing::Ghost;

/// Which children are meant.
#[derive(Clone, Copy)]
enum Whom {
    Any,
    Process(u32),
    Group(u32),
}

/// What happened to a child, or to a thread that the caller traces.
struct News {
    pid: u32,
    user: u32,
    status: WaitStatus,
    usage: Usage,
}

impl Whom {
    fn includes(self, id: u32, group: u32) -> bool {
        match self {
            Whom::Any => true,
            Whom::Process(pid) => id == pid,
            Whom::Group(wanted) => group == wanted,
        }
    }
}

/// Errors: `EINVAL` for unknown options, `ECHILD` without such a child, `ESRCH`, `EINTR`, `EFAULT`.
pub fn wait4(call: &Call<'_>, pid: u64, status: u64, options: u64, usage: u64) -> CallResult {
    const KNOWN: u32 = WNOHANG | WSTOPPED | WCONTINUED | __WNOTHREAD | __WCLONE | __WALL;
    let options = options as u32;
    if options & !KNOWN != 0 {
        return Err(Errno::EINVAL);
    }
    let whom = match pid as i32 {
        i32::MIN => return Err(Errno::ESRCH),
        group @ ..-1 => Whom::Group(group.unsigned_abs()),
        -1 => Whom::Any,
        0 => Whom::Group(call.process().family.get().group),
        pid => Whom::Process(pid as u32),
    };
    let Some(news) = wait(call, whom, options | WEXITED)? else { return Ok(0) };
    call.write_if(status, &news.status.encode())?;
    if usage != 0 {
        call.write(usage, &usage_record(&news.usage))?;
    }
    Ok(news.pid.into())
}

/// Errors: as `wait4`, and `EBADF` for what is no descriptor of a process; `EAGAIN` if that does not block.
pub fn waitid(call: &Call<'_>, [kind, id, info, options, usage]: [u64; 5]) -> CallResult {
    const KNOWN: u32 = WNOHANG | WNOWAIT | WEXITED | WSTOPPED | WCONTINUED | __WNOTHREAD | __WCLONE | __WALL;
    let options = options as u32;
    if options & !KNOWN != 0 || options & (WEXITED | WSTOPPED | WCONTINUED) == 0 {
        return Err(Errno::EINVAL);
    }
    let id = id as i32;
    let mut is_hasty = false;
    let whom = match kind as u32 {
        P_ALL => Whom::Any,
        P_PID if id > 0 => Whom::Process(id as u32),
        P_PGID if id > 0 => Whom::Group(id as u32),
        P_PGID if id == 0 => Whom::Group(call.process().family.get().group),
        P_PIDFD if id >= 0 => {
            let (process, nonblocking) = pidfd::process_of(call, id as u64)?;
            is_hasty = nonblocking && options & WNOHANG == 0;
            Whom::Process(process.pid)
        }
        _ => return Err(Errno::EINVAL),
    };
    let news = wait(call, whom, if is_hasty { options | WNOHANG } else { options })?;
    if is_hasty && news.is_none() {
        return Err(Errno::EAGAIN);
    }
    if let Some(news) = &news
        && usage != 0
    {
        call.write(usage, &usage_record(&news.usage))?;
    }
    if info != 0 {
        let bytes = news.map_or([0; SigInfo::BYTES], |news| {
            let child = Child { pid: news.pid as i32, uid: news.user, utime: 0, stime: 0 };
            child_info(SIGCHLD, &child, news.status).to_bytes()
        });
        // The C library's record is longer than what the call fills.
        call.copy_out(info, &bytes[..32])?;
    }
    Ok(0)
}

/// Sleeps until a child that is meant has news. `None`: it has none, and the caller does not wait.
fn wait(call: &Call<'_>, whom: Whom, options: u32) -> Result<Option<News>, Errno> {
    loop {
        let (child, is_any) = look(call, whom, options);
        if let Some((child, status)) = child {
            take_news(call, &child, options);
            let mut usage = child.usage.get();
            usage.add(&child.children_usage.get());
            let user = child.user_ids.get().real;
            return Ok(Some(News { pid: child.pid, user, status, usage }));
        }
        match traced(call, whom, options)? {
            Traced::News(news) => return Ok(Some(news)),
            Traced::Nobody if !is_any => return Err(Errno::ECHILD),
            _ => {}
        }
        if options & WNOHANG != 0 {
            return Ok(None);
        }
        // The children are looked at first: the signal of an ended child must not hide its end.
        if call.task.is_interrupted() {
            return Err(Errno::EINTR);
        }
        call.unix.scheduler.sleep(call.held, &[&call.process().children_changed], None);
    }
}

/// The first child that is meant and has news, with them; and whether any is meant.
fn look(call: &Call<'_>, whom: Whom, options: u32) -> (Option<(Arc<Process>, WaitStatus)>, bool) {
    let own = call.process();
    let (mut status, mut is_any) = (None, false);
    let mut has_news = |child: &Arc<Process>| {
        is_any |= is_meant(child, whom, options);
        status = if is_meant(child, whom, options) { news(call, child, options) } else { None };
        status.is_some()
    };
    let child = match whom {
        // One that is named need not be searched.
        Whom::Process(pid) => call.unix.tasks.process(pid).filter(|it| own.is_parent_of(it)).filter(&mut has_news),
        _ => own.find_child(&mut has_news),
    };
    (child.zip(status), is_any)
}

fn is_meant(child: &Process, whom: Whom, options: u32) -> bool {
    let named = whom.includes(child.pid, child.family.get().group);
    // A child with another exit signal counts as a clone and is waited for on demand only.
    let is_clone = child.exit_signal.load(Ordering::Relaxed) != SIGCHLD;
    named && (options & __WALL != 0 || is_clone == (options & __WCLONE != 0))
}

/// What there is of threads that the caller's process traces.
enum Traced {
    Nobody,
    Somebody,
    News(News),
}

/// Stops and ends of traced threads. Those of the caller's own children that end are children's ends.
fn traced(call: &Call<'_>, whom: Whom, options: u32) -> Result<Traced, Errno> {
    let own = call.process();
    let tracees = try_to_vec(&own.tracees.borrow())?;
    let mine = |tid: u32| options & __WNOTHREAD == 0 || tid == call.task.tid;
    let mut found = Traced::Nobody;
    for task in tracees.iter().filter_map(Weak::upgrade) {
        if !whom.includes(task.tid, task.process.family.get().group) || !mine(task.watch.tracer_tid()) {
            continue;
        }
        found = Traced::Somebody;
        if let Some(stop) = &mut *task.watch.stop.borrow_mut()
            && !(stop.is_reported || stop.is_over || stop.is_listening)
        {
            stop.is_reported = options & WNOWAIT == 0;
            let (user, status) = (task.process.user_ids.get().real, WaitStatus::Trapped(stop.code as u16));
            return Ok(Traced::News(News { pid: task.tid, user, status, usage: task.process.usage.get() }));
        }
    }
    let is_meant = |ghost: &Ghost| whom.includes(ghost.tid, ghost.group) && mine(ghost.tracer_tid);
    let Some(place) = own.ghosts.borrow().iter().position(is_meant) else { return Ok(found) };
    if options & WEXITED == 0 {
        return Ok(Traced::Somebody);
    }
    let ghost = own.ghosts.borrow()[place].clone();
    let news = News { pid: ghost.tid, user: ghost.user, status: ghost.status, usage: ghost.usage };
    if options & WNOWAIT == 0 {
        own.ghosts.borrow_mut().remove(place);
        crate::calls::ptrace::attach::release(call.unix, ghost);
    }
    Ok(Traced::News(news))
}

/// What a child has to tell.
fn news(call: &Call<'_>, child: &Process, options: u32) -> Option<WaitStatus> {
    if let Life::Zombie(status) = child.life.get() {
        return Some(status).filter(|_| options & WEXITED != 0 && !child.is_held.get());
    }
    if is_traced_by(call.process(), child) {
        // Its stops are those of its threads.
        return None;
    }
    match child.report.get()? {
        Report::Stopped(signal) if options & WSTOPPED != 0 => Some(WaitStatus::Stopped(signal as u8)),
        Report::Continued if options & WCONTINUED != 0 => Some(WaitStatus::Continued),
        _ => None,
    }
}

/// It has been told, unless the caller only looks.
fn take_news(call: &Call<'_>, child: &Arc<Process>, options: u32) {
    if options & WNOWAIT != 0 {
        return;
    }
    match child.life.get() {
        Life::Zombie(_) => family::reap(call.unix, call.process(), child),
        _ => child.report.set(None),
    }
}

fn is_traced_by(own: &Arc<Process>, child: &Process) -> bool {
    let tracees = own.tracees.borrow();
    !tracees.is_empty() && tracees.iter().filter_map(Weak::upgrade).any(|task| core::ptr::eq(&*task.process, child))
}

/// `struct rusage` of what has been counted.
pub fn usage_record(usage: &Usage) -> Rusage {
    let micros = usage.user.0 / 1000;
    Rusage {
        ru_utime: Timeval { tv_sec: (micros / 1_000_000) as i64, tv_usec: (micros % 1_000_000) as i64 },
        ru_maxrss: usage.peak_pages as i64 * 4,
        ru_minflt: usage.minor_faults as i64,
        ..Rusage::zeroed()
    }
}
