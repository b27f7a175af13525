//! Message queues: msgget, msgsnd, msgrcv, msgctl.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::process::CAP_SYS_RESOURCE;
use abi::{Errno, Field};
use kernel::charge::{Held, Kept};
use kernel::schedule::WaitQueue;
use machine::{KernelCell, KernelValue, TryGrow, TryQueue, try_to_vec};

use super::objects::{
    IPC_INFO, IPC_NOWAIT, IPC_RMID, IPC_SET, IPC_STAT, Kind, OWNER_BYTES, Objects, Owner, READ, WRITE,
};
use crate::call::{Call, CallResult};
use crate::emulator::Unix;

const MSG_NOERROR: u32 = 0o10000;
const MSG_EXCEPT: u32 = 0o20000;
const MSG_COPY: u32 = 0o40000;

const MSG_STAT: u32 = 11;
const MSG_INFO: u32 = 12;
const MSG_STAT_ANY: u32 = 13;

/// `struct msqid64_ds` (`asm-generic/msgbuf.h`).
const STATUS_BYTES: usize = 120;

struct Message {
    kind: i64,
    text: Vec<u8>,
}

/// Which message is wanted.
#[derive(Clone, Copy)]
enum Wanted {
    Any,
    Kind(i64),
    AnyBut(i64),
    /// The lowest up to this.
    UpTo(i64),
    /// The one at a place, of which a copy is taken.
    At(i64),
}

impl Wanted {
    fn new(kind: i64, flags: u32) -> Wanted {
        match kind {
            place if flags & MSG_COPY != 0 => Wanted::At(place),
            0 => Wanted::Any,
            ..0 => Wanted::UpTo(kind.checked_neg().unwrap_or(i64::MAX)),
            _ if flags & MSG_EXCEPT != 0 => Wanted::AnyBut(kind),
            _ => Wanted::Kind(kind),
        }
    }

    fn takes(self, message: &Message) -> bool {
        match self {
            Wanted::Any => true,
            Wanted::Kind(kind) => message.kind == kind,
            Wanted::AnyBut(kind) => message.kind != kind,
            Wanted::UpTo(most) => message.kind <= most,
            Wanted::At(_) => false,
        }
    }

    /// Its place in the queue.
    fn find(self, queue: &VecDeque<Message>) -> Option<usize> {
        match self {
            Wanted::At(place) => usize::try_from(place).ok().filter(|place| *place < queue.len()),
            Wanted::UpTo(_) => {
                let taken = queue.iter().enumerate().filter(|(_, message)| self.takes(message));
                taken.min_by_key(|(_, message)| message.kind).map(|(place, _)| place)
            }
            _ => queue.iter().position(|message| self.takes(message)),
        }
    }
}

/// Somebody who waits for a message; who sends it hands it over.
struct Receiver {
    wanted: Wanted,
    room: usize,
    cuts: bool,
    pid: u32,
    given: KernelCell<Option<Result<Message, Errno>>>,
    woken: WaitQueue,
}

pub struct Queue {
    owner: Owner,
    messages: KernelCell<VecDeque<Message>>,
    bytes: KernelValue<u64>,
    bytes_most: KernelValue<u64>,
    receivers: KernelCell<Vec<Arc<Receiver>>>,
    room: WaitQueue,
    is_removed: KernelValue<bool>,
    sent_at: KernelValue<i64>,
    received_at: KernelValue<i64>,
    last_sender: KernelValue<u32>,
    last_receiver: KernelValue<u32>,
}

impl Kind for Queue {
    fn owner(&self) -> &Owner {
        &self.owner
    }

    fn held(&self) -> Held {
        let messages = self.messages.borrow();
        let texts: usize = messages.iter().map(|message| message.text.capacity()).sum();
        Held::new(Kept::Queues, size_of::<Queue>() + messages.capacity() * size_of::<Message>() + texts)
    }

    fn is_only_of(&self, pid: u32) -> bool {
        [self.last_sender.get(), self.last_receiver.get()].into_iter().all(|user| user == 0 || user == pid)
    }
}

