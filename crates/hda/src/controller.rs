//! The controller: taken into and out of reset, and waited for.

use crate::Lost;
use crate::registers::*;

/// What a reset and a stream's stop may take. The specification names no limit; hardware needs tens of microseconds.
const PATIENCE_NS: u64 = 10_000_000;
/// Codecs have so long to say that they are there: 25 frames of 20.83 µs (4.3).
const CODECS_TAKE_NS: u64 = 521_000;

pub struct Controller<R: Registers> {
    registers: R,
}

impl<R: Registers> Controller<R> {
    /// Resets the controller (4.2.2); returns it with a bit for each codec that is there.
    pub fn start(registers: R) -> Result<(Controller<R>, u16), Lost> {
        let controller = Controller { registers };
        controller.write32(INTERRUPTS, 0);
        controller.write32(CONTROL, 0);
        controller.wait(|own| own.read32(CONTROL) & RUNS == 0)?;
        controller.write32(CONTROL, RUNS);
        controller.wait(|own| own.read32(CONTROL) & RUNS != 0)?;
        controller.pause(CODECS_TAKE_NS);
        let codecs = controller.read16(CODECS) & 0x7FFF;
        if codecs == 0 { Err(Lost::NoOutput) } else { Ok((controller, codecs)) }
    }

    /// Looks until something is so, and not forever. Error: `Silent`.
    pub fn wait(&self, is_so: impl Fn(&R) -> bool) -> Result<(), Lost> {
        let until = self.now().saturating_add(PATIENCE_NS);
        while !is_so(self) {
            if self.now() > until {
                return Err(Lost::Silent);
            }
            core::hint::spin_loop();
        }
        Ok(())
    }

    fn pause(&self, ns: u64) {
        let until = self.now().saturating_add(ns);
        while self.now() < until {
            core::hint::spin_loop();
        }
    }

    /// Its first stream descriptor for output: those for input come first (3.3.2).
    pub fn first_output(&self) -> Result<u32, Lost> {
        let capabilities = self.read16(CAPABILITIES);
        let (inputs, outputs) = (u32::from(capabilities >> 8 & 15), capabilities >> 12);
        if outputs == 0 { Err(Lost::NoOutput) } else { Ok(inputs) }
    }

    /// Whether it may be told this address.
    pub fn reaches(&self, address: u64) -> bool {
        self.read16(CAPABILITIES) & 1 != 0 || address >> 32 == 0
    }
}

impl<R: Registers> core::ops::Deref for Controller<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.registers
    }
}
