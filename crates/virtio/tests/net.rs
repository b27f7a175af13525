//! The network driver against a device that carries frames as it should, or misbehaves.

mod fake;

use fake::{Fake, Lie, dma, machine};
use machine::SumPlace;
use machine_sim::Random;
use virtio::{Frame, Misbehaved, Net, NetLost, NotSent, QueuePlace, Transport, feature};

const SUMS: u64 = 1;
const PARTIAL: u64 = 1 << 1;
const MTU: u64 = 1 << 3;
const ADDRESS: u64 = 1 << 5;
const MERGES: u64 = 1 << 15;
const ALL: u64 = SUMS | PARTIAL | ADDRESS | MERGES | 1 << 7 | 1 << 8 | feature::EVENT_INDEX;

/// Two queues of one device.
struct Pair {
    queues: [Fake; 2],
    configuration: Vec<u8>,
}

impl Pair {
    fn new(features: u64) -> Pair {
        let machine = machine();
        let queue = || {
            let mut fake = Fake::new(5, features);
            (fake.machine, fake.queue_size) = (machine, 128);
            fake
        };
        Pair { queues: [queue(), queue()], configuration: vec![2, 1, 2, 3, 4, 5, 1, 0, 0, 0, 0xDC, 5] }
    }

    fn start(&self) -> Net<&Pair> {
        Net::start(self, 8, dma(self.queues[0].machine)).expect("the device starts")
    }

    /// A frame comes, in as many buffers of `room` bytes as it needs, with these flags and this count of buffers.
    fn bring(&self, frame: &[u8], room: usize, flags: u8, buffers: Option<u16>) {
        let count = (12 + frame.len()).div_ceil(room).max(1);
        let mut bytes = vec![0; 12];
        bytes[0] = flags;
        bytes[10..12].copy_from_slice(&buffers.unwrap_or(count as u16).to_le_bytes());
        bytes.extend_from_slice(frame);
        for part in bytes.chunks(room) {
            let (head, places) = self.queues[0].take().expect("a buffer");
            let [(address, 2048, true)] = places[..] else { panic!("{places:?}") };
            self.queues[0].machine.bus_write(address, part);
            self.queues[0].finish(head, part.len() as u32);
        }
    }

    /// What was sent: header and frame.
    fn sent(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let (head, places) = self.queues[1].take()?;
        let [(address, bytes, false)] = places[..] else { panic!("{places:?}") };
        let mut all = vec![0; bytes as usize];
        self.queues[1].machine.bus_read(address, &mut all);
        self.queues[1].finish(head, 0);
        let frame = all.split_off(12);
        Some((all, frame))
    }
}

impl Transport for &Pair {
    fn device_features(&self) -> u64 {
        (&self.queues[0]).device_features()
    }

    fn accept_features(&self, features: u64) {
        self.queues.iter().for_each(|queue| Transport::accept_features(&queue, features));
    }

    fn status(&self) -> u8 {
        (&self.queues[0]).status()
    }

    fn set_status(&self, status: u8) {
        (&self.queues[0]).set_status(status);
    }

    fn queue_size_max(&self, number: u16) -> u16 {
        if number < 2 { 128 } else { 0 }
    }

    fn install(&self, number: u16, place: QueuePlace) {
        (&self.queues[usize::from(number)]).install(0, place);
    }

    fn notify(&self, number: u16) {
        (&self.queues[usize::from(number)]).notify(0);
    }

    fn interrupt_cause(&self) -> u32 {
        1
    }

    fn configuration(&self, offset: u32) -> u8 {
        self.configuration[offset as usize]
    }
}

#[test]
fn frames_come_whole_from_one_buffer_or_from_many() {
    for features in [0, ALL, ALL | feature::INDIRECT] {
        let device = Pair::new(features);
        let mut net = device.start();
        let mut random = Random::new(9);
        let most = if features & MERGES == 0 { 1500 } else { 10_000 };
        for round in 0..500 {
            let frame: Vec<u8> = (0..1 + random.below(most)).map(|_| random.below(256) as u8).collect();
            device.bring(&frame, 2048, if round % 2 == 0 { 0 } else { 2 }, None);
            let mut into = vec![0; 70_000];
            let is_checked = round % 2 == 1;
            assert_eq!(net.receive(&mut into), Ok(Some(Frame { bytes: frame.len(), is_checked })));
            assert_eq!(into[..frame.len()], frame[..]);
            assert_eq!(net.receive(&mut into), Ok(None));
        }
        assert!(!net.expect_frames());
    }
}

/// It has used all its buffers and sleeps until it is told of others, also where nothing is sent.
#[test]
fn a_device_without_buffers_is_told_of_those_that_it_gets_back() {
    for features in [0, ALL] {
        let device = Pair::new(features);
        let mut net = device.start();
        (0..8).for_each(|number| device.bring(&[number; 60], 2048, 0, None));
        device.queues[0].want_to_be_told();
        let before = device.queues[0].notified.get();
        let mut into = [0; 2000];
        for number in 0..8 {
            assert_eq!(net.receive(&mut into), Ok(Some(Frame { bytes: 60, is_checked: false })));
            assert_eq!(into[..60], [number; 60]);
        }
        assert_eq!(net.receive(&mut into), Ok(None));
        assert!(device.queues[0].notified.get() > before, "features {features:#x}: it waits for good");
        device.bring(&[9; 60], 2048, 0, None);
        assert_eq!(net.receive(&mut into), Ok(Some(Frame { bytes: 60, is_checked: false })));
    }
}

