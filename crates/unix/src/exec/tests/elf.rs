use super::super::plan::{Mapper, Plan, Source, interpreter_bias, load};
use super::super::tests::{Bytes, Header, WHOLE, program};
use super::*;

fn errno_of(file: Vec<u8>) -> Option<Errno> {
    parse(&Bytes(file)).err().map(ElfError::program_errno)
}

#[test]
fn reads_a_static_program() {
    let image = parse(&Bytes(program(2, &[WHOLE]))).unwrap();
    assert_eq!(image.kind(), Kind::Static);
    assert_eq!((image.entry, image.phdr, image.phnum, image.phentsize), (0x40_0300, 0x40_0040, 1, 56));
    assert_eq!(image.segments.len(), 1);
    assert!(!image.stack_executable);
}

#[test]
fn reads_the_host_shell_as_dynamic() {
    let image = parse(&Bytes(std::fs::read("/bin/sh").unwrap())).unwrap();
    assert_eq!(image.kind(), Kind::Dynamic);
    assert_eq!(image.interp.as_deref(), Some(&b"/lib64/ld-linux-x86-64.so.2"[..]));
    let linker = parse_interpreter(&Bytes(std::fs::read("/lib64/ld-linux-x86-64.so.2").unwrap())).unwrap();
    assert_eq!(linker.kind(), Kind::StaticPie);
}

#[test]
fn names_each_bad_file_as_linux_does() {
    let with = |at: usize, byte: u8| {
        let mut file = program(2, &[WHOLE]);
        file[at] = byte;
        errno_of(file)
    };
    assert_eq!(errno_of(Vec::new()), Some(Errno::ENOEXEC));
    assert_eq!(with(0, 0), Some(Errno::ENOEXEC));
    assert_eq!(with(16, 1), Some(Errno::ENOEXEC)); // ET_REL
    assert_eq!(with(18, 3), Some(Errno::ENOEXEC)); // EM_386
    assert_eq!(with(54, 57), Some(Errno::ENOEXEC)); // e_phentsize
    assert_eq!(with(56, 0), Some(Errno::ENOEXEC)); // e_phnum
    assert_eq!(with(57, 0xff), Some(Errno::ENOEXEC)); // e_phnum, too many
    assert_eq!(with(39, 0xff), Some(Errno::ENOEXEC)); // e_phoff
    assert_eq!(with(4, 1), None); // the class is not looked at
    assert_eq!(errno_of(program(2, &[WHOLE])[..100].to_vec()), Some(Errno::ENOEXEC));
}

#[test]
fn checks_the_interpreter_path() {
    let path = |offset: u64, file_size: u64| Header { kind: 3, offset, file_size, ..WHOLE };
    let errno = |header: Header| errno_of(program(2, &[WHOLE, header]));
    assert_eq!(errno(path(0x3f0, 1)), Some(Errno::ENOEXEC));
    assert_eq!(errno(path(0x3f0, 4097)), Some(Errno::ENOEXEC));
    assert_eq!(errno(path(0, 4)), Some(Errno::ENOEXEC)); // no NUL
    assert_eq!(errno(path(0x3f0, 0x20)), Some(Errno::EIO));
    assert_eq!(errno(path(u64::MAX, 4)), Some(Errno::EINVAL));
    assert_eq!(errno(path(0x3f0, 16)), None);
}

#[test]
fn a_bad_interpreter_is_elibbad() {
    let errno = |file: Vec<u8>| parse_interpreter(&Bytes(file)).err().map(ElfError::interpreter_errno);
    assert_eq!(errno(vec![0; 10]), Some(Errno::EIO));
    assert_eq!(errno(vec![0; 100]), Some(Errno::ELIBBAD));
    assert_eq!(errno(program(2, &[])), Some(Errno::ELIBBAD));
    assert_eq!(errno(program(3, &[WHOLE])), None);
}

/// Checks what a [`Mapper`] may rely on.
struct Judge;

impl Mapper for Judge {
    fn map_file(&mut self, _: Source, addr: u64, len: u64, prot: Protection, offset: u64) -> Result<(), Errno> {
        assert!(offset.is_multiple_of(4096) && offset.checked_add(len).is_some());
        self.map_anonymous(addr, len, prot)
    }

    fn map_anonymous(&mut self, addr: u64, len: u64, _: Protection) -> Result<(), Errno> {
        assert!(addr.is_multiple_of(4096) && len.is_multiple_of(4096) && len > 0);
        assert!(addr.checked_add(len).unwrap() <= super::super::limits::USER_END);
        Ok(())
    }

    fn zero(&mut self, addr: u64, len: u64) -> Result<(), Errno> {
        assert!(len > 0 && page_start(addr) == page_start(addr + len - 1));
        Ok(())
    }
}

/// Seed 1; mutates the headers, where everything that is parsed stands, and sometimes cuts the file.
#[test]
fn no_mutation_makes_parsing_or_planning_panic() {
    let mut random = means::Random::new(1);
    let data = Header { flags: 6, vaddr: 0x60_0010, offset: 0x10, mem_size: 0x5000, ..WHOLE };
    let shell = std::fs::read("/bin/true").unwrap();
    for original in [shell, program(2, &[WHOLE, data]), program(3, &[WHOLE, data, Header { kind: 3, ..WHOLE }])] {
        let headers = original.len().min(64 + 56 * 16);
        for _ in 0..20_000 {
            let mut file = original[..original.len().min(0x2000)].to_vec();
            for _ in 0..1 + random.index(4) {
                file[random.index(headers)] = [0, 1, 0x7f, 0x80, 0xff, random.bits() as u8][random.index(6)];
            }
            if random.index(20) == 0 {
                file.truncate(random.index(original.len().min(0x400)));
            }
            try_all(&Bytes(file));
        }
    }
}

fn try_all(file: &Bytes) {
    let program = parse(file);
    let interpreter = parse_interpreter(file);
    for image in program.iter().chain(interpreter.iter()) {
        let bias = interpreter_bias(image, 0x7fff_f7ff_f000);
        for second in [None, bias.map(|bias| (image, bias))] {
            if let Ok(plan) = Plan::new(image, second) {
                load(&plan, &mut Judge).unwrap();
            }
        }
    }
}
