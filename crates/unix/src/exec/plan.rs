//! What must stand in a fresh quaspace before a program's first instruction.
//!
//! ```text
//!   segment in the file    |#######|
//!   pages of the file    [...#][###0][....]      one `map_file`, the tail of its last page zeroed
//!   pages without a file             [0000]      `map_anonymous` for the rest of `mem_size`
//! ```
//!
//! Later steps cover earlier ones where they overlap, as MAP_FIXED does.

use alloc::vec::Vec;

use abi::Errno;
use machine::{PAGE_BYTES, Protection, TryGrow};

use super::elf::{Image, Segment, page_start};
use super::limits::{PROGRAM_BASE, STACK_GAP_BYTES_MAX, STACK_GAP_BYTES_MIN, STACK_GUARD_BYTES, USER_END};

/// Which file a mapping shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    Program,
    Interpreter,
}

/// A quaspace, as far as loading needs it. Addresses, lengths and file offsets are multiples of the
/// page size and below [`USER_END`]; only `zero` names single bytes. A new mapping replaces what it
/// covers.
pub trait Mapper {
    /// Shows `len` bytes of a file, private, copied when written. The range may reach beyond the
    /// end of the file: touching such a page is SIGBUS.
    fn map_file(&mut self, source: Source, addr: u64, len: u64, prot: Protection, offset: u64) -> Result<(), Errno>;
    /// Makes memory that reads as zeros.
    fn map_anonymous(&mut self, addr: u64, len: u64, prot: Protection) -> Result<(), Errno>;
    /// Writes zeros to mapped bytes inside one page.
    fn zero(&mut self, addr: u64, len: u64) -> Result<(), Errno>;
}

/// One call to a [`Mapper`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    File { source: Source, addr: u64, len: u64, prot: Protection, offset: u64 },
    Anonymous { addr: u64, len: u64, prot: Protection },
    Zero { addr: u64, len: u64 },
}

/// Why a program dies while it is loaded. The old program is gone by then, so Linux has nobody to
/// give an errno to and sends SIGSEGV; the number is for messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlanError {
    /// No `PT_LOAD` at all, or only empty ones.
    NothingToLoad,
    /// Offset in the file and address differ modulo the page size, or the offset wraps.
    Misaligned,
    /// `p_filesz` is larger than `p_memsz`.
    FileBeyondMemory,
    /// Leaves the user's addresses or wraps around them.
    OutsideUserSpace,
    /// The first instruction lies outside the user's addresses.
    EntryOutsideUserSpace,
    /// The kernel has no memory for the plan.
    NoMemory,
}

impl PlanError {
    pub fn errno(self) -> Errno {
        match self {
            PlanError::NothingToLoad
            | PlanError::Misaligned
            | PlanError::FileBeyondMemory
            | PlanError::EntryOutsideUserSpace => Errno::EINVAL,
            PlanError::OutsideUserSpace | PlanError::NoMemory => Errno::ENOMEM,
        }
    }
}

/// Everything that is decided before the first mapping is made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// In the order they must be taken.
    pub steps: Vec<Step>,
    /// RIP at the first instruction: the interpreter's entry if there is one.
    pub start: u64,
    /// AT_ENTRY: the program's own entry.
    pub entry: u64,
    /// AT_PHDR.
    pub phdr: u64,
    /// AT_BASE: the interpreter's load bias, or 0.
    pub interpreter_base: u64,
    /// What was added to the program's addresses.
    pub program_bias: u64,
    /// The first byte of the heap: the first page after the program.
    pub brk_start: u64,
    /// Lowest and highest byte of the program's executable segments, for `/proc/self/stat`.
    pub code: (u64, u64),
    pub stack_executable: bool,
}

impl Plan {
    /// Plans for `program`, and for its interpreter with the load bias that [`interpreter_bias`] or
    /// the caller chose (without effect for an interpreter at fixed addresses).
    pub fn new(program: &Image, interpreter: Option<(&Image, u64)>) -> Result<Plan, PlanError> {
        let mut steps = Vec::new();
        let program_bias = program_bias(program)?;
        plan_segments(program, Source::Program, program_bias, &mut steps)?;
        let entry = program.entry.wrapping_add(program_bias);
        let mut start = entry;
        let mut interpreter_base = 0;
        if let Some((image, bias)) = interpreter {
            interpreter_base = if image.fixed { 0 } else { bias };
            plan_segments(image, Source::Interpreter, interpreter_base, &mut steps)?;
            start = image.entry.wrapping_add(interpreter_base);
        }
        if start >= USER_END {
            return Err(PlanError::EntryOutsideUserSpace);
        }
        let (_, end) = program.span().ok_or(PlanError::NothingToLoad)?;
        Ok(Plan {
            steps,
            start,
            entry,
            phdr: program.phdr.wrapping_add(program_bias),
            interpreter_base,
            program_bias,
            brk_start: end.wrapping_add(program_bias),
            code: code_range(program, program_bias),
            stack_executable: program.stack_executable,
        })
    }
}

