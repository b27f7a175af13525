//! A spectrum of the CD's stream (S-134): transforms of 1,024 points of both channels, 88,200 points a second of sound, and bars
//! that are drawn as it goes on.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use synthsignal::{Fft, Size};

use crate::RATE;
use crate::measure::{Moment, system};
use crate::options::Options;
use crate::tone::{Note, Wave};
use crate::wav::Checksum;

const POINTS: usize = 1024;
const CHANNELS: usize = 2;
const BARS: usize = 40;
const HEIGHT: usize = 12;
/// What the papers' program did, in real time.
const PAPER_POINTS: f64 = 88_200.0;

/// # Errors
/// A sentence, with what to do.
pub fn run(options: &Options) -> Result<(), String> {
    let fft = Fft::new(Size::of(POINTS).ok_or("no such transform\nhelp: report it")?);
    let is_seen = std::io::stdout().is_terminal();
    let wave = Wave::new(&[0.5, 0.0, 0.3, 0.0, 0.2]);
    let mut stream = Stream::new(&wave);
    let mut window = [[0i16; POINTS]; CHANNELS];
    let (mut checksum, mut bars, mut points) = (Checksum::new(), [0; BARS], 0u64);
    let (mut transforming, began, start) = (Duration::ZERO, Moment::now(), Instant::now());
    for frame in 0..options.frames() {
        for (window, sample) in window.iter_mut().zip(stream.next(frame)) {
            window[frame % POINTS] = sample;
        }
        let is_last = frame == options.frames() - 1;
        if frame % POINTS < POINTS - 1 && !is_last {
            continue;
        }
        if is_last {
            // What has begun is filled up with silence.
            window.iter_mut().for_each(|window| window[frame % POINTS + 1..].fill(0));
        }
        let before = Instant::now();
        for channel in &mut window {
            let mut im = [0; POINTS];
            fft.forward_fixed(channel, &mut im);
            checksum.add(channel);
            checksum.add(&im);
            points += POINTS as u64;
            levels(channel, &im, &mut bars);
        }
        transforming += before.elapsed();
        if is_seen {
            draw(&bars);
            let due = Duration::from_secs_f64(frame as f64 / RATE as f64);
            std::thread::sleep(due.saturating_sub(start.elapsed()));
        }
    }
    println!("samples {points} checksum {:016x}", checksum.value());
    draw_once(&bars);
    let spent = began.spent();
    let sound = options.frames() as f64 / RATE as f64;
    println!(
        "{}: {:.0} points for each second of sound (the paper: {PAPER_POINTS:.0})",
        system(),
        points as f64 / sound
    );
    println!("  transforms with bars: {:.3} % of a processor", transforming.as_secs_f64() * 100.0 / sound);
    println!("  all of the program:   {:.3} % of a processor", spent.processor_ns as f64 / 1e7 / sound);
    println!("  at full speed: {:.0} points a second", points as f64 / transforming.as_secs_f64().max(1e-9));
    Ok(())
}

/// Two voices that glide over the scale against each other, one in each channel.
struct Stream<'a> {
    wave: &'a Wave,
    notes: [Note<'a>; CHANNELS],
}

impl<'a> Stream<'a> {
    const NOTE_FRAMES: usize = 11_025;

    fn new(wave: &'a Wave) -> Stream<'a> {
        Stream { wave, notes: [0, 0].map(|_| Note::new(wave, 57, 0, 1)) }
    }

    fn next(&mut self, frame: usize) -> [i16; CHANNELS] {
        let (number, within) = (frame / Self::NOTE_FRAMES, frame % Self::NOTE_FRAMES);
        if within == 0 {
            const SCALE: [i32; 8] = [57, 60, 64, 69, 76, 81, 88, 93];
            let pitches = [SCALE[number % 8], SCALE[7 - number % 8]];
            self.notes = pitches.map(|pitch| Note::new(self.wave, pitch, 3 << 21, 9000));
        }
        let left = Self::NOTE_FRAMES - 1 - within;
        self.notes.each_mut().map(|note| (note.step(left) >> 8) as i16)
    }
}

/// Adds a channel's spectrum to the bars: each covers a third of an octave or less, and is as high as its loudest point, in steps of 6 dB.
/// What was there before falls by one.
fn levels(re: &[i16], im: &[i16], bars: &mut [u32; BARS]) {
    for (number, bar) in bars.iter_mut().enumerate() {
        let edge = |number: usize| 1 + number + number * number * (POINTS / 2 - 1 - BARS) / (BARS * BARS);
        let power = |point: usize| i32::from(re[point]).pow(2).saturating_add(i32::from(im[point]).pow(2)) as u32;
        let loudest = (edge(number)..edge(number + 1)).map(power).max().unwrap_or(0);
        let level = (u32::BITS - loudest.leading_zeros()) / 2;
        *bar = level.min(HEIGHT as u32).max(bar.saturating_sub(1));
    }
}

fn picture(bars: &[u32; BARS]) -> String {
    let mut text = String::new();
    for row in (1..=HEIGHT as u32).rev() {
        text.extend(bars.iter().map(|bar| if *bar >= row { '█' } else { ' ' }));
        text.push('\n');
    }
    text
}

/// Draws over what was drawn before.
fn draw(bars: &[u32; BARS]) {
    print!("\x1b[H\x1b[J{}", picture(bars));
    let _ = std::io::stdout().flush();
}

fn draw_once(bars: &[u32; BARS]) {
    if std::io::stdout().is_terminal() {
        draw(bars);
    } else {
        print!("{}", picture(bars));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tone_stands_where_its_frequency_is() {
        let fft = Fft::new(Size::of(POINTS).unwrap());
        let highest = |point: f64| {
            let tone = |n: usize| (20_000.0 * synthsignal::design::sine(point * n as f64 / POINTS as f64)) as i16;
            let (mut re, mut im): (Vec<i16>, Vec<i16>) = ((0..POINTS).map(tone).collect(), vec![0; POINTS]);
            fft.forward_fixed(&mut re, &mut im);
            let mut bars = [0; BARS];
            levels(&re, &im, &mut bars);
            (0..BARS).max_by_key(|bar| (bars[*bar], BARS - bar)).unwrap()
        };
        let found = [2.0, 20.0, 100.0, 250.0, 480.0].map(highest);
        assert!(found.is_sorted() && found[0] == 1 && found[4] >= BARS - 3, "{found:?}");
    }
}
