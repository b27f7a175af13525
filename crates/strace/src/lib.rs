//! `--strace`: one line per call, in the form that strace(1) prints on Linux.
//!
//! [`shapes`] says what each argument of each call is; [`text`] prints numbers, flags and strings;
//! [`records`] prints what pointers lead to; [`special`] holds the calls whose arguments depend on each
//! other. Nothing here changes a program's memory, and memory that cannot be read prints as its address.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod call;
#[cfg(test)]
mod live;
mod records;
mod sets;
mod shapes;
mod sockets;
mod special;
mod summary;
#[cfg(test)]
mod tests;
mod text;

use alloc::format;
use alloc::string::String;

use abi::Errno;

pub use summary::Summary;

use call::Call;
use shapes::{Returns, Shape};

/// Column of the `=`, as in strace.
const RESULT_COLUMN: usize = 39;

/// The line for one call.
///
/// `result` is the register the call returned, `None` while it has not returned (or never will).
/// `memory(address, buffer)` fills the buffer from the program's memory, or says false; it is asked in
/// pieces that do not cross a 4096-byte page unless a record does.
pub fn format_call(
    nr: u64,
    arguments: [u64; 6],
    result: Option<i64>,
    memory: &dyn Fn(u64, &mut [u8]) -> bool,
) -> String {
    let head = format_head(nr, arguments, result, memory);
    format!("{head:<RESULT_COLUMN$} = {}", format_tail(nr, arguments, result, memory))
}

/// The part of the line before the `=`.
///
/// `execve` overwrites the memory that holds its arguments: take its head at entry, with no result.
pub fn format_head(
    nr: u64,
    arguments: [u64; 6],
    result: Option<i64>,
    memory: &dyn Fn(u64, &mut [u8]) -> bool,
) -> String {
    let call = Call { arguments, result, memory };
    match (abi::nr::name(nr), shapes::shape(nr)) {
        (Some(name), Some(shape)) => format_known(&call, name, shape),
        (Some(name), None) => format_raw(&call, name),
        (None, _) => format_raw(&call, &format!("syscall_{nr:#x}")),
    }
}

/// The part of the line after the `=`: what the call returned.
pub fn format_tail(
    nr: u64,
    arguments: [u64; 6],
    result: Option<i64>,
    memory: &dyn Fn(u64, &mut [u8]) -> bool,
) -> String {
    let call = Call { arguments, result, memory };
    format_result(&call, shapes::shape(nr).map_or(shapes::number as Returns, |shape| shape.returns))
}

/// The line that strace prints for the arrival of a signal, such as
/// `--- SIGINT {si_signo=SIGINT, si_code=SI_KERNEL} ---`.
pub fn format_signal(info: &abi::siginfo::SigInfo) -> String {
    format!("--- {} {} ---", text::signal(info.signo as u32), records::siginfo_text(info))
}

/// The line that ends a process' trace: its exit code, or the signal that killed it.
pub fn format_end(status: abi::process::WaitStatus) -> String {
    use abi::process::WaitStatus;
    match status {
        WaitStatus::Exited(code) => format!("+++ exited with {code} +++"),
        WaitStatus::Killed { signal, core } => {
            let dumped = if core { " (core dumped)" } else { "" };
            format!("+++ killed by {}{dumped} +++", text::signal(signal.into()))
        }
        WaitStatus::Stopped(signal) => format!("--- stopped by {} ---", text::signal(signal.into())),
        WaitStatus::Trapped(_) => String::from("--- stopped for its tracer ---"),
        WaitStatus::Continued => String::from("--- continued ---"),
    }
}

fn format_known(call: &Call, name: &str, shape: &Shape) -> String {
    let mut line = String::from(name);
    line.push('(');
    for (index, argument) in shape.arguments.iter().enumerate() {
        let Some(text) = argument.format(call, index) else { break };
        if text.is_empty() {
            continue;
        }
        if index > 0 {
            line.push_str(", ");
        }
        line.push_str(&text);
    }
    line.push(')');
    line
}

/// All six registers in hexadecimal: for calls without a shape.
fn format_raw(call: &Call, name: &str) -> String {
    let [a, b, c, d, e, f] = call.arguments.map(text::hex);
    format!("{name}({a}, {b}, {c}, {d}, {e}, {f})")
}

fn format_result(call: &Call, returns: Returns) -> String {
    let Some(result) = call.result else { return String::from("?") };
    if let Some(error) = call.error() {
        return format_error(error);
    }
    returns(call, result)
}

/// `-1 ENOENT (No such file or directory)`, or how a call that a signal interrupted will go on.
fn format_error(number: u16) -> String {
    let restart = match number {
        512 => "ERESTARTSYS (To be restarted if SA_RESTART is set)",
        513 => "ERESTARTNOINTR (To be restarted)",
        514 => "ERESTARTNOHAND (To be restarted if no handler)",
        516 => "ERESTART_RESTARTBLOCK (Interrupted by signal)",
        _ => "",
    };
    match Errno::from_number(number) {
        _ if !restart.is_empty() => format!("? {restart}"),
        Some(errno) => format!("-1 {} ({})", errno.name(), errno.message()),
        None => format!("-1 (errno {number})"),
    }
}
