//! Which volumes are mounted where, as a process sees them.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Display, Formatter, Write};

use abi::Errno;
use kernel::file::{AccessTimes, Node, Rules, Volume};

use super::process::Member;
use super::text::Lines;
use crate::emulator::Unix;

/// One mounted volume.
struct Line<'a> {
    id: u32,
    above: u32,
    device: (u32, u32),
    point: Escaped<'a>,
    source: Escaped<'a>,
    kind: Escaped<'a>,
    rules: Rules,
    options: Escaped<'a>,
}

/// Bytes as text, with octal numbers for what would end a word.
struct Escaped<'a>(&'a [u8]);

impl Display for Escaped<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        for character in self.0.utf8_chunks().flat_map(|chunk| {
            let lost = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
            chunk.valid().chars().chain(lost)
        }) {
            match character {
                ' ' | '\t' | '\n' | '\\' => write!(out, "\\{:03o}", character as u32)?,
                other => out.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// Mounts have numbers in `mountinfo` and `fdinfo`: a volume is mounted once, so its own will do.
pub fn mount_id(volume: &Volume) -> u32 {
    volume.identity().number()
}

/// Shows each volume that a process with this root sees. Error: `ENOMEM`.
fn each_line(unix: &Unix, root: &Node, mut show: impl FnMut(Line<'_>)) -> Result<(), Errno> {
    let top = unix.names.root();
    if top.is(root) {
        let kind = if top.is_layered() { "overlay" } else { top.volume().store().kind() };
        show(Line {
            id: mount_id(top.volume()),
            above: 1,
            device: top.volume().device(),
            point: Escaped(b"/"),
            source: Escaped(kind.as_bytes()),
            kind: Escaped(kind.as_bytes()),
            rules: top.volume().rules(),
            options: Escaped(b""),
        });
    }
    for mount in unix.names.mounts()? {
        let point = unix.names.path_of(&mount.root, root)?;
        if !point.starts_with(b"/") {
            continue;
        }
        show(Line {
            id: mount_id(mount.root.volume()),
            above: mount_id(mount.point.volume()),
            device: mount.root.volume().device(),
            point: Escaped(&point),
            source: Escaped(&mount.source),
            kind: Escaped(&mount.kind),
            rules: mount.root.volume().rules(),
            options: Escaped(&mount.options),
        });
    }
    Ok(())
}

fn read_or_write(is_read_only: bool) -> &'static str {
    if is_read_only { "ro" } else { "rw" }
}

/// Linux's words for the rules that hold, each with a comma before it.
#[expect(clippy::disallowed_methods, reason = "a few short words")]
fn words(known: &[(bool, &str)]) -> String {
    known.iter().filter(|(holds, _)| *holds).flat_map(|(_, word)| [",", word]).collect()
}

fn volume_words(rules: Rules) -> String {
    words(&[(rules.synchronous, "sync"), (rules.directories_synchronous, "dirsync"), (rules.lazy_times, "lazytime")])
}

fn mount_words(rules: Rules) -> String {
    words(&[
        (rules.no_set_id, "nosuid"),
        (rules.no_devices, "nodev"),
        (rules.no_execute, "noexec"),
        (rules.access_times == AccessTimes::Never, "noatime"),
        (rules.no_directory_times, "nodiratime"),
        (rules.access_times == AccessTimes::Relative, "relatime"),
        (rules.no_follow, "nosymfollow"),
    ])
}

pub fn mounts(unix: &'static Unix, member: &Member) -> Result<Vec<u8>, Errno> {
    let root = member.process()?.place.borrow().borrow().root.clone();
    let mut text = Lines::default();
    each_line(unix, &root, |line| {
        let state = read_or_write(line.rules.is_read_only());
        let (of_volume, of_mount) = (volume_words(line.rules), mount_words(line.rules));
        let _ = writeln!(
            text,
            "{} {} {} {state}{of_volume}{of_mount}{} 0 0",
            line.source, line.point, line.kind, line.options
        );
    })?;
    text.whole()
}

pub fn mountinfo(unix: &'static Unix, member: &Member) -> Result<Vec<u8>, Errno> {
    let root = member.process()?.place.borrow().borrow().root.clone();
    let mut text = Lines::default();
    each_line(unix, &root, |line| {
        let (major, minor) = line.device;
        let of_mount = mount_words(line.rules);
        let mount_state = read_or_write(line.rules.mount_read_only);
        let _ = write!(text, "{} {} {major}:{minor} / {} {mount_state}{of_mount}", line.id, line.above, line.point);
        let (state, of_volume) = (read_or_write(line.rules.volume_read_only), volume_words(line.rules));
        let _ = writeln!(text, " - {} {} {state}{of_volume}{}", line.kind, line.source, line.options);
    })?;
    text.whole()
}
