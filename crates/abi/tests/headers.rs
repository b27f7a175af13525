//! Compares every number and record with the host's own headers.
//!
//! A small C program is written, compiled and run; it prints what the headers say. Numbers newer than
//! the headers are skipped by the program itself (`#ifdef`). Without a C compiler nothing is compared.

use std::collections::HashMap;
use std::process::Command;

use abi::{FieldPlace, file, frame, memory, nr, poll, process, ptrace, siginfo, signal, socket, sound, time, tty};

type Numbers = &'static abi::Names;

/// Headers of the kernel: they fit together, and not with those of the C library.
const KERNEL_HEADERS: &[&str] = &[
    "asm/unistd.h",
    "asm/stat.h",
    "linux/stat.h",
    "asm/statfs.h",
    "linux/time.h",
    "linux/time_types.h",
    "linux/times.h",
    "linux/resource.h",
    "linux/utsname.h",
    "linux/sysinfo.h",
    "linux/uio.h",
    "asm/poll.h",
    "asm/signal.h",
    "asm/siginfo.h",
    "asm/sigcontext.h",
    "asm/ucontext.h",
    "asm/termbits.h",
    "asm/termios.h",
    "asm/ioctls.h",
    "linux/sched.h",
    "linux/futex.h",
    "linux/fcntl.h",
    "linux/eventpoll.h",
    "linux/signalfd.h",
    "linux/timerfd.h",
    "linux/inotify.h",
    "linux/rseq.h",
    "linux/ptrace.h",
    "linux/capability.h",
    "linux/securebits.h",
    "linux/fs.h",
    "linux/magic.h",
    "stddef.h",
    "linux/mman.h",
    "linux/wait.h",
    "linux/prctl.h",
    "asm/prctl.h",
    "linux/random.h",
    "linux/fadvise.h",
    "linux/falloc.h",
    "linux/memfd.h",
    "linux/close_range.h",
    "linux/mount.h",
    "linux/xattr.h",
    "linux/sockios.h",
    "linux/soundcard.h",
    "asm/socket.h",
    "linux/net_namespace.h",
    "asm/errno.h",
    "linux/limits.h",
];

/// Headers of the C library, for what the kernel's do not tell programs.
const LIBRARY_HEADERS: &[&str] = &[
    "sys/socket.h",
    "netinet/in.h",
    "netinet/tcp.h",
    "sys/un.h",
    "dirent.h",
    "unistd.h",
    "fcntl.h",
    "sys/wait.h",
    "sys/eventfd.h",
];

/// Types that start an enumeration in the headers, not macros: `#ifdef` cannot see them.
const ENUMERATIONS: &[&str] =
    &["P_ALL", "P_PID", "P_PGID", "P_PIDFD", "DT_", "IPPROTO_", "SOCK_", "SHUT_", "MSG_", "EFD_"];

struct RecordCheck {
    c_type: &'static str,
    bytes: usize,
    fields: &'static [FieldPlace],
    /// Fields whose name in the headers differs.
    renamed: &'static [(&'static str, &'static str)],
}

macro_rules! check {
    ($record:ty, $c_type:literal $(, $rust:literal = $c:literal)*) => {
        RecordCheck {
            c_type: $c_type,
            bytes: <$record>::BYTES,
            fields: <$record>::FIELDS,
            renamed: &[$(($rust, $c)),*],
        }
    };
}

fn kernel_records() -> Vec<RecordCheck> {
    vec![
        check!(file::Stat, "struct stat"),
        check!(file::StatxTimestamp, "struct statx_timestamp"),
        check!(file::Statx, "struct statx"),
        check!(file::Statfs, "struct statfs"),
        check!(file::Iovec, "struct iovec"),
        check!(file::Flock, "struct flock"),
        check!(file::OwnerEx, "struct f_owner_ex", "r#type" = "type"),
        check!(time::Timespec, "struct __kernel_timespec"),
        check!(time::Timeval, "struct timeval"),
        check!(time::Itimerval, "struct itimerval"),
        check!(time::Itimerspec, "struct __kernel_itimerspec"),
        check!(time::Timezone, "struct timezone"),
        check!(time::Tms, "struct tms"),
        check!(poll::PollFd, "struct pollfd"),
        check!(poll::EpollEvent, "struct epoll_event"),
        check!(poll::InotifyEvent, "struct inotify_event"),
        check!(poll::SignalfdSiginfo, "struct signalfd_siginfo"),
        check!(signal::SigAction, "struct sigaction"),
        check!(signal::StackT, "stack_t"),
        check!(siginfo::SigInfo, "siginfo_t"),
        check!(frame::SigContext, "struct sigcontext"),
        check!(frame::UContext, "struct ucontext"),
        check!(frame::FpxSoftwareBytes, "struct _fpx_sw_bytes"),
        check!(frame::FpState, "struct _fpstate_64"),
        check!(frame::XStateHeader, "struct _header"),
        check!(sound::AudioBufInfo, "audio_buf_info"),
        check!(sound::CountInfo, "count_info"),
        check!(tty::Termios, "struct termios"),
        check!(tty::Termios2, "struct termios2"),
        check!(tty::WinSize, "struct winsize"),
        check!(
            process::FutexWaitv,
            "struct futex_waitv",
            "value" = "val",
            "address" = "uaddr",
            "reserved" = "__reserved"
        ),
        check!(process::CloneArgs, "struct clone_args", "child_tid" = "child_tid"),
        check!(process::Rlimit, "struct rlimit64"),
        check!(process::Rusage, "struct rusage"),
        check!(process::RobustList, "struct robust_list_head"),
        check!(process::Rseq, "struct rseq"),
        check!(process::Utsname, "struct new_utsname"),
        check!(process::Sysinfo, "struct sysinfo"),
        check!(process::CapHeader, "struct __user_cap_header_struct"),
        check!(process::CapData, "struct __user_cap_data_struct"),
    ]
}

