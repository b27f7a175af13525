//! The questions about names and files, as the carrier of a tree outside is asked them.

use abi::Errno;
use machine::{About, Extended, Foreign, Frames, Handle, Hold, LastLink, LockedRange, Refused, Room, Stamp, VirtAddr};
use ninep::{Change, TimeWish};

use super::super::limits::TRANSFER_BYTES_MAX;
use super::{
    HIDDEN, MAGIC, NOBODY, O_APPEND, O_DIRECT, O_EXCL, Service, Share, TOP, WALK_MAX, fid, handle_of, no, refused,
};

/// A name without the NUL at its end.
fn bare(name: &[u8]) -> &[u8] {
    name.strip_suffix(&[0]).unwrap_or(name)
}

/// One `linux_dirent64` without its name: what stands before it, and how long the whole is.
fn record(entry: &ninep::Entry<'_>) -> ([u8; 19], usize) {
    let bytes = (19 + entry.name.len() + 1).next_multiple_of(8);
    let mut head = [0; 19];
    head[..8].copy_from_slice(&entry.qid.path.to_le_bytes());
    head[8..16].copy_from_slice(&entry.next.to_le_bytes());
    head[16..18].copy_from_slice(&(bytes as u16).to_le_bytes());
    head[18] = entry.kind;
    (head, bytes)
}

