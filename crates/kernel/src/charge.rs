//! What keeps the kernel's memory, and how much of it: asked when memory has ended, and somebody has to go ([ADR 41]).
//!
//! Nothing is counted as memory comes and goes. Whatever a descriptor can be open on, and whatever an area can show, must say
//! what it keeps ([`Stream::held`], [`Backing::held`]): these methods have no default, so a new kind cannot be forgotten. What
//! several hold is divided by their number. The answers ask for no memory, because there is none.
//!
//! [ADR 41]: ../../../docs/adr/0041-who-is-killed.md
//! [`Stream::held`]: crate::stream::Stream::held
//! [`Backing::held`]: crate::space::Backing::held

/// What memory is kept in, for the sentence that tells who was killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// The program's own pages.
    Pages,
    PageTables,
    Maps,
    Threads,
    OpenFiles,
    Pipes,
    Sockets,
    NamelessFiles,
    SharedMemory,
    Epolls,
    EventCounters,
    Timers,
    Watches,
    Queues,
    Semaphores,
    Signals,
    Locks,
    Terminals,
    Operations,
}

/// One for each of [`Kept`].
const KINDS: usize = Kept::Operations as usize + 1;

const NAMES: [&str; KINDS] = [
    "pages of its own",
    "page tables",
    "maps",
    "threads",
    "open files",
    "pipes",
    "sockets",
    "files without names",
    "shared memory",
    "epolls",
    "event counters",
    "timers",
    "watches of files",
    "message queues",
    "semaphores",
    "waiting signals",
    "locks",
    "terminals",
    "asynchronous operations",
];

impl Kept {
    /// In the plural, for people.
    pub fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

/// What one object keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    pub kept: Kept,
    pub bytes: u64,
}

impl Held {
    /// Nothing that would come back if nobody had the object.
    pub const NOTHING: Held = Held { kept: Kept::OpenFiles, bytes: 0 };

    pub const fn new(kept: Kept, bytes: usize) -> Held {
        Held { kept, bytes: bytes as u64 }
    }
}

/// What somebody holds, by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bill([u64; KINDS]);

impl Bill {
    pub const fn new() -> Bill {
        Bill([0; KINDS])
    }

    pub fn add(&mut self, held: Held) {
        self.share(held, 1);
    }

    /// Adds one part of what so many hold.
    pub fn share(&mut self, held: Held, holders: usize) {
        self.0[held.kept as usize] += held.bytes / holders.max(1) as u64;
    }

    /// Adds one part of what so many hold.
    pub fn join_part(&mut self, other: &Bill, holders: usize) {
        let parts = self.0.iter_mut().zip(other.0);
        parts.for_each(|(sum, more)| *sum += more / holders.max(1) as u64);
    }

    /// Adds what somebody else holds.
    pub fn join(&mut self, other: &Bill) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }

    /// What is kept in this.
    pub fn of(&self, kept: Kept) -> u64 {
        self.0[kept as usize]
    }

    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The name of what most of it is kept in, and how much.
    pub fn most(&self) -> (&'static str, u64) {
        let most = self.0.iter().zip(NAMES).max_by_key(|(bytes, _)| **bytes);
        most.map_or(("nothing", 0), |(bytes, name)| (name, *bytes))
    }
}

impl Default for Bill {
    fn default() -> Bill {
        Bill::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_names_what_most_is_kept_in() {
        let mut bill = Bill::new();
        bill.add(Held::new(Kept::Pages, 4096));
        bill.share(Held::new(Kept::Pipes, 3 * 65536), 3);
        let mut both = bill;
        both.join(&bill);
        assert_eq!(both.most(), ("pipes", 131_072));
        assert_eq!(both.total(), 2 * (4096 + 65536));
        assert_eq!(Kept::Operations.name(), "asynchronous operations");
    }
}
