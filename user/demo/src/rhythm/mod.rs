//! The rhythm tracker (S-133): finds the beat of a piece, divides it into sixteen parts, drums to it, and mixes the drums with the piece.
//!
//! ```text
//!   piece ─► correlator ─ beats ─► interval divider ─ sixteenths ─► drum synthesizer ─┐
//!     └──────────────────────────────────────────────────────────────────────────────┴─► mixer ─► D/A
//! ```
//! Each is a thread; between them are pipes. The divider is a software locked loop that measures and adjusts intervals.

mod correlator;
mod drums;
mod piece;

use lockedloop::{Adjust, Frequency, Gains, Loop, Ratio, Settings, by_interval};
use synthsignal::{Mixer, Reverb, Room};

use self::piece::Piece;
use crate::RATE;
use crate::converter::Converter;
use crate::options::Options;
use crate::pipe::{Sink, Source, pipe};

/// Parts of a beat.
const PARTS: u32 = 16;
const QUEUE_BYTES: usize = 64 << 10;
/// Frames that are mixed at a time.
const BLOCK: usize = 1024;

/// # Errors
/// A sentence, with what to do.
pub fn run(options: &Options) -> Result<(), String> {
    let mut converter = Converter::new(2, RATE as u32, options.wav.as_deref())?;
    let mut found = Vec::new();
    for piece in piece::ALL {
        found.push((piece, track(&piece, options.frames(), &mut converter)?));
    }
    converter.finish()?;
    for (piece, found) in found {
        let Some(interval) = found else {
            println!("{:12} no beat", piece.name);
            continue;
        };
        let minute = 60.0 * RATE as f64 / interval;
        let off = (minute / piece.beats_a_minute - 1.0) * 100.0;
        println!("{:12} {minute:7.2} beats a minute, {off:+.2} % from {:.2}", piece.name, piece.beats_a_minute);
    }
    Ok(())
}

/// Plays one piece with drums; the interval of its beat in frames, as the divider has found it.
fn track(piece: &Piece, frames: usize, converter: &mut Converter) -> Result<Option<f64>, String> {
    let music = piece.play(frames);
    let (beat, beats) = pipe(QUEUE_BYTES)?;
    let (part, parts) = pipe(QUEUE_BYTES)?;
    let (drum, drums) = pipe(QUEUE_BYTES)?;
    std::thread::scope(|scope| {
        scope.spawn(|| correlator::listen(&music, beat));
        let divider = scope.spawn(|| divide(beats, part));
        scope.spawn(|| drums::play(parts, drum));
        mix(&music, drums, converter)?;
        divider.join().map_err(|_| "the divider has ended in the middle\nhelp: report it".into())
    })
}

/// Divides the interval between beats into sixteen: writes when each part begins, and which it is.
fn divide(mut beats: Source, mut part: Sink) -> Option<f64> {
    let expected = Frequency::of(2, RATE as u64);
    let settings = Settings::new(expected, Ratio::of(PARTS, 1), Gains::second_order(2).ok()?);
    let mut divider = Loop::new(by_interval(), Adjust::Interval, settings);
    let (mut beat, mut count, mut number) = ([0], 0, 0);
    while beats.get(&mut beat) {
        let now = beat[0] as u64;
        while let Some(at) = divider.output_until(now) {
            // Before the first beat nothing is known.
            if count > 0 && !part.put(&[at as i32, number % PARTS as i32]) {
                break;
            }
            number += 1;
        }
        divider.input(now);
        if count == 0 {
            number = 0;
        }
        count += 1;
    }
    (count > 2).then(|| divider.input_frequency().interval().0 as f64 / 65_536.0)
}

/// Mixes the piece with the drums in a small room.
fn mix(music: &[i16], mut drums: Source, converter: &mut Converter) -> Result<(), String> {
    let mixer =
        Mixer::new(&[20_000, 16_000, 6_000], 15).map_err(|why| format!("the mixer: {why:?}\nhelp: report it"))?;
    let mut ears = [0, 17].map(|wider| Reverb::new(&Room::hall(RATE / 2, wider)));
    for block in music.chunks(BLOCK) {
        let mut hits = vec![0; block.len()];
        drums.get(&mut hits); // silence when they have ended
        let beats: Vec<i16> = hits.iter().map(|hit| *hit as i16).collect();
        let mut sides = Vec::new();
        for ear in &mut ears {
            let echo: Vec<i16> = hits.iter().map(|hit| ear.step(*hit).clamp(-32_768, 32_767) as i16).collect();
            let mut side = vec![0; block.len()];
            mixer.process(&[block, &beats, &echo], &mut side);
            sides.push(side);
        }
        let frames: Vec<i16> = sides[0].iter().zip(&sides[1]).flat_map(|(left, right)| [*left, *right]).collect();
        converter.take(&frames)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beat_of_three_pieces_is_found_within_two_percent() {
        for piece in piece::ALL {
            let mut converter = Converter::new(2, RATE as u32, None).unwrap();
            let interval = track(&piece, 12 * RATE, &mut converter).unwrap().expect("a beat");
            let expected = 60.0 * RATE as f64 / piece.beats_a_minute;
            let off = interval / expected - 1.0;
            assert!(off.abs() < 0.02, "{}: {interval:.0} frames instead of {expected:.0}", piece.name);
        }
    }

    /// Where the beats are, not only how far apart: each that is said is near a true one.
    #[test]
    fn beats_fall_on_beats() {
        for piece in piece::ALL {
            let music = piece.play(12 * RATE);
            let (beat, mut beats) = pipe(QUEUE_BYTES).unwrap();
            correlator::listen(&music, beat);
            let (mut at, mut count) = ([0], 0);
            while beats.get(&mut at) {
                let turns = at[0] as f64 / (60.0 * RATE as f64 / piece.beats_a_minute);
                let off = (turns - turns.round()).abs();
                assert!(off < 0.1, "{}: a beat at {} is {off:.2} beats away", piece.name, at[0]);
                count += 1;
            }
            assert!(count > 10, "{}: {count} beats", piece.name);
        }
    }

    #[test]
    fn silence_has_no_beat() {
        let (beat, beats) = pipe(QUEUE_BYTES).unwrap();
        correlator::listen(&vec![0; 12 * RATE], beat);
        let (part, _parts) = pipe(QUEUE_BYTES).unwrap();
        assert_eq!(divide(beats, part), None);
    }
}
