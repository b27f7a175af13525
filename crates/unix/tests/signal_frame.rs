//! Compares signal frames and fault signals with those of the host's Linux.
//!
//! Each test raises a signal in its own thread; the handler copies the frame it runs on. Then our
//! `restore` must read it and our `build` must make the same bytes again.
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "one proof for what a test does with its own memory")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "not in the kernel: it may take what it likes"
)]

use std::arch::asm;
use std::os::fd::AsRawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use abi::Field;
use abi::frame::{FP_XSTATE_MAGIC2, FRAME_BYTES, FRAME_SIGINFO, FRAME_UCONTEXT, FpxSoftwareBytes, UContext};
use abi::siginfo::SigInfo;
use abi::signal::*;
use machine::{Exception, FloatWords, Registers};
use unix::signal::fault::{PageCause, float_detail};
use unix::signal::frame::{SOFTWARE_BYTES, build, restore};
use unix::signal::{
    AltStack, FaultDetail, FrameRequest, HandlerCall, SignalSet, TrapRecord, VectorFormat, VectorRestore, fault_signal,
};

unsafe extern "C" {
    fn sigaction(signal: i32, new: *const LibraryAction, old: *mut LibraryAction) -> i32;
    fn sigaltstack(new: *const StackT, old: *mut StackT) -> i32;
    fn syscall(number: i64, ...) -> i64;
    fn getauxval(kind: u64) -> u64;
    fn mmap(addr: u64, len: u64, prot: i32, flags: i32, fd: i32, offset: u64) -> u64;
}

/// `struct sigaction` of the C library.
#[repr(C)]
struct LibraryAction {
    handler: u64,
    mask: [u64; 16],
    flags: i32,
    restorer: u64,
}

/// A frame as it stood on the stack, from the return address to the closing magic.
#[derive(Clone)]
struct Captured {
    address: u64,
    bytes: Vec<u8>,
}

static CAPTURED: Mutex<Option<Captured>> = Mutex::new(None);
/// Handlers and the capture belong to the process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

const SYS_RT_SIGACTION: i64 = 13;
const SYS_TGKILL: u64 = 234;

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Copies its own frame and lets the program go on at the address in its r12.
extern "C" fn capture(_: i32, _: u64, context: u64) {
    // SAFETY: clears the alignment-check flag, which the interrupted program may have set.
    unsafe { asm!("pushfq", "and qword ptr [rsp], ~0x40000", "popfq") };
    let address = context - FRAME_UCONTEXT;
    // SAFETY: the frame of this handler.
    let fixed = unsafe { std::slice::from_raw_parts(address as *const u8, FRAME_BYTES as usize) };
    let ucontext = UContext::get(&fixed[FRAME_UCONTEXT as usize..]);
    let fpstate = ucontext.uc_mcontext.fpstate;
    // SAFETY: the frame's FXSAVE image.
    let software = unsafe { std::slice::from_raw_parts((fpstate + 464) as *const u8, 48) };
    let end = fpstate + u64::from(FpxSoftwareBytes::get(software).extended_size);
    // SAFETY: the whole frame.
    let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, (end - address) as usize) }.to_vec();
    let captured = Captured { address, bytes };
    if ucontext.uc_mcontext.r13 == REPLACE {
        let (ours, _) = captured.rebuild(captured.action());
        // SAFETY: this handler's frame, to be read by the host's `rt_sigreturn`.
        unsafe { std::ptr::copy_nonoverlapping(ours.bytes.as_ptr(), address as *mut u8, ours.bytes.len()) };
    }
    *CAPTURED.lock().expect("not poisoned") = Some(captured);
    let rip = address + FRAME_UCONTEXT + 40 + 16 * 8;
    // SAFETY: the saved rip, and the saved flags behind it, in this handler's frame.
    unsafe {
        (rip as *mut u64).write(ucontext.uc_mcontext.r12);
        *((rip + 8) as *mut u64) &= !0x4_0100;
    }
}

/// In r13: the handler replaces the host's frame by ours.
const REPLACE: u64 = 0x5eed_5eed_5eed_5eed;

fn install(signal: u32, flags: u64) {
    let mut mask = [0; 16];
    mask[0] = 0x0000_0f00_0000_0200;
    let action = LibraryAction { handler: capture as *const () as u64, mask, flags: flags as i32, restorer: 0 };
    // SAFETY: `capture` is a handler.
    assert_eq!(unsafe { sigaction(signal as i32, &action, std::ptr::null_mut()) }, 0);
}

