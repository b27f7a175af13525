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
pub struct Tree {
    plan: Plan<Source>,
    /// Guest paths of host files with several names, by device and inode.
    names: HashMap<(u64, u64), Vec<u8>>,
    /// Bytes of all files, and how many there may be.
    bytes: u64,
    bytes_max: u64,
    left_out: LeftOut,
}

/// What lies in a packed folder and cannot be read.
#[derive(Default)]
struct LeftOut {
    count: u64,
    /// The first of them and why.
    first: Option<(PathBuf, String)>,
}

impl Tree {
    /// An empty one, for files of at most so many bytes.
    pub fn with_bytes_max(bytes_max: u64) -> Tree {
        Tree { plan: Plan::default(), names: HashMap::new(), bytes: 0, bytes_max, left_out: LeftOut::default() }
    }

    /// What was left out of folders because it cannot be read, in a sentence.
    pub fn left_out(&self) -> Option<String> {
        let (path, reason) = self.left_out.first.as_ref()?;
        Some(match self.left_out.count {
            1 => format!("left out {}, which cannot be read: {reason}", path.display()),
            count => {
                format!("left out {count} files and folders that cannot be read, first {}: {reason}", path.display())
            }
        })
    }

    fn leave_out(&mut self, path: &Path, error: &std::io::Error) {
        self.left_out.count += 1;
        self.left_out.first.get_or_insert_with(|| (path.into(), reason(error)));
    }

    pub fn plan(&self) -> &Plan<Source> {
        &self.plan
    }

    /// Puts `node` at `guest`, which must be plain; its parent must be there.
    pub fn put(&mut self, guest: &[u8], attributes: Attributes, node: Node<Source>) -> Result<(), Failure> {
        if let Node::File { bytes, .. } = &node {
            let before = match self.plan.get(guest) {
                Some((_, Node::File { bytes, .. })) => *bytes,
                _ => 0,
            };
            self.bytes = (self.bytes - before).saturating_add(*bytes);
            if self.bytes > self.bytes_max {
                return Err(too_much(guest, self.bytes_max));
            }
        }
        self.plan.insert(guest, attributes, node).map_err(|error| plan_failure(&error))
    }

    /// Puts `node` at `guest` with the symlinks above it followed and missing directories made.
    pub fn put_at(&mut self, guest: &Path, attributes: Attributes, node: Node<Source>) -> Result<(), Failure> {
        let real = self.resolve_parent(guest)?;
        self.put(&real, attributes, node)
    }

    /// What is at `guest` itself, with the symlinks above it followed.
    pub fn at(&mut self, guest: &Path) -> Result<Option<&Node<Source>>, Failure> {
        let real = self.resolve_parent(guest)?;
        Ok(self.plan.get(&real).map(|(_, node)| node))
    }

    /// Puts another name of the file at `to`, whose own name may be another by now. False: there is no such file.
    pub fn link_at(&mut self, guest: &Path, attributes: Attributes, to: &Path) -> Result<bool, Failure> {
        let real = self.resolve_parent(to)?;
        let to = match self.plan.get(&real) {
            Some((_, Node::File { .. })) => real,
            Some((_, Node::HardLink { to })) => to.clone(),
            _ => return Ok(false),
        };
        self.put_at(guest, attributes, Node::HardLink { to }).map(|()| true)
    }

    /// Takes out `guest`, and what is below it, if it is there.
    pub fn remove(&mut self, guest: &Path) -> Result<(), Failure> {
        self.remove_below(guest)?;
        let real = self.resolve_parent(guest)?;
        self.take_out(&real);
        Ok(())
    }

    /// Takes out what is below `guest`.
    pub fn remove_below(&mut self, guest: &Path) -> Result<(), Failure> {
        let real = self.resolve_parent(guest)?;
        for path in self.plan.below(&real) {
            self.take_out(&path);
        }
        Ok(())
    }

