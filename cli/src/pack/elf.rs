//! What a program file says about itself: machine, segments, interpreter, libraries, search paths.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::read::ReadRef;
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{LittleEndian, ReadCache, elf};

/// Why a file is not a program of this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotProgram {
    /// Neither ELF nor a script.
    Unknown,
    /// For another system: its name.
    OtherSystem(&'static str),
    /// An ELF file of 32 bits: `e_machine`.
    ThirtyTwoBit(u16),
    /// An ELF file for another processor: `e_machine`.
    Foreign(u16),
    /// An object file, a core dump: `e_type`.
    NotExecutable(u16),
    /// The file is shorter than its headers say, or headers contradict each other.
    Damaged(&'static str),
}

impl std::fmt::Display for NotProgram {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotProgram::Unknown => write!(out, "is neither an ELF program nor a script that starts with #!"),
            NotProgram::OtherSystem(system) => write!(out, "is a program for {system}, not for Linux"),
            NotProgram::ThirtyTwoBit(machine) => {
                write!(out, "is a 32-bit {} program: only 64-bit programs run", Processor(*machine))
            }
            NotProgram::Foreign(machine) => {
                write!(out, "is a program for {}: only those for x86-64 run", Processor(*machine))
            }
            NotProgram::NotExecutable(kind) => write!(out, "is an ELF file but not a program (ELF type {kind})"),
            NotProgram::Damaged(what) => write!(out, "is a damaged ELF file: {what}"),
        }
    }
}

/// `e_machine` in words.
struct Processor(u16);

impl std::fmt::Display for Processor {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self.0 {
            elf::EM_386 => "x86",
            // The ABI "x32": 32-bit pointers on a 64-bit processor.
            elf::EM_X86_64 => "x86 (x32)",
            elf::EM_ARM => "ARM",
            elf::EM_AARCH64 => "AArch64",
            elf::EM_RISCV => "RISC-V",
            elf::EM_MIPS => "MIPS",
            elf::EM_PPC | elf::EM_PPC64 => "PowerPC",
            elf::EM_S390 => "s390",
            elf::EM_SPARC | elf::EM_SPARCV9 => "SPARC",
            elf::EM_LOONGARCH => "LoongArch",
            other => return write!(out, "another processor (ELF machine {other})"),
        };
        out.write_str(name)
    }
}

/// First bytes of the programs of other systems.
const OTHER_SYSTEMS: [(&[u8], &str); 4] = [
    (b"MZ", "Windows or DOS"),
    (b"\xcf\xfa\xed\xfe", "macOS"),
    (b"\xca\xfe\xba\xbe", "macOS or a Java class"),
    (b"\0asm", "WebAssembly"),
];

/// The dynamic needs of an ELF program or library.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// `PT_INTERP`.
    pub interpreter: Option<PathBuf>,
    /// `DT_NEEDED`, in order.
    pub libraries: Vec<Vec<u8>>,
    /// `DT_RPATH`, only honoured where there is no `DT_RUNPATH`.
    pub rpath: Vec<Vec<u8>>,
    /// `DT_RUNPATH`.
    pub runpath: Vec<Vec<u8>>,
}

/// Bytes of the ELF header of a 64-bit file.
const HEADER_BYTES: usize = 64;
/// First address beyond what a program may use (x86-64 with four levels of page tables).
const USER_END: u64 = 0x7fff_ffff_f000;

/// Whether `head`, the first bytes of a file, is the start of an ELF file.
pub fn is_elf(head: &[u8]) -> bool {
    head.starts_with(&elf::ELFMAG)
}

/// Reads `file` as a program or library for x86-64.
pub fn read_needs(file: File) -> Result<Needs, NotProgram> {
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    let cache = ReadCache::new(file);
    needs_of(&cache, bytes)
}

