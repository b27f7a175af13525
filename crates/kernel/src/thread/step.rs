//! The trap flag of a thread that executes one instruction (S-53).

use machine::Registers;

/// The processor's trap flag: an exception after the next instruction (SDM vol. 3B, 18.3.1.4).
pub const TRAP_FLAG: u64 = 1 << 8;

/// Whether a thread steps, and whose the trap flag in its program's registers is.
///
/// A program may use the flag itself. It must not see that of the kernel, nor keep it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Step {
    /// The thread was started for one instruction.
    pub is_wanted: bool,
    /// The flag was set here, and is not the program's.
    is_ours: bool,
}

impl Step {
    /// Brings the flag in line with what is wanted, before the thread goes back to its program.
    pub fn arrange(&mut self, registers: &mut Registers) {
        let is_set = registers.rflags & TRAP_FLAG != 0;
        if self.is_wanted {
            // Where calls lose the flag, ours is set again.
            self.is_ours |= !is_set;
            registers.rflags |= TRAP_FLAG;
        } else if self.is_ours {
            registers.rflags &= !TRAP_FLAG;
            self.is_ours = false;
        }
    }

    /// The flag has outlived the step, because the thread was started anew while it ran.
    pub fn is_stale(self) -> bool {
        self.is_ours && !self.is_wanted
    }

    /// The registers as the program has them.
    pub fn hidden(self, registers: &Registers) -> Registers {
        let rflags = if self.is_ours { registers.rflags & !TRAP_FLAG } else { registers.rflags };
        Registers { rflags, ..*registers }
    }
}

#[cfg(test)]
mod tests {
    use super::{Step, TRAP_FLAG};
    use machine::Registers;

    fn with_flags(rflags: u64) -> Registers {
        Registers { rflags, ..Registers::default() }
    }

    #[test]
    fn a_step_sets_the_flag_and_the_next_start_clears_it() {
        let (mut step, mut registers) = (Step::default(), with_flags(0x202));
        step.is_wanted = true;
        step.arrange(&mut registers);
        assert_eq!(registers.rflags, 0x202 | TRAP_FLAG);
        assert_eq!(step.hidden(&registers).rflags, 0x202);
        step.is_wanted = false;
        assert!(step.is_stale());
        step.arrange(&mut registers);
        assert_eq!(registers.rflags, 0x202);
        assert!(!step.is_stale());
    }

    #[test]
    fn the_flag_of_the_program_stays_and_is_seen() {
        let (mut step, mut registers) = (Step::default(), with_flags(0x202 | TRAP_FLAG));
        step.is_wanted = true;
        step.arrange(&mut registers);
        step.is_wanted = false;
        step.arrange(&mut registers);
        assert_eq!(registers.rflags, 0x202 | TRAP_FLAG);
        assert_eq!(step.hidden(&registers), registers);
    }

    #[test]
    fn a_call_that_loses_the_flag_does_not_end_the_step() {
        let (mut step, mut registers) = (Step { is_wanted: true, ..Step::default() }, with_flags(0x202));
        step.arrange(&mut registers);
        registers.rflags &= !TRAP_FLAG;
        step.arrange(&mut registers);
        assert_eq!(registers.rflags, 0x202 | TRAP_FLAG);
        step.is_wanted = false;
        step.arrange(&mut registers);
        assert_eq!(registers.rflags, 0x202);
    }
}
