//! `prctl`.

use core::sync::atomic::Ordering;

use abi::Errno;
use abi::process::{
    PR_CAP_AMBIENT, PR_CAPBSET_DROP, PR_CAPBSET_READ, PR_GET_CHILD_SUBREAPER, PR_GET_DUMPABLE, PR_GET_KEEPCAPS,
    PR_GET_NAME, PR_GET_NO_NEW_PRIVS, PR_GET_PDEATHSIG, PR_GET_SECCOMP, PR_GET_SECUREBITS, PR_GET_THP_DISABLE,
    PR_GET_TID_ADDRESS, PR_GET_TIMERSLACK, PR_GET_TIMING, PR_GET_TSC, PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE,
    PR_SET_KEEPCAPS, PR_SET_NAME, PR_SET_NO_NEW_PRIVS, PR_SET_PDEATHSIG, PR_SET_PTRACER, PR_SET_SECUREBITS,
    PR_SET_THP_DISABLE, PR_SET_TIMERSLACK, PR_SET_TIMING, PR_SET_VMA, SECBIT_KEEP_CAPS,
};
use abi::signal::SIGRTMAX;

use super::{capabilities, user_calls};
use crate::call::{Call, CallResult};

/// Bytes of a thread's name with its NUL.
const NAME_BYTES: usize = 16;
const TIMER_SLACK_NS: u64 = 50_000;

/// Errors: `EINVAL` for unknown operations and values, `EFAULT`, `EPERM`.
pub fn prctl(call: &Call<'_>, [operation, value, third, fourth, fifth]: [u64; 5]) -> CallResult {
    let rest = [third, fourth, fifth];
    match operation as u32 {
        PR_SET_NAME => set_name(call, value),
        PR_GET_NAME => call.copy_out(value, &call.task.name.get()).map(|()| 0),
        PR_GET_TID_ADDRESS => call.write(value, &call.task.clear_child_tid.load(Ordering::Relaxed)).map(|()| 0),
        PR_CAPBSET_READ => capabilities::is_bounding(call, value),
        PR_CAPBSET_DROP => capabilities::drop_bounding(call, value),
        PR_CAP_AMBIENT => capabilities::ambient(call, value, rest),
        PR_SET_KEEPCAPS => capabilities::keep(call, value),
        PR_SET_SECUREBITS => capabilities::set_secure_bits(call, value),
        PR_GET_TIMING | PR_GET_SECCOMP => Ok(0),
        PR_SET_TIMING if value == 0 => Ok(0),
        PR_GET_TSC => call.write(value, &1u32).map(|()| 0),
        PR_SET_PTRACER => Ok(0),
        // Names of anonymous areas, for /proc only: there is nothing to keep, as in a kernel built without them.
        PR_SET_VMA => Err(Errno::EINVAL),
        vdso::PR_SYNTHESIS_USER_CALL => user_calls::ask(call, value),
        operation => get(call, operation, value, rest).unwrap_or_else(|| change(call, operation, value, rest)),
    }
}

fn set_name(call: &Call<'_>, address: u64) -> CallResult {
    // The kernel takes as much of the string as fits.
    let mut name = [0; NAME_BYTES];
    for (index, place) in name[..NAME_BYTES - 1].iter_mut().enumerate() {
        let mut byte = [0];
        call.copy_in(address.wrapping_add(index as u64), &mut byte)?;
        if byte[0] == 0 {
            break;
        }
        *place = byte[0];
    }
    call.task.name.set(name);
    Ok(0)
}

/// The operations that give a setting.
fn get(call: &Call<'_>, operation: u32, value: u64, rest: [u64; 3]) -> Option<CallResult> {
    let settings = call.process().settings.get();
    let no_arguments = value == 0 && rest == [0; 3];
    Some(match operation {
        PR_GET_PDEATHSIG => call.write(value, &settings.parent_death_signal).map(|()| 0),
        PR_GET_CHILD_SUBREAPER => call.write(value, &u32::from(settings.is_subreaper)).map(|()| 0),
        PR_GET_DUMPABLE => Ok(settings.dumpable.into()),
        PR_GET_KEEPCAPS => Ok((settings.secure_bits & SECBIT_KEEP_CAPS != 0).into()),
        PR_GET_SECUREBITS => Ok(settings.secure_bits.into()),
        PR_GET_TIMERSLACK => Ok(settings.timer_slack_ns),
        PR_GET_NO_NEW_PRIVS if no_arguments => Ok(settings.no_new_privileges.into()),
        PR_GET_THP_DISABLE if no_arguments => Ok(settings.no_huge_pages.into()),
        _ => return None,
    })
}

/// The operations that change one.
fn change(call: &Call<'_>, operation: u32, value: u64, rest: [u64; 3]) -> CallResult {
    let mut settings = call.process().settings.borrow_mut();
    match operation {
        PR_SET_PDEATHSIG if value <= u64::from(SIGRTMAX) => settings.parent_death_signal = value as u32,
        PR_SET_DUMPABLE if value <= 1 => settings.dumpable = value as u32,
        PR_SET_CHILD_SUBREAPER => settings.is_subreaper = value != 0,
        PR_SET_TIMERSLACK => settings.timer_slack_ns = if value as i64 <= 0 { TIMER_SLACK_NS } else { value },
        PR_SET_NO_NEW_PRIVS if value == 1 && rest == [0; 3] => settings.no_new_privileges = true,
        PR_SET_THP_DISABLE if rest == [0; 3] => settings.no_huge_pages = value != 0,
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}
