//! `synth bench sound`: table 3.4, what an interrupt of the sound device costs with each maker's handler.
//!
//! The program `bench/sound/sound.c` asks /dev/sound to raise the interrupt thousands of times. On the pc, under `-icount`,
//! the time is the number of guest instructions, and the same in every run. On the hosted machine it is nanoseconds: there
//! the makers take turns, and the fastest round counts, once with an interrupt's frame and IRET, once as a procedure.

use std::path::Path;
use std::process::{Command, ExitCode};

use serde::Serialize;

use super::compile::{self, Linkage};
use super::error::at;
use super::report::{self, aligned};
use super::{BenchArgs, BenchError, project_root};

const TIMEOUT_SECONDS: &str = "120";

/// The paper's microseconds: synthesized, assembler, compiled (C. Massalin's thesis, table 3.4; its row of two channels).
const PAPER: [(&str, [f64; 3]); 2] = [("cd", [3.7, 6.0, 9.7]), ("cd+da", [5.1, 7.7, 11.3])];
/// The paper's null interrupt, which is in all of them.
const PAPER_NULL: f64 = 2.0;

/// What one interrupt costs with handlers for one set of channels.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Row {
    channels: String,
    synthesized: f64,
    assembler: f64,
    compiled: f64,
    /// The others over the synthesized handler, without the synthesized null interrupt, which no handler can save.
    #[serde(skip_serializing_if = "Option::is_none")]
    gain: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paper_gain: Option<[f64; 2]>,
}

#[derive(Clone, Debug, Serialize)]
struct Table {
    title: &'static str,
    unit: &'static str,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Report {
    suite: &'static str,
    machine: String,
    commit: String,
    tables: Vec<Table>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inserts: Option<Vec<InsertsRow>>,
}

/// The A/D converter's handler with one insert and as a buffered queue (S-43): guest instructions of an interrupt.
#[derive(Debug, Serialize)]
struct InsertsRow {
    channels: String,
    one: f64,
    eight: f64,
    /// Those that the kernel takes by itself.
    cheapest: f64,
}

