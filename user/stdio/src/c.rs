//! What C programs call: see `include/synthio.h` and `man/synthio.3`.

use core::ffi::CStr;
use core::ptr::{NonNull, null_mut};

use ground::Errno;
use libc::{EOF, c_char, c_int, c_long};

use crate::stream::{self, Buffering, Direction, OpenError, Words};
use crate::transfer;

/// "r", "w" or "a", and "b", "e" and "x" after it, as `fopen` has them.
fn parse(mode: &CStr) -> Result<(Direction, c_int), OpenError> {
    let (first, rest) = mode.to_bytes().split_first().ok_or(OpenError::Mode)?;
    let (direction, mut flags) = match first {
        b'r' => (Direction::In, libc::O_RDONLY),
        b'w' => (Direction::Out, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC),
        b'a' => (Direction::Out, libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND),
        _ => return Err(OpenError::Mode),
    };
    for letter in rest {
        match letter {
            b'b' => {}
            b'e' => flags |= libc::O_CLOEXEC,
            b'x' => flags |= libc::O_EXCL,
            _ => return Err(OpenError::Mode),
        }
    }
    Ok((direction, flags))
}

fn usual_buffering(fd: c_int, direction: Direction) -> Buffering {
    // SAFETY: asks about a descriptor only.
    let is_terminal = direction == Direction::Out && unsafe { libc::isatty(fd) } == 1;
    if is_terminal { Buffering::Line } else { Buffering::Full }
}

fn finish(opened: Result<NonNull<Words>, OpenError>) -> *mut Words {
    match opened {
        Ok(words) => words.as_ptr(),
        Err(error) => {
            Errno(error.errno()).set();
            null_mut()
        }
    }
}

/// # Safety
/// `mode` is a C string.
#[unsafe(no_mangle)]
unsafe extern "C" fn sio_fdopen(fd: c_int, mode: *const c_char) -> *mut Words {
    // SAFETY: the caller's promise.
    let mode = unsafe { CStr::from_ptr(mode) };
    // SAFETY: asks about a descriptor only.
    let known = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    if known < 0 {
        return null_mut();
    }
    finish(parse(mode).and_then(|(direction, _)| {
        let refused = match direction {
            Direction::In => libc::O_WRONLY,
            Direction::Out => libc::O_RDONLY,
        };
        if known & libc::O_ACCMODE == refused {
            return Err(OpenError::Mode);
        }
        stream::open(fd, direction, usual_buffering(fd, direction))
    }))
}

/// # Safety
/// `path` and `mode` are C strings.
#[unsafe(no_mangle)]
unsafe extern "C" fn sio_open(path: *const c_char, mode: *const c_char) -> *mut Words {
    // SAFETY: the caller's promise.
    let mode = unsafe { CStr::from_ptr(mode) };
    finish(parse(mode).and_then(|(direction, flags)| {
        // SAFETY: the caller's promise.
        let fd = unsafe { libc::open(path, flags, 0o666) };
        if fd < 0 {
            return Err(OpenError::File(Errno::last()));
        }
        stream::open(fd, direction, usual_buffering(fd, direction)).inspect_err(|_| {
            // SAFETY: the descriptor was opened just now.
            unsafe { libc::close(fd) };
        })
    }))
}

/// # Safety
/// `stream` is an open stream, which nobody uses at the same time. So it is with all that follow.
#[unsafe(no_mangle)]
unsafe extern "C" fn sio_close(stream: *mut Words) -> c_int {
    match NonNull::new(stream) {
        // SAFETY: as said.
        Some(words) if unsafe { words.as_ref() }.fd >= 0 => {
            if stream::close(words) {
                0
            } else {
                EOF
            }
        }
        _ => {
            Errno(libc::EBADF).set();
            EOF
        }
    }
}

/// # Safety
/// See `sio_close`; null: all streams.
#[unsafe(no_mangle)]
unsafe extern "C" fn sio_flush(stream: *mut Words) -> c_int {
    // SAFETY: as said.
    let flushed = match unsafe { stream.as_mut() } {
        None => stream::flush_all(),
        Some(words) if words.fd < 0 => false,
        Some(words) => words.direction == Direction::In || transfer::flush(words),
    };
    if flushed { 0 } else { EOF }
}

