//! Processes and threads: `clone`, wait statuses, limits, usage, `prctl`, futexes, system information.

use crate::record::{numbers, record};

numbers! {
    /// Flags of `clone`; the lowest byte is the signal the parent gets.
    CLONE_FLAGS: u64 {
        CLONE_VM = 0x100, CLONE_FS = 0x200, CLONE_FILES = 0x400, CLONE_SIGHAND = 0x800, CLONE_PIDFD = 0x1000,
        CLONE_PTRACE = 0x2000, CLONE_VFORK = 0x4000, CLONE_PARENT = 0x8000, CLONE_THREAD = 0x1_0000,
        CLONE_NEWNS = 0x2_0000, CLONE_SYSVSEM = 0x4_0000, CLONE_SETTLS = 0x8_0000, CLONE_PARENT_SETTID = 0x10_0000,
        CLONE_CHILD_CLEARTID = 0x20_0000, CLONE_DETACHED = 0x40_0000, CLONE_UNTRACED = 0x80_0000,
        CLONE_CHILD_SETTID = 0x100_0000, CLONE_NEWCGROUP = 0x200_0000, CLONE_NEWUTS = 0x400_0000,
        CLONE_NEWIPC = 0x800_0000, CLONE_NEWUSER = 0x1000_0000, CLONE_NEWPID = 0x2000_0000,
        CLONE_NEWNET = 0x4000_0000, CLONE_IO = 0x8000_0000, CLONE_CLEAR_SIGHAND = 0x1_0000_0000,
        CLONE_INTO_CGROUP = 0x2_0000_0000,
    }
}
/// Only for `unshare`: `clone` has a signal there.
pub const CLONE_NEWTIME: u64 = 0x80;
/// Mask of the exit signal in `clone`'s flags.
pub const CSIGNAL: u64 = 0xff;
/// Bytes of the first version of `clone_args`; `clone3` refuses less.
pub const CLONE_ARGS_SIZE_VER0: u64 = 64;

record! {
    /// `struct clone_args` (`linux/sched.h`).
    CloneArgs, 88 bytes {
        flags: u64, pidfd: u64, child_tid: u64, parent_tid: u64, exit_signal: u64, stack: u64, stack_size: u64,
        tls: u64, set_tid: u64, set_tid_size: u64, cgroup: u64,
    }
}

numbers! {
    /// Commands of `membarrier`; a registration is twice what it is for.
    MEMBARRIER_COMMANDS: u32 {
        MEMBARRIER_CMD_GLOBAL = 1, MEMBARRIER_CMD_GLOBAL_EXPEDITED = 2, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED = 4,
        MEMBARRIER_CMD_PRIVATE_EXPEDITED = 8, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED = 16,
        MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE = 32, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE = 64,
        MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ = 128, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ = 256,
        MEMBARRIER_CMD_GET_REGISTRATIONS = 512,
    }
}
/// The processor is named.
pub const MEMBARRIER_CMD_FLAG_CPU: u32 = 1;

numbers! {
    /// Flags of `struct sched_attr`.
    SCHED_FLAGS: u64 {
        SCHED_FLAG_RESET_ON_FORK = 1, SCHED_FLAG_RECLAIM = 2, SCHED_FLAG_DL_OVERRUN = 4, SCHED_FLAG_KEEP_POLICY = 8,
        SCHED_FLAG_KEEP_PARAMS = 16, SCHED_FLAG_UTIL_CLAMP_MIN = 32, SCHED_FLAG_UTIL_CLAMP_MAX = 64,
    }
}

record! {
    /// `struct sched_attr` (`linux/sched/types.h`), with the fields of all versions.
    SchedAttr, 56 bytes {
        size: u32, policy: u32, flags: u64, nice: i32, priority: u32, runtime: u64, deadline: u64, period: u64,
        clamp_least: u32, clamp_most: u32,
    }
}

record! {
    /// `struct futex_waitv` (`linux/futex.h`).
    FutexWaitv, 24 bytes { value: u64, address: u64, flags: u32, reserved: u32 }
}

numbers! {
    /// What `kcmp` compares.
    KCMP_KINDS: u32 {
        KCMP_FILE = 0, KCMP_VM = 1, KCMP_FILES = 2, KCMP_FS = 3, KCMP_SIGHAND = 4, KCMP_IO = 5, KCMP_SYSVSEM = 6,
    }
}

