//! The messages, each with what it asks and what may come back.

use crate::letter::{Answer, Failure, Letter, Sheet, TOO_LONG, Wire};
use crate::words::{Change, Entry, Facts, Fid, LockKind, LockRecord, NO_FID, Qid, Space, TimeWish, Walked};

/// Kinds of messages; the answer has the next number.
mod kind {
    pub const STATFS: u8 = 8;
    pub const LOPEN: u8 = 12;
    pub const LCREATE: u8 = 14;
    pub const SYMLINK: u8 = 16;
    pub const MKNOD: u8 = 18;
    pub const READLINK: u8 = 22;
    pub const GETATTR: u8 = 24;
    pub const SETATTR: u8 = 26;
    pub const XATTRWALK: u8 = 30;
    pub const XATTRCREATE: u8 = 32;
    pub const READDIR: u8 = 40;
    pub const FSYNC: u8 = 50;
    pub const LOCK: u8 = 52;
    pub const GETLOCK: u8 = 54;
    pub const LINK: u8 = 70;
    pub const MKDIR: u8 = 72;
    pub const RENAMEAT: u8 = 74;
    pub const UNLINKAT: u8 = 76;
    pub const VERSION: u8 = 100;
    pub const ATTACH: u8 = 104;
    pub const WALK: u8 = 110;
    pub const READ: u8 = 116;
    pub const WRITE: u8 = 118;
    pub const CLUNK: u8 = 120;
}

const VERSION: &[u8] = b"9P2000.L";
/// Names that one walk may have.
const WALK_MAX: usize = 16;
/// What a message of data has beside the data: size, kind, tag, fid, offset, count.
const DATA_HEADER_BYTES: usize = 24;
/// The least room in which everything but data fits.
const ROOM_MIN: u32 = 8192;
const NAME_BYTES_MAX: usize = 255;
/// What is asked of a file: all that `stat` tells (`P9_GETATTR_BASIC`).
const BASIC: u64 = 0x7FF;
const REMOVE_DIRECTORY: u32 = 0x200;

/// Asks a server.
pub struct Client<W> {
    pub wire: W,
}

/// What was agreed on with a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Session {
    /// The most bytes of a message.
    pub room: u32,
}

impl Session {
    /// The most bytes that one message brings or takes.
    pub fn data_bytes_max(&self) -> usize {
        self.room as usize - DATA_HEADER_BYTES
    }
}

type Letters<'a, W> = Letter<<W as Wire>::Sheet<'a>>;

