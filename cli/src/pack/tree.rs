//! The guest's file system as it grows: host files and folders put at guest paths.

use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use bootimage::{Attributes, Node, Plan, PlanError};

use crate::failure::{Failure, TOOL};

/// Symlinks followed in one path before it is taken for a loop (as in Linux).
const LINKS_MAX: u32 = 40;

/// Where the bytes of a packed file come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file of the host.
    Host(Arc<Path>),
    /// Made by the tool.
    Bytes(Arc<[u8]>),
    /// Part of a tar file.
    Part { file: Arc<File>, offset: u64 },
}

/// The plan of the archive, and which host files it holds already.
#[derive(Default)]
pub struct Tree {
    plan: Plan<Source>,
    /// Guest paths of host files with several names, by device and inode.
    names: HashMap<(u64, u64), Vec<u8>>,
}

impl Tree {
    pub fn plan(&self) -> &Plan<Source> {
        &self.plan
    }

    /// Puts `node` at `guest`, which must be plain; its parent must be there.
    pub fn put(&mut self, guest: &[u8], attributes: Attributes, node: Node<Source>) -> Result<(), Failure> {
        self.plan.insert(guest, attributes, node).map_err(|error| plan_failure(&error))
    }

    /// Puts `node` at `guest` with the symlinks above it followed and missing directories made.
    pub fn put_at(&mut self, guest: &Path, attributes: Attributes, node: Node<Source>) -> Result<(), Failure> {
        let real = self.resolve_parent(guest)?;
        self.put(&real, attributes, node)
    }

    /// Makes directory `guest` (and those above it) unless something is there.
    pub fn ensure_directory(&mut self, guest: &str, mode: u32) -> Result<(), Failure> {
        let real = self.resolve_parent(Path::new(guest))?;
        if self.plan.get(&real).is_none() {
            self.put(&real, Attributes { mode, ..Default::default() }, Node::Directory)?;
        }
        Ok(())
    }

    /// Puts `bytes` at `guest` unless something is there.
    pub fn ensure_file(&mut self, guest: &str, bytes: &[u8]) -> Result<(), Failure> {
        let real = self.resolve_parent(Path::new(guest))?;
        if self.plan.get(&real).is_none() {
            let node = Node::File { bytes: bytes.len() as u64, source: Source::Bytes(bytes.into()) };
            self.put(&real, Attributes { mode: 0o644, ..Default::default() }, node)?;
        }
        Ok(())
    }

    /// Puts a symlink at `guest` unless something is there.
    pub fn ensure_symlink(&mut self, guest: &str, target: &[u8]) -> Result<(), Failure> {
        let real = self.resolve_parent(Path::new(guest))?;
        if self.plan.get(&real).is_none() {
            let attributes = Attributes { mode: 0o777, ..Default::default() };
            self.put(&real, attributes, Node::Symlink { target: target.to_vec() })?;
        }
        Ok(())
    }

    /// Puts the host file or directory `host` (without what a directory holds) at the same guest path, with each
    /// symlink on the way and what it leads to. Returns the real path.
    pub fn add_same_path(&mut self, host: &Path) -> Result<PathBuf, Failure> {
        let absolute = std::path::absolute(host).map_err(|error| unreadable(host, &error))?;
        let mut pending = names_of(&absolute);
        let mut real = PathBuf::from("/");
        let mut links = 0;
        while let Some(name) = pending.pop_front() {
            if name == ".." {
                real.pop();
                continue;
            }
            let next = real.join(&name);
            let metadata = fs::symlink_metadata(&next).map_err(|error| unreadable(&next, &error))?;
            if !self.is_directory(next.as_os_str().as_bytes()) {
                self.add_node(&next, next.as_os_str().as_bytes(), &metadata)?;
            }
            if !metadata.is_symlink() {
                real = next;
                continue;
            }
            links += 1;
            if links > LINKS_MAX {
                return Err(Failure::new(TOOL, format!("{}: too many levels of symbolic links", host.display()), ""));
            }
            let target = fs::read_link(&next).map_err(|error| unreadable(&next, &error))?;
            if target.is_absolute() {
                real = PathBuf::from("/");
            }
            let rest = std::mem::take(&mut pending);
            pending = names_of(&target);
            pending.extend(rest);
        }
        Ok(real)
    }

