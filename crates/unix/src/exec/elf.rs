//! Reading ELF64 x86-64 programs (System V ABI, chapter 4 and 5; AMD64 supplement).
//!
//! Parsing finds what Linux finds before its point of no return, and no more: a file with absurd
//! segments still parses, and [`super::Plan::new`] refuses it. So a missing interpreter is reported
//! before an absurd segment, as Linux does.

use alloc::vec::Vec;

use abi::Errno;
use machine::{PAGE_BYTES, Protection, TryGrow, try_filled};

use super::limits::{INTERPRETER_PATH_BYTES_MAX, PROGRAM_HEADERS_BYTES_MAX};

/// A file as the loader sees it.
pub trait FileBytes {
    /// Reads at `offset`; fewer bytes than asked for only at the end of the file.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, Errno>;
    /// The file's length in bytes.
    fn size(&self) -> u64;
}

/// How a program must be started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Fixed addresses, no interpreter.
    Static,
    /// Runs anywhere, relocates itself; also what the dynamic linker itself is.
    StaticPie,
    /// Asks for an interpreter; at fixed addresses or anywhere, see [`Image::fixed`].
    Dynamic,
}

/// One `PT_LOAD` entry, as it stands in the file and unchecked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Address before the load bias is added.
    pub vaddr: u64,
    /// Bytes in memory.
    pub mem_size: u64,
    pub file_offset: u64,
    /// Bytes from the file.
    pub file_size: u64,
    /// Alignment wanted; used for the load bias only when it is a power of two.
    pub align: u64,
    pub protection: Protection,
}

/// What the headers of a program or of an interpreter say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Image {
    /// The addresses are final (`ET_EXEC`); otherwise a load bias is added (`ET_DYN`).
    pub fixed: bool,
    /// Where execution starts, before the bias.
    pub entry: u64,
    /// Where a segment holds the program headers, before the bias; 0 when none does.
    pub phdr: u64,
    pub phnum: u16,
    /// Always 56.
    pub phentsize: u16,
    /// In file order, which is mapping order: a later segment covers an earlier one.
    pub segments: Vec<Segment>,
    /// The interpreter's path without its NUL.
    pub interp: Option<Vec<u8>>,
    /// `PT_GNU_STACK` asks for an executable stack. Without that header the stack is not executable.
    pub stack_executable: bool,
}

/// Why a file cannot be executed. [`ElfError::program_errno`] and [`ElfError::interpreter_errno`]
/// give the numbers that Linux returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ElfError {
    /// Does not begin with the ELF magic number, or ends inside the header.
    NotElf,
    /// Neither `ET_EXEC` nor `ET_DYN`.
    NotExecutable,
    /// For another processor, or a 32-bit file.
    ForeignMachine,
    /// Program headers of a wrong size, none, too many, or outside the file.
    BadProgramHeaders,
    /// The interpreter's path is empty, longer than [`INTERPRETER_PATH_BYTES_MAX`] or has no NUL.
    BadInterpreterPath,
    /// The file ends before the interpreter's path does, or inside an interpreter's header.
    Truncated,
    /// The file could not be read.
    Unreadable(Errno),
    /// The kernel has no memory for the headers.
    NoMemory,
}

impl ElfError {
    /// What `execve` returns when the program itself is at fault.
    pub fn program_errno(self) -> Errno {
        match self {
            ElfError::NotElf
            | ElfError::NotExecutable
            | ElfError::ForeignMachine
            | ElfError::BadProgramHeaders
            | ElfError::BadInterpreterPath => Errno::ENOEXEC,
            ElfError::Truncated => Errno::EIO,
            ElfError::Unreadable(errno) => errno,
            ElfError::NoMemory => Errno::ENOMEM,
        }
    }

    /// What `execve` returns when the interpreter is at fault.
    pub fn interpreter_errno(self) -> Errno {
        match self {
            ElfError::NotElf
            | ElfError::NotExecutable
            | ElfError::ForeignMachine
            | ElfError::BadProgramHeaders
            | ElfError::BadInterpreterPath => Errno::ELIBBAD,
            ElfError::Truncated | ElfError::Unreadable(_) | ElfError::NoMemory => self.program_errno(),
        }
    }
}

