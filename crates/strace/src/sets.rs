//! Sets of small numbers: descriptors of `select`, processors of `sched_setaffinity`.

use alloc::format;
use alloc::string::String;

use super::call::Call;
use super::text;

/// Most bytes of a set that are read.
const SET_BYTES_MAX: u64 = 128;

/// The numbers in a set of `bits` bits at `address`, such as `[3 4]`.
pub fn set(call: &Call, address: u64, bits: u64) -> Option<String> {
    let bytes = bits.div_ceil(8).min(SET_BYTES_MAX);
    let set = call.bytes(address, bytes as usize)?;
    let mut line = String::from("[");
    for number in (0..bits.min(bytes * 8)).filter(|number| set[(number / 8) as usize] >> (number % 8) & 1 != 0) {
        if line.len() > 1 {
            line.push(' ');
        }
        line.push_str(&format!("{number}"));
    }
    line.push(']');
    Some(line)
}

/// A descriptor set of `select`: as many descriptors as the first argument says.
pub fn descriptors(call: &Call, index: usize) -> Option<String> {
    let address = call.arguments[index];
    // The call overwrites the sets: after it, only those that stayed ready are known, and the result says them.
    Some(set(call, address, u64::from(call.word(0))).unwrap_or_else(|| text::pointer(address)))
}

/// What `select` returned: the ready descriptors, or that time ran out.
pub fn ready(call: &Call, result: i64) -> String {
    if result == 0 {
        return String::from("0 (Timeout)");
    }
    let mut sets = String::new();
    for (index, name) in [(1, "in"), (2, "out"), (3, "except")] {
        match set(call, call.arguments[index], u64::from(call.word(0))) {
            Some(set) if set != "[]" => {
                let comma = if sets.is_empty() { "" } else { ", " };
                sets.push_str(&format!("{comma}{name} {set}"));
            }
            _ => {}
        }
    }
    format!("{result} ({sets})")
}

/// Processors of `sched_getaffinity` and `sched_setaffinity`.
pub fn processors(call: &Call, address: u64) -> Option<String> {
    let bytes = match call.result {
        // `sched_getaffinity` returns the bytes it wrote.
        Some(written @ 1..) => call.arguments[1].min(written as u64),
        _ => call.arguments[1],
    };
    set(call, address, bytes.min(SET_BYTES_MAX) * 8)
}
