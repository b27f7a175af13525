//! What programs pay for opens (`synth bench synthesis`): where the first open of each kind of object spends its time, and what later
//! ones cost.
//!
//! `bench/synthesis/opens.c` runs on two images of each machine. The usual one says what is paid. The measuring one (`build.sh
//! --stages`) counts in the kernel how long each stage lasts; what the counting takes is counted too, and taken away. The two must
//! agree on the whole.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::BenchError;
use super::stages::{Figures, cell, figures_of, paper};

/// What a table shows of an object, from left to right.
const COLUMNS: [&str; 13] = [
    "lookup",
    "creation",
    "publication",
    "rest",
    "entry",
    "sum",
    "whole",
    "first run",
    "later run",
    "second",
    "known",
    "character",
    "paper",
];
const BYTES: [&str; 3] = ["routines", "bytes, pc", "bytes, hosted"];

/// Open and close of a kind that is known, where opening leaves no trace: hosted, nanoseconds.
const KNOWN_NS_MAX: f64 = 100.0;
const KNOWN: [&str; 5] = ["null", "zero", "full", "random", "tty"];
/// What making may cost at most, in guest instructions. Of a pipe most is the optimizer's plan, made for the first.
const CREATION_MAX: [(&str, f64); 4] =
    [("text window", 600_000.0), ("another window", 100_000.0), ("pasted-to terminal", 500_000.0), ("pipe", 160_000.0)];
/// How far the two images may differ: a twentieth, or so many instructions.
const SHARE: f64 = 20.0;
const INSTRUCTIONS: f64 = 200.0;

/// Where `build.sh --stages` leaves the images.
const MEASURING: [&str; 2] = [
    "target/pc-stages/x86_64-unknown-linux-gnu/release/synthesis-pc",
    "target/hosted-stages/x86_64-unknown-linux-gnu/release/synthesis-hosted",
];

/// A machine's figures.
pub struct Opens {
    names: Vec<String>,
    usual: Figures,
    measuring: Figures,
}

/// Builds the measuring images.
pub fn build(root: &Path) -> Result<(), BenchError> {
    for script in ["bin/pc/build.sh", "bin/hosted/build.sh"] {
        let source = root.join(script);
        let built = Command::new("sh").arg(&source).arg("--stages").output();
        let output = built.map_err(|_| BenchError::MissingCommand { command: "sh", package: "dash" })?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
            return Err(BenchError::Compile { source, message });
        }
    }
    Ok(())
}

/// Runs the program on the virtual machine, where nothing varies.
pub fn on_pc(root: &Path, program: &Path) -> Result<Opens, BenchError> {
    let arguments = ["1000", "windows"];
    let image = root.join(MEASURING[0]);
    let (names, usual) = figures_of(program, &["--icount"], &arguments, 1.0)?;
    let (_, measuring) = figures_of(program, &["--icount", "--kernel", &image.to_string_lossy()], &arguments, 1.0)?;
    Ok(Opens { names, usual, measuring })
}

/// Runs it on the hosted machine, so many times on each image in turns; `scale` ticks are a nanosecond.
pub fn hosted(root: &Path, program: &Path, loops: &str, times: usize, scale: f64) -> Result<Opens, BenchError> {
    let outside = root.join("target/bench/outside");
    std::fs::create_dir_all(&outside).map_err(super::error::at(&outside))?;
    std::fs::write(outside.join("file"), [b'x'; 1 << 16]).map_err(super::error::at(&outside))?;
    let with = format!("{}:/outside", outside.display());
    let arguments = [loops, "windows", "host=/outside/file"];
    let image = root.join(MEASURING[1]);
    let (mut names, mut usual, mut measuring) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..times.max(1) {
        let run = figures_of(program, &["--hosted", "--with", &with], &arguments, scale)?;
        names = run.0;
        usual.push(run.1);
        let options = ["--hosted", "--with", &with, "--kernel", &image.to_string_lossy()];
        measuring.push(figures_of(program, &options, &arguments, scale)?.1);
    }
    Ok(Opens { names, usual: middle(usual), measuring: middle(measuring) })
}