/// # Safety
/// See `sio_close`.
#[unsafe(no_mangle)]
unsafe extern "C" fn sio_setvbuf(stream: *mut Words, mode: c_int, size: usize) -> c_int {
    let buffering = match mode {
        0 => Buffering::Full,
        1 => Buffering::Line,
        2 => Buffering::None,
        _ => {
            Errno(libc::EINVAL).set();
            return EOF;
        }
    };
    // SAFETY: as said.
    let words = unsafe { &mut *stream };
    if words.fd >= 0 && stream::rebuffer(words, buffering, size) { 0 } else { EOF }
}

/// # Safety
/// See `sio_close`.
#[unsafe(no_mangle)]
unsafe extern "C" fn sio_put_full(character: c_int, stream: *mut Words) -> c_int {
    transfer::put_from_macro(character, stream)
}

/// # Safety
/// See `sio_close`.
#[unsafe(no_mangle)]
unsafe extern "C" fn sio_get_fill(stream: *mut Words) -> c_int {
    transfer::get_slowly(stream)
}

/// # Safety
/// See `sio_close`.
#[unsafe(no_mangle)]
unsafe extern "C" fn sio_ungetc(character: c_int, stream: *mut Words) -> c_int {
    // SAFETY: as said.
    let words = unsafe { &mut *stream };
    let full = words.index <= -(words.size as i64) - 8;
    if character == EOF || words.direction == Direction::Out || words.fd < 0 || full {
        return EOF;
    }
    words.index -= 1;
    // SAFETY: a region has 16 bytes before the largest buffer.
    unsafe { *((words.end as i64 + words.index) as *mut u8) = character as u8 };
    words.at_end = false;
    c_int::from(character as u8)
}

/// # Safety
/// See `sio_close`.
#[unsafe(no_mangle)]
unsafe extern "C" fn sio_seek(stream: *mut Words, offset: c_long, whence: c_int) -> c_int {
    // SAFETY: as said.
    let words = unsafe { &mut *stream };
    if words.fd < 0 || (words.direction == Direction::Out && !transfer::flush(words)) {
        return -1;
    }
    let ahead = if words.direction == Direction::In && whence == libc::SEEK_CUR { words.index } else { 0 };
    // SAFETY: moves a file's position.
    if unsafe { libc::lseek(words.fd, offset + ahead, whence) } < 0 {
        return -1;
    }
    words.reset();
    words.at_end = false;
    0
}

/// # Safety
/// See `sio_close`.
#[unsafe(no_mangle)]
unsafe extern "C" fn sio_tell(stream: *mut Words) -> c_long {
    // SAFETY: as said.
    let words = unsafe { &mut *stream };
    // SAFETY: asks for a file's position.
    let position = unsafe { libc::lseek(words.fd, 0, libc::SEEK_CUR) };
    if position < 0 {
        return position;
    }
    if words.direction == Direction::In {
        return position + words.index;
    }
    let size = words.size as i64;
    let (index, _) = words.buffer();
    position + size + *index
}

/// # Safety
/// See `sio_close`.
#[unsafe(no_mangle)]
unsafe extern "C" fn sio_error(stream: *mut Words) -> c_int {
    // SAFETY: as said.
    unsafe { &*stream }.failed.into()
}

/// # Safety
/// See `sio_close`.
#[unsafe(no_mangle)]
unsafe extern "C" fn sio_eof(stream: *mut Words) -> c_int {
    // SAFETY: as said.
    unsafe { &*stream }.at_end.into()
}

/// # Safety
/// See `sio_close`.
#[unsafe(no_mangle)]
unsafe extern "C" fn sio_clearerr(stream: *mut Words) {
    // SAFETY: as said.
    let words = unsafe { &mut *stream };
    words.failed = false;
    words.at_end = false;
}

/// # Safety
/// See `sio_close`.
#[unsafe(no_mangle)]
unsafe extern "C" fn sio_fileno(stream: *mut Words) -> c_int {
    // SAFETY: as said.
    unsafe { &*stream }.fd
}
