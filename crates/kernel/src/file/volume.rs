//! One file system: where its nodes get their numbers and their frames, and its limits.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};

use abi::Errno;
use machine::{KernelValue, PAGE_BYTES};

use machine::KernelCell;

use super::attributes::CounterClock;
use super::attributes::VolumeNumbers;
use super::credentials::Credentials;
use super::limits::NAME_BYTES_MAX;
use super::memory::Memory;
use super::page_store::PageStore;
use super::rules::Rules;
use super::store::{Residence, Store};
use super::virtual_tree::Produced;
use super::watch::Watches;
use crate::space::{FramePool, Page};

/// Which volume this is: no other has had this identity since the kernel started, and none will. It is also the minor
/// device number that programs see.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct VolumeIdentity(u32);

impl VolumeIdentity {
    /// The next identity. Error: `EMFILE` when there have been as many volumes as there are minor numbers.
    fn take() -> Result<VolumeIdentity, Errno> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let taken = NEXT.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| next.checked_add(1));
        taken.map(VolumeIdentity).map_err(|_| Errno::EMFILE)
    }

    /// As a number: it names this volume and no other.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// A file system. All its nodes refer to it; it lives as long as the last of them.
pub struct Volume {
    pool: &'static FramePool,
    store: Arc<dyn Store>,
    /// As the store says.
    residence: Residence,
    /// Linux `f_type`.
    magic: u64,
    identity: VolumeIdentity,
    rules: KernelValue<Rules>,
    /// Regular files that may be written to: opens and shared maps.
    writers: KernelValue<u64>,
    /// Nodes in use that have lost their last name, or never had one: they change the volume when they go.
    orphans: KernelValue<u64>,
    next_number: KernelValue<u64>,
    /// Nodes plus links beyond each node's first: both cost kernel memory.
    nodes: KernelValue<u64>,
    nodes_max: KernelValue<u64>,
    pages: KernelValue<u64>,
    pages_max: KernelValue<u64>,
    /// Who turns a processor counter into a time, for what machine code leaves.
    clock: KernelCell<Option<&'static dyn CounterClock>>,
    watches: Watches,
}

/// Linux `TMPFS_MAGIC`.
pub const MAGIC_TMPFS: u64 = 0x0102_1994;
/// Linux `PROC_SUPER_MAGIC`.
pub const MAGIC_PROC: u64 = 0x9fa0;
/// Linux `SYSFS_MAGIC`.
pub const MAGIC_SYSFS: u64 = 0x6265_6572;
/// Linux `DEVPTS_SUPER_MAGIC`.
pub const MAGIC_DEVPTS: u64 = 0x1cd1;

impl Volume {
    /// A memory-resident file system whose data may take every frame that `pool` can give now.
    /// Error: `EMFILE`, as of all that make a volume, when no identity is left for it.
    pub fn in_memory(pool: &'static FramePool) -> Result<Arc<Volume>, Errno> {
        let frames = pool.free_frames() as u64;
        Self::in_memory_limited(pool, frames)
    }

    /// A memory-resident file system with room for `pages_max` pages of data and as many nodes
    /// (at least 1024, so that a small machine can still unpack its programs).
    pub fn in_memory_limited(pool: &'static FramePool, pages_max: u64) -> Result<Arc<Volume>, Errno> {
        Self::new(pool, Arc::new(Memory::default()), MAGIC_TMPFS, pages_max, pages_max.max(1024))
    }

    /// A file system whose names are in memory and whose files' bytes are kept by `pages`: memory holds those that were used.
    pub fn kept(pool: &'static FramePool, pages: Arc<dyn PageStore>) -> Result<Arc<Volume>, Errno> {
        let pages_max = pool.free_frames() as u64;
        Self::new(pool, Arc::new(Memory::with_pages(pages)), MAGIC_TMPFS, pages_max, pages_max.max(1024))
    }

    /// A volume whose nodes are produced on demand.
    pub fn on_demand(pool: &'static FramePool, magic: u64) -> Result<Arc<Volume>, Errno> {
        Self::new(pool, Arc::new(Produced { magic }), magic, 0, u64::MAX)
    }

    /// A file system that `store` keeps, with its own limits.
    pub fn of(pool: &'static FramePool, store: Arc<dyn Store>) -> Result<Arc<Volume>, Errno> {
        Self::new(pool, store, 0, 0, u64::MAX)
    }

    fn new(
        pool: &'static FramePool,
        store: Arc<dyn Store>,
        magic: u64,
        pages_max: u64,
        nodes_max: u64,
    ) -> Result<Arc<Volume>, Errno> {
        Ok(Arc::new(Volume {
            pool,
            residence: store.residence(),
            store,
            magic,
            identity: VolumeIdentity::take()?,
            rules: KernelValue::new(Rules::default()),
            writers: KernelValue::new(0),
            orphans: KernelValue::new(0),
            next_number: KernelValue::new(1),
            nodes: KernelValue::new(0),
            nodes_max: KernelValue::new(nodes_max),
            pages: KernelValue::new(0),
            pages_max: KernelValue::new(pages_max),
            clock: KernelCell::new(None),
            watches: Watches::new(),
        }))
    }

    pub fn identity(&self) -> VolumeIdentity {
        self.identity
    }

    pub fn set_clock(&self, clock: &'static dyn CounterClock) {
        self.clock.set(Some(clock));
    }

    /// Times are told by the clock of `other`.
    pub fn share_clock(&self, other: &Volume) {
        self.clock.set(other.clock());
    }

