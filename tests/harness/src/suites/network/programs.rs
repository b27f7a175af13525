//! Servers and clients that nobody here wrote, with a machine between them.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::OUTSIDE;
use super::inside::{INSIDE, Inside, PATIENCE, expect, forward, free_port, local};
use crate::options::Options;
use crate::process::{self, Outcome};

const SHELL: &str = "/bin/sh";
/// Everything that is installed on the host is there.
const HOST_ROOT: [&str; 2] = ["--root", "host"];

/// Where a program is on the host; a test of one that is not there is left out.
fn found(name: &str) -> Option<PathBuf> {
    ["/usr/bin", "/usr/sbin", "/bin"].iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
}

fn run_outside(program: &Path, words: &[&str]) -> Result<Outcome, String> {
    let mut command = Command::new(program);
    command.args(words);
    process::run(command, Vec::new(), PATIENCE)
}

/// A script prints the same inside as on the host.
fn same_on_both(options: &Options, script: &str) -> Result<(), String> {
    let port = free_port()?.to_string();
    let words = ["-c", script, "script", &port];
    compare(options, &words, &words)
}

/// The shell prints the same inside as on the host, which prints something.
fn compare(options: &Options, words_outside: &[&str], words_inside: &[&str]) -> Result<(), String> {
    const LEAST_LINES: usize = 5;
    let outside = run_outside(Path::new(SHELL), words_outside)?;
    let expected = String::from_utf8_lossy(&outside.stdout);
    if expected.lines().count() < LEAST_LINES {
        return Err(format!("the host itself printed {expected:?}"));
    }
    let inside = Inside::start(options, &HOST_ROOT, Path::new(SHELL), words_inside)?.end()?;
    expect("inside", &inside.replace('\r', ""), expected.trim())
}

/// A server and its clients on one machine: small and large values, many in one go, its own measurement.
pub fn redis_inside(options: &Options, _: &Path) -> Result<(), String> {
    let needed = ["redis-server", "redis-cli", "redis-benchmark"];
    if needed.iter().any(|name| found(name).is_none()) {
        return Ok(());
    }
    same_on_both(
        options,
        "redis-server --port $1 --save '' --daemonize no > /dev/null & n=0; r() { redis-cli -p $port \"$@\"; }; port=$1\n\
         until r ping 2> /dev/null; do n=$((n + 1)); [ $n -lt 400 ] || break; sleep 0.05; done | tail -n 1\n\
         r set key value; r get key; r incrby n 41; r incr n; seq 300 | sed 's/^/rpush list /' | r | tail -n 1\n\
         r lrange list 0 -1 | sha256sum; head -c 3000000 /dev/zero | tr '\\0' x | r -x set big; r strlen big\n\
         r get big | sha256sum; printf 'multi\\nincr n\\nincr n\\nexec\\n' | r | tail -n 2; r get nothing; r nonsense\n\
         redis-benchmark -p $1 -n 600 -c 20 -t set,get,lpush,lrange_100 -q | tr '\\r' '\\n' | grep -c 'requests per second'\n\
         redis-benchmark -p $1 -n 600 -c 5 -P 16 -d 2000 -t set,get -q | tr '\\r' '\\n' | grep -c 'requests per second'\n\
         r shutdown nosave; wait; r ping 2>&1 | sed 's/[0-9]*: /: /'",
    )
}

/// The server inside, its clients on the host.
pub fn redis_serves(options: &Options, _: &Path) -> Result<(), String> {
    let (Some(server), Some(client), Some(benchmark)) =
        (found("redis-server"), found("redis-cli"), found("redis-benchmark"))
    else {
        return Ok(());
    };
    let (port, own) = (free_port()?, INSIDE.to_string());
    let before = [HOST_ROOT[0], HOST_ROOT[1], "-p", &forward(port, "")];
    let words = ["--port", &own, "--save", "", "--protected-mode", "no"];
    let inside = Inside::serve(options, &before, &server, &words, "Ready to accept")?;
    let port = port.to_string();
    let big = "y".repeat(100_000);
    for (asked, expected) in [
        (["set", "key", "value"].as_slice(), "OK"),
        (&["get", "key"], "value"),
        (&["set", "big", &big], "OK"),
        (&["get", "big"], &big),
    ] {
        let answer = run_outside(&client, &[&["-p", &port], asked].concat())?;
        expect(asked[0], &String::from_utf8_lossy(&answer.stdout), expected)?;
    }
    // No more clients than knock one after the other: QEMU's end of a port takes two at a time.
    let words = ["-p", &port, "-n", "400", "-c", "2", "-t", "set,get,lpush", "--csv"];
    let measured = run_outside(&benchmark, &words)?;
    let rows = String::from_utf8_lossy(&measured.stdout).lines().filter(|line| line.starts_with('"')).count();
    run_outside(&client, &["-p", &port, "shutdown", "nosave"])?;
    inside.end()?;
    if measured.status == 0 && rows >= 3 { Ok(()) } else { Err(format!("{rows} rows of the measurement")) }
}

