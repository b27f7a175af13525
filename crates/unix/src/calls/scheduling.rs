//! Scheduling as programs may ask for it. The ready ring treats all threads alike, so most of this is kept
//! and told only.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::process::{
    CAP_SYS_NICE, PRIO_PGRP, PRIO_PROCESS, PRIO_USER, RLIMIT_NICE, SCHED_BATCH, SCHED_DEADLINE, SCHED_FIFO,
    SCHED_FLAG_DL_OVERRUN, SCHED_FLAG_KEEP_PARAMS, SCHED_FLAG_KEEP_POLICY, SCHED_FLAG_RECLAIM,
    SCHED_FLAG_RESET_ON_FORK, SCHED_FLAG_UTIL_CLAMP_MAX, SCHED_FLAG_UTIL_CLAMP_MIN, SCHED_IDLE, SCHED_OTHER, SCHED_RR,
    SchedAttr,
};
use abi::time::Timespec;
use abi::{Errno, Field};

use crate::call::Entry;
use crate::call::{Call, CallResult};
use crate::task::process::Process;
use crate::task::thread::{Policy, Task};
use abi::nr;
use machine::{TryGrow, try_collect};

/// Bit in a policy: children start with the default again.
const RESET_ON_FORK: u32 = 0x4000_0000;

/// Error: `ESRCH`; `EINVAL` for a negative number.
fn task(call: &Call<'_>, tid: u64) -> Result<Arc<Task>, Errno> {
    match tid as i32 {
        0 => Ok(call.task.clone()),
        negative if negative < 0 => Err(Errno::EINVAL),
        tid => call.unix.tasks.task(tid as u32).ok_or(Errno::ESRCH),
    }
}

fn sched_yield(call: &Call<'_>) -> CallResult {
    call.unix.scheduler.yield_now(call.held);
    Ok(0)
}

machine::relies_on_one_processor!("sets of processors hold the first alone");

/// The set is the first processor. Returns the bytes of the kernel's own set.
fn sched_getaffinity(call: &Call<'_>, tid: u64, bytes: u64, into: u64) -> CallResult {
    if bytes == 0 || bytes & 7 != 0 {
        return Err(Errno::EINVAL);
    }
    if tid as i32 != 0 && call.unix.tasks.task(tid as u32).is_none() {
        return Err(Errno::ESRCH);
    }
    call.write(into, &1u64)?;
    Ok(8)
}

/// Errors: `EFAULT`, `ESRCH`, `EPERM` for another user's thread, `EINVAL` for a set without our processor.
fn sched_setaffinity(call: &Call<'_>, tid: u64, bytes: u64, from: u64) -> CallResult {
    let mut set = [0; 8];
    call.copy_in(from, &mut set[..(bytes as u32 as usize).min(8)])?;
    let task = match tid as i32 {
        0 => call.task.clone(),
        tid => call.unix.tasks.task(tid as u32).ok_or(Errno::ESRCH)?,
    };
    permit(call, &task)?;
    if set[0] & 1 == 0 { Err(Errno::EINVAL) } else { Ok(0) }
}

fn priorities(policy: u32) -> Result<(u64, u64), Errno> {
    match policy {
        SCHED_FIFO | SCHED_RR => Ok((1, 99)),
        SCHED_OTHER | SCHED_BATCH | SCHED_IDLE | SCHED_DEADLINE => Ok((0, 0)),
        _ => Err(Errno::EINVAL),
    }
}

/// Error: `EPERM` for another user's thread.
fn permit(call: &Call<'_>, task: &Task) -> Result<(), Errno> {
    let (own, theirs) = (call.process().user_ids.get(), task.process.user_ids.get());
    let is_own = own.effective == theirs.effective || own.effective == theirs.real;
    if is_own { Ok(()) } else { call.require(CAP_SYS_NICE) }
}

