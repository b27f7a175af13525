//! The system as a whole: its name, its memory, its end; and what a system like this one does not have.

use abi::Errno;
use abi::process::{
    CAP_SYS_ADMIN, CAP_SYS_BOOT, CAP_SYSLOG, GRND_INSECURE, GRND_NONBLOCK, GRND_RANDOM, Sysinfo, Utsname,
};
use machine::{KernelCell, Nanos, NoMemory, PAGE_BYTES, TryGrow, try_to_vec};

use crate::call::Entry;
use crate::call::{Call, CallResult};
use crate::files::random::give_random;
use crate::limits::PATH_BYTES_MAX;
use abi::nr;
use alloc::vec::Vec;

/// What `uname` says; the version is that of the calls we follow.
pub const RELEASE: &[u8] = b"6.1.0-synthesis";
pub const VERSION: &[u8] = b"#1 Synthesis";

/// Longest host and domain name.
const NAME_BYTES_MAX: u64 = 64;

/// What `uname` gives, as it lies in a program's memory: programs ask far more often than names change.
pub struct SystemNames(KernelCell<[u8; Utsname::BYTES]>);

/// Bytes of each field, with the NUL behind the longest text.
const FIELD_BYTES: usize = Utsname::BYTES / 6;
/// Places of the fields that can be set.
const HOST: usize = 1;
const DOMAIN: usize = 5;

impl SystemNames {
    pub fn new(host: &[u8]) -> SystemNames {
        let names = SystemNames(KernelCell::new([0; Utsname::BYTES]));
        let fields: [&[u8]; 6] = [b"Linux", host, RELEASE, VERSION, b"x86_64", b"(none)"];
        fields.iter().enumerate().for_each(|(place, text)| names.set(place, text));
        names
    }

    /// Sets a field to `text`, cut at 64 bytes.
    fn set(&self, place: usize, text: &[u8]) {
        let mut record = self.0.borrow_mut();
        let field = &mut record[place * FIELD_BYTES..][..FIELD_BYTES];
        let bytes = text.len().min(FIELD_BYTES - 1);
        field.fill(0);
        field[..bytes].copy_from_slice(&text[..bytes]);
    }

    pub fn set_host(&self, name: &[u8]) {
        self.set(HOST, name);
    }

    pub fn set_domain(&self, name: &[u8]) {
        self.set(DOMAIN, name);
    }

    /// The host's name, up to its first NUL.
    pub fn host(&self) -> Result<Vec<u8>, NoMemory> {
        self.field(HOST)
    }

    pub fn domain(&self) -> Result<Vec<u8>, NoMemory> {
        self.field(DOMAIN)
    }

    fn field(&self, place: usize) -> Result<Vec<u8>, NoMemory> {
        let record = self.0.borrow();
        let field = &record[place * FIELD_BYTES..][..FIELD_BYTES];
        let bytes = field.iter().position(|byte| *byte == 0).unwrap_or(FIELD_BYTES);
        try_to_vec(&field[..bytes])
    }
}

fn uname(call: &Call<'_>, into: u64) -> CallResult {
    call.copy_out(into, &call.unix.system_names.0.get())?;
    Ok(0)
}

fn set_name(call: &Call<'_>, place: usize, from: u64, bytes: u64) -> CallResult {
    call.require(CAP_SYS_ADMIN)?;
    if bytes as i32 as u64 > NAME_BYTES_MAX {
        return Err(Errno::EINVAL);
    }
    let new = call.read_bytes(from, bytes as usize)?;
    call.unix.system_names.set(place, &new);
    Ok(0)
}

fn sysinfo(call: &Call<'_>, into: u64) -> CallResult {
    let pool = call.unix.pool;
    let uptime = call.unix.machine.now().0.div_ceil(Nanos::PER_SECOND);
    let record = Sysinfo {
        uptime: uptime as i64,
        totalram: (pool.total_frames() * PAGE_BYTES) as u64,
        freeram: (pool.free_frames() * PAGE_BYTES) as u64,
        procs: call.unix.tasks.task_count() as u16,
        mem_unit: 1,
        ..Sysinfo::zeroed()
    };
    call.write(into, &record)?;
    Ok(0)
}

/// Never sleeps: the machine's entropy is there from the start. Errors: `EINVAL`, `EFAULT`, `EINTR`.
fn getrandom(call: &Call<'_>, into: u64, bytes: u64, flags: u32) -> CallResult {
    const BYTES_MAX: u64 = i32::MAX as u64 & !(PAGE_BYTES as u64 - 1);
    if flags & !(GRND_NONBLOCK | GRND_RANDOM | GRND_INSECURE) != 0
        || flags & (GRND_RANDOM | GRND_INSECURE) == GRND_RANDOM | GRND_INSECURE
    {
        return Err(Errno::EINVAL);
    }
    let range = call.range(into, bytes.min(BYTES_MAX))?;
    call.with_io(false, |io| give_random(&call.unix.random, io, range)).map(|bytes| bytes as u64)
}

