//! `synth bench redundancy`: valued redundancy beside caches and replication protocols, simulated (S-136, S-137). What it says:
//! `docs/valued-redundancy.md`.

mod plots;
mod report;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use redundancy_sim::Hardware;
use redundancy_sim::forms::{self, Form};
use redundancy_sim::matrix::{self, Cell, Plan};
use redundancy_sim::policy::Kind;
use redundancy_sim::scale::{self, Point};
use redundancy_sim::small::{self, Case};

use super::error::at;
use super::report::aligned;
use super::{BenchArgs, BenchError, project_root};

/// Share of the cells in which valued redundancy has to be on the Pareto front.
const BAR: f64 = 0.8;
const THREADS: usize = 2;

/// The parts that --only chooses from.
const FORMS: &str = "forms";
const SMALL: &str = "small";
const CELLS: &str = "cells";
const SCALE: &str = "scale";
const PARTS: [&str; 4] = [FORMS, SMALL, CELLS, SCALE];

/// Cells on the machines of one time.
struct Era {
    hardware: Hardware,
    cells: Vec<Cell>,
}

/// All that was asked for; empty where a part was not.
#[derive(Default)]
struct Results {
    forms: Vec<Form>,
    small: Vec<Case>,
    eras: Vec<Era>,
    scale: Vec<Point>,
    is_quick: bool,
}