/// A process was killed for want of memory: the queues that only it has used go with it.
pub fn lose(unix: &Unix, pid: u32) {
    loop {
        let Some(id) = unix.families.messages.borrow().only_of(pid) else { return };
        let queue = unix.families.messages.borrow_mut().remove(id.into());
        queue.iter().for_each(|queue| queue.end(unix));
    }
}

impl Queue {
    fn new(owner: Owner, bytes_most: u64) -> Queue {
        Queue {
            owner,
            messages: KernelCell::new(VecDeque::new()),
            bytes: KernelValue::new(0),
            bytes_most: KernelValue::new(bytes_most),
            receivers: KernelCell::new(Vec::new()),
            room: WaitQueue::new(),
            is_removed: KernelValue::new(false),
            sent_at: KernelValue::new(0),
            received_at: KernelValue::new(0),
            last_sender: KernelValue::new(0),
            last_receiver: KernelValue::new(0),
        }
    }

    fn has_room(&self, bytes: usize) -> bool {
        let most = self.bytes_most.get();
        self.bytes.get() + bytes as u64 <= most && (self.messages.borrow().len() as u64) < most
    }

    fn received(&self, call: &Call<'_>, pid: u32) {
        self.last_receiver.set(pid);
        self.received_at.set(call.now().seconds);
    }

    /// Gives the message to the first who waits for such a one, or keeps it. There is room in the queue's list.
    fn deliver(&self, call: &Call<'_>, message: Message) {
        loop {
            let place = self.receivers.borrow().iter().position(|receiver| receiver.wanted.takes(&message));
            let Some(place) = place else { break };
            let receiver = self.receivers.borrow_mut().remove(place);
            let fits = message.text.len() <= receiver.room || receiver.cuts;
            call.unix.scheduler.wake(&receiver.woken);
            if fits {
                self.received(call, receiver.pid);
                *receiver.given.borrow_mut() = Some(Ok(message));
                return;
            }
            *receiver.given.borrow_mut() = Some(Err(Errno::E2BIG));
        }
        self.bytes.set(self.bytes.get() + message.text.len() as u64);
        self.messages.borrow_mut().put_back(message);
    }

    /// Takes the wanted message if there is one. Error: `E2BIG` if it is too long; it stays then.
    fn take(&self, call: &Call<'_>, receiver: &Receiver) -> Option<Result<Message, Errno>> {
        let mut messages = self.messages.borrow_mut();
        let place = receiver.wanted.find(&messages)?;
        if messages[place].text.len() > receiver.room && !receiver.cuts {
            return Some(Err(Errno::E2BIG));
        }
        if let Wanted::At(_) = receiver.wanted {
            return Some(copy(&messages[place]));
        }
        let message = messages.remove(place)?;
        self.bytes.set(self.bytes.get() - message.text.len() as u64);
        drop(messages);
        self.received(call, receiver.pid);
        call.unix.scheduler.wake(&self.room);
        Some(Ok(message))
    }

    /// Everybody who waits for it learns that it has gone.
    fn end(&self, unix: &Unix) {
        self.is_removed.set(true);
        for receiver in self.receivers.borrow_mut().drain(..) {
            *receiver.given.borrow_mut() = Some(Err(Errno::EIDRM));
            unix.scheduler.wake(&receiver.woken);
        }
        unix.scheduler.wake(&self.room);
    }

    fn status(&self, id: u32) -> [u8; STATUS_BYTES] {
        let mut bytes = [0; STATUS_BYTES];
        self.owner.put(id, &mut bytes);
        [self.sent_at.get(), self.received_at.get(), self.owner.changed_at.get()].put(&mut bytes[OWNER_BYTES..]);
        [self.bytes.get(), self.messages.borrow().len() as u64, self.bytes_most.get()].put(&mut bytes[72..]);
        [self.last_sender.get(), self.last_receiver.get()].put(&mut bytes[96..]);
        bytes
    }

