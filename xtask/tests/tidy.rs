//! Rules for the sources as a whole.

use xtask::ratchet::{self, Exception};
use xtask::sources::{files, text};

/// Which crates of the project each crate may use. A crate that is not here belongs here.
const MAY_USE: &[(&str, &str, &[&str])] = &[
    ("abi", "crates/abi", &[]),
    ("bootimage", "crates/bootimage", &[]),
    ("queue", "crates/queue", &["means"]),
    ("lockedloop", "crates/lockedloop", &["means"]),
    ("redundancy", "crates/redundancy", &["means"]),
    ("redundancy-sim", "crates/redundancy-sim", &["redundancy"]),
    ("vdso", "crates/vdso", &[]),
    ("synth", "crates/synth", &[]),
    ("strace", "crates/strace", &["abi"]),
    ("monitor", "crates/monitor", &["means", "statemachine", "synth"]),
    ("statemachine", "crates/statemachine", &["means", "synth"]),
    ("machine", "crates/machine", &["synth"]),
    ("virtio", "crates/virtio", &["machine", "machine-sim", "means"]),
    ("hda", "crates/hda", &["machine", "machine-sim"]),
    ("ninep", "crates/ninep", &[]),
    ("net", "crates/net", &["machine", "means"]),
    ("codestore", "crates/codestore", &["machine", "synth"]),
    ("callsite", "crates/callsite", &[]),
    ("firmware", "crates/firmware", &[]),
    ("bare", "crates/bare", &["machine"]),
    ("quaject", "crates/quaject", &["machine", "codestore", "synth"]),
    ("machine-x86", "crates/machine-x86", &["lockedloop", "machine", "synth", "codestore", "quaject"]),
    (
        "machine-pc",
        "crates/machine-pc",
        &["machine", "machine-x86", "synth", "codestore", "quaject", "bare", "firmware", "hda", "virtio"],
    ),
    (
        "machine-hosted",
        "crates/machine-hosted",
        &["machine", "machine-x86", "synth", "codestore", "quaject", "bare", "callsite"],
    ),
    (
        "kernel",
        "crates/kernel",
        &["abi", "machine", "codestore", "means", "net", "ninep", "queue", "synth", "quaject", "statemachine"],
    ),
    (
        "unix",
        "crates/unix",
        &[
            "abi",
            "bootimage",
            "codestore",
            "kernel",
            "machine",
            "means",
            "monitor",
            "quaject",
            "queue",
            "strace",
            "synth",
            "vdso",
        ],
    ),
    ("synthesis-pc", "bin/pc", &["machine", "machine-pc", "unix", "kernel"]),
    ("synthesis-hosted", "bin/hosted", &["machine", "machine-hosted", "unix", "kernel"]),
    ("synth-cli", "cli", &["abi", "bootimage", "means", "monitor", "redundancy-sim", "statemachine", "synthmem"]),
    ("synth-tests", "tests/harness", &["means"]),
    ("ground", "user/ground", &[]),
    ("means", "tests/means", &[]),
    ("synthio", "user/stdio", &["ground", "means", "synth"]),
    ("synthdecimal", "user/decimal", &["means"]),
    ("synth-demo", "user/demo", &["lockedloop", "synthsignal"]),
    ("synthsignal", "user/signal", &["ground", "means", "synth"]),
    ("synthmem", "user/memory", &["ground", "means", "synth"]),
    ("machine-sim", "crates/machine-sim", &["machine", "means", "synth", "codestore"]),
    ("simulated", "tests/simulated", &["abi", "bootimage", "kernel", "machine", "machine-sim", "unix"]),
    (
        "golden",
        "tests/golden",
        &[
            "abi",
            "codestore",
            "kernel",
            "machine",
            "machine-pc",
            "machine-x86",
            "means",
            "quaject",
            "statemachine",
            "synth",
            "unix",
        ],
    ),
    ("xtask", "xtask", &[]),
];

