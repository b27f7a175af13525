//! Nanoseconds a number, beside the crate `ryu` and Rust's formatting: `cargo bench -p synthdecimal`. Under `cargo test` it
//! runs tiny and says nothing about speed.

use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use means::Random;
use synthdecimal::{Room, fixed, shortest};

const NUMBERS: usize = 4096;
const ROUNDS: usize = 41;

/// The fastest of some rounds, in which all take turns.
fn measure(rounds: usize, numbers: &[f64], ways: &mut [(&str, &mut dyn FnMut(f64) -> usize)]) {
    let mut best = vec![f64::INFINITY; ways.len()];
    for _ in 0..rounds {
        for ((_, way), best) in ways.iter_mut().zip(&mut best) {
            let began = Instant::now();
            let bytes: usize = numbers.iter().map(|number| way(black_box(*number))).sum();
            black_box(bytes);
            *best = best.min(began.elapsed().as_nanos() as f64 / numbers.len() as f64);
        }
    }
    for ((name, _), best) in ways.iter().zip(best) {
        println!("  {name:<28} {best:>7.1}");
    }
}

fn main() {
    let is_bench = std::env::args().any(|word| word == "--bench");
    let rounds = if is_bench { ROUNDS } else { 1 };
    let mut random = Random::new(1);
    let mut any = || loop {
        let number = f64::from_bits(random.bits());
        if number.is_finite() {
            return number;
        }
    };
    let wide: Vec<f64> = (0..NUMBERS).map(|_| any()).collect();
    let mut random = Random::new(2);
    let unit: Vec<f64> = (0..NUMBERS).map(|_| (random.bits() >> 11) as f64 / (1u64 << 53) as f64).collect();
    let cents: Vec<f64> = (0..NUMBERS).map(|_| random.below(10_000_000) as f64 / 100.0).collect();
    for (title, numbers) in [("any bits", &wide), ("0 to 1", &unit), ("cents", &cents)] {
        println!("the shortest, {title}: ns");
        let (mut room, mut buffer, mut text) = (Room::new(), ryu::Buffer::new(), Vec::with_capacity(2048));
        measure(
            rounds,
            numbers,
            &mut [
                ("synthdecimal", &mut |number| shortest(number, &mut room).len()),
                ("ryu", &mut |number| buffer.format(number).len()),
                ("Rust, {:?}", &mut |number| {
                    text.clear();
                    let _ = write!(text, "{number:?}");
                    text.len()
                }),
            ],
        );
    }
    for (title, numbers, decimals) in
        [("cents, 2 decimals", &cents, 2), ("0 to 1, 6", &unit, 6), ("0 to 1, 17", &unit, 17)]
    {
        println!("fixed, {title}: ns");
        let (mut room, mut text) = (Room::new(), Vec::with_capacity(2048));
        measure(
            rounds,
            numbers,
            &mut [
                ("synthdecimal", &mut |number| fixed(number, decimals, &mut room).map_or(0, str::len)),
                ("Rust, {:.N}", &mut |number| {
                    text.clear();
                    let _ = write!(text, "{number:.decimals$}");
                    text.len()
                }),
            ],
        );
    }
}
