//! The kernel's access to a quaspace that need not be the active one: building a new program's
//! stack, a debugger's peeks and pokes.

use machine::{FrameNumber, PAGE_BYTES};

use super::Space;
use super::fault::{Access, FaultKind};
use super::limits::{USER_LIMIT, page_of};

impl Space {
    /// Copies from the quaspace, with the program's own rights. On a failure a prefix of `into`
    /// has been filled.
    pub fn read_bytes(&mut self, address: u64, into: &mut [u8]) -> Result<(), FaultKind> {
        let mut done = 0;
        while done < into.len() {
            let (frame, offset, bytes) = self.reach(address, done, into.len(), Access::Read)?;
            self.pages.pool.memory().read(frame, offset, &mut into[done..done + bytes]);
            done += bytes;
        }
        Ok(())
    }

    /// Copies into the quaspace, with the program's own rights. On a failure a prefix has been
    /// written.
    pub fn write_bytes(&mut self, address: u64, from: &[u8]) -> Result<(), FaultKind> {
        let mut done = 0;
        while done < from.len() {
            let (frame, offset, bytes) = self.reach(address, done, from.len(), Access::Write)?;
            self.pages.pool.memory().write(frame, offset, &from[done..done + bytes]);
            done += bytes;
        }
        Ok(())
    }

    /// Copies from private areas whatever their rights are (a debugger's peek).
    pub fn peek_bytes(&mut self, address: u64, into: &mut [u8]) -> Result<(), FaultKind> {
        let mut done = 0;
        while done < into.len() {
            let (frame, offset, bytes) = self.reach_forced(address, done, into.len(), Access::Read)?;
            self.pages.pool.memory().read(frame, offset, &mut into[done..done + bytes]);
            done += bytes;
        }
        Ok(())
    }

    /// Copies into private areas whatever their rights are (a debugger's poke): the program gets
    /// its own copy of the page, with unchanged rights.
    pub fn poke_bytes(&mut self, address: u64, from: &[u8]) -> Result<(), FaultKind> {
        let mut done = 0;
        while done < from.len() {
            let (frame, offset, bytes) = self.reach_forced(address, done, from.len(), Access::Write)?;
            self.pages.pool.memory().write(frame, offset, &from[done..done + bytes]);
            done += bytes;
        }
        Ok(())
    }

    /// All bytes of the range are private code that the program can run and not write.
    pub fn is_text(&self, address: u64, bytes: usize) -> bool {
        let end = address.saturating_add(bytes as u64);
        self.area_at(address).is_some_and(|(_, area)| {
            area.protection.execute && !area.protection.write && !area.kind.is_shared() && end <= area.end
        })
    }

    /// The frame that holds byte `done` of a transfer of `total` bytes at `address`, the offset in
    /// it, and how many bytes of the transfer lie in it.
    fn reach(
        &mut self,
        address: u64,
        done: usize,
        total: usize,
        access: Access,
    ) -> Result<(FrameNumber, usize, usize), FaultKind> {
        let at = byte_address(address, done)?;
        self.fault(at, access)?;
        self.span(at, total - done)
    }

    fn reach_forced(
        &mut self,
        address: u64,
        done: usize,
        total: usize,
        access: Access,
    ) -> Result<(FrameNumber, usize, usize), FaultKind> {
        let at = byte_address(address, done)?;
        self.fault_forced(at, access)?;
        self.span(at, total - done)
    }

    fn span(&self, at: u64, wanted: usize) -> Result<(FrameNumber, usize, usize), FaultKind> {
        let page = page_of(at);
        let mapping = self.pages.query(page).ok_or(FaultKind::Unmapped)?;
        let offset = (at - page) as usize;
        Ok((mapping.frame, offset, wanted.min(PAGE_BYTES - offset)))
    }
}

fn byte_address(address: u64, done: usize) -> Result<u64, FaultKind> {
    address.checked_add(done as u64).filter(|&at| at < USER_LIMIT).ok_or(FaultKind::Unmapped)
}
