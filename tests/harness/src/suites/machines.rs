//! Machines that the tool does not start by itself: the same run, but the monitor gets another line. A script stands before the
//! monitor in PATH, takes away what a machine does not have and adds what it has; all else is the tool's.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::audio;
use super::scene::expect;
use super::streams::{executable, static_hello, tool_is_there};
use crate::options::Options;
use crate::process::{self, Outcome, Running};
use crate::programs::{self, Linking};
use crate::report::Tally;
use crate::root::find_program;
use crate::side::runner_command;

const MONITOR: &str = "qemu-system-x86_64";
/// The status of a machine that ended without the program's, and of a run that took too long.
const MACHINE_DIED: i32 = 70;

/// `MACHINE` is the word behind -M, `MORE` words are added at the end. `PCI` puts the console behind PCI, with these settings;
/// `DUMB` leaves it out; `BARE` leaves out the exit
/// device, and lets a reset start the machine again; `UNTOLD` does not tell the kernel how fast the counter
/// counts; `LINE` is a file for the words.
const SCRIPT: &str = r#"#!/bin/sh
IFS='
'
words=
add() { words="$words$IFS$1"; }
while [ $# -gt 0 ]; do
    case $1 in
    -M) add -M; add "${MACHINE:-$2}"; shift ;;
    virtio-serial-device,*) if [ "$PCI" ]; then add "virtio-serial-pci,${1#*,}$PCI"; else add "$1"; fi ;;
    -no-reboot) [ "$BARE" ] || add "$1" ;;
    virtio-9p-device,*) if [ "$PCI" ]; then add "virtio-9p-pci,${1#*,}$PCI"; else add "$1"; fi ;;
    virtio-net-device,*) case $PCI:${MACHINE:-microvm} in :microvm*) add "$1" ;; *) add "virtio-net-pci,${1#*,},romfile=$PCI" ;; esac ;;
    -append) line=$2; [ -z "$UNTOLD" ] || line="untold ${2#tsc_hz=* }"; add -append; add "$line"; shift ;;
    -device) case $BARE:$DUMB:$2 in yes:*:isa-debug-exit*|*:yes:virtio-serial*|*:yes:virtserial*) shift ;; *) add "$1" ;; esac ;;
    *) add "$1" ;;
    esac
    shift
done
[ -z "$LINE" ] || { echo "$words" >"$LINE.new"; mv "$LINE.new" "$LINE"; }
set -f
exec @MONITOR@ $words $MORE
"#;

/// Runs every check; the hosted machine has no monitor.
///
/// # Errors
/// A sentence when the tool is not there or the script cannot be written.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    tool_is_there(options)?;
    let stage = Stage::set(options)?;
    type Check = fn(&Stage<'_>) -> Result<(), String>;
    let checks: [(&str, Option<&str>, Check); 16] = [
        ("a_folder_is_shared_over_pci", None, folder_on_pci),
        ("the_console_is_found_by_acpi", None, console_by_acpi),
        ("the_console_is_found_on_pci", None, console_on_pci),
        ("random_bytes_come_over_pci", None, entropy_on_pci),
        ("sound_is_heard_whoever_interrupts", None, sound),
        ("a_machine_without_a_console_says_so_and_ends", None, no_console),
        ("a_machine_that_cannot_be_switched_off_stands_still", None, stands_still),
        ("a_program_ends_a_machine_without_an_exit_device", None, switched_off),
        ("the_loader_owes_no_stack", Some("gdb"), no_stack),
        ("memory_above_4_gb_is_used", None, high_memory),
        ("an_archive_above_4_gb_is_used", None, high_archive),
        ("a_slow_timer_rings_in_time", None, slow_timer),
        ("the_counter_is_measured_where_nobody_tells", None, counter),
        ("an_entropy_device_feeds_random_bytes", None, entropy),
        ("a_clock_chip_beats_the_archive", None, clock_chip),
        ("the_archive_tells_the_time_where_no_clock_does", None, no_clock),
    ];
    for (name, needs, check) in checks {
        let name = format!("machines/{name}");
        match needs.filter(|program| find_program(program).is_none()) {
            _ if !options.selects(&name) => {}
            _ if options.is_hosted() => tally.skip(&name, "the hosted machine has no monitor"),
            Some(program) => tally.skip(&name, &format!("{program} is not on this host")),
            None if name.ends_with("is_used") && available_mib() < 6000 => {
                tally.skip(&name, "this host has less than 6000 MiB of memory to spare");
            }
            None => tally.record(&name, check(&stage)),
        }
    }
    let _ = fs::remove_dir_all(&stage.folder);
    Ok(())
}

