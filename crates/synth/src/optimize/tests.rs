#![allow(unsafe_code, reason = "the template macro names linker symbols")]
#![allow(dead_code, reason = "no template is used in every way that its macro offers")]

use alloc::vec::Vec;

use super::decode::decode;
use super::optimize;
use crate::{Abs32, Draft, HoleKind, Imm32, Label, Target, template};

template! {
    /// A test that two fragments make.
    pub struct Below { limit: Abs32, slow: Target }
    "cmp rsi, qword ptr [{limit}]",
    ".byte 0x0f, 0x83",
    ".long {slow}",
}

template! {
    /// Loads a word.
    pub struct LoadTail { tail: Abs32 }
    "mov rdx, qword ptr [{tail}]",
}

template! {
    /// Loads its low half.
    pub struct LoadTailHalf { tail: Abs32 }
    "movzx edx, word ptr [{tail}]",
}

template! {
    /// Stores a word.
    pub struct StoreHead { head: Abs32 }
    "mov qword ptr [{head}], rdx",
}

template! {
    /// Reaches memory through a register.
    pub struct StoreByte {}
    "mov byte ptr [rsi], al",
}

template! {
    /// Changes the operand of `Below`.
    pub struct NextByte {}
    "inc rsi",
}

template! {
    /// A jump.
    pub struct Go { to: Target }
    ".byte 0xe9",
    ".long {to}",
}

template! {
    /// The way out.
    pub struct Out { number: Imm32, to: Target }
    "mov eax, {number}",
    ".byte 0xe9",
    ".long {to}",
}

template! {
    /// An instruction that the optimizer does not know.
    pub struct Locked { word: Abs32 }
    "lock inc qword ptr [{word}]",
}

template! {
    /// Has a short jump of its own.
    pub struct Skip { word: Abs32 }
    "test rdx, rdx",
    "je 70f",
    "mov rax, qword ptr [{word}]",
    "mov rax, qword ptr [{word}]",
    "70:",
}

template! {
    /// A row that stores somewhere.
    pub struct KeepAndStore {}
    "push rdi",
    "mov byte ptr [rsi], al",
    "pop rdi",
}

template! {
    /// A row that writes a register and leaves the flags.
    pub struct SwapHalves {}
    "mov edi, edx",
    "mov edx, ecx",
    "mov ecx, edi",
}

template! {
    /// Compares the addresses of two words.
    pub struct InOrder { one: Abs32, other: Abs32, slow: Target }
    "mov rcx, {one}",
    "cmp rcx, {other}",
    ".byte 0x0f, 0x83",
    ".long {slow}",
}

template! {
    /// Loads a byte into half a register.
    pub struct Narrow { word: Abs32 }
    "movzx edx, byte ptr [{word}]",
    "or edx, -1",
    "movzx dx, byte ptr [{word}]",
    "movzx edx, byte ptr [{word}]",
}

template! {
    /// Ends a routine.
    pub struct Return {}
    "ret",
}

const SLOW: Label = Label(0);
const LANDING: Label = Label(1);
const RUST: Target = Target::Address(0x10_0000);

fn below(draft: &mut Draft) {
    Below { limit: Abs32(0x1000), slow: Target::Label(SLOW) }.append_to(draft);
}

/// Appends the ways out: a landing, and the slow end.
fn finish(draft: &mut Draft) {
    Return {}.append_to(draft);
    draft.place(LANDING);
    NextByte {}.append_to(draft);
    draft.place(SLOW);
    Out { number: Imm32(7), to: RUST }.append_to(draft);
}

/// Length in bytes of each instruction.
fn lengths(code: &[u8]) -> Vec<usize> {
    let mut at = 0;
    let mut lengths = Vec::new();
    while at < code.len() {
        let instruction = decode(code, at).expect("known");
        lengths.push(instruction.bytes.into());
        at += usize::from(instruction.bytes);
    }
    lengths
}

fn optimized(draft: &Draft) -> Draft {
    optimize(draft).expect("known instructions").apply(draft).expect("its own plan")
}

