//! Directories and symlinks of the host whose places the kernel remembers: the host tells when one of them moves, goes or gets other
//! rights, before the call of whoever did it returns.
//!
//! inotify(7) queues an event and signals its owner in the midst of rename(2), rmdir(2) and chmod(2). So the owner is the process that runs
//! the kernel, and a word says whether there is something to read: a question about a name costs no call for it. Where a file system
//! may be changed by another machine, or tells nothing, nobody is guarded. A mount over a guarded directory moves nothing; mounts are
//! looked at now and then.

use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use crate::host::{self, HostError, PollFd};
use crate::names;

/// Where the host tells; -1: nothing is guarded.
static TOLD: AtomicI32 = AtomicI32::new(-1);
/// The process that is signalled.
static OWNER: AtomicI32 = AtomicI32::new(0);
static HAS_NEWS: AtomicBool = AtomicBool::new(false);
/// How often something may have moved, from 1.
static MOVES: AtomicU64 = AtomicU64::new(1);
/// The list of mounts, and when it was looked at last.
static MOUNTS: AtomicI32 = AtomicI32::new(-1);
static MOUNTS_SEEN: AtomicU64 = AtomicU64::new(0);

/// A mount that the host makes is noticed after so long at the latest.
const MOUNTS_NS: u64 = 1_000_000;

/// Nothing else of ours sends it, and who does not catch it ignores it (SIGURG).
pub const SIGNAL: i32 = 23;

const IN_ATTRIB: u32 = 0x4;
const IN_DELETE_SELF: u32 = 0x400;
const IN_MOVE_SELF: u32 = 0x800;
const IN_UNMOUNT: u32 = 0x2000;
/// Said of a watch that was taken away.
const IN_IGNORED: u32 = 0x8000;

/// `struct inotify_event` without its name: number, mask, cookie, bytes of the name.
const EVENT_BYTES: usize = 16;

/// Guards what is at a place; returns the number of the watch.
pub fn guard(place: i32) -> Result<i32, HostError> {
    const ENOSYS: i32 = 38;
    if !names::tells_moves(place)? {
        return Err(HostError(ENOSYS));
    }
    if TOLD.load(Ordering::Relaxed) < 0 {
        MOUNTS.store(host::open_to_read(c"/proc/self/mountinfo")?, Ordering::Relaxed);
        TOLD.store(names::changes()?, Ordering::Relaxed);
    }
    names::watch(TOLD.load(Ordering::Relaxed), place, IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)
}

pub fn unguard(number: i32) {
    names::unwatch(TOLD.load(Ordering::Relaxed), number);
}

/// The host has signalled.
pub fn has_news() {
    HAS_NEWS.store(true, Ordering::Relaxed);
}

/// How often something may have moved.
pub fn moves() -> u64 {
    let told = TOLD.load(Ordering::Relaxed);
    if told >= 0 {
        own(told);
        if HAS_NEWS.swap(false, Ordering::Relaxed) && take_news(told) || mounts_changed() {
            MOVES.fetch_add(1, Ordering::Relaxed);
        }
    }
    MOVES.load(Ordering::Relaxed)
}

/// The signal comes to whoever asks; what came to the one before is looked for.
fn own(told: i32) {
    let process = crate::hosts::process();
    if OWNER.load(Ordering::Relaxed) != process {
        names::signal_owner(told, process, SIGNAL);
        OWNER.store(process, Ordering::Relaxed);
        has_news();
    }
}

/// Takes what the host has to tell; whether anything but the end of watches is among it.
fn take_news(told: i32) -> bool {
    const PIECE_BYTES: usize = 1024;
    let (mut piece, mut has_moved) = ([0; PIECE_BYTES], false);
    while let Ok(bytes @ 1..) = host::read(told, &mut piece) {
        let mut rest = &piece[..bytes];
        while let Some((event, behind)) = rest.split_first_chunk::<EVENT_BYTES>() {
            let word = |at: usize| u32::from_le_bytes([event[at], event[at + 1], event[at + 2], event[at + 3]]);
            has_moved |= word(4) != IN_IGNORED;
            rest = behind.get(word(12) as usize..).unwrap_or(&[]);
        }
    }
    has_moved
}

/// Whether somebody has mounted something since this was asked last.
fn mounts_changed() -> bool {
    const POLLPRI: i16 = 2;
    let now = machine_x86::now().0;
    if now - MOUNTS_SEEN.load(Ordering::Relaxed) < MOUNTS_NS {
        return false;
    }
    MOUNTS_SEEN.store(now, Ordering::Relaxed);
    let mut entry = [PollFd { fd: MOUNTS.load(Ordering::Relaxed), events: POLLPRI, found: 0 }];
    host::wait_for(&mut entry, Some(0)) > 0
}
