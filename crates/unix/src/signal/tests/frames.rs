//! Frames where the host's own would kill the test.

use abi::frame::{FP_XSTATE_MAGIC2, FRAME_UCONTEXT, UContext};
use abi::siginfo::SigInfo;
use abi::signal::*;
use machine::{Exception, Registers};

use super::handled;
use crate::signal::fault::{FaultDetail, PageCause, TrapRecord, fault_signal};
use crate::signal::frame::{
    BadFrame, Frame, FrameRequest, NoFrame, SOFTWARE_BYTES, VectorFormat, VectorRestore, build, restore,
};
use crate::signal::{AltStack, HandlerCall, SignalSet};

const IMAGE_BYTES: usize = 832;
const FORMAT: VectorFormat = VectorFormat { bytes: IMAGE_BYTES, features: 7 };
const CS: usize = FRAME_UCONTEXT as usize + 40 + 18 * 8;

fn image() -> Vec<u8> {
    let mut image: Vec<u8> = (0..IMAGE_BYTES).map(|at| at as u8).collect();
    image[464..576].fill(0);
    image[512] = 7;
    image
}

fn interrupted(rsp: u64) -> Registers {
    Registers { rsp, rip: 0x40_3000, r15: 15, rax: 1, rflags: 0x1_0746, cause: 5, ..Registers::default() }
}

/// A frame and what of a program's memory it is written to.
#[derive(Debug, PartialEq)]
struct Written {
    address: u64,
    bytes: Vec<u8>,
    registers: Registers,
}

impl Written {
    fn new(frame: Frame) -> Written {
        let mut bytes = frame.head.to_vec();
        let vector_at = (frame.vector_at - frame.address) as usize;
        bytes.resize(vector_at, 0);
        bytes.extend(image());
        bytes[vector_at + SOFTWARE_BYTES..][..48].copy_from_slice(&frame.software.to_bytes());
        assert_eq!(frame.magic_at, frame.address + bytes.len() as u64);
        bytes.extend(FP_XSTATE_MAGIC2.to_le_bytes());
        Written { address: frame.address, bytes, registers: frame.registers }
    }
}

fn frame_at(rsp: u64, flags: u64, altstack: &AltStack) -> Result<Written, NoFrame> {
    frame_for(&handled(flags), rsp, altstack)
}

fn frame_for(action: &SigAction, rsp: u64, altstack: &AltStack) -> Result<Written, NoFrame> {
    let call = HandlerCall {
        signal: SIGUSR1,
        info: SigInfo::kill(SIGUSR1, 5, 6),
        action: *action,
        saved_mask: SignalSet::of(SIGHUP),
        handler_mask: SignalSet::EMPTY,
    };
    let registers = interrupted(rsp);
    let trap = TrapRecord::default();
    let mut frame = Frame::default();
    let request = FrameRequest { registers: &registers, format: FORMAT, call: &call, altstack, trap };
    build(&request, &mut frame).map(|()| Written::new(frame))
}

fn alternate(size: u64) -> AltStack {
    let mut altstack = AltStack::default();
    let stack = StackT { ss_sp: 0x10_0000, ss_flags: 0, _pad: 0, ss_size: size };
    altstack.set(&stack, 0).expect("a stack");
    altstack
}

fn read_back(frame: &Written) -> crate::signal::Restored {
    read_with(frame, FORMAT).expect("our own frame")
}

fn read_with(frame: &Written, format: VectorFormat) -> Result<crate::signal::Restored, BadFrame> {
    let now = Registers { rsp: frame.address + 8, rflags: 0x202, cause: 15, ..Registers::default() };
    restore(&now, format, &|at, into| {
        let from = at.checked_sub(frame.address).and_then(|from| frame.bytes.get(from as usize..));
        let Some(from) = from.and_then(|from| from.get(..into.len())) else { return false };
        into.copy_from_slice(from);
        true
    })
}

#[test]
fn a_frame_returns_to_where_it_was_built() {
    let frame = frame_at(0x7000_0000, 0, &AltStack::default()).expect("room");
    let end = frame.address + frame.bytes.len() as u64;
    assert!(end <= 0x7000_0000 - 128 && end > 0x7000_0000 - 128 - 64);
    assert_eq!(frame.registers.rflags, 0x246);
    assert_eq!((frame.registers.rdi, frame.registers.rax, frame.registers.r15), (10, 0, 15));
    let restored = read_back(&frame);
    let old = interrupted(0x7000_0000);
    assert_eq!(restored.registers, Registers { cs: 0x33, ss: 0x2b, cause: 15, rflags: 0x1_0746, ..old });
    assert_eq!(restored.mask, SignalSet::of(SIGHUP));
    let address = end - 4 - IMAGE_BYTES as u64;
    assert_eq!(restored.vector_state, VectorRestore::Image { address, bytes: IMAGE_BYTES, features: 7 });
}

#[test]
fn without_a_restorer_there_is_no_frame() {
    let action = SigAction { sa_flags: SA_SIGINFO, ..handled(0) };
    assert_eq!(frame_for(&action, 0x7000_0000, &AltStack::default()), Err(NoFrame::NoRestorer));
}

