//! Restartable sequences (`rseq`): code of a program that starts again elsewhere when it is interrupted, and the
//! processor's number in the program's memory.
//!
//! ```text
//!   struct rseq  0 cpu_id_start  4 cpu_id  8 rseq_cs ──► 0 version  4 flags  8 start  16 bytes  24 abort
//!               16 flags        20 node_id 24 mm_cid       4 bytes before abort: the signature given at registration
//! ```
//! All numbers are 0, and written once, at registration: no thread changes its processor.

use abi::Errno;
use abi::nr;
use kernel::space::USER_LIMIT;
use kernel::stream::Caller;
use machine::{Held, Registers, VirtAddr};

use crate::call::Entry;
use crate::call::{Call, CallResult};
use crate::calls::signals::deliver::refuse;
use crate::emulator::Unix;
use crate::task::thread::{RestartArea, Task};

machine::relies_on_one_processor!("the numbers are those of the processor that a thread runs on");

/// Size and alignment of the first `struct rseq`; a program that knows more fields may give more bytes.
const AREA_BYTES: u32 = 32;
/// Where the fields end that this kernel fills in: AT_RSEQ_FEATURE_SIZE.
pub const FEATURE_BYTES: u32 = 28;
/// AT_RSEQ_ALIGN.
pub const ALIGNMENT: u32 = 32;
const UNREGISTER: u32 = 1;
/// The C library's word for a processor number that nobody keeps.
const CPU_ID_UNINITIALIZED: u32 = u32::MAX;
/// Offset of `rseq_cs`, the address of the sequence that the program is in.
const SEQUENCE: u64 = 8;

/// Errors: `EINVAL` for unknown flags, an area that is too small or not aligned, another area than the registered one, or
/// one to take back that was never given; `EPERM` for another signature; `EBUSY` when it is registered; `EFAULT`.
fn rseq(call: &mut Call<'_>, address: u64, bytes: u32, flags: u32, signature: u32) -> CallResult {
    let wanted = RestartArea { address, bytes, signature };
    let registered = call.task.restart_area();
    if flags & UNREGISTER != 0 {
        return take_back(call, flags, wanted);
    }
    if flags != 0 {
        return Err(Errno::EINVAL);
    }
    if let Some(area) = registered {
        return Err(match () {
            () if (area.address, area.bytes) != (address, bytes) => Errno::EINVAL,
            () if area.signature != signature => Errno::EPERM,
            () => Errno::EBUSY,
        });
    }
    if bytes < AREA_BYTES || !address.is_multiple_of(ALIGNMENT.into()) {
        return Err(Errno::EINVAL);
    }
    if address.checked_add(bytes.into()).is_none_or(|end| end > USER_LIMIT) {
        return Err(Errno::EFAULT);
    }
    call.write(address + SEQUENCE, &0u64)?;
    call.task.set_restart_area(Some(wanted));
    if tell(call, address, 0).is_err() {
        refuse(call.task, None);
    }
    Ok(0)
}

fn take_back(call: &Call<'_>, flags: u32, wanted: RestartArea) -> CallResult {
    let area = call.task.restart_area().ok_or(Errno::EINVAL)?;
    if flags != UNREGISTER || (area.address, area.bytes) != (wanted.address, wanted.bytes) {
        return Err(Errno::EINVAL);
    }
    if area.signature != wanted.signature {
        return Err(Errno::EPERM);
    }
    tell(call, area.address, CPU_ID_UNINITIALIZED)?;
    call.task.set_restart_area(None);
    Ok(0)
}

/// The processor is number 0 of node 0, whatever `cpu_id` says. Error: `EFAULT`.
fn tell(call: &Call<'_>, area: u64, cpu_id: u32) -> Result<(), Errno> {
    call.write(area, &[0, cpu_id])?;
    call.write(area + 20, &[0u32, 0])
}

/// The thread was pre-empted, or a handler is about to be entered: a sequence that it was in starts again where the
/// sequence says. A program that has told nonsense gets `SIGSEGV`.
#[cold]
pub fn interrupted(held: Held<'_>, unix: &Unix, task: &Task, area: RestartArea, registers: &mut Registers) {
    let restarted = restart_address(held, unix, task, area, registers.rip);
    let restarted = restarted.and_then(|target| {
        // In or not in it: the program sets the word anew before each sequence.
        if target != Target::NoSequence {
            let word = VirtAddr(area.address + SEQUENCE);
            while unix.machine.copy_out(word, &[0; 8]).is_err() {
                task.await_page(held)?;
            }
        }
        Ok(target)
    });
    match restarted {
        Ok(Target::Abort(address)) => registers.rip = address,
        Ok(Target::NoSequence | Target::Outside) => {}
        Err(_) => refuse(task, None),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Target {
    NoSequence,
    Outside,
    Abort(u64),
}

/// Where a thread that stands at `rip` has to go on. Errors: `EFAULT`, `EINVAL` for nonsense.
fn restart_address(held: Held<'_>, unix: &Unix, task: &Task, area: RestartArea, rip: u64) -> Result<Target, Errno> {
    let load = |address: u64, bytes: &mut [u8]| -> Result<(), Errno> {
        while unix.machine.copy_in(VirtAddr(address), bytes).is_err() {
            task.await_page(held)?;
        }
        Ok(())
    };
    let word = |address: u64| -> Result<u64, Errno> {
        let mut bytes = [0; 8];
        load(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    };
    let sequence = word(area.address + SEQUENCE)?;
    if sequence == 0 {
        return Ok(Target::NoSequence);
    }
    if sequence >= USER_LIMIT - 32 {
        return Err(Errno::EFAULT);
    }
    let [head, start, bytes, abort] =
        [word(sequence)?, word(sequence + 8)?, word(sequence + 16)?, word(sequence + 24)?];
    let (version, flags) = (head as u32, (head >> 32) as u32);
    let end = start.checked_add(bytes).filter(|end| *end < USER_LIMIT).ok_or(Errno::EINVAL)?;
    if version != 0 || abort >= USER_LIMIT || (start..end).contains(&abort) {
        return Err(Errno::EINVAL);
    }
    let mut signature = [0; 4];
    load(abort.wrapping_sub(4), &mut signature)?;
    if u32::from_le_bytes(signature) != area.signature {
        return Err(Errno::EINVAL);
    }
    if !(start..end).contains(&rip) {
        return Ok(Target::Outside);
    }
    if flags != 0 { Err(Errno::EINVAL) } else { Ok(Target::Abort(abort)) }
}

pub const CALLS: &[Entry] = &[(nr::RSEQ, |call, [a, b, c, d, ..]| rseq(call, a, b as u32, c as u32, d as u32))];
