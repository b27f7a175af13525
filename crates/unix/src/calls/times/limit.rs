//! The limit on a process's processor time (`RLIMIT_CPU`): a signal each second from the soft limit on, the end at the hard one.

use alloc::boxed::Box;
use alloc::sync::Arc;

use abi::process::{RLIM_INFINITY, RLIMIT_CPU};
use abi::siginfo::SigInfo;
use abi::signal::{SIGKILL, SIGXCPU};
use machine::{Nanos, NoMemory};

use super::clock::Clock;
use super::timer::{After, Timer};
use crate::calls::signals::send::send_to_process;
use crate::emulator::Unix;
use crate::task::process::Process;

const SECOND: Nanos = Nanos(Nanos::PER_SECOND);

/// Has the limit that the process has now watched.
///
/// # Errors
/// No memory for a timer.
pub fn watch(unix: &'static Unix, process: &Arc<Process>) -> Result<(), NoMemory> {
    let (soft, _) = process.limits.borrow().0[RLIMIT_CPU as usize];
    if soft == RLIM_INFINITY {
        let timer = process.timers.limit.borrow_mut().take();
        timer.iter().for_each(|timer| timer.stop());
        return Ok(());
    }
    let known = process.timers.limit.borrow().clone();
    let timer = known.map_or_else(|| make(unix, process), Ok)?;
    *process.timers.limit.borrow_mut() = Some(timer.clone());
    // At no time is the timer off.
    timer.set(Nanos(soft.saturating_mul(SECOND.0).max(1)), SECOND, true);
    Ok(())
}

fn make(unix: &'static Unix, process: &Arc<Process>) -> Result<Arc<Timer>, NoMemory> {
    let process = Arc::downgrade(process);
    let clock = Clock::Process(process.clone());
    let expired = move |seconds| {
        if let Some(process) = process.upgrade() {
            pass(unix, &process, seconds);
        }
    };
    Timer::new(unix, clock, After::Again, Box::new(expired))
}

/// The soft limit has been reached. It moves on by what has passed, as Linux's does, which programs can see.
fn pass(unix: &'static Unix, process: &Arc<Process>, seconds: u64) {
    let (soft, hard) = process.limits.borrow().0[RLIMIT_CPU as usize];
    let reached = soft.saturating_add(seconds - 1);
    if reached >= hard {
        send_to_process(unix, process, &SigInfo::kernel(SIGKILL));
        return;
    }
    process.limits.borrow_mut().0[RLIMIT_CPU as usize].0 = reached + 1;
    send_to_process(unix, process, &SigInfo::kernel(SIGXCPU));
}
