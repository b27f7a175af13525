//! The monitor: lines go in, what comes out is compared; random lines must not hurt the system.

use std::process::Command;
use std::time::Duration;

use means::Random;

#[path = "monitor_streams.rs"]
mod streams;

use super::scene::{self, Check, Scene, expect};
use crate::kernels;
use crate::options::Options;
use crate::process::{self, Outcome};
use crate::report::Tally;

const CHECKS: [(&str, Check); 17] = [
    ("expressions_have_values", expressions),
    ("wrong_characters_are_pointed_at", wrong),
    ("bad_addresses_end_the_expression", bad_addresses),
    ("quajects_are_made_and_connected", quajects),
    ("threads_are_pointed_at_callentries", jobs),
    ("threads_stop_and_step_and_break", stops),
    ("children_go_past_their_makers_breakpoints", births),
    ("who_borrows_memory_meets_its_breakpoints", borrower),
    ("memory_and_code_are_shown", looks),
    ("streams_of_programs_are_connected", streams::connected),
    ("a_monitor_orders_two_streams_at_one_queue", streams::ordered),
    ("live_routines_are_watched", streams::watched),
    ("files_are_closed_under_a_watch", streams::closed),
    ("callbacks_are_bound_while_the_kernel_runs", streams::bound),
    ("symbols_are_addresses", streams::symbols),
    ("only_who_may_sets_words", streams::set),
    ("random_lines", random_lines),
];

/// Runs every check.
///
/// # Errors
/// A sentence when the tool is not there or the program cannot be built.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    if !options.is_hosted() {
        kernels::build_with_monitor(options, tally)?;
    }
    scene::play("monitor", &CHECKS, options, tally)
}

impl Scene<'_> {
    /// A system of the monitor's own with these lines as its script. Without a part of the program it runs the shell.
    fn script(&self, more: &[&str], part: Option<&str>, lines: &str) -> Result<Outcome, String> {
        let mut command = Command::new(&self.options.runner[0]);
        command.arg("monitor").args(["--timeout", "240"]).args(more);
        let is_hosted = self.options.runner.iter().any(|word| word == "--hosted");
        command.arg(if is_hosted { "--hosted" } else { "--own" });
        if let Some(part) = part {
            command.arg("--with").arg(&self.program).arg(&self.program).arg(part);
        }
        command.env("XDG_RUNTIME_DIR", &self.folder).env("XDG_STATE_HOME", &self.folder);
        process::run(command, lines.as_bytes().to_vec(), Duration::from_secs(240))
    }

    /// What the lines print, without what the program says.
    fn said(&self, more: &[&str], lines: &str) -> Result<String, String> {
        self.said_of("wait", more, lines)
    }

    /// The same, of a part of the program.
    fn said_of(&self, part: &str, more: &[&str], lines: &str) -> Result<String, String> {
        let outcome = self.script(more, Some(part), lines)?;
        let text = String::from_utf8_lossy(&outcome.stdout).replace("ready\n", "");
        match outcome.status {
            0 => Ok(text),
            status => Err(format!("status {status}\n{text}{}", String::from_utf8_lossy(&outcome.stderr))),
        }
    }

    /// What refused lines say; all of them are refused.
    fn complaints(&self, lines: &str) -> Result<String, String> {
        let outcome = self.script(&[], Some("wait"), lines)?;
        let text = String::from_utf8_lossy(&outcome.stderr).into_owned();
        if outcome.status == 1 && text.matches("error: ").count() == lines.lines().count() {
            return Ok(text);
        }
        Err(format!("status {}, not every line was refused\n{text}", outcome.status))
    }
}

