//! Trees of names that live outside of the machine: the host's own when hosted, shared folders of a virtual machine
//! elsewhere. The words are those that the usual carriers have (9P2000.L, FUSE): Linux's flags and error numbers.

use synth::Target;

use crate::{Fragment, Frames, VirtAddr};

/// Linux's number of the error that the other side reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused(pub u16);

/// Names something on the other side: a place in the tree, or an opening of it. It is used up by
/// [`Foreign::release`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Handle(pub i32);

/// A moment: seconds since 1970-01-01 UTC, and nanoseconds below one second.
pub type Moment = (i64, u32);

/// Everything that `stat` tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct About {
    /// Device of the volume, major and minor. With `number` it identifies the thing.
    pub device: (u32, u32),
    pub number: u64,
    /// Kind and permission bits, as Linux's `st_mode`.
    pub mode: u32,
    pub links: u32,
    pub user: u32,
    pub group: u32,
    /// Major and minor number of a device.
    pub special: (u32, u32),
    pub bytes: u64,
    pub blocks_512: u64,
    pub accessed: Moment,
    pub modified: Moment,
    pub changed: Moment,
    pub born: Moment,
}

/// What `statfs` tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Room {
    pub magic: u64,
    pub block_bytes: u64,
    pub blocks: u64,
    pub blocks_free: u64,
    pub blocks_available: u64,
    pub nodes: u64,
    pub nodes_free: u64,
    pub name_bytes_max: u64,
    /// Linux's mount flags.
    pub flags: u64,
}

/// A new value for one of the times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stamp {
    Now,
    Omit,
    At(Moment),
}

/// A lock against others on the other side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hold {
    Shared,
    Exclusive,
    /// Gives up.
    None,
}

/// A range of bytes that somebody on the other side has locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockedRange {
    pub hold: Hold,
    pub first: u64,
    pub last: u64,
    /// Process number there, -1 if it is no process's.
    pub process: i32,
}

/// What a question does with a symlink that is the last name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LastLink {
    Itself,
    Refused,
}