#[test]
fn a_frame_that_is_too_long_is_lost_and_the_next_one_is_not() {
    let device = Pair::new(ALL);
    let mut net = device.start();
    device.bring(&[7; 5000], 2048, 0, None);
    device.bring(&[8; 100], 2048, 0, None);
    let mut into = [0; 2000];
    assert_eq!(net.receive(&mut into), Ok(Some(Frame { bytes: 0, is_checked: false })));
    assert_eq!(net.receive(&mut into), Ok(Some(Frame { bytes: 100, is_checked: false })));
    assert_eq!(into[..100], [8; 100]);
}

#[test]
fn frames_go_in_their_order_and_wait_for_buffers() {
    for features in [0, ALL] {
        let device = Pair::new(features);
        let mut net = device.start();
        assert_eq!(
            (net.address(), net.mtu()),
            if features == 0 { ([2, 0, 0, 0, 0, 1], 1500) } else { ([2, 1, 2, 3, 4, 5], 1500) }
        );
        for number in 0..8 {
            assert!(net.has_room());
            assert_eq!(net.send(&[number; 60], Some(SumPlace { start: 34, offset: 16 })), Ok(()));
        }
        assert!(!net.has_room());
        assert_eq!(net.send(&[9; 60], None), Err(NotSent::Full));
        net.tell();
        assert!(device.queues[1].notified.get() > 0);
        for number in 0..8 {
            let (header, frame) = device.sent().unwrap();
            assert_eq!(frame, [number; 60]);
            let has_sum = features & SUMS != 0;
            assert_eq!(header[0], u8::from(has_sum), "the sum is the device's only where it said so");
            assert_eq!(header[6..10], if has_sum { [34, 0, 16, 0] } else { [0; 4] });
        }
        assert!(net.has_room());
        assert_eq!(net.send(&[], None), Err(NotSent::Long));
        assert_eq!(net.send(&[0; 2040], None), Err(NotSent::Long));
    }
}

#[test]
fn a_device_says_how_long_packets_may_be() {
    let device = Pair { configuration: vec![2, 1, 2, 3, 4, 5, 1, 0, 0, 0, 0, 5], ..Pair::new(MTU | ADDRESS) };
    assert_eq!(device.start().mtu(), 1280);
    let many = Pair { configuration: vec![1; 12], ..Pair::new(MTU | ADDRESS) };
    let net = many.start();
    assert_eq!((net.address()[0], net.mtu()), (2, 576), "no address of many, and no packets of 257 bytes");
}

#[test]
fn a_device_that_lies_is_used_no_more() {
    let frame = [3; 80];
    let mut into = [0; 2000];
    for (lie, what) in [
        (Lie::Longer(2048), NetLost::Misbehaved(Misbehaved::TooMuch { written: 2140, room: 2048 })),
        (Lie::Id(4000), NetLost::Misbehaved(Misbehaved::Unknown(4000))),
        (Lie::Jump(50), NetLost::Misbehaved(Misbehaved::Jumped(51))),
        (Lie::Nothing, NetLost::Frame),
    ] {
        let device = Pair::new(ALL);
        let mut net = device.start();
        device.queues[0].lie.set(lie);
        device.bring(&frame, 2048, 0, None);
        assert_eq!(net.receive(&mut into), Err(what));
        device.queues[0].lie.set(Lie::None);
        assert_eq!(net.receive(&mut into), Err(what), "it is asked no more");
        assert_eq!(net.send(&frame, None), Err(NotSent::Lost(what)));
        assert!(!net.has_room() && !net.expect_frames());
    }
    for buffers in [0, 3] {
        let device = Pair::new(ALL);
        let mut net = device.start();
        device.bring(&frame, 2048, 0, Some(buffers));
        assert_eq!(net.receive(&mut into), Err(NetLost::Frame), "a count of buffers that cannot be");
    }
}

#[test]
fn whatever_a_device_writes_nothing_breaks() {
    for seed in 0..200 {
        let device = Pair::new(ALL);
        let mut net = device.start();
        let mut random = Random::new(seed);
        let mut into = [0; 4000];
        for _ in 0..200 {
            let lies = [Lie::None, Lie::None, Lie::None, Lie::Longer(1 << 20), Lie::Id(random.below(300) as u32)];
            device.queues[0].lie.set(lies[random.below(5) as usize]);
            let bytes: Vec<u8> = (0..random.below(3000)).map(|_| random.below(256) as u8).collect();
            if device.queues[0].offered() > 2 {
                device.bring(&bytes, 2048, random.below(256) as u8, Some(random.below(3) as u16));
            }
            if random.below(4) == 0 {
                let _ = net.send(&bytes, None);
                while device.sent().is_some() {}
            }
            while let Ok(Some(frame)) = net.receive(&mut into) {
                assert!(frame.bytes <= into.len());
            }
        }
    }
}
