//! The programs that are measured, how often they loop, and what they are held against.

use super::{BenchError, Suite};

/// Instructions on Linux divided by instructions on Synthesis: what the ratio has to be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bar {
    /// Nothing is asked.
    Open,
    AtLeast(f64),
    Between(f64, f64),
}

impl Bar {
    /// Whether `ratio` is good enough; `None` when nothing is asked.
    pub fn reached(self, ratio: f64) -> Option<bool> {
        match self {
            Self::Open => None,
            Self::AtLeast(least) => Some(ratio >= least),
            Self::Between(least, most) => Some((least..=most).contains(&ratio)),
        }
    }
}

/// One measured program, or one operation of `micro`.
#[derive(Clone, Debug)]
pub struct Program {
    /// The paper's number; operations continue after the paper's seven.
    pub number: usize,
    /// What the table calls it.
    pub title: &'static str,
    /// The executable, which is the source's file name without `.c`.
    pub executable: &'static str,
    /// The operation, when the executable is `micro`, `threads` or `wakes`.
    pub operation: Option<&'static str>,
    /// Iterations of the long run. For the paper's programs, the paper's.
    pub iterations: u32,
    /// The paper's ratio, SunOS time over Synthesis time (SOSP'89 table 1).
    pub paper_ratio: Option<f64>,
    pub bar: Bar,
}

/// One execution of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    pub executable: &'static str,
    pub arguments: Vec<String>,
    pub iterations: u32,
}

impl Program {
    /// The short and the long run whose difference is free of start-up.
    pub fn runs(&self, quick: bool) -> [Run; 2] {
        let long = if quick { 3 } else { self.iterations };
        [(long / 10).max(1), long].map(|iterations| {
            let operation = self.operation.map(str::to_string);
            let arguments = operation.into_iter().chain([iterations.to_string(), "time".to_string()]).collect();
            Run { executable: self.executable, arguments, iterations }
        })
    }

    /// What `--only` may call it.
    fn is_called(&self, name: &str) -> bool {
        name == self.number.to_string() || name == self.executable || self.operation == Some(name)
    }

    fn name(&self) -> &'static str {
        self.operation.unwrap_or(self.executable)
    }
}

/// The programs of a suite, all of them or those that `only` names.
///
/// # Errors
/// `UnknownProgram` when `only` names something else.
pub fn select(suite: Suite, only: &[String]) -> Result<Vec<Program>, BenchError> {
    let all = match suite {
        Suite::Paper => paper(),
        Suite::Micro => micro(),
        // Has a program and a table of its own.
        Suite::Sound => Vec::new(),
        // Tables have rows of their own: see `tables::catalog`, `size` and `stages`.
        Suite::Tables | Suite::Programs | Suite::Size | Suite::Start | Suite::Synthesis | Suite::Redundancy => {
            Vec::new()
        }
        Suite::Threads => threads(),
        Suite::Wakes => wakes(),
        Suite::Calls => calls(),
    };
    if let Some(asked) = only.iter().find(|name| !all.iter().any(|program| program.is_called(name))) {
        let known = all.iter().map(|program| format!("{} ({})", program.number, program.name()));
        return Err(BenchError::UnknownProgram { asked: asked.clone(), known: known.collect::<Vec<_>>().join(", ") });
    }
    Ok(all.into_iter().filter(|p| only.is_empty() || only.iter().any(|name| p.is_called(name))).collect())
}

/// SOSP'89 table 1, programs 1 to 7, and getppid, the shortest call that a program can make.
fn paper() -> Vec<Program> {
    let of = |number, title, executable, iterations, ratio, bar| Program {
        number,
        title,
        executable,
        operation: None,
        iterations,
        paper_ratio: Some(ratio),
        bar,
    };
    vec![
        of(1, "compute", "p1_compute", 5, 0.95, Bar::Between(0.97, 1.03)),
        of(2, "r/w pipe, 1 byte", "p2_pipe_1", 10_000, 56.0, Bar::AtLeast(15.0)),
        of(3, "r/w pipe, 1024", "p3_pipe_1024", 10_000, 6.2, Bar::AtLeast(5.0)),
        of(4, "r/w pipe, 4096", "p4_pipe_4096", 10_000, 3.9, Bar::AtLeast(2.4)),
        of(5, "r/w file, 1 KB", "p5_file", 1_000, 7.1, Bar::AtLeast(6.0)),
        of(6, "open null/close", "p6_open_null", 10_000, 26.0, Bar::AtLeast(10.0)),
        of(7, "open tty/close", "p7_open_tty", 10_000, 48.0, Bar::AtLeast(10.0)),
        operation(8, "getppid", "getppid", 100_000, Bar::AtLeast(10.0)),
    ]
}

