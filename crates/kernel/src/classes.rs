//! The classes of the kernel's quajects.

use quaject::{Class, Quaject};

use crate::call::{Console, Null, Zero};
use crate::file::{Ferry, Positioned, Window};
use crate::pipe::Body;
use crate::tty::Line;

/// All that the kernel declares.
pub fn classes() -> [&'static Class; 8] {
    [
        Null::class(),
        Zero::class(),
        Console::class(),
        Body::class(),
        Window::class(),
        Positioned::class(),
        Ferry::class(),
        Line::class(),
    ]
}
