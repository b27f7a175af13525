//! The host's Linux as judge: it executes each odd file, and what it says must be what we say.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Bytes, Header, WHOLE, program};
use crate::exec::elf::{self, ElfError};
use crate::exec::plan::{Plan, Step, interpreter_bias, mmap_top};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// `execve` returned this number.
    Refused(i32),
    /// The program died by this signal.
    Killed(i32),
    Exited(i32),
    /// Only ours: loaded; what it does then is the processor's business.
    Loaded,
}

const SIGSEGV: i32 = 11;
const ETXTBSY: i32 = 26;

fn theirs(path: &Path) -> Verdict {
    loop {
        let status = Command::new(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        match status.as_ref().map_err(|error| error.raw_os_error()) {
            // Another test's child may hold the file open for writing for a moment.
            Err(Some(ETXTBSY)) => std::thread::yield_now(),
            Err(errno) => return Verdict::Refused(errno.expect("an errno")),
            Ok(status) => {
                return match status.signal() {
                    Some(signal) => Verdict::Killed(signal),
                    None => Verdict::Exited(status.code().expect("an exit status")),
                };
            }
        }
    }
}

fn ours(file: &[u8]) -> Verdict {
    let program = match elf::parse(&Bytes(file.to_vec())) {
        Ok(image) => image,
        Err(error) => return Verdict::Refused(error.program_errno() as i32),
    };
    let interpreter = match program.interp.as_ref().map(|path| interpreter(path)) {
        Some(Err(errno)) => return Verdict::Refused(errno),
        Some(Ok(image)) => Some(image),
        None => None,
    };
    let bias = interpreter.as_ref().and_then(|image| interpreter_bias(image, mmap_top(8 << 20)));
    match Plan::new(&program, interpreter.as_ref().map(|image| (image, bias.unwrap_or(0)))) {
        Ok(plan) if plan.steps.iter().all(is_mappable) => Verdict::Loaded,
        _ => Verdict::Killed(SIGSEGV),
    }
}

/// Stands for the mapper, which runs out of memory or of address space.
fn is_mappable(step: &Step) -> bool {
    match *step {
        Step::Anonymous { addr, len, .. } => len < 1 << 36 && addr + len < 0x7ff0_0000_0000,
        Step::File { .. } | Step::Zero { .. } => true,
    }
}

fn interpreter(path: &[u8]) -> Result<elf::Image, i32> {
    let path = PathBuf::from(String::from_utf8_lossy(path).into_owned());
    let metadata = std::fs::metadata(&path).map_err(|error| error.raw_os_error().unwrap())?;
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        return Err(abi::Errno::EACCES as i32);
    }
    let file = std::fs::read(&path).unwrap();
    elf::parse_interpreter(&Bytes(file)).map_err(|error: ElfError| error.interpreter_errno() as i32)
}

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("synthesis-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        // A new file each time: the old one may still be running.
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Compares the verdicts; `Loaded` agrees with everything but a refusal.
fn agree(theirs: Verdict, ours: Verdict) -> bool {
    theirs == ours || ours == Verdict::Loaded && !matches!(theirs, Verdict::Refused(_))
}

const DATA: Header =
    Header { kind: 1, flags: 6, offset: 0x10, vaddr: 0x40_1010, file_size: 0x100, mem_size: 0x2800, align: 0x1000 };

fn odd_files(folder: &Folder) -> Vec<(&'static str, Vec<u8>)> {
    let two = |header: Header| program(2, &[WHOLE, header]);
    let asks_for = |path: &[u8]| {
        let mut file = two(Header { kind: 3, offset: 0x380, file_size: path.len() as u64, ..WHOLE });
        file[0x380..0x380 + path.len()].copy_from_slice(path);
        file
    };
    let bad_interpreter =
        |name: &str, bytes: &[u8]| asks_for(format!("{}\0", folder.file(name, bytes).to_str().unwrap()).as_bytes());
    vec![
        ("plain", program(2, &[WHOLE])),
        ("plain, position-independent", program(3, &[Header { vaddr: 0, ..WHOLE }])),
        ("bss", two(DATA)),
        ("empty file", Vec::new()),
        ("magic only", b"\x7fELF".to_vec()),
        ("cut in the table", program(2, &[WHOLE])[..100].to_vec()),
        ("no headers", program(2, &[])),
        ("relocatable", program(1, &[WHOLE])),
        ("no segment", program(2, &[Header { kind: 4, ..WHOLE }])),
        ("no segment, position-independent", program(3, &[Header { kind: 4, ..WHOLE }])),
        ("file larger than memory", two(Header { file_size: 0x2801, ..DATA })),
        ("misaligned", two(Header { offset: 0x11, ..DATA })),
        ("before the file", two(Header { offset: 0, ..DATA })),
        ("offset wraps", two(Header { offset: u64::MAX - 0xfef, ..DATA })),
        ("beyond user space", two(Header { mem_size: 1 << 47, ..DATA })),
        ("memory wraps", two(Header { mem_size: u64::MAX, ..DATA })),
        ("in the kernel", two(Header { vaddr: 0xffff_ffff_8000_0010, ..DATA })),
        ("nothing in it", two(Header { file_size: 0, mem_size: 0, ..DATA })),
        ("same twice", two(WHOLE)),
        ("bss of read-only segment", two(Header { flags: 4, ..DATA })),
        ("alignment not a power of two", two(Header { align: 3, ..DATA })),
        ("path of one byte", asks_for(b"\0")),
        ("path without NUL", asks_for(b"/bin/true")),
        ("path does not exist", asks_for(b"/no/such\0")),
        ("path is a folder", asks_for(b"/tmp\0")),
        ("path through a file", asks_for(b"/bin/true/x\0")),
        ("path too long", two(Header { kind: 3, offset: 0, file_size: 4097, ..WHOLE })),
        ("path beyond the file", two(Header { kind: 3, offset: 0x3f0, file_size: 0x20, ..WHOLE })),
        ("path at an absurd offset", two(Header { kind: 3, offset: u64::MAX, file_size: 4, ..WHOLE })),
        ("interpreter is short", bad_interpreter("short", b"\x7fELF")),
        ("interpreter is text", bad_interpreter("text", &[b'#'; 100])),
        ("interpreter without headers", bad_interpreter("headless", &program(2, &[]))),
        ("interpreter is relocatable", bad_interpreter("object", &program(1, &[WHOLE]))),
        ("interpreter without segments", bad_interpreter("empty", &program(3, &[Header { kind: 4, ..WHOLE }]))),
        ("interpreter runs", bad_interpreter("good", &program(3, &[Header { vaddr: 0, ..WHOLE }]))),
    ]
}

#[test]
fn odd_files_end_as_on_linux() {
    let folder = Folder::new("odd");
    let mut differences = Vec::new();
    for (name, file) in odd_files(&folder) {
        let (theirs, ours) = (theirs(&folder.file("program", &file)), ours(&file));
        if !agree(theirs, ours) {
            differences.push(format!("{name}: Linux {theirs:?}, here {ours:?}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Seed 3. Only bytes of the headers change, and never those of an interpreter's path.
#[test]
fn mutated_headers_end_as_on_linux() {
    let folder = Folder::new("mutated");
    let mut random = means::Random::new(3);
    let mut differences = Vec::new();
    for _ in 0..400 {
        let kind = 2 + random.index(2) as u16;
        let mut file = program(kind, &[WHOLE, DATA]);
        let mut changes = Vec::new();
        for _ in 0..1 + random.index(2) {
            let at = random.index(64 + 2 * 56);
            file[at] = [0, 1, 2, 3, 0x7f, 0x80, 0xff, random.bits() as u8][random.index(8)];
            changes.push(format!("{at:#x}={:#x}", file[at]));
        }
        let (theirs, ours) = (theirs(&folder.file("program", &file)), ours(&file));
        if !agree(theirs, ours) {
            differences.push(format!("type {kind} {}: Linux {theirs:?}, here {ours:?}", changes.join(" ")));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
