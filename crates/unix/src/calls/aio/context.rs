//! A context: what has been done and not been fetched.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use kernel::charge::{Bill, Held, Kept};
use kernel::schedule::{Scheduler, WaitQueue};
use machine::{KernelCell, KernelValue, TryGrow, TryQueue};

/// `struct io_event`: the program's data, its record's address, the result, and nothing.
pub type Event = [u64; 4];

pub struct Context {
    /// How many the program asked for.
    pub events: u32,
    done: KernelCell<VecDeque<Event>>,
    pub arrived: WaitQueue,
    pub is_gone: KernelValue<bool>,
}

impl Context {
    /// Room for one more result. Errors: `EAGAIN`, `ENOMEM`.
    pub fn reserve(&self) -> Result<(), Errno> {
        let mut done = self.done.borrow_mut();
        if done.len() >= self.events as usize {
            return Err(Errno::EAGAIN);
        }
        Ok(done.room_for(1)?)
    }

    /// Something has been done; there is room.
    pub fn put(&self, scheduler: &Scheduler, event: Event) {
        self.done.borrow_mut().put_back(event);
        scheduler.wake(&self.arrived);
    }

    pub fn first(&self) -> Option<Event> {
        self.done.borrow().front().copied()
    }

    pub fn drop_first(&self) {
        self.done.borrow_mut().pop_front();
    }
}

/// All contexts, by process and number.
pub struct Contexts {
    all: KernelCell<Vec<(u32, u64, Arc<Context>)>>,
    /// Events that all contexts together were made for.
    charged: KernelValue<u64>,
}

impl Contexts {
    pub const fn new() -> Contexts {
        Contexts { all: KernelCell::new(Vec::new()), charged: KernelValue::new(0) }
    }

    pub fn charged(&self) -> u64 {
        self.charged.get()
    }

    /// Error: `EAGAIN` for more than `most`.
    pub fn charge(&self, events: u64, most: u64) -> Result<(), Errno> {
        let sum = self.charged.get() + events;
        if sum > most {
            return Err(Errno::EAGAIN);
        }
        self.charged.set(sum);
        Ok(())
    }

    pub fn discharge(&self, events: u64) {
        self.charged.set(self.charged.get() - events);
    }

    /// Adds what a process has made.
    pub fn bill(&self, pid: u32, bill: &mut Bill) {
        for (_, _, context) in self.all.borrow().iter().filter(|(whose, ..)| *whose == pid) {
            let bytes = size_of::<Context>() + context.done.borrow().capacity() * size_of::<Event>();
            bill.add(Held::new(Kept::Operations, bytes));
        }
    }

    /// Error: `ENOMEM`.
    pub fn add(&self, pid: u32, number: u64, events: u32) -> Result<(), Errno> {
        let mut all = self.all.borrow_mut();
        let place = all.partition_point(|(whose, other, _)| (*whose, *other) < (pid, number));
        all.room_for(1)?;
        let done = KernelCell::new(VecDeque::new());
        let context = Context { events, done, arrived: WaitQueue::new(), is_gone: KernelValue::new(false) };
        all.put_at(place, (pid, number, Arc::new(context)));
        Ok(())
    }

    fn place(&self, pid: u32, number: u64) -> Result<usize, Errno> {
        let all = self.all.borrow();
        all.binary_search_by_key(&(pid, number), |(whose, other, _)| (*whose, *other)).map_err(|_| Errno::EINVAL)
    }

    /// Error: `EINVAL`.
    pub fn get(&self, pid: u32, number: u64) -> Result<Arc<Context>, Errno> {
        let place = self.place(pid, number)?;
        Ok(self.all.borrow()[place].2.clone())
    }

    /// Error: `EINVAL`.
    pub fn remove(&self, pid: u32, number: u64) -> Result<Arc<Context>, Errno> {
        let place = self.place(pid, number)?;
        Ok(self.all.borrow_mut().remove(place).2)
    }

    /// The process has ended, or has another program.
    pub fn process_ended(&self, pid: u32) {
        loop {
            let gone = {
                let mut all = self.all.borrow_mut();
                let place = all.partition_point(|(whose, ..)| *whose < pid);
                if all.get(place).is_some_and(|(whose, ..)| *whose == pid) { Some(all.remove(place).2) } else { None }
            };
            let Some(context) = gone else { return };
            self.discharge(context.events.into());
        }
    }
}