/// Files in which instructions may be written, beside templates: by the start of their path.
const ASSEMBLY: &[&str] = &[
    "crates/bare/",
    "crates/machine-pc/",
    "crates/machine-x86/",
    "crates/machine-hosted/",
    "crates/monitor/",
    "crates/machine/src/switch.rs",
    "crates/synth/",
    "crates/statemachine/src/parser/",
    "crates/statemachine/src/template.rs",
    "crates/vdso/user/",
    "crates/unix/tests/",
    "bin/pc/",
    "tests/golden/",
    "user/",
];

/// Folders that may hold `unsafe` blocks. Of the kernel's crates only those at or below the machine.
const UNSAFE: &[&str] = &[
    "crates/monitor/tests/",
    "crates/statemachine/tests/",
    "crates/bare/",
    "crates/machine-pc/",
    "crates/machine-x86/",
    "crates/machine-hosted/",
    "crates/codestore/",
    "crates/machine-sim/src/entry.rs",
    "crates/machine-sim/src/store.rs",
    "crates/machine-sim/src/machine.rs",
    "crates/machine-sim/src/memory.rs",
    "crates/machine-sim/src/tte.rs",
    "crates/machine-sim/src/translation.rs",
    "crates/kernel/src/practice.rs",
    "crates/kernel/src/space/tests/mod.rs",
    "crates/queue/",
    "crates/machine/src/cell.rs",
    "crates/machine/src/entry.rs",
    "crates/machine/src/frames.rs",
    "crates/machine/src/lock.rs",
    "crates/machine/tests/lock.rs",
    "crates/machine/src/translation.rs",
    "crates/machine/src/stages.rs",
    "crates/machine/src/stretch.rs",
    "crates/machine/src/switch.rs",
    "crates/synth/src/template.rs",
    "crates/synth/src/optimize/tests.rs",
    "crates/vdso/",
    "crates/unix/tests/",
    "bin/pc/",
    "bin/hosted/",
];

/// The files that a reader meets first.
const AT_THE_TOP: &[&str] = &[
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "rustfmt.toml",
    "synth",
];

fn starts_with_any(path: &str, starts: &[&str]) -> bool {
    starts.iter().any(|start| path.starts_with(start))
}

#[test]
fn what_is_too_long_only_gets_shorter() {
    let allowed = ratchet::allowed();
    for Exception { kind, path, count } in ratchet::found() {
        let limit = allowed.iter().find(|a| a.kind == kind && a.path == path).map_or(0, |a| a.count);
        assert!(
            count <= limit,
            "{path}: {kind} {count}, allowed {limit} (lines of {} characters, files of {} lines)",
            ratchet::LINE_CHARS,
            ratchet::FILE_LINES
        );
    }
}

#[test]
fn dependencies_point_down() {
    for manifest in files(".", "Cargo.toml") {
        let Some(folder) = manifest.strip_suffix("/Cargo.toml") else { continue };
        let known = MAY_USE.iter().find(|(_, path, _)| *path == folder);
        let (_, _, may_use) = known.unwrap_or_else(|| panic!("{manifest}: not in the table of this test"));
        let text = text(&manifest);
        let used = text.lines().filter(|line| line.contains("path = ")).filter_map(|line| line.split('=').next());
        for name in used.map(str::trim).filter(|name| MAY_USE.iter().any(|(known, ..)| known == name)) {
            assert!(may_use.contains(&name), "{folder} uses {name}");
        }
    }
}

#[test]
fn instructions_are_written_in_few_places() {
    for path in files(".", ".rs") {
        let text = text(&path);
        let here = path.starts_with("xtask/") || starts_with_any(&path, ASSEMBLY);
        assert!(here || !text.contains("asm!("), "{path}: assembly outside the machine and templates");
        let templates = here || path.starts_with("crates/kernel/src/");
        assert!(templates || !text.contains("template! {"), "{path}: a template outside the machine and the kernel");
    }
}

