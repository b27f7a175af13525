//! The table: what was measured, beside the paper and the bar, with machine and commit.

use super::BenchArgs;
use super::linux::{self, Guest, hex};
use super::suite::{Bar, Program, Run};
use super::ticks::{Outcome, per_iteration};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;
use std::process::Command;

/// One program on one system.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measured {
    /// Guest instructions per iteration.
    pub instructions: Option<f64>,
    /// Why there is no figure.
    pub missing: Option<String>,
    /// The start of the SHA-256 of what the long run wrote on stdout.
    pub output: String,
}

impl Measured {
    /// From the outcomes of the short and the long run.
    pub fn from_runs(runs: &[Run; 2], outcomes: &[Outcome]) -> Self {
        let output = hex(&Sha256::digest(outcomes[1].stdout()))[..8].to_string();
        let ticks = outcomes[0].ticks().and_then(|short| Ok([short, outcomes[1].ticks()?]));
        let instructions = ticks.map(|ticks| per_iteration([runs[0].iterations, runs[1].iterations], ticks));
        Self { missing: instructions.clone().err(), instructions: instructions.ok(), output }
    }

    fn figure(&self) -> String {
        self.instructions.map_or("n/a".into(), count)
    }
}

/// One program on all systems.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub number: usize,
    pub program: &'static str,
    pub linux: Measured,
    pub synthesis: Measured,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generic: Option<Measured>,
    /// Linux over Synthesis, of instructions.
    pub ratio: Option<f64>,
    pub paper_ratio: Option<f64>,
    pub bar: String,
    /// Absent when nothing is asked or nothing could be measured.
    pub bar_reached: Option<bool>,
    /// Absent when a side did not run.
    pub same_output: Option<bool>,
}

impl Row {
    pub fn new(program: &Program, linux: Measured, synthesis: Measured, generic: Option<Measured>) -> Self {
        let ratio = linux.instructions.zip(synthesis.instructions).map(|(theirs, ours)| theirs / ours);
        Self {
            number: program.number,
            program: program.title,
            ratio,
            paper_ratio: program.paper_ratio,
            bar: bar_text(program.bar),
            bar_reached: ratio.and_then(|ratio| program.bar.reached(ratio)),
            same_output: ratio.map(|_| linux.output == synthesis.output),
            linux,
            synthesis,
            generic,
        }
    }

    fn sides(&self) -> impl Iterator<Item = (&'static str, &Measured)> {
        [("Linux", &self.linux), ("Synthesis", &self.synthesis)]
            .into_iter()
            .chain(self.generic.as_ref().map(|generic| ("Synthesis --generic", generic)))
    }

    fn cells(&self) -> Vec<String> {
        let ratio = |ratio: Option<f64>| ratio.map_or("-".into(), |ratio| format!("{ratio:.2}"));
        let reached = match (self.bar_reached, self.same_output) {
            (_, Some(false)) => "WRONG OUTPUT",
            (Some(true), _) => "yes",
            (Some(false), _) => "no",
            (None, _) => "-",
        };
        let mut cells = vec![self.number.to_string(), self.program.to_string()];
        cells.extend(self.sides().map(|(_, side)| side.figure()));
        cells.extend([ratio(self.ratio), ratio(self.paper_ratio), self.bar.clone(), reached.to_string()]);
        cells
    }
}

/// Everything `synth bench` prints.
#[derive(Debug, Serialize)]
pub struct Report {
    pub suite: &'static str,
    pub unit: &'static str,
    pub quick: bool,
    pub linkage: &'static str,
    pub linux: String,
    pub linux_command_line: &'static str,
    pub qemu: String,
    pub qemu_settings: String,
    pub compiler: String,
    pub machine: String,
    pub commit: String,
    /// One hash over the outputs of all programs on Linux, and on Synthesis.
    pub outputs: [String; 2],
    pub rows: Vec<Row>,
}

impl Report {
    pub fn new(args: &BenchArgs, root: &Path, guest: &Guest, rows: Vec<Row>) -> Self {
        Self {
            suite: args.suite.name(),
            unit: "guest instructions per iteration",
            quick: args.quick,
            linkage: if args.dynamic { "dynamic" } else { "static" },
            linux: guest.kernel_version().into(),
            linux_command_line: linux::COMMAND_LINE,
            qemu: guest.qemu_version.clone(),
            qemu_settings: linux::MACHINE.join(" "),
            compiler: first_line("gcc", &["--version"]).unwrap_or("gcc".into()),
            machine: machine(),
            commit: commit(root),
            outputs: [outputs(rows.iter().map(|row| &row.linux)), outputs(rows.iter().map(|row| &row.synthesis))],
            rows,
        }
    }

    /// Whether every side of every row has a figure.
    pub fn complete(&self) -> bool {
        self.rows.iter().all(|row| row.sides().all(|(_, side)| side.instructions.is_some()))
    }

    pub fn same_outputs(&self) -> bool {
        self.rows.iter().all(|row| row.same_output != Some(false))
    }

    pub fn bars_reached(&self) -> bool {
        self.rows.iter().all(|row| row.bar_reached != Some(false))
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is plain data")
    }

    pub fn to_markdown(&self) -> String {
        let mut table = vec![self.header()];
        table.extend(self.rows.iter().map(Row::cells));
        let facts: String = self.facts().iter().map(|fact| format!("- {fact}\n")).collect();
        format!("{}\n{facts}", markdown(&table))
    }

    pub fn to_text(&self) -> String {
        let mut table = vec![self.header()];
        table.extend(self.rows.iter().map(Row::cells));
        let facts: String = self.facts().iter().map(|fact| format!("{fact}\n")).collect();
        format!("{}\n{facts}", aligned(&table))
    }

