//! What `prctl` keeps for a process.

/// Small settings of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The signal the process gets when its parent ends; 0: none. Not inherited.
    pub parent_death_signal: u32,
    pub dumpable: u32,
    /// `execve` grants nothing: set-user and set-group bits do not count. Never taken back.
    pub no_new_privileges: bool,
    /// Orphans below this process become its children. Not inherited.
    pub is_subreaper: bool,
    /// `PR_SET_SECUREBITS`, and `PR_SET_KEEPCAPS`, which is one of them.
    pub secure_bits: u32,
    pub timer_slack_ns: u64,
    pub no_huge_pages: bool,
    /// `personality` with `ADDR_NO_RANDOMIZE`; addresses never are.
    pub no_randomization: bool,
    /// Which memory goes into a core file (`/proc/PID/coredump_filter`).
    pub dump_filter: u32,
    /// `MEMBARRIER_CMD_REGISTER_…` that were asked for.
    pub barriers: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            parent_death_signal: 0,
            dumpable: 1,
            no_new_privileges: false,
            is_subreaper: false,
            secure_bits: 0,
            timer_slack_ns: 50_000,
            no_huge_pages: false,
            no_randomization: false,
            dump_filter: abi::core_file::DUMP_DEFAULT,
            barriers: 0,
        }
    }
}

impl Settings {
    /// What a child starts with.
    pub fn inherited(self) -> Settings {
        Settings { parent_death_signal: 0, is_subreaper: false, ..self }
    }
}
