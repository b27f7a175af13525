//! Records of a trace as Chrome's trace events, which ui.perfetto.dev reads.
//!
//! Each thread has a track with its calls: a span for a call that Rust did, an instant for one that synthesized code did
//! (its end is not recorded). The processor has a track with whose turn it is, and the interrupts.

use std::collections::BTreeMap;

use bootimage::inspect::{TraceName, TraceRecord};
use serde_json::{Value, json};

use super::trace::Recorded;

/// Kinds of records; the kernel's module `trace` has the same numbers.
mod kind {
    pub const CALL: u16 = 1;
    pub const RETURN: u16 = 2;
    pub const SWITCH: u16 = 3;
    pub const INTERRUPT: u16 = 4;
    pub const BORN: u16 = 5;
    pub const UNKNOWN_CALL: u16 = 6;
    pub const FILE_READ: u16 = 7;
    pub const FILE_WRITE: u16 = 8;
    pub const PAGE: u16 = 9;
}

/// The processor's track. No process has this number.
const PROCESSOR: u32 = 0;

/// A call that has begun.
#[derive(Clone, Copy)]
struct Begun {
    record: TraceRecord,
    process: u32,
    thread: u32,
    /// The thread went to sleep in it, so Rust does it.
    slept: bool,
}

struct Events<'a> {
    recorded: &'a Recorded,
    events: Vec<Value>,
    begun: BTreeMap<u16, Begun>,
    /// Whose turn it is, and since when.
    turn: Option<(u16, u64)>,
}

/// The whole file.
pub fn json(recorded: &Recorded) -> String {
    let mut all = Events { recorded, events: Vec::new(), begun: BTreeMap::new(), turn: None };
    all.names();
    for (number, record) in &recorded.records {
        all.add(*number, *record);
    }
    all.finish();
    let other = json!({ "records": recorded.records.len(), "lost": recorded.lost });
    let mut text = String::from("{\"displayTimeUnit\":\"ns\",\"otherData\":");
    text += &other.to_string();
    text += ",\"traceEvents\":[\n";
    let lines: Vec<_> = all.events.iter().map(Value::to_string).collect();
    text + &lines.join(",\n") + "\n]}\n"
}

