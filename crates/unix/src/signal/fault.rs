//! Exceptions of the processor as signals (SDM vol. 3A, 6.15, and what Linux makes of each).

use abi::siginfo::{
    BUS_ADRALN, BUS_ADRERR, FPE_FLTDIV, FPE_FLTINV, FPE_FLTOVF, FPE_FLTRES, FPE_FLTUND, FPE_INTDIV, ILL_ILLOPN,
    SEGV_ACCERR, SEGV_MAPERR, SigInfo, TRAP_BRKPT, TRAP_HWBKPT, TRAP_TRACE,
};
use abi::signal::{SIGBUS, SIGFPE, SIGILL, SIGKILL, SIGSEGV, SIGTRAP};
use machine::{Exception, FloatWords, PAGE_LOST};

const DIVIDE: u8 = 0;
const DEBUG: u8 = 1;
const BREAKPOINT: u8 = 3;
const INVALID_OPCODE: u8 = 6;
const COPROCESSOR_OVERRUN: u8 = 9;
const SEGMENT_ABSENT: u8 = 11;
const STACK_SEGMENT: u8 = 12;
const PAGE_FAULT: u8 = 14;
const X87: u8 = 16;
const ALIGNMENT: u8 = 17;
const SIMD: u8 = 19;

/// DR6: a step, and the four breakpoints (SDM vol. 3B, 18.2.3).
const DR6_STEP: u64 = 1 << 14;
const DR6_TASK_SWITCH: u64 = 1 << 15;
const DR6_BREAKPOINTS: u64 = 0xf;

/// Page-fault error code bits (SDM vol. 3A, 4.7).
const ERROR_PRESENT: u64 = 1;
const ERROR_USER: u64 = 4;
/// Addresses from here on are not a program's: its faults there say so and nothing else.
const USER_END: u64 = 0x7fff_ffff_f000;

/// Why a page fault could not be resolved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageCause {
    /// Nothing is mapped there.
    Unmapped,
    /// Something is, but not for this access.
    Refused,
    /// A file mapping beyond the end of its file, or a page that could not be read.
    BeyondFile,
    /// No frame is left: the process is killed, as by Linux's out-of-memory killer.
    NoMemory,
}

/// What the vector alone does not tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultDetail {
    None,
    Page(PageCause),
    /// The debug exception's DR6.
    Debug {
        dr6: u64,
    },
    /// The x87 status and control words, for vector 16.
    X87 {
        status: u16,
        control: u16,
    },
    /// MXCSR, for vector 19.
    Simd {
        mxcsr: u32,
    },
}

/// A thread's last fault, shown in each later signal frame. Cleared by `execve`, copied by `fork`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TrapRecord {
    pub trapno: u64,
    pub err: u64,
    pub cr2: u64,
}

impl TrapRecord {
    /// Notes a fault that becomes a signal.
    pub fn note(&mut self, exception: &Exception) {
        self.trapno = u64::from(exception.vector);
        self.err = if exception.vector == PAGE_FAULT { page_error(exception) } else { exception.error };
        if exception.vector == PAGE_FAULT {
            self.cr2 = exception.address;
        }
    }
}

/// The signal for an exception at instruction `rip`, to be raised by [`super::generate::force`].
///
/// `None`: the exception has no cause left (a floating-point exception that is masked by now); the
/// program goes on. Vectors that no program can raise count as general protection.
pub fn fault_signal(exception: &Exception, rip: u64, detail: FaultDetail) -> Option<SigInfo> {
    Some(match exception.vector {
        DIVIDE => SigInfo::fault(SIGFPE, FPE_INTDIV, rip),
        DEBUG => SigInfo::fault(SIGTRAP, debug_code(detail), rip),
        BREAKPOINT => SigInfo::kernel(SIGTRAP),
        INVALID_OPCODE => SigInfo::fault(SIGILL, ILL_ILLOPN, rip),
        COPROCESSOR_OVERRUN => SigInfo::kernel(SIGFPE),
        SEGMENT_ABSENT | STACK_SEGMENT => SigInfo::kernel(SIGBUS),
        PAGE_FAULT if exception.error & PAGE_LOST != 0 => SigInfo::fault(SIGBUS, BUS_ADRERR, exception.address),
        PAGE_FAULT => page_signal(exception.address, detail),
        X87 | SIMD => SigInfo::fault(SIGFPE, float_code(detail)?, rip),
        ALIGNMENT => SigInfo::fault(SIGBUS, BUS_ADRALN, 0),
        _ => SigInfo::kernel(SIGSEGV),
    })
}

fn page_signal(address: u64, detail: FaultDetail) -> SigInfo {
    match detail {
        _ if address >= USER_END => SigInfo::fault(SIGSEGV, SEGV_MAPERR, address),
        FaultDetail::Page(PageCause::Refused) => SigInfo::fault(SIGSEGV, SEGV_ACCERR, address),
        FaultDetail::Page(PageCause::BeyondFile) => SigInfo::fault(SIGBUS, BUS_ADRERR, address),
        FaultDetail::Page(PageCause::NoMemory) => SigInfo::kernel(SIGKILL),
        _ => SigInfo::fault(SIGSEGV, SEGV_MAPERR, address),
    }
}

/// The error code as a program may see it: a kernel address always looks mapped, so that nothing can
/// be learnt about the kernel's tables.
fn page_error(exception: &Exception) -> u64 {
    let hidden = if exception.address >= USER_END { ERROR_PRESENT } else { 0 };
    exception.error & !PAGE_LOST | ERROR_USER | hidden
}

fn debug_code(detail: FaultDetail) -> i32 {
    match detail {
        FaultDetail::Debug { dr6 } if dr6 & (DR6_STEP | DR6_TASK_SWITCH) != 0 => TRAP_TRACE,
        FaultDetail::Debug { dr6 } if dr6 & DR6_BREAKPOINTS != 0 => TRAP_HWBKPT,
        _ => TRAP_BRKPT,
    }
}

/// The first unmasked exception flag, in Linux's order.
fn float_code(detail: FaultDetail) -> Option<i32> {
    let raised = match detail {
        FaultDetail::X87 { status, control } => u32::from(status & !control),
        FaultDetail::Simd { mxcsr } => !(mxcsr >> 7) & mxcsr,
        _ => return Some(FPE_FLTINV),
    };
    const ORDER: [(u32, i32); 5] =
        [(0x01, FPE_FLTINV), (0x04, FPE_FLTDIV), (0x08, FPE_FLTOVF), (0x12, FPE_FLTUND), (0x20, FPE_FLTRES)];
    ORDER.iter().find(|(bits, _)| raised & bits != 0).map(|(_, code)| *code)
}

/// The floating-point words that a vector is about, for [`fault_signal`]; `None` for one that is not about them.
pub fn float_detail(vector: u8, words: &FloatWords) -> Option<FaultDetail> {
    match vector {
        X87 => Some(FaultDetail::X87 { control: words.x87_control, status: words.x87_status }),
        SIMD => Some(FaultDetail::Simd { mxcsr: words.mxcsr }),
        _ => None,
    }
}
