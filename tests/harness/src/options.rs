//! The command line of the test command.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the user asked for.
#[derive(Clone)]
pub struct Options {
    /// The words that start a program on Synthesis; options and the program follow them.
    pub runner: Vec<String>,
    /// Only cases whose name contains this.
    pub filter: Option<String>,
    /// Of these starts of names one must fit, too; empty: any name.
    pub choice: &'static [&'static str],
    /// No case whose name contains one of these.
    pub left_out: &'static [&'static str],
    /// Boots that run at the same time.
    pub jobs: usize,
    /// A boot of its own for each case.
    pub own_boot: bool,
    /// The longest a single case may take.
    pub case_timeout: Duration,
    /// Guest memory, in the words of `synth run --mem`.
    pub mem: String,
    /// Where the host side runs its cases.
    pub scratch: PathBuf,
    /// Keep the scratch folders afterwards.
    pub keep: bool,
    /// Name each case that passes.
    pub verbose: bool,
    /// The root of the project.
    pub repo: PathBuf,
}

impl Options {
    /// Reads the options after the name of the suite.
    ///
    /// # Errors
    /// A sentence that names the option that is unknown or lacks its value.
    pub fn parse(args: &[String]) -> Result<Options, String> {
        let repo = repository_root();
        let mut options = Options {
            runner: vec![repo.join("target/release/synth").display().to_string(), "run".into()],
            filter: None,
            choice: &[],
            left_out: &[],
            jobs: 2,
            own_boot: false,
            case_timeout: Duration::from_secs(60),
            mem: "512M".into(),
            scratch: default_scratch(),
            keep: false,
            verbose: false,
            repo,
        };
        let mut words = args.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().cloned().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--runner" => options.runner = value()?.split_whitespace().map(String::from).collect(),
                "--filter" => options.filter = Some(value()?),
                "--jobs" => options.jobs = number(word, &value()?)?.max(1),
                "--own-boot" => options.own_boot = true,
                "--case-timeout" => options.case_timeout = Duration::from_secs(number(word, &value()?)? as u64),
                "--mem" => options.mem = value()?,
                "--scratch" => options.scratch = value()?.into(),
                "--keep" => options.keep = true,
                "--verbose" => options.verbose = true,
                _ => return Err(format!("unknown option {word}")),
            }
        }
        if options.runner.is_empty() {
            return Err("--runner needs at least one word".into());
        }
        Ok(options)
    }

    /// Whether the programs run inside a Linux process, without a virtual machine.
    pub fn is_hosted(&self) -> bool {
        self.runner.iter().any(|word| word == "--hosted")
    }

    /// Whether a case whose name starts so can be in the choice: what cannot need not be built.
    pub fn may_choose(&self, start: &str) -> bool {
        let fits = |wanted: &&str| wanted.starts_with(start) || start.starts_with(*wanted);
        self.choice.is_empty() || self.choice.iter().any(fits)
    }

    /// Whether a case of this name was asked for.
    pub fn selects(&self, name: &str) -> bool {
        self.filter.as_ref().is_none_or(|part| name.contains(part.as_str()))
            && (self.choice.is_empty() || self.choice.iter().any(|start| name.starts_with(start)))
            && !self.left_out.iter().any(|part| name.contains(part))
    }
}

fn number(option: &str, text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("{option} needs a number, not {text}"))
}

/// The folder with the workspace's Cargo.toml, so that the command works from any folder: the one that it lies in
/// (`target/release/synth-tests`), also when that is a copy, else the one that it was built in.
fn repository_root() -> PathBuf {
    let command = std::env::current_exe().unwrap_or_default();
    around(&command).unwrap_or(Path::new(env!("SYNTHESIS_ROOT"))).components().collect()
}

fn around(command: &Path) -> Option<&Path> {
    command.ancestors().nth(3).filter(|top| top.join("tests/harness/usage.txt").is_file())
}

/// Memory-resident like the guest's file system, where the host has that: directory sizes and holes then agree.
fn default_scratch() -> PathBuf {
    let shm = Path::new("/dev/shm");
    let probe = shm.join(format!("synth-tests-probe-{}", std::process::id()));
    if std::fs::write(&probe, b"").is_ok() {
        let _ = std::fs::remove_file(&probe);
        return shm.into();
    }
    std::env::temp_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_command_tests_the_copied_checkout() {
        let copy = std::env::temp_dir().join(format!("synth-tests-copy-{}", std::process::id()));
        let command = copy.join("target/release/synth-tests");
        assert_eq!(around(&command), None);
        std::fs::create_dir_all(copy.join("tests/harness")).unwrap();
        std::fs::write(copy.join("tests/harness/usage.txt"), "").unwrap();
        assert_eq!(around(&command), Some(copy.as_path()));
        std::fs::remove_dir_all(&copy).unwrap();
        assert!(repository_root().join("Cargo.lock").is_file());
    }
}
