//! The routines that are listed: made as the kernel makes them, with the fragments of the pc.

use std::mem::ManuallyDrop;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use abi::nr;
use golden::{Automaton, Clock, OnlyTte, bench};
use kernel::call::watch::WatchWords;
use kernel::call::{OpenName, Opens, SimpleCode, TableWords};
use kernel::channel::console;
use kernel::counter::EventCounter;
use kernel::file::{NewNode, Node, Positioned, Time, Volume, Window};
use kernel::futex::Futexes;
use kernel::pipe::Pipe;
use kernel::ready::counter::CounterReady;
use kernel::ready::instance::{Looks, Watched};
use kernel::ready::pipe::PipeReady;
use kernel::ready::poll::Polls;
use kernel::schedule::timer::{CountWords, TimerCodes};
use kernel::screen::{Machines, TextWindow};
use kernel::signal::{Raises, Returns};
use kernel::sound::{Activity, Channel, Format, Inserts, Maker, Plan, Sound, Waiters, synthesize};
use kernel::trace::Notes;
use kernel::tty::raw::{RawCallouts, RawCode, RawTty};
use kernel::tty::termios::lflag;
use kernel::tty::{Gate, Tty};
use machine::{Channel as Line, Processor, Samples, ScheduleWords, TteId};
use statemachine::terminal::{COOK, EDIT, VT100};
use statemachine::{Graph, product};
use synth::HoleKind;

use crate::disassembly;

/// Places that the listings do not show.
const TABLE: TableWords =
    TableWords { free: 0x1000, pending: 0x1008, reads: 0x2000, writes: 0x3000, slow_entry: 0x4000 };
const OPENS: Opens = Opens { table: TABLE, recipes: 0x5000, generation_word: 0x6000, generation: 7 };

fn open_name(path: &[u8], flags: u32) -> OpenName<'_> {
    OpenName { path, flags, read_entry: 0x7000, write_entry: 0x7100, recipe: 0 }
}

