//! The declarations in AML (ACPI 6.5, chapter 20): devices with their names and resources, and the value of the state S5.
//!
//! Definition blocks are programs, and some firmware computes what is asked for here. What virtual machines and most PCs say is
//! constant: `Name` with an integer, a string, a buffer or a package, in scopes and devices. This reads such names and passes
//! over everything else by its length; nothing is executed, so nothing can loop. Where something stands that has no length and is
//! not known, the rest of its scope or device is left out.

use alloc::vec::Vec;

use crate::bytes::{u8_at, u16_at, u32_at, u64_at};

/// What is declared.
#[derive(Default, Debug, PartialEq, Eq)]
pub struct Declarations<'a> {
    pub devices: Vec<Device<'a>>,
    /// The values of the state S5 (7.4.2.6) for the two PM1 control registers.
    pub soft_off: Option<[u8; 2]>,
}

/// A device that is there.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Device<'a> {
    /// `_HID` where it is a string.
    pub id: &'a [u8],
    /// `_CRS` where it is a buffer: to be read by [`crate::resources`].
    pub resources: &'a [u8],
    /// `_STA` says that it is absent or off.
    is_off: bool,
}

/// Scopes and devices in one another that are looked into.
const DEPTH_MAX: usize = 16;

const ZERO: u8 = 0x00;
const ONE: u8 = 0x01;
const ALIAS: u8 = 0x06;
const NAME: u8 = 0x08;
const BYTE: u8 = 0x0A;
const WORD: u8 = 0x0B;
const DWORD: u8 = 0x0C;
const STRING: u8 = 0x0D;
const QWORD: u8 = 0x0E;
const SCOPE: u8 = 0x10;
const BUFFER: u8 = 0x11;
const PACKAGE: u8 = 0x12;
const VARIABLE_PACKAGE: u8 = 0x13;
const METHOD: u8 = 0x14;
const EXTERNAL: u8 = 0x15;
const DUAL_NAME: u8 = 0x2E;
const MULTIPLE_NAME: u8 = 0x2F;
const EXTENDED: u8 = 0x5B;
const CREATE_DWORD: u8 = 0x8A;
const CREATE_BIT: u8 = 0x8D;
const CREATE_QWORD: u8 = 0x8F;
const IF: u8 = 0xA0;
const ELSE: u8 = 0xA1;
const ONES: u8 = 0xFF;
/// Behind [`EXTENDED`].
const MUTEX: u8 = 0x01;
const EVENT: u8 = 0x02;
const CREATE_FIELD: u8 = 0x13;
const REVISION: u8 = 0x30;
const REGION: u8 = 0x80;
const FIELD: u8 = 0x81;
const DEVICE: u8 = 0x82;
const PROCESSOR: u8 = 0x83;
const THERMAL_ZONE: u8 = 0x85;
const INDEX_FIELD: u8 = 0x86;
const BANK_FIELD: u8 = 0x87;
const DATA_REGION: u8 = 0x88;

/// Reads definition blocks, one behind the other.
pub fn read<'a>(blocks: &[&'a [u8]]) -> Declarations<'a> {
    let mut found = Declarations::default();
    for block in blocks {
        let mut nowhere = Device::default();
        let _ = Reader(block).list(&mut found, &mut nowhere, 0);
    }
    found
}

