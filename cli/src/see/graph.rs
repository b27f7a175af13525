//! `synth graph`: quaspaces with their threads, and the streams that flow between them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use bootimage::inspect::{Stream, Task, opcode, stream};
use clap::Args;
use serde_json::{Value, json};

use super::client::Client;
use super::{Which, ps, svg};
use crate::failure::{Failure, TOOL};

#[derive(Args, Debug)]
pub struct GraphOptions {
    /// The file to write: SVG if its name ends with .svg, JSON with .json, otherwise DOT; without it DOT is printed
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The same as --format json: nodes, and arcs by the numbers of the nodes
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// What to write, whatever the file is called
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    #[command(flatten)]
    pub which: Which,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Format {
    Dot,
    Svg,
    Json,
}

/// What a node stands for, which its shape shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Quaspace,
    Queue,
    Terminal,
    File,
    Outside,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    pub kind: Kind,
    pub lines: Vec<String>,
}

/// Bytes flow from one node to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arc {
    pub from: usize,
    pub to: usize,
    /// They flow back, too.
    pub both: bool,
    /// Synthesized code moves them.
    pub synthesized: bool,
    pub label: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Graph {
    pub nodes: Vec<Node>,
    pub arcs: Vec<Arc>,
}

pub fn graph(client: &mut Client, options: &GraphOptions) -> Result<u8, Failure> {
    let tasks = ps::tasks(client)?;
    let bytes = client.ask(opcode::STREAMS, &[])?.unwrap_or_default();
    let graph = Graph::of(&tasks, &client.items(&bytes, Stream::get)?);
    let ending = options.output.as_ref().and_then(|path| path.extension()?.to_str());
    let by_name = match ending {
        Some("svg") => Format::Svg,
        Some("json") => Format::Json,
        _ => Format::Dot,
    };
    let text = match options.format.unwrap_or(if options.json { Format::Json } else { by_name }) {
        Format::Dot => graph.dot(),
        Format::Svg => svg::draw(&graph),
        Format::Json => format!("{:#}\n", graph.json()),
    };
    match &options.output {
        None => super::print(&text),
        Some(path) => std::fs::write(path, text)
            .map_err(|error| Failure::new(TOOL, format!("cannot write {}: {error}", path.display()), ""))?,
    }
    Ok(0)
}

impl Graph {
    /// One node for each process and each stream; one arc for all descriptors of a process that lead the same way.
    pub fn of(tasks: &[Task], streams: &[Stream]) -> Graph {
        let mut graph = Graph::default();
        let mut quaspaces = BTreeMap::new();
        for task in tasks.iter().filter(|task| task.thread == task.process || task.descriptors > 0) {
            quaspaces.entry(task.process).or_insert_with(|| graph.add(Kind::Quaspace, quaspace(task.process, tasks)));
        }
        let (mut places, mut arcs) = (BTreeMap::new(), BTreeMap::<(usize, usize, u8), (Vec<u32>, bool)>::new());
        for stream in streams {
            let Some(&process) = quaspaces.get(&stream.process) else { continue };
            let place = *places
                .entry((stream.kind, stream.identity))
                .or_insert_with(|| graph.add(kind_of(stream), lines_of(stream)));
            let arc = arcs.entry((process, place, stream.ways & 3)).or_default();
            arc.0.push(stream.descriptor);
            arc.1 |= stream.ways & 12 != 0;
        }
        for ((process, place, ways), (descriptors, synthesized)) in arcs {
            let numbers: Vec<_> = descriptors.iter().map(u32::to_string).collect();
            let label = format!("fd {}", numbers.join(", "));
            let (from, to) = if ways & 1 != 0 { (place, process) } else { (process, place) };
            graph.arcs.push(Arc { from, to, both: ways == 3, synthesized, label });
        }
        graph
    }

    fn add(&mut self, kind: Kind, lines: Vec<String>) -> usize {
        self.nodes.push(Node { kind, lines });
        self.nodes.len() - 1
    }

    pub fn json(&self) -> Value {
        let kind = |kind| match kind {
            Kind::Quaspace => "quaspace",
            Kind::Queue => "queue",
            Kind::Terminal => "terminal",
            Kind::File => "file",
            Kind::Outside => "outside",
        };
        let nodes: Vec<_> =
            self.nodes.iter().map(|node| json!({ "kind": kind(node.kind), "lines": node.lines })).collect();
        let arc = |arc: &Arc| {
            let Arc { from, to, both, synthesized, label } = arc;
            json!({ "from": from, "to": to, "both": both, "synthesized": synthesized, "label": label })
        };
        json!({ "nodes": nodes, "arcs": self.arcs.iter().map(arc).collect::<Vec<_>>() })
    }

