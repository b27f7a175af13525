//! `synth run`: pack, boot, relay.

use std::ffi::OsStr;
use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use bootimage::{Config, ConfigFlags, FdKind};

use crate::failure::{Failure, TOOL};
use crate::machine::hosted::Hosted;
use crate::machine::net::{self, Network, Wire};
use crate::machine::sound::{Sound, Wish};
use crate::machine::terminal::{Terminals, say};
use crate::machine::{self, Archive, Console, Folder, HIGH_MEMORY_OFFSET, Machine, Wishes, accel, escape, kernel};
use crate::options::{FileOptions, MEMORY_MAX_MIB, MachineOptions, RunOptions, known_elsewhere};
use crate::pack::{self, Image, LOADED_BYTES_MAX, Packed};
use crate::see::TraceFile;

/// Memory of a machine when nothing is said.
const MEMORY_DEFAULT_MIB: u64 = 256;
/// Memory of a machine on the host's root when nothing is said: what it has seen of the host's files is there.
const HOST_ROOT_MEMORY_MIB: u64 = 2048;
/// Memory of the hosted machine when nothing is said. The host supplies what is touched.
const HOSTED_MEMORY_MIB: u64 = 1024;
/// What must be free beside the archive for the kernel and a small program.
const MEMORY_BESIDE_ARCHIVE_MIB: u64 = 6;
/// The same wall clock for every counted run: 2000-01-01 00:00 UTC.
const ICOUNT_EPOCH_NS: u64 = 946_684_800_000_000_000;

/// Runs the program; its status is returned.
pub fn run(options: &RunOptions) -> Result<u8, Failure> {
    if options.argv.first().is_some_and(|word| word.as_encoded_bytes().starts_with(b"-")) {
        let word = options.argv[0].to_string_lossy();
        let help =
            known_elsewhere(&word).unwrap_or("see synth run --help; a program whose name begins with - needs a path");
        return Err(Failure::new(2, format!("unknown option {word}"), help));
    }
    let console = Console::take()?;
    if options.machine.verbose && console.terminals.is_tty[0] {
        say(format!("synth: {}\n", escape::HINT).as_bytes());
    }
    let container = options.files.image.as_deref().map(pack::Container::open).transpose()?;
    let argv =
        container.as_ref().map_or_else(|| Ok(options.argv.clone()), |container| container.argv(&options.argv))?;
    let outgoing = pack::Outgoing::prepare(&options.files.out)?;
    let mut packed = prepare(&argv[0], &options.machine, (&options.files, container.as_ref()), console.terminals)?;
    let argv = argv.iter().map(|word| word.as_encoded_bytes().to_vec()).collect();
    let upper = options.files.upper.as_deref().map(|folder| upper_over_host(folder, &mut packed)).transpose()?;
    packed.shares.extend(outgoing.shares());
    packed.shares.extend(upper.iter().map(pack::Upper::incoming));
    let status = start(packed, argv, &options.machine, console)?;
    hint(status, options);
    let kept = upper.map_or(Ok(()), pack::Upper::finish);
    outgoing.finish().and(kept).map(|()| status)
}

/// The folder that keeps what is changed comes between memory and the host's root.
fn upper_over_host(folder: &Path, packed: &mut Packed) -> Result<pack::Upper, Failure> {
    let root = packed.shares.iter().position(|share| share.is_root());
    let root = root.ok_or_else(|| {
        let text = format!("--upper {}: there is nothing to keep changes of", folder.display());
        Failure::new(2, text, "write --root host, too; --out brings single files and folders back from any root")
    })?;
    let upper = pack::Upper::prepare(folder)?;
    packed.shares.insert(root, upper.layer());
    Ok(upper)
}

/// A shell has not found a program, and somebody looks.
fn hint(status: u8, options: &RunOptions) {
    const NOT_FOUND_BY_A_SHELL: u8 = 127;
    let is_packed = options.files.root.is_none() && options.files.image.is_none() && !options.machine.hosted;
    if status == NOT_FOUND_BY_A_SHELL && is_packed && std::io::stderr().is_terminal() {
        say(b"synth: only what the program needs was packed; synth run --root host shows all that is installed\n");
    }
}

/// What a run needs: all packed for a virtual machine, or laid over the host's files. What was left out is told.
pub fn prepare(
    program: &OsStr,
    machine: &MachineOptions,
    files: (&FileOptions, Option<&pack::Container>),
    terminals: Terminals,
) -> Result<Packed, Failure> {
    let packed = prepare_quietly(program, machine, files, terminals)?;
    if let Some(left_out) = packed.tree.left_out() {
        say(format!("synth: {left_out}\n").as_bytes());
    }
    Ok(packed)
}

