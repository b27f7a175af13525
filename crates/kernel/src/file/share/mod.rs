//! A folder that somebody shares by 9P (virtio-9p): a carrier of names from outside, as the hosted machine's, whose calls are questions.
//!
//! Who asks sleeps until the answer has come, holding nothing; a thread that is to end does not wait for it. Nothing that names lead to
//! is kept: attributes and bytes are asked for each time. Maps keep pages ([`pages`]).

mod pages;
mod post;
mod questions;

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use abi::Errno;
use machine::{About, Courier, Foreign, Handle, KernelCell, KernelValue, NoMemory, Refused, TryGrow};
use ninep::{Change, Client, Facts, Failure, Fid, Session, Walked};

pub(super) use pages::{Pages, Puts, fetch};
pub(super) use post::buffer;
use post::{Errand, Post, Seat};
pub use post::{Sleeper, let_sleep};

/// The top of the tree.
const TOP: Fid = Fid(0);
/// No user and no group: what is made belongs to who serves.
const NOBODY: u32 = u32::MAX;
/// Linux's flags for opening, as far as they mean something here.
const O_EXCL: u32 = 0o200;
const O_APPEND: u32 = 0o2_000;
const O_DIRECT: u32 = 0o40_000;
/// Linux's magic number of 9P.
pub const MAGIC: u64 = 0x0102_1997;
/// Bytes that are read or written at a time, and held meanwhile.
pub(super) const PIECE_BYTES: usize = 65_536;
/// Names that one walk has at most.
const WALK_MAX: usize = 16;
/// What begins so is a file that was removed while it was open: it goes when it is closed.
pub(super) const HIDDEN: &[u8] = b".synthesis-open-";

/// Who serves, and how we see him.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Service {
    /// In whose name the server works.
    pub user: u32,
    pub group: u32,
    pub is_read_only: bool,
    /// The minor number of the device that the files seem to be on.
    pub device: u32,
}

/// The folder.
pub struct Share {
    client: Client<Post>,
    session: Session,
    service: Service,
    next_fid: KernelValue<u32>,
    free_fids: KernelCell<Vec<u32>>,
    /// Openings that append.
    appending: KernelCell<Vec<Handle>>,
    next_hidden: KernelValue<u64>,
    /// The files that somebody maps, or has mapped lately.
    shown: KernelCell<Vec<Weak<Pages>>>,
}

/// All shares of the machine.
static ALL: KernelCell<Vec<&'static Share>> = KernelCell::new(Vec::new());

/// A kernel boots: there are no shares yet, and nobody can sleep.
pub fn begin() {
    post::begin();
    ALL.borrow_mut().clear();
}

/// Nobody runs any more: from now on answers are looked for.
pub fn stop_sleeping() {
    post::begin();
}

/// Takes the answers that have come, on a machine whose devices do not interrupt.
fn look_at_all() {
    ALL.borrow().iter().for_each(|share| share.post().collect());
}

/// What maps have written goes to the servers, and what is still to be told to them: the machine is going to end.
pub fn finish_all(machine: &dyn machine::Machine) {
    for share in &*ALL.borrow() {
        share.shown().iter().for_each(Pages::put_all);
        share.post().finish(machine);
    }
}

/// What maps have written is at the servers afterwards. Error: `EIO` if some of it is not; `EINTR`.
pub fn sync_all() -> Result<(), Errno> {
    let all = machine::try_to_vec(&ALL.borrow())?;
    let mut result = Ok(());
    for share in all {
        for pages in share.shown() {
            result = pages.put_and_wait().and(result);
        }
    }
    result
}

fn refused(failure: Failure) -> Refused {
    Refused(match failure {
        Failure::Refused(number) => number,
        Failure::Broken => Errno::EIO as u16,
        Failure::GivenUp => Errno::EINTR as u16,
        Failure::NoMemory => Errno::ENOMEM as u16,
    })
}

fn no(errno: Errno) -> Refused {
    Refused(errno as u16)
}

fn fid(handle: Handle) -> Fid {
    Fid(handle.0 as u32)
}

