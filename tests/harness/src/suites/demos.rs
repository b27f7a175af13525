//! The demonstrations: what they compute is the same, bit for bit, on this host's Linux and on Synthesis; and they keep the time that a
//! converter gives them.

use std::process::Command;
use std::time::Duration;

use crate::options::Options;
use crate::process;
use crate::report::Tally;
use crate::side::runner_command;

/// Each with what it shows.
const SAME: &[(&str, &str)] = &[
    ("four_voices_by_single_frames", "music --for 1 --block 1"),
    ("four_voices_by_blocks", "music --for 5 --block 64"),
    ("a_thread_for_each_of_a_thousand_notes", "music --for 0.5 --notes 1000"),
    ("a_cd_is_oversampled", "cd --for 1"),
    ("beats_are_found", "rhythm --for 12"),
    ("spectra_are_taken", "fft --for 2"),
];

/// # Errors
/// When the demonstrations do not build.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    let built = Command::new(options.repo.join("user/demo/build.sh")).output();
    let built = built.map_err(|error| format!("cannot run user/demo/build.sh: {error}"))?;
    if !built.status.success() {
        return Err(format!("user/demo/build.sh failed:\n{}", String::from_utf8_lossy(&built.stderr)));
    }
    let demo = Demo { options, program: options.repo.join("target/user/synth-demo").display().to_string() };
    for (name, line) in SAME {
        let name = format!("demos/{name}_as_on_linux");
        if options.selects(&name) {
            tally.record(&name, demo.same(line));
        }
    }
    let own: [Case<'_>; 2] = [
        ("demos/the_beat_is_within_two_percent", Demo::beats),
        ("demos/the_spectrum_keeps_up_with_the_stream", Demo::spectrum),
    ];
    // Time is counted in instructions there, so nothing depends on how busy this host is.
    let counted: [Case<'_>; 4] = [
        ("demos/music_is_heard_as_linux_writes_it", Demo::heard),
        ("demos/a_converter_never_waits_for_four_voices", Demo::voices_in_time),
        ("demos/a_converter_never_waits_for_two_hundred_notes", Demo::notes_in_time),
        ("demos/the_synthesized_filter_takes_fewer_instructions", Demo::filters),
    ];
    let counted = if options.is_hosted() { &[][..] } else { &counted[..] };
    for (name, case) in own.iter().chain(counted).filter(|(name, _)| options.selects(name)) {
        tally.record(name, case(&demo));
    }
    Ok(())
}

/// A name, and what is tried.
type Case<'a> = (&'static str, fn(&Demo<'a>) -> Result<(), String>);

struct Demo<'a> {
    options: &'a Options,
    program: String,
}

