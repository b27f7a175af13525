//! Scheduling as programs may ask for it. The ready ring treats all threads alike, so most of this is kept
//! and told only.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use abi::process::{
    CAP_SYS_NICE, PRIO_PGRP, PRIO_PROCESS, PRIO_USER, SCHED_BATCH, SCHED_DEADLINE, SCHED_FIFO, SCHED_IDLE, SCHED_OTHER,
    SCHED_RR,
};
use abi::time::Timespec;

use super::Entry;
use crate::call::{Call, CallResult};
use crate::task::{Process, Task};
use abi::nr;

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
    call.unix.scheduler.yield_now();
    Ok(0)
}

/// There is one processor. Returns the bytes of the kernel's own set.
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

/// Errors: `EFAULT`, `ESRCH`, `EINVAL` for a set without our processor.
fn sched_setaffinity(call: &Call<'_>, tid: u64, bytes: u64, from: u64) -> CallResult {
    let mut set = [0; 8];
    call.copy_in(from, &mut set[..bytes.min(8) as usize])?;
    if tid as i32 != 0 && call.unix.tasks.task(tid as u32).is_none() {
        return Err(Errno::ESRCH);
    }
    if set[0] & 1 == 0 { Err(Errno::EINVAL) } else { Ok(0) }
}

fn priorities(policy: u32) -> Result<(u64, u64), Errno> {
    match policy {
        SCHED_FIFO | SCHED_RR => Ok((1, 99)),
        SCHED_OTHER | SCHED_BATCH | SCHED_IDLE | SCHED_DEADLINE => Ok((0, 0)),
        _ => Err(Errno::EINVAL),
    }
}

/// Errors: `EINVAL`, `EFAULT`, `ESRCH`, `EPERM` for the real-time policies, which are not there.
fn sched_setscheduler(call: &Call<'_>, tid: u64, policy: i32, parameter: u64) -> CallResult {
    if policy < 0 || parameter == 0 || (tid as i32) < 0 {
        return Err(Errno::EINVAL);
    }
    let priority: i32 = call.read(parameter)?;
    task(call, tid)?;
    let policy = policy as u32 & !RESET_ON_FORK;
    let (least, most) = priorities(policy)?;
    if policy == SCHED_DEADLINE || !(least as i32..=most as i32).contains(&priority) {
        return Err(Errno::EINVAL);
    }
    if matches!(policy, SCHED_FIFO | SCHED_RR) { Err(Errno::EPERM) } else { Ok(0) }
}

fn sched_setparam(call: &Call<'_>, tid: u64, parameter: u64) -> CallResult {
    if parameter == 0 {
        return Err(Errno::EINVAL);
    }
    sched_setscheduler(call, tid, SCHED_OTHER as i32, parameter)
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
    let nice = task(call, tid)?.process.nice.get();
    let mut record = [0; RECORD_BYTES as usize];
    record[..4].copy_from_slice(&RECORD_BYTES.to_le_bytes());
    record[16..20].copy_from_slice(&nice.to_le_bytes());
    call.copy_out(into, &record)?;
    Ok(0)
}

/// The processes that `getpriority` speaks of. Errors: `EINVAL`, `ESRCH`.
fn chosen(call: &Call<'_>, which: u32, who: u32) -> Result<Vec<Arc<Process>>, Errno> {
    let own_group = call.process().family.get().group;
    let own_user = call.process().user_ids.get().real;
    let found: Vec<_> = match which {
        PRIO_PROCESS => task(call, who.into()).map(|task| task.process.clone()).into_iter().collect(),
        PRIO_PGRP => {
            let group = if who == 0 { own_group } else { who };
            let all = call.unix.tasks.processes();
            all.into_iter().filter(|process| process.family.get().group == group).collect()
        }
        PRIO_USER => {
            let user = if who == 0 { own_user } else { who };
            let all = call.unix.tasks.processes();
            all.into_iter().filter(|process| process.user_ids.get().real == user).collect()
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
    (nr::SCHED_GETSCHEDULER, |call, [a, ..]| task(call, a).map(|_| SCHED_OTHER.into())),
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
