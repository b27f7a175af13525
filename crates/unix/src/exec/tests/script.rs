use super::*;

fn line(text: &[u8]) -> Result<(String, Option<String>), Errno> {
    let text_of = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let script = parse(text)?.expect("a script");
    Ok((text_of(script.interpreter), script.argument.map(text_of)))
}

fn plain(interpreter: &str) -> Result<(String, Option<String>), Errno> {
    Ok((interpreter.into(), None))
}

fn with(interpreter: &str, argument: &str) -> Result<(String, Option<String>), Errno> {
    Ok((interpreter.into(), Some(argument.into())))
}

#[test]
fn other_files_are_no_scripts() {
    assert_eq!(parse(b"\x7fELF"), Ok(None));
    assert_eq!(parse(b"#"), Ok(None));
    assert_eq!(parse(b""), Ok(None));
}

#[test]
fn reads_interpreter_and_one_argument() {
    assert_eq!(line(b"#!/bin/sh\necho"), plain("/bin/sh"));
    assert_eq!(line(b"#! \t/bin/sh \t \nx"), plain("/bin/sh"));
    assert_eq!(line(b"#!/bin/sh -e -u  \n"), with("/bin/sh", "-e -u"));
    assert_eq!(line(b"#!/bin/sh\t\t-e"), with("/bin/sh", "-e"));
    assert_eq!(line(b"#!/bin/sh"), plain("/bin/sh"));
}

#[test]
fn a_blank_before_the_end_of_the_file_is_an_empty_argument() {
    assert_eq!(line(b"#!/bin/sh "), with("/bin/sh", ""));
}

#[test]
fn a_nul_ends_the_line() {
    assert_eq!(line(b"#!/bin/sh\0 -x\n"), plain("/bin/sh"));
    assert_eq!(line(b"#!\0\n"), plain(""));
}

#[test]
fn refuses_a_line_without_interpreter() {
    assert_eq!(line(b"#!\n"), Err(Errno::ENOEXEC));
    assert_eq!(line(b"#! \t \n"), Err(Errno::ENOEXEC));
    assert_eq!(line(&[&b"#!"[..], &[b' '; 300]].concat()), Err(Errno::ENOEXEC));
}

#[test]
fn a_cut_path_is_refused_and_a_cut_argument_is_not() {
    let long = "/".repeat(300);
    assert_eq!(line(format!("#!{long}\n").as_bytes()), Err(Errno::ENOEXEC));
    assert_eq!(line(format!("#!/bin/sh {long}\n").as_bytes()), with("/bin/sh", &long[..255 - 10]));
    let fits = "/".repeat(252);
    assert_eq!(line(format!("#!{fits}\n").as_bytes()), plain(&fits));
}

#[test]
fn puts_the_interpreter_in_front() {
    let script = parse(b"#!/bin/sh -e\n").unwrap().unwrap();
    let argv = script.rewrite(b"./x", vec![b"name".to_vec(), b"a".to_vec()]).expect("memory");
    assert_eq!(argv, [&b"/bin/sh"[..], b"-e", b"./x", b"a"]);
}

#[test]
fn the_sixth_script_is_too_much() {
    let mut rewrites = Rewrites::default();
    for _ in 0..REWRITES_MAX {
        assert_eq!(rewrites.count(), Ok(()));
    }
    assert_eq!(rewrites.count(), Err(Errno::ELOOP));
}

/// Seed 7.
#[test]
fn no_line_makes_parsing_panic() {
    let mut random = means::Random::new(7);
    for _ in 0..50_000 {
        let mut text = b"#!".to_vec();
        for _ in 0..random.index(300) {
            text.push(b" \t\n\0/ab"[random.index(7)]);
        }
        let _ = parse(&text);
    }
}