fn needs_of<'a, R: ReadRef<'a>>(data: R, file_bytes: u64) -> Result<Needs, NotProgram> {
    use NotProgram::Damaged;
    let head = data.read_bytes_at(0, file_bytes.min(HEADER_BYTES as u64)).unwrap_or_default();
    check_ident(head)?;
    let header = elf::FileHeader64::<LittleEndian>::parse(data).map_err(|_| Damaged("bad header"))?;
    let segments = header.program_headers(LittleEndian, data).map_err(|_| Damaged("no program headers"))?;
    check_segments(segments, file_bytes)?;
    let mut needs = Needs::default();
    for segment in segments {
        if let Some(path) = segment.interpreter(LittleEndian, data).map_err(|_| Damaged("bad interpreter"))? {
            needs.interpreter = Some(PathBuf::from(OsStr::from_bytes(path)));
        }
        if let Some(entries) = segment.dynamic(LittleEndian, data).map_err(|_| Damaged("bad dynamic section"))? {
            read_dynamic(entries, segments, data, &mut needs).ok_or(Damaged("bad dynamic section"))?;
        }
    }
    Ok(needs)
}

/// Whether the first bytes of a file are those of a program or library for this machine.
pub fn check_ident(head: &[u8]) -> Result<(), NotProgram> {
    if !is_elf(head) {
        let other = OTHER_SYSTEMS.into_iter().find(|(start, _)| head.starts_with(start));
        return Err(other.map_or(NotProgram::Unknown, |(_, system)| NotProgram::OtherSystem(system)));
    }
    let Some(fields) = head.get(16..20) else {
        return Err(NotProgram::Damaged("the header is cut short"));
    };
    let big_endian = head[5] == elf::ELFDATA2MSB;
    let half = |at: usize| {
        let pair = [fields[at], fields[at + 1]];
        if big_endian { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
    };
    let (kind, machine) = (half(0), half(2));
    if head[4] == elf::ELFCLASS32 {
        return Err(NotProgram::ThirtyTwoBit(machine));
    }
    if machine != elf::EM_X86_64 || big_endian {
        return Err(NotProgram::Foreign(machine));
    }
    if kind != elf::ET_EXEC && kind != elf::ET_DYN {
        return Err(NotProgram::NotExecutable(kind));
    }
    if head.len() < HEADER_BYTES {
        return Err(NotProgram::Damaged("the header is cut short"));
    }
    Ok(())
}

/// Loadable segments lie in the file and in the user half, in ascending order without overlap.
fn check_segments(segments: &[elf::ProgramHeader64<LittleEndian>], file_bytes: u64) -> Result<(), NotProgram> {
    use NotProgram::Damaged;
    let mut end = 0;
    let mut any = false;
    for segment in segments.iter().filter(|segment| segment.p_type(LittleEndian) == elf::PT_LOAD) {
        let (offset, in_file) = (segment.p_offset(LittleEndian), segment.p_filesz(LittleEndian));
        let (start, in_memory) = (segment.p_vaddr(LittleEndian), segment.p_memsz(LittleEndian));
        if offset.checked_add(in_file).is_none_or(|file_end| file_end > file_bytes) {
            return Err(Damaged("a segment reaches beyond the end of the file"));
        }
        if in_file > in_memory {
            return Err(Damaged("a segment is larger in the file than in memory"));
        }
        if start.checked_add(in_memory).is_none_or(|memory_end| memory_end > USER_END) {
            return Err(Damaged("a segment reaches beyond the address space of programs"));
        }
        if any && start < end {
            return Err(Damaged("segments overlap or are out of order"));
        }
        (end, any) = (start + in_memory, true);
    }
    if any { Ok(()) } else { Err(Damaged("nothing to load")) }
}

fn read_dynamic<'a, R: ReadRef<'a>>(
    entries: &[elf::Dyn64<LittleEndian>],
    segments: &[elf::ProgramHeader64<LittleEndian>],
    data: R,
    needs: &mut Needs,
) -> Option<()> {
    let entries = || entries.iter().take_while(|entry| entry.tag32(LittleEndian) != Some(elf::DT_NULL));
    let value = |tag| entries().find(|entry| entry.tag32(LittleEndian) == Some(tag)).map(|e| e.d_val(LittleEndian));
    // A static position-independent program has a dynamic section without names.
    let (Some(address), Some(bytes)) = (value(elf::DT_STRTAB), value(elf::DT_STRSZ)) else { return Some(()) };
    let strings =
        segments.iter().find_map(|segment| segment.data_range(LittleEndian, data, address, bytes).ok().flatten())?;
    let string = |offset: u64| Some(strings.get(usize::try_from(offset).ok()?..)?.split(|&b| b == 0).next()?.to_vec());
    for entry in entries() {
        let offset = entry.d_val(LittleEndian);
        match entry.tag32(LittleEndian) {
            Some(elf::DT_NEEDED) => needs.libraries.push(string(offset)?),
            Some(elf::DT_RPATH) => needs.rpath = split_paths(&string(offset)?),
            Some(elf::DT_RUNPATH) => needs.runpath = split_paths(&string(offset)?),
            _ => {}
        }
    }
    Some(())
}

fn split_paths(list: &[u8]) -> Vec<Vec<u8>> {
    list.split(|&byte| byte == b':').filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect()
}

/// `path` of a search list with `$ORIGIN`, `$LIB` and `$PLATFORM` filled in (ld.so(8)).
pub fn expand(path: &[u8], origin: &Path) -> PathBuf {
    let text = String::from_utf8_lossy(path).into_owned();
    let origin = origin.to_string_lossy();
    let fill = |text: String, name: &str, value: &str| {
        text.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value)
    };
    let text = fill(text, "ORIGIN", &origin);
    let text = fill(text, "LIB", "lib/x86_64-linux-gnu");
    PathBuf::from(fill(text, "PLATFORM", "x86_64"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(bytes: &[u8]) -> Result<Needs, NotProgram> {
        needs_of(bytes, bytes.len() as u64)
    }

    #[test]
    fn a_dynamic_program_names_its_interpreter_and_libc() {
        let needs = read_needs(File::open("/bin/ls").unwrap()).unwrap();
        assert!(needs.interpreter.unwrap().to_string_lossy().contains("ld-"));
        assert!(needs.libraries.iter().any(|name| name.starts_with(b"libc.")));
    }

    #[test]
    fn what_is_not_a_program_is_named() {
        let good = std::fs::read("/bin/true").unwrap();
        let with = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] = value;
            needs(&bytes).unwrap_err()
        };
        assert_eq!(needs(b"hello"), Err(NotProgram::Unknown));
        assert_eq!(needs(b""), Err(NotProgram::Unknown));
        assert_eq!(needs(&good[..40]), Err(NotProgram::Damaged("the header is cut short")));
        assert_eq!(with(4, elf::ELFCLASS32), NotProgram::ThirtyTwoBit(elf::EM_X86_64));
        assert_eq!(needs(b"MZ\x90\0"), Err(NotProgram::OtherSystem("Windows or DOS")));
        assert_eq!(
            NotProgram::ThirtyTwoBit(elf::EM_386).to_string(),
            "is a 32-bit x86 program: only 64-bit programs run"
        );
        assert_eq!(
            NotProgram::Foreign(elf::EM_AARCH64).to_string(),
            "is a program for AArch64: only those for x86-64 run"
        );
        assert_eq!(with(18, elf::EM_AARCH64 as u8), NotProgram::Foreign(elf::EM_AARCH64));
        assert_eq!(with(16, elf::ET_REL as u8), NotProgram::NotExecutable(elf::ET_REL));
        assert!(matches!(needs(&good[..good.len() / 2]), Err(NotProgram::Damaged(_))));
    }

    #[test]
    fn damaged_headers_never_panic() {
        let good = std::fs::read("/bin/true").unwrap();
        for at in 0..1024 {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bytes = good.clone();
                bytes[at] = value;
                let _ = needs(&bytes);
            }
        }
    }

    #[test]
    fn search_paths_are_expanded() {
        let origin = Path::new("/opt/app/bin");
        assert_eq!(expand(b"$ORIGIN/../lib", origin), Path::new("/opt/app/bin/../lib"));
        assert_eq!(expand(b"${ORIGIN}/$LIB", origin), Path::new("/opt/app/bin/lib/x86_64-linux-gnu"));
        assert_eq!(split_paths(b"/a::/b"), [b"/a".to_vec(), b"/b".to_vec()]);
    }
}
