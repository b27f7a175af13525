/* Every call of tiers T1 and T2 with bad pointers, lengths and descriptors, against the host's errno.
 *
 * Each call has a table row with one good value for each argument. For each pointer argument every kind of bad pointer is put
 * in its place, for each length the absurd ones, for each descriptor every kind of descriptor. All else stays good.
 * A line is `call argument=kind -> result errno`. A result that differs from run to run is printed as "positive".
 *
 * Left out, and why:
 *   exit_group                     ends the program (its status is tested everywhere else)
 *   rt_sigreturn, vfork            are about the stack; faults.c has the first
 *   clone, clone3 with good values make processes; only their failing forms are here
 *   rseq, set_robust_list,         keep the pointer and look at it only later, so a good result needs its old value
 *     set_tid_address, arch_prctl    back; here only what fails at once, or ends with the child that tried it
 *   munmap, mprotect, brk, mmap    of random places could unmap the program; mm.c has their errors. Here only absurd
 *                                  values that must fail
 *   chown, fchown, fchownat,       depend on who runs the test, so owner and group are -1: nothing changes, all
 *     setresuid, setresgid           pointers are still read
 *   syslog                         what it answers depends on who asks
 *   getgroups with room            depends on how many groups the tester has
 *   kill, setsid, sync             would touch other programs or the machine; one harmless form each
 *   fchmod and its kind on         would change the host's own /dev
 *     /dev/null and /dev/zero
 *   socket and its kind            only on descriptors that are no sockets, and families that do not exist: tiers T1
 *                                  and T2 do not need a network
 *   extended attributes            what a file system answers for good arguments differs between host file systems
 */
#include "check.h"

#include <limits.h>
#include <poll.h>
#include <sys/statfs.h>

#define PAGE 4096L

/* What an argument is. */
enum kind { END, VALUE, POINTER, PATH, LENGTH, DESCRIPTOR };

struct argument {
    enum kind kind;
    long value;         /* VALUE, LENGTH: the good value; DESCRIPTOR: which fixture; POINTER: bytes that the call touches */
    const void *fill;   /* POINTER: good bytes to read (NULL: zeroes); PATH: the good path */
    const char *name;
};

#define V(x) {VALUE, (long)(x), NULL, "value"}
#define P(size) {POINTER, (long)(size), NULL, "pointer"}
#define PF(bytes) {POINTER, (long)sizeof(bytes), &(bytes), "pointer"}
#define S(path) {PATH, 0, path, "path"}
#define L(x) {LENGTH, (long)(x), NULL, "length"}
#define F(fixture) {DESCRIPTOR, fixture, NULL, "fd"}

/* Fixtures sit on fixed descriptors, made again before every case. */
enum { FILE_FD = 40, DIR_FD, NULL_FD, ZERO_FD, PIPE_READ, PIPE_WRITE, PATH_FD, READ_ONLY, WRITE_ONLY, FIXTURES_END };

static const struct { const char *name; int fd; } descriptors[] = {
    {"minus one", -1}, {"closed", 39}, {"huge", INT_MAX}, {"negative", INT_MIN}, {"beyond the limit", 1 << 20},
    {"null", NULL_FD}, {"zero", ZERO_FD}, {"file", FILE_FD}, {"directory", DIR_FD}, {"pipe read", PIPE_READ},
    {"pipe write", PIPE_WRITE}, {"O_PATH", PATH_FD}, {"read-only", READ_ONLY}, {"write-only", WRITE_ONLY},
};

enum { NAME_FORM = 1, ANY_POSITIVE = 2, NO_GOOD = 4, NO_SHORT = 8, NO_DESCRIPTORS = 16, NO_LENGTHS = 32,
       NO_DEVICES = 128 /* it would change the machine's own /dev */,
       NULL_WAITS = 64 /* a null pointer is good and waits for ever */ };

struct call {
    const char *name;
    long number;
    int flags;
    struct argument arguments[7];
};

static const struct timespec now_and_then[2] = {{1000, 5}, {2000, 6}};
static const struct timespec short_time = {0, 1000};
static const struct timespec bad_time = {0, 2000000000};
static const struct timespec negative_time = {-1, 0};
static const struct iovec_of { void *base; size_t length; } unused_iovec;
static const struct { unsigned long flags, restorer, mask, handler; } action;
static const struct { long one, two; } limit_pair = {0, 0}; /* lower than before: raising depends on who asks */
static const struct pollfd one_poll = {NULL_FD, POLLIN, 0};
static const stack_t no_stack = {.ss_flags = SS_DISABLE};
static const unsigned long signal_set = 0;
static const int one_int = 1;
static const struct { long value[4]; } timer_zero;
static const struct { char bytes[16]; } address = {"\1"};
static const struct { long numbers[11]; } clone_arguments = {{0x80000000000L}};
static const long offset_zero = 0;
static const struct sigevent quiet_event = {.sigev_notify = SIGEV_NONE};

