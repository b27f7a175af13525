//! Compiled expressions against the interpreter, on random expressions; and the reader against random text.
//! A failure prints the seed.
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "one proof for what a test does with its own memory")]

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use means::Random;
use monitor::{
    Allowed, Binary, CompileError, Ended, Expression, Op, Place, Symbol, Symbols, Unary, Width, World, compile, cut,
    decode, encode, interpret, lower, parse, walk,
};

const WORDS: usize = 32;
const NAMES: [&str; 4] = ["$a", "$b", "gauge", "limit"];

/// What both runs work on, at the same addresses.
struct Memory {
    /// In the low 2 GB, as the words of the kernel are.
    words: &'static mut [u64; WORDS],
    calls: u64,
}

static CALLS: AtomicU64 = AtomicU64::new(0);

extern "C" fn mix(a: u64, b: u64, c: u64, d: u64) -> u64 {
    CALLS.fetch_add(1, Ordering::Relaxed);
    // Faults if the stack is uneven.
    let probe = std::hint::black_box([a, b]);
    // SAFETY: an aligned vector load of local memory.
    unsafe { std::arch::asm!("movaps xmm0, [rsp - 32]", out("xmm0") _, options(readonly, nostack)) };
    probe[0].wrapping_mul(3) ^ probe[1].wrapping_add(c) ^ d.rotate_left(7)
}

extern "C" fn three() -> u64 {
    3
}

impl Memory {
    fn new() -> Memory {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT;
        // SAFETY: a fresh mapping, larger than the words, that stays.
        let words = unsafe { &mut *libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0).cast() };
        Memory { words, calls: 0 }
    }

    fn base(&self) -> u64 {
        self.words.as_ptr() as u64
    }

    fn fill(&mut self, random: &mut Random) {
        self.words.iter_mut().for_each(|word| *word = random.bits() << random.index(40));
    }

    fn inside(&self, address: u64, width: Width) -> bool {
        let bytes = match width {
            Width::U8 | Width::I8 => 1,
            Width::U16 | Width::I16 => 2,
            Width::U32 | Width::I32 => 4,
            Width::Word => 8,
        };
        address >= self.base() && address.saturating_add(bytes) <= self.base() + 8 * WORDS as u64
    }
}

impl Symbols for Memory {
    fn resolve(&mut self, name: &str) -> Option<Symbol> {
        match name {
            "$a" => Some(Symbol::Variable(self.base())),
            "$b" => Some(Symbol::Variable(self.base() + 8)),
            "gauge" => Some(Symbol::Word(self.base() + 16)),
            "limit" => Some(Symbol::Constant(0xFFFF_FFFF_8000_0001)),
            "mix" => Some(Symbol::Function { entry: mix as *const () as u64, arguments: 4 }),
            "three" => Some(Symbol::Function { entry: three as *const () as u64, arguments: 0 }),
            _ => None,
        }
    }
}

impl Allowed for Memory {
    fn is_variable(&self, address: u64) -> bool {
        address == self.base() || address == self.base() + 8
    }

    fn is_function(&self, entry: u64, arguments: u8) -> bool {
        (entry, arguments) == (mix as *const () as u64, 4) || (entry, arguments) == (three as *const () as u64, 0)
    }
}

impl World for Memory {
    fn load(&mut self, address: u64, width: Width) -> Option<u64> {
        if !self.inside(address, width) {
            return None;
        }
        let mut bytes = [0; 8];
        let from = (address - self.base()) as usize;
        let all: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).chain([0; 8]).collect();
        bytes.copy_from_slice(&all[from..from + 8]);
        Some(cut(width, u64::from_le_bytes(bytes)))
    }

    fn store(&mut self, address: u64, value: u64) {
        self.words[((address - self.base()) / 8) as usize] = value;
    }

    fn call(&mut self, entry: u64, arguments: &[u64]) -> u64 {
        self.calls += 1;
        if entry == three as *const () as u64 {
            return 3;
        }
        mix(arguments[0], arguments[1], arguments[2], arguments[3])
    }
}

fn random_name(random: &mut Random) -> Place {
    Place::Name(NAMES[random.index(2)].into())
}

