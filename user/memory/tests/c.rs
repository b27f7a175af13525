//! The libraries as C and C++ programs see them.

use std::path::Path;
use std::process::{Command, Output};

use means::Libraries;

const CHECK: &str = concat!("-I", env!("SYNTHESIS_ROOT"), "user/memory/tests/c");

/// With `preload`, the second file is where the library reports.
fn run(program: &Path, arguments: &[&str], preload: Option<[&Path; 2]>) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).env("LC_ALL", "C");
    if let Some([library, report]) = preload {
        command.env("LD_PRELOAD", library).env("SYNTHMALLOC_REPORT", report);
    }
    command.output().unwrap_or_else(|error| panic!("{}: {error}", program.display()))
}

fn prove(program: &Path, arguments: &[&str], preload: Option<[&Path; 2]>) {
    let output = run(program, arguments, preload);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said == "all as documented\n", "{} {arguments:?}: {}: {said}", program.display(), output.status);
}

#[test]
fn the_header_is_true_in_c_and_in_cpp() {
    const SOURCE: &str = include_str!("c/heap.c");
    let Some(libraries) = Libraries::of("memory") else { return };
    for (way, mut arguments) in libraries.ways("synthmem") {
        arguments.push(CHECK.into());
        for compiler in ["gcc", "g++"] {
            if Command::new(compiler).arg("--version").output().is_ok() {
                prove(&libraries.compile(compiler, SOURCE, &format!("{way}-{compiler}"), &arguments), &[], None);
            }
        }
    }
}

/// Guards against builds that take each other's files: both libraries come from one crate, by its features, and what one build
/// has left must stay until it is copied, whatever another one builds meanwhile.
#[test]
fn what_is_built_for_one_library_is_not_built_over() {
    let Some(libraries) = Libraries::of("memory") else { return };
    let has_malloc = |file: &Path| {
        let symbols = Command::new("nm").arg("-D").arg(file).output().expect("nm of binutils");
        assert!(symbols.status.success(), "{}", file.display());
        String::from_utf8_lossy(&symbols.stdout).lines().any(|line| line.ends_with(" T malloc"))
    };
    for (library, replaces_malloc) in [("libsynthmem", false), ("libsynthmalloc", true)] {
        let built = libraries.file(&format!("../{library}/release/libsynthmem.so"));
        let copied = libraries.file(&format!("{library}.so"));
        assert_eq!([built, copied].map(|file| has_malloc(&file)), [replaces_malloc; 2], "{library}");
    }
}

#[test]
fn malloc_keeps_its_promises_to_threads_and_forks() {
    const SOURCE: &str = include_str!("c/malloc.c");
    let Some(libraries) = Libraries::of("memory") else { return };
    for (way, mut arguments) in libraries.ways("synthmalloc") {
        arguments.push(CHECK.into());
        prove(&libraries.compile("gcc", SOURCE, way, &arguments), &["1"], None);
    }
    let plain = libraries.compile("gcc", SOURCE, "plain", &[CHECK]);
    let (library, report) = (libraries.file("libsynthmalloc.so"), libraries.folder().join("report"));
    let preload = Some([library.as_path(), &report]);
    for seed in ["2", "3", "4"] {
        println!("seed {seed}");
        prove(&plain, &[seed], preload);
    }
}

#[test]
fn what_was_not_allocated_is_refused() {
    const SOURCE: &str = "#include <stdlib.h>\n#include <string.h>\n\
        int main(int argc, char **argv) {\n\
        char *volatile a = malloc(argc > 2 ? 3000000 : 100), *volatile b = malloc(100);\n\
        free(strcmp(argv[1], \"inside\") ? a : a + 16);\n\
        if (!strcmp(argv[1], \"twice\")) free(a);\n\
        free(b); return 0; }\n";
    let Some(libraries) = Libraries::of("memory") else { return };
    let arguments = ["-Wno-use-after-free", "-Wno-free-nonheap-object", "-Wno-unused-result"];
    let program = libraries.compile("gcc", SOURCE, "wrong", &arguments);
    let (library, report) = (libraries.file("libsynthmalloc.so"), libraries.folder().join("report"));
    let preload = Some([library.as_path(), &report]);
    for (arguments, refused) in
        [(&["once"][..], false), (&["twice"], true), (&["inside"], true), (&["inside", "large"], true)]
    {
        let output = run(&program, arguments, preload);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.contains("error: synthmalloc: what is freed"), refused, "{arguments:?}: {said}");
        assert_eq!(output.status.success(), !refused, "{arguments:?}: {}", output.status);
    }
}

/// Some hundred lines that are here in every checkout.
const TEXT: &str = concat!(env!("SYNTHESIS_ROOT"), "Cargo.lock");

/// Programs of the host that must do the same with either allocator.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("sort", &["-R", concat!("--random-source=", env!("SYNTHESIS_ROOT"), "user/memory/tests/c.rs"), TEXT]),
    (
        "python3",
        &[
            "-c",
            "import threading, os\n\
            d = {str(i * 7919 % 100003): [i] * (i % 20) for i in range(60000)}\n\
            print(len(d), sum(map(len, d.values())), sorted(d)[::9999])\n\
            def work(): [bytes(i % 5000) for i in range(10000)]\n\
            threads = [threading.Thread(target=work) for _ in range(4)]\n\
            [t.start() for t in threads]\n\
            for _ in range(5):\n\
            \x20   child = os.fork()\n\
            \x20   if child == 0: work(); os._exit(0)\n\
            \x20   assert os.waitpid(child, 0)[1] == 0\n\
            [t.join() for t in threads]",
        ],
    ),
    (
        "perl",
        &["-e", "%h = map { ($_ => \"v$_\" x ($_ % 9)) } 1 .. 50000; @a = sort values %h; print length(join ',', @a)"],
    ),
    (
        "bash",
        &["-c", "a=(); for i in {1..3000}; do a+=($i); done; echo ${#a[@]} ${a[*]:7:9}; seq 300 | sort -r | tail -2"],
    ),
    ("gcc", &["-x", "c", "-O2", "-S", "-o", "-", concat!(env!("SYNTHESIS_ROOT"), "user/memory/tests/c/malloc.c")]),
];

#[test]
fn programs_do_not_notice() {
    let Some(libraries) = Libraries::of("memory") else { return };
    let (library, report) = (libraries.file("libsynthmalloc.so"), libraries.folder().join("report"));
    let preload = Some([library.as_path(), &report]);
    for (program, arguments) in PROGRAMS {
        if Command::new(program).arg("--version").output().is_err() {
            eprintln!("skipped: no {program}");
            continue;
        }
        let (expected, got) = (run(Path::new(program), arguments, None), run(Path::new(program), arguments, preload));
        assert_eq!(got.status, expected.status, "{program}: {}", String::from_utf8_lossy(&got.stderr));
        assert!(got.stdout == expected.stdout && !got.stdout.is_empty(), "{program}: other output");
        let reported = std::fs::read_to_string(&report).unwrap_or_default();
        assert!(reported.contains("synthmalloc: "), "{program} did not use the library");
        std::fs::remove_file(&report).unwrap();
    }
}
