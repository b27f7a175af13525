//! Transforms, interpolators and rooms do what their mathematics say, within stated bounds.

use std::f64::consts::TAU;

use means::Random;
use synthsignal::{Fft, Polyphase, Resampler, Reverb, Room, Size, autocorrelation, design};

/// The transform by its definition.
fn transform(re: &[f64], im: &[f64]) -> Vec<(f64, f64)> {
    let points = re.len();
    let of = |k: usize| {
        (0..points).fold((0.0, 0.0), |(sum_re, sum_im), n| {
            let (s, c) = (-TAU * (k * n % points) as f64 / points as f64).sin_cos();
            (sum_re + re[n] * c - im[n] * s, sum_im + re[n] * s + im[n] * c)
        })
    };
    (0..points).map(of).collect()
}

#[test]
fn both_transforms_are_the_definitions_within_their_bounds() {
    let seed = Random::seed();
    println!("SYNTH_SEED={seed}");
    let mut random = Random::new(seed);
    for bits in 1..=11u8 {
        let points = 1usize << bits;
        let fft = Fft::new(Size::of(points).unwrap());
        let mut draw = || -> Vec<i16> { (0..points).map(|_| random.bits() as i16).collect() };
        let (re, im) = (draw(), draw());
        let wide = |part: &[i16]| -> Vec<f64> { part.iter().map(|sample| f64::from(*sample)).collect() };
        let expected = transform(&wide(&re), &wide(&im));
        let loudest = expected.iter().map(|(re, im)| re.hypot(*im)).fold(0.0, f64::max);

        let (mut float_re, mut float_im): (Vec<f32>, Vec<f32>) =
            (re.iter().map(|s| f32::from(*s)).collect(), im.iter().map(|s| f32::from(*s)).collect());
        fft.forward(&mut float_re, &mut float_im);
        for (k, (re, im)) in expected.iter().enumerate() {
            let off = (re - f64::from(float_re[k])).hypot(im - f64::from(float_im[k])) / loudest;
            assert!(off < 1e-6, "{points} points, {k}: off by {off} of the loudest");
        }
        let (mut fixed_re, mut fixed_im) = (re, im);
        fft.forward_fixed(&mut fixed_re, &mut fixed_im);
        for (k, (re, im)) in expected.iter().enumerate() {
            let off = (re / points as f64 - f64::from(fixed_re[k])).hypot(im / points as f64 - f64::from(fixed_im[k]));
            // Each pass rounds, and what is halfway always up.
            assert!(off < 1.0 + 0.5 * f64::from(bits), "{points} points, {k}: off by {off} steps of 16 bits");
        }
    }
}

#[test]
fn there_are_transforms_of_powers_of_two_alone() {
    for points in [0, 1, 3, 1000, 1 << 17] {
        assert_eq!(Size::of(points), None);
    }
}

fn tone(hertz: f64, rate: f64, count: usize) -> Vec<i16> {
    (0..count).map(|n| (20_000.0 * (TAU * hertz * n as f64 / rate).sin()).round() as i16).collect()
}

/// Decibels of a signal below a sine that is fitted to it.
fn noise_db(signal: &[i16], turns: f64) -> f64 {
    let angle = |n: usize| TAU * turns * n as f64;
    let part = |of: fn(f64) -> f64| {
        signal.iter().enumerate().map(|(n, s)| f64::from(*s) * of(angle(n))).sum::<f64>() * 2.0 / signal.len() as f64
    };
    let (s, c) = (part(f64::sin), part(f64::cos));
    let off = |(n, sample): (usize, &i16)| (f64::from(*sample) - s * angle(n).sin() - c * angle(n).cos()).powi(2);
    let noise = signal.iter().enumerate().map(off).sum::<f64>() / signal.len() as f64;
    10.0 * (noise / ((s * s + c * c) / 2.0)).log10()
}

#[test]
fn the_interpolator_of_four_hears_no_images() {
    let taps = design::interpolator(4, 24);
    for hertz in [441.0, 4410.0, 8820.0, 14_700.0] {
        let mut interpolator = Polyphase::new(&taps, 4, design::INTERPOLATOR_SHIFT).unwrap();
        let mut output = vec![0; 4 * 4410];
        interpolator.process(&tone(hertz, 44_100.0, 4410), &mut output);
        let noise = noise_db(&output[4 * 410..], hertz / 176_400.0);
        println!("{hertz} Hz: {noise:.1} dB");
        assert!(noise < if hertz < 10_000.0 { -80.0 } else { -70.0 }, "{hertz} Hz: {noise} dB");
        // The samples themselves are among what comes out.
        let repeated: Vec<i16> = output.iter().step_by(4).copied().skip(12).collect();
        assert_eq!(repeated[..4000], tone(hertz, 44_100.0, 4410)[..4000]);
    }
}

#[test]
fn the_resampler_makes_a_sine_of_a_sine() {
    for (from, to) in [(44_100, 48_000), (48_000, 44_100), (22_050, 48_000), (44_100, 44_101)] {
        for hertz in [100.0, 1000.0, 5000.0] {
            let input = tone(hertz, f64::from(from), from as usize / 2);
            let (mut resampler, mut made) = (Resampler::new(Resampler::step_of(from, to)), Vec::new());
            for block in input.chunks(100) {
                let mut output = [0; 300];
                let (used, count) = resampler.process(block, &mut output);
                assert_eq!(used, block.len());
                made.extend(&output[..count]);
            }
            let expected = input.len() as f64 * f64::from(to) / f64::from(from);
            assert!((made.len() as f64 - expected).abs() < 3.0, "{from} → {to}: {} samples", made.len());
            let noise = noise_db(&made[100..100 + to as usize / 4], hertz / f64::from(to));
            println!("{from} → {to}, {hertz} Hz: {noise:.1} dB");
            assert!(noise < if hertz < 2000.0 { -70.0 } else { -60.0 }, "{from} → {to}, {hertz} Hz: {noise} dB");
        }
    }
}

#[test]
fn a_full_output_leaves_the_rest_of_the_input() {
    let (mut resampler, mut output) = (Resampler::new(1 << 48), [0; 10]);
    let input: Vec<i16> = (0..50).collect();
    assert_eq!(resampler.process(&input, &mut output), (10, 10));
    assert_eq!(resampler.process(&input[10..], &mut output), (10, 10));
    assert_eq!(output, [2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
}

#[test]
fn a_room_dies_away_and_never_overflows() {
    let mut room = Reverb::new(&Room::hall(44_100, 23));
    let mut echo = |sample| room.step(sample);
    let loudest = (0..88_200).map(|n| echo(if n % 300 < 150 { 8_000_000 } else { -8_000_000 }).abs()).max().unwrap();
    assert!(loudest < 1 << 27, "{loudest}");
    let after = |seconds: usize, echo: &mut dyn FnMut(i32) -> i32| (0..44_100 * seconds).map(|_| echo(0).abs()).max();
    let (one, later) = (after(1, &mut echo).unwrap(), after(6, &mut echo).unwrap());
    assert!(one > 1000 && later < one);
    assert!(after(1, &mut echo).unwrap() < 200);
}

#[test]
fn a_beat_is_alike_to_itself_a_beat_later() {
    let signal: Vec<i32> = (0..2000).map(|n| if n % 130 < 10 { 100 } else { 0 }).collect();
    let alike = autocorrelation(&signal, 60..200);
    let best = (0..alike.len()).max_by_key(|at| alike[*at]).unwrap();
    assert_eq!(60 + best, 130);
    assert_eq!(autocorrelation(&signal, 5000..5002), [0, 0]);
}
