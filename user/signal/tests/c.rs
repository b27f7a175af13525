//! The library as C and C++ programs see it.

use std::process::Command;

use means::Libraries;

const CHECK: &str = concat!("-I", env!("SYNTHESIS_ROOT"), "user/memory/tests/c");

#[test]
fn the_header_is_true_in_c_and_in_cpp() {
    const SOURCE: &str = include_str!("c/signal.c");
    let Some(libraries) = Libraries::of("signal") else { return };
    for (way, mut arguments) in libraries.ways("synthsignal") {
        arguments.extend(["-lm".into(), CHECK.into()]);
        for compiler in ["gcc", "g++"] {
            if Command::new(compiler).arg("--version").output().is_err() {
                continue;
            }
            let program = libraries.compile(compiler, SOURCE, &format!("{way}-{compiler}"), &arguments);
            let output = Command::new(&program).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(said == "all as documented\n", "{}: {}: {said}", program.display(), output.status);
        }
    }
}
