//! Queues against a device that does as it should, and one that lies. `SYNTH_SEED=n` repeats a run.

mod fake;

use std::collections::BTreeMap;

use fake::{Chain, Fake, Lie, Meanwhile, dma};
use machine::Memory;
use machine_sim::Random;
use virtio::{Misbehaved, Piece, Queue, Refused, StartError, Token, feature, start};

fn seed() -> u64 {
    std::env::var("SYNTH_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn queue(device: &Fake) -> Queue {
    start(&device, feature::INDIRECT | feature::EVENT_INDEX, |transport, features| {
        Queue::install(transport, 0, 16, features, dma(device.machine))
    })
    .expect("the device starts")
}

const ALL: [u64; 4] = [0, feature::INDIRECT, feature::EVENT_INDEX, feature::INDIRECT | feature::EVENT_INDEX];

/// What is to come back for a chain.
struct Expected {
    pieces: Vec<Piece>,
    read: Vec<u8>,
}

/// Chains of random lengths, finished in any order; bytes go both ways, and the indices go round.
#[test]
fn chains_of_any_length_pass_in_both_directions_and_any_order() {
    for features in ALL {
        let seed = seed();
        let (device, mut random) = (Fake::new(seed, features), Random::new(seed));
        let mut queue = queue(&device);
        assert_eq!(queue.size(), 16);
        let memory = device.machine.dma(16).unwrap();
        let mut expected: BTreeMap<String, Expected> = BTreeMap::new();
        let mut at_device: Vec<Chain> = Vec::new();
        let (mut offered, mut finished) = (0u64, 0u64);
        while finished < 70_000 {
            if random.below(2) == 0 && expected.len() < 14 {
                let pieces = chain(&mut random, &memory);
                let before = queue.in_flight();
                match queue.offer(&pieces) {
                    Ok(token) => {
                        let read =
                            to_device(&pieces).map(|(address, bytes)| (address % 251) as u8 ^ bytes as u8).collect();
                        let old = expected.insert(format!("{token:?}"), Expected { pieces, read });
                        assert!(old.is_none(), "two chains of one name: features {features:#x}, SYNTH_SEED={seed}");
                        offered += 1;
                    }
                    Err(Refused::Full) => assert_eq!(queue.in_flight(), before),
                    Err(other) => panic!("{other:?}: features {features:#x}, SYNTH_SEED={seed}"),
                }
                queue.must_tell(&&device);
            }
            at_device.extend(device.take());
            if !at_device.is_empty() && random.below(2) == 0 {
                let (head, buffers) = at_device.swap_remove(random.below(at_device.len() as u64) as usize);
                let written: u32 = buffers.iter().filter(|buffer| buffer.2).map(|buffer| buffer.1).sum();
                let written = random.below(u64::from(written) + 1) as u32;
                let read: Vec<u8> = buffers
                    .iter()
                    .filter(|buffer| !buffer.2)
                    .map(|(address, bytes, _)| (address % 251) as u8 ^ *bytes as u8)
                    .collect();
                let known = expected.values().any(|it| it.read == read && it.pieces.len() == buffers.len());
                assert!(known, "a chain that nobody offered: features {features:#x}, SYNTH_SEED={seed}");
                device.finish(head, written);
            }
            if let Some(done) = queue.finished().unwrap_or_else(|what| panic!("{what:?}, SYNTH_SEED={seed}")) {
                let was = expected.remove(&format!("{:?}", done.token)).expect("a chain that is out");
                let room: u32 = was
                    .pieces
                    .iter()
                    .map(|piece| if let Piece::FromDevice { bytes, .. } = piece { *bytes } else { 0 })
                    .sum();
                assert!(done.written <= room);
                finished += 1;
            }
        }
        assert!(offered >= finished && queue.broken().is_none());
    }
}

fn chain(random: &mut Random, memory: &machine::Dma) -> Vec<Piece> {
    let most = if random.below(20) == 0 { 16 } else { 4 };
    let length = 1 + random.below(most);
    let split = random.below(length + 1);
    let mut piece = || (memory.bus_address(random.below(60_000) as usize), 1 + random.below(100) as u32);
    (0..length)
        .map(|index| {
            let (address, bytes) = piece();
            if index < split { Piece::ToDevice { address, bytes } } else { Piece::FromDevice { address, bytes } }
        })
        .collect()
}

fn to_device(pieces: &[Piece]) -> impl Iterator<Item = (u64, u32)> {
    pieces.iter().filter_map(|piece| {
        if let Piece::ToDevice { address, bytes } = piece { Some((*address, *bytes)) } else { None }
    })
}

fn from(address: u64) -> Piece {
    Piece::FromDevice { address, bytes: 64 }
}

#[test]
fn what_cannot_be_a_chain_is_refused_and_a_full_queue_takes_again_what_came_back() {
    let device = Fake::new(1, 0);
    let mut queue = queue(&device);
    let read = Piece::ToDevice { address: 0x1000, bytes: 4 };
    assert_eq!(queue.offer(&[]), Err(Refused::Malformed));
    assert_eq!(queue.offer(&[from(0), read]), Err(Refused::Malformed), "the device reads first");
    assert_eq!(queue.offer(&[Piece::ToDevice { address: 0, bytes: 0 }]), Err(Refused::Malformed), "empty");
    assert_eq!(queue.offer(&[from(0); 17]), Err(Refused::Malformed), "longer than the queue");
    queue.offer(&[from(0x1000); 16]).unwrap();
    assert_eq!(queue.offer(&[from(0x1000)]), Err(Refused::Full));
    let (head, buffers) = device.take().unwrap();
    assert_eq!(buffers.len(), 16);
    device.finish(head, 1024);
    assert_eq!(queue.finished().unwrap().map(|done| done.written), Some(1024));
    queue.offer(&[from(0x1000); 16]).unwrap();
}

#[test]
fn a_table_takes_one_descriptor_and_what_is_longer_takes_the_queue_s_own() {
    let device = Fake::new(1, feature::INDIRECT);
    let mut queue = queue(&device);
    let tokens: Vec<Token> =
        (0..16).map(|_| queue.offer(&[from(0x1000), from(0x2000), from(0x3000)]).unwrap()).collect();
    assert_eq!(queue.offer(&[from(0x1000)]), Err(Refused::Full));
    for token in tokens {
        let (head, buffers) = device.take().unwrap();
        assert_eq!(buffers.iter().map(|buffer| buffer.0).collect::<Vec<_>>(), [0x1000, 0x2000, 0x3000]);
        device.finish(head, 7);
        assert_eq!(queue.finished().unwrap().unwrap().token, token);
    }
}

#[test]
fn the_device_is_told_when_it_wants_to_be_and_interrupts_when_somebody_waits() {
    for features in [0, feature::EVENT_INDEX] {
        let device = Fake::new(1, features);
        let mut queue = queue(&device);
        device.want_to_be_told();
        queue.offer(&[from(0x1000)]).unwrap();
        assert!(queue.must_tell(&&device));
        assert!(!queue.must_tell(&&device), "it was told");
        queue.want_no_news();
        let before = device.used_index();
        let (head, _) = device.take().unwrap();
        device.finish(head, 1);
        assert!(!device.interrupts_since(before), "features {features:#x}");
        assert!(queue.expect_news(&&device), "it came meanwhile");
        queue.finished().unwrap().unwrap();
        queue.offer(&[from(0x1000)]).unwrap();
        // With the index the device has not said that it wants to be told again.
        assert_eq!(queue.must_tell(&&device), features == 0);
        assert!(!queue.expect_news(&&device));
        let before = device.used_index();
        let (head, _) = device.take().unwrap();
        device.finish(head, 1);
        assert!(device.interrupts_since(before), "features {features:#x}");
    }
}

/// The loads behind [`Transport::order`] are not done before it, and the stores in front of it not after it: whoever falls asleep is seen.
#[test]
fn what_the_device_does_between_two_looks_is_not_lost() {
    for features in [0, feature::EVENT_INDEX] {
        let device = Fake::new(1, features);
        let mut queue = queue(&device);
        queue.offer(&[from(0x1000)]).unwrap();
        let before = device.used_index();
        device.meanwhile.set(Meanwhile::Finishes);
        assert!(queue.expect_news(&&device), "features {features:#x}: it finished and nobody looked");
        assert!(device.interrupts_since(before), "features {features:#x}: it was not asked to interrupt");
        queue.finished().unwrap().unwrap();
        queue.must_tell(&&device);
        device.take();
        queue.offer(&[from(0x1000)]).unwrap();
        device.meanwhile.set(Meanwhile::Sleeps);
        assert!(queue.must_tell(&&device), "features {features:#x}: it sleeps and nobody tells it");
    }
}

#[test]
fn a_device_that_lies_is_found_out_and_used_no_more() {
    let cases = [
        (Lie::Id(3), Misbehaved::Unknown(3)),
        (Lie::Id(u32::MAX), Misbehaved::Unknown(u32::MAX)),
        (Lie::Id(0x1_0000), Misbehaved::Unknown(0x1_0000)),
        (Lie::Longer(1), Misbehaved::TooMuch { written: 65, room: 64 }),
        (Lie::Longer(u32::MAX - 64), Misbehaved::TooMuch { written: u32::MAX, room: 64 }),
        (Lie::Jump(9), Misbehaved::Jumped(10)),
        (Lie::Jump(0xFFFE), Misbehaved::Jumped(0xFFFF)),
    ];
    for (lie, what) in cases {
        let device = Fake::new(1, feature::EVENT_INDEX);
        let mut queue = queue(&device);
        queue.offer(&[from(0x1000)]).unwrap();
        device.lie.set(lie);
        let (head, _) = device.take().unwrap();
        device.finish(head, 64);
        assert_eq!(queue.finished(), Err(what), "{lie:?}");
        assert_eq!(queue.finished(), Err(what), "it stays so");
        assert_eq!(queue.offer(&[from(0x1000)]), Err(Refused::Broken(what)));
        assert_eq!(queue.broken(), Some(what));
    }
}

#[test]
fn a_chain_does_not_come_back_twice() {
    let device = Fake::new(1, 0);
    let mut queue = queue(&device);
    let [first, second] = [(); 2].map(|()| queue.offer(&[from(0x1000)]).unwrap());
    assert_ne!(first, second);
    device.lie.set(Lie::Twice);
    let (head, _) = device.take().unwrap();
    device.finish(head, 0);
    assert_eq!(queue.finished().unwrap().map(|done| done.token), Some(first));
    assert_eq!(queue.finished(), Err(Misbehaved::Unknown(head.into())));
    assert_eq!(queue.in_flight(), 1, "the other's memory is still the device's");
}

#[test]
fn a_device_that_does_not_start_is_not_driven() {
    let start_it = |device: &Fake| {
        start(&device, 0, |transport, features| Queue::install(transport, 0, 8, features, dma(device.machine))).err()
    };
    assert_eq!(start_it(&Fake::new(1, 0)), None);
    assert_eq!(start_it(&Fake::with(|device| device.never_resets = true)), Some(StartError::Silent));
    assert_eq!(start_it(&Fake::with(|device| device.refuses = true)), Some(StartError::Features));
    assert_eq!(start_it(&Fake::with(|device| device.features = 0)), Some(StartError::Features), "before version 1");
    assert_eq!(start_it(&Fake::with(|device| device.queue_size = 0)), Some(StartError::NoQueue));
    let device = Fake::with(|device| device.queue_size = 12);
    let queue =
        start(&&device, 0, |transport, features| Queue::install(transport, 0, 16, features, dma(device.machine)));
    assert_eq!(queue.map(|queue| queue.size()), Ok(8), "a power of two");
}
