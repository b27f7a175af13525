//! Bad programs and bad options: one clear line and a useful status; never a hang, never a dead machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::comparison::is_root;
use super::streams::{error_lines, executable, static_hello, tool_is_there};
use crate::options::Options;
use crate::process::{self, Outcome, shell_status};
use crate::report::Tally;
use crate::root::find_program;
use crate::side::runner_command;

/// The tool itself failed: an option, a file to pack.
const TOOL: i32 = 125;
/// The program is there but cannot run.
const NOT_EXECUTABLE: i32 = 126;
/// There is no such program.
const NOT_FOUND: i32 = 127;
/// Something that the tool needs is missing.
const UNAVAILABLE: i32 = 69;
/// `synth`'s: the time limit came.
const TIMED_OUT: i32 = 124;
/// Options that do not go together.
const USAGE: i32 = 2;
/// The machine died. No program and no file may do that.
const MACHINE_DIED: i32 = 70;

/// Runs every check.
///
/// # Errors
/// A sentence when the tool is not there or the bad files cannot be made.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    tool_is_there(options)?;
    let folder = options.repo.join("target/synth-tests/errors");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let mut record = |name: &str, check: &mut dyn FnMut() -> Result<(), String>| {
        let name = format!("errors/{name}");
        if options.selects(&name) {
            tally.record(&name, check());
        }
    };
    for (name, words, statuses, named) in plain_mistakes(&folder)? {
        record(name, &mut || {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            refused(&run_tool(options, &words)?, statuses, &named)
        });
    }
    let good = fs::read(static_hello(options)?).map_err(|error| error.to_string())?;
    for (name, bytes) in torn(&good) {
        record(&name, &mut || refused_file(options, &folder, &name, &bytes));
    }
    for (name, bytes, reason) in of_another_kind(&good) {
        record(name, &mut || refused_with_reason(options, &folder, name, &bytes, reason));
    }
    for (name, bytes) in damaged(&good) {
        record(name, &mut || match options.is_hosted() {
            // There the kernel alone looks at the file, and it is as generous as Linux.
            true => as_host_or_refused(options, &folder, name, &bytes),
            false => refused_file(options, &folder, name, &bytes),
        });
    }
    for (words, help) in OF_DOCKER {
        record(&format!("hint_for_{}", words[0].trim_start_matches('-')), &mut || hint(options, words, help));
    }
    for (name, bytes) in absurd_segments(&good) {
        record(name, &mut || as_host_or_refused(options, &folder, name, &bytes));
    }
    record("no_program_complains_about_its_language", &mut || languages(options));
    record("what_cannot_be_read_is_left_out", &mut || left_out(options));
    record("more_than_a_machine_holds", &mut || more_than_a_machine_holds(options, &folder));
    record("missing_library", &mut || missing_library(options, &folder));
    record("program_larger_than_memory", &mut || larger_than_memory(options, &folder));
    record("qemu_missing", &mut || qemu_missing(options, &folder));
    record("kvm_unusable", &mut || kvm_unusable(options));
    Ok(())
}

type Mistake = (&'static str, Vec<String>, &'static [i32], String);

