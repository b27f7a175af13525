//! Starts programs of the host by our plan, our stack and our vDSO, in a child of this process: what
//! the kernel will do, with mmap as the quaspace. If a table, a pointer or a zero is wrong, the
//! dynamic linker or the C library stumbles over it.
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "one proof for what a test does with its own memory")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "not in the kernel: it may take what it likes"
)]

use std::arch::asm;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;

use abi::Errno;
use machine::Protection;
use unix::exec::elf::{FileBytes, parse, parse_interpreter};
use unix::exec::plan::interpreter_bias;
use unix::exec::stack::{self, Arguments};
use unix::exec::{InitialStack, Mapper, Plan, ProgramFacts, Source, load};
use vdso::{IMAGE, TIME_PAGE_BYTES, TimePage};

const INTERPRETER_TOP: u64 = 0x7000_0000_0000;
const STACK_TOP: u64 = 0x6fff_0000_0000;
const STACK_BYTES: u64 = 8 << 20;
const VDSO_AT: u64 = 0x6ffe_0000_0000;

const MAP_PRIVATE: i32 = 2;
const MAP_ANONYMOUS: i32 = 0x20;
/// Nothing of this process may be in the way.
const MAP_FIXED_NOREPLACE: i32 = 0x10_0000;

unsafe extern "C" {
    fn mmap(addr: u64, len: u64, prot: i32, flags: i32, fd: i32, offset: u64) -> u64;
    fn mprotect(addr: u64, len: u64, prot: i32) -> i32;
    fn fork() -> i32;
    fn waitpid(pid: i32, status: &mut i32, options: i32) -> i32;
    fn pipe(ends: &mut [i32; 2]) -> i32;
    fn dup2(from: i32, to: i32) -> i32;
    fn _exit(status: i32) -> !;
}

struct HostFile(File);

impl FileBytes for HostFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, Errno> {
        self.0.read_at(into, offset).map_err(|_| Errno::EIO)
    }

    fn size(&self) -> u64 {
        self.0.metadata().map_or(0, |metadata| metadata.len())
    }
}

/// The child's memory as a quaspace.
struct Child {
    program: i32,
    interpreter: i32,
}

fn prot_bits(prot: Protection) -> i32 {
    prot.read as i32 | (prot.write as i32) << 1 | (prot.execute as i32) << 2
}

fn map(addr: u64, len: u64, prot: i32, flags: i32, fd: i32, offset: u64) -> Result<(), Errno> {
    // SAFETY: never replaces a mapping.
    match unsafe { mmap(addr, len, prot, flags | MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, offset) } {
        mapped if mapped == addr => Ok(()),
        _ => Err(Errno::ENOMEM),
    }
}

impl Mapper for Child {
    fn map_file(&mut self, source: Source, addr: u64, len: u64, prot: Protection, offset: u64) -> Result<(), Errno> {
        let fd = match source {
            Source::Program => self.program,
            Source::Interpreter => self.interpreter,
        };
        map(addr, len, prot_bits(prot), 0, fd, offset)
    }

    fn map_anonymous(&mut self, addr: u64, len: u64, prot: Protection) -> Result<(), Errno> {
        map(addr, len, prot_bits(prot), MAP_ANONYMOUS, -1, 0)
    }

    fn zero(&mut self, addr: u64, len: u64) -> Result<(), Errno> {
        // SAFETY: the plan zeroes only what it has mapped writable.
        unsafe { std::ptr::write_bytes(addr as *mut u8, 0, len as usize) };
        Ok(())
    }
}

/// Everything the child needs, made before the fork: the child may not allocate.
struct Start {
    plan: Plan,
    stack: InitialStack,
    child: Child,
    time: TimePage,
    _files: [Option<HostFile>; 2],
}

impl Start {
    fn new(path: &str, argv: &[&str], time: TimePage) -> Start {
        let file = HostFile(File::open(path).expect("the program"));
        let image = parse(&file).expect("an ELF program");
        let linker = image.interp.as_ref().map(|path| {
            HostFile(File::open(std::str::from_utf8(path).expect("a plain path")).expect("the interpreter"))
        });
        let linker_image = linker.as_ref().map(|file| parse_interpreter(file).expect("an ELF interpreter"));
        let second =
            linker_image.as_ref().map(|image| (image, interpreter_bias(image, INTERPRETER_TOP).expect("room")));
        let plan = Plan::new(&image, second).expect("a plan");
        let facts = ProgramFacts {
            phdr: plan.phdr,
            phentsize: image.phentsize,
            phnum: image.phnum,
            interpreter_base: plan.interpreter_base,
            entry: plan.entry,
            random: [0x5a; 16],
            hwcap: 0x178b_fbff,
            vdso: Some(VDSO_AT),
            signal_frame_bytes: 3376,
            ..ProgramFacts::default()
        };
        let argv: Vec<Vec<u8>> = argv.iter().map(|argument| argument.as_bytes().to_vec()).collect();
        let arguments = Arguments { path: path.as_bytes(), argv: &argv, envp: &[b"LC_ALL=C".to_vec()] };
        let stack = stack::build(&arguments, &facts, STACK_TOP, STACK_BYTES, &|| {}).expect("a stack");
        let child =
            Child { program: file.0.as_raw_fd(), interpreter: linker.as_ref().map_or(-1, |file| file.0.as_raw_fd()) };
        Start { plan, stack, child, time, _files: [Some(file), linker] }
    }

