//! Making and removing areas (mmap, munmap).

use machine::Protection;

use super::Space;
use super::area::{Area, AtFork, Kind};
use super::limits::{BACKING_PAGES_MAX, LOWEST_ADDRESS, PAGE, USER_LIMIT, is_page_aligned, page_of, round_up};
use super::locked::Presence;

/// Why a change of areas was refused; each is one errno of Linux.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// An argument makes no sense (EINVAL).
    Invalid,
    /// No room, over a limit, or a range that should be mapped is not (ENOMEM).
    NoMemory,
    /// The range is in use (EEXIST).
    Exists,
    /// More rights than the file was opened with (EACCES).
    Access,
    /// Below the lowest address (EPERM).
    NotPermitted,
    /// The file offset leaves 63 bits (EOVERFLOW).
    Overflow,
    /// The old range of a remap is not one area (EFAULT).
    Fault,
    /// A page must come first ([`Space::take_coming`]): the caller waits for it and does the same again.
    Coming,
}

/// How much a program insists on an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// Anywhere, the address is a hint; 0 is none.
    Anywhere,
    /// In the second GiB, so that the address fits a 31-bit number; the address is a hint (MAP_32BIT).
    Low,
    /// Exactly there; what is there goes (MAP_FIXED).
    Fixed,
    /// Exactly there, or not at all (MAP_FIXED_NOREPLACE).
    FixedIfFree,
}

/// What mmap asks for.
#[derive(Clone)]
pub struct MapRequest {
    pub address: u64,
    pub bytes: u64,
    pub placement: Placement,
    pub protection: Protection,
    /// The most that mprotect may grant later. A file open for reading only has no write here if
    /// the kind is shared. `protection` must not exceed it (`MapError::Access`).
    pub limit: Protection,
    pub kind: Kind,
    /// Do not refuse for want of memory now (MAP_NORESERVE).
    pub no_reserve: bool,
    /// Make all pages present at once (MAP_POPULATE, MAP_LOCKED).
    pub populate: bool,
    /// The area counts as locked (MAP_LOCKED).
    pub locked: bool,
}

impl MapRequest {
    /// A private zeroed map anywhere; change the fields for anything else.
    pub fn anonymous(bytes: u64, protection: Protection) -> MapRequest {
        MapRequest {
            address: 0,
            bytes,
            placement: Placement::Anywhere,
            protection,
            limit: Protection { read: true, write: true, execute: true },
            kind: Kind::Anonymous,
            no_reserve: false,
            populate: false,
            locked: false,
        }
    }

    /// The same map, at exactly this address in place of what is there.
    pub fn at(self, address: u64) -> MapRequest {
        MapRequest { address, placement: Placement::Fixed, ..self }
    }

    /// The same map with other contents.
    pub fn of(self, kind: Kind) -> MapRequest {
        MapRequest { kind, ..self }
    }
}

impl Space {
    /// Makes an area and returns its start. The checks and their order are Linux's `do_mmap`.
    pub fn map(&mut self, request: MapRequest) -> Result<u64, MapError> {
        let (start, bytes) = self.place(&request)?;
        check_offset(&request.kind, bytes)?;
        if exceeds(request.protection, request.limit) {
            return Err(MapError::Access);
        }
        let is_special = matches!(request.kind, Kind::Special(_));
        let is_locked = (request.locked || self.locks_future.is_some()) && !is_special;
        let populate = request.populate || is_locked && self.locks_future == Some(Presence::Now);
        let mut area = Area {
            end: start + bytes,
            protection: request.protection,
            limit: request.limit,
            has_copies: request.kind.view().is_none(),
            kind: request.kind,
            no_reserve: request.no_reserve && !self.pages.pool.rules.is_strict(),
            at_fork: AtFork::Share,
            is_undumped: false,
            is_locked,
            is_charged: false,
        };
        area.is_charged = area.is_charged_with(area.protection);
        self.check_expansion(start, &area)?;
        if request.placement == Placement::Fixed {
            self.remove_range(start, start + bytes);
        }
        self.insert(start, area);
        self.merge_around(start, start + bytes);
        if populate {
            self.populate(start, start + bytes);
        }
        Ok(start)
    }

    /// Where the request would go, and its length in whole pages. The checks that do not depend on
    /// what is mapped; Linux makes them before it looks at the file.
    pub fn place(&self, request: &MapRequest) -> Result<(u64, u64), MapError> {
        if request.bytes == 0 {
            return Err(MapError::Invalid);
        }
        let bytes = round_up(request.bytes).ok_or(MapError::NoMemory)?;
        // Removing a fixed range may split an area, and then one is added.
        self.check_area_count(2)?;
        Ok((self.choose_start(request, bytes)?, bytes))
    }

