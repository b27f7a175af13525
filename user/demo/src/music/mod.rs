//! Music from threads (S-131, S-68): each voice, or each note, is a thread that makes its wave and writes it into a pipe.
//!
//! ```text
//!   voice ─┐
//!   voice ─┼─► reverberation ─► stereo ─► D/A          4 × 4 + 8 + 8 bytes a frame: 1,411,200 a second
//!   voice ─┤                                           (the paper: 1.4 MB a second)
//!   voice ─┘
//! ```
//! What a thread makes depends on what it reads alone, so the samples do not depend on blocks, queues or schedules.

mod score;

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use synthsignal::{Reverb, Room};

use self::score::Part;
use crate::RATE;
use crate::converter::Converter;
use crate::measure::{Moment, Spent, system};
use crate::options::Options;
use crate::pipe::{Sink, Source, allow_descriptors, pipe};
use crate::tone::{Note, Wave};

/// A page: the least that a pipe of Linux holds.
const QUEUE_BYTES: usize = 4096;
/// A thread that plays needs little.
const STACK_BYTES: usize = 64 << 10;
/// Descriptors beside those of the notes.
const OTHER_DESCRIPTORS: u64 = 64;

/// The papers' machine: a 68020 at 40 MHz.
const PAPER: &str = "the paper, 68020 at 40 MHz       33000 switches   1400000 bytes";

/// # Errors
/// A sentence, with what to do.
pub fn run(options: &Options) -> Result<(), String> {
    let mut converter = Converter::new(2, RATE as u32, options.wav.as_deref())?;
    if let Some(device) = &options.play {
        converter.play_on(device)?;
    }
    if options.paced {
        converter.keep_pace();
    }
    let frames = options.frames();
    let parts = match options.notes {
        None => score::four_voices(frames),
        Some(notes) => score::cloud(notes, frames),
    };
    allow_descriptors(2 * parts.len() as u64 + OTHER_DESCRIPTORS)?;
    let threads = parts.len() + 2;
    let began = Moment::now();
    let mut heard = start(parts, frames, options.block)?;
    convert(&mut heard, frames, options.block, &mut converter)?;
    let late = converter.late();
    converter.finish()?;
    report(&began.spent(), frames, threads, late);
    Ok(())
}

