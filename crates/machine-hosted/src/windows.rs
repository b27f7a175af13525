//! Frames that are the host's own pages of a file. Behind the frames of memory the direct map has room for windows of
//! 1 MiB; each shows a part of one file, shared with everybody on the host. A program's page then shows the same part
//! of the same file.
//!
//! ```text
//!   DIRECT_MAP ── memory ── | window 0 | window 1 | …       frame numbers go on
//! ```

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use machine::{FrameNumber, Frames, KernelCell, PAGE_BYTES, Refused, WINDOW_PAGES};

use crate::frames;
use crate::host::{self, HostError, PROT_READ, PROT_WRITE};
use crate::hosts;
use crate::layout::direct;

/// Windows at once: 16 GiB. The host limits a process to 65,530 mappings, and programs need most of them.
const WINDOWS_MAX: usize = 16_384;
const ENOMEM: u16 = 12;

/// A part of a file. The kernel keeps the opening as long as the window.
#[derive(Clone, Copy)]
struct Window {
    fd: i32,
    offset: u64,
    rights: u64,
}

/// Windows that were opened or closed last, by index, and how often that was: other host processes show what was there until they make
/// the change, too.
static CHANGED: [AtomicU32; CHANGES_KEPT as usize] = [const { AtomicU32::new(0) }; CHANGES_KEPT as usize];
static CHANGES: AtomicU64 = AtomicU64::new(0);
const CHANGES_KEPT: u64 = 8;

static WINDOWS: KernelCell<Vec<Option<Window>>> = KernelCell::new(Vec::new());

/// First frame of window 0.
fn base() -> u32 {
    frames::end().next_multiple_of(WINDOW_PAGES as u32)
}

/// The number of the window that a frame is in.
pub fn index_of(frame: FrameNumber) -> Option<usize> {
    frame.number().checked_sub(base()).map(|number| (number as u64 / WINDOW_PAGES) as usize)
}

/// The file and the offset behind a frame.
pub fn source_of(frame: FrameNumber) -> Option<(i32, u64)> {
    let window = WINDOWS.borrow().get(index_of(frame)?).copied().flatten()?;
    let page = (frame.number() - base()) as u64 % WINDOW_PAGES;
    Some((window.fd, window.offset + page * PAGE_BYTES as u64))
}

pub fn open(fd: i32, first_page: u64, writable: bool) -> Result<Frames, Refused> {
    let mut windows = WINDOWS.borrow_mut();
    let free = windows.iter().position(Option::is_none).unwrap_or(windows.len());
    if free >= WINDOWS_MAX || windows.try_reserve(1).is_err() {
        return Err(Refused(ENOMEM));
    }
    let first = base() + (free as u64 * WINDOW_PAGES) as u32;
    let offset = first_page * PAGE_BYTES as u64;
    let rights = if writable { PROT_READ | PROT_WRITE } else { PROT_READ };
    let address = address(first);
    // SAFETY: the window is free, so nothing of the kernel is mapped there.
    unsafe { host::map_file(address, WINDOW_PAGES * PAGE_BYTES as u64, rights, fd, offset, false) }
        .map_err(|HostError(number)| Refused(number as u16))?;
    let window = Some(Window { fd, offset, rights });
    if free == windows.len() {
        windows.push(window);
    } else {
        windows[free] = window;
    }
    changed(free);
    // SAFETY: the numbers are those of the window, which is lent to one only.
    Ok(unsafe { Frames::new(first..first + WINDOW_PAGES as u32) })
}

/// Where the direct map shows the frame `number`.
fn address(number: u32) -> u64 {
    direct(number as u64 * PAGE_BYTES as u64)
}

pub fn close(frames: &Frames) {
    let Some(index) = index_of(frames.number(0)) else { return };
    if let Some(window) = WINDOWS.borrow_mut().get_mut(index)
        && window.take().is_some()
    {
        changed(index);
        // SAFETY: the kernel gives the window up.
        let _ = unsafe { host::unmap(address(frames.range().start), WINDOW_PAGES * PAGE_BYTES as u64) };
    }
}

/// This process, which has made all changes before, opens or closes a window.
fn changed(index: usize) {
    let count = CHANGES.load(Ordering::Relaxed);
    CHANGED[(count % CHANGES_KEPT) as usize].store(index as u32, Ordering::Relaxed);
    CHANGES.store(count + 1, Ordering::Relaxed);
    hosts::windows_changed();
}

/// Changes so far.
pub fn changes() -> u64 {
    CHANGES.load(Ordering::Relaxed)
}

/// Has this host process, which has made `seen` changes, show the windows that there are. What it does not map comes as it is touched.
pub fn catch_up(seen: u64) {
    let (changes, bytes) = (changes(), WINDOW_PAGES * PAGE_BYTES as u64);
    if changes - seen > CHANGES_KEPT {
        // SAFETY: the range holds nothing but windows.
        let _ = unsafe { host::unmap(address(base()), WINDOWS_MAX as u64 * bytes) };
        return;
    }
    for number in seen..changes {
        let index = CHANGED[(number % CHANGES_KEPT) as usize].load(Ordering::Relaxed);
        let start = address(base()) + u64::from(index) * bytes;
        if !show(start) {
            // SAFETY: nothing but that window is there, which is closed.
            let _ = unsafe { host::unmap(start, bytes) };
        }
    }
}

/// Maps the window that the address is in, which another host process opened.
pub fn show(touched: u64) -> bool {
    let Some(distance) = touched.checked_sub(address(base())) else { return false };
    let bytes = WINDOW_PAGES * PAGE_BYTES as u64;
    let index = distance / bytes;
    // Whoever opens or closes one touches none.
    let Some(window) = WINDOWS.borrow().get(index as usize).copied().flatten() else { return false };
    let start = address(base()) + index * bytes;
    // SAFETY: the place is that window's.
    unsafe { host::map_file(start, bytes, window.rights, window.fd, window.offset, false) }.is_ok()
}
