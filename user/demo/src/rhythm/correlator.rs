//! Hears beats: where the sound becomes louder, and after which interval that comes again.

use synthsignal::autocorrelation;

use crate::RATE;
use crate::pipe::Sink;

/// Frames of which one loudness is taken.
const HOP: usize = 64;
/// Loudnesses that are compared at a time, about four seconds, and by how many they go on.
const WINDOW: usize = 4 * RATE / HOP;
const STRIDE: usize = RATE / HOP;
/// Beats are 0.34 to 1 second apart: 60 to 176 a minute.
const LAGS: std::ops::Range<usize> = RATE * 34 / 100 / HOP..RATE / HOP;
/// Onsets below this are silence.
const QUIET: i32 = 8;

/// Writes at which frame each beat begins.
pub fn listen(music: &[i16], mut beat: Sink) {
    let onsets = onsets(music);
    let mut said = f64::MIN;
    let last = onsets.len().saturating_sub(WINDOW);
    for from in (0..=last).step_by(STRIDE) {
        let window = &onsets[from..(from + WINDOW).min(onsets.len())];
        let Some((lag, phase)) = hear(window) else { continue };
        let until = (from + window.len()) as f64;
        // What is new in this window; the first one is all new.
        let after = said + lag / 2.0;
        let beats = (0..).map(|number| from as f64 + phase + f64::from(number) * lag);
        for at in beats.take_while(|at| *at < until).filter(|at| *at > after) {
            if !beat.put(&[(at * HOP as f64) as i32]) {
                return;
            }
            said = at;
        }
    }
}

/// How much louder it becomes, hop by hop.
fn onsets(music: &[i16]) -> Vec<i32> {
    let loudness = |hop: &[i16]| hop.iter().map(|sample| i32::from(*sample).abs()).sum::<i32>() / HOP as i32;
    let loud: Vec<i32> = music.chunks_exact(HOP).map(loudness).collect();
    // Low tones swing slower than a hop: eight of them together.
    let smooth: Vec<i32> = loud.windows(8).map(|hops| hops.iter().sum::<i32>() / 8).collect();
    smooth.windows(9).map(|hops| (hops[8] - hops[0]).max(0)).collect()
}

/// The interval of the beat, and when the first one is, in hops.
fn hear(onsets: &[i32]) -> Option<(f64, f64)> {
    if onsets.iter().max().is_none_or(|loudest| *loudest < QUIET) {
        return None;
    }
    // What is alike after an interval is alike after two, three and four of them; that also tells the interval more exactly.
    let alike = autocorrelation(onsets, 0..4 * LAGS.end);
    let score = |lag: usize| -> i64 { (1..=4).map(|times| peak(&alike, lag * times, times).1).sum() };
    let lag = LAGS.max_by_key(|lag| score(*lag))?;
    let exact = peak(&alike, lag * 4, 4).0 as f64 / 4.0;
    let strength = |phase: usize| -> i64 {
        let places = (0..).map(|number| phase + (number as f64 * exact) as usize).take_while(|at| *at < onsets.len());
        places.map(|at| i64::from(onsets[at])).sum()
    };
    let phase = (0..exact as usize).max_by_key(|phase| strength(*phase))?;
    Some((exact, phase as f64))
}

/// Where it is most alike within `reach` of a lag, and how much.
fn peak(alike: &[i64], lag: usize, reach: usize) -> (usize, i64) {
    let places = lag.saturating_sub(reach)..(lag + reach + 1).min(alike.len());
    places.map(|at| (at, alike[at])).max_by_key(|(_, value)| *value).unwrap_or((lag, 0))
}
