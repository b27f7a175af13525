//! The Rust twin and the rings; the machine code is raced against it in `tests/golden`.

use core::sync::atomic::Ordering;

use super::*;

fn words_with(formats: [Option<Format>; 3]) -> SoundWords {
    let words = SoundWords::default();
    for (channel, format) in words.channels.iter().zip(formats) {
        channel.allocate().expect("memory for a ring");
        channel.set_format(format);
    }
    words
}

fn interrupts(words: &SoundWords, count: u32) {
    for _ in 0..count {
        let sample = words.device.fetch_add(1, Ordering::Relaxed) + 1;
        for channel in &words.channels {
            channel.serve(sample, &words.analog_out);
        }
    }
}

#[test]
fn mu_law_has_the_values_of_the_standard() {
    // G.711, table 2a: decision values and codes. 16-bit samples are 14-bit ones shifted by two.
    for (sample, code) in [(0, 0xFF), (1, 0xFE), (2, 0xFE), (30, 0xF0), (31, 0xEF), (95, 0xDF), (8158, 0x80)] {
        assert_eq!(mu_law(sample << 2), code, "{sample}");
        if sample > 0 {
            assert_eq!(mu_law(-sample << 2), code & 0x7F, "-{sample}");
        }
    }
    assert_eq!((mu_law(i16::MAX), mu_law(i16::MIN)), (0x80, 0x00));
}

#[test]
fn a_cd_arrives_whole_and_in_order() {
    let words = words_with([Some(Format::Stereo), None, None]);
    let cd = &words.channels[Channel::CdIn as usize];
    let mut bytes = [0; 4 * 100];
    let mut next = 1u32;
    for _ in 0..2000 {
        interrupts(&words, 90);
        let count = cd.take(Format::Stereo, &mut bytes);
        for frame in bytes[..count].chunks_exact(4) {
            assert_eq!(u32::from_le_bytes(frame.try_into().unwrap()), next);
            next += 1;
        }
    }
    assert_eq!((next, cd.lost()), (2000 * 90 + 1, 0));
}

#[test]
fn a_late_reader_learns_how_much_it_has_lost() {
    let words = words_with([Some(Format::Stereo), None, None]);
    interrupts(&words, RING_PLACES + 7);
    let mut frame = [0; 4];
    assert_eq!((words.channels[0].take(Format::Stereo, &mut frame), words.channels[0].lost()), (4, 7));
    assert_eq!(u32::from_le_bytes(frame), 8);
}

/// The formats of the A/D converter, and what three of its samples are.
fn conversions() -> [(Format, Vec<u8>); 3] {
    [
        (Format::Linear, vec![1, 0, 2, 0, 3, 0]),
        (Format::MuLaw, vec![0xFF, 0xFF, 0xFF]),
        (Format::StereoIn, vec![1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]),
    ]
}

#[test]
fn the_converters_readers_see_whole_elements() {
    for (format, expected) in conversions() {
        let words = words_with([None, Some(format), None]);
        let converter = &words.channels[Channel::AdIn as usize];
        let mut bytes = vec![9; expected.len()];
        interrupts(&words, 7);
        assert_eq!((converter.take(format, &mut bytes), converter.fill()), (0, 0));
        interrupts(&words, 2);
        assert_eq!((converter.take(format, &mut bytes), converter.fill()), (expected.len(), 5));
        assert_eq!(bytes, expected);
    }
}

#[test]
fn an_element_in_the_making_goes_from_one_handler_to_the_next() {
    for (format, _) in conversions() {
        let [words, twin] = [(); 2].map(|()| words_with([None, Some(format), None]));
        for parts in [3, 10, 0, 8, 7] {
            interrupts(&words, parts);
            interrupts(&twin, parts);
            let converter = &words.channels[Channel::AdIn as usize];
            let packed = converter.pack();
            assert_eq!((packed, converter.head.load(Ordering::Relaxed) % ELEMENT_PLACES), (packed % 8, 0));
            converter.unpack(packed);
        }
        interrupts(&words, 4);
        interrupts(&twin, 4);
        let taken = [words, twin].map(|words| {
            let mut bytes = vec![0; 32 * format.bytes()];
            assert_eq!(words.channels[Channel::AdIn as usize].take(format, &mut bytes), bytes.len());
            bytes
        });
        assert_eq!(taken[0], taken[1]);
    }
}

#[test]
fn a_dry_output_repeats_its_last_sample_and_counts() {
    let words = words_with([None, None, Some(Format::StereoOut)]);
    let da = &words.channels[Channel::DaOut as usize];
    assert_eq!(da.add(&[1, 0, 0, 0, 2, 0, 0, 0, 9]), 8);
    interrupts(&words, 5);
    assert_eq!(words.analog_out.load(Ordering::Relaxed), 2);
    assert_eq!((da.dry(5), da.fill()), (3, 0));
}

#[test]
fn a_full_output_takes_no_more() {
    let words = words_with([None, None, Some(Format::StereoOut)]);
    let da = &words.channels[Channel::DaOut as usize];
    let bytes = vec![0; RING_PLACES as usize * 4 + 4];
    assert_eq!(da.add(&bytes), bytes.len() - 4);
    interrupts(&words, 1);
    assert_eq!(da.add(&bytes), 4);
}