impl Image {
    pub fn kind(&self) -> Kind {
        match (&self.interp, self.fixed) {
            (Some(_), _) => Kind::Dynamic,
            (None, true) => Kind::Static,
            (None, false) => Kind::StaticPie,
        }
    }

    /// First page and first page after all segments, before the bias: `None` when there is nothing
    /// to map or when the sum wraps.
    pub fn span(&self) -> Option<(u64, u64)> {
        let mut span: Option<(u64, u64)> = None;
        for segment in &self.segments {
            let end = segment.vaddr.checked_add(segment.mem_size)?.checked_next_multiple_of(PAGE_BYTES as u64)?;
            let start = page_start(segment.vaddr);
            span = Some(span.map_or((start, end), |(low, high)| (low.min(start), high.max(end))));
        }
        span.filter(|(low, high)| low < high)
    }

    /// The largest alignment a segment asks for, at least a page, in bytes. Alignments that are not
    /// a power of two are passed over.
    pub fn alignment(&self) -> u64 {
        let wanted = self.segments.iter().map(|segment| segment.align).filter(|align| align.is_power_of_two()).max();
        wanted.unwrap_or(0).max(PAGE_BYTES as u64)
    }
}

const HEADER_BYTES: usize = 64;
const PROGRAM_HEADER_BYTES: usize = 56;
const MACHINE_X86_64: u16 = 62;
const TYPE_EXECUTABLE: u16 = 2;
const TYPE_SHARED: u16 = 3;
const PT_LOAD: u32 = 1;
const PT_INTERP: u32 = 3;
const PT_GNU_STACK: u32 = 0x6474_e551;

/// Reads the headers of a program that `execve` names (directly or in a `#!` line).
pub fn parse(file: &dyn FileBytes) -> Result<Image, ElfError> {
    let mut header = [0; HEADER_BYTES];
    // Linux looks at a zero-filled buffer, so a short file is judged by the bytes it has.
    read_up_to(file, 0, &mut header)?;
    let headers = Headers::read(file, &header)?;
    if !matches!(u16_at(&header, 16), TYPE_EXECUTABLE | TYPE_SHARED) {
        return Err(ElfError::NotExecutable);
    }
    let interp = match headers.entries().find(|entry| entry.kind == PT_INTERP) {
        Some(entry) => Some(interpreter_path(file, &entry)?),
        None => None,
    };
    headers.image(interp)
}

/// Reads the headers of the interpreter that a program asks for; an interpreter's own `PT_INTERP`
/// means nothing. One that is neither `ET_EXEC` nor `ET_DYN` comes back without segments, so that
/// loading it fails.
pub fn parse_interpreter(file: &dyn FileBytes) -> Result<Image, ElfError> {
    let mut header = [0; HEADER_BYTES];
    if read_up_to(file, 0, &mut header)? < HEADER_BYTES {
        return Err(ElfError::Truncated);
    }
    let mut image = Headers::read(file, &header)?.image(None)?;
    // Linux looks at an interpreter's type only when it maps it, after the point of no return.
    if !matches!(u16_at(&header, 16), TYPE_EXECUTABLE | TYPE_SHARED) {
        image.segments.clear();
    }
    Ok(image)
}

/// The file header and the table of program headers, still as bytes.
struct Headers {
    fixed: bool,
    entry: u64,
    table_offset: u64,
    table: Vec<u8>,
}

/// One program header.
struct Entry {
    kind: u32,
    flags: u32,
    offset: u64,
    vaddr: u64,
    file_size: u64,
    mem_size: u64,
    align: u64,
}

impl Headers {
    fn read(file: &dyn FileBytes, header: &[u8; HEADER_BYTES]) -> Result<Headers, ElfError> {
        if !header.starts_with(b"\x7fELF") {
            return Err(ElfError::NotElf);
        }
        // The class byte is not looked at, as on Linux: a 32-bit file fails by its machine, or
        // (x32) because its header has the program header size in another place.
        if u16_at(header, 18) != MACHINE_X86_64 {
            return Err(ElfError::ForeignMachine);
        }
        let table_bytes = u16_at(header, 56) as usize * PROGRAM_HEADER_BYTES;
        let size_fits = u16_at(header, 54) as usize == PROGRAM_HEADER_BYTES;
        if !size_fits || table_bytes == 0 || table_bytes > PROGRAM_HEADERS_BYTES_MAX {
            return Err(ElfError::BadProgramHeaders);
        }
        let table_offset = u64_at(header, 32);
        let mut table = zeroed(table_bytes)?;
        // Any trouble with the table is the file's fault to Linux, even a read error.
        match read_up_to(file, table_offset, &mut table) {
            Ok(count) if count == table_bytes => {}
            _ => return Err(ElfError::BadProgramHeaders),
        }
        Ok(Headers { fixed: u16_at(header, 16) == TYPE_EXECUTABLE, entry: u64_at(header, 24), table_offset, table })
    }

    fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        self.table.chunks_exact(PROGRAM_HEADER_BYTES).map(|bytes| Entry {
            kind: u32_at(bytes, 0),
            flags: u32_at(bytes, 4),
            offset: u64_at(bytes, 8),
            vaddr: u64_at(bytes, 16),
            file_size: u64_at(bytes, 32),
            mem_size: u64_at(bytes, 40),
            align: u64_at(bytes, 48),
        })
    }

    fn image(&self, interp: Option<Vec<u8>>) -> Result<Image, ElfError> {
        let mut image = Image {
            fixed: self.fixed,
            entry: self.entry,
            phdr: 0,
            phnum: (self.table.len() / PROGRAM_HEADER_BYTES) as u16,
            phentsize: PROGRAM_HEADER_BYTES as u16,
            segments: Vec::new(),
            interp,
            stack_executable: false,
        };
        for entry in self.entries() {
            match entry.kind {
                PT_GNU_STACK => image.stack_executable = protection(entry.flags).execute,
                PT_LOAD => {
                    let file_end = entry.offset.wrapping_add(entry.file_size);
                    if entry.offset <= self.table_offset && self.table_offset < file_end {
                        image.phdr = (self.table_offset - entry.offset).wrapping_add(entry.vaddr);
                    }
                    image.segments.try_push(entry.segment()).map_err(|_| ElfError::NoMemory)?;
                }
                _ => {}
            }
        }
        Ok(image)
    }
}

impl Entry {
    fn segment(&self) -> Segment {
        Segment {
            vaddr: self.vaddr,
            mem_size: self.mem_size,
            file_offset: self.offset,
            file_size: self.file_size,
            align: self.align,
            protection: protection(self.flags),
        }
    }
}

fn interpreter_path(file: &dyn FileBytes, entry: &Entry) -> Result<Vec<u8>, ElfError> {
    if entry.file_size < 2 || entry.file_size > INTERPRETER_PATH_BYTES_MAX {
        return Err(ElfError::BadInterpreterPath);
    }
    let mut path = zeroed(entry.file_size as usize)?;
    if read_up_to(file, entry.offset, &mut path)? < path.len() {
        return Err(ElfError::Truncated);
    }
    if path.last() != Some(&0) {
        return Err(ElfError::BadInterpreterPath);
    }
    // The path ends at its first NUL, wherever the header says the field ends.
    let length = path.iter().position(|byte| *byte == 0).unwrap_or(0);
    path.truncate(length);
    Ok(path)
}

fn protection(flags: u32) -> Protection {
    Protection { read: flags & 4 != 0, write: flags & 2 != 0, execute: flags & 1 != 0 }
}

fn zeroed(bytes: usize) -> Result<Vec<u8>, ElfError> {
    try_filled(0, bytes).map_err(|_| ElfError::NoMemory)
}

/// Reads until `into` is full or the file ends; returns the bytes read.
fn read_up_to(file: &dyn FileBytes, offset: u64, into: &mut [u8]) -> Result<usize, ElfError> {
    if offset > i64::MAX as u64 {
        return Err(ElfError::Unreadable(Errno::EINVAL));
    }
    let mut done = 0;
    while done < into.len() {
        let count = file.read_at(offset + done as u64, &mut into[done..]).map_err(ElfError::Unreadable)?;
        if count == 0 {
            break;
        }
        done += count.min(into.len() - done);
    }
    Ok(done)
}

/// The page that `address` lies in.
pub(super) fn page_start(address: u64) -> u64 {
    address & !(PAGE_BYTES as u64 - 1)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

/// `N` bytes at `at`; every caller names a field inside a record of fixed size.
fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}

#[cfg(test)]
#[path = "tests/elf.rs"]
mod tests;
