//! Creator and interfacer: reuse, a full store, code that is held longer than its quaject, contracts that do not match.

use std::any::Any;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard};

use codestore::{Code, PublishError};
use golden::{OnlyTte, SERIALIZED, bench, code_store};
use kernel::FileCall;
use kernel::call::watch::WatchWords;
use kernel::call::{Makers, Null, NullCallouts, OpenName, Opens, Routine, TableWords};
use kernel::file::{NewNode, Node, Positioned, Time, Volume};
use kernel::pipe::{Body, Pipe, PipeCallouts};
use kernel::screen::{Machines, TextWindow};
use kernel::sound::{self, Activity, Inserts, Plan, SoundWords, Waiters};
use kernel::trace::Notes;
use kernel::tty::raw::RawTty;
use kernel::tty::{Gate, Tty};
use machine::{Processor, Samples, TteId};
use quaject::{AnyCode, Class, Contract, Entry, Made, Mismatch, Quaject, Slot, create, interface};
use synth::Paste;

/// The bench is for one thread at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn makers(capacity_bytes: usize) -> Makers {
    Makers::new(bench(), code_store(capacity_bytes))
}

fn pipe(makers: Makers) -> std::sync::Arc<Pipe> {
    Pipe::new(Some(makers)).expect("memory for a pipe")
}

/// Takes everything off the inactive list, so that the next pipe is new.
fn forget_inactive() {
    while Body::inactive().take().is_some() {}
}

#[test]
fn without_room_for_code_a_pipe_works_in_rust() {
    let _alone = alone();
    forget_inactive();
    for capacity in [0, 64, 256, 320, 512] {
        let makers = makers(capacity);
        let refused = Body::class().gauges.refused.load(Ordering::Relaxed);
        let pipe = pipe(makers);
        let code = pipe.code().unwrap_or_default();
        let made = [&code.read, &code.write].into_iter().flatten().count();
        let now = Body::class().gauges.refused.load(Ordering::Relaxed);
        assert_eq!(now - refused, 2 - made as u64, "capacity {capacity}");
        assert_eq!(makers.store.live_routines(), made, "capacity {capacity}");
        assert!(makers.store.live_bytes() <= capacity);
        assert!(pipe.resize(4096).is_ok() && pipe.capacity() == 4096);
        drop(code);
        drop(pipe);
        assert_eq!(makers.store.live_bytes(), 0, "a resized pipe leaves nothing behind");
    }
}

#[test]
fn a_pipe_whose_code_found_no_room_gets_it_when_it_is_revived() {
    let _alone = alone();
    forget_inactive();
    drop(pipe(makers(64)));
    let large = makers(4096);
    let revived = pipe(large);
    let code = revived.code().expect("it was made anew");
    assert!(code.read.is_some() && code.write.is_some());
    assert_eq!(large.store.live_routines(), 2);
}

#[test]
fn a_closed_pipe_is_revived_with_its_code() {
    let _alone = alone();
    forget_inactive();
    let makers = makers(4096);
    let gauges = &Body::class().gauges;
    let entry = |pipe: &Pipe| pipe.code().and_then(|code| code.read).map(|code| code.entry());
    let first = pipe(makers);
    let (made, revived) = (gauges.made.load(Ordering::Relaxed), gauges.revived.load(Ordering::Relaxed));
    let before = entry(&first);
    drop(first);
    let second = pipe(makers);
    assert_eq!(entry(&second), before);
    assert_eq!(gauges.made.load(Ordering::Relaxed), made);
    assert_eq!(gauges.revived.load(Ordering::Relaxed), revived + 1);
    assert_eq!(makers.store.published(), 2, "nothing was made for the second");
}

#[test]
fn the_inactive_list_has_an_end() {
    let _alone = alone();
    forget_inactive();
    let makers = makers(64 << 10);
    let pipes: Vec<_> = (0..40).map(|_| pipe(makers)).collect();
    assert_eq!(makers.store.live_routines(), 80);
    drop(pipes);
    assert_eq!(Body::inactive().len(), 8);
    assert_eq!(makers.store.live_routines(), 16);
    forget_inactive();
    assert_eq!(makers.store.live_bytes(), 0);
}

#[test]
fn code_lives_as_long_as_somebody_holds_it() {
    let _alone = alone();
    forget_inactive();
    let makers = makers(4096);
    let first = pipe(makers);
    let held = first.code().and_then(|code| code.read).expect("room for code");
    let slot = Slot::new(held.entry());
    assert!(first.resize(4096).is_ok());
    // The pipe has forgotten its routines; who is in the middle of one can end it.
    assert!(makers.store.birth(held.entry().address()).is_some());
    assert_eq!(makers.store.live_routines(), 1);
    let rust = bench().slow_call().under();
    interface::link(&slot, None, rust);
    assert_eq!(slot.entry().address(), bench().slow_call().address());
    let address = held.entry().address();
    drop(held);
    assert!(makers.store.birth(address).is_none(), "a dangling callentry is code of nobody");
    assert_eq!(makers.store.live_bytes(), 0);
}