fn library_records() -> Vec<RecordCheck> {
    vec![
        check!(socket::SockaddrIn, "struct sockaddr_in"),
        check!(socket::SockaddrIn6, "struct sockaddr_in6"),
        check!(socket::Msghdr, "struct msghdr"),
        check!(socket::Linger, "struct linger"),
        check!(socket::Ucred, "struct ucred"),
    ]
}

const KERNEL_NUMBERS: &[Numbers] = &[
    file::OPEN_FLAGS,
    file::AT_FLAGS,
    file::FILE_TYPES,
    file::MODE_BITS,
    file::SEEKS,
    file::FCNTL_COMMANDS,
    file::DESCRIPTOR_FLAGS,
    file::LOCK_TYPES,
    file::FLOCK_OPERATIONS,
    file::FADVICE,
    file::FALLOCATE_FLAGS,
    file::RENAME_FLAGS,
    file::MEMFD_FLAGS,
    file::SEALS,
    file::CLOSE_RANGE_FLAGS,
    file::RW_FLAGS,
    file::MOUNT_FLAGS,
    file::XATTR_FLAGS,
    file::STATX_MASKS,
    file::STATX_ATTRIBUTES,
    file::FILE_SYSTEMS,
    memory::PROTECTIONS,
    memory::MAP_TYPES,
    memory::MAP_FLAGS,
    memory::MREMAP_FLAGS,
    memory::MADVICE,
    memory::MSYNC_FLAGS,
    memory::MLOCKALL_FLAGS,
    time::CLOCKS,
    time::INTERVAL_TIMERS,
    time::TIMER_FLAGS,
    poll::POLL_EVENTS,
    poll::EPOLL_EVENTS,
    poll::EPOLL_OPERATIONS,
    poll::EPOLL_FLAGS,
    poll::TIMERFD_FLAGS,
    poll::TIMERFD_SET_FLAGS,
    poll::SIGNALFD_FLAGS,
    poll::INOTIFY_FLAGS,
    poll::INOTIFY_EVENTS,
    signal::SIGNALS,
    signal::SIGACTION_FLAGS,
    signal::MASK_CHANGES,
    signal::STACK_FLAGS,
    siginfo::ILL_CODES,
    siginfo::FPE_CODES,
    siginfo::SEGV_CODES,
    siginfo::BUS_CODES,
    siginfo::TRAP_CODES,
    siginfo::CHILD_CODES,
    siginfo::IO_CODES,
    sound::SOUND_IOCTLS,
    sound::SOUND_FORMATS,
    tty::IOCTLS,
    tty::INPUT_MODES,
    tty::OUTPUT_MODES,
    tty::CONTROL_MODES,
    tty::CHARACTER_SIZES,
    tty::SPEEDS,
    tty::LOCAL_MODES,
    tty::CONTROL_CHARACTERS,
    tty::FLUSH_QUEUES,
    tty::FLOW_ACTIONS,
    process::CLONE_FLAGS,
    process::WAIT_OPTIONS,
    process::WAIT_IDS,
    process::RLIMITS,
    process::PRCTLS,
    process::CAPABILITIES,
    process::AMBIENT_OPERATIONS,
    process::SECURE_BITS,
    process::ARCH_PRCTLS,
    process::FUTEX_OPERATIONS,
    process::FUTEX_FLAGS,
    process::FUTEX_BITS,
    process::SCHEDULERS,
    process::PRIORITY_IDS,
    process::RANDOM_FLAGS,
    ptrace::PTRACE_REQUESTS,
    ptrace::PTRACE_OPTIONS,
    ptrace::PTRACE_EVENTS,
    ptrace::PTRACE_CALL_INFOS,
    socket::SOCKET_OPTIONS,
];