fn expressions(scene: &Scene<'_>) -> Result<(), String> {
    const LINES: &str = "1 + 2 * 3\n$a = 4, $a <<= 1, $a + 1\n-7 / 2\n(u8)300\n0 && 1 / 0\n$a > 7 ? $a : 0\n\
        *(u8 *)null.read == null.read[0] % 256\n'a' + 0b101\n!thread.1.dispatch\n";
    for more in [&[][..], &["--generic"]] {
        // There are no synthesized routines of devices in a generic system.
        let lines = if more.is_empty() { LINES.into() } else { LINES.replace("null.read", "thread.1.dispatch") };
        let text = scene.said(more, &lines)?;
        let expected = "7\n9\n-3  0xfffffffffffffffd\n44  0x2c\n0\n8\n";
        if !text.starts_with(expected) || !text.ends_with("102  0x66\n0\n") {
            return Err(format!("{more:?}: {text}"));
        }
    }
    Ok(())
}

fn wrong(scene: &Scene<'_>) -> Result<(), String> {
    let text = scene.complaints("1 +\n  2 + nothing.here\n#\u{e4}\n".replace('#', "$a = ").as_str())?;
    expect(
        &text,
        &["  1 +\n     ^\nerror: an operand", "    2 + nothing.here\n        ^\nerror: there is no nothing.here"],
    )?;
    expect(&text, &["error: 'ä' begins nothing"])?;
    let text = scene.complaints("*1 = 2\n3 = 4\nnow(\nx\nnew thing\nconnect a b\nrun f(\nprobe x\n")?;
    expect(&text, &["error: memory is only looked at", "error: usage: x [thread.T:]ADDRESS"])
}

fn bad_addresses(scene: &Scene<'_>) -> Result<(), String> {
    let text = scene.complaints(
        "*0\n*8\n*-1\n*-8\n*0xffff888000000000\n*0x7fffffffe000\n*(1 << 62)\n*0x60000000000\n1 / 0\n1 % ($zero * 3)\n\
         *thread.1.dispatch[0]\n*0x7fff6fff\n*0xffffffffb0000000\nx 8\n",
    )?;
    expect(&text, &["error: it loads where no memory of the kernel is", "error: it divides by zero"])
}

fn quajects(scene: &Scene<'_>) -> Result<(), String> {
    const LINES: &str = "new queue 4\nnew gauge\nnew pump\nconnect queue.1.get pump.3.in\nconnect pump.3.out gauge.2.add\n\
        queue.1.put(5), queue.1.put(6), queue.1.put(7), queue.1.put(8), queue.1.put(9)\npump.3.turn(3)\ngauge.2.read()\n\
        list pump.3\nprobe gauge.2.add 50\nnew pump\nnew pump\nconnect pump.6.out pump.7.in\nnew queue\n\
        connect queue.1.get queue.9.put\nremove pump.3\nlist pump.3\n";
    let text = scene.said(&[], LINES)?;
    expect(&text, &["call\npaste\n-1  0xffffffffffffffff\n3\n18  0x12\n"])?;
    expect(
        &text,
        &["in -> queue.1.get (call)  out -> gauge.2.add (paste)", "50 calls, ", "queue: queue.8", "pump: pump.10"],
    )?;
    let text = scene.complaints(
        "connect queue.1.put queue.1.get\nnew queue 3\nnew queue 8192\nremove queue.99\nqueue.1.put(1)\n",
    )?;
    expect(&text, &["a power of two"])
}

fn jobs(scene: &Scene<'_>) -> Result<(), String> {
    let text = scene.said(&[], "new gauge\nrun gauge.1.add(20 + 22)\nwait gauge.1.read()\njobs\ngauge.1.read()\n")?;
    expect(&text, &["job 1: thread ", " of the kernel runs gauge.1.add(20 + 22)", "job 1: answered 42\n42  0x2a\n"])
}

fn stops(scene: &Scene<'_>) -> Result<(), String> {
    let text = scene.said(
        &[],
        "wait calls.clock_nanosleep > 10\nstop 1\n$at = thread.1.rip\nstep 1\nthread.1.rip != $at\nstep 1 3\n\
         break 1 $at\ncont 1\nwait thread.1.rip == $at\nwhere\n\
         thread.1.rip == $at\nunbreak 1 $at\n$calls = calls.clock_nanosleep, 0\ncont 1\n\
         wait calls.clock_nanosleep > $calls + 3\nwhere\nthreads\n",
    )?;
    expect(&text, &["thread 1: stopped at 0x", "thread 1: stepped at 0x", "thread 1: at a breakpoint at 0x"])?;
    let Some((_, after)) = text.rsplit_once("at a breakpoint") else { return Err(text) };
    // It goes on: nothing stands still any more.
    expect(after, &["\n1\n", "clock_nanosleep"]).or_else(|_| expect(after, &["\n1\n", "running"]))
}