    /// Bytes, messages, the last sender and receiver, and the times of sending, receiving and changing.
    pub fn facts(&self) -> ([u64; 2], [u32; 2], [i64; 3]) {
        (
            [self.bytes.get(), self.messages.borrow().len() as u64],
            [self.last_sender.get(), self.last_receiver.get()],
            [self.sent_at.get(), self.received_at.get(), self.owner.changed_at.get()],
        )
    }
}

fn copy(message: &Message) -> Result<Message, Errno> {
    Ok(Message { kind: message.kind, text: try_to_vec(&message.text)? })
}

/// All queues.
pub type Queues = KernelCell<Objects<Queue>>;

/// Errors: `EEXIST`, `ENOENT`, `EACCES`, `ENOSPC`, `ENOMEM`.
pub fn msgget(call: &Call<'_>, key: u64, flags: u64) -> CallResult {
    let tunables = &call.unix.families.tunables;
    let (most, bytes) = (tunables.message_queues.get(), tunables.message_queue_bytes.get());
    let mut queues = call.unix.families.messages.borrow_mut();
    let make = |owner| Ok(Queue::new(owner, bytes));
    queues.get_or_make(call, (key as u32, flags as u32), most, |_| Ok(()), make).map(u64::from)
}

fn queue(call: &Call<'_>, id: u64) -> Result<Arc<Queue>, Errno> {
    call.unix.families.messages.borrow().get(id)
}

fn permit(call: &Call<'_>, queue: &Queue, wanted: u32) -> Result<(), Errno> {
    queue.owner.permit(&call.process().credentials.borrow(), wanted)
}

/// Errors: `EINVAL` for a kind below 1, too many bytes or no queue, `EFAULT`, `EACCES`, `EAGAIN`, `EIDRM`, `EINTR`, `ENOMEM`.
pub fn msgsnd(call: &Call<'_>, id: u64, address: u64, bytes: u64, flags: u32) -> CallResult {
    let kind: i64 = call.read(address)?;
    if bytes > call.unix.families.tunables.message_bytes.get() || (id as i32) < 0 || kind < 1 {
        return Err(Errno::EINVAL);
    }
    let text = call.read_bytes(address.checked_add(8).ok_or(Errno::EFAULT)?, bytes as usize)?;
    let queue = queue(call, id)?;
    loop {
        permit(call, &queue, WRITE)?;
        if queue.is_removed.get() {
            return Err(Errno::EIDRM);
        }
        if queue.has_room(text.len()) {
            break;
        }
        if flags & IPC_NOWAIT != 0 {
            return Err(Errno::EAGAIN);
        }
        if call.task.is_interrupted() {
            return Err(Errno::EINTR);
        }
        call.unix.scheduler.sleep(call.held, &[&queue.room], None);
    }
    queue.messages.borrow_mut().room_for(1).map_err(|_| Errno::ENOMEM)?;
    queue.last_sender.set(call.process().pid);
    queue.sent_at.set(call.now().seconds);
    queue.deliver(call, Message { kind, text });
    Ok(0)
}

/// Errors: `EINVAL`, `EFAULT`, `EACCES`, `E2BIG`, `ENOMSG`, `EIDRM`, `EINTR`, `ENOMEM`.
pub fn msgrcv(call: &Call<'_>, [id, address, bytes, kind, flags]: [u64; 5]) -> CallResult {
    let flags = flags as u32;
    let copies = flags & MSG_COPY != 0;
    if (id as i32) < 0 || (bytes as i64) < 0 || copies && (flags & MSG_EXCEPT != 0 || flags & IPC_NOWAIT == 0) {
        return Err(Errno::EINVAL);
    }
    let queue = queue(call, id)?;
    permit(call, &queue, READ)?;
    let receiver = Receiver {
        wanted: Wanted::new(kind as i64, flags),
        room: bytes as usize,
        cuts: flags & MSG_NOERROR != 0,
        pid: call.process().pid,
        given: KernelCell::new(None),
        woken: WaitQueue::new(),
    };
    let message = match queue.take(call, &receiver) {
        Some(taken) => taken?,
        None if flags & IPC_NOWAIT != 0 => return Err(Errno::ENOMSG),
        None => wait_for(call, &queue, receiver)?,
    };
    call.write(address, &message.kind)?;
    let given = message.text.len().min(bytes as usize);
    call.copy_out(address.checked_add(8).ok_or(Errno::EFAULT)?, &message.text[..given])?;
    Ok(given as u64)
}

