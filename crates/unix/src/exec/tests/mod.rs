//! Files made by hand, and real ones from the host.

mod linux;

use super::elf::FileBytes;
use abi::Errno;

/// A file in memory.
pub struct Bytes(pub Vec<u8>);

impl FileBytes for Bytes {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize, Errno> {
        let rest = usize::try_from(offset).ok().and_then(|from| self.0.get(from..)).unwrap_or(&[]);
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn size(&self) -> u64 {
        self.0.len() as u64
    }
}

/// One program header to be.
#[derive(Clone, Copy)]
pub struct Header {
    pub kind: u32,
    pub flags: u32,
    pub offset: u64,
    pub vaddr: u64,
    pub file_size: u64,
    pub mem_size: u64,
    pub align: u64,
}

/// Maps the whole of [`program`]'s file at 4 MiB.
pub const WHOLE: Header =
    Header { kind: 1, flags: 5, offset: 0, vaddr: 0x40_0000, file_size: 0x400, mem_size: 0x400, align: 0x1000 };

/// Offset and, with [`WHOLE`], 4 MiB less than the address of the first instruction.
pub const CODE_AT: u64 = 0x300;

/// A file of 1024 bytes with the given program headers that exits with status 42.
pub fn program(kind: u16, headers: &[Header]) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend(kind.to_le_bytes());
    file.extend(62u16.to_le_bytes());
    file.extend(1u32.to_le_bytes());
    let entry = if kind == 2 { 0x40_0000 + CODE_AT } else { CODE_AT };
    file.extend(entry.to_le_bytes());
    file.extend(64u64.to_le_bytes());
    file.extend([0; 12]);
    for half in [64u16, 56, headers.len() as u16, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    for header in headers {
        file.extend(header.kind.to_le_bytes());
        file.extend(header.flags.to_le_bytes());
        for word in [header.offset, header.vaddr, header.vaddr, header.file_size, header.mem_size, header.align] {
            file.extend(word.to_le_bytes());
        }
    }
    assert!(file.len() <= CODE_AT as usize);
    file.resize(CODE_AT as usize, 0);
    // mov $60, %eax; mov $42, %edi; syscall
    file.extend([0xb8, 60, 0, 0, 0, 0xbf, 42, 0, 0, 0, 0x0f, 0x05]);
    file.resize(0x400, 0);
    file
}
