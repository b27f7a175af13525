//! The tests link the pc machine for its templates alone: its boot code wants fixed addresses and the symbols of the
//! kernel's linker script, which a host program does not have and does not run.

fn main() {
    for argument in ["-no-pie", "-Wl,--defsym=boot_rust=0"] {
        println!("cargo::rustc-link-arg-tests={argument}");
        println!("cargo::rustc-link-arg-examples={argument}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
