//! From interrupted registers to a frame and the registers a handler starts with.

use abi::Field;
use abi::frame::{
    FP_XSTATE_MAGIC1, FP_XSTATE_MAGIC2_BYTES, FPSTATE_ALIGN, FRAME_BYTES, FRAME_SIGINFO, FRAME_UCONTEXT,
    FpxSoftwareBytes, FramePlace, RED_ZONE_BYTES, SigContext, UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS,
    UContext, USER_CS, USER_SS, place_frame,
};
use abi::signal::{SA_ONSTACK, SA_RESTORER, SA_SIGINFO};
use machine::Registers;

use super::{VectorFormat, XSAVE_BYTES_MIN};
use crate::signal::altstack::AltStack;
use crate::signal::deliver::HandlerCall;
use crate::signal::fault::TrapRecord;

/// Trap, direction and resume flag: a handler starts without them (psABI 3.2.1; the other two would
/// step through the handler).
const FLAGS_CLEARED: u64 = 1 << 8 | 1 << 10 | 1 << 16;

/// What a frame is made of.
#[derive(Clone, Copy, Debug)]
pub struct FrameRequest<'a> {
    /// The interrupted program's, after [`fn@crate::signal::restart`].
    pub registers: &'a Registers,
    /// The machine's XSAVE images.
    pub format: VectorFormat,
    pub call: &'a HandlerCall,
    pub altstack: &'a AltStack,
    pub trap: TrapRecord,
}

/// A frame to write to the program's stack, piece by piece. If that fails, the thread gets `force_segv`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Where the frame lies.
    pub address: u64,
    /// Its first bytes: return address, context, details.
    pub head: [u8; FRAME_BYTES as usize],
    /// Where the XSAVE image goes, with x87 and SSE marked as present: old programs change them without touching
    /// the header.
    pub vector_at: u64,
    /// Goes into the image at [`SOFTWARE_BYTES`].
    pub software: FpxSoftwareBytes,
    /// Where `FP_XSTATE_MAGIC2` goes, behind the image.
    pub magic_at: u64,
    /// What the handler starts with. The vector state is to be reset, too.
    pub registers: Registers,
}

impl Default for Frame {
    /// All zero: to be filled.
    fn default() -> Frame {
        Frame {
            address: 0,
            head: [0; FRAME_BYTES as usize],
            vector_at: 0,
            software: FpxSoftwareBytes::zeroed(),
            magic_at: 0,
            registers: Registers::default(),
        }
    }
}

/// Why there is no frame; the thread gets `force_segv`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoFrame {
    /// The action has no `SA_RESTORER`: the handler could not return.
    NoRestorer,
    /// The alternate stack is full, or the stack pointer too near zero.
    NoRoom,
}

/// Builds the frame for a handler, in a place that [`Frame::default`] has made.
///
/// Errors: see [`NoFrame`]. That the stack can be written is for the caller to find out.
pub fn build(request: &FrameRequest, frame: &mut Frame) -> Result<(), NoFrame> {
    let action = &request.call.action;
    if action.sa_flags & SA_RESTORER == 0 {
        return Err(NoFrame::NoRestorer);
    }
    let image_bytes = request.format.bytes.max(XSAVE_BYTES_MIN);
    let place = place(request, image_bytes)?;
    put(&mut frame.head, 0, &action.sa_restorer);
    put(&mut frame.head, FRAME_UCONTEXT as usize, &ucontext(request, place.fpstate));
    if action.sa_flags & SA_SIGINFO != 0 {
        frame.head[FRAME_SIGINFO as usize..].copy_from_slice(&request.call.info.to_bytes());
    }
    frame.software = FpxSoftwareBytes {
        magic1: FP_XSTATE_MAGIC1,
        extended_size: (image_bytes + FP_XSTATE_MAGIC2_BYTES) as u32,
        xfeatures: request.format.features,
        xstate_size: image_bytes as u32,
        padding: [0; 7],
    };
    frame.address = place.frame;
    frame.vector_at = place.fpstate;
    frame.magic_at = place.fpstate + image_bytes as u64;
    frame.registers = handler_registers(request, place.frame);
    Ok(())
}

/// Bytes of the largest frame, for AT_MINSIGSTKSZ; `image_bytes`: of an XSAVE image.
pub const fn frame_bytes_max(image_bytes: u64) -> u64 {
    let image = image_bytes + FP_XSTATE_MAGIC2_BYTES as u64;
    (FRAME_BYTES + 15 + image + FPSTATE_ALIGN - 1).next_multiple_of(16)
}

fn place(request: &FrameRequest, image_bytes: usize) -> Result<FramePlace, NoFrame> {
    let stack = request.altstack;
    let rsp = request.registers.rsp;
    let below_red_zone = rsp.wrapping_sub(RED_ZONE_BYTES);
    let switch = request.call.action.sa_flags & SA_ONSTACK != 0 && !stack.is_on(below_red_zone);
    let (top, entered) = match stack.top() {
        Some(top) if switch => (top, true),
        _ => (below_red_zone, false),
    };
    let place = place_frame(top, (image_bytes + FP_XSTATE_MAGIC2_BYTES) as u64).ok_or(NoFrame::NoRoom)?;
    // Without this check a handler that overflows its stack would tramble on what lies below it.
    if (entered || stack.is_on(rsp)) && !stack.holds(place.frame) {
        return Err(NoFrame::NoRoom);
    }
    Ok(place)
}

fn ucontext(request: &FrameRequest, fpstate: u64) -> UContext {
    let old = request.registers;
    let mask = request.call.saved_mask.0;
    let context = SigContext {
        r8: old.r8,
        r9: old.r9,
        r10: old.r10,
        r11: old.r11,
        r12: old.r12,
        r13: old.r13,
        r14: old.r14,
        r15: old.r15,
        rdi: old.rdi,
        rsi: old.rsi,
        rbp: old.rbp,
        rbx: old.rbx,
        rdx: old.rdx,
        rax: old.rax,
        rcx: old.rcx,
        rsp: old.rsp,
        rip: old.rip,
        eflags: old.rflags,
        cs: USER_CS,
        ss: USER_SS,
        err: request.trap.err,
        trapno: request.trap.trapno,
        oldmask: mask,
        cr2: request.trap.cr2,
        fpstate,
        ..SigContext::zeroed()
    };
    UContext {
        uc_flags: UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS,
        uc_link: 0,
        uc_stack: request.altstack.saved(),
        uc_mcontext: context,
        uc_sigmask: mask,
    }
}

fn handler_registers(request: &FrameRequest, frame: u64) -> Registers {
    Registers {
        rdi: u64::from(request.call.signal),
        rsi: frame + FRAME_SIGINFO,
        rdx: frame + FRAME_UCONTEXT,
        rax: 0,
        rip: request.call.action.sa_handler,
        rsp: frame,
        rflags: request.registers.rflags & !FLAGS_CLEARED,
        cs: u64::from(USER_CS),
        ss: u64::from(USER_SS),
        ..*request.registers
    }
}

fn put<T: Field>(bytes: &mut [u8], at: usize, record: &T) {
    record.put(&mut bytes[at..at + T::BYTES]);
}
