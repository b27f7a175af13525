//! Stubs: what a patched call site jumps to (lazily inlined, S-85).
//!
//! ```text
//!   mov eax, nr          unless the site leaves the number to its caller
//!   …                    the instructions between the replaced one and the call, copied
//!   inc by_stub          only with counts=1, without touching flags: mov rcx, [count]; lea rcx, [rcx + 1]; mov [count], rcx
//!   lea rcx, [back]      where SYSCALL would have put it
//!   mov r11, [top]       the running thread's area; SYSCALL loses r11, too
//!   jmp [r11 + entry]    the call's entry in its call table
//! ```
//! This is the cached call (S-86): the number is a constant here, so its limit was checked when the stub was made and its
//! entry's place is known; the dispatch is left out. Where the number comes from the caller, the stub ends in
//! `jmp [dispatch]` instead.
//!
//! A stub is named by its site and stays for good: another process with the same program uses it again.

use alloc::collections::BTreeMap;
use core::mem::offset_of;

use machine::KernelCell;
use machine_x86::{CALLS, THREAD_AREA_BYTES, TteRecord};

use crate::cpu::cpu;
use crate::layout::{STUB_ALIAS, STUB_BYTES, STUBS};
use crate::{debug, the};

/// Bytes of a stub at most.
const CODE_MAX: usize = 96;
const ALIGNMENT: u64 = 16;
/// A 32-bit jump reaches this far.
const REACH: u64 = (2 << 30) - 4096;

struct Stubs {
    next: [u64; STUBS.len()],
    by_site: BTreeMap<u64, u64>,
}

static STATE: KernelCell<Stubs> = KernelCell::new(Stubs { next: [0; STUBS.len()], by_site: BTreeMap::new() });

struct Code {
    bytes: [u8; CODE_MAX],
    used: usize,
}

impl Code {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes[self.used..self.used + bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
    }

    /// Limit check and table at each call.
    fn add_dispatch(&mut self) {
        // SAFETY: only the field's address is taken; the processor's record lies in the low 2 GB.
        let slot = unsafe { (&raw const (*cpu()).slots.dispatch) as u64 };
        self.add(&[0xFF, 0x24, 0x25]);
        self.add(&(slot as u32).to_le_bytes());
    }

    /// Straight to the entry of `number`, which is in the table.
    fn add_cached(&mut self, number: usize) {
        // SAFETY: as in `add_dispatch`.
        let top = unsafe { (&raw const (*cpu()).stack_top) as u64 };
        let entry = (offset_of!(TteRecord, calls) + number * 8) as i64 - THREAD_AREA_BYTES as i64;
        self.add(&[0x4C, 0x8B, 0x1C, 0x25]);
        self.add(&(top as u32).to_le_bytes());
        self.add(&[0x41, 0xFF, 0xA3]);
        self.add(&(entry as i32).to_le_bytes());
    }
}

/// What the stub does before it jumps, and where the program goes on.
pub struct Wanted<'a> {
    /// The first byte that was replaced.
    pub site: u64,
    /// The call number, where the replaced instruction loaded it.
    pub number: Option<u32>,
    /// Copied instructions; position-independent.
    pub between: &'a [u8],
    /// Behind the call instruction.
    pub back: u64,
}

impl Wanted<'_> {
    fn assemble(&self, address: u64) -> Code {
        let mut code = Code { bytes: [0xCC; CODE_MAX], used: 0 };
        if let Some(number) = self.number {
            code.add(&[0xB8]);
            code.add(&number.to_le_bytes());
        }
        code.add(self.between);
        if the().counts_calls {
            // SAFETY: only the field's address is taken, as below.
            let count = unsafe { (&raw const (*cpu()).counts.by_stub) as u32 }.to_le_bytes();
            code.add(&[0x48, 0x8B, 0x0C, 0x25]);
            code.add(&count);
            code.add(&[0x48, 0x8D, 0x49, 0x01, 0x48, 0x89, 0x0C, 0x25]);
            code.add(&count);
        }
        let next = address + code.used as u64 + 7;
        code.add(&[0x48, 0x8D, 0x0D]);
        code.add(&(self.back.wrapping_sub(next) as u32).to_le_bytes());
        match self.number.filter(|number| (*number as usize) < CALLS) {
            Some(number) => code.add_cached(number as usize),
            None => code.add_dispatch(),
        }
        code
    }
}

/// The address of the stub for a site; `None`: no stub region is near enough, or it is full.
pub fn make(wanted: &Wanted<'_>) -> Option<u64> {
    let mut state = STATE.borrow_mut();
    if let Some(&stub) = state.by_site.get(&wanted.site)
        && holds(stub, &wanted.assemble(stub))
    {
        return Some(stub);
    }
    let region = STUBS.iter().position(|&start| {
        let (low, high) = (wanted.site.min(start), (wanted.site + 64).max(start + STUB_BYTES));
        high - low < REACH
    })?;
    let address = STUBS[region] + state.next[region];
    let code = wanted.assemble(address);
    let bytes = (code.used as u64).next_multiple_of(ALIGNMENT);
    if state.next[region] + bytes > STUB_BYTES {
        return None;
    }
    state.next[region] += bytes;
    let alias = alias_of(address)?;
    // SAFETY: the range was handed out to nobody; the alias is writable and the stub not known yet.
    unsafe { alias.copy_from_nonoverlapping(code.bytes.as_ptr(), bytes as usize) };
    state.by_site.insert(wanted.site, address);
    debug::stub_made(address, code.used as u64, wanted.back);
    Some(address)
}

fn alias_of(stub: u64) -> Option<*mut u8> {
    let region = STUBS.iter().position(|&start| (start..start + STUB_BYTES).contains(&stub))?;
    Some((STUB_ALIAS + region as u64 * STUB_BYTES + (stub - STUBS[region])) as *mut u8)
}

/// The stub there is this one.
fn holds(stub: u64, code: &Code) -> bool {
    let Some(alias) = alias_of(stub) else { return false };
    // SAFETY: stubs are never taken away.
    let there = unsafe { core::slice::from_raw_parts(alias, code.used) };
    *there == code.bytes[..code.used]
}
