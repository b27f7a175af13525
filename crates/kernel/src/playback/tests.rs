//! The ring and its accounts against a player that does as it should, and against those that do not.

use std::cell::{Cell, RefCell};
use std::sync::Mutex;

use machine::Procedure;

use super::*;

/// A player whose ring can be looked at. It moves when it is told to.
struct Fake(Mutex<Inner>);

struct Inner {
    ring: Vec<u8>,
    pace: Option<Pace>,
    position: usize,
    heard: Vec<u8>,
    lie: Lie,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lie {
    None,
    DoesNotPlay,
    IsNowhere,
    IsBehindTheRing,
}

const RATES: [u32; 4] = [16_000, 22_050, 44_100, 48_000];
const RING_BYTES: usize = 128 << 10;

impl Fake {
    fn new(lie: Lie) -> Fake {
        // Whoever had it before has left something.
        let inner = Inner { ring: vec![0x55; RING_BYTES], pace: None, position: 0, heard: Vec::new(), lie };
        Fake(Mutex::new(inner))
    }

    fn with<R>(&self, act: impl FnOnce(&mut Inner) -> R) -> R {
        act(&mut self.0.lock().unwrap())
    }

    /// Plays so many bytes of the ring.
    fn move_on(&self, bytes: usize) {
        self.with(|inner| {
            let Some(pace) = inner.pace else { return };
            let ring = pace.period_bytes * pace.periods;
            for _ in 0..bytes {
                inner.heard.push(inner.ring[inner.position]);
                inner.position = (inner.position + 1) % ring;
            }
        });
    }

    fn heard(&self) -> Vec<u8> {
        self.with(|inner| inner.heard.clone())
    }

    fn plays(&self) -> bool {
        self.with(|inner| inner.pace.is_some())
    }
}

impl Player for Fake {
    fn rates(&self) -> &[u32] {
        &RATES
    }

    fn limits(&self) -> (usize, usize) {
        (RING_BYTES, 224)
    }

    fn play(&self, pace: Pace) -> Result<(), PlayerLost> {
        self.with(|inner| {
            (inner.pace, inner.position) = (Some(pace), 0);
            if inner.lie == Lie::DoesNotPlay { Err(PlayerLost) } else { Ok(()) }
        })
    }

    fn halt(&self) {
        self.with(|inner| inner.pace = None);
    }

    fn write(&self, offset: usize, from: &[u8]) {
        self.with(|inner| inner.ring[offset..][..from.len()].copy_from_slice(from));
    }

    fn position(&self) -> Result<usize, PlayerLost> {
        self.with(|inner| match inner.lie {
            Lie::IsNowhere => Err(PlayerLost),
            Lie::IsBehindTheRing => Ok(RING_BYTES),
            _ => Ok(inner.position),
        })
    }

    fn fetched_ahead(&self) -> usize {
        256
    }