/// Iterations are chosen so that the long run takes about 30 million instructions on Linux: a timer tick
/// or a piece of housekeeping in the guest then weighs well under 1 %.
fn micro() -> Vec<Program> {
    let table: [(&str, &str, u32); 24] = [
        ("getppid", "getppid", 100_000),
        ("unknown call", "unknown", 100_000),
        ("clock_gettime, vDSO", "clock_vdso", 300_000),
        ("clock_gettime, call", "clock_call", 80_000),
        ("sched_yield alone", "sched_yield", 40_000),
        ("write null, 1 byte", "write_null", 70_000),
        ("read zero, 1 byte", "read_zero", 60_000),
        ("pread memory file, 1 byte", "pread", 30_000),
        ("pwrite memory file, 1 byte", "pwrite", 20_000),
        ("stat, 2 components", "stat", 15_000),
        ("fstat", "fstat", 15_000),
        ("creat+close+unlink", "creat_unlink", 3_000),
        ("poll 1", "poll", 40_000),
        ("kill self + handler", "kill_self", 10_000),
        ("SIGSEGV + 2 mprotect", "segv", 4_000),
        ("pipe ping-pong, 2 processes", "pipe_ping_pong", 3_000),
        ("fork+wait", "fork", 250),
        ("vfork+wait", "vfork", 1_000),
        ("fork+exec+wait, static", "fork_exec", 80),
        ("mmap+touch+munmap, 4 KB", "map_touch", 1_000),
        ("anonymous page fault + free", "page_fault", 4_000),
        ("malloc+free, 64 bytes", "malloc", 200_000),
        ("putchar", "putchar", 1_000_000),
        ("putchar_unlocked", "putchar_unlocked", 2_000_000),
    ];
    let numbered = table.into_iter().enumerate();
    numbered.map(|(i, (title, name, iterations))| operation(8 + i, title, name, iterations, bar_of(name))).collect()
}

/// SOSP'89 tables 3 and 4, as far as a program can ask for it.
fn threads() -> Vec<Program> {
    let table: [(&str, &str, u32); 11] = [
        ("create, run, destroy a thread", "create", 2_000),
        ("stop and start a process", "stop_start", 2_000),
        ("step a process by one instruction", "step", 2_000),
        ("signal to another thread, and back", "signal", 2_000),
        ("sched_yield alone", "yield_alone", 40_000),
        ("2 yields, 2 threads", "yield_threads", 20_000),
        ("the same, vector registers", "yield_vector", 10_000),
        ("2 yields, 2 processes", "yield_processes", 10_000),
        ("pre-emption (full switch)", "preempt", 1_000),
        ("futex wake, nobody waits", "wake_nobody", 40_000),
        ("2 blocks and 2 unblocks, 2 threads", "block", 3_000),
    ];
    let numbered = table.into_iter().enumerate();
    numbered
        .map(|(i, (title, name, iterations))| Program {
            executable: "threads",
            ..operation(1 + i, title, name, iterations, Bar::Open)
        })
        .collect()
}

/// One waits for another: there and back.
fn wakes() -> Vec<Program> {
    let table: [(&str, &str, u32); 7] = [
        ("pipe, 2 processes", "pipe_processes", 3_000),
        ("pipe, 2 threads", "pipe_threads", 3_000),
        ("eventfd, 2 processes", "eventfd_processes", 3_000),
        ("stream socket, 2 processes", "socket_processes", 2_000),
        ("futex, 2 threads", "futex_threads", 3_000),
        ("condition variable, 2 threads", "condition_threads", 3_000),
        ("pthread_create and join", "create_join", 1_000),
    ];
    let numbered = table.into_iter().enumerate();
    numbered
        .map(|(i, (title, name, iterations))| Program {
            executable: "wakes",
            ..operation(1 + i, title, name, iterations, Bar::Open)
        })
        .collect()
}

