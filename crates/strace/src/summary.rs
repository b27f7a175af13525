//! What `--strace` says at the end: each call, how often, how often in vain.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// What is counted of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Times called.
    pub calls: u64,
    /// Times an error was returned.
    pub errors: u64,
    /// Nanoseconds between entry and return, all calls together.
    pub elapsed_ns: u64,
}

/// Counts of all calls of a run.
///
/// A program may ask for any number: those without a call share one count, so that it stays small.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// By number, in no order; numbers without a call are kept under `abi::nr::COUNT`.
    counts: Vec<(u64, Count)>,
    /// Calls that returned `ENOSYS`.
    unimplemented: u64,
}

impl Summary {
    /// Nothing counted yet.
    pub const fn new() -> Self {
        Self { counts: Vec::new(), unimplemented: 0 }
    }

    /// Counts one call that returned `result` after `elapsed_ns` nanoseconds; `None` for a call that never returns.
    pub fn count(&mut self, nr: u64, result: Option<i64>, elapsed_ns: u64) {
        let key = if abi::nr::name(nr).is_some() { nr } else { abi::nr::COUNT as u64 };
        let place = self.counts.iter().position(|(nr, _)| *nr == key).unwrap_or_else(|| {
            self.counts.push((key, Count::default()));
            self.counts.len() - 1
        });
        let count = &mut self.counts[place].1;
        count.calls += 1;
        count.elapsed_ns = count.elapsed_ns.saturating_add(elapsed_ns);
        if let Some(error @ -4095..=-1) = result {
            count.errors += 1;
            self.unimplemented += u64::from(error == -i64::from(abi::Errno::ENOSYS as u16));
        }
    }

    /// What was counted of call `nr`.
    pub fn of(&self, nr: u64) -> Count {
        self.counts.iter().find(|(counted, _)| *counted == nr).map_or_else(Count::default, |(_, count)| *count)
    }

    /// Calls that were answered with `ENOSYS`.
    pub fn unimplemented(&self) -> u64 {
        self.unimplemented
    }

    /// All calls together.
    pub fn total(&self) -> Count {
        self.counts.iter().fold(Count::default(), |sum, (_, count)| Count {
            calls: sum.calls + count.calls,
            errors: sum.errors + count.errors,
            elapsed_ns: sum.elapsed_ns.saturating_add(count.elapsed_ns),
        })
    }

    /// The table, in the form of `strace -c`: the longest first, then the most frequent.
    pub fn table(&self) -> String {
        const RULE: &str = "------ ----------- ----------- --------- --------- ----------------\n";
        let total = self.total();
        let order = |(nr, count): &(u64, Count)| (Reverse((count.elapsed_ns, count.calls)), *nr);
        // There are few rows: no sorting algorithm is worth its code.
        let mut rows: Vec<(u64, Count)> = Vec::new();
        for row in &self.counts {
            rows.insert(rows.partition_point(|other| order(other) < order(row)), *row);
        }
        let mut table = String::from("% time     seconds  usecs/call     calls    errors syscall\n");
        table.push_str(RULE);
        for (nr, count) in rows {
            table.push_str(&row(count, total.elapsed_ns, abi::nr::name(nr).unwrap_or("(no such call)")));
        }
        table.push_str(RULE);
        table.push_str(&row(total, total.elapsed_ns, "total"));
        if self.unimplemented > 0 {
            table.push_str(&format!("{} calls answered with ENOSYS\n", self.unimplemented));
        }
        table
    }
}

/// One line: share of the time in hundredths of a percent, seconds, microseconds per call.
fn row(count: Count, total_ns: u64, name: &str) -> String {
    let share = (u128::from(count.elapsed_ns) * 10_000).checked_div(u128::from(total_ns)).unwrap_or(0) as u64;
    let microseconds = count.elapsed_ns / 1000;
    let errors = if count.errors == 0 { String::new() } else { format!("{}", count.errors) };
    format!(
        "{:>3}.{:02} {:>4}.{:06} {:>11} {:>9} {errors:>9} {name}\n",
        share / 100,
        share % 100,
        microseconds / 1_000_000,
        microseconds % 1_000_000,
        microseconds.checked_div(count.calls).unwrap_or(0),
        count.calls,
    )
}