/// Takes the steps of `plan` until one fails. A failure kills the program, see [`PlanError`].
pub fn load(plan: &Plan, mapper: &mut dyn Mapper) -> Result<(), Errno> {
    for step in &plan.steps {
        match *step {
            Step::File { source, addr, len, prot, offset } => mapper.map_file(source, addr, len, prot, offset)?,
            Step::Anonymous { addr, len, prot } => mapper.map_anonymous(addr, len, prot)?,
            Step::Zero { addr, len } => mapper.zero(addr, len)?,
        }
    }
    Ok(())
}

/// The highest load bias that puts all of `image` below `top`. `None`: it does not fit.
pub fn interpreter_bias(image: &Image, top: u64) -> Option<u64> {
    if image.fixed {
        return Some(0);
    }
    let (low, high) = image.span()?;
    let align = image.alignment();
    let start = top.checked_sub(high - low)? & !(align - 1);
    (start >= PAGE_BYTES as u64).then(|| start.wrapping_sub(low))
}

/// Where the area for mmap ends (it is filled from there downwards): below the room that the stack
/// may grow into, with its guard. `stack_limit` is the soft RLIMIT_STACK in bytes.
pub fn mmap_top(stack_limit: u64) -> u64 {
    let wanted = stack_limit.saturating_add(STACK_GUARD_BYTES);
    page_start(USER_END - wanted.clamp(STACK_GAP_BYTES_MIN, STACK_GAP_BYTES_MAX))
}

fn program_bias(program: &Image) -> Result<u64, PlanError> {
    if program.fixed {
        return Ok(0);
    }
    let first = program.segments.first().ok_or(PlanError::NothingToLoad)?;
    let base = PROGRAM_BASE & !(program.alignment() - 1);
    Ok(base.wrapping_sub(page_start(first.vaddr)))
}

fn plan_segments(image: &Image, source: Source, bias: u64, steps: &mut Vec<Step>) -> Result<(), PlanError> {
    if image.span().is_none() {
        return Err(empty_or_wrapping(image));
    }
    for segment in &image.segments {
        plan_segment(segment, source, bias, steps)?;
    }
    Ok(())
}

fn empty_or_wrapping(image: &Image) -> PlanError {
    match image.segments.iter().all(|segment| segment.mem_size == 0) {
        true => PlanError::NothingToLoad,
        false => PlanError::OutsideUserSpace,
    }
}

fn plan_segment(segment: &Segment, source: Source, bias: u64, steps: &mut Vec<Step>) -> Result<(), PlanError> {
    if segment.file_size > segment.mem_size {
        return Err(PlanError::FileBeyondMemory);
    }
    let vaddr = segment.vaddr.wrapping_add(bias);
    // The first check keeps every sum below from wrapping.
    let unbiased_fits = fits(segment.vaddr, segment.mem_size);
    if !unbiased_fits || !fits(vaddr, segment.mem_size) {
        return Err(PlanError::OutsideUserSpace);
    }
    steps.room_for(3).map_err(|_| PlanError::NoMemory)?;

    let page = page_start(vaddr);
    let file_end = vaddr + segment.file_size;
    let mut anonymous = page;
    if segment.file_size > 0 {
        let offset = file_page(segment)?;
        anonymous = page_end(file_end);
        steps.put(Step::File { source, addr: page, len: anonymous - page, prot: segment.protection, offset });
        // Without write permission Linux leaves the rest of the page as the file has it.
        let tail = anonymous - file_end;
        if segment.mem_size > segment.file_size && tail > 0 && segment.protection.write {
            steps.put(Step::Zero { addr: file_end, len: tail });
        }
    }
    let end = page_end(vaddr + segment.mem_size);
    if segment.mem_size > segment.file_size && end > anonymous {
        // As for the heap: always readable and writable, executable only on request.
        let prot = Protection { read: true, write: true, execute: segment.protection.execute };
        steps.put(Step::Anonymous { addr: anonymous, len: end - anonymous, prot });
    }
    Ok(())
}

fn fits(address: u64, bytes: u64) -> bool {
    address.checked_add(bytes).is_some_and(|end| end <= USER_END)
}

/// The file offset of the segment's first page.
fn file_page(segment: &Segment) -> Result<u64, PlanError> {
    let into_page = segment.vaddr - page_start(segment.vaddr);
    let offset = segment.file_offset.checked_sub(into_page).ok_or(PlanError::Misaligned)?;
    let end = offset.checked_add(segment.file_size).and_then(|end| end.checked_add(2 * PAGE_BYTES as u64));
    if page_start(offset) != offset || end.is_none_or(|end| end > i64::MAX as u64) {
        return Err(PlanError::Misaligned);
    }
    Ok(offset)
}

fn page_end(address: u64) -> u64 {
    page_start(address + PAGE_BYTES as u64 - 1)
}

fn code_range(program: &Image, bias: u64) -> (u64, u64) {
    let code = program.segments.iter().filter(|segment| segment.protection.execute);
    let start = code.clone().map(|segment| segment.vaddr).min().unwrap_or(0);
    let end = code.map(|segment| segment.vaddr.saturating_add(segment.file_size)).max().unwrap_or(0);
    (start.wrapping_add(bias), end.wrapping_add(bias))
}

#[cfg(test)]
#[path = "tests/plan.rs"]
mod tests;