    pub(super) fn clock(&self) -> Option<&'static dyn CounterClock> {
        self.clock.get()
    }

    pub(super) fn watches(&self) -> &Watches {
        &self.watches
    }

    pub(super) fn page_store(&self) -> Option<&Arc<dyn PageStore>> {
        self.store.page_store()
    }

    /// [`Store::speaks_for`]; one that nobody else changes does not.
    #[inline(always)]
    pub fn speaks_for(&self, who: &Credentials) -> bool {
        self.residence == Residence::Outside && self.store.speaks_for(who)
    }

    /// [`Store::denies_names`]; only one whose nodes are produced may.
    #[inline(always)]
    pub(super) fn denies_names(&self) -> bool {
        self.residence == Residence::Virtual && self.store.denies_names()
    }

    #[inline(always)]
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub fn residence(&self) -> Residence {
        self.residence
    }

    pub fn pool(&self) -> &'static FramePool {
        self.pool
    }

    /// Device number, major and minor.
    pub fn device(&self) -> (u32, u32) {
        (0, self.identity.number())
    }

    pub fn rules(&self) -> Rules {
        self.rules.get()
    }

    pub fn is_read_only(&self) -> bool {
        self.rules.get().is_read_only()
    }

    /// Gives the volume other rules. Error: `EBUSY` if it shall be read-only and files are open for writing, or, when the
    /// volume itself shall be, if files in use have lost their names.
    pub(super) fn change_rules(&self, rules: Rules) -> Result<(), Errno> {
        let before = self.rules.get();
        let closes = rules.is_read_only() && !before.is_read_only();
        let settles = rules.volume_read_only && !before.volume_read_only;
        if closes && self.writers.get() > 0 || settles && self.orphans.get() > 0 {
            return Err(Errno::EBUSY);
        }
        self.rules.set(rules);
        Ok(())
    }

    /// Lets the volume grow to `pages_max` pages of data and `nodes_max` nodes. Error: `EINVAL` if it has more already.
    pub fn limit(&self, pages_max: Option<u64>, nodes_max: Option<u64>) -> Result<(), Errno> {
        let (pages, nodes) = (pages_max.unwrap_or(self.pages_max.get()), nodes_max.unwrap_or(self.nodes_max.get()));
        if pages < self.pages.get() || nodes < self.nodes.get() {
            return Err(Errno::EINVAL);
        }
        self.pages_max.set(pages);
        self.nodes_max.set(nodes);
        Ok(())
    }

    pub(super) fn writer_gained(&self) {
        self.writers.set(self.writers.get() + 1);
    }

    pub(super) fn writer_lost(&self) {
        self.writers.set(self.writers.get() - 1);
    }

    pub(super) fn orphan_gained(&self) {
        self.orphans.set(self.orphans.get() + 1);
    }

    pub(super) fn orphan_lost(&self) {
        self.orphans.set(self.orphans.get() - 1);
    }

    /// The numbers of `statfs`.
    pub fn numbers(&self) -> VolumeNumbers {
        let room = self.pages_max.get().saturating_sub(self.pages.get());
        VolumeNumbers {
            magic: self.magic,
            block_bytes: PAGE_BYTES as u64,
            blocks: self.pages_max.get(),
            blocks_free: room.min(self.pool.free_frames() as u64),
            nodes: if self.residence == Residence::Memory { self.nodes_max.get() } else { 0 },
            nodes_free: match self.residence {
                Residence::Memory => self.nodes_max.get().saturating_sub(self.nodes.get()),
                Residence::Virtual | Residence::Outside => 0,
            },
            name_bytes_max: NAME_BYTES_MAX as u64,
            device: self.device(),
        }
    }

    /// Pages of data that the volume's files hold.
    pub fn pages_in_use(&self) -> u64 {
        self.pages.get()
    }

    /// A number that no other node of this volume has had.
    pub fn take_number(&self) -> u64 {
        let number = self.next_number.get();
        self.next_number.set(number + 1);
        number
    }

    /// Accounts for a node or an extra link. Error: `ENOSPC`.
    pub(super) fn charge_node(&self) -> Result<(), Errno> {
        self.charge_nodes(1)
    }

    pub(super) fn release_node(&self) {
        self.release_nodes(1);
    }

    /// Accounts for as much memory as `count` nodes take. Error: `ENOSPC`.
    pub(super) fn charge_nodes(&self, count: u64) -> Result<(), Errno> {
        if count > self.nodes_max.get().saturating_sub(self.nodes.get()) {
            return Err(Errno::ENOSPC);
        }
        self.nodes.set(self.nodes.get() + count);
        Ok(())
    }

    pub(super) fn release_nodes(&self, count: u64) {
        self.nodes.set(self.nodes.get() - count);
    }

    /// A frame for file data, content unknown. Error: `ENOSPC` at the volume's or the pool's limit.
    pub(super) fn allocate_page(&self) -> Result<Page, Errno> {
        if self.is_full() {
            return Err(Errno::ENOSPC);
        }
        self.pool.allocate_for_file().ok_or(Errno::ENOSPC)
    }

    /// It has as much data as it may have.
    pub(super) fn is_full(&self) -> bool {
        self.pages.get() >= self.pages_max.get()
    }

    /// Whether `pages` more pages could be had now.
    pub(super) fn has_room(&self, pages: u64) -> bool {
        let room = self.pages_max.get().saturating_sub(self.pages.get());
        pages <= room.min(self.pool.free_frames() as u64)
    }

    pub(super) fn pages_gained(&self, pages: u64) {
        self.pages.set(self.pages.get() + pages);
    }

    pub(super) fn pages_lost(&self, pages: u64) {
        self.pages.set(self.pages.get() - pages);
    }
}
