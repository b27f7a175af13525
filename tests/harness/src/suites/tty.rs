//! Interactive programs at a pseudo-terminal: the same keys on the host and on Synthesis.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::compare::difference;
use crate::options::Options;
use crate::report::Tally;
use crate::root::{Root, find_program};
use crate::side::{Side, runner_command};
use crate::terminal::Step::{End, Expect, Resize, Silence, Type};
use crate::terminal::{Step, play};

/// Whether the whole screen must be the same, or only what is expected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Screen {
    Same,
    AsExpected,
}

struct Script {
    name: &'static str,
    program: &'static [&'static str],
    screen: Screen,
    steps: Vec<Step>,
}

const SHELL: &[&str] = &["/bin/busybox", "sh"];
const BASH: &[&str] = &["/bin/bash", "--noprofile", "--norc", "-i"];
/// What is typed before the program runs is echoed by whoever has the terminal then: it says when it is there.
const CAT: &[&str] = &["/bin/busybox", "sh", "-c", "echo ready; exec cat"];
const READY: Step = Expect("ready\r\n");
/// A `sleep` that says when it sleeps: another process looks.
const SLEEP: &[&str] = &[
    "/bin/busybox",
    "sh",
    "-c",
    "ulimit -c 0; (until grep -q sleep /proc/$$/cmdline && grep -q 'State:.S' /proc/$$/status; do :; done; echo ready) & \
     exec sleep 100",
];
/// The same, typed at a shell, which gives it the terminal. The text that says it differs from the one typed.
const TYPED_SLEEP: Step = Type(
    "busybox sh -c '(until grep -q sleep /proc/$$/cmdline && grep -q State:.S /proc/$$/status; do :; done; echo up-$((1+1))) & \
     exec sleep 100'\r",
);