#[test]
fn a_test_made_before_is_not_made_again() {
    let mut draft = Draft::new();
    below(&mut draft);
    StoreByte {}.append_to(&mut draft);
    below(&mut draft);
    finish(&mut draft);
    // The store could have changed the limit: both tests stay.
    let bound = optimized(&draft).bind(0x20_0000).unwrap();
    assert_eq!(lengths(&bound.bytes), [8, 2, 2, 8, 2, 1, 5, 5]);

    let mut draft = Draft::new();
    below(&mut draft);
    below(&mut draft);
    StoreByte {}.append_to(&mut draft);
    finish(&mut draft);
    let bound = optimized(&draft).bind(0x20_0000).unwrap();
    assert_eq!(lengths(&bound.bytes), [8, 2, 2, 1, 5, 5]);
    let names: Vec<_> = bound.origins.iter().map(|origin| origin.shape.name).collect();
    assert_eq!(names, ["Below", "StoreByte", "Return", "Out"]);
}

#[test]
fn a_template_without_holes_is_one_instruction_that_does_all_of_it() {
    let routine = |row: &dyn Fn(&mut Draft)| {
        let mut draft = Draft::new();
        LoadTail { tail: Abs32(0x2000) }.append_to(&mut draft);
        below(&mut draft);
        row(&mut draft);
        below(&mut draft);
        LoadTail { tail: Abs32(0x2000) }.append_to(&mut draft);
        finish(&mut draft);
        let [before, after] = optimize(&draft).expect("known instructions").instructions;
        (before, before - after)
    };
    // The landing, which nobody reaches, always goes.
    assert_eq!(routine(&|_| ()), (10, 4), "the second test and load");
    assert_eq!(routine(&|draft| KeepAndStore {}.append_to(draft)), (11, 1), "it may have stored both");
    assert_eq!(routine(&|draft| SwapHalves {}.append_to(draft)), (11, 3), "it wrote rdx, but not the limit");
}

#[test]
fn a_test_of_changed_operands_is_made_again() {
    let mut draft = Draft::new();
    below(&mut draft);
    NextByte {}.append_to(&mut draft);
    below(&mut draft);
    finish(&mut draft);
    let bound = optimized(&draft).bind(0x20_0000).unwrap();
    assert_eq!(lengths(&bound.bytes), [8, 2, 3, 8, 2, 1, 5, 5]);
}

#[test]
fn a_word_is_loaded_once_and_stored_once() {
    let mut draft = Draft::new();
    let (tail, head) = (Abs32(0x1000), Abs32(0x1008));
    LoadTail { tail }.append_to(&mut draft);
    StoreHead { head }.append_to(&mut draft);
    LoadTail { tail }.append_to(&mut draft);
    StoreHead { head }.append_to(&mut draft);
    LoadTailHalf { tail }.append_to(&mut draft);
    Return {}.append_to(&mut draft);
    let bound = optimized(&draft).bind(0x20_0000).unwrap();
    assert_eq!(lengths(&bound.bytes), [8, 8, 3, 1]);
    assert_eq!(bound.bytes[16..], [0x0F, 0xB7, 0xD2, 0xC3]);
}

#[test]
fn words_that_overlap_are_not_taken_for_different() {
    let mut draft = Draft::new();
    let (tail, head) = (Abs32(0x1000), Abs32(0x1004));
    LoadTail { tail }.append_to(&mut draft);
    StoreHead { head }.append_to(&mut draft);
    LoadTail { tail }.append_to(&mut draft);
    Return {}.append_to(&mut draft);
    let bound = optimized(&draft).bind(0x20_0000).unwrap();
    assert_eq!(lengths(&bound.bytes), [8, 8, 8, 1]);
}

#[test]
fn a_jump_to_a_jump_goes_where_that_goes() {
    let mut draft = Draft::new();
    let (far, next) = (Label(2), Label(3));
    Below { limit: Abs32(0x1000), slow: Target::Label(far) }.append_to(&mut draft);
    Go { to: Target::Label(next) }.append_to(&mut draft);
    draft.place(far);
    Go { to: RUST }.append_to(&mut draft);
    draft.place(next);
    Return {}.append_to(&mut draft);
    let bound = optimized(&draft).bind(0x20_0000).unwrap();
    // cmp, jae to Rust itself, ret: the other jumps lead nowhere any more.
    assert_eq!(lengths(&bound.bytes), [8, 6, 1]);
    let (_, value) = bound.origins[0].holes(0x20_0000, &bound.bytes).last().unwrap();
    assert_eq!((value.kind, value.value), (HoleKind::Target, 0x10_0000));
}

#[test]
fn what_is_known_on_the_way_out_is_not_done_again() {
    let mut draft = Draft::new();
    draft.assume(0, 7);
    below(&mut draft);
    finish(&mut draft);
    let bound = optimized(&draft).bind(0x20_0000).unwrap();
    assert_eq!(lengths(&bound.bytes), [8, 6, 1]);
}