struct Stage<'a> {
    options: &'a Options,
    folder: PathBuf,
}

impl Stage<'_> {
    fn set(options: &Options) -> Result<Stage<'_>, String> {
        let monitor = find_program(MONITOR).ok_or_else(|| format!("{MONITOR} is not on this host"))?;
        // The path of a socket is short.
        let folder = PathBuf::from(format!("/tmp/machines-{}", std::process::id()));
        let script = folder.join(MONITOR);
        fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        let text = SCRIPT.replace("@MONITOR@", &monitor.display().to_string());
        fs::write(&script, text).map_err(|error| format!("cannot write {}: {error}", script.display()))?;
        executable(&script)?;
        Ok(Stage { options, folder })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The tool with `words`, on a machine of these settings.
    fn command(&self, settings: &[(&str, &str)], words: &[&str]) -> Command {
        let mut command = runner_command(&self.options.runner);
        let path = std::env::var("PATH").unwrap_or_default();
        command.args(words).env("PATH", format!("{}:{path}", self.folder.display()));
        command.envs(settings.iter().copied());
        command
    }

    /// A program that prints a line, to its end or its limit.
    fn hello(&self, settings: &[(&str, &str)]) -> Result<Outcome, String> {
        let seconds = self.options.case_timeout.as_secs().to_string();
        let command = self.command(settings, &["--timeout", &seconds, &static_hello(self.options)?]);
        process::run(command, Vec::new(), self.options.case_timeout * 2)
    }
}

fn said_hello(outcome: &Outcome) -> Result<(), String> {
    match (outcome.status, outcome.stdout.as_slice()) {
        (0, b"hello\n") => Ok(()),
        (status, said) => Err(format!("status {status}, {}\n{}", said.escape_ascii(), outcome.stderr.escape_ascii())),
    }
}

/// The monitor then names no window on the command line, and has two I/O APICs.
fn console_by_acpi(stage: &Stage<'_>) -> Result<(), String> {
    said_hello(&stage.hello(&[("MACHINE", "microvm,acpi=on")])?)
}

/// By messages, by a wire, and looked at; where firmware has placed the device's registers, and where we do; through a window of
/// memory, and by ports where ACPI says nothing.
const ON_PCI: [(&str, &str, &str); 8] = [
    ("q35", ",vectors=2", ""),
    ("q35", ",vectors=0", ""),
    ("q35", ",vectors=2", "poll"),
    ("pc", ",vectors=2", ""),
    ("pc", ",vectors=0", ""),
    ("pc,acpi=off", ",vectors=2", ""),
    ("microvm,acpi=on,pcie=on", ",vectors=2", ""),
    ("microvm,acpi=on,pcie=on", ",vectors=2", "poll"),
];