    fn header(&self) -> Vec<String> {
        let mut header = vec!["#", "program", "Linux", "Synthesis"];
        if self.rows.iter().any(|row| row.generic.is_some()) {
            header.push("generic");
        }
        header.extend(["ratio", "paper", "bar", "reached"]);
        header.into_iter().map(String::from).collect()
    }

    fn facts(&self) -> Vec<String> {
        let mut facts = vec![format!("{}; ratio = Linux / Synthesis; {} programs", self.unit, self.linkage)];
        if self.quick {
            facts.push("a quick run: the figures mean little".into());
        }
        facts.push(format!("Linux {}, {}", self.linux, self.qemu));
        facts.push(format!("settings: {}", self.qemu_settings));
        facts.push(format!("compiler: {}, -O", self.compiler));
        facts.push(format!("machine: {}; commit: {}", self.machine, self.commit));
        facts.push(format!("outputs: Linux {}, Synthesis {}", self.outputs[0], self.outputs[1]));
        let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
        for (system, row, side) in
            self.rows.iter().flat_map(|row| row.sides().map(move |(name, side)| (name, row, side)))
        {
            let Some(reason) = &side.missing else { continue };
            let text = format!("n/a on {system}: {reason}");
            match reasons.iter_mut().find(|(known, _)| *known == text) {
                Some((_, numbers)) => numbers.push(row.number.to_string()),
                None => reasons.push((text, vec![row.number.to_string()])),
            }
        }
        facts.extend(reasons.into_iter().map(|(text, numbers)| format!("{text} (programs {})", numbers.join(", "))));
        facts
    }
}

/// The hash over several outputs; "none" when one of them is missing.
fn outputs<'a>(sides: impl Iterator<Item = &'a Measured>) -> String {
    let mut hash = Sha256::new();
    for side in sides {
        if side.missing.is_some() {
            return "none".into();
        }
        hash.update(side.output.as_bytes());
    }
    hex(&hash.finalize())[..8].to_string()
}

fn bar_text(bar: Bar) -> String {
    match bar {
        Bar::Open => "-".into(),
        Bar::AtLeast(least) => format!(">= {least}"),
        Bar::Between(least, most) => format!("{least} to {most}"),
    }
}

/// Thousands separated by commas; one digit after the point below 100.
fn count(value: f64) -> String {
    if value.abs() < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A table for documents; the first row is its head.
pub fn markdown(table: &[Vec<String>]) -> String {
    let escaped = |cells: &[String]| cells.iter().map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>();
    let line = |cells: &[String]| format!("| {} |\n", escaped(cells).join(" | "));
    let rule = vec!["---".to_string(); table[0].len()];
    [line(&table[0]), line(&rule)].into_iter().chain(table[1..].iter().map(|row| line(row))).collect()
}

/// Columns padded to their widest cell, text to the left, everything after the name to the right.
pub fn aligned(table: &[Vec<String>]) -> String {
    let width = |column: usize| table.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..table[0].len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let pad = |(i, cell): (usize, &String)| {
            if i == 1 { format!("{cell:<w$}", w = widths[i]) } else { format!("{cell:>w$}", w = widths[i]) }
        };
        format!("{}\n", row.iter().enumerate().map(pad).collect::<Vec<_>>().join("  "))
    };
    table.iter().map(line).collect()
}

pub fn first_line(command: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(command).args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_string)
}

/// The host's processor and kernel. Instruction counts do not depend on them; who repeats them may want to know.
pub fn machine() -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let models = || cpus.lines().filter_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let host = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{} x {}, Linux {}", models().count(), models().next().unwrap_or("unknown"), host.trim())
}

pub fn commit(root: &Path) -> String {
    let folder = root.display().to_string();
    first_line("git", &["-C", &folder, "describe", "--always", "--dirty"]).unwrap_or("unknown".into())
}

#[cfg(test)]
mod tests {
    use super::super::suite;
    use super::*;

    fn measured(instructions: f64, output: &str) -> Measured {
        Measured { instructions: Some(instructions), missing: None, output: output.into() }
    }

    fn pipe() -> Program {
        suite::select(super::super::Suite::Paper, &["2".into()]).unwrap().remove(0)
    }

    #[test]
    fn a_row_compares_with_the_bar_and_the_paper() {
        let row = Row::new(&pipe(), measured(2055.0, "a"), measured(100.0, "a"), None);
        assert_eq!(row.cells(), ["2", "r/w pipe, 1 byte", "2,055", "100", "20.55", "56.00", ">= 15", "yes"]);
    }

    #[test]
    fn another_output_is_never_a_success() {
        let row = Row::new(&pipe(), measured(2055.0, "a"), measured(100.0, "b"), None);
        assert_eq!(row.cells().last().unwrap(), "WRONG OUTPUT");
    }

    #[test]
    fn a_side_that_did_not_run_is_not_available() {
        let missing = Measured { instructions: None, missing: Some("no kernel".into()), output: "a".into() };
        let row = Row::new(&pipe(), measured(2055.0, "a"), missing, None);
        assert_eq!(row.cells()[3..5], ["n/a", "-"]);
        assert_eq!(row.bar_reached, None);
    }

    #[test]
    fn counts_have_commas() {
        assert_eq!(count(6_489_278.4), "6,489,278");
        assert_eq!(count(25.24), "25.2");
        assert_eq!(count(-1234.0), "-1,234");
        assert_eq!(count(314.0), "314");
    }
}
