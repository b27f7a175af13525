//! The memory of programs, and the files that it shows: what a debugger asks for.

use bootimage::inspect::Items;
use kernel::space::{AreaLabel, Supply};
use machine::{PAGE_BYTES, TryGrow, try_filled};

use crate::inspect::{Cursor, Question, Refusal};
use crate::task::process::Process;
use alloc::sync::Arc;

/// Most bytes of memory in an answer, and in a request.
const BYTES_MAX: usize = 2 * PAGE_BYTES;

fn process(question: &mut Question<'_>) -> Result<Arc<Process>, Refusal> {
    question.unix.tasks.process(question.u32()?).ok_or(Refusal::Absent)
}

/// Arguments: `u32 process`. `u64 start, u64 end, u64 offset, text name` of each area that shows a file, by address.
pub fn areas(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let first = question.cursor;
    let space = process(question)?.space().ok_or(Refusal::Absent)?;
    for area in space.borrow().areas().filter(|area| area.start >= first) {
        let AreaLabel::Backing(backing) = area.label else { continue };
        out.u64(area.start).u64(area.end).u64(area.offset_bytes).text(backing.name());
        if !out.keep() {
            return Ok(area.start);
        }
    }
    Ok(0)
}

/// Arguments: `u32 process, u64 start` of an area, `u64 offset` in its file: bytes from there on, to the end of the next page.
pub fn file(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let process = process(question)?;
    let (start, offset) = (question.u64()?, question.u64()?);
    let space = process.space().ok_or(Refusal::Absent)?;
    let space = space.borrow();
    let area = space.areas().find(|area| area.start == start).ok_or(Refusal::Absent)?;
    let AreaLabel::Backing(backing) = area.label else { return Err(Refusal::Absent) };
    let mut from = offset as usize % PAGE_BYTES;
    for index in [offset / PAGE_BYTES as u64, offset / PAGE_BYTES as u64 + 1] {
        let mut bytes = try_filled(0, PAGE_BYTES - from).map_err(|_| Refusal::NoMemory)?;
        // Behind the end there is nothing more; a hole is zeros.
        let Ok(page) = backing.page(index) else { break };
        if let Supply::Wait(_) = page {
            // People ask again.
            return Err(Refusal::Busy);
        }
        if let Supply::Now(page) = page {
            page.read(from, &mut bytes);
        }
        out.bytes.try_extend_from_slice(&bytes).map_err(|_| Refusal::NoMemory)?;
        from = 0;
    }
    Ok(0)
}

/// Arguments: `u32 process, u64 address, u32 bytes`. The bytes, as they are without breakpoints; ABSENT if one is not there.
pub fn peek(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let (unix, process) = (question.unix, process(question)?);
    let (address, count) = (question.u64()?, question.u32()? as usize);
    let space = process.space().ok_or(Refusal::Absent)?;
    let mut bytes = try_filled(0, count.min(BYTES_MAX)).map_err(|_| Refusal::NoMemory)?;
    space.borrow_mut().peek_bytes(address, &mut bytes).map_err(|_| Refusal::Absent)?;
    unix.desk.stops.hide(process.pid, address, &mut bytes);
    out.bytes.try_extend_from_slice(&bytes).map_err(|_| Refusal::NoMemory)?;
    Ok(0)
}

/// Arguments: `u32 process, u64 address`, bytes. BAD: there is no private memory; BUSY: a breakpoint is there.
pub fn poke(question: &mut Question<'_>, _: &mut Items) -> Result<Cursor, Refusal> {
    let (unix, process, address) = (question.unix, process(question)?, question.u64()?);
    let bytes = question.arguments.0;
    if unix.desk.stops.has_break(process.pid, address, bytes.len()) {
        return Err(Refusal::Busy);
    }
    let space = process.space().ok_or(Refusal::Absent)?;
    let done = space.borrow_mut().poke_bytes(address, bytes);
    done.map(|()| 0).map_err(|_| Refusal::Bad)
}
