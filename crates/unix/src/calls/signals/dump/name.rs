//! The names of core files.

use alloc::vec::Vec;

use abi::Errno;
use abi::process::RLIMIT_CORE;
use abi::siginfo::SigInfo;
use machine::{TryGrow, try_text, try_to_vec};

use crate::call::Call;

/// The name for the process of `call`. Errors: `ENOMEM`, `EINVAL` for an empty one.
pub fn expand(call: &Call<'_>, info: &SigInfo) -> Result<Vec<u8>, Errno> {
    let names = &call.unix.families.core_names;
    let pattern = names.pattern()?;
    let mut name = Vec::new();
    let mut has_pid = false;
    let mut rest = pattern.iter();
    while let Some(&byte) = rest.next() {
        match (byte, if byte == b'%' { rest.next() } else { None }) {
            (b'%', None) => {}
            (b'%', Some(b'%')) => name.try_push(b'%')?,
            (b'%', Some(&letter)) => {
                has_pid |= letter == b'p';
                name.try_extend_from_slice(&word(call, info, letter)?)?;
            }
            _ => name.try_push(byte)?,
        }
    }
    if name.is_empty() {
        return Err(Errno::EINVAL);
    }
    if names.uses_pid.get() && !has_pid {
        name.try_extend_from_slice(try_text(format_args!(".{}", call.process().pid))?.as_bytes())?;
    }
    Ok(name)
}

/// What stands for a letter behind `%`; nothing for one that Linux does not know either.
fn word(call: &Call<'_>, info: &SigInfo, letter: u8) -> Result<Vec<u8>, Errno> {
    let (process, task) = (call.process(), call.task);
    let number = |value: u64| Ok(try_text(format_args!("{value}"))?.into_bytes());
    match letter {
        b'p' | b'P' => number(process.pid.into()),
        b'i' | b'I' => number(task.tid.into()),
        b'u' => number(process.user_ids.get().real.into()),
        b'g' => number(process.group_ids.get().real.into()),
        b'd' => number(process.settings.get().dumpable.into()),
        b's' => number(info.signo as u64),
        b't' => number(call.now().seconds as u64),
        b'c' => number(process.limits.borrow().0[RLIMIT_CORE as usize].0),
        b'h' => without_slashes(call.unix.system_names.host()?),
        b'e' => without_slashes(try_to_vec(until_nul(&*task.name.borrow()))?),
        b'f' => without_slashes(try_to_vec(last_part(&executable(call)?))?),
        b'E' => without_slashes(executable(call)?),
        _ => Ok(Vec::new()),
    }
}

fn until_nul(name: &[u8]) -> &[u8] {
    &name[..name.iter().position(|byte| *byte == 0).unwrap_or(name.len())]
}

fn last_part(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

fn executable(call: &Call<'_>) -> Result<Vec<u8>, Errno> {
    let process = call.process();
    let node = process.executable.borrow().clone();
    let root = process.place.borrow().borrow().root.clone();
    node.map_or(Ok(Vec::new()), |node| Ok(call.unix.names.path_of(&node, &root)?))
}

/// A word is one part of a path at most; one that is a directory's own or parent's name is none.
fn without_slashes(mut word: Vec<u8>) -> Result<Vec<u8>, Errno> {
    word.iter_mut().filter(|byte| **byte == b'/').for_each(|byte| *byte = b'!');
    if word == b"." || word == b".." {
        word[0] = b'!';
    }
    Ok(word)
}
