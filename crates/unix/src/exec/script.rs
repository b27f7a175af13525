//! The `#!` line of a script.

use alloc::vec::Vec;

use abi::Errno;
use machine::{TryGrow, try_collect, try_to_vec};

use super::limits::{FIRST_BYTES, REWRITES_MAX};

/// What a script asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Script {
    /// Path of the interpreter. It may be empty: to open it is then ENOENT.
    pub interpreter: Vec<u8>,
    /// The rest of the line, as one argument.
    pub argument: Option<Vec<u8>>,
}

/// Reads the `#!` line from the first bytes of a file. `Ok(None)`: this is no script.
///
/// The line ends at a newline or after [`FIRST_BYTES`] - 1 bytes. Without a newline the path must
/// at least be seen to end, by a blank or by the end of the file; otherwise it may have been cut.
///
/// # Errors
/// ENOEXEC: no interpreter is named, or its path is cut.
pub fn parse(first_bytes: &[u8]) -> Result<Option<Script>, Errno> {
    if !first_bytes.starts_with(b"#!") {
        return Ok(None);
    }
    // Zeros follow the end of a short file, so that a NUL stands for it below.
    let mut line = [0; FIRST_BYTES];
    let length = first_bytes.len().min(FIRST_BYTES);
    line[..length].copy_from_slice(&first_bytes[..length]);

    let mut end = line_end(&line)?;
    while is_blank(line[end - 1]) {
        end -= 1;
    }
    let name = first_solid(&line, 2, end).filter(|name| *name < end).ok_or(Errno::ENOEXEC)?;
    let separator = first_terminator(&line, name, end);
    // A NUL separates nothing: what follows it was never in the line.
    let argument = separator.filter(|at| line[*at] != 0).and_then(|at| first_solid(&line, at, end));
    Ok(Some(Script {
        interpreter: until_nul(&line[name..separator.unwrap_or(end)])?,
        argument: argument.map(|from| until_nul(&line[from..end])).transpose()?,
    }))
}

impl Script {
    /// The arguments that the interpreter gets: its own path, the line's argument, the script's
    /// path as it was named, and the script's arguments without the first.
    pub fn rewrite(&self, script_path: &[u8], mut argv: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Errno> {
        let mut front = Vec::new();
        front.room_for_exact(argv.len() + 2)?;
        front.put(try_to_vec(&self.interpreter)?);
        if let Some(argument) = &self.argument {
            front.put(try_to_vec(argument)?);
        }
        front.put(try_to_vec(script_path)?);
        front.try_extend(argv.drain(..).skip(1))?;
        Ok(front)
    }
}

/// Counts how often a `#!` line has led to another file.
#[derive(Default)]
pub struct Rewrites(usize);

impl Rewrites {
    /// Notes one more.
    ///
    /// # Errors
    /// ELOOP: there were [`REWRITES_MAX`] already.
    pub fn count(&mut self) -> Result<(), Errno> {
        if self.0 == REWRITES_MAX {
            return Err(Errno::ELOOP);
        }
        self.0 += 1;
        Ok(())
    }
}

/// Index of the newline, or of the last byte when the line has none.
fn line_end(line: &[u8; FIRST_BYTES]) -> Result<usize, Errno> {
    let text = line.iter().position(|byte| *byte == 0).unwrap_or(FIRST_BYTES);
    if let Some(newline) = line[..text].iter().position(|byte| *byte == b'\n') {
        return Ok(newline);
    }
    let last = FIRST_BYTES - 1;
    let name = first_solid(line, 2, last).ok_or(Errno::ENOEXEC)?;
    first_terminator(line, name, last).map(|_| last).ok_or(Errno::ENOEXEC)
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// The first byte in `from..=last` that is neither blank nor tab.
fn first_solid(line: &[u8], from: usize, last: usize) -> Option<usize> {
    (from..=last).find(|at| !is_blank(line[*at]))
}

/// The first byte in `from..=last` that ends a word.
fn first_terminator(line: &[u8], from: usize, last: usize) -> Option<usize> {
    (from..=last).find(|at| is_blank(line[*at]) || line[*at] == 0)
}

fn until_nul(bytes: &[u8]) -> Result<Vec<u8>, Errno> {
    Ok(try_collect(bytes.iter().copied().take_while(|byte| *byte != 0))?)
}

#[cfg(test)]
#[path = "tests/script.rs"]
mod tests;