/// A value that a name is given.
enum Value<'a> {
    Integer(u64),
    String(&'a [u8]),
    Buffer(&'a [u8]),
    /// Its elements, encoded.
    Package(&'a [u8]),
    Other,
}

/// The bytes that are still to be read. Every step takes at least one, or gives up.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The terms of a scope or a device, which is filled in; `None` if there was something that cannot be passed over.
    fn list(&mut self, found: &mut Declarations<'a>, device: &mut Device<'a>, depth: usize) -> Option<()> {
        while !self.0.is_empty() {
            match self.byte()? {
                NAME => {
                    let name = self.name()?;
                    let value = self.value()?;
                    note(name, &value, found, device);
                }
                SCOPE => {
                    let mut inside = self.package()?;
                    inside.name()?;
                    if depth < DEPTH_MAX {
                        let _ = inside.list(found, &mut Device::default(), depth + 1);
                    }
                }
                ALIAS => {
                    self.name()?;
                    self.name()?;
                }
                EXTERNAL => {
                    self.name()?;
                    self.take(2)?;
                }
                METHOD | IF | ELSE => self.pass()?,
                CREATE_DWORD..=CREATE_BIT | CREATE_QWORD => {
                    self.value()?;
                    self.value()?;
                    self.name()?;
                }
                EXTENDED => self.extended(found, depth)?,
                _ => return None,
            }
        }
        Some(())
    }

    /// A term behind the prefix for extended ones.
    fn extended(&mut self, found: &mut Declarations<'a>, depth: usize) -> Option<()> {
        match self.byte()? {
            DEVICE => {
                let mut inside = self.package()?;
                inside.name()?;
                let mut device = Device::default();
                if depth < DEPTH_MAX {
                    let _ = inside.list(found, &mut device, depth + 1);
                }
                if !device.is_off && !device.id.is_empty() {
                    found.devices.push(device);
                }
            }
            MUTEX => {
                self.name()?;
                self.take(1)?;
            }
            EVENT => {
                self.name()?;
            }
            CREATE_FIELD => {
                for _ in 0..3 {
                    self.value()?;
                }
                self.name()?;
            }
            REGION => {
                self.name()?;
                self.take(1)?;
                self.value()?;
                self.value()?;
            }
            DATA_REGION => {
                self.name()?;
                for _ in 0..3 {
                    self.value()?;
                }
            }
            FIELD | INDEX_FIELD | BANK_FIELD | PROCESSOR..=THERMAL_ZONE => self.pass()?,
            _ => return None,
        }
        Some(())
    }

    /// A constant or a name.
    fn value(&mut self) -> Option<Value<'a>> {
        Some(match u8_at(self.0, 0)? {
            code @ (ZERO | ONE | ONES) => {
                self.byte()?;
                Value::Integer(if code == ONES { u64::MAX } else { code.into() })
            }
            BYTE => Value::Integer(u8_at(self.take(2)?, 1)?.into()),
            WORD => Value::Integer(u16_at(self.take(3)?, 1)?.into()),
            DWORD => Value::Integer(u32_at(self.take(5)?, 1)?.into()),
            QWORD => Value::Integer(u64_at(self.take(9)?, 1)?),
            STRING => {
                let length = self.0.iter().position(|byte| *byte == 0)?;
                Value::String(&self.take(length + 1)?[1..length])
            }
            BUFFER => {
                self.byte()?;
                let mut inside = self.package()?;
                inside.value()?;
                Value::Buffer(inside.0)
            }
            PACKAGE => {
                self.byte()?;
                let mut inside = self.package()?;
                inside.byte()?;
                Value::Package(inside.0)
            }
            VARIABLE_PACKAGE => {
                self.byte()?;
                self.package()?;
                Value::Other
            }
            EXTENDED if u8_at(self.0, 1)? == REVISION => {
                self.take(2)?;
                Value::Other
            }
            _ => {
                self.name()?;
                Value::Other
            }
        })
    }

    /// The last segment of a name (20.2.2); empty for the null name.
    fn name(&mut self) -> Option<&'a [u8]> {
        while matches!(u8_at(self.0, 0)?, b'\\' | b'^') {
            self.byte()?;
        }
        let segments = match u8_at(self.0, 0)? {
            ZERO => {
                self.byte()?;
                return Some(&[]);
            }
            DUAL_NAME => {
                self.byte()?;
                2
            }
            MULTIPLE_NAME => {
                self.byte()?;
                usize::from(self.byte()?)
            }
            b'A'..=b'Z' | b'_' => 1,
            _ => return None,
        };
        let all = self.take(4 * segments)?;
        all.get(all.len().checked_sub(4)?..)
    }

    /// What a package length (20.2.4) spans, behind the length itself.
    fn package(&mut self) -> Option<Reader<'a>> {
        let lead = u8_at(self.0, 0)?;
        let more = usize::from(lead >> 6);
        let mut length = usize::from(if more == 0 { lead & 0x3F } else { lead & 0x0F });
        for index in 0..more {
            length |= usize::from(u8_at(self.0, 1 + index)?) << (4 + 8 * index);
        }
        let whole = self.take(length.max(1 + more))?;
        Some(Reader(&whole[1 + more..]))
    }

    /// Over what has a package length.
    fn pass(&mut self) -> Option<()> {
        self.package().map(|_| ())
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }
}

/// Keeps a name's value if it is one of those that are asked for.
fn note<'a>(name: &[u8], value: &Value<'a>, found: &mut Declarations<'a>, device: &mut Device<'a>) {
    match (name, value) {
        (b"_HID", Value::String(id)) => device.id = id,
        (b"_CRS", Value::Buffer(resources)) => device.resources = resources,
        // Bit 0: present; bit 3: works (6.3.7).
        (b"_STA", Value::Integer(state)) => device.is_off = state & 0b1001 != 0b1001,
        (b"_S5_", Value::Package(elements)) => found.soft_off = sleep_types(elements),
        _ => {}
    }
}

fn sleep_types(elements: &[u8]) -> Option<[u8; 2]> {
    let mut elements = Reader(elements);
    let mut next = || match elements.value()? {
        Value::Integer(value) => Some(value as u8 & 7),
        _ => None,
    };
    let first = next()?;
    Some([first, next().unwrap_or(first)])
}
