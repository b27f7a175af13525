//! Routines made at run time, and whether there can be any.

use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count};

use ground::{Twin, serialize};
use synth::{Abs32, Draft};

/// Which inner loop runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Written for its coefficients, at run time.
    Synthesized,
    /// What the compiler made.
    Compiled,
}

/// A register of the widest instructions used here.
pub(crate) const VECTOR_BYTES: usize = 32;

/// A finished routine, with its constants.
#[derive(Debug)]
pub(crate) struct Routine {
    /// The code lies here.
    _region: Twin,
    entry: usize,
}

impl Routine {
    pub fn entry(&self) -> usize {
        self.entry
    }
}

/// Where a routine is made: constants first, then the code that names them.
pub(crate) struct Desk {
    region: Twin,
    used: usize,
}

impl Desk {
    /// Room for so many constants of a vector and so many bytes of code. `None`: there can be no code here.
    pub fn new(constants: usize, code_bytes: usize) -> Option<Desk> {
        if !has_avx2() {
            return None;
        }
        let region = Twin::new(constants * VECTOR_BYTES + code_bytes).ok()?;
        Some(Desk { region, used: 0 })
    }

    fn keep(&mut self, bytes: &[u8; VECTOR_BYTES]) -> Abs32 {
        let at = self.used;
        self.region.store(at, bytes);
        self.used += VECTOR_BYTES;
        Abs32((self.region.run() + at) as u64)
    }

    /// Where a constant lies that fills a vector with `word`.
    pub fn constant(&mut self, word: [u8; 4]) -> Abs32 {
        let mut bytes = [0; VECTOR_BYTES];
        bytes.chunks_exact_mut(4).for_each(|chunk| chunk.copy_from_slice(&word));
        self.keep(&bytes)
    }

    /// The constant of a shift by so many bits: the instructions read 64 bits of it.
    pub fn count(&mut self, bits: u32) -> Abs32 {
        let mut bytes = [0; VECTOR_BYTES];
        bytes[..4].copy_from_slice(&bits.to_le_bytes());
        self.keep(&bytes)
    }

    /// The constant of two coefficients side by side, as [`pmaddwd`](https://www.felixcloutier.com/x86/pmaddwd) takes them.
    pub fn pair(&mut self, low: i16, high: i16) -> Abs32 {
        let ([a, b], [c, d]) = (low.to_le_bytes(), high.to_le_bytes());
        self.constant([a, b, c, d])
    }

    /// `None`: the code does not fit.
    pub fn publish(mut self, draft: Draft) -> Option<Routine> {
        if draft.len() > self.region.bytes() - self.used {
            return None;
        }
        let entry = self.region.run() + self.used;
        let bound = draft.bind(entry as u64).ok()?;
        self.region.store(self.used, &bound.bytes);
        serialize();
        Some(Routine { _region: self.region, entry })
    }
}

/// Whether processor and system have the 256-bit integer instructions.
fn has_avx2() -> bool {
    const OSXSAVE: u32 = 1 << 27;
    const AVX2: u32 = 1 << 5;
    const SSE_AND_AVX: u32 = 6;
    if __cpuid(0).eax < 7 || __cpuid(1).ecx & OSXSAVE == 0 {
        return false;
    }
    let enabled: u32;
    // SAFETY: 1. OSXSAVE says that programs may execute it. 2. It reads a register.
    unsafe { asm!("xgetbv", in("ecx") 0, out("eax") enabled, out("edx") _, options(nomem, nostack)) };
    enabled & SSE_AND_AVX == SSE_AND_AVX && __cpuid_count(7, 0).ebx & AVX2 != 0
}
