//! Servers and clients that nobody here wrote, with a machine between them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use super::inside::{Inside, PATIENCE, forward, free_port, local};
use crate::options::Options;

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
