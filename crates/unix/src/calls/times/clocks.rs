//! Asking and setting the time.

use alloc::sync::Arc;

use abi::Errno;
use abi::process::{CAP_SYS_TIME, RUSAGE_CHILDREN, RUSAGE_SELF, RUSAGE_THREAD, Rusage};
use abi::time::{
    CLOCK_MONOTONIC_COARSE, CLOCK_REALTIME, CLOCK_REALTIME_COARSE, Timespec, Timeval, Timezone, Tms, USER_HZ,
};
use machine::Nanos;

use super::clock::{Clock, process_time};
use super::{nanos_of, nanos_of_timeval, timespec_of, timeval_of, wall_nanos};
use crate::call::{Call, CallResult};
use crate::emulator::Unix;
use crate::task::process::Usage;
use crate::task::thread::Task;

/// What the coarse clocks promise; ours are as fine as the others.
const COARSE_NS: i64 = 4_000_000;

/// What comes after the last time of day that can be set: 30 years must be left (Linux's `TIME_SETTOD_SEC_MAX`).
const SETTABLE_END: Nanos = Nanos((i64::MAX as u64 / Nanos::PER_SECOND - 30 * 365 * 24 * 3600) * Nanos::PER_SECOND);

pub fn clock_gettime(call: &Call<'_>, id: i32, into: u64) -> CallResult {
    let now = Clock::named(call, id)?.read(call.unix);
    call.write(into, &timespec_of(now))?;
    Ok(0)
}

pub fn clock_getres(call: &Call<'_>, id: i32, into: u64) -> CallResult {
    Clock::named(call, id)?;
    let coarse = id == CLOCK_REALTIME_COARSE as i32 || id == CLOCK_MONOTONIC_COARSE as i32;
    call.write_if(into, &Timespec { tv_sec: 0, tv_nsec: if coarse { COARSE_NS } else { 1 } })?;
    Ok(0)
}

/// Errors: `EINVAL` for a clock that cannot be set, `EPERM` for processor clocks and for want of privilege.
pub fn clock_settime(call: &Call<'_>, id: i32, from: u64) -> CallResult {
    let processor = id < 0;
    if id != CLOCK_REALTIME as i32 && !processor {
        return Err(Errno::EINVAL);
    }
    let time: Timespec = call.read(from)?;
    if processor {
        Clock::named(call, id)?;
        return Err(Errno::EPERM);
    }
    set_wall_time(call, nanos_of(time)?)
}

pub fn gettimeofday(call: &Call<'_>, time: u64, zone: u64) -> CallResult {
    if time != 0 {
        call.write(time, &timeval_of(wall_nanos(call.now())))?;
    }
    call.write_if(zone, &Timezone { tz_minuteswest: 0, tz_dsttime: 0 })?;
    Ok(0)
}

/// The time zone is checked and forgotten.
pub fn settimeofday(call: &Call<'_>, time: u64, zone: u64) -> CallResult {
    let time = if time == 0 { None } else { Some(nanos_of_timeval(call.read::<Timeval>(time)?)?) };
    if zone != 0 {
        let zone: Timezone = call.read(zone)?;
        if !(-15 * 60..=15 * 60).contains(&zone.tz_minuteswest) {
            return Err(Errno::EINVAL);
        }
    }
    match time {
        Some(time) => set_wall_time(call, time),
        None => call.require(CAP_SYS_TIME).map(|()| 0),
    }
}

/// Sets the time of day, in the kernel and in the programs' time page.
///
/// Errors: `EPERM`; `EINVAL` for a time too far ahead, and for one before boot (then the monotonic clock would be ahead).
fn set_wall_time(call: &Call<'_>, time: Nanos) -> CallResult {
    call.require(CAP_SYS_TIME)?;
    let now = call.unix.machine.now();
    let epoch = time.0.checked_sub(now.0).ok_or(Errno::EINVAL)?;
    if time >= SETTABLE_END {
        return Err(Errno::EINVAL);
    }
    call.unix.epoch.set(Nanos(epoch));
    call.unix.names.note_clock(call.unix.wall_time());
    call.unix.clock_sets.set(call.unix.clock_sets.get() + 1);
    call.unix.scheduler.wake(&call.unix.clock_set);
    if let Some([page, _]) = &*call.unix.vdso_pages.borrow() {
        let word = |offset: usize| {
            let mut bytes = [0; 8];
            page.read(offset, &mut bytes);
            u64::from_le_bytes(bytes)
        };
        let old = vdso::TimePage {
            seq: word(0) as u32,
            features: (word(0) >> 32) as u32,
            tsc_base: word(core::mem::offset_of!(vdso::TimePage, tsc_base)),
            mult: word(core::mem::offset_of!(vdso::TimePage, mult)),
            mono_base_ns: word(core::mem::offset_of!(vdso::TimePage, mono_base_ns)),
            realtime_offset_ns: epoch,
        };
        old.publish(|offset, value| page.write(offset, &value.to_le_bytes()));
    }
    Ok(0)
}