fn random_place(random: &mut Random, base: u64, depth: usize) -> Place {
    if random.index(2) == 0 {
        return random_name(random);
    }
    let width = Width::ALL[random.index(7)];
    // Mostly in the words, sometimes where no memory can be: no canonical address.
    let far = if random.index(12) == 0 { 1 << 62 } else { 0 };
    let inner = Expression::Binary(
        Binary::BitAnd,
        Box::new(random_expression(random, base, depth)),
        Box::new(Expression::Number(127)),
    );
    let base = base + far;
    let at = Expression::Binary(Binary::Add, Box::new(Expression::Number(base)), Box::new(inner));
    Place::Memory(width, Box::new(at))
}

fn random_expression(random: &mut Random, base: u64, depth: usize) -> Expression {
    let inner = |random: &mut Random| Box::new(random_expression(random, base, depth.saturating_sub(1)));
    match if depth == 0 { random.index(3) } else { random.index(16) } {
        0 => Expression::Number(random.bits() >> random.index(56)),
        1 => Expression::Value(Place::Name(NAMES[random.index(4)].into())),
        2 => Expression::Number(random.index(4) as u64),
        3 => Expression::Cut(Width::ALL[random.index(7)], inner(random)),
        4 => {
            let operator = [Unary::Negate, Unary::Complement, Unary::Not][random.index(3)];
            Expression::Unary(operator, inner(random))
        }
        5..=9 => Expression::Binary(Binary::ALL[random.index(18)], inner(random), inner(random)),
        10 => Expression::Choose(inner(random), inner(random), inner(random)),
        11 => Expression::Assign(random_name(random), inner(random)),
        12 => {
            let operator = Binary::ALL[random.index(10)];
            let value = inner(random);
            Expression::Update(operator, random_name(random), value)
        }
        13 => {
            let arguments = (0..4).map(|_| *inner(random)).collect();
            Expression::Call("mix".into(), arguments)
        }
        14 => Expression::Value(random_place(random, base, depth - 1)),
        _ => Expression::Sequence(inner(random), inner(random)),
    }
}

static LANDINGS: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());
static CODE: AtomicUsize = AtomicUsize::new(0);
const CODE_BYTES: usize = 1 << 20;

extern "C" fn fault(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes the interrupted context.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let at = registers[libc::REG_RIP as usize] as usize;
    let code = CODE.load(Ordering::Relaxed);
    // Nobody holds the lock while compiled code runs.
    let landing = LANDINGS.try_lock().ok().and_then(|landings| landings.get(&at.wrapping_sub(code)).copied());
    match landing {
        Some(landing) => registers[libc::REG_RIP as usize] = (code + landing) as i64,
        None => {
            // SAFETY: ends the process.
            unsafe { libc::abort() }
        }
    }
}

/// One test at a time has the code.
static TURN: Mutex<()> = Mutex::new(());

fn prepare() -> usize {
    // SAFETY: 1. a fresh mapping. 2. The handler only looks at the landings.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT;
        let code = libc::mmap(std::ptr::null_mut(), CODE_BYTES, protection, flags, -1, 0) as usize;
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut());
        libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
        CODE.store(code, Ordering::Relaxed);
        code
    }
}

/// What comes back in two registers.
#[repr(C)]
struct Result2 {
    value: u64,
    ended: u64,
}

/// What the kernel makes of operations that came as bytes.
fn sent(ops: &[Op], memory: &Memory) -> Vec<Op> {
    let mut bytes = Vec::new();
    ops.iter().for_each(|op| encode(*op, &mut bytes));
    decode(&bytes, memory).expect("lowered operations are sound")
}

fn run(code: usize, ops: &[Op]) -> Result<u64, Ended> {
    let bound = compile(ops, None).bind(code as u64).unwrap();
    assert!(bound.bytes.len() <= CODE_BYTES);
    {
        let mut landings = LANDINGS.lock().unwrap();
        landings.clear();
        for landing in &bound.landings {
            landings.extend((landing.from..landing.to).map(|at| (at as usize, landing.landing as usize)));
        }
    }
    ended(enter(code, &bound.bytes))
}

