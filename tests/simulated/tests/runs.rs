//! What the simulated machine itself promises.

use std::sync::Arc;

use abi::nr;
use machine::Channel;
use simulated::{Calls, End, Plan, Program, User, check_ring, run};

fn plan(seed: u64, programs: Vec<Program>) -> Plan {
    let check = Some(check_ring as _);
    Plan {
        seed,
        frames: 2048,
        steps_max: 20_000,
        preempt_once_in: 7,
        programs,
        input: Vec::new(),
        lines: Vec::new(),
        check,
    }
}

fn program(body: impl Fn(&User) + Send + Sync + 'static) -> Program {
    Arc::new(body)
}

#[test]
fn a_program_writes_to_the_terminal_and_ends() {
    let first = program(|user| {
        let memory = user.map(4096);
        user.store(memory, b"hello\n");
        assert_eq!(user.call(nr::WRITE, [1, memory, 6, 0, 0, 0]), 6);
    });
    let outcome = run(plan(1, vec![first]));
    assert_eq!(outcome.end, End::Off, "{:#?}", outcome.trace);
    assert_eq!(outcome.terminal, b"hello\r\n");
}

#[test]
fn what_is_typed_arrives_when_it_is_typed() {
    let first = program(|user| {
        let memory = user.map(4096);
        assert_eq!(user.call(nr::READ, [0, memory, 100, 0, 0, 0]), 3);
        assert!(user.clock(memory + 64) >= 5_000_000);
        let mut line = [0; 3];
        user.load(memory, &mut line);
        assert_eq!(&line, b"ab\n");
    });
    let input = vec![(5_000_000, Channel::Terminal, b"ab\n".to_vec())];
    let outcome = run(Plan { input, ..plan(2, vec![first]) });
    assert_eq!(outcome.end, End::Off, "{:#?}", outcome.trace);
}

#[test]
fn a_sleep_that_nothing_ends_is_found() {
    let first = program(|user| {
        let word = user.map(4096);
        user.wait_while(word, 0);
    });
    let outcome = run(plan(3, vec![first]));
    assert_eq!(outcome.end, End::Deadlock);
    assert!(outcome.trace.last().is_some_and(|line| line.contains("switch to 0")), "{:#?}", outcome.trace);
}

#[test]
fn a_loop_without_end_is_found() {
    let first = program(|user| {
        loop {
            user.compute();
        }
    });
    assert_eq!(run(plan(4, vec![first])).end, End::TooLong);
}

#[test]
fn a_programs_failed_assertion_ends_the_run_with_its_words() {
    let first = program(|user| assert_eq!(user.call(nr::GETPID, [0; 6]), 17, "the first process"));
    match run(plan(5, vec![first])).end {
        End::Panic(words) => assert!(words.contains("the first process"), "{words}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_signal_ends_a_process_that_does_not_handle_it() {
    const SIGKILL: u64 = 9;
    let first = program(|user| {
        let memory = user.map(4096);
        let child = user.fork(1, 0);
        user.sleep(1_000_000, memory);
        assert_eq!(user.call(nr::KILL, [child as u64, SIGKILL, 0, 0, 0, 0]), 0);
        assert_eq!(user.call(nr::WAIT4, [child as u64, memory, 0, 0, 0, 0]), child);
        assert_eq!(u64::from(user.load_u32(memory)), SIGKILL);
    });
    let child = program(|user| {
        let word = user.map(4096);
        user.wait_while(word, 0);
    });
    let outcome = run(plan(6, vec![first, child]));
    assert_eq!(outcome.end, End::Off, "{:#?}", outcome.trace);
}
