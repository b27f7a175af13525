//! Which volumes are mounted where, as a process sees them.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use abi::Errno;
use kernel::file::{AccessTimes, Node, Rules, Volume};

use super::process::Member;
use crate::emulator::Unix;

/// One mounted volume.
struct Line {
    id: u32,
    above: u32,
    device: (u32, u32),
    point: String,
    source: String,
    kind: String,
    rules: Rules,
    options: String,
}

/// Mounts have numbers in `mountinfo` and `fdinfo`: a volume is mounted once, so its own will do.
pub fn mount_id(volume: &Volume) -> u32 {
    volume.identity().number()
}

fn lines(unix: &Unix, root: &Node) -> Vec<Line> {
    let escaped = |bytes: &[u8]| {
        let mut text = String::new();
        for character in String::from_utf8_lossy(bytes).chars() {
            match character {
                ' ' | '\t' | '\n' | '\\' => {
                    let _ = write!(text, "\\{:03o}", character as u32);
                }
                other => text.push(other),
            }
        }
        text
    };
    let top = unix.names.root();
    let mut lines = Vec::new();
    if top.is(root) {
        lines.push(Line {
            id: mount_id(top.volume()),
            above: 1,
            device: top.volume().device(),
            point: String::from("/"),
            source: String::from(kind_of(top)),
            kind: String::from(kind_of(top)),
            rules: top.volume().rules(),
            options: String::new(),
        });
    }
    for mount in unix.names.mounts() {
        let point = unix.names.path_of(&mount.root, root);
        if !point.starts_with(b"/") {
            continue;
        }
        lines.push(Line {
            id: mount_id(mount.root.volume()),
            above: mount_id(mount.point.volume()),
            device: mount.root.volume().device(),
            point: escaped(&point),
            source: escaped(&mount.source),
            kind: escaped(&mount.kind),
            rules: mount.root.volume().rules(),
            options: String::from_utf8_lossy(&mount.options).into_owned(),
        });
    }
    lines
}

fn read_or_write(is_read_only: bool) -> &'static str {
    if is_read_only { "ro" } else { "rw" }
}

/// Linux's words for the rules that hold, each with a comma before it.
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

/// A root is in memory or outside of the machine.
fn kind_of(top: &Node) -> &'static str {
    if top.foreign().is_some() { "folder" } else { "tmpfs" }
}

pub fn mounts(unix: &'static Unix, member: &Member) -> Result<Vec<u8>, Errno> {
    let root = member.process()?.place.borrow().borrow().root.clone();
    let mut text = String::new();
    for line in lines(unix, &root) {
        let state = read_or_write(line.rules.is_read_only());
        let (of_volume, of_mount) = (volume_words(line.rules), mount_words(line.rules));
        let _ = writeln!(
            text,
            "{} {} {} {state}{of_volume}{of_mount}{} 0 0",
            line.source, line.point, line.kind, line.options
        );
    }
    Ok(text.into_bytes())
}

pub fn mountinfo(unix: &'static Unix, member: &Member) -> Result<Vec<u8>, Errno> {
    let root = member.process()?.place.borrow().borrow().root.clone();
    let mut text = String::new();
    for line in lines(unix, &root) {
        let (major, minor) = line.device;
        let of_mount = mount_words(line.rules);
        let mount_state = read_or_write(line.rules.mount_read_only);
        let _ = write!(text, "{} {} {major}:{minor} / {} {mount_state}{of_mount}", line.id, line.above, line.point);
        let (state, of_volume) = (read_or_write(line.rules.volume_read_only), volume_words(line.rules));
        let _ = writeln!(text, " - {} {} {state}{of_volume}{}", line.kind, line.source, line.options);
    }
    Ok(text.into_bytes())
}
