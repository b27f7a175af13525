//! Layers: tar files, each laid over those before it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use bootimage::{Attributes, Node};
use sha2::{Digest, Sha256};
use tar::EntryType;

use super::Bad;
use super::blobs::{HashWriter, Section, check, digest_of};
use crate::failure::{Failure, TOOL};
use crate::pack::tree::{Source, Tree};

/// A layer decompresses to no more: what claims more is there to fill the disk.
const LAYER_BYTES_MAX: u64 = 32 << 30;
/// A name that hides another in the layers below, and one that hides all of a folder's.
const HIDES: &[u8] = b".wh.";
const HIDES_ALL: &[u8] = b".wh..wh..opq";

/// Is shown an entry and its path in the machine.
type Show<'a> = &'a mut dyn FnMut(tar::Entry<'_, Section>, &Path) -> Result<(), Failure>;

/// A layer that is not compressed, and has been checked.
pub struct LayerTar {
    section: Section,
    digest: String,
}

/// Where layers are kept when they have been decompressed.
pub fn cache_folder() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("synthesis/layers"))
}

impl LayerTar {
    /// The layer that is kept in `blob`, and that has the digest `diff` when it is decompressed.
    pub fn of(blob: &Section, diff: &str) -> Result<LayerTar, Bad> {
        let mut magic = [0; 4];
        let _ = blob.clone().read(&mut magic);
        let digest = diff.to_string();
        if magic[..2] == [0x1f, 0x8b] {
            let section = kept(diff, || Ok(Box::new(flate2::read::MultiGzDecoder::new(blob.clone()))))?;
            return Ok(LayerTar { section, digest });
        }
        if magic == [0x28, 0xb5, 0x2f, 0xfd] {
            let section = kept(diff, || Ok(Box::new(zstd::stream::read::Decoder::new(blob.clone())?)))?;
            return Ok(LayerTar { section, digest });
        }
        check(blob, diff)?;
        Ok(LayerTar { section: blob.clone(), digest })
    }

    /// Puts what the layer has over what is there.
    pub fn lay_over(&self, tree: &mut Tree) -> Result<(), Failure> {
        let bad =
            |reason: String| Failure::new(TOOL, format!("the layer {}: {reason}", self.digest), "save the image anew");
        // What is hidden is what other layers have, wherever in the tar file that is said.
        self.each(&bad, &mut |_, guest| {
            let last = guest.file_name().unwrap_or_default().as_bytes();
            match last.strip_prefix(HIDES) {
                _ if last == HIDES_ALL => tree.remove_below(guest.parent().unwrap_or(Path::new("/"))),
                Some(hidden) => tree.remove(&guest.with_file_name(OsStr::from_bytes(hidden))),
                None => Ok(()),
            }
        })?;
        self.each(&bad, &mut |entry, guest| {
            if guest.file_name().unwrap_or_default().as_bytes().starts_with(HIDES) {
                return Ok(());
            }
            let told = |reason| bad(format!("{}: {reason}", guest.display()));
            let Some((attributes, node)) = self.read(&entry).map_err(told)? else { return Ok(()) };
            let keeps = matches!(node, Node::Directory) && matches!(tree.at(guest)?, Some(Node::Directory));
            if let Node::HardLink { to } = &node {
                let to = PathBuf::from(OsStr::from_bytes(to));
                if to == guest {
                    return Ok(());
                }
                tree.remove(guest)?;
                return if tree.link_at(guest, attributes, &to)? {
                    Ok(())
                } else {
                    Err(told("its link leads to no file".into()))
                };
            }
            if !keeps {
                tree.remove(guest)?;
            }
            tree.put_at(guest, attributes, node)
        })
    }

    /// Shows every entry with its path in the machine.
    fn each(&self, bad: &dyn Fn(String) -> Failure, show: Show<'_>) -> Result<(), Failure> {
        let told = |error: io::Error| bad(format!("it is damaged: {error}"));
        let mut archive = tar::Archive::new(self.section.clone());
        for entry in archive.entries_with_seek().map_err(told)? {
            let entry = entry.map_err(told)?;
            let name = entry.path().map_err(told)?.into_owned();
            let guest = guest_path(&name).ok_or_else(|| bad(format!("{} leads out of it", name.display())))?;
            if guest != Path::new("/") {
                show(entry, &guest)?;
            }
        }
        Ok(())
    }

