//! `synth code`: live routines with their birth certificates, and who leads to them.

use bootimage::inspect::Items;
use codestore::Birth;
use machine::{TryGrow, try_filled, try_text};

use super::{Cursor, Question, Refusal, streams};
use crate::files::descriptors::Descriptor;

/// All live routines, by address.
pub fn list(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let mut next = 0;
    question.unix.store.each_birth_from(question.cursor, |birth, _| {
        out.u64(birth.address).u32(birth.bytes).text(birth.name.as_bytes());
        out.text(try_text(format_args!("{}", birth.maker)).unwrap_or_default().as_bytes());
        let fits = out.keep();
        if !fits {
            next = birth.address;
        }
        fits
    });
    Ok(next)
}

/// The certificate of the routine that contains an address. The cursor is the number of a template.
pub fn certificate(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let (unix, address) = (question.unix, question.u64()?);
    let birth = unix.store.birth(address).ok_or(Refusal::Absent)?;
    let mut code = try_filled(0, birth.bytes as usize).map_err(|_| Refusal::NoMemory)?;
    unix.store.read(birth.address, &mut code);
    let first = usize::try_from(question.cursor).map_err(|_| Refusal::Bad)?;
    if first == 0 {
        out.u64(birth.address).u32(birth.bytes).u32(unix.store.references(birth.address) as u32);
        out.text(birth.name.as_bytes()).text(try_text(format_args!("{}", birth.maker)).unwrap_or_default().as_bytes());
        out.text(birth.contract.as_bytes()).u32(birth.origins.len() as u32);
    }
    for number in first..birth.origins.len() {
        put_template(question, &birth, number, &code, out);
        if !out.keep() {
            return Ok(number as u64);
        }
    }
    Ok(0)
}

fn put_template(question: &Question<'_>, birth: &Birth, number: usize, code: &[u8], out: &mut Items) {
    let machine = question.unix.machine;
    let origin = &birth.origins[number];
    out.text(origin.shape.name.as_bytes()).u32(origin.offset).u32(origin.bytes);
    out.u16(origin.holes(birth.address, code).count() as u16);
    for (name, hole) in origin.holes(birth.address, code) {
        let fact = kernel::facts::fact(machine, birth.name, name);
        let now = fact.and_then(|fact| match fact.word_bytes {
            0 => None,
            4 => machine.peek(hole.value).map(|word| word & u64::from(u32::MAX)),
            _ => machine.peek(hole.value),
        });
        out.text(name.as_bytes()).u8(hole.kind as u8 | if now.is_some() { 0x80 } else { 0 });
        out.u64(hole.value).u64(now.unwrap_or(0));
        out.text(fact.map_or("", |fact| fact.is).as_bytes()).text(fact.map_or("", |fact| fact.until).as_bytes());
    }
}

/// The bytes of a routine, from an offset on.
pub fn bytes(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let (store, address, offset) = (question.unix.store, question.u64()?, question.cursor);
    let birth = store.birth(address).ok_or(Refusal::Absent)?;
    if offset >= birth.bytes.into() {
        return Err(Refusal::Bad);
    }
    let mut piece = try_filled(0, out.room().min(birth.bytes as usize)).map_err(|_| Refusal::NoMemory)?;
    let count = store.read(birth.address + offset, &mut piece);
    out.bytes.try_extend_from_slice(&piece[..count]).map_err(|_| Refusal::NoMemory)?;
    let next = offset + count as u64;
    Ok(if next < birth.bytes.into() { next } else { 0 })
}

/// What `read`, `write` and `lseek` of a descriptor lead to.
pub fn descriptor(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let (process, descriptor) = (question.u32()?, Descriptor(question.u32()?));
    let process = question.unix.tasks.process(process).ok_or(Refusal::Absent)?;
    let files = process.files();
    let file = files.get(descriptor).ok_or(Refusal::Absent)?;
    let (bound, slow) = files.bound(descriptor);
    out.text(&streams::describe(question.unix, &file).name).u64(slow);
    for (bound, own) in bound.into_iter().zip(file.entry_points()) {
        out.u64(bound).u64(own.unwrap_or(0));
    }
    Ok(0)
}

/// A thread's own code and what its call table leads to.
pub fn thread(question: &mut Question<'_>, out: &mut Items) -> Result<Cursor, Refusal> {
    let task = question.unix.tasks.task(question.arguments.u32().ok_or(Refusal::Bad)?).ok_or(Refusal::Absent)?;
    let tte = task.thread.tte();
    let (entries, slow) = (tte.entries(), tte.slow_entry());
    if question.cursor == 0 {
        let own = [
            ("dispatch", entries.dispatch),
            ("slow_call", slow.address()),
            ("sw_in_mmu", entries.sw_in_mmu),
            ("sw_in", entries.sw_in),
            ("sw_out", entries.sw_out),
        ];
        for (name, address) in own {
            out.text(name.as_bytes()).u64(address);
        }
    }
    let first = usize::try_from(question.cursor).map_err(|_| Refusal::Bad)?;
    for number in first..abi::nr::COUNT {
        let entry = tte.call_entry(number);
        if entry == slow.address() {
            continue;
        }
        out.text(abi::nr::name(number as u64).unwrap_or("?").as_bytes()).u64(entry);
        if !out.keep() {
            return Ok(number as u64);
        }
    }
    Ok(0)
}
