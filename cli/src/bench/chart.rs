//! A chart of times as SVG: a group of bars for each program, on a logarithmic scale, and a mark where the paper's ratio
//! would put Synthesis.

use std::fmt::Write;

/// One program.
pub struct Group {
    pub title: String,
    /// Nanoseconds an iteration of each series; `None`: not measured.
    pub nanos: Vec<Option<f64>>,
    /// The first series' time divided by the paper's ratio, in nanoseconds.
    pub mark: Option<f64>,
    /// What stands right of the bars, for example the ratio.
    pub note: String,
}

const WIDTH: f64 = 980.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 170.0;
const TOP: f64 = 92.0;
const BAR: f64 = 14.0;
const GAP: f64 = 16.0;
const LINE: f64 = 16.0;
const COLOURS: [&str; 4] = ["#8c8c8c", "#0b6fb8", "#e08a1e", "#a678b4"];
const MARK: &str = "#b3001b";

/// The whole picture. `series` are the names of the bars of each group, `caption` the lines below.
pub fn svg(title: &str, series: &[&str], groups: &[Group], caption: &[String]) -> String {
    let group_height = series.len() as f64 * BAR + GAP;
    let bottom = TOP + groups.len() as f64 * group_height;
    let height = bottom + 40.0 + caption.len() as f64 * LINE;
    let scale = Scale::around(groups);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>"
    );
    text(&mut out, 16.0, 26.0, "start", "font-size=\"17\" font-weight=\"bold\"", title);
    legend(&mut out, series);
    for decade in scale.decades() {
        let x = scale.x(decade);
        let _ = writeln!(out, "<path d=\"M{x:.1} {TOP}V{bottom:.1}\" stroke=\"#dddddd\"/>");
        text(&mut out, x, TOP - 8.0, "middle", "fill=\"#555555\"", &duration(decade));
    }
    for (index, group) in groups.iter().enumerate() {
        bars(&mut out, group, TOP + GAP / 2.0 + index as f64 * group_height, &scale);
    }
    for (index, line) in caption.iter().enumerate() {
        text(&mut out, 16.0, bottom + 30.0 + index as f64 * LINE, "start", "fill=\"#444444\" font-size=\"11\"", line);
    }
    out.push_str("</svg>\n");
    out
}

fn legend(out: &mut String, series: &[&str]) {
    let mut x = LEFT;
    for (name, colour) in series.iter().zip(COLOURS) {
        let _ = writeln!(out, "<rect x=\"{x}\" y=\"44\" width=\"12\" height=\"12\" fill=\"{colour}\"/>");
        text(out, x + 17.0, 54.0, "start", "", name);
        x += 34.0 + 7.2 * name.len() as f64;
    }
    let _ = writeln!(out, "<path d=\"M{:.1} 43v14\" stroke=\"{MARK}\" stroke-width=\"3\"/>", x + 4.0);
    text(out, x + 13.0, 54.0, "start", "", "Linux divided by the paper's ratio");
}

/// Bars first, then the mark, then words, so that nothing hides a word.
fn bars(out: &mut String, group: &Group, top: f64, scale: &Scale) {
    let middle = top + group.nanos.len() as f64 * BAR / 2.0 + 4.0;
    text(out, LEFT - 10.0, middle, "end", "font-weight=\"bold\"", &group.title);
    text(out, WIDTH - 16.0, middle, "end", "", &group.note);
    let bar = BAR - 2.0;
    for ((index, nanos), colour) in group.nanos.iter().enumerate().zip(COLOURS) {
        let y = top + index as f64 * BAR;
        let width = nanos.map_or(0.0, |nanos| (scale.x(nanos) - LEFT).max(1.0));
        let _ =
            writeln!(out, "<rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{bar}\" fill=\"{colour}\"/>");
    }
    if let Some(mark) = group.mark {
        // Beside the second bar, which it is about.
        let (x, y, height) = (scale.x(mark), top + BAR - 3.0, BAR + 4.0);
        let _ = writeln!(out, "<path d=\"M{x:.1} {y:.1}v{height}\" stroke=\"{MARK}\" stroke-width=\"3\"/>");
    }
    for (index, nanos) in group.nanos.iter().enumerate() {
        let end = nanos.map_or(LEFT, |nanos| scale.x(nanos));
        let words = nanos.map_or("not measured".into(), duration);
        // Behind the mark where it would stand among the words.
        let among = end - 5.0..end + 10.0 + words.chars().count() as f64 * 6.0;
        let mark = group.mark.map(|mark| scale.x(mark)).filter(|at| index > 0 && among.contains(at));
        let x = mark.map_or(end, |at| at.max(end)) + 5.0;
        let style = "font-size=\"10\" fill=\"#333333\" stroke=\"white\" stroke-width=\"3\" paint-order=\"stroke\"";
        text(out, x, top + index as f64 * BAR + 10.0, "start", style, &words);
    }
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, style: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {style}>{words}</text>");
}

