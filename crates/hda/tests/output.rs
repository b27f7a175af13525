//! The driver against a device that does as it should, and against those that lie.

mod fake;

use fake::*;
use hda::{Lost, Output};
use machine::Pace;

type Started = Result<Output<&'static Fake>, Lost>;

fn start(fake: &'static Fake) -> Started {
    Output::start(fake, dma(fake.machine))
}

fn pace(period_bytes: usize, periods: usize) -> Pace {
    Pace { hertz: 48_000, period_bytes, periods }
}

/// Bytes that are all different in a page.
fn samples(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

#[test]
fn what_is_written_is_what_is_played() {
    let fake = Fake::new(Lie::None);
    let mut output = start(fake).unwrap();
    assert_eq!(output.rates(), [16_000, 22_050, 32_000, 44_100, 48_000, 88_200, 96_000]);
    let bytes = samples(6 * 4096);
    output.write(0, &bytes);
    output.play(pace(4096, 6)).unwrap();
    assert_eq!(output.position(), Ok(0));
    assert_eq!(fake.play(5000), (bytes[..5000].to_vec(), 1));
    assert_eq!(output.position(), Ok(5000));
    let (rest, ended) = fake.play(bytes.len());
    assert_eq!((rest, ended), ([&bytes[5000..], &bytes[..5000]].concat(), 6), "it goes round");
}

#[test]
fn periods_of_any_size_end_where_they_should() {
    for (period, periods) in [(128, 2), (128, 224), (768, 100), (4096, 32), (12_288, 10), (24_576, 5), (65_536, 2)] {
        let fake = Fake::new(Lie::None);
        let mut output = start(fake).unwrap();
        let bytes = samples(period * periods);
        output.write(0, &bytes);
        output.play(pace(period, periods)).unwrap();
        assert!(
            fake.list().iter().all(|(address, bytes, _)| address % 128 == 0 && address % 4096 + *bytes as u64 <= 4096)
        );
        for ended in 1..=periods.min(40) {
            assert_eq!(fake.play(period - 1).1, 0, "{period}, before the end of {ended}");
            assert_eq!(fake.play(1).1, 1, "{period}, at the end of {ended}");
        }
    }
}

#[test]
fn a_ring_that_does_not_fit_is_refused() {
    let mut output = start(Fake::new(Lie::None)).unwrap();
    for (period, periods) in [(0, 2), (128, 0), (128, 1), (131_072, 2), (usize::MAX, 2), (128, 1024)] {
        assert_eq!(output.play(pace(period, periods)), Err(Lost::NoMemory), "{period} {periods}");
    }
    assert_eq!(output.play(Pace { hertz: 8000, ..pace(4096, 2) }), Err(Lost::NoOutput), "a rate that it has not");
}

/// Formats by 3.7.1: base, multiple, divisor, 16 bits, two channels.
#[test]
fn converter_and_descriptor_are_told_the_same_format() {
    for (hertz, format) in [(48_000, 0x0011), (44_100, 0x4011), (96_000, 0x0811), (22_050, 0x4111), (32_000, 0x0A11)] {
        let fake = Fake::new(Lie::None);
        let mut output = start(fake).unwrap();
        output.play(Pace { hertz, ..pace(4096, 4) }).unwrap();
        assert_eq!(fake.register(STREAM + 0x12), format);
        assert!(fake.told.borrow().contains(&(2, 0x2_0000 | format)), "{hertz}");
        assert!(fake.told.borrow().contains(&(2, 0x7_0610)), "stream 1, first channel");
        assert_eq!(fake.register(STREAM + 2), 0x10, "the descriptor is stream 1");
    }
}

#[test]
fn samples_leave_as_they_are() {
    let fake = Fake::new(Lie::None);
    let _output = start(fake).unwrap();
    // The amplifier's 0 dB, both sides, not muted; the pin gives out.
    assert!(fake.told.borrow().contains(&(2, 0x3_B04A)), "{:x?}", fake.told.borrow());
    assert!(fake.told.borrow().contains(&(3, 0x7_0740)));
}

#[test]
fn the_way_to_a_jack_may_be_long() {
    let amplifier = (0x0D, 0x1F << 8 | 0x17);
    let codec = vec![
        widget(CONVERTER, STEREO | DIGITAL, &[], &[]), // 2: digital
        widget(CONVERTER, STEREO, &[], &[]),           // 3
        widget(MIXER, STEREO | AMPLIFIER_IN | OWN_AMPLIFIER, &[2, 5, 3], &[amplifier]), // 4
        widget(SELECTOR, STEREO, &[4, 4], &[]),        // 5: a circle
        pin(2, &[5]),                                  // 6: headphones
        pin(0, &[]),                                   // 7: a line that hears nothing
        pin(1, &[2, 5, 4]),                            // 8: the loudspeaker
    ];
    let fake = Fake::with(Lie::None, codec);
    let mut output = start(fake).unwrap();
    output.play(pace(4096, 4)).unwrap();
    let told = fake.told.borrow();
    assert!(told.contains(&(3, 0x7_0610)), "the converter that is not digital: {told:x?}");
    assert!(told.contains(&(4, 0x3_7217)), "the mixer's third input: {told:x?}");
    assert!(told.contains(&(8, 0x7_0740)) && !told.contains(&(6, 0x7_07C0)), "{told:x?}");
}

#[test]
fn without_a_way_to_a_jack_there_is_no_output() {
    let unconnected = Widget { configuration: 1 << 30, ..pin(0, &[2]) };
    let eight_bits = widget(CONVERTER, STEREO | OWN_RATES, &[], &[(0x0A, 1 << 16 | 0x1FC)]);
    let circle = widget(MIXER, STEREO, &[2, 2, 2], &[]);
    let converter = || small_codec().remove(0);
    let codecs = [
        vec![],
        vec![converter()],
        vec![converter(), unconnected],
        vec![eight_bits, pin(0, &[2])],
        vec![circle, pin(0, &[2])],
        vec![converter(), widget(PIN, STEREO, &[2], &[])],
        vec![widget(MIXER, STEREO, &[90], &[]), pin(0, &[2])],
    ];
    for (number, codec) in codecs.into_iter().enumerate() {
        assert_eq!(start(Fake::with(Lie::None, codec)).err(), Some(Lost::NoOutput), "codec {number}");
    }
}

#[test]
fn a_device_that_does_not_answer_is_given_up() {
    for from in [0, 1, 5, 9] {
        assert_eq!(start(Fake::new(Lie::Silence(from))).err(), Some(Lost::Silent), "from {from}");
    }
    assert_eq!(start(Fake::new(Lie::StaysInReset)).err(), Some(Lost::Silent));
    assert_eq!(start(Fake::new(Lie::NoCodec)).err(), Some(Lost::NoOutput));
}

#[test]
fn wrong_answers_are_not_believed() {
    assert_eq!(start(Fake::new(Lie::Another)).err(), Some(Lost::Answer));
    assert_eq!(start(Fake::new(Lie::Pointer)).err(), Some(Lost::Answer));
    assert!(start(Fake::new(Lie::Unasked(1000))).is_err(), "nothing but what nobody has asked for");
    assert!(start(Fake::new(Lie::Unasked(3))).is_ok(), "what nobody has asked for is passed over");
    for answer in [u32::MAX, 0, 0x0001_007F, 0x00FF_00FF, 0x0040_0110] {
        let error = start(Fake::new(Lie::Always(answer))).err();
        assert!(matches!(error, Some(Lost::Answer | Lost::NoOutput)), "{answer:#x}: {error:?}");
    }
}

#[test]
fn rings_may_be_small() {
    for ring_sizes in [0x10, 0x20, 0x70] {
        let fake = Fake::made(Lie::None, small_codec(), |fake| fake.ring_sizes = ring_sizes);
        assert!(start(fake).is_ok(), "{ring_sizes:#x}");
    }
}

#[test]
fn a_descriptor_that_does_not_stop_is_not_begun() {
    for lie in [Lie::Runs, Lie::StreamStaysInReset] {
        let fake = Fake::new(Lie::None);
        let mut output = start(fake).unwrap();
        fake.lie.set(lie);
        assert_eq!(output.play(pace(4096, 4)), Err(Lost::Silent), "{lie:?}");
    }
}

#[test]
fn a_device_that_is_nowhere_is_found_out() {
    let fake = Fake::new(Lie::None);
    let mut output = start(fake).unwrap();
    output.play(pace(4096, 4)).unwrap();
    for (lie, position) in [
        (Lie::Position(16_383), Ok(16_383)),
        (Lie::Position(16_384), Ok(0)),
        (Lie::Position(16_385), Err(Lost::Position)),
        (Lie::Position(u32::MAX), Err(Lost::Position)),
        (Lie::ListError, Err(Lost::Position)),
    ] {
        fake.lie.set(lie);
        assert_eq!(output.position(), position, "{lie:?}");
    }
}

#[test]
fn a_stop_forgets_where_it_was() {
    let fake = Fake::new(Lie::None);
    let mut output = start(fake).unwrap();
    output.play(pace(4096, 4)).unwrap();
    fake.play(777);
    output.halt().unwrap();
    assert_eq!(fake.register(STREAM) & 2, 0);
    assert!(fake.told.borrow().contains(&(2, 0x7_0600)), "the converter hears nobody");
    output.play(pace(2048, 4)).unwrap();
    assert_eq!(output.position(), Ok(0));
}

#[test]
fn memory_that_is_out_is_told() {
    let fake = Fake::new(Lie::None);
    for pages in [0, 1, 2, 20, 33] {
        let left = std::cell::Cell::new(pages);
        let dma = |count| {
            left.set(left.get() - 1);
            if left.get() < 0 { Err(machine::NoFrames) } else { dma(fake.machine)(count) }
        };
        assert_eq!(Output::start(fake, dma).err(), Some(Lost::NoMemory), "{pages} pages");
    }
}