numbers! {
    /// Options of `wait4` and `waitid`. `WSTOPPED` is `WUNTRACED` under its other name.
    WAIT_OPTIONS: u32 {
        WNOHANG = 1, WSTOPPED = 2, WEXITED = 4, WCONTINUED = 8, WNOWAIT = 0x100_0000, __WNOTHREAD = 0x2000_0000,
        __WALL = 0x4000_0000, __WCLONE = 0x8000_0000,
    }
}
/// `wait4`: report stopped children too.
pub const WUNTRACED: u32 = 2;
numbers! {
    /// Whom `waitid` waits for.
    WAIT_IDS: u32 { P_ALL = 0, P_PID = 1, P_PGID = 2, P_PIDFD = 3 }
}

/// A wait status, by what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitStatus {
    /// Ended by `exit` with this code.
    Exited(u8),
    /// Ended by a signal; with `core`, one whose action is to dump core.
    Killed { signal: u8, core: bool },
    /// Stopped by a signal.
    Stopped(u8),
    /// Stopped for its tracer: the signal and, above its eight bits, the event.
    Trapped(u16),
    /// Continued by `SIGCONT`.
    Continued,
}

impl WaitStatus {
    /// The word that `wait4` writes.
    pub const fn encode(self) -> i32 {
        match self {
            WaitStatus::Exited(code) => (code as i32) << 8,
            WaitStatus::Killed { signal, core } => (signal & 0x7f) as i32 | if core { 0x80 } else { 0 },
            WaitStatus::Stopped(signal) => (signal as i32) << 8 | 0x7f,
            WaitStatus::Trapped(code) => (code as i32) << 8 | 0x7f,
            WaitStatus::Continued => 0xffff,
        }
    }

    /// Reads the word back; `None` for a word no wait gives.
    pub const fn decode(word: i32) -> Option<Self> {
        let high = (word >> 8 & 0xff) as u8;
        match word {
            0xffff => Some(WaitStatus::Continued),
            0x1_0000..=0xff_ffff if word & 0xff == 0x7f => Some(WaitStatus::Trapped((word >> 8) as u16)),
            _ if word & !0xffff != 0 => None,
            _ if word & 0xff == 0x7f => Some(WaitStatus::Stopped(high)),
            _ if word & 0x7f == 0 => Some(WaitStatus::Exited(high)),
            _ => Some(WaitStatus::Killed { signal: (word & 0x7f) as u8, core: word & 0x80 != 0 }),
        }
    }
}

numbers! {
    /// Resource limits.
    RLIMITS: u32 {
        RLIMIT_CPU = 0, RLIMIT_FSIZE = 1, RLIMIT_DATA = 2, RLIMIT_STACK = 3, RLIMIT_CORE = 4, RLIMIT_RSS = 5,
        RLIMIT_NPROC = 6, RLIMIT_NOFILE = 7, RLIMIT_MEMLOCK = 8, RLIMIT_AS = 9, RLIMIT_LOCKS = 10,
        RLIMIT_SIGPENDING = 11, RLIMIT_MSGQUEUE = 12, RLIMIT_NICE = 13, RLIMIT_RTPRIO = 14, RLIMIT_RTTIME = 15,
    }
}
/// Number of resource limits.
pub const RLIM_NLIMITS: usize = 16;
/// No limit.
pub const RLIM_INFINITY: u64 = u64::MAX;
record! {
    /// `struct rlimit64`.
    Rlimit, 16 bytes { rlim_cur: u64, rlim_max: u64 }
}
/// `getrusage`: the process and all its threads.
pub const RUSAGE_SELF: i32 = 0;
/// `getrusage`: ended and waited-for children.
pub const RUSAGE_CHILDREN: i32 = -1;
/// `getrusage`: the calling thread.
pub const RUSAGE_THREAD: i32 = 1;
record! {
    /// `struct rusage`.
    Rusage, 144 bytes {
        ru_utime: crate::time::Timeval, ru_stime: crate::time::Timeval,
        /// In kilobytes.
        ru_maxrss: i64,
        ru_ixrss: i64, ru_idrss: i64, ru_isrss: i64, ru_minflt: i64, ru_majflt: i64, ru_nswap: i64, ru_inblock: i64,
        ru_oublock: i64, ru_msgsnd: i64, ru_msgrcv: i64, ru_nsignals: i64, ru_nvcsw: i64, ru_nivcsw: i64,
    }
}