const LIBRARY_NUMBERS: &[Numbers] = &[
    file::DIRENT_TYPES,
    poll::EVENTFD_FLAGS,
    file::ACCESS_MODES,
    socket::FAMILIES,
    socket::SOCKET_TYPES,
    socket::SOCKET_FLAGS,
    socket::PROTOCOLS,
    socket::OPTION_LEVELS,
    socket::TCP_OPTIONS,
    socket::MESSAGE_FLAGS,
    socket::SHUTDOWNS,
];

/// Numbers outside the tables.
const LOOSE: &[(&str, u64)] = &[
    ("O_ACCMODE", file::O_ACCMODE as u64),
    ("AT_FDCWD", file::AT_FDCWD as u64),
    ("AT_EACCESS", file::AT_EACCESS as u64),
    ("S_IFMT", file::S_IFMT as u64),
    ("MAP_TYPE", memory::MAP_TYPE as u64),
    ("MAP_FILE", memory::MAP_FILE as u64),
    ("CSIGNAL", process::CSIGNAL),
    ("CSIZE", tty::CSIZE as u64),
    ("CBAUD", tty::CBAUD as u64),
    ("NCCS", tty::NCCS as u64),
    ("SI_USER", siginfo::SI_USER as u64),
    ("SI_KERNEL", siginfo::SI_KERNEL as u64),
    ("SI_QUEUE", siginfo::SI_QUEUE as u64),
    ("SI_TKILL", siginfo::SI_TKILL as u64),
    ("SI_TIMER", siginfo::SI_TIMER as u64),
    ("SI_SIGIO", siginfo::SI_SIGIO as u64),
    ("MINSIGSTKSZ", signal::MINSIGSTKSZ),
    ("RLIM_NLIMITS", process::RLIM_NLIMITS as u64),
    ("RUSAGE_CHILDREN", process::RUSAGE_CHILDREN as u64),
    ("RUSAGE_THREAD", process::RUSAGE_THREAD as u64),
    ("FP_XSTATE_MAGIC1", frame::FP_XSTATE_MAGIC1 as u64),
    ("FP_XSTATE_MAGIC2", frame::FP_XSTATE_MAGIC2 as u64),
    ("UC_FP_XSTATE", frame::UC_FP_XSTATE),
    ("UC_SIGCONTEXT_SS", frame::UC_SIGCONTEXT_SS),
    ("UC_STRICT_RESTORE_SS", frame::UC_STRICT_RESTORE_SS),
    ("PATH_MAX", file::PATH_MAX as u64),
    ("CLONE_ARGS_SIZE_VER0", process::CLONE_ARGS_SIZE_VER0),
    ("CAP_LAST_CAP", process::CAP_LAST_CAP as u64),
    ("_LINUX_CAPABILITY_VERSION_1", process::LINUX_CAPABILITY_VERSION_1 as u64),
    ("_LINUX_CAPABILITY_VERSION_2", process::LINUX_CAPABILITY_VERSION_2 as u64),
    ("_LINUX_CAPABILITY_VERSION_3", process::LINUX_CAPABILITY_VERSION_3 as u64),
    ("TIOCINQ", tty::TIOCINQ as u64),
    ("AFMT_QUERY", sound::AFMT_QUERY as u64),
    ("DSP_CAP_REALTIME", sound::DSP_CAP_REALTIME as u64),
    ("DSP_CAP_TRIGGER", sound::DSP_CAP_TRIGGER as u64),
    ("PCM_ENABLE_OUTPUT", sound::PCM_ENABLE_OUTPUT as u64),
    ("WUNTRACED", process::WUNTRACED as u64),
];

