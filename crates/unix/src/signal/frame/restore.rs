//! `rt_sigreturn`: from a frame, which the handler may have changed, back to registers.

use abi::Field;
use abi::frame::{
    FLAGS_RESTORED, FP_XSTATE_MAGIC1, FP_XSTATE_MAGIC2, FP_XSTATE_MAGIC2_BYTES, FPSTATE_ALIGN, FRAME_UCONTEXT,
    FpxSoftwareBytes, SigContext, UContext, USER_CS, USER_SS,
};
use abi::signal::StackT;
use machine::Registers;

use super::{FEATURES_BASE, SOFTWARE_BYTES, VectorFormat, XSAVE_BYTES_MIN, XSAVE_HEADER};
use crate::signal::set::SignalSet;

/// Bytes of a legacy FXSAVE image.
const FXSAVE_BYTES: usize = 512;
/// FXRSTOR wants its image aligned to so many bytes.
const FXSAVE_ALIGN: u64 = 16;
/// First address that is no program's.
const USER_END: u64 = 0x7fff_ffff_f000;

/// Copies bytes from the program at an address; `false`: they cannot be read.
pub type Reader<'a> = &'a dyn Fn(u64, &mut [u8]) -> bool;

/// What a frame says. Set the mask and the registers first, then the vector state (a refused one gives
/// `force_segv`, with mask and registers as restored), last the alternate stack, ignoring its errors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Restored {
    /// `rip` is any number the program liked, even one that is no canonical address.
    pub registers: Registers,
    pub mask: SignalSet,
    pub vector_state: VectorRestore,
    /// For `AltStack::set` with the restored `rsp`.
    pub altstack: StackT,
}

/// The vector state of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum VectorRestore {
    /// The frame has none: reset the registers.
    Reset,
    /// The first `bytes` of an XSAVE image at an address, and the features to take from it; all others are initial.
    /// Its header is checked; MXCSR and the rest are not.
    Image { address: u64, bytes: usize, features: u64 },
    /// It cannot be read or breaks the processor's rules.
    Refused,
}

/// The frame cannot be read: `force_segv`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadFrame {
    /// Linux has set the mask already when only the registers could not be read.
    pub mask: Option<SignalSet>,
}

/// Reads the frame whose handler returned through its restorer, with `now` the registers at `rt_sigreturn`.
///
/// Errors: the frame or its mask cannot be read, or it names a code segment that is not the programs' own. Linux
/// notices that one when it returns to the program, and the end is the same `SIGSEGV`.
pub fn restore(now: &Registers, format: VectorFormat, read: Reader) -> Result<Restored, BadFrame> {
    // `ret` has taken the return address off the stack.
    let frame = now.rsp.wrapping_sub(8);
    let mut bytes = [0; UContext::BYTES];
    if !is_user(frame, FRAME_UCONTEXT + UContext::BYTES as u64) || !read(frame + FRAME_UCONTEXT, &mut bytes) {
        return Err(BadFrame { mask: None });
    }
    let context = UContext::from_bytes(&bytes);
    // The two low bits are forced to user privilege, as Linux does.
    if context.uc_mcontext.cs | 3 != USER_CS {
        return Err(BadFrame { mask: Some(SignalSet(context.uc_sigmask).blockable()) });
    }
    Ok(Restored {
        registers: registers(&context.uc_mcontext, now),
        mask: SignalSet(context.uc_sigmask).blockable(),
        vector_state: vector_state(context.uc_mcontext.fpstate, format, read),
        altstack: context.uc_stack,
    })
}

