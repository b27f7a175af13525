//! Runs programs in a Linux guest under QEMU and keeps what they answered.
//!
//! The guest's whole root file system is made here: `bench/linux-init.c`, the programs, and the list of
//! runs. Equal kernel, programs, runs and settings give equal instruction counts, so a result is kept
//! under a hash of all four and used again.

use super::compile::{self, Built, Linkage};
use super::cpio::Archive;
use super::error::{BenchError, at};
use super::linux_kernel::{self, LinuxKernel};
use super::suite::Run;
use super::ticks::Outcome;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

pub const QEMU: &str = "qemu-system-x86_64";
/// One thread, one virtual nanosecond per instruction, idle time skipped: exactly repeatable. Without
/// ERMS Linux copies by words; each iteration of a REP instruction counts as an instruction.
pub const MACHINE: &[&str] =
    &["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-cpu", "max,-erms", "-m", "512M"];
const DEVICES: &[&str] = &["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"];
/// The clock on the wall and the processor's random numbers would differ from boot to boot.
const REPEATABLE: &[&str] = &["-rtc", "base=2000-01-01,clock=vm", "-seed", "1"];
const SERIAL: &[&str] = &["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"];
/// Linux at its leanest, so that the comparison is fair to it.
pub const COMMAND_LINE: &str = "console=ttyS0 quiet loglevel=0 mitigations=off audit=0 init_on_alloc=0 init_on_free=0 \
     randomize_kstack_offset=off apparmor=0 lsm=capability preempt=none cgroup_disable=memory";
/// A guest that takes longer is stuck. (The whole paper suite takes about 10 s.)
const TIMEOUT: Duration = Duration::from_secs(600);

/// A Linux kernel, an init, and a place for results.
pub struct Guest {
    kernel: LinuxKernel,
    init: PathBuf,
    cache: PathBuf,
    pub qemu_version: String,
}

impl Guest {
    /// Finds or gets the kernel and builds the init.
    ///
    /// # Errors
    /// `NoLinuxKernel`, `MissingCommand` without QEMU or gcc, `Compile`.
    pub fn prepare(root: &Path, given: Option<&Path>) -> Result<Self, BenchError> {
        let cache = root.join("target/linux");
        let qemu_version = qemu_version()?;
        let kernel = linux_kernel::find(&cache, given)?;
        fs::create_dir_all(&cache).map_err(at(&cache))?;
        let init = cache.join("init");
        compile::compile(&root.join("bench/linux-init.c"), &init, Linkage::Static)?;
        Ok(Self { kernel, init, cache, qemu_version })
    }

    /// As `uname -r` prints it.
    pub fn kernel_version(&self) -> &str {
        &self.kernel.version
    }

    /// Runs all of `runs`, one after the other, in one guest; `fresh` ignores what was kept.
    ///
    /// # Errors
    /// `Guest` when it does not report every run.
    pub fn run(&self, built: &Built, runs: &[Run], linkage: Linkage, fresh: bool) -> Result<Vec<Outcome>, BenchError> {
        self.run_archive(self.root_file_system(built, runs, linkage)?, runs.len(), fresh)
    }

    /// The same of a root file system that was made elsewhere, with so many runs.
    ///
    /// # Errors
    /// As [`Guest::run`].
    pub fn run_archive(&self, root_file_system: Vec<u8>, runs: usize, fresh: bool) -> Result<Vec<Outcome>, BenchError> {
        let kept = self.cache.join(format!("{}.json", self.key(&root_file_system)));
        if !fresh && let Some(outcomes) = read_kept(&kept, runs) {
            eprintln!("Linux {}: kept result ({runs} runs; --fresh measures again)", self.kernel.version);
            return Ok(outcomes);
        }
        eprintln!("Linux {}: booting for {runs} runs", self.kernel.version);
        let archive = self.cache.join(format!("initramfs-{}.cpio", std::process::id()));
        fs::write(&archive, root_file_system).map_err(at(&archive))?;
        let said = self.boot(&archive);
        fs::remove_file(&archive).map_err(at(&archive))?;
        let outcomes = parse(&said?, runs)?;
        fs::write(&kept, serde_json::to_vec(&outcomes).expect("outcomes are plain data")).map_err(at(&kept))?;
        Ok(outcomes)
    }

    /// A root file system with the init, and with what it mounts and runs on.
    ///
    /// # Errors
    /// `File` when the init cannot be read.
    pub fn archive(&self) -> Result<Archive, BenchError> {
        let mut archive = Archive::default();
        ["dev", "proc", "tmp"].into_iter().for_each(|folder| archive.directory(folder));
        archive.character_device("dev/console", 5, 1);
        archive.file("init", &fs::read(&self.init).map_err(at(&self.init))?);
        Ok(archive)
    }

    fn root_file_system(&self, built: &Built, runs: &[Run], linkage: Linkage) -> Result<Vec<u8>, BenchError> {
        let mut archive = self.archive()?;
        for folder in ["bench", "lib", "lib64", "lib/x86_64-linux-gnu"] {
            archive.directory(folder);
        }
        for (name, path) in built {
            archive.file(&format!("bench/{name}"), &fs::read(path).map_err(at(path))?);
        }
        if linkage == Linkage::Dynamic {
            for (inside, path) in compile::shared_libraries() {
                archive.file(inside, &fs::read(&path).map_err(at(&path))?);
            }
        }
        let lines = runs.iter().map(|run| format!("/bench/{} {}\n", run.executable, run.arguments.join(" ")));
        archive.file("runs", lines.collect::<String>().as_bytes());
        Ok(archive.finish())
    }

