//! The boot configuration: what to run, with which arguments, and what stands behind descriptors 0, 1, 2.
//!
//! ```text
//!   0   u32 flags          bit 0 generic, 1 strace, 2 verbose, 3 trace
//!   4   u16 rows, u16 columns
//!   8   u64 epoch_ns
//!   16  u64 tsc_hz
//!   24  u8[3] descriptor kinds, u8 zero
//!   28  u32 umask
//!   32  u8[32] seed
//!   64  u32 argument count
//!   68  u32 environment count
//!   72  u32 user, u32 group
//!   80  u32 folder count, u32 memory folder count, u32 group count
//!   92  u32 host user, u32 host group
//!   100 strings, each u32 length + bytes: program, cwd, hostname, network, arguments, environment, folders, memory folders,
//!       supplementary groups (in decimal)
//! ```

use alloc::vec::Vec;

use crate::layout::{PATH_BYTES_MAX, u16_at, u32_at, u64_at};

const FIXED_BYTES: usize = 100;

/// What stands behind a standard descriptor of the first program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum FdKind {
    /// Not open.
    #[default]
    Closed = 0,
    /// The terminal: one line discipline over the tty port, shared by all descriptors of this kind.
    Tty = 1,
    /// A one-way byte stream of its own, like a pipe: port `in`, `out` or `err`.
    Stream = 2,
}

/// Switches of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConfigFlags {
    /// Use the plain Rust paths instead of synthesized code.
    pub generic: bool,
    /// Send a `STRACE` record for each call.
    pub strace: bool,
    /// Send `LOG` and `STATS` records.
    pub verbose: bool,
    /// Record calls, switches, interrupts and syntheses from the start; send them at the end.
    pub trace: bool,
}

impl ConfigFlags {
    fn bits(self) -> u32 {
        let bits = [self.generic, self.strace, self.verbose, self.trace];
        bits.into_iter().enumerate().map(|(place, bit)| u32::from(bit) << place).sum()
    }

    fn from_bits(bits: u32) -> Option<Self> {
        let bit = |place: u32| bits & 1 << place != 0;
        (bits < 16).then_some(ConfigFlags { generic: bit(0), strace: bit(1), verbose: bit(2), trace: bit(3) })
    }
}

/// The configuration as the host tool builds it. No string may hold a NUL.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Config {
    /// Absolute guest path of the program to run; `argv[0]` may differ from it.
    pub program: Vec<u8>,
    pub argv: Vec<Vec<u8>>,
    /// `NAME=value` each.
    pub env: Vec<Vec<u8>>,
    /// Absolute guest path.
    pub cwd: Vec<u8>,
    pub hostname: Vec<u8>,
    /// How the machine's link gets its addresses: `dhcp`, or `ADDRESS/LENGTH` and `via ADDRESS`, with commas between.
    pub network: Vec<u8>,
    /// Descriptors 0, 1 and 2.
    pub fds: [FdKind; 3],
    /// Window size in character cells; 0 when unknown.
    pub rows: u16,
    pub columns: u16,
    pub flags: ConfigFlags,
    /// Wall clock at start, nanoseconds since 1970; fixed when a run must repeat exactly.
    pub epoch_ns: u64,
    /// Ticks of the time-stamp counter per second; 0 asks the kernel to calibrate.
    pub tsc_hz: u64,
    /// File creation mask of the first program.
    pub umask: u32,
    /// Entropy for `getrandom` and `AT_RANDOM`; fixed when a run must repeat exactly.
    pub seed: [u8; 32],
    /// For whom the first program runs.
    pub user: u32,
    pub group: u32,
    pub groups: Vec<u32>,
    /// In whose name the host's folders are served, as the host numbers users and groups.
    pub host_user: u32,
    pub host_group: u32,
    /// Where the trees are seen that the machine finds outside of itself, in their order: absolute guest paths. With
    /// `/` first, the archive is laid over that tree; without any, the archive is the whole file system.
    pub folders: Vec<Vec<u8>>,
    /// Folders of the archive that are seen alone, beside those that always are (`/dev`, `/proc`, `/sys`, `/tmp`).
    pub memory: Vec<Vec<u8>>,
}

impl Config {
    /// Appends the record to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.flags.bits().to_le_bytes());
        out.extend(self.rows.to_le_bytes());
        out.extend(self.columns.to_le_bytes());
        out.extend(self.epoch_ns.to_le_bytes());
        out.extend(self.tsc_hz.to_le_bytes());
        out.extend(self.fds.map(|kind| kind as u8));
        out.push(0);
        out.extend(self.umask.to_le_bytes());
        out.extend(self.seed);
        out.extend((self.argv.len() as u32).to_le_bytes());
        out.extend((self.env.len() as u32).to_le_bytes());
        out.extend(self.user.to_le_bytes());
        out.extend(self.group.to_le_bytes());
        for count in [self.folders.len(), self.memory.len(), self.groups.len()] {
            out.extend((count as u32).to_le_bytes());
        }
        out.extend(self.host_user.to_le_bytes());
        out.extend(self.host_group.to_le_bytes());
        let groups: Vec<Vec<u8>> = self.groups.iter().map(|group| alloc::format!("{group}").into_bytes()).collect();
        let paths = [&self.program, &self.cwd, &self.hostname, &self.network];
        for string in
            paths.into_iter().chain(&self.argv).chain(&self.env).chain(&self.folders).chain(&self.memory).chain(&groups)
        {
            out.extend((string.len() as u32).to_le_bytes());
            out.extend_from_slice(string);
        }
    }
}

