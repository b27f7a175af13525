//! `make` driving the host's C compiler on Synthesis, as on the host: many processes, pipes, temporary files, large maps.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::streams::tool_is_there;
use crate::compare::difference;
use crate::options::Options;
use crate::process;
use crate::report::Tally;
use crate::root::{Root, find_program};
use crate::side::runner_command;

const SOURCES: [(&str, &str); 5] = [
    (
        "Makefile",
        "CFLAGS = -O2 -Wall\nOBJECTS = main.o words.o sum.o\nprogram: $(OBJECTS)\n\t$(CC) $(CFLAGS) -o $@ $(OBJECTS)\n\
         %.o: %.c words.h\n\t$(CC) $(CFLAGS) -c $<\n",
    ),
    ("words.h", "int count_words(const char *text);\nlong sum(const int *numbers, int count);\n"),
    (
        "words.c",
        "#include <ctype.h>\n#include \"words.h\"\nint count_words(const char *text) {\n    int count = 0, inside = 0;\n\
         for (; *text; text++) {\n        int space = isspace((unsigned char)*text) != 0;\n\
         count += !space && !inside;\n        inside = !space;\n    }\n    return count;\n}\n",
    ),
    (
        "sum.c",
        "#include \"words.h\"\nlong sum(const int *numbers, int count) {\n    long all = 0;\n\
         while (count-- > 0)\n        all += *numbers++;\n    return all;\n}\n",
    ),
    (
        "main.c",
        "#include <stdio.h>\n#include \"words.h\"\nint main(int argc, char **argv) {\n    int numbers[] = {1, 2, 39};\n\
         printf(\"%d words, sum %ld\\n\", argc > 1 ? count_words(argv[1]) : 0, sum(numbers, 3));\n    return 0;\n}\n",
    ),
];

/// The second `make` has nothing to do, the third one file and the program.
const SCRIPT: &str = "make && ./program 'a b  c d' && make && touch sum.c && make && ./program";

/// What the driver looks for by itself when it compiles and links a program of several files.
const PROGRAMS: [&str; 4] = ["cc1", "collect2", "as", "ld"];
const LINKED: [&str; 13] = [
    "Scrt1.o",
    "crti.o",
    "crtbeginS.o",
    "libgcc.a",
    "libgcc_s.so",
    "libgcc_s.so.1",
    "libc.so",
    "libc.so.6",
    "libc_nonshared.a",
    "ld-linux-x86-64.so.2",
    "crtendS.o",
    "crtn.o",
    "liblto_plugin.so",
];

/// Runs the check.
///
/// # Errors
/// A sentence when the tool is not there.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    let name = "compiler/make_drives_cc";
    if !options.selects(name) {
        return Ok(());
    }
    tool_is_there(options)?;
    match ["make", "gcc", "cc", "busybox"].iter().find(|program| find_program(program).is_none()) {
        Some(program) => tally.skip(name, &format!("{program} is not on this host")),
        None => tally.record(name, make_drives_cc(options)),
    }
    Ok(())
}

fn make_drives_cc(options: &Options) -> Result<(), String> {
    let work = options.repo.join("target/synth-tests/compiler");
    let mut root = Root::create(&work.join("root"))?;
    let host = work.join("host");
    let _ = fs::remove_dir_all(&host);
    let guest = root.path().join("src");
    for folder in [&host, &guest] {
        write_sources(folder)?;
    }
    pack_compiler(&mut root, &host)?;

    let words = ["/bin/busybox", "sh", "-c", SCRIPT];
    let mut on_host = Command::new(words[0]);
    on_host.args(&words[1..]).current_dir(&host).env_clear().env("PATH", "/usr/bin:/bin");
    let expected = process::run(on_host, Vec::new(), options.case_timeout * 3)?;
    if expected.status != 0 {
        return Err(format!("the host gives {}: {}", expected.status, expected.stderr.escape_ascii()));
    }
    let mut on_guest = runner_command(&options.runner);
    on_guest
        .args(["--mem", "1G", "--cwd", "/src", "--env", "PATH=/usr/bin:/bin", "--root"])
        .arg(root.path())
        .args(words);
    let actual = process::run(on_guest, Vec::new(), options.case_timeout * 3)?;
    if actual != expected {
        let stdout = difference("stdout", &expected.stdout, &actual.stdout);
        return Err(format!("status {}\n{stdout}\nstderr: {}", actual.status, String::from_utf8_lossy(&actual.stderr)));
    }
    Ok(())
}

fn write_sources(folder: &Path) -> Result<(), String> {
    let tell = |error: std::io::Error| format!("cannot write below {}: {error}", folder.display());
    fs::create_dir_all(folder).map_err(tell)?;
    SOURCES.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text)).map_err(tell)
}

/// The compiler's own answers say which files it needs, so that no distribution's paths are written here.
fn pack_compiler(root: &mut Root, sources: &Path) -> Result<(), String> {
    for program in ["/bin/busybox", "make", "gcc"] {
        root.add_program(program)?;
    }
    for (link, program) in [("cc", "gcc"), ("sh", "busybox"), ("touch", "busybox")] {
        symlink(program, root.path().join("usr/bin").join(link)).map_err(|error| error.to_string())?;
    }
    for program in PROGRAMS {
        root.add_program(ask_gcc(&[&format!("-print-prog-name={program}")], sources)?.trim())?;
    }
    for file in LINKED {
        let path = PathBuf::from(ask_gcc(&[&format!("-print-file-name={file}")], sources)?.trim());
        // What it does not know it repeats, and does not need.
        if path.is_absolute() {
            root.add_file(&straight(&path))?;
        }
    }
    let headers = ask_gcc(&["-O2", "-M", "main.c", "words.c", "sum.c"], sources)?;
    let headers = headers.split_whitespace().filter(|word| word.starts_with('/'));
    headers.map(|header| straight(Path::new(header))).try_for_each(|header| root.add_file(&header))
}

fn ask_gcc(args: &[&str], folder: &Path) -> Result<String, String> {
    let output = Command::new("gcc").args(args).current_dir(folder).output();
    let output = output.map_err(|error| format!("cannot run gcc: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The same file without `..` on the way; its last part may be a link and stays.
fn straight(path: &Path) -> PathBuf {
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    parent.zip(path.file_name()).map_or(path.into(), |(parent, name)| parent.join(name))
}
