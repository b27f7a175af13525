//! One character, or some, into a buffer as any Rust program does it: the generic rows of tables 3.1 and 3.2. Compiled alone
//! and linked with `stdio.c`, so nothing in it may panic.
#![no_std]

const BUFFER_BYTES: usize = 8192;

/// As a `BufWriter` has it: the bytes, and how many wait.
pub struct Stream {
    bytes: [u8; BUFFER_BYTES],
    waiting: usize,
}

unsafe extern "C" {
    safe fn generic_flush(bytes: *const u8, count: usize);
}

impl Stream {
    #[cold]
    #[inline(never)]
    fn flush(&mut self) {
        generic_flush(self.bytes.as_ptr(), self.waiting);
        self.waiting = 0;
    }
}

#[unsafe(no_mangle)]
pub static mut GENERIC_STREAM: Stream = Stream { bytes: [0; BUFFER_BYTES], waiting: 0 };

#[unsafe(no_mangle)]
pub extern "C" fn generic_put(character: i32, stream: &mut Stream) -> i32 {
    if let Some(byte) = stream.bytes.get_mut(stream.waiting) {
        *byte = character as u8;
        stream.waiting += 1;
    }
    if stream.waiting == BUFFER_BYTES {
        stream.flush();
    }
    i32::from(character as u8)
}

/// # Safety
/// `count` bytes can be read at `bytes`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn generic_write(bytes: *const u8, count: usize, stream: &mut Stream) -> usize {
    // SAFETY: the caller vouches for them.
    let bytes = unsafe { core::slice::from_raw_parts(bytes, count) };
    if BUFFER_BYTES - stream.waiting < count {
        stream.flush();
    }
    if let Some(to) = stream.bytes.get_mut(stream.waiting..).and_then(|rest| rest.get_mut(..count)) {
        to.copy_from_slice(bytes);
        stream.waiting += count;
    }
    count
}