#[test]
fn a_frame_stays_on_its_alternate_stack_or_fails() {
    let large = alternate(0x4000);
    let first = frame_at(0x7000_0000, SA_ONSTACK, &large).expect("room");
    assert!(first.address < 0x10_4000 && first.address > 0x10_3000);
    let nested = frame_at(first.address, SA_ONSTACK, &large).expect("room");
    assert!(nested.address < first.address - 128);
    assert!(frame_at(0x7000_0000, 0, &large).expect("room").address > 0x6000_0000);
    assert_eq!(frame_at(0x10_0100, SA_ONSTACK, &large), Err(NoFrame::NoRoom));
    assert_eq!(frame_at(0x10_0100, 0, &large), Err(NoFrame::NoRoom));
    let small = alternate(MINSIGSTKSZ);
    assert!(frame_at(0x7000_0000, SA_ONSTACK, &small).is_ok());
    assert_eq!(frame_at(first.address, 0, &AltStack::default()).map(|frame| frame.address), Ok(nested.address));
}

#[test]
fn a_frame_never_wraps_below_zero() {
    for rsp in [0, 1, 127, 128, 129, 1000] {
        let result = frame_at(rsp, 0, &AltStack::default());
        assert!(result.is_err() || result.is_ok_and(|frame| frame.address > 1 << 60), "{rsp}");
    }
}

#[test]
fn a_frame_cannot_give_privileges() {
    let mut frame = frame_at(0x7000_0000, 0, &AltStack::default()).expect("room");
    frame.bytes[CS - 8..CS].fill(0xff);
    frame.bytes[CS..CS + 8].fill(0);
    // The right segment with the kernel's privilege: the low bits are the program's again.
    frame.bytes[CS] = 0x30;
    let mask = FRAME_UCONTEXT as usize + UContext::BYTES - 8;
    frame.bytes[mask..mask + 8].fill(0xff);
    let restored = read_back(&frame);
    assert_eq!((restored.registers.cs, restored.registers.ss), (0x33, 0x2b));
    assert_eq!(restored.registers.rflags, 0x202 | 0x5_0dd5);
    assert_eq!(restored.mask, SignalSet(!0).blockable());
}

#[test]
fn a_frame_with_another_code_segment_is_bad() {
    for selector in [0u16, 0x10, 0x13, 0x23, 0x2b, 0x3b, 0xffff] {
        let mut frame = frame_at(0x7000_0000, 0, &AltStack::default()).expect("room");
        frame.bytes[CS..CS + 2].copy_from_slice(&selector.to_le_bytes());
        assert!(read_with(&frame, FORMAT).is_err_and(|bad| bad.mask.is_some()), "{selector:#x}");
    }
}

fn vector_of(change: impl FnOnce(&mut [u8])) -> VectorRestore {
    let mut frame = frame_at(0x7000_0000, 0, &AltStack::default()).expect("room");
    let at = frame.bytes.len() - 4 - IMAGE_BYTES;
    change(&mut frame.bytes[at..]);
    read_back(&frame).vector_state
}

#[test]
fn a_damaged_vector_state_is_refused_or_taken_as_the_old_format() {
    let legacy = |state| matches!(state, VectorRestore::Image { bytes: 512, features: 3, .. });
    assert!(legacy(vector_of(|bytes| bytes[464] = 0)));
    assert!(legacy(vector_of(|bytes| bytes[IMAGE_BYTES] = 0)));
    assert!(legacy(vector_of(|bytes| bytes[480..484].fill(0xff))));
    assert!(legacy(vector_of(|bytes| bytes[480..484].fill(0))));
    assert_eq!(vector_of(|bytes| bytes[512] = 0x0f), VectorRestore::Refused);
    assert_eq!(vector_of(|bytes| bytes[527] = 0x80), VectorRestore::Refused);
    let only_avx = vector_of(|bytes| bytes[472] = 4);
    assert!(matches!(only_avx, VectorRestore::Image { bytes: IMAGE_BYTES, features: 4, .. }));
}

#[test]
fn a_frame_elsewhere_is_bad_or_has_no_vector_state() {
    let mut frame = frame_at(0x7000_0000, 0, &AltStack::default()).expect("room");
    let pointer = CS + 8 + 32;
    let state = |frame: &mut Written, address: u64| {
        frame.bytes[pointer..pointer + 8].copy_from_slice(&address.to_le_bytes());
        read_back(frame).vector_state
    };
    assert_eq!(state(&mut frame, 0), VectorRestore::Reset);
    for address in [8, u64::MAX, 0x7fff_ffff_ef00, 0xffff_8000_0000_0000, 1 << 60] {
        assert_eq!(state(&mut frame, address), VectorRestore::Refused);
    }
    for rsp in [0, 7, 8, u64::MAX, 0x7fff_ffff_f000] {
        let now = Registers { rsp, ..Registers::default() };
        assert_eq!(restore(&now, FORMAT, &|_, _| false), Err(BadFrame { mask: None }));
    }
    frame.bytes.truncate(300);
    assert_eq!(read_with(&frame, FORMAT), Err(BadFrame { mask: None }));
}

#[test]
fn every_vector_becomes_a_signal() {
    for vector in 0..=255u8 {
        let exception = Exception { vector, error: 0, address: 0 };
        let info = fault_signal(&exception, 0x40_0000, FaultDetail::None).expect("a signal");
        assert!((1..=31).contains(&info.signo), "{vector}");
    }
    let page = Exception { vector: 14, error: 2, address: 0x1000 };
    let killed = fault_signal(&page, 0, FaultDetail::Page(PageCause::NoMemory)).expect("a signal");
    assert_eq!(killed.signo, SIGKILL as i32);
    let masked = Exception { vector: 16, error: 0, address: 0 };
    assert_eq!(fault_signal(&masked, 0, FaultDetail::X87 { status: 4, control: 0x37f }), None);
}
