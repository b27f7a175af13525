//! `capget`, `capset`, and what `prctl` does with capabilities. They are the process's, as its users are: a thread that
//! changes them changes them for all.

use alloc::sync::Arc;

use abi::Errno;
use abi::process::{
    CAP_LAST_CAP, CAP_SETPCAP, CapData, CapHeader, LINUX_CAPABILITY_VERSION_1, LINUX_CAPABILITY_VERSION_2,
    LINUX_CAPABILITY_VERSION_3, PR_CAP_AMBIENT_CLEAR_ALL, PR_CAP_AMBIENT_IS_SET, PR_CAP_AMBIENT_LOWER,
    PR_CAP_AMBIENT_RAISE, SECBIT_KEEP_CAPS, SECBIT_KEEP_CAPS_LOCKED,
};
use kernel::file::Capabilities;

use crate::call::{Call, CallResult};
use crate::task::capabilities::{CapabilitySets, may_follow};
use crate::task::process::Process;

/// Records that follow the header. A version that is not known is replaced by the one to use: `None`.
fn records(call: &Call<'_>, header: u64, given: CapHeader) -> Result<Option<usize>, Errno> {
    match given.version {
        LINUX_CAPABILITY_VERSION_1 => Ok(Some(1)),
        LINUX_CAPABILITY_VERSION_2 | LINUX_CAPABILITY_VERSION_3 => Ok(Some(2)),
        _ => {
            call.write(header, &CapHeader { version: LINUX_CAPABILITY_VERSION_3, ..given })?;
            Ok(None)
        }
    }
}

/// Errors: `EINVAL` for another version, unless it is only asked for, and for a negative number; `ESRCH`, `EFAULT`.
pub fn capget(call: &Call<'_>, header: u64, data: u64) -> CallResult {
    let given = call.read::<CapHeader>(header)?;
    let count = records(call, header, given)?;
    if data == 0 {
        return Ok(0);
    }
    let count = count.ok_or(Errno::EINVAL)?;
    if given.pid < 0 {
        return Err(Errno::EINVAL);
    }
    let sets = of(call, given.pid as u32)?.capabilities();
    let [effective, permitted, inheritable] =
        [sets.effective, sets.permitted, sets.inheritable].map(Capabilities::bits);
    for index in 0..count {
        let word = |bits: u64| (bits >> (32 * index)) as u32;
        let record = CapData { effective: word(effective), permitted: word(permitted), inheritable: word(inheritable) };
        call.write(data.wrapping_add((index * CapData::BYTES) as u64), &record)?;
    }
    Ok(0)
}

fn of(call: &Call<'_>, pid: u32) -> Result<Arc<Process>, Errno> {
    match pid {
        0 => Ok(call.process().clone()),
        pid => Ok(call.unix.tasks.task(pid).ok_or(Errno::ESRCH)?.process.clone()),
    }
}

/// Errors: `EINVAL` for another version; `EPERM` for another process, and for more than the caller has; `EFAULT`.
pub fn capset(call: &Call<'_>, header: u64, data: u64) -> CallResult {
    let given = call.read::<CapHeader>(header)?;
    let count = records(call, header, given)?.ok_or(Errno::EINVAL)?;
    if given.pid != 0 && given.pid as u32 != call.task.tid {
        return Err(Errno::EPERM);
    }
    let mut wanted = [0; 3];
    for index in 0..count {
        let record = call.read::<CapData>(data.wrapping_add((index * CapData::BYTES) as u64))?;
        for (set, word) in wanted.iter_mut().zip([record.effective, record.permitted, record.inheritable]) {
            *set |= u64::from(word) << (32 * index);
        }
    }
    let [effective, permitted, inheritable] = wanted.map(Capabilities::from_bits);
    let wanted = CapabilitySets { effective, permitted, inheritable, ..CapabilitySets::default() };
    let process = call.process();
    process.hold(process.capabilities().set(wanted, call.can(CAP_SETPCAP))?);
    Ok(0)
}

fn known(capability: u64) -> Result<u32, Errno> {
    if capability <= CAP_LAST_CAP.into() { Ok(capability as u32) } else { Err(Errno::EINVAL) }
}

/// Error: `EINVAL`.
pub fn is_bounding(call: &Call<'_>, capability: u64) -> CallResult {
    let capability = known(capability)?;
    Ok(call.process().capabilities().bounding.has(capability).into())
}

/// Errors: `EPERM`, `EINVAL`.
pub fn drop_bounding(call: &Call<'_>, capability: u64) -> CallResult {
    call.require(CAP_SETPCAP)?;
    let capability = known(capability)?;
    let sets = call.process().capabilities();
    call.process().hold(CapabilitySets { bounding: sets.bounding.without(capability), ..sets });
    Ok(0)
}

/// Errors: `EINVAL`; `EPERM` for a capability that is not both permitted and inheritable.
pub fn ambient(call: &Call<'_>, operation: u64, [capability, fourth, fifth]: [u64; 3]) -> CallResult {
    let process = call.process();
    let sets = process.capabilities();
    if operation == PR_CAP_AMBIENT_CLEAR_ALL {
        if [capability, fourth, fifth] != [0; 3] {
            return Err(Errno::EINVAL);
        }
        process.hold(CapabilitySets { ambient: Capabilities::NONE, ..sets });
        return Ok(0);
    }
    let capability = known(capability)?;
    if [fourth, fifth] != [0; 2] {
        return Err(Errno::EINVAL);
    }
    match operation {
        PR_CAP_AMBIENT_IS_SET => return Ok(sets.ambient.has(capability).into()),
        PR_CAP_AMBIENT_RAISE => process.hold(sets.raise_ambient(capability, process.settings.get().secure_bits)?),
        PR_CAP_AMBIENT_LOWER => {
            process.hold(CapabilitySets { ambient: sets.ambient.without(capability), ..sets });
        }
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

/// Whether the next change to a user that is not root keeps the permitted set. Errors: `EINVAL`, `EPERM` when it is locked.
pub fn keep(call: &Call<'_>, keep: u64) -> CallResult {
    let mut settings = call.process().settings.borrow_mut();
    if keep > 1 {
        return Err(Errno::EINVAL);
    }
    if settings.secure_bits & SECBIT_KEEP_CAPS_LOCKED != 0 {
        return Err(Errno::EPERM);
    }
    settings.secure_bits = settings.secure_bits & !SECBIT_KEEP_CAPS | if keep == 1 { SECBIT_KEEP_CAPS } else { 0 };
    Ok(0)
}

/// Error: `EPERM`, also for bits that are unknown.
pub fn set_secure_bits(call: &Call<'_>, bits: u64) -> CallResult {
    let old = call.process().settings.get().secure_bits;
    let new = u32::try_from(bits).map_err(|_| Errno::EPERM)?;
    if !may_follow(old, new) {
        return Err(Errno::EPERM);
    }
    call.require(CAP_SETPCAP)?;
    call.process().settings.borrow_mut().secure_bits = new;
    Ok(0)
}
