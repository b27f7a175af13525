//! The frame a handler runs on, byte for byte as Linux lays it out (drawn in [`abi::frame`]).

pub(crate) mod build;
pub(crate) mod restore;

pub use build::{Frame, FrameRequest, NoFrame, build, frame_bytes_max};
pub use restore::{BadFrame, Restored, VectorRestore, restore};

/// Bytes of the part of an XSAVE image that every processor has: FXSAVE image and header (SDM vol. 1, 13.4).
const XSAVE_BYTES_MIN: usize = 576;
/// Where an XSAVE image's header lies.
const XSAVE_HEADER: usize = 512;
/// Where the FXSAVE image keeps `struct _fpx_sw_bytes`.
pub const SOFTWARE_BYTES: usize = 464;
/// x87 and SSE, which every image holds.
const FEATURES_BASE: u64 = 3;

/// The machine's standard XSAVE images.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VectorFormat {
    /// Bytes of an image.
    pub bytes: usize,
    /// The features a program may use (XCR0).
    pub features: u64,
}
