//! The library as C programs see it: the same source with the C library's stdio and with synthio, byte for byte.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use means::Libraries;

const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef SYNTHIO_AS_STDIO
#include <synthio.h>
#endif

int main(int argc, char **argv)
{
	char line[100], block[333];
	int c, n = 0;
	size_t got;
	FILE *f;

	if (argc > 2 && atoi(argv[2]) < 3)
		setvbuf(stdout, NULL, atoi(argv[2]), 1000);
	puts("a line");
	printf("%d %s %5.2f\n", argc, argv[1], 3.14159);
	printf("%0*d\n", 3000, 7);
	while ((c = getchar()) != EOF && n++ < 5000)
		putchar(c ^ 1);
	ungetc('#', stdin);
	while (fgets(line, sizeof line, stdin) && n++ < 6000)
		fputs(line, stdout);
	while ((got = fread(block, 1, sizeof block, stdin)) > 0)
		fwrite(block, 1, got, stdout);
	printf("eof %d error %d\n", feof(stdin) != 0, ferror(stdin) != 0);
	f = fopen(argv[1], "w");
	for (c = 0; c < 20000; c++)
		fprintf(f, "%d%c", c, c % 10 ? ' ' : '\n');
	printf("tell %ld\n", ftell(f));
	printf("close %d\n", fclose(f));
	f = fopen(argv[1], "r");
	fseek(f, 50000, SEEK_SET);
	printf("%d at %ld\n", fgetc(f), ftell(f));
	fseek(f, 10, SEEK_CUR);
	printf("%d at %ld\n", fgetc(f), ftell(f));
	rewind(f);
	printf("%s", fgets(line, sizeof line, f));
	fclose(f);
	f = fopen(argv[1], "a");
	fputs("appended", f);
	fclose(f);
	f = fopen("/nonexistent/file", "r");
	fprintf(stderr, "%s\n", f ? "opened" : "not opened");
	return fflush(stdout) != 0;
}
"#;

fn run(program: &Path, folder: &Path, mode: &str, input: &[u8]) -> (Output, Vec<u8>) {
    let file = folder.join("file");
    let mut command = Command::new(program);
    command.arg(&file).arg(mode).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let feed = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    feed.join().unwrap();
    (output, std::fs::read(&file).unwrap())
}

#[test]
fn a_c_program_does_the_same_with_either_library() {
    let Some(libraries) = Libraries::of("stdio") else { return };
    let libc = libraries.compile("gcc", SOURCE, "libc", &[""; 0]);
    let own = libraries.ways("synthio").map(|(name, mut arguments)| {
        arguments.push("-DSYNTHIO_AS_STDIO".into());
        libraries.compile("gcc", SOURCE, name, &arguments)
    });
    let text: Vec<u8> = (0..200_000u32).map(|i| if i % 61 == 0 { b'\n' } else { b'a' + (i % 23) as u8 }).collect();
    for mode in ["0", "1", "2", "3"] {
        for input in [&text[..], b"short", b""] {
            let expected = run(&libc, libraries.folder(), mode, input);
            for program in &own {
                let got = run(program, libraries.folder(), mode, input);
                let case = format!("{}, buffering {mode}, {} bytes", program.display(), input.len());
                assert!(got.0.stdout == expected.0.stdout, "{case}: other output");
                assert_eq!(got.0.stderr, expected.0.stderr, "{case}");
                assert_eq!(got.0.status, expected.0.status, "{case}");
                assert!(got.1 == expected.1, "{case}: another file");
            }
        }
    }
}

/// Programs that Debian's packages bring as sources, and how they are called.
const PROGRAMS: [(&str, &str, &[&str]); 5] = [
    ("/usr/share/doc/zlib1g-dev/examples/zpipe.c", "-lz", &[]),
    ("/usr/share/doc/zlib1g-dev/examples/minigzip.c", "-lz", &[]),
    ("/usr/share/doc/zlib1g-dev/examples/fitblk.c", "-lz", &["2000"]),
    ("/usr/share/doc/zlib1g-dev/examples/enough.c", "-lz", &["60"]),
    ("/usr/share/doc/nettle-dev/examples/sha-example.c", "-lnettle", &[]),
];

/// Without a change of their sources: the header gives stdio's names other meanings.
#[test]
fn programs_of_debian_do_the_same_with_either_library() {
    let Some(libraries) = Libraries::of("stdio") else { return };
    let input: Vec<u8> = (0..150_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8 & 63).collect();
    for (source, library, arguments) in PROGRAMS {
        let Ok(text) = std::fs::read_to_string(source) else {
            eprintln!("skipped: no {source}");
            continue;
        };
        let archive = libraries.file("libsynthio.a").display().to_string();
        let own = ["-w", "-DSYNTHIO_AS_STDIO", "-include", "synthio.h", &archive, library];
        let programs = [("libc", &["-w", library][..]), ("own", &own)];
        let [expected, got] = programs.map(|(name, words)| {
            let program = libraries.compile("gcc", &text, name, words);
            let mut child = Command::new(program);
            let mut child = child
                .args(arguments)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let (mut stdin, input) = (child.stdin.take().unwrap(), input.clone());
            let feed = std::thread::spawn(move || drop(stdin.write_all(&input)));
            let output = child.wait_with_output().unwrap();
            feed.join().unwrap();
            output
        });
        assert!(got.stdout == expected.stdout && !got.stdout.is_empty(), "{source}: other output");
        assert_eq!(got.status, expected.status, "{source}");
    }
}