    /// The graph in the language of graphviz.
    pub fn dot(&self) -> String {
        let mut text =
            String::from("digraph synthesis {\n  rankdir=LR;\n  node [fontname=\"sans-serif\", fontsize=10];\n");
        text += "  edge [fontname=\"sans-serif\", fontsize=9];\n";
        for (number, node) in self.nodes.iter().enumerate() {
            let shape = match node.kind {
                Kind::Quaspace => "box, style=\"rounded,filled\", fillcolor=\"#dce9f7\"",
                Kind::Queue => "cds, style=filled, fillcolor=\"#fdf0cf\"",
                Kind::Terminal => "box, style=filled, fillcolor=\"#dff2dd\"",
                Kind::File => "note, style=filled, fillcolor=\"#f3f3f3\"",
                Kind::Outside => "ellipse, style=filled, fillcolor=\"#f6dfe4\"",
            };
            let label: Vec<_> = node.lines.iter().map(|line| line.replace('\\', "\\\\").replace('"', "\\\"")).collect();
            let _ = writeln!(text, "  n{number} [label=\"{}\", shape={shape}];", label.join("\\n"));
        }
        for arc in &self.arcs {
            let both = if arc.both { ", dir=both" } else { "" };
            let pen = if arc.synthesized { ", penwidth=2" } else { "" };
            let _ = writeln!(text, "  n{} -> n{} [label=\"{}\"{both}{pen}];", arc.from, arc.to, arc.label);
        }
        text + "}\n"
    }
}

fn quaspace(process: u32, tasks: &[Task]) -> Vec<String> {
    let mine = || tasks.iter().filter(|task| task.process == process);
    let name = mine().next().map(|task| String::from_utf8_lossy(&task.name).into_owned()).unwrap_or_default();
    let mut lines = vec![format!("{name}  (quaspace {process})")];
    for task in mine() {
        let waits = ps::waits_for(task);
        let what = if waits.is_empty() { String::new() } else { format!(": {waits}") };
        lines.push(format!("thread {} {}{what}", task.thread, ps::state_name(task.state)));
    }
    lines
}

fn kind_of(stream: &Stream) -> Kind {
    match stream.kind {
        stream::PIPE | stream::SOCKET => Kind::Queue,
        stream::TERMINAL => Kind::Terminal,
        stream::CHANNEL => Kind::Outside,
        _ => Kind::File,
    }
}

fn lines_of(stream: &Stream) -> Vec<String> {
    let mut lines = vec![String::from_utf8_lossy(&stream.name).into_owned()];
    match stream.kind {
        stream::PIPE => {
            lines.push(format!("{} of {} bytes full", stream.gauge, stream.limit));
        }
        stream::FILE => lines.push(format!("at {} of {} bytes", stream.gauge, stream.limit)),
        _ => {}
    }
    lines
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// `yes | head` at a terminal.
    pub fn pipeline() -> Graph {
        let task = |process: u32, name: &str| Task {
            process,
            thread: process,
            call: u16::MAX,
            name: name.into(),
            ..Task::default()
        };
        let end = |process, descriptor, kind, ways, identity, name: &str| Stream {
            process,
            descriptor,
            kind,
            ways,
            identity,
            name: name.into(),
            ..Stream::default()
        };
        let streams = [
            end(2, 0, stream::TERMINAL, 3, 9, "/dev/pts/0"),
            end(2, 1, stream::PIPE, 2 | 8, 1, "pipe:[1]"),
            end(2, 2, stream::TERMINAL, 3, 9, "/dev/pts/0"),
            end(3, 0, stream::PIPE, 1, 1, "pipe:[1]"),
            end(3, 1, stream::TERMINAL, 3, 9, "/dev/pts/0"),
        ];
        Graph::of(&[task(2, "yes"), task(3, "head")], &streams)
    }

    #[test]
    fn a_pipeline_is_two_quaspaces_with_a_queue_between_them() {
        let graph = pipeline();
        assert_eq!(graph.nodes.len(), 4);
        let dot = graph.dot();
        assert!(dot.contains("n0 -> n3 [label=\"fd 1\", penwidth=2]"), "{dot}");
        assert!(dot.contains("n3 -> n1 [label=\"fd 0\"]"), "{dot}");
        assert!(dot.contains("n2 -> n0 [label=\"fd 0, 2\", dir=both]"), "{dot}");
    }
}
