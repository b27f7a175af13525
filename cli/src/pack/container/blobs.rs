//! The files of an image, wherever it is kept, by their names in it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tar::EntryType;

use super::Bad;

/// Manifests, indexes and configurations are no longer than this.
const TEXT_BYTES_MAX: u64 = 8 << 20;

/// Some bytes of a file.
#[derive(Clone, Debug)]
pub struct Section {
    pub file: Arc<File>,
    pub start: u64,
    pub bytes: u64,
    at: u64,
}

impl Section {
    pub fn new(file: Arc<File>, start: u64, bytes: u64) -> Section {
        Section { file, start, bytes, at: 0 }
    }

    /// `sha256:` and 64 digits.
    pub fn digest(&self) -> io::Result<String> {
        let mut hash = Sha256::new();
        io::copy(&mut self.clone(), &mut HashWriter(&mut hash))?;
        Ok(digest_of(hash))
    }
}

pub fn digest_of(hash: Sha256) -> String {
    let digits: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

/// Takes what is written into a digest.
pub struct HashWriter<'a>(pub &'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Section {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.bytes.saturating_sub(self.at).min(into.len() as u64) as usize;
        let count = self.file.read_at(&mut into[..left], self.start + self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Section {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let next = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.bytes.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = next.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// All files of an image.
pub enum Blobs {
    Folder(PathBuf),
    /// A tar file: where in it each name's bytes are.
    Tar(HashMap<PathBuf, Section>),
}

impl Blobs {
    pub fn open(path: &Path) -> Result<Blobs, Bad> {
        let about = std::fs::metadata(path).map_err(|error| error.to_string())?;
        if about.is_dir() {
            return Ok(Blobs::Folder(path.to_path_buf()));
        }
        let file = Arc::new(File::open(path).map_err(|error| error.to_string())?);
        let whole = Section::new(file, 0, about.len());
        let mut magic = [0; 4];
        let _ = whole.clone().read(&mut magic);
        if magic[..2] == [0x1f, 0x8b] || magic == [0x28, 0xb5, 0x2f, 0xfd] {
            return Err("it is compressed as a whole: decompress it first, for example with gunzip".into());
        }
        index(whole).map(Blobs::Tar)
    }

    /// The bytes called `name`.
    pub fn find(&self, name: &str) -> Result<Section, Bad> {
        let path = plain(Path::new(name)).ok_or_else(|| format!("the name {name} leads out of it"))?;
        match self {
            Blobs::Tar(index) => index.get(&path).cloned().ok_or_else(|| format!("{name} is missing")),
            Blobs::Folder(folder) => {
                let file = File::open(folder.join(&path)).map_err(|error| format!("{name}: {error}"))?;
                let bytes = file.metadata().map_err(|error| format!("{name}: {error}"))?.len();
                Ok(Section::new(Arc::new(file), 0, bytes))
            }
        }
    }

    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_ok()
    }

    /// A whole small file.
    pub fn text(&self, section: &Section, name: &str) -> Result<Vec<u8>, Bad> {
        if section.bytes > TEXT_BYTES_MAX {
            return Err(format!("{name} is too long"));
        }
        let mut text = Vec::new();
        section.clone().read_to_end(&mut text).map_err(|error| format!("{name}: {error}"))?;
        Ok(text)
    }

    /// The file with this digest, which it has, and so many bytes, if that is said.
    pub fn checked(&self, digest: &str, bytes: Option<u64>) -> Result<Section, Bad> {
        let digits = digest.strip_prefix("sha256:").ok_or_else(|| format!("{digest} is no digest by sha256"))?;
        if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(format!("{digest} is no digest"));
        }
        let section = self.find(&format!("blobs/sha256/{digits}"))?;
        if bytes.is_some_and(|bytes| bytes != section.bytes) {
            return Err(format!("{digest} has {} bytes instead of {}", section.bytes, bytes.unwrap_or(0)));
        }
        check(&section, digest)?;
        Ok(section)
    }
}

/// The bytes have this digest.
pub fn check(section: &Section, digest: &str) -> Result<(), Bad> {
    let found = section.digest().map_err(|error| format!("{digest}: {error}"))?;
    if found == digest { Ok(()) } else { Err(format!("what is said to be {digest} is {found}")) }
}

/// A path without `.`; `None` if it is absolute or climbs.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(plain)
}

/// Where each file of a tar file is. Older versions of docker name a layer that is there already by a symlink.
fn index(whole: Section) -> Result<HashMap<PathBuf, Section>, Bad> {
    let damaged = |error: io::Error| format!("the tar file is damaged: {error}");
    let (mut files, mut links) = (HashMap::new(), Vec::new());
    let mut archive = tar::Archive::new(whole.clone());
    for entry in archive.entries_with_seek().map_err(damaged)? {
        let entry = entry.map_err(damaged)?;
        let Some(path) = entry.path().ok().and_then(|path| plain(&path)) else { continue };
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous => {
                let (start, bytes) = (entry.raw_file_position(), entry.size());
                if start.checked_add(bytes).is_none_or(|end| end > whole.bytes) {
                    return Err(format!("the tar file ends within {}", path.display()));
                }
                files.insert(path, Section::new(whole.file.clone(), start, bytes));
            }
            EntryType::Symlink => {
                let target = entry.link_name().ok().flatten().unwrap_or_default().into_owned();
                links.push((path, target));
            }
            _ => {}
        }
    }
    for (path, target) in links {
        let mut place = path.parent().map(Path::to_path_buf).unwrap_or_default();
        for component in target.components() {
            match component {
                Component::ParentDir => drop(place.pop()),
                Component::Normal(name) => place.push(name),
                _ => {}
            }
        }
        if let Some(section) = files.get(&place).cloned() {
            files.insert(path, section);
        }
    }
    Ok(files)
}