/// Two workers that share the port, with a cork around what they send from files.
pub fn nginx_serves(options: &Options, _: &Path) -> Result<(), String> {
    let library = Path::new("/usr/lib/python3.11");
    let Some(nginx) = found("nginx").filter(|_| library.is_dir()) else { return Ok(()) };
    let folder = options.scratch.join(format!("nginx-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let settings = "daemon off; worker_processes 2; error_log stderr notice; pid /tmp/pid; events { }\n\
                    http { access_log off; sendfile on; tcp_nopush on; keepalive_timeout 30;\n\
                    client_body_temp_path /tmp/1; proxy_temp_path /tmp/2; fastcgi_temp_path /tmp/3;\n\
                    uwsgi_temp_path /tmp/4; scgi_temp_path /tmp/5;\n\
                    server { listen 7000 reuseport; root /usr/lib/python3.11; } }\n";
    let port = free_port()?;
    let shared = format!("{}:/settings:ro", folder.display());
    let before = [HOST_ROOT[0], HOST_ROOT[1], "-v", &shared, "-p", &forward(port, "")];
    let written = std::fs::write(folder.join("nginx.conf"), settings).map_err(|error| error.to_string());
    let served = written.and_then(|()| {
        let words = ["-c", "/settings/nginx.conf"];
        let inside = Inside::serve(options, &before, &nginx, &words, "start worker process 3")?;
        let checked = ask_nginx(port, library);
        inside.stop();
        checked
    });
    let _ = std::fs::remove_dir_all(&folder);
    served
}

fn ask_nginx(port: u16, library: &Path) -> Result<(), String> {
    let until = Instant::now() + PATIENCE;
    for number in 0..12 {
        let name = ["ast.py", "os.py", "pydoc.py"][number % 3];
        let body = loop {
            match get(port, name) {
                // A worker may have to come still.
                Ok(body) if body.is_empty() && Instant::now() < until => {}
                other => break other.map_err(|error| format!("{name}: {error}"))?,
            }
        };
        if body != std::fs::read(library.join(name)).map_err(|error| error.to_string())? {
            return Err(format!("{name}: {} other bytes", body.len()));
        }
    }
    // Several on one connection.
    let asked = TcpStream::connect_timeout(&local(port), PATIENCE).and_then(|mut stream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        for name in ["os.py", "nosuch", "os.py"] {
            stream.write_all(format!("HEAD /{name} HTTP/1.1\r\nHost: here\r\n\r\n").as_bytes())?;
        }
        stream.write_all(b"GET /os.py HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    });
    let answer = asked.map_err(|error| format!("several on one connection: {error}"))?;
    let states: Vec<&str> = answer.lines().filter_map(|line| line.strip_prefix("HTTP/1.1 ")).collect();
    expect("the answers", &states.join(", "), "200 OK, 404 Not Found, 200 OK, 200 OK")
}

/// Its answers by the text protocol, from the host.
pub fn memcached_serves(options: &Options, _: &Path) -> Result<(), String> {
    let Some(memcached) = found("memcached") else { return Ok(()) };
    let port = free_port()?;
    let before = [HOST_ROOT[0], HOST_ROOT[1], "-p", &forward(port, "")];
    let words = ["-u", "root", "-l", "0.0.0.0", "-p", &INSIDE.to_string(), "-v", "-v"];
    let inside = Inside::serve(options, &before, &memcached, &words, "server listening")?;
    let asked = TcpStream::connect_timeout(&local(port), PATIENCE).and_then(|mut stream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(b"set a 0 0 5\r\nhello\r\nget a\r\nincr a 1\r\ndelete a\r\nget a\r\nquit\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    });
    inside.stop();
    let answer = asked.map_err(|error| error.to_string())?;
    let expected =
        "STORED VALUE a 0 5 hello END CLIENT_ERROR cannot increment or decrement non-numeric value DELETED END";
    expect("memcached", &answer.split_whitespace().collect::<Vec<_>>().join(" "), expected)
}

/// Bytes both ways, by the program that measures them; then the same with the server inside.
pub fn iperf_measures(options: &Options, _: &Path) -> Result<(), String> {
    const DONE: &str = "iperf Done.";
    let Some(iperf) = found("iperf3") else { return Ok(()) };
    for way in ["--reverse", "--zerocopy"] {
        let port = free_port()?.to_string();
        let mut server = Command::new(&iperf);
        server.args(["-s", "-1", "-p", &port]);
        let server = std::thread::spawn(move || process::run(server, Vec::new(), PATIENCE));
        // Until it listens.
        let until = Instant::now() + PATIENCE;
        while !listens(&port) && Instant::now() < until {
            std::thread::yield_now();
        }
        let words = ["-c", OUTSIDE, "-p", &port, "-n", "8M", way];
        let printed = Inside::start(options, &HOST_ROOT, &iperf, &words)?.end()?;
        let served = server.join().map_err(|_| "the server ended".to_string())??;
        if !printed.contains(DONE) || served.status != 0 {
            return Err(format!("{way}: {printed}"));
        }
    }
    let port = free_port()?;
    let before = [HOST_ROOT[0], HOST_ROOT[1], "-p", &forward(port, "")];
    let words = ["-s", "-1", "-p", &INSIDE.to_string(), "--forceflush"];
    let inside = Inside::serve(options, &before, &iperf, &words, "Server listening")?;
    let measured = run_outside(&iperf, &["-c", "127.0.0.1", "-p", &port.to_string(), "-n", "8M"])?;
    inside.end()?;
    expect("the client", String::from_utf8_lossy(&measured.stdout).lines().last().unwrap_or(""), DONE)
}

/// Whether somebody listens at a port of the host's, without knocking there.
fn listens(port: &str) -> bool {
    let number = port.parse::<u16>().unwrap_or(0);
    let wanted = format!(":{number:04X} ");
    let listens = |file: &str| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.lines().any(|line| line.contains(&wanted) && line.contains(" 0A "))
    };
    listens("/proc/net/tcp") || listens("/proc/net/tcp6")
}

/// What the host serves comes whole, by programs inside; what it does not is said as on the host.
pub fn clients_fetch(options: &Options, _: &Path) -> Result<(), String> {
    const BYTES: usize = 5_000_000;
    let (Some(curl), Some(wget)) = (found("curl"), found("wget")) else { return Ok(()) };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // A client that goes is its own affair.
            let _ = answer(&mut stream, BYTES);
        }
    });
    let nobody = free_port()?;
    let script = |host: &str| {
        format!(
            "{curl} -s http://{host}:{port}/big | sha256sum; {wget} -q -O - http://{host}:{port}/big | sha256sum\n\
             {curl} -s -T /usr/bin/env http://{host}:{port}/put | sha256sum; {curl} -s http://{host}:{nobody}/; echo $?\n\
             {wget} -q -t 1 http://{host}:{nobody}/; echo $?",
            curl = curl.display(),
            wget = wget.display()
        )
    };
    compare(options, &["-c", &script("127.0.0.1")], &["-c", &script(OUTSIDE)])
}

/// Answers one request: with so many bytes, or with those that it was given.
fn answer(stream: &mut TcpStream, bytes: usize) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut asked = Vec::new();
    while !asked.windows(4).any(|four| four == b"\r\n\r\n") {
        let mut part = [0; 4096];
        let count = stream.read(&mut part)?;
        if count == 0 {
            return Ok(());
        }
        asked.extend_from_slice(&part[..count]);
    }
    let end = asked.windows(4).position(|four| four == b"\r\n\r\n").map_or(asked.len(), |at| at + 4);
    let mut given = asked.split_off(end);
    let head = String::from_utf8_lossy(&asked).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
    if head.contains("expect: 100-continue") {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    if let Some(rest) = length.and_then(|length| length.checked_sub(given.len())) {
        let start = given.len();
        given.resize(start + rest, 0);
        stream.read_exact(&mut given[start..])?;
    }
    let body = if given.is_empty() { (0..bytes).map(super::byte_at).collect() } else { given };
    stream.write_all(
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len()).as_bytes(),
    )?;
    stream.write_all(&body)
}

/// Files come as they are from Python's server.
pub fn python_serves(options: &Options, _: &Path) -> Result<(), String> {
    const COUNT: usize = 6;
    let (python, library) = (Path::new("/usr/bin/python3"), Path::new("/usr/lib/python3.11"));
    if !python.is_file() || !library.is_dir() {
        return Ok(());
    }
    let port = free_port()?;
    let script = "import http.server, functools, sys; h = functools.partial(http.server.SimpleHTTPRequestHandler, \
                  directory='/usr/lib/python3.11'); s = http.server.ThreadingHTTPServer(('', 7000), h)\n\
                  print('listening', flush=True)\n\
                  s.timeout = 60; s.daemon_threads = False\n\
                  for _ in range(6): s.handle_request()\ns.server_close()";
    let before = ["-v", "/usr:/usr:ro", "-p", &forward(port, "")];
    let inside = Inside::serve(options, &before, python, &["-c", script], "listening")?;
    for number in 0..COUNT {
        let name = ["ast.py", "os.py", "pydoc.py"][number % 3];
        let body = get(port, name).map_err(|error| format!("{name}: {error}"))?;
        if body != std::fs::read(library.join(name)).map_err(|error| error.to_string())? {
            return Err(format!("{name}: {} other bytes", body.len()));
        }
    }
    inside.end().map(|_| ())
}

/// What a server says to a question by HTTP 1.0, without its header.
fn get(port: u16, name: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&local(port), PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("GET /{name} HTTP/1.0\r\n\r\n").as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
    Ok(answer.split_off(end))
}