fn script(name: &'static str, program: &'static [&'static str], screen: Screen, steps: Vec<Step>) -> Script {
    Script { name, program, screen, steps }
}

/// The text that a command prints must differ from the command as it is echoed: `$((40+2))` prints 42.
fn scripts() -> Vec<Script> {
    let mut scripts = line_discipline();
    scripts.push(paste());
    scripts.extend(signals());
    scripts.extend(shells());
    scripts.extend(full_screen());
    scripts.push(screen());
    scripts
}

/// Debian's screen: two windows at pseudo terminals of its own, whose masters are in packet mode, left alone and taken up again.
fn screen() -> Script {
    let start = "export SCREENDIR=/tmp/tty-test-screen; rm -rf $SCREENDIR; mkdir -m 700 $SCREENDIR; \
                 printf 'startup_message off\\nbind c screen busybox sh\\n' >$SCREENDIR/../tty-test-screenrc; \
                 screen -c /tmp/tty-test-screenrc -S work busybox sh\r";
    let steps = vec![
        Expect("$ "),
        Type(start),
        Expect("$ "),
        Type("echo first-$((40+2))\r"),
        Expect("first-42"),
        Type("\x01c"),
        Expect("$ "),
        Type("echo second-$((40+3)); stty -ixon; stty ixon; stty size\r"),
        Expect("second-43"),
        Expect("24 80"),
        Type("\x01p"),
        Expect("first-42"),
        Type("\x01d"),
        Expect("detached from"),
        Type("screen -ls | sed 's/[0-9]*//'\r"),
        Expect("work"),
        Expect("(Detached)"),
        Type("screen -r work\r"),
        Expect("first-42"),
        Type("exit\r"),
        Expect("second-43"),
        Type("exit\r"),
        Expect("[screen is terminating]"),
        Type("rm -r $SCREENDIR /tmp/tty-test-screenrc; exit 0\r"),
        End(0),
    ];
    script(SCREEN, SHELL, Screen::AsExpected, steps)
}

const SCREEN: &str = "screen";

/// Enough text for the line editor to go on in code, with all that it leaves to others in between.
fn paste() -> Script {
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let body = "some text, a typo\x7f\x7fpo \u{e4}\u{6f22}\x7f wrong\x17right\ttab\x7f\tand\x16\x01 \x01\x7f";
    let mut steps = vec![READY];
    for number in 0..8 {
        let end = leak(format!("end {number}\r\n"));
        let killed = if number % 2 == 0 { "a line that goes\x15" } else { "" };
        // It is echoed, and then it comes from the program.
        steps.extend([Type(leak(format!("{killed}{}end {number}\n", body.repeat(10)))), Expect(end), Expect(end)]);
    }
    steps.extend([Type("\x04"), End(0)]);
    script("paste", CAT, Screen::Same, steps)
}

fn line_discipline() -> Vec<Script> {
    use Screen::{AsExpected, Same};
    vec![
        script("echo", CAT, Same, vec![READY, Type("hello\n"), Expect("hello\r\nhello\r\n"), Type("\x04"), End(0)]),
        script("erase", CAT, Same, vec![READY, Type("abx\x7fc\n"), Expect("\r\nabc\r\n"), Type("\x04"), End(0)]),
        script(
            "erase_a_control_character",
            CAT,
            Same,
            vec![READY, Type("a\x01\x7f\x7f\x7fb\n"), Expect("\r\nb\r\n"), Type("\x04"), End(0)],
        ),
        script(
            "kill_line",
            CAT,
            Same,
            vec![READY, Type("junk\x15good\n"), Expect("\r\ngood\r\n"), Type("\x04"), End(0)],
        ),
        script(
            "word_erase",
            CAT,
            Same,
            vec![READY, Type("one two\x17three\n"), Expect("\r\none three\r\n"), Type("\x04"), End(0)],
        ),
        script(
            "literal_next",
            CAT,
            Same,
            vec![READY, Type("a\x16\x03b\n"), Expect("\r\na\x03b\r\n"), Type("\x04"), End(0)],
        ),
        script("reprint", CAT, Same, vec![READY, Type("abc\x12d\n"), Expect("\r\nabcd\r\n"), Type("\x04"), End(0)]),
        script(
            "end_of_file_after_text",
            CAT,
            Same,
            vec![READY, Type("part\x04"), Expect("partpart"), Type("\n"), Expect("\r\n\r\n"), Type("\x04"), End(0)],
        ),
        script(
            "line_longer_than_the_window",
            CAT,
            Same,
            vec![
                READY,
                Type(
                    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\n",
                ),
                Expect("\r\n0123456789"),
                Type("\x04"),
                End(0),
            ],
        ),
        script("settings", &["/bin/busybox", "stty", "-a"], Same, vec![Expect("isig"), End(0)]),
        script(
            "raw_mode",
            &[
                "/bin/busybox",
                "sh",
                "-c",
                "stty raw -echo; echo ready; dd bs=1 count=5 2>/dev/null | od -An -c; stty sane",
            ],
            Same,
            vec![Expect("ready\n"), Type("a\x03\x04\r\x7f"), Expect("177"), End(0)],
        ),
        script(
            "read_without_waiting",
            &[
                "/bin/busybox",
                "sh",
                "-c",
                "stty -icanon min 0 time 3; echo ready; dd bs=9 count=1 2>/dev/null | wc -c; stty sane",
            ],
            AsExpected,
            vec![Expect("ready\r\n"), Expect("0\r\n"), End(0)],
        ),
        script(
            "no_echo",
            &["/bin/busybox", "sh", "-c", "stty -echo; echo ready; read x; stty echo; echo \"got $x\""],
            Same,
            vec![Expect("ready\r\n"), Type("secret\n"), Expect("got secret\r\n"), End(0)],
        ),
        script("window_size", &["/bin/busybox", "stty", "size"], Same, vec![Expect("24 80\r\n"), End(0)]),
        script(
            "resize",
            &["/bin/busybox", "sh", "-c", "trap 'stty size' WINCH; echo ready; while :; do sleep 0.1; done"],
            AsExpected,
            vec![Expect("ready\r\n"), Resize(50, 120), Expect("50 120\r\n"), Type("\x03"), End(130)],
        ),
        script(
            "stop_and_start_output",
            &["/bin/busybox", "sh", "-c", "echo ready; read x; echo one; read y; echo two"],
            AsExpected,
            vec![
                Expect("ready\r\n"),
                Type("\x13\n"),
                Silence(Duration::from_millis(300)),
                Type("\x11"),
                Expect("one\r\n"),
                Type("\n"),
                Expect("two\r\n"),
                End(0),
            ],
        ),
        script(
            "is_a_terminal",
            &["/bin/busybox", "sh", "-c", "for i in 0 1 2; do [ -t $i ] && echo yes $i; done; echo x > /dev/tty"],
            Same,
            vec![Expect("yes 0\r\nyes 1\r\nyes 2\r\nx\r\n"), End(0)],
        ),
    ]
}

fn signals() -> Vec<Script> {
    use Screen::Same;
    vec![
        script("interrupt_a_sleep", SLEEP, Same, vec![READY, Type("\x03"), End(130)]),
        script(
            "interrupt_a_loop",
            &["/bin/busybox", "sh", "-c", "echo ready; while :; do :; done"],
            Same,
            vec![Expect("ready\r\n"), Type("\x03"), End(130)],
        ),
        script("quit", SLEEP, Same, vec![READY, Type("\x1c"), End(131)]),
        script(
            "interrupt_is_trapped",
            &["/bin/busybox", "sh", "-c", "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.1; done"],
            Same,
            vec![Expect("ready\r\n"), Type("\x03"), Expect("caught\r\n"), End(9)],
        ),
        script(
            "interrupt_is_ignored",
            &["/bin/busybox", "sh", "-c", "trap '' INT; echo ready; read x; echo \"$x\""],
            Same,
            vec![Expect("ready\r\n"), Type("lost\x03kept\n"), Expect("\r\nkept\r\n"), End(0)],
        ),
    ]
}

fn shells() -> Vec<Script> {
    use Screen::AsExpected;
    let mut scripts = Vec::new();
    for (name, program) in [("busybox", SHELL), ("bash", BASH)] {
        let full = |test: &str| -> &'static str { Box::leak(format!("{name}_{test}").into_boxed_str()) };
        scripts.push(script(
            full("commands"),
            program,
            AsExpected,
            vec![
                Expect("$ "),
                Type("echo $((40+2))\r"),
                Expect("42\r\n"),
                Type("echo ab\x7fcd | cat\r"),
                Expect("acd\r\n"),
                Type("exit 5\r"),
                End(5),
            ],
        ));
        scripts.push(script(
            full("interrupts_a_loop"),
            program,
            AsExpected,
            vec![
                Expect("$ "),
                Type("while :; do test $x || echo on-$((1+1)); x=1; done\r"),
                Expect("on-2\r\n"),
                Type("\x03"),
                Expect("$ "),
                Type("echo alive-$((1+1))\r"),
                Expect("alive-2\r\n"),
                Type("exit 0\r"),
                End(0),
            ],
        ));
        scripts.push(script(
            full("interrupts_a_sleep"),
            program,
            AsExpected,
            vec![
                Expect("$ "),
                TYPED_SLEEP,
                Expect("up-2\r\n"),
                Type("\x03"),
                Expect("$ "),
                Type("echo status-$?\r"),
                Expect("status-130\r\n"),
                Type("exit 0\r"),
                End(0),
            ],
        ));
        scripts.push(script(
            full("stops_and_continues"),
            program,
            AsExpected,
            vec![
                Expect("$ "),
                TYPED_SLEEP,
                Expect("up-2\r\n"),
                Type("\x1a"),
                Expect("Stopped"),
                Expect("$ "),
                Type("jobs\r"),
                Expect("Stopped"),
                Type("kill -INT %1; bg; wait %1; echo status-$?\r"),
                Expect("status-130\r\n"),
                // A job that shows that it goes on.
                Type("echo on-$((1+1)); cat\r"),
                Expect("on-2\r\n"),
                Type("one\r"),
                Expect("one\r\none\r\n"),
                Type("\x1a"),
                Expect("Stopped"),
                Expect("$ "),
                Type("fg\r"),
                Expect("cat\r\n"),
                Type("two\r"),
                Expect("two\r\ntwo\r\n"),
                Type("\x03"),
                Expect("$ "),
                Type("echo back-$((2+2))\r"),
                Expect("back-4\r\n"),
                Type("exit 0\r"),
                End(0),
            ],
        ));
        scripts.push(script(
            full("background_jobs"),
            program,
            AsExpected,
            vec![
                Expect("$ "),
                Type("sleep 1 &\r"),
                Expect("$ "),
                Type("jobs\r"),
                Expect("Running"),
                Type("wait; echo waited-$((3+3))\r"),
                Expect("waited-6\r\n"),
                Type("exit 0\r"),
                End(0),
            ],
        ));
        scripts.push(script(
            full("background_reader_is_stopped"),
            program,
            AsExpected,
            vec![
                Expect("$ "),
                Type("cat &\r"),
                Expect("$ "),
                Type("until busybox grep -q State:.T /proc/$!/status; do :; done; jobs; echo still-$((3+3))\r"),
                Expect("Stopped"),
                Expect("still-6\r\n"),
                Expect("$ "),
                Type("kill %1; fg\r"),
                Expect("fg\r\n"),
                Expect("$ "),
                Type("echo on-$((4+4))\r"),
                Expect("on-8\r\n"),
                Type("exit 0\r"),
                End(0),
            ],
        ));
        scripts.push(script(
            full("ends_at_end_of_file"),
            program,
            AsExpected,
            vec![Expect("$ "), Type("\x04"), End(0)],
        ));
    }
    scripts
}

fn full_screen() -> Vec<Script> {
    use Screen::AsExpected;
    vec![
        script(
            "vi_edits_a_file",
            SHELL,
            AsExpected,
            vec![
                Expect("$ "),
                Type("cd /tmp; rm -f tty-test-vi; vi tty-test-vi\r"),
                Expect("- tty-test-vi"),
                Type("ifirst line\rsecond line\x1b"),
                // An escape character that another one follows at once would be a key of its own.
                Expect("- tty-test-vi"),
                Type("kx:wq\r"),
                Expect("$ "),
                Type("wc tty-test-vi; sed 's/^/<&/' tty-test-vi; rm tty-test-vi\r"),
                Expect("2         4        22 tty-test-vi"),
                Expect("<"),
                Expect("second line"),
                Type("exit 0\r"),
                End(0),
            ],
        ),
        script(
            "top_in_batch_mode",
            SHELL,
            AsExpected,
            vec![
                Expect("$ "),
                Type("top -b -n 1 | head -n 4\r"),
                Expect("Mem:"),
                Expect("CPU:"),
                Expect("Load average:"),
                Expect("PID"),
                Type("exit 0\r"),
                End(0),
            ],
        ),
        script(
            "top_interactive",
            SHELL,
            AsExpected,
            vec![
                Expect("$ "),
                Type("top\r"),
                Expect("Mem:"),
                Expect("PID"),
                Type("q"),
                Expect("$ "),
                Type("echo after-$((5+5))\r"),
                Expect("after-10\r\n"),
                Type("exit 0\r"),
                End(0),
            ],
        ),
        script(
            "more_and_less",
            SHELL,
            AsExpected,
            vec![
                Expect("$ "),
                Type("seq 1 100 | more\r"),
                Expect("22\r\n"),
                Type("q"),
                Expect("$ "),
                Type("exit 0\r"),
                End(0),
            ],
        ),
    ]
}

/// Plays every script on both sides.
///
/// # Errors
/// A sentence when the programs cannot be packed.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    let mut root = Root::create(&options.repo.join("target/synth-tests/tty/root"))?;
    for program in ["/bin/busybox", "/bin/bash", "sleep", "cat", "stty"] {
        if find_program(program).is_some() {
            root.add_program(program)?;
        }
    }
    let has_screen = find_program(SCREEN).is_some();
    if has_screen {
        root.add_program(SCREEN)?;
        root.add_files(Path::new("/lib/terminfo/v/vt100"))?;
        root.add_files(Path::new("/etc/passwd"))?;
    }
    fs::create_dir_all(root.home()).map_err(|error| error.to_string())?;
    let host_home = options.scratch.join(format!("synth-tests-tty-{}", std::process::id()));
    fs::create_dir_all(&host_home).map_err(|error| error.to_string())?;
    let (host, synthesis) = (Side::host(&host_home), Side::synthesis(options, root.path()));
    tally.progress("tty: scripts on both sides");
    for script in scripts() {
        let name = format!("tty/{}", script.name);
        if !options.selects(&name) {
            continue;
        }
        if find_program(script.program[0]).is_none() {
            tally.skip(&name, &format!("{} is not on this host", script.program[0]));
            continue;
        }
        if script.name == SCREEN && !has_screen {
            tally.skip(&name, "screen is not on this host");
            continue;
        }
        tally.record(&name, both(&script, &host, &synthesis, options));
    }
    if options.selects("tty/boot") {
        tally.record("tty/boot", boot(options));
    }
    for (name, keys) in ESCAPES {
        let name = format!("tty/{name}");
        if options.selects(&name) {
            tally.record(&name, escape(&synthesis, keys, options));
        }
    }
    let _ = fs::remove_dir_all(&host_home);
    super::windows::run(options, tally)
}

