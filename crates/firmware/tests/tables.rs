//! Tables as virtual machines have them, made here byte by byte, whole and damaged.

use std::collections::BTreeMap;

use firmware::resources::{Resource, Trigger, resources};
use firmware::{IoApic, Memory, PciWindow, PowerOff, Register, Tables, Write};

/// A length, then the content (20.2.4): three bytes of length, whatever it is.
fn package(content: &[u8]) -> Vec<u8> {
    let length = content.len() + 3;
    let mut out = vec![0x80 | (length & 15) as u8, (length >> 4) as u8, (length >> 12) as u8];
    out.extend(content);
    out
}

fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn scope(name: &[u8], content: &[u8]) -> Vec<u8> {
    joined(&[&[0x10], &package(&joined(&[name, content]))])
}

fn device(name: &[u8], content: &[u8]) -> Vec<u8> {
    joined(&[&[0x5B, 0x82], &package(&joined(&[name, content]))])
}

fn name(name: &[u8], value: &[u8]) -> Vec<u8> {
    joined(&[&[0x08], name, value])
}

fn string(text: &str) -> Vec<u8> {
    joined(&[&[0x0D], text.as_bytes(), &[0]])
}

fn buffer(bytes: &[u8]) -> Vec<u8> {
    joined(&[&[0x11], &package(&joined(&[&[0x0A, bytes.len() as u8], bytes]))])
}

/// What a virtio console of such a machine is: a window, an interrupt.
fn virtio(at: u32, line: u32) -> Vec<u8> {
    let window = joined(&[&[0x86, 9, 0, 1], &at.to_le_bytes(), &0x200u32.to_le_bytes()]);
    let interrupt = joined(&[&[0x89, 6, 0, 1, 1], &line.to_le_bytes()]);
    let uses = joined(&[&window, &interrupt, &[0x79, 0]]);
    joined(&[&name(b"_HID", &string("LNRO0005")), &name(b"_UID", &[0]), &name(b"_CRS", &buffer(&uses))])
}

fn soft_off(first: u8) -> Vec<u8> {
    name(b"_S5_", &joined(&[&[0x12], &package(&[4, 0x0A, first, 0, 0, 0])]))
}

fn table(signature: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 36];
    out[..4].copy_from_slice(signature);
    out[4..8].copy_from_slice(&(36 + content.len() as u32).to_le_bytes());
    out.extend(content);
    sign(&mut out, 9);
    out
}

fn sign(bytes: &mut [u8], at: usize) {
    bytes[at] = 0;
    bytes[at] = 0u8.wrapping_sub(bytes.iter().fold(0, |sum, byte| sum.wrapping_add(*byte)));
}

/// Tables at addresses.
#[derive(Default)]
struct Machine(BTreeMap<u64, Vec<u8>>);

impl<'a> Memory<'a> for &'a Machine {
    fn bytes(&self, physical: u64, count: usize) -> Option<&'a [u8]> {
        let (start, found) = self.0.range(..=physical).next_back()?;
        found.get((physical - start) as usize..)?.get(..count)
    }
}

const ROOT: u64 = 0xE_0000;
const LIST: u64 = 0x1000;

/// A machine of a definition block; `fadt` fills in its table's fields by their offsets.
fn machine(block: &[u8], fadt: &[(usize, &[u8])]) -> Machine {
    let mut fields = vec![0; 276 - 36];
    fields[140 - 36..148 - 36].copy_from_slice(&0x4000u64.to_le_bytes());
    for (at, bytes) in fadt {
        fields[at - 36..at - 36 + bytes.len()].copy_from_slice(bytes);
    }
    let madt = joined(&[&[0; 8], &[0, 8, 0, 0, 1, 0, 0, 0], &io_apic(0xFEC0_0000, 0), &io_apic(0xFEC1_0000, 24)]);
    let mut root = b"RSD PTR ".to_vec();
    root.resize(36, 0);
    root[15] = 2;
    root[24..32].copy_from_slice(&LIST.to_le_bytes());
    sign(&mut root[..20], 8);
    let list: Vec<u8> = [0x2000u64, 0x3000, 0x5000].into_iter().flat_map(u64::to_le_bytes).collect();
    Machine(BTreeMap::from([
        (ROOT, root),
        (LIST, table(b"XSDT", &list)),
        (0x2000, table(b"FACP", &fields)),
        (0x3000, table(b"APIC", &madt)),
        (0x4000, table(b"DSDT", block)),
        (
            0x5000,
            table(b"MCFG", &joined(&[&[0; 8], &pci(0xB000_0000, 0, 0, 255), &pci(1 << 40, 1, 0, 9), &pci(0, 0, 9, 1)])),
        ),
    ]))
}

fn io_apic(at: u32, first: u32) -> Vec<u8> {
    joined(&[&[1, 12, 0, 0], &at.to_le_bytes(), &first.to_le_bytes()])
}

fn pci(at: u64, segment: u16, first: u8, last: u8) -> Vec<u8> {
    joined(&[&at.to_le_bytes(), &segment.to_le_bytes(), &[first, last, 0, 0, 0, 0]])
}

#[test]
fn configuration_spaces_of_the_first_segment_are_found() {
    let machine = machine(&block(), &[]);
    let found: Vec<PciWindow> = Tables::find(ROOT, &&machine).unwrap().pci_windows().collect();
    assert_eq!(found, [PciWindow { physical: 0xB000_0000, first_bus: 0, last_bus: 255 }]);
}

