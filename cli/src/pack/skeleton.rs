//! The directories and files that every guest has, whatever was packed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bootimage::Attributes;

use super::tree::Tree;
use crate::failure::Failure;

/// Top directories that merged-/usr systems have as symlinks; kept as on the host so that paths mean the same.
const MERGED: [&str; 4] = ["bin", "sbin", "lib", "lib64"];
/// Who there is: root, and the user that programs become who want to be nobody.
const PASSWD: &[u8] = b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n";
const GROUP: &[u8] = b"root:x:0:\ntty:x:5:\nnogroup:x:65534:\n";
const TERMINFO: [&str; 3] = ["/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo"];

/// Puts the root directory; everything else needs it.
pub fn add_root(tree: &mut Tree) -> Result<(), Failure> {
    tree.put(b"/", Attributes { mode: 0o755, ..Default::default() }, bootimage::Node::Directory)
}

/// The host's own merged-/usr symlinks.
pub fn add_merged_links(tree: &mut Tree) -> Result<(), Failure> {
    for name in MERGED {
        let path = Path::new("/").join(name);
        if path.is_symlink() {
            tree.add_same_path(&path)?;
        }
    }
    Ok(())
}

/// Mount points, temporary directories, a home, and the little of /etc that libraries ask for. Leaves alone what is there.
pub fn add_rest(tree: &mut Tree, home: Option<&OsStr>) -> Result<(), Failure> {
    for directory in ["/dev", "/etc", "/proc", "/run", "/sys", "/usr", "/usr/bin", "/var"] {
        tree.ensure_directory(directory, 0o755)?;
    }
    tree.ensure_directory("/root", 0o700)?;
    tree.ensure_directory("/tmp", 0o1777)?;
    tree.ensure_directory("/var/tmp", 0o1777)?;
    if let Some(home) = home.and_then(OsStr::to_str).filter(|home| home.starts_with('/')) {
        tree.ensure_directory(home, 0o755)?;
    }
    tree.ensure_file("/etc/passwd", PASSWD)?;
    tree.ensure_file("/etc/group", GROUP)?;
    tree.ensure_file("/etc/hostname", b"synthesis\n")
}

/// The description of terminal `term` (terminfo(5)), for full-screen programs.
pub fn add_terminfo(tree: &mut Tree, term: &OsStr) -> Result<(), Failure> {
    let Some(&first) = term.as_bytes().first() else { return Ok(()) };
    if term.as_bytes().contains(&b'/') {
        return Ok(());
    }
    for directory in TERMINFO {
        let path = Path::new(directory).join(OsStr::from_bytes(&[first])).join(term);
        if path.is_file() {
            tree.add_same_path(&path)?;
            return Ok(());
        }
    }
    Ok(())
}