static const struct call calls[] = {
    {"read", SYS_read, 0, {F(FILE_FD), P(64), L(64)}},
    {"read zero", SYS_read, 0, {F(ZERO_FD), P(64), L(64)}},
    {"read pipe", SYS_read, 0, {F(PIPE_READ), P(16), L(16)}},
    {"write", SYS_write, 0, {F(FILE_FD), P(64), L(64)}},
    {"write pipe", SYS_write, 0, {F(PIPE_WRITE), P(64), L(64)}},
    {"write null", SYS_write, 0, {F(NULL_FD), P(64), L(64)}},
    {"pread64", SYS_pread64, 0, {F(FILE_FD), P(64), L(64), V(0)}},
    {"pread64 negative", SYS_pread64, 0, {F(FILE_FD), P(64), L(64), V(-1)}},
    {"openat", SYS_openat, ANY_POSITIVE, {F(DIR_FD), S("file"), V(O_RDONLY), V(0)}},
    {"openat create", SYS_openat, ANY_POSITIVE, {F(DIR_FD), S("made"), V(O_RDWR | O_CREAT | O_EXCL), V(0600)}},
    {"openat bad flags", SYS_openat, ANY_POSITIVE, {F(DIR_FD), S("file"), V(O_RDONLY | O_DIRECTORY), V(0)}},
    {"creat", SYS_creat, ANY_POSITIVE, {S("made"), V(0644)}},
    {"close", SYS_close, 0, {F(FILE_FD)}},
    {"stat", SYS_stat, 0, {S("file"), P(144)}},
    {"newfstatat", SYS_newfstatat, 0, {F(DIR_FD), S("file"), P(144), V(0)}},
    {"newfstatat empty path", SYS_newfstatat, 0, {F(FILE_FD), S(""), P(144), V(AT_EMPTY_PATH)}},
    {"newfstatat bad flags", SYS_newfstatat, 0, {F(DIR_FD), S("file"), P(144), V(0x8000)}},
    {"statx", SYS_statx, 0, {F(DIR_FD), S("file"), V(0), V(0xfff), P(256)}},
    {"statx bad mask", SYS_statx, 0, {F(DIR_FD), S("file"), V(0), V(0x80000000), P(256)}},
    {"statfs", SYS_statfs, 0, {S("file"), P(120)}},
    {"fstatfs", SYS_fstatfs, NO_DESCRIPTORS, {F(FILE_FD), P(120)}},
    {"access", SYS_access, 0, {S("file"), V(R_OK)}},
    {"access bad mode", SYS_access, 0, {S("file"), V(8)}},
    {"faccessat2", SYS_faccessat2, 0, {F(DIR_FD), S("file"), V(F_OK), V(0)}},
    {"faccessat2 bad flags", SYS_faccessat2, 0, {F(DIR_FD), S("file"), V(F_OK), V(1)}},
    {"lseek", SYS_lseek, 0, {F(FILE_FD), V(0), V(SEEK_SET)}},
    {"lseek negative", SYS_lseek, 0, {F(FILE_FD), V(-5), V(SEEK_SET)}},
    {"lseek bad whence", SYS_lseek, 0, {F(FILE_FD), V(0), V(9)}},
    {"lseek end", SYS_lseek, NO_DESCRIPTORS, {F(FILE_FD), V(0), V(SEEK_END)}},
    {"ftruncate", SYS_ftruncate, 0, {F(FILE_FD), V(100)}},
    {"ftruncate negative", SYS_ftruncate, 0, {F(FILE_FD), V(-1)}},
    {"getdents64", SYS_getdents64, ANY_POSITIVE, {F(DIR_FD), P(1024), L(1024)}},
    {"getdents64 small", SYS_getdents64, ANY_POSITIVE | NO_DESCRIPTORS | NO_LENGTHS, {F(DIR_FD), P(8), V(8)}},
    {"getcwd", SYS_getcwd, ANY_POSITIVE, {P(1024), L(1024)}},
    {"chdir", SYS_chdir, 0, {S("folder")}},
    {"chdir file", SYS_chdir, 0, {S("file")}},
    {"fchdir", SYS_fchdir, 0, {F(DIR_FD)}},
    {"mkdir", SYS_mkdir, 0, {S("made"), V(0755)}},
    {"mkdirat", SYS_mkdirat, 0, {F(DIR_FD), S("made"), V(0755)}},
    {"mknodat", SYS_mknodat, 0, {F(DIR_FD), S("made"), V(S_IFIFO | 0644), V(0)}},
    {"mknodat bad type", SYS_mknodat, 0, {F(DIR_FD), S("made"), V(S_IFMT), V(0)}},
    {"mknodat directory", SYS_mknodat, 0, {F(DIR_FD), S("made"), V(S_IFDIR | 0755), V(0)}},
    {"rmdir", SYS_rmdir, 0, {S("folder")}},
    {"rmdir dot", SYS_rmdir, 0, {S(".")}},
    {"unlink", SYS_unlink, 0, {S("file")}},
    {"unlink directory", SYS_unlink, 0, {S("folder")}},
    {"unlinkat", SYS_unlinkat, 0, {F(DIR_FD), S("file"), V(0)}},
    {"unlinkat directory", SYS_unlinkat, 0, {F(DIR_FD), S("folder"), V(AT_REMOVEDIR)}},
    {"unlinkat bad flags", SYS_unlinkat, 0, {F(DIR_FD), S("file"), V(1)}},
    {"rename", SYS_rename, 0, {S("file"), S("made")}},
    {"rename onto folder", SYS_rename, 0, {S("file"), S("folder")}},
    {"rename folder into itself", SYS_rename, 0, {S("folder"), S("folder/x")}},
    {"renameat2", SYS_renameat2, 0, {F(DIR_FD), S("file"), F(DIR_FD), S("made"), V(0)}},
    {"renameat2 exclusive", SYS_renameat2, 0, {F(DIR_FD), S("file"), F(DIR_FD), S("folder"), V(1)}},
    {"renameat2 bad flags", SYS_renameat2, 0, {F(DIR_FD), S("file"), F(DIR_FD), S("made"), V(0x100)}},
    {"linkat", SYS_linkat, 0, {F(DIR_FD), S("file"), F(DIR_FD), S("made"), V(0)}},
    {"linkat bad flags", SYS_linkat, 0, {F(DIR_FD), S("file"), F(DIR_FD), S("made"), V(1)}},
    {"symlink", SYS_symlink, 0, {S("target"), S("made")}},
    {"symlinkat", SYS_symlinkat, 0, {S("target"), F(DIR_FD), S("made")}},
    {"readlink", SYS_readlink, 0, {S("link"), P(64), L(64)}},
    {"readlink file", SYS_readlink, 0, {S("file"), P(64), L(64)}},
    {"chmod", SYS_chmod, 0, {S("file"), V(0640)}},
    {"fchmod", SYS_fchmod, NO_DEVICES, {F(FILE_FD), V(0640)}},
    {"fchmodat", SYS_fchmodat, 0, {F(DIR_FD), S("file"), V(0640)}},
    {"chown", SYS_chown, 0, {S("file"), V(-1), V(-1)}},
    {"fchown", SYS_fchown, NO_DEVICES, {F(FILE_FD), V(-1), V(-1)}},
    {"fchownat", SYS_fchownat, 0, {F(DIR_FD), S("file"), V(-1), V(-1), V(0)}},
    {"fchownat bad flags", SYS_fchownat, 0, {F(DIR_FD), S("file"), V(-1), V(-1), V(1)}},
    {"utimensat", SYS_utimensat, 0, {F(DIR_FD), S("file"), PF(now_and_then), V(0)}},
    {"utimensat bad time", SYS_utimensat, 0, {F(DIR_FD), S("file"), PF(bad_time), V(0)}},
    {"utimensat descriptor", SYS_utimensat, NO_DEVICES, {F(FILE_FD), V(0), PF(now_and_then), V(0)}},
    {"dup", SYS_dup, ANY_POSITIVE, {F(FILE_FD)}},
    {"dup2", SYS_dup2, 0, {F(FILE_FD), V(38)}},
    {"dup2 to bad", SYS_dup2, 0, {V(FILE_FD), F(FILE_FD)}},
    {"dup3", SYS_dup3, 0, {F(FILE_FD), V(38), V(O_CLOEXEC)}},
    {"dup3 same", SYS_dup3, 0, {F(FILE_FD), V(FILE_FD), V(0)}},
    {"dup3 bad flags", SYS_dup3, 0, {F(FILE_FD), V(38), V(1)}},
    {"pipe2", SYS_pipe2, 0, {P(8), V(O_CLOEXEC)}},
    {"pipe2 bad flags", SYS_pipe2, 0, {P(8), V(0x40000000)}},
    {"fcntl getfd", SYS_fcntl, 0, {F(FILE_FD), V(F_GETFD), V(0)}},
    {"fcntl setfd", SYS_fcntl, 0, {F(FILE_FD), V(F_SETFD), V(1)}},
    {"fcntl getfl", SYS_fcntl, 0, {F(FILE_FD), V(F_GETFL), V(0)}},
    {"fcntl setfl", SYS_fcntl, 0, {F(FILE_FD), V(F_SETFL), V(O_APPEND)}},
    {"fcntl dupfd", SYS_fcntl, ANY_POSITIVE, {F(FILE_FD), V(F_DUPFD), V(60)}},
    {"fcntl dupfd negative", SYS_fcntl, 0, {F(FILE_FD), V(F_DUPFD), V(-1)}},
    {"fcntl dupfd cloexec huge", SYS_fcntl, 0, {F(FILE_FD), V(F_DUPFD_CLOEXEC), V(INT_MAX)}},
    {"fcntl pipe size", SYS_fcntl, 0, {F(PIPE_READ), V(F_GETPIPE_SZ), V(0)}},
    {"fcntl unknown", SYS_fcntl, 0, {F(FILE_FD), V(0x7777), V(0)}},
    {"ioctl tcgets", SYS_ioctl, 0, {F(FILE_FD), V(0x5401), P(60)}},
    {"ioctl window size", SYS_ioctl, 0, {F(PIPE_READ), V(0x5413), P(8)}},
    {"ioctl bytes waiting", SYS_ioctl, NO_DESCRIPTORS, {F(PIPE_READ), V(0x541b), P(4)}},
    {"ioctl unknown", SYS_ioctl, 0, {F(FILE_FD), V(0x12345678), P(8)}},
    {"poll", SYS_poll, 0, {PF(one_poll), L(1), V(0)}},
    {"pselect6 in", SYS_pselect6, NULL_WAITS, {V(64), P(8), V(0), V(0), PF(short_time), V(0)}},
    {"pselect6 out", SYS_pselect6, NULL_WAITS, {V(64), V(0), P(8), V(0), PF(short_time), V(0)}},
    {"pselect6 except", SYS_pselect6, NULL_WAITS, {V(64), V(0), V(0), P(8), PF(short_time), V(0)}},
    {"pselect6 mask", SYS_pselect6, NULL_WAITS, {V(0), V(0), V(0), V(0), PF(short_time), P(16)}},
    {"pselect6 negative count", SYS_pselect6, 0, {V(-1), V(0), V(0), V(0), PF(short_time), V(0)}},
    {"pselect6 bad time", SYS_pselect6, NULL_WAITS, {V(0), V(0), V(0), V(0), PF(bad_time), V(0)}},
    {"pselect6 negative time", SYS_pselect6, NULL_WAITS, {V(0), V(0), V(0), V(0), PF(negative_time), V(0)}},
    {"sendfile", SYS_sendfile, 0, {F(WRITE_ONLY), F(READ_ONLY), PF(offset_zero), L(10)}},
    {"copy_file_range", SYS_copy_file_range, 0, {F(READ_ONLY), PF(offset_zero), F(WRITE_ONLY), V(0), V(10), V(0)}},
    {"copy_file_range to", SYS_copy_file_range, 0, {F(READ_ONLY), V(0), F(WRITE_ONLY), PF(offset_zero), V(10), V(0)}},
    {"copy_file_range bad flags", SYS_copy_file_range, 0, {F(READ_ONLY), V(0), F(WRITE_ONLY), V(0), V(10), V(1)}},
    {"fadvise64", SYS_fadvise64, 0, {F(FILE_FD), V(0), V(0), V(2)}},
    {"fadvise64 bad advice", SYS_fadvise64, 0, {F(FILE_FD), V(0), V(0), V(99)}},
    {"mmap file", SYS_mmap, ANY_POSITIVE, {V(0), V(PAGE), V(PROT_READ), V(MAP_PRIVATE), F(FILE_FD), V(0)}},
    {"mmap no kind", SYS_mmap, 0, {V(0), V(PAGE), V(PROT_READ), V(MAP_ANONYMOUS), V(-1), V(0)}},
    {"mmap nothing", SYS_mmap, 0, {V(0), V(0), V(PROT_READ), V(MAP_PRIVATE | MAP_ANONYMOUS), V(-1), V(0)}},
    {"mmap everything", SYS_mmap, 0, {V(0), V(LONG_MAX), V(PROT_READ), V(MAP_PRIVATE | MAP_ANONYMOUS), V(-1), V(0)}},
    {"mmap odd offset", SYS_mmap, 0, {V(0), V(PAGE), V(PROT_READ), V(MAP_PRIVATE), F(FILE_FD), V(1)}},
    {"mmap fixed kernel", SYS_mmap, 0,
     {V(0xffff800000000000), V(PAGE), V(PROT_READ), V(MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED), V(-1), V(0)}},
    {"munmap odd", SYS_munmap, 0, {V(1), V(PAGE)}},
    {"munmap kernel", SYS_munmap, 0, {V(0xffff800000000000), V(PAGE)}},
    {"munmap nothing", SYS_munmap, 0, {V(0x10000000), V(0)}},
    {"mprotect kernel", SYS_mprotect, 0, {V(0xffff800000000000), V(PAGE), V(PROT_READ)}},
    {"mprotect unmapped", SYS_mprotect, 0, {V(0x10000), V(PAGE), V(PROT_READ)}},
    {"mprotect bad protection", SYS_mprotect, 0, {V(0x10000), V(PAGE), V(0x77777777)}},
    {"mprotect odd", SYS_mprotect, 0, {V(0x10001), V(PAGE), V(PROT_READ)}},
    {"uname", SYS_uname, 0, {P(390)}},
    {"sysinfo", SYS_sysinfo, 0, {P(112)}},
    {"getrandom", SYS_getrandom, 0, {P(64), L(64), V(0)}},
    {"getrandom bad flags", SYS_getrandom, 0, {P(64), L(64), V(0x100)}},
    {"getrusage", SYS_getrusage, 0, {V(RUSAGE_SELF), P(144)}},
    {"getrusage bad who", SYS_getrusage, 0, {V(77), P(144)}},
    {"getgroups", SYS_getgroups, ANY_POSITIVE, {V(0), V(0)}},
    {"getgroups negative", SYS_getgroups, 0, {V(-1), P(4)}},
    {"prlimit64 get", SYS_prlimit64, 0, {V(0), V(RLIMIT_NOFILE), V(0), P(16)}},
    {"prlimit64 set", SYS_prlimit64, 0, {V(0), V(RLIMIT_CORE), PF(limit_pair), V(0)}},
    {"prlimit64 bad resource", SYS_prlimit64, 0, {V(0), V(99), V(0), P(16)}},
    {"prlimit64 no process", SYS_prlimit64, 0, {V(0x7ffffff0), V(RLIMIT_NOFILE), V(0), P(16)}},
    {"sched_getaffinity", SYS_sched_getaffinity, ANY_POSITIVE | NO_SHORT, {V(0), V(1024), P(1024)}},
    {"sched_getaffinity small", SYS_sched_getaffinity, ANY_POSITIVE, {V(0), V(4), P(4)}},
    {"sched_getaffinity none", SYS_sched_getaffinity, ANY_POSITIVE, {V(0x7ffffff0), V(1024), P(1024)}},
    {"getpriority", SYS_getpriority, ANY_POSITIVE, {V(0), V(0)}},
    {"getpriority bad which", SYS_getpriority, 0, {V(9), V(0)}},
    {"getpriority none", SYS_getpriority, 0, {V(0), V(0x7ffffff0)}},
    {"setpriority bad which", SYS_setpriority, 0, {V(9), V(0), V(0)}},
    {"setpriority none", SYS_setpriority, 0, {V(0), V(0x7ffffff0), V(0)}},
    {"clock_nanosleep", SYS_clock_nanosleep, 0, {V(0), V(0), PF(short_time), V(0)}},
    {"clock_nanosleep bad time", SYS_clock_nanosleep, 0, {V(0), V(0), PF(bad_time), V(0)}},
    {"clock_nanosleep negative", SYS_clock_nanosleep, 0, {V(0), V(0), PF(negative_time), V(0)}},
    {"clock_nanosleep bad clock", SYS_clock_nanosleep, 0, {V(99), V(0), PF(short_time), V(0)}},
    {"timer_create", SYS_timer_create, 0, {V(0), PF(quiet_event), P(4)}},
    {"timer_create bad clock", SYS_timer_create, 0, {V(99), V(0), P(4)}},
    {"timer_settime no timer", SYS_timer_settime, 0, {V(77777), V(0), PF(timer_zero), P(32)}},
    {"rt_sigaction set", SYS_rt_sigaction, 0, {V(SIGUSR1), PF(action), V(0), V(8)}},
    {"rt_sigaction get", SYS_rt_sigaction, 0, {V(SIGUSR1), V(0), P(32), V(8)}},
    {"rt_sigaction kill", SYS_rt_sigaction, 0, {V(SIGKILL), PF(action), V(0), V(8)}},
    {"rt_sigaction no signal", SYS_rt_sigaction, 0, {V(65), PF(action), V(0), V(8)}},
    {"rt_sigaction bad size", SYS_rt_sigaction, 0, {V(SIGUSR1), PF(action), V(0), V(4)}},
    {"rt_sigprocmask set", SYS_rt_sigprocmask, 0, {V(SIG_BLOCK), PF(signal_set), V(0), V(8)}},
    {"rt_sigprocmask get", SYS_rt_sigprocmask, 0, {V(SIG_BLOCK), V(0), P(8), V(8)}},
    {"rt_sigprocmask bad how", SYS_rt_sigprocmask, 0, {V(9), PF(signal_set), V(0), V(8)}},
    {"rt_sigprocmask bad size", SYS_rt_sigprocmask, 0, {V(SIG_BLOCK), PF(signal_set), V(0), V(16)}},
    {"rt_sigsuspend bad size", SYS_rt_sigsuspend, 0, {P(8), V(9)}},
    {"rt_sigsuspend", SYS_rt_sigsuspend, NO_GOOD | NO_SHORT, {P(8), V(8)}},
    {"sigaltstack set", SYS_sigaltstack, 0, {PF(no_stack), V(0)}},
    {"sigaltstack get", SYS_sigaltstack, 0, {V(0), P(24)}},
    {"wait4 no children", SYS_wait4, 0, {V(-1), P(4), V(WNOHANG), P(144)}},
    {"wait4 bad options", SYS_wait4, 0, {V(-1), P(4), V(0x100), V(0)}},
    {"kill none", SYS_kill, 0, {V(0x7ffffff0), V(0)}},
    {"kill bad signal", SYS_kill, 0, {V(0), V(65)}},
    {"kill lowest", SYS_kill, 0, {V(INT_MIN), V(0)}},
    {"setpgid none", SYS_setpgid, 0, {V(0x7ffffff0), V(0)}},
    {"setpgid negative", SYS_setpgid, 0, {V(0), V(-1)}},
    {"prctl name", SYS_prctl, 0, {V(16), P(16), V(0), V(0), V(0)}},
    {"prctl set name", SYS_prctl, 0, {V(15), P(16), V(0), V(0), V(0)}},
    {"prctl unknown", SYS_prctl, 0, {V(0x7777), V(0), V(0), V(0), V(0)}},
    {"arch_prctl get", SYS_arch_prctl, 0, {V(0x1003), P(8)}},
    {"arch_prctl unknown", SYS_arch_prctl, 0, {V(0x7777), P(8)}},
    {"rseq bad size", SYS_rseq, NO_SHORT, {P(32), V(8), V(0), V(0)}},
    {"set_robust_list bad size", SYS_set_robust_list, 0, {P(24), V(23)}},
    {"set_tid_address", SYS_set_tid_address, ANY_POSITIVE, {P(4)}},
    {"futex wake", SYS_futex, 0, {P(4), V(1), V(1), V(0), V(0), V(0)}},
    {"futex wait other value", SYS_futex, 0, {P(4), V(0), V(5), V(0), V(0), V(0)}},
    {"futex wait bad time", SYS_futex, NULL_WAITS, {P(4), V(0), V(0), PF(bad_time), V(0), V(0)}},
    {"futex wait", SYS_futex, NULL_WAITS, {P(4), V(0), V(0), PF(short_time), V(0), V(0)}},
    {"futex unknown", SYS_futex, 0, {P(4), V(99), V(0), V(0), V(0), V(0)}},
    {"execve path", SYS_execve, NO_GOOD, {S("file"), V(0), V(0)}},
    {"execve not executable", SYS_execve, 0, {S("file"), V(0), V(0)}},
    {"execve folder", SYS_execve, 0, {S("folder"), V(0), V(0)}},
    {"execve arguments", SYS_execve, 0, {S("executable"), P(16), V(0)}},
    {"execve environment", SYS_execve, 0, {S("executable"), V(0), P(16)}},
    {"clone bad flags", SYS_clone, 0, {V(0x10000), V(0), V(0), V(0), V(0)}},
    {"clone3 bad flags", SYS_clone3, 0, {PF(clone_arguments), V(88)}},
    {"clone3 bad size", SYS_clone3, 0, {PF(clone_arguments), V(8)}},
    {"clone3 large size", SYS_clone3, 0, {PF(clone_arguments), V(8192)}},
    {"alarm", SYS_alarm, ANY_POSITIVE, {V(0)}},
    {"umask", SYS_umask, 0, {V(022)}},
    {"setresuid nothing", SYS_setresuid, 0, {V(-1), V(-1), V(-1)}},
    {"setresgid nothing", SYS_setresgid, 0, {V(-1), V(-1), V(-1)}},
    {"getuid and its kind", SYS_getuid, ANY_POSITIVE, {V(0)}},
    {"geteuid", SYS_geteuid, ANY_POSITIVE, {V(0)}},
    {"getgid", SYS_getgid, ANY_POSITIVE, {V(0)}},
    {"getegid", SYS_getegid, ANY_POSITIVE, {V(0)}},
    {"getpid", SYS_getpid, ANY_POSITIVE, {V(0)}},
    {"getppid", SYS_getppid, ANY_POSITIVE, {V(0)}},
    {"getpgrp", SYS_getpgrp, ANY_POSITIVE, {V(0)}},
    {"setsid", SYS_setsid, ANY_POSITIVE, {V(0)}},
    {"sync", SYS_sync, 0, {V(0)}},
    {"brk absurd", SYS_brk, ANY_POSITIVE, {V(-1)}},
    {"socket no family", SYS_socket, 0, {V(99), V(1), V(0)}},
    {"accept", SYS_accept, 0, {F(FILE_FD), P(16), PF(one_int)}},
    {"bind", SYS_bind, 0, {F(FILE_FD), PF(address), V(16)}},
    {"connect", SYS_connect, 0, {F(FILE_FD), PF(address), V(16)}},
    {"listen", SYS_listen, 0, {F(FILE_FD), V(1)}},
    {"shutdown", SYS_shutdown, 0, {F(FILE_FD), V(1)}},
    {"getpeername", SYS_getpeername, 0, {F(FILE_FD), P(16), PF(one_int)}},
    {"setsockopt", SYS_setsockopt, 0, {F(FILE_FD), V(1), V(2), PF(one_int), V(4)}},
    {"getxattr", SYS_getxattr, NO_GOOD | NO_SHORT, {S("file"), S("user.none"), P(16), V(16)}},
    {"lgetxattr", SYS_lgetxattr, NO_GOOD | NO_SHORT, {S("file"), S("user.none"), P(16), V(16)}},
    {"fgetxattr", SYS_fgetxattr, NO_GOOD | NO_SHORT | NO_DESCRIPTORS, {F(FILE_FD), S("user.none"), P(16), V(16)}},
    {"setxattr", SYS_setxattr, NO_GOOD | NO_SHORT, {S("file"), S("user.none"), PF(one_int), V(4), V(0x100)}},
    {"fsetxattr", SYS_fsetxattr, NO_GOOD | NO_SHORT | NO_DESCRIPTORS, {V(FILE_FD), S("user.none"), PF(one_int), V(4), V(0x100)}},
    {"removexattr", SYS_removexattr, NO_GOOD | NO_SHORT, {S("file"), S("user.none")}},
    {"llistxattr", SYS_llistxattr, NO_GOOD | NO_SHORT | NO_LENGTHS, {S("file"), P(64), V(64)}},
    {"flistxattr", SYS_flistxattr, NO_DESCRIPTORS | NO_GOOD, {V(-1), P(64), V(64)}},
    {"unknown call", 5000, 0, {V(0)}},
    {"negative call", -5, 0, {V(0)}},
};
#define CALLS (sizeof calls / sizeof *calls)