#[test]
fn faults_land_where_they_landed() {
    let mut draft = Draft::new();
    below(&mut draft);
    below(&mut draft);
    let from = draft.len();
    StoreByte {}.append_to(&mut draft);
    draft.land(from, LANDING);
    finish(&mut draft);
    let bound = optimized(&draft).bind(0x20_0000).unwrap();
    // cmp 8, jae 2, [mov 2], ret 1, [inc 3], mov 5, jmp 5
    assert_eq!(lengths(&bound.bytes), [8, 2, 2, 1, 3, 5, 5]);
    let landing = bound.landings[0];
    assert_eq!((landing.from, landing.to, landing.landing), (10, 12, 13));
    let holes: Vec<_> = bound.origins[0].holes(0x20_0000, &bound.bytes).map(|(_, value)| value.value).collect();
    assert_eq!(holes, [0x1000, 16]);
}

#[test]
fn a_short_jump_over_what_was_cut_is_shorter() {
    let mut draft = Draft::new();
    Skip { word: Abs32(0x1000) }.append_to(&mut draft);
    Return {}.append_to(&mut draft);
    let bound = optimized(&draft).bind(0x20_0000).unwrap();
    assert_eq!(lengths(&bound.bytes), [3, 2, 8, 1]);
    assert_eq!(bound.bytes[3..5], [0x74, 8]);
}

#[test]
fn an_unknown_instruction_leaves_the_draft_alone() {
    let mut draft = Draft::new();
    below(&mut draft);
    Locked { word: Abs32(0x2000) }.append_to(&mut draft);
    finish(&mut draft);
    assert!(optimize(&draft).is_none());
}

#[test]
fn a_plan_serves_drafts_that_are_filled_alike() {
    let make = |tail: u64, head: u64| {
        let mut draft = Draft::new();
        LoadTail { tail: Abs32(tail) }.append_to(&mut draft);
        StoreHead { head: Abs32(head) }.append_to(&mut draft);
        LoadTail { tail: Abs32(tail) }.append_to(&mut draft);
        Out { number: Imm32(1), to: RUST }.append_to(&mut draft);
        draft
    };
    let plan = optimize(&make(0x1000, 0x1008)).unwrap();
    assert_eq!(plan.instructions, [5, 4]);
    let by_plan = plan.apply(&make(0x5000, 0x4000)).unwrap().bind(0x20_0000).unwrap();
    let by_itself = optimized(&make(0x5000, 0x4000)).bind(0x20_0000).unwrap();
    assert_eq!(by_plan.bytes, by_itself.bytes);
    // Here the store changes what is loaded.
    assert!(plan.apply(&make(0x5000, 0x5000)).is_none());
    assert!(plan.apply(&make(0x5000, 0x5004)).is_none());
}

#[test]
fn a_plan_does_not_depend_on_which_of_two_words_comes_first() {
    let make = |one: u64, other: u64| {
        let mut draft = Draft::new();
        InOrder { one: Abs32(one), other: Abs32(other), slow: Target::Label(SLOW) }.append_to(&mut draft);
        finish(&mut draft);
        draft
    };
    let plan = optimize(&make(0x1000, 0x2000)).unwrap();
    let bound = plan.apply(&make(0x2000, 0x1000)).unwrap().bind(0x20_0000).unwrap();
    // The test and its branch are still there.
    assert_eq!(lengths(&bound.bytes)[..3], [7, 7, 2]);
}

#[test]
fn a_load_into_half_a_register_fills_no_whole_one() {
    let mut draft = Draft::new();
    Narrow { word: Abs32(0x1000) }.append_to(&mut draft);
    Return {}.append_to(&mut draft);
    let bound = optimized(&draft).bind(0x20_0000).unwrap();
    assert_eq!(lengths(&bound.bytes), [8, 3, 9, 8, 1]);
}

#[test]
fn what_is_only_reached_from_behind_stays() {
    let mut draft = Draft::new();
    let (test, body) = (Label(2), Label(3));
    Go { to: Target::Label(test) }.append_to(&mut draft);
    draft.place(body);
    NextByte {}.append_to(&mut draft);
    draft.place(test);
    Below { limit: Abs32(0x1000), slow: Target::Label(body) }.append_to(&mut draft);
    Return {}.append_to(&mut draft);
    let bound = optimized(&draft).bind(0x20_0000).unwrap();
    assert_eq!(lengths(&bound.bytes), [2, 3, 8, 2, 1]);
}