/// Chrome counts in microseconds.
fn micros(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

fn call_name(number: u32) -> String {
    abi::nr::name(number.into()).map_or_else(|| format!("call {number}"), str::to_string)
}

/// The call that a record begins.
pub fn call_of(record: &TraceRecord) -> Option<String> {
    matches!(record.kind, kind::CALL | kind::UNKNOWN_CALL).then(|| call_name(record.number))
}

impl Events<'_> {
    fn names(&mut self) {
        let about = |what: &str, process: u32, thread: u32, name: &str| {
            let args = json!({"name": name});
            json!({"ph": "M", "name": what, "pid": process, "tid": thread, "args": args})
        };
        self.events.push(about("process_name", PROCESSOR, PROCESSOR, "processor"));
        self.events.push(about("thread_name", PROCESSOR, PROCESSOR, "whose turn"));
        for name in &self.recorded.names {
            let TraceName::Thread { thread, process, name, .. } = name else { continue };
            let name = String::from_utf8_lossy(name);
            if thread == process {
                self.events.push(about("process_name", *process, *thread, &name));
            }
            self.events.push(about("thread_name", *process, *thread, &name));
        }
    }

    /// Process, thread and name of the machine's thread `tte` at record `number`.
    fn thread(&self, number: u64, tte: u16) -> (u32, u32, String) {
        let names = self.recorded.names.iter().rev();
        let mut known = names.filter_map(|name| match name {
            TraceName::Thread { from, tte: of, thread, process, name } if *of == u32::from(tte) && *from <= number => {
                Some((*process, *thread, String::from_utf8_lossy(name).into_owned()))
            }
            _ => None,
        });
        let unknown = || if tte == 0 { "idle".to_string() } else { format!("thread entry {tte}") };
        known.next().unwrap_or_else(|| (PROCESSOR, 1_000_000 + u32::from(tte), unknown()))
    }

    fn routine(&self, number: u32) -> String {
        let found = self.recorded.names.iter().find_map(|name| match name {
            TraceName::Routine { number: of, name } if *of == u64::from(number) => Some(name),
            _ => None,
        });
        found.map_or_else(|| "?".into(), |name| String::from_utf8_lossy(name).into_owned())
    }

    fn add(&mut self, number: u64, record: TraceRecord) {
        self.turn.get_or_insert((record.tte, record.time_ns));
        let at = micros(record.time_ns);
        match record.kind {
            kind::CALL | kind::UNKNOWN_CALL => {
                self.end_call(record.tte);
                let (process, thread, _) = self.thread(number, record.tte);
                self.begun.insert(record.tte, Begun { record, process, thread, slept: false });
            }
            kind::RETURN => self.end_call_in_rust(record),
            kind::SWITCH => self.switch(number, record),
            kind::INTERRUPT => {
                let name = if record.number == 0 { "timer" } else { "device" };
                self.events.push(json!({"ph": "i", "s": "t", "cat": "interrupt", "name": name, "pid": PROCESSOR,
                    "tid": PROCESSOR, "ts": at}));
            }
            kind::FILE_READ | kind::FILE_WRITE => {
                let name = if record.kind == kind::FILE_READ { "file read" } else { "file written" };
                let [file, position] = record.words;
                self.instant(
                    number,
                    record,
                    "file",
                    name,
                    json!({"file": file, "position": position, "bytes": record.number}),
                );
            }
            kind::PAGE => {
                let name =
                    ["page read", "page written", "page executed"].get(record.number as usize).unwrap_or(&"page");
                self.instant(number, record, "page", name, json!({"address": format!("{:#x}", record.words[0])}));
            }
            kind::BORN => {
                let (process, thread, _) = self.thread(number, record.tte);
                let name = format!("synthesize {}", self.routine(record.number));
                let address = format!("{:#x}", record.words[0]);
                self.events.push(json!({"ph": "i", "s": "t", "cat": "synthesis", "name": name, "pid": process,
                    "tid": thread, "ts": at, "args": {"address": address, "bytes": record.words[1]}}));
            }
            _ => {}
        }
    }

    /// Something that a thread does in no time.
    fn instant(&mut self, number: u64, record: TraceRecord, category: &str, name: &str, args: Value) {
        let (process, thread, _) = self.thread(number, record.tte);
        self.events.push(json!({"ph": "i", "s": "t", "cat": category, "name": name, "pid": process, "tid": thread,
            "ts": micros(record.time_ns), "args": args}));
    }

    /// The thread's last call has left no end: synthesized code did it, or it is not finished.
    fn end_call(&mut self, tte: u16) {
        let Some(Begun { record, process, thread, slept }) = self.begun.remove(&tte) else { return };
        let by = if slept { "Rust, unfinished" } else { "synthesized code" };
        self.events.push(json!({"ph": "i", "s": "t", "cat": "call", "name": call_name(record.number), "pid": process,
            "tid": thread, "ts": micros(record.time_ns), "args": {"by": by, "rdi": record.words[0], "rsi": record.words[1]}}));
    }

    fn end_call_in_rust(&mut self, end: TraceRecord) {
        let begun = self.begun.remove(&end.tte).filter(|begun| begun.record.number == end.number);
        // The trace may have begun, or lost records, in the middle of a call.
        let Some(Begun { record, process, thread, .. }) = begun else { return };
        let lasted = micros(end.time_ns.saturating_sub(record.time_ns));
        self.events.push(json!({"ph": "X", "cat": "call", "name": call_name(record.number), "pid": process,
            "tid": thread, "ts": micros(record.time_ns), "dur": lasted,
            "args": {"by": "Rust", "rdi": record.words[0], "rsi": record.words[1], "result": end.words[0] as i64}}));
    }

    fn switch(&mut self, number: u64, record: TraceRecord) {
        if let Some(begun) = self.begun.get_mut(&record.tte) {
            begun.slept |= record.words[0] == 1;
        }
        self.end_turn(number, record.time_ns);
        self.turn = Some((record.number as u16, record.time_ns));
    }

    fn end_turn(&mut self, number: u64, now: u64) {
        let Some((tte, since)) = self.turn.take() else { return };
        let (process, thread, name) = self.thread(number, tte);
        self.events.push(json!({"ph": "X", "cat": "turn", "name": name, "pid": PROCESSOR, "tid": PROCESSOR,
            "ts": micros(since), "dur": micros(now.saturating_sub(since)), "args": {"process": process, "thread": thread}}));
    }

    fn finish(&mut self) {
        let open: Vec<u16> = self.begun.keys().copied().collect();
        open.into_iter().for_each(|tte| self.end_call(tte));
        if let Some((number, last)) = self.recorded.records.last() {
            self.end_turn(*number, last.time_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(time_ns: u64, kind: u16, tte: u16, number: u32, a: u64) -> TraceRecord {
        TraceRecord { time_ns, kind, tte, number, words: [a, 0] }
    }

    #[test]
    fn files_and_pages_are_told_with_their_place() {
        let words = |kind, number, a, b| TraceRecord { time_ns: 1000, kind, tte: 1, number, words: [a, b] };
        let records = vec![(0, words(kind::FILE_READ, 512, 77, 4096)), (1, words(kind::PAGE, 1, 0x40_2000, 0))];
        let recorded = Recorded { records, names: Vec::new(), lost: 0, next: 2 };
        let value: Value = serde_json::from_str(&json(&recorded)).unwrap();
        let events = value["traceEvents"].as_array().unwrap();
        let named = |name: &str| &events.iter().find(|event| event["name"] == name).unwrap()["args"];
        assert_eq!(named("file read"), &json!({"file": 77, "position": 4096, "bytes": 512}));
        assert_eq!(named("page written"), &json!({"address": "0x402000"}));
    }

    #[test]
    fn calls_are_spans_or_instants_and_turns_follow_each_other() {
        let records = [
            record(1000, kind::CALL, 1, 110, 0),
            record(2000, kind::CALL, 1, 0, 5),
            record(2500, kind::SWITCH, 1, 2, 1),
            record(4000, kind::SWITCH, 2, 1, 0),
            record(5000, kind::RETURN, 1, 0, 3),
        ];
        let names = vec![TraceName::Thread { from: 0, tte: 1, thread: 9, process: 9, name: b"cat".to_vec() }];
        let records = records.into_iter().enumerate().map(|(number, record)| (number as u64, record)).collect();
        let recorded = Recorded { records, names, lost: 3, next: 8 };
        let value: Value = serde_json::from_str(&json(&recorded)).unwrap();
        assert_eq!(value["otherData"], json!({"records": 5, "lost": 3}));
        let events = value["traceEvents"].as_array().unwrap();
        let named = |name: &str| events.iter().find(|event| event["name"] == name).unwrap();
        assert_eq!(named("getppid")["ph"], "i");
        assert_eq!((&named("read")["ph"], &named("read")["dur"]), (&json!("X"), &json!(3.0)));
        assert_eq!(named("read")["tid"], 9);
        let turns: Vec<_> = events.iter().filter(|event| event["cat"] == "turn").collect();
        let ends: Vec<_> =
            turns.iter().map(|turn| turn["ts"].as_f64().unwrap() + turn["dur"].as_f64().unwrap()).collect();
        assert_eq!(ends, [2.5, 4.0, 5.0]);
    }
}