/// The kernel's log is not kept: it is empty.
fn syslog(call: &Call<'_>, action: i32, into: u64, bytes: i32) -> CallResult {
    match action {
        0 | 1 | 5..=8 | 9 => {}
        2..=4 => {
            if into == 0 || bytes < 0 {
                return Err(Errno::EINVAL);
            }
        }
        10 => {}
        _ => return Err(Errno::EINVAL),
    }
    if !matches!(action, 3 | 10) {
        call.require(CAP_SYSLOG)?;
    }
    Ok(0)
}

/// The magic numbers are those of `reboot(2)`. Halting, powering off and restarting all end the machine.
fn reboot(call: &Call<'_>, first: u32, second: u32, command: u32) -> CallResult {
    call.require(CAP_SYS_BOOT)?;
    if first != 0xfee1_dead || ![672_274_793, 85_072_278, 369_367_448, 537_993_216].contains(&second) {
        return Err(Errno::EINVAL);
    }
    match command {
        0 | 0x89ab_cdef => Ok(0), // Ctrl-Alt-Del off, on
        0x0123_4567 | 0xcdef_0123 | 0x4321_fedc | 0xa1b2_c3d4 => call.unix.finish(call.held, 0, 0),
        _ => Err(Errno::EINVAL),
    }
}

/// The default personality, and the wish not to have addresses randomized, which they are not; returns what was wished
/// before. Error: `EINVAL` for others.
fn personality(call: &Call<'_>, wanted: u32) -> CallResult {
    const ASK: u32 = 0xffff_ffff;
    const RANDOMIZATION_OFF: u32 = 0x004_0000;
    let mut settings = call.process().settings.borrow_mut();
    let before = if settings.no_randomization { RANDOMIZATION_OFF } else { 0 };
    match wanted {
        ASK => {}
        0 | RANDOMIZATION_OFF => settings.no_randomization = wanted != 0,
        _ => return Err(Errno::EINVAL),
    }
    Ok(before.into())
}

/// What needs a privilege that nobody has here: `EPERM`, as in a container.
fn forbidden(_: &mut Call<'_>, _: [u64; 6]) -> CallResult {
    Err(Errno::EPERM)
}

/// Copies between this process's memory and another's, in pieces that lie in one page on either side.
fn process_vm(call: &Call<'_>, arguments: [u64; 6], write: bool) -> CallResult {
    let [pid, local, local_count, remote, remote_count, flags] = arguments;
    if flags != 0 || local_count > VECTORS_MAX {
        return Err(Errno::EINVAL);
    }
    let mut local = read_vectors(call, local, local_count)?;
    limit_total(&mut local);
    if remote_count > VECTORS_MAX {
        return Err(Errno::EINVAL);
    }
    let mut remote = read_vectors(call, remote, remote_count)?;
    if [&local, &remote].into_iter().any(|side| side.iter().all(|(_, bytes)| *bytes == 0)) {
        return Ok(0);
    }
    let task = call.unix.tasks.task(pid as u32).ok_or(Errno::ESRCH)?;
    if !crate::calls::ptrace::attach::may_access(call.process(), &task.process) {
        return Err(Errno::EPERM);
    }
    let space = task.process.space().ok_or(Errno::ESRCH)?;
    let (mut done, mut piece) = (0, [0; PIECE_BYTES as usize]);
    let (mut at_local, mut at_remote) = (0, 0);
    while at_local < local.len() && at_remote < remote.len() {
        let (own, other) = (&mut local[at_local], &mut remote[at_remote]);
        let bytes = own.1.min(other.1).min(to_piece_end(own.0)).min(to_piece_end(other.0));
        let part = &mut piece[..bytes as usize];
        let moved = if write {
            call.copy_in(own.0, part).is_ok()
                && call.unix.reach(call.held, &space, |space| space.write_bytes(other.0, part)).is_ok()
        } else {
            let read = call.unix.reach(call.held, &space, |space| space.read_bytes(other.0, part)).is_ok();
            read && call.copy_out(own.0, part).is_ok()
        };
        if !moved {
            return if done > 0 { Ok(done) } else { Err(Errno::EFAULT) };
        }
        done += bytes;
        *own = (own.0.wrapping_add(bytes), own.1 - bytes);
        *other = (other.0.wrapping_add(bytes), other.1 - bytes);
        at_local += usize::from(own.1 == 0);
        at_remote += usize::from(other.1 == 0);
        if done % PART_BYTES < bytes {
            call.unix.scheduler.breathe(call.held);
            if call.task.is_ending() {
                return Ok(done);
            }
        }
    }
    Ok(done)
}

