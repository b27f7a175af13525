//! A quaspace's address translation (page tables on the pc, host mappings when hosted).

use core::ops::Range;

use crate::{FrameNumber, PAGE_BYTES};

/// An address in a quaspace or in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct VirtAddr(pub u64);

/// The program passed an address it may not use in this way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UserFault;

/// No frame was left for a translation table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoFrames;

/// What a program may do with a page. `read: false, write: false, execute: false` is a guard page:
/// it may keep a frame, but every access faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Protection {
    pub read: bool,
    pub write: bool,
    pub execute: bool,
}

/// One present page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    pub frame: FrameNumber,
    pub protection: Protection,
    /// Written through this mapping since it was made.
    pub dirty: bool,
}

/// What becomes of a page that [`Translation::visit`] has shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    Keep,
    Remove,
    Protect(Protection),
}

/// A page that is to be shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shown {
    pub page: VirtAddr,
    pub frame: FrameNumber,
    pub protection: Protection,
}

impl Shown {
    /// What stands in a list before a page does.
    pub const NOTHING: Shown = Shown {
        page: VirtAddr(0),
        frame: FrameNumber::NOTHING,
        protection: Protection { read: false, write: false, execute: false },
    };
}

/// What names a translation to the processor (CR3 on the pc). The processor is led by it: a root that is made up is all of
/// memory, so only who keeps the tables makes one.
///
/// ```compile_fail
/// let root = machine::Root(0x1000);
/// ```
/// ```compile_fail
/// #![forbid(unsafe_code)]
/// // SAFETY: no processor loads it.
/// let root = unsafe { machine::Root::new(0x1000) };
/// ```
/// ```
/// assert_eq!(machine::Root::NONE.word(), 0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Root(u64);

impl Root {
    /// Of translations that no processor is led by.
    pub const NONE: Root = Root(0);

    /// # Safety
    /// `word` names tables that hide from a program all that was not mapped for it, and that stay as long as a thread runs in
    /// them.
    #[allow(unsafe_code, reason = "whoever makes a root answers for what the processor does by it")]
    pub const unsafe fn new(word: u64) -> Root {
        Root(word)
    }

    pub const fn word(self) -> u64 {
        self.0
    }
}

/// The translation of one quaspace. Addresses are page-aligned and below the user limit; another
/// address is a kernel bug and panics. Translations cached by the processor are dropped inside
/// each call that takes something away.
///
/// # Safety
/// A processor is led by what an implementation says of itself: `root` and `number` are those of tables that it keeps, and that show
/// what was mapped and nothing else.
///
/// ```compile_fail,E0200
/// # use machine::{FrameNumber, Mapping, NoFrames, Protection, Translation, VirtAddr};
/// struct Mine;
/// impl Translation for Mine {
///     fn map(&self, _: VirtAddr, _: FrameNumber, _: Protection) -> Result<(), NoFrames> { Ok(()) }
///     fn unmap(&self, _: VirtAddr) -> Option<Mapping> { None }
///     fn protect(&self, _: VirtAddr, _: Protection) {}
///     fn query(&self, _: VirtAddr) -> Option<Mapping> { None }
///     fn next_present(&self, _: VirtAddr, _: VirtAddr) -> Option<(VirtAddr, Mapping)> { None }
/// }
/// ```
#[allow(unsafe_code, reason = "whoever implements it answers for what the processor does by it")]
pub unsafe trait Translation: Send + Sync {
    fn root(&self) -> Root {
        Root::NONE
    }
    /// Names it to the machine that made it; 0 where no other is told from it.
    fn number(&self) -> u64 {
        self.root().word()
    }
    /// Addresses below the user limit that the machine needs for itself, ascending. No area may touch them.
    fn reserved(&self) -> &'static [Range<u64>] {
        &[]
    }
    /// Frames that the translation itself takes. Walks the tables.
    fn table_frames(&self) -> usize {
        0
    }
    /// How many pages of fresh memory the kernel should supply when a program touches page after page: more than one
    /// where a fault is dear.
    fn ahead_pages(&self) -> u64 {
        1
    }
    /// Maps `page` to `frame`, replacing what was there.
    fn map(&self, page: VirtAddr, frame: FrameNumber, protection: Protection) -> Result<(), NoFrames>;
    /// As `map` for each of `pages`; how many: all but those from the first on for which there was no frame.
    fn map_all(&self, pages: &[Shown]) -> usize {
        let map = |shown: &&Shown| self.map(shown.page, shown.frame, shown.protection).is_ok();
        pages.iter().take_while(map).count()
    }
    /// Removes and returns the mapping of `page`.
    fn unmap(&self, page: VirtAddr) -> Option<Mapping>;
    /// Changes the protection of a present page; does nothing for an absent one.
    fn protect(&self, page: VirtAddr, protection: Protection);
    fn query(&self, page: VirtAddr) -> Option<Mapping>;
    /// The first present page in `from..to`, found without touching absent tables.
    fn next_present(&self, from: VirtAddr, to: VirtAddr) -> Option<(VirtAddr, Mapping)>;
    /// Removes all mappings of `from..to`; `gone` learns their frames, some at a time.
    fn unmap_all(&self, from: VirtAddr, to: VirtAddr, gone: &mut dyn FnMut(&[FrameNumber])) {
        self.visit(from, to, &mut |_, mapping| {
            gone(&[mapping.frame]);
            Change::Remove
        });
    }
    /// Takes the right to write from all pages of `from..to`; `shown` learns what they are then, some at a time, as long as it
    /// answers that it could do with them what it wanted.
    fn write_protect(&self, from: VirtAddr, to: VirtAddr, shown: &mut dyn FnMut(&[Shown]) -> bool) {
        let mut goes_on = true;
        self.visit(from, to, &mut |page, Mapping { frame, protection, .. }| {
            let read_only = Protection { write: false, ..protection };
            goes_on = goes_on && shown(&[Shown { page, frame, protection: read_only }]);
            if protection.write { Change::Protect(read_only) } else { Change::Keep }
        });
    }
    /// Shows each present page of `from..to` to `act`, in order, and does with it what `act` answers: as
    /// `next_present`, `unmap` and `protect` for each page, in one walk. `act` must not change this translation.
    fn visit(&self, from: VirtAddr, to: VirtAddr, act: &mut dyn FnMut(VirtAddr, Mapping) -> Change) {
        let mut at = from;
        while at < to
            && let Some((page, mapping)) = self.next_present(at, to)
        {
            match act(page, mapping) {
                Change::Keep => {}
                Change::Remove => drop(self.unmap(page)),
                Change::Protect(protection) => self.protect(page, protection),
            }
            at = VirtAddr(page.0 + PAGE_BYTES as u64);
        }
    }
}
