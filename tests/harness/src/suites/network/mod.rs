//! The machine's network: programs inside serve clients on the host, by ports that are led inside, and are clients of servers there.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

mod inside;
mod programs;

use inside::{INSIDE, Inside, PATIENCE, expect, forward, free_port, local};

use super::streams::tool_is_there;
use crate::options::Options;
use crate::programs::{Linking, compile};
use crate::report::Tally;

type Check = fn(&Options, &Path) -> Result<(), String>;

const CHECKS: &[(&str, Check)] = &[
    ("a_server_inside_answers_clients_outside", |options, program| many_clients(options, program, 30, 1)),
    ("hundreds_of_connections_are_open_at_once", |options, program| many_clients(options, program, 400, 400)),
    ("megabytes_come_back", megabytes_come_back),
    ("datagrams_are_answered", datagrams_are_answered),
    ("a_client_inside_fetches_from_outside", fetches),
    ("a_client_inside_puts_outside", puts),
    ("who_does_not_listen_outside_refuses", refuses),
    ("without_a_network_nobody_is_reached", no_network),
    ("frames_are_written_down", frames_are_written_down),
    ("frames_say_what_options_say", frames_say_what_options_say),
    ("options_that_nobody_does_are_refused", options_are_refused),
    ("python_serves_files", programs::python_serves),
    ("redis_serves_the_host", programs::redis_serves),
    ("redis_and_its_clients_inside", programs::redis_inside),
    ("nginx_serves_files", programs::nginx_serves),
    ("memcached_serves_the_host", programs::memcached_serves),
    ("iperf_measures_both_ways", programs::iperf_measures),
    ("curl_and_wget_fetch", programs::clients_fetch),
];

/// The host, as programs inside see it.
const OUTSIDE: &str = "10.0.2.2";

/// Runs the suite; a machine without a wire has none.
///
/// # Errors
/// A sentence when the tool is not there or the program cannot be built.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    if options.is_hosted() {
        return Ok(());
    }
    let chosen = CHECKS.iter().filter(|(name, _)| options.selects(&format!("network/{name}")));
    if chosen.clone().next().is_none() {
        return Ok(());
    }
    tool_is_there(options)?;
    let source = options.repo.join("tests/programs/served.c");
    let program = compile(options, &source, "served", Linking::Static, &["-O", "-Wall"])?;
    for (name, check) in chosen {
        tally.record(&format!("network/{name}"), check(options, &program));
    }
    Ok(())
}

fn byte_at(place: usize) -> u8 {
    ((place as u32).wrapping_mul(2_654_435_761) >> 13) as u8 ^ place as u8
}

/// A connection over which one byte has come back.
fn connection(port: u16) -> Result<TcpStream, String> {
    let opened = TcpStream::connect_timeout(&local(port), PATIENCE).and_then(|mut stream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        stream.write_all(b"?")?;
        stream.read_exact(&mut [0])?;
        Ok(stream)
    });
    opened.map_err(|error| format!("nobody answers at port {port}: {error}"))
}

/// A machine that serves at a port of the host, with our program.
fn serve(options: &Options, program: &Path, port: u16, protocol: &str, words: &[&str]) -> Result<Inside, String> {
    Inside::serve(options, &["-p", &forward(port, protocol)], program, words, "listening")
}

/// So many connections, of which so many are open at once; each says something of its own.
fn many_clients(options: &Options, program: &Path, count: usize, open: usize) -> Result<(), String> {
    let port = free_port()?;
    let words = ["echo", &INSIDE.to_string(), &count.to_string()];
    let inside = serve(options, program, port, "", &words)?;
    let failed = |error: std::io::Error| error.to_string();
    for first in (0..count).step_by(open) {
        let mut streams = Vec::new();
        for _ in first..first + open {
            streams.push(connection(port)?);
        }
        for (number, stream) in streams.iter_mut().enumerate() {
            stream.write_all(format!("connection {}", first + number).as_bytes()).map_err(failed)?;
        }
        for (number, stream) in streams.iter_mut().enumerate() {
            let expected = format!("connection {}", first + number);
            let mut came = vec![0; expected.len()];
            stream.read_exact(&mut came).map_err(failed)?;
            expect("a connection", &String::from_utf8_lossy(&came), &expected)?;
        }
    }
    let printed = inside.end()?.replace('\r', "");
    // One that ends may still be there when the next one begins.
    let is_right = printed.starts_with(&format!("listening\nserved {count}, "))
        && (open < count || printed.contains(&format!(", {count} at once")));
    if is_right { Ok(()) } else { Err(format!("printed {printed:?}")) }
}

