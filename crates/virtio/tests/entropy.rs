//! The entropy driver against a device that gives, gives little, nothing, too much, or never.

mod fake;

use fake::{Fake, Lie, dma};
use virtio::{Entropy, Lost, Misbehaved};

fn driver(device: &Fake) -> Entropy<&Fake> {
    Entropy::start(device, dma(device.machine)).expect("the device starts")
}

#[test]
fn bytes_come_in_as_many_pieces_as_the_device_likes() {
    for most in [1, 7, 4096] {
        let device = Fake::new(7, 0);
        let mut driver = driver(&device);
        let mut bytes = [0; 100];
        let count = driver.fill(&mut bytes, || {
            device.serve_entropy(most);
            true
        });
        assert_eq!(count, Ok(100));
        assert!(bytes.iter().filter(|byte| **byte == 0).count() < 20, "{bytes:?}");
        assert!(device.notified.get() > 0);
    }
}

#[test]
fn nobody_waits_for_ever() {
    let device = Fake::new(7, 0);
    device.lie.set(Lie::Silence);
    let mut driver = driver(&device);
    let mut patience = 10;
    let mut bytes = [0; 8];
    let count = driver.fill(&mut bytes, || {
        device.serve_entropy(8);
        patience -= 1;
        patience > 0
    });
    assert_eq!((count, patience), (Ok(0), 0));
    device.lie.set(Lie::None);
    device.serve_entropy(8);
    assert_eq!(driver.take(&mut bytes), Ok(8), "what was asked for comes later");
}

#[test]
fn a_device_that_gives_nothing_or_more_than_it_could_is_lost() {
    let cases = [
        (Lie::Nothing, Lost::Empty),
        (Lie::Longer(1), Lost::Misbehaved(Misbehaved::TooMuch { written: 9, room: 8 })),
        (Lie::Id(77), Lost::Misbehaved(Misbehaved::Unknown(77))),
    ];
    for (lie, lost) in cases {
        let device = Fake::new(7, 0);
        device.lie.set(lie);
        let mut driver = driver(&device);
        let mut bytes = [0; 8];
        let count = driver.fill(&mut bytes, || {
            device.serve_entropy(8);
            true
        });
        assert_eq!(count, Err(lost), "{lie:?}");
    }
}

#[test]
fn what_was_given_to_a_program_does_not_stay_in_the_buffer() {
    let device = Fake::new(7, 0);
    let mut driver = driver(&device);
    driver.ask(64).unwrap();
    let (head, buffers) = device.take().unwrap();
    let (address, bytes, _) = buffers[0];
    assert_eq!(bytes, 64);
    device.machine.bus_write(address, &[0xAB; 64]);
    device.finish(head, 64);
    assert_eq!(driver.take(&mut [0; 16]), Ok(16));
    let mut left = [1; 64];
    device.machine.bus_read(address, &mut left);
    assert_eq!(left, [0; 64]);
}