fn enter(code: usize, bytes: &[u8]) -> Result2 {
    // SAFETY: the mapping has room for the bytes, and they are a routine of C's calling convention.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), code as *mut u8, bytes.len());
        std::mem::transmute::<usize, extern "C" fn() -> Result2>(code)()
    }
}

fn ended(result: Result2) -> Result<u64, Ended> {
    match Ended::from_word(result.ended) {
        Ended::Well => Ok(result.value),
        other => Err(other),
    }
}

#[test]
fn compiled_and_interpreted_expressions_agree() {
    let _turn = TURN.lock();
    let code = prepare();
    let mut memory = Memory::new();
    let base = memory.base();
    let mut ended = [0; 3];
    for seed in 1..=60_000u64 {
        let mut random = Random::new(seed);
        memory.fill(&mut random);
        let before = *memory.words;
        let depth = random.index(6);
        let expression = random_expression(&mut random, base, depth);
        let expected = walk(&expression, &mut memory);
        let after = std::mem::replace(&mut *memory.words, before);
        let ops = lower(&expression, &mut memory).expect("all names are known");
        if ops.len() > monitor::OPS_MAX {
            continue;
        }
        let ops = sent(&ops, &memory);
        assert_eq!(interpret(&ops, &mut memory), expected, "seed {seed}: {expression:?}");
        assert!(*memory.words == after, "seed {seed}: other memory interpreted after {expression:?}");
        *memory.words = before;
        assert_eq!(run(code, &ops), expected, "seed {seed}: {expression:?}");
        assert!(*memory.words == after, "seed {seed}: other memory after {expression:?}");
        ended[expected.err().map_or(0, |ended| ended as usize)] += 1;
    }
    assert!(ended.iter().all(|count| *count > 500), "every end is met: {ended:?}");
}

fn value_of(text: &str) -> Result<u64, Ended> {
    let mut memory = Memory::new();
    walk(&parse(text).unwrap_or_else(|error| panic!("{text}: {error:?}")), &mut memory)
}

#[test]
fn precedence_is_that_of_c() {
    for (text, value) in [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("1 << 4 + 1", 32),
        ("7 & 3 == 3", 1),
        ("1 | 2 ^ 3 & 6", 1),
        ("5 > 3 && 2 > 1 || 0 / 0", 1),
        ("0 && 1 / 0", 0),
        ("1 ? 2 : 3 ? 4 : 5", 2),
        ("-7 / 2", (-3i64) as u64),
        ("-7 % 3", (-1i64) as u64),
        ("~0 >> 4", u64::MAX),
        ("(u8)300 + (i8)200", 44u64.wrapping_add(-56i64 as u64)),
        ("!5 + !0", 1),
        ("$a = $b = 4, $a += 3, ++$b, $a * $b", 35),
        ("0x_ff + 0b101 + 1_000", 1260),
        ("'a' + '\\n'", 107),
        ("- - -3", (-3i64) as u64),
        ("three() * 2", 6),
        ("$a = 5, *&$a", 5),
        ("$b = 9, (&$a)[1]", 9),
        ("$a = 258, *(u8 *)&$a", 2),
    ] {
        assert_eq!(value_of(text), Ok(value), "{text}");
    }
    assert_eq!(value_of("1 / (2 - 2)"), Err(Ended::DividedByZero));
    assert_eq!(value_of("*8"), Err(Ended::BadAddress));
}