/// `adjtimex` reads only: modes that change something are `EPERM`, as without CAP_SYS_TIME.
pub fn adjtimex(call: &Call<'_>, record: u64) -> CallResult {
    const TIME_ERROR: u64 = 5;
    const STATUS_UNSYNCHRONIZED: i32 = 0x40;
    const RECORD_BYTES: usize = 208;
    let modes: u32 = call.read(record)?;
    if modes != 0 {
        return Err(Errno::EPERM);
    }
    let mut bytes = [0; RECORD_BYTES];
    let now = timeval_of(wall_nanos(call.now()));
    bytes[40..44].copy_from_slice(&STATUS_UNSYNCHRONIZED.to_le_bytes());
    bytes[24..32].copy_from_slice(&16_000_000i64.to_le_bytes()); // maxerror
    bytes[32..40].copy_from_slice(&16_000_000i64.to_le_bytes()); // esterror
    bytes[48..56].copy_from_slice(&2i64.to_le_bytes()); // constant
    bytes[56..64].copy_from_slice(&1i64.to_le_bytes()); // precision
    bytes[64..72].copy_from_slice(&(500i64 << 16).to_le_bytes()); // tolerance
    bytes[72..80].copy_from_slice(&now.tv_sec.to_le_bytes());
    bytes[80..88].copy_from_slice(&now.tv_usec.to_le_bytes());
    bytes[88..96].copy_from_slice(&10_000i64.to_le_bytes()); // tick
    call.copy_out(record, &bytes)?;
    Ok(TIME_ERROR)
}

/// Errors: `EOPNOTSUPP` for other clocks than the time of day.
pub fn clock_adjtime(call: &Call<'_>, id: i32, record: u64) -> CallResult {
    if id == CLOCK_REALTIME as i32 {
        return adjtimex(call, record);
    }
    Clock::named(call, id)?;
    Err(Errno::ENOTSUP)
}

pub fn time(call: &Call<'_>, into: u64) -> CallResult {
    let seconds = call.now().seconds;
    call.write_if(into, &seconds)?;
    Ok(seconds as u64)
}

fn ticks(time: Nanos) -> i64 {
    (time.0 / (Nanos::PER_SECOND / USER_HZ)) as i64
}

/// All processor time counts as the program's own: the kernel does not keep its part apart.
pub fn times(call: &Call<'_>, into: u64) -> CallResult {
    let own = process_time(call.unix, call.process());
    let children = call.process().children_usage.get().user;
    call.write_if(into, &Tms { tms_utime: ticks(own), tms_stime: 0, tms_cutime: ticks(children), tms_cstime: 0 })?;
    Ok(ticks(call.unix.machine.now()) as u64)
}

/// Error: `EINVAL` for an unknown `who`.
pub fn getrusage(call: &Call<'_>, who: i32, into: u64) -> CallResult {
    let process = call.process();
    let usage = match who {
        RUSAGE_SELF => Usage { user: process_time(call.unix, process), ..own_usage(call) },
        RUSAGE_THREAD => Usage { user: call.unix.scheduler.ran(&call.task.thread), ..own_usage(call) },
        RUSAGE_CHILDREN => process.children_usage.get(),
        _ => return Err(Errno::EINVAL),
    };
    call.write(
        into,
        &Rusage {
            ru_utime: timeval_of(usage.user),
            ru_maxrss: (usage.peak_pages * 4) as i64,
            ru_minflt: usage.minor_faults as i64,
            ..Rusage::zeroed()
        },
    )?;
    Ok(0)
}

fn own_usage(call: &Call<'_>) -> Usage {
    let usage = call.process().usage.get();
    let peak = call.process().space().map_or(0, |space| space.borrow().resident_peak_bytes() / 4096);
    Usage { peak_pages: usage.peak_pages.max(peak), ..usage }
}

/// The running thread ends: its time goes to its process.
pub fn account_end(unix: &Unix, task: &Arc<Task>) {
    unix.scheduler.account_current();
    let ran = task.thread.ran();
    let mut usage = task.process.usage.borrow_mut();
    usage.user = usage.user.saturating_add(ran);
}
