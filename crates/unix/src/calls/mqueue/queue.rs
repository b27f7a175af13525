//! One queue: its messages in the order in which they go out, who waits for one, and who is told of the first.

use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use abi::Errno;
use abi::siginfo::{Cause, SI_MESGQ, SigInfo};
use kernel::schedule::WaitQueue;
use kernel::stream::Progress;
use machine::{KernelCell, TryQueue};

use super::open::Charge;
use crate::call::Call;
use crate::calls::signals::send::send_to_process;
use crate::task::process::Process;

pub struct Message {
    pub priority: u32,
    pub text: Vec<u8>,
}

/// Somebody who waits for a message; who sends it hands it over.
pub struct Receiver {
    given: KernelCell<Option<Message>>,
    pub woken: WaitQueue,
}

impl Receiver {
    pub fn new() -> Receiver {
        Receiver { given: KernelCell::new(None), woken: WaitQueue::new() }
    }

    pub fn take(&self) -> Option<Message> {
        self.given.borrow_mut().take()
    }
}

/// Who is to be told when a message comes to the empty queue.
pub struct Notice {
    pub process: Weak<Process>,
    pub pid: u32,
    pub value: u64,
    /// `None`: only nobody else is told.
    pub signal: Option<u32>,
}

pub struct Queue {
    pub messages_most: usize,
    pub message_bytes: usize,
    /// Its owner, group and mode.
    pub owner: (u32, u32, u32),
    /// The highest priority first, of one priority the oldest.
    messages: KernelCell<VecDeque<Message>>,
    receivers: KernelCell<VecDeque<Arc<Receiver>>>,
    notice: KernelCell<Option<Notice>>,
    progress: KernelCell<Progress>,
    pub readable: WaitQueue,
    pub writable: WaitQueue,
    _charge: Charge,
}

impl Queue {
    pub fn new((messages_most, message_bytes): (usize, usize), owner: (u32, u32, u32), charge: Charge) -> Queue {
        Queue {
            messages_most,
            message_bytes,
            owner,
            messages: KernelCell::new(VecDeque::new()),
            receivers: KernelCell::new(VecDeque::new()),
            notice: KernelCell::new(None),
            progress: KernelCell::new(Progress::default()),
            readable: WaitQueue::new(),
            writable: WaitQueue::new(),
            _charge: charge,
        }
    }

    pub fn count(&self) -> usize {
        self.messages.borrow().len()
    }

    pub fn is_full(&self) -> bool {
        self.count() >= self.messages_most
    }

    pub fn progress(&self) -> Progress {
        self.progress.get()
    }

    /// Bytes of all messages.
    pub fn bytes(&self) -> usize {
        self.messages.borrow().iter().map(|message| message.text.len()).sum()
    }

    /// Bytes that the queue and its messages take.
    pub fn held_bytes(&self) -> usize {
        let messages = self.messages.borrow();
        size_of::<Queue>() + messages.capacity() * size_of::<Message>() + self.bytes()
    }

    /// Who is to be told: how, by which signal, and its number.
    pub fn notified(&self) -> (u32, u32, u32) {
        const BY_NOTHING: u32 = 1;
        let notice = self.notice.borrow();
        let Some(notice) = &*notice else { return (0, 0, 0) };
        notice.signal.map_or((BY_NOTHING, 0, notice.pid), |signal| (0, signal, notice.pid))
    }

    /// Error: `ENOMEM`.
    pub fn enter(&self, receiver: &Arc<Receiver>) -> Result<(), Errno> {
        let mut receivers = self.receivers.borrow_mut();
        Ok(receivers.try_push_back(receiver.clone())?)
    }

    pub fn leave(&self, receiver: &Arc<Receiver>) {
        self.receivers.borrow_mut().retain(|other| !Arc::ptr_eq(other, receiver));
    }

    /// Gives the message to who waits longest, or keeps it; there is room. Error: `ENOMEM`.
    pub fn put(&self, call: &Call<'_>, message: Message) -> Result<(), Errno> {
        let receiver = self.receivers.borrow_mut().pop_front();
        if let Some(receiver) = receiver {
            *receiver.given.borrow_mut() = Some(message);
            call.unix.scheduler.wake(&receiver.woken);
            return Ok(());
        }
        {
            let mut messages = self.messages.borrow_mut();
            let place = messages.partition_point(|other| other.priority >= message.priority);
            messages.try_insert(place, message)?;
        }
        self.progress.borrow_mut().arrived += 1;
        if self.count() == 1 {
            self.tell(call);
        }
        call.unix.scheduler.wake(&self.readable);
        Ok(())
    }

    /// The first message has come: who asked for it is told, once.
    fn tell(&self, call: &Call<'_>) {
        let notice = self.notice.borrow_mut().take();
        let Some(Notice { process, value, signal: Some(signal), .. }) = notice else { return };
        let sender = call.process();
        let cause = Cause::Queue { pid: sender.pid as i32, uid: sender.user_ids.get().real, value };
        if let Some(process) = process.upgrade()
            && signal != 0
        {
            send_to_process(call.unix, &process, &SigInfo { signo: signal as i32, errno: 0, code: SI_MESGQ, cause });
        }
    }

    pub fn take(&self, call: &Call<'_>) -> Option<Message> {
        let message = self.messages.borrow_mut().pop_front()?;
        self.progress.borrow_mut().departed += 1;
        call.unix.scheduler.wake(&self.writable);
        Some(message)
    }

    /// Error: `EBUSY`.
    pub fn set_notice(&self, notice: Notice) -> Result<(), Errno> {
        let mut place = self.notice.borrow_mut();
        if place.is_some() {
            return Err(Errno::EBUSY);
        }
        *place = Some(notice);
        Ok(())
    }

    /// The process is not to be told any more.
    pub fn forget_notice(&self, pid: u32) {
        let mut place = self.notice.borrow_mut();
        if place.as_ref().is_some_and(|notice| notice.pid == pid) {
            *place = None;
        }
    }
}
