//! Which memory goes into a core file, and the file's tables.

use alloc::vec::Vec;

use abi::Errno;
use abi::core_file::{
    DUMP_ANONYMOUS_PRIVATE, DUMP_ANONYMOUS_SHARED, DUMP_ELF_HEADERS, DUMP_FILE_PRIVATE, DUMP_FILE_SHARED, EM_X86_64,
    ET_CORE, ElfHeader, PF_R, PF_W, PF_X, PT_LOAD, PT_NOTE, ProgramHeader,
};
use kernel::space::{AreaLabel, AreaView, Space};
use machine::{PAGE_BYTES, TryGrow};

use super::Output;
use crate::call::Call;

const PAGE: u64 = PAGE_BYTES as u64;

/// An area, and how much of it goes in.
struct Segment {
    start: u64,
    bytes: u64,
    dumped: u64,
    rights: u32,
    /// Pages that are not there are holes: nobody would ever see anything but zeros.
    is_anonymous: bool,
}

/// What the file will be.
pub struct Plan {
    segments: Vec<Segment>,
    notes_bytes: usize,
}

/// Looks at all areas. Error: `ENOMEM`.
pub fn plan(call: &Call<'_>, notes_bytes: usize) -> Result<Plan, Errno> {
    let mut segments = Vec::new();
    if let Some(space) = call.process().space() {
        let filter = call.process().settings.get().dump_filter;
        // An ELF header needs a look into the page, which may bring it in: areas first.
        let mut headers: Vec<usize> = Vec::new();
        {
            let space = space.borrow();
            for area in space.areas() {
                let (dumped, may_be_header) = chosen(&space, &area, filter);
                if may_be_header {
                    headers.try_push(segments.len())?;
                }
                segments.try_push(segment(&area, dumped))?;
            }
        }
        for index in headers {
            let mut magic = [0; 4];
            let start = segments[index].start;
            let read = call.unix.reach(call.held, &space, |space| space.peek_bytes(start, &mut magic));
            if read.is_ok() && magic == *b"\x7fELF" {
                segments[index].dumped = PAGE;
            }
        }
    }
    Ok(Plan { segments, notes_bytes })
}

fn segment(area: &AreaView<'_>, dumped: u64) -> Segment {
    let rights = area.protection;
    let words = [(rights.read, PF_R), (rights.write, PF_W), (rights.execute, PF_X)];
    Segment {
        start: area.start,
        bytes: area.end - area.start,
        dumped,
        rights: words.into_iter().filter(|(has, _)| *has).map(|(_, bit)| bit).sum(),
        is_anonymous: !matches!(area.label, AreaLabel::Backing(_)),
    }
}

/// How many bytes of an area go in (Linux `vma_dump_size`), and whether its first page does if it is an ELF header.
fn chosen(space: &Space, area: &AreaView<'_>, filter: u32) -> (u64, bool) {
    let has = |bit: u32| filter & bit != 0;
    let whole = area.end - area.start;
    let is_of_file = matches!(area.label, AreaLabel::Backing(backing) if backing.identity().inode != 0);
    let is_own = area.has_copies && space.next_present(area.start, area.end).is_some();
    let goes = match () {
        _ if area.is_special => true,
        _ if area.is_undumped => false,
        _ if area.is_shared && is_of_file => has(DUMP_FILE_SHARED),
        _ if area.is_shared => has(DUMP_ANONYMOUS_SHARED),
        _ if is_own && has(DUMP_ANONYMOUS_PRIVATE) => true,
        _ => is_of_file && has(DUMP_FILE_PRIVATE),
    };
    let may_be_header = !goes
        && !area.is_undumped
        && is_of_file
        && !area.is_shared
        && area.offset_bytes == 0
        && area.protection.read
        && has(DUMP_ELF_HEADERS);
    (if goes { whole } else { 0 }, may_be_header)
}

impl Plan {
    /// Where the first segment's bytes lie in the file.
    fn first_offset(&self) -> u64 {
        (self.notes_offset() + self.notes_bytes as u64).next_multiple_of(PAGE)
    }

    fn notes_offset(&self) -> u64 {
        (ElfHeader::BYTES + (self.segments.len() + 1) * ProgramHeader::BYTES) as u64
    }

    /// Writes the file. Errors: those of [`Output::put`]; what is written stays.
    pub fn write(&self, output: &mut Output<'_>, notes: &[u8]) -> Result<(), Errno> {
        output.put(&self.header().to_bytes())?;
        let notes_header = ProgramHeader {
            p_type: PT_NOTE,
            p_offset: self.notes_offset(),
            p_filesz: self.notes_bytes as u64,
            ..ProgramHeader::zeroed()
        };
        output.put(&notes_header.to_bytes())?;
        let mut offset = self.first_offset();
        for segment in &self.segments {
            output.put(&segment.header(offset).to_bytes())?;
            offset += segment.dumped;
        }
        output.put(notes)?;
        output.skip(self.first_offset() - output.at)?;
        let mut page = output.call.buffer(PAGE_BYTES)?;
        for segment in &self.segments {
            segment.write(output, &mut page)?;
        }
        // A hole at the end belongs to the file.
        let end = output.at;
        output.file.node().map_or(Ok(()), |node| {
            let who = output.call.process().credentials.borrow();
            if node.attributes().size_bytes < end { node.truncate(end, &who, output.call.now()) } else { Ok(()) }
        })
    }

    fn header(&self) -> ElfHeader {
        let mut e_ident = [0; 16];
        // 64 bits, little-endian, version 1.
        e_ident[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        ElfHeader {
            e_ident,
            e_type: ET_CORE,
            e_machine: EM_X86_64,
            e_version: 1,
            e_phoff: ElfHeader::BYTES as u64,
            e_ehsize: ElfHeader::BYTES as u16,
            e_phentsize: ProgramHeader::BYTES as u16,
            // A quaspace has at most 65,530 areas.
            e_phnum: (self.segments.len() + 1) as u16,
            ..ElfHeader::zeroed()
        }
    }
}

impl Segment {
    fn header(&self, offset: u64) -> ProgramHeader {
        ProgramHeader {
            p_type: PT_LOAD,
            p_flags: self.rights,
            p_offset: offset,
            p_vaddr: self.start,
            p_paddr: 0,
            p_filesz: self.dumped,
            p_memsz: self.bytes,
            p_align: PAGE,
        }
    }

    fn write(&self, output: &mut Output<'_>, page: &mut [u8]) -> Result<(), Errno> {
        let Some(space) = output.call.process().space() else { return Ok(()) };
        let (mut at, end) = (self.start, self.start + self.dumped);
        while at < end {
            if self.is_anonymous {
                let next = space.borrow().next_present(at, end).unwrap_or(end);
                output.skip(next - at)?;
                at = next;
                if at == end {
                    break;
                }
            }
            let (unix, held) = (output.call.unix, output.call.held);
            match unix.reach(held, &space, |space| space.peek_bytes(at, page)) {
                Ok(()) => output.put(page)?,
                // Behind the end of a file, or where nobody may read.
                Err(_) => output.skip(PAGE)?,
            }
            at += PAGE;
        }
        Ok(())
    }
}
