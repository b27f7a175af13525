//! The reader of expressions: a parser whose stack is the processor's (S-115), made when the first expression is read. Where
//! the host does not let what was written be executed, the plain one.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one proof for the words of one record, or for calls that belong together"
)]

use std::sync::OnceLock;

use monitor::{Error, Expression, parse, parse_with, parser_code};
use statemachine::parser::Entry;
use synthmem::{Twin, serialize};

/// More than the parser's code.
const CODE_BYTES: usize = 1 << 14;

/// The parser's code, for as long as the program runs.
static PARSER: OnceLock<Option<Twin>> = OnceLock::new();

fn make() -> Option<Twin> {
    let mut room = Twin::new(CODE_BYTES).ok()?;
    let code = parser_code(room.run() as u64).ok().filter(|code| code.len() <= CODE_BYTES)?;
    room.store(0, &code);
    serialize();
    Some(room)
}

/// Reads one expression.
pub fn read(text: &str) -> Result<Expression, Error> {
    let Some(room) = PARSER.get_or_init(make) else { return parse(text) };
    parse_with(text, |tokens| {
        let mut words = vec![0; tokens.len()];
        // SAFETY: 1. the room begins with a parser, which was stored before anybody could get it. 2. It reads tokens up to the
        // end that they have, and writes a word for each at most.
        let answer = unsafe {
            let entry = std::mem::transmute::<usize, Entry>(room.run());
            entry(tokens.as_ptr(), words.as_mut_ptr())
        };
        answer.parts(&words)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: &str =
        "1;$a;gauge.read;f(;g();three;(;);[;];+;-;*;/;<<;>>=;&&;||;?;:;,;=;==;!;~;&;(u8 *);(i32);++;--; ";

    #[test]
    fn both_parsers_read_the_same() {
        assert!(PARSER.get_or_init(make).is_some(), "this host refuses code");
        let parts: Vec<&str> = PARTS.split(';').collect();
        let mut good = 0;
        for seed in 1..=100_000 {
            let mut random = means::Random::new(seed);
            let text: String = (0..random.index(14)).map(|_| parts[random.index(parts.len())]).collect();
            let expression = read(&text);
            assert_eq!(expression, parse(&text), "seed {seed}: {text}");
            good += u32::from(expression.is_ok());
        }
        assert!(good > 1000, "{good} were expressions");
    }
}
