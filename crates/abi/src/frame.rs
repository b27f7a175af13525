//! What lies on a program's stack while a signal handler runs (`asm/sigcontext.h`, `asm/ucontext.h`).
//!
//! ```text
//! higher addresses
//!   extended state (FXSAVE image, XSAVE header, …, FP_XSTATE_MAGIC2)   64-byte aligned
//!   siginfo                                                            128 bytes
//!   ucontext                                                           304 bytes
//!   return address = sa_restorer                                       rsp at the handler's entry
//! lower addresses                                                      rsp + 8 is a multiple of 16
//! ```

use crate::record::record;
use crate::signal::StackT;

/// In `sw_reserved` of the FXSAVE image: an XSAVE image follows.
pub const FP_XSTATE_MAGIC1: u32 = 0x4650_5853;
/// After the XSAVE image: it is whole.
pub const FP_XSTATE_MAGIC2: u32 = 0x4650_5845;
/// Bytes of `FP_XSTATE_MAGIC2`.
pub const FP_XSTATE_MAGIC2_BYTES: usize = 4;
/// `uc_flags`: the extended state is in XSAVE format.
pub const UC_FP_XSTATE: u64 = 1;
/// `uc_flags`: the saved `ss` is valid.
pub const UC_SIGCONTEXT_SS: u64 = 2;
/// `uc_flags`: restore `ss` exactly.
pub const UC_STRICT_RESTORE_SS: u64 = 4;
/// Alignment of the extended state, in bytes.
pub const FPSTATE_ALIGN: u64 = 64;
/// Bytes below the stack pointer that belong to the interrupted function.
pub const RED_ZONE_BYTES: u64 = 128;

record! {
    /// `struct sigcontext`: the interrupted program's registers.
    SigContext, 256 bytes {
        r8: u64, r9: u64, r10: u64, r11: u64, r12: u64, r13: u64, r14: u64, r15: u64, rdi: u64, rsi: u64, rbp: u64,
        rbx: u64, rdx: u64, rax: u64, rcx: u64, rsp: u64, rip: u64, eflags: u64, cs: u16, gs: u16, fs: u16, ss: u16,
        /// Error code of the fault.
        err: u64,
        trapno: u64, oldmask: u64, cr2: u64,
        /// Address of the extended state, zero if there is none.
        fpstate: u64,
        reserved1: [u64; 8],
    }
}
record! {
    /// `struct ucontext` with the signal mask of the interrupted program.
    UContext, 304 bytes { uc_flags: u64, uc_link: u64, uc_stack: StackT, uc_mcontext: SigContext, uc_sigmask: u64 }
}
record! {
    /// `struct _fpx_sw_bytes`: what follows the FXSAVE image, kept in its last 48 bytes.
    FpxSoftwareBytes, 48 bytes { magic1: u32, extended_size: u32, xfeatures: u64, xstate_size: u32, padding: [u32; 7] }
}
record! {
    /// `struct _fpstate_64`: the FXSAVE image.
    FpState, 512 bytes {
        cwd: u16, swd: u16, twd: u16, fop: u16, rip: u64, rdp: u64, mxcsr: u32, mxcsr_mask: u32, st_space: [u32; 32],
        xmm_space: [u32; 64], reserved2: [u32; 12], sw_reserved: FpxSoftwareBytes,
    }
}
record! {
    /// `struct _xstate_header`: follows the FXSAVE image at offset 512.
    XStateHeader, 64 bytes { xfeatures: u64, reserved1: [u64; 2], reserved2: [u64; 5] }
}

/// `struct rt_sigframe`: offset of the return address, in bytes.
pub const FRAME_RESTORER: u64 = 0;
/// `struct rt_sigframe`: offset of the `ucontext`.
pub const FRAME_UCONTEXT: u64 = 8;
/// `struct rt_sigframe`: offset of the `siginfo`.
pub const FRAME_SIGINFO: u64 = FRAME_UCONTEXT + UContext::BYTES as u64;
/// `struct rt_sigframe`: size in bytes.
pub const FRAME_BYTES: u64 = FRAME_SIGINFO + 128;

/// The flags a program may set: AC, OF, DF, TF, SF, ZF, AF, PF, CF and RF.
pub const FLAGS_RESTORED: u64 = 0x5_0dd5;
/// Selectors of 64-bit programs. They stand in the frame, and no frame can change them.
pub const USER_CS: u16 = 0x33;
pub const USER_SS: u16 = 0x2b;

/// Where a frame goes on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramePlace {
    /// Address of the frame: the handler's first stack pointer.
    pub frame: u64,
    /// Address of the extended state.
    pub fpstate: u64,
}

/// Places a frame below `stack_top` as Linux does; `None` if the addresses would wrap.
///
/// `stack_top` is the top of the alternate stack, or the interrupted stack pointer less the red zone;
/// `fpstate_bytes` is the whole extended state with its closing magic.
pub const fn place_frame(stack_top: u64, fpstate_bytes: u64) -> Option<FramePlace> {
    let Some(fpstate) = stack_top.checked_sub(fpstate_bytes) else { return None };
    let fpstate = fpstate & !(FPSTATE_ALIGN - 1);
    let Some(frame) = fpstate.checked_sub(FRAME_BYTES) else { return None };
    // At a function's entry rsp + 8 is a multiple of 16, because the call has pushed the return address.
    let Some(frame) = (frame & !15).checked_sub(8) else { return None };
    Some(FramePlace { frame, fpstate })
}
