//! Generated parsers against the plain one on random tokens. `PARSER_SEED` repeats one run.
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "one proof for what a test does with its own memory")]

use std::time::Instant;

use means::Random;
use statemachine::parser::{BEGIN, CALL, Calls, Entry, Fault, Grammar, LEAF, Level, Part, generate, parse};

const DEPTH_MAX: u32 = 24;
const CODE_BYTES: usize = 1 << 14;

/// Tokens are characters, and actions too.
const GRAMMAR: Grammar = Grammar {
    levels: &[
        Level::Left(&[(b',', b',')]),
        Level::Right(&[(b'=', b'=')]),
        Level::Choice { ask: b'?', otherwise: b':', action: b'?' },
        Level::Left(&[(b'+', b'+'), (b'-', b'-')]),
        Level::Left(&[(b'*', b'*')]),
        Level::Prefix(&[(b'!', b'!'), (b'-', b'~'), (b'*', b'@')]),
        Level::Index { open: b'[', close: b']', action: b'[' },
    ],
    leaves: b"abc",
    group: (b'(', b')'),
    calls: Some(Calls { name: b'f', comma: b',', level: 1 }),
    depth_max: DEPTH_MAX,
};

const ALPHABET: &[u8] = b"aabc,=?:+-*!()[]ff\xff";

struct Parser(usize);

impl Parser {
    fn new(grammar: &Grammar) -> Parser {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: 1. a new mapping of our own. 2. The code fits it. 3. It is executable only after it was written.
        unsafe {
            let at = libc::mmap(std::ptr::null_mut(), CODE_BYTES, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            assert_ne!(at, libc::MAP_FAILED);
            let bytes = generate(grammar, at as u64).expect("jumps reach");
            assert!(bytes.len() <= CODE_BYTES);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), at.cast(), bytes.len());
            assert_eq!(libc::mprotect(at, CODE_BYTES, libc::PROT_READ | libc::PROT_EXEC), 0);
            Parser(at as usize)
        }
    }

    fn parse(&self, tokens: &[u8]) -> Result<Vec<Part>, (Fault, usize)> {
        assert_eq!(tokens.last(), Some(&0));
        let mut words = vec![0; tokens.len()];
        // SAFETY: 1. the routine is the entry of a parser. 2. The tokens end, and there is a word for each.
        let answer = unsafe {
            let code: Entry = std::mem::transmute(self.0);
            code(tokens.as_ptr(), words.as_mut_ptr())
        };
        answer.parts(&words)
    }
}

/// The tokens of an expression.
fn expression(random: &mut Random, depth: usize, text: &mut Vec<u8>) {
    for operand in 0..=random.index(3) {
        if operand > 0 {
            text.push(b",=+-*"[random.index(5)]);
        }
        let depth = depth.saturating_sub(1);
        match random.index(9) {
            0 if depth > 0 => {
                text.push(b'(');
                expression(random, depth, text);
                text.push(b')');
            }
            1 if depth > 0 => {
                text.extend(b"f(");
                for argument in 0..random.index(4) {
                    text.extend([&b""[..], b","][usize::from(argument > 0)]);
                    expression(random, depth, text);
                }
                text.push(b')');
            }
            2 if depth > 0 => {
                text.extend(b"a[");
                expression(random, depth, text);
                text.push(b']');
            }
            3 if depth > 0 => {
                text.extend(b"a?");
                expression(random, depth, text);
                text.extend(b":b");
            }
            4 => text.extend(b"!-*b"),
            _ => text.push(b"abc"[random.index(3)]),
        }
    }
}

fn with_end(text: &[u8]) -> Vec<u8> {
    [text, &[0]].concat()
}