/// Errors: `EINVAL`, `EFAULT`, `ESRCH`, `EPERM` for the real-time policies, which are not there, for another user's thread,
/// and for one that would get more than it has.
fn sched_setscheduler(call: &Call<'_>, tid: u64, policy: i32, parameter: u64) -> CallResult {
    if policy < 0 || parameter == 0 || (tid as i32) < 0 {
        return Err(Errno::EINVAL);
    }
    let priority: i32 = call.read(parameter)?;
    let task = task(call, tid)?;
    let policy = Policy { number: policy as u32 & !RESET_ON_FORK, resets_on_fork: policy as u32 & RESET_ON_FORK != 0 };
    change(call, &task, policy, priority)
}

fn change(call: &Call<'_>, task: &Task, policy: Policy, priority: i32) -> CallResult {
    let (least, most) = priorities(policy.number)?;
    if policy.number == SCHED_DEADLINE || !(least as i32..=most as i32).contains(&priority) {
        return Err(Errno::EINVAL);
    }
    if matches!(policy.number, SCHED_FIFO | SCHED_RR) {
        return Err(Errno::EPERM);
    }
    permit(call, task)?;
    let before = task.policy.get();
    // To leave the idle policy is to become more urgent, as far as the limit on that allows.
    let leaves_idle = before.number == SCHED_IDLE && policy.number != SCHED_IDLE;
    let gains = leaves_idle && task.process.nice.get() < nice_least(task);
    if gains || before.resets_on_fork && !policy.resets_on_fork {
        call.require(CAP_SYS_NICE)?;
    }
    task.policy.set(policy);
    Ok(0)
}

fn sched_getscheduler(call: &Call<'_>, tid: u64) -> CallResult {
    let Policy { number, resets_on_fork } = task(call, tid)?.policy.get();
    Ok((number | if resets_on_fork { RESET_ON_FORK } else { 0 }).into())
}

fn sched_setparam(call: &Call<'_>, tid: u64, parameter: u64) -> CallResult {
    if parameter == 0 {
        return Err(Errno::EINVAL);
    }
    let priority: i32 = call.read(parameter)?;
    let task = task(call, tid)?;
    change(call, &task, task.policy.get(), priority)
}

fn sched_getparam(call: &Call<'_>, tid: u64, into: u64) -> CallResult {
    if into == 0 {
        return Err(Errno::EINVAL);
    }
    task(call, tid)?;
    call.write(into, &0i32)?;
    Ok(0)
}

fn sched_rr_get_interval(call: &Call<'_>, tid: u64, into: u64) -> CallResult {
    let quantum = task(call, tid)?.thread.tte().quantum();
    call.write(into, &Timespec { tv_sec: 0, tv_nsec: quantum.0 as i64 })?;
    Ok(0)
}

/// `struct sched_attr` of 48 bytes.
fn sched_getattr(call: &Call<'_>, tid: u64, into: u64, bytes: u64, flags: u64) -> CallResult {
    const RECORD_BYTES: u32 = 48;
    if into == 0 || !(RECORD_BYTES as u64..=4096).contains(&bytes) || flags as u32 != 0 {
        return Err(Errno::EINVAL);
    }
    let task = task(call, tid)?;
    let (nice, policy) = (task.process.nice.get(), task.policy.get());
    let mut record = [0; RECORD_BYTES as usize];
    record[4..8].copy_from_slice(&policy.number.to_le_bytes());
    // SCHED_FLAG_RESET_ON_FORK
    record[8..16].copy_from_slice(&u64::from(policy.resets_on_fork).to_le_bytes());
    record[..4].copy_from_slice(&RECORD_BYTES.to_le_bytes());
    record[16..20].copy_from_slice(&nice.to_le_bytes());
    call.copy_out(into, &record)?;
    Ok(0)
}

/// Bytes of the first version of the record, and the most that a later one may have.
const ATTR_BYTES_FIRST: u32 = 48;
const ATTR_BYTES_MAX: u32 = 4096;

