//! Memory for devices, where the kernel sees all frames at fixed addresses.

use core::marker::PhantomData;

use machine::{Dma, DmaMemory, FrameNumber, Frames, NoFrames, PAGE_BYTES, Width};

use crate::ground::Ground;

/// Frames of the machine that `G` says where they lie.
struct Direct<G>(PhantomData<fn(G)>);

impl<G: Ground + 'static> Direct<G> {
    const THE: &'static Direct<G> = &Direct(PhantomData);

    fn at(frame: FrameNumber, offset: usize, bytes: usize) -> *mut u8 {
        assert!(offset + bytes <= PAGE_BYTES, "range leaves the frame");
        G::frame(frame).wrapping_add(offset)
    }
}

impl<G: Ground + 'static> DmaMemory for Direct<G> {
    fn load(&self, frame: FrameNumber, offset: usize, width: Width) -> u64 {
        let at = Self::at(frame, offset, width.bytes());
        match width {
            // SAFETY: the word lies in the frame, which its owner shares with a device only, and is aligned (`Dma` checks).
            Width::Two => unsafe { at.cast::<u16>().read_volatile() }.into(),
            // SAFETY: as above.
            Width::Four => unsafe { at.cast::<u32>().read_volatile() }.into(),
            // SAFETY: as above.
            Width::Eight => unsafe { at.cast::<u64>().read_volatile() },
        }
    }

    fn store(&self, frame: FrameNumber, offset: usize, width: Width, value: u64) {
        let at = Self::at(frame, offset, width.bytes());
        match width {
            // SAFETY: as in `load`.
            Width::Two => unsafe { at.cast::<u16>().write_volatile(value as u16) },
            // SAFETY: as in `load`.
            Width::Four => unsafe { at.cast::<u32>().write_volatile(value as u32) },
            // SAFETY: as in `load`.
            Width::Eight => unsafe { at.cast::<u64>().write_volatile(value) },
        }
    }

    fn read(&self, frame: FrameNumber, offset: usize, into: &mut [u8]) {
        let from = Self::at(frame, offset, into.len());
        // SAFETY: the range lies in the frame; a device that writes it meanwhile mixes bytes, which plain bytes tolerate.
        unsafe { into.as_mut_ptr().copy_from_nonoverlapping(from, into.len()) };
    }

    fn write(&self, frame: FrameNumber, offset: usize, from: &[u8]) {
        let to = Self::at(frame, offset, from.len());
        // SAFETY: as in `read`.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
    }

    fn code_address(&self, frame: FrameNumber) -> u64 {
        G::frame(frame) as u64
    }

    fn give_back(&self, mut frames: Frames) {
        let source = G::frame_source();
        while let (Some(source), Some(frame)) = (source, frames.take()) {
            source.give(frame);
        }
    }
}

/// Frames in a row for a device.
pub fn dma<G: Ground + 'static>(pages: usize) -> Result<Dma, NoFrames> {
    let frames = G::frame_source().ok_or(NoFrames)?.take_row(pages)?;
    Ok(Dma::new(frames, Direct::<G>::THE))
}