fn wait_for(call: &Call<'_>, queue: &Queue, receiver: Receiver) -> Result<Message, Errno> {
    let receiver = Arc::new(receiver);
    queue.receivers.borrow_mut().try_push(receiver.clone())?;
    loop {
        let given = receiver.given.borrow_mut().take();
        if let Some(given) = given {
            return given;
        }
        if call.task.is_interrupted() {
            queue.receivers.borrow_mut().retain(|other| !Arc::ptr_eq(other, &receiver));
            return Err(Errno::EINTR);
        }
        call.unix.scheduler.sleep(call.held, &[&receiver.woken], None);
    }
}

/// Errors: `EINVAL`, `EFAULT`, `EACCES`, `EPERM`.
pub fn msgctl(call: &Call<'_>, id: u64, command: u32, address: u64) -> CallResult {
    if (id as i32) < 0 || (command as i32) < 0 {
        return Err(Errno::EINVAL);
    }
    match command {
        IPC_RMID => {
            let queue = queue(call, id)?;
            queue.owner.check_owner(&call.process().credentials.borrow())?;
            call.unix.families.messages.borrow_mut().remove(id);
            queue.end(call.unix);
            Ok(0)
        }
        IPC_SET => set(call, id, address),
        IPC_STAT => {
            let queue = queue(call, id)?;
            permit(call, &queue, READ)?;
            call.copy_out(address, &queue.status(id as u32))?;
            Ok(0)
        }
        MSG_STAT | MSG_STAT_ANY => {
            let (id, queue) = call.unix.families.messages.borrow().at(id)?;
            permit(call, &queue, if command == MSG_STAT { READ } else { 0 })?;
            call.copy_out(address, &queue.status(id))?;
            Ok(id.into())
        }
        IPC_INFO | MSG_INFO => tell_limits(call, command, address),
        _ => Err(Errno::EINVAL),
    }
}

fn set(call: &Call<'_>, id: u64, address: u64) -> CallResult {
    let mut record = [0; STATUS_BYTES];
    call.copy_in(address, &mut record)?;
    let bytes_most = u64::get(&record[88..]);
    let queue = queue(call, id)?;
    {
        let who = call.process().credentials.borrow();
        queue.owner.check_owner(&who)?;
        if bytes_most > call.unix.families.tunables.message_queue_bytes.get() && !who.can(CAP_SYS_RESOURCE) {
            return Err(Errno::EPERM);
        }
    }
    queue.bytes_most.set(bytes_most);
    queue.owner.set(&<[u32; 12]>::get(&record), call.now().seconds);
    // Who waits looks again: there may be more room, and other rights.
    call.unix.scheduler.wake(&queue.room);
    Ok(0)
}

/// `struct msginfo`: 7 words and a half one.
fn tell_limits(call: &Call<'_>, command: u32, address: u64) -> CallResult {
    const UNIT_BYTES: u32 = 16;
    const UNITS: u32 = 0xffff;
    let tunables = &call.unix.families.tunables;
    let [most, per_queue, queues] = [&tunables.message_bytes, &tunables.message_queue_bytes, &tunables.message_queues]
        .map(|limit| limit.get() as u32);
    let kept = call.unix.families.messages.borrow();
    let words: [u32; 8] = if command == MSG_INFO {
        let (mut messages, mut bytes) = (0, 0);
        for (_, queue) in kept.each() {
            messages += queue.messages.borrow().len() as u32;
            bytes += queue.bytes.get() as u32;
        }
        [kept.count as u32, messages, most, per_queue, queues, UNIT_BYTES, bytes, UNITS]
    } else {
        // Linux's constants, which count the limits it starts with.
        [512_000, 16_384, most, per_queue, queues, UNIT_BYTES, 16_384, UNITS]
    };
    let last = kept.last();
    drop(kept);
    call.write(address, &words)?;
    Ok(last)
}