/// One half of the calls about extended attributes; both take a NUL-terminated name.
#[derive(Debug)]
pub enum Extended<'a> {
    Get { name: &'a [u8], into: &'a mut [u8] },
    Set { name: &'a [u8], value: &'a [u8], flags: u32 },
    List { into: &'a mut [u8] },
    Remove { name: &'a [u8] },
}

/// The code that carries bytes across, for a routine on the kernel stack. In: edi = handle, rsi = the program's address,
/// rdx = bytes, r10 = offset in the file. Out: rax = bytes carried, or Linux's error below 0. Clobbers rcx and r11. Where the
/// program's memory faults it stops there, as [`Foreign::read_user`] would without supplying pages.
pub struct CarryCode {
    /// The program may use the whole range, as far as it is below the program's limit. In: rsi, rdx. Clobbers rax and rcx.
    pub check: Fragment,
    /// To the program.
    pub carry_in: Fragment,
    /// From the program.
    pub carry_out: Fragment,
}

/// Linux's number for a call that there is not.
const ENOSYS: u16 = 38;

/// Pages that one [`Foreign::map`] shows: 1 MiB.
pub const WINDOW_PAGES: u64 = 256;

/// A tree of names outside of the machine. Nothing here sleeps for longer than the other side takes; what could wait
/// for somebody else there (a lock) is refused with `EAGAIN`.
///
/// The other side is shared with others: what was true of a name may be false at the next call.
/// All calls are made in the name of the user for whom the machine runs.
pub trait Foreign: Send + Sync {
    /// The top of tree `index`, counted from 0. Error: `ENOENT` if there are fewer.
    fn top(&self, index: usize) -> Result<Handle, Refused>;
    fn release(&self, handle: Handle);

    /// What `name` in a directory is, without following it if it is a symlink.
    fn about_name(&self, directory: Handle, name: &[u8]) -> Result<About, Refused>;
    /// What `names`, with slashes between them, lead to below a directory. All but the last must be directories there, not
    /// symlinks to some. Error: `ELOOP` for such a symlink, `ENOSYS` where only single names can be asked for.
    fn about_below(&self, directory: Handle, names: &[u8]) -> Result<About, Refused>;
    /// Asks for extended attributes of what `names` lead to, with the conditions and errors of `about_below`; a last name that is a
    /// symlink is meant itself or refused (`ELOOP`).
    fn extended_below(
        &self,
        directory: Handle,
        names: &[u8],
        last: LastLink,
        what: &mut Extended<'_>,
    ) -> Result<usize, Refused>;
    /// The place called `name` in a directory.
    fn find(&self, directory: Handle, name: &[u8]) -> Result<Handle, Refused>;
    fn about(&self, handle: Handle) -> Result<About, Refused>;
    fn room(&self, handle: Handle) -> Result<Room, Refused>;
    /// Whether the user may do this: bit 2 read, 1 write, 0 execute or search. Error: `EACCES`, `EROFS`.
    fn may(&self, handle: Handle, access: u32) -> Result<(), Refused>;
    /// Where a symlink leads; returns the bytes of the target.
    fn link_target(&self, handle: Handle, into: &mut [u8]) -> Result<usize, Refused>;

    /// Opens what has a name in a directory, if it is no symlink; never waits for somebody to open the other end.
    fn open_name(&self, directory: Handle, name: &[u8], flags: u32) -> Result<Handle, Refused>;
    /// Opens a place, with Linux's flags. It may take longer than `open_name`.
    fn open(&self, place: Handle, flags: u32) -> Result<Handle, Refused>;
    /// Makes a regular thing that must not exist, and opens it.
    fn create(&self, directory: Handle, name: &[u8], flags: u32, mode: u32) -> Result<Handle, Refused>;
    /// The same without a name (`O_TMPFILE`).
    fn create_nameless(&self, directory: Handle, flags: u32, mode: u32) -> Result<Handle, Refused>;
    /// The place of an opening.
    fn place_of(&self, opening: Handle) -> Result<Handle, Refused>;
    /// Changes append, direct and the like of an opening.
    fn set_flags(&self, opening: Handle, flags: u32) -> Result<(), Refused>;

    fn make_directory(&self, directory: Handle, name: &[u8], mode: u32) -> Result<(), Refused>;
    /// `mode` with its kind; `special` are a device's numbers.
    fn make_special(&self, directory: Handle, name: &[u8], mode: u32, special: (u32, u32)) -> Result<(), Refused>;
    fn make_symlink(&self, directory: Handle, name: &[u8], target: &[u8]) -> Result<(), Refused>;
    fn link(&self, place: Handle, directory: Handle, name: &[u8]) -> Result<(), Refused>;
    fn remove(&self, directory: Handle, name: &[u8]) -> Result<(), Refused>;
    fn remove_directory(&self, directory: Handle, name: &[u8]) -> Result<(), Refused>;
    /// `flags` are those of `renameat2`.
    fn rename(&self, old: (Handle, &[u8]), new: (Handle, &[u8]), flags: u32) -> Result<(), Refused>;

    fn set_mode(&self, place: Handle, mode: u32) -> Result<(), Refused>;
    fn set_owner(&self, place: Handle, user: Option<u32>, group: Option<u32>) -> Result<(), Refused>;
    /// Time of access, time of modification.
    fn set_times(&self, place: Handle, times: [Stamp; 2]) -> Result<(), Refused>;
    fn extended(&self, place: Handle, what: Extended<'_>) -> Result<usize, Refused>;

    /// Copies bytes to the program; less than asked for only at the end, or where the program's memory faults.
    fn read_user(&self, opening: Handle, position: u64, to: VirtAddr, bytes: usize) -> Result<usize, Refused>;
    /// Copies bytes from the program.
    fn write_user(&self, opening: Handle, position: u64, from: VirtAddr, bytes: usize) -> Result<usize, Refused>;
    /// The code to paste that does the two, if the carrier has such; it jumps to `refused` before anything is done.
    fn carry_code(&self, refused: Target) -> Option<CarryCode> {
        let _ = refused;
        None
    }
    fn read(&self, opening: Handle, position: u64, into: &mut [u8]) -> Result<usize, Refused>;
    fn write(&self, opening: Handle, position: u64, from: &[u8]) -> Result<usize, Refused>;
    /// The next data (`whence` 3) or hole (4) from `position` on.
    fn seek(&self, opening: Handle, position: u64, whence: u32) -> Result<u64, Refused>;
    /// Sets the size of an opening or of a place.
    fn resize(&self, handle: Handle, bytes: u64) -> Result<(), Refused>;
    /// `fallocate`.
    fn allocate(&self, opening: Handle, mode: u32, position: u64, bytes: u64) -> Result<(), Refused>;
    /// What was written is kept safe; `data_only` without the times.
    fn sync(&self, opening: Handle, data_only: bool) -> Result<(), Refused>;
    /// Records as Linux's `getdents64` lays them out, from a cookie on; returns the bytes, 0 at the end.
    fn list(&self, opening: Handle, cookie: u64, into: &mut [u8]) -> Result<usize, Refused>;

    /// Takes or gives up a lock on `first..=last` for this opening; never waits. Error: `EAGAIN`.
    fn lock(&self, opening: Handle, hold: Hold, first: u64, last: u64) -> Result<(), Refused>;
    /// The first lock in the way.
    fn lock_in_the_way(
        &self,
        opening: Handle,
        hold: Hold,
        first: u64,
        last: u64,
    ) -> Result<Option<LockedRange>, Refused>;
    /// The whole-thing lock (`flock`); never waits. Error: `EAGAIN`.
    fn lock_whole(&self, opening: Handle, hold: Hold) -> Result<(), Refused>;

    /// Shows [`WINDOW_PAGES`] pages from page `first_page` on as frames in a row, which are lent. The
    /// frames are the other side's own: everybody sees what anybody writes. Behind the end they fault. Error: `ENODEV`
    /// where the carrier cannot, `ENOMEM` when all windows are in use.
    fn map(&self, opening: Handle, first_page: u64, writable: bool) -> Result<Frames, Refused>;
    /// Takes the frames of a window back: nobody uses them any more.
    fn unmap(&self, window: Frames);

    /// Has [`Foreign::moves`] count from now on whenever a directory or symlink gets another place, goes, or gets other rights. Returns its
    /// number. Error: `ENOSYS` where nobody tells in time.
    fn guard(&self, place: Handle) -> Result<i32, Refused> {
        let _ = place;
        Err(Refused(ENOSYS))
    }
    fn unguard(&self, number: i32) {
        let _ = number;
    }
    /// Differs from before if something that is guarded may have got another place since. Never 0.
    fn moves(&self) -> u64 {
        1
    }

    /// Has what happens to a place told, by [`Foreign::take_events`]: Linux's bits for inotify. Returns its number, the
    /// same as long as the place is watched. Error: `ENOSYS` where nobody tells.
    fn watch(&self, place: Handle, events: u32) -> Result<i32, Refused> {
        let _ = (place, events);
        Err(Refused(ENOSYS))
    }
    fn unwatch(&self, number: i32) {
        let _ = number;
    }
    /// Whole records as Linux's inotify gives them, as many as fit; 0: nothing has happened. The machine's device has
    /// news when something has.
    fn take_events(&self, into: &mut [u8]) -> usize {
        let _ = into;
        0
    }
}
