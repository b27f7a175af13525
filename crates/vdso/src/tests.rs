//! The image as the C library's start-up sees it, and its functions called in this process.

use super::*;
use std::arch::x86_64::_rdtsc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const DT_VERSYM: u64 = 0x6fff_fff0;
const DT_VERDEF: u64 = 0x6fff_fffc;

const FUNCTIONS: [&str; 10] = [
    "__vdso_clock_gettime",
    "__vdso_gettimeofday",
    "__vdso_time",
    "__vdso_getcpu",
    "__vdso_clock_getres",
    "__synthesis_getpid",
    "__synthesis_getuid",
    "__synthesis_geteuid",
    "__synthesis_getgid",
    "__synthesis_getegid",
];

#[test]
fn a_user_level_call_lies_where_its_symbol_says() {
    for (name, number) in FUNCTIONS[5..].iter().zip(USER_CALLS) {
        let symbol = lookup(name).unwrap();
        let value = self::number(dynamic(DT_SYMTAB) + symbol * 24 + 8, 8);
        assert_eq!(user_call_offset(number), Some(value as usize), "{name}");
    }
    assert_eq!(user_call_offset(110), None);
}

#[test]
fn the_heads_of_a_user_level_call_agree_where_a_thread_may_stand() {
    let (slow, constant) = (slow_head(), constant_head(0x1234_5678));
    assert_eq!((slow[5], constant[5]), (0xC3, 0xC3));
    assert_eq!(constant[..5], [0xB8, 0x78, 0x56, 0x34, 0x12]);
}

fn number(at: u64, bytes: usize) -> u64 {
    let mut word = [0; 8];
    word[..bytes].copy_from_slice(&IMAGE[at as usize..at as usize + bytes]);
    u64::from_le_bytes(word)
}

fn string(at: u64) -> &'static str {
    let bytes = &IMAGE[at as usize..];
    let end = bytes.iter().position(|byte| *byte == 0).unwrap();
    std::str::from_utf8(&bytes[..end]).unwrap()
}

fn program_headers() -> impl Iterator<Item = u64> {
    (0..number(56, 2)).map(|index| number(32, 8) + index * 56)
}

/// The value of a tag in the dynamic section.
fn dynamic(tag: u64) -> u64 {
    let header = program_headers().find(|at| number(*at, 4) == PT_DYNAMIC).unwrap();
    let mut at = number(header + 16, 8);
    while number(at, 8) != tag {
        assert_ne!(number(at, 8), 0, "tag {tag:#x} is missing");
        at += 16;
    }
    number(at + 8, 8)
}

fn symbol_name(index: u64) -> &'static str {
    string(dynamic(DT_STRTAB) + number(dynamic(DT_SYMTAB) + index * 24, 4))
}

/// Name and stored hash of the version that a symbol has.
fn version(index: u64) -> (&'static str, u64) {
    let wanted = number(dynamic(DT_VERSYM) + index * 2, 2) & 0x7fff;
    let mut at = dynamic(DT_VERDEF);
    while number(at + 4, 2) != wanted {
        assert_ne!(number(at + 16, 4), 0, "version {wanted} is missing");
        at += number(at + 16, 4);
    }
    let name = number(at + number(at + 12, 4), 4);
    (string(dynamic(DT_STRTAB) + name), number(at + 8, 4))
}

/// System V ABI, chapter 5, "Hash Table".
fn elf_hash(name: &str) -> u64 {
    name.bytes().fold(0u64, |hash, byte| {
        let sum = (hash << 4) + byte as u64;
        let high = sum & 0xf000_0000;
        (sum ^ high >> 24) & !high
    })
}

fn lookup(name: &str) -> Option<u64> {
    let table = dynamic(DT_HASH);
    let buckets = number(table, 4);
    let mut index = number(table + 8 + elf_hash(name) % buckets * 4, 4);
    while index != 0 && symbol_name(index) != name {
        index = number(table + 8 + (buckets + index) * 4, 4);
    }
    (index != 0).then_some(index)
}

