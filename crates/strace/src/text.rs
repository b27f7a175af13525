//! Numbers, flags, names and strings as strace writes them.

use alloc::format;
use alloc::string::String;

/// A table of names from `abi`.
pub type Names = &'static abi::Names;

/// Most bytes of a buffer that are shown.
pub const STRING_LIMIT: usize = 32;

/// An address: `NULL` or hexadecimal.
pub fn pointer(address: u64) -> String {
    if address == 0 { String::from("NULL") } else { format!("{address:#x}") }
}

/// A number in hexadecimal, zero without prefix.
pub fn hex(number: u64) -> String {
    if number == 0 { String::from("0") } else { format!("{number:#x}") }
}

/// A mode: octal with a leading zero, at least three digits; zero as `000`.
pub fn octal(number: u64) -> String {
    let digits = format!("0{number:o}");
    if digits.len() < 3 { format!("{number:03o}") } else { digits }
}

/// Flags by name, joined by `|`; bits without a name in hexadecimal; nothing set is `0`.
pub fn flags(value: u64, names: Names) -> String {
    let (mut text, rest) = known_flags(value, names);
    if rest != 0 && text.is_empty() {
        return format!("{rest:#x} /* {}??? */", prefix(names));
    }
    if rest != 0 {
        text.push_str(&format!("|{rest:#x}"));
    }
    if text.is_empty() { String::from("0") } else { text }
}

/// The names of the flags set, and the bits without a name.
fn known_flags(value: u64, names: Names) -> (String, u64) {
    let mut text = String::new();
    let mut rest = value;
    for (name, bits) in names.iter() {
        if bits != 0 && rest & bits == bits {
            rest &= !bits;
            if !text.is_empty() {
                text.push('|');
            }
            text.push_str(name);
        }
    }
    (text, rest)
}

/// A base value and flags, as `MAP_PRIVATE|MAP_FIXED`: the base is always shown.
pub fn base_and_flags(base: String, rest: u64, names: Names) -> String {
    if rest == 0 { base } else { format!("{base}|{}", flags(rest, names)) }
}

/// The name of one of several values; without a name, hexadecimal and the family.
pub fn choice(value: u64, names: Names) -> String {
    match find(value, names) {
        Some(name) => String::from(name),
        None => format!("{} /* {}??? */", hex(value), prefix(names)),
    }
}

/// The name of `value` in the table.
pub fn find(value: u64, names: Names) -> Option<&'static str> {
    names.iter().find(|(_, number)| *number == value).map(|(name, _)| name)
}

/// What the names of a table start with, such as `CLOCK_`.
fn prefix(names: Names) -> &'static str {
    let first = names.iter().next().map_or("", |(name, _)| name);
    &first[..first.rfind('_').map_or(0, |place| place + 1)]
}

/// `SIGINT`, `SIGRTMIN`, `SIGRT_3`, or the number.
pub fn signal(number: u32) -> String {
    match (abi::signal::signal_name(number), number) {
        (Some(name), _) => String::from(name),
        (None, 32) => String::from("SIGRTMIN"),
        (None, 33..=64) => format!("SIGRT_{}", number - 32),
        _ => format!("{number}"),
    }
}

/// A set of signals: `[INT CHLD]`, or `~[KILL]` where more than half are in it.
pub fn signal_set(set: u64) -> String {
    let (sign, shown) = if set.count_ones() >= 42 { ("~", !set) } else { ("", set) };
    let mut text = format!("{sign}[");
    for number in (1..=64).filter(|number| shown & abi::signal::set_bit(*number) != 0) {
        if !text.ends_with('[') {
            text.push(' ');
        }
        let name = signal(number);
        text.push_str(name.strip_prefix("SIG").unwrap_or(&name));
    }
    text.push(']');
    text
}

/// A quoted string; `more` adds the dots that say something is missing.
pub fn quoted(bytes: &[u8], more: bool) -> String {
    let mut text = String::from("\"");
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'\t' => text.push_str("\\t"),
            b'\n' => text.push_str("\\n"),
            0x0b => text.push_str("\\v"),
            0x0c => text.push_str("\\f"),
            b'\r' => text.push_str("\\r"),
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b' '..=b'~' => text.push(char::from(*byte)),
            // A digit that follows would be read as part of the number: then all three digits are needed.
            _ if bytes.get(index + 1).is_some_and(u8::is_ascii_digit) => text.push_str(&format!("\\{byte:03o}")),
            _ => text.push_str(&format!("\\{byte:o}")),
        }
    }
    text.push_str(if more { "\"..." } else { "\"" });
    text
}

/// A quoted buffer of `total` bytes of which `bytes` are the first, cut at 32.
pub fn buffer(bytes: &[u8], total: u64) -> String {
    let shown = &bytes[..bytes.len().min(STRING_LIMIT)];
    quoted(shown, total > shown.len() as u64)
}