/// Whole decades around all values.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn around(groups: &[Group]) -> Scale {
        let values = || groups.iter().flat_map(|group| group.nanos.iter().flatten().chain(&group.mark));
        let low = values().copied().filter(|nanos| *nanos > 0.0).fold(f64::INFINITY, f64::min);
        let high = values().copied().fold(1.0, f64::max);
        let low = if low.is_finite() { low.log10().floor() } else { 0.0 };
        Scale { low, high: high.log10().ceil().max(low + 1.0) }
    }

    fn x(&self, nanos: f64) -> f64 {
        let part = (nanos.max(1e-3).log10() - self.low) / (self.high - self.low);
        LEFT + part.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn decades(&self) -> impl Iterator<Item = f64> + use<> {
        (self.low as i32..=self.high as i32).map(|power| 10f64.powi(power))
    }
}

/// A time with its unit, three figures at most.
fn duration(nanos: f64) -> String {
    let (value, unit) = match nanos {
        nanos if nanos < 1e3 => (nanos, "ns"),
        nanos if nanos < 1e6 => (nanos / 1e3, "µs"),
        nanos if nanos < 1e9 => (nanos / 1e6, "ms"),
        nanos => (nanos / 1e9, "s"),
    };
    match value {
        value if (value - value.round()).abs() < 1e-9 || value >= 100.0 => format!("{value:.0} {unit}"),
        value if value >= 10.0 => format!("{value:.1} {unit}"),
        value => format!("{value:.2} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(nanos: [Option<f64>; 2]) -> Group {
        Group { title: "a < b".into(), nanos: nanos.into(), mark: Some(10.0), note: "ratio 70".into() }
    }

    #[test]
    fn a_longer_time_has_a_longer_bar_and_words_are_escaped() {
        let picture = svg("times", &["Linux", "Synthesis"], &[group([Some(664.0), Some(8.4)])], &["here".into()]);
        let widths: Vec<f64> = picture
            .lines()
            .filter(|line| line.starts_with("<rect x=\"150\" y=\"1"))
            .filter_map(|line| line.split("width=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect();
        assert_eq!(widths.len(), 2);
        assert!(widths[0] > widths[1], "{widths:?}");
        assert!(picture.contains("a &lt; b") && picture.contains("664 ns") && picture.contains("8.40 ns"));
    }

    #[test]
    fn the_mark_strikes_no_words_out() {
        let picture = svg("times", &["Linux", "Synthesis"], &[group([Some(664.0), Some(8.4)])], &[]);
        let number =
            |from: &str, to: char| picture.split(from).nth(1).unwrap().split(to).next().unwrap().parse::<f64>();
        let mark = number("<path d=\"M", ' ').unwrap();
        let words = picture.lines().find(|line| line.contains("8.40 ns")).unwrap();
        let at: f64 = words.split("x=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
        assert!(at > mark, "{mark} {words}");
    }

    #[test]
    fn what_was_not_measured_is_said() {
        assert!(svg("t", &["a", "b"], &[group([Some(5.0), None])], &[]).contains("not measured"));
    }
}