#[test]
fn generated_parsers_agree_with_the_plain_one() {
    let parser = Parser::new(&GRAMMAR);
    let seeds = std::env::var("PARSER_SEED").map_or((1..=20).collect(), |seed| vec![seed.parse().expect("a number")]);
    for seed in seeds {
        println!("seed {seed}");
        let (mut random, mut wrong) = (Random::new(seed), 0);
        for _ in 0..5000 {
            let mut text = Vec::new();
            expression(&mut random, 5, &mut text);
            assert!(parser.parse(&with_end(&text)).is_ok(), "seed {seed}: {}", text.escape_ascii());
            for _ in 0..random.index(3) {
                let at = random.index(text.len());
                text[at] = ALPHABET[random.index(ALPHABET.len())];
            }
            let tokens = with_end(&text);
            let parsed = parser.parse(&tokens);
            assert_eq!(parsed, parse(&GRAMMAR, &tokens), "seed {seed}: {}", text.escape_ascii());
            wrong += u32::from(parsed.is_err());
        }
        assert!(wrong > 1000, "seed {seed}: mistakes are tried, too");
    }
}

/// The parts as characters.
fn postfix(parts: &[Part], text: &str) -> String {
    let letter = |part: &Part| match part.action {
        LEAF => char::from(text.as_bytes()[part.token]),
        BEGIN => '<',
        CALL => '>',
        action => action.into(),
    };
    parts.iter().map(letter).collect()
}

#[test]
fn operators_bind_by_their_level_and_to_their_side() {
    let parser = Parser::new(&GRAMMAR);
    for (text, expected) in [
        ("a", "a"),
        ("a+b*c", "abc*+"),
        ("a-b-c", "ab-c-"),
        ("a=b=c", "abc=="),
        ("a?b:c?a:b", "abcab??"),
        ("a?b,c:a,b", "abc,a?b,"),
        ("(a+b)*c", "ab+c*"),
        ("!-*a[b][c]", "ab[c[@~!"),
        ("f()+f(a,b=c)", "<><abc=>+"),
        ("((a))", "a"),
    ] {
        let parts = parser.parse(&with_end(text.as_bytes())).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
        assert_eq!(postfix(&parts, text), expected, "{text}");
    }
    for (text, fault, at) in [
        ("", Fault::ExpectedOperand, 0),
        ("a+", Fault::ExpectedOperand, 2),
        ("(a", Fault::Expected(b')'), 2),
        ("a)", Fault::Trailing, 1),
        ("a[b", Fault::Expected(b']'), 3),
        ("a?b,c", Fault::Expected(b':'), 5),
        ("f(a,)", Fault::ExpectedOperand, 4),
        ("fa", Fault::Expected(b'('), 1),
    ] {
        assert_eq!(parser.parse(&with_end(text.as_bytes())), Err((fault, at)), "{text}");
    }
}

#[test]
fn the_stack_has_a_limit() {
    let parser = Parser::new(&GRAMMAR);
    for (depth, fits) in [(DEPTH_MAX as usize, true), (DEPTH_MAX as usize + 1, false), (1 << 20, false)] {
        let group = [vec![b'('; depth], vec![b'a'], vec![b')'; depth]].concat();
        let prefixes = [vec![b'!'; depth], vec![b'a']].concat();
        for text in [group, prefixes] {
            let tokens = with_end(&text);
            assert_eq!(parser.parse(&tokens).is_ok(), fits);
            assert_eq!(parser.parse(&tokens), parse(&GRAMMAR, &tokens));
        }
    }
}

/// `cargo test --release -p statemachine --test parser -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn measure() {
    let parser = Parser::new(&GRAMMAR);
    let (mut random, mut text) = (Random::new(5), Vec::new());
    while text.len() < 2000 {
        if !text.is_empty() {
            text.push(b'+');
        }
        expression(&mut random, 4, &mut text);
    }
    let tokens = with_end(&text);
    let nanos = |operation: &dyn Fn() -> Result<Vec<Part>, (Fault, usize)>| {
        let start = Instant::now();
        for _ in 0..2000 {
            assert!(std::hint::black_box(operation()).is_ok());
        }
        start.elapsed().as_nanos() as f64 / 2000.0 / text.len() as f64
    };
    for _ in 0..4 {
        let (code, plain) = (nanos(&|| parser.parse(&tokens)), nanos(&|| parse(&GRAMMAR, &tokens)));
        println!("ns a token: hardware stack {code:.2}, plain {plain:.2}, ratio {:.2}", plain / code);
    }
}
