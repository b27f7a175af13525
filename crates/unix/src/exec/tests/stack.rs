use super::*;

const TOP: u64 = 0x7fff_ffff_f000;
const LIMIT: u64 = 8 << 20;

fn strings(of: &[&str]) -> Vec<Vec<u8>> {
    of.iter().map(|string| string.as_bytes().to_vec()).collect()
}

/// Reads the stack as a program would.
struct Reader<'a>(&'a InitialStack);

impl Reader<'_> {
    fn word(&self, index: usize) -> u64 {
        u64::from_le_bytes(self.0.bytes[index * 8..index * 8 + 8].try_into().unwrap())
    }

    fn string(&self, address: u64) -> String {
        let from = (address - self.0.stack_pointer) as usize;
        let bytes: Vec<u8> = self.0.bytes[from..].iter().copied().take_while(|byte| *byte != 0).collect();
        String::from_utf8(bytes).unwrap()
    }

    fn strings_from(&self, mut index: usize) -> (Vec<String>, usize) {
        let mut found = Vec::new();
        while self.word(index) != 0 {
            found.push(self.string(self.word(index)));
            index += 1;
        }
        (found, index + 1)
    }

    fn auxiliary(&self, mut index: usize, key: u64) -> Option<u64> {
        while self.word(index) != 0 {
            if self.word(index) == key {
                return Some(self.word(index + 1));
            }
            index += 2;
        }
        None
    }
}

#[test]
fn a_program_finds_its_arguments() {
    let facts = ProgramFacts { random: *b"0123456789abcdef", vdso: Some(0x1000), uid: 7, ..Default::default() };
    let (argv, envp) = (strings(&["ls", "-l", ""]), strings(&["A=1", "HOME=/"]));
    let arguments = Arguments { path: b"/bin/ls", argv: &argv, envp: &envp };
    let stack = build(&arguments, &facts, TOP, LIMIT, &|| {}).unwrap();
    assert_eq!(stack.stack_pointer % 16, 0);
    assert_eq!(stack.stack_pointer + stack.bytes.len() as u64, TOP);
    let reader = Reader(&stack);
    assert_eq!(reader.word(0), 3);
    let (found, next) = reader.strings_from(1);
    assert_eq!(found, ["ls", "-l", ""]);
    let (found, next) = reader.strings_from(next);
    assert_eq!(found, ["A=1", "HOME=/"]);
    assert_eq!(reader.string(reader.auxiliary(next, 31).unwrap()), "/bin/ls");
    assert_eq!(reader.string(reader.auxiliary(next, 15).unwrap()), "x86_64");
    assert_eq!(reader.auxiliary(next, 33), Some(0x1000));
    assert_eq!(reader.auxiliary(next, 11), Some(7));
    let random = reader.auxiliary(next, 25).unwrap();
    assert!(reader.string(random).starts_with("0123456789abcdef"));
    assert_eq!(reader.auxiliary(next, 31), Some(TOP - 8 - 8));
    assert_eq!(stack.environment.end, TOP - 8 - 8);
    assert_eq!(stack.arguments.end, stack.environment.start);
    assert_eq!(stack.arguments.end - stack.arguments.start, 7);
}

#[test]
fn every_count_keeps_the_alignment() {
    for count in 0..40 {
        let list = vec![vec![b'x'; count]; count];
        let arguments = Arguments { path: b"p", argv: &list, envp: &list[count / 2..] };
        let stack = build(&arguments, &ProgramFacts::default(), TOP, LIMIT, &|| {}).unwrap();
        assert_eq!(stack.stack_pointer % 16, 0);
        assert_eq!(Reader(&stack).word(0), count.max(1) as u64);
    }
}

#[test]
fn without_arguments_there_is_an_empty_one() {
    let arguments = Arguments { path: b"p", argv: &[], envp: &[] };
    let stack = build(&arguments, &ProgramFacts::default(), TOP, LIMIT, &|| {}).unwrap();
    assert_eq!(Reader(&stack).strings_from(1).0, [""]);
}

#[test]
fn too_long_lists_are_e2big() {
    let build = |argv: &[Vec<u8>], limit| {
        build(&Arguments { path: b"p", argv, envp: &[] }, &ProgramFacts::default(), TOP, limit, &|| {}).err()
    };
    assert_eq!(build(&[vec![b'x'; 131_071]], LIMIT), None);
    assert_eq!(build(&[vec![b'x'; 131_072]], LIMIT), Some(Errno::E2BIG));
    let sixteen = vec![vec![b'x'; 131_071]; 16];
    assert_eq!(build(&sixteen[..15], LIMIT), None); // 2 MiB less one string
    assert_eq!(build(&sixteen, LIMIT), Some(Errno::E2BIG));
    assert_eq!(build(&sixteen, u64::MAX), None);
    assert_eq!(build(&vec![vec![b'x'; 131_071]; 48], u64::MAX), Some(Errno::E2BIG));
    assert_eq!(build(&[vec![b'x'; 131_000]], 4096), None); // 128 KiB are always granted
    assert_eq!(build(&vec![Vec::new(); 300_000], LIMIT), Some(Errno::E2BIG));
}

#[test]
fn a_low_stack_is_refused() {
    let arguments = Arguments { path: b"p", argv: &[], envp: &[] };
    assert_eq!(build(&arguments, &ProgramFacts::default(), 64, LIMIT, &|| {}), Err(Errno::EINVAL));
}
