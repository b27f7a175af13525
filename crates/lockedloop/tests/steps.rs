//! All four kinds: they settle, bear noise, notice when they have lost what they follow, and find it again.

mod simulation;

use lockedloop::{Adjust, Frequency, Gains, Loop, Ratio, Settings, State, by_interval};
use means::Random;
use simulation::{Input, KINDS, Kind, Point, run};

fn gains(shift: u32) -> Gains {
    Gains::second_order(shift).unwrap()
}

/// Events after which all points are within `bound`.
fn settled(points: &[Point], bound: f64, error: impl Fn(&Point) -> f64) -> usize {
    points.iter().rposition(|point| error(point).abs() > bound).map_or(0, |last| last + 1)
}

#[test]
fn a_loop_of_second_order_finds_frequency_and_phase_after_a_step() {
    for kind in KINDS {
        for outputs in [1, 16] {
            for step in [0.97, 0.999, 1.001, 1.03] {
                let speed = |event| if event < 100 { 1.0 } else { step };
                let points = run(kind, gains(2), outputs, 800, &Input::steady(&speed), 1);
                let most = 90 * kind.events;
                let after = settled(&points[100..], 0.001, |point| point.speed - 1.0);
                assert!(after < most, "{}, {outputs}, {step}: frequency after {after} events", kind.name);
                let after = settled(&points[100..], 0.002, |point| point.phase);
                assert!(after < most, "{}, {outputs}, {step}: phase after {after} events", kind.name);
                assert!(points[600..].iter().all(|point| point.state == State::Locked && point.made == outputs));
            }
        }
    }
}

#[test]
fn a_loop_of_first_order_follows_the_frequency_without_swinging() {
    for kind in KINDS {
        let speed = |event| if event < 50 { 1.0 } else { 1.05 };
        let points = run(kind, Gains::first_order(2).unwrap(), 1, 200, &Input::steady(&speed), 1);
        assert!(settled(&points[50..], 0.0005, |point| point.speed - 1.0) < 90, "{}", kind.name);
        for pair in points[51..].windows(2) {
            assert!(pair[1].speed >= pair[0].speed - 1e-6 && pair[1].speed < 1.00001, "{}: {pair:?}", kind.name);
        }
    }
}

/// With P and I a measured phase follows z² − (2 − P − I) z + (1 − P): all gains that can be made settle, with every kind.
#[test]
fn all_gains_that_can_be_made_are_stable() {
    for kind in KINDS {
        for proportional in 0..6 {
            for integral in proportional..(2 * proportional + 3) {
                let gains = Gains::second_order_of(proportional, integral).unwrap();
                let speed = |event| if event < 50 { 1.0 } else { 1.002 };
                let events = 200 + (20 << (integral - proportional)) + (40 << proportional) * 4;
                let points = run(kind, gains, 4, events, &Input::steady(&speed), 1);
                let last = &points[events - 40..];
                let worst = last.iter().map(|point| (point.speed - 1.0).abs()).fold(0.0, f64::max);
                assert!(worst < 2e-4, "{}, 2^-{proportional}, 2^-{integral}: {worst}", kind.name);
            }
        }
    }
}

#[test]
fn gains_that_would_not_settle_cannot_be_made() {
    assert!(Gains::second_order_of(2, 1).is_err());
    assert!(Gains::second_order_of(0, 0).is_ok());
    assert!(Gains::first_order(17).is_err() && Gains::second_order(17).is_err());
}

/// What gains are for: a smaller one lets less of the noise through.
#[test]
fn noise_comes_through_by_the_gain() {
    let seed = Random::seed();
    println!("SYNTH_SEED={seed}");
    let noise = |kind: Kind, shift| {
        let input = Input { jitter: 0.03, ..Input::steady(&|_| 1.01) };
        let points = run(kind, gains(shift), 1, 8000, &input, seed);
        let points = &points[4000..];
        let worst = points.iter().map(|point| point.phase.abs()).fold(0.0, f64::max);
        assert!(points.iter().all(|point| point.state == State::Locked) && worst < 0.06, "{}: {worst}", kind.name);
        (points.iter().map(|point| (point.speed - 1.0).powi(2)).sum::<f64>() / points.len() as f64).sqrt()
    };
    for kind in KINDS {
        let by_gain = [2, 4, 6].map(|shift| noise(kind, shift));
        println!("{}: {by_gain:.6?}", kind.name);
        assert!(by_gain[0] > 2.5 * by_gain[1] && by_gain[1] > 2.5 * by_gain[2], "{}: {by_gain:?}", kind.name);
        assert!(by_gain[2] < 0.001);
    }
}

