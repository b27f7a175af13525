//! `synth trace` and `synth run --trace`: gathers records and writes them for ui.perfetto.dev.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bootimage::inspect::{Fields, TraceName, TraceRecord, opcode, trace as part};
use clap::Args;

use super::client::Client;
use super::{Which, perfetto};
use crate::failure::{Failure, TOOL};

/// How often records are fetched while the trace runs.
const FETCH_EVERY: Duration = Duration::from_millis(10);

#[derive(Args, Debug)]
pub struct TraceOptions {
    /// How long to record, for example 2s or 300ms
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time, default_value = "1s")]
    pub time: Duration,
    /// The file to write, Chrome's trace format: open it at ui.perfetto.dev
    #[arg(short, long, value_name = "FILE", default_value = "trace.json")]
    pub output: PathBuf,
    /// Records that the kernel keeps until they are fetched; older ones are lost, and counted
    #[arg(long, value_name = "N", default_value_t = 65536)]
    pub records: u32,
    /// End a trace that somebody else began
    #[arg(long)]
    pub end: bool,
    #[command(flatten)]
    pub which: Which,
    /// Record the calls of this process alone
    #[arg(value_name = "PID", default_value_t = 0)]
    pub pid: u32,
}

pub fn parse_time(text: &str) -> Result<Duration, String> {
    let (digits, unit) = match text.strip_suffix("ms") {
        Some(digits) => (digits, 0.001),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let seconds = digits.parse::<f64>().map_err(|_| "expected a time such as 2s or 300ms".to_string())?;
    match Duration::try_from_secs_f64(seconds * unit) {
        Ok(time) if !time.is_zero() && time <= Duration::from_secs(3600) => Ok(time),
        _ => Err("expected more than nothing and at most an hour".into()),
    }
}

/// What was recorded.
#[derive(Default, Debug)]
pub struct Recorded {
    /// With the number of each record: numbers are missing where records were lost.
    pub records: Vec<(u64, TraceRecord)>,
    pub names: Vec<TraceName>,
    pub lost: u64,
    /// The number of the next record.
    pub next: u64,
}

impl Recorded {
    fn lose(&mut self, lost: u64) {
        self.lost += lost;
        self.next += lost;
    }

    fn add(&mut self, record: TraceRecord) {
        self.records.push((self.next, record));
        self.next += 1;
    }

    /// Reads the records that a traced run sends at its end; what cannot be read is left out.
    pub fn of_run(pieces: &[Vec<u8>]) -> Recorded {
        let mut recorded = Recorded::default();
        for piece in pieces {
            let mut fields = Fields(piece);
            match fields.u8() {
                Some(part::LOST) => recorded.lose(fields.u64().unwrap_or(0)),
                Some(part::RECORDS) => {
                    while let Some(record) = TraceRecord::get(&mut fields) {
                        recorded.add(record);
                    }
                }
                Some(part::NAME) => recorded.names.extend(TraceName::get(&mut fields)),
                _ => {}
            }
        }
        recorded
    }
}

pub fn trace(client: &mut Client, options: &TraceOptions) -> Result<u8, Failure> {
    if options.end {
        client.ask(opcode::TRACE_END, &[])?;
        return Ok(0);
    }
    let is_over = interrupted()?;
    let recorded = gather(client, options.records, options.pid, options.time, &is_over)?;
    write(&recorded, &options.output)?;
    Ok(0)
}

/// The last records of a trace of a while, a line each: `trace [PID] [TIME]` of the monitor.
pub fn as_text(client: &mut Client, words: &[&str]) -> Result<String, Failure> {
    const SHOWN: usize = 60;
    let pid = words.iter().find_map(|word| word.parse().ok()).unwrap_or(0);
    let time =
        words.iter().find(|word| word.ends_with('s')).map_or(Ok(Duration::from_millis(100)), |word| parse_time(word));
    let time = time.map_err(|error| Failure::new(TOOL, error, ""))?;
    let recorded = gather(client, 65536, pid, time.min(Duration::from_secs(10)), &AtomicBool::new(false))?;
    let mut text = String::new();
    for (number, record) in &recorded.records[recorded.records.len().saturating_sub(SHOWN)..] {
        let what = match record.kind {
            1 | 6 => format!("call {} ({:#x}, {:#x})", abi_name(record), record.words[0], record.words[1]),
            2 => format!("return of {}: {}", abi_name(record), record.words[0] as i64),
            3 => format!("switch to thread {}{}", record.number, if record.words[0] == 1 { ", sleeps" } else { "" }),
            4 => if record.number == 0 { "timer" } else { "device" }.to_string(),
            7 | 8 => format!(
                "{} bytes {} at {} of file {}",
                record.number,
                if record.kind == 7 { "read" } else { "written" },
                record.words[1],
                record.words[0]
            ),
            9 => format!("page {:#x}", record.words[0]),
            5 => format!("born at {:#x}, {} bytes", record.words[0], record.words[1]),
            other => format!("record of kind {other}"),
        };
        text += &format!("{number:>6}  thread {:<4} {what}\n", record.tte);
    }
    Ok(text + &format!("{} records, {} lost\n", recorded.records.len(), recorded.lost))
}

fn abi_name(record: &TraceRecord) -> String {
    abi::nr::name(record.number.into()).map_or_else(|| record.number.to_string(), str::to_string)
}

/// Records for a while.
fn gather(
    client: &mut Client,
    records: u32,
    pid: u32,
    time: Duration,
    is_over: &AtomicBool,
) -> Result<Recorded, Failure> {
    if client.ask(opcode::TRACE_BEGIN, &[records.to_le_bytes(), pid.to_le_bytes()].concat())?.is_none() {
        return Err(Failure::new(TOOL, format!("there is no process {pid}"), "synth ps lists them"));
    }
    let recorded = record(client, time, is_over);
    // Whatever went wrong, the system shall not be left traced.
    let ended = client.ask(opcode::TRACE_END, &[]);
    let mut recorded = recorded?;
    ended?;
    while fetch(client, &mut recorded)? {}
    let bytes = client.ask(opcode::TRACE_NAMES, &[])?.unwrap_or_default();
    recorded.names = client.items(&bytes, TraceName::get)?;
    // The kernel need not keep the records.
    client.ask(opcode::TRACE_END, &[])?;
    Ok(recorded)
}

/// Set when the user wants no more.
pub fn interrupted() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, flag.clone())
            .map_err(|error| Failure::new(TOOL, format!("cannot watch for signals: {error}"), ""))?;
    }
    Ok(flag)
}

