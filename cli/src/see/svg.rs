//! A graph as a picture, without help of other programs.

use std::fmt::Write;

use super::graph::{Graph, Kind, Node};
use super::layout::Columns;

/// Pixels of a character of the font, on average, and of a line.
const CHARACTER: f64 = 6.4;
const LINE: f64 = 15.0;
/// Room inside a node, between nodes, and between columns.
const INSIDE: f64 = 10.0;
const BETWEEN: f64 = 26.0;
const COLUMNS_APART: f64 = 110.0;
const MARGIN: f64 = 20.0;
/// Height of what an arc takes of a column that it passes.
const PASSAGE: f64 = 8.0;
/// Height of the legend below the picture, and width of one of its entries.
const LEGEND: f64 = 44.0;
const LEGEND_ENTRY: f64 = 92.0;
/// Characters of a line that are shown.
const CHARACTERS_MAX: usize = 48;

/// A node's place.
#[derive(Clone, Copy, Default)]
struct Place {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Place {
    fn middle(self) -> f64 {
        self.top + self.height / 2.0
    }
}

pub fn draw(graph: &Graph) -> String {
    let columns = Columns::of(graph);
    let (places, width, height) = places(graph, &columns);
    let (all_width, all_height) = (width.max(LEGEND_WIDTH), height + LEGEND);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{all_width:.0}\" height=\"{all_height:.0}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n"
    );
    text += "<defs><marker id=\"tip\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" markerHeight=\"7\" \
             markerUnits=\"userSpaceOnUse\" orient=\"auto-start-reverse\"><path d=\"M0 0 L10 5 L0 10 z\" fill=\"#555\"/>\
             </marker></defs>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    for number in 0..graph.arcs.len() {
        arc_at(graph, number, &places, &columns.bends[number], &mut text);
    }
    for (node, place) in graph.nodes.iter().zip(&places) {
        node_at(node, *place, &mut text);
    }
    legend(height, &mut text);
    text + "</svg>\n"
}

/// Where each node and each bend stands, and how large the picture is.
fn places(graph: &Graph, layout: &Columns) -> (Vec<Place>, f64, f64) {
    let bends = layout.bends.iter().map(Vec::len).sum::<usize>();
    let mut places = vec![Place { height: PASSAGE, ..Place::default() }; graph.nodes.len() + bends];
    for (node, place) in graph.nodes.iter().zip(&mut places) {
        let longest = node.lines.iter().map(|line| line.chars().count().min(CHARACTERS_MAX)).max().unwrap_or(0);
        place.width = longest as f64 * CHARACTER + 2.0 * INSIDE;
        place.height = node.lines.len() as f64 * LINE + 2.0 * INSIDE;
    }
    let columns = &layout.columns;
    let heights: Vec<f64> = columns
        .iter()
        .map(|column| column.iter().map(|&node| places[node].height + BETWEEN).sum::<f64>() - BETWEEN)
        .collect();
    let tallest = heights.iter().copied().fold(0.0, f64::max);
    let mut left = MARGIN;
    for (column, height) in columns.iter().zip(&heights) {
        let width = column.iter().map(|&node| places[node].width).fold(0.0, f64::max);
        let mut top = MARGIN + (tallest - height) / 2.0;
        for &node in column {
            let place = &mut places[node];
            if node >= graph.nodes.len() {
                // An arc goes straight past the boxes of a column.
                place.width = width;
            }
            (place.left, place.top) = (left + (width - place.width) / 2.0, top);
            top += place.height + BETWEEN;
        }
        left += width + COLUMNS_APART;
    }
    let width = if columns.is_empty() { 2.0 * MARGIN } else { left - COLUMNS_APART + MARGIN };
    (places, width, tallest + 2.0 * MARGIN)
}

/// A piece of an arc between two columns.
#[derive(Clone, Copy)]
struct Curve {
    from: (f64, f64),
    to: (f64, f64),
}

impl Curve {
    /// How far the control points lie from the ends; below 0 when it leads to the left.
    fn bend(self) -> f64 {
        let bend = (self.to.0 - self.from.0).abs().max(60.0) / 2.0;
        if self.to.0 < self.from.0 { -bend } else { bend }
    }

