//! `synth run`: pack, boot, relay.

use std::io::IsTerminal;
use std::os::fd::AsRawFd;
use std::time::{SystemTime, UNIX_EPOCH};

use bootimage::{Config, ConfigFlags, FdKind};

use crate::failure::{Failure, TOOL};
use crate::machine::hosted::Hosted;
use crate::machine::terminal::{Terminals, say};
use crate::machine::{self, Console, Machine, Wishes, accel, kernel};
use crate::options::{FileOptions, MachineOptions, RunOptions};
use crate::pack::{self, Packed};

/// Memory of a machine when nothing is said.
const MEMORY_DEFAULT_MIB: u64 = 256;
/// Memory of the hosted machine when nothing is said. The host supplies what is touched.
const HOSTED_MEMORY_MIB: u64 = 1024;
/// What must be free beside the archive for the kernel and a small program.
const MEMORY_BESIDE_ARCHIVE_MIB: u64 = 6;
/// The same wall clock for every counted run: 2000-01-01 00:00 UTC.
const ICOUNT_EPOCH_NS: u64 = 946_684_800_000_000_000;

/// Runs the program; its status is returned.
pub fn run(options: &RunOptions) -> Result<u8, Failure> {
    if options.argv[0].as_encoded_bytes().starts_with(b"-") {
        let word = options.argv[0].to_string_lossy();
        return Err(Failure::new(
            2,
            format!("unknown option {word}"),
            "see synth run --help; a program whose name begins with - needs a path",
        ));
    }
    let console = Console::take()?;
    let packed = pack::pack(&options.argv[0], &options.files, console.terminals.any())?;
    let argv = options.argv.iter().map(|word| word.as_encoded_bytes().to_vec()).collect();
    start(packed, argv, &options.machine, &options.files, console)
}

/// Boots a machine with what was packed.
pub fn start(
    packed: Packed,
    argv: Vec<Vec<u8>>,
    options: &MachineOptions,
    files: &FileOptions,
    console: Console,
) -> Result<u8, Failure> {
    if options.hosted {
        return start_hosted(packed, argv, options, files, console);
    }
    let kernel = kernel::find(options.kernel.as_deref())?;
    let (accel, why) = accel::choose(options.accel, options.icount, &accel::KvmFacts::of_host())?;
    let config = configuration(&packed, argv, options, files, console.terminals);
    let (archive, archive_bytes) = pack::write_image(&packed.tree, &config)?;
    let memory_mib = memory_mib(options.mem, archive_bytes.div_ceil(1 << 20))?;
    if options.verbose {
        say(format!("synth: accelerator {why}\n").as_bytes());
        say(format!("synth: {archive_bytes} bytes packed, {memory_mib} MiB of memory\n").as_bytes());
    }
    if options.gdb {
        say(format!("synth: connect with: gdb {} -ex 'target remote :1234'\n", kernel.display()).as_bytes());
    }
    let machine = Machine {
        accel,
        icount: options.icount,
        memory_mib,
        kernel,
        archive: archive.as_raw_fd(),
        wait_for_debugger: options.gdb,
        kernel_arguments: format!("tsc_hz={} {}", config.tsc_hz, options.kernel_arguments),
    };
    let wishes = wishes(options);
    machine::run(&machine, console, &wishes)
}

/// Starts the hosted machine with what was packed.
fn start_hosted(
    packed: Packed,
    argv: Vec<Vec<u8>>,
    options: &MachineOptions,
    files: &FileOptions,
    console: Console,
) -> Result<u8, Failure> {
    let image = kernel::find_hosted(options.kernel.as_deref())?;
    let config = configuration(&packed, argv, options, files, console.terminals);
    let (archive, archive_bytes) = pack::write_image(&packed.tree, &config)?;
    let memory_mib = options.mem.unwrap_or(HOSTED_MEMORY_MIB);
    if options.verbose {
        say(format!("synth: {archive_bytes} bytes packed, {memory_mib} MiB of memory beside them\n").as_bytes());
    }
    let machine = Hosted {
        image: &image,
        archive: archive.as_raw_fd(),
        memory_mib,
        tsc_hz: config.tsc_hz,
        wait_for_debugger: options.gdb,
        counts: options.counts,
        perf_map: options.perf_map,
        arguments: &options.kernel_arguments,
    };
    let wishes = wishes(options);
    machine::hosted::run(&machine, console, &wishes)
}

/// A crash is told where somebody looks; a script that compares streams sees what it sees on Linux.
fn wishes(options: &MachineOptions) -> Wishes {
    Wishes {
        verbose: options.verbose,
        counts: options.counts,
        crash_report: options.crash_report || options.verbose || std::io::stderr().is_terminal(),
        timeout: options.timeout,
        trace: options.trace.clone(),
    }
}

fn configuration(
    packed: &Packed,
    argv: Vec<Vec<u8>>,
    options: &MachineOptions,
    files: &FileOptions,
    terminals: Terminals,
) -> Config {
    let [rows, columns, ..] = terminals.window_size();
    let mut seed = [0; 32];
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    if !options.icount {
        let _ = rustix::rand::getrandom(&mut seed[..], rustix::rand::GetRandomFlags::empty());
    }
    Config {
        program: packed.program.clone(),
        argv,
        env: packed.env.clone(),
        cwd: files.cwd.as_encoded_bytes().to_vec(),
        hostname: b"synthesis".to_vec(),
        fds: terminals.is_tty.map(|tty| if tty { FdKind::Tty } else { FdKind::Stream }),
        rows,
        columns,
        flags: ConfigFlags {
            generic: options.generic,
            strace: options.strace,
            verbose: options.verbose,
            trace: options.trace.is_some(),
        },
        epoch_ns: if options.icount { ICOUNT_EPOCH_NS } else { now.as_nanos() as u64 },
        tsc_hz: machine::tsc_hz(options.icount),
        umask: 0o022,
        seed,
    }
}

/// The machine's memory: what was asked for if the archive fits, otherwise the default or what the archive needs.
fn memory_mib(asked: Option<u64>, archive_mib: u64) -> Result<u64, Failure> {
    let needed = archive_mib + MEMORY_BESIDE_ARCHIVE_MIB;
    match asked {
        Some(asked) if asked < needed => Err(Failure::new(
            TOOL,
            format!("the program and its files need {needed} MiB of memory, but --mem gives {asked} MiB"),
            format!("give it more: --mem {}M", needed.next_multiple_of(64)),
        )),
        Some(asked) => Ok(asked),
        None => Ok(MEMORY_DEFAULT_MIB.max((archive_mib * 2 + 64).next_multiple_of(64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_grows_with_the_archive_unless_it_was_asked_for() {
        assert_eq!(memory_mib(None, 3).unwrap(), 256);
        assert_eq!(memory_mib(None, 300).unwrap(), 704);
        assert_eq!(memory_mib(Some(16), 3).unwrap(), 16);
        assert_eq!(memory_mib(Some(16), 100).unwrap_err().status, TOOL);
    }
}
