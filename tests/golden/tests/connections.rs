//! The interfacer's decisions on real quajects, each built and used: paste, call, monitor, queue, pump, product.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};

use golden::{bench, code_store};
use kernel::call::Makers;
use kernel::link::{Connected, Ground, Joined, Port, connect, join};
use kernel::monitor::{Callers, MonitorKind};
use kernel::pipe::{Pipe, PipeEnd, Side};
use kernel::pump::Standing;
use kernel::schedule::Scheduler;
use kernel::stream::Stream;
use kernel::tty::{Patience, ReadOutcome, Tty};
use machine::{Channel, Channels};
use quaject::{End, Number, Offer};
use statemachine::terminal::{COOK, EDIT, VT100};
use statemachine::{Graph, Memory, Outside, Runner};

/// The bench is for one thread at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn ground(callers: Callers) -> Ground {
    Ground { callers, same_thread: false, capacity: 64, scheduler: None, owner: 0 }
}

type Sink = Box<dyn FnMut(u8)>;

/// A tty's input side as a procedure that bears one caller, and what a program reads there.
fn keyboard() -> (Rc<RefCell<Tty>>, Sink) {
    let tty = Rc::new(RefCell::new(Tty::new(4096).expect("memory")));
    let sink = tty.clone();
    (tty, Box::new(move |byte| assert_eq!(sink.borrow_mut().device_input(&[byte]).accepted, 1)))
}

fn line(tty: &RefCell<Tty>) -> String {
    let mut line = [0; 256];
    match tty.borrow_mut().program_read(&mut line, Patience::None) {
        ReadOutcome::Bytes(bytes) => String::from_utf8_lossy(&line[..bytes]).into_owned(),
        _ => String::new(),
    }
}

/// Program, output filter and device: one routine, whose listing is docs/listings/tty.write.txt.
#[test]
fn a_tty_filter_and_a_console_device_are_pasted() {
    let _alone = alone();
    bench().use_pc_fragments();
    let slow = synth::Target::Address(0x1000);
    let device = bench().send_code(Channel::Terminal, slow).expect("the bench has a console");
    let [choose, send] = [device.choose.template.shape.name, device.send.template.shape.name];
    let fragment = Port::Fragment(Number::Multiple, device);
    let pasted = connect::<()>(Port::Active(Number::Multiple), fragment, &ground(Callers::UnderLock));
    assert!(matches!(pasted, Ok(Connected::Pasted(_))));
    let makers = Makers::new(bench(), code_store(1 << 16));
    let tty = Box::new(Tty::new(4096).expect("memory"));
    let write = tty.synthesize(Some(Channel::Terminal), makers).write.expect("room for code");
    let birth = makers.store.birth(write.entry().address()).expect("live");
    let names: Vec<_> = birth.origins.iter().map(|origin| origin.shape.name).collect();
    let place =
        |name: &str| names.iter().position(|other| *other == name).unwrap_or_else(|| panic!("{name}: {names:?}"));
    assert!(place(choose) < place("Filter") && place("Filter") < place(send), "{names:?}");
}

/// A channel that does not bear several writers is not pasted into them.
#[test]
fn a_device_for_one_caller_is_not_pasted_into_many() {
    let _alone = alone();
    let device = bench().send_code(Channel::Terminal, synth::Target::Address(0x1000)).expect("a console");
    let fragment = Port::Fragment(Number::Single, device);
    let refused = connect::<()>(Port::Active(Number::Multiple), fragment, &ground(Callers::UnderLock));
    assert!(matches!(refused, Err(abi::Errno::EINVAL)), "a fragment is nothing that a monitor could call");
}

#[test]
fn one_writer_calls_a_passive_sink() {
    let (tty, sink) = keyboard();
    let sink = Port::Procedure(Number::Single, sink);
    let Ok(Connected::Called(mut call)) = connect(Port::Active(Number::Single), sink, &ground(Callers::UnderLock))
    else {
        panic!("not a call")
    };
    b"called\n".iter().for_each(|byte| call(*byte));
    assert_eq!(line(&tty), "called\n");
}

#[test]
fn two_writers_to_a_passive_sink_get_a_monitor() {
    for (callers, kind) in [(Callers::UnderLock, MonitorKind::Cell), (Callers::AnyTime, MonitorKind::Serial)] {
        let (tty, sink) = keyboard();
        let sink = Port::Procedure(Number::Single, sink);
        let Ok(Connected::Monitored(monitor)) = connect(Port::Active(Number::Multiple), sink, &ground(callers)) else {
            panic!("no monitor")
        };
        assert_eq!(monitor.kind(), kind);
        for byte in *b"two\nwriters\n" {
            assert!(monitor.call(byte).is_ok());
        }
        assert_eq!((line(&tty), line(&tty)), ("two\n".into(), "writers\n".into()));
    }
}

