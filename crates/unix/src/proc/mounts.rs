//! Which volumes are mounted where, as a process sees them.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use abi::Errno;
use kernel::file::{Node, Volume};

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
    rights: &'static str,
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
    let rights = |volume: &Volume| if volume.is_read_only() { "ro,relatime" } else { "rw,relatime" };
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
            rights: rights(top.volume()),
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
            rights: rights(mount.root.volume()),
        });
    }
    lines
}

/// A root is in memory or outside of the machine.
fn kind_of(top: &Node) -> &'static str {
    if top.foreign().is_some() { "folder" } else { "tmpfs" }
}

pub fn mounts(unix: &'static Unix, member: &Member) -> Result<Vec<u8>, Errno> {
    let root = member.process()?.place.borrow().root.clone();
    let mut text = String::new();
    for line in lines(unix, &root) {
        let _ = writeln!(text, "{} {} {} {} 0 0", line.source, line.point, line.kind, line.rights);
    }
    Ok(text.into_bytes())
}

pub fn mountinfo(unix: &'static Unix, member: &Member) -> Result<Vec<u8>, Errno> {
    let root = member.process()?.place.borrow().root.clone();
    let mut text = String::new();
    for line in lines(unix, &root) {
        let (major, minor) = line.device;
        let state = &line.rights[..2];
        let _ = writeln!(
            text,
            "{} {} {major}:{minor} / {} {} - {} {} {state}",
            line.id, line.above, line.point, line.rights, line.kind, line.source
        );
    }
    Ok(text.into_bytes())
}