/// Of several runs the one whose first open is the median, for each object, as its parts belong together; of all else the median.
fn middle(runs: Vec<Figures>) -> Figures {
    let mut figures = Figures::new();
    for name in runs.iter().flat_map(BTreeMap::keys) {
        let mut rows: Vec<_> = runs.iter().filter_map(|run| run.get(name)).collect();
        let by = |key: &str, rows: &mut Vec<&BTreeMap<String, f64>>| {
            rows.sort_by(|a, b| a.get(key).unwrap_or(&0.0).total_cmp(b.get(key).unwrap_or(&0.0)));
        };
        by("first", &mut rows);
        let mut row = rows[rows.len() / 2].clone();
        for (key, value) in row.iter_mut().filter(|(key, _)| *key != "first" && !key.starts_with("stage.")) {
            by(key, &mut rows);
            *value = rows[rows.len() / 2].get(key).copied().unwrap_or(*value);
        }
        figures.insert(name.clone(), row);
    }
    figures
}

impl Opens {
    /// A part of the first open, as the kernel counted it.
    fn stage(&self, name: &str, stage: &str) -> Option<f64> {
        self.measuring.get(name)?.get(&format!("stage.{stage}")).copied()
    }

    /// One figure of the tables.
    fn figure(&self, name: &str, column: &str) -> Option<f64> {
        let stage = |stage| self.stage(name, stage);
        let usual = |key: &str| self.usual.get(name)?.get(key).copied();
        let parts = ["lookup", "creation", "publication", "rest"];
        match column {
            "creation" => Some(stage("allocate")? + stage("factor")? + stage("optimize")?),
            "publication" => stage("publish"),
            "lookup" | "rest" | "allocate" | "factor" | "optimize" => stage(column),
            // From the program to Rust and back, which Rust cannot see.
            "entry" => {
                let seen: Option<f64> = parts.iter().map(|part| self.figure(name, part)).sum();
                Some(self.measuring.get(name)?.get("first")? - stage("counting")? - seen?)
            }
            "sum" => parts.iter().chain(&["entry"]).map(|part| self.figure(name, part)).sum(),
            "whole" => usual("first"),
            "first run" => usual("first_run"),
            "later run" => usual("later_run"),
            key => usual(key),
        }
    }

    fn row(&self, name: &str) -> BTreeMap<String, f64> {
        let all = COLUMNS.iter().chain(&["allocate", "factor", "optimize"]);
        all.filter_map(|column| Some((column.to_string(), self.figure(name, column)?))).collect()
    }

    fn cells(&self, names: &[String]) -> Vec<Vec<String>> {
        let header = [""].into_iter().chain(COLUMNS).map(String::from).collect();
        let row = |name: &String| {
            let figures = Figures::from([(name.clone(), self.row(name))]);
            let value = |column: &&str| match *column {
                "paper" => paper(name).into(),
                column => cell(&figures, name, column),
            };
            [name.clone()].into_iter().chain(COLUMNS.iter().map(value)).collect()
        };
        [header].into_iter().chain(names.iter().map(row)).collect()
    }

    /// Where the images do not agree, in words.
    fn disagreements(&self) -> Vec<String> {
        let check = |name: &String| {
            let (sum, whole) = (self.figure(name, "sum")?, self.figure(name, "whole")?);
            let is_same = (sum - whole).abs() <= (whole / SHARE).max(INSTRUCTIONS);
            let is_part = self.figure(name, "entry")? >= 0.0;
            (!is_same || !is_part).then(|| format!("{name}: parts {sum:.0}, whole {whole:.0}"))
        };
        let missing = self.usual.keys().filter(|name| !self.measuring.contains_key(*name));
        let missing = missing.map(|name| format!("{name}: not counted"));
        self.names.iter().filter_map(check).chain(missing).collect()
    }
}

/// Both machines'.
pub struct Both {
    pub pc: Opens,
    pub hosted: Opens,
}

