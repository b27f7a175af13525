//! Tables and JSON.

use std::path::Path;

use redundancy_sim::matrix::{Cell, Entry};
use redundancy_sim::policy::Kind;
use redundancy_sim::scale::Point;
use redundancy_sim::small::Case;
use redundancy_sim::statistics::Mean;
use serde_json::{Value, json};

use super::super::report;
use super::{Era, Results, front_share};

/// A table as text or Markdown.
type Table = fn(&[Vec<String>]) -> String;

pub fn text(results: &Results, root: &Path, table: Table) -> String {
    let mut text = String::new();
    if !results.forms.is_empty() {
        text += &format!("Closed forms and the simulator\n\n{}\n", table(&forms(results)));
    }
    if !results.small.is_empty() {
        let title = "Small cases: cost of an access over the least that is possible for who knows the future";
        text += &format!("{title}\n\n{}\n", table(&small(&results.small)));
    }
    for era in &results.eras {
        for cell in &era.cells {
            text += &format!("{}\n\n{}\n", cell_title(era, cell), table(&entries(cell)));
        }
        text += &format!("Machines of {}: each cell at a glance\n\n{}\n", era.hardware.name, table(&summary(era)));
        let share = front_share(&era.cells) * 100.0;
        text += &format!("valued redundancy is on the front in {share:.0} % of {} cells\n", era.cells.len());
        text += &format!("{}\n", exceptions(era));
    }
    if !results.scale.is_empty() {
        text += &format!("Time and memory against size\n\n{}\n", table(&scale(&results.scale)));
    }
    text.extend(facts(results, root).iter().map(|fact| format!("- {fact}\n")));
    text
}

fn facts(results: &Results, root: &Path) -> Vec<String> {
    let mut facts = Vec::new();
    if results.is_quick {
        facts.push("a quick run: the figures mean little".into());
    }
    if !results.eras.is_empty() {
        facts.push("time: mean of accesses that were served; failed: of attempted accesses; ±: 95 % over seeds".into());
        facts.push("front: nobody in the cell is both faster and more available".into());
    }
    facts.push(format!("machine: {}; commit: {}", report::machine(), report::commit(root)));
    facts
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(String::from).to_vec()
}

fn forms(results: &Results) -> Vec<Vec<String>> {
    let mut rows = vec![row(["", "form", "computed", "simulated", "apart"])];
    for form in &results.forms {
        let apart = (form.found / form.expected - 1.0) * 100.0;
        let figures = [format!("{:.4}", form.expected), format!("{:.4}", form.found), format!("{apart:+.1} %")];
        rows.push([vec![String::new(), form.name.clone()], figures.to_vec()].concat());
    }
    rows
}

fn small(cases: &[Case]) -> Vec<Vec<String>> {
    let head = |case: &Case| {
        let failures = if case.failures.node > 0.0 { ", crashes" } else { "" };
        format!("{} {}{failures}", case.workload.name(), case.budget)
    };
    let mut rows = vec![row(["", "case"])];
    rows[0].extend(Kind::ALL.map(|kind| kind.name().into()));
    for case in cases {
        let mut cells = vec![String::new(), head(case)];
        cells.extend(case.ratios.iter().map(|(_, ratio)| format!("{:.2}", ratio.value)));
        rows.push(cells);
    }
    let mean = |at: usize| cases.iter().map(|case| case.ratios[at].1.value).sum::<f64>() / cases.len() as f64;
    let mut last = row(["", "mean"]);
    last.extend((0..Kind::ALL.len()).map(|at| format!("{:.2}", mean(at))));
    rows.push(last);
    rows
}

fn cell_title(era: &Era, cell: &Cell) -> String {
    let budget = cell.budget * 100.0;
    let (name, failures) = (cell.workload.name(), cell.failures.name);
    format!("{}: {name}, memories of {budget} % of the bytes, nodes down {failures}", era.hardware.name)
}

/// Microseconds with their half interval.
fn micros(mean: Mean) -> String {
    format!("{:.2} ± {:.2}", mean.value * 1e6, mean.half * 1e6)
}

/// Percent of attempted accesses that failed.
fn failed(mean: Mean) -> String {
    format!("{:.3} ± {:.3}", (1.0 - mean.value) * 100.0, mean.half * 100.0)
}

fn entries(cell: &Cell) -> Vec<Vec<String>> {
    let mut rows = vec![row(["", "policy", "time, µs", "failed, %", "front", "local", "remote", "disk", "settings"])];
    for entry in &cell.entries {
        let [local, remote, disk] = reads(entry).map(|share| format!("{share:.2}"));
        let front = if entry.is_on_front { "*" } else { "" };
        let name = entry.kind.name().to_string();
        let figures = [micros(entry.seconds), failed(entry.availability), front.into(), local, remote, disk];
        rows.push([vec![String::new(), name], figures.to_vec(), vec![entry.setting.words()]].concat());
    }
    rows
}

/// Shares of reads from the own memory, from others', from disks.
fn reads(entry: &Entry) -> [f64; 3] {
    let sum = |figure: fn(&redundancy_sim::Outcome) -> u64| entry.outcomes.iter().map(figure).sum::<u64>() as f64;
    let counts = [sum(|outcome| outcome.local), sum(|outcome| outcome.remote), sum(|outcome| outcome.original)];
    counts.map(|count| count / counts.iter().sum::<f64>().max(1.0))
}