/// What is code of the kernel comes out of a declaration (S-124, ADR 33): the creator alone hands drafts to the code store, and
/// the monitor what people make there.
#[test]
fn code_is_published_by_the_creator() {
    for path in files("crates", ".rs") {
        let may = path == "crates/quaject/src/create.rs" || path.starts_with("crates/unix/src/inspect/monitor/");
        let found = text(&path).lines().any(|line| {
            let line = line.to_lowercase();
            ["store.publish(", "store.publish::<", "store.publish_as("].iter().any(|door| line.contains(door))
        });
        assert!(may || !found, "{path}: code of no declared quaject");
    }
}

#[test]
fn the_kernel_has_no_unsafe_blocks() {
    for path in files("crates", ".rs") {
        let found = text(&path).lines().any(|line| {
            let code = line.split("//").next().unwrap_or("");
            code.contains("unsafe {") || code.contains("unsafe fn") || code.contains("unsafe impl")
        });
        assert!(!found || starts_with_any(&path, UNSAFE), "{path}: unsafe code");
    }
}

/// There is one lock, and it has a type (`machine::Held`, ADR 17). What belongs to a processor needs none.
#[test]
fn nobody_speaks_of_another_lock() {
    for path in files("crates", ".rs") {
        let text = text(&path).to_lowercase();
        assert!(
            !text.contains("big kernel lock") && !text.contains("big lock"),
            "{path}: the kernel's lock is `machine::Held`"
        );
    }
}

/// All functions of the kernel that do not return (R10). What their callers own is never dropped, so each is called by the
/// outermost frame of a thread, which owns nothing: whoever wants a thread to end returns what says so (`Departed`).
const NEVER_RETURN: &[(&str, &str)] = &[
    // The first procedures of the kernel's own threads.
    ("crates/kernel/src/pump/mod.rs", "run"),
    ("crates/kernel/src/schedule/idle.rs", "idle"),
    ("crates/kernel/src/server.rs", "serve"),
    ("crates/unix/src/calls/descriptors/signal_driven.rs", "tell"),
    ("crates/unix/src/inspect/monitor/jobs.rs", "run_job"),
    ("crates/unix/src/proc/interrupts.rs", "sleeper"),
    // The end of a thread; of a program's, where `Upcalls` come in; of the machine.
    ("crates/kernel/src/schedule/mod.rs", "end_with"),
    ("crates/unix/src/calls/life/end.rs", "end"),
    ("crates/unix/src/calls/life/end.rs", "end_machine"),
    ("crates/unix/src/emulator.rs", "finish"),
];

#[test]
fn what_does_not_return_is_reached_from_one_place() {
    let mut found = Vec::new();
    for path in files("crates/kernel/src", ".rs").into_iter().chain(files("crates/unix/src", ".rs")) {
        let text = text(&path);
        for line in text.lines().filter(|line| line.contains("-> !") && line.contains("fn ")) {
            let name = line.split("fn ").nth(1).and_then(|rest| rest.split(['(', '<']).next()).unwrap_or_default();
            let known = NEVER_RETURN.iter().find(|known| **known == (path.as_str(), name));
            found.push(*known.unwrap_or_else(|| panic!("{path}: {name} does not return")));
        }
        let ends = text.matches(".end_with(").count();
        let allowed = NEVER_RETURN.iter().filter(|(known, _)| *known == path).count();
        assert!(ends <= allowed, "{path}: a thread ends in a function that returns");
        // The outermost frames of a program's thread.
        let departs = text.matches("departed.end(").count();
        assert!(departs == 0 || path == "crates/unix/src/entrance.rs" && departs == 2, "{path}: a thread's end");
    }
    NEVER_RETURN.iter().for_each(|known| assert!(found.contains(known), "{known:?} is not there"));
}

/// Test programs write files where they run; one that was committed with the sources would stay.
#[test]
fn nothing_is_left_lying_at_the_top() {
    let root = xtask::sources::root();
    let listing = std::process::Command::new("git").arg("-C").arg(root).arg("ls-files").output();
    let Ok(listing) = listing else { return };
    let listing = String::from_utf8_lossy(&listing.stdout).into_owned();
    let left: Vec<&str> = listing.lines().filter(|path| !path.contains('/') && !AT_THE_TOP.contains(path)).collect();
    assert!(left.is_empty(), "tracked at the top of the repository: {left:?}");
}