/// Errors: those of `sched_setscheduler`; `E2BIG` for a record that knows more than we do, whose size is told then; `EPERM` to
/// become more urgent; `EOPNOTSUPP` for what a kernel without utilization clamping refuses.
fn sched_setattr(call: &Call<'_>, tid: u64, from: u64, flags: u64) -> CallResult {
    if from == 0 || (tid as i32) < 0 || flags as u32 != 0 {
        return Err(Errno::EINVAL);
    }
    let attr = read_attr(call, from)?;
    const KNOWN: u64 = SCHED_FLAG_RESET_ON_FORK
        | SCHED_FLAG_RECLAIM
        | SCHED_FLAG_DL_OVERRUN
        | SCHED_FLAG_KEEP_POLICY
        | SCHED_FLAG_KEEP_PARAMS;
    const CLAMP: u64 = SCHED_FLAG_UTIL_CLAMP_MIN | SCHED_FLAG_UTIL_CLAMP_MAX;
    if (attr.policy as i32) < 0 {
        return Err(Errno::EINVAL);
    }
    let task = task(call, tid)?;
    let has = |flag: u64| attr.flags & flag != 0;
    if attr.flags & !(KNOWN | CLAMP) != 0 {
        return Err(Errno::EINVAL);
    }
    if has(CLAMP) {
        return Err(Errno::EOPNOTSUPP);
    }
    let number = if has(SCHED_FLAG_KEEP_POLICY) { task.policy.get().number } else { attr.policy };
    let keeps = has(SCHED_FLAG_KEEP_PARAMS);
    let priority = if keeps { 0 } else { i32::try_from(attr.priority).map_err(|_| Errno::EINVAL)? };
    let is_nice = matches!(number, SCHED_OTHER | SCHED_BATCH) && !keeps;
    let nice = attr.nice.clamp(-20, 19);
    if is_nice && nice < task.process.nice.get().min(nice_least(&task)) {
        call.require(CAP_SYS_NICE)?;
    }
    change(call, &task, Policy { number, resets_on_fork: has(SCHED_FLAG_RESET_ON_FORK) }, priority)?;
    if is_nice {
        task.process.nice.set(nice);
    }
    Ok(0)
}

fn read_attr(call: &Call<'_>, from: u64) -> Result<SchedAttr, Errno> {
    let size: u32 = call.read(from)?;
    let size = if size == 0 { ATTR_BYTES_FIRST } else { size };
    let too_big = || {
        let _ = call.write(from, &(SchedAttr::BYTES as u32));
        Errno::E2BIG
    };
    if !(ATTR_BYTES_FIRST..=ATTR_BYTES_MAX).contains(&size) {
        return Err(too_big());
    }
    let mut record = call.read_bytes(from, size as usize)?;
    if record.iter().skip(SchedAttr::BYTES).any(|byte| *byte != 0) {
        return Err(too_big());
    }
    record.try_resize(SchedAttr::BYTES, 0)?;
    Ok(SchedAttr::get(&record))
}

/// The least nice value that the limit on it allows.
fn nice_least(task: &Task) -> i32 {
    20 - task.process.limits.borrow().0[RLIMIT_NICE as usize].0.min(40) as i32
}

/// The processes that `getpriority` speaks of. Errors: `EINVAL`, `ESRCH`.
fn chosen(call: &Call<'_>, which: u32, who: u32) -> Result<Vec<Arc<Process>>, Errno> {
    let own_group = call.process().family.get().group;
    let own_user = call.process().user_ids.get().real;
    let all = call.unix.tasks.processes();
    let found = match which {
        PRIO_PROCESS => try_collect(task(call, who.into()).map(|task| task.process.clone()))?,
        PRIO_PGRP => {
            let group = if who == 0 { own_group } else { who };
            try_collect(all.filter(|process| process.family.get().group == group))?
        }
        PRIO_USER => {
            let user = if who == 0 { own_user } else { who };
            try_collect(all.filter(|process| process.user_ids.get().real == user))?
        }
        _ => return Err(Errno::EINVAL),
    };
    if found.is_empty() { Err(Errno::ESRCH) } else { Ok(found) }
}

/// Returns 20 minus the nice value, so that it is never negative.
fn getpriority(call: &Call<'_>, which: u32, who: u32) -> CallResult {
    let chosen = chosen(call, which, who)?;
    let lowest = chosen.iter().map(|process| process.nice.get()).min().unwrap_or(0);
    Ok((20 - lowest) as u64)
}