impl<W: Wire> Client<W> {
    fn letter(&self, kind: u8) -> Result<Letters<'_, W>, Failure> {
        Ok(Letter::new(self.wire.sheet()?, kind))
    }

    /// The first message: agrees on the words and on how long messages may be.
    pub fn version(&self, room: u32) -> Result<Session, Failure> {
        let mut answer = self.letter(kind::VERSION)?.first().u32(room).text(VERSION).ask()?;
        let agreed = answer.u32()?;
        let mut words = [0; 32];
        let bytes = answer.text(&mut words)?;
        let is_known = &words[..bytes] == VERSION && (ROOM_MIN..=room).contains(&agreed);
        if is_known { Ok(Session { room: agreed }) } else { Err(Failure::Broken) }
    }

    /// `fid` stands for the top of the tree from now on; what is made belongs to `user`.
    pub fn attach(&self, fid: Fid, user: u32) -> Result<Qid, Failure> {
        self.letter(kind::ATTACH)?.fid(fid).fid(NO_FID).text(b"").text(b"").u32(user).ask()?.qid()
    }

    /// `to` stands for what `names` lead to from `from` on; without names for the same.
    pub fn walk(&self, from: Fid, to: Fid, names: &[&[u8]]) -> Result<Walked, Failure> {
        if names.len() > WALK_MAX {
            return Err(TOO_LONG);
        }
        let letter = self.letter(kind::WALK)?.fid(from).fid(to).u16(names.len() as u16);
        let mut answer = names.iter().fold(letter, |letter, name| letter.text(name)).ask()?;
        let came = usize::from(answer.u16()?);
        let mut last = Qid::default();
        for _ in 0..came {
            last = answer.qid()?;
        }
        match came {
            _ if came == names.len() => Ok(Walked::Whole(last)),
            0 => Err(Failure::Broken),
            _ if came < names.len() => Ok(Walked::Part(came)),
            _ => Err(Failure::Broken),
        }
    }

    pub fn facts(&self, fid: Fid) -> Result<Facts, Failure> {
        let mut answer = self.letter(kind::GETATTR)?.fid(fid).u64(BASIC).ask()?;
        if answer.u64()? & BASIC != BASIC {
            return Err(Failure::Broken);
        }
        let qid = answer.qid()?;
        let (mode, user, group) = (answer.u32()?, answer.u32()?, answer.u32()?);
        let (links, device, bytes) = (answer.u64()?, answer.u64()?, answer.u64()?);
        answer.u64()?;
        let blocks_512 = answer.u64()?;
        let [accessed, modified, changed] = [time(&mut answer)?, time(&mut answer)?, time(&mut answer)?];
        Ok(Facts { qid, mode, user, group, links, device, bytes, blocks_512, accessed, modified, changed })
    }

    pub fn change(&self, fid: Fid, change: Change) -> Result<(), Failure> {
        let bit = |is_set: bool, bit: u32| if is_set { 1 << bit } else { 0 };
        let (accessed, modified) = (wish(change.accessed), wish(change.modified));
        let valid = bit(change.mode.is_some(), 0)
            | bit(change.user.is_some(), 1)
            | bit(change.group.is_some(), 2)
            | bit(change.bytes.is_some(), 3)
            | bit(change.accessed != TimeWish::Keep, 4)
            | bit(change.modified != TimeWish::Keep, 5)
            | bit(matches!(change.accessed, TimeWish::At(..)), 7)
            | bit(matches!(change.modified, TimeWish::At(..)), 8);
        let letter = self.letter(kind::SETATTR)?.fid(fid).u32(valid).u32(change.mode.unwrap_or(0));
        let letter = letter.u32(change.user.unwrap_or(0)).u32(change.group.unwrap_or(0));
        let letter = letter.u64(change.bytes.unwrap_or(0)).u64(accessed.0).u64(accessed.1);
        letter.u64(modified.0).u64(modified.1).ask().map(drop)
    }

    pub fn space(&self, fid: Fid) -> Result<Space, Failure> {
        let mut answer = self.letter(kind::STATFS)?.fid(fid).ask()?;
        let (magic, block_bytes) = (answer.u32()?, answer.u32()?);
        let (blocks, blocks_free, blocks_available) = (answer.u64()?, answer.u64()?, answer.u64()?);
        let (nodes, nodes_free) = (answer.u64()?, answer.u64()?);
        answer.u64()?;
        let name_bytes_max = answer.u32()?;
        Ok(Space { magic, block_bytes, blocks, blocks_free, blocks_available, nodes, nodes_free, name_bytes_max })
    }

    /// `fid`, a place, is an opening from now on.
    pub fn open(&self, fid: Fid, flags: u32) -> Result<Qid, Failure> {
        self.letter(kind::LOPEN)?.fid(fid).u32(flags).ask()?.qid()
    }

    /// Makes a regular file in the directory `fid`, which is the opening of the file from now on.
    pub fn create(&self, fid: Fid, name: &[u8], flags: u32, mode: u32, group: u32) -> Result<Qid, Failure> {
        self.letter(kind::LCREATE)?.fid(fid).text(name).u32(flags).u32(mode).u32(group).ask()?.qid()
    }

    pub fn make_symlink(&self, directory: Fid, name: &[u8], target: &[u8], group: u32) -> Result<Qid, Failure> {
        self.letter(kind::SYMLINK)?.fid(directory).text(name).text(target).u32(group).ask()?.qid()
    }

    pub fn make_special(
        &self,
        directory: Fid,
        name: &[u8],
        mode: u32,
        (major, minor): (u32, u32),
        group: u32,
    ) -> Result<Qid, Failure> {
        let letter = self.letter(kind::MKNOD)?.fid(directory).text(name).u32(mode);
        letter.u32(major).u32(minor).u32(group).ask()?.qid()
    }

    pub fn make_directory(&self, directory: Fid, name: &[u8], mode: u32, group: u32) -> Result<Qid, Failure> {
        self.letter(kind::MKDIR)?.fid(directory).text(name).u32(mode).u32(group).ask()?.qid()
    }

    pub fn link(&self, directory: Fid, fid: Fid, name: &[u8]) -> Result<(), Failure> {
        self.letter(kind::LINK)?.fid(directory).fid(fid).text(name).ask().map(drop)
    }

    pub fn remove(&self, directory: Fid, name: &[u8], is_directory: bool) -> Result<(), Failure> {
        let flags = if is_directory { REMOVE_DIRECTORY } else { 0 };
        self.letter(kind::UNLINKAT)?.fid(directory).text(name).u32(flags).ask().map(drop)
    }

    /// The question that removes a file, for who takes the answer later.
    pub fn remove_question<S: Sheet>(sheet: S, directory: Fid, name: &[u8]) -> Result<(S, usize), Failure> {
        Letter::new(sheet, kind::UNLINKAT).fid(directory).text(name).u32(0).seal()
    }

    pub fn rename(&self, old: (Fid, &[u8]), new: (Fid, &[u8])) -> Result<(), Failure> {
        self.letter(kind::RENAMEAT)?.fid(old.0).text(old.1).fid(new.0).text(new.1).ask().map(drop)
    }

    /// Where a symlink leads: how many bytes of `into`. Error: `ENAMETOOLONG`.
    pub fn link_target(&self, fid: Fid, into: &mut [u8]) -> Result<usize, Failure> {
        let mut answer = self.letter(kind::READLINK)?.fid(fid).ask()?;
        let bytes = usize::from(answer.u16()?);
        if bytes > answer.left() {
            return Err(Failure::Broken);
        }
        let room = into.get_mut(..bytes).ok_or(TOO_LONG)?;
        answer.bytes(room).map(|()| bytes)
    }

    /// As much as one message brings; less than that and than was asked for only at the end.
    pub fn read(&self, fid: Fid, position: u64, into: &mut [u8]) -> Result<usize, Failure> {
        let letter = self.letter(kind::READ)?.fid(fid).u64(position);
        let asked = into.len().min(letter.left() - 4);
        let mut answer = letter.u32(asked as u32).ask()?;
        let count = answer.count(asked)?;
        answer.bytes(&mut into[..count]).map(|()| count)
    }

    /// The same for who takes the answer later: the question of `bytes` bytes.
    pub fn read_question<S: Sheet>(sheet: S, fid: Fid, position: u64, bytes: u32) -> Result<(S, usize), Failure> {
        Letter::new(sheet, kind::READ).fid(fid).u64(position).u32(bytes).seal()
    }

    /// Where in an answer of `came` bytes to a question for `asked` the data is, and how many bytes.
    pub fn data_of<S: Sheet>(sheet: S, asked: usize, came: usize) -> Result<(usize, usize), Failure> {
        let tag = sheet.tag();
        let mut answer = Answer::open(sheet, kind::READ, tag, came)?;
        let count = answer.count(asked)?;
        Ok((answer.position(), count))
    }

    /// As much as one message takes.
    pub fn write(&self, fid: Fid, position: u64, from: &[u8]) -> Result<usize, Failure> {
        let letter = self.letter(kind::WRITE)?.fid(fid).u64(position);
        let given = from.len().min(letter.left() - 4);
        let mut answer = letter.u32(given as u32).bytes(&from[..given]).ask()?;
        let count = answer.u32()? as usize;
        if count <= given { Ok(count) } else { Err(Failure::Broken) }
    }

    /// The question of a write of `bytes` bytes, for who takes the answer later.
    pub fn write_question_of<S: Sheet>(
        sheet: S,
        fid: Fid,
        position: u64,
        bytes: usize,
        read: impl Fn(usize, &mut [u8]),
    ) -> Result<(S, usize), Failure> {
        let mut letter = Letter::new(sheet, kind::WRITE).fid(fid).u64(position).u32(bytes as u32);
        let mut piece = [0; 512];
        for offset in (0..bytes).step_by(piece.len()) {
            let part = &mut piece[..(bytes - offset).min(512)];
            read(offset, part);
            letter = letter.bytes(part);
        }
        letter.seal()
    }

    /// How many of `given` bytes were written, by an answer of `came` bytes.
    pub fn written_of<S: Sheet>(sheet: S, given: usize, came: usize) -> Result<usize, Failure> {
        let tag = sheet.tag();
        let count = Answer::open(sheet, kind::WRITE, tag, came)?.u32()? as usize;
        if count <= given { Ok(count) } else { Err(Failure::Broken) }
    }

    /// The question that gives a fid back.
    pub fn clunk_question<S: Sheet>(sheet: S, fid: Fid) -> Result<(S, usize), Failure> {
        Letter::new(sheet, kind::CLUNK).fid(fid).seal()
    }

    pub fn clunk(&self, fid: Fid) -> Result<(), Failure> {
        self.letter(kind::CLUNK)?.fid(fid).ask().map(drop)
    }

    pub fn sync(&self, fid: Fid, data_only: bool) -> Result<(), Failure> {
        self.letter(kind::FSYNC)?.fid(fid).u32(data_only.into()).ask().map(drop)
    }

    /// Shows the names of an opened directory from `position` on, at most `bytes` bytes of them as they come, until `visit` says
    /// false. True: there were some.
    pub fn list(
        &self,
        fid: Fid,
        position: u64,
        bytes: usize,
        visit: &mut dyn FnMut(&Entry<'_>) -> bool,
    ) -> Result<bool, Failure> {
        let letter = self.letter(kind::READDIR)?.fid(fid).u64(position);
        let asked = bytes.min(letter.left() - 4);
        let mut answer = letter.u32(asked as u32).ask()?;
        let count = answer.count(asked)?;
        let end = answer.position() + count;
        let mut name = [0; NAME_BYTES_MAX];
        while answer.position() < end {
            let (qid, next, kind) = (answer.qid()?, answer.u64()?, answer.u8()?);
            let length = answer.text(&mut name)?;
            if answer.position() > end || length == 0 || name[..length].iter().any(|byte| matches!(byte, 0 | b'/')) {
                return Err(Failure::Broken);
            }
            if !visit(&Entry { qid, next, kind, name: &name[..length] }) {
                break;
            }
        }
        Ok(count > 0)
    }

    /// Takes or gives up a lock. False: somebody has it.
    pub fn lock(&self, fid: Fid, lock: LockRecord) -> Result<bool, Failure> {
        let letter = self.letter(kind::LOCK)?.fid(fid).u8(number_of(lock.kind)).u32(0);
        let mut answer = letter.u64(lock.first).u64(lock.bytes).u32(lock.process).text(b"synthesis").ask()?;
        match answer.u8()? {
            0 => Ok(true),
            1 | 3 => Ok(false),
            _ => Err(Failure::Broken),
        }
    }

    /// The lock that is in the way of this one.
    pub fn lock_in_the_way(&self, fid: Fid, lock: LockRecord) -> Result<Option<LockRecord>, Failure> {
        let letter = self.letter(kind::GETLOCK)?.fid(fid).u8(number_of(lock.kind));
        let mut answer = letter.u64(lock.first).u64(lock.bytes).u32(lock.process).text(b"synthesis").ask()?;
        let kind = match answer.u8()? {
            0 => LockKind::Read,
            1 => LockKind::Write,
            2 => return Ok(None),
            _ => return Err(Failure::Broken),
        };
        Ok(Some(LockRecord { kind, first: answer.u64()?, bytes: answer.u64()?, process: answer.u32()? }))
    }

    /// `to` stands for the value of an extended attribute, to be read; without a name for the list. How many bytes it has.
    pub fn extended(&self, fid: Fid, to: Fid, name: &[u8]) -> Result<u64, Failure> {
        self.letter(kind::XATTRWALK)?.fid(fid).fid(to).text(name).ask()?.u64()
    }

    /// `fid` stands for the value of an attribute that is to be written and clunked; one of no bytes, and no flags, removes it.
    pub fn set_extended(&self, fid: Fid, name: &[u8], bytes: u64, flags: u32) -> Result<(), Failure> {
        self.letter(kind::XATTRCREATE)?.fid(fid).text(name).u64(bytes).u32(flags).ask().map(drop)
    }
}

fn time<S: Sheet>(answer: &mut Answer<S>) -> Result<(u64, u64), Failure> {
    let (seconds, nanos) = (answer.u64()?, answer.u64()?);
    if nanos < 1_000_000_000 { Ok((seconds, nanos)) } else { Err(Failure::Broken) }
}

fn wish(wish: TimeWish) -> (u64, u64) {
    if let TimeWish::At(seconds, nanos) = wish { (seconds, nanos) } else { (0, 0) }
}

fn number_of(kind: LockKind) -> u8 {
    match kind {
        LockKind::Read => 0,
        LockKind::Write => 1,
        LockKind::None => 2,
    }
}