/// The questions, as the carrier of a tree outside is asked them. A share lives as long as the machine.
impl Foreign for &'static Share {
    fn top(&self, index: usize) -> Result<Handle, Refused> {
        if index > 0 { Err(no(Errno::ENOENT)) } else { self.walk(handle_of(TOP), &[]).map(handle_of) }
    }

    fn release(&self, handle: Handle) {
        self.appending.borrow_mut().retain(|other| *other != handle);
        self.give_back(fid(handle));
    }

    fn about_name(&self, directory: Handle, name: &[u8]) -> Result<About, Refused> {
        self.for_once(directory, &[name], |new| self.client.facts(new)).map(|facts| self.about_of(&facts))
    }

    fn about_below(&self, directory: Handle, names: &[u8]) -> Result<About, Refused> {
        let mut list: [&[u8]; WALK_MAX] = [&[]; WALK_MAX];
        let mut count = 0;
        for name in names.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            *list.get_mut(count).ok_or(no(Errno::ENOSYS))? = name;
            count += 1;
        }
        let facts = self.for_once(directory, &list[..count], |new| self.client.facts(new));
        facts.map(|facts| self.about_of(&facts))
    }

    fn extended_below(&self, _: Handle, _: &[u8], _: LastLink, _: &mut Extended<'_>) -> Result<usize, Refused> {
        Err(no(Errno::ENOSYS))
    }

    fn find(&self, directory: Handle, name: &[u8]) -> Result<Handle, Refused> {
        self.walk(directory, &[name]).map(handle_of)
    }

    fn about(&self, handle: Handle) -> Result<About, Refused> {
        self.client.facts(fid(handle)).map(|facts| self.about_of(&facts)).map_err(refused)
    }

    fn room(&self, handle: Handle) -> Result<Room, Refused> {
        const READ_ONLY: u64 = 1;
        let space = self.client.space(fid(handle)).map_err(refused)?;
        Ok(Room {
            magic: MAGIC,
            block_bytes: space.block_bytes.into(),
            blocks: space.blocks,
            blocks_free: space.blocks_free,
            blocks_available: space.blocks_available,
            nodes: space.nodes,
            nodes_free: space.nodes_free,
            name_bytes_max: space.name_bytes_max.into(),
            flags: if self.service.is_read_only { READ_ONLY } else { 0 },
        })
    }

    /// The server is not asked: it has no such question. What it lets its user do follows from the mode, as far as that says.
    fn may(&self, handle: Handle, access: u32) -> Result<(), Refused> {
        const WRITE: u32 = 2;
        let about = self.about(handle)?;
        if access & WRITE != 0 && self.service.is_read_only {
            return Err(no(Errno::EROFS));
        }
        let is_directory = about.mode & 0o170_000 == 0o040_000;
        let granted = match self.service {
            // Root may all but execute what nobody may.
            Service { user: 0, .. } if is_directory || about.mode & 0o111 != 0 => 7,
            Service { user: 0, .. } => 6,
            Service { user, .. } if user == about.user => about.mode >> 6,
            Service { group, .. } if group == about.group => about.mode >> 3,
            _ => about.mode,
        };
        if access & !granted & 7 == 0 { Ok(()) } else { Err(no(Errno::EACCES)) }
    }

    fn link_target(&self, handle: Handle, into: &mut [u8]) -> Result<usize, Refused> {
        self.client.link_target(fid(handle), into).map_err(refused)
    }

    /// A place is opened as quickly.
    fn open_name(&self, _: Handle, _: &[u8], _: u32) -> Result<Handle, Refused> {
        Err(no(Errno::ENOSYS))
    }

    fn open(&self, place: Handle, flags: u32) -> Result<Handle, Refused> {
        self.opened(place, flags, |new| self.client.open(new, flags & !O_DIRECT).map(|_| ()))
    }

    fn create(&self, directory: Handle, name: &[u8], flags: u32, mode: u32) -> Result<Handle, Refused> {
        self.opened(directory, flags, |new| {
            self.client.create(new, name, flags & !O_DIRECT | O_EXCL, mode, NOBODY).map(|_| ())
        })
    }

    fn create_nameless(&self, _: Handle, _: u32, _: u32) -> Result<Handle, Refused> {
        Err(no(Errno::ENOTSUP))
    }

    fn place_of(&self, opening: Handle) -> Result<Handle, Refused> {
        self.walk(opening, &[]).map(handle_of)
    }

    /// An opening appends or not for good: the protocol cannot change it.
    fn set_flags(&self, opening: Handle, flags: u32) -> Result<(), Refused> {
        let same = (flags & O_APPEND != 0) == self.appends(opening);
        if same && flags & O_DIRECT == 0 { Ok(()) } else { Err(no(Errno::EINVAL)) }
    }

    fn make_directory(&self, directory: Handle, name: &[u8], mode: u32) -> Result<(), Refused> {
        self.client.make_directory(fid(directory), name, mode, NOBODY).map(drop).map_err(refused)
    }

    fn make_special(&self, directory: Handle, name: &[u8], mode: u32, special: (u32, u32)) -> Result<(), Refused> {
        let made = self.client.make_special(fid(directory), name, mode, special, NOBODY).map(drop).map_err(refused);
        // QEMU sets the mode of what it has made by opening it, which it refuses for what is no file: such things cannot be made.
        if made == Err(no(Errno::ENXIO)) { Err(no(Errno::EPERM)) } else { made }
    }

    fn make_symlink(&self, directory: Handle, name: &[u8], target: &[u8]) -> Result<(), Refused> {
        self.client.make_symlink(fid(directory), name, target, NOBODY).map(drop).map_err(refused)
    }

    fn link(&self, place: Handle, directory: Handle, name: &[u8]) -> Result<(), Refused> {
        self.client.link(fid(directory), fid(place), name).map_err(refused)
    }

    fn remove(&self, directory: Handle, name: &[u8]) -> Result<(), Refused> {
        self.client.remove(fid(directory), name, false).map_err(refused)
    }

    fn remove_directory(&self, directory: Handle, name: &[u8]) -> Result<(), Refused> {
        self.client.remove(fid(directory), name, true).map_err(refused)
    }

    /// The protocol replaces, or not; whether a name is free is asked before.
    fn rename(&self, old: (Handle, &[u8]), new: (Handle, &[u8]), flags: u32) -> Result<(), Refused> {
        const KEEP: u32 = 1;
        match flags {
            0 => {}
            KEEP => match self.about_name(new.0, new.1) {
                Ok(_) => return Err(no(Errno::EEXIST)),
                Err(Refused(number)) if number == Errno::ENOENT as u16 => {}
                Err(error) => return Err(error),
            },
            _ => return Err(no(Errno::EINVAL)),
        }
        self.client.rename((fid(old.0), old.1), (fid(new.0), new.1)).map_err(refused)
    }

    fn set_mode(&self, place: Handle, mode: u32) -> Result<(), Refused> {
        self.change(place, Change { mode: Some(mode), ..Change::default() })
    }

    fn set_owner(&self, place: Handle, user: Option<u32>, group: Option<u32>) -> Result<(), Refused> {
        self.change(place, Change { user, group, ..Change::default() })
    }

    fn set_times(&self, place: Handle, times: [Stamp; 2]) -> Result<(), Refused> {
        let [accessed, modified] = times.map(|stamp| match stamp {
            Stamp::Now => TimeWish::Now,
            Stamp::Omit => TimeWish::Keep,
            Stamp::At((seconds, nanos)) => TimeWish::At(seconds as u64, nanos.into()),
        });
        if times == [Stamp::Omit; 2] {
            return Ok(());
        }
        self.change(place, Change { accessed, modified, ..Change::default() })
    }

    fn extended(&self, place: Handle, what: Extended<'_>) -> Result<usize, Refused> {
        match what {
            Extended::Get { name, into } => self.extended_value(place, bare(name), into),
            Extended::List { into } => self.extended_value(place, b"", into),
            // One of no bytes is how the protocol removes.
            Extended::Set { value: [], .. } => Err(no(Errno::ENOTSUP)),
            Extended::Set { name, value, flags } => self.set_extended(place, bare(name), value, flags),
            Extended::Remove { name } => self.set_extended(place, bare(name), &[], 0),
        }
    }

    fn read_user(&self, _: Handle, _: u64, _: VirtAddr, _: usize) -> Result<usize, Refused> {
        Err(no(Errno::ENOSYS))
    }

    fn write_user(&self, _: Handle, _: u64, _: VirtAddr, _: usize) -> Result<usize, Refused> {
        Err(no(Errno::ENOSYS))
    }

    fn read(&self, opening: Handle, position: u64, into: &mut [u8]) -> Result<usize, Refused> {
        let mut done = 0;
        while done < into.len() {
            match self.client.read(fid(opening), position + done as u64, &mut into[done..]) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(_) if done > 0 => break,
                Err(failure) => return Err(refused(failure)),
            }
        }
        Ok(done)
    }

    fn write(&self, opening: Handle, position: u64, from: &[u8]) -> Result<usize, Refused> {
        let mut done = 0;
        while done < from.len() {
            match self.client.write(fid(opening), position + done as u64, &from[done..]) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(_) if done > 0 => break,
                Err(failure) => return Err(refused(failure)),
            }
        }
        Ok(done)
    }

    /// The protocol knows no holes: there is one behind the end.
    fn seek(&self, opening: Handle, position: u64, whence: u32) -> Result<u64, Refused> {
        const HOLE: u32 = 4;
        let bytes = self.about(opening)?.bytes;
        match position < bytes {
            true if whence == HOLE => Ok(bytes),
            true => Ok(position),
            false => Err(no(Errno::ENXIO)),
        }
    }

    fn resize(&self, handle: Handle, bytes: u64) -> Result<(), Refused> {
        self.change(handle, Change { bytes: Some(bytes), ..Change::default() })
    }

    fn allocate(&self, _: Handle, _: u32, _: u64, _: u64) -> Result<(), Refused> {
        Err(no(Errno::ENOTSUP))
    }

    fn sync(&self, opening: Handle, data_only: bool) -> Result<(), Refused> {
        self.client.sync(fid(opening), data_only).map_err(refused)
    }

    fn list(&self, opening: Handle, cookie: u64, into: &mut [u8]) -> Result<usize, Refused> {
        let (mut used, mut from, mut is_full) = (0, cookie, false);
        // Names that are hidden could be all that came.
        while used == 0 {
            let asked = into.len().min(TRANSFER_BYTES_MAX);
            let more = self.client.list(fid(opening), from, asked, &mut |entry| {
                from = entry.next;
                if entry.name.starts_with(HIDDEN) {
                    return true;
                }
                let (head, bytes) = record(entry);
                let Some(room) = into.get_mut(used..used + bytes) else {
                    is_full = true;
                    return false;
                };
                room.fill(0);
                room[..19].copy_from_slice(&head);
                room[19..19 + entry.name.len()].copy_from_slice(entry.name);
                used += bytes;
                true
            });
            match more.map_err(refused)? {
                _ if is_full && used == 0 => return Err(no(Errno::EINVAL)),
                true => {}
                false => break,
            }
        }
        Ok(used)
    }

    /// QEMU's server grants every lock: they hold inside of the machine, by the node ([`super::opened::File::locks_itself`]).
    fn lock(&self, _: Handle, _: Hold, _: u64, _: u64) -> Result<(), Refused> {
        Ok(())
    }

    fn lock_in_the_way(&self, _: Handle, _: Hold, _: u64, _: u64) -> Result<Option<LockedRange>, Refused> {
        Ok(None)
    }

    fn lock_whole(&self, _: Handle, _: Hold) -> Result<(), Refused> {
        Ok(())
    }

    fn map(&self, _: Handle, _: u64, _: bool) -> Result<Frames, Refused> {
        Err(no(Errno::ENODEV))
    }

    fn unmap(&self, _: Frames) {}
}