numbers! {
    /// Options of `prctl`.
    PRCTLS: u32 {
        PR_SET_PDEATHSIG = 1, PR_GET_PDEATHSIG = 2, PR_GET_DUMPABLE = 3, PR_SET_DUMPABLE = 4, PR_GET_KEEPCAPS = 7,
        PR_SET_KEEPCAPS = 8, PR_GET_TIMING = 13, PR_SET_TIMING = 14, PR_SET_NAME = 15, PR_GET_NAME = 16,
        PR_GET_SECCOMP = 21, PR_SET_SECCOMP = 22, PR_CAPBSET_READ = 23, PR_CAPBSET_DROP = 24, PR_GET_TSC = 25,
        PR_SET_TSC = 26, PR_GET_SECUREBITS = 27, PR_SET_SECUREBITS = 28, PR_SET_TIMERSLACK = 29,
        PR_GET_TIMERSLACK = 30, PR_SET_MM = 35, PR_SET_CHILD_SUBREAPER = 36, PR_GET_CHILD_SUBREAPER = 37,
        PR_SET_NO_NEW_PRIVS = 38, PR_GET_NO_NEW_PRIVS = 39, PR_GET_TID_ADDRESS = 40, PR_SET_THP_DISABLE = 41,
        PR_GET_THP_DISABLE = 42, PR_CAP_AMBIENT = 47, PR_GET_SPECULATION_CTRL = 52, PR_SET_SPECULATION_CTRL = 53,
        PR_SET_PTRACER = 0x5961_6d61, PR_SET_VMA = 0x5356_4d41,
    }
}
numbers! {
    /// Codes of `arch_prctl`.
    ARCH_PRCTLS: u32 {
        ARCH_SET_GS = 0x1001, ARCH_SET_FS = 0x1002, ARCH_GET_FS = 0x1003, ARCH_GET_GS = 0x1004, ARCH_GET_CPUID = 0x1011,
        ARCH_SET_CPUID = 0x1012, ARCH_GET_XCOMP_SUPP = 0x1021, ARCH_GET_XCOMP_PERM = 0x1022,
        ARCH_REQ_XCOMP_PERM = 0x1023,
    }
}
numbers! {
    /// Operations of `futex`, without its flags.
    FUTEX_OPERATIONS: u32 {
        FUTEX_WAIT = 0, FUTEX_WAKE = 1, FUTEX_FD = 2, FUTEX_REQUEUE = 3, FUTEX_CMP_REQUEUE = 4, FUTEX_WAKE_OP = 5,
        FUTEX_LOCK_PI = 6, FUTEX_UNLOCK_PI = 7, FUTEX_TRYLOCK_PI = 8, FUTEX_WAIT_BITSET = 9, FUTEX_WAKE_BITSET = 10,
        FUTEX_WAIT_REQUEUE_PI = 11, FUTEX_CMP_REQUEUE_PI = 12, FUTEX_LOCK_PI2 = 13,
    }
}
numbers! {
    /// Flags in the operation of `futex`.
    FUTEX_FLAGS: u32 { FUTEX_PRIVATE_FLAG = 128, FUTEX_CLOCK_REALTIME = 256 }
}
numbers! {
    /// Bits of a robust futex word.
    FUTEX_BITS: u32 { FUTEX_WAITERS = 0x8000_0000, FUTEX_OWNER_DIED = 0x4000_0000, FUTEX_TID_MASK = 0x3fff_ffff }
}
/// `FUTEX_WAIT_BITSET` that any wake matches.
pub const FUTEX_BITSET_MATCH_ANY: u32 = 0xffff_ffff;
record! {
    /// `struct robust_list_head` (`linux/futex.h`).
    RobustList, 24 bytes { list: u64, futex_offset: i64, list_op_pending: u64 }
}
record! {
    /// `struct rseq` (`linux/rseq.h`), the fields all versions have.
    Rseq, 32 bytes { cpu_id_start: u32, cpu_id: u32, rseq_cs: u64, flags: u32, _pad: [u32; 3] }
}
numbers! {
    /// Scheduling policies.
    SCHEDULERS: u32 { SCHED_OTHER = 0, SCHED_FIFO = 1, SCHED_RR = 2, SCHED_BATCH = 3, SCHED_IDLE = 5, SCHED_DEADLINE = 6 }
}
numbers! {
    /// Whom `getpriority` asks about.
    PRIORITY_IDS: u32 { PRIO_PROCESS = 0, PRIO_PGRP = 1, PRIO_USER = 2 }
}
numbers! {
    /// Flags of `getrandom`.
    RANDOM_FLAGS: u32 { GRND_NONBLOCK = 1, GRND_RANDOM = 2, GRND_INSECURE = 4 }
}

