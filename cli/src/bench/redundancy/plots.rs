//! Pictures as SVG: time against failures in each cell; time and memory against size.

use std::fmt::Write;

use redundancy_sim::matrix::{BUDGETS, Cell, Entry, FAILURES};
use redundancy_sim::policy::Kind;
use redundancy_sim::scale::Point;
use redundancy_sim::workload;

use super::Era;

/// Colour and shape of a policy's mark.
fn look(kind: Kind) -> (&'static str, char) {
    match kind {
        Kind::Alone => ("#8c8c8c", 's'),
        Kind::Lru => ("#8c8c8c", 'c'),
        Kind::Clock => ("#6b8e23", 'c'),
        Kind::Arc => ("#2e8b57", 'c'),
        Kind::S3Fifo => ("#17a2a2", 'c'),
        Kind::GreedyDual => ("#c48a00", 'c'),
        Kind::Lhd => ("#a0522d", 'c'),
        Kind::Fixed => ("#7b4fb5", 's'),
        Kind::WriteAll => ("#c071c0", 's'),
        Kind::Majority => ("#4b2e83", 's'),
        Kind::Proportional => ("#0b6fb8", 'd'),
        Kind::ByFrequency => ("#e06a5a", 'd'),
        Kind::Valued => ("#b3001b", 'd'),
    }
}

/// A logarithmic axis.
#[derive(Clone, Copy)]
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// Around the values, with a tenth of room.
    fn around(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Axis {
        let positive = values.filter(|value| *value > 0.0);
        let low = positive.clone().fold(f64::INFINITY, f64::min);
        let high = positive.fold(0.0, f64::max);
        let (low, high) = if low.is_finite() { (low.log10(), high.log10()) } else { (0.0, 1.0) };
        let room = ((high - low) * 0.1).max(0.05);
        Axis { low: low - room, high: high + room, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        let part = (value.max(1e-300).log10() - self.low) / (self.high - self.low);
        self.from + part.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// 1, 2 and 5 times powers of ten that are on it; few.
    fn ticks(&self) -> Vec<f64> {
        let decades = self.low.floor() as i32..=self.high.ceil() as i32;
        let steps: &[f64] = if self.high - self.low > 1.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let all = decades.flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)));
        all.filter(|tick| (self.low..=self.high).contains(&tick.log10())).collect()
    }
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, style: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {style}>{words}</text>");
}

fn frame(out: &mut String, x: f64, y: f64, width: f64, height: f64) {
    let size = format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"");
    let _ = writeln!(out, "<rect {size} fill=\"#fafafa\" stroke=\"#cccccc\"/>");
}

fn mark(out: &mut String, x: f64, y: f64, kind: Kind) {
    let (colour, shape) = look(kind);
    let size = if kind == Kind::Valued { 5.5 } else { 3.6 };
    let _ = match shape {
        's' => writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{w:.1}\" height=\"{w:.1}\" fill=\"{colour}\"/>",
            x - size,
            y - size,
            w = 2.0 * size
        ),
        'd' => writeln!(
            out,
            "<path d=\"M{x:.1} {:.1}l{s:.1} {s:.1}l-{s:.1} {s:.1}l-{s:.1} -{s:.1}z\" fill=\"{colour}\"/>",
            y - size * 1.3,
            s = size * 1.3
        ),
        _ => writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{size:.1}\" fill=\"{colour}\"/>"),
    };
}

fn begin(width: f64, height: f64, title: &str) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
    );
    text(&mut out, 16.0, 26.0, "start", "font-size=\"17\" font-weight=\"bold\"", title);
    out
}

const PANEL: (f64, f64) = (212.0, 172.0);
const LEFT: f64 = 120.0;
const TOP: f64 = 128.0;

/// A panel for each cell: access time to the right, failed accesses upwards, both logarithmic; better is left and below.
pub fn fronts(era: &Era) -> String {
    let columns = (BUDGETS.len() * FAILURES.len()) as f64;
    let mut rows: Vec<workload::Kind> = era.cells.iter().map(|cell| cell.workload).collect();
    rows.dedup();
    let (width, height) = (LEFT + columns * PANEL.0 + 16.0, TOP + rows.len() as f64 * PANEL.1 + 30.0);
    let title = format!("Access time and failed accesses, machines of {}: better is left and below", era.hardware.name);
    let mut out = begin(width, height, &title);
    for (at, kind) in Kind::ALL.into_iter().enumerate() {
        let (x, y) = (LEFT + (at % 7) as f64 * 178.0, 52.0 + (at / 7) as f64 * 20.0);
        mark(&mut out, x, y - 4.0, kind);
        text(&mut out, x + 12.0, y, "start", "", kind.name());
    }
    for (at, cell) in era.cells.iter().enumerate() {
        let (row, column) = (at / columns as usize, at % columns as usize);
        let (x, y) = (LEFT + column as f64 * PANEL.0, TOP + row as f64 * PANEL.1);
        if column == 0 {
            text(
                &mut out,
                16.0,
                y + PANEL.1 / 2.0,
                "start",
                "font-weight=\"bold\" font-size=\"13\"",
                cell.workload.name(),
            );
        }
        if row == 0 {
            let head = format!("memory {} %, crashes {}", cell.budget * 100.0, cell.failures.name);
            text(&mut out, x + PANEL.0 / 2.0, y - 14.0, "middle", "font-weight=\"bold\"", &head);
        }
        panel(&mut out, cell, x + 34.0, y, PANEL.0 - 44.0, PANEL.1 - 34.0);
    }
    let foot = "microseconds to the right, percent of accesses that failed upwards; bars: 95 % over seeds; thin line: the front";
    text(&mut out, LEFT, height - 10.0, "start", "fill=\"#444444\"", foot);
    out.push_str("</svg>\n");
    out
}

