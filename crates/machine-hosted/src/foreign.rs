//! The host's file system as trees outside of the machine ([`machine::Foreign`]): a handle is a descriptor of the host.

use core::sync::atomic::{AtomicI32, Ordering};

use machine_x86::Ground;
use synth::Target;

use machine::{
    About, CarryCode, Extended, Foreign, Frames, Handle, Hold, LastLink, LockedRange, PAGE_BYTES, Refused, Room, Stamp,
    UserMemory, VirtAddr,
};

use crate::host::{self, HostError};
use crate::threads::HostedGround;
use crate::{guards, names, windows};

/// Trees at most.
pub const TREES_MAX: usize = 8;
/// Descriptors of the trees' tops; -1: none.
static TOPS: [AtomicI32; TREES_MAX] = [const { AtomicI32::new(-1) }; TREES_MAX];

/// Where the host tells what happens to the files that are watched.
static CHANGES: AtomicI32 = AtomicI32::new(-1);

const ENOENT: u16 = 2;
const EFAULT: u16 = 14;
const PAGE: u64 = PAGE_BYTES as u64;
/// Pages of the program that are supplied at once when the host found one missing.
const SUPPLY_PAGES: u64 = 16;

/// The top of the next tree. The tool gives them in order.
pub fn add_tree(fd: i32) {
    if let Some(free) = TOPS.iter().find(|top| top.load(Ordering::Relaxed) < 0) {
        free.store(fd, Ordering::Relaxed);
    }
}

/// The host's names, if the tool gave any.
pub fn trees() -> Option<&'static dyn Foreign> {
    static HOST: HostTrees = HostTrees;
    (TOPS[0].load(Ordering::Relaxed) >= 0).then_some(&HOST)
}

struct HostTrees;

/// Makes some pages of the program present: the host's own copies do not ask the kernel for pages.
fn supply(from: VirtAddr, bytes: usize, is_written: bool) -> bool {
    let machine = crate::the();
    let end = from.0 + bytes as u64;
    let mut at = from.0;
    let mut byte = [0];
    for index in 0..SUPPLY_PAGES {
        if at >= end {
            break;
        }
        let touched = machine.copy_in(VirtAddr(at), &mut byte).is_ok()
            && (!is_written || machine.copy_out(VirtAddr(at), &byte).is_ok());
        if !touched {
            return index > 0;
        }
        at = (at & !(PAGE - 1)) + PAGE;
    }
    true
}

/// Moves bytes between a file and the program, in as many host calls as missing pages make necessary.
fn move_user(
    address: VirtAddr,
    bytes: usize,
    is_written: bool,
    part: impl Fn(usize) -> Result<usize, HostError>,
) -> Result<usize, Refused> {
    let allowed = HostedGround::clip(address, bytes);
    if allowed == 0 && bytes > 0 {
        return Err(Refused(EFAULT));
    }
    let mut done = 0;
    loop {
        match part(done) {
            Ok(0) => return Ok(done),
            Ok(moved) => {
                done += moved;
                // A fault ends a copy at the end of a page, the end of the file anywhere.
                if done >= allowed || !(address.0 + done as u64).is_multiple_of(PAGE) {
                    return Ok(done);
                }
            }
            Err(HostError(error)) if error as u16 == EFAULT => {}
            Err(error) if done == 0 => return Err(error.into()),
            Err(_) => return Ok(done),
        }
        let rest = VirtAddr(address.0 + done as u64);
        if !supply(rest, allowed - done, is_written) {
            return if done > 0 { Ok(done) } else { Err(Refused(EFAULT)) };
        }
    }
}

fn handle(fd: Result<i32, HostError>) -> Result<Handle, Refused> {
    Ok(Handle(fd?))
}

impl Foreign for HostTrees {
    fn top(&self, index: usize) -> Result<Handle, Refused> {
        match TOPS.get(index).map(|top| top.load(Ordering::Relaxed)) {
            Some(fd) if fd >= 0 => handle(names::place_at(fd, b".")),
            _ => Err(Refused(ENOENT)),
        }
    }

    fn release(&self, handle: Handle) {
        host::close(handle.0);
    }

    fn about_name(&self, directory: Handle, name: &[u8]) -> Result<About, Refused> {
        Ok(names::about_name(directory.0, name)?)
    }

    fn about_below(&self, directory: Handle, path: &[u8]) -> Result<About, Refused> {
        Ok(names::about_below(directory.0, path)?)
    }