/// A child that met a trap would end, and so would the program.
fn births(scene: &Scene<'_>) -> Result<(), String> {
    const ON: &str = "$n = calls.wait4, 0\nwait calls.wait4 > $n + 5\n";
    let lines =
        format!("wait calls.wait4 > 2\nbreak 1 one_step\n{ON}where\nunbreak 1 one_step\n{ON}calls.wait4 > 10\n");
    let text = scene.said_of("births", &[], &lines)?;
    let stands = text.contains("breakpoint");
    if stands || text.contains("broken") { Err(text) } else { expect(&text, &["\n1\n"]) }
}

fn borrower(scene: &Scene<'_>) -> Result<(), String> {
    let text = scene.said_of(
        "vfork",
        &[],
        "wait calls.nanosleep > 3\nbreak 1 one_step\nwait thread.2.rip\nwhere\nstep 2 2\nwhere\ncont 2\nwait thread.2.rip\nwhere\n\
         unbreak 1 one_step\ncont 2\n$n = calls.nanosleep, 0\nwait calls.nanosleep > $n + 3\nthreads\n",
    )?;
    expect(&text, &["thread 2: at a breakpoint at 0x", "thread 2: stepped at 0x"])?;
    if text.contains("broken") { Err(text) } else { Ok(()) }
}

fn looks(scene: &Scene<'_>) -> Result<(), String> {
    let lines = "x thread.1.dispatch 2\ncode thread.1.dispatch\nwhy thread.1.dispatch\ngauges switches\nlist thread.sw\n\
                 names gauge.sw\ntrace 100ms\nthreads\n";
    let text = scene.said(&[], lines)?;
    expect(&text, &["thread.dispatch  made by", "; Dispatch", "until  ", "gauge.switches", "thread.sw_out"])?;
    expect(&text, &["gauge.switches\n", "return of clock_nanosleep", " 0 lost", "read fd 5"])
}

/// Lines of the fuzzer; what it prints with a failure.
const LINES: u32 = 20_000;
/// Each gets a part of the lines: numbers of quajects only rise, and so do those of processes.
const SYSTEMS: u32 = 10;
const SEED: u64 = 0x3D5A_91C7_44E0_B26F;

/// What lines are made of, with `;` between them. Process 2 is there to be hurt.
const PARTS: &str = "1;0x7f;-1;0xffffffffa0000000;0x70000000;0x64000040;0xffffffffc0000040;8;$a;$b;$c = ;queue.1.put;\
    queue.1.get();gauge.2.add;gauge.2.read();pump.3.turn;thread.1.dispatch;gauge.switches;(;);[;];+;-;*;\
    /;%;<<;>>;&&;||;?;:;,;=;==;!;~;&;(u8 *);(i32);'x';++;--; ; ; ; ;\u{2211};\\;new ;gauge;queue ;pump;\
    monitor;connect ;remove ;x ;probe ;run ;list ;cont 2;step 2;break 7 ;break 2 main;unbreak 2 main;stop 2;open ;\
    open thread.2.fd.0;thread.2.fd.1;thread.2.fd.2.put;thread.2.fd.0.get();stream.4;stream.5.get;.put;.get;switch ;\
    new switch;switch.6.send;switch.6.0;bind ;unbind ;queue.1.full ;pump.3.done ;watch ;watch fd:1;watch.7;.told;\
    tty.write;pipe.read@1;.no_line ;set ;set gauge.2 = ;set thread.2.rdi = ;set thread.2:;x thread.2:";

/// What the lines are about: a process with /dev/zero in 5 and /dev/null in 6, which it writes to, and some quajects.
const VICTIM: &str = "! (exec 5<>/dev/zero 6>/dev/null; while :; do echo x >&6; done) &\n\
    wait calls.dup2 > 20\nnew queue\nnew gauge\nnew pump\nnew switch\nopen thread.2.fd.5\nopen thread.2.fd.6\nnew queue\n";

