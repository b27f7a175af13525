//! Generated parsers against the table-driven one on random text. `PARSER_SEED` repeats one run.

use std::time::Instant;

use statemachine::parser::{DEPTH_MAX, Grammar, Operation, evaluate, generate};

const LEVELS: &Grammar = &[
    &[(b'|', Operation::Or), (b'^', Operation::Xor)],
    &[(b'+', Operation::Add), (b'-', Operation::Subtract)],
    &[(b'*', Operation::Multiply), (b'&', Operation::And)],
];

struct Parser(usize);

impl Parser {
    fn new(grammar: &Grammar) -> Parser {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let draft = generate(grammar).expect("few levels");
        // SAFETY: 1. a new mapping of our own. 2. The code fits it. 3. It is executable only after it was written.
        unsafe {
            let at = libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            assert_ne!(at, libc::MAP_FAILED);
            let bytes = draft.bind(at as u64).expect("jumps reach").bytes;
            assert!(bytes.len() <= 4096);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), at.cast(), bytes.len());
            assert_eq!(libc::mprotect(at, 4096, libc::PROT_READ | libc::PROT_EXEC), 0);
            Parser(at as usize)
        }
    }

    fn parse(&self, text: &[u8]) -> Option<u64> {
        #[repr(C)]
        struct Answer {
            value: u64,
            wrong: u64,
        }
        let range = text.as_ptr_range();
        // SAFETY: 1. the routine has C's calling convention. 2. It reads the text and nothing else.
        let answer = unsafe {
            let code: extern "C" fn(*const u8, *const u8) -> Answer = std::mem::transmute(self.0);
            code(range.start, range.end)
        };
        (answer.wrong == 0).then_some(answer.value)
    }
}

fn below(random: &mut u64, limit: usize) -> usize {
    *random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*random >> 33) as usize % limit
}

fn expression(random: &mut u64, depth: usize, text: &mut Vec<u8>) {
    for operand in 0..=below(random, 4) {
        if operand > 0 {
            text.push(b"+-*&|^"[below(random, 6)]);
        }
        if depth > 0 && below(random, 3) == 0 {
            text.push(b'(');
            expression(random, depth - 1, text);
            text.push(b')');
        } else {
            text.extend(below(random, 1 << 20).to_string().bytes());
        }
    }
}

#[test]
fn generated_parsers_agree_with_tables() {
    let parser = Parser::new(LEVELS);
    let seeds = std::env::var("PARSER_SEED").map_or((1..=20).collect(), |seed| vec![seed.parse().expect("a number")]);
    for seed in seeds {
        println!("seed {seed}");
        let (mut random, mut wrong) = (seed, 0);
        for _ in 0..5000 {
            let mut text = Vec::new();
            expression(&mut random, 5, &mut text);
            assert!(parser.parse(&text).is_some(), "seed {seed}: {}", text.escape_ascii());
            if below(&mut random, 2) == 0 {
                let at = below(&mut random, text.len());
                text[at] = b"()+-*|7 \xff"[below(&mut random, 9)];
            }
            let parsed = parser.parse(&text);
            assert_eq!(parsed, evaluate(LEVELS, &text), "seed {seed}: {}", text.escape_ascii());
            wrong += u32::from(parsed.is_none());
        }
        assert!(wrong > 100, "seed {seed}: mistakes are tried, too");
    }
}

#[test]
fn operators_bind_by_their_level_and_from_the_left() {
    let parser = Parser::new(LEVELS);
    for (text, value) in [("2+3*4", 14), ("10-3-2", 5), ("1|6^2", 5), ("(2+3)*4", 20), ("7", 7), ("((7))", 7)] {
        assert_eq!(parser.parse(text.as_bytes()), Some(value), "{text}");
    }
    for text in ["", "(", ")", "1+", "*1", "1 2", "(1", "1)", "()"] {
        assert_eq!(parser.parse(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn the_stack_has_a_limit() {
    let parser = Parser::new(LEVELS);
    for (depth, fits) in [(DEPTH_MAX as usize, true), (DEPTH_MAX as usize + 1, false), (1 << 20, false)] {
        let text = [vec![b'('; depth], vec![b'1'], vec![b')'; depth]].concat();
        assert_eq!((parser.parse(&text), evaluate(LEVELS, &text)), (fits.then_some(1), fits.then_some(1)));
    }
}

/// `cargo test --release -p statemachine --test parser -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn measure() {
    let parser = Parser::new(LEVELS);
    let (mut random, mut text) = (5, Vec::new());
    while text.len() < 2000 {
        if !text.is_empty() {
            text.push(b'+');
        }
        expression(&mut random, 4, &mut text);
    }
    let nanos = |operation: &dyn Fn() -> Option<u64>| {
        let start = Instant::now();
        for _ in 0..2000 {
            std::hint::black_box(operation());
        }
        start.elapsed().as_nanos() as f64 / 2000.0 / text.len() as f64
    };
    for _ in 0..4 {
        let (code, tables) = (nanos(&|| parser.parse(&text)), nanos(&|| evaluate(LEVELS, &text)));
        println!("ns a byte: hardware stack {code:.2}, tables {tables:.2}, ratio {:.2}", tables / code);
    }
}