/// Input that is awaited, and output of some length.
fn console_on_pci(stage: &Stage<'_>) -> Result<(), String> {
    for (machine, device, words) in ON_PCI {
        let settings = [("MACHINE", machine), ("PCI", device)];
        let script = "read line; echo $line; head -c 300000 /dev/zero | od -v | tail -n 1";
        let arguments = ["--kernel-arguments", words, "busybox", "sh", "-c", script];
        let arguments = if words.is_empty() { &arguments[2..] } else { &arguments[..] };
        let command = stage.command(&settings, arguments);
        let outcome = process::run(command, b"said\n".to_vec(), stage.options.case_timeout)?;
        if (outcome.status, outcome.stdout.as_slice()) != (0, b"said\n1111740\n") {
            let (said, told) = (outcome.stdout.escape_ascii(), outcome.stderr.escape_ascii());
            return Err(format!("{machine} {device} {words}: status {}, {said}, {told}", outcome.status));
        }
    }
    Ok(())
}

fn entropy_on_pci(stage: &Stage<'_>) -> Result<(), String> {
    for (machine, device, words) in ON_PCI {
        let more = format!("-device\nvirtio-rng-pci{device}");
        // A machine with windows has the console in one.
        let console = if machine.starts_with("microvm") { "" } else { ",vectors=2" };
        let settings = [("MACHINE", machine), ("PCI", console), ("MORE", more.as_str())];
        gets_random_bytes(stage, &settings, words, true)?;
    }
    Ok(())
}

/// By a message, by the wire that firmware has noted, and where there is neither; on other buses than the tool's.
fn sound(stage: &Stage<'_>) -> Result<(), String> {
    let program = programs::build(stage.options, "dsp", Linking::Static)?.display().to_string();
    let file = stage.at("heard.wav").display().to_string();
    let to_file = format!("wav:{file}");
    let words = ["--icount", "--timeout", "60", "--sound", &to_file, &program, "second"];
    for machine in ["q35", "pc", "microvm,acpi=on,pcie=on"] {
        for messages in ["on", "off"] {
            let more = format!("-global\nintel-hda.msi={messages}");
            let console = if machine.starts_with("microvm") { "" } else { ",vectors=2" };
            let settings = [("MACHINE", machine), ("PCI", console), ("MORE", &more)];
            let command = stage.command(&settings, &words);
            let outcome = process::run(command, Vec::new(), stage.options.case_timeout)?;
            let told = String::from_utf8_lossy(&outcome.stdout).into_owned();
            let heard = audio::frames(&fs::read(&file).map_err(|error| error.to_string())?)?;
            expect(&told, &["176400 bytes in the end"])
                .and_then(|()| audio::same(&audio::pattern(44_100), audio::trimmed(&heard)))
                .map_err(|error| {
                    format!("{machine}, messages {messages}: {error}\n{}", outcome.stderr.escape_ascii())
                })?;
        }
    }
    Ok(())
}

fn folder_on_pci(stage: &Stage<'_>) -> Result<(), String> {
    let folder = stage.at("folder");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    fs::write(folder.join("there"), "there\n").map_err(|error| error.to_string())?;
    let shared = format!("{}:/shared", folder.display());
    for (machine, device, words) in ON_PCI {
        let settings = [("MACHINE", machine), ("PCI", device)];
        let script = "cd /shared; cat there; seq 20000 > made; sort -n made | tail -n 1; rm made; ls";
        let arguments = ["--kernel-arguments", words, "--share", &shared, "busybox", "sh", "-c", script];
        let arguments = if words.is_empty() { &arguments[2..] } else { &arguments[..] };
        let outcome = process::run(stage.command(&settings, arguments), Vec::new(), stage.options.case_timeout)?;
        if outcome.stdout != b"there\n20000\nthere\n" {
            let (said, told) = (outcome.stdout.escape_ascii(), outcome.stderr.escape_ascii());
            return Err(format!("{machine} {device} {words}: status {}, {said}, {told}", outcome.status));
        }
    }
    Ok(())
}

