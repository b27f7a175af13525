//! Two makers, one oracle (R6): every synthesized routine against its Rust twin and a plain model, on random operations.
//!
//! Each operation enters the synthesized routine. If the routine gives up, the Rust twin does the call, as in the kernel;
//! either way the result, the program's bytes and the state must be those of the model. A failure names the seed.
//!
//! `SYNTH_SEED=n` repeats a run; `SYNTH_OPERATIONS=n` sets its length (10000000 for a long one).

mod asks;
mod clocks;
mod consoles;
mod descriptors;
mod devices;
mod dispatch;
mod files;
mod lines;
mod pipes;
mod race;
mod rings;
mod sounds;
mod switch;
mod watched;
mod windows;

use golden::Random;
use race::Race;

/// Operations of a run under `cargo test`: a few seconds.
const OPERATIONS: u64 = 400_000;

fn main() {
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    let seed = Random::seed();
    let given = std::env::var("SYNTH_OPERATIONS").ok().and_then(|text| text.parse().ok());
    let operations = given.unwrap_or(OPERATIONS);
    println!("oracle: SYNTH_SEED={seed} SYNTH_OPERATIONS={operations}");
    let mut race = Race::new(seed);
    let mut asks = asks::Asks::new();
    let mut pipes = pipes::Pipes::new();
    let mut files = files::Files::new();
    let mut clocks = clocks::Clocks::new();
    let mut consoles = consoles::Consoles::new();
    let mut devices = devices::Devices::new();
    let mut descriptors = descriptors::Descriptors::new();
    let mut dispatch = dispatch::Dispatch::new();
    let mut lines = lines::Lines::new();
    let mut rings = rings::Rings::new();
    let mut sounds = sounds::Sounds::new();
    let mut switch = switch::Switch::new();
    let mut windows = windows::Windows::new();
    for operation in 0..operations {
        race.operation = operation;
        match race.random.below(20) {
            0..6 => pipes.step(&mut race),
            6..12 => files.step(&mut race),
            12 => devices.step(&mut race),
            13 if race.random.once_in(2) => asks.step(&mut race),
            13 => dispatch.step(&mut race),
            18 => sounds.step(&mut race),
            17 if race.random.once_in(2) => lines.step(&mut race),
            19 if race.random.once_in(2) => clocks.step(&mut race),
            19 if race.random.once_in(2) => switch.step(&mut race),
            19 => rings.step(&mut race),
            17 => windows.step(&mut race),
            16.. => consoles.step(&mut race),
            _ => descriptors.step(&mut race),
        }
    }
    race.tell();
}