fn open(names: &[OpenName<'_>]) -> u64 {
    // Forgotten, so that it stays for its listing.
    let code = ManuallyDrop::new(OPENS.open(bench().makers(), names, &OnlyTte).expect("room"));
    code.entry().address()
}

fn listed(name: &str, entry: u64) -> (String, String) {
    let birth = bench().store.birth(entry).expect("live code");
    let mut code = vec![0; birth.bytes as usize];
    assert_eq!(bench().store.read(entry, &mut code), code.len());
    // Jumps inside the routine need no explanation.
    let holes = birth.origins.iter().flat_map(|origin| origin.holes(birth.address, &code));
    let unknown = holes.filter(|(hole, value)| {
        value.kind != HoleKind::Label && kernel::facts::fact(bench(), birth.name, hole).is_none()
    });
    let unknown: Vec<_> = unknown.map(|(hole, _)| hole).collect();
    // Generated machines are made by the tests only; their holes are the machine's own states and words.
    let generated = name.starts_with("machine.");
    assert!(generated || unknown.is_empty(), "{name}: nobody wrote down what {unknown:?} stands for");
    (name.to_string(), disassembly::routine(&birth, &code))
}

/// The live routine of this name that is made in the midst of others.
fn born(name: &str) -> u64 {
    let mut entry = None;
    bench().store.each_birth(|birth, _| entry = entry.or((birth.name == name).then_some(birth.address)));
    entry.expect("it is live")
}

/// The handlers of samples, for the activities of table 3.4 and for all channels.
fn handlers() -> Vec<(String, String)> {
    let makers = bench().makers();
    let sound = Sound::new(bench(), Some(makers)).expect("the bench has a sample clock");
    let clock = bench().sample_clock().expect("as above");
    let [cd, ad, da] = Channel::ALL;
    let silent = Activity::default();
    let cd_in = silent.with(cd, Some(Format::Stereo));
    let activities = [
        silent,
        silent.with(ad, Some(Format::StereoIn)),
        cd_in,
        cd_in.with(da, Some(Format::StereoOut)),
        cd_in.with(ad, Some(Format::Linear)),
        cd_in.with(ad, Some(Format::MuLaw)).with(da, Some(Format::StereoOut)),
    ];
    for channel in Channel::ALL {
        // Makes the rings.
        let format = [Format::Stereo, Format::Linear, Format::StereoOut][channel as usize];
        sound.switch(channel, Some(format)).expect("memory");
    }
    let made = |maker, activity| {
        let plan = Plan { activity, waiters: Waiters::None, maker, inserts: Inserts::cheapest(activity) };
        let handler = synthesize(&sound.words, &clock, &clock.end, plan, makers).expect("room for code");
        let name = bench().store.birth(handler.code.entry().address()).expect("live code").name;
        listed(name, handler.code.entry().address())
    };
    let synthesized = activities.map(|activity| made(Maker::Synthesized, activity));
    synthesized.into_iter().chain([made(Maker::Assembler, silent)]).collect()
}

/// Name and listing of every routine.
pub fn all() -> Vec<(String, String)> {
    let _alone = crate::alone();
    bench().use_pc_fragments();
    let makers = bench().makers();
    // Kept, so that its routines stay live.
    assert!(Futexes::new(Some(makers)).has_code(), "room for code");
    let counter = ManuallyDrop::new(EventCounter::new(0, false).expect("memory"));
    counter.synthesize(makers);
    let pipe = Pipe::new(Some(makers)).expect("memory").code().expect("room for code");
    let volume = Volume::in_memory(bench().pool).unwrap();
    let new = NewNode { mode: 0o644, user: 0, group: 0, now: Time::default() };
    let node = Node::nameless(&volume, b"", new).expect("room for a node");
    let window = Window::open(node.content().expect("a regular file"), makers);
    let file = window.callentries().expect("room for code");
    let positioned = Positioned::open(node.content().expect("a regular file"), makers);
    let places = positioned.callentries().expect("room for code");
    let SimpleCode { null, zero } = SimpleCode::make(makers);
    let close = OPENS.close(makers, &OnlyTte).expect("room");
    let console = console(Line::StandardOutput, makers);
    let mut terminal = Box::new(Tty::new(4096).expect("memory"));
    terminal.work_in_code(makers, 1);
    let _ = terminal.device_input(b"x");
    assert_eq!(terminal.program_write(&[b'x'; 40]), 40);
    let edit = terminal.editor().expect("room for code");
    let mut unseen = Box::new(Tty::new(4096).expect("memory"));
    let mut settings = *unseen.termios();
    settings.c_lflag &= !lflag::ECHO;
    let _ = unseen.set_termios(settings);
    unseen.work_in_code(makers, 1);
    let _ = unseen.device_input(b"x");
    let tty = terminal.synthesize(Some(Line::Terminal), makers);
    let line = RawTty::new().expect("memory").synthesize(makers).expect("room for code");
    bench().access_space.store(4, Relaxed);
    let spaced = RawTty::new().expect("memory").synthesize(makers).expect("room for code");
    bench().access_space.store(0, Relaxed);
    let screen = TextWindow::new(&Machines::new());
    screen.synthesize(&terminal, makers);
    // Made when it is needed.
    screen.put(Gate::Raw, b"x", &terminal);
    let window_write = screen.code().expect("room for code");
    let clock = bench().sample_clock().expect("the bench has a sample clock");
    let callouts = RawCallouts { clock: Some(&clock), device: None };
    let ring = RawTty::new().expect("memory");
    let null_handler = RawCode::null(&ring, makers, &callouts).create(makers).expect("room for code");
    let words = WatchWords { calls: 8, ticks: 16, most: 24, least: 32, left: 40, inside: 48, told: 56 };
    let watched = [
        words.enter(makers, nr::READ, 0x7000),
        words.leave(makers),
        words.slow(makers),
        words.told(makers, 1, nr::READ, 0x7100),
    ];
    let watched = watched.map(|code| code.expect("room for code"));
    let notes = Notes { keep: 0x1000, next: 0x1010, last: 1023, ring: 0x2000, thread: TteId(1), calls: 0x3000 };
    let traced = notes.synthesize(makers).expect("room for code");
    let mut listings = vec![
        listed("raw.interrupt", line.entry().address()),
        listed("raw.interrupt.spaced", spaced.entry().address()),
        listed("counter.read", born("counter.read")),
        listed("counter.write", born("counter.write")),
        listed("futex", born("futex")),
        listed("pipe.read", pipe.read.expect("room").entry().address()),
        listed("pipe.write", pipe.write.expect("room").entry().address()),
        listed("file.read", file.read.expect("room").entry().address()),
        listed("file.write", file.write.expect("room").entry().address()),
        listed("file.pread", places.read.expect("room").entry().address()),
        listed("file.pwrite", places.write.expect("room").entry().address()),
        listed("file.seek", file.seek.expect("room").entry().address()),
        listed("null.read", null.read.expect("room").entry().address()),
        listed("null.write", null.write.expect("room").entry().address()),
        listed("zero.read", zero.read.expect("room").entry().address()),
        listed("console.write", console.write.expect("room").entry().address()),
        listed("tty.read", tty.read.expect("room").entry().address()),
        listed("tty.write", tty.write.expect("room").entry().address()),
        listed("call.open.null", open(&[open_name(b"/dev/null", 0)])),
        listed("call.open.tty", open(&[open_name(b"/dev/tty", 2)])),
        listed("call.open.two", open(&[open_name(b"/dev/tty", 2), open_name(b"/dev/null", 0)])),
        listed("tty.edit", edit),
        listed("tty.cook", terminal.cooker().expect("room for code")),
        listed("tty.edit_unseen", unseen.editor().expect("room for code")),
        listed("window.write", window_write.entry().address()),
        listed("window.plain", born("window.plain")),
        listed("window.cooked", born("window.cooked")),
        listed("raw.null", null_handler.entry().address()),
        listed("trace.call", traced.entry().address()),
        listed("watch.enter", watched[0].entry().address()),
        listed("watch.leave", watched[1].entry().address()),
        listed("watch.slow", watched[2].entry().address()),
        listed("watch.told", watched[3].entry().address()),
        listed("call.close", close.entry().address()),
    ];
    listings.extend(asked());
    listings.extend(signals());
    listings.extend(handlers());
    listings.extend(timers());
    // A thread's routines are one template each, filled with addresses that are not shown.
    for (name, template) in machine_pc::thread_templates() {
        for hole in template.shape.holes {
            assert!(
                kernel::facts::fact(bench(), name, hole).is_some(),
                "{name}: nobody wrote down what {hole} stands for"
            );
        }
        listings.push((name.to_string(), format!("; {name}\n{}", disassembly::template(&template))));
    }
    listings.extend(machines());
    listings.extend(handover());
    listings
}

/// What something is ready for, and the calls that ask.
fn asked() -> Vec<(String, String)> {
    let makers = bench().makers();
    let pipe = PipeReady { head: 0x1000, tail: 0x1008, write_limit: 0x1010, readers: 0x1018, writers: 0x101c };
    let counter = CounterReady { count: 0x1020 }.code(makers).expect("room for code");
    let [read, write] = [pipe.of_read_end(makers), pipe.of_write_end(makers)].map(|code| code.expect("room for code"));
    let poll = Polls { ready: 0x2000, count: 256 }.poll(makers, &OnlyTte).expect("room for code");
    let looks = Looks::new(makers).expect("room for code");
    looks.look_at(
        makers,
        &[
            Watched { ready: &read, events: 1, data: 7 << 32 | 3 },
            Watched { ready: &counter, events: 5, data: u64::MAX },
        ],
    );
    let look = born("epoll.look");
    vec![
        listed("ready.pipe.read", read.entry().address()),
        listed("ready.pipe.write", write.entry().address()),
        listed("ready.counter", counter.entry().address()),
        listed("call.poll", poll.entry().address()),
        listed("epoll.wait", looks.wait().entry().address()),
        listed("epoll.look", look),
    ]
}

/// A thread's own signals.
fn signals() -> Vec<(String, String)> {
    let makers = bench().makers();
    let back = Returns {
        blocked: 0x1000,
        pending: 0x1008,
        shared: 0x1010,
        stack: 0x1018,
        stack_size: 0x1020,
        stack_flags: 0x1028,
        bytes: 832,
        features: 7,
    };
    let raises = Raises {
        pid: 2,
        tid: 3,
        threads: 0x2000,
        blocked: back.blocked,
        pending: back.pending,
        shared: back.shared,
        hearers: 0x2008,
        stack_size: back.stack_size,
        stack_flags: back.stack_flags,
        actions: 0x3000,
        sequence: 0x2010,
        trapno: 0x2018,
        trap_error: 0x2020,
        trap_address: 0x2028,
        user: 0x2030,
        bytes: back.bytes,
        features: back.features,
        initial: 0x4000,
    };
    let made = [back.code(makers, &OnlyTte), raises.kill(makers, &OnlyTte), raises.tgkill(makers, &OnlyTte)];
    let named = ["signal.sigreturn", "signal.kill", "signal.tgkill"].into_iter().zip(made);
    named.map(|(name, code)| listed(name, code.expect("room for code").entry().address())).collect()
}

/// Falling asleep and waking.
fn handover() -> Vec<(String, String)> {
    let dispatch: &u64 = Box::leak(Box::default());
    let slow = bench().slow_call().address();
    let codes = machine_pc::handover_codes(bench().makers(), core::ptr::from_ref(dispatch) as u64, slow);
    let codes = Box::leak(Box::new(codes.expect("room for code")));
    codes.all().into_iter().map(|(name, entry)| listed(name, entry)).collect()
}

/// The handler of the timer's interrupt, and an alarm that counts.
fn timers() -> Vec<(String, String)> {
    let (makers, words): (_, &ScheduleWords) = (bench().makers(), Box::leak(Box::default()));
    let (code, _kernel) = Box::leak(Box::<Clock>::default()).pc_code();
    let codes = TimerCodes::synthesize(makers, &code, words).expect("room for code");
    let timer: &[AtomicU64; 4] = Box::leak(Box::default());
    let [waiting, unread, ever, at] = timer;
    let counts = CountWords { waiting: core::ptr::from_ref(waiting) as u64, unread, ever, at };
    let count = codes.count(makers, &counts).expect("room for code");
    vec![
        listed("timer.interrupt", codes.interrupt.entry().address()),
        listed("timer.nesting", codes.nesting.entry().address()),
        listed("timer.kernel", codes.kernel().address()),
        listed("timer.next", codes.next()),
        listed("timer.count", count.entry().address()),
    ]
}

/// The machines of a terminal, alone and as products.
fn machines() -> Vec<(String, String)> {
    let [edit, cook, vt100] = [&EDIT, &COOK, &VT100].map(Graph::of);
    let joined = product(&cook, &vt100).expect("a product");
    let echoed = product(&edit, &cook).expect("a product");
    let named = [
        ("machine.edit", &edit),
        ("machine.cook", &cook),
        ("machine.vt100", &vt100),
        ("machine.cook_vt100", &joined),
        ("machine.edit_cook", &echoed),
    ];
    let listing = |(name, graph)| {
        let machine = Automaton::new(name, graph);
        listed(name, machine.entry())
    };
    named.map(listing).into()
}
