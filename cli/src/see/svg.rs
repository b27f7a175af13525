//! A graph as a picture, without help of other programs.

use std::fmt::Write;

use super::graph::{Graph, Kind, Node};
use super::layout;

/// Pixels of a character of the font, on average, and of a line.
const CHARACTER: f64 = 6.4;
const LINE: f64 = 15.0;
/// Room inside a node, between nodes, and between columns.
const INSIDE: f64 = 10.0;
const BETWEEN: f64 = 26.0;
const COLUMNS_APART: f64 = 110.0;
const MARGIN: f64 = 20.0;
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
    let (places, width, height) = places(graph);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n"
    );
    text += "<defs><marker id=\"tip\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" markerHeight=\"7\" \
             markerUnits=\"userSpaceOnUse\" orient=\"auto-start-reverse\"><path d=\"M0 0 L10 5 L0 10 z\" fill=\"#555\"/>\
             </marker></defs>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    arcs(graph, &places, &mut text);
    for (node, place) in graph.nodes.iter().zip(&places) {
        node_at(node, *place, &mut text);
    }
    text + "</svg>\n"
}

fn places(graph: &Graph) -> (Vec<Place>, f64, f64) {
    let mut places = vec![Place::default(); graph.nodes.len()];
    for (node, place) in graph.nodes.iter().zip(&mut places) {
        let longest = node.lines.iter().map(|line| line.chars().count().min(CHARACTERS_MAX)).max().unwrap_or(0);
        place.width = longest as f64 * CHARACTER + 2.0 * INSIDE;
        place.height = node.lines.len() as f64 * LINE + 2.0 * INSIDE;
    }
    let columns = layout::columns(graph);
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
            (place.left, place.top) = (left + (width - place.width) / 2.0, top);
            top += place.height + BETWEEN;
        }
        left += width + COLUMNS_APART;
    }
    let width = if columns.is_empty() { 2.0 * MARGIN } else { left - COLUMNS_APART + MARGIN };
    (places, width, tallest + 2.0 * MARGIN)
}

fn arcs(graph: &Graph, places: &[Place], text: &mut String) {
    for (number, arc) in graph.arcs.iter().enumerate() {
        let (from, to) = (places[arc.from], places[arc.to]);
        let is_back = to.left < from.left + from.width;
        // An arc that leads back leaves on the left and arrives on the right.
        let (x1, x2) = if is_back { (from.left, to.left + to.width) } else { (from.left + from.width, to.left) };
        let spread = |node: usize, own: usize| {
            let touches = |other: &usize| graph.arcs[*other].from == node || graph.arcs[*other].to == node;
            let mut near: Vec<_> = (0..graph.arcs.len()).filter(touches).collect();
            // Arcs to what is higher leave higher.
            let other_end =
                |arc: usize| if graph.arcs[arc].from == node { graph.arcs[arc].to } else { graph.arcs[arc].from };
            near.sort_by(|a, b| places[other_end(*a)].middle().total_cmp(&places[other_end(*b)].middle()));
            let at = near.iter().position(|&other| other == own).unwrap_or(0);
            let step = (places[node].height / (near.len() + 1) as f64).min(14.0);
            (places[node].middle() + step * (at as f64 - (near.len() - 1) as f64 / 2.0), at)
        };
        let ((y1, first), (y2, last)) = (spread(arc.from, number), spread(arc.to, number));
        let bend = (x2 - x1).abs().max(60.0) / 2.0 * if is_back { -1.0 } else { 1.0 };
        let (width, start) =
            (if arc.synthesized { 2.2 } else { 1.2 }, if arc.both { " marker-start=\"url(#tip)\"" } else { "" });
        let _ = writeln!(
            text,
            "<path d=\"M{x1:.1} {y1:.1} C{:.1} {y1:.1} {:.1} {y2:.1} {x2:.1} {y2:.1}\" fill=\"none\" stroke=\"#555\" \
             stroke-width=\"{width}\" marker-end=\"url(#tip)\"{start}/>",
            x1 + bend,
            x2 - bend
        );
        // Long arcs run together in the middle: the label stands near the quaspace whose descriptor it names, and those of
        // neighbours not above each other.
        let at = |t: f64| {
            let (a, b, c, d) = ((1.0 - t).powi(3), 3.0 * t * (1.0 - t).powi(2), 3.0 * t * t * (1.0 - t), t.powi(3));
            (a * x1 + b * (x1 + bend) + c * (x2 - bend) + d * x2, (a + b) * y1 + (c + d) * y2)
        };
        let near = |place: usize| 0.14 + 0.3 * (place % 2) as f64;
        let (x, y) = at(if graph.nodes[arc.from].kind == Kind::Quaspace { near(first) } else { 1.0 - near(last) });
        let y = y - 3.0;
        let label = escaped(&arc.label);
        let _ = writeln!(
            text,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" font-size=\"10\" fill=\"#333\" stroke=\"white\" \
             stroke-width=\"3\" paint-order=\"stroke\">{label}</text>"
        );
    }
}

fn node_at(node: &Node, place: Place, text: &mut String) {
    let Place { left, top, width, height } = place;
    let (fill, corner) = match node.kind {
        Kind::Quaspace => ("#dce9f7", 8.0),
        Kind::Queue => ("#fdf0cf", height / 2.0),
        Kind::Terminal => ("#dff2dd", 2.0),
        Kind::File => ("#f3f3f3", 0.0),
        Kind::Outside => ("#f6dfe4", height / 2.0),
    };
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
        let (places, width, height) = places(&graph);
        assert!(places.iter().all(|place| place.left + place.width < width && place.top + place.height < height));
    }

    #[test]
    fn names_cannot_break_the_picture() {
        let node = Node { kind: Kind::File, lines: vec!["</svg>&\u{1b}".into()] };
        let text = draw(&Graph { nodes: vec![node], arcs: Vec::new() });
        assert!(text.contains("&lt;/svg&gt;&amp;?") && text.matches("</svg>").count() == 1, "{text}");
    }
}