    /// Standard output and the raw exit status.
    fn run(mut self) -> (String, i32) {
        let mut ends = [0; 2];
        // SAFETY: `ends` has room for two.
        assert_eq!(unsafe { pipe(&mut ends) }, 0);
        // SAFETY: the child only maps, copies and jumps.
        let pid = unsafe { fork() };
        if pid == 0 {
            self.become_program(ends[1]);
        }
        // SAFETY: the ends are ours and nobody else's.
        let (mut output, writer) = unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) };
        drop(writer);
        let mut text = String::new();
        output.read_to_string(&mut text).expect("text");
        let mut status = 0;
        // SAFETY: our child.
        assert_eq!(unsafe { waitpid(pid, &mut status, 0) }, pid);
        (text, status)
    }

    fn become_program(&mut self, output: i32) -> ! {
        if load(&self.plan, &mut self.child).and_then(|()| self.map_stack()).and_then(|()| self.map_vdso()).is_err() {
            // SAFETY: ends the child.
            unsafe { _exit(99) };
        }
        // SAFETY: standard output becomes the pipe.
        unsafe { dup2(output, 1) };
        // SAFETY: leaves Rust for good, as `execve` would.
        unsafe {
            asm!("mov rsp, rcx", "xor edx, edx", "xor ebp, ebp", "jmp rax",
                 in("rcx") self.stack.stack_pointer, in("rax") self.plan.start, options(noreturn))
        }
    }

    fn map_stack(&self) -> Result<(), Errno> {
        map(STACK_TOP - STACK_BYTES, STACK_BYTES, 3, MAP_ANONYMOUS, -1, 0)?;
        let (bytes, to) = (&self.stack.bytes, self.stack.stack_pointer as *mut u8);
        // SAFETY: just mapped.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    fn map_vdso(&self) -> Result<(), Errno> {
        let (page, len) = (VDSO_AT - TIME_PAGE_BYTES as u64, IMAGE.len() as u64);
        map(page, TIME_PAGE_BYTES as u64 + len, 3, MAP_ANONYMOUS, -1, 0)?;
        // SAFETY: just mapped.
        unsafe { std::ptr::copy_nonoverlapping(IMAGE.as_ptr(), VDSO_AT as *mut u8, IMAGE.len()) };
        self.time.publish(|offset, value| {
            // SAFETY: just mapped.
            unsafe { ((page + offset as u64) as *mut u64).write(value) };
        });
        // SAFETY: ours; the protections the kernel gives.
        let protected = unsafe { mprotect(page, TIME_PAGE_BYTES as u64, 1) | mprotect(VDSO_AT, len, 5) };
        if protected == 0 { Ok(()) } else { Err(Errno::EPERM) }
    }
}

/// A clock that stands still.
fn stopped_at(seconds: u64) -> TimePage {
    let realtime_offset_ns = seconds * 1_000_000_000;
    TimePage { tsc_base: u64::MAX, mult: 1, realtime_offset_ns, ..TimePage::default() }
}

#[test]
fn a_dynamic_program_reads_the_time_from_the_vdso() {
    let start = Start::new("/bin/date", &["date", "-u", "+%s"], stopped_at(1_234_567_890));
    assert_eq!(start.run(), ("1234567890\n".into(), 0));
}

#[test]
fn without_a_clock_the_vdso_asks_the_kernel() {
    let (text, status) = Start::new("/bin/date", &["date", "-u", "+%s"], TimePage::default()).run();
    assert_eq!(status, 0);
    assert!(text.trim().parse::<u64>().expect("seconds") > 1_700_000_000);
}

#[test]
fn a_program_without_interpreter_relocates_itself() {
    let linker = "/lib64/ld-linux-x86-64.so.2";
    let start = Start::new(linker, &[linker, "/bin/echo", "a", "", "b c"], TimePage::default());
    assert_eq!(start.run(), ("a  b c\n".into(), 0));
}

#[test]
fn a_shell_runs() {
    let start = Start::new("/bin/sh", &["sh", "-c", "echo $0 $1 $LC_ALL; exit 7", "x", "y"], TimePage::default());
    assert_eq!(start.run(), ("x y C\n".into(), 7 << 8));
}