/// One row for each cell: ours, the fastest and the most available of the others.
fn summary(era: &Era) -> Vec<Vec<String>> {
    let heads = [
        "",
        "workload",
        "memory",
        "crashes",
        "valued, µs",
        "failed, %",
        "fastest other, µs",
        "",
        "fewest failed, %",
        "",
        "front",
    ];
    let mut rows = vec![row(heads)];
    for cell in &era.cells {
        let others = || cell.entries.iter().filter(|entry| !matches!(entry.kind, Kind::Valued | Kind::ByFrequency));
        let Some(own) = cell.entry(Kind::Valued) else { continue };
        let fastest = others().min_by(|a, b| a.seconds.value.total_cmp(&b.seconds.value));
        let safest = others().max_by(|a, b| a.availability.value.total_cmp(&b.availability.value));
        let mut cells = row(["", cell.workload.name()]);
        cells.extend([format!("{} %", cell.budget * 100.0), cell.failures.name.into()]);
        cells.extend([micros(own.seconds), failed(own.availability)]);
        cells.extend(fastest.map_or(row(["", ""]), |other| vec![micros(other.seconds), other.kind.name().into()]));
        cells.extend(safest.map_or(row(["", ""]), |other| vec![failed(other.availability), other.kind.name().into()]));
        cells.push(if own.is_on_front { "yes" } else { "no" }.into());
        rows.push(cells);
    }
    rows
}

/// Who is better where valued redundancy is not on the front.
fn exceptions(era: &Era) -> String {
    let off = era.cells.iter().filter(|cell| cell.entry(Kind::Valued).is_some_and(|entry| !entry.is_on_front));
    let line = |cell: &Cell| {
        let better: Vec<&str> = cell.dominators(Kind::Valued).into_iter().map(Kind::name).collect();
        format!("not on it: {}: {}\n", cell_title(era, cell), better.join(", "))
    };
    off.map(line).collect()
}

fn scale(points: &[Point]) -> Vec<Vec<String>> {
    let heads = ["", "policy", "nodes", "objects", "accesses", "seconds", "ns an access", "MB", "bytes an object"];
    let mut rows = vec![row(heads)];
    for point in points {
        rows.push(vec![
            String::new(),
            point.kind.name().into(),
            point.nodes.to_string(),
            point.objects.to_string(),
            point.accesses.to_string(),
            format!("{:.1}", point.seconds),
            format!("{:.0}", point.seconds * 1e9 / point.accesses as f64),
            format!("{:.0}", point.bytes as f64 / 1e6),
            format!("{:.0}", point.bytes as f64 / point.objects as f64),
        ]);
    }
    rows
}

pub fn json(results: &Results, root: &Path) -> Value {
    let mean = |mean: Mean| json!({ "mean": mean.value, "half": if mean.half.is_finite() { json!(mean.half) } else { Value::Null } });
    let entry = |entry: &Entry| {
        let [local, remote, disk] = reads(entry);
        json!({
            "policy": entry.kind.name(), "settings": entry.setting.words(), "seeds": entry.outcomes.len(),
            "access_seconds": mean(entry.seconds), "availability": mean(entry.availability), "on_front": entry.is_on_front,
            "local": local, "remote": remote, "disk": disk,
            "lost_writes": entry.outcomes.iter().map(|outcome| outcome.work.lost_writes).sum::<u64>(),
            "moved_bytes": entry.outcomes.iter().map(|outcome| outcome.work.moved).sum::<u64>(),
        })
    };
    let cell = |cell: &Cell| {
        json!({
            "workload": cell.workload.name(), "budget": cell.budget, "failures": cell.failures.name,
            "policies": cell.entries.iter().map(entry).collect::<Vec<_>>(),
        })
    };
    let era = |era: &Era| {
        json!({
            "machines": era.hardware.name, "front_share": front_share(&era.cells),
            "cells": era.cells.iter().map(cell).collect::<Vec<_>>(),
        })
    };
    let case = |case: &Case| {
        let ratios = case.ratios.iter().map(|(kind, ratio)| (kind.name().to_string(), mean(*ratio)));
        json!({
            "workload": case.workload.name(), "budget": case.budget, "failures": case.failures.name,
            "cost_over_least": ratios.collect::<serde_json::Map<_, _>>(),
        })
    };
    let point = |point: &Point| {
        json!({
            "policy": point.kind.name(), "nodes": point.nodes, "objects": point.objects, "accesses": point.accesses,
            "seconds": point.seconds, "bytes": point.bytes,
            "access_seconds": point.access_seconds, "availability": point.availability,
        })
    };
    let forms = results
        .forms
        .iter()
        .map(|form| json!({ "form": form.name, "computed": form.expected, "simulated": form.found }));
    json!({
        "quick": results.is_quick,
        "forms": forms.collect::<Vec<_>>(),
        "small": results.small.iter().map(case).collect::<Vec<_>>(),
        "eras": results.eras.iter().map(era).collect::<Vec<_>>(),
        "scale": results.scale.iter().map(point).collect::<Vec<_>>(),
        "machine": report::machine(),
        "commit": report::commit(root),
    })
}