/// Beside the devices what else stands in such blocks: regions, fields, methods, conditions, a device that is off.
fn block() -> Vec<u8> {
    let region = joined(&[&[0x5B, 0x80], b"REG0", &[1, 0x0B, 0, 6, 0x0A, 4]]);
    let field = joined(&[&[0x5B, 0x81], &package(b"REG0\x01SLEP\x08")]);
    let method = joined(&[&[0x14], &package(b"_WAK\x01\xA4\x00")]);
    let condition = joined(&[&[0xA0], &package(&[0x93, 0, 1])]);
    let off = device(b"VR02", &joined(&[&virtio(0xFEB0_0400, 18), &name(b"_STA", &[0])]));
    let devices =
        joined(&[&device(b"VR00", &virtio(0xFEB0_0000, 16)), &device(b"VR01", &virtio(0xFEB0_0E00, 47)), &off]);
    joined(&[&region, &field, &condition, &scope(b"\\_SB_", &joined(&[&method, &devices])), &soft_off(5)])
}

#[test]
fn devices_are_found_with_their_windows_and_interrupts() {
    let machine = machine(&block(), &[]);
    let tables = Tables::find(ROOT, &&machine).unwrap();
    let declared = tables.declarations();
    let found: Vec<(&[u8], Vec<Resource>)> =
        declared.devices.iter().map(|device| (device.id, resources(device.resources).collect())).collect();
    let uses = |physical, line| {
        let trigger = Trigger { is_level: true, is_low: false };
        vec![Resource::Window { physical, bytes: 0x200 }, Resource::Interrupt { line, trigger }]
    };
    assert_eq!(found, [(&b"LNRO0005"[..], uses(0xFEB0_0000, 16)), (b"LNRO0005", uses(0xFEB0_0E00, 47))]);
    let apics: Vec<IoApic> = tables.io_apics().collect();
    assert_eq!(apics, [IoApic { physical: 0xFEC0_0000, first: 0 }, IoApic { physical: 0xFEC1_0000, first: 24 }]);
}

#[test]
fn a_machine_is_switched_off_by_its_registers() {
    let pc = machine(&block(), &[(48, &0xB2u32.to_le_bytes()), (52, &[2]), (64, &0x604u32.to_le_bytes())]);
    let tables = Tables::find(ROOT, &&pc).unwrap();
    let first = Some(Write::Word(Register::Port(0x604), 5 << 10 | 1 << 13));
    let expected = PowerOff { enable: Some((0xB2, 2)), writes: [first, None] };
    assert_eq!(tables.power_off(&tables.declarations()), Some(expected));

    let control = joined(&[&[1, 8, 0, 1], &0x600u64.to_le_bytes()]);
    let reduced = machine(&block(), &[(112, &(1u32 << 20).to_le_bytes()), (244, &control)]);
    let tables = Tables::find(ROOT, &&reduced).unwrap();
    let first = Some(Write::Byte(Register::Port(0x600), 5 << 2 | 1 << 5));
    assert_eq!(tables.power_off(&tables.declarations()), Some(PowerOff { enable: None, writes: [first, None] }));
}

#[test]
fn what_is_not_known_hides_only_its_own_scope() {
    let strange = scope(b"ODD_", &joined(&[&[0x70, 0x60, 0x61], &device(b"LOST", &virtio(1 << 20, 1))]));
    let block = joined(&[&strange, &device(b"VR00", &virtio(0xFEB0_0000, 16)), &[0x70], &soft_off(5)]);
    let machine = machine(&block, &[(64, &0x604u32.to_le_bytes())]);
    let tables = Tables::find(ROOT, &&machine).unwrap();
    let declared = tables.declarations();
    assert_eq!((declared.devices.len(), declared.soft_off), (1, None));
    assert_eq!(tables.power_off(&declared), None);
}

#[test]
fn damaged_tables_are_as_if_they_were_not_there() {
    for (at, byte) in [(ROOT, 0), (ROOT, 9), (LIST, 40)] {
        let mut machine = machine(&block(), &[]);
        machine.0.get_mut(&at).unwrap()[byte] ^= 1;
        assert!(Tables::find(ROOT, &&machine).is_none(), "{at:#x} {byte}");
    }
    let mut machine = machine(&block(), &[(64, &0x604u32.to_le_bytes())]);
    machine.0.get_mut(&0x4000).unwrap()[60] ^= 1;
    let tables = Tables::find(ROOT, &&machine).unwrap();
    assert_eq!(tables.power_off(&tables.declarations()), None);
}

/// Every single byte replaced by every value, with right sums: nothing panics, nothing hangs.
#[test]
fn no_block_is_too_strange() {
    let good = block();
    for at in 0..good.len() {
        for value in 0..=255 {
            let mut bad = good.clone();
            bad[at] = value;
            let machine = machine(&bad, &[(64, &0x604u32.to_le_bytes())]);
            let tables = Tables::find(ROOT, &&machine).unwrap();
            let declared = tables.declarations();
            let found: usize = declared.devices.iter().map(|device| resources(device.resources).count()).sum();
            assert!(found <= bad.len());
            let _ = tables.power_off(&declared);
        }
    }
}
