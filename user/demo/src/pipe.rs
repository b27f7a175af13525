//! Streams of numbers between threads: ordinary pipes.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that have gone into pipes.
pub static BYTES: AtomicU64 = AtomicU64::new(0);

/// The end that is written.
pub struct Sink {
    pipe: PipeWriter,
    bytes: Vec<u8>,
}

/// The end that is read.
pub struct Source {
    pipe: PipeReader,
    bytes: Vec<u8>,
}

/// A pipe that holds about `bytes`, as far as the system lets one choose: what waits in it is late.
///
/// # Errors
/// The system's.
pub fn pipe(bytes: usize) -> Result<(Sink, Source), String> {
    let (source, sink) = std::io::pipe().map_err(|error| {
        format!(
            "a pipe: {error}\nhelp: fewer --notes; each is a pipe of two descriptors, and there may be only so many"
        )
    })?;
    // SAFETY: a call with numbers only. Whatever it answers, the pipe works.
    unsafe { libc::fcntl(sink.as_raw_fd(), libc::F_SETPIPE_SZ, bytes as libc::c_int) };
    Ok((Sink { pipe: sink, bytes: Vec::new() }, Source { pipe: source, bytes: Vec::new() }))
}

impl Sink {
    /// Writes numbers. False: nobody reads any more.
    pub fn put(&mut self, numbers: &[i32]) -> bool {
        self.bytes.resize(numbers.len() * 4, 0);
        for (bytes, number) in self.bytes.chunks_exact_mut(4).zip(numbers) {
            bytes.copy_from_slice(&number.to_le_bytes());
        }
        BYTES.fetch_add(self.bytes.len() as u64, Ordering::Relaxed);
        self.pipe.write_all(&self.bytes).is_ok()
    }
}

impl Source {
    /// Reads as many numbers as there is room for. False: it has ended, and what was missing is zero.
    pub fn get(&mut self, numbers: &mut [i32]) -> bool {
        self.bytes.resize(numbers.len() * 4, 0);
        let mut got = 0;
        while got < self.bytes.len() {
            match self.pipe.read(&mut self.bytes[got..]) {
                Ok(0) => break,
                Ok(more) => got += more,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let whole = got == self.bytes.len();
        self.bytes[got..].fill(0);
        for (number, bytes) in numbers.iter_mut().zip(self.bytes.chunks_exact(4)) {
            *number = i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        whole
    }
}

/// Lets this process have a descriptor for each end of so many pipes.
///
/// # Errors
/// The system gives fewer.
pub fn allow_descriptors(count: u64) -> Result<(), String> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the record is this function's.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0;
    if !known || limit.rlim_cur >= count {
        return Ok(());
    }
    let wanted = libc::rlimit { rlim_cur: count.min(limit.rlim_max), ..limit };
    // SAFETY: the record is this function's.
    let is_set = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const wanted) } == 0;
    if is_set && wanted.rlim_cur == count {
        return Ok(());
    }
    Err(format!("{count} descriptors are needed, and {} are allowed\nhelp: fewer --notes", limit.rlim_max))
}