/// Lines that mean something, with numbers for `#` and ends for `E`.
const SENSIBLE: &str = "open thread.2.fd.#;connect E E;connect E E;connect E E;bind E E;bind null.write.slow E;unbind E;\
    watch thread.2.fd.6;watch thread.2.fd.5;watch null.write;probe zero.read;remove watch.#;remove stream.#;remove pump.#;\
    remove gauge.#;remove queue.#;remove monitor.#;new gauge;new monitor;\
    set gauge.# = #;set switch.# = #;set queue.# = #;set thread.2.rcx = #;set thread.2.rip = -1;set thread.2:# = #;\
    set thread.2:(u8)(thread.2.rsp) = #;x thread.2:thread.2.rsp #;stop 2;step 2;cont 2;break 2 thread.2.rip;\
    unbreak 2 thread.2.rip;where;jobs;list watch;list stream;run pump.#.turn(#);E(#);E(#, #)";
/// Ends of quajects, some of which may be there.
const ENDS: &str = "queue.1.put;queue.1.get;queue.1.full;gauge.2.add;gauge.2.add;gauge.2.read;switch.4.send;switch.4.0;\
    switch.4.3;pump.3.in;pump.3.out;pump.3.done;stream.5.get;stream.5.get;stream.6.put;queue.7.get;queue.7.put;\
    monitor.#.enter;monitor.#.out;watch.#.told;watch.#.calls;stream.#.put;thread.2.fd.5;thread.2.fd.6;pump.#.out;queue.#.put";

fn sensible_line(random: &mut Random) -> String {
    let mut pick = |texts: &'static str| {
        let texts: Vec<&str> = texts.split(';').collect();
        texts[random.index(texts.len())]
    };
    let (line, ends) = (pick(SENSIBLE), [pick(ENDS), pick(ENDS)]);
    let mut line = line.replacen('E', ends[0], 1).replacen('E', ends[1], 1);
    while line.contains('#') {
        let most = [8, 8, 64][random.index(3)];
        line = line.replacen('#', &random.index(most).to_string(), 1);
    }
    line
}

fn random_lines(scene: &Scene<'_>) -> Result<(), String> {
    let (mut random, mut tried) = (Random::new(SEED), [0; 4]);
    for _ in 0..SYSTEMS {
        let text = random_script(scene, &mut random)?;
        for (count, what) in tried.iter_mut().zip([" of null.write: ", ": pump.", "thread 2: stopped", " carried"]) {
            *count += text.matches(what).count();
        }
    }
    if tried.iter().all(|count| *count > 5) { Ok(()) } else { Err(format!("little of it made sense: {tried:?}")) }
}

/// What a system says to random lines, if it lives afterwards.
fn random_script(scene: &Scene<'_>, random: &mut Random) -> Result<String, String> {
    let parts: Vec<&str> = PARTS.split(';').collect();
    let mut script = String::from(VICTIM);
    for _ in 0..LINES / SYSTEMS {
        let line = match random.index(4) {
            0 => sensible_line(random),
            _ => (0..random.index(9)).map(|_| parts[random.index(parts.len())]).collect(),
        };
        // Not to the shell.
        script += line.trim_start_matches([' ', '!']);
        script.push('\n');
    }
    // The system answers afterwards, its shell starts another program, and then it ends by itself.
    script += "111 * 3\n! busybox echo alive $((6 * 7)); exit\nwait 0\n";
    let outcome = scene.script(&["--write"], None, &script)?;
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    if text.contains("alive 42\n") && text.contains("333  0x14d\n") {
        return Ok(text);
    }
    let errors = String::from_utf8_lossy(&outcome.stderr);
    let last = |text: &str| text.chars().rev().take(2000).collect::<Vec<_>>().into_iter().rev().collect::<String>();
    Err(format!("seed {SEED:#x}: status {}\n{}\n{}", outcome.status, last(&text), last(&errors)))
}