#[test]
fn what_is_no_expression_is_refused_with_its_place() {
    for text in [
        "",
        "1 +",
        "(1",
        "1)",
        "1 2",
        "= 3",
        "3 = 4",
        "f(1,",
        "f(1,2,3,4,5,6,7)",
        "'ab'",
        "''",
        "0x",
        "12z",
        "99999999999999999999",
        "#",
        "a ? b",
        "1 ? : 2",
        "*",
        "&5",
        "a[1",
        "\u{e4}",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
    let deep = "(".repeat(5000) + "1" + &")".repeat(5000);
    assert!(parse(&deep).is_err());
    let long = "1+".repeat(300) + "1";
    assert!(parse(&long).is_err());
}

#[test]
fn random_text_never_hurts_the_reader() {
    const PARTS: &str = "1;0x7f;$a;pipe.write;(;);[;];+;-;*;/;%;<<;>>=;&&;||;?;:;,;=;==;!;~;&;(u8 *);(i32);'x';f(;++;--; ;\n;\
        \u{2211};#;';0b;9999999999999999999999;limit;three()";
    let parts: Vec<&str> = PARTS.split(';').collect();
    let mut memory = Memory::new();
    let mut good = 0;
    for seed in 1..=200_000u64 {
        let mut random = Random::new(seed);
        let text: String = (0..random.index(12)).map(|_| parts[random.index(parts.len())]).collect();
        if let Ok(expression) = parse(&text) {
            good += 1;
            let _ = lower(&expression, &mut memory);
        }
    }
    assert!(good > 1000, "{good} were expressions");
}

#[test]
fn a_load_outside_of_the_reach_ends_it() {
    let _turn = TURN.lock();
    let code = prepare();
    let mut memory = Memory::new();
    // Behind the code, in the low 2 GB as the kernel's own memory is.
    let base = (code + CODE_BYTES / 2) as u64;
    let reach = base..base + 4096;
    for (text, end) in [
        (format!("*{base:#x}"), Ended::Well),
        (format!("*{:#x}", base + 4088), Ended::Well),
        (format!("*{:#x}", base + 4096), Ended::BadAddress),
        (format!("*{:#x}", base - 8), Ended::BadAddress),
        (format!("*(u8 *){:#x}", memory.base()), Ended::BadAddress),
        ("*-8".into(), Ended::BadAddress),
    ] {
        let ops = lower(&parse(&text).unwrap(), &mut memory).unwrap();
        let bound = compile(&ops, Some(&reach)).bind(code as u64).unwrap();
        assert_eq!(Ended::from_word(enter(code, &bound.bytes).ended), end, "{text}");
    }
    let mut refused = |text| lower(&parse(text).unwrap(), &mut memory).err();
    assert_eq!(refused("*$a = 1"), Some(CompileError::MayNotStore));
    assert_eq!(refused("$a = 1"), None);
}

/// Whatever bytes come: what is accepted runs, returns with the stack as it was, and does what the twin does.
#[test]
fn random_operations_never_hurt() {
    let _turn = TURN.lock();
    let code = prepare();
    let mut memory = Memory::new();
    let mut accepted = 0;
    for seed in 1..=300_000u64 {
        let mut random = Random::new(seed);
        memory.words.fill(0);
        let base = memory.base();
        let mut bytes = Vec::new();
        for _ in 0..random.index(14) {
            let op = match random.index(13) {
                0 => Op::Number(random.bits()),
                1..=3 => Op::Push,
                4 => Op::Truth,
                5..=6 => Op::Binary(Binary::ALL[random.index(16)]),
                7 => Op::Store(base + 8 * random.index(3) as u64),
                8 => Op::Skip(random.index(5) as u16),
                9 => Op::SkipIfZero(random.index(5) as u16),
                10 => Op::SkipIfNotZero(random.index(5) as u16),
                11 => Op::BeginCall,
                _ if random.index(2) == 0 => Op::Call { entry: three as *const () as u64, arguments: 0 },
                _ => Op::Call { entry: mix as *const () as u64, arguments: 4 },
            };
            encode(op, &mut bytes);
        }
        if random.index(20) == 0 {
            bytes.truncate(random.index(30));
        }
        let Some(ops) = decode(&bytes, &memory) else { continue };
        accepted += 1;
        let expected = interpret(&ops, &mut memory);
        memory.words.fill(0);
        // Where code is skipped that pushes, both find the same words; nothing else can be told of a first value.
        if matches!(ops.first(), Some(Op::Number(_))) {
            assert_eq!(run(code, &ops), expected, "seed {seed}: {ops:?}");
        } else {
            let _ = run(code, &ops);
        }
    }
    assert!(accepted > 3000, "{accepted} were sound");
}

/// The blocks, run: what is not taken stays with a pump, a switch sends where its word says, a queue tells what finds no room.
#[test]
fn blocks_lose_no_word() {
    use monitor::blocks::{self, PumpAt, QueueAt, Way};
    let _turn = TURN.lock();
    let code = prepare();
    let memory = Memory::new();
    let at = |word: usize| memory.base() + 8 * word as u64;
    // Each routine has its place; slots hold the places.
    let place = |number: usize, draft: synth::Draft| {
        let entry = code + number * 256;
        let bound = draft.bind(entry as u64).expect("it fits");
        // SAFETY: the mapping has room for the bytes.
        unsafe { std::ptr::copy_nonoverlapping(bound.bytes.as_ptr(), entry as *mut u8, bound.bytes.len()) };
        entry as u64
    };
    let call = |entry: u64, a: u64, b: u64| {
        // SAFETY: each is a routine of C's calling convention.
        unsafe { std::mem::transmute::<usize, extern "C" fn(u64, u64) -> u64>(entry as usize)(a, b) }
    };
    let word = |at: u64| {
        // SAFETY: the words are ours; code changes them.
        unsafe { (at as *const u64).read_volatile() }
    };
    let set = |at: u64, value: u64| {
        // SAFETY: as above.
        unsafe { (at as *mut u64).write_volatile(value) }
    };
    (0..WORDS).for_each(|number| set(at(number), 0));
    // Words 0 to 7: a queue of two; 8 to 15: another; 16 to 19: a pump; 20: a gauge; 21 to 23: a switch.
    let queue = |first: usize| QueueAt {
        head: at(first),
        tail: at(first + 1),
        full: at(first + 2),
        words: at(first + 4),
        capacity: 2,
    };
    let [put, get] = [blocks::queue_put(queue(0)), blocks::queue_get(queue(0))];
    let [put, get] = [place(0, put), place(1, get)];
    let [put_out, get_out] = [place(2, blocks::queue_put(queue(8))), place(3, blocks::queue_get(queue(8)))];
    let gauge = place(4, blocks::gauge_add(at(20)));
    let nowhere = place(5, blocks::unconnected());
    set(at(2), gauge);
    set(at(10), nowhere);
    assert_eq!([5, 6, 7].map(|value| call(put, value, 0)), [1, 1, blocks::NOTHING]);
    assert_eq!(word(at(20)), 7, "the word that found no room was told");
    // The pump: in through word 24, out through word 25, done through word 19.
    [(24, get), (25, put_out), (19, gauge)].into_iter().for_each(|(slot, entry)| set(at(slot), entry));
    let pump = PumpAt { word: at(16), held: at(17), total: at(18), done: at(19) };
    let turn = place(6, blocks::pump_turn(pump, Way::Slot(at(24)), Way::Slot(at(25))));
    assert_eq!((call(turn, 9, 0), word(at(20))), (2, 9), "both went, and that was told");
    assert_eq!([call(put, 8, 0), call(put, 9, 0)], [1, 1]);
    assert_eq!((call(turn, 9, 0), word(at(17)), word(at(16))), (0, 1, 8), "the next one waits with the pump");
    assert_eq!([call(get_out, 0, 0), call(get_out, 0, 0), call(turn, 9, 0)], [5, 6, 2]);
    assert_eq!([call(get_out, 0, 0), call(get_out, 0, 0), call(get_out, 0, 0)], [8, 9, blocks::NOTHING]);
    assert_eq!((word(at(18)), call(turn, 9, 0)), (4, 0));
    // The switch: two ways, words 22 and 23.
    [(22, put), (23, gauge)].into_iter().for_each(|(slot, entry)| set(at(slot), entry));
    let send = place(7, blocks::switch_send(at(21), at(22), 2));
    assert_eq!((call(send, 3, 0), call(get, 0, 0)), (1, 3));
    set(at(21), 1);
    let before = word(at(20));
    assert_eq!(call(send, 4, 0), before + 4);
    for way in [2, u64::MAX, 1 << 63] {
        set(at(21), way);
        assert_eq!(call(send, 4, 0), blocks::NOTHING);
    }
}
