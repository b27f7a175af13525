//! Makes `vdso.so`: `user/vdso.rs` through the Rust compiler, `user/vdso.lds` through the linker.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

const PAGE_BYTES: usize = 4096;

fn main() {
    for source in ["user/vdso.rs", "user/vdso.lds", "src/time_page.rs", "src/user_calls.rs", "build.rs"] {
        println!("cargo::rerun-if-changed={source}");
    }
    println!("cargo::rerun-if-env-changed=CC");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let object = Path::new(&out).join("vdso.o");
    let image = Path::new(&out).join("vdso.so");
    compile(&object);
    link(&object, &image);
    pad(&image);
}

fn compile(object: &Path) {
    let mut rustc = Command::new(env::var_os("RUSTC").expect("cargo sets RUSTC"));
    rustc.args(["--edition=2024", "--crate-type=lib", "--crate-name=vdso_user", "--emit=obj"]);
    rustc.args(["--target=x86_64-unknown-linux-gnu", "-Copt-level=3", "-Cpanic=abort", "-Cdebuginfo=0"]);
    rustc.args(["-Crelocation-model=pic", "-Ccodegen-units=1", "-Coverflow-checks=no", "-Cforce-unwind-tables=yes"]);
    run(rustc.arg("user/vdso.rs").arg("-o").arg(object));
}

fn link(object: &Path, image: &Path) {
    let mut cc = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
    cc.args(["-shared", "-nostdlib", "-Wl,-T,user/vdso.lds", "-Wl,-soname=linux-vdso.so.1"]);
    cc.args(["-Wl,--hash-style=both", "-Wl,-Bsymbolic", "-Wl,--build-id=none", "-Wl,--eh-frame-hdr"]);
    cc.args(["-Wl,-z,max-page-size=4096", "-Wl,-z,noexecstack", "-Wl,--gc-sections", "-Wl,-s", "-Wl,-z,defs"]);
    run(cc.arg(object).arg("-o").arg(image));
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    assert!(status.success(), "{command:?} failed: {status}");
}

/// The kernel maps whole pages.
fn pad(image: &Path) {
    let mut bytes = fs::read(image).expect("the linker wrote the image");
    bytes.resize(bytes.len().next_multiple_of(PAGE_BYTES), 0);
    fs::write(image, bytes).expect("OUT_DIR is writable");
}