fn megabytes_come_back(options: &Options, program: &Path) -> Result<(), String> {
    const BYTES: usize = 6_000_000;
    let port = free_port()?;
    let words = ["echo", &INSIDE.to_string(), "1"];
    let inside = serve(options, program, port, "", &words)?;
    let mut stream = connection(port)?;
    let mut writer = stream.try_clone().map_err(|error| error.to_string())?;
    let sender = std::thread::spawn(move || {
        let bytes: Vec<u8> = (0..BYTES).map(byte_at).collect();
        writer.write_all(&bytes).and_then(|()| writer.shutdown(Shutdown::Write))
    });
    let mut came = Vec::new();
    stream.read_to_end(&mut came).map_err(|error| error.to_string())?;
    sender.join().map_err(|_| "the sender ended".to_string())?.map_err(|error| error.to_string())?;
    let wrong = came.iter().enumerate().position(|(place, byte)| *byte != byte_at(place));
    if let Some(place) = wrong {
        return Err(format!("a wrong byte at {place}"));
    }
    if came.len() != BYTES {
        return Err(format!("{} bytes came back of {BYTES}", came.len()));
    }
    inside.end().map(|_| ())
}

fn datagrams_are_answered(options: &Options, program: &Path) -> Result<(), String> {
    const COUNT: usize = 50;
    let port = free_port()?;
    let inside = serve(options, program, port, "/udp", &["datagrams", &INSIDE.to_string(), &COUNT.to_string()])?;
    let failed = |error: std::io::Error| error.to_string();
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    socket.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    for answered in 0..COUNT {
        let sent: Vec<u8> = (0..answered * 20 + 1).map(byte_at).collect();
        socket.send_to(&sent, local(port)).map_err(failed)?;
        let mut came = [0; 2048];
        let count = socket.recv(&mut came).map_err(|error| format!("{answered} came back: {error}"))?;
        if came[..count] != sent {
            return Err(format!("{count} bytes came back of {}", sent.len()));
        }
    }
    expect("the server", &inside.end()?.replace('\r', ""), &format!("listening\nanswered {COUNT}"))
}

/// A server on the host that does something with one connection.
fn server<R: Send + 'static>(
    act: impl FnOnce(TcpStream) -> std::io::Result<R> + Send + 'static,
) -> Result<(u16, std::thread::JoinHandle<Result<R, String>>), String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    listener.set_nonblocking(true).map_err(|error| error.to_string())?;
    let thread = std::thread::spawn(move || {
        let until = Instant::now() + PATIENCE;
        let stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
                Err(error) => return Err(format!("nobody came: {error}")),
            }
        };
        let prepared = stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(PATIENCE)));
        prepared.and_then(|()| act(stream)).map_err(|error| error.to_string())
    });
    Ok((port, thread))
}

fn fetches(options: &Options, program: &Path) -> Result<(), String> {
    const BYTES: usize = 20_000_000;
    let (port, thread) = server(|mut stream| {
        let bytes: Vec<u8> = (0..BYTES).map(byte_at).collect();
        stream.write_all(&bytes)
    })?;
    let printed = Inside::start(options, &[], program, &["fetch", OUTSIDE, &port.to_string()])?.end()?;
    thread.join().map_err(|_| "the server ended".to_string())??;
    expect("the client", &printed, &format!("fetched {BYTES}"))
}

fn puts(options: &Options, program: &Path) -> Result<(), String> {
    const BYTES: usize = 10_000_000;
    let (port, thread) = server(|mut stream| {
        let mut came = Vec::new();
        stream.read_to_end(&mut came)?;
        stream.write_all(b"thanks")?;
        Ok(came)
    })?;
    let words = ["put", OUTSIDE, &port.to_string(), &BYTES.to_string()];
    let printed = Inside::start(options, &[], program, &words)?.end()?;
    let came = thread.join().map_err(|_| "the server ended".to_string())??;
    if came.len() != BYTES || came.iter().enumerate().any(|(place, byte)| *byte != byte_at(place)) {
        return Err(format!("{} bytes came, or wrong ones", came.len()));
    }
    expect("the client", &printed, &format!("put {BYTES}: thanks"))
}