    /// Puts the host file or the whole folder `host` at `guest`. Symlinks inside a folder stay symlinks.
    /// Returns the host paths of the files that may be executed.
    pub fn add_tree(&mut self, host: &Path, guest: &Path) -> Result<Vec<PathBuf>, Failure> {
        let metadata = fs::metadata(host).map_err(|error| unreadable(host, &error))?;
        let guest = match self.find(guest) {
            Some((real, _, Node::Directory)) if metadata.is_dir() => real,
            _ => self.resolve_parent(guest)?,
        };
        let mut executables = Vec::new();
        self.add_below(host, &guest, &metadata, &mut executables)?;
        Ok(executables)
    }

    fn add_below(
        &mut self,
        host: &Path,
        guest: &[u8],
        metadata: &Metadata,
        executables: &mut Vec<PathBuf>,
    ) -> Result<(), Failure> {
        if metadata.is_dir() || !self.is_directory(guest) {
            self.add_node(host, guest, metadata)?;
        }
        if metadata.is_file() && metadata.mode() & 0o111 != 0 {
            executables.push(host.to_path_buf());
        }
        if !metadata.is_dir() {
            return Ok(());
        }
        let entries = fs::read_dir(host).map_err(|error| unreadable(host, &error))?;
        let mut names: Vec<OsString> = entries
            .map(|entry| entry.map(|e| e.file_name()))
            .collect::<Result<_, _>>()
            .map_err(|e| unreadable(host, &e))?;
        names.sort();
        for name in names {
            let (host, guest) = (host.join(&name), join(guest, name.as_bytes()));
            let metadata = fs::symlink_metadata(&host).map_err(|error| unreadable(&host, &error))?;
            self.add_below(&host, &guest, &metadata, executables)?;
        }
        Ok(())
    }

    /// Puts one host file, directory, symlink or device at `guest`. Sockets and block devices are left out.
    fn add_node(&mut self, host: &Path, guest: &[u8], metadata: &Metadata) -> Result<(), Failure> {
        let kind = metadata.file_type();
        let node = if kind.is_dir() {
            Node::Directory
        } else if kind.is_symlink() {
            let target = fs::read_link(host).map_err(|error| unreadable(host, &error))?;
            Node::Symlink { target: target.into_os_string().as_bytes().to_vec() }
        } else if kind.is_file() {
            match self.other_name(guest, metadata) {
                Some(to) => Node::HardLink { to },
                None => {
                    File::open(host).map_err(|error| unreadable(host, &error))?;
                    Node::File { bytes: metadata.len(), source: Source::Host(host.into()) }
                }
            }
        } else if kind.is_char_device() {
            let device = metadata.rdev();
            Node::CharDevice { major: rustix::fs::major(device), minor: rustix::fs::minor(device) }
        } else if kind.is_fifo() {
            Node::Fifo
        } else {
            return Ok(());
        };
        self.put(guest, attributes_of(metadata), node)
    }

    /// The path under which the same file was put before, if it was; remembers `guest` otherwise.
    fn other_name(&mut self, guest: &[u8], metadata: &Metadata) -> Option<Vec<u8>> {
        if metadata.nlink() < 2 {
            return None;
        }
        let name = self.names.entry((metadata.dev(), metadata.ino())).or_insert_with(|| guest.to_vec());
        (name != guest).then(|| name.clone())
    }

    fn is_directory(&self, guest: &[u8]) -> bool {
        matches!(self.plan.get(guest), Some((_, Node::Directory)))
    }