/// Name, words for the tool, statuses that are right, and what the line must name.
fn plain_mistakes(folder: &Path) -> Result<Vec<Mistake>, String> {
    let file = |name: &str, text: &str, runs: bool| -> Result<String, String> {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| error.to_string())?;
        if runs {
            executable(&path)?;
        }
        Ok(path.display().to_string())
    };
    let words = |list: &[&str]| list.iter().map(|word| word.to_string()).collect::<Vec<_>>();
    let text = file("text", "just some text\n", true)?;
    let plain = file("plain", "not executable\n", false)?;
    let orphan = file("orphan", "#!/no/such/interpreter -x\necho never\n", true)?;
    let no_name = file("noname", "#!\necho never\n", true)?;
    let empty = file("empty", "", true)?;
    let looping = folder.join("loop").display().to_string();
    std::os::unix::fs::symlink(&looping, &looping).map_err(|error| error.to_string())?;
    let folder_name = folder.display().to_string();
    let through_file = format!("{plain}/x");
    Ok(vec![
        ("no_such_program", words(&["/no/such/program"]), &[NOT_FOUND], "/no/such/program".into()),
        ("no_such_program_in_path", words(&["no-such-program-at-all"]), &[NOT_FOUND], "no-such-program-at-all".into()),
        ("a_directory", words(&[&folder_name]), &[NOT_EXECUTABLE], folder_name.clone()),
        ("a_text_without_interpreter", words(&[&text]), &[NOT_EXECUTABLE], text.clone()),
        ("a_file_that_is_not_executable", words(&[&plain]), &[NOT_EXECUTABLE], plain.clone()),
        ("a_script_whose_interpreter_is_missing", words(&[&orphan]), &[NOT_EXECUTABLE, NOT_FOUND], orphan.clone()),
        ("a_script_that_names_no_interpreter", words(&[&no_name]), &[NOT_EXECUTABLE], no_name.clone()),
        ("an_empty_file", words(&[&empty]), &[NOT_EXECUTABLE], empty.clone()),
        ("a_path_through_a_file", words(&[&through_file]), &[NOT_EXECUTABLE, NOT_FOUND], through_file.clone()),
        ("a_link_to_itself", words(&[&looping]), &[NOT_EXECUTABLE, NOT_FOUND], looping.clone()),
        ("an_empty_name", words(&[""]), &[NOT_FOUND, TOOL, 2], String::new()),
        ("a_name_with_a_newline", words(&["/no\nsuch"]), &[NOT_FOUND], String::new()),
        (
            "a_file_to_pack_that_is_missing",
            words(&["--with", "/no/such/file", "/bin/true"]),
            &[TOOL],
            "/no/such/file".into(),
        ),
        ("a_root_that_is_missing", words(&["--root", "/no/such/root", "/bin/true"]), &[TOOL], "/no/such/root".into()),
        ("a_root_that_is_no_root", words(&["--root", &text, "/bin/true"]), &[TOOL, NOT_FOUND], String::new()),
        ("a_memory_size_that_is_no_number", words(&["--mem", "lots", "/bin/true"]), &[2, TOOL], "lots".into()),
        ("a_memory_size_of_nothing", words(&["--mem", "0", "/bin/true"]), &[2, TOOL], String::new()),
        ("an_unknown_option", words(&["--no-such-option", "/bin/true"]), &[2, TOOL], "--no-such-option".into()),
        ("a_time_limit_that_is_no_number", words(&["--timeout", "soon", "/bin/true"]), &[2, TOOL], "soon".into()),
        (
            "a_folder_to_start_in_that_is_missing",
            words(&["--cwd", "/no/such/dir", "/bin/busybox", "pwd"]),
            &[TOOL],
            "/no/such/dir".into(),
        ),
        (
            "a_kernel_that_is_missing",
            words(&["--kernel", "/no/such/kernel", "/bin/true"]),
            &[UNAVAILABLE, TOOL],
            "/no/such/kernel".into(),
        ),
    ])
}

fn run_tool(options: &Options, words: &[&str]) -> Result<Outcome, String> {
    let mut command = runner_command(&options.runner);
    command.args(words);
    process::run(command, Vec::new(), options.case_timeout)
}

/// Nothing on stdout, exactly one `error: ` line that names what is wrong, and one of the statuses.
fn refused(outcome: &Outcome, statuses: &[i32], named: &str) -> Result<(), String> {
    let text = String::from_utf8_lossy(&outcome.stderr).into_owned();
    let line = text.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    let wrong = if !statuses.contains(&outcome.status) {
        format!("status {}, not one of {statuses:?}", outcome.status)
    } else if !outcome.stdout.is_empty() {
        format!("something on stdout: {}", outcome.stdout.escape_ascii())
    } else if error_lines(&outcome.stderr) != 1 {
        "not exactly one line that starts with `error: `".into()
    } else if !text.contains(named) && !line.contains(named) {
        format!("it does not name {named}")
    } else if text.contains("panicked at") {
        "the tool panicked".into()
    } else {
        return Ok(());
    };
    Err(format!("{wrong}\nstderr: {text}"))
}