    fn point(self, t: f64) -> (f64, f64) {
        let (a, b, c, d) = ((1.0 - t).powi(3), 3.0 * t * (1.0 - t).powi(2), 3.0 * t * t * (1.0 - t), t.powi(3));
        let ((x1, y1), (x2, y2), bend) = (self.from, self.to, self.bend());
        (a * x1 + b * (x1 + bend) + c * (x2 - bend) + d * x2, (a + b) * y1 + (c + d) * y2)
    }
}

fn arc_at(graph: &Graph, number: usize, places: &[Place], bends: &[usize], text: &mut String) {
    let arc = &graph.arcs[number];
    let (from, to) = (places[arc.from], places[arc.to]);
    let is_back = to.left < from.left + from.width;
    // An arc that leads back leaves on the left and arrives on the right.
    let (x1, x2) = if is_back { (from.left, to.left + to.width) } else { (from.left + from.width, to.left) };
    let ((y1, first), (y2, last)) = (spread(graph, arc.from, number, places), spread(graph, arc.to, number, places));
    let mut passages: Vec<_> = bends
        .iter()
        .map(|&bend| places[bend])
        .map(|place| [(place.left, place.middle()), (place.left + place.width, place.middle())])
        .collect();
    if is_back {
        passages.reverse();
        passages.iter_mut().for_each(|ends| ends.reverse());
    }
    let ends = [(x1, y1)].into_iter().chain(passages.into_iter().flatten()).chain([(x2, y2)]);
    let ends: Vec<_> = ends.collect();
    let curves: Vec<_> = ends.chunks(2).map(|pair| Curve { from: pair[0], to: pair[1] }).collect();
    let mut path = String::new();
    for curve in &curves {
        let (Curve { from: (x1, y1), to: (x2, y2) }, bend) = (*curve, curve.bend());
        let how = if path.is_empty() { 'M' } else { 'L' };
        let _ =
            write!(path, "{how}{x1:.1} {y1:.1} C{:.1} {y1:.1} {:.1} {y2:.1} {x2:.1} {y2:.1} ", x1 + bend, x2 - bend);
    }
    let start = if arc.both { " marker-start=\"url(#tip)\"" } else { "" };
    let _ = writeln!(
        text,
        "<path d=\"{}\" fill=\"none\" stroke=\"#555\" stroke-width=\"{}\" marker-end=\"url(#tip)\"{start}/>",
        path.trim_end(),
        if arc.synthesized { THICK } else { THIN },
    );
    // Long arcs run together in the middle: the label stands near the quaspace whose descriptor it names, and those of
    // neighbours not above each other.
    let near = |place: usize| 0.14 + 0.3 * (place % 2) as f64;
    let (x, y) = match graph.nodes[arc.from].kind {
        Kind::Quaspace => curves[0].point(near(first)),
        _ => curves[curves.len() - 1].point(1.0 - near(last)),
    };
    let (y, label) = (y - 3.0, escaped(&arc.label));
    let _ = writeln!(
        text,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" font-size=\"10\" fill=\"#333\" stroke=\"white\" \
         stroke-width=\"3\" paint-order=\"stroke\">{label}</text>"
    );
}

/// How high an arc touches a node, and as which of its arcs: those to what is higher leave higher.
fn spread(graph: &Graph, node: usize, own: usize, places: &[Place]) -> (f64, usize) {
    let touches = |other: &usize| graph.arcs[*other].from == node || graph.arcs[*other].to == node;
    let mut near: Vec<_> = (0..graph.arcs.len()).filter(touches).collect();
    let other_end = |arc: usize| if graph.arcs[arc].from == node { graph.arcs[arc].to } else { graph.arcs[arc].from };
    near.sort_by(|a, b| places[other_end(*a)].middle().total_cmp(&places[other_end(*b)].middle()));
    let at = near.iter().position(|&other| other == own).unwrap_or(0);
    let step = (places[node].height / (near.len() + 1) as f64).min(14.0);
    (places[node].middle() + step * (at as f64 - (near.len() - 1) as f64 / 2.0), at)
}

/// Widths of arcs whose bytes synthesized code moves, and Rust.
const THICK: f64 = 2.2;
const THIN: f64 = 1.2;
const KINDS: [(Kind, &str); 5] = [
    (Kind::Quaspace, "quaspace"),
    (Kind::Queue, "queue"),
    (Kind::Terminal, "terminal"),
    (Kind::File, "file"),
    (Kind::Outside, "outside"),
];
const LEGEND_WIDTH: f64 = 2.0 * MARGIN + 5.0 * LEGEND_ENTRY + 330.0;

