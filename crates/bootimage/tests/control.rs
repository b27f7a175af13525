//! Control records come out whole however the stream is cut.

use bootimage::control::{ControlError, Decoder, PAYLOAD_BYTES_MAX, Record, exit_record, header, kind};

const RECORDS: [Record<'_>; 7] = [
    Record::Log(b"boot\n"),
    Record::Stats(b"boot_instructions=1\n"),
    Record::WindowSize { rows: 24, columns: 80, x_pixels: 0, y_pixels: 1 },
    Record::Strace(b"write(1, \"x\", 1) = 1\n"),
    Record::Panic(b"oops"),
    Record::Failure(b"/bin/x: it is not a program for x86-64"),
    Record::Exit { status: -1, signal: 9 },
];

fn stream() -> Vec<u8> {
    let mut bytes = Vec::new();
    RECORDS.iter().for_each(|record| record.encode(&mut bytes));
    bytes
}

#[test]
fn records_survive_any_split() {
    let bytes = stream();
    for piece in 1..bytes.len() {
        let (mut decoder, mut seen) = (Decoder::new(), 0);
        for chunk in bytes.chunks(piece) {
            decoder.feed(chunk);
            while let Some(record) = decoder.next().unwrap() {
                assert_eq!(record, RECORDS[seen]);
                seen += 1;
            }
        }
        assert_eq!((seen, decoder.is_partial()), (RECORDS.len(), false));
    }
}

#[test]
fn a_cut_record_is_seen_to_be_partial() {
    let mut decoder = Decoder::new();
    decoder.feed(&exit_record(0, 0)[..15]);
    assert_eq!(decoder.next(), Ok(None));
    assert!(decoder.is_partial());
}

#[test]
fn long_text_is_sent_in_several_records() {
    let text = vec![b'x'; PAYLOAD_BYTES_MAX * 2 + 1];
    let mut bytes = Vec::new();
    Record::Log(&text).encode(&mut bytes);
    let (mut decoder, mut got) = (Decoder::new(), Vec::new());
    decoder.feed(&bytes);
    while let Some(record) = decoder.next().unwrap() {
        let Record::Log(part) = record else { panic!("{record:?}") };
        got.extend_from_slice(part);
    }
    assert_eq!(got, text);
}

#[test]
fn damage_is_named_and_stays() {
    let cases = [
        (header(77, 0), ControlError::BadHeader([77, 0, 0, 0])),
        ([kind::LOG, 1, 0, 0, 0, 0, 0, 0], ControlError::BadHeader([kind::LOG, 1, 0, 0])),
        (header(kind::LOG, u32::MAX), ControlError::TooLong(u32::MAX)),
        (header(kind::EXIT, 0), ControlError::BadPayload(kind::EXIT)),
    ];
    for (bytes, error) in cases {
        let mut decoder = Decoder::new();
        decoder.feed(&bytes);
        assert_eq!(decoder.next(), Err(error));
        assert_eq!(decoder.next(), Err(error));
    }
}