impl Demo<'_> {
    /// What a demonstration says on Synthesis, with `options` of the runner's before it.
    fn says(&self, options: &[&str], line: &str) -> Result<String, String> {
        let mut command = runner_command(&self.options.runner);
        command.args(options).arg(&self.program).args(line.split(' '));
        self.outcome(command, line)
    }

    fn outcome(&self, command: Command, line: &str) -> Result<String, String> {
        let outcome = process::run(command, Vec::new(), self.options.case_timeout.max(Duration::from_secs(180)))?;
        if outcome.status != 0 {
            return Err(format!("{line}: status {}: {}", outcome.status, String::from_utf8_lossy(&outcome.stderr)));
        }
        Ok(String::from_utf8_lossy(&outcome.stdout).replace('\r', ""))
    }

    fn same(&self, line: &str) -> Result<(), String> {
        let mut on_linux = Command::new(&self.program);
        on_linux.args(line.split(' '));
        let [expected, got] = [self.outcome(on_linux, line)?, self.says(&[], line)?].map(|said| samples(&said));
        match (expected, got) {
            (Some(expected), Some(got)) if expected == got => Ok(()),
            (expected, got) => Err(format!("{line}: Linux says {expected:?}, Synthesis {got:?}")),
        }
    }

    fn beats(&self) -> Result<(), String> {
        let said = self.says(&[], "rhythm --for 12")?;
        let found: Vec<f64> = said.lines().filter_map(|line| number_before(line, " % from ")).collect();
        let is_good = found.len() == 3 && found.iter().all(|percent| percent.abs() < 2.0);
        if is_good { Ok(()) } else { Err(format!("three beats within 2 %: {said}")) }
    }

    fn spectrum(&self) -> Result<(), String> {
        let said = self.says(&[], "fft --for 2")?;
        let points = said.lines().find_map(|line| number_before(line, " points for each second"));
        let fast = said.lines().find_map(|line| number_before(line, " points a second"));
        let is_good = [points, fast].iter().all(|points| points.is_some_and(|points| points >= 88_200.0));
        if is_good { Ok(()) } else { Err(format!("88,200 points a second: {said}")) }
    }

    fn in_time(&self, line: &str) -> Result<(), String> {
        let said = self.says(&["--icount"], line)?;
        if said.lines().any(|line| line == "late 0") { Ok(()) } else { Err(format!("{line}: {said}")) }
    }

    fn voices_in_time(&self) -> Result<(), String> {
        ["1", "8", "64"].iter().try_for_each(|block| self.in_time(&format!("music --paced --for 1 --block {block}")))
    }

    fn notes_in_time(&self) -> Result<(), String> {
        self.in_time("music --paced --for 1 --notes 200")
    }

    /// What the machine's sound device has played holds the samples that the program writes into a file on Linux.
    fn heard(&self) -> Result<(), String> {
        let folder = self.options.repo.join("target/tests");
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let [expected, played] = ["demo-linux.wav", "demo-played.wav"].map(|name| folder.join(name));
        let line = "music --for 1 --wav";
        let mut on_linux = Command::new(&self.program);
        on_linux.args(line.split(' ')).arg(&expected);
        self.outcome(on_linux, line)?;
        self.says(&["--icount", "--sound", &format!("wav:{}", played.display())], "music --for 1 --play")?;
        let [expected, played] = [expected, played].map(|path| std::fs::read(&path).unwrap_or_default());
        const HEADER_BYTES: usize = 44;
        let samples = expected.get(HEADER_BYTES..).unwrap_or_default();
        // It begins with what the device plays before the first sample comes.
        let silence = played.iter().skip(HEADER_BYTES).take_while(|byte| **byte == 0).count();
        let own_silence = samples.iter().take_while(|byte| **byte == 0).count();
        let from = (HEADER_BYTES + silence).saturating_sub(own_silence);
        let heard = played.get(from..from + samples.len()).unwrap_or_default();
        if !samples.is_empty() && heard == samples {
            return Ok(());
        }
        Err(format!("{} bytes of samples, {} bytes heard: they differ", samples.len(), played.len()))
    }

    fn filters(&self) -> Result<(), String> {
        let said = self.says(&["--icount"], "cd --for 0.5")?;
        let of = |name: &str| {
            said.lines().find(|line| line.trim_start().starts_with(name)).and_then(|line| number_before(line, " ns"))
        };
        match (of("synthesized"), of("compiled")) {
            (Some(synthesized), Some(compiled)) if synthesized * 4.0 < compiled => Ok(()),
            _ => Err(format!("synthesized in less than a quarter: {said}")),
        }
    }
}

/// The line that sums the samples up.
fn samples(said: &str) -> Option<String> {
    said.lines().find(|line| line.starts_with("samples ")).map(String::from)
}

/// The number in front of some words.
fn number_before(line: &str, words: &str) -> Option<f64> {
    line.split_once(words)?.0.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_what_demonstrations_say() {
        assert_eq!(number_before("march  119.99 beats a minute, -0.01 % from 120.00", " % from "), Some(-0.01));
        assert_eq!(number_before("  synthesized   3.50 ns, 0.1 % of", " ns"), Some(3.5));
        assert_eq!(number_before("nothing", " ns"), None);
        assert_eq!(samples("x\nsamples 3 checksum 4\n"), Some("samples 3 checksum 4".into()));
    }
}
