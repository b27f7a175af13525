//! Draws how the four kinds of loops answer: `cargo run -p lockedloop --example plots -- FOLDER`.

#[path = "../tests/simulation/mod.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod simulation;

use std::fmt::Write;
use std::path::Path;

use lockedloop::{Gains, State};
use simulation::{Input, KINDS, Point, run};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 40.0;
/// Told apart by hue and by lightness.
const COLOURS: [&str; 4] = ["#0b5394", "#6fa8dc", "#990000", "#e69138"];

/// One line of a plot.
struct Line {
    name: String,
    values: Vec<f64>,
    /// Where lock was lost or not yet found.
    unlocked: Vec<bool>,
}

struct Plot {
    file: &'static str,
    title: &'static str,
    /// Of the vertical axis.
    unit: &'static str,
    range: [f64; 2],
    lines: Vec<Line>,
}

impl Plot {
    fn svg(&self) -> String {
        let events = self.lines.iter().map(|line| line.values.len()).max().unwrap_or(1);
        let (inner, below) = (WIDTH - LEFT - 16.0, HEIGHT - TOP - BOTTOM);
        let x = |event: usize| LEFT + inner * event as f64 / (events - 1) as f64;
        let y = |value: f64| {
            TOP + below * (self.range[1] - value.clamp(self.range[0], self.range[1])) / (self.range[1] - self.range[0])
        };
        let height = HEIGHT + 18.0 * self.lines.len() as f64;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n\
             <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{}</text>\n",
            self.title
        );
        for part in 0..=4 {
            let value = self.range[0] + (self.range[1] - self.range[0]) * f64::from(part) / 4.0;
            let (at, right) = (y(value), WIDTH - 16.0);
            let _ = writeln!(svg, "<path d=\"M{LEFT} {at:.1}H{right}\" stroke=\"#ddd\"/>");
            let _ =
                writeln!(svg, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>", LEFT - 6.0, at + 4.0);
            let event = (events - 1) * part as usize / 4;
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{event}</text>",
                x(event),
                HEIGHT - BOTTOM + 16.0
            );
        }
        let (middle, foot) = (LEFT + inner / 2.0, HEIGHT - 8.0);
        let _ = writeln!(svg, "<text x=\"{middle}\" y=\"{foot}\" text-anchor=\"middle\">events of the input</text>");
        let _ = writeln!(
            svg,
            "<text transform=\"translate(14 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            TOP + below / 2.0,
            self.unit
        );
        for (number, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let points: Vec<String> = line
                .values
                .iter()
                .enumerate()
                .map(|(event, value)| format!("{:.1},{:.1}", x(event), y(*value)))
                .collect();
            let _ = writeln!(
                svg,
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
                points.join(" ")
            );
            let dots = line.unlocked.iter().enumerate().filter(|(event, unlocked)| **unlocked && event % 4 == 0);
            for (event, _) in dots {
                let at = y(line.values[event]);
                let _ = writeln!(svg, "<circle cx=\"{:.1}\" cy=\"{at:.1}\" r=\"2.2\" fill=\"{colour}\"/>", x(event));
            }
            let at = HEIGHT + 12.0 + 18.0 * number as f64;
            let _ = writeln!(svg, "<path d=\"M{LEFT} {at}h30\" stroke=\"{colour}\" stroke-width=\"3\"/>");
            let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\">{}</text>", LEFT + 38.0, at + 4.0, line.name);
        }
        svg + "</svg>\n"
    }
}

fn line(name: &str, points: &[Point], value: impl Fn(&Point) -> f64) -> Line {
    Line {
        name: name.into(),
        values: points.iter().map(value).collect(),
        unlocked: points.iter().map(|point| point.state != State::Locked).collect(),
    }
}

/// A line for each kind of loop.
fn kinds(gains: Gains, events: usize, input: &Input, value: impl Fn(&Point) -> f64 + Copy) -> Vec<Line> {
    KINDS.map(|kind| line(kind.name, &run(kind, gains, 4, events, input, 7), value)).into()
}

fn percent(point: &Point) -> f64 {
    (point.speed - 1.0) * 100.0
}

fn plots() -> [Plot; 5] {
    let step = |event: usize| if event < 100 { 1.0 } else { 1.02 };
    let far = |event: usize| if (100..250).contains(&event) { 1.7 } else { 1.0 };
    let (first, second) = (Gains::first_order(2).unwrap(), Gains::second_order(2).unwrap());
    let noise = Input { jitter: 0.03, ..Input::steady(&|_| 1.0) };
    let by_gain = [2, 4, 6].map(|shift| {
        let points = run(KINDS[2], Gains::second_order(shift).unwrap(), 4, 401, &noise, 7);
        line(&format!("proportional gain 1/{}", 1 << shift), &points, percent)
    });
    let error = "error of frequency, %";
    [
        Plot {
            file: "locked-loops-first-order.svg",
            title: "First order, gain 1/4: the input becomes 2 % faster",
            unit: error,
            range: [-2.0, 2.0],
            lines: kinds(first, 301, &Input::steady(&step), percent),
        },
        Plot {
            file: "locked-loops-second-order.svg",
            title: "Second order, gain 1/4: the input becomes 2 % faster",
            unit: error,
            range: [-2.0, 2.0],
            lines: kinds(second, 301, &Input::steady(&step), percent),
        },
        Plot {
            file: "locked-loops-phase.svg",
            title: "Second order, gain 1/4: the phase after the same step",
            unit: "error of phase, cycles",
            range: [-0.4, 0.4],
            lines: kinds(second, 301, &Input::steady(&step), |point| point.phase),
        },
        Plot {
            file: "locked-loops-noise.svg",
            title: "Each event is off by up to 3 % of an interval: what comes through",
            unit: error,
            range: [-2.0, 2.0],
            lines: by_gain.into(),
        },
        Plot {
            file: "locked-loops-loss.svg",
            title: "The input becomes 70 % faster, and slower again; dots: not locked",
            unit: error,
            range: [-50.0, 150.0],
            lines: kinds(second, 401, &Input::steady(&far), percent),
        },
    ]
}

fn main() {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("error: no folder was named\nhelp: cargo run -p lockedloop --example plots -- docs/plots");
        std::process::exit(2);
    };
    for plot in plots() {
        let path = Path::new(&folder).join(plot.file);
        if let Err(error) = std::fs::write(&path, plot.svg()) {
            eprintln!("error: {}: {error}", path.display());
            std::process::exit(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the documentation shows is what the crate does.
    #[test]
    fn the_plots_of_the_documentation_are_current() {
        let folder = concat!(env!("SYNTHESIS_ROOT"), "docs/plots");
        if !Path::new(folder).is_dir() {
            return; // the crate alone
        }
        for plot in plots() {
            let stored = std::fs::read_to_string(Path::new(folder).join(plot.file)).unwrap_or_default();
            assert!(stored == plot.svg(), "{}: cargo run -p lockedloop --example plots -- docs/plots", plot.file);
        }
    }
}
