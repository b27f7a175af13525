//! The CD player's filter (S-132): of each sample four, by a filter of 96 taps. The papers' machine had 22.68 µs for a sample of the CD and
//! 5.67 µs for one of the converter.
//!
//! ```text
//!   CD ─► pipe ─► interpolator, left and right ─► pipe ─► D/A at 176,400 frames a second
//! ```

use std::time::Instant;

use synthsignal::{Polyphase, Way, design};

use crate::RATE;
use crate::converter::Converter;
use crate::measure::system;
use crate::options::Options;
use crate::pipe::{Sink, Source, pipe};
use crate::tone::{Note, Wave};

const PHASES: usize = 4;
const TAPS_FOR_EACH: usize = 24;
/// Frames of the CD that are filtered at a time: a sector's worth.
const SECTOR: usize = 588;
const QUEUE_BYTES: usize = 64 << 10;
/// What a sample of the converter may take, in ns.
const PAPER_NS: f64 = 5668.9;

/// # Errors
/// A sentence, with what to do.
pub fn run(options: &Options) -> Result<(), String> {
    let mut converter = Converter::new(2, (RATE * PHASES) as u32, options.wav.as_deref())?;
    let frames = options.frames();
    let (disc, drive) = pipe(QUEUE_BYTES)?;
    let (filtered, heard) = pipe(QUEUE_BYTES)?;
    let nanos = std::thread::scope(|scope| {
        scope.spawn(|| spin(frames, disc));
        let filter = scope.spawn(|| interpolate(frames, drive, filtered));
        convert(frames, heard, &mut converter)?;
        filter.join().map_err(|_| "the interpolator has ended in the middle\nhelp: report it".to_string())?
    })?;
    converter.finish()?;
    report(nanos);
    Ok(())
}

/// The CD: an arpeggio, two channels that differ.
fn spin(frames: usize, mut disc: Sink) {
    let wave = Wave::new(&[0.5, 0.25, 0.15, 0.1]);
    let mut notes = [Note::new(&wave, 57, 1 << 22, 1), Note::new(&wave, 57, 1 << 22, 1)];
    let mut sector = Vec::with_capacity(2 * SECTOR);
    for frame in 0..frames {
        let (beat, within) = (frame / 8820, frame % 8820);
        if within == 0 {
            let pitch = [57, 60, 64, 69, 72, 76, 72, 64][beat % 8];
            notes = [pitch, pitch - 12].map(|pitch| Note::new(&wave, pitch, 1 << 22, 6000));
        }
        let left = 8819 - within;
        sector.extend(notes.iter_mut().map(|note| note.step(left) >> 8));
        if sector.len() == 2 * SECTOR || frame == frames - 1 {
            if !disc.put(&sector) {
                return;
            }
            sector.clear();
        }
    }
}

/// Nanoseconds for each sample out: synthesized, and compiled.
fn interpolate(frames: usize, mut drive: Source, mut filtered: Sink) -> Result<[f64; 2], String> {
    let taps = design::interpolator(PHASES, TAPS_FOR_EACH);
    let filters = |way| -> Result<[Polyphase; 2], String> {
        let filter = || Polyphase::in_way(&taps, PHASES, design::INTERPOLATOR_SHIFT, way);
        let refused = |why| format!("the filter: {why:?}\nhelp: report it");
        Ok([filter().map_err(refused)?, filter().map_err(refused)?])
    };
    let mut ways = [filters(Way::Synthesized)?, filters(Way::Compiled)?];
    let mut nanos = [Vec::new(), Vec::new()];
    for at in (0..frames).step_by(SECTOR) {
        let count = SECTOR.min(frames - at);
        let mut sector = vec![0; 2 * count];
        drive.get(&mut sector);
        let channel =
            |ear: usize| -> Vec<i16> { sector[ear..].iter().step_by(2).map(|sample| *sample as i16).collect() };
        let input = [channel(0), channel(1)];
        let silence = vec![0i16; count * PHASES];
        let mut made = [[silence.clone(), silence.clone()], [silence.clone(), silence]];
        for ((filters, made), nanos) in ways.iter_mut().zip(&mut made).zip(&mut nanos) {
            let began = Instant::now();
            for ((filter, input), made) in filters.iter_mut().zip(&input).zip(made.iter_mut()) {
                filter.process(input, made);
            }
            nanos.push(began.elapsed().as_nanos() as f64 / (2 * count * PHASES) as f64);
        }
        if made[0] != made[1] {
            return Err("the synthesized filter and the compiled one do not agree\nhelp: report it".into());
        }
        let frames = made[0][0].iter().zip(&made[0][1]).flat_map(|(left, right)| [i32::from(*left), i32::from(*right)]);
        if !filtered.put(&frames.collect::<Vec<_>>()) {
            break;
        }
    }
    Ok(nanos.map(|mut nanos| {
        nanos.sort_by(f64::total_cmp);
        nanos[nanos.len() / 2]
    }))
}

fn convert(frames: usize, mut heard: Source, converter: &mut Converter) -> Result<(), String> {
    for at in (0..frames).step_by(SECTOR) {
        let mut wide = vec![0; 2 * PHASES * SECTOR.min(frames - at)];
        if !heard.get(&mut wide) {
            return Ok(()); // the interpolator says why
        }
        converter.take(&wide.iter().map(|sample| *sample as i16).collect::<Vec<_>>())?;
    }
    Ok(())
}

fn report([synthesized, compiled]: [f64; 2]) {
    let share = |nanos: f64| nanos * 2.0 * (RATE * PHASES) as f64 / 1e7;
    println!("for each sample of the converter, {} (instructions where the machine counts them as time):", system());
    println!("  synthesized {synthesized:>9.2} ns, {:.2} % of a processor for both channels", share(synthesized));
    println!("  compiled    {compiled:>9.2} ns, {:.2} %", share(compiled));
    println!("  the paper   {PAPER_NS:>9.2} ns, what there is until the next one");
}
