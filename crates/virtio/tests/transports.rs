//! The two transports against registers in a vector.

use std::cell::RefCell;
use std::collections::BTreeMap;

use virtio::{ConfigSpace, Mmio, NotVirtio, Pci, QueuePlace, Transport, Window, capability, device_id, id};

/// Registers that keep what is written, and a note of every write.
#[derive(Clone, Default)]
struct Registers(std::rc::Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    bytes: BTreeMap<u32, u8>,
    written: Vec<(u32, u32)>,
}

impl Registers {
    fn put(&self, offset: u32, bytes: &[u8]) {
        self.0.borrow_mut().bytes.extend((offset..).zip(bytes.iter().copied()));
    }

    fn get(&self, offset: u32, count: u32) -> u32 {
        let state = self.0.borrow();
        (0..count).rev().fold(0, |all, index| all << 8 | u32::from(*state.bytes.get(&(offset + index)).unwrap_or(&0)))
    }

    fn set(&self, offset: u32, value: u32, count: usize) {
        self.put(offset, &value.to_le_bytes()[..count]);
        self.0.borrow_mut().written.push((offset, value));
    }

    fn written(&self) -> Vec<(u32, u32)> {
        std::mem::take(&mut self.0.borrow_mut().written)
    }
}

impl Window for Registers {
    fn read8(&self, offset: u32) -> u8 {
        self.get(offset, 1) as u8
    }
    fn read16(&self, offset: u32) -> u16 {
        self.get(offset, 2) as u16
    }
    fn read32(&self, offset: u32) -> u32 {
        self.get(offset, 4)
    }
    fn write8(&self, offset: u32, value: u8) {
        self.set(offset, value.into(), 1);
    }
    fn write16(&self, offset: u32, value: u16) {
        self.set(offset, value.into(), 2);
    }
    fn write32(&self, offset: u32, value: u32) {
        self.set(offset, value, 4);
    }
}

const PLACE: QueuePlace = QueuePlace { size: 8, descriptors: 0x1_0000_1000, available: 0x2000, used: 0x3000 };

#[test]
fn a_window_is_a_device_of_version_2_or_none() {
    let registers = Registers::default();
    assert_eq!(device_id(&registers), None);
    registers.put(0, b"virt");
    registers.put(4, &[1]);
    registers.put(8, &[4]);
    assert_eq!(device_id(&registers), None, "of before version 1");
    registers.put(4, &[2]);
    assert_eq!(device_id(&registers), Some(id::ENTROPY));
    registers.put(8, &[0]);
    assert_eq!(device_id(&registers), None, "a window without a device");
}

#[test]
fn a_queue_in_a_window_is_told_by_its_registers() {
    let registers = Registers::default();
    let device = Mmio(registers.clone());
    registers.put(0x34, &0x1_0010u32.to_le_bytes());
    assert_eq!(device.queue_size_max(3), u16::MAX);
    registers.written();
    device.install(3, PLACE);
    let expected = [
        (0x30, 3),
        (0x38, 8),
        (0x80, 0x1000),
        (0x84, 1),
        (0x90, 0x2000),
        (0x94, 0),
        (0xA0, 0x3000),
        (0xA4, 0),
        (0x44, 1),
    ];
    assert_eq!(registers.written(), expected);
    registers.put(0x60, &[3]);
    assert_eq!(device.interrupt_cause(), 3);
    device.notify(3);
    assert_eq!(registers.written(), [(0x64, 3), (0x50, 3)]);
    registers.put(0x60, &[0]);
    assert_eq!((device.interrupt_cause(), registers.written()), (0, vec![]));
}

/// A configuration space with these capabilities: kind, window, offset, bytes, and a word behind them.
struct Space(Registers);

impl ConfigSpace for Space {
    fn read(&self, offset: u8) -> u32 {
        assert_eq!(offset % 4, 0);
        self.0.get(offset.into(), 4)
    }
}

fn space(capabilities: &[(u8, u8, u32, u32, u32)]) -> Space {
    let registers = Registers::default();
    registers.put(0, &[0xF4, 0x1A, 0x44, 0x10]);
    registers.put(6, &[0x10, 0]);
    let mut link = 0x34;
    for (index, &(kind, bar, offset, bytes, word)) in capabilities.iter().enumerate() {
        let at = 0x40 + 0x18 * index as u32;
        registers.put(link, &[at as u8]);
        registers.put(at, &[9, 0, 20, kind, bar]);
        registers.put(at + 8, &offset.to_le_bytes());
        registers.put(at + 12, &bytes.to_le_bytes());
        registers.put(at + 16, &word.to_le_bytes());
        link = at + 1;
    }
    Space(registers)
}