record! {
    /// `struct new_utsname` (`linux/utsname.h`): six strings of at most 64 bytes and a zero.
    Utsname, 390 bytes {
        sysname: [u8; 65], nodename: [u8; 65], release: [u8; 65], version: [u8; 65], machine: [u8; 65],
        domainname: [u8; 65],
    }
}

/// A field of `Utsname` holding `text`, cut at 64 bytes.
pub const fn uts_field(text: &[u8]) -> [u8; 65] {
    let mut field = [0; 65];
    let mut index = 0;
    while index < 64 && index < text.len() {
        field[index] = text[index];
        index += 1;
    }
    field
}

record! {
    /// `struct sysinfo` (`linux/sysinfo.h`).
    Sysinfo, 112 bytes {
        uptime: i64, loads: [u64; 3], totalram: u64, freeram: u64, sharedram: u64, bufferram: u64, totalswap: u64,
        freeswap: u64, procs: u16, _pad0: u16, _pad1: u32, totalhigh: u64, freehigh: u64, mem_unit: u32, _pad2: u32,
    }
}
record! {
    /// `struct __user_cap_header_struct` (`linux/capability.h`).
    CapHeader, 8 bytes { version: u32, pid: i32 }
}
record! {
    /// `struct __user_cap_data_struct`: two of them follow each other in version 3.
    CapData, 12 bytes { effective: u32, permitted: u32, inheritable: u32 }
}
/// Version 1 of the capability records, of one `CapData`.
pub const LINUX_CAPABILITY_VERSION_1: u32 = 0x1998_0330;
/// Version 2: as version 3, by another number.
pub const LINUX_CAPABILITY_VERSION_2: u32 = 0x2007_1026;
/// Version 3 of the capability records.
pub const LINUX_CAPABILITY_VERSION_3: u32 = 0x2008_0522;
numbers! {
    /// Capabilities (capabilities(7)).
    CAPABILITIES: u32 {
        CAP_CHOWN = 0, CAP_DAC_OVERRIDE = 1, CAP_DAC_READ_SEARCH = 2, CAP_FOWNER = 3, CAP_FSETID = 4, CAP_KILL = 5,
        CAP_SETGID = 6, CAP_SETUID = 7, CAP_SETPCAP = 8, CAP_LINUX_IMMUTABLE = 9, CAP_NET_BIND_SERVICE = 10,
        CAP_NET_BROADCAST = 11, CAP_NET_ADMIN = 12, CAP_NET_RAW = 13, CAP_IPC_LOCK = 14, CAP_IPC_OWNER = 15,
        CAP_SYS_MODULE = 16, CAP_SYS_RAWIO = 17, CAP_SYS_CHROOT = 18, CAP_SYS_PTRACE = 19, CAP_SYS_PACCT = 20,
        CAP_SYS_ADMIN = 21, CAP_SYS_BOOT = 22, CAP_SYS_NICE = 23, CAP_SYS_RESOURCE = 24, CAP_SYS_TIME = 25,
        CAP_SYS_TTY_CONFIG = 26, CAP_MKNOD = 27, CAP_LEASE = 28, CAP_AUDIT_WRITE = 29, CAP_AUDIT_CONTROL = 30,
        CAP_SETFCAP = 31, CAP_MAC_OVERRIDE = 32, CAP_MAC_ADMIN = 33, CAP_SYSLOG = 34, CAP_WAKE_ALARM = 35,
        CAP_BLOCK_SUSPEND = 36, CAP_AUDIT_READ = 37, CAP_PERFMON = 38, CAP_BPF = 39, CAP_CHECKPOINT_RESTORE = 40,
    }
}
/// The highest capability.
pub const CAP_LAST_CAP: u32 = CAP_CHECKPOINT_RESTORE;
numbers! {
    /// Operations of `PR_CAP_AMBIENT`.
    AMBIENT_OPERATIONS: u64 {
        PR_CAP_AMBIENT_IS_SET = 1, PR_CAP_AMBIENT_RAISE = 2, PR_CAP_AMBIENT_LOWER = 3, PR_CAP_AMBIENT_CLEAR_ALL = 4,
    }
}
numbers! {
    /// Bits of `PR_SET_SECUREBITS`. The bit above each locks it.
    SECURE_BITS: u32 {
        SECBIT_NOROOT = 1, SECBIT_NOROOT_LOCKED = 2, SECBIT_NO_SETUID_FIXUP = 4, SECBIT_NO_SETUID_FIXUP_LOCKED = 8,
        SECBIT_KEEP_CAPS = 16, SECBIT_KEEP_CAPS_LOCKED = 32, SECBIT_NO_CAP_AMBIENT_RAISE = 64,
        SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED = 128,
    }
}