/// The interrupt of a device puts bytes in, the tty's thread takes them.
#[test]
fn a_device_interrupt_and_a_thread_get_a_queue() {
    let ground = ground(Callers::AnyTime);
    let one = Port::Active(Number::Single);
    let Ok(Connected::Queued(mut put, mut get)) = connect::<u8>(one, Port::Active(Number::Single), &ground) else {
        panic!("no queue")
    };
    let (tty, mut sink) = keyboard();
    let full = (0..100).find(|_| put.put(b'x').is_err());
    assert!(full.is_some(), "a queue has an end");
    while get.get().is_some() {}
    b"typed\n".iter().for_each(|byte| assert_eq!(put.put(*byte), Ok(())));
    while let Some(byte) = get.get() {
        sink(byte);
    }
    assert_eq!(line(&tty), "typed\n");
    // Each number of producers and consumers has its kind; the choice itself is held by the table in kernel::link.
    for (producers, consumers) in [(Number::Multiple, Number::Single), (Number::Multiple, Number::Multiple)] {
        let queue = connect::<u8>(Port::Active(producers), Port::Active(consumers), &ground);
        let Ok(Connected::Queued(mut put, mut get)) = queue else { panic!("no queue") };
        assert_eq!((put.put(7), get.get()), (Ok(()), Some(7)));
    }
}

/// Both ends are called, so somebody must call. (It carries bytes in the suite `semantics`, program `pumps.c`.)
#[test]
fn two_passive_streams_get_a_pump() {
    let _alone = alone();
    let scheduler = Scheduler::start(bench()).expect("room for the idle thread");
    let end = |side| {
        let pipe = Pipe::new(None).expect("memory for a pipe");
        let end: Arc<dyn Stream> = Arc::new(PipeEnd::new(&pipe, side, scheduler));
        Port::<u8>::Stream(end, Arc::new(()))
    };
    let without = connect(end(Side::Read), end(Side::Write), &ground(Callers::UnderLock));
    assert!(matches!(without, Err(abi::Errno::EINVAL)), "a pump needs a scheduler for its thread");
    let ground = Ground { scheduler: Some(scheduler), ..ground(Callers::UnderLock) };
    let Ok(Connected::Pumped(pump)) = connect(end(Side::Read), end(Side::Write), &ground) else { panic!("no pump") };
    assert_eq!(pump.standing(), Standing::Running);
    assert!(kernel::pump::all().unwrap().iter().any(|other| Arc::ptr_eq(other, &pump)));
}

struct Nothing;

impl Outside for Nothing {
    fn call(&mut self, _: u16, _: Memory<'_>) {}
}

/// Everything that `machine` emits for `input`.
fn emitted(runner: &mut Runner<'_>, input: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    input.iter().for_each(|byte| runner.take(*byte, &mut |byte| all.push(byte), &mut Nothing));
    all
}

#[test]
fn two_machines_and_their_queue_become_one_machine() {
    let machine = End::passive(Number::Single, Offer::Machine);
    let caller = End::active(Number::Single);
    let text = b"a line\nwith \x1b[1mescapes\x1b[0m\tand tabs\r\n\x7f";
    for (first, second) in [(&COOK, &VT100), (&EDIT, &COOK)] {
        let graphs = || (Graph::of(first), Graph::of(second));
        let Joined::One(one) = join((graphs().0, machine), (graphs().1, machine), 64) else { panic!("no product") };
        // With a thread at each end, and no knowledge of the other's states, the queue stays.
        let Joined::Two(first, second, mut put, mut get) = join((graphs().0, caller), (graphs().1, caller), 64) else {
            panic!("a product of what is not offered")
        };
        let together = emitted(&mut Runner::new(&one), text);
        let (mut first, mut second) = (Runner::new(&first), Runner::new(&second));
        let mut apart = Vec::new();
        for byte in text {
            emitted(&mut first, &[*byte]).into_iter().for_each(|byte| assert_eq!(put.put(byte), Ok(())));
            while let Some(byte) = get.get() {
                apart.extend(emitted(&mut second, &[byte]));
            }
        }
        assert_eq!(together.escape_ascii().to_string(), apart.escape_ascii().to_string());
    }
}