/// One routine of each class whose quajects end, with what it is made for.
fn routines_of_others(makers: Makers, ring: &RawTty, sound: &SoundWords) -> Vec<(&'static str, Box<dyn Any>, u64)> {
    fn held<C: 'static>(name: &'static str, code: Option<Code<C>>) -> (&'static str, Box<dyn Any>, u64) {
        let code = code.expect("room for code");
        let entry = code.entry();
        (name, Box::new(code), entry.address())
    }
    let table = TableWords { free: 0x1000, pending: 0x1008, reads: 0x2000, writes: 0x3000, slow_entry: 0x4000 };
    let opens = Opens { table, recipes: 0x5000, generation_word: 0x6000, generation: 7 };
    let name = OpenName { path: b"/dev/null", flags: 0, read_entry: 0x7000, write_entry: 0x7100, recipe: 0 };
    let notes = Notes { keep: 0x1000, next: 0x1010, last: 1023, ring: 0x2000, thread: TteId(1), calls: 0x3000 };
    let words = WatchWords { calls: 8, ticks: 16, most: 24, least: 32, left: 40, inside: 48, told: 56 };
    let clock = bench().sample_clock().expect("the bench has a sample clock");
    let activity = Activity::default();
    let plan = Plan { activity, waiters: Waiters::None, maker: sound::Maker::Synthesized, inserts: Inserts::One };
    let handler = sound::synthesize(sound, &clock, &clock.end, plan, makers);
    vec![
        held("call.open", opens.open(makers, &[name], &OnlyTte)),
        held("call.close", opens.close(makers, &OnlyTte)),
        held("trace.call", notes.synthesize(makers)),
        held("watch.leave", words.leave(makers)),
        held("sound.null", handler.map(|handler| handler.code)),
        held("raw.interrupt", ring.synthesize(makers)),
    ]
}

#[test]
fn routines_of_every_class_end_with_who_holds_them() {
    let _alone = alone();
    bench().use_pc_fragments();
    let makers = makers(64 << 10);
    let (ring, sound) = (RawTty::new().expect("memory"), Box::<SoundWords>::default());
    for round in 0..2 {
        let all = routines_of_others(makers, &ring, &sound);
        assert_eq!(makers.store.live_routines(), all.len(), "round {round}");
        for (name, code, entry) in all {
            assert_eq!(makers.store.birth(entry).expect("live").name, name);
            let class = all_classes().into_iter().find(|class| class.makes(name)).expect("a class declares it");
            assert_eq!(class.gauges.refused.load(Ordering::Relaxed), 0, "{}", class.name);
            drop(code);
            assert!(makers.store.birth(entry).is_none(), "{name}: a dangling callentry is code of nobody");
        }
        assert_eq!(makers.store.live_bytes(), 0);
    }
}

#[test]
fn a_closed_window_leaves_its_code_to_who_holds_it() {
    let _alone = alone();
    let makers = makers(64 << 10);
    let mut tty = Box::new(Tty::new(4096).expect("memory"));
    tty.work_in_code(makers, 1);
    let window = TextWindow::new(&Machines::new());
    window.synthesize(&tty, makers);
    let write = window.code().expect("room for code");
    window.put(Gate::Raw, b"x", &tty);
    assert_eq!(makers.store.live_routines(), 3);
    drop(window);
    // The machine beside the routine that a thread may be inside is gone with the window, and nothing leads to it.
    assert_eq!(makers.store.birth(write.entry().address()).expect("held").name, "window.write");
    assert_eq!(makers.store.live_routines(), 1);
    drop(write);
    assert_eq!(makers.store.live_bytes(), 0);
}

#[test]
fn closed_positioned_files_are_revived_for_other_files() {
    let _alone = alone();
    while Positioned::inactive().take().is_some() {}
    let makers = makers(4096);
    let volume = Volume::in_memory(bench().pool).unwrap();
    let new = || Node::nameless(&volume, b"", NewNode { mode: 0o644, user: 0, group: 0, now: Time::default() });
    let (one, other) = (new().expect("room for a node"), new().expect("room for a node"));
    let entry = |file: &Made<Positioned>| file.callentries().and_then(|code| code.read).map(|code| code.entry());
    let first = Positioned::open(one.content().expect("a regular file"), makers);
    let before = entry(&first);
    Positioned::close(first);
    assert_eq!((Positioned::inactive().len(), makers.store.live_routines()), (1, 2));
    let second = Positioned::open(other.content().expect("a regular file"), makers);
    assert_eq!(entry(&second), before);
    assert_eq!(makers.store.published(), 2, "nothing was made for the second");
    drop(second);
    assert_eq!(makers.store.live_bytes(), 0);
}

