//! What written loops cost beside compiled C: `cargo bench -p synthsignal`.
//!
//! Compiles `signal.c` with `-O3 -march=native`, runs all operations in turns, and prints nanoseconds a sample out (the median of the
//! rounds), the ratio to the best C, and whether all ways gave the same samples. `cargo bench -p synthsignal -- --icount` counts guest
//! instructions instead, with `-march=x86-64-v3`, what the virtual machine has, and with `./synth run`.

use std::path::{Path, PathBuf};
use std::process::Command;

const ROUNDS: usize = 11;
/// Blocks of 1,024 samples in each round.
const BLOCKS: u32 = 400;

/// An operation, the ways to do it, and samples out of each block.
const OPERATIONS: &[(&str, &[&str], f64)] = &[
    ("filter", &["written", "twin", "c", "turned"], 1024.0),
    ("interpolator", &["written", "twin", "c", "turned"], 4096.0),
    ("mixer", &["written", "twin", "c", "turned"], 1024.0),
    ("fft", &["float", "fixed", "c"], 1024.0),
];

fn root() -> PathBuf {
    PathBuf::from(env!("SYNTHESIS_ROOT"))
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn build(processor: &str) -> Result<PathBuf, String> {
    run(&mut Command::new(root().join("user/signal/build.sh")))?;
    let built = std::env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), PathBuf::from).join("user");
    let program = built.join(format!("bench-signal-{processor}"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-O3", "-Wall", "-static", "-fno-lto"]).arg(format!("-march={processor}")).arg("-I").arg(&built);
    run(gcc
        .arg("-o")
        .arg(&program)
        .arg(root().join("user/signal/benches/signal.c"))
        .arg(built.join("libsynthsignal.a"))
        .arg("-lm"))?;
    Ok(program)
}

/// What one run spent, and the checksum of its samples.
fn measure(program: &Path, icount: bool, name: &str, blocks: u32) -> Result<(f64, String), String> {
    let mut command = if icount { Command::new(root().join("synth")) } else { Command::new(program) };
    if icount {
        command.args(["run", "--icount"]).arg(program);
    }
    let said = run(command.arg(name).arg(blocks.to_string()))?;
    let (spent, sum) = said.trim().split_once(' ').ok_or_else(|| format!("{name}: said {said}"))?;
    Ok((spent.parse().map_err(|error| format!("{name}: {error}"))?, sum.into()))
}

fn bench(icount: bool) -> Result<(), String> {
    let program = build(if icount { "x86-64-v3" } else { "native" })?;
    let (rounds, blocks) = if icount { (1, 20) } else { (ROUNDS, BLOCKS) };
    println!("{:24} {}", "", if icount { "guest instructions a sample" } else { "ns a sample" });
    for (operation, ways, samples) in OPERATIONS {
        let mut spent = vec![Vec::new(); ways.len()];
        let mut sums = Vec::new();
        for _ in 0..rounds {
            for (way, spent) in ways.iter().zip(&mut spent) {
                let (nanos, sum) = measure(&program, icount, &format!("{operation}-{way}"), blocks)?;
                spent.push(nanos / f64::from(blocks) / samples);
                sums.push(sum);
            }
        }
        if *operation != "fft" && sums.iter().any(|sum| *sum != sums[0]) {
            return Err(format!("{operation}: the ways do not give the same samples"));
        }
        for samples in &mut spent {
            samples.sort_by(f64::total_cmp);
        }
        let middle = |way: usize| spent[way][spent[way].len() / 2];
        let best_c = (0..ways.len()).filter(|way| ["c", "turned"].contains(&ways[*way])).map(middle).reduce(f64::min);
        for (way, name) in ways.iter().enumerate() {
            let ratio = best_c.map_or(String::new(), |best| format!("{:8.2} x the best C", middle(way) / best));
            println!("{:24} {:8.3} {ratio}", format!("{operation}-{name}"), middle(way));
        }
    }
    Ok(())
}

fn main() {
    let icount = std::env::args().any(|argument| argument == "--icount");
    if let Err(error) = bench(icount) {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}