const WHOLE: [(u8, u8, u32, u32, u32); 5] =
    [(1, 4, 0, 0x38, 0), (3, 4, 0x1000, 1, 0), (4, 4, 0x2000, 8, 0), (2, 4, 0x3000, 16, 4), (1, 5, 0x9000, 0x38, 0)];

/// The device's kind, its transport, the windows that were asked for (bar, offset, bytes), and what is in them.
type Found = (u32, Pci<Registers>, Vec<(u8, u32, u32)>, Vec<Registers>);

fn find(space: &Space) -> Result<Found, NotVirtio> {
    let (asked, windows) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let window = |bar, offset: u32, bytes: u32| {
        let is_inside = offset.checked_add(bytes).is_some_and(|end| end <= 0x4000);
        asked.borrow_mut().push((bar, offset, bytes));
        is_inside.then(|| {
            let window = Registers::default();
            windows.borrow_mut().push(window.clone());
            window
        })
    };
    let (kind, device) = Pci::find(space, window, Some(0))?;
    Ok((kind, device, asked.into_inner(), windows.into_inner()))
}

#[test]
fn a_function_of_pci_says_where_its_registers_lie() {
    let (kind, device, asked, windows) = find(&space(&WHOLE)).unwrap();
    assert_eq!(kind, id::ENTROPY);
    assert_eq!(asked, [(4, 0, 0x38), (4, 0x3000, 16), (4, 0x1000, 1), (4, 0x2000, 8)], "the first of each kind");
    let [common, notify, interrupt, configuration] = &windows[..] else { panic!("four windows") };
    device.install(1, PLACE);
    let expected =
        [(22, 1), (24, 8), (26, 0), (32, 0x1000), (36, 1), (40, 0x2000), (44, 0), (48, 0x3000), (52, 0), (28, 1)];
    assert_eq!(common.written(), expected);
    common.put(30, &[3]);
    device.notify(1);
    assert_eq!(notify.written(), [(12, 1)]);
    common.put(30, &[4]);
    device.notify(1);
    assert_eq!(notify.written(), [], "a place outside of the device's window");
    interrupt.put(0, &[2]);
    configuration.put(5, &[0x77]);
    assert_eq!((device.interrupt_cause(), device.configuration(5)), (2, 0x77));
}

#[test]
fn a_function_that_older_drivers_can_drive_says_its_kind_elsewhere() {
    let transitional = space(&WHOLE);
    transitional.0.put(2, &[0x05, 0x10]);
    transitional.0.put(0x2E, &[4, 0]);
    assert_eq!(find(&transitional).map(|(kind, ..)| kind), Ok(id::ENTROPY));
    assert_eq!((capability(&transitional, 9), capability(&transitional, 0x11)), (Some(0x40), None));
}

#[test]
fn a_function_that_lies_is_not_driven() {
    let not = |space: &Space| find(space).err();
    let other = space(&WHOLE);
    other.0.put(0, &[0x86, 0x80]);
    assert_eq!(not(&other), Some(NotVirtio::Other));
    let old = space(&[]);
    old.0.put(2, &[0x05, 0x10]);
    assert_eq!(not(&old), Some(NotVirtio::Missing), "of before version 1");
    let without = space(&WHOLE);
    without.0.put(6, &[0]);
    assert_eq!(not(&without), Some(NotVirtio::Missing), "no capabilities");
    assert_eq!(not(&space(&WHOLE[..3])), Some(NotVirtio::Missing), "no place to be told");
    let circle = space(&WHOLE);
    circle.0.put(0x41, &[0x40]);
    assert_eq!(not(&circle), Some(NotVirtio::Endless));
    let mut outside = WHOLE;
    outside[0].2 = u32::MAX;
    assert_eq!(not(&space(&outside)), Some(NotVirtio::Missing), "behind the end of all");
    outside[0].2 = 0x3FFF;
    assert_eq!(not(&space(&outside)), Some(NotVirtio::Missing), "behind the end of the window");
    let mut small = WHOLE;
    small[0].3 = 20;
    assert_eq!(not(&space(&small)), Some(NotVirtio::Missing), "a structure that is too small");
}