#[test]
fn pipes_are_optimized_by_the_plan_of_the_first() {
    let _alone = alone();
    forget_inactive();
    let makers = makers(64 << 10);
    let first = pipe(makers);
    let planned = Body::class().gauges.planned.load(Ordering::Relaxed);
    let second = pipe(makers);
    assert_eq!(Body::class().gauges.planned.load(Ordering::Relaxed), planned + 2);
    let bytes = |pipe: &Pipe| {
        let entry = pipe.code().and_then(|code| code.write).expect("room for code").entry();
        makers.store.birth(entry.address()).expect("live").bytes
    };
    assert_eq!(bytes(&first), bytes(&second));
    let drafts = create::factor(&**second.body(), makers, &PipeCallouts {});
    let longer = drafts[1].as_ref().expect("a write").len();
    assert!((bytes(&second) as usize) < longer, "{} of {longer} bytes", bytes(&second));
}

/// Another contract, with the same way to make routines.
enum OtherCall {}

impl Contract for OtherCall {
    const NAME: &'static str = "other call";
    type Routine = Routine;
}

#[test]
fn the_processor_serializes_before_new_code_runs() {
    let _alone = alone();
    let before = SERIALIZED.load(Ordering::Relaxed);
    let code = create::create(&Null {}, makers(4096), &NullCallouts {});
    assert!(code.read.is_some() && code.write.is_some());
    assert_eq!(SERIALIZED.load(Ordering::Relaxed) - before, 2, "once for each routine");
}

#[test]
fn contracts_that_do_not_match_are_an_error_where_types_cannot_tell() {
    let _alone = alone();
    let code = create::create(&Null {}, makers(4096), &NullCallouts {}).read.expect("room for code");
    let any = AnyCode::new(&code);
    let slot: Slot<FileCall> = Slot::new(bench().slow_call().under());
    assert_eq!(interface::link_any(&slot, &any), Ok(()));
    assert_eq!(slot.entry().address(), code.entry().address());
    // SAFETY: nobody enters it.
    let other: Slot<OtherCall> = Slot::new(unsafe { Entry::new(64) });
    let mismatch = Mismatch { slot: "other call", code: "file call" };
    assert_eq!(interface::link_any(&other, &any), Err(mismatch));
    assert_eq!(other.entry().address(), 64, "the slot is as it was");
    assert_eq!(mismatch.to_string(), "code of contract file call does not fit a slot of contract other call");
}

#[test]
fn a_draft_that_cannot_be_bound_is_refused_and_nothing_is_lost() {
    let _alone = alone();
    let store = code_store(4096);
    let mut draft = synth::Draft::new();
    kernel::call::fragments::NobodyWaits { waiting: synth::Abs32(1 << 40), slow: synth::Target::Address(0x1000) }
        .paste(&mut draft);
    let refused = store.publish::<FileCall>("test", codestore::Maker::new("test"), draft);
    assert!(matches!(refused.map(|code| code.entry()), Err(PublishError::Fill(_))));
    assert_eq!((store.live_bytes(), store.live_routines()), (0, 0));
}

/// The classes of the kernel and of the machine whose fragments the listings have.
fn all_classes() -> Vec<&'static Class> {
    let mut all = kernel::classes().collect::<Vec<_>>();
    all.push(WatchWords::class());
    machine_pc::each_class(&mut |class| all.push(class));
    all
}

#[test]
fn every_class_says_what_it_is() {
    for class in all_classes() {
        assert!(!class.callentries.is_empty(), "{}", class.name);
        for entry in class.callentries {
            let single = entry.routines.len() == 1;
            assert!(!single || entry.routines[0].ends_with(entry.name), "{} of {}", entry.name, class.name);
            assert!(!entry.contract.is_empty());
        }
        let mut templates = 0;
        class.each_template(|_| templates += 1);
        assert!(templates > 0, "{}", class.name);
        let end = class.data.iter().map(|field| field.offset + field.bytes).max();
        assert!(end.is_none_or(|end| end > 0));
    }
}

#[test]
fn no_two_callentries_share_a_routine_name() {
    let mut seen = std::collections::BTreeMap::new();
    for class in all_classes() {
        for routine in class.callentries.iter().flat_map(|entry| entry.routines) {
            let before = seen.insert(*routine, class.name);
            assert_eq!(before, None, "{routine} is of {} too", class.name);
        }
    }
}
