//! What the tool carries between the user and a program: bytes, statuses, arguments, files.

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::compare::difference;
use crate::inputs::bytes;
use crate::options::Options;
use crate::process::{self, Outcome};
use crate::programs::{self, Linking};
use crate::report::Tally;
use crate::root::find_program;
use crate::side::runner_command;

const MEGABYTE: usize = 1 << 20;

/// The size that the project promises to carry byte-exact.
const LARGE: usize = 100 * MEGABYTE;

/// The large stream must get through an emulated processor.
const LARGE_LIMIT: Duration = Duration::from_secs(300);

type Check = fn(&Options) -> Result<(), String>;

const CHECKS: &[(&str, Check)] = &[
    ("100_megabytes_through_stdin_and_stdout", |options| {
        carries(options, &["/bin/busybox", "cat"], bytes(LARGE, 11), LARGE_LIMIT)
    }),
    ("a_megabyte_through_a_dynamic_cat", |options| {
        carries(options, &["/bin/cat"], bytes(MEGABYTE + 1, 12), options.case_timeout)
    }),
    ("a_megabyte_byte_by_byte_sizes", |options| {
        carries(options, &["/bin/busybox", "dd", "bs=777", "status=none"], bytes(300_001, 13), options.case_timeout)
    }),
    ("nothing_in_nothing_out", |options| carries(options, &["/bin/busybox", "cat"], Vec::new(), options.case_timeout)),
    ("one_byte", |options| carries(options, &["/bin/busybox", "cat"], vec![0], options.case_timeout)),
    ("stdout_and_stderr_are_separate", |options| {
        let script = "echo out; echo err >&2; echo out2; echo err2 >&2; exit 3";
        expect(options, &["/bin/busybox", "sh", "-c", script], b"", b"out\nout2\n", b"err\nerr2\n", 3)
    }),
    ("binary_stderr", |options| {
        let data = bytes(500_000, 14);
        let outcome = run(options, &["/bin/busybox", "sh", "-c", "cat >&2"], &data)?;
        same("stderr", &data, &outcome.stderr)?;
        same("stdout", b"", &outcome.stdout)
    }),
    ("both_streams_are_large", |options| {
        let data = bytes(3 * MEGABYTE, 15);
        let outcome = run(options, &["/bin/busybox", "sh", "-c", "tee /dev/stderr"], &data)?;
        same("stdout", &data, &outcome.stdout)?;
        same("stderr", &data, &outcome.stderr)
    }),
    ("no_other_messages", |options| expect(options, &["/bin/busybox", "true"], b"", b"", b"", 0)),
    ("many_small_writes", |options| {
        as_host(options, &["/bin/busybox", "sh", "-c", "for i in $(seq 1 2000); do echo line $i; done"])
    }),
    ("exit_statuses", exit_statuses),
    ("signals_are_128_and_the_number", signals),
    ("arguments_arrive_as_given", |options| {
        let words =
            ["", "two words", "new\nline", "quote'\"", "\\back", "-x", "--", "$HOME", "\u{e9}\u{4e16}", "*", "a=b"];
        let args: Vec<&str> = ["/bin/busybox", "printf", "[%s]\\n"].into_iter().chain(words).collect();
        as_host(options, &args)
    }),
    ("many_arguments", |options| {
        let many: Vec<String> = (0..2000).map(|number| format!("argument{number}")).collect();
        let args: Vec<&str> = ["/bin/busybox", "echo"].into_iter().chain(many.iter().map(String::as_str)).collect();
        as_host(options, &args)
    }),
    ("environment_and_folder", |options| {
        let words = ["--env", "NAME=a value=x", "--cwd", "/tmp", "/bin/busybox", "sh", "-c", "pwd; echo \"$NAME\""];
        expect(options, &words, b"", b"/tmp\na value=x\n", b"", 0)
    }),
    ("sha256sum_of_50_megabytes_given_with_a_file", |options| {
        let file = options.repo.join("target/synth-tests/fifty.bin");
        fs::create_dir_all(options.repo.join("target/synth-tests")).map_err(|error| error.to_string())?;
        fs::write(&file, bytes(50 * MEGABYTE, 16)).map_err(|error| error.to_string())?;
        let host = Command::new("sha256sum").arg(&file).output().map_err(|error| error.to_string())?;
        let with = format!("{}:/fifty.bin", file.display());
        let words = ["--with", &with, "/bin/busybox", "sha256sum", "/fifty.bin"];
        let outcome = run_for(options, &words, b"", LARGE_LIMIT)?;
        let _ = fs::remove_file(&file);
        same("the sum", &host.stdout[..64], outcome.stdout.get(..64).unwrap_or(&outcome.stdout))
    }),
    ("a_folder_is_given_with_its_files", |options| {
        let folder = options.repo.join("target/synth-tests/folder");
        fs::create_dir_all(folder.join("inner")).map_err(|error| error.to_string())?;
        fs::write(folder.join("inner/file"), "in the folder\n").map_err(|error| error.to_string())?;
        let with = format!("{}:/given", folder.display());
        expect(options, &["--with", &with, "/bin/busybox", "cat", "/given/inner/file"], b"", b"in the folder\n", b"", 0)
    }),
    ("a_file_of_the_present_folder_is_found_by_its_name", |options| {
        let folder = options.repo.join("target/synth-tests/present");
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        fs::write(folder.join("script.sh"), "echo \"here $1\"\n").map_err(|error| error.to_string())?;
        let mut command = command(options, &["--with", "script.sh", "sh", "script.sh", "1"]);
        command.current_dir(&folder);
        let outcome = process::run(command, Vec::new(), options.case_timeout)?;
        same("stdout", b"here 1\n", &outcome.stdout)
    }),
    ("a_script_runs_by_its_interpreter", |options| {
        let script = options.repo.join("target/synth-tests/script.sh");
        fs::create_dir_all(options.repo.join("target/synth-tests")).map_err(|error| error.to_string())?;
        fs::write(&script, "#!/bin/busybox sh\necho \"script $1 $#\"\nexit 4\n").map_err(|error| error.to_string())?;
        executable(&script)?;
        expect(options, &[&script.display().to_string(), "a", "b"], b"", b"script a 2\n", b"", 4)
    }),
    ("a_reader_that_goes_away_ends_the_program", |options| {
        let mut child = command(options, &["/bin/busybox", "yes"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let mut first = [0; 2000];
        let read = child.stdout.take().map(|mut pipe| pipe.read_exact(&mut first));
        let deadline = Instant::now() + options.case_timeout;
        while Instant::now() < deadline {
            if child.try_wait().map_err(|error| error.to_string())?.is_some() {
                return if matches!(read, Some(Ok(()))) { Ok(()) } else { Err("it wrote nothing".into()) };
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = child.kill().and_then(|()| child.wait());
        Err("it goes on for ever after its stdout was closed".into())
    }),
    ("a_program_that_does_not_read_its_stdin_ends", |options| {
        let outcome = run(options, &["/bin/busybox", "true"], &bytes(2 * MEGABYTE, 17))?;
        if outcome.status == 0 { Ok(()) } else { Err(format!("status {}", outcome.status)) }
    }),
    ("stdin_that_comes_slowly", |options| {
        let mut child = command(options, &["/bin/busybox", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let (Some(mut to), Some(mut from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("no pipes".into());
        };
        for round in 0..5u8 {
            to.write_all(&[b'a' + round]).map_err(|error| error.to_string())?;
            let mut byte = [0];
            from.read_exact(&mut byte).map_err(|error| format!("round {round}: {error}"))?;
            if byte[0] != b'a' + round {
                return Err(format!("round {round} brought {byte:?}"));
            }
        }
        drop(to);
        child.wait().map(drop).map_err(|error| error.to_string())
    }),
    ("stdin_from_a_file_and_stdout_to_a_file", |options| {
        let folder = options.repo.join("target/synth-tests");
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let (from, to) = (folder.join("from.bin"), folder.join("to.bin"));
        let data = bytes(MEGABYTE, 18);
        fs::write(&from, &data).map_err(|error| error.to_string())?;
        let open = |result: std::io::Result<fs::File>| result.map_err(|error| error.to_string());
        let status = command(options, &["/bin/busybox", "cat"])
            .stdin(open(fs::File::open(&from))?)
            .stdout(open(fs::File::create(&to))?)
            .status()
            .map_err(|error| error.to_string())?;
        let copied = fs::read(&to).map_err(|error| error.to_string())?;
        same("the file", &data, &copied)?;
        if status.success() { Ok(()) } else { Err(format!("{status}")) }
    }),
    ("a_time_limit_ends_a_program_that_hangs", |options| {
        let started = Instant::now();
        let outcome = run(options, &["--timeout", "5", "/bin/busybox", "sleep", "1000"], b"")?;
        if outcome.status == 124 && started.elapsed() < Duration::from_secs(40) && error_lines(&outcome.stderr) == 1 {
            return Ok(());
        }
        Err(format!("status {} after {:?}: {}", outcome.status, started.elapsed(), outcome.stderr.escape_ascii()))
    }),
    ("16_megabytes_are_enough_for_a_static_program", |options| {
        expect(options, &["--mem", "16M", &static_hello(options)?], b"", b"hello\n", b"", 0)
    }),
    ("the_generic_path_does_the_same", |options| {
        let data = bytes(200_000, 19);
        let outcome = run(options, &["--generic", "/bin/busybox", "cat"], &data)?;
        same("stdout", &data, &outcome.stdout)
    }),
    ("counted_runs_repeat_exactly", |options| {
        if options.is_hosted() {
            return hosted_runs_repeat_their_calls(options);
        }
        // The list of calls has their times, addresses and random bytes.
        let script = "i=0; while [ $i -lt 99 ]; do i=$((i+1)); done; echo $i; sleep 0.1; cat /proc/uptime | wc -l";
        let once = || run(options, &["--icount", "--strace", "/bin/busybox", "sh", "-c", script], b"");
        let (first, second) = (once()?, once()?);
        same("stdout", b"99\n1\n", &first.stdout)?;
        same("stdout of the second run", &first.stdout, &second.stdout)?;
        same("list of calls of the second run", &first.stderr, &second.stderr)
    }),
    ("a_machine_whose_devices_do_not_interrupt_is_polled", |options| {
        // More than all buffers hold, in both directions: each side waits for the server's thread.
        let data: Vec<u8> = (0..300_000u32).map(|at| (at % 251) as u8).collect();
        let outcome = run(options, &["--kernel-arguments", "poll", "/bin/busybox", "cat"], &data)?;
        same("stdout", &data, &outcome.stdout)?;
        // The thread has its turns while the shell looks, all alone: without it there are a dozen switches for ever.
        let script = "n=0; until [ $n -gt 100 ]; do while read name value; do [ $name != switches ] || n=$value; \
                      done < /proc/synthesis/gauges; done; echo turns";
        if options.is_hosted() {
            return Ok(());
        }
        let words = ["--kernel-arguments", "poll", "--timeout", "30", "/bin/busybox", "sh", "-c", script];
        let outcome = run(options, &words, b"")?;
        match outcome.status {
            124 => Err("waited 30 seconds for the server's thread to have 100 turns".into()),
            _ => same("stdout", b"turns\n", &outcome.stdout),
        }
    }),
    ("a_slow_device_gets_time_between_two_accesses", |options| {
        if options.is_hosted() {
            return Ok(());
        }
        // The handler of what is typed has so many more instructions of one byte.
        let bytes = |words: &str| -> Result<usize, String> {
            let certificates =
                ["--kernel-arguments", words, "/bin/busybox", "grep", "raw.interrupt", "/proc/synthesis/code"];
            let text = String::from_utf8_lossy(&run(options, &certificates, b"")?.stdout).into_owned();
            let number = |word: &str| word.parse().ok();
            text.split_whitespace().find_map(number).ok_or(text)
        };
        let (spaced, usual) = (bytes("space=8")?, bytes("space=0")?);
        if spaced == usual + 8 { Ok(()) } else { Err(format!("{usual} bytes, with space {spaced}")) }
    }),
    ("a_kernel_panic_leaves_its_epitaph", |options| {
        let outcome = run(options, &["--kernel-arguments", "panic", "/bin/busybox", "true"], b"")?;
        let text = String::from_utf8_lossy(&outcome.stderr).into_owned();
        if outcome.status == 70 && error_lines(&outcome.stderr) == 1 && text.contains("asked for on the command line") {
            return Ok(());
        }
        Err(format!("status {}: {text}", outcome.status))
    }),
    ("a_full_code_store_hurts_no_program", full_code_store),
    ("calls_are_listed_on_stderr", |options| {
        let outcome = run(options, &["--strace", "/bin/busybox", "echo", "traced"], b"")?;
        same("stdout", b"traced\n", &outcome.stdout)?;
        let text = String::from_utf8_lossy(&outcome.stderr).into_owned();
        if text.contains("write(1, ") && text.contains("exit_group(0)") { Ok(()) } else { Err(text) }
    }),
];

/// With a store for a quarter of its routines a program opens and moves everything as with a large one; what is refused is
/// counted, and when the files are closed nothing is lost.
fn full_code_store(options: &Options) -> Result<(), String> {
    const BYTES: u64 = 20_000;
    let program = programs::build(options, "fullstore", Linking::Static)?.display().to_string();
    let limit = format!("code_bytes={BYTES}");
    let roomy = run(options, &[&program], b"")?;
    let full = run(options, &["--kernel-arguments", &limit, &program], b"")?;
    let text = |outcome: &Outcome| String::from_utf8_lossy(&outcome.stdout).into_owned();
    let of = |outcome: &Outcome, key: &str| {
        let text = text(outcome);
        let number = text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok());
        number.ok_or_else(|| format!("status {}, no {key} in {text}", outcome.status))
    };
    let is_roomy =
        of(&roomy, "refused")? == 0 && of(&roomy, "code")? > 2 * BYTES && text(&roomy).contains("full: fork done");
    let is_full =
        of(&full, "refused")? > 0 && of(&full, "code")? <= BYTES && text(&full).contains("full: fork refused");
    let is_whole = [&roomy, &full].iter().all(|outcome| {
        outcome.status == 0 && outcome.stderr.is_empty() && text(outcome).ends_with("empty: fork done\nend\n")
    });
    if is_roomy && is_full && is_whole { Ok(()) } else { Err(text(&roomy) + &text(&full)) }
}

/// A Linux process cannot count instructions as time: asking for it is refused, and what does repeat is the order of the
/// calls of a program that does not look at the time.
fn hosted_runs_repeat_their_calls(options: &Options) -> Result<(), String> {
    let refused = run(options, &["--icount", "/bin/busybox", "true"], b"")?;
    if refused.status != 2 || !String::from_utf8_lossy(&refused.stderr).contains("--icount") {
        return Err(format!("--icount: status {}: {}", refused.status, refused.stderr.escape_ascii()));
    }
    let script = "i=0; while [ $i -lt 99 ]; do i=$((i+1)); done; echo $i >/tmp/f; read j </tmp/f; echo $j; (exit 3); \
                  echo $?";
    let once = || run(options, &["--strace", "/bin/busybox", "sh", "-c", script], b"");
    let names = |outcome: &Outcome| -> Vec<String> {
        let text = String::from_utf8_lossy(&outcome.stderr).into_owned();
        text.lines().filter_map(|line| Some(line.split_once('(')?.0.to_string())).collect()
    };
    let (first, second) = (once()?, once()?);
    same("stdout", b"99\n3\n", &first.stdout)?;
    same("stdout of the second run", &first.stdout, &second.stdout)?;
    let (first, second) = (names(&first), names(&second));
    if first == second && first.len() > 20 { Ok(()) } else { Err(format!("{first:?}\n{second:?}")) }
}

/// Runs every check.
///
/// # Errors
/// A sentence when the tool or busybox is not there.
pub fn run_all(options: &Options, tally: &mut Tally) -> Result<(), String> {
    find_program("/bin/busybox").ok_or("the tests need /bin/busybox: install busybox-static")?;
    tool_is_there(options)?;
    for (name, check) in CHECKS {
        let name = format!("streams/{name}");
        if options.selects(&name) {
            tally.record(&name, check(options));
        }
    }
    Ok(())
}

/// # Errors
/// A sentence that says how to build the tool.
pub fn tool_is_there(options: &Options) -> Result<(), String> {
    find_program(&options.runner[0])
        .map(drop)
        .ok_or_else(|| format!("there is no {}: build it first", options.runner[0]))
}

fn command(options: &Options, words: &[&str]) -> Command {
    let mut command = runner_command(&options.runner);
    command.args(words);
    command
}

fn run_for(options: &Options, words: &[&str], stdin: &[u8], limit: Duration) -> Result<Outcome, String> {
    process::run(command(options, words), stdin.to_vec(), limit)
}

fn run(options: &Options, words: &[&str], stdin: &[u8]) -> Result<Outcome, String> {
    run_for(options, words, stdin, options.case_timeout)
}

fn same(what: &str, expected: &[u8], actual: &[u8]) -> Result<(), String> {
    if expected == actual { Ok(()) } else { Err(difference(what, expected, actual)) }
}

fn carries(options: &Options, words: &[&str], data: Vec<u8>, limit: Duration) -> Result<(), String> {
    let outcome = run_for(options, words, &data, limit)?;
    same("stdout", &data, &outcome.stdout)?;
    same("stderr", b"", &outcome.stderr)?;
    if outcome.status == 0 { Ok(()) } else { Err(format!("status {}", outcome.status)) }
}

fn expect(options: &Options, words: &[&str], stdin: &[u8], out: &[u8], err: &[u8], status: i32) -> Result<(), String> {
    let outcome = run(options, words, stdin)?;
    same("stdout", out, &outcome.stdout)?;
    same("stderr", err, &outcome.stderr)?;
    if outcome.status == status { Ok(()) } else { Err(format!("status {}, not {status}", outcome.status)) }
}

fn as_host(options: &Options, words: &[&str]) -> Result<(), String> {
    let mut host = Command::new(words[0]);
    host.args(&words[1..]);
    let host = process::run(host, Vec::new(), options.case_timeout)?;
    expect(options, words, b"", &host.stdout, &host.stderr, host.status)
}

fn exit_statuses(options: &Options) -> Result<(), String> {
    [0, 1, 2, 42, 69, 70, 124, 127, 128, 130, 255].iter().try_for_each(|status| {
        expect(options, &["/bin/busybox", "sh", "-c", &format!("exit {status}")], b"", b"", b"", *status)
    })
}

fn signals(options: &Options) -> Result<(), String> {
    [("HUP", 1), ("INT", 2), ("ABRT", 6), ("KILL", 9), ("USR1", 10), ("SEGV", 11), ("PIPE", 13), ("TERM", 15)]
        .iter()
        .try_for_each(|(name, number)| {
            let words = ["/bin/busybox", "sh", "-c", &format!("kill -{name} $$")];
            let outcome = run(options, &words, b"")?;
            let right = outcome.status == 128 + number;
            if right { Ok(()) } else { Err(format!("SIG{name}: status {}", outcome.status)) }
        })
}

/// How many lines of the tool's stderr are errors.
pub fn error_lines(stderr: &[u8]) -> usize {
    String::from_utf8_lossy(stderr).lines().filter(|line| line.starts_with("error: ")).count()
}

/// # Errors
/// What the system said.
pub fn executable(file: &std::path::Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).map_err(|error| error.to_string())
}

/// The path of a small static program that prints `hello`.
///
/// # Errors
/// What the compiler said.
pub fn static_hello(options: &Options) -> Result<String, String> {
    let program = crate::programs::build(options, "hello", crate::programs::Linking::Static)?;
    Ok(program.display().to_string())
}
