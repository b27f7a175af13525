//! The driver of shared folders against a device that answers in any order, or misbehaves.

mod fake;

use fake::{Fake, Lie, dma};
use virtio::{Misbehaved, Refused, Share, feature};

fn driver(device: &Fake) -> Share<&Fake> {
    Share::start(device, 4, 1, dma(device.machine)).expect("the device starts")
}

#[test]
fn answers_come_to_the_slots_that_asked() {
    for features in [0, feature::INDIRECT | feature::EVENT_INDEX] {
        let device = Fake::new(3, features);
        let mut driver = driver(&device);
        assert_eq!((driver.slots(), driver.room()), (4, 4096));
        for slot in 0..4 {
            driver.write(slot, 10, &[slot as u8; 5]);
            assert_eq!(driver.send(slot, 15), Ok(()));
            assert_eq!(driver.send(slot, 15), Err(Refused::Malformed), "it is under way");
        }
        assert!(device.notified.get() > 0);
        let asked: Vec<_> = std::iter::from_fn(|| device.take()).collect();
        assert_eq!(asked.len(), 4);
        for (head, buffers) in asked.into_iter().rev() {
            let [(question, 15, false), (answer, 4096, true)] = buffers[..] else { panic!("{buffers:?}") };
            let mut byte = [0];
            device.machine.bus_read(question + 12, &mut byte);
            device.machine.bus_write(answer, &[byte[0] + 1; 7]);
            device.finish(head, 7);
            let mut bytes = [0; 7];
            let slot = usize::from(byte[0]);
            assert_eq!(driver.next_answer(), Ok(Some((slot, 7))));
            driver.read(slot, 0, &mut bytes);
            assert_eq!(bytes, [byte[0] + 1; 7]);
            assert_eq!(driver.next_answer(), Ok(None));
            assert_eq!(driver.send(slot, 1), Ok(()), "its slot is free again");
        }
    }
}

#[test]
fn a_device_that_lies_is_asked_no_more() {
    let device = Fake::new(3, 0);
    let mut driver = driver(&device);
    driver.send(0, 7).unwrap();
    let (head, _) = device.take().unwrap();
    device.lie.set(Lie::Longer(1));
    device.finish(head, 4096);
    let lie = Misbehaved::TooMuch { written: 4097, room: 4096 };
    assert_eq!(driver.next_answer(), Err(lie));
    assert_eq!(driver.send(1, 7), Err(Refused::Broken(lie)));
}