/// Microseconds and percent.
fn point(entry: &Entry) -> (f64, f64) {
    (entry.seconds.value * 1e6, (1.0 - entry.availability.value) * 100.0)
}

fn panel(out: &mut String, cell: &Cell, x: f64, y: f64, width: f64, height: f64) {
    let points = || cell.entries.iter().map(point);
    let across = Axis::around(points().map(|point| point.0), x, x + width);
    let up = Axis::around(points().map(|point| point.1), y + height, y);
    frame(out, x, y, width, height);
    for tick in across.ticks() {
        let at = across.at(tick);
        let _ = writeln!(out, "<path d=\"M{at:.1} {y:.1}v{height:.1}\" stroke=\"#e4e4e4\"/>");
        text(out, at, y + height + 12.0, "middle", "font-size=\"9\" fill=\"#555555\"", &figure(tick));
    }
    for tick in up.ticks() {
        let at = up.at(tick);
        let _ = writeln!(out, "<path d=\"M{x:.1} {at:.1}h{width:.1}\" stroke=\"#e4e4e4\"/>");
        text(out, x - 4.0, at + 3.0, "end", "font-size=\"9\" fill=\"#555555\"", &figure(tick));
    }
    front_line(out, cell, across, up);
    // Ours last, so that nothing hides it.
    for entry in &cell.entries {
        let (time, failed) = point(entry);
        let (halves, colour) = ((entry.seconds.half * 1e6, entry.availability.half * 100.0), look(entry.kind).0);
        let (left, right) = (across.at(time - halves.0), across.at(time + halves.0));
        let (high, low) = (up.at(failed + halves.1), up.at((failed - halves.1).max(1e-9)));
        let (cx, cy) = (across.at(time), up.at(failed));
        let _ = writeln!(
            out,
            "<path d=\"M{left:.1} {cy:.1}H{right:.1}M{cx:.1} {low:.1}V{high:.1}\" stroke=\"{colour}\" \
             stroke-width=\"0.8\" opacity=\"0.55\"/>"
        );
        mark(out, cx, cy, entry.kind);
    }
}

fn front_line(out: &mut String, cell: &Cell, across: Axis, up: Axis) {
    let mut front: Vec<(f64, f64)> = cell.entries.iter().filter(|entry| entry.is_on_front).map(point).collect();
    front.sort_by(|a, b| a.0.total_cmp(&b.0));
    let path: Vec<String> =
        front.iter().map(|(time, failed)| format!("{:.1} {:.1}", across.at(*time), up.at(*failed))).collect();
    if path.len() > 1 {
        let _ =
            writeln!(out, "<path d=\"M{}\" fill=\"none\" stroke=\"#333333\" stroke-width=\"0.7\"/>", path.join("L"));
    }
}

/// A tick's figure, short.
fn figure(value: f64) -> String {
    if value >= 1000.0 { format!("{}k", value / 1000.0) } else { format!("{}", (value * 1e6).round() / 1e6) }
}

type Figure = fn(&Point) -> f64;

/// Seconds and megabytes against objects, both logarithmic.
pub fn scale(points: &[Point]) -> String {
    let mut out = begin(920.0, 420.0, "What a simulation costs: five accesses an object, nodes = objects / 10,000");
    let seconds = |point: &Point| point.seconds;
    let megabytes = |point: &Point| point.bytes as f64 / 1e6;
    let panels: [(&str, Figure); 2] = [("seconds", seconds), ("memory, MB", megabytes)];
    for (at, (title, value)) in panels.into_iter().enumerate() {
        let (x, y, width, height) = (70.0 + at as f64 * 450.0, 90.0, 360.0, 260.0);
        text(&mut out, x, y - 12.0, "start", "font-weight=\"bold\" font-size=\"13\"", title);
        let across = Axis::around(points.iter().map(|point| point.objects as f64), x, x + width);
        let up = Axis::around(points.iter().map(value), y + height, y);
        frame(&mut out, x, y, width, height);
        for tick in across.ticks() {
            let at = across.at(tick);
            let _ = writeln!(out, "<path d=\"M{at:.1} {y:.1}v{height:.1}\" stroke=\"#e4e4e4\"/>");
            text(&mut out, at, y + height + 15.0, "middle", "fill=\"#555555\"", &format!("{tick}"));
        }
        for tick in up.ticks() {
            let at = up.at(tick);
            let _ = writeln!(out, "<path d=\"M{x:.1} {at:.1}h{width:.1}\" stroke=\"#e4e4e4\"/>");
            text(&mut out, x - 6.0, at + 4.0, "end", "fill=\"#555555\"", &figure(tick));
        }
        for kind in [Kind::Lru, Kind::Valued] {
            let own: Vec<(f64, f64)> = points
                .iter()
                .filter(|point| point.kind == kind)
                .map(|point| (across.at(point.objects as f64), up.at(value(point))))
                .collect();
            let path: Vec<String> = own.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
            let _ = writeln!(out, "<path d=\"M{}\" fill=\"none\" stroke=\"{}\"/>", path.join("L"), look(kind).0);
            own.iter().for_each(|(x, y)| mark(&mut out, *x, *y, kind));
        }
        text(&mut out, x + width / 2.0, y + height + 34.0, "middle", "fill=\"#444444\"", "objects");
    }
    for (at, kind) in [Kind::Lru, Kind::Valued].into_iter().enumerate() {
        mark(&mut out, 78.0 + at as f64 * 110.0, 50.0, kind);
        text(&mut out, 92.0 + at as f64 * 110.0, 54.0, "start", "", kind.name());
    }
    out.push_str("</svg>\n");
    out
}