fn gnu_lookup(name: &str) -> Option<u64> {
    let hash = name.bytes().fold(5381u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(byte as u32)) as u64;
    let table = dynamic(DT_GNU_HASH);
    let (buckets, first, words) = (number(table, 4), number(table + 4, 4), number(table + 8, 4));
    let bucket_at = table + 16 + words * 8;
    let mut index = number(bucket_at + hash % buckets * 4, 4);
    loop {
        let stored = number(bucket_at + (buckets + index - first) * 4, 4);
        if stored | 1 == hash | 1 && symbol_name(index) == name {
            return Some(index);
        }
        if stored & 1 == 1 {
            return None;
        }
        index += 1;
    }
}

#[test]
fn every_function_is_found_with_its_version() {
    for name in FUNCTIONS {
        let index = lookup(name).unwrap();
        assert_eq!(gnu_lookup(name), Some(index));
        // The C library asks for this name with this hash.
        assert_eq!(version(index), ("LINUX_2.6", 61_765_110));
        assert_eq!(elf_hash("LINUX_2.6"), 61_765_110);
        let symbol = dynamic(DT_SYMTAB) + index * 24;
        assert_eq!(number(symbol + 4, 1), 0x12, "{name} is a global function");
        assert_ne!(number(symbol + 6, 2), 0, "{name} is defined");
    }
    assert_eq!(lookup("__vdso_nothing"), None);
}

#[test]
fn the_file_is_the_memory() {
    assert_eq!(IMAGE.len() % 4096, 0);
    let loads: Vec<u64> = program_headers().filter(|at| number(*at, 4) == PT_LOAD).collect();
    let [load] = loads[..] else { panic!("{} segments", loads.len()) };
    assert_eq!(number(load + 4, 4), 5, "read and execute");
    assert_eq!((number(load + 8, 8), number(load + 16, 8)), (0, 0));
    assert_eq!(number(load + 32, 8), number(load + 40, 8), "no bss");
}

unsafe extern "C" {
    fn mmap(addr: *mut u8, len: usize, prot: i32, flags: i32, fd: i32, offset: i64) -> *mut u8;
    fn mprotect(addr: *mut u8, len: usize, prot: i32) -> i32;
}

/// The image and its time page, mapped into this process and never unmapped.
#[derive(Clone, Copy)]
struct Mapped(usize);

impl Mapped {
    fn new(page: TimePage) -> Mapped {
        let len = TIME_PAGE_BYTES + IMAGE.len();
        // SAFETY: fresh private anonymous memory (3: read and write; 0x22: private, anonymous).
        let base = unsafe { mmap(std::ptr::null_mut(), len, 3, 0x22, -1, 0) };
        assert_ne!(base as isize, -1);
        let image = base.wrapping_add(TIME_PAGE_BYTES);
        // SAFETY: `len` covers the image behind the page.
        unsafe { std::ptr::copy_nonoverlapping(IMAGE.as_ptr(), image, IMAGE.len()) };
        // SAFETY: whole pages of the mapping above (5: read and execute).
        assert_eq!(unsafe { mprotect(image, IMAGE.len(), 5) }, 0);
        let mapped = Mapped(base as usize);
        mapped.publish(page);
        mapped
    }

    fn publish(self, page: TimePage) -> u32 {
        page.publish(|offset, value| {
            let word = (self.0 + offset) as *mut u64;
            // SAFETY: an aligned word of the time page, which is only used atomically.
            unsafe { AtomicU64::from_ptr(word) }.store(value, Ordering::Release);
        })
    }

    fn address(self, name: &str) -> usize {
        let symbol = dynamic(DT_SYMTAB) + lookup(name).unwrap() * 24;
        self.0 + TIME_PAGE_BYTES + number(symbol + 8, 8) as usize
    }

    fn clock_gettime(self, clock: i32) -> Result<u64, i32> {
        let function: extern "C" fn(i32, *mut [i64; 2]) -> i32 =
            // SAFETY: the symbol has this type.
            unsafe { std::mem::transmute(self.address("__vdso_clock_gettime")) };
        let mut time = [0; 2];
        match function(clock, &mut time) {
            0 => Ok(time[0] as u64 * 1_000_000_000 + time[1] as u64),
            error => Err(error),
        }
    }
}

fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has it.
    unsafe { _rdtsc() }
}

fn page() -> TimePage {
    TimePage {
        tsc_base: tsc(),
        mult: TimePage::mult_of(2_000_000_000),
        mono_base_ns: 5_000_000_000,
        realtime_offset_ns: 1_700_000_000_000_000_000,
        ..TimePage::default()
    }
}