/// Most vectors of a call (Linux `UIO_MAXIOV`).
const VECTORS_MAX: u64 = 1024;
/// Divides a page.
const PIECE_BYTES: u64 = 512;
/// Bytes between two safe points.
const PART_BYTES: u64 = 16 << 10;

fn to_piece_end(address: u64) -> u64 {
    PIECE_BYTES - address % PIECE_BYTES
}

/// Cuts off what is more than one call may move (Linux `MAX_RW_COUNT`).
fn limit_total(vectors: &mut [(u64, u64)]) {
    let mut room = 0x7FFF_F000;
    for (_, bytes) in vectors {
        *bytes = (*bytes).min(room);
        room -= *bytes;
    }
}

/// Address and length of each of `count` vectors. Errors: `EFAULT`, `EINVAL` for a negative length.
pub fn read_vectors(call: &Call<'_>, address: u64, count: u64) -> Result<Vec<(u64, u64)>, Errno> {
    let mut vectors = Vec::new();
    vectors.room_for_exact(count as usize)?;
    for index in 0..count {
        let [base, bytes]: [u64; 2] = call.read(address.wrapping_add(index * 16))?;
        if bytes > i64::MAX as u64 {
            return Err(Errno::EINVAL);
        }
        vectors.put((base, bytes));
    }
    Ok(vectors)
}

/// Errors: `EFAULT`, `EPERM`.
fn swap(call: &Call<'_>, path: u64) -> CallResult {
    call.read_string(path, PATH_BYTES_MAX - 1, Errno::ENAMETOOLONG)?;
    Err(Errno::EPERM)
}

pub const CALLS: &[Entry] = &[
    (nr::UNAME, |call, [a, ..]| uname(call, a)),
    (nr::SETHOSTNAME, |call, [a, b, ..]| set_name(call, HOST, a, b)),
    (nr::SETDOMAINNAME, |call, [a, b, ..]| set_name(call, DOMAIN, a, b)),
    (nr::SYSINFO, |call, [a, ..]| sysinfo(call, a)),
    (nr::GETRANDOM, |call, [a, b, c, ..]| getrandom(call, a, b, c as u32)),
    (nr::SYSLOG, |call, [a, b, c, ..]| syslog(call, a as i32, b, c as i32)),
    (nr::REBOOT, |call, [a, b, c, ..]| reboot(call, a as u32, b as u32, c as u32)),
    (nr::PERSONALITY, |call, [a, ..]| personality(call, a as u32)),
    (nr::SWAPON, |call, [a, ..]| swap(call, a)),
    (nr::SWAPOFF, |call, [a, ..]| swap(call, a)),
    (nr::PIVOT_ROOT, forbidden),
    (nr::KEXEC_LOAD, forbidden),
    (nr::KEXEC_FILE_LOAD, forbidden),
    (nr::IOPL, forbidden),
    (nr::IOPERM, forbidden),
    (nr::INIT_MODULE, forbidden),
    (nr::FINIT_MODULE, forbidden),
    (nr::DELETE_MODULE, forbidden),
    (nr::BPF, forbidden),
    (nr::FANOTIFY_INIT, forbidden),
    (nr::USERFAULTFD, forbidden),
    (nr::PERF_EVENT_OPEN, |_, _| Err(Errno::EACCES)),
    (nr::USTAT, |_, _| Err(Errno::EINVAL)),
    (nr::PROCESS_VM_READV, |call, arguments| process_vm(call, arguments, false)),
    (nr::PROCESS_VM_WRITEV, |call, arguments| process_vm(call, arguments, true)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_name_leaves_nothing_of_a_longer_one() {
        let names = SystemNames::new(b"a-long-name");
        names.set_host(b"b");
        assert_eq!(names.host().unwrap(), b"b");
        assert_eq!(&names.0.get()[FIELD_BYTES..][..12], b"b\0\0\0\0\0\0\0\0\0\0\0");
        names.set(DOMAIN, &[b'd'; 70]);
        assert_eq!(&names.0.get()[5 * FIELD_BYTES..], [&[b'd'; 64][..], &[0]].concat());
        names.set_host(&[b'h'; 70]);
        assert_eq!(names.host().unwrap(), [b'h'; 64]);
    }
}
