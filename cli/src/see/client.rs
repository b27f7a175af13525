//! The side of the commands: finds the running system and asks it.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use bootimage::inspect::{Fields, HEAD_BYTES, Head, opcode, status};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::failure::{Failure, TOOL, UNAVAILABLE};

/// How long a system may think about one request.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to one running system.
pub struct Client {
    stream: UnixStream,
    /// The tool that runs it.
    pub pid: u32,
}

impl Client {
    /// Connects to the system that tool `of` runs, or to the only one.
    ///
    /// # Errors
    /// None runs, several run, or it does not answer.
    pub fn connect(of: Option<u32>) -> Result<Client, Failure> {
        let folder = super::folder();
        let client = match of {
            Some(pid) => match connect(&folder, pid) {
                Some(stream) => Client { stream, pid },
                None => return Err(nobody(format!("process {pid} runs no system that can be asked"))),
            },
            None => only(running(&folder))?,
        };
        let timeout = Some(PATIENCE);
        client.stream.set_read_timeout(timeout).map_err(|error| client.lost(&error))?;
        let mut client = client;
        client.ask(opcode::HELLO, &[])?;
        Ok(client)
    }

    /// All items of the answer; `None` when what is asked for is not there.
    pub fn ask(&mut self, opcode: u16, arguments: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        let (mut items, mut cursor) = (Vec::new(), 0);
        loop {
            let Some((next, page)) = self.page(opcode, cursor, arguments)? else { return Ok(None) };
            items.extend(page);
            if next == 0 {
                return Ok(Some(items));
            }
            cursor = next;
        }
    }

    /// One page of an answer, and where the next one begins.
    pub fn page(&mut self, opcode: u16, cursor: u64, arguments: &[u8]) -> Result<Option<(u64, Vec<u8>)>, Failure> {
        let answer = self.exchange(opcode, cursor, arguments).map_err(|error| self.lost(&error))?;
        let (head, items) = Head::split(&answer).ok_or_else(|| self.nonsense())?;
        match head.what {
            status::DONE => Ok(Some((head.cursor, items.to_vec()))),
            status::ABSENT => Ok(None),
            status::NO_MEMORY => Err(Failure::new(UNAVAILABLE, "the system has no memory for an answer", "")),
            status::BUSY => Err(Failure::new(UNAVAILABLE, "somebody else does this already", "wait for its end")),
            status::UNKNOWN if opcode == bootimage::inspect::opcode::MONITOR => Err(Failure::new(
                UNAVAILABLE,
                "the system has no monitor",
                "start it with `synth run --monitor`, or let `synth monitor --own` boot one",
            )),
            status::UNKNOWN => Err(Failure::new(
                UNAVAILABLE,
                format!("the system does not know question {opcode}"),
                "its kernel is older than this tool: build both again",
            )),
            other => Err(Failure::new(TOOL, format!("the system refused question {opcode} with status {other}"), "")),
        }
    }

    /// A request as it is, and its answer as it is.
    fn exchange(&mut self, opcode: u16, cursor: u64, arguments: &[u8]) -> io::Result<Vec<u8>> {
        let mut request = vec![0; 4];
        Head { number: 0, what: opcode, cursor }.put(&mut request);
        request.extend_from_slice(arguments);
        let length = (request.len() - 4) as u32;
        request[..4].copy_from_slice(&length.to_le_bytes());
        self.stream.write_all(&request)?;
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        if !(HEAD_BYTES..=1 << 20).contains(&length) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer)?;
        Ok(answer)
    }

    fn lost(&self, error: &io::Error) -> Failure {
        let pid = self.pid;
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                Failure::new(UNAVAILABLE, format!("the system of process {pid} does not answer"), "")
            }
            _ => Failure::new(UNAVAILABLE, format!("the system of process {pid} has ended"), ""),
        }
    }

    fn nonsense(&self) -> Failure {
        Failure::new(TOOL, format!("the system of process {} gave an answer that cannot be read", self.pid), "")
    }

    /// Reads items one after the other.
    pub fn items<T>(&self, bytes: &[u8], get: impl Fn(&mut Fields<'_>) -> Option<T>) -> Result<Vec<T>, Failure> {
        let mut fields = Fields(bytes);
        let mut items = Vec::new();
        while !fields.is_empty() {
            items.push(get(&mut fields).ok_or_else(|| self.nonsense())?);
        }
        Ok(items)
    }
}

fn connect(folder: &Path, pid: u32) -> Option<UnixStream> {
    let path = folder.join(pid.to_string());
    match UnixStream::connect(&path) {
        Ok(stream) => Some(stream),
        Err(error) => {
            // A tool that was killed leaves its socket behind. One that lives is about to listen there.
            if error.kind() == io::ErrorKind::ConnectionRefused && !is_alive(pid) {
                let _ = fs::remove_file(&path);
            }
            None
        }
    }
}

fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    // Somebody else's process may not be signalled, but is there.
    pid.is_some_and(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

fn running(folder: &Path) -> Vec<Client> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse().ok());
    pids.filter_map(|pid: u32| Some(Client { stream: connect(folder, pid)?, pid })).collect()
}

fn only(mut running: Vec<Client>) -> Result<Client, Failure> {
    match running.len() {
        0 => Err(nobody("no system runs that can be asked")),
        1 => Ok(running.remove(0)),
        _ => {
            let list: String =
                running.iter().map(|client| format!("\n  {:>7}  {}", client.pid, words_of(client.pid))).collect();
            Err(Failure::new(
                TOOL,
                format!("several systems run:{list}"),
                format!("choose one: --of {}", running[0].pid),
            ))
        }
    }
}

/// What the tool of a system was started with, behind its own name.
fn words_of(pid: u32) -> String {
    const SHOWN: usize = 70;
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = line.split(|byte| *byte == 0).skip(1).map(String::from_utf8_lossy).collect();
    let visible = |letter: char| if letter.is_control() { ' ' } else { letter };
    words.join(" ").trim_end().chars().map(visible).take(SHOWN).collect()
}

fn nobody(error: impl Into<String>) -> Failure {
    Failure::new(UNAVAILABLE, error, "start one: synth boot, or synth run PROGRAM")
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, socket};

    use super::*;

    #[test]
    fn a_system_is_known_by_its_words() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        // `spawn` has waited for `exec` to begin; the new words are there a moment later.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while words_of(child.id()) != "60" && std::time::Instant::now() < end {
            std::thread::yield_now();
        }
        assert_eq!(words_of(child.id()), "60");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(words_of(u32::MAX), "");
    }

    /// Guards: who asked between the tool's `bind` and its `listen` took the socket away, and nobody could ask any more.
    #[test]
    fn only_sockets_of_the_dead_are_removed() {
        let folder = std::env::temp_dir().join(format!("synth-client-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        let (living, dead) = (std::process::id(), (dead.id(), dead.wait()).0);
        for (pid, stays) in [(living, true), (dead, false)] {
            let path = folder.join(pid.to_string());
            let bound = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
            bind(&bound, &SocketAddrUnix::new(&path).unwrap()).unwrap();
            assert!(connect(&folder, pid).is_none());
            assert_eq!(path.exists(), stays);
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