fn record(client: &mut Client, time: Duration, is_over: &AtomicBool) -> Result<Recorded, Failure> {
    let mut recorded = Recorded::default();
    let end = Instant::now() + time;
    while Instant::now() < end && !is_over.load(Ordering::Relaxed) {
        if !fetch(client, &mut recorded)? {
            sleep(FETCH_EVERY.min(end.saturating_duration_since(Instant::now())));
        }
    }
    Ok(recorded)
}

/// Fetches a page of records; whether there may be more. Asking makes records, too, so a page that is not full is the last.
fn fetch(client: &mut Client, recorded: &mut Recorded) -> Result<bool, Failure> {
    let Some((_, page)) = client.page(opcode::TRACE_READ, recorded.next, &[])? else { return Ok(false) };
    let mut fields = Fields(&page);
    recorded.lose(fields.u64().unwrap_or(0));
    let before = recorded.records.len();
    while let Some(record) = TraceRecord::get(&mut fields) {
        recorded.add(record);
    }
    Ok(recorded.records.len() - before > 300)
}

/// Everything that a traced run has recorded until now, as far as it was not overwritten.
pub fn all_so_far(client: &mut Client) -> Result<Recorded, Failure> {
    // A busy system makes records faster than they are fetched.
    const LONGEST: Duration = Duration::from_secs(2);
    let end = Instant::now() + LONGEST;
    let mut recorded = Recorded::default();
    while fetch(client, &mut recorded)? && Instant::now() < end {}
    let bytes = client.ask(opcode::TRACE_NAMES, &[])?.unwrap_or_default();
    recorded.names = client.items(&bytes, TraceName::get)?;
    Ok(recorded)
}

pub fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(TOOL, format!("cannot write {}: {error}", path.display()), "")
}

/// Writes what was recorded, and says what it is.
pub fn write(recorded: &Recorded, path: &Path) -> Result<(), Failure> {
    std::fs::write(path, perfetto::json(recorded)).map_err(|error| unwritable(path, &error))?;
    let lost = match recorded.lost {
        0 => String::new(),
        lost => format!("; {lost} older ones were overwritten before they could be fetched"),
    };
    eprintln!("synth: {} records in {}{lost}", recorded.records.len(), path.display());
    Ok(())
}

/// Counts calls, by name, while it is asked often enough.
pub struct Counter {
    pub calls: std::collections::BTreeMap<String, u64>,
    recorded: Recorded,
}

impl Counter {
    /// Begins a trace.
    pub fn begin(client: &mut Client) -> Result<Counter, Failure> {
        client.ask(opcode::TRACE_BEGIN, &[65536u32.to_le_bytes(), [0; 4]].concat())?;
        Ok(Counter { calls: Default::default(), recorded: Recorded::default() })
    }

    /// Counts what has happened since; whether there may be more.
    pub fn count(&mut self, client: &mut Client) -> Result<bool, Failure> {
        let more = fetch(client, &mut self.recorded)?;
        for (_, record) in self.recorded.records.drain(..) {
            if let Some(name) = perfetto::call_of(&record) {
                *self.calls.entry(name).or_default() += 1;
            }
        }
        Ok(more)
    }
}