    fn key(&self, root_file_system: &[u8]) -> String {
        let mut hash = Sha256::new();
        for part in [self.kernel.image.as_slice(), root_file_system] {
            hash.update(part);
        }
        let settings = MACHINE.iter().chain(DEVICES).chain(REPEATABLE).chain(SERIAL);
        for text in settings.chain([&COMMAND_LINE, &self.qemu_version.as_str()]) {
            hash.update(text.as_bytes());
        }
        hex(&hash.finalize())[..16].to_string()
    }

    /// Everything the guest wrote on its serial line.
    fn boot(&self, archive: &Path) -> Result<Vec<u8>, BenchError> {
        let mut qemu = Command::new(QEMU)
            .args(MACHINE.iter().chain(DEVICES).chain(REPEATABLE).chain(SERIAL))
            .arg("-kernel")
            .arg(&self.kernel.path)
            .arg("-initrd")
            .arg(archive)
            .args(["-append", COMMAND_LINE])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|_| missing_qemu())?;
        let mut serial = qemu.stdout.take().expect("stdout is piped");
        let (send, received) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let result = serial.read_to_end(&mut bytes).map(|_| bytes);
            // Nobody listens any more after a timeout.
            let _ = send.send(result);
        });
        let said = received.recv_timeout(TIMEOUT);
        if said.is_err() {
            // It may have ended in this moment; then there is nothing to kill.
            let _ = qemu.kill();
        }
        let status = qemu.wait().map_err(at(QEMU))?;
        match said {
            Ok(Ok(bytes)) if status.success() => Ok(bytes),
            Ok(Ok(_)) => Err(BenchError::Guest { reason: format!("{QEMU}: {status}") }),
            Ok(Err(error)) => Err(BenchError::File { path: QEMU.into(), error }),
            Err(_) => Err(BenchError::Guest { reason: format!("no result after {} s", TIMEOUT.as_secs()) }),
        }
    }
}

fn missing_qemu() -> BenchError {
    BenchError::MissingCommand { command: QEMU, package: "qemu-system-x86" }
}

fn qemu_version() -> Result<String, BenchError> {
    let output = Command::new(QEMU).arg("--version").output().map_err(|_| missing_qemu())?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or("QEMU").to_string())
}

fn read_kept(path: &Path, runs: usize) -> Option<Vec<Outcome>> {
    let outcomes: Vec<Outcome> = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    (outcomes.len() == runs).then_some(outcomes)
}

/// Reads the report that `bench/linux-init.c` describes. What comes before or between reports (firmware,
/// kernel messages) is passed over.
fn parse(said: &[u8], runs: usize) -> Result<Vec<Outcome>, BenchError> {
    let mut outcomes = Vec::new();
    let mut rest = said;
    while outcomes.len() < runs {
        let Some((outcome, after)) = parse_one(rest) else {
            let reason = format!("reported {} of {runs} runs{}", outcomes.len(), last_line(rest));
            return Err(BenchError::Guest { reason });
        };
        outcomes.push(outcome);
        rest = after;
    }
    Ok(outcomes)
}

fn parse_one(said: &[u8]) -> Option<(Outcome, &[u8])> {
    const MARK: &[u8] = b"@run ";
    let start = said.windows(MARK.len()).position(|window| window == MARK)? + MARK.len();
    let length = said[start..].iter().position(|&byte| byte == b'\n')?;
    let head = std::str::from_utf8(&said[start..start + length]).ok()?;
    let mut numbers = head.split(' ').map(|word| word.parse::<usize>().ok());
    let (status, out, err) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let (stdout, rest) = said[start + length + 1..].split_at_checked(out)?;
    let (stderr, rest) = rest.split_at_checked(err)?;
    Some((Outcome::Ended { status: status as i32, stdout: stdout.into(), stderr: stderr.into() }, rest))
}

fn last_line(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    text.lines().rfind(|line| !line.trim().is_empty()).map_or(String::new(), |line| format!("; it last said: {line}"))
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read_between_other_bytes() {
        let said = b"firmware\x1b[0m\n@run 0 3 8\na\nbticks 1\nkernel says\n@run 139 0 0\n@end\n";
        let outcomes = parse(said, 2).unwrap();
        assert_eq!(outcomes[0], Outcome::Ended { status: 0, stdout: b"a\nb".into(), stderr: b"ticks 1\n".into() });
        assert_eq!(outcomes[1], Outcome::Ended { status: 139, stdout: vec![], stderr: vec![] });
    }

    #[test]
    fn a_guest_that_died_is_quoted() {
        let error = parse(b"@run 0 0 0\nKernel panic - not syncing\n", 2).unwrap_err().to_string();
        assert!(error.contains("1 of 2 runs") && error.ends_with("Kernel panic - not syncing"), "{error}");
    }

    /// Boots the guest for real, once: later runs find the result kept. Only where an earlier bench left a
    /// kernel, because a test does not download one.
    #[test]
    fn the_guest_runs_a_program_and_powers_off() {
        use super::super::{Suite, project_root, suite};
        let root = project_root();
        let Ok(guest) = linux_kernel::kept(&root.join("target/linux"))
            .ok_or(())
            .and_then(|_| Guest::prepare(&root, None).map_err(|_| ()))
        else {
            return;
        };
        let programs = suite::select(Suite::Paper, &["1".into()]).unwrap();
        let built = compile::build(&root, &programs, Linkage::Static).unwrap();
        let outcomes = guest.run(&built, &programs[0].runs(true), Linkage::Static, false).unwrap();
        assert_eq!(outcomes[1].stdout(), b"249176\n242927\n");
        assert!(outcomes[1].ticks().unwrap() > 19_000_000, "{:?}", outcomes[1]);
    }

    #[test]
    fn a_cut_report_is_not_a_report() {
        assert!(parse(b"@run 0 30 0\nshort", 1).is_err());
    }
}