/// The configuration as the kernel reads it, borrowed from the archive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConfigView<'a> {
    pub program: &'a [u8],
    pub cwd: &'a [u8],
    pub hostname: &'a [u8],
    pub network: &'a [u8],
    pub fds: [FdKind; 3],
    pub rows: u16,
    pub columns: u16,
    pub flags: ConfigFlags,
    pub epoch_ns: u64,
    pub tsc_hz: u64,
    pub umask: u32,
    pub seed: [u8; 32],
    pub user: u32,
    pub group: u32,
    pub host_user: u32,
    pub host_group: u32,
    argument_count: u32,
    environment_count: u32,
    folder_count: u32,
    memory_count: u32,
    group_count: u32,
    /// Length-prefixed strings: arguments, environment, folders, memory folders, groups.
    strings: &'a [u8],
}

impl<'a> ConfigView<'a> {
    /// `None` when a field is out of range, a string holds a NUL, or the record is longer or shorter than it says.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let fixed = bytes.get(..FIXED_BYTES)?;
        let mut rest = &bytes[FIXED_BYTES..];
        let mut view = ConfigView {
            flags: ConfigFlags::from_bits(u32_at(fixed, 0)?)?,
            rows: u16_at(fixed, 4)?,
            columns: u16_at(fixed, 6)?,
            epoch_ns: u64_at(fixed, 8)?,
            tsc_hz: u64_at(fixed, 16)?,
            fds: [fd_kind(fixed[24])?, fd_kind(fixed[25])?, fd_kind(fixed[26])?],
            umask: u32_at(fixed, 28)?,
            seed: fixed.get(32..64)?.try_into().ok()?,
            argument_count: u32_at(fixed, 64)?,
            environment_count: u32_at(fixed, 68)?,
            user: u32_at(fixed, 72)?,
            group: u32_at(fixed, 76)?,
            folder_count: u32_at(fixed, 80)?,
            memory_count: u32_at(fixed, 84)?,
            group_count: u32_at(fixed, 88)?,
            host_user: u32_at(fixed, 92)?,
            host_group: u32_at(fixed, 96)?,
            program: next_string(&mut rest)?,
            cwd: next_string(&mut rest)?,
            hostname: next_string(&mut rest)?,
            network: next_string(&mut rest)?,
            strings: &[],
        };
        view.strings = rest;
        let absolute = |path: &[u8]| path.first() == Some(&b'/') && path.len() <= PATH_BYTES_MAX;
        if !absolute(view.program) || !absolute(view.cwd) || view.hostname.len() > 64 || view.umask > 0o777 {
            return None;
        }
        let counts = [view.argument_count, view.environment_count, view.folder_count, view.memory_count];
        for _ in 0..counts.iter().chain([&view.group_count]).map(|count| u64::from(*count)).sum() {
            next_string(&mut rest)?;
        }
        let places_are_absolute = view.folders().chain(view.memory()).all(absolute);
        let groups_are_numbers = view.groups().count() == view.group_count as usize;
        (rest.is_empty() && places_are_absolute && groups_are_numbers).then_some(view)
    }

    /// The program's arguments, `argv[0]` first.
    pub fn argv(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.all_strings().take(self.argument_count as usize)
    }

    /// The environment, `NAME=value` each.
    pub fn env(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.strings_from(self.argument_count, self.environment_count)
    }

    /// Where trees from outside of the machine are seen.
    pub fn folders(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.strings_from(self.argument_count + self.environment_count, self.folder_count)
    }

    /// Folders of the archive that are seen alone.
    pub fn memory(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.strings_from(self.argument_count + self.environment_count + self.folder_count, self.memory_count)
    }

    /// Supplementary groups of the first program's user.
    pub fn groups(&self) -> impl Iterator<Item = u32> + use<'a> {
        let before = self.argument_count + self.environment_count + self.folder_count + self.memory_count;
        let texts = self.strings_from(before, self.group_count);
        texts.filter_map(|digits| core::str::from_utf8(digits).ok()?.parse().ok())
    }

    fn strings_from(&self, first: u32, count: u32) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.all_strings().skip(first as usize).take(count as usize)
    }

    fn all_strings(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = self.strings;
        core::iter::from_fn(move || next_string(&mut rest))
    }
}

fn fd_kind(code: u8) -> Option<FdKind> {
    match code {
        0 => Some(FdKind::Closed),
        1 => Some(FdKind::Tty),
        2 => Some(FdKind::Stream),
        _ => None,
    }
}

/// Takes one length-prefixed string off the front of `rest`.
fn next_string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32_at(rest, 0)? as usize;
    let string = rest.get(4..length.checked_add(4)?)?;
    *rest = &rest[4 + length..];
    (!string.contains(&0)).then_some(string)
}
