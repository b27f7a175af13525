//! Who watches an open file from an epoll instance. The list lies at the file, so that its end takes it out of the instances at
//! once, and so that the ways up from it can be counted.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};

use machine::{KernelCell, KernelOnce, KernelValue, NoMemory, Ordered, try_box};

use crate::files::open_file::OpenFile;

/// What a walk left at a watcher, so that the same walk does not go there again.
#[derive(Clone, Copy, Default)]
pub struct Mark {
    /// Number of the walk.
    pub walk: u64,
    /// How many watchers lie behind each other from here on.
    pub depth: usize,
}

/// Something that watches open files by descriptor.
pub trait Watcher: Send + Sync {
    /// The file at this address has been closed for good.
    fn forget(&self, descriptor: u32, file: usize);
    /// The open file that the watcher itself is, as long as it is open.
    fn own_file(&self) -> Option<Arc<OpenFile>>;
    fn mark(&self) -> &KernelValue<Mark>;
}

/// Address of the watcher, and the descriptor by which it knows the file.
type Name = (usize, u32);

type List = Ordered<Name, Weak<dyn Watcher>>;

/// Most files are not watched, and take a word.
#[derive(Default)]
pub struct Watchers(KernelOnce<Box<KernelCell<List>>>);

fn name(watcher: &Weak<dyn Watcher>, descriptor: u32) -> Name {
    (watcher.as_ptr().cast::<()>() as usize, descriptor)
}

impl Watchers {
    pub const fn new() -> Watchers {
        Watchers(KernelOnce::new())
    }

    pub fn add(&self, watcher: Weak<dyn Watcher>, descriptor: u32) -> Result<(), NoMemory> {
        let list = match self.0.get() {
            Some(list) => list,
            None => {
                let list = try_box(KernelCell::new(Ordered::new()))?;
                self.0.get_or_init(|| list)
            }
        };
        list.borrow_mut().try_insert(name(&watcher, descriptor), watcher).map(drop)
    }

    pub fn remove(&self, watcher: &Weak<dyn Watcher>, descriptor: u32) {
        let removed = self.0.get().and_then(|list| list.borrow_mut().remove(&name(watcher, descriptor)));
        drop(removed);
    }

    pub fn is_empty(&self) -> bool {
        self.0.get().is_none_or(|list| list.borrow().is_empty())
    }

    /// The watchers, one after the other, until `visit` fails.
    pub fn each<E>(&self, mut visit: impl FnMut(&Arc<dyn Watcher>) -> Result<(), E>) -> Result<(), E> {
        let Some(list) = self.0.get() else { return Ok(()) };
        list.borrow().iter().filter_map(|(_, watcher)| watcher.upgrade()).try_for_each(|it| visit(&it))
    }

    /// Tells all of them that the file at `address` has been closed for good.
    pub fn end(&mut self, address: usize) {
        let Some(list) = self.0.take() else { return };
        for ((_, descriptor), watcher) in list.borrow().iter() {
            watcher.upgrade().iter().for_each(|watcher| watcher.forget(*descriptor, address));
        }
    }
}