/// Errors: a network where there is none, and ports that lead nowhere.
fn check_network(machine: &MachineOptions) -> Result<(), Failure> {
    let asks = machine.net.as_ref().is_some_and(|wire| *wire != Wire::None) || machine.pcap.is_some();
    if machine.hosted && (asks || !machine.publish.is_empty()) {
        let help = "leave it out: there programs reach each other by 127.0.0.1, and nobody else";
        return Err(Failure::new(TOOL, "--hosted: this machine has no network but its own", help));
    }
    if !machine.publish.is_empty() && !matches!(machine.net, None | Some(Wire::User)) {
        let help = "ports are led inside by --net user; a tap is reached by its own addresses";
        return Err(Failure::new(TOOL, "--publish: no port leads there", help));
    }
    Ok(())
}

/// Errors: sound where there is none, and a rate of nothing.
fn check_sound(machine: &MachineOptions) -> Result<(), Failure> {
    if machine.hosted && machine.sound != Wish::None {
        let help = "leave --hosted out, or let the program write a file";
        return Err(Failure::new(TOOL, "--hosted: this machine has no sound device", help));
    }
    if machine.sound_rate.is_some() && !matches!(machine.sound, Wish::Wav(_)) {
        let help = "it is the rate of a file: --sound wav:FILE --sound-rate HERTZ";
        return Err(Failure::new(TOOL, "--sound-rate: there is no file to have it", help));
    }
    Ok(())
}

fn prepare_quietly(
    program: &OsStr,
    machine: &MachineOptions,
    (files, container): (&FileOptions, Option<&pack::Container>),
    terminals: Terminals,
) -> Result<Packed, Failure> {
    check_network(machine)?;
    check_sound(machine)?;
    if machine.hosted && !files.share.is_empty() {
        let help = "leave it out: with --hosted programs see the host's own files";
        return Err(Failure::new(TOOL, "--share: there is nothing to share with the hosted machine", help));
    }
    if files.is_host_root() {
        if machine.hosted {
            let help = "leave it out: with --hosted programs see the host's own files";
            return Err(Failure::new(TOOL, "--root host: the hosted machine has the host's root already", help));
        }
        return pack::over_host(program, files);
    }
    let whole_archive = files.root.as_ref().is_some_and(|root| root.is_file());
    if machine.hosted && !whole_archive {
        return pack::lay_over(program, files);
    }
    if !files.memory.is_empty() {
        let help = "it belongs to --hosted; how much memory the machine has is said with --mem SIZE";
        return Err(Failure::new(TOOL, "--memory: all folders are in memory already", help));
    }
    let bytes_max = archive_bytes_max(machine.mem, host_memory_mib());
    pack::pack(program, files, container, (terminals.any(), bytes_max))
}

/// Boots a machine with what was packed.
pub fn start(
    mut packed: Packed,
    argv: Vec<Vec<u8>>,
    options: &MachineOptions,
    console: Console,
) -> Result<u8, Failure> {
    if options.hosted {
        return start_hosted(packed, argv, options, console);
    }
    add_names(&mut packed, options)?;
    let kernel = match (&options.kernel, options.monitor) {
        (None, true) => kernel::find_with_monitor()?,
        (named, _) => kernel::find(named.as_deref())?,
    };
    let choice = accel::choose(options.accel, options.icount, &accel::KvmFacts::of_host())?;
    let config = configuration(&packed, argv, options, console.terminals);
    let image = Image::plan(&packed.tree, &config)?;
    let archive_bytes = image.bytes();
    let asked = options.mem.or_else(|| packed.shares.iter().any(pack::Share::is_root).then_some(HOST_ROOT_MEMORY_MIB));
    let memory_mib = memory_mib(asked, archive_bytes.div_ceil(1 << 20), host_memory_mib())?;
    // The file is inherited, and must not be closed before the machine has started.
    let (_file, archive) = place(&image, memory_mib)?;
    if let Some(warning) = &choice.warning {
        say(format!("warning: {warning}\n").as_bytes());
    }
    if options.verbose {
        say(format!("synth: accelerator {}\n", choice.why).as_bytes());
        say(format!("synth: {archive_bytes} bytes packed, {memory_mib} MiB of memory\n").as_bytes());
    }
    if options.gdb {
        say(format!("synth: connect with: gdb {} -ex 'target remote :1234'\n", kernel.display()).as_bytes());
    }
    let machine = Machine {
        accel: choice.accel,
        icount: options.icount,
        memory_mib,
        kernel,
        archive,
        wait_for_debugger: options.gdb,
        shares: packed.shares.iter().map(folder).collect(),
        network: network(options),
        sound: Sound::prepare(&options.sound, options.sound_rate)?,
        kernel_arguments: format!("tsc_hz={} {}", config.tsc_hz, options.kernel_arguments),
    };
    let wishes = wishes(options)?;
    let status = machine::run(&machine, console, &wishes);
    machine.sound.finish()?;
    status
}

