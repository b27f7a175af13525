//! What a run has cost: time, switches between threads, bytes through pipes.

use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::pipe::BYTES;

/// Counters at a moment.
pub struct Moment {
    when: Instant,
    processor_ns: u64,
    switches: Option<u64>,
    bytes: u64,
}

/// What has happened since.
pub struct Spent {
    pub seconds: f64,
    pub processor_ns: u64,
    /// `None`: the system does not say.
    pub switches: Option<u64>,
    pub bytes: u64,
}

impl Moment {
    pub fn now() -> Moment {
        Moment {
            when: Instant::now(),
            processor_ns: processor_ns(),
            switches: switches(),
            bytes: BYTES.load(Ordering::Relaxed),
        }
    }

    pub fn spent(&self) -> Spent {
        let now = Moment::now();
        Spent {
            seconds: now.when.duration_since(self.when).as_secs_f64().max(1e-9),
            processor_ns: now.processor_ns - self.processor_ns,
            switches: now.switches.zip(self.switches).map(|(now, before)| now - before),
            bytes: now.bytes - self.bytes,
        }
    }
}

fn usage() -> libc::rusage {
    // SAFETY: numbers only, all of which may be zero.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the record is this function's.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    usage
}

fn processor_ns() -> u64 {
    let usage = usage();
    let nanos = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    nanos(usage.ru_utime) + nanos(usage.ru_stime)
}

/// Switches between threads: of the whole system on Synthesis, whose kernel counts them; of this process on Linux.
fn switches() -> Option<u64> {
    if let Ok(text) = std::fs::read_to_string("/proc/synthesis/gauges") {
        return text.lines().find_map(|line| line.strip_prefix("switches ")?.parse().ok());
    }
    let usage = usage();
    Some((usage.ru_nvcsw + usage.ru_nivcsw) as u64)
}

/// The system under this program.
pub fn system() -> &'static str {
    if std::path::Path::new("/proc/synthesis").exists() { "Synthesis" } else { "Linux" }
}
