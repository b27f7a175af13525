//! A whole root file system, from a folder or a tar file.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};
use std::sync::Arc;

use bootimage::{Attributes, Node};
use tar::EntryType;

use super::tree::{Source, Tree, unreadable};
use crate::failure::{Failure, TOOL};

/// Fills `tree` from `root`.
pub fn add_root(tree: &mut Tree, root: &Path) -> Result<(), Failure> {
    let metadata = std::fs::metadata(root).map_err(|error| unreadable(root, &error))?;
    if metadata.is_dir() {
        return tree.add_tree(root, Path::new("/")).map(|_| ());
    }
    add_tar(tree, root)
}

/// Puts a folder of the host, as it is, at `guest`.
pub fn add_folder(tree: &mut Tree, host: &Path, guest: &Path) -> Result<(), Failure> {
    tree.add_tree(host, guest).map(|_| ())
}

fn add_tar(tree: &mut Tree, path: &Path) -> Result<(), Failure> {
    let file = Arc::new(File::open(path).map_err(|error| unreadable(path, &error))?);
    let mut head = [0; 262];
    let mut start = &*file;
    let _ = start.read_exact(&mut head);
    if &head[257..262] != b"ustar" {
        let text = format!("--root {}: neither a folder nor a tar file", path.display());
        return Err(Failure::new(
            TOOL,
            text,
            "a compressed tar file must be decompressed first, for example with gunzip",
        ));
    }
    let whole = File::open(path).map_err(|error| unreadable(path, &error))?;
    let mut archive = tar::Archive::new(whole);
    let bad = |error: std::io::Error| Failure::new(TOOL, format!("--root {}: {error}", path.display()), "");
    for entry in archive.entries_with_seek().map_err(bad)? {
        let mut entry = entry.map_err(bad)?;
        add_entry(tree, &mut entry, &file).map_err(|error| match error {
            AddError::Io(error) => bad(error),
            AddError::Told(failure) => failure,
        })?;
    }
    Ok(())
}

enum AddError {
    Io(std::io::Error),
    Told(Failure),
}

impl From<std::io::Error> for AddError {
    fn from(error: std::io::Error) -> Self {
        AddError::Io(error)
    }
}

impl From<Failure> for AddError {
    fn from(failure: Failure) -> Self {
        AddError::Told(failure)
    }
}

fn add_entry<R: Read>(tree: &mut Tree, entry: &mut tar::Entry<'_, R>, file: &Arc<File>) -> Result<(), AddError> {
    let guest = guest_path(&entry.path()?);
    let header = entry.header();
    let attributes = Attributes {
        mode: header.mode()? & 0o7777,
        uid: header.uid()? as u32,
        gid: header.gid()? as u32,
        mtime_s: header.mtime()? as i64,
        mtime_ns: 0,
    };
    let link = || -> Result<Vec<u8>, AddError> { Ok(entry.link_name_bytes().unwrap_or_default().into_owned()) };
    let node = match header.entry_type() {
        EntryType::Directory => Node::Directory,
        EntryType::Regular | EntryType::Continuous => {
            let source = Source::Part { file: file.clone(), offset: entry.raw_file_position() };
            Node::File { bytes: entry.size(), source }
        }
        EntryType::Symlink => Node::Symlink { target: link()? },
        EntryType::Link => {
            let to = guest_path(Path::new(std::ffi::OsStr::from_bytes(&link()?)));
            Node::HardLink { to: to.into_os_string().as_bytes().to_vec() }
        }
        EntryType::Char => {
            Node::CharDevice { major: header.device_major()?.unwrap_or(0), minor: header.device_minor()?.unwrap_or(0) }
        }
        EntryType::Fifo => Node::Fifo,
        _ => return Ok(()),
    };
    Ok(tree.put_at(&guest, attributes, node)?)
}

/// The absolute guest path of a name in the tar file; `..` cannot leave the root.
fn guest_path(name: &Path) -> std::path::PathBuf {
    let mut path = std::path::PathBuf::from("/");
    for component in name.components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => {
                path.pop();
            }
            _ => {}
        }
    }
    path
}