/// What the headers say, by the text of the question: `sizeof X`, `offsetof X.f`, or a constant's name.
fn ask_compiler(
    name: &str,
    headers: &[&str],
    numbers: &[(&str, u64)],
    records: &[RecordCheck],
) -> Option<HashMap<String, u64>> {
    if Command::new("cc").arg("--version").output().is_err() {
        eprintln!("no C compiler: nothing compared");
        return None;
    }
    let directory = std::env::temp_dir().join(format!("abi-headers-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (source, program) = (directory.join("ask.c"), directory.join("ask"));
    std::fs::write(&source, c_program(headers, numbers, records)).unwrap();
    let compiled = Command::new("cc").arg("-w").arg(&source).arg("-o").arg(&program).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let output = String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    Some(
        output
            .lines()
            .filter_map(|line| line.split_once('='))
            .map(|(question, answer)| (question.to_owned(), answer.parse().unwrap()))
            .collect(),
    )
}

fn c_program(headers: &[&str], numbers: &[(&str, u64)], records: &[RecordCheck]) -> String {
    let mut text = String::from("#define _GNU_SOURCE\n");
    for header in headers {
        text += &format!("#if __has_include(<{header}>)\n#include <{header}>\n#endif\n");
    }
    text += "int printf(const char *, ...);\nint main(void) {\n";
    let mut ask = |question: &str, value: &str| {
        text += &format!("  printf(\"{question}=%llu\\n\", (unsigned long long)(long long)({value}));\n");
    };
    for (name, _) in numbers {
        let sure = ENUMERATIONS.iter().any(|start| name.starts_with(start));
        if sure {
            ask(name, name);
        } else {
            ask(
                name,
                &format!(
                    "0\n#ifdef {name}\n+1\n#endif\n) ? (0\n#ifdef {name}\n+ (long long)({name})\n#endif\n) : (0xdeadbeefdeadULL"
                ),
            );
        }
    }
    for record in records {
        ask(&format!("sizeof {}", record.c_type), &format!("sizeof({})", record.c_type));
        for field in record.fields.iter().filter(|field| !field.name.starts_with('_')) {
            let name = c_name(record, field);
            let (c_type, instance) = (record.c_type, format!("(({} *)0)->{name}", record.c_type));
            ask(&format!("offset {c_type}.{name}"), &format!("(unsigned long)&{instance}"));
            ask(&format!("bytes {c_type}.{name}"), &format!("sizeof({instance})"));
        }
    }
    text += "  return 0;\n}\n";
    text
}

fn c_name(record: &RecordCheck, field: &FieldPlace) -> &'static str {
    record.renamed.iter().find(|(rust, _)| *rust == field.name).map_or(field.name, |(_, c)| c)
}

fn compare(name: &str, headers: &[&str], tables: &[Numbers], loose: &[(&'static str, u64)], records: &[RecordCheck]) {
    let mut numbers: Vec<(&str, u64)> = tables.iter().flat_map(|table| table.iter()).collect();
    numbers.extend_from_slice(loose);
    let Some(answers) = ask_compiler(name, headers, &numbers, records) else { return };
    let mut wrong = Vec::new();
    let mut unknown = Vec::new();
    for (name, value) in &numbers {
        match answers[*name] {
            0xdead_beef_dead => unknown.push(*name),
            // A negative number may be 32 or 64 bits wide in the headers.
            answer if answer == *value || answer as u32 as u64 == *value => {}
            answer => wrong.push(format!("{name} is {value:#x}, the headers say {answer:#x}")),
        }
    }
    for record in records {
        let mut check = |question: String, ours: usize| match answers[&question] {
            theirs if theirs == ours as u64 => {}
            theirs => wrong.push(format!("{question} is {ours}, the headers say {theirs}")),
        };
        check(format!("sizeof {}", record.c_type), record.bytes);
        for field in record.fields.iter().filter(|field| !field.name.starts_with('_')) {
            let name = c_name(record, field);
            check(format!("offset {}.{name}", record.c_type), field.offset);
            check(format!("bytes {}.{name}", record.c_type), field.bytes);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(unknown.len() * 20 < numbers.len(), "too many unknown to the headers: {unknown:?}");
    eprintln!("{} numbers, {} records; unknown to the headers: {unknown:?}", numbers.len(), records.len());
}

#[test]
fn numbers_and_records_are_those_of_the_kernel_headers() {
    compare("kernel", KERNEL_HEADERS, KERNEL_NUMBERS, LOOSE, &kernel_records());
}

#[test]
fn numbers_and_records_are_those_of_the_library_headers() {
    compare("library", LIBRARY_HEADERS, LIBRARY_NUMBERS, &[], &library_records());
}

#[test]
fn call_numbers_are_those_of_the_headers() {
    let names: Vec<(String, u64)> = nr::calls().map(|(number, name)| (format!("__NR_{name}"), number)).collect();
    let numbers: Vec<(&str, u64)> = names.iter().map(|(name, number)| (name.as_str(), *number)).collect();
    let Some(answers) = ask_compiler("calls", &["asm/unistd.h"], &numbers, &[]) else { return };
    for (name, number) in numbers {
        assert!([number, 0xdead_beef_dead].contains(&answers[name]), "{name}");
    }
}

#[test]
fn error_numbers_are_those_of_the_headers() {
    let errors: Vec<(&str, u64)> =
        (1..=133).filter_map(abi::Errno::from_number).map(|errno| (errno.name(), errno as u64)).collect();
    assert!(errors.len() >= 130);
    let Some(answers) = ask_compiler("errors", &["asm/errno.h"], &errors, &[]) else { return };
    for (name, number) in errors {
        assert_eq!(answers[name], number, "{name}");
    }
}
