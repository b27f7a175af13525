use super::super::elf::parse;
use super::super::tests::{Bytes, Header, WHOLE, program};
use super::*;

const DATA: Header =
    Header { kind: 1, flags: 6, offset: 0x10, vaddr: 0x40_1010, file_size: 0x100, mem_size: 0x2800, align: 0x1000 };

fn plan(kind: u16, headers: &[Header]) -> Result<Plan, PlanError> {
    Plan::new(&parse(&Bytes(program(kind, headers))).unwrap(), None)
}

#[test]
fn bss_is_the_tail_of_a_page_and_anonymous_pages() {
    let plan = plan(2, &[WHOLE, DATA]).unwrap();
    let (code, data) = (plan.steps[0], &plan.steps[1..]);
    let prot = Protection { read: true, write: true, execute: false };
    let text = Protection { read: true, write: false, execute: true };
    let source = Source::Program;
    assert_eq!(code, Step::File { source, addr: 0x40_0000, len: 0x1000, prot: text, offset: 0 });
    assert_eq!(
        data,
        [
            Step::File { source, addr: 0x40_1000, len: 0x1000, prot, offset: 0 },
            Step::Zero { addr: 0x40_1110, len: 0xef0 },
            Step::Anonymous { addr: 0x40_2000, len: 0x2000, prot },
        ]
    );
    assert_eq!((plan.start, plan.entry, plan.brk_start), (0x40_0300, 0x40_0300, 0x40_4000));
}

#[test]
fn position_independent_programs_go_to_the_program_base() {
    let plan = plan(3, &[Header { vaddr: 0, ..WHOLE }]).unwrap();
    assert_eq!((plan.program_bias, plan.start), (PROGRAM_BASE, PROGRAM_BASE + 0x300));
    assert_eq!(plan.phdr, PROGRAM_BASE + 64);
    assert_eq!(plan.brk_start, PROGRAM_BASE + 0x1000);
}

#[test]
fn an_interpreter_starts_first_and_ends_at_the_top() {
    let image = parse(&Bytes(program(3, &[Header { vaddr: 0, ..WHOLE }]))).unwrap();
    let bias = interpreter_bias(&image, mmap_top(8 << 20)).unwrap();
    assert_eq!(bias, 0x7fff_f7ff_e000);
    let plan = Plan::new(&image, Some((&image, bias))).unwrap();
    assert_eq!((plan.start, plan.entry, plan.interpreter_base), (bias + 0x300, PROGRAM_BASE + 0x300, bias));
}

#[test]
fn absurd_segments_are_refused() {
    let error = |header: Header| plan(2, &[WHOLE, header]).err();
    assert_eq!(error(Header { file_size: 0x2801, ..DATA }), Some(PlanError::FileBeyondMemory));
    assert_eq!(error(Header { offset: 0x11, ..DATA }), Some(PlanError::Misaligned));
    assert_eq!(error(Header { offset: 0, ..DATA }), Some(PlanError::Misaligned));
    assert_eq!(error(Header { offset: u64::MAX - 0xfef, ..DATA }), Some(PlanError::Misaligned));
    assert_eq!(error(Header { mem_size: 1 << 47, ..DATA }), Some(PlanError::OutsideUserSpace));
    assert_eq!(error(Header { mem_size: u64::MAX, ..DATA }), Some(PlanError::OutsideUserSpace));
    assert_eq!(error(Header { vaddr: 0xffff_ffff_8000_0010, ..DATA }), Some(PlanError::OutsideUserSpace));
    assert_eq!(error(Header { mem_size: 0, file_size: 0, ..DATA }), None);
    assert_eq!(plan(2, &[Header { kind: 4, ..WHOLE }]).err(), Some(PlanError::NothingToLoad));
    assert_eq!(plan(3, &[Header { vaddr: 1 << 63, ..WHOLE }]).err(), Some(PlanError::OutsideUserSpace));
}

#[test]
fn later_segments_cover_earlier_ones() {
    let plan = plan(2, &[WHOLE, WHOLE]).unwrap();
    assert_eq!(plan.steps[0], plan.steps[1]);
}