    /// Shows other pages of the same backing in a range of one shared area (remap_file_pages).
    pub fn show_other_pages(&mut self, start: u64, bytes: u64, first_page: u64) -> Result<(), MapError> {
        let end = start.checked_add(bytes).filter(|&end| end > start).ok_or(MapError::Invalid)?;
        let (_, area) = self.area_at(start).filter(|(_, area)| area.end >= end).ok_or(MapError::Invalid)?;
        let kind = area.kind.showing(first_page).ok_or(MapError::Invalid)?;
        let (limit, no_reserve) = (area.limit, area.no_reserve);
        let request = MapRequest { limit, no_reserve, ..MapRequest::anonymous(bytes, area.protection) };
        self.map(MapRequest { populate: true, ..request.at(start).of(kind) }).map(|_| ())
    }

    /// Removes every area and page in the range; parts outside stay. A range without areas is fine.
    pub fn unmap(&mut self, start: u64, bytes: u64) -> Result<(), MapError> {
        if !is_page_aligned(start) || start > USER_LIMIT || bytes > USER_LIMIT - start {
            return Err(MapError::Invalid);
        }
        let bytes = round_up(bytes).filter(|&bytes| bytes != 0).ok_or(MapError::Invalid)?;
        let end = start + bytes;
        if self.area_at(start).is_some_and(|(area_start, area)| area_start < start && area.end > end) {
            self.check_area_count(1)?;
        }
        self.remove_range(start, end);
        Ok(())
    }

    /// Whether [`Space::unmap`] would do this.
    pub fn permits_unmap(&self, start: u64, bytes: u64) -> bool {
        let fits = is_page_aligned(start) && start <= USER_LIMIT && bytes <= USER_LIMIT - start;
        fits && self.check_area_count(1).is_ok()
    }

    fn choose_start(&self, request: &MapRequest, bytes: u64) -> Result<u64, MapError> {
        match request.placement {
            Placement::Anywhere => return self.find_free(request.address, bytes).ok_or(MapError::NoMemory),
            Placement::Low => return self.find_free_low(request.address, bytes).ok_or(MapError::NoMemory),
            Placement::Fixed | Placement::FixedIfFree => {}
        }
        let start = request.address;
        if bytes > USER_LIMIT || start > USER_LIMIT - bytes {
            return Err(MapError::NoMemory);
        }
        if !is_page_aligned(start) {
            return Err(MapError::Invalid);
        }
        if start < LOWEST_ADDRESS {
            return Err(MapError::NotPermitted);
        }
        if self.reserved_in(start, start + bytes).is_some() {
            return Err(MapError::NoMemory);
        }
        if request.placement == Placement::FixedIfFree && self.is_used(start, start + bytes) {
            return Err(MapError::Exists);
        }
        Ok(start)
    }

    /// Checks the limits for a new area that replaces what is in its range.
    fn check_expansion(&self, start: u64, area: &Area) -> Result<(), MapError> {
        let bytes = area.end - start;
        if !self.may_expand(bytes, 0) {
            // Linux subtracts what goes only when it matters; the walk is not free.
            let replaced = self.covered_bytes(start, area.end);
            if !self.may_expand(bytes - replaced, 0) {
                return Err(MapError::NoMemory);
            }
        }
        if area.is_data() && !self.may_expand(0, bytes) {
            return Err(MapError::NoMemory);
        }
        self.check_commit(bytes, area, area.protection)
    }

    /// `total` more bytes of areas, of which `data` count as data, are within the limits.
    pub(super) fn may_expand(&self, total: u64, data: u64) -> bool {
        self.total_bytes.saturating_add(total) <= page_of(self.limits.address_space_bytes)
            && (data == 0 || self.data_bytes.saturating_add(data) <= page_of(self.limits.data_bytes))
    }
}

/// The offset of the last page is a file offset.
fn check_offset(kind: &Kind, bytes: u64) -> Result<(), MapError> {
    let Some(view) = kind.view() else { return Ok(()) };
    let end = view.first_page.checked_add(bytes / PAGE).filter(|&end| end <= BACKING_PAGES_MAX);
    end.map(|_| ()).ok_or(MapError::Overflow)
}

/// `wanted` has a right that `limit` has not.
pub(super) fn exceeds(wanted: Protection, limit: Protection) -> bool {
    (wanted.read && !limit.read) || (wanted.write && !limit.write) || (wanted.execute && !limit.execute)
}