#[test]
fn clocks_follow_the_counter() {
    let page = page();
    let mapped = Mapped::new(page);
    for _ in 0..1000 {
        let before = page.monotonic_ns(tsc());
        let monotonic = mapped.clock_gettime(1).unwrap();
        let realtime = mapped.clock_gettime(0).unwrap() - page.realtime_offset_ns;
        let after = page.monotonic_ns(tsc());
        assert!(before <= monotonic && monotonic <= realtime && realtime <= after);
    }
}

#[test]
fn the_old_calls_agree() {
    let mapped = Mapped::new(page());
    let gettimeofday: extern "C" fn(*mut [i64; 2], *mut [i32; 2]) -> i32 =
        // SAFETY: the symbol has this type.
        unsafe { std::mem::transmute(mapped.address("__vdso_gettimeofday")) };
    // SAFETY: the symbol has this type.
    let time: extern "C" fn(*mut i64) -> i64 = unsafe { std::mem::transmute(mapped.address("__vdso_time")) };
    let (mut value, mut zone, mut seconds) = ([0; 2], [9; 2], 0);
    let before = mapped.clock_gettime(0).unwrap();
    assert_eq!(gettimeofday(&mut value, &mut zone), 0);
    assert_eq!(zone, [0, 0]);
    assert!((before / 1000..before / 1000 + 1_000_000).contains(&((value[0] * 1_000_000 + value[1]) as u64)));
    let now = time(&mut seconds);
    assert_eq!(now, seconds);
    assert!(now == value[0] || now == value[0] + 1);
    assert_eq!(gettimeofday(std::ptr::null_mut(), std::ptr::null_mut()), 0);
    assert_eq!(time(std::ptr::null_mut()) / 10, now / 10);
}

#[test]
fn without_a_counter_the_kernel_is_asked() {
    let mapped = Mapped::new(TimePage::default());
    let host = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64;
    assert!(mapped.clock_gettime(0).unwrap() - host < 10_000_000_000);
    assert!(mapped.clock_gettime(3).is_ok()); // this thread's processor time
    assert_eq!(mapped.clock_gettime(12345), Err(-22));
    let getres: extern "C" fn(i32, *mut [i64; 2]) -> i32 =
        // SAFETY: the symbol has this type.
        unsafe { std::mem::transmute(mapped.address("__vdso_clock_getres")) };
    let mut time = [9; 2];
    assert_eq!((getres(1, &mut time), time), (0, [0, 1]));
    let getcpu: extern "C" fn(*mut u32, *mut u32, usize) -> i32 =
        // SAFETY: the symbol has this type.
        unsafe { std::mem::transmute(mapped.address("__vdso_getcpu")) };
    let mut processor = u32::MAX;
    assert_eq!(getcpu(&mut processor, std::ptr::null_mut(), 0), 0);
    assert!(processor < 4096);
}

#[test]
fn a_counter_behind_the_base_does_not_turn_time_back() {
    let mapped = Mapped::new(TimePage { tsc_base: u64::MAX, ..page() });
    assert_eq!(mapped.clock_gettime(1), Ok(5_000_000_000));
}

/// The two halves of each published pair add up to the same time; a torn read does not.
#[test]
fn a_reader_never_sees_half_an_update() {
    const SUM: u64 = 1 << 60;
    let start = TimePage { tsc_base: u64::MAX, mono_base_ns: 0, realtime_offset_ns: SUM, ..page() };
    let mapped = Mapped::new(start);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut page = TimePage { seq: 2, ..start };
            while !done.load(Ordering::Relaxed) {
                page.mono_base_ns += 1;
                page.realtime_offset_ns -= 1;
                page.seq = mapped.publish(page);
            }
        });
        let torn = (0..1_000_000).filter(|_| mapped.clock_gettime(0) != Ok(SUM)).count();
        done.store(true, Ordering::Relaxed);
        assert_eq!(torn, 0);
    });
}

#[test]
fn one_hertz_to_many() {
    assert_eq!(TimePage::mult_of(0), 0);
    assert_eq!(TimePage::mult_of(1_000_000_000), 1 << 32);
    let page = TimePage { mult: TimePage::mult_of(3_000_000_000), ..TimePage::default() };
    assert!(page.monotonic_ns(3_000_000_000 * 3600).abs_diff(3600 * 1_000_000_000) < 3600);
}