/* Three pages: usable, then a hole. Good values end at the hole, so one byte too many is noticed. */
static char *arena(void)
{
    static char *place;
    if (!place) {
        place = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (place == MAP_FAILED)
            exit(99);
        munmap(place + 2 * PAGE, PAGE);
        mprotect(place + 4 * PAGE, PAGE, PROT_READ);
        mprotect(place + 6 * PAGE, PAGE, PROT_NONE);
    }
    return place;
}

/* Bad pointers by number; NULL at the end. `valid` is how many good bytes come before the hole, for those that cross. */
static const char *const bad_pointers[] = {"null", "one", "kernel half", "kernel text", "last byte", "not canonical",
                                           "limit of user space", "unmapped", "read-only", "no access", "crossing",
                                           "crossing after one", NULL};

/* Good to read from, bad to write to. */
static long read_only_copy(const struct argument *argument, long size)
{
    char *page = arena() + 4 * PAGE;
    mprotect(page, PAGE, PROT_READ | PROT_WRITE);
    memset(page, 0, PAGE);
    if (argument->fill)
        memcpy(page, argument->fill, size);
    mprotect(page, PAGE, PROT_READ);
    return (long)page;
}

static long bad_pointer(int which, const struct argument *argument)
{
    char *hole = arena() + 2 * PAGE;
    long size = argument->kind == PATH ? (long)strlen(argument->fill) : argument->value;
    long valid = which == 10 ? size / 2 : 1;
    switch (which) {
    case 0: return 0;
    case 1: return 1;
    case 2: return (long)0xffff800000000000;
    case 3: return (long)0xffffffff80000000;
    case 4: return -1;
    case 5: return (long)0x0000800000000000;
    case 6: return 0x00007ffffffff000;
    case 7: return (long)hole;
    case 8: return read_only_copy(argument, size);
    case 9: return (long)(arena() + 6 * PAGE);
    }
    if (argument->fill)
        memcpy(hole - valid, argument->fill, valid);
    else
        memset(hole - valid, 0, valid);
    return (long)(hole - valid);
}