impl Both {
    /// What is wrong, in words: parts that are not the whole (where that repeats), opens of known kinds that take too long, making
    /// that costs too much.
    pub fn faults(&self) -> Vec<String> {
        let slow = |name: &&str| {
            let nanos = self.hosted.figure(name, "known")?;
            (nanos > KNOWN_NS_MAX).then(|| format!("{name}: open and close of a known kind take {nanos:.0} ns"))
        };
        let dear = |(name, most): &(&str, f64)| {
            let made = self.pc.figure(name, "creation")?;
            (made > *most).then(|| format!("{name}: creation takes {made:.0} instructions, not {most:.0}"))
        };
        let faults = self.pc.disagreements().into_iter().chain(KNOWN.iter().filter_map(slow));
        faults.chain(CREATION_MAX.iter().filter_map(dear)).collect()
    }

    /// Title and cells of each table.
    pub fn tables(&self) -> Vec<(String, Vec<Vec<String>>)> {
        // The hosted machine has objects that the other has not.
        let names = &self.hosted.names;
        vec![
            ("Opens: what the first of a kind makes (bytes of code)".into(), self.bytes(names)),
            ("Opens: a program's time, stage by stage (guest instructions, pc)".into(), self.pc.cells(&self.pc.names)),
            ("Opens: a program's time, stage by stage (ns, hosted)".into(), self.hosted.cells(names)),
        ]
    }

    fn bytes(&self, names: &[String]) -> Vec<Vec<String>> {
        let header = [""].into_iter().chain(BYTES).map(String::from).collect();
        let row = |name: &String| {
            let value = |opens: &Opens, key| opens.stage(name, key).map_or("-".into(), |value| format!("{value:.0}"));
            let (routines, bytes) = (value(&self.hosted, "routines"), value(&self.pc, "bytes"));
            vec![name.clone(), routines, bytes, value(&self.hosted, "bytes")]
        };
        [header].into_iter().chain(names.iter().map(row)).collect()
    }

    pub fn to_json(&self) -> Value {
        let row = |name: &String| {
            let bytes = |opens: &Opens| opens.stage(name, "bytes");
            json!({
                "name": name, "routines": self.hosted.stage(name, "routines"),
                "bytes": { "pc": bytes(&self.pc), "hosted": bytes(&self.hosted) },
                "instructions": self.pc.row(name), "ns": self.hosted.row(name), "paper": paper(name),
            })
        };
        let rows: Vec<Value> = self.hosted.names.iter().map(row).collect();
        json!({ "title": "Opens", "rows": rows, "faults": self.faults() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(rows: &[(&str, f64)]) -> Figures {
        let row = rows.iter().map(|(key, value)| (key.to_string(), *value)).collect();
        Figures::from([("pipe".to_string(), row)])
    }

    fn opens(whole: f64) -> Opens {
        let stages = [("lookup", 10.0), ("allocate", 20.0), ("factor", 30.0), ("optimize", 40.0), ("publish", 50.0)];
        let mut rows: Vec<(String, f64)> =
            stages.iter().map(|(stage, ticks)| (format!("stage.{stage}"), *ticks)).collect();
        rows.extend([("stage.rest".into(), 60.0), ("stage.counting".into(), 1000.0), ("first".into(), 1310.0)]);
        let rows: Vec<_> = rows.iter().map(|(key, value)| (key.as_str(), *value)).collect();
        Opens { names: vec!["pipe".into()], usual: figures(&[("first", whole)]), measuring: figures(&rows) }
    }

    #[test]
    fn parts_are_the_whole_without_the_counting() {
        let opens = opens(310.0);
        let figure = |column| opens.figure("pipe", column);
        assert_eq!([figure("creation"), figure("entry"), figure("sum")], [Some(90.0), Some(100.0), Some(310.0)]);
        assert!(opens.disagreements().is_empty());
    }

    #[test]
    fn images_that_disagree_are_named() {
        assert_eq!(opens(911.0).disagreements(), ["pipe: parts 310, whole 911"]);
        let uncounted = Opens { measuring: Figures::new(), ..opens(310.0) };
        assert_eq!(uncounted.disagreements(), ["pipe: not counted"]);
    }

    #[test]
    fn the_parts_of_a_median_belong_to_one_run() {
        let run = |first, rest, known| figures(&[("first", first), ("stage.rest", rest), ("known", known)]);
        let middle = middle(vec![run(30.0, 1.0, 7.0), run(10.0, 2.0, 9.0), run(20.0, 3.0, 8.0)]);
        let expected = run(20.0, 3.0, 8.0);
        assert_eq!(middle, expected);
    }
}
