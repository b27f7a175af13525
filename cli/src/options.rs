//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::machine::net::{Forward, Wire};
use crate::machine::sound::Wish;

/// Runs Linux programs on Synthesis, the kernel that writes its own kernel calls.
#[derive(Parser, Debug)]
#[command(name = "synth", version, after_help = "From a checkout, `./synth test` runs the tests.")]
pub struct Options {
    #[command(subcommand)]
    pub command: Command,
}

/// The part of [`Options`] that `synth run` needs. To build the others, too, takes longer than a small program runs.
#[derive(Parser)]
#[command(name = "synth", version)]
struct OnlyRun {
    #[command(subcommand)]
    command: RunCommand,
}

#[derive(Subcommand)]
enum RunCommand {
    /// Run a Linux program in a virtual machine; its exit status becomes ours
    Run(RunOptions),
}

impl Options {
    /// The command line of this process; ends it where that is none.
    pub fn of_process() -> Options {
        if std::env::args_os().nth(1).is_none_or(|word| word != "run") {
            return Options::parse();
        }
        let RunCommand::Run(options) = OnlyRun::parse().command;
        Options { command: Command::Run(options) }
    }
}

impl RunOptions {
    /// What `synth run` with these words would be.
    pub fn of_words(words: Vec<OsString>) -> Result<RunOptions, String> {
        let line = ["synth", "run"].into_iter().map(OsString::from).chain(words);
        let RunCommand::Run(options) = OnlyRun::try_parse_from(line).map_err(|error| error.to_string())?.command;
        Ok(options)
    }
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run a Linux program in a virtual machine; its exit status becomes ours
    Run(RunOptions),
    /// Boot to an interactive shell (the host's busybox)
    Boot(BootOptions),
    /// List the layers of container images that have been decompressed, or remove them
    Layers(LayersOptions),
    /// Run one of the papers' demonstrations: music, cd, rhythm, fft; without a name list them
    Demo(DemoOptions),
    /// Measure Linux and Synthesis side by side, in guest instructions
    Bench(crate::bench::BenchArgs),
    #[command(flatten)]
    See(crate::see::SeeCommand),
}

/// Said at the end of the help of commands whose program has the terminal.
const KEYS: &str = "At a terminal Ctrl-] three times within a second ends the run, whatever the program does.";

#[derive(Args, Debug)]
#[command(after_help = KEYS)]
pub struct RunOptions {
    #[command(flatten)]
    pub machine: MachineOptions,
    #[command(flatten)]
    pub files: FileOptions,
    #[command(flatten)]
    pub as_always: AsAlways,
    /// The program (looked up in PATH when it has no slash) and its arguments
    #[arg(
        required_unless_present = "image",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "PROGRAM [ARGS]"
    )]
    pub argv: Vec<OsString>,
}

/// The demonstrations that are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DemoName {
    Music,
    Cd,
    Rhythm,
    Fft,
}

#[derive(Args, Debug)]
pub struct DemoOptions {
    /// Which one; without it they are listed
    #[arg(value_enum)]
    pub name: Option<DemoName>,
    /// How long the sound is, for example 5s
    #[arg(long = "for", value_name = "SECONDS", requires = "name")]
    pub seconds: Option<String>,
    /// Write the sound to this file of the host
    #[arg(long, value_name = "FILE", requires = "name")]
    pub wav: Option<PathBuf>,
    /// music: play on /dev/dsp; in the virtual machine --sound says where that is heard
    #[arg(long, requires = "name")]
    pub play: bool,
    /// music: play, and be heard: host, or wav:FILE, what the machine's sound device has played
    #[arg(long, value_name = "wav:FILE|host", requires = "name", conflicts_with_all = ["hosted", "linux"])]
    pub sound: Option<String>,
    /// music: so many frames go through a pipe at a time: 1, 2, 4, 8, 16, 32 or 64
    #[arg(long, value_name = "FRAMES", requires = "name")]
    pub block: Option<String>,
    /// music: a thread for each of so many notes, up to 1000, instead of four voices
    #[arg(long, value_name = "NOTES", requires = "name")]
    pub notes: Option<String>,
    /// music: a converter takes the frames as time goes on, and counts what comes too late
    #[arg(long, requires = "name")]
    pub paced: bool,
    /// Run inside a Linux process instead of a virtual machine
    #[arg(long, requires = "name", conflicts_with_all = ["icount", "linux"])]
    pub hosted: bool,
    /// Count instructions as time: one nanosecond each
    #[arg(long, requires = "name", conflicts_with = "linux")]
    pub icount: bool,
    /// Run the same program on this Linux, to compare
    #[arg(long, requires = "name")]
    pub linux: bool,
}