static const long absurd_lengths[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, LONG_MAX, LONG_MIN, -1};

/* Where the good values of this case are laid, from the hole downwards. */
static char *good_end;

static long good(const struct argument *argument)
{
    switch (argument->kind) {
    case POINTER:
        good_end -= (argument->value + 15) / 16 * 16;
        if (argument->fill)
            memcpy(good_end, argument->fill, argument->value);
        else
            memset(good_end, 0, argument->value);
        return (long)good_end;
    case PATH:
        good_end -= 64;
        strcpy(good_end, argument->fill);
        return (long)good_end;
    default:
        return argument->value;
    }
}

static void make_file(const char *name, mode_t mode, const char *text)
{
    unlink(name);
    int fd = MUST(open(name, O_RDWR | O_CREAT | O_TRUNC, 0600));
    MUST(write(fd, text, strlen(text)));
    MUST(fchmod(fd, mode));
    close(fd);
}

static void fix(int fd, int at)
{
    MUST(fd);
    if (fd != at) {
        MUST(dup2(fd, at));
        close(fd);
    }
}

static char home[4096];

/* The same folder, files and descriptors before every case. */
static void make_fixtures(void)
{
    int ends[2];
    char text[201];
    chmod(home, 0755); /* a case before this may have changed it */
    MUST(chdir(home));
    memset(text, 'x', 200);
    text[200] = 0;
    unlink("made");
    rmdir("made");
    make_file("file", 0644, text);
    make_file("other", 0644, text);
    make_file("executable", 0755, "\177ELF");
    mkdir("folder", 0755);
    unlink("link");
    MUST(symlink("file", "link"));
    for (int fd = 3; fd < 70; fd++)
        close(fd);
    fix(open("file", O_RDWR), FILE_FD);
    fix(open(".", O_RDONLY | O_DIRECTORY), DIR_FD);
    fix(open("/dev/null", O_RDWR), NULL_FD);
    fix(open("/dev/zero", O_RDWR), ZERO_FD);
    MUST(pipe2(ends, O_NONBLOCK));
    MUST(write(ends[1], "in the pipe", 11));
    fix(ends[0], PIPE_READ);
    fix(ends[1], PIPE_WRITE);
    fix(open("file", O_PATH), PATH_FD);
    fix(open("other", O_RDONLY), READ_ONLY);
    fix(open("other", O_WRONLY), WRITE_ONLY);
}