/// Gives a fid back to the server.
struct GiveBack(&'static Share, Fid);

impl Errand for GiveBack {
    fn write(&self, seat: &mut Seat<'_>) -> Result<usize, Failure> {
        Client::<Post>::clunk_question(seat, self.1).map(|(_, bytes)| bytes)
    }

    fn end(self: Box<Self>, answer: Option<(&mut Seat<'_>, usize)>) {
        // Whatever the server says of it, it knows it no more.
        if answer.is_some() {
            let _ = self.0.free_fids.borrow_mut().try_push(self.1.0);
        }
    }
}

/// Removes a file that was hidden instead of removed.
struct Remove {
    share: &'static Share,
    directory: Handle,
    name: Vec<u8>,
}

impl Errand for Remove {
    fn write(&self, seat: &mut Seat<'_>) -> Result<usize, Failure> {
        Client::<Post>::remove_question(seat, fid(self.directory), &self.name).map(|(_, bytes)| bytes)
    }

    fn end(self: Box<Self>, _: Option<(&mut Seat<'_>, usize)>) {
        self.share.release(self.directory);
    }
}

impl Share {
    /// Agrees with the server behind a device.
    ///
    /// Errors: `EIO` if it does not speak 9P2000.L, or does not answer; `ENOMEM`.
    pub fn start(courier: &'static dyn Courier, service: Service) -> Result<&'static Share, Errno> {
        let client = Client { wire: Post::new(courier)? };
        let failed = |failure| super::foreign::errno_of(refused(failure));
        let session = client.version(courier.room() as u32).map_err(failed)?;
        client.attach(TOP, NOBODY).map_err(failed)?;
        let share = Share {
            client,
            session,
            service,
            next_fid: KernelValue::new(1),
            free_fids: KernelCell::new(Vec::new()),
            appending: KernelCell::new(Vec::new()),
            next_hidden: KernelValue::new(0),
            shown: KernelCell::new(Vec::new()),
        };
        ALL.borrow_mut().room_for(1)?;
        let share: &'static Share = Box::leak(machine::try_box(share)?);
        courier.when_answered(machine::try_arc(move || share.post().collect())?);
        ALL.borrow_mut().put(share);
        Ok(share)
    }

    /// The files that are mapped now.
    fn shown(&self) -> Vec<Arc<Pages>> {
        let mut shown = self.shown.borrow_mut();
        shown.retain(|pages| pages.strong_count() > 0);
        machine::try_collect(shown.iter().filter_map(Weak::upgrade)).unwrap_or_default()
    }

    /// Remembers a file that is mapped.
    fn show(&self, pages: &Arc<Pages>) -> Result<(), NoMemory> {
        let mut shown = self.shown.borrow_mut();
        shown.retain(|pages| pages.strong_count() > 0);
        shown.try_push(Arc::downgrade(pages))
    }

    fn post(&self) -> &Post {
        &self.client.wire
    }

    /// What is still to be told to the server is told: the machine is going to end.
    pub fn finish(&self, machine: &dyn machine::Machine) {
        self.post().finish(machine);
    }

    fn take_fid(&'static self) -> Fid {
        for left in self.post().settled_doubts() {
            self.give_back(left);
        }
        if let Some(free) = self.free_fids.borrow_mut().pop() {
            return Fid(free);
        }
        let next = self.next_fid.get();
        // Below the sign of a handle; that many are never out at a time.
        self.next_fid.set(if next == i32::MAX as u32 { 1 } else { next + 1 });
        Fid(next)
    }

    fn give_back(&'static self, fid: Fid) {
        // Without memory the server keeps it, and the number is not used again.
        if let Ok(errand) = machine::try_box(GiveBack(self, fid)) {
            self.post().send(errand);
        }
    }

    /// Has `ask` make a new fid stand for something.
    fn with_new<T>(&'static self, ask: impl FnOnce(Fid) -> Result<T, Failure>) -> Result<(Fid, T), Refused> {
        let new = self.take_fid();
        match ask(new) {
            Ok(found) => Ok((new, found)),
            Err(failure) => {
                match failure {
                    Failure::GivenUp | Failure::Broken => self.post().doubt(new),
                    Failure::Refused(_) | Failure::NoMemory => {
                        let _ = self.free_fids.borrow_mut().try_push(new.0);
                    }
                }
                Err(refused(failure))
            }
        }
    }

    /// A new fid for what `names` lead to.
    fn walk(&'static self, from: Handle, names: &[&[u8]]) -> Result<Fid, Refused> {
        let (new, walked) = self.with_new(|new| self.client.walk(fid(from), new, names))?;
        match walked {
            Walked::Whole(_) => Ok(new),
            Walked::Part(_) => {
                let _ = self.free_fids.borrow_mut().try_push(new.0);
                Err(no(Errno::ENOSYS))
            }
        }
    }

    /// A new fid for a place, which `open` opens: who appends is noted.
    fn opened(
        &'static self,
        place: Handle,
        flags: u32,
        open: impl FnOnce(Fid) -> Result<(), Failure>,
    ) -> Result<Handle, Refused> {
        let appends = flags & O_APPEND != 0;
        if appends {
            self.appending.borrow_mut().room_for(1).map_err(|_: NoMemory| no(Errno::ENOMEM))?;
        }
        let new = self.walk(place, &[])?;
        if let Err(failure) = open(new) {
            self.give_back(new);
            return Err(refused(failure));
        }
        if appends {
            self.appending.borrow_mut().put(handle_of(new));
        }
        Ok(handle_of(new))
    }

    /// Asks something of a fid that is only made for it.
    fn for_once<T>(
        &'static self,
        from: Handle,
        names: &[&[u8]],
        ask: impl FnOnce(Fid) -> Result<T, Failure>,
    ) -> Result<T, Refused> {
        let new = self.walk(from, names)?;
        let answer = ask(new).map_err(refused);
        self.give_back(new);
        answer
    }

    fn about_of(&self, facts: &Facts) -> About {
        let special = facts.device;
        let device = (0, self.service.device);
        let moment = |(seconds, nanos): (u64, u64)| (seconds as i64, nanos as u32);
        About {
            device,
            number: facts.qid.path,
            mode: facts.mode,
            links: u32::try_from(facts.links).unwrap_or(u32::MAX),
            user: facts.user,
            group: facts.group,
            special: abi_device(special),
            bytes: facts.bytes,
            blocks_512: facts.blocks_512,
            accessed: moment(facts.accessed),
            modified: moment(facts.modified),
            changed: moment(facts.changed),
            born: moment(facts.changed),
        }
    }

    fn change(&self, handle: Handle, change: Change) -> Result<(), Refused> {
        self.client.change(fid(handle), change).map_err(refused)
    }

    /// A name for a file that is removed while it is open.
    pub(super) fn hidden_name(&self, number: u64) -> Result<Vec<u8>, NoMemory> {
        let count = self.next_hidden.get();
        self.next_hidden.set(count + 1);
        let mut name = machine::try_to_vec(HIDDEN)?;
        let mut digits = [0; 33];
        for (place, digit) in digits.iter_mut().enumerate() {
            let nibble = |value: u64, place: usize| b"0123456789abcdef"[(value >> (60 - 4 * place) & 15) as usize];
            *digit = match place {
                0..16 => nibble(number, place),
                16 => b'-',
                _ => nibble(count, place - 17),
            };
        }
        name.try_extend_from_slice(&digits)?;
        Ok(name)
    }

    /// Removes a hidden file, some time.
    pub(super) fn remove_hidden(&'static self, directory: Handle, name: Vec<u8>) {
        match machine::try_box(Remove { share: self, directory, name }) {
            Ok(errand) => self.post().send(errand),
            Err(_) => self.release(directory),
        }
    }

    /// A handle of its own for the same place, if it can be had.
    pub(super) fn another(&'static self, place: Handle) -> Result<Handle, Refused> {
        self.walk(place, &[]).map(handle_of)
    }

    pub(super) fn appends(&self, opening: Handle) -> bool {
        self.appending.borrow().contains(&opening)
    }

    /// The whole value of an extended attribute, or the list of their names.
    fn extended_value(&'static self, place: Handle, name: &[u8], into: &mut [u8]) -> Result<usize, Refused> {
        let (new, bytes) = self.with_new(|new| self.client.extended(fid(place), new, name))?;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let only_asks = into.is_empty();
        let answer = match into.get_mut(..bytes) {
            _ if only_asks => Ok(bytes),
            None => Err(no(Errno::ERANGE)),
            Some(room) => self.read_whole(new, room),
        };
        self.give_back(new);
        answer
    }

    fn read_whole(&self, from: Fid, into: &mut [u8]) -> Result<usize, Refused> {
        let mut done = 0;
        while done < into.len() {
            match self.client.read(from, done as u64, &mut into[done..]).map_err(refused)? {
                0 => break,
                count => done += count,
            }
        }
        Ok(done)
    }

    fn set_extended(&'static self, place: Handle, name: &[u8], value: &[u8], flags: u32) -> Result<usize, Refused> {
        let new = self.walk(place, &[])?;
        let set = self.client.set_extended(new, name, value.len() as u64, flags).and_then(|()| {
            let mut done = 0;
            while done < value.len() {
                match self.client.write(new, done as u64, &value[done..])? {
                    0 => return Err(Failure::Broken),
                    count => done += count,
                }
            }
            Ok(())
        });
        if let Err(failure) = set {
            self.give_back(new);
            return Err(refused(failure));
        }
        // It is set when the fid is given back.
        let result = self.client.clunk(new).map(|()| 0).map_err(refused);
        let _ = self.free_fids.borrow_mut().try_push(new.0);
        result
    }
}

fn handle_of(fid: Fid) -> Handle {
    Handle(fid.0 as i32)
}

/// Linux's number of a device, major and minor.
fn abi_device(number: u64) -> (u32, u32) {
    let major = (number >> 8 & 0xFFF | number >> 32 & !0xFFF) as u32;
    let minor = (number & 0xFF | number >> 12 & !0xFF) as u32;
    (major, minor)
}

/// A share as the carrier of its tree.
pub(super) fn carrier(share: &'static Share) -> Result<&'static dyn Foreign, NoMemory> {
    Ok(Box::leak(machine::try_box(share)?))
}