    /// The real guest path of `guest` with all symlinks but the last component's followed, and the directories above
    /// it made where they are missing.
    fn resolve_parent(&mut self, guest: &Path) -> Result<Vec<u8>, Failure> {
        if !guest.is_absolute() {
            let text = format!("the guest path {} is not absolute", guest.display());
            return Err(Failure::new(TOOL, text, "start it with a slash"));
        }
        let (real, missing) = self.walk(guest, false)?;
        let mut made = real;
        for name in &missing {
            if !self.is_directory(&made) {
                let default = Attributes { mode: 0o755, ..Default::default() };
                self.put(&made, default, Node::Directory)?;
            }
            made = join(&made, name.as_bytes());
        }
        Ok(made)
    }

    /// The real path that `guest` leads to in the plan, all symlinks followed, if something is there.
    pub fn find(&self, guest: &Path) -> Option<(Vec<u8>, &Attributes, &Node<Source>)> {
        let (real, missing) = self.walk(guest, true).ok()?;
        let (attributes, node) = self.plan.get(&real).filter(|_| missing.is_empty())?;
        match node {
            Node::HardLink { to } => self.plan.get(to).map(|(attributes, node)| (real, attributes, node)),
            _ => Some((real, attributes, node)),
        }
    }

    /// Whether there is a file at this absolute path.
    pub fn holds(&self, guest: &Path) -> bool {
        guest.is_absolute() && matches!(self.find(guest), Some((_, _, Node::File { .. })))
    }

    /// Follows `guest` as far as the plan goes: the real path reached, and the names that are not there.
    fn walk(&self, guest: &Path, follow_last: bool) -> Result<(Vec<u8>, VecDeque<OsString>), Failure> {
        let mut pending = names_of(guest);
        let mut real = b"/".to_vec();
        let mut links = 0;
        while let Some(name) = pending.pop_front() {
            if name == ".." {
                let parent = real.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
                real.truncate(parent.max(1));
                continue;
            }
            let next = join(&real, name.as_bytes());
            match self.plan.get(&next) {
                Some((_, Node::Symlink { target })) if follow_last || !pending.is_empty() => {
                    links += 1;
                    if links > LINKS_MAX {
                        let text = format!("{}: too many levels of symbolic links", guest.display());
                        return Err(Failure::new(TOOL, text, ""));
                    }
                    let target = Path::new(OsStr::from_bytes(target));
                    if target.is_absolute() {
                        real = b"/".to_vec();
                    }
                    let rest = std::mem::take(&mut pending);
                    pending = names_of(target);
                    pending.extend(rest);
                }
                Some(_) => real = next,
                None => {
                    pending.push_front(name);
                    break;
                }
            }
        }
        pending.retain(|name| name != "..");
        Ok((real, pending))
    }
}

/// `directory` and `name` with one slash between.
pub fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = directory.to_vec();
    if path != b"/" {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// The names and `..` of a path, in order.
fn names_of(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_os_string()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        })
        .collect()
}

fn attributes_of(metadata: &Metadata) -> Attributes {
    Attributes {
        mode: metadata.mode() & 0o7777,
        uid: metadata.uid(),
        gid: metadata.gid(),
        mtime_s: metadata.mtime(),
        mtime_ns: metadata.mtime_nsec() as u32,
    }
}

pub fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    let text = error.to_string();
    let reason = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
    Failure::new(TOOL, format!("cannot read {}: {reason}", path.display()), "")
}

pub fn plan_failure(error: &PlanError) -> Failure {
    let shown = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    let text = match error {
        PlanError::BadPath(path) => format!("the guest path {} is not plain or too long", shown(path)),
        PlanError::NoParent(path) => format!("{} lies below something that is not a directory", shown(path)),
        PlanError::BadTarget(path) => format!("the symlink {} has an impossible target", shown(path)),
        PlanError::BadLink(path) => format!("the hard link {} leads nowhere", shown(path)),
        PlanError::TooMany => "more files than a boot archive holds (1048576)".into(),
        PlanError::BadConfig => "arguments and environment exceed 4 MiB, or --cwd is not absolute".into(),
    };
    Failure::new(TOOL, text, "")
}