fn registers(saved: &SigContext, now: &Registers) -> Registers {
    Registers {
        r8: saved.r8,
        r9: saved.r9,
        r10: saved.r10,
        r11: saved.r11,
        r12: saved.r12,
        r13: saved.r13,
        r14: saved.r14,
        r15: saved.r15,
        rdi: saved.rdi,
        rsi: saved.rsi,
        rbp: saved.rbp,
        rbx: saved.rbx,
        rdx: saved.rdx,
        rax: saved.rax,
        rcx: saved.rcx,
        rsp: saved.rsp,
        rip: saved.rip,
        rflags: (now.rflags & !FLAGS_RESTORED) | (saved.eflags & FLAGS_RESTORED),
        cs: u64::from(USER_CS),
        ss: u64::from(USER_SS),
        cause: now.cause,
        error: now.error,
    }
}

/// Reads the vector state as Linux does: a whole XSAVE image if both magics stand, else the FXSAVE part.
fn vector_state(at: u64, format: VectorFormat, read: Reader) -> VectorRestore {
    if at == 0 {
        return VectorRestore::Reset;
    }
    if !is_user(at, (format.bytes + FP_XSTATE_MAGIC2_BYTES) as u64) {
        return VectorRestore::Refused;
    }
    let image = match declared(at, format, read) {
        Some(Declared::Whole { features, header }) => whole_image(at, format, features, header),
        Some(Declared::Legacy) => legacy_image(at),
        None => None,
    };
    image.unwrap_or(VectorRestore::Refused)
}

/// What a frame declares.
enum Declared {
    /// An XSAVE image that fits, the features to restore, and the words of its header, if they can be read.
    Whole { features: u64, header: Option<[u64; 3]> },
    /// FXSAVE only.
    Legacy,
}

/// `None`: it cannot be read.
fn declared(at: u64, format: VectorFormat, read: Reader) -> Option<Declared> {
    const HEADER: usize = XSAVE_HEADER - SOFTWARE_BYTES;
    let mut bytes = [0; HEADER + 24];
    let has_header = read(at + SOFTWARE_BYTES as u64, &mut bytes);
    if !has_header && !read(at + SOFTWARE_BYTES as u64, &mut bytes[..HEADER]) {
        return None;
    }
    let software = <FpxSoftwareBytes as Field>::get(&bytes);
    let size = software.xstate_size as usize;
    if software.magic1 != FP_XSTATE_MAGIC1
        || size < XSAVE_BYTES_MIN
        || size > format.bytes
        || software.xstate_size > software.extended_size
    {
        return Some(Declared::Legacy);
    }
    let mut closing = [0; FP_XSTATE_MAGIC2_BYTES];
    if !read(at + format.bytes as u64, &mut closing) {
        return None;
    }
    let header = has_header.then(|| <[u64; 3]>::get(&bytes[HEADER..]));
    let is_whole = u32::from_le_bytes(closing) == FP_XSTATE_MAGIC2;
    Some(if is_whole { Declared::Whole { features: software.xfeatures, header } } else { Declared::Legacy })
}

/// The whole image, of the features that are asked for. Checks what XRSTOR checks in the header (SDM vol. 1,
/// 13.8): only known features, standard format, reserved bytes zero.
fn whole_image(at: u64, format: VectorFormat, features: u64, header: Option<[u64; 3]>) -> Option<VectorRestore> {
    if !at.is_multiple_of(FPSTATE_ALIGN) {
        return None;
    }
    // Behind the features, bytes 8 to 23 must be zero; the others are reserved but the processor does not look at them.
    let header = header?;
    let is_valid = header[0] & !format.features == 0 && header[1..] == [0, 0];
    is_valid.then_some(VectorRestore::Image { address: at, bytes: format.bytes, features: header[0] & features })
}

/// The FXSAVE part alone; all other features are initial.
fn legacy_image(at: u64) -> Option<VectorRestore> {
    let image = VectorRestore::Image { address: at, bytes: FXSAVE_BYTES, features: FEATURES_BASE };
    at.is_multiple_of(FXSAVE_ALIGN).then_some(image)
}

fn is_user(address: u64, bytes: u64) -> bool {
    address.checked_add(bytes).is_some_and(|end| end <= USER_END)
}
