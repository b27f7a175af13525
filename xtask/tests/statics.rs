//! What belongs to a processor is in its record (ADR 17), reached by that processor alone. What is static beside the records belongs to
//! the system: it is written at boot, or under the kernel's lock, or by atomics that any processor may touch.

use xtask::sources::{files, text};

/// All statics that change, but the records themselves. A new one is put here by who has asked: are there as many as processors?
const OF_THE_SYSTEM: &[(&str, &[&str])] = &[
    ("crates/kernel/src/call/simple.rs", &["SHARED"]),
    ("crates/kernel/src/file/share/mod.rs", &["ALL"]),
    ("crates/kernel/src/file/share/post.rs", &["SLEEPER"]),
    ("crates/kernel/src/file/volume.rs", &["NEXT"]),
    ("crates/kernel/src/file/watch.rs", &["LAST"]),
    ("crates/kernel/src/file/window.rs", &["NO_CONTENT"]),
    ("crates/kernel/src/pump/mod.rs", &["PUMPS"]),
    ("crates/kernel/src/schedule/mod.rs", &["THE"]),
    ("crates/kernel/src/server.rs", &["DEVICES"]),
    ("crates/kernel/src/stream/nameless.rs", &["NUMBERS"]),
    ("crates/machine-hosted/src/cpu.rs", &["FEATURES"]),
    ("crates/machine-hosted/src/debug/gdb.rs", &["__jit_debug_descriptor"]),
    ("crates/machine-hosted/src/debug/mod.rs", &["DEBUGGERS", "EXPECTS_DEBUGGER"]),
    ("crates/machine-hosted/src/foreign.rs", &["TOPS", "CHANGES", "HOST"]),
    ("crates/machine-hosted/src/frames.rs", &["PRESENT", "END", "POOL"]),
    ("crates/machine-hosted/src/guards.rs", &["TOLD", "OWNER", "HAS_NEWS", "MOVES", "MOUNTS", "MOUNTS_SEEN"]),
    ("crates/machine-hosted/src/heap.rs", &["THE"]),
    (
        "crates/machine-hosted/src/hosts.rs",
        &[
            "HOSTS",
            "PLACES",
            "IDLE",
            "LAST_IDLE",
            "HAND",
            "STATUS",
            "ONE_ONLY",
            "ATTEMPTS",
            "HAS_CORES",
            "GIVER",
            "LOST",
        ],
    ),
    ("crates/machine-hosted/src/lib.rs", &["STORE", "MEMORY_FD", "MACHINE"]),
    ("crates/machine-hosted/src/lines.rs", &["TABLE", "OPEN"]),
    ("crates/machine-hosted/src/patch.rs", &["HOPELESS", "REWRITES"]),
    ("crates/machine-hosted/src/start.rs", &["CONTROL"]),
    ("crates/machine-hosted/src/stubs.rs", &["STATE"]),
    ("crates/machine-hosted/src/threads.rs", &["AREAS"]),
    ("crates/machine-hosted/src/windows.rs", &["CHANGED", "CHANGES", "WINDOWS"]),
    ("crates/machine-pc/src/acpi.rs", &["POWER_OFF"]),
    ("crates/machine-pc/src/apic.rs", &["MULTIPLIER", "IO"]),
    ("crates/machine-pc/src/clock.rs", &["KVM_CLOCK", "KVM_DATE"]),
    ("crates/machine-pc/src/entropy.rs", &["SOURCE", "GIVEN"]),
    ("crates/machine-pc/src/frames.rs", &["FRAMES", "TABLE_FRAMES"]),
    ("crates/machine-pc/src/heap.rs", &["THE"]),
    ("crates/machine-pc/src/net.rs", &["FOUND"]),
    ("crates/machine-pc/src/lib.rs", &["STORE", "MACHINE"]),
    ("crates/machine-pc/src/lines.rs", &["TABLE"]),
    ("crates/machine-pc/src/nesting.rs", &["IS_ALWAYS"]),
    ("crates/machine-pc/src/receive.rs", &["PRACTICE"]),
    ("crates/machine-pc/src/sample_clock.rs", &["IS_MAPPED"]),
    ("crates/machine-pc/src/shares.rs", &["FOUND"]),
    ("crates/machine-pc/src/sound.rs", &["FOUND"]),
    ("crates/machine-x86/src/area.rs", &["AREAS", "INACTIVE"]),
    ("crates/machine-x86/src/clock.rs", &["BASE", "SCALE", "TICKS"]),
    ("crates/machine-x86/src/serialize.rs", &["KIND"]),
    ("crates/machine-x86/src/upcalls.rs", &["KERNEL"]),
    (
        "crates/machine/src/failing.rs",
        &["STATE", "RATE", "ASKED", "REFUSED", "IS_ASKING", "IS_SURE", "COUNTS", "ENTRY", "ENTRY_MOST", "BLOCK_MOST"],
    ),
    ("crates/machine/src/lock.rs", &["OWNER", "THIS_PROCESSOR"]),
    ("crates/machine/src/processor.rs", &["UNREAD"]),
    ("crates/machine/src/stages.rs", &["NOW", "LAST", "BEFORE"]),
    ("crates/machine/src/stretch.rs", &["SINCE", "PLACE", "LONGEST", "COUNTS"]),
];

/// Types that change through shared references, by a part of their name.
const CHANGE: &[&str] = &[
    "Atomic",
    "Cell",
    "Kernel",
    "Local",
    "Slot",
    "State",
    "Table",
    "Heap",
    "Frames",
    "CodeStore",
    "Shared",
    "Host",
    "Processors",
    "Debuggers",
];

const CRATES: &[&str] = &["machine", "machine-pc", "machine-hosted", "machine-x86", "kernel"];

/// The name of the static that a line declares, if it may change.
fn declared(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("static ")?;
    let is_declaration = matches!(line.trim_start(), front if front.starts_with("static ") || front.starts_with("pub"));
    let (name, kind) = rest.trim_start_matches("mut ").split_once(": ")?;
    let (kind, _) = kind.split_once('=')?;
    let changes = rest.starts_with("mut ") || CHANGE.iter().any(|part| kind.contains(part));
    (is_declaration && changes).then_some(name)
}

#[test]
fn what_belongs_to_a_processor_is_in_its_record() {
    let mut found = 0;
    for folder in CRATES {
        for path in files(&format!("crates/{folder}/src"), ".rs") {
            let text = text(&path);
            for name in text.lines().filter_map(declared).filter(|name| *name != "PROCESSORS") {
                let known = OF_THE_SYSTEM.iter().any(|(known, names)| *known == path && names.contains(&name));
                assert!(known, "{path}: {name} is static; what belongs to a processor is in its record");
                found += 1;
            }
        }
    }
    let listed: usize = OF_THE_SYSTEM.iter().map(|(_, names)| names.len()).sum();
    assert_eq!(found, listed, "a static of the list has gone");
}

#[test]
fn a_static_that_changes_is_seen() {
    assert_eq!(declared("    pub static NOW: AtomicU64 = AtomicU64::new(0);"), Some("NOW"));
    assert_eq!(declared("static mut SEEN: u8 = 0;"), Some("SEEN"));
    assert_eq!(declared("static NAMES: &[&str] = &[];"), None);
    assert_eq!(declared("    static line_entries: u8;"), None);
}
