//! What the simulated machine itself promises.

use std::sync::{Arc, Mutex};

use abi::nr;
use machine::Channel;
use simulated::{Calls, End, Plan, Program, User, check_ring, run};

fn plan(seed: u64, programs: Vec<Program>) -> Plan {
    Plan {
        seed,
        frames: 2048,
        steps_max: 200_000,
        preempt_once_in: 7,
        programs,
        input: Vec::new(),
        check: Some(check_ring),
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
