//! The script `synth` in a checkout and on a system that are made up: nothing is built, installed or started.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::sources::root;

/// What the script uses of a system; the rest is as the test says.
const TOOLS: [&str; 17] = [
    "sh", "cat", "cut", "date", "dirname", "env", "find", "grep", "head", "mkdir", "mv", "readlink", "rm", "sed",
    "sleep", "touch", "tr",
];

/// A Debian without Rust, QEMU and busybox, as an ordinary user finds it who may not become root.
const APT: [(&str, &str); 4] = [
    ("id", "echo 1000"),
    ("sudo", "exit 1"),
    ("apt-get", "echo apt-get was started >&2; exit 1"),
    ("apt-cache", "[ $# = 2 ] || cat ../lists"),
];

/// A system on which everything is there that a build needs.
const COMPLETE: [(&str, &str); 6] = [
    ("id", "echo 1000"),
    ("cargo", "exit 1"),
    ("rustc", "echo rustc 1.94.0"),
    ("cc", ""),
    ("busybox", ""),
    ("qemu-system-x86_64", ""),
];

struct Checkout {
    _folder: Folder,
    top: PathBuf,
    bin: PathBuf,
}

/// Goes with its files.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Said {
    status: i32,
    out: String,
    err: String,
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder above")).expect("a folder");
    fs::write(path, text).expect("a file");
}

fn write_script(path: &Path, text: &str) {
    write(path, &format!("#!/bin/sh\n{text}\n"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
}

impl Checkout {
    /// The checkout `checkout` in a folder of its own, with programs beside the usual ones.
    fn with(name: &str, programs: &[(&str, &str)]) -> Checkout {
        let folder = std::env::temp_dir().join(format!("synthesis-script-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let (top, bin) = (folder.join("checkout"), folder.join("bin"));
        for file in ["synth", "tests/harness/usage.txt"] {
            write(&top.join(file), &xtask::sources::text(file));
        }
        fs::create_dir_all(&bin).expect("a folder");
        for tool in TOOLS {
            let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
            let found = found.iter().find(|path| path.exists()).unwrap_or_else(|| panic!("{tool} is missing"));
            symlink(found, bin.join(tool)).expect("a link");
        }
        for (program, script) in programs {
            write_script(&bin.join(program), script);
        }
        for script in ["bin/pc/build.sh", "bin/hosted/build.sh", "cli/build.sh"] {
            write_script(&top.join(script), &format!("echo built by {script} >&2"));
        }
        Checkout { _folder: Folder(folder), top, bin }
    }

    /// Leaves what a build leaves, stamped with the folder it was made in.
    fn has_built(&self, place: &Path) {
        let target = self.top.join("target");
        for (kind, name) in [("pc", "synthesis-pc"), ("hosted", "synthesis-hosted")] {
            write(&target.join(kind).join("x86_64-unknown-linux-gnu/release").join(name), "");
        }
        write_script(&target.join("release/synth"), "echo the tool: \"$@\"");
        write(&target.join("built"), &format!("{}\n", place.display()));
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("/bin/sh");
        command.arg(self.top.join("synth")).args(words).current_dir(&self.top);
        command.env_clear().env("PATH", &self.bin).env("HOME", "/nonexistent").env("SYNTH_TELL_EVERY", "0.1");
        command
    }

    fn run(&self, words: &[&str]) -> Said {
        let output = self.command(words).output().expect("a shell");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Said { status: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}

#[test]
fn help_about_tests_starts_none() {
    let checkout = Checkout::with("help", &APT);
    for words in [&["test", "--help"][..], &["test", "-h"], &["test", "streams", "--help"]] {
        let said = checkout.run(words);
        assert_eq!((said.status, said.err.as_str()), (0, ""), "{words:?}");
        assert!(said.out.starts_with("usage: ./synth test"), "{}", said.out);
    }
}

#[test]
fn a_suite_that_there_is_not_is_refused_with_the_list() {
    let said = Checkout::with("suite", &APT).run(&["test", "nosuch"]);
    assert_eq!((said.status, said.out.as_str()), (2, ""));
    assert!(said.err.starts_with("error: there is no suite nosuch\nhelp: there are: differential "), "{}", said.err);
    assert!(said.err.ends_with(" hosted all\n"), "{}", said.err);
}

#[test]
fn a_system_without_lists_of_packages_is_told_apart_from_one_with_an_old_rust() {
    let checkout = Checkout::with("lists", &APT);
    let lists = checkout.top.parent().expect("a folder").join("lists");
    write(&lists, "Package files:\n 100 /var/lib/dpkg/status\n     release a=now\n");
    let said = checkout.run(&["ps"]);
    assert_eq!(said.status, 69);
    assert!(said.err.contains("apt has no lists of packages"), "{}", said.err);
    assert!(said.err.ends_with("help: sudo apt-get update, then start again\n"), "{}", said.err);
    write(&lists, "Package files:\n 500 http://deb.debian.org/debian bookworm/main amd64 Packages\n");
    let said = checkout.run(&["ps"]);
    assert_eq!(said.status, 69);
    assert!(said.err.contains("what apt offers is older"), "{}", said.err);
}

#[test]
fn a_copied_checkout_builds_its_own() {
    let checkout = Checkout::with("copy", &COMPLETE);
    checkout.has_built(&checkout.top);
    let said = checkout.run(&["ps"]);
    assert_eq!((said.status, said.out.as_str(), said.err.as_str()), (0, "the tool: ps\n", ""));
    checkout.has_built(Path::new("/the/old/one"));
    let said = checkout.run(&["ps"]);
    assert!(said.err.starts_with("synth: target holds a build of /the/old/one; building"), "{}", said.err);
    assert!(said.err.contains("built by cli/build.sh"), "{}", said.err);
    let said = checkout.run(&["ps"]);
    assert_eq!(said.err, "", "what was built once is not built again");
}

#[test]
fn the_long_steps_of_a_build_tell_how_far_they_are() {
    let checkout = Checkout::with("progress", &COMPLETE);
    checkout.has_built(&checkout.top);
    let folder = "target/pc/x86_64-unknown-linux-gnu/release/.fingerprint/synthesis-pc-0";
    // It goes on until it was told, for at most ten seconds.
    let build = format!(
        "mkdir -p {folder}\nsleep 0.01\ntouch {folder}/invoked.timestamp\n\
         for i in 0 1 2 3 4 5 6 7 8 9; do sleep 1; grep -q built.after told && break; done"
    );
    write_script(&checkout.top.join("bin/pc/build.sh"), &build);
    fs::remove_file(checkout.top.join("target/built")).expect("a stamp");
    let mut command = checkout.command(&["ps"]);
    let told = fs::File::create(checkout.top.join("told")).expect("a file");
    assert!(command.stderr(told).status().expect("a shell").success());
    let told = fs::read_to_string(checkout.top.join("told")).expect("a file");
    assert!(told.contains("synth: about 9") && told.contains(" % of the kernel is built after "), "{told}");
}

/// A path that is compiled in stays when a checkout is copied, and cargo takes what was built for current.
/// It does look at the variables of `.cargo/config.toml`.
#[test]
fn no_source_has_its_folder_compiled_in_by_cargos_variable() {
    let named = concat!("CARGO_MANIFEST", "_DIR");
    for file in xtask::sources::files(".", ".rs") {
        assert!(!xtask::sources::text(&file).contains(named), "{file}: use env!(\"SYNTHESIS_ROOT\")");
    }
    assert!(root().join(".cargo/config.toml").exists());
}
