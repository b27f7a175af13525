//! An area: a range of a quaspace whose pages have one source and one protection.

use alloc::sync::Arc;

use machine::{FrameNumber, Protection};

use super::backing::Backing;
use super::limits::PAGE;

/// Part of a backing, as an area shows it.
#[derive(Clone)]
pub struct View {
    pub backing: Arc<dyn Backing>,
    /// Index in the backing of the area's first page.
    pub first_page: u64,
}

impl View {
    /// The backing's own page, if it is there: who only looks brings nothing in.
    pub(super) fn present(&self, index: u64) -> Option<FrameNumber> {
        let mut frame = None;
        self.backing.present(index..index.saturating_add(1), &mut |_, page| frame = Some(page.frame()));
        frame
    }
}

/// Where the pages of an area come from and who sees writes to them.
#[derive(Clone)]
pub enum Kind {
    /// Zeros, private.
    Anonymous,
    /// Zeros, private; the area grows down when the program touches the pages below it.
    Stack,
    /// Zeros, shared with every quaspace forked from this one.
    SharedAnonymous(View),
    /// A file's pages, copied at the first write.
    FilePrivate(View),
    /// A file's pages; writes reach the file.
    FileShared(View),
    /// Pages of the kernel's own, such as the vDSO; copied at the first write, never extended.
    Special(View),
}

impl Kind {
    pub fn view(&self) -> Option<&View> {
        match self {
            Kind::Anonymous | Kind::Stack => None,
            Kind::SharedAnonymous(view) | Kind::FilePrivate(view) | Kind::FileShared(view) | Kind::Special(view) => {
                Some(view)
            }
        }
    }

    fn view_mut(&mut self) -> Option<&mut View> {
        match self {
            Kind::Anonymous | Kind::Stack => None,
            Kind::SharedAnonymous(view) | Kind::FilePrivate(view) | Kind::FileShared(view) | Kind::Special(view) => {
                Some(view)
            }
        }
    }

    /// Writes are seen by others.
    pub fn is_shared(&self) -> bool {
        matches!(self, Kind::SharedAnonymous(_) | Kind::FileShared(_))
    }

    pub fn is_stack(&self) -> bool {
        matches!(self, Kind::Stack)
    }

    /// The same kind, for the part of the area that starts `bytes` later.
    pub(super) fn advanced(&self, bytes: u64) -> Kind {
        let mut kind = self.clone();
        if let Some(view) = kind.view_mut() {
            view.first_page += bytes / PAGE;
        }
        kind
    }

    /// A shared kind that shows its backing from `first_page` on; `None` for private ones.
    pub(super) fn showing(&self, first_page: u64) -> Option<Kind> {
        let mut kind = self.is_shared().then(|| self.clone())?;
        kind.view_mut()?.first_page = first_page;
        Some(kind)
    }

    /// An area of kind `next` that starts `bytes` behind the start of this one continues it.
    fn is_continued_by(&self, bytes: u64, next: &Kind) -> bool {
        match (self, next) {
            (Kind::Anonymous, Kind::Anonymous) | (Kind::Stack, Kind::Stack) => true,
            (Kind::SharedAnonymous(a), Kind::SharedAnonymous(b))
            | (Kind::FilePrivate(a), Kind::FilePrivate(b))
            | (Kind::FileShared(a), Kind::FileShared(b)) => {
                Arc::ptr_eq(&a.backing, &b.backing) && a.first_page + bytes / PAGE == b.first_page
            }
            _ => false,
        }
    }
}

/// What a fork does with an area (madvise DONTFORK, WIPEONFORK).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AtFork {
    #[default]
    Share,
    /// The child does not have the area.
    Omit,
    /// The child has the area, all zeros.
    Wipe,
}

/// One area; its start is the key in the quaspace's map. Start and end are page-aligned and the
/// end is at most the user limit.
#[derive(Clone)]
pub(super) struct Area {
    pub end: u64,
    /// What the program asked for.
    pub protection: Protection,
    /// The most that mprotect may grant: a shared map of a file open for reading has no write.
    pub limit: Protection,
    pub kind: Kind,
    /// Not charged against memory (MAP_NORESERVE).
    pub no_reserve: bool,
    pub at_fork: AtFork,
    /// Does not go into core files (madvise DONTDUMP).
    pub is_undumped: bool,
    /// Counts against the limit on locked memory. A child's is not locked.
    pub is_locked: bool,
    /// Counts among what all programs may ask for together (Linux `VM_ACCOUNT`); what was writable once stays charged.
    pub is_charged: bool,
    /// Some pages may differ from what the backing would give again. Always true of anonymous
    /// private areas; a file area without copies need not be walked at fork.
    pub has_copies: bool,
}

impl Area {
    /// Splits off everything from `at` (inside the area) as a new area.
    pub fn split_off(&mut self, start: u64, at: u64) -> Area {
        let tail = Area { kind: self.kind.advanced(at - start), ..self.clone() };
        self.end = at;
        tail
    }

    /// `next` starts where this area ends and may become part of it.
    pub fn can_absorb(&self, start: u64, next: &Area) -> bool {
        self.protection == next.protection
            && self.limit == next.limit
            && self.no_reserve == next.no_reserve
            && self.at_fork == next.at_fork
            && self.is_undumped == next.is_undumped
            && self.is_locked == next.is_locked
            && self.is_charged == next.is_charged
            && self.kind.is_continued_by(self.end - start, &next.kind)
    }

    /// Counts against RLIMIT_DATA with `protection`: private, writable, no stack.
    pub fn is_data_with(&self, protection: Protection) -> bool {
        protection.write && !self.kind.is_shared() && !self.kind.is_stack()
    }

    pub fn is_data(&self) -> bool {
        self.is_data_with(self.protection)
    }

    /// Any access at all is allowed; a guard area is not accessible.
    pub fn is_accessible(&self) -> bool {
        is_accessible(self.protection)
    }

    /// What the page tables may grant at most. x86 cannot grant writing or executing without
    /// reading, and Linux programs see that: any right implies reading.
    pub fn granted(&self) -> Protection {
        Protection { read: self.is_accessible(), ..self.protection }
    }

    /// The lowest address that belongs to the area or to the gap kept below it.
    pub fn guarded_start(&self, start: u64) -> u64 {
        if self.kind.is_stack() { start.saturating_sub(super::limits::STACK_GUARD_BYTES) } else { start }
    }

    /// Index in its backing of the page at `address`, for an area with `view`.
    pub fn index(start: u64, view: &View, address: u64) -> u64 {
        view.first_page + (address - start) / PAGE
    }
}

pub(super) fn is_accessible(protection: Protection) -> bool {
    protection.read || protection.write || protection.execute
}

/// The same rights without writing.
pub(super) fn without_write(protection: Protection) -> Protection {
    Protection { write: false, ..protection }
}
