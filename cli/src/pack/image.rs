//! Writing the archive into an unnamed memory file, which the virtual machine monitor maps as the initrd module.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use bootimage::{Config, Encoded, Piece};
use rustix::fs::MemfdFlags;

use super::tree::{Source, Tree, plan_failure, unreadable};
use crate::failure::{Failure, TOOL};

/// Largest archive that the monitor of a virtual machine loads: it does so into the memory below 3 GiB, and kernel and programs
/// need some of that.
pub const LOADED_BYTES_MAX: u64 = 2560 << 20;

/// An archive that is laid out and not written yet.
pub struct Image {
    encoded: Encoded<Source>,
}

impl Image {
    /// Lays `tree` and `config` out; no file is read.
    pub fn plan(tree: &Tree, config: &Config) -> Result<Image, Failure> {
        Ok(Image { encoded: tree.plan().encode(config).map_err(|error| plan_failure(&error))? })
    }

    /// How large it will be.
    pub fn bytes(&self) -> u64 {
        self.encoded.total_bytes
    }

    /// Writes it into a file without a name, so that nothing is left behind however the tool ends; it is inherited by the processes
    /// that this one starts.
    pub fn write(&self) -> Result<File, Failure> {
        self.write_at(0, self.bytes())
    }

    /// Writes it at a place of such a file of so many bytes. Each file is copied once, in pieces, by the kernel where it can.
    pub fn write_at(&self, place: u64, file_bytes: u64) -> Result<File, Failure> {
        let failed = |error: io::Error| Failure::new(TOOL, format!("cannot write the boot archive: {error}"), "");
        let fd: OwnedFd = rustix::fs::memfd_create("synthesis-boot-archive", MemfdFlags::empty())
            .map_err(|error| failed(error.into()))?;
        let mut image = File::from(fd);
        image.seek(SeekFrom::Start(place)).map_err(failed)?;
        image.write_all(&self.encoded.head).map_err(failed)?;
        for piece in &self.encoded.pieces {
            image.seek(SeekFrom::Start(place + piece.offset)).map_err(failed)?;
            copy(piece, &mut image)?;
        }
        // What was skipped between the files reads as zero.
        image.set_len(file_bytes).map_err(failed)?;
        Ok(image)
    }
}

fn copy(piece: &Piece<Source>, image: &mut File) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(TOOL, format!("cannot write the boot archive: {error}"), "");
    match &piece.source {
        Source::Bytes(bytes) => image.write_all(bytes).map_err(failed),
        Source::Host(path) => {
            let file = File::open(path).map_err(|error| unreadable(path, &error))?;
            let copied = io::copy(&mut file.take(piece.bytes), image).map_err(|error| unreadable(path, &error))?;
            if copied == piece.bytes {
                return Ok(());
            }
            let text = format!("{} became shorter while it was packed", path.display());
            Err(Failure::new(TOOL, text, "run again when nothing writes to it"))
        }
        Source::Part { file, offset } => copy_part(file, *offset, piece.bytes, image).map_err(failed),
    }
}

fn copy_part(file: &File, mut offset: u64, mut bytes: u64, image: &mut File) -> io::Result<()> {
    let mut buffer = vec![0; 256 * 1024];
    while bytes > 0 {
        let part = buffer.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
        file.read_exact_at(&mut buffer[..part], offset)?;
        image.write_all(&buffer[..part])?;
        offset += part as u64;
        bytes -= part as u64;
    }
    Ok(())
}
