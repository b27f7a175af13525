//! The map that `perf report` reads for code in memory without a file: a line `START SIZE NAME` per routine, in
//! hexadecimal (Linux, tools/perf/Documentation/jit-interface.txt).
//!
//! Lines are only added. An address that was used again has several; perf takes one of them.

use core::ffi::CStr;
use core::fmt::{self, Write};

use crate::host::{self, HostError};

pub struct PerfMap {
    fd: i32,
    path: Line,
}

/// A line, or a path.
struct Line {
    bytes: [u8; 128],
    used: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.used + text.len();
        self.bytes.get_mut(self.used..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.used = end;
        Ok(())
    }
}

impl Line {
    const fn new() -> Line {
        Line { bytes: [0; 128], used: 0 }
    }

    fn as_path(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }
}

fn path_of(process: i32) -> Line {
    let mut path = Line::new();
    let _ = write!(path, "/tmp/perf-{process}.map\0");
    path
}

impl PerfMap {
    /// The file of this process. One that an earlier process of the same number left goes.
    pub fn create() -> Result<PerfMap, HostError> {
        let path = path_of(host::process_id());
        host::unlink(path.as_path());
        host::create(path.as_path()).map(|fd| PerfMap { fd, path })
    }

    /// Another process has the same code: the file gets a second name.
    pub fn share_with(&self, process: i32) {
        let path = path_of(process);
        host::unlink(path.as_path());
        host::link(self.path.as_path(), path.as_path());
    }

    pub fn add(&self, name: &str, address: u64, bytes: u64) {
        let mut line = Line::new();
        if writeln!(line, "{address:x} {bytes:x} {name}").is_ok() {
            // A full disk takes names from a report, nothing else.
            let _ = host::write(self.fd, &line.bytes[..line.used]);
        }
    }
}