/// Errors: `EINVAL`, `ESRCH`, `EPERM` for another user's process, `EACCES` to become more urgent.
fn setpriority(call: &Call<'_>, which: u32, who: u32, nice: i32) -> CallResult {
    let nice = nice.clamp(-20, 19);
    let privileged = call.can(CAP_SYS_NICE);
    let own = call.process().user_ids.get();
    for process in chosen(call, which, who)? {
        let theirs = process.user_ids.get();
        if !privileged && theirs.real != own.effective && theirs.effective != own.effective {
            return Err(Errno::EPERM);
        }
        if !privileged && nice < process.nice.get() {
            return Err(Errno::EACCES);
        }
        process.nice.set(nice);
    }
    Ok(0)
}

fn getcpu(call: &Call<'_>, processor: u64, node: u64) -> CallResult {
    call.write_if(processor, &0u32)?;
    call.write_if(node, &0u32)?;
    Ok(0)
}

/// Best effort, priority 4: what Linux says of a process that never asked.
fn ioprio_get(call: &Call<'_>, which: u32, who: u64) -> CallResult {
    match which {
        1 => task(call, who).map(|_| 0),
        2 | 3 => Ok(0),
        _ => Err(Errno::EINVAL),
    }
}

fn ioprio_set(call: &Call<'_>, which: u32, who: u64, value: u32) -> CallResult {
    let (class, level) = (value >> 13 & 7, value & 7);
    match class {
        0 if level != 0 => return Err(Errno::EINVAL),
        0..=3 => {}
        _ => return Err(Errno::EINVAL),
    }
    ioprio_get(call, which, who).map(|_| 0)
}

/// One node; its policy is the default.
fn get_mempolicy(call: &Call<'_>, policy: u64, nodes: u64, maximum: u64) -> CallResult {
    call.write_if(policy, &0i32)?;
    if nodes != 0 {
        if maximum < 1 {
            return Err(Errno::EINVAL);
        }
        call.write(nodes, &1u64)?;
    }
    Ok(0)
}

pub const CALLS: &[Entry] = &[
    (nr::SCHED_YIELD, |call, _| sched_yield(call)),
    (nr::SCHED_GETAFFINITY, |call, [a, b, c, ..]| sched_getaffinity(call, a, b, c)),
    (nr::SCHED_SETAFFINITY, |call, [a, b, c, ..]| sched_setaffinity(call, a, b, c)),
    (nr::SCHED_SETPARAM, |call, [a, b, ..]| sched_setparam(call, a, b)),
    (nr::SCHED_GETPARAM, |call, [a, b, ..]| sched_getparam(call, a, b)),
    (nr::SCHED_SETSCHEDULER, |call, [a, b, c, ..]| sched_setscheduler(call, a, b as i32, c)),
    (nr::SCHED_GETSCHEDULER, |call, [a, ..]| sched_getscheduler(call, a)),
    (nr::SCHED_SETATTR, |call, [a, b, c, ..]| sched_setattr(call, a, b, c)),
    (nr::SCHED_GETATTR, |call, [a, b, c, d, ..]| sched_getattr(call, a, b, c, d)),
    (nr::SCHED_GET_PRIORITY_MAX, |_, [a, ..]| priorities(a as u32).map(|(_, most)| most)),
    (nr::SCHED_GET_PRIORITY_MIN, |_, [a, ..]| priorities(a as u32).map(|(least, _)| least)),
    (nr::SCHED_RR_GET_INTERVAL, |call, [a, b, ..]| sched_rr_get_interval(call, a, b)),
    (nr::GETPRIORITY, |call, [a, b, ..]| getpriority(call, a as u32, b as u32)),
    (nr::SETPRIORITY, |call, [a, b, c, ..]| setpriority(call, a as u32, b as u32, c as i32)),
    (nr::GETCPU, |call, [a, b, ..]| getcpu(call, a, b)),
    (nr::IOPRIO_GET, |call, [a, b, ..]| ioprio_get(call, a as u32, b)),
    (nr::IOPRIO_SET, |call, [a, b, c, ..]| ioprio_set(call, a as u32, b, c as u32)),
    (nr::GET_MEMPOLICY, |call, [a, b, c, ..]| get_mempolicy(call, a, b, c)),
    (nr::SET_MEMPOLICY, |_, _| Ok(0)),
    (nr::MBIND, |_, _| Ok(0)),
];
