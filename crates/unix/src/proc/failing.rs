//! /proc/synthesis/failing, in images whose allocations fail on purpose ([`machine::failing`]). `SEED RATE` written to it has one
//! request of `RATE` fail from now on, `0 0` none; the cache of paths is emptied.

use core::fmt::Write;

use abi::Errno;
use alloc::vec::Vec;
use machine::{BLOCK_BYTES_MAX, ENTRY_BYTES_MAX, Held, Text, failing};

use super::tree::Whole;
use crate::emulator::Unix;

pub fn show(_: &'static Unix, _: &Whole) -> Result<Vec<u8>, Errno> {
    let report = failing::report();
    let mut text = Text::default();
    writeln!(
        text,
        "asked {}\nrefused {}\nentry_bytes {} of {ENTRY_BYTES_MAX}\nblock_bytes {} of {BLOCK_BYTES_MAX}",
        report.asked, report.refused, report.entry_bytes, report.block_bytes
    )
    .map_err(|_| Errno::ENOMEM)?;
    Ok(text.0.into_bytes())
}

/// Error: `EINVAL` for what is not two numbers.
pub fn command(_: Held<'_>, unix: &'static Unix, _: &Whole, text: &[u8]) -> Result<(), Errno> {
    let text = core::str::from_utf8(text).map_err(|_| Errno::EINVAL)?;
    let (seed, rate) = text.trim_end().split_once(' ').ok_or(Errno::EINVAL)?;
    let number = |text: &str| text.parse().map_err(|_| Errno::EINVAL);
    unix.names.forget_paths();
    failing::arm(number(seed)?, number(rate)?);
    Ok(())
}