    fn take_out(&mut self, path: &[u8]) {
        if let Some((_, Node::File { bytes, .. })) = self.plan.remove(path) {
            self.bytes = self.bytes.saturating_sub(bytes);
        }
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
                self.add_node(&next, next.as_os_str().as_bytes(), &metadata).map_err(|error| error.told(&next))?;
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

    /// Puts the host file or the whole folder `host` at `guest`. Symlinks inside a folder stay symlinks; what is in it and cannot
    /// be read is left out, and so is what lies in file systems that a kernel makes up, as /proc below /.
    /// Returns the host paths of the files that may be executed.
    pub fn add_tree(&mut self, host: &Path, guest: &Path) -> Result<Vec<PathBuf>, Failure> {
        let metadata = fs::metadata(host).map_err(|error| unreadable(host, &error))?;
        let guest = match self.find(guest) {
            Some((real, _, Node::Directory)) if metadata.is_dir() => real,
            _ => self.resolve_parent(guest)?,
        };
        let mut executables = Vec::new();
        self.add_node(host, &guest, &metadata).map_err(|error| error.told(host))?;
        if metadata.is_dir() {
            self.add_entries(host, &guest, &metadata, &mut executables).map_err(|error| error.told(host))?;
        } else if metadata.is_file() && metadata.mode() & 0o111 != 0 {
            executables.push(host.to_path_buf());
        }
        Ok(executables)
    }

    /// Puts what the folder `host` holds below `guest`.
    fn add_entries(
        &mut self,
        host: &Path,
        guest: &[u8],
        folder: &Metadata,
        executables: &mut Vec<PathBuf>,
    ) -> Result<(), AddError> {
        let mut names = fs::read_dir(host)?.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<Vec<_>>>()?;
        names.sort();
        for name in names {
            let (host, guest) = (host.join(&name), join(guest, name.as_bytes()));
            match self.add_entry(&host, &guest, folder, executables) {
                Err(AddError::Unreadable(error)) => self.leave_out(&host, &error),
                Err(AddError::Told(failure)) => return Err(AddError::Told(failure)),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Puts one entry of a folder, with all that is below it.
    fn add_entry(
        &mut self,
        host: &Path,
        guest: &[u8],
        above: &Metadata,
        executables: &mut Vec<PathBuf>,
    ) -> Result<(), AddError> {
        let metadata = fs::symlink_metadata(host)?;
        self.add_node(host, guest, &metadata)?;
        if metadata.is_file() && metadata.mode() & 0o111 != 0 {
            executables.push(host.to_path_buf());
        }
        if !metadata.is_dir() || (metadata.dev() != above.dev() && is_made_up(host)) {
            return Ok(());
        }
        self.add_entries(host, guest, &metadata, executables)
    }

    /// Puts one host file, directory, symlink or device at `guest`, unless a directory is there. Sockets and block devices are left
    /// out.
    fn add_node(&mut self, host: &Path, guest: &[u8], metadata: &Metadata) -> Result<(), AddError> {
        let kind = metadata.file_type();
        if !kind.is_dir() && self.is_directory(guest) {
            return Ok(());
        }
        let node = if kind.is_dir() {
            Node::Directory
        } else if kind.is_symlink() {
            let target = fs::read_link(host)?;
            Node::Symlink { target: target.into_os_string().as_bytes().to_vec() }
        } else if kind.is_file() {
            match self.other_name(guest, metadata) {
                Some(to) => Node::HardLink { to },
                None => {
                    File::open(host)?;
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
        Ok(self.put(guest, attributes_of(metadata), node)?)
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

/// Why something could not be put.
enum AddError {
    /// The host does not let it be read.
    Unreadable(std::io::Error),
    Told(Failure),
}

impl AddError {
    fn told(self, path: &Path) -> Failure {
        match self {
            AddError::Unreadable(error) => unreadable(path, &error),
            AddError::Told(failure) => failure,
        }
    }
}

impl From<std::io::Error> for AddError {
    fn from(error: std::io::Error) -> Self {
        AddError::Unreadable(error)
    }
}

impl From<Failure> for AddError {
    fn from(failure: Failure) -> Self {
        AddError::Told(failure)
    }
}

/// Kinds of file systems whose files a kernel makes up as they are read (statfs(2)): proc, sysfs, devpts, both cgroups, debugfs,
/// tracefs, securityfs, bpf, pstore, efivarfs, configfs, mqueue, binfmt_misc, selinuxfs, fusectl.
const MADE_UP: [u32; 16] = [
    0x9fa0,
    0x6265_6572,
    0x1cd1,
    0x0027_e0eb,
    0x6367_7270,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0xcafe_4a11,
    0x6165_676c,
    0xde5e_81e4,
    0x6265_6570,
    0x1980_0202,
    0x4249_4e4d,
    0xf97c_ff8c,
    0x6573_5546,
];

fn is_made_up(folder: &Path) -> bool {
    rustix::fs::statfs(folder).is_ok_and(|about| MADE_UP.contains(&(about.f_type as u32)))
}

fn too_much(guest: &[u8], bytes_max: u64) -> Failure {
    let text = format!(
        "the files take more than the {} MiB that the machine has for them (at {})",
        bytes_max >> 20,
        String::from_utf8_lossy(guest)
    );
    Failure::new(
        TOOL,
        text,
        "pack less with --with or --root, give more with --mem, or use --hosted, where files stay on the host",
    )
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
    Failure::new(TOOL, format!("cannot read {}: {}", path.display(), reason(error)), "")
}

/// An error of the host in lower case, without its number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_bytes_are_refused_before_any_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let large = folder.path().join("large");
        File::create(&large).unwrap().set_len(3 << 30).unwrap();
        let mut tree = Tree::with_bytes_max(2560 << 20);
        tree.put(b"/", Attributes::default(), Node::Directory).unwrap();
        let failure = tree.add_tree(folder.path(), Path::new("/with")).unwrap_err();
        assert!(failure.error.contains("more than the 2560 MiB") && failure.error.contains("/with/large"), "{failure}");
        assert!(failure.help.contains("--hosted"), "{failure}");
    }

    #[test]
    fn file_systems_that_a_kernel_makes_up_are_known() {
        assert!(is_made_up(Path::new("/proc")));
        assert!(!is_made_up(&std::env::temp_dir()));
    }
}