static void one_case(const struct call *call, int position, const char *what, long value)
{
    long v[6] = {0};
    good_end = arena() + 2 * PAGE;
    for (int i = 0; i < 6 && call->arguments[i].kind != END; i++)
        v[i] = i == position ? value : good(&call->arguments[i]);
    signal(SIGALRM, SIG_DFL);
    alarm(10);
    errno = 0;
    long result = syscall(call->number, v[0], v[1], v[2], v[3], v[4], v[5]);
    int error = errno;
    alarm(0);
    printf("%s %d=%s -> ", call->name, position + 1, what);
    if (result == -1 && error)
        printf("%s\n", strerrorname_np(error) ? strerrorname_np(error) : "unnamed errno");
    else if ((call->flags & ANY_POSITIVE) && result >= 0)
        printf("positive\n");
    else
        printf("%ld\n", result);
    fflush(stdout);
}

/* The next case of this call in `shared` order; false when there is none. */
static int nth_case(const struct call *call, int n)
{
    if (n == 0) {
        if (!(call->flags & NO_GOOD))
            one_case(call, -1, "all good", 0);
        return 1;
    }
    n--;
    for (int i = 0; i < 6 && call->arguments[i].kind != END; i++) {
        const struct argument *argument = &call->arguments[i];
        int count = 0;
        if (argument->kind == POINTER || argument->kind == PATH)
            count = 12;
        else if (argument->kind == LENGTH && !(call->flags & NO_LENGTHS))
            count = sizeof absurd_lengths / sizeof *absurd_lengths;
        else if (argument->kind == DESCRIPTOR && !(call->flags & NO_DESCRIPTORS))
            count = sizeof descriptors / sizeof *descriptors;
        if (n >= count) {
            n -= count;
            continue;
        }
        char text[32];
        switch (argument->kind) {
        case LENGTH:
            snprintf(text, sizeof text, "length %lx", absurd_lengths[n]);
            one_case(call, i, text, absurd_lengths[n]);
            return 1;
        case DESCRIPTOR:
            if ((call->flags & NO_DEVICES) && (descriptors[n].fd == NULL_FD || descriptors[n].fd == ZERO_FD))
                return 1;
            one_case(call, i, descriptors[n].name, descriptors[n].fd);
            return 1;
        default:
            if (argument->kind == PATH && n == 10 && strlen(argument->fill) < 2)
                return 1;
            if ((call->flags & NULL_WAITS) && n == 0 && argument->fill)
                return 1;
            if ((call->flags & NO_SHORT) && n >= 8)
                return 1;
            one_case(call, i, bad_pointers[n], bad_pointer(n, argument));
            return 1;
        }
    }
    return 0;
}