    fn read<R: Read>(&self, entry: &tar::Entry<'_, R>) -> Result<Option<(Attributes, Node<Source>)>, String> {
        let told = |error: io::Error| error.to_string();
        let header = entry.header();
        let attributes = Attributes {
            mode: header.mode().map_err(told)? & 0o7777,
            uid: header.uid().map_err(told)? as u32,
            gid: header.gid().map_err(told)? as u32,
            mtime_s: header.mtime().map_err(told)? as i64,
            mtime_ns: 0,
        };
        let link = || entry.link_name_bytes().unwrap_or_default().into_owned();
        let node = match header.entry_type() {
            EntryType::Directory => Node::Directory,
            EntryType::Regular | EntryType::Continuous => self.file(entry.raw_file_position(), entry.size())?,
            EntryType::Symlink => Node::Symlink { target: link() },
            EntryType::Link => {
                let to = guest_path(Path::new(OsStr::from_bytes(&link()))).ok_or("its link leads out of it")?;
                Node::HardLink { to: to.as_os_str().as_bytes().to_vec() }
            }
            EntryType::Char => Node::CharDevice {
                major: header.device_major().map_err(told)?.unwrap_or(0),
                minor: header.device_minor().map_err(told)?.unwrap_or(0),
            },
            EntryType::Fifo => Node::Fifo,
            _ => return Ok(None),
        };
        Ok(Some((attributes, node)))
    }

    fn file(&self, at: u64, bytes: u64) -> Result<Node<Source>, String> {
        if at.checked_add(bytes).is_none_or(|end| end > self.section.bytes) {
            return Err("the layer ends within it".into());
        }
        let source = Source::Part { file: self.section.file.clone(), offset: self.section.start + at };
        Ok(Node::File { bytes, source })
    }
}

/// The layer with this digest, which is decompressed if nobody has done that before.
fn kept<'a>(diff: &str, open: impl FnOnce() -> io::Result<Box<dyn Read + 'a>>) -> Result<Section, Bad> {
    let digits = diff.strip_prefix("sha256:").filter(|digits| digits.len() == 64);
    let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let digits = digits.ok_or_else(|| format!("{diff} is no digest"))?;
    let folder = cache_folder().ok_or("no folder for its layers: set HOME or XDG_CACHE_HOME")?;
    let path = folder.join(format!("{digits}.tar"));
    let told = |error: io::Error| format!("the layer {diff} cannot be kept in {}: {error}", folder.display());
    if let Ok(file) = File::open(&path) {
        let bytes = file.metadata().map_err(told)?.len();
        return Ok(Section::new(Arc::new(file), 0, bytes));
    }
    std::fs::create_dir_all(&folder).map_err(told)?;
    let unfinished = folder.join(format!(".{digits}.{}", std::process::id()));
    let made = File::create(&unfinished).map_err(told).and_then(|mut file| decompress(open, &mut file, diff));
    let named = made.and_then(|()| std::fs::rename(&unfinished, &path).map_err(told));
    if let Err(reason) = named {
        let _ = std::fs::remove_file(&unfinished);
        return Err(reason);
    }
    let file = File::open(&path).map_err(told)?;
    let bytes = file.metadata().map_err(told)?.len();
    Ok(Section::new(Arc::new(file), 0, bytes))
}

fn decompress<'a>(
    open: impl FnOnce() -> io::Result<Box<dyn Read + 'a>>,
    into: &mut File,
    diff: &str,
) -> Result<(), Bad> {
    let told = |error: io::Error| format!("the layer {diff} cannot be decompressed: {error}");
    let mut from = open().map_err(told)?.take(LAYER_BYTES_MAX + 1);
    let (mut hash, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 18]);
    loop {
        let count = from.read(&mut buffer).map_err(told)?;
        if count == 0 {
            break;
        }
        bytes += count as u64;
        if bytes > LAYER_BYTES_MAX {
            return Err(format!("the layer {diff} is larger than {} GiB", LAYER_BYTES_MAX >> 30));
        }
        HashWriter(&mut hash).write_all(&buffer[..count]).map_err(told)?;
        into.write_all(&buffer[..count]).map_err(told)?;
    }
    let found = digest_of(hash);
    if found == diff { Ok(()) } else { Err(format!("the layer that is said to be {diff} is {found}")) }
}

/// The absolute path of a name in a layer; `None` if it climbs.
fn guest_path(name: &Path) -> Option<PathBuf> {
    let mut path = PathBuf::from("/");
    for component in name.components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => return None,
            _ => {}
        }
    }
    Some(path)
}