/// A run that shall repeat exactly knows nothing of the world, unless it is asked for.
fn network(options: &MachineOptions) -> Network {
    let usual = if options.icount && options.publish.is_empty() { Wire::None } else { Wire::User };
    Network {
        wire: options.net.clone().unwrap_or(usual),
        forwards: options.publish.clone(),
        capture: options.pcap.clone(),
    }
}

/// Who knows names, and which names are known.
fn add_names(packed: &mut Packed, options: &MachineOptions) -> Result<(), Failure> {
    let host = |path| std::fs::read_to_string(path).unwrap_or_default();
    let network = network(options);
    packed.tree.ensure_file("/etc/hosts", net::hosts(&host("/etc/hosts")).as_bytes())?;
    if network.wire == Wire::None {
        return Ok(());
    }
    packed.tree.ensure_file("/etc/resolv.conf", network.resolv_conf(&host("/etc/resolv.conf")).as_bytes())
}

fn folder(share: &pack::Share) -> Folder {
    Folder { host: share.host.clone(), manner: share.manner }
}

/// Starts the hosted machine with what was packed.
fn start_hosted(
    mut packed: Packed,
    argv: Vec<Vec<u8>>,
    options: &MachineOptions,
    console: Console,
) -> Result<u8, Failure> {
    if packed.outside.is_none() {
        packed.tree.ensure_file("/etc/hosts", net::hosts("").as_bytes())?;
    }
    let kernel = kernel::find_hosted(options.kernel.as_deref())?;
    let config = configuration(&packed, argv, options, console.terminals);
    let image = Image::plan(&packed.tree, &config)?;
    let (archive, archive_bytes) = (image.write()?, image.bytes());
    let memory_mib = within(options.mem.unwrap_or(HOSTED_MEMORY_MIB), host_memory_mib())?;
    if options.verbose {
        say(format!("synth: {archive_bytes} bytes packed, {memory_mib} MiB of memory beside them\n").as_bytes());
    }
    let machine = Hosted {
        image: &kernel,
        archive: archive.as_raw_fd(),
        memory_mib,
        tsc_hz: config.tsc_hz,
        trees: packed.outside.iter().flat_map(|outside| &outside.folders).map(|(_, fd)| fd.as_raw_fd()).collect(),
        wait_for_debugger: options.gdb,
        counts: options.counts,
        perf_map: options.perf_map,
        arguments: &options.kernel_arguments,
    };
    let wishes = wishes(options)?;
    machine::hosted::run(&machine, console, &wishes)
}

/// A crash is told where somebody looks; a script that compares streams sees what it sees on Linux.
fn wishes(options: &MachineOptions) -> Result<Wishes, Failure> {
    Ok(Wishes {
        verbose: options.verbose,
        counts: options.counts,
        crash_report: options.crash_report || options.verbose || std::io::stderr().is_terminal(),
        timeout: options.timeout,
        trace: options.trace.as_deref().map(TraceFile::open).transpose()?,
    })
}

fn configuration(packed: &Packed, argv: Vec<Vec<u8>>, options: &MachineOptions, terminals: Terminals) -> Config {
    let [rows, columns, ..] = terminals.window_size();
    let mut seed = [0; 32];
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    if !options.icount {
        let _ = rustix::rand::getrandom(&mut seed[..], rustix::rand::GetRandomFlags::empty());
    }
    // Whoever sees the host's files is who they are there; in a machine of its own the program is root.
    let user = match &packed.user {
        Some(user) => (user.id, user.group, user.groups.clone()),
        None => packed.outside.as_ref().map_or((0, 0, Vec::new()), |_| host_user()),
    };
    let shared = packed.shares.iter().map(|share| share.guest.as_os_str().as_encoded_bytes().to_vec());
    let laid = packed.outside.iter().flat_map(|outside| &outside.folders).map(|(path, _)| path.clone());
    let folders = laid.chain(shared).collect();
    let (host_user, host_group, _) = host_user();
    Config {
        program: packed.program.clone(),
        argv,
        env: packed.env.clone(),
        cwd: packed.cwd.clone(),
        hostname: b"synthesis".to_vec(),
        network: if options.hosted { Vec::new() } else { network(options).addresses().into() },
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
        umask: if packed.outside.is_some() { host_umask() } else { 0o022 },
        seed,
        user: user.0,
        group: user.1,
        groups: user.2,
        host_user,
        host_group,
        folders,
        memory: packed.outside.iter().flat_map(|outside| outside.memory.clone()).collect(),
    }
}

