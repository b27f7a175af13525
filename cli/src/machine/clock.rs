//! The rate of the time-stamp counter, known here so that the kernel need not spend its boot on it.
//!
//! A run leaves an anchor: a moment, what the counter was then, and the rate. The next run divides what has gone by since. That
//! takes no time and is more exact than any short measurement; where the two rates disagree (the host was started anew, slept
//! or moved) it measures again.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Long enough for an error of about ten parts in a million: both ends are known to some 20 ns.
const MEASURE: Duration = Duration::from_millis(4);
/// Where the measurement begins.
static START: OnceLock<Pair> = OnceLock::new();
/// Under `-icount shift=0` the counter advances by one a nanosecond of virtual time.
const ICOUNT_HZ: u64 = 1_000_000_000;
/// An anchor's rate and the one found by it differ by less than one part in so many: the host's clock is steered.
const AGREEMENT: u64 = 10_000;

/// Counter and monotonic clock at one moment.
#[derive(Clone, Copy, Debug)]
struct Pair {
    ticks: u64,
    nanos: u64,
}

/// What a run leaves for the next one.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    at: Pair,
    hertz: u64,
}

impl Anchor {
    fn read(path: &Path) -> Option<Anchor> {
        let mine = fs::symlink_metadata(path).ok()?.uid() == rustix::process::getuid().as_raw();
        let text = fs::read_to_string(path).ok().filter(|_| mine)?;
        let mut words = text.split_whitespace().map(str::parse);
        let mut word = || words.next()?.ok();
        Some(Anchor { at: Pair { ticks: word()?, nanos: word()? }, hertz: word()? })
    }

    fn write(&self, path: &Path) -> std::io::Result<()> {
        let fresh = path.with_extension(std::process::id().to_string());
        fs::write(&fresh, format!("{} {} {}\n", self.at.ticks, self.at.nanos, self.hertz))?;
        fs::rename(&fresh, path)
    }

    /// The rate between the anchor and `now`; `None` if the anchor is of another life of the host, or too near.
    fn hertz_until(&self, now: Pair) -> Option<u64> {
        let hertz = rate(self.at, now)?;
        (hertz.abs_diff(self.hertz) <= self.hertz / AGREEMENT).then_some(hertz)
    }
}

/// Ticks a second between two moments at least [`MEASURE`] apart.
fn rate(start: Pair, end: Pair) -> Option<u64> {
    let nanos = end.nanos.checked_sub(start.nanos).filter(|nanos| u128::from(*nanos) >= MEASURE.as_nanos())?;
    let ticks = end.ticks.checked_sub(start.ticks)?;
    u64::try_from(u128::from(ticks) * 1_000_000_000 / u128::from(nanos)).ok()
}

/// Ticks a second of the guest's time-stamp counter. Both accelerators pass the host's counter through, so the
/// host's rate is the guest's; 0 where that cannot be measured, and the kernel calibrates.
pub fn tsc_hz(icount: bool) -> u64 {
    if icount { ICOUNT_HZ } else { host_tsc_hz().unwrap_or(0) }
}

/// Begins to measure, so that what the tool does until it needs the rate counts as waiting.
pub fn begin() {
    START.get_or_init(pair);
}

fn host_tsc_hz() -> Option<u64> {
    let path = crate::see::own_folder().ok().map(|folder| folder.join("counter"));
    let anchor = path.as_deref().and_then(Anchor::read);
    let start = *START.get_or_init(pair);
    if let Some(hertz) = anchor.and_then(|anchor| anchor.hertz_until(start)) {
        return Some(hertz);
    }
    let begun = Duration::from_nanos(start.nanos);
    std::thread::sleep(MEASURE.saturating_sub(Duration::from_nanos(pair().nanos).saturating_sub(begun)));
    let hertz = rate(start, pair())?;
    if let Some(path) = path {
        // Without an anchor the next run measures, too.
        let _ = Anchor { at: start, hertz }.write(&path);
    }
    Some(hertz)
}

/// The counter and the clock, read as close together as three tries allow.
#[cfg(target_arch = "x86_64")]
fn pair() -> Pair {
    // SAFETY: RDTSC exists on every x86-64 processor and touches no memory.
    let ticks = || unsafe { core::arch::x86_64::_rdtsc() };
    let nanos = || {
        let now = clock_gettime(ClockId::Monotonic);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    };
    let tries = [(); 3].map(|()| {
        let (before, nanos, after) = (ticks(), nanos(), ticks());
        let gap = after.wrapping_sub(before);
        (gap, Pair { ticks: before + gap / 2, nanos })
    });
    tries.into_iter().min_by_key(|(gap, _)| *gap).map_or(Pair { ticks: 0, nanos: 0 }, |(_, pair)| pair)
}

/// No counter that is known here: no time ever goes by, so the kernel calibrates.
#[cfg(not(target_arch = "x86_64"))]
fn pair() -> Pair {
    Pair { ticks: 0, nanos: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERTZ: u64 = 3_000_000_000;

    fn anchor() -> Anchor {
        Anchor { at: Pair { ticks: 5_000, nanos: 1_000_000_000 }, hertz: HERTZ }
    }

    #[test]
    fn an_anchor_tells_the_rate_of_a_long_time() {
        let hour = Pair { ticks: 5_000 + 3600 * (HERTZ + 1_000), nanos: 3_601_000_000_000 };
        assert_eq!(anchor().hertz_until(hour), Some(HERTZ + 1_000));
    }

    #[test]
    fn an_anchor_of_another_life_of_the_host_is_refused() {
        let started_anew = Pair { ticks: 1_000, nanos: 2_000_000_000 };
        let slept = Pair { ticks: 5_000 + 60 * HERTZ, nanos: 2_000_000_000 };
        let just_now = Pair { ticks: 5_000 + 3_000, nanos: 1_000_001_000 };
        for now in [started_anew, slept, just_now] {
            assert_eq!(anchor().hertz_until(now), None, "{now:?}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let path = std::env::temp_dir().join(format!("synth-tests-anchor-{}", std::process::id()));
        anchor().write(&path).expect("a writable folder for temporary files");
        let read = Anchor::read(&path).map(|anchor| (anchor.at.ticks, anchor.at.nanos, anchor.hertz));
        let _ = fs::remove_file(&path);
        assert_eq!(read, Some((5_000, 1_000_000_000, HERTZ)));
    }
}