    fn extended_below(
        &self,
        directory: Handle,
        names: &[u8],
        last: LastLink,
        what: &mut Extended<'_>,
    ) -> Result<usize, Refused> {
        Ok(names::extended_below(directory.0, names, last, what)?)
    }

    fn find(&self, directory: Handle, name: &[u8]) -> Result<Handle, Refused> {
        handle(names::place_at(directory.0, name))
    }

    fn about(&self, handle: Handle) -> Result<About, Refused> {
        Ok(names::about(handle.0)?)
    }

    fn room(&self, handle: Handle) -> Result<Room, Refused> {
        Ok(names::room(handle.0)?)
    }

    fn may(&self, handle: Handle, access: u32) -> Result<(), Refused> {
        Ok(names::may(handle.0, access)?)
    }

    fn link_target(&self, handle: Handle, into: &mut [u8]) -> Result<usize, Refused> {
        Ok(names::link_target(handle.0, into)?)
    }

    fn open_name(&self, directory: Handle, name: &[u8], flags: u32) -> Result<Handle, Refused> {
        handle(names::open_name(directory.0, name, flags))
    }

    fn open(&self, place: Handle, flags: u32) -> Result<Handle, Refused> {
        handle(names::open_again(place.0, flags))
    }

    fn create(&self, directory: Handle, name: &[u8], flags: u32, mode: u32) -> Result<Handle, Refused> {
        const O_CREAT_EXCL: u32 = 0o300;
        handle(names::open_at(directory.0, name, flags | O_CREAT_EXCL, mode))
    }

    fn create_nameless(&self, directory: Handle, flags: u32, mode: u32) -> Result<Handle, Refused> {
        const O_TMPFILE: u32 = 0o20_200_000;
        handle(names::open_at(directory.0, b".", flags | O_TMPFILE, mode))
    }

    fn place_of(&self, opening: Handle) -> Result<Handle, Refused> {
        handle(names::place_again(opening.0))
    }

    fn set_flags(&self, opening: Handle, flags: u32) -> Result<(), Refused> {
        Ok(names::set_flags(opening.0, flags)?)
    }

    fn make_directory(&self, directory: Handle, name: &[u8], mode: u32) -> Result<(), Refused> {
        Ok(names::make_directory(directory.0, name, mode)?)
    }

    fn make_special(&self, directory: Handle, name: &[u8], mode: u32, special: (u32, u32)) -> Result<(), Refused> {
        Ok(names::make_special(directory.0, name, mode, special)?)
    }

    fn make_symlink(&self, directory: Handle, name: &[u8], target: &[u8]) -> Result<(), Refused> {
        Ok(names::make_symlink(directory.0, name, target)?)
    }

    fn link(&self, place: Handle, directory: Handle, name: &[u8]) -> Result<(), Refused> {
        Ok(names::link(place.0, directory.0, name)?)
    }

    fn remove(&self, directory: Handle, name: &[u8]) -> Result<(), Refused> {
        Ok(names::remove(directory.0, name)?)
    }

    fn remove_directory(&self, directory: Handle, name: &[u8]) -> Result<(), Refused> {
        Ok(names::remove_directory(directory.0, name)?)
    }

    fn rename(&self, old: (Handle, &[u8]), new: (Handle, &[u8]), flags: u32) -> Result<(), Refused> {
        Ok(names::rename((old.0.0, old.1), (new.0.0, new.1), flags)?)
    }

    fn set_mode(&self, place: Handle, mode: u32) -> Result<(), Refused> {
        Ok(names::set_mode(place.0, mode)?)
    }

    fn set_owner(&self, place: Handle, user: Option<u32>, group: Option<u32>) -> Result<(), Refused> {
        Ok(names::set_owner(place.0, user, group)?)
    }

    fn set_times(&self, place: Handle, times: [Stamp; 2]) -> Result<(), Refused> {
        Ok(names::set_times(place.0, times)?)
    }

    fn extended(&self, place: Handle, what: Extended<'_>) -> Result<usize, Refused> {
        Ok(names::extended(place.0, &mut { what })?)
    }

    fn read_user(&self, opening: Handle, position: u64, to: VirtAddr, bytes: usize) -> Result<usize, Refused> {
        let bytes = bytes.min(HostedGround::clip(to, bytes).max(1));
        move_user(to, bytes, true, |done| {
            // SAFETY: the range is the program's; where nothing is mapped the host stops.
            unsafe { names::read_at(opening.0, position + done as u64, to.0 + done as u64, bytes - done) }
        })
    }