    fn when_period(&self, _: Procedure) {}
}

const CD: Settings = Settings { format: Format::I16Little, channels: 2, hertz: 44_100, fragments: None };

/// Frames of which none is silent.
fn frames(count: usize) -> Vec<u8> {
    (0..count as u32).flat_map(|number| ((number << 1 | 1).wrapping_mul(0x9E37_79B9) | 1).to_le_bytes()).collect()
}

fn state(settings: Settings, player: &Fake) -> State {
    State::new(settings, player)
}

/// Writes all, while the player goes on a little whenever there is no room.
fn write_all(state: &mut State, player: &Fake, bytes: &[u8], steps: &mut dyn FnMut() -> usize) {
    let mut done = 0;
    for turn in 0.. {
        let now = Nanos(turn * 1000);
        state.look(player, now);
        done += state.put(player, &bytes[done..bytes.len().min(done + steps())], now).unwrap();
        if done == bytes.len() {
            return;
        }
        if state.room_bytes() == 0 {
            player.move_on(steps());
        }
    }
}

/// Plays until the player has stopped.
fn play_out(state: &mut State, player: &Fake) {
    state.begin(player, Nanos(0));
    state.is_ending = true;
    while player.plays() {
        player.move_on(1000);
        state.look(player, Nanos(0));
    }
}

/// What is left without the silence at the end.
fn without_tail(mut heard: Vec<u8>, bytes: usize) -> Vec<u8> {
    assert!(heard.len() >= bytes && heard[bytes..].iter().all(|byte| *byte == 0), "silence behind the end");
    heard.truncate(bytes);
    heard
}

#[test]
fn what_is_written_is_heard_whatever_the_steps() {
    for seed in 1..20usize {
        let player = Fake::new(Lie::None);
        let mut state = state(CD, &player);
        let bytes = frames(60_000 + seed);
        let number = Cell::new(seed);
        let mut steps = || {
            number.set(number.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
            (number.get() >> 40) % 9000 + 1
        };
        write_all(&mut state, &player, &bytes, &mut steps);
        play_out(&mut state, &player);
        assert!(without_tail(player.heard(), bytes.len()) == bytes, "seed {seed}");
        assert_eq!((state.underruns, state.phase, state.queued_bytes()), (0, Phase::Still, 0), "seed {seed}");
        assert_eq!(state.played_bytes(), bytes.len() as u64);
    }
}

#[test]
fn who_comes_too_late_hears_silence_and_nothing_twice() {
    let player = Fake::new(Lie::None);
    let mut state = state(CD, &player);
    let bytes = frames(3 * 1024);
    let [first, second, third] = [0, 1, 2].map(|part| &bytes[part * 4096..][..4096]);
    assert_eq!(state.put(&player, first, Nanos(0)), Ok(4096));
    player.move_on(6000);
    state.look(&player, Nanos(0));
    assert_eq!(state.underruns, 1);
    assert_eq!(state.put(&player, second, Nanos(0)), Ok(4096));
    // So long that it is stopped, and begins anew.
    for _ in 0..30 {
        player.move_on(1000);
        state.look(&player, Nanos(0));
    }
    assert!(!player.plays(), "silence alone is not played for ever");
    assert_eq!(state.underruns, 2);
    assert_eq!(state.put(&player, third, Nanos(0)), Ok(4096));
    play_out(&mut state, &player);
    let heard: Vec<u8> = player.heard().chunks(4).filter(|frame| *frame != [0; 4]).flatten().copied().collect();
    assert!(heard == bytes, "all is heard, once, in order");
    assert_eq!(state.underruns, 2, "an end is no fault");
}

#[test]
fn a_device_that_comes_round_finds_silence() {
    let player = Fake::new(Lie::None);
    let mut state = state(Settings { fragments: Some(Fragments { bytes: 1024, most: 4 }), ..CD }, &player);
    let bytes = frames(1024);
    assert_eq!(state.put(&player, &bytes, Nanos(0)), Ok(4096));
    for _ in 0..20 {
        player.move_on(1000);
        state.look(&player, Nanos(0));
    }
    assert!(without_tail(player.heard(), 4096) == bytes);
}

/// Whatever the device has fetched: there is always room in the end, and nothing of it is lost.
#[test]
fn what_was_played_only_grows_whatever_is_thrown_away() {
    let player = Fake::new(Lie::None);
    let mut state = state(CD, &player);
    let mut before = 0;
    for turn in 0..200usize {
        state.put(&player, &frames(1 + turn % 7), Nanos(0)).unwrap();
        state.begin(&player, Nanos(0));
        player.move_on(turn * 37 % 500);
        state.look(&player, Nanos(0));
        if turn % 11 == 0 {
            state.stop(&player);
        }
        let played = state.played_bytes();
        assert!(played >= before && played <= 200 * 28, "turn {turn}: {before} {played}");
        before = played;
    }
    assert!(before > 0);
}

#[test]
fn the_smallest_ring_comes_to_an_end() {
    let player = Fake::new(Lie::None);
    let mut state = state(Settings { fragments: Some(Fragments { bytes: 128, most: 2 }), ..CD }, &player);
    let bytes = frames(1024);
    let mut done = 0;
    for _ in 0..1000 {
        done += state.put(&player, &bytes[done..], Nanos(0)).unwrap();
        player.move_on(100);
        state.look(&player, Nanos(0));
    }
    assert_eq!(done, bytes.len());
    assert!(state.underruns > 0);
    let heard: Vec<u8> = player.heard().chunks(4).filter(|frame| *frame != [0; 4]).flatten().copied().collect();
    assert!(heard == bytes);
}

#[test]
fn nothing_is_written_where_the_device_is_about_to_be() {
    let player = Fake::new(Lie::None);
    let mut state = state(CD, &player);
    state.put(&player, &frames(1024), Nanos(0)).unwrap();
    player.move_on(4000);
    state.look(&player, Nanos(0));
    // 96 bytes are left, 256 are under way.
    let late = [0x7F; 4096];
    state.put(&player, &late, Nanos(0)).unwrap();
    player.with(|inner| {
        let ahead = &inner.ring[4096..4000 + 4096];
        assert!(ahead.iter().all(|byte| *byte == 0), "a period of silence");
        assert_eq!(inner.ring[8096..][..4], [0x7F; 4]);
    });
}

#[test]
fn devices_that_fail_are_told_and_may_work_again() {
    let fails = [(Lie::DoesNotPlay, true), (Lie::IsNowhere, false), (Lie::IsBehindTheRing, false)];
    for (lie, at_once) in fails {
        let player = Fake::new(lie);
        let mut state = state(CD, &player);
        let first = state.put(&player, &frames(1024), Nanos(0));
        assert_eq!(first, if at_once { Err(Errno::EIO) } else { Ok(4096) }, "{lie:?}");
        state.look(&player, Nanos(1));
        assert_eq!(state.put(&player, &[1; 4], Nanos(1)), Err(Errno::EIO), "{lie:?}");
        assert!(!player.plays());
        player.with(|inner| inner.lie = Lie::None);
        state.stop(&player);
        assert_eq!(state.put(&player, &frames(1024), Nanos(2)), Ok(4096), "{lie:?}, reset");
    }
}

#[test]
fn a_device_that_stalls_is_given_up_and_one_that_moves_is_not() {
    let player = Fake::new(Lie::None);
    let mut state = state(CD, &player);
    state.put(&player, &frames(4096), Nanos(0)).unwrap();
    for second in 1..20 {
        player.move_on(4);
        state.look(&player, Nanos(second * Nanos::PER_SECOND));
        assert_eq!(state.phase, Phase::Plays);
    }
    state.look(&player, Nanos(22 * Nanos::PER_SECOND));
    assert_eq!(state.phase, Phase::Plays, "it has some patience");
    state.look(&player, Nanos(23 * Nanos::PER_SECOND));
    assert_eq!(state.phase, Phase::Lost);
}

#[test]
fn a_position_that_jumps_makes_silence_and_no_harm() {
    let player = Fake::new(Lie::None);
    let mut state = state(CD, &player);
    for turn in 0..500usize {
        let room = state.room_bytes();
        let taken = state.put(&player, &frames(16_384), Nanos(0)).unwrap();
        assert!(taken <= room.max(65_536) && state.queued_bytes() <= 65_536, "turn {turn}");
        player.with(|inner| inner.position = turn.wrapping_mul(40_503) % 65_536);
        state.look(&player, Nanos(0));
    }
}

#[test]
fn less_than_a_fragment_waits_for_more() {
    let player = Fake::new(Lie::None);
    let mut state = state(CD, &player);
    state.put(&player, &frames(1023), Nanos(0)).unwrap();
    assert!(!player.plays());
    state.put(&player, &[1], Nanos(0)).unwrap();
    state.put(&player, &[1; 3], Nanos(0)).unwrap();
    assert!(player.plays());
    assert_eq!(state.queued_bytes(), 4096);
}

#[test]
fn what_is_held_back_is_not_played() {
    let player = Fake::new(Lie::None);
    let mut state = state(CD, &player);
    state.is_held_back = true;
    assert_eq!(state.put(&player, &frames(40_000), Nanos(0)), Ok(65_536), "as much as there is room for");
    assert!(!player.plays());
    assert_eq!(state.room_bytes(), 0);
}

/// All settings: the ring fits, a fragment is a power of two, the rate is the nearest, and bytes and frames are in step.
#[test]
fn a_geometry_always_fits() {
    for format in [Format::MuLaw, Format::U8, Format::I16Big] {
        for (channels, hertz) in [1, 2].into_iter().flat_map(|channels| {
            [0, 4000, 8000, 11_025, 12_345, 24_000, 44_100, 47_999, 96_000, u32::MAX].map(|hertz| (channels, hertz))
        }) {
            for power in 0..21 {
                for most in [1, 2, 3, 16, 0x7FFF] {
                    let wish = Some(Fragments { bytes: 1 << power, most });
                    let settings = Settings { format, channels, hertz, fragments: wish };
                    let geometry = settings.geometry(&RATES, (RING_BYTES, 224));
                    let Geometry { fragment_bytes, fragments, period_bytes, periods, repeats, .. } = geometry;
                    assert!(geometry.ring_bytes() <= RING_BYTES && periods <= 224, "{settings:?}");
                    assert!((2..=periods).contains(&fragments) && geometry.ring_bytes() >= 16 << 10, "{settings:?}");
                    assert!(fragment_bytes.is_power_of_two() && period_bytes % 128 == 0, "{settings:?}");
                    assert!(RATES.contains(&geometry.hertz), "{settings:?}");
                    assert_eq!(period_bytes, fragment_bytes / settings.frame_bytes() * 4 * repeats, "{settings:?}");
                }
            }
        }
    }
    for (wanted, rate) in
        [(0, 4000), (8000, 8000), (11_025, 11_025), (44_056, 44_100), (47_000, 48_000), (u32::MAX, 48_000)]
    {
        assert_eq!(Settings::nearest_rate(wanted, &RATES), rate, "{wanted}");
    }
    assert_eq!(CD.geometry(&RATES, (RING_BYTES, 224)).fragment_bytes, 4096);
}

fn converted(settings: Settings, repeats: usize, bytes: &[u8], piece: usize) -> Vec<[i16; 2]> {
    let mut converter = Converter::new(settings, repeats);
    let out = RefCell::new(Vec::new());
    for part in bytes.chunks(piece) {
        assert_eq!(
            converter.convert(part, usize::MAX / 64, |bytes| out.borrow_mut().extend(bytes.to_vec())),
            part.len()
        );
    }
    let out = out.into_inner();
    out.chunks_exact(4).map(|frame| [0, 2].map(|at| i16::from_le_bytes([frame[at], frame[at + 1]]))).collect()
}

#[test]
fn formats_are_what_they_are_called() {
    let mono = |format| Settings { format, channels: 1, hertz: 16_000, fragments: None };
    let both = |samples: &[i16]| samples.iter().map(|sample| [*sample; 2]).collect::<Vec<_>>();
    assert_eq!(converted(mono(Format::U8), 1, &[0, 128, 255], 1), both(&[-32_768, 0, 0x7F00]));
    assert_eq!(converted(mono(Format::I8), 1, &[0, 127, 0x80], 2), both(&[0, 0x7F00, -32_768]));
    assert_eq!(converted(mono(Format::I16Big), 1, &[0x12, 0x34, 0xFF, 0xFE], 3), both(&[0x1234, -2]));
    assert_eq!(converted(mono(Format::I16Little), 1, &[0x12, 0x34, 0xFF, 0xFE], 1), both(&[0x3412, -257]));
    let stereo = Settings { channels: 2, ..mono(Format::U8) };
    assert_eq!(converted(stereo, 1, &[0x81, 0x7F, 0x90, 0x70], 3), [[0x100, -0x100], [0x1000, -0x1000]]);
}

#[test]
fn mu_law_comes_back_as_it_went() {
    for code in 0..=255u8 {
        let sample = linear(code);
        let again = crate::sound::mu_law(sample);
        // There are two zeros.
        assert!(again == code || (sample, again) == (0, 0xFF), "{code:#x}: {sample} is {again:#x}");
    }
    // G.711, table 2a: the values of the first and the last intervals, of 14 bits.
    assert_eq!([0xFF, 0xFE, 0x80, 0x00, 0x7E].map(linear), [0, 2 << 2, 8031 << 2, -8031 << 2, -(2 << 2)]);
}

#[test]
fn a_line_leads_from_sample_to_sample() {
    let settings = Settings { format: Format::I16Little, channels: 1, hertz: 8000, fragments: None };
    let bytes: Vec<u8> = [300i16, -300, 0].iter().flat_map(|sample| sample.to_le_bytes()).collect();
    let left: Vec<i16> = converted(settings, 3, &bytes, 5).iter().map(|frame| frame[0]).collect();
    assert_eq!(left, [100, 200, 300, 100, -100, -300, -200, -100, 0]);
    let extremes: Vec<u8> = [i16::MIN, i16::MAX].iter().flat_map(|sample| sample.to_le_bytes()).collect();
    let left: Vec<i16> = converted(settings, 2, &extremes, 4).iter().map(|frame| frame[0]).collect();
    assert_eq!(left, [-16_384, i16::MIN, -1, i16::MAX], "no sum is too large");
}

#[test]
fn no_more_frames_are_taken_than_there_is_room_for() {
    let settings = Settings { format: Format::I16Big, ..CD };
    let mut converter = Converter::new(settings, 1);
    let bytes = frames(10);
    let mut put = 0;
    assert_eq!(converter.convert(&bytes[..6], 5, |bytes| put += bytes.len()), 6);
    assert_eq!((put, converter.waiting_bytes()), (4, 2));
    assert_eq!(converter.convert(&bytes[6..], 3, |bytes| put += bytes.len()), 10);
    assert_eq!((put, converter.waiting_bytes()), (16, 0));
    assert_eq!(converter.convert(&bytes, 0, |_| panic!("no room")), 0);
}

/// Whatever a program asks for and the device does, in any order: counts stay in step, and nothing panics.
#[test]
fn no_order_of_requests_does_harm() {
    let seed = means::Random::seed();
    println!("SYNTH_SEED={seed}");
    let mut random = means::Random::new(seed);
    for _ in 0..12 {
        let player = Fake::new(Lie::None);
        let mut state = state(CD, &player);
        let (mut played, mut now) = (0, Nanos(0));
        for _ in 0..300 {
            now = now.saturating_add(Nanos(random.below(Nanos::PER_SECOND / 5)));
            state.look(&player, now);
            match random.below(12) {
                0..4 => drop(state.put(&player, &frames(4000)[..random.index(16_000)], now)),
                4..7 => player.move_on(random.index(20_000)),
                7 => player.with(|inner| inner.position = random.index(RING_BYTES)),
                8 => state.begin(&player, now),
                9 => state.is_held_back = random.once_in(2),
                10 => state.is_ending = true,
                _ if state.phase == Phase::Still => state.change(any_settings(&mut random), &player),
                _ => state.stop(&player),
            }
            player.with(|inner| inner.lie = if random.once_in(90) { Lie::IsNowhere } else { Lie::None });
            let (queue, room) = (state.geometry.queue_bytes(), state.feed.room());
            assert!(room <= queue && state.feed.queued_bytes() <= queue as u64 + 4, "{:?}", state.geometry);
            assert!(state.next_look(random.once_in(2)).is_none_or(|wait| wait >= LOOK_LEAST));
            assert!(state.played_bytes() >= played);
            played = state.played_bytes();
        }
    }
}

fn any_settings(random: &mut means::Random) -> Settings {
    let formats = [Format::MuLaw, Format::U8, Format::I8, Format::I16Little, Format::I16Big];
    let fragments = Fragments { bytes: 1 << random.below(20), most: random.index(40) };
    Settings {
        format: random.pick(&formats),
        channels: 1 + random.index(2),
        hertz: random.below(100_000) as u32,
        fragments: random.once_in(2).then_some(fragments),
    }
}