/// Runs instructions that raise a signal, going on behind them.
macro_rules! raising {
    ($($line:literal),* ; $($operands:tt)*) => {{
        *CAPTURED.lock().expect("not poisoned") = None;
        // SAFETY: the handler takes the thread to label 2, and all that may change is declared.
        unsafe {
            asm!("lea r12, [rip + 2f]", $($line,)* "2:", $($operands)* out("r12") _, out("r13") _, out("rax") _,
                 out("rcx") _, out("rdx") _, out("r11") _)
        }
        CAPTURED.lock().expect("not poisoned").take().expect("a signal came")
    }};
}

fn raise(signal: u32) -> Captured {
    let pid = u64::from(std::process::id());
    // SAFETY: gettid changes nothing.
    let tid = unsafe { syscall(186) } as u64;
    raising!("mov rdx, r8", "mov eax, {call}", "syscall"; call = const SYS_TGKILL, in("rdi") pid, in("rsi") tid,
             in("r8") u64::from(signal), in("r9") 9u64, in("r10") 10u64,)
}

impl Captured {
    fn ucontext(&self) -> UContext {
        UContext::get(&self.bytes[FRAME_UCONTEXT as usize..])
    }

    fn info(&self) -> SigInfo {
        SigInfo::from_bytes(self.bytes[FRAME_SIGINFO as usize..][..128].try_into().expect("128 bytes"))
    }

    fn vector_at(&self) -> usize {
        (self.ucontext().uc_mcontext.fpstate - self.address) as usize
    }

    fn format(&self) -> VectorFormat {
        let software = FpxSoftwareBytes::get(&self.bytes[self.vector_at() + 464..]);
        VectorFormat { bytes: software.xstate_size as usize, features: software.xfeatures }
    }

    /// The kernel's own record of the action.
    fn action(&self) -> SigAction {
        let mut bytes = [0u8; SigAction::BYTES];
        let signal = self.info().signo;
        // SAFETY: writes 32 bytes.
        assert_eq!(unsafe { syscall(SYS_RT_SIGACTION, signal, 0, bytes.as_mut_ptr(), 8) }, 0);
        SigAction::from_bytes(&bytes)
    }

    fn altstack(&self) -> AltStack {
        let mut stack = AltStack::default();
        stack.set(&self.ucontext().uc_stack, 0).expect("the kernel's stack is a stack");
        stack
    }

    fn restored(&self) -> unix::signal::Restored {
        let now =
            Registers { rsp: self.address + 8, rflags: self.ucontext().uc_mcontext.eflags, ..Registers::default() };
        let read = |at: u64, into: &mut [u8]| {
            let from = at.checked_sub(self.address).and_then(|from| self.bytes.get(from as usize..));
            let Some(from) = from.and_then(|from| from.get(..into.len())) else { return false };
            into.copy_from_slice(from);
            true
        };
        restore(&now, self.format(), &read).expect("Linux's frame is a frame")
    }

    /// Our frame for the same program and signal, and the registers its handler starts with.
    fn rebuild(&self, action: SigAction) -> (Captured, Registers) {
        let restored = self.restored();
        let expected = VectorRestore::Image {
            address: self.address + self.vector_at() as u64,
            bytes: self.format().bytes,
            features: u64::get(&self.bytes[self.vector_at() + 512..]),
        };
        assert_eq!(restored.vector_state, expected, "no image in Linux's frame");
        let context = self.ucontext().uc_mcontext;
        let call = HandlerCall {
            signal: self.info().signo as u32,
            info: self.info(),
            action,
            saved_mask: restored.mask,
            handler_mask: SignalSet::EMPTY,
        };
        let request = FrameRequest {
            registers: &restored.registers,
            format: self.format(),
            call: &call,
            altstack: &self.altstack(),
            trap: TrapRecord { trapno: context.trapno, err: context.err, cr2: context.cr2 },
        };
        let mut frame = unix::signal::Frame::default();
        build(&request, &mut frame).expect("there is room");
        let vector_at = (frame.vector_at - frame.address) as usize;
        let mut bytes = frame.head.to_vec();
        bytes.resize(vector_at, 0);
        bytes.extend(&self.bytes[self.vector_at()..][..self.format().bytes]);
        bytes[vector_at + SOFTWARE_BYTES..][..48].copy_from_slice(&frame.software.to_bytes());
        assert_eq!(frame.magic_at, frame.address + bytes.len() as u64);
        bytes.extend(FP_XSTATE_MAGIC2.to_le_bytes());
        (Captured { address: frame.address, bytes }, frame.registers)
    }