#[derive(Args, Debug)]
pub struct LayersOptions {
    /// Remove them all
    #[arg(long)]
    pub clear: bool,
}

#[derive(Args, Debug)]
#[command(after_help = KEYS)]
pub struct BootOptions {
    #[command(flatten)]
    pub machine: MachineOptions,
    #[command(flatten)]
    pub files: FileOptions,
}

/// How the virtual machine is made.
#[derive(Args, Debug)]
pub struct MachineOptions {
    /// Memory, for example 64M or 1G; by default 256M, and more when the files need it
    #[arg(short, long, value_name = "SIZE", value_parser = parse_memory_mib)]
    pub mem: Option<u64>,
    /// Run inside a Linux process instead of a virtual machine: native speed, no isolation from the kernel
    #[arg(long, conflicts_with_all = ["accel", "icount"])]
    pub hosted: bool,
    /// Boot the image with the kernel's part of `synth monitor`, so that the running system can be asked by it
    #[arg(long)]
    pub monitor: bool,
    /// How guest instructions are executed; auto takes KVM where the processor backs it
    #[arg(long, value_enum, default_value_t = AccelChoice::Auto)]
    pub accel: AccelChoice,
    /// Count instructions as time: one nanosecond each, so that runs repeat exactly
    #[arg(long)]
    pub icount: bool,
    /// The machine's network: user (the host's, in your name; the default), none, or tap:NAME, an interface of the host
    #[arg(long, value_name = "user|none|tap:NAME")]
    pub net: Option<Wire>,
    /// Lead a port of the host to one of the machine; may be repeated
    #[arg(short, long, value_name = "[HOST:]PORT:PORT[/udp]")]
    pub publish: Vec<Forward>,
    /// Write all frames that come and go into FILE, for tcpdump and wireshark
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Where what programs write to /dev/dsp is heard: wav:FILE, host (the host's own sound), or none (no device; the default)
    #[arg(long, value_name = "wav:FILE|host|none", default_value = "none", hide_default_value = true)]
    pub sound: Wish,
    /// Frames a second in the file of --sound wav:FILE [default: 44100]; what is played at another rate is resampled
    #[arg(long, value_name = "HERTZ", value_parser = clap::value_parser!(u32).range(8000..=192_000))]
    pub sound_rate: Option<u32>,
    /// End the run after this many seconds, with status 124
    #[arg(long, value_name = "SECONDS", value_parser = parse_timeout)]
    pub timeout: Option<Duration>,
    /// Wait for a debugger before the first instruction; with --hosted it then knows the names of synthesized code
    #[arg(long)]
    pub gdb: bool,
    /// With --hosted: name synthesized code for `perf report`, in /tmp/perf-PID.map
    #[arg(long, requires = "hosted")]
    pub perf_map: bool,
    /// With --hosted: print to standard error how calls came (jump or trap, routine or Rust) and what became of their sites
    #[arg(long, requires = "hosted")]
    pub counts: bool,
    /// Print one line to standard error when a program crashes; done anyway at a terminal, with registers when --verbose
    #[arg(long)]
    pub crash_report: bool,
    /// Print each kernel call to standard error
    #[arg(long)]
    pub strace: bool,
    /// Record calls, switches, interrupts and syntheses from the start into FILE, for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Run the plain Rust paths instead of synthesized code
    #[arg(long)]
    pub generic: bool,
    /// Print kernel messages and what the tool does to standard error
    #[arg(long)]
    pub verbose: bool,
    /// Words for the kernel's own command line (`panic` makes it panic when the first program starts; `poll`
    /// has it look at its devices instead of waiting for their interrupts;
    /// `code_bytes=N` lets the code store hold no more; `apic_divide=N` has the timer tick N times as slowly)
    #[arg(long, value_name = "WORDS", default_value = "", hide_default_value = true)]
    pub kernel_arguments: String,
    /// The kernel image, instead of the one that was built with this tool
    #[arg(long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,
}

/// What docker wants to be told, and what is always so here: the program has this terminal, standard input, and leaves nothing behind.
#[derive(Args, Clone, Debug, Default)]
pub struct AsAlways {
    #[arg(short, long, hide = true)]
    pub interactive: bool,
    #[arg(short, long, hide = true)]
    pub tty: bool,
    #[arg(long, hide = true)]
    pub rm: bool,
}

/// What the guest's file system and the program's surroundings are.
#[derive(Args, Clone, Debug, Default)]
pub struct FileOptions {
    /// Add a file, a folder or a program to the guest, at the same path or at GUEST; may be repeated
    #[arg(long, value_name = "HOST[:GUEST]")]
    pub with: Vec<OsString>,
    /// Show a folder of the host in the guest, at the same path or at GUEST, as it is and while it changes; with ro it cannot be
    /// changed from inside; may be repeated
    #[arg(short = 'v', long, value_name = "HOST[:GUEST][:ro]")]
    pub share: Vec<OsString>,
    /// Bring a file or folder out of the virtual machine when it ends, as HOST, which is no folder yet; may be repeated
    #[arg(long, value_name = "GUEST:HOST", conflicts_with = "hosted")]
    pub out: Vec<OsString>,
    /// With --root host: keep what is changed in this folder, as the upper directory of an overlay; the next run with it sees it again
    #[arg(long, value_name = "DIR", conflicts_with = "hosted")]
    pub upper: Option<PathBuf>,
    /// Hosted: keep this folder in memory, beside /tmp: the program sees what is there now, and its changes vanish; may
    /// be repeated
    #[arg(long, value_name = "DIR")]
    pub memory: Vec<PathBuf>,
    /// Use a folder or a tar file as the whole root file system; PROGRAM is then looked up in it. `host` is this host's own root:
    /// everything that is installed runs, and what is changed stays in the machine and goes with it
    #[arg(long, value_name = "DIR|TAR|host")]
    pub root: Option<PathBuf>,
    /// Use a container image as the whole root: what docker save and podman save write, or an OCI layout; PROGRAM and its arguments
    /// take the place of the image's own
    #[arg(long, value_name = "TAR|DIR", conflicts_with_all = ["root", "hosted"])]
    pub image: Option<PathBuf>,
    /// For whom the program runs in the virtual machine, by the guest's own list of users [default: root, or the image's]
    #[arg(short, long, value_name = "NAME|UID[:GROUP|GID]", conflicts_with = "hosted")]
    pub user: Option<String>,
    /// Set a variable, or pass the host's value on; may be repeated
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,
    /// Directory in the guest to start in [default: the present one if hosted, shared, or if --with brings something of it, else /]
    #[arg(short = 'w', long, value_name = "DIR")]
    pub cwd: Option<OsString>,
}

impl FileOptions {
    /// `--root host`; a folder of that name is written `./host`.
    pub fn is_host_root(&self) -> bool {
        self.root.as_ref().is_some_and(|root| root.as_os_str() == "host")
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum AccelChoice {
    Auto,
    Kvm,
    Tcg,
}

/// Least memory that holds the firmware's tables, the kernel and one static program.
const MEMORY_MIN_MIB: u64 = 8;
/// The kernel uses no more (`RAM_END_MAX` of the pc).
pub const MEMORY_MAX_MIB: u64 = 128 << 10;

fn parse_memory_mib(text: &str) -> Result<u64, String> {
    let (digits, mib_per_unit) = match text.char_indices().last() {
        Some((at, 'M' | 'm')) => (&text[..at], 1),
        Some((at, 'G' | 'g')) => (&text[..at], 1024),
        _ => (text, 1),
    };
    let mib = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(mib_per_unit));
    match mib {
        Some(mib) if (MEMORY_MIN_MIB..=MEMORY_MAX_MIB).contains(&mib) => Ok(mib),
        Some(mib) => Err(format!("{mib} MiB is outside {MEMORY_MIN_MIB}M to {}G", MEMORY_MAX_MIB / 1024)),
        None => Err("expected a number with M or G, such as 256M".into()),
    }
}

/// What to write instead of an option of docker and podman.
pub fn known_elsewhere(option: &str) -> Option<&'static str> {
    let name = option.split('=').next().unwrap_or(option);
    Some(match name {
        "--volume" | "--mount" => {
            "write --share HOST:GUEST, or -v HOST:GUEST; with :ro behind it nobody inside can change it"
        }
        "--workdir" => "write --cwd DIR, or -w DIR",
        "--env-file" => "write --env NAME=VALUE, or -e NAME=VALUE, once for each",
        "--name" | "--detach" | "-d" => "leave it out: a machine ends with its program, and keeps nothing",
        "--network" => {
            "write --net user, which is the default, or --net none; a port of the host is led inside by -p PORT:PORT"
        }
        "--entrypoint" => "name the program itself, behind the options",
        _ => return None,
    })
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|_| "expected a number of seconds".to_string())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("expected more than zero seconds".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(arguments: &[&str]) -> Result<RunOptions, clap::Error> {
        let line = ["synth", "run"].iter().chain(arguments);
        match Options::try_parse_from(line)?.command {
            Command::Run(options) => Ok(options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_after_the_program_belong_to_it() {
        let options = run(&["--mem", "16M", "ls", "--mem", "-l", "--", "x"]).unwrap();
        assert_eq!(options.argv, ["ls", "--mem", "-l", "--", "x"]);
        assert_eq!(options.machine.mem, Some(16));
    }

    #[test]
    fn options_may_be_repeated_and_have_defaults() {
        let options = run(&["--with", "a", "--with", "b:/c", "--env", "A=1", "--env", "B", "true"]).unwrap();
        assert_eq!((options.files.with.len(), options.files.env.len()), (2, 2));
        assert_eq!((options.files.cwd, options.machine.accel), (None, AccelChoice::Auto));
    }

    #[test]
    fn sizes_and_times_are_read_or_refused() {
        assert_eq!(parse_memory_mib("1G"), Ok(1024));
        assert_eq!(parse_memory_mib("300"), Ok(300));
        for bad in ["", "M", "1T", "-1M", "1M", "99999999999999999999M", "18446744073709551615G"] {
            assert!(parse_memory_mib(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_timeout("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["", "0", "-1", "nan", "inf", "x"] {
            assert!(parse_timeout(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_short_options_of_docker_mean_the_same() {
        let options = run(&["-e", "A=1", "-e", "B=2", "-w", "/tmp", "-m", "64m", "env", "-e", "x"]).unwrap();
        assert_eq!(options.files.env, ["A=1", "B=2"]);
        assert_eq!((options.files.cwd, options.machine.mem), (Some("/tmp".into()), Some(64)));
        assert_eq!(options.argv, ["env", "-e", "x"]);
        assert!(known_elsewhere("--mount").unwrap().contains("--share HOST:GUEST"));
        assert_eq!(run(&["-v", "/a:/b:ro", "--share", "/c", "ls", "-v"]).unwrap().files.share, ["/a:/b:ro", "/c"]);
        assert!(known_elsewhere("--volume=/a:/b").is_some() && known_elsewhere("--no-such").is_none());
    }

    #[test]
    fn a_program_is_required() {
        assert!(run(&["--verbose"]).is_err());
        assert!(run(&["--image", "x.tar"]).is_ok());
    }
}