fn refuses(options: &Options, program: &Path) -> Result<(), String> {
    let port = free_port()?;
    let printed = Inside::start(options, &[], program, &["refused", OUTSIDE, &port.to_string()])?.end()?;
    expect("the client", &printed, "connect(client, (void *)&to, sizeof to) -> ECONNREFUSED")
}

fn no_network(options: &Options, program: &Path) -> Result<(), String> {
    let printed = Inside::start(options, &["--net", "none"], program, &["refused", OUTSIDE, "80"])?.end()?;
    expect("the client", &printed, "connect(client, (void *)&to, sizeof to) -> ENETUNREACH")
}

/// Frames that a run with the program leaves on the wire.
fn frames_of(options: &Options, program: &Path, words: &[&str]) -> Result<(String, Vec<Vec<u8>>), String> {
    const HEADER: usize = 24;
    const RECORD: usize = 16;
    let file: PathBuf = options.scratch.join(format!("frames-{}.pcap", std::process::id()));
    let name = file.to_string_lossy().into_owned();
    let printed = Inside::start(options, &["--pcap", &name], program, words)?.end();
    let capture = std::fs::read(&file).map_err(|error| error.to_string());
    let _ = std::fs::remove_file(&file);
    let (printed, capture) = (printed?, capture?);
    if !capture.starts_with(&0xA1B2_C3D4_u32.to_le_bytes()) {
        return Err(format!("{} bytes that are no capture", capture.len()));
    }
    let mut rest = capture.get(HEADER..).unwrap_or(&[]);
    let mut frames = Vec::new();
    while let Some(record) = rest.get(..RECORD) {
        let bytes = u32::from_le_bytes([record[8], record[9], record[10], record[11]]) as usize;
        frames.push(rest.get(RECORD..RECORD + bytes).ok_or("a capture that ends early")?.to_vec());
        rest = &rest[RECORD + bytes..];
    }
    Ok((printed, frames))
}

fn frames_are_written_down(options: &Options, program: &Path) -> Result<(), String> {
    let (port, thread) = server(|mut stream| stream.write_all(&[byte_at(0)]))?;
    let (printed, frames) = frames_of(options, program, &["fetch", OUTSIDE, &port.to_string()])?;
    expect("the client", &printed, "fetched 1")?;
    thread.join().map_err(|_| "the server ended".to_string())??;
    if frames.len() > 5 { Ok(()) } else { Err(format!("{} frames", frames.len())) }
}

/// Hops and kind of service stand in each packet; what was corked is one segment.
fn frames_say_what_options_say(options: &Options, program: &Path) -> Result<(), String> {
    const TCP: u8 = 6;
    let (port, thread) = server(|mut stream| {
        let mut came = Vec::new();
        stream.read_to_end(&mut came)?;
        stream.write_all(b"thanks")?;
        Ok(came)
    })?;
    let (printed, frames) = frames_of(options, program, &["marked", OUTSIDE, &port.to_string()])?;
    expect("the client", &printed, "marked: thanks")?;
    let came = thread.join().map_err(|_| "the server ended".to_string())??;
    if came != b"ten bytes.".repeat(10) {
        return Err(format!("{} bytes came", came.len()));
    }
    let own = frames.iter().filter(|frame| frame.len() > 54 - 1 && frame[12..14] == [8, 0] && frame[23] == TCP);
    let own: Vec<&Vec<u8>> = own.filter(|frame| frame[26..30] == [10, 0, 2, 15]).collect();
    let marks: Vec<[u8; 2]> = own.iter().map(|frame| [frame[22], frame[15]]).collect();
    if marks.is_empty() || marks.iter().any(|mark| *mark != [33, 0x48]) {
        return Err(format!("hops and kinds of service {marks:?}"));
    }
    let payload =
        |frame: &[u8]| usize::from(u16::from_be_bytes([frame[16], frame[17]])) - 20 - usize::from(frame[46] >> 4) * 4;
    let with_bytes: Vec<usize> = own.iter().map(|frame| payload(frame)).filter(|bytes| *bytes > 0).collect();
    if with_bytes == [100] { Ok(()) } else { Err(format!("segments of {with_bytes:?} bytes")) }
}

fn options_are_refused(options: &Options, program: &Path) -> Result<(), String> {
    let printed = Inside::start(options, &[], program, &["options"])?.end()?;
    let lines: Vec<&str> = printed.lines().map(str::trim_end).collect();
    let wrong = lines.iter().find(|line| !line.contains(": ENOPROTOOPT, off: "));
    match wrong {
        None if lines.len() == 10 => Ok(()),
        _ => Err(printed),
    }
}