    fn assert_rebuilt(&self, signal: u32) {
        let mut probe = self.clone();
        let with_info = self.bytes[FRAME_SIGINFO as usize] == signal as u8;
        if !with_info {
            probe.bytes[FRAME_SIGINFO as usize..][..128].copy_from_slice(&SigInfo::kernel(signal).to_bytes());
        }
        let (ours, registers) = probe.rebuild(probe.action());
        assert_eq!(ours.address, self.address);
        assert_eq!(ours.bytes.len(), self.bytes.len());
        // Linux leaves the reserved words and the gaps as they were; the info too without SA_SIGINFO.
        let reserved = FRAME_UCONTEXT as usize + 40 + 192;
        let info_end = if with_info { FRAME_BYTES as usize } else { FRAME_SIGINFO as usize };
        // And the padding behind the flags of the stack.
        let padding = FRAME_UCONTEXT as usize + 28;
        let parts = [0..padding, padding + 4..reserved, reserved + 64..info_end, self.vector_at()..self.bytes.len()];
        for part in parts {
            for at in part {
                assert_eq!(ours.bytes[at], self.bytes[at], "byte {at}");
            }
        }
        assert_eq!(registers.rip, capture as *const () as u64);
        assert_eq!(registers.rsp % 16, 8);
    }
}

#[test]
fn a_frame_is_as_the_hosts() {
    let _alone = alone();
    for flags in [SA_SIGINFO, SA_SIGINFO | SA_ONSTACK, SA_SIGINFO | SA_NODEFER | SA_RESTART, 0] {
        for signal in [SIGUSR2, SIGRTMIN + 5] {
            install(signal, flags);
            let captured = raise(signal);
            captured.assert_rebuilt(signal);
            assert_eq!(captured.restored().registers.r9, 9);
        }
    }
}

#[test]
fn a_frame_on_an_own_alternate_stack_is_as_the_hosts() {
    let _alone = alone();
    let memory = vec![0u8; 64 << 10];
    for flags in [0, SS_AUTODISARM] {
        let at = memory.as_ptr() as u64 + 3;
        let new = StackT { ss_sp: at, ss_flags: flags as i32, _pad: 0, ss_size: (60 << 10) + 5 };
        let mut old = StackT::zeroed();
        // SAFETY: the memory lives until the old stack is back.
        assert_eq!(unsafe { sigaltstack(&new, &mut old) }, 0);
        install(SIGUSR2, SA_SIGINFO | SA_ONSTACK);
        let captured = raise(SIGUSR2);
        // SAFETY: the stack that was there before.
        assert_eq!(unsafe { sigaltstack(&old, std::ptr::null_mut()) }, 0);
        assert!((at..at + new.ss_size).contains(&captured.address));
        captured.assert_rebuilt(SIGUSR2);
    }
}

#[test]
fn the_host_returns_through_our_frame() {
    let _alone = alone();
    install(SIGUSR2, SA_SIGINFO);
    let pid = u64::from(std::process::id());
    // SAFETY: gettid changes nothing.
    let tid = unsafe { syscall(186) } as u64;
    let (mut low, mut high) = (0x1111_2222_3333_4444u64, 77u64);
    raising!(
        "mov r13, {replace}", "movq xmm7, r8", "mov rdx, r10", "mov eax, {call}", "syscall", "ud2"; replace = in(reg) REPLACE,
        call = const SYS_TGKILL, in("rdi") pid, in("rsi") tid, inout("r8") low => low, inout("r9") high => high,
        in("r10") u64::from(SIGUSR2), out("xmm7") _,
    );
    assert_eq!((low, high), (0x1111_2222_3333_4444, 77));
}

#[test]
fn the_largest_frame_fits_the_hosts_bound() {
    let _alone = alone();
    install(SIGUSR2, SA_SIGINFO);
    let captured = raise(SIGUSR2);
    let image_bytes = captured.format().bytes as u64;
    const AT_MINSIGSTKSZ: u64 = 51;
    // SAFETY: reads the auxiliary vector.
    let ours = unix::signal::frame::frame_bytes_max(image_bytes);
    // Linux counts the larger frame of 32-bit programs, too.
    // SAFETY: reads the auxiliary vector.
    assert!(ours <= unsafe { getauxval(AT_MINSIGSTKSZ) });
    assert!(captured.bytes.len() as u64 <= ours);
}

/// Compares one fault's signal and trap record with ours.
fn assert_fault(captured: &Captured, vector: u8, error: u64, address: u64, detail: FaultDetail) {
    let context = captured.ucontext().uc_mcontext;
    let exception = Exception { vector, error, address };
    let ours = fault_signal(&exception, context.rip, detail).expect("a signal");
    assert_eq!(captured.info().to_bytes(), ours.to_bytes(), "vector {vector}: {:?} is not {ours:?}", captured.info());
    let mut record = TrapRecord { cr2: context.cr2, ..TrapRecord::default() };
    record.note(&exception);
    let theirs = TrapRecord { trapno: context.trapno, err: context.err, cr2: context.cr2 };
    assert_eq!(record, theirs, "vector {vector}");
    captured.assert_rebuilt(ours.signo as u32);
}