/// Starts all threads; what the last one writes.
fn start(parts: Vec<Part>, frames: usize, block: usize) -> Result<Source, String> {
    let (wet, echo) = pipe(QUEUE_BYTES)?;
    let (wide, heard) = pipe(QUEUE_BYTES)?;
    let orchestra = Orchestra::new(parts, block);
    spawn("reverberation", move || reverberate(orchestra, frames, block, wet))?;
    spawn("stereo", move || widen(echo, frames, block, wide))?;
    Ok(heard)
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, String> {
    let started = Builder::new().name(name.into()).stack_size(STACK_BYTES).spawn(body);
    started.map_err(|error| format!("a thread: {error}\nhelp: fewer --notes"))
}

/// One that plays, as the others hear it.
struct Player {
    source: Source,
    ends: usize,
    thread: JoinHandle<()>,
}

/// All that play now, and those that will.
struct Orchestra {
    waves: Arc<[Wave]>,
    /// The next one last.
    waiting: Vec<Part>,
    playing: Vec<Player>,
    block: Vec<i32>,
}

impl Orchestra {
    fn new(mut parts: Vec<Part>, block: usize) -> Orchestra {
        let waves = [&[0.7, 0.2, 0.1][..], &[0.5, 0.0, 0.3, 0.0, 0.2], &[0.8, 0.2], &[0.4, 0.3, 0.2, 0.1]];
        parts.sort_by_key(|part| std::cmp::Reverse(part.start));
        Orchestra {
            waves: waves.into_iter().map(Wave::new).collect(),
            waiting: parts,
            playing: Vec::new(),
            block: vec![0; block],
        }
    }

    /// The sum of all that sound from frame `at` on. Threads begin with their first note and end with their last.
    fn fill(&mut self, at: usize, sum: &mut [i32]) {
        while self.waiting.last().is_some_and(|part| part.start <= at) {
            let Some(part) = self.waiting.pop() else { break };
            match self.begin(part) {
                Ok(player) => self.playing.push(player),
                // Samples would be missing, and nobody would know.
                Err(error) => fail(&error),
            }
        }
        sum.fill(0);
        for player in &mut self.playing {
            player.source.get(&mut self.block);
            sum.iter_mut().zip(&self.block).for_each(|(sum, sample)| *sum += sample);
        }
        let after = at + sum.len();
        for over in self.playing.extract_if(.., |player| player.ends <= after) {
            drop(over.source);
            if over.thread.join().is_err() {
                fail("a thread that plays has ended in the middle\nhelp: report it");
            }
        }
    }

    fn begin(&self, part: Part) -> Result<Player, String> {
        let (sink, source) = pipe(QUEUE_BYTES)?;
        let (waves, block, ends) = (self.waves.clone(), self.block.len(), part.start + part.frames());
        let thread = spawn("note", move || play(&part, &waves[part.wave], block, sink))?;
        Ok(Player { source, ends, thread })
    }
}

/// Ends the program from a thread that cannot go on.
fn fail(error: &str) -> ! {
    eprintln!("error: {error}");
    std::process::exit(1);
}

/// A thread that plays its part.
fn play(part: &Part, wave: &Wave, block: usize, mut sink: Sink) {
    let mut samples = vec![0; block];
    for event in &part.events {
        let mut note = Note::new(wave, event.pitch, event.loud, event.half_life);
        let mut left = event.frames;
        while left > 0 {
            for sample in &mut samples {
                left -= 1;
                *sample = note.step(left);
            }
            if !sink.put(&samples) {
                return;
            }
        }
    }
}

/// Adds the voices up in a hall, for two ears.
fn reverberate(mut orchestra: Orchestra, frames: usize, block: usize, mut wet: Sink) {
    let mut ears = [0, 23].map(|wider| Reverb::new(&Room::hall(RATE, wider)));
    let (mut sum, mut out) = (vec![0; block], vec![0; 2 * block]);
    for at in (0..frames).step_by(block) {
        orchestra.fill(at, &mut sum);
        for (dry, out) in sum.iter().zip(out.chunks_exact_mut(2)) {
            for (out, ear) in out.iter_mut().zip(&mut ears) {
                *out = dry + ear.step(*dry) / 2;
            }
        }
        if !wet.put(&out) {
            return;
        }
    }
}

/// Makes the middle quieter and the sides louder, and lets each ear hear a little of the other, late.
fn widen(mut echo: Source, frames: usize, block: usize, mut wide: Sink) {
    const LATE_FRAMES: usize = 29;
    let (mut late, mut place) = ([[0; 2]; LATE_FRAMES], 0);
    let mut samples = vec![0; 2 * block];
    for _ in (0..frames).step_by(block) {
        echo.get(&mut samples);
        for pair in samples.chunks_exact_mut(2) {
            let (middle, side) = ((pair[0] + pair[1]) / 2, (pair[0] - pair[1]) / 2);
            let heard = [middle * 7 / 8 + side * 5 / 4, middle * 7 / 8 - side * 5 / 4];
            let crossed = std::mem::replace(&mut late[place], heard);
            place = (place + 1) % LATE_FRAMES;
            (pair[0], pair[1]) = (heard[0] + crossed[1] / 8, heard[1] + crossed[0] / 8);
        }
        if !wide.put(&samples) {
            return;
        }
    }
}

/// The D/A converter: this thread.
fn convert(heard: &mut Source, frames: usize, block: usize, converter: &mut Converter) -> Result<(), String> {
    let (mut wide, mut narrow) = (vec![0; 2 * block], vec![0; 2 * block]);
    for _ in (0..frames).step_by(block) {
        if !heard.get(&mut wide) {
            return Err("the music has ended in the middle\nhelp: report it".into());
        }
        for (narrow, wide) in narrow.iter_mut().zip(&wide) {
            *narrow = (wide >> 8).clamp(i16::MIN.into(), i16::MAX.into()) as i16;
        }
        converter.take(&narrow)?;
    }
    Ok(())
}

fn report(spent: &Spent, frames: usize, threads: usize, late: Option<u64>) {
    let sound = frames as f64 / RATE as f64;
    let switches = spent.switches.map_or("?".into(), |switches| format!("{:.0}", switches as f64 / sound));
    println!("for each second of sound:");
    let name = format!("{}, {threads} threads and the converter", system());
    println!("{name:32} {switches:>5} switches {:>9.0} bytes", spent.bytes as f64 / sound);
    println!("{PAPER}");
    println!(
        "{sound:.2} s of sound in {:.2} s, {:.1} % of a processor",
        spent.seconds,
        spent.processor_ns as f64 / 1e7 / sound
    );
    if let Some(late) = late {
        println!("late {late}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wav::Checksum;

    fn checksum(parts: Vec<Part>, frames: usize, block: usize) -> (u64, i16) {
        let mut heard = start(parts, frames, block).unwrap();
        let (mut sum, mut loudest, mut wide) = (Checksum::new(), 0, vec![0; 2 * block]);
        for _ in (0..frames).step_by(block) {
            assert!(heard.get(&mut wide));
            let narrow: Vec<i16> = wide.iter().map(|wide| (wide >> 8) as i16).collect();
            loudest = narrow.iter().map(|sample| sample.saturating_abs()).fold(loudest, i16::max);
            sum.add(&narrow);
        }
        (sum.value(), loudest)
    }

    #[test]
    fn blocks_do_not_change_the_samples() {
        let frames = 64 * 300;
        let voices = [1, 8, 64].map(|block| checksum(score::four_voices(frames), frames, block));
        assert_eq!(voices[0], voices[1]);
        assert_eq!(voices[0], voices[2]);
        assert!((2000..32_000).contains(&voices[0].1), "{}", voices[0].1);
    }

    #[test]
    fn hundreds_of_threads_play_a_note_each() {
        let frames = 64 * 200;
        allow_descriptors(1000).unwrap();
        let few = [16, 64].map(|block| checksum(score::cloud(300, frames), frames, block));
        assert_eq!(few[0], few[1]);
        assert!(few[0].1 > 500, "{}", few[0].1);
    }
}