/// The calls that programs make most and `micro` does not have (`strace -c` over shells, compilers, interpreters,
/// servers).
fn calls() -> Vec<Program> {
    let table: [(&str, &str, u32); 36] = [
        ("open+close a file", "open_close", 5_000),
        ("open a name that is not there", "open_missing", 10_000),
        ("access", "access", 10_000),
        ("statx", "statx", 10_000),
        ("readlink", "readlink", 10_000),
        ("lseek", "lseek", 50_000),
        ("lseek+getdents64, 4 entries", "getdents", 5_000),
        ("getcwd", "getcwd", 20_000),
        ("fcntl F_GETFL", "fcntl", 50_000),
        ("dup+close", "dup_close", 20_000),
        ("pipe+2 close", "pipe_close", 3_000),
        ("ioctl FIONREAD of a pipe", "ioctl", 30_000),
        ("writev null, 2 parts", "writev", 20_000),
        ("pread /proc/self/stat", "read_proc", 2_000),
        ("mmap+munmap, untouched", "map", 5_000),
        ("mmap+munmap of a file", "map_file", 5_000),
        ("2 mprotect of a touched page", "mprotect", 5_000),
        ("2 brk, up and down", "brk", 5_000),
        ("rt_sigaction", "sigaction", 40_000),
        ("2 rt_sigprocmask", "sigprocmask", 20_000),
        ("futex wake, nobody waits", "futex_wake", 40_000),
        ("futex wait, another value", "futex_again", 40_000),
        ("clock_nanosleep of nothing", "nanosleep", 5_000),
        ("select of 1", "select", 20_000),
        ("epoll_wait, 1 ready", "epoll_wait", 20_000),
        ("epoll_ctl, modify", "epoll_ctl", 20_000),
        ("eventfd, write and read", "eventfd", 15_000),
        ("stream socket, write and read", "socket_stream", 5_000),
        ("datagram socket, send and recv", "socket_send", 5_000),
        ("wait4, no child", "wait_nobody", 40_000),
        ("getrusage", "getrusage", 15_000),
        ("prlimit64", "prlimit", 30_000),
        ("setitimer", "setitimer", 10_000),
        ("uname", "uname", 20_000),
        ("getrandom, 16 bytes", "getrandom", 10_000),
        ("tgkill to self, ignored", "thread_kill", 20_000),
    ];
    let numbered = table.into_iter().enumerate();
    numbered.map(|(i, (title, name, iterations))| operation(1 + i, title, name, iterations, Bar::Open)).collect()
}

fn bar_of(name: &str) -> Bar {
    if name == "getppid" { Bar::AtLeast(10.0) } else { Bar::Open }
}

fn operation(number: usize, title: &'static str, name: &'static str, iterations: u32, bar: Bar) -> Program {
    Program { number, title, executable: "micro", operation: Some(name), iterations, paper_ratio: None, bar }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_selects_by_number_name_and_operation() {
        let only = ["2", "p7_open_tty", "getppid"].map(String::from);
        let numbers: Vec<usize> = select(Suite::Paper, &only).unwrap().iter().map(|p| p.number).collect();
        assert_eq!(numbers, [2, 7, 8]);
    }

    #[test]
    fn only_refuses_what_the_suite_does_not_have() {
        assert!(matches!(select(Suite::Paper, &["9".into()]), Err(BenchError::UnknownProgram { .. })));
    }

    #[test]
    fn the_short_run_differs_from_the_long_one() {
        for program in paper().into_iter().chain(micro()).chain(threads()).chain(calls()) {
            for quick in [false, true] {
                let [short, long] = program.runs(quick);
                assert!(short.iterations >= 1 && short.iterations < long.iterations, "{}", program.title);
            }
        }
    }

    #[test]
    fn a_bar_is_a_least_ratio_or_a_range() {
        assert_eq!(Bar::AtLeast(15.0).reached(14.9), Some(false));
        assert_eq!(Bar::Between(0.97, 1.03).reached(1.0), Some(true));
        assert_eq!(Bar::Between(0.97, 1.03).reached(1.04), Some(false));
        assert_eq!(Bar::Open.reached(1.0), None);
    }
}