/// What shapes and lines mean.
fn legend(top: f64, text: &mut String) {
    let middle = top + LEGEND / 2.0 - 6.0;
    let _ = writeln!(text, "<g font-size=\"10\" fill=\"#333\">");
    for (number, (kind, name)) in KINDS.into_iter().enumerate() {
        let left = MARGIN + number as f64 * LEGEND_ENTRY;
        let (fill, corner) = look(kind, 12.0);
        let (y, x) = (middle - 6.0, left + 30.0);
        let _ = writeln!(
            text,
            "<rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"24\" height=\"12\" ry=\"{corner:.1}\" fill=\"{fill}\" \
             stroke=\"#777\"/><text x=\"{x:.1}\" y=\"{:.1}\">{name}</text>",
            middle + 3.5
        );
    }
    let lines = [(THICK, "bytes moved by synthesized code"), (THIN, "by Rust")];
    for (number, (width, name)) in lines.into_iter().enumerate() {
        let left = MARGIN + 5.0 * LEGEND_ENTRY + number as f64 * 210.0;
        let _ = writeln!(
            text,
            "<line x1=\"{left:.1}\" y1=\"{middle:.1}\" x2=\"{:.1}\" y2=\"{middle:.1}\" stroke=\"#555\" \
             stroke-width=\"{width}\" marker-end=\"url(#tip)\"/><text x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
            left + 26.0,
            left + 32.0,
            middle + 3.5
        );
    }
    text.push_str("</g>\n");
}

/// Colour and roundness of a node of this height.
fn look(kind: Kind, height: f64) -> (&'static str, f64) {
    match kind {
        Kind::Quaspace => ("#dce9f7", height.min(8.0)),
        Kind::Queue => ("#fdf0cf", height / 2.0),
        Kind::Terminal => ("#dff2dd", 2.0),
        Kind::File => ("#f3f3f3", 0.0),
        Kind::Outside => ("#f6dfe4", height / 2.0),
    }
}

fn node_at(node: &Node, place: Place, text: &mut String) {
    let Place { left, top, width, height } = place;
    let (fill, corner) = look(node.kind, height);
    let _ = writeln!(
        text,
        "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"{corner:.1}\" \
         fill=\"{fill}\" stroke=\"#777\"/>"
    );
    for (number, line) in node.lines.iter().enumerate() {
        let (x, y) = (left + width / 2.0, top + INSIDE + LINE * (number as f64 + 0.75));
        let weight = if number == 0 { " font-weight=\"bold\"" } else { "" };
        let shown: String = line.chars().take(CHARACTERS_MAX).collect();
        let _ =
            writeln!(text, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\"{weight}>{}</text>", escaped(&shown));
    }
}

/// Text as XML takes it.
fn escaped(text: &str) -> String {
    let visible = text.chars().map(|letter| if letter.is_control() { '?' } else { letter });
    visible.collect::<String>().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::super::graph::tests::pipeline;
    use super::*;

    #[test]
    fn every_node_and_arc_is_drawn_inside_the_picture() {
        let graph = pipeline();
        let text = draw(&graph);
        assert_eq!(text.matches("<path d=\"M").count(), graph.arcs.len() + 1);
        assert_eq!(text.matches("rx=").count(), graph.nodes.len());
        let columns = Columns::of(&graph);
        let (places, width, height) = places(&graph, &columns);
        assert!(places.iter().all(|place| place.left + place.width < width && place.top + place.height < height));
    }

    #[test]
    fn arcs_pass_around_boxes() {
        let graph = pipeline();
        let columns = Columns::of(&graph);
        let (places, ..) = places(&graph, &columns);
        let (boxes, bends) = places.split_at(graph.nodes.len());
        assert!(!bends.is_empty(), "an arc leads past the pipe");
        let is_apart = |a: &Place, b: &Place| {
            a.left + a.width <= b.left
                || b.left + b.width <= a.left
                || a.top + a.height <= b.top
                || b.top + b.height <= a.top
        };
        assert!(bends.iter().all(|bend| boxes.iter().all(|one| is_apart(bend, one))));
    }

    #[test]
    fn names_cannot_break_the_picture() {
        let node = Node { kind: Kind::File, lines: vec!["</svg>&\u{1b}".into()] };
        let text = draw(&Graph { nodes: vec![node], arcs: Vec::new() });
        assert!(text.contains("&lt;/svg&gt;&amp;?") && text.matches("</svg>").count() == 1, "{text}");
    }
}
