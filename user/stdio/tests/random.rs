//! Random operations on streams, held against plain vectors of bytes. A failure prints its seed.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsRawFd, IntoRawFd};

use means::Random;
use synthio::{Buffering, Direction, Stream};

const ROUNDS: u64 = 60;
const OPERATIONS: usize = 400;
const BUFFERINGS: [Buffering; 3] = [Buffering::Full, Buffering::Line, Buffering::None];

/// Mostly short, sometimes around and above the size of a buffer.
fn length(random: &mut Random) -> usize {
    let bound = [4, 20, 300, 9000, 40000][random.index(5)];
    random.index(bound)
}

fn bytes(random: &mut Random, count: usize) -> Vec<u8> {
    (0..count).map(|_| if random.below(30) == 0 { b'\n' } else { random.bits() as u8 }).collect()
}

fn scratch(name: &str) -> File {
    let path = std::env::temp_dir().join(format!("synthio-{}-{name}", std::process::id()));
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    file
}

fn contents(file: &mut File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn what_is_put_arrives_in_order_whatever_the_buffering() {
    for seed in 1..=ROUNDS {
        let mut random = Random::new(seed);
        let mut file = scratch("out");
        let first = BUFFERINGS[random.index(3)];
        let mut stream = Stream::open(file.try_clone().unwrap().into_raw_fd(), Direction::Out, first).unwrap();
        let mut model = Vec::new();
        for step in 0..OPERATIONS {
            let context = || format!("seed {seed}, step {step}");
            match random.below(40) {
                0..=19 => {
                    let byte = bytes(&mut random, 1)[0];
                    assert_eq!(stream.put(byte), Some(byte), "{}", context());
                    model.push(byte);
                }
                20..=37 => {
                    let count = length(&mut random);
                    let bytes = bytes(&mut random, count);
                    assert_eq!(stream.write(&bytes), count, "{}", context());
                    model.extend(bytes);
                }
                38 => assert!(stream.flush(), "{}", context()),
                _ => {
                    let size = length(&mut random);
                    assert!(stream.set_buffering(BUFFERINGS[random.index(3)], size), "{}", context());
                }
            }
        }
        assert!(stream.close(), "seed {seed}");
        assert!(contents(&mut file) == model, "seed {seed}: other bytes arrived");
    }
}

#[test]
fn what_is_in_a_file_is_read_whole_and_in_order() {
    for seed in 1..=ROUNDS {
        let mut random = Random::new(seed);
        let mut file = scratch("in");
        let size = random.index(60_000);
        let bytes = bytes(&mut random, size);
        file.write_all(&bytes).unwrap();
        file.rewind().unwrap();
        let buffering = BUFFERINGS[random.index(3)];
        let mut stream = Stream::open(file.into_raw_fd(), Direction::In, buffering).unwrap();
        stream.set_buffering(buffering, length(&mut random));
        let mut at = 0;
        while at < size {
            if random.below(2) == 0 {
                assert_eq!(stream.get(), Some(bytes[at]), "seed {seed}, byte {at}");
                at += 1;
            } else {
                let mut into = vec![0; length(&mut random)];
                let got = stream.read(&mut into);
                assert_eq!(got, into.len().min(size - at), "seed {seed}, byte {at}");
                assert!(into[..got] == bytes[at..at + got], "seed {seed}, byte {at}");
                at += got;
            }
        }
        assert_eq!(stream.get(), None, "seed {seed}: the end");
        assert!(stream.is_at_end() && !stream.has_failed(), "seed {seed}");
    }
}

#[test]
fn a_full_device_is_an_error_and_there_is_room_again_afterwards() {
    for buffering in BUFFERINGS {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut stream = Stream::open(full.into_raw_fd(), Direction::Out, buffering).unwrap();
        let refused = (0..20_000).filter(|_| stream.put(b'\n').is_none()).count();
        assert!(refused > 0 && stream.has_failed(), "{buffering:?}");
        assert_eq!(stream.close(), buffering == Buffering::None, "{buffering:?}");
    }
}

#[test]
fn what_a_full_pipe_does_not_take_is_kept() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    // SAFETY: changes the flags of a descriptor that this test made.
    assert_eq!(unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) }, 0);
    let mut stream = Stream::open(writer.into_raw_fd(), Direction::Out, Buffering::Full).unwrap();
    let mut random = Random::new(7);
    let mut taken = Vec::new();
    while !stream.has_failed() {
        let byte = random.bits() as u8;
        taken.extend(stream.put(byte));
    }
    let drain = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        bytes
    });
    while !stream.flush() {
        std::thread::yield_now();
    }
    assert!(stream.close());
    assert!(drain.join().unwrap() == taken, "a byte that was taken did not arrive");
}

#[test]
fn a_stream_refuses_the_other_direction() {
    let mut out = Stream::open(scratch("only-out").into_raw_fd(), Direction::Out, Buffering::Full).unwrap();
    assert_eq!((out.get(), out.read(&mut [0; 4])), (None, 0));
    let mut input = Stream::open(scratch("only-in").into_raw_fd(), Direction::In, Buffering::Full).unwrap();
    assert_eq!((input.put(b'x'), input.write(b"xyz"), input.flush()), (None, 0, false));
}

#[test]
fn closed_streams_regions_are_used_again() {
    let maps = || std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
    let cycle = || {
        for buffering in BUFFERINGS {
            let mut stream = Stream::open(scratch("again").into_raw_fd(), Direction::Out, buffering).unwrap();
            assert_eq!(stream.put(b'a'), Some(b'a'));
            assert!(stream.close());
        }
    };
    (0..10).for_each(|_| cycle());
    let before = maps();
    (0..1000).for_each(|_| cycle());
    // Other tests of this process open streams at the same time: a few regions, not thousands.
    assert!(maps() < before + 60, "{} mappings, {before} before", maps());
}
