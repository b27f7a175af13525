//! The tool end to end, with a shell script in QEMU's place: streams, endings, errors.

use std::cell::{Cell, RefCell};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Finds the sockets among its arguments as QEMU would, then runs the guest script.
const MONITOR: &str = r#"#!/bin/bash
for word in "$@"; do
    case $word in socket,id=*) word=${word#socket,id=}; eval "${word%%,*}=${word##*fd=}" ;; esac
done
exit_record() { printf "\\001\\0\\0\\0\\010\\0\\0\\0\\x$(printf %02x "$1")\\0\\0\\0\\x$(printf %02x "$2")\\0\\0\\0" >&"$ctl"; }
text_record() { printf "\\x$(printf %02x "$1")\\0\\0\\0\\x$(printf %02x ${#2})\\0\\0\\0%s" "$2" >&"$ctl"; }
"#;

struct Host {
    folder: tempfile::TempDir,
}

impl Host {
    /// A host whose QEMU behaves as `guest`, a bash script with the descriptors `$in`, `$out`, `$err`, `$ctl`, `$debug`.
    fn with_guest(guest: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let monitor = folder.path().join("qemu-system-x86_64");
        fs::write(&monitor, format!("{MONITOR}{guest}\n")).unwrap();
        fs::set_permissions(&monitor, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(folder.path().join("kernel"), "").unwrap();
        Host { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_synth"));
        let path = format!("{}:{}", self.path().display(), std::env::var("PATH").unwrap());
        command.arg("run").arg("--kernel").arg(self.path().join("kernel")).args(["--accel", "tcg"]);
        command.args(arguments).env("PATH", path).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }
}

/// Looks until it is so, half a minute at most.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A number that the guest wrote into a file, once it has.
fn number_in(file: &Path) -> u32 {
    let read = || fs::read_to_string(file).ok()?.strip_suffix('\n')?.parse().ok();
    wait_until("a number in a file of the guest", || read().is_some());
    read().unwrap()
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_hundred_megabytes_pass_both_ways_unchanged() {
    let host = Host::with_guest("cat <&$in >&$out; exit_record 0 0");
    let mut tool = host.command(&["/bin/true"]).stdin(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (tool.stdin.take().unwrap(), tool.stdout.take().unwrap());
    let sent: Vec<u8> = (0u32..25_000_000).flat_map(|word| word.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let mut received = Vec::new();
    std::thread::scope(|scope| {
        let bytes = &sent;
        scope.spawn(move || input.write_all(bytes).unwrap());
        output.read_to_end(&mut received).unwrap();
    });
    assert!(received == sent, "{} of {} bytes", received.len(), sent.len());
    assert_eq!(tool.wait().unwrap().code(), Some(0));
}

#[test]
fn output_and_errors_are_separate_and_complete_when_the_machine_stops_at_once() {
    let host = Host::with_guest("head -c 50000 /dev/zero >&$out; echo bad >&$err; exit_record 3 0");
    let output = host.run(&["/bin/true"]);
    assert_eq!((status(&output), output.stdout.len(), errors(&output).as_str()), (3, 50_000, "bad\n"));
}

#[test]
fn a_slow_reader_slows_the_guest() {
    let host = Host::with_guest("head -c 20000000 /dev/zero >&$out & echo $! > ${0%/*}/writer; wait; exit_record 0 0");
    let mut tool = host.command(&["/bin/true"]).spawn().unwrap();
    let writer = number_in(&host.path().join("writer"));
    // What the writer has written, when it has got no further for a while.
    let written = || fs::read_to_string(format!("/proc/{writer}/io")).unwrap_or_default();
    let (last, still) = (RefCell::new(String::new()), Cell::new(0));
    wait_until("the writer comes to rest", || {
        let is_same = last.replace(written()) == *last.borrow();
        still.set(if is_same { still.get() + 1 } else { 0 });
        still.get() > 20
    });
    let memory = fs::read_to_string(format!("/proc/{}/status", tool.id())).unwrap();
    let line = memory.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kib < 16 * 1024, "the tool holds {kib} KiB");
    let mut received = Vec::new();
    tool.stdout.take().unwrap().read_to_end(&mut received).unwrap();
    assert_eq!((received.len(), tool.wait().unwrap().code()), (20_000_000, Some(0)));
}

/// Guards: the grace for stopping once cut off what a slow reader had not read yet.
#[test]
fn output_is_complete_however_late_it_is_read() {
    let host = Host::with_guest("head -c 250000 /dev/zero >&$out; exit_record 4 0; exec sleep 100");
    let mut tool = host.command(&["--timeout", "60", "/bin/true"]).spawn().unwrap();
    // The reader is not waiting for anything: it is later than the grace.
    std::thread::sleep(Duration::from_secs(4));
    let mut received = Vec::new();
    tool.stdout.take().unwrap().read_to_end(&mut received).unwrap();
    assert_eq!((received.len(), tool.wait().unwrap().code()), (250_000, Some(4)));
}

#[test]
fn a_closed_output_ends_the_run_like_sigpipe() {
    let host = Host::with_guest("while :; do echo y >&$out; done");
    let mut tool = host.command(&["/bin/true"]).spawn().unwrap();
    tool.stdout.take().unwrap().read_exact(&mut [0; 100]).unwrap();
    assert_eq!(tool.wait().unwrap().code(), Some(141));
}

#[test]
fn a_signal_is_128_more() {
    assert_eq!(status(&Host::with_guest("exit_record 0 11").run(&["/bin/true"])), 139);
}

#[test]
fn a_machine_that_hangs_is_ended_by_the_timeout() {
    let host = Host::with_guest("echo before >&$out; exec sleep 100");
    let start = Instant::now();
    let output = host.run(&["--timeout", "2", "/bin/true"]);
    assert_eq!((status(&output), output.stdout.as_slice()), (124, &b"before\n"[..]));
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn an_epitaph_and_a_dead_monitor_are_told_with_status_70() {
    let panicked = Host::with_guest("text_record 4 'out of luck'").run(&["/bin/true"]);
    assert_eq!(status(&panicked), 70);
    assert!(errors(&panicked).contains("out of luck"), "{}", errors(&panicked));
    let dead = Host::with_guest("echo no such machine >&2; exit 1").run(&["/bin/true"]);
    assert_eq!(status(&dead), 70);
    assert!(errors(&dead).contains("no such machine"), "{}", errors(&dead));
    let early = Host::with_guest("printf 'no memory' >&$debug").run(&["/bin/true"]);
    assert!(errors(&early).contains("no memory"), "{}", errors(&early));
}

#[test]
fn kernel_messages_appear_only_when_asked_for() {
    let host = Host::with_guest("text_record 2 message; text_record 3 call; exit_record 0 0");
    assert_eq!(errors(&host.run(&["/bin/true"])), "call");
    assert!(errors(&host.run(&["--verbose", "/bin/true"])).contains("message"));
}

#[test]
fn what_cannot_be_run_has_the_shells_statuses() {
    let host = Host::with_guest("exit_record 0 0");
    let file = |name: &str, bytes: &[u8]| {
        let path = host.path().join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_string()
    };
    let mut thirty_two = fs::read("/bin/true").unwrap();
    thirty_two[4] = 1;
    let script = file("script", b"#!/nowhere/sh\n");
    let cases = [
        ("no-such-program".to_string(), 127, "no such program"),
        ("/no/such/program".into(), 127, "no such program"),
        ("/".into(), 126, "is a directory"),
        ("/etc/passwd".into(), 126, "is not executable"),
        (file("text", b"echo hello\n"), 126, "neither an ELF"),
        (file("thirty-two", &thirty_two), 126, "32-bit"),
        (file("cut", &fs::read("/bin/true").unwrap()[..3000]), 126, "damaged"),
        (script, 126, "/nowhere/sh"),
        (file("good-script", b"#!/bin/sh\n"), 0, ""),
    ];
    for (program, expected, message) in cases {
        let output = host.run(&[&program]);
        assert_eq!(status(&output), expected, "{program}: {}", errors(&output));
        assert!(errors(&output).contains(message), "{program}: {}", errors(&output));
    }
}

/// Runs the tool and reads the archive it would have booted.
fn packed(arguments: &[&str]) -> Vec<u8> {
    let host = Host::with_guest(r#"while [ "$1" != -initrd ]; do shift; done; cat "$2" >&$out; exit_record 0 0"#);
    let output = host.run(arguments);
    assert_eq!(status(&output), 0, "{}", errors(&output));
    output.stdout
}

#[test]
fn a_dynamic_program_is_packed_at_the_hosts_paths_with_all_it_needs() {
    let bytes = packed(&["--env", "A=1", "/bin/ls", "-l"]);
    let archive = bootimage::Archive::parse(&bytes).unwrap();
    assert_eq!(archive.config().program, b"/bin/ls");
    assert_eq!(archive.config().argv().collect::<Vec<_>>(), [&b"/bin/ls"[..], b"-l"]);
    assert!(archive.config().env().any(|variable| variable == b"A=1"));
    let names: Vec<_> = archive.entries().map(|entry| String::from_utf8_lossy(entry.path).into_owned()).collect();
    for part in ["/ls", "/libc.so.6", "/etc/passwd", "/dev", "/tmp"] {
        assert!(names.iter().any(|name| name.ends_with(part)), "{part} in {names:?}");
    }
    let real = fs::canonicalize("/bin/ls").unwrap();
    let (_, entry) = archive.find(real.as_os_str().as_encoded_bytes()).unwrap();
    assert!(matches!(entry.kind, bootimage::Kind::File { data, .. } if data == fs::read("/bin/ls").unwrap()));
}

#[test]
fn files_and_folders_are_packed_where_they_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    fs::write(folder.path().join("sub/file"), "text").unwrap();
    fs::hard_link(folder.path().join("sub/file"), folder.path().join("same")).unwrap();
    std::os::unix::fs::symlink("sub/file", folder.path().join("link")).unwrap();
    let host = folder.path().to_str().unwrap();
    let bytes = packed(&["--with", &format!("{host}:/data"), "--with", host, "--cwd", "/data/sub", "/bin/true"]);
    let archive = bootimage::Archive::parse(&bytes).unwrap();
    for top in ["/data", host] {
        let kind = |name: &str| archive.find(format!("{top}/{name}").as_bytes()).unwrap().1.kind;
        assert_eq!(kind("link"), bootimage::Kind::Symlink { target: b"sub/file" });
        assert!(matches!(kind("sub/file"), bootimage::Kind::HardLink { .. }));
    }
}

#[test]
fn a_root_folder_and_a_root_tar_hold_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir_all(root.join("usr/bin")).unwrap();
    std::os::unix::fs::symlink("usr/bin", root.join("bin")).unwrap();
    fs::copy("/bin/busybox", root.join("usr/bin/tool")).unwrap();
    let tar = folder.path().join("root.tar");
    let made = Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(&tar).arg(".").status().unwrap();
    assert!(made.success());
    for root in [&root, &tar] {
        let bytes = packed(&["--root", root.to_str().unwrap(), "tool", "x"]);
        let archive = bootimage::Archive::parse(&bytes).unwrap();
        assert_eq!(archive.config().program, b"/usr/bin/tool");
        let (_, entry) = archive.find(b"/usr/bin/tool").unwrap();
        assert!(matches!(entry.kind, bootimage::Kind::File { data, .. } if data == fs::read("/bin/busybox").unwrap()));
    }
}
