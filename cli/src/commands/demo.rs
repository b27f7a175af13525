//! `synth demo`: the papers' demonstrations, each one command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;

use crate::checkout;
use crate::failure::{Failure, SIGNALLED, TOOL, UNAVAILABLE};
use crate::options::{DemoName, DemoOptions, RunOptions};

use super::run;

/// Where the virtual machine writes the sound, before it comes back.
const GUEST_WAV: &str = "/tmp/demo.wav";

const LIST: &str = "\
synth demo music    four voices, two effects and a converter, a thread each, through pipes; --notes N: a thread for each note
synth demo cd       a CD's samples, four for each, by a filter that is synthesized, beside the compiled one
synth demo rhythm   finds the beat of three pieces, divides it by sixteen, and drums to it
synth demo fft      spectra of 1,024 points of a stream, drawn as bars

All take --for 5s, and --hosted, --icount or --linux in place of the virtual machine; all but fft --wav FILE. docs/demos.md says more.";

/// Runs a demonstration, or lists them.
pub fn demo(options: &DemoOptions) -> Result<u8, Failure> {
    let Some(name) = options.name else {
        println!("{LIST}");
        return Ok(0);
    };
    let root = checkout::project_root();
    let program = build(&root)?;
    let wav = options.wav.as_deref().map(absolute).transpose()?;
    let status = on_linux(&program, with_check(arguments(name, options, wav.as_deref())))?;
    if status != 0 {
        return Ok(status); // it has said why
    }
    if options.linux {
        return on_linux(&program, arguments(name, options, wav.as_deref()));
    }
    if options.hosted {
        return on_hosted(&program, name, options, wav.as_deref());
    }
    let mut words: Vec<OsString> = Vec::new();
    if let Some(wav) = &wav {
        let mut out = OsString::from(format!("{GUEST_WAV}:"));
        out.push(wav);
        words.extend(["--out".into(), out]);
    }
    words.extend(options.icount.then(|| "--icount".into()));
    words.extend(options.sound.iter().flat_map(|sound| ["--sound".into(), sound.into()]));
    words.push(program.into());
    words.extend(arguments(name, options, wav.as_ref().map(|_| Path::new(GUEST_WAV))));
    on_synthesis(words)
}

fn on_synthesis(words: Vec<OsString>) -> Result<u8, Failure> {
    let options = RunOptions::of_words(words).map_err(|error| Failure::new(TOOL, error, "see synth demo --help"))?;
    run::run(&options)
}

/// The hosted machine's programs have the host's own files, but for /tmp, which is in memory: the sound is written beside the program,
/// and brought where it belongs.
fn on_hosted(program: &Path, name: DemoName, options: &DemoOptions, wav: Option<&Path>) -> Result<u8, Failure> {
    let made = program.with_file_name(format!("demo.{}.wav", std::process::id()));
    let mut words: Vec<OsString> = vec!["--hosted".into(), program.into()];
    words.extend(arguments(name, options, wav.map(|_| made.as_path())));
    let status = on_synthesis(words);
    let brought = wav.map_or(Ok(()), |wav| std::fs::copy(&made, wav).map(|_| ()));
    let _ = std::fs::remove_file(&made);
    brought.map_err(|error| Failure::new(TOOL, format!("--wav: {error}"), "name a file that can be written"))?;
    status
}

/// The same, but the program only looks whether it can do that.
fn with_check(mut words: Vec<OsString>) -> Vec<OsString> {
    words.push("--check".into());
    words
}

/// The program's own words.
fn arguments(name: DemoName, options: &DemoOptions, wav: Option<&Path>) -> Vec<OsString> {
    let name = name.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default();
    let mut words: Vec<OsString> = vec![name.into()];
    for (option, value) in [("--for", &options.seconds), ("--block", &options.block), ("--notes", &options.notes)] {
        words.extend(value.iter().flat_map(|value| [option.into(), value.into()]));
    }
    words.extend(wav.iter().flat_map(|wav| ["--wav".into(), wav.into()]));
    for (option, is_given) in [("--play", options.play || options.sound.is_some()), ("--paced", options.paced)] {
        words.extend(is_given.then(|| option.into()));
    }
    words
}

/// The program is started elsewhere, and its file belongs where it was asked for.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::new(TOOL, format!("--wav {}: {error}", path.display()), "name a file"))
}

/// Builds the demonstrations from the checkout, if anything of them has changed.
fn build(root: &Path) -> Result<PathBuf, Failure> {
    let script = root.join("user/demo/build.sh");
    let built = Command::new(&script).status();
    let is_built = built.map_err(|error| {
        let help = "start ./synth in a checkout: the demonstrations are built from there";
        Failure::new(UNAVAILABLE, format!("{}: {error}", script.display()), help)
    })?;
    if !is_built.success() {
        return Err(Failure::new(UNAVAILABLE, "the demonstrations do not build", "see the messages above"));
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    Ok(target.join("user/synth-demo"))
}

fn on_linux(program: &Path, arguments: Vec<OsString>) -> Result<u8, Failure> {
    use std::os::unix::process::ExitStatusExt;
    let status = Command::new(program).args(arguments).status().map_err(|error| {
        Failure::new(TOOL, format!("{}: {error}", program.display()), "remove it, and it is built anew")
    })?;
    let signalled = || status.signal().map_or(TOOL, |signal| SIGNALLED + signal as u8);
    Ok(status.code().map_or_else(signalled, |code| code as u8))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::options::{Command as Subcommand, Options};

    fn options(line: &str) -> Result<DemoOptions, clap::Error> {
        match Options::try_parse_from(["synth", "demo"].into_iter().chain(line.split_whitespace()))?.command {
            Subcommand::Demo(options) => Ok(options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_option_reaches_the_program() {
        let given = options("music --for 2s --wav x.wav --block 1 --notes 7 --paced --play").unwrap();
        let words = arguments(DemoName::Music, &given, Some(Path::new("/tmp/x.wav")));
        let expected =
            ["music", "--for", "2s", "--block", "1", "--notes", "7", "--wav", "/tmp/x.wav", "--play", "--paced"];
        assert_eq!(words, expected);
    }

    #[test]
    fn what_makes_no_sense_together_is_refused() {
        for line in [
            "song",
            "--for 5s",
            "music --hosted --linux",
            "music --icount --linux",
            "music --sound host --hosted",
            "music --hosted --icount",
        ] {
            assert!(options(line).is_err(), "{line}");
        }
    }

    #[test]
    fn all_that_are_there_are_listed() {
        for name in DemoName::value_variants() {
            let name = name.to_possible_value().unwrap();
            assert!(LIST.contains(&format!("synth demo {} ", name.get_name())));
        }
    }
}