/// Without the exit device only ACPI ends these machines, and a reset would start them again until the time limit.
fn no_console(stage: &Stage<'_>) -> Result<(), String> {
    for machine in ["q35", "pc"] {
        let serial = stage.at("serial");
        let more = format!("-serial\nfile:{}", serial.display());
        let outcome = stage.hello(&[("MACHINE", machine), ("DUMB", "yes"), ("BARE", "yes"), ("MORE", &more)])?;
        let told = String::from_utf8_lossy(&outcome.stderr).into_owned();
        let serial = fs::read_to_string(serial).map_err(|error| error.to_string())?;
        if outcome.status != MACHINE_DIED || serial.matches("cannot start").count() != 1 {
            return Err(format!("{machine}: status {}, {told}, at the serial port: {serial}", outcome.status));
        }
        expect(&told, &["synthesis cannot start", "virtio console"])?;
        expect(&serial, &["synthesis cannot start", "virtio console", "PCI"])?;
    }
    Ok(())
}

/// Without ACPI the reset line is all there is, and it starts such a machine again: once.
fn stands_still(stage: &Stage<'_>) -> Result<(), String> {
    let serial = stage.at("still");
    let more = format!("-serial\nfile:{}", serial.display());
    let settings = [("MACHINE", "pc,acpi=off"), ("DUMB", "yes"), ("BARE", "yes"), ("MORE", more.as_str())];
    let running = Running::start(stage.command(&settings, &[&static_hello(stage.options)?]), Vec::new())?;
    let said = wait_for(stage.options.case_timeout, || {
        let said = fs::read_to_string(&serial).ok()?;
        (said.contains("it stands still") || said.matches("cannot start").count() > 1).then_some(said)
    });
    running.kill();
    let said = said?;
    match said.matches("cannot start").count() {
        1 => Ok(()),
        _ => Err(format!("it started again and again: {said}")),
    }
}

fn switched_off(stage: &Stage<'_>) -> Result<(), String> {
    said_hello(&stage.hello(&[("MACHINE", "microvm,acpi=on"), ("BARE", "yes")])?)
}

/// Firecracker and Cloud Hypervisor enter the kernel with a stack pointer of zero, below which is no memory. Here the firmware's
/// is, so the stack pointer leads to where nothing is.
fn no_stack(stage: &Stage<'_>) -> Result<(), String> {
    let (line, socket) = (stage.at("line"), stage.at("gdb"));
    let more = format!("-S\n-gdb\nunix:{},server=on,wait=off", socket.display());
    let seconds = stage.options.case_timeout.as_secs().to_string();
    let words = ["--timeout", &seconds, &static_hello(stage.options)?];
    let settings = [("LINE", line.to_str().unwrap_or_default()), ("MORE", &more)];
    let mut running = Running::start(stage.command(&settings, &words), Vec::new())?;
    let kernel = wait_for(stage.options.case_timeout, || {
        let words = fs::read_to_string(&line).ok().filter(|_| socket.exists())?;
        let mut words = words.lines().skip_while(|word| *word != "-kernel");
        words.nth(1).map(str::to_string)
    });
    let debugged = kernel.and_then(|kernel| enter_without_stack(&kernel, &socket, stage.options.case_timeout));
    let deadline = Instant::now() + stage.options.case_timeout;
    let mut said = Vec::new();
    while let Ok(event) = running.next(deadline) {
        if let process::Event::Stdout(bytes) | process::Event::Stderr(bytes) = event {
            said.extend(bytes);
        }
    }
    running.kill();
    match said.as_slice() {
        b"hello\n" => Ok(()),
        said => Err(format!("it said {}; gdb: {debugged:?}", said.escape_ascii())),
    }
}

/// Stops at the kernel's first instruction and takes the stack away.
fn enter_without_stack(kernel: &str, socket: &Path, limit: Duration) -> Result<String, String> {
    let mut debugger = Command::new("gdb");
    debugger.args(["-batch", "-nx", "-ex", "set confirm off", kernel]);
    for step in [
        format!("target remote {}", socket.display()),
        "hbreak *((unsigned long)&pvh_entry - 0xffffffff80000000)".into(),
        "continue".into(),
        "set $rsp = 0xd0000000".into(),
        "delete".into(),
        "detach".into(),
    ] {
        debugger.args(["-ex", &step]);
    }
    let said = process::run(debugger, Vec::new(), limit)?;
    Ok(String::from_utf8_lossy(&[said.stdout, said.stderr].concat()).into_owned())
}