/// Simulates and prints. The exit status is 1 when a closed form is missed or, with `check`, when valued redundancy is on the
/// front in too few cells.
pub fn bench(args: &BenchArgs) -> Result<ExitCode, BenchError> {
    refuse(args)?;
    let results = simulate(args)?;
    let root = project_root();
    match () {
        () if args.json => println!("{:#}", report::json(&results, &root)),
        () if args.markdown => print!("{}", report::text(&results, &root, super::tables::markdown)),
        () => print!("{}", report::text(&results, &root, aligned)),
    }
    if let Some(folder) = &args.plots {
        write_plots(&results, folder)?;
    }
    let holds = results.forms.iter().all(|form| (form.found - form.expected).abs() < form.tolerance);
    let is_on_front = results.eras.iter().all(|era| front_share(&era.cells) >= BAR);
    Ok(if holds && (is_on_front || !args.check) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Nothing runs on a kernel here, so nothing can be said about which.
fn refuse(args: &BenchArgs) -> Result<(), BenchError> {
    let given = [
        ("hosted", args.hosted),
        ("generic", args.generic),
        ("dynamic", args.dynamic),
        ("fresh", args.fresh),
        ("linux", args.linux.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(BenchError::NotInSuite { option, suite: args.suite.name() }),
        None => Ok(()),
    }
}

fn simulate(args: &BenchArgs) -> Result<Results, BenchError> {
    let (parts, eras) = select(&args.only)?;
    let has = |part: &str| parts.contains(&part);
    let mut results = Results { is_quick: args.quick, ..Results::default() };
    if has(FORMS) {
        results.forms = forms::simulated();
    }
    if has(SMALL) {
        let (seeds, accesses) = if args.quick { (2, 20) } else { (10, small::SIZE.accesses) };
        results.small = small::cases(Hardware::TODAY, seeds, accesses, THREADS);
    }
    if has(CELLS) {
        for hardware in eras {
            let plan = if args.quick { Plan::quick(hardware) } else { Plan::full(hardware) };
            let cells = matrix::matrix(&plan, |name| eprintln!("synth: {}, {name}", hardware.name));
            results.eras.push(Era { hardware, cells });
        }
    }
    if has(SCALE) {
        results.scale = sizes(args)?;
    }
    Ok(results)
}

/// Names the one point that a process measures for another.
const ONE_POINT: &str = "SYNTH_BENCH_POINT";
const GROWING: [Kind; 2] = [Kind::Lru, Kind::Valued];

/// Time and memory against size. Each point is measured by a process of its own: memory that an earlier one had freed would not
/// be counted.
fn sizes(args: &BenchArgs) -> Result<Vec<Point>, BenchError> {
    let sizes = if args.quick { &[(5, 2_000), (10, 4_000)] } else { &scale::SIZES[..] };
    let all = GROWING.into_iter().flat_map(|kind| sizes.iter().map(move |(nodes, objects)| (kind, *nodes, *objects)));
    match std::env::var(ONE_POINT).ok().and_then(|number| number.parse().ok()) {
        Some(number) => {
            Ok(all.skip(number).take(1).map(|(kind, nodes, objects)| scale::measure(kind, nodes, objects)).collect())
        }
        None if args.quick => Ok(all.map(|(kind, nodes, objects)| scale::measure(kind, nodes, objects)).collect()),
        None => all.enumerate().map(|(number, (kind, ..))| measured_apart(number, kind)).collect(),
    }
}

fn measured_apart(number: usize, kind: Kind) -> Result<Point, BenchError> {
    let own = std::env::current_exe().map_err(at("the tool"))?;
    let mut command = std::process::Command::new(&own);
    command.args(["bench", "redundancy", "--only", SCALE, "--json"]).env(ONE_POINT, number.to_string());
    let output = command.stderr(std::process::Stdio::inherit()).output().map_err(at(&own))?;
    let wrong = || BenchError::NotMeasured { reason: format!("the process that measures point {number} told nothing") };
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).map_err(|_| wrong())?;
    let point = &told["scale"][0];
    let (count, figure) = (|key: &str| point[key].as_u64(), |key: &str| point[key].as_f64());
    let found = || {
        Some(Point {
            kind,
            nodes: count("nodes")? as usize,
            objects: count("objects")? as usize,
            accesses: count("accesses")?,
            seconds: figure("seconds")?,
            bytes: count("bytes")?,
            access_seconds: figure("access_seconds")?,
            availability: figure("availability")?,
        })
    };
    let point = found().ok_or_else(wrong)?;
    eprintln!("synth: {}, {} nodes, {} objects", kind.name(), point.nodes, point.objects);
    Ok(point)
}

/// Parts and times by name; without any, all.
fn select(only: &[String]) -> Result<(Vec<&'static str>, Vec<Hardware>), BenchError> {
    let eras = [Hardware::TODAY, Hardware::IN_1989];
    let known = |name: &String| PARTS.contains(&name.as_str()) || eras.iter().any(|era| era.name == name);
    if let Some(asked) = only.iter().find(|name| !known(name)) {
        let known = PARTS.into_iter().chain(eras.map(|era| era.name)).collect::<Vec<_>>().join(", ");
        return Err(BenchError::UnknownProgram { asked: asked.clone(), known });
    }
    let named = |name: &str| only.iter().any(|asked| asked == name);
    let mut parts: Vec<&str> = PARTS.into_iter().filter(|part| named(part)).collect();
    let mut times: Vec<Hardware> = eras.into_iter().filter(|era| named(era.name)).collect();
    if parts.is_empty() {
        parts = if times.is_empty() { PARTS.to_vec() } else { vec![CELLS] };
    }
    if times.is_empty() {
        times = eras.to_vec();
    }
    Ok((parts, times))
}

/// In which share of the cells nobody is both faster and more available than valued redundancy.
fn front_share(cells: &[Cell]) -> f64 {
    let on = cells.iter().filter(|cell| cell.entry(Kind::Valued).is_some_and(|entry| entry.is_on_front)).count();
    on as f64 / cells.len().max(1) as f64
}

fn write_plots(results: &Results, folder: &Path) -> Result<(), BenchError> {
    fs::create_dir_all(folder).map_err(at(folder))?;
    let mut plots: Vec<(String, String)> = Vec::new();
    for era in &results.eras {
        plots.push((format!("fronts-{}.svg", era.hardware.name), plots::fronts(era)));
    }
    if !results.scale.is_empty() {
        plots.push(("scale.svg".into(), plots::scale(&results.scale)));
    }
    for (name, svg) in plots {
        let path = folder.join(name);
        fs::write(&path, svg).map_err(at(&path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use redundancy_sim::{policy, workload};

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        bench: BenchArgs,
    }

    fn arguments(words: &[&str]) -> BenchArgs {
        let line = ["bench", "redundancy"].iter().chain(words);
        <Line as clap::Parser>::parse_from(line).bench
    }

    /// The whole bench, tiny: figures for each policy in each cell, in words, as JSON and as pictures.
    #[test]
    fn a_quick_run_has_figures_for_all() {
        let results = simulate(&arguments(&["--quick", "--only", "small,cells,scale,today"])).unwrap();
        let cells = &results.eras[0].cells;
        assert_eq!(cells.len(), workload::Kind::ALL.len() * matrix::BUDGETS.len() * matrix::FAILURES.len());
        for entry in cells.iter().flat_map(|cell| &cell.entries) {
            let (seconds, availability) = (entry.seconds.value, entry.availability.value);
            assert!(seconds > 0.0 && seconds < 1.0 && availability > 0.3 && availability <= 1.0, "{entry:?}");
        }
        assert!(results.small.iter().flat_map(|case| &case.ratios).all(|(_, ratio)| ratio.value > 0.999));
        let root = project_root();
        let text = report::text(&results, &root, aligned);
        assert!(policy::Kind::ALL.iter().all(|kind| text.contains(kind.name())), "{text}");
        let json = report::json(&results, &root);
        assert_eq!(json["eras"][0]["cells"].as_array().map(Vec::len), Some(cells.len()));
        for svg in [plots::fronts(&results.eras[0]), plots::scale(&results.scale)] {
            assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && !svg.contains("NaN"), "{svg}");
        }
    }

    #[test]
    fn what_is_about_kernels_is_refused() {
        for words in [&["--hosted"][..], &["--generic"], &["--linux", "x"]] {
            let refused = bench(&arguments(words)).unwrap_err().to_string();
            assert!(refused.contains("means nothing to the suite redundancy"), "{refused}");
        }
    }

    #[test]
    fn parts_and_times_are_chosen_by_name() {
        let names = |only: &[&str]| {
            let (parts, eras) = select(&only.iter().map(|name| name.to_string()).collect::<Vec<_>>()).unwrap();
            (parts, eras.iter().map(|era| era.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["1989"]), (vec!["cells"], vec!["1989"]));
        assert_eq!(names(&["forms", "scale"]), (vec!["forms", "scale"], vec!["today", "1989"]));
        assert!(select(&["tomorrow".into()]).is_err());
    }
}
