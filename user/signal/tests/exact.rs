//! A synthesized loop gives the same bits as its compiled twin, whatever the coefficients, samples and blocks are.

use means::Random;
use synthsignal::{Correlator, Mixer, Polyphase, Refused, Way};

fn seeded() -> Random {
    let seed = Random::seed();
    println!("SYNTH_SEED={seed}");
    Random::new(seed)
}

/// Loud, quiet and extreme samples.
fn samples(random: &mut Random, count: usize) -> Vec<i16> {
    let sample = |random: &mut Random| match random.below(8) {
        0 => i16::MAX,
        1 => i16::MIN,
        2 => 0,
        _ => random.bits() as i16,
    };
    (0..count).map(|_| sample(random)).collect()
}

/// Taps of which the absolute values of each phase add up to at most 65,535; some are zero.
fn taps(random: &mut Random, count: usize, phases: usize) -> Vec<i16> {
    let most = (65_535 / count.div_ceil(phases) as u64).min(32_767);
    let tap = |random: &mut Random| {
        let size = random.below(most + 1) as i16;
        if random.once_in(3) {
            0
        } else if random.once_in(2) {
            size
        } else {
            -size
        }
    };
    (0..count).map(|_| tap(random)).collect()
}

#[test]
fn a_synthesized_filter_is_its_twin() {
    let mut random = seeded();
    for round in 0..400 {
        let phases = random.pick(&[1, 2, 4]);
        let count = phases * (1 + random.index(if round % 50 == 0 { 1024 } else { 70 }));
        let (taps, shift) = (taps(&mut random, count, phases), random.below(16) as u32);
        let mut own = Polyphase::new(&taps, phases, shift).unwrap();
        let mut twin = Polyphase::in_way(&taps, phases, shift, Way::Compiled).unwrap();
        assert_eq!((own.way(), twin.way()), (Way::Synthesized, Way::Compiled));
        for _ in 0..6 {
            let limit = random.pick(&[3, 40, 1000]);
            let count = random.index(limit);
            let input = samples(&mut random, count);
            let (mut made, mut expected) = (vec![0; input.len() * phases], vec![0; input.len() * phases]);
            own.process(&input, &mut made);
            twin.process(&input, &mut expected);
            assert!(made == expected, "round {round}: {phases} phases, shift {shift}, taps {taps:?}");
        }
    }
}

#[test]
fn a_filter_is_the_sum_of_its_definition() {
    let mut random = seeded();
    for phases in [1, 2, 4] {
        let (taps, input) = (taps(&mut random, phases * 9, phases), samples(&mut random, 100));
        let mut output = vec![0; input.len() * phases];
        Polyphase::new(&taps, phases, 15).unwrap().process(&input, &mut output);
        for (at, out) in output.iter().enumerate() {
            let (n, p) = (at / phases, at % phases);
            let sum: i64 = (0..9.min(n + 1)).map(|k| i64::from(taps[phases * k + p]) * i64::from(input[n - k])).sum();
            assert_eq!(i64::from(*out), ((sum + (1 << 14)) >> 15).clamp(-32_768, 32_767), "sample {at}");
        }
    }
}

#[test]
fn a_synthesized_mixer_is_its_twin() {
    let mut random = seeded();
    for _ in 0..400 {
        let most = random.pick(&[3, 9, 64]);
        let count = 1 + random.index(most);
        let (gains, shift) = (taps(&mut random, count, 1), random.below(16) as u32);
        let (own, twin) = (Mixer::new(&gains, shift).unwrap(), Mixer::in_way(&gains, shift, Way::Compiled).unwrap());
        assert_eq!(own.way() == Way::Synthesized, gains.iter().any(|gain| *gain != 0));
        let length = random.index(200);
        let signals: Vec<Vec<i16>> = (0..count).map(|_| samples(&mut random, length)).collect();
        let inputs: Vec<&[i16]> = signals.iter().map(Vec::as_slice).collect();
        let (mut made, mut expected) = (vec![0; length], vec![0; length]);
        own.process(&inputs, &mut made);
        twin.process(&inputs, &mut expected);
        assert!(made == expected, "gains {gains:?}, shift {shift}");
    }
}

#[test]
fn a_correlator_finds_its_pattern() {
    let mut random = seeded();
    let pattern: Vec<i16> = (0..64).map(|_| random.below(1000) as i16 - 500).collect();
    let mut signal: Vec<i16> = (0..4000).map(|_| random.below(400) as i16 - 200).collect();
    let at = 700 + random.index(3000);
    signal[at..at + 64].copy_from_slice(&pattern);
    for way in [Way::Synthesized, Way::Compiled] {
        let mut alike = vec![0; signal.len()];
        Correlator::in_way(&pattern, 10, way).unwrap().process(&signal, &mut alike);
        let best = (0..alike.len()).max_by_key(|at| alike[*at]).unwrap();
        assert_eq!(best, at + 63, "{way:?}");
    }
}

#[test]
fn what_could_overflow_or_makes_no_sense_is_refused() {
    assert_eq!(Polyphase::new(&[], 1, 15).unwrap_err(), Refused::Taps);
    assert_eq!(Polyphase::new(&[1; 7], 2, 15).unwrap_err(), Refused::Taps);
    assert_eq!(Polyphase::new(&[1; 1025], 1, 15).unwrap_err(), Refused::Taps);
    assert_eq!(Polyphase::new(&[1; 6], 3, 15).unwrap_err(), Refused::Shape);
    assert_eq!(Polyphase::new(&[1], 1, 16).unwrap_err(), Refused::Shape);
    assert_eq!(Polyphase::new(&[i16::MIN], 1, 15).unwrap_err(), Refused::Loud);
    assert_eq!(Polyphase::new(&[32_767, 32_767, 2], 1, 15).unwrap_err(), Refused::Loud);
    assert_eq!(Mixer::new(&[0; 65], 15).unwrap_err(), Refused::Taps);
    let mut loudest = Polyphase::new(&[32_767, -32_767], 1, 0).unwrap();
    let mut output = [0; 8];
    loudest.process(&[i16::MIN, i16::MAX, i16::MIN, i16::MAX, i16::MIN, i16::MAX, i16::MIN, i16::MAX], &mut output);
    assert_eq!(output[1..4], [i16::MAX, i16::MIN, i16::MAX]);
}