/* Runs the cases of one call in children: one that dies or hangs costs only its own case. */
static void all_cases(const struct call *call)
{
    int *next = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (next == MAP_FAILED)
        exit(99);
    for (*next = 0; *next >= 0;) {
        int status = 0;
        fflush(stdout);
        pid_t child = MUST(fork());
        if (child == 0) {
            struct rlimit none = {0, 0};
            setrlimit(RLIMIT_CORE, &none);
            for (;;) {
                make_fixtures();
                if (!nth_case(call, (*next)++))
                    break;
            }
            *next = -1;
            _exit(0);
        }
        while (waitpid(child, &status, 0) == -1 && errno == EINTR)
            ;
        if (status != 0) {
            printf("%s case %d -> ", call->name, *next);
            say_status("ended the child", status);
        }
        if (*next > 1000 || (WIFEXITED(status) && WEXITSTATUS(status) == 99))
            break;
    }
    munmap(next, PAGE);
}

int main(int argc, char **argv)
{
    (void)unused_iovec;
    if (argc != 2)
        return 2;
    umask(022);
    if (!getcwd(home, sizeof home))
        return 99;
    for (size_t i = 0; i < CALLS; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s", calls[i].name);
        for (char *at = name; *at; at++)
            if (*at == ' ')
                *at = '-';
        if (strcmp(argv[1], "list") == 0)
            puts(name);
        else if (strcmp(argv[1], name) == 0)
            all_cases(&calls[i]);
    }
    return 0;
}
