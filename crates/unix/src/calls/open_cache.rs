//! When to synthesize an `open`: a thread that has opened the same name several times, with few others between, is likely to do it again.

use abi::file::{AT_FDCWD, O_ACCMODE, O_CLOEXEC, O_NOCTTY, O_NONBLOCK};
use abi::nr;
use kernel::call::{OPEN_NAMES_MAX, OpenName, Opens};
use machine::{TryGrow, try_collect, try_to_vec};

use crate::call::Call;
use crate::files::descriptors::Recipe;
use crate::files::open_file::OpenFile;
use crate::task::bindings::{KnownName, Opened};

/// Longest path that is compared in code.
const PATH_BYTES_MAX: usize = 32;
/// Flags with which opening again means the same.
const PLAIN_FLAGS: u32 = O_ACCMODE | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
/// Descriptors that synthesized code can hand out.
const DESCRIPTORS: u64 = 64;

/// Opens of a name in Rust before its code is made, which costs as much as four opens and closes.
const OPENS_BEFORE_CODE: u8 = 4;

/// An open has just been done in Rust: was it one that code could do, and the same as others lately?
pub fn consider(call: &Call<'_>, path: &[u8], flags: u32, file: &OpenFile) {
    let suits = path.first() == Some(&b'/')
        && (3..=PATH_BYTES_MAX).contains(&path.len())
        && flags & !PLAIN_FLAGS == 0
        && file.as_stream().is_some_and(|stream| stream.opens_without_trace());
    // All that the routine will ask about the name is whether the generation has moved. A path from another root is never settled.
    let is_settled = || call.with_view(AT_FDCWD as u64, path, |view| Ok(call.unix.names.is_settled(view, path)));
    if !suits
        || call.unix.makers().is_none()
        || file.node().is_some_and(|node| node.is_use_watched())
        || is_settled() != Ok(true)
    {
        return;
    }
    let mut cache = call.task.bindings.opens.borrow_mut();
    let Some(at) = cache.seen.iter().position(|((seen, with), _)| seen == path && *with == flags) else {
        if cache.seen.len() == OPEN_NAMES_MAX {
            cache.seen.remove(0);
        }
        // Without memory the name was not seen.
        if let Ok(path) = try_to_vec(path) {
            let _ = cache.seen.try_push(((path, flags), 1));
        }
        return;
    };
    let times = &mut cache.seen[at].1;
    *times += 1;
    if *times < OPENS_BEFORE_CODE {
        return;
    }
    // Should the routine stop fitting, as many opens in Rust come before a new one.
    let (opened, _) = cache.seen.remove(at);
    drop(cache);
    bind(call, opened, file);
}

/// Makes and binds the routines. When something stands against it, the call stays as it is.
fn bind(call: &Call<'_>, opened: Opened, file: &OpenFile) -> Option<()> {
    if call.process().limits.borrow().descriptors() < DESCRIPTORS {
        return None;
    }
    let makers = call.unix.makers()?;
    let files = call.files();
    let recipe = Recipe {
        stream: file.as_stream()?.clone(),
        node: file.node()?.clone(),
        flags: file.flags(),
        close_on_exec: opened.1 & O_CLOEXEC != 0,
        code: file.code.borrow().clone(),
    };
    let recipe = files.recipe_number(&recipe)?;
    let [read, write, _] = file.entry_points();
    let table = files.plan();
    let entry = |code: Option<u64>| code.unwrap_or(table.slow_entry);
    let new = KnownName { opened, read_entry: entry(read), write_entry: entry(write), recipe };
    let mut names = core::mem::take(&mut call.task.bindings.opens.borrow_mut().names);
    let generation = call.unix.names.generation();
    let is_current = call.task.bindings.opens.borrow().generation == generation;
    names.retain(|known| is_current && known.opened != new.opened);
    names.try_insert(0, new).ok()?;
    names.truncate(OPEN_NAMES_MAX);
    let nodes = names.iter().map(|known| OpenName {
        path: &known.opened.0,
        flags: known.opened.1,
        read_entry: known.read_entry,
        write_entry: known.write_entry,
        recipe: known.recipe,
    });
    let opens = Opens {
        table,
        recipes: files.entries().recipes.as_ptr() as u64,
        generation_word: call.unix.names.generation_word(),
        generation,
    };
    let tte = call.task.thread.tte();
    let open = opens.open(makers, &try_collect(nodes).ok()?, tte)?;
    let close = match call.task.bindings.opens.borrow().close.clone() {
        Some(code) => code,
        None => opens.close(makers, tte)?,
    };
    tte.bind_call(nr::OPENAT as usize, Some(open.entry().under()));
    tte.bind_call(nr::CLOSE as usize, Some(close.entry().under()));
    let mut cache = call.task.bindings.opens.borrow_mut();
    (cache.names, cache.generation) = (names, generation);
    cache.open = Some(open);
    cache.close = Some(close);
    Some(())
}