/// User, group and supplementary groups of this process.
fn host_user() -> (u32, u32, Vec<u32>) {
    let groups = rustix::process::getgroups().unwrap_or_default();
    let groups = groups.into_iter().map(|group| group.as_raw()).collect();
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw(), groups)
}

/// This process's file creation mask, which can only be read by changing it.
fn host_umask() -> u32 {
    let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    rustix::process::umask(mask);
    mask.bits() & 0o777
}

/// Memory and swap of this host; `None` where it does not say.
fn host_memory_mib() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = |key: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
        rest.trim_end_matches("kB").trim().parse::<u64>().ok()
    };
    Some((kib("MemTotal:")? + kib("SwapTotal:").unwrap_or(0)) / 1024)
}

/// A machine may be given more than is free now, because it takes only what it touches; not more than there is.
fn within(asked_mib: u64, host_mib: Option<u64>) -> Result<u64, Failure> {
    match host_mib {
        Some(host_mib) if asked_mib > host_mib => Err(Failure::new(
            TOOL,
            format!("the machine would get {asked_mib} MiB of memory, but this host has {host_mib} MiB with its swap"),
            format!("give it less with --mem, at most {host_mib}M"),
        )),
        _ => Ok(asked_mib),
    }
}

/// Writes the archive to where the machine will find it. One that is too large to be loaded is put into the machine's memory.
fn place(image: &Image, memory_mib: u64) -> Result<(File, Archive), Failure> {
    let bytes = image.bytes();
    if bytes <= LOADED_BYTES_MAX {
        let file = image.write()?;
        let fd = file.as_raw_fd();
        return Ok((file, Archive::Module(fd)));
    }
    let file = image.write_at(HIGH_MEMORY_OFFSET, memory_mib << 20)?;
    let memory = file.as_raw_fd();
    Ok((file, Archive::InMemory { memory, bytes }))
}

/// How many bytes of files there is room for, whatever else the machine needs: known before anything is packed.
fn archive_bytes_max(asked: Option<u64>, host_mib: Option<u64>) -> u64 {
    let memory_mib = asked.unwrap_or(MEMORY_MAX_MIB).min(host_mib.unwrap_or(MEMORY_MAX_MIB)).min(MEMORY_MAX_MIB);
    memory_mib.saturating_sub(MEMORY_BESIDE_ARCHIVE_MIB) << 20
}

/// The machine's memory: what was asked for if the archive fits and the host has it, otherwise the default or what the archive
/// needs.
fn memory_mib(asked: Option<u64>, archive_mib: u64, host_mib: Option<u64>) -> Result<u64, Failure> {
    let is_loaded = archive_mib <= LOADED_BYTES_MAX >> 20;
    let needed = archive_mib + if is_loaded { MEMORY_BESIDE_ARCHIVE_MIB } else { HIGH_MEMORY_OFFSET >> 20 };
    let mib = match asked {
        Some(asked) if asked < needed => {
            return Err(Failure::new(
                TOOL,
                format!("the program and its files need {needed} MiB of memory, but --mem gives {asked} MiB"),
                format!("give it more: --mem {}M", needed.next_multiple_of(64)),
            ));
        }
        Some(asked) => asked,
        None if is_loaded => MEMORY_DEFAULT_MIB.max((archive_mib * 2 + 64).next_multiple_of(64)),
        None => needed.next_multiple_of(64),
    };
    within(mib, host_mib)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_grows_with_the_archive_unless_it_was_asked_for() {
        assert_eq!(memory_mib(None, 3, None).unwrap(), 256);
        assert_eq!(memory_mib(None, 300, None).unwrap(), 704);
        assert_eq!(memory_mib(Some(16), 3, None).unwrap(), 16);
        assert_eq!(memory_mib(Some(16), 100, None).unwrap_err().status, TOOL);
        // One that is not loaded lies above 4 GiB, behind 3 GiB that are the program's.
        assert_eq!(memory_mib(None, 3000, None).unwrap(), 6080);
        assert!(memory_mib(Some(4096), 3000, None).unwrap_err().help.contains("--mem 6080M"));
        assert_eq!(archive_bytes_max(Some(100), None), 94 << 20);
        assert_eq!(archive_bytes_max(None, Some(1000)), 994 << 20);
    }

    #[test]
    fn no_machine_gets_more_memory_than_the_host_has() {
        assert_eq!(memory_mib(Some(6144), 3, Some(6144)).unwrap(), 6144);
        let failure = memory_mib(Some(131_072), 3, Some(24_000)).unwrap_err();
        assert_eq!(failure.status, TOOL);
        assert!(failure.error.contains("131072 MiB") && failure.error.contains("24000 MiB"), "{failure}");
        assert!(host_memory_mib().is_some_and(|mib| mib > 64));
    }
}