/// Measures and prints; the exit status is 1 when, with `check`, a gain of the paper is missed in instructions.
pub fn bench(args: &BenchArgs) -> Result<ExitCode, BenchError> {
    let root = project_root();
    let folder = root.join("target/bench/static");
    std::fs::create_dir_all(&folder).map_err(at(&folder))?;
    let program = folder.join("sound");
    compile::compile(&root.join("bench/sound/sound.c"), &program, Linkage::Static)?;
    let rounds = if args.quick { "3" } else { "41" };
    let mut tables = Vec::new();
    if !args.hosted {
        tables.push(table("pc, an interrupt", "guest instructions", &program, &["--icount"], ["raise", "1", "10000"])?);
    }
    tables.push(table(
        "hosted, frame and IRET",
        "ns, fastest round",
        &program,
        &["--hosted"],
        ["raise", rounds, "20000"],
    )?);
    tables.push(table("hosted, a procedure", "ns, fastest round", &program, &["--hosted"], ["call", rounds, "20000"])?);
    let inserts = if args.hosted { None } else { Some(inserts(&program)?) };
    let report = Report { suite: "sound", machine: report::machine(), commit: report::commit(&root), tables, inserts };
    match () {
        () if args.json => println!("{}", serde_json::to_string_pretty(&report).expect("a report is plain data")),
        () if args.markdown => {
            report.tables.iter().for_each(|table| println!("{}", table.to_markdown()));
            print!("{}", super::tables::markdown(&inserts_cells(&report)));
        }
        () => {
            report.tables.iter().for_each(|table| println!("{}", table.to_text()));
            print!("{}", aligned(&inserts_cells(&report)));
        }
    }
    let reached = args.hosted || report.tables[0].rows.iter().all(Row::is_reached);
    Ok(if reached || !args.check { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn inserts(program: &Path) -> Result<Vec<InsertsRow>, BenchError> {
    let text = output(program, &["--icount"], &["inserts", "8000"])?;
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let channels = words.next()?.to_string();
        let mut figure = || Some(words.next()?.parse::<f64>().ok()? / 1000.0);
        Some(InsertsRow { channels, one: figure()?, eight: figure()?, cheapest: figure()? })
    };
    Ok(text.lines().filter_map(row).collect())
}

fn inserts_cells(report: &Report) -> Vec<Vec<String>> {
    let headings = ["A/D, guest instructions", "one insert", "eight", "taken"].map(String::from).to_vec();
    let rows = report.inserts.iter().flatten();
    let cells = rows.map(|row| {
        let figures = [row.one, row.eight, row.cheapest].map(|figure| format!("{figure:.2}"));
        [vec![row.channels.clone()], figures.to_vec()].concat()
    });
    [headings].into_iter().chain(cells).collect()
}

/// What the program prints.
fn output(program: &Path, machine: &[&str], words: &[&str]) -> Result<String, BenchError> {
    let tool = std::env::current_exe().map_err(at("synth"))?;
    let mut command = Command::new(tool);
    command.args(["run", "--timeout", TIMEOUT_SECONDS]).args(machine).arg(program).args(words);
    let output = command.output().map_err(at("synth run"))?;
    if !output.status.success() {
        return Err(BenchError::Guest { reason: String::from_utf8_lossy(&output.stderr).trim().to_string() });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn table(
    title: &'static str,
    unit: &'static str,
    program: &Path,
    machine: &[&str],
    words: [&str; 3],
) -> Result<Table, BenchError> {
    let text = output(program, machine, &words)?;
    let failure = || BenchError::Guest { reason: format!("unknown line in: {text}") };
    Ok(Table { title, unit, rows: rows(&text).ok_or_else(failure)? })
}

/// The rows of the program's lines: maker, channels, thousandths in the fastest round, in the median.
fn rows(text: &str) -> Option<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [maker, channels, best, _] = words[..] else { return None };
        let cost = best.parse::<f64>().ok()? / 1000.0;
        if maker == "synthesized" {
            let channels = channels.to_string();
            let none = f64::NAN;
            rows.push(Row {
                channels,
                synthesized: cost,
                assembler: none,
                compiled: none,
                gain: None,
                paper_gain: None,
            });
            continue;
        }
        let row = rows.iter_mut().find(|row| row.channels == channels)?;
        *if maker == "assembler" { &mut row.assembler } else { &mut row.compiled } = cost;
    }
    let null = rows.first()?.synthesized;
    for row in rows.iter_mut().skip(1) {
        let own = row.synthesized - null;
        row.gain = Some([(row.assembler - null) / own, (row.compiled - null) / own]);
        let paper = PAPER.iter().find(|(channels, _)| *channels == row.channels);
        row.paper_gain = paper.map(|(_, [own, assembler, compiled])| {
            [assembler, compiled].map(|other| (other - PAPER_NULL) / (own - PAPER_NULL))
        });
    }
    Some(rows)
}

impl Row {
    fn is_reached(&self) -> bool {
        match (self.gain, self.paper_gain) {
            (Some(gain), Some(paper)) => gain.iter().zip(paper).all(|(gain, paper)| *gain >= paper),
            _ => true,
        }
    }

    fn cells(&self) -> Vec<String> {
        let pair = |pair: Option<[f64; 2]>| pair.map_or("".into(), |[a, b]| format!("{a:.1} {b:.1}"));
        let cost = |cost: f64| format!("{cost:.1}");
        vec![
            self.channels.clone(),
            cost(self.synthesized),
            cost(self.assembler),
            cost(self.compiled),
            pair(self.gain),
            pair(self.paper_gain),
        ]
    }
}

const HEADINGS: [&str; 6] = ["channels", "synthesized", "assembler", "compiled", "gain", "paper"];

impl Table {
    fn cells(&self) -> Vec<Vec<String>> {
        let headings = HEADINGS.map(String::from).to_vec();
        std::iter::once(headings).chain(self.rows.iter().map(Row::cells)).collect()
    }

    fn to_text(&self) -> String {
        format!("{} ({})\n{}", self.title, self.unit, aligned(&self.cells()))
    }

    fn to_markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut rows = self.cells().into_iter();
        let heading = line(rows.next().unwrap_or_default());
        let rule = line(HEADINGS.map(|_| "---".to_string()).to_vec());
        format!("{} ({})\n\n{heading}{rule}{}", self.title, self.unit, rows.map(line).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_are_counted_without_the_null_interrupt() {
        let text = "synthesized none 2000 0\nsynthesized cd 3700 0\nassembler none 3000 0\nassembler cd 6000 0\n\
                    compiled none 4000 0\ncompiled cd 9700 0\n";
        let rows = rows(text).unwrap();
        assert_eq!(rows[1].gain, rows[1].paper_gain);
        assert!(rows.iter().all(Row::is_reached));
        assert!((rows[1].gain.unwrap()[1] - 4.53).abs() < 0.01);
    }

    #[test]
    fn lines_that_are_not_the_programs_are_refused() {
        assert_eq!(rows("raise: Resource busy"), None);
        assert_eq!(rows("assembler cd 1 1"), None);
    }
}