fn write_program(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, String> {
    let path = folder.join(name);
    fs::write(&path, bytes).map_err(|error| error.to_string())?;
    executable(&path)?;
    Ok(path)
}

fn refused_file(options: &Options, folder: &Path, name: &str, bytes: &[u8]) -> Result<(), String> {
    let path = write_program(folder, name, bytes)?.display().to_string();
    refused(&run_tool(options, &[&path])?, &[NOT_EXECUTABLE], &path)
}

/// On both machines the same line, with the reason in it, also when the program lies in a root of its own.
fn refused_with_reason(options: &Options, folder: &Path, name: &str, bytes: &[u8], reason: &str) -> Result<(), String> {
    let path = write_program(folder, name, bytes)?;
    let root = folder.join("root");
    fs::create_dir_all(&root).map_err(|error| error.to_string())?;
    write_program(&root, name, bytes)?;
    let (path, inside, root) = (path.display().to_string(), format!("/{name}"), root.display().to_string());
    for (words, path) in [(&[path.as_str()][..], path.as_str()), (&["--root", &root, &inside], &inside)] {
        let outcome = run_tool(options, words)?;
        refused(&outcome, &[NOT_EXECUTABLE], &format!("error: {path} {reason}\n"))?;
    }
    fs::remove_file(folder.join("root").join(name)).map_err(|error| error.to_string())
}

/// Options of docker and podman that are not there, and what the help must name.
const OF_DOCKER: [(&[&str], &str); 3] = [
    (&["--volume=/tmp:/data", "/bin/true"], "--share HOST:GUEST"),
    (&["--detach", "/bin/true"], "leave it out"),
    (&["--workdir", "/tmp", "/bin/true"], "--cwd"),
];

fn hint(options: &Options, words: &[&str], help: &str) -> Result<(), String> {
    let outcome = run_tool(options, words)?;
    refused(&outcome, &[USAGE], help)
}

/// The program may do exactly what it does on the host, or be refused in one line.
fn as_host_or_refused(options: &Options, folder: &Path, name: &str, bytes: &[u8]) -> Result<(), String> {
    let path = write_program(folder, name, bytes)?;
    let host = Command::new(&path).output().ok();
    let host = host.map(|output| (shell_status(output.status), output.stdout));
    let outcome = run_tool(options, &[&path.display().to_string()])?;
    if outcome.status == MACHINE_DIED {
        return Err(format!("the machine died: {}", outcome.stderr.escape_ascii()));
    }
    if host.as_ref() == Some(&(outcome.status, outcome.stdout.clone())) {
        return Ok(());
    }
    refused(&outcome, &[NOT_EXECUTABLE], "").map_err(|story| format!("the host gives {host:?}\n{story}"))
}

/// The good program cut at lengths around everything that a loader looks at.
fn torn(good: &[u8]) -> Vec<(String, Vec<u8>)> {
    let header_end = 64 + 56 * usize::from(u16_at(good, 56));
    let lengths =
        [1, 3, 4, 5, 16, 17, 40, 63, 64, 65, 100, header_end - 1, header_end, 4096, good.len() / 4, good.len() / 2];
    lengths.iter().map(|&length| (format!("torn_at_{length}"), good[..length].to_vec())).collect()
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn patched(good: &[u8], patches: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for (at, patch) in patches {
        bytes[*at..at + patch.len()].copy_from_slice(patch);
    }
    bytes
}

/// What is no program for this machine at all, and why. Offsets are those of Elf64_Ehdr (System V ABI): class 4, data 5, type 16,
/// machine 18.
fn of_another_kind(good: &[u8]) -> Vec<(&'static str, Vec<u8>, &'static str)> {
    const NEITHER: &str = "is neither an ELF program nor a script that starts with #!";
    let is_32_bit = |machine| patched(good, &[(4, &[1]), (18, machine)]);
    vec![
        ("an_elf_of_32_bits", is_32_bit(&[3, 0]), "is a 32-bit x86 program: only 64-bit programs run"),
        ("an_elf_of_32_bits_for_arm", is_32_bit(&[40, 0]), "is a 32-bit ARM program: only 64-bit programs run"),
        ("an_elf_for_arm", patched(good, &[(18, &[0xb7, 0])]), "is a program for AArch64: only those for x86-64 run"),
        ("an_elf_for_riscv", patched(good, &[(18, &[0xf3, 0])]), "is a program for RISC-V: only those for x86-64 run"),
        ("an_object_file", patched(good, &[(16, &[1, 0])]), "is an ELF file but not a program (ELF type 1)"),
        ("a_core_file", patched(good, &[(16, &[4, 0])]), "is an ELF file but not a program (ELF type 4)"),
        ("almost_an_elf", patched(good, &[(3, b"G")]), NEITHER),
        ("a_program_for_windows", b"MZ\x90\0\x03\0".to_vec(), "is a program for Windows or DOS, not for Linux"),
        ("a_program_for_macos", b"\xcf\xfa\xed\xfe\x07".to_vec(), "is a program for macOS, not for Linux"),
        ("a_script_without_a_first_line", b"echo hello\n".to_vec(), NEITHER),
        ("a_file_of_no_bytes", Vec::new(), NEITHER),
    ]
}

/// Offsets as above; entry size 54, number of entries 56, offset of the program headers 32.
fn damaged(good: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("an_elf_of_no_class", patched(good, &[(4, &[9])])),
        ("an_elf_with_the_other_byte_order", patched(good, &[(5, &[2])])),
        ("an_elf_without_segments", patched(good, &[(56, &[0, 0])])),
        ("an_elf_with_a_wrong_entry_size", patched(good, &[(54, &[55, 0])])),
        ("an_elf_with_headers_beyond_its_end", patched(good, &[(32, &u64::MAX.to_le_bytes())])),
        ("an_elf_with_headers_far_away", patched(good, &[(32, &0x7fff_ffff_0000u64.to_le_bytes())])),
    ]
}

/// Offsets are those of Elf64_Phdr: offset 8, address 16, size in file 32, size in memory 40, alignment 48.
fn absurd_segments(good: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let headers = 64;
    let loads: Vec<usize> = (0..usize::from(u16_at(good, 56)))
        .map(|index| headers + 56 * index)
        .filter(|&at| good[at..at + 4] == [1, 0, 0, 0])
        .collect();
    let (first, second) = (loads[0], loads[1]);
    let address: [u8; 8] = good[first + 16..first + 24].try_into().unwrap_or_default();
    let word = |value: u64| value.to_le_bytes();
    vec![
        ("segments_that_overlap", patched(good, &[(second + 16, &address)])),
        ("a_segment_in_the_kernel", patched(good, &[(second + 16, &word(0xffff_ffff_8000_0000))])),
        ("a_segment_at_the_limit", patched(good, &[(second + 16, &word(0x7fff_ffff_f000))])),
        ("a_segment_that_wraps_round", patched(good, &[(second + 16, &word(u64::MAX - 0xfff))])),
        ("a_segment_at_zero", patched(good, &[(first + 16, &word(0))])),
        ("a_segment_larger_in_the_file_than_in_memory", patched(good, &[(second + 40, &word(1))])),
        (
            "a_segment_larger_than_the_file",
            patched(good, &[(second + 32, &word(1 << 40)), (second + 40, &word(1 << 40))]),
        ),
        ("a_segment_larger_than_all_memory", patched(good, &[(second + 40, &word(1 << 46))])),
        ("a_segment_of_the_largest_size", patched(good, &[(second + 40, &word(u64::MAX))])),
        ("a_segment_beyond_the_file", patched(good, &[(second + 8, &word(1 << 50))])),
        ("a_segment_with_an_odd_alignment", patched(good, &[(second + 48, &word(3))])),
        ("a_segment_at_an_odd_offset", patched(good, &[(second + 8, &word(0x1001))])),
        ("an_entry_at_zero", patched(good, &[(24, &word(0))])),
        ("an_entry_in_the_kernel", patched(good, &[(24, &word(0xffff_ffff_8000_0000))])),
        ("an_entry_that_is_not_canonical", patched(good, &[(24, &word(0x9000_0000_0000))])),
        ("an_entry_in_the_data", patched(good, &[(24, &good[*loads.last().unwrap_or(&first) + 16..][..8])])),
        ("more_headers_than_there_are", patched(good, &[(56, &[0xff, 0xff])])),
        ("no_segment_may_be_executed", patched(good, &[(second + 4, &[4, 0, 0, 0])])),
    ]
}

fn gcc(args: &[&str]) -> Result<(), String> {
    let output = Command::new("gcc").args(args).output().map_err(|error| format!("cannot run gcc: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// The host's LANG is one that no guest has. On the hosted machine programs say what they say on the host.
fn languages(options: &Options) -> Result<(), String> {
    const LANGUAGE: &str = "xx_XX.UTF-8";
    for program in [&["perl", "-e", "print qq(ok\n)"][..], &["bash", "-c", "echo ok"], &["sort", "--version"]] {
        let Some(path) = find_program(program[0]) else { continue };
        let mut command = runner_command(&options.runner);
        command.arg(&path).args(&program[1..]).env("LANG", LANGUAGE).env_remove("LC_ALL");
        let outcome = process::run(command, Vec::new(), options.case_timeout)?;
        let mut on_host = Command::new(&path);
        on_host.args(&program[1..]).env("LANG", if options.is_hosted() { LANGUAGE } else { "C" }).env_remove("LC_ALL");
        let host = process::run(on_host, Vec::new(), options.case_timeout)?;
        if outcome != host {
            return Err(format!("{program:?}: expected {host:?}, got {outcome:?}"));
        }
    }
    Ok(())
}

/// A folder with a file and a folder that an ordinary user may not read; root reads all, so the tool runs as somebody else.
fn left_out(options: &Options) -> Result<(), String> {
    // Not in the checkout, which may stand where only root goes.
    let top = options.scratch.join(format!("synth-tests-partly-{}", std::process::id()));
    let told = |error: std::io::Error| error.to_string();
    fs::create_dir_all(top.join("closed")).map_err(told)?;
    fs::write(top.join("open"), "readable\n").map_err(told)?;
    fs::write(top.join("secret"), "not readable\n").map_err(told)?;
    for name in ["secret", "closed"] {
        fs::set_permissions(top.join(name), fs::Permissions::from_mode(0o000)).map_err(told)?;
    }
    let with = format!("{}:/with", top.display());
    let Some(mut command) = ordinary_user(options)? else { return Ok(()) };
    command.args(["--with", &with, "busybox", "sh", "-c", "cat /with/open; ls /with"]);
    let outcome = process::run(command, Vec::new(), options.case_timeout)?;
    for name in ["secret", "closed"] {
        fs::set_permissions(top.join(name), fs::Permissions::from_mode(0o755)).map_err(told)?;
    }
    let first = top.join("closed").display().to_string();
    let _ = fs::remove_dir_all(&top);
    let expected =
        format!("synth: left out 2 files and folders that cannot be read, first {first}: permission denied\n");
    let (out, err) = (String::from_utf8_lossy(&outcome.stdout), String::from_utf8_lossy(&outcome.stderr));
    if outcome.status == 0 && out == "readable\nclosed\nopen\n" && err == expected {
        return Ok(());
    }
    Err(format!("status {}\nstdout: {out}\nstderr: {err}", outcome.status))
}

/// The runner as a user who is not root; `None` where the tool's files cannot be reached by one.
fn ordinary_user(options: &Options) -> Result<Option<Command>, String> {
    if !is_root() {
        return Ok(Some(runner_command(&options.runner)));
    }
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let mut probe = Command::new("setpriv");
    probe.args(nobody).args([&options.runner[0], "--version"]);
    let reached = probe.output().map_err(|error| format!("cannot run setpriv (util-linux): {error}"))?.status.success();
    let mut command = Command::new("setpriv");
    command.args(nobody).args(&options.runner).env_remove("XDG_RUNTIME_DIR");
    Ok(reached.then_some(command))
}

/// A sparse file that is larger than the memory is refused before anything is copied; the hosted machine has no such border.
fn more_than_a_machine_holds(options: &Options, folder: &Path) -> Result<(), String> {
    if options.is_hosted() {
        return Ok(());
    }
    let large = folder.join("large.bin");
    let file = fs::File::create(&large).and_then(|file| file.set_len(3 << 30));
    file.map_err(|error| error.to_string())?;
    let begin = Instant::now();
    let outcome = run_tool(options, &["--mem", "2G", "--with", &large.display().to_string(), "/bin/true"])?;
    let _ = fs::remove_file(&large);
    if begin.elapsed() > Duration::from_secs(5) {
        return Err(format!("it took {:?}", begin.elapsed()));
    }
    refused(&outcome, &[TOOL], "give more with --mem, or use --hosted")
}

fn missing_library(options: &Options, folder: &Path) -> Result<(), String> {
    let at = |name: &str| folder.join(name).display().to_string();
    let (library, source, program) = (at("libsynthmissing.so"), at("missing.c"), at("missing"));
    fs::write(at("library.c"), "int missing(void) { return 0; }\n").map_err(|error| error.to_string())?;
    fs::write(&source, "int missing(void); int main(void) { return missing(); }\n")
        .map_err(|error| error.to_string())?;
    gcc(&["-shared", "-fPIC", "-o", &library, &at("library.c")])?;
    gcc(&["-o", &program, &source, "-L", &folder.display().to_string(), "-lsynthmissing"])?;
    fs::remove_file(&library).map_err(|error| error.to_string())?;
    let outcome = run_tool(options, &[&program])?;
    if options.is_hosted() {
        // The loader runs on the host's files, and says what it says there.
        let host = process::run(Command::new(&program), Vec::new(), options.case_timeout)?;
        let same = (host.status, &host.stderr) == (outcome.status, &outcome.stderr);
        return if same { Ok(()) } else { Err(format!("not as the host: {}", outcome.stderr.escape_ascii())) };
    }
    refused(&outcome, &[NOT_EXECUTABLE, NOT_FOUND], "libsynthmissing.so")
}

fn larger_than_memory(options: &Options, folder: &Path) -> Result<(), String> {
    let at = |name: &str| folder.join(name).display().to_string();
    let text = "char large[64 << 20] = {1}; int main(void) { return large[5]; }\n";
    fs::write(at("large.c"), text).map_err(|error| error.to_string())?;
    gcc(&["-static", "-o", &at("large"), &at("large.c")])?;
    let outcome = run_tool(options, &["--mem", "32M", &at("large")])?;
    let _ = fs::remove_file(folder.join("large"));
    if options.is_hosted() && outcome.status == 0 && outcome.stderr.is_empty() {
        // The archive is the host's memory, not the machine's, and the program touches one page of the 64 MB.
        return Ok(());
    }
    refused(&outcome, &[TOOL, NOT_EXECUTABLE], "mem")
}

/// The hosted machine needs no QEMU.
fn qemu_missing(options: &Options, folder: &Path) -> Result<(), String> {
    let mut command = runner_command(&options.runner);
    command.arg(static_hello(options)?).env("PATH", folder.join("nowhere"));
    let outcome = process::run(command, Vec::new(), options.case_timeout)?;
    if options.is_hosted() {
        let runs = outcome.status == 0 && outcome.stdout == b"hello\n";
        return if runs { Ok(()) } else { Err(format!("status {}, not hello without QEMU", outcome.status)) };
    }
    refused(&outcome, &[UNAVAILABLE], "qemu")
}

/// Where there is no KVM, asking for it must be refused; where there is, the program must run, or a warning must tell why it
/// is slow: some interpret ordinary kernels, and some let QEMU itself end, which is told. The hosted machine has no use for it.
fn kvm_unusable(options: &Options) -> Result<(), String> {
    let mut command = runner_command(&options.runner);
    command.args(["--accel", "kvm", "--timeout", "20", &static_hello(options)?]);
    let outcome = process::run(command, Vec::new(), options.case_timeout.max(Duration::from_secs(120)))?;
    if options.is_hosted() {
        return refused(&outcome, &[USAGE], "--accel");
    }
    if Path::new("/dev/kvm").exists() && outcome.status == 0 && outcome.stdout == b"hello\n" {
        return Ok(());
    }
    let is_warned = outcome.stderr.starts_with(b"warning: /dev/kvm");
    let is_lost = outcome.stderr.windows(16).any(|text| text == b"(monitor: signal");
    if Path::new("/dev/kvm").exists() && is_warned && (outcome.status == TIMED_OUT || is_lost) {
        return Ok(());
    }
    refused(&outcome, &[UNAVAILABLE], "KVM")
        .or_else(|story| refused(&outcome, &[UNAVAILABLE], "kvm").map_err(|_| story))
}
