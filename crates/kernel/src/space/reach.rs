//! The kernel's access to a quaspace that need not be the active one: building a new program's
//! stack, a debugger's peeks and pokes.

use machine::{FrameNumber, PAGE_BYTES};

use super::Space;
use super::fault::{Access, FaultKind, Resolved};
use super::limits::{USER_LIMIT, page_of};

/// How a page is brought in: with the program's rights, or whatever they are.
type Faulting = fn(&mut Space, u64, Access) -> Result<Resolved, FaultKind>;

impl Space {
    /// Copies from the quaspace, with the program's own rights. On a failure a prefix of `into`
    /// has been filled.
    pub fn read_bytes(&mut self, address: u64, into: &mut [u8]) -> Result<(), FaultKind> {
        self.copy_out(address, into, Space::fault)
    }

    /// Copies into the quaspace, with the program's own rights. On a failure a prefix has been
    /// written.
    pub fn write_bytes(&mut self, address: u64, from: &[u8]) -> Result<(), FaultKind> {
        self.copy_in(address, from, Space::fault)
    }

    /// Copies from private areas whatever their rights are (a debugger's peek).
    pub fn peek_bytes(&mut self, address: u64, into: &mut [u8]) -> Result<(), FaultKind> {
        self.copy_out(address, into, Space::fault_forced)
    }

    /// Copies into private areas whatever their rights are (a debugger's poke): the program gets
    /// its own copy of the page, with unchanged rights.
    pub fn poke_bytes(&mut self, address: u64, from: &[u8]) -> Result<(), FaultKind> {
        self.copy_in(address, from, Space::fault_forced)
    }

    /// All bytes of the range are private code that the program can run and not write.
    pub fn is_text(&self, address: u64, bytes: usize) -> bool {
        let end = address.saturating_add(bytes as u64);
        self.area_at(address).is_some_and(|(_, area)| {
            area.protection.execute && !area.protection.write && !area.kind.is_shared() && end <= area.end
        })
    }

    fn copy_out(&mut self, address: u64, into: &mut [u8], fault: Faulting) -> Result<(), FaultKind> {
        let mut done = 0;
        while done < into.len() {
            let (frame, offset, bytes) = self.reach(address, done, into.len(), (fault, Access::Read))?;
            self.pages.pool.memory().read(frame, offset, &mut into[done..done + bytes]);
            done += bytes;
        }
        Ok(())
    }

    fn copy_in(&mut self, address: u64, from: &[u8], fault: Faulting) -> Result<(), FaultKind> {
        let mut done = 0;
        while done < from.len() {
            let (frame, offset, bytes) = self.reach(address, done, from.len(), (fault, Access::Write))?;
            self.pages.pool.memory().write(frame, offset, &from[done..done + bytes]);
            done += bytes;
        }
        Ok(())
    }

    /// The frame that holds byte `done` of a transfer of `total` bytes at `address`, the offset in
    /// it, and how many bytes of the transfer lie in it.
    fn reach(
        &mut self,
        address: u64,
        done: usize,
        total: usize,
        (fault, access): (Faulting, Access),
    ) -> Result<(FrameNumber, usize, usize), FaultKind> {
        let at = address.checked_add(done as u64).filter(|&at| at < USER_LIMIT).ok_or(FaultKind::Unmapped)?;
        fault(self, at, access)?;
        self.span(at, total - done)
    }

    fn span(&self, at: u64, wanted: usize) -> Result<(FrameNumber, usize, usize), FaultKind> {
        let page = page_of(at);
        let mapping = self.pages.query(page).ok_or(FaultKind::Unmapped)?;
        let offset = (at - page) as usize;
        Ok((mapping.frame, offset, wanted.min(PAGE_BYTES - offset)))
    }
}
