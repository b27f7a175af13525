//! `synth bench tables`: the papers' tables of single operations, each row beside the paper's figure.

mod catalog;
mod run;

use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::report::{self, aligned};
use super::{BenchArgs, BenchError, project_root};
use catalog::{Row, TABLES, Table};
use run::{Bench, Measured};

/// A table with its figures.
struct Filled<'a> {
    table: &'a Table,
    measured: Vec<Measured>,
    /// Measured often enough for nanoseconds to mean something.
    is_timed: bool,
}

/// In nanoseconds a busy machine can turn round rows that are this near to each other.
const NOISE: f64 = 2.0;

/// Measures and prints; the exit status is 1 when a figure is missing or, with `check`, when an order of costs does not hold.
pub fn bench(args: &BenchArgs) -> Result<ExitCode, BenchError> {
    let root = project_root();
    let tables = select(&args.only)?;
    let bench = Bench::new(&root, &tables, args.quick)?;
    let fill = |table: &&'static Table| Filled { table, measured: bench.measure(table), is_timed: !args.quick };
    let results: Vec<Filled> = tables.iter().map(fill).collect();
    match () {
        () if args.json => println!("{:#}", to_json(&results, &root)),
        () if args.markdown => print!("{}", to_text(&results, &root, markdown)),
        () => print!("{}", to_text(&results, &root, aligned)),
    }
    let whole = results.iter().flat_map(|result| &result.measured).all(|measured| measured.missing.is_empty());
    let is_ordered = results.iter().all(|result| result.disorder().is_empty());
    Ok(if whole && (is_ordered || !args.check) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn select(only: &[String]) -> Result<Vec<&'static Table>, BenchError> {
    if let Some(asked) = only.iter().find(|name| !TABLES.iter().any(|table| table.number == name.as_str())) {
        let known: Vec<String> = TABLES.iter().map(|table| format!("{} ({})", table.number, table.title)).collect();
        return Err(BenchError::UnknownProgram { asked: asked.clone(), known: known.join(", ") });
    }
    Ok(TABLES.iter().filter(|table| only.is_empty() || only.iter().any(|name| name == table.number)).collect())
}

impl Filled<'_> {
    fn rows(&self) -> impl Iterator<Item = (&Row, &Measured)> {
        self.table.rows.iter().zip(&self.measured)
    }

    /// This row's figure over that of the row it is held against, both without the table's floor. `None` where what is left
    /// is too small to divide by.
    fn gain(&self, row: &Row, measured: &Measured, figure: fn(&Measured) -> Option<f64>) -> Option<f64> {
        let of = |operation: Option<&str>| figure(self.rows().find(|(other, _)| Some(other.operation) == operation)?.1);
        let floor = if self.table.floor.is_some() { of(self.table.floor)? } else { 0.0 };
        let (this, other) = (figure(measured)? - floor, of(row.against)? - floor);
        (other > floor * 0.1).then_some(this / other)
    }

    /// What the table's order does not say, in sentences.
    fn disorder(&self) -> Vec<String> {
        let find = |operation: &str| self.rows().find(|(row, _)| row.operation == operation);
        let mut sentences = Vec::new();
        for [first, second] in self.table.order {
            let (Some((first, little)), Some((second, much))) = (find(first), find(second)) else { continue };
            let counted = little.instructions.zip(much.instructions).filter(|(little, much)| little > much);
            let timed = little.hosted_ns.zip(much.hosted_ns);
            let timed = timed.filter(|(little, much)| self.is_timed && *little > much * NOISE);
            let wrong = [(counted, "instructions"), (timed, "ns (hosted)")];
            for ((little, much), unit) in wrong.into_iter().filter_map(|(wrong, unit)| Some((wrong?, unit))) {
                sentences.push(format!("{}, {little:.1} {unit}, above {}, {much:.1}", first.title, second.title));
            }
        }
        sentences
    }

    fn cells(&self) -> Vec<Vec<String>> {
        let header =
            ["", "instructions (pc)", "gain", "ns (Linux)", "gain", "ns (hosted)", "gain", "bytes", "paper", "gain"];
        let mut cells = vec![header.map(String::from).to_vec()];
        for (row, measured) in self.rows() {
            let gain = |figure| number(self.gain(row, measured, figure), 2);
            cells.push(vec![
                row.title.into(),
                number(measured.instructions, 1),
                gain(|measured| measured.instructions),
                number(measured.linux_ns, 2),
                gain(|measured| measured.linux_ns),
                number(measured.hosted_ns, 2),
                gain(|measured| measured.hosted_ns),
                measured.bytes.map_or("-".into(), |bytes| bytes.to_string()),
                row.paper.unwrap_or("-").into(),
                number(row.paper_gain, 2),
            ]);
        }
        cells
    }
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or("-".into(), |value| format!("{value:.digits$}"))
}

fn facts(root: &Path) -> Vec<String> {
    vec![
        "instructions: guest instructions an operation on the pc machine under -icount, loop included".into(),
        "ns: median of rounds in which the rows take turns, on this machine's Linux and on the hosted machine".into(),
        "gain: this row over the row it is held against; bytes: what one more use costs in a function (gcc -O)".into(),
        format!("machine: {}; commit: {}", report::machine(), report::commit(root)),
    ]
}

fn to_text(results: &[Filled], root: &Path, table: fn(&[Vec<String>]) -> String) -> String {
    let mut text = String::new();
    for result in results {
        let Table { number, title, paper_unit, .. } = result.table;
        let floor = result.rows().find(|(row, _)| Some(row.operation) == result.table.floor);
        let floor = floor.map_or(String::new(), |(row, _)| format!("; gains without {}", row.title));
        text += &format!("Table {number}: {title} (paper: {paper_unit}{floor})\n\n{}\n", table(&result.cells()));
        for (row, measured) in result.rows() {
            text.extend(measured.missing.iter().map(|reason| format!("n/a: {}: {reason}\n", row.title)));
        }
        text.extend(result.disorder().iter().map(|sentence| format!("out of order: {sentence}\n")));
    }
    text.extend(facts(root).iter().map(|fact| format!("- {fact}\n")));
    text
}

pub fn markdown(cells: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule: Vec<String> = cells[0].iter().map(|_| "---".to_string()).collect();
    let body: String = cells[1..].iter().map(|row| line(row)).collect();
    format!("{}{}{body}", line(&cells[0]), line(&rule))
}

fn to_json(results: &[Filled], root: &Path) -> Value {
    let tables = results.iter().map(|result| {
        let rows = result.rows().map(|(row, measured)| {
            json!({
                "row": row.title, "operation": row.operation,
                "instructions": measured.instructions, "linux_ns": measured.linux_ns, "hosted_ns": measured.hosted_ns,
                "gain_instructions": result.gain(row, measured, |measured| measured.instructions),
                "gain_linux_ns": result.gain(row, measured, |measured| measured.linux_ns),
                "gain_hosted_ns": result.gain(row, measured, |measured| measured.hosted_ns),
                "bytes": measured.bytes, "paper": row.paper, "paper_gain": row.paper_gain, "missing": measured.missing,
            })
        });
        let rows: Vec<Value> = rows.collect();
        json!({
            "table": result.table.number,
            "title": result.table.title,
            "paper_unit": result.table.paper_unit,
            "rows": rows,
            "out_of_order": result.disorder(),
        })
    });
    json!({ "tables": tables.collect::<Vec<_>>(), "machine": report::machine(), "commit": report::commit(root) })
}
