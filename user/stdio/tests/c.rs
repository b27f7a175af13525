//! The library as C programs see it: the same source with the C library's stdio and with synthio, byte for byte.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn compile(folder: &Path, name: &str, arguments: &[&str]) -> PathBuf {
    let (source, output) = (folder.join("program.c"), folder.join(name));
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-O2", "-Wall", "-Werror", "-o"]).arg(&output).arg(&source).args(arguments);
    let result = gcc.output().unwrap();
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    output
}

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
    if Command::new("gcc").arg("--version").output().is_err() {
        eprintln!("skipped: no gcc");
        return;
    }
    let folder = std::env::temp_dir().join(format!("synthio-c-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("program.c"), SOURCE).unwrap();
    let built = Command::new(root().join("user/stdio/build.sh")).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), PathBuf::from).join("user");
    let include = format!("-I{}", target.display());
    let (archive, search) = (format!("{}/libsynthio.a", target.display()), format!("-L{}", target.display()));
    let rpath = format!("-Wl,-rpath,{}", target.display());
    let libc = compile(&folder, "libc", &[]);
    let own = [
        compile(&folder, "static", &[&include, "-DSYNTHIO_AS_STDIO", "-static", &archive]),
        compile(&folder, "archive", &[&include, "-DSYNTHIO_AS_STDIO", &archive]),
        compile(&folder, "shared", &[&include, "-DSYNTHIO_AS_STDIO", &search, "-lsynthio", &rpath]),
    ];
    let text: Vec<u8> = (0..200_000u32).map(|i| if i % 61 == 0 { b'\n' } else { b'a' + (i % 23) as u8 }).collect();
    for mode in ["0", "1", "2", "3"] {
        for input in [&text[..], b"short", b""] {
            let expected = run(&libc, &folder, mode, input);
            for program in &own {
                let got = run(program, &folder, mode, input);
                let case = format!("{}, buffering {mode}, {} bytes", program.display(), input.len());
                assert!(got.0.stdout == expected.0.stdout, "{case}: other output");
                assert_eq!(got.0.stderr, expected.0.stderr, "{case}");
                assert_eq!(got.0.status, expected.0.status, "{case}");
                assert!(got.1 == expected.1, "{case}: another file");
            }
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}