fn both(script: &Script, host: &Side, synthesis: &Side, options: &Options) -> Result<(), String> {
    // What is to be shown once is shown by the host at its third try at the latest: its shells lose a key now and then.
    let on_host = || play_on(host, script, Duration::from_secs(10));
    let expected = on_host().or_else(|_| on_host()).or_else(|_| on_host());
    let expected = expected.map_err(|story| format!("on the host, three times: {story}"))?;
    let actual = play_on(synthesis, script, options.case_timeout)?;
    if script.screen == Screen::Same && expected != actual {
        return Err(difference("screen", &expected, &actual));
    }
    Ok(())
}

fn play_on(side: &Side, script: &Script, limit: Duration) -> Result<Vec<u8>, String> {
    let args: Vec<String> = script.program[1..].iter().map(|word| word.to_string()).collect();
    let mut command = side.terminal_command(script.program[0], &args, limit * 4);
    command.env("TERM", "vt100");
    play(command, &script.steps, limit).map(|transcript| transcript.0)
}

/// The keys that end a run, in one piece or typed.
const ESCAPES: [(&str, &[&str]); 2] =
    [("escape_at_once", &["\x1d\x1d\x1d"]), ("escape_key_by_key", &["abc\x1d", "\x1d", "\x1d"])];

/// A program that ignores every key and signal ends by the keys of the tool; fewer of them are its own.
fn escape(synthesis: &Side, keys: &[&'static str], options: &Options) -> Result<(), String> {
    const STUBBORN: &str = "trap '' INT QUIT TSTP TERM HUP; stty -echo; echo ready; while :; do :; done";
    let args = ["sh", "-c", STUBBORN].map(String::from);
    let mut steps = vec![READY, Type("\x03\x1c\x1a\x1d\x1dx\x1d"), Silence(Duration::from_millis(1200))];
    steps.extend(keys.iter().map(|keys| Type(keys)));
    steps.extend([Expect("synth: ended by Ctrl-], three times"), End(143)]);
    let mut command = synthesis.terminal_command("/bin/busybox", &args, options.case_timeout);
    command.env("TERM", "vt100");
    play(command, &steps, Duration::from_secs(20)).map(drop)
}

/// `synth boot` gives a shell without further words. There is no host side to this.
fn boot(options: &Options) -> Result<(), String> {
    let mut runner = options.runner.clone();
    match runner.last_mut() {
        Some(word) if word == "run" => *word = "boot".into(),
        _ => return Ok(()),
    }
    let mut command = runner_command(&runner);
    command.env("TERM", "vt100").env("PATH", "/usr/bin:/bin");
    let steps = [
        Expect("# "),
        Type("echo $((40+2)); ls /dev/null\r"),
        Expect("42\r\n"),
        Expect("/dev/null\r\n"),
        Type("exit\r"),
        End(0),
    ];
    play(command, &steps, options.case_timeout).map(drop)
}