/// The first 3 GiB lie below 4 GB, the rest of a larger machine above.
fn high_memory(stage: &Stage<'_>) -> Result<(), String> {
    let program = programs::build(stage.options, "large", Linking::Static)?.display().to_string();
    let limit = stage.options.case_timeout * 5;
    let seconds = limit.as_secs().to_string();
    let words = ["--timeout", &seconds, "--mem", "6G", &program, "3200"];
    let outcome = process::run(stage.command(&[], &words), Vec::new(), limit * 2)?;
    match (outcome.status, outcome.stdout.as_slice()) {
        (0, b"3200 MiB, 0 pages wrong\n") => Ok(()),
        (status, said) => Err(format!("status {status}, {}\n{}", said.escape_ascii(), outcome.stderr.escape_ascii())),
    }
}

/// More files than the monitor loads below 3 GiB; the last bytes are there, and memory is left for programs.
fn high_archive(stage: &Stage<'_>) -> Result<(), String> {
    const BYTES: u64 = 3 << 30;
    let large = stage.at("large");
    let told = |error: std::io::Error| error.to_string();
    let file = fs::File::create(&large).map_err(told)?;
    file.write_all_at(b"begin", 0).and_then(|()| file.write_all_at(b"the end", BYTES - 7)).map_err(told)?;
    let with = format!("{}:/large", large.display());
    let script = "stat -c %s /large; head -c 5 /large; dd if=/large bs=1M skip=3071 2>/dev/null | tail -c 7; echo; \
                  head -c 100000000 /dev/zero >/tmp/more; stat -c %s /tmp/more";
    let command = stage.command(&[], &["--timeout", "120", "--with", &with, "busybox", "sh", "-c", script]);
    let outcome = process::run(command, Vec::new(), Duration::from_secs(180))?;
    let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
    if outcome.status == 0 && said == format!("{BYTES}\nbeginthe end\n100000000\n") {
        return Ok(());
    }
    Err(format!("status {}, {said:?}\n{}", outcome.status, String::from_utf8_lossy(&outcome.stderr)))
}

/// A divided timer counts as slowly as other processors' timers do. Time is counted in instructions, so it is exact on every host.
/// Sleeps go through the kernel and through the timer's code, quanta through the way from interrupt to switch.
fn slow_timer(stage: &Stage<'_>) -> Result<(), String> {
    let script = "busybox time sleep 2; while :; do :; done & while :; do :; done & busybox time sleep 2; kill %1 %2";
    for divider in ["1", "16", "128"] {
        let words = format!("apic_divide={divider}");
        let words = ["--icount", "--kernel-arguments", &words, "busybox", "sh", "-c", script];
        let outcome = process::run(stage.command(&[], &words), Vec::new(), stage.options.case_timeout)?;
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        if said.matches("real\t0m 2.0").count() != 2 {
            return Err(format!("divided by {divider}: {said}"));
        }
    }
    Ok(())
}

/// By the interval timer; where there is none, by the local APIC's. Counted instructions are nanoseconds: 1000 MHz.
fn counter(stage: &Stage<'_>) -> Result<(), String> {
    for timer in ["on", "off"] {
        let machine = format!("microvm,acpi=off,pic=off,isa-serial=off,x-option-roms=off,rtc=on,pit={timer}");
        let words = ["--icount", "busybox", "grep", "MHz", "/proc/cpuinfo"];
        let command = stage.command(&[("MACHINE", &machine), ("UNTOLD", "yes")], &words);
        let outcome = process::run(command, Vec::new(), stage.options.case_timeout)?;
        let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
        let megahertz = said.split(':').nth(1).and_then(|text| text.trim().parse::<f64>().ok());
        if !megahertz.is_some_and(|found| (995.0..1005.0).contains(&found)) {
            return Err(format!("interval timer {timer}: {said}{}", outcome.stderr.escape_ascii()));
        }
    }
    Ok(())
}