    fn write_user(&self, opening: Handle, position: u64, from: VirtAddr, bytes: usize) -> Result<usize, Refused> {
        let bytes = bytes.min(HostedGround::clip(from, bytes).max(1));
        move_user(from, bytes, false, |done| {
            // SAFETY: the range is the program's; where nothing is mapped the host stops.
            unsafe { names::write_at(opening.0, position + done as u64, from.0 + done as u64, bytes - done) }
        })
    }

    fn carry_code(&self, refused: Target) -> Option<CarryCode> {
        let [carry_in, carry_out] = names::MOVES.map(crate::call::host_call);
        Some(CarryCode { check: crate::call::not_reserved(refused), carry_in, carry_out })
    }

    fn read(&self, opening: Handle, position: u64, into: &mut [u8]) -> Result<usize, Refused> {
        // SAFETY: the host writes only into the slice.
        Ok(unsafe { names::read_at(opening.0, position, into.as_mut_ptr() as u64, into.len())? })
    }

    fn write(&self, opening: Handle, position: u64, from: &[u8]) -> Result<usize, Refused> {
        // SAFETY: the host only reads the slice.
        Ok(unsafe { names::write_at(opening.0, position, from.as_ptr() as u64, from.len())? })
    }

    fn seek(&self, opening: Handle, position: u64, whence: u32) -> Result<u64, Refused> {
        Ok(names::seek(opening.0, position, whence)?)
    }

    fn resize(&self, handle: Handle, bytes: u64) -> Result<(), Refused> {
        Ok(names::resize(handle.0, bytes)?)
    }

    fn allocate(&self, opening: Handle, mode: u32, position: u64, bytes: u64) -> Result<(), Refused> {
        Ok(names::allocate(opening.0, mode, position, bytes)?)
    }

    fn sync(&self, opening: Handle, data_only: bool) -> Result<(), Refused> {
        Ok(names::sync(opening.0, data_only)?)
    }

    fn list(&self, opening: Handle, cookie: u64, into: &mut [u8]) -> Result<usize, Refused> {
        Ok(names::list(opening.0, cookie, into)?)
    }

    fn lock(&self, opening: Handle, hold: Hold, first: u64, last: u64) -> Result<(), Refused> {
        Ok(names::lock(opening.0, hold, first, last)?)
    }

    fn lock_in_the_way(
        &self,
        opening: Handle,
        hold: Hold,
        first: u64,
        last: u64,
    ) -> Result<Option<LockedRange>, Refused> {
        Ok(names::lock_in_the_way(opening.0, hold, first, last)?)
    }

    fn lock_whole(&self, opening: Handle, hold: Hold) -> Result<(), Refused> {
        Ok(names::lock_whole(opening.0, hold)?)
    }

    fn map(&self, opening: Handle, first_page: u64, writable: bool) -> Result<Frames, Refused> {
        windows::open(opening.0, first_page, writable)
    }

    fn unmap(&self, window: Frames) {
        windows::close(&window);
    }

    fn guard(&self, place: Handle) -> Result<i32, Refused> {
        Ok(guards::guard(place.0)?)
    }

    fn unguard(&self, number: i32) {
        guards::unguard(number);
    }

    fn moves(&self) -> u64 {
        guards::moves()
    }

    fn watch(&self, place: Handle, events: u32) -> Result<i32, Refused> {
        let changes = match CHANGES.load(Ordering::Relaxed) {
            open @ 0.. => open,
            _ => {
                let made = names::changes()?;
                CHANGES.store(made, Ordering::Relaxed);
                made
            }
        };
        let number = names::watch(changes, place.0, events)?;
        crate::the().with_channels(|channels| channels.await_changes(changes));
        Ok(number)
    }

    fn unwatch(&self, number: i32) {
        names::unwatch(CHANGES.load(Ordering::Relaxed), number);
    }

    fn take_events(&self, into: &mut [u8]) -> usize {
        let changes = CHANGES.load(Ordering::Relaxed);
        let taken = if changes < 0 { 0 } else { host::read(changes, into).unwrap_or(0) };
        if taken == 0 && changes >= 0 {
            crate::the().with_channels(|channels| channels.await_changes(changes));
        }
        taken
    }
}