#[test]
fn events_that_are_missing_or_none_do_not_lose_the_lock() {
    let seed = Random::seed();
    println!("SYNTH_SEED={seed}");
    for kind in KINDS {
        let input = Input { speed: &|_| 1.002, jitter: 0.02, missing: 20, spurious: 20 };
        let points = run(kind, gains(3), 16, 3000, &input, seed);
        for (event, point) in points.iter().enumerate().skip(400) {
            let good = point.state == State::Locked && point.phase.abs() < 0.06 && (point.speed - 1.0).abs() < 0.05;
            assert!(good, "{}: event {event}: {point:?}", kind.name);
        }
        let made: u32 = points[400..].iter().map(|point| point.made).sum();
        assert!(made.abs_diff(16 * 2600) <= 16, "{}: {made}", kind.name);
    }
}

#[test]
fn a_step_too_far_loses_the_lock_and_another_is_found() {
    for kind in KINDS {
        for speed_after in [0.5, 0.7, 1.4, 2.0, 7.0] {
            let speed = |event| if event < 100 { 1.0 } else { speed_after };
            let points = run(kind, gains(2), 4, 1200, &Input::steady(&speed), 1);
            assert!(points[90..100].iter().all(|point| point.state == State::Locked));
            let lost = points[100..200].iter().any(|point| point.state == State::Lost);
            let found = settled(&points[100..], 0.001, |point| point.speed - 1.0);
            assert!(lost && found < 700, "{}, {speed_after}: lost {lost}, found after {found}", kind.name);
            assert!(points[1199].state == State::Locked, "{}, {speed_after}", kind.name);
        }
    }
}

/// Silence is noticed, the loop goes on at its last frequency, and what comes after is followed from its first events on.
#[test]
fn a_loop_goes_on_in_silence_and_says_so() {
    const TURN: u64 = 16_666_667;
    for kind in KINDS {
        let settings = Settings::new(Frequency::of(60, 1_000_000_000), Ratio::of(16, 1), gains(2));
        let mut own = Loop::new((kind.measure)(), kind.adjust, settings);
        let count = |own: &mut Loop, until: u64| (0..).take_while(|_| own.output_until(until).is_some()).count();
        (0..100).for_each(|turn| own.input(turn * TURN));
        assert_eq!(own.state(), State::Locked, "{}", kind.name);
        count(&mut own, 99 * TURN);
        assert!(count(&mut own, 105 * TURN).abs_diff(16 * 6) <= 1);
        assert_eq!(own.state(), State::Locked);
        assert!(count(&mut own, 200 * TURN).abs_diff(16 * 95) <= 1);
        assert_eq!(own.state(), State::Lost, "{}", kind.name);
        (0..60).for_each(|turn| {
            count(&mut own, 200 * TURN + TURN / 3 + turn * TURN);
            own.input(200 * TURN + TURN / 3 + turn * TURN);
        });
        assert_eq!(own.state(), State::Locked, "{}", kind.name);
        count(&mut own, 260 * TURN + TURN / 3 - TURN / 32);
        let next = own.next_output();
        assert!(next.abs_diff(260 * TURN + TURN / 3) < TURN / 500, "{}: {next}", kind.name);
    }
}

/// A quartz that warms up: the frequency drifts all the time, and a loop of second order trails by the drift through the integral
/// gain.
#[test]
fn a_drift_is_followed() {
    for kind in KINDS {
        let speed = |event: usize| 1.0 + event as f64 * 2e-6;
        let points = run(kind, gains(3), 1, 20_000, &Input::steady(&speed), 1);
        let worst = points[400..].iter().map(|point| point.phase.abs()).fold(0.0, f64::max);
        let trails = 2e-6 * 256.0 * (kind.events * kind.events) as f64;
        assert!((0.8..1.1).contains(&(worst / trails)), "{}: {worst} instead of {trails}", kind.name);
        assert!(points[400..].iter().all(|point| point.state == State::Locked));
    }
}

/// Whatever times are put in, a loop keeps its promises: events in order, none before its time, numbers in range.
#[test]
fn no_input_hurts() {
    let seed = Random::seed();
    println!("SYNTH_SEED={seed}");
    let mut random = Random::new(seed);
    for round in 0..200 {
        let ratio = Ratio::of(1 + random.below(300) as u32, 1 + random.below(300) as u32);
        let adjust = random.pick(&[Adjust::Frequency, Adjust::Interval]);
        let settings = Settings::new(Frequency::of(1 + random.below(100_000), 1 << random.below(40)), ratio, gains(1));
        let mut own = Loop::new(by_interval(), adjust, settings);
        let (mut now, mut last) = (0u64, 0);
        for _ in 0..500 {
            now += random.bits() >> (20 + random.below(44));
            for _ in 0..20 {
                let Some(at) = own.output_until(now) else { break };
                assert!(at <= now, "round {round}");
                // Aligning to the input may take an event back by half an interval, never further.
                assert!(at + own.interval().ticks() + 1 >= last, "round {round}: {at} after {last}");
                last = last.max(at);
            }
            own.input(now);
        }
    }
}