fn entropy(stage: &Stage<'_>) -> Result<(), String> {
    let device = ("MORE", "-device\nvirtio-rng-device");
    gets_random_bytes(stage, &[device], "", true)?;
    gets_random_bytes(stage, &[device], "poll", true)?;
    gets_random_bytes(stage, &[], "", false)
}

/// Two reads of random bytes that are too long for what was taken at boot: the device's line must chain, or be polled. Without the device
/// nothing comes from it.
fn gets_random_bytes(
    stage: &Stage<'_>,
    settings: &[(&str, &str)],
    words: &str,
    has_device: bool,
) -> Result<(), String> {
    let read = "head -c 8000000 /dev/urandom | wc -c; cat /proc/sys/kernel/random/uuid >/dev/null; \
        for i in 1 2 3 4 5 6 7 8 9; do cat /proc/sys/kernel/random/uuid; done | sort -u | wc -l; \
        grep device_entropy /proc/synthesis/gauges";
    let arguments = ["--kernel-arguments", words, "busybox", "sh", "-c", read];
    let arguments = if words.is_empty() { &arguments[2..] } else { &arguments[..] };
    let outcome = process::run(stage.command(settings, arguments), Vec::new(), stage.options.case_timeout)?;
    let said = String::from_utf8_lossy(&outcome.stdout).replace('\r', "");
    let given = said.strip_prefix("8000000\n9\ndevice_entropy_bytes ").and_then(|text| text.trim().parse::<u64>().ok());
    match given {
        Some(given) if has_device && given >= 128 || !has_device && given == 0 => Ok(()),
        _ => Err(format!("{settings:?} {words}: {said}{}", outcome.stderr.escape_ascii())),
    }
}

/// The year by a clock chip that is set to another; KVM would tell the host's.
fn clock_chip(stage: &Stage<'_>) -> Result<(), String> {
    let settings = [("MORE", "-rtc\nbase=2031-05-06T07:08:09")];
    let words = ["--accel", "tcg", "busybox", "date", "-u", "+%Y-%m-%d %H"];
    let outcome = process::run(stage.command(&settings, &words), Vec::new(), stage.options.case_timeout)?;
    match outcome.stdout.as_slice() {
        b"2031-05-06 07\n" => Ok(()),
        said => Err(format!("{}\n{}", said.escape_ascii(), outcome.stderr.escape_ascii())),
    }
}

fn no_clock(stage: &Stage<'_>) -> Result<(), String> {
    let seconds = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let settings = [("MACHINE", "microvm,acpi=off,pic=off,isa-serial=off,x-option-roms=off,rtc=off")];
    let before = seconds();
    let words = ["--accel", "tcg", "busybox", "date", "+%s"];
    let outcome = process::run(stage.command(&settings, &words), Vec::new(), stage.options.case_timeout)?;
    let said = String::from_utf8_lossy(&outcome.stdout).trim().parse::<u64>().unwrap_or(0);
    if (before..=seconds()).contains(&said) { Ok(()) } else { Err(format!("{before}, then {said} inside")) }
}

/// Memory that this host could still give.
fn available_mib() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// What `look` finds before `limit` is over.
fn wait_for<T>(limit: Duration, mut look: impl FnMut() -> Option<T>) -> Result<T, String> {
    let deadline = Instant::now() + limit;
    loop {
        match look() {
            Some(found) => return Ok(found),
            None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(10)),
            None => return Err(format!("nothing came in {} s", limit.as_secs())),
        }
    }
}