fn install_fault_handlers() {
    for signal in [SIGFPE, SIGTRAP, SIGILL, SIGSEGV, SIGBUS] {
        install(signal, SA_SIGINFO | SA_ONSTACK);
    }
}

#[test]
fn faults_of_instructions_are_as_the_hosts() {
    let _alone = alone();
    install_fault_handlers();
    let none = FaultDetail::None;
    assert_fault(&raising!("xor ecx, ecx", "div ecx";), 0, 0, 0, none);
    assert_fault(&raising!(".byte 0xf1";), 1, 0, 0, FaultDetail::Debug { dr6: 0 });
    let step = raising!("pushfq", "or qword ptr [rsp], 0x100", "popfq", "nop", "nop";);
    assert_fault(&step, 1, 0, 0, FaultDetail::Debug { dr6: 1 << 14 });
    assert_fault(&raising!("int3";), 3, 0, 0, none);
    assert_fault(&raising!("int 4";), 4, 0, 0, none);
    assert_fault(&raising!("ud2";), 6, 0, 0, none);
    let stack = raising!("mov r13, rbp", "mov rbp, 1", "shl rbp, 62", "mov rax, [rbp]", "2:", "mov rbp, r13";);
    assert_fault(&stack, 12, 0, 0, none);
    assert_fault(&raising!("hlt";), 13, 0, 0, none);
    assert_fault(&raising!("int 0x55";), 13, 0x55 * 8 + 2, 0, none);
    assert_fault(&raising!("mov rax, 1", "shl rax, 62", "mov rax, [rax]";), 13, 0, 0, none);
}

#[test]
fn alignment_checks_are_as_the_hosts() {
    let _alone = alone();
    install_fault_handlers();
    let captured = raising!("pushfq", "or qword ptr [rsp], 0x40000", "popfq", "mov eax, [rsp - 63]";);
    assert_fault(&captured, 17, 0, 0, FaultDetail::None);
}

#[test]
fn page_faults_are_as_the_hosts() {
    let _alone = alone();
    install_fault_handlers();
    let unmapped = FaultDetail::Page(PageCause::Unmapped);
    assert_fault(&raising!("mov eax, 24", "mov rax, [rax]";), 14, 4, 24, unmapped);
    let kernel = 0xffff_8000_0000_0018;
    assert_fault(&raising!("mov rax, [r8]"; in("r8") kernel,), 14, 4, kernel, unmapped);
    static CONSTANT: u64 = 5;
    let constant = &raw const CONSTANT as u64;
    let refused = FaultDetail::Page(PageCause::Refused);
    assert_fault(&raising!("mov [r8], rax"; in("r8") constant,), 14, 7, constant, refused);
    let file = std::fs::File::open("/proc/self/exe").expect("this program");
    let far = (file.metadata().expect("its size").len() + 4096) & !4095;
    // SAFETY: a fresh private mapping.
    let beyond = unsafe { mmap(0, 4096, 1, 2, file.as_raw_fd(), far as i64 as u64) };
    assert_fault(&raising!("mov rax, [r8]"; in("r8") beyond,), 14, 4, beyond, FaultDetail::Page(PageCause::BeyondFile));
}

#[test]
fn floating_point_exceptions_are_as_the_hosts() {
    let _alone = alone();
    install_fault_handlers();
    let words = |captured: &Captured| {
        let image = &captured.bytes[captured.vector_at()..];
        FloatWords { x87_control: u16::get(image), x87_status: u16::get(&image[2..]), mxcsr: u32::get(&image[24..]) }
    };
    let captured = raising!(
        "mov word ptr [r8], 0x37b", "fldcw [r8]", "fld1", "fldz", "fdivp", "fwait", "2:", "fninit"; in("r8") &mut 0u64,
    );
    assert_fault(&captured, 16, 0, 0, float_detail(16, &words(&captured)).expect("an image"));
    for mxcsr in [0x1d80u32, 0x1f00, 0x1b80, 0x0f80] {
        let (value, divisor) = match mxcsr {
            0x1d80 => (1f32, 0f32),
            0x1f00 => (0f32, 0f32),
            0x1b80 => (f32::MAX, f32::MIN_POSITIVE),
            _ => (1f32, 3f32),
        };
        let captured = raising!(
            "ldmxcsr [r8]", "divss xmm0, xmm1", "2:", "ldmxcsr [r9]";
            in("r8") &mxcsr, in("r9") &0x1f80u32, inout("xmm0") value => _, in("xmm1") divisor,
        );
        assert_fault(&captured, 19, 0, 0, float_detail(19, &words(&captured)).expect("an image"));
    }
}
