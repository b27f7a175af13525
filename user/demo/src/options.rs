//! The command line.

use std::path::PathBuf;

use crate::RATE;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Demo {
    Music,
    Cd,
    Rhythm,
    Fft,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    pub demo: Demo,
    /// How long the sound is.
    pub seconds: f64,
    pub wav: Option<PathBuf>,
    /// The device that plays it.
    pub play: Option<PathBuf>,
    /// Frames that go through a pipe at a time.
    pub block: usize,
    /// A thread for each of so many notes, instead of four voices.
    pub notes: Option<usize>,
    /// A converter takes the frames one by one as time goes on.
    pub paced: bool,
    /// Only look whether all of this makes sense.
    pub only_check: bool,
}

/// Most notes at once.
pub const NOTES_MAX: usize = 1000;
/// Blocks are powers of two up to this, and notes begin and end at multiples of it: so samples do not depend on blocks.
pub const BLOCK_MAX: usize = 64;
const SECONDS_MAX: f64 = 3600.0;
pub const DEVICE: &str = "/dev/dsp";
const HELP: &str = "\nhelp: synth-demo music|cd|rhythm|fft [--for SECONDS] [--wav FILE] [--play] [--block N] [--notes N] [--paced] \
                    [--check]";

impl Options {
    /// # Errors
    /// A sentence, with what to do.
    pub fn of_process() -> Result<Options, String> {
        Options::of(std::env::args().skip(1))
    }

    fn of(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
        let demo = match words.next().as_deref() {
            Some("music") => Demo::Music,
            Some("cd") => Demo::Cd,
            Some("rhythm") => Demo::Rhythm,
            Some("fft") => Demo::Fft,
            Some(other) => return Err(format!("there is no demonstration {other}{HELP}")),
            None => return Err(format!("no demonstration was named{HELP}")),
        };
        let seconds = if demo == Demo::Rhythm { 12.0 } else { 5.0 };
        let mut options = Options {
            demo,
            seconds,
            wav: None,
            play: None,
            block: BLOCK_MAX,
            notes: None,
            paced: false,
            only_check: false,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value{HELP}"));
            match word.as_str() {
                "--for" => options.seconds = seconds_of(&value()?)?,
                "--wav" => options.wav = Some(value()?.into()),
                "--play" => options.play = Some(DEVICE.into()),
                "--check" => options.only_check = true,
                "--paced" => options.paced = true,
                "--block" => options.block = block_of(&value()?)?,
                "--notes" => options.notes = Some(notes_of(&value()?)?),
                _ => return Err(format!("unknown option {word}{HELP}")),
            }
        }
        options.check()
    }

    /// Refuses what this demonstration has no use for.
    fn check(self) -> Result<Options, String> {
        let is = |demo| self.demo == demo;
        let refuse = |option: &str, why: &str| Err(format!("{option}: {why}\nhelp: leave it out"));
        if !is(Demo::Music) && self.notes.is_some() {
            return refuse("--notes", "only music has notes");
        }
        if !is(Demo::Music) && self.block != BLOCK_MAX {
            return refuse("--block", "only music says how much goes through a pipe at a time");
        }
        if !is(Demo::Music) && self.paced {
            return refuse("--paced", "only music is taken by a converter as time goes on");
        }
        if is(Demo::Fft) && self.wav.is_some() {
            return refuse("--wav", "fft looks at sound and makes none");
        }
        if !is(Demo::Music) && self.play.is_some() {
            return refuse("--play", "only music is played; the others write a file with --wav");
        }
        if self.paced && self.play.is_some() {
            return refuse("--paced", "the device of --play has a clock of its own");
        }
        if is(Demo::Rhythm) && self.seconds < 6.0 {
            return Err("--for: a beat is not found in less than six seconds\nhelp: --for 6s, or longer".into());
        }
        Ok(self)
    }

    /// Frames in all, whole blocks of the largest size.
    pub fn frames(&self) -> usize {
        ((self.seconds * RATE as f64) as usize / BLOCK_MAX).max(1) * BLOCK_MAX
    }
}

fn seconds_of(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('s').unwrap_or(text).parse::<f64>().ok();
    match number {
        Some(seconds) if seconds > 0.0 && seconds <= SECONDS_MAX => Ok(seconds),
        _ => Err(format!("--for {text}: no time\nhelp: seconds, such as 5 or 2.5s, up to {SECONDS_MAX}")),
    }
}

fn block_of(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(block) if block.is_power_of_two() && block <= BLOCK_MAX => Ok(block),
        _ => Err(format!("--block {text}: no such block\nhelp: 1, 2, 4, 8, 16, 32 or {BLOCK_MAX} frames")),
    }
}

fn notes_of(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(notes) if (1..=NOTES_MAX).contains(&notes) => Ok(notes),
        _ => Err(format!("--notes {text}: no such number\nhelp: 1 to {NOTES_MAX}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Options, String> {
        Options::of(line.split_whitespace().map(String::from))
    }

    #[test]
    fn every_option_is_taken_or_refused_with_help() {
        let options = of("music --for 2.5s --wav a.wav --block 1 --notes 1000").unwrap();
        assert_eq!((options.seconds, options.block, options.notes), (2.5, 1, Some(1000)));
        assert_eq!(options.frames() % BLOCK_MAX, 0);
        let refused = [
            "",
            "song",
            "music --for",
            "music --for 0",
            "music --for -1s",
            "music --for nan",
            "music --block 3",
            "music --block 128",
            "music --notes 0",
            "music --notes 1001",
            "music --loud",
            "music --paced --play",
            "cd --notes 3",
            "cd --play",
            "fft --wav x",
            "rhythm --block 1",
            "rhythm --for 2s",
            "fft --paced",
        ];
        for line in refused {
            let error = of(line).unwrap_err();
            assert!(error.contains("\nhelp: "), "{line}: {error}");
        }
    }
}
