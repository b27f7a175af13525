//! Writing the archive into an unnamed memory file, which the virtual machine monitor maps as the initrd module.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use bootimage::{Config, Piece};
use rustix::fs::MemfdFlags;

use super::tree::{Source, Tree, plan_failure, unreadable};
use crate::failure::{Failure, TOOL};

/// Writes `tree` and `config`. The file has no name, so nothing is left behind however the tool ends; it is inherited
/// by the processes that this one starts. Each file is copied once, in pieces, by the kernel where it can.
pub fn write_image(tree: &Tree, config: &Config) -> Result<(File, u64), Failure> {
    let encoded = tree.plan().encode(config).map_err(|error| plan_failure(&error))?;
    let failed = |error: io::Error| Failure::new(TOOL, format!("cannot write the boot archive: {error}"), "");
    let fd: OwnedFd = rustix::fs::memfd_create("synthesis-boot-archive", MemfdFlags::empty())
        .map_err(|error| failed(error.into()))?;
    let mut image = File::from(fd);
    image.write_all(&encoded.head).map_err(failed)?;
    for piece in &encoded.pieces {
        image.seek(SeekFrom::Start(piece.offset)).map_err(failed)?;
        copy(piece, &mut image)?;
    }
    // What was skipped between the files reads as zero.
    image.set_len(encoded.total_bytes).map_err(failed)?;
    Ok((image, encoded.total_bytes))
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
