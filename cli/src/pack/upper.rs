//! `--upper DIR`: what programs change on `--root host` is kept in a folder, as the upper directory of an overlay, and is there again in
//! the next machine.
//!
//! ```text
//!   a machine sees   its memory  over  DIR  over  the host's root
//!   at its end       DIR (hard links)  +  what was changed  ──►  the next DIR, which takes its place at once
//! ```
//! So DIR is what it was, or all of what it shall be, also when the tool is killed.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, RenameFlags, XattrFlags};
use rustix::io::Errno;

use super::shares::{Manner, Share};
use crate::failure::{Failure, TOOL};

/// Marks of an overlay's upper directory: a folder that hides what is below it, and a file that hides a name where no device can be made.
const OPAQUE: &str = "user.overlay.opaque";
const WHITEOUT: &str = "user.overlay.whiteout";
/// Who has a file in the machine, and its mode, as container engines note it where an ordinary user keeps it.
const OVERRIDE: &str = "user.containers.override_stat";

/// The folder that is kept, while a machine uses it.
pub struct Upper {
    folder: PathBuf,
    /// Where the machine brings its changes; it goes when this does.
    incoming: PathBuf,
    /// Nobody else uses the folder meanwhile.
    _lock: File,
}

impl Drop for Upper {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.incoming);
    }
}

impl Upper {
    /// Takes the folder, and makes it if it is not there.
    pub fn prepare(folder: &Path) -> Result<Upper, Failure> {
        let failed =
            |reason: &str, help: &str| Failure::new(TOOL, format!("--upper {}: {reason}", folder.display()), help);
        match DirBuilder::new().mode(0o755).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed(&error.to_string(), "name a folder in one that you may write"));
            }
            _ => {}
        }
        let real = fs::canonicalize(folder).map_err(|error| failed(&error.to_string(), ""))?;
        if !real.is_dir() {
            return Err(failed("not a folder", "name one, or one that is not there yet"));
        }
        let lock = File::open(&real).map_err(|error| failed(&error.to_string(), ""))?;
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(failed("another machine uses it", "wait for its end, or name another folder"));
        }
        let incoming = beside(&real, "in").ok_or_else(|| failed("it cannot be the root", "name another folder"))?;
        let made = DirBuilder::new().mode(0o700).create(&incoming);
        made.map_err(|error| {
            failed(&format!("nothing can be made beside it: {error}"), "name a folder in one that you may write")
        })?;
        Ok(Upper { folder: real, incoming, _lock: lock })
    }

    /// The folder as the machine sees it, above the host's root.
    pub fn layer(&self) -> Share {
        Share { host: self.folder.clone(), guest: "/".into(), manner: Manner::Upper }
    }

    /// Where the machine shall bring what was changed.
    pub fn incoming(&self) -> Share {
        Share { host: self.incoming.clone(), guest: "/".into(), manner: Manner::Changes }
    }

    /// The machine has ended: its changes go into the folder.
    pub fn finish(self) -> Result<(), Failure> {
        let failed = |reason: &str| {
            let text = format!("--upper {}: {reason}", self.folder.display());
            Failure::new(TOOL, text, "the folder is as it was before this run")
        };
        match fs::read_to_string(self.incoming.join("end")) {
            Ok(reason) if !reason.is_empty() => Err(failed(&reason)),
            Ok(_) => self.merge().map_err(|error| failed(&error.to_string())),
            Err(_) => Err(failed("the machine did not come to its end")),
        }
    }

    fn merge(&self) -> io::Result<()> {
        let next = beside(&self.folder, "next").ok_or(io::ErrorKind::InvalidInput)?;
        let _ = fs::remove_dir_all(&next);
        let built = self.build(&next).and_then(|()| exchange(&next, &self.folder));
        // The old one, or what could not be finished.
        let removed = fs::remove_dir_all(&next);
        built.and(removed)
    }

    fn build(&self, next: &Path) -> io::Result<()> {
        clone(&self.folder, next)?;
        let list = |name: &str| fs::read(self.incoming.join(name)).and_then(|bytes| paths_in(&bytes));
        for path in list("whole")? {
            let place = way_to(next, &path)?;
            remove(&place)?;
            make_folder(&place, true)?;
        }
        let brought = self.incoming.join("brought");
        if brought.is_dir() {
            bring(&brought, next)?;
        }
        for owned in list("owners")? {
            own(next, &owned)?;
        }
        for path in list("gone")? {
            let place = way_to(next, &path)?;
            remove(&place)?;
            if fs::symlink_metadata(Path::new("/").join(&path)).is_ok() {
                hide(&place)?;
            }
        }
        Ok(())
    }
}

/// A name beside the folder that nobody else uses.
fn beside(folder: &Path, what: &str) -> Option<PathBuf> {
    let mut name = folder.file_name()?.to_os_string();
    name.push(format!(".synth-{what}-{}", std::process::id()));
    Some(folder.with_file_name(name))
}

/// Both names change what they stand for; without such a call there is a moment with none.
fn exchange(new: &Path, old: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE) {
        Err(Errno::INVAL | Errno::NOSYS) => {
            let aside = beside(old, "old").ok_or(io::ErrorKind::InvalidInput)?;
            fs::rename(old, &aside)?;
            fs::rename(new, old)?;
            fs::rename(&aside, new)
        }
        done => Ok(done?),
    }
}

/// The same tree once more; files are the same files.
fn clone(from: &Path, to: &Path) -> io::Result<()> {
    make_folder(to, is_opaque(from))?;
    if let Some(owner) = owner_of(from) {
        rustix::fs::setxattr(to, OVERRIDE, &owner, XattrFlags::empty())?;
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            clone(&entry.path(), &place)?;
        } else {
            rustix::fs::linkat(CWD, entry.path(), CWD, &place, AtFlags::empty())?;
        }
    }
    set_mode(to, entry_mode(from)?)
}

/// The paths of a list: each behind a zero byte. None leads out of the folder.
fn paths_in(bytes: &[u8]) -> io::Result<Vec<PathBuf>> {
    let paths = bytes.split(|byte| *byte == 0).skip(1).map(|path| Path::new(OsStr::from_bytes(path)));
    paths.map(|path| inside(path).map(Path::to_path_buf)).collect()
}

fn inside(path: &Path) -> io::Result<&Path> {
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    if is_inside && path.components().next().is_some() { Ok(path) } else { Err(io::ErrorKind::InvalidData.into()) }
}

/// The place of a path in the tree, in folders that are made where there are none: no symlink is followed.
fn way_to(tree: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut place = tree.to_path_buf();
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        place.push(part);
        if parts.peek().is_some() {
            enter(&place)?;
        }
    }
    Ok(place)
}

/// A folder is there. One that takes the place of something else hides what is below.
fn enter(place: &Path) -> io::Result<()> {
    match fs::symlink_metadata(place) {
        Ok(about) if about.is_dir() => Ok(()),
        Ok(_) => {
            fs::remove_file(place)?;
            make_folder(place, true)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => make_folder(place, false),
        Err(error) => Err(error),
    }
}

/// Notes whose something is, by `USER:GROUP:MODE:PATH`, if it seems to be somebody else's. Where that cannot be noted it is the tool's
/// user's.
fn own(tree: &Path, owned: &Path) -> io::Result<()> {
    let bytes = owned.as_os_str().as_bytes();
    let ends = || bytes.iter().enumerate().filter(|(_, byte)| **byte == b':').map(|(at, _)| at);
    let end = ends().nth(2).ok_or(io::ErrorKind::InvalidData)?;
    let (owner, path) = (&bytes[..end], inside(Path::new(OsStr::from_bytes(&bytes[end + 1..])))?);
    let place = way_to(tree, path)?;
    let Ok(about) = fs::symlink_metadata(&place) else { return Ok(()) };
    if !about.is_dir() && !about.is_file() {
        return Ok(());
    }
    let seems = format!("{}:{}:0{:o}", about.uid(), about.gid(), about.mode() & 0o7777);
    let noted = match seems.as_bytes() == owner {
        true => rustix::fs::removexattr(&place, OVERRIDE),
        false => rustix::fs::setxattr(&place, OVERRIDE, owner, XattrFlags::empty()),
    };
    match noted {
        Ok(()) | Err(Errno::NODATA | Errno::NOTSUP | Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn owner_of(folder: &Path) -> Option<Vec<u8>> {
    let mut value = vec![0; 40];
    let count = rustix::fs::lgetxattr(folder, OVERRIDE, &mut value).ok()?;
    value.truncate(count);
    Some(value)
}

/// Moves what was brought into the tree.
fn bring(from: &Path, to: &Path) -> io::Result<()> {
    let mode = entry_mode(from)?;
    set_mode(from, mode)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            enter(&place)?;
            bring(&entry.path(), &place)?;
        } else {
            remove(&place)?;
            fs::rename(entry.path(), &place)?;
            let about = fs::symlink_metadata(&place)?;
            if about.is_file() && about.mode() & 0o600 != 0o600 {
                // The next machine reads it for this user.
                set_mode(&place, about.mode() & 0o777 | 0o600)?;
            }
        }
    }
    set_mode(to, mode)
}

/// A folder's mode, but its owner, who runs the tool, can use it.
fn entry_mode(folder: &Path) -> io::Result<u32> {
    Ok(fs::symlink_metadata(folder)?.mode() & 0o777 | 0o700)
}

fn set_mode(place: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(place, Permissions::from_mode(mode))
}

fn remove(place: &Path) -> io::Result<()> {
    match fs::symlink_metadata(place) {
        Ok(about) if about.is_dir() => fs::remove_dir_all(place),
        Ok(_) => fs::remove_file(place),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn make_folder(place: &Path, hides_below: bool) -> io::Result<()> {
    DirBuilder::new().mode(0o755).create(place)?;
    if hides_below {
        rustix::fs::setxattr(place, OPAQUE, b"y", XattrFlags::empty())?;
    }
    Ok(())
}

fn is_opaque(folder: &Path) -> bool {
    let mut value = [0; 1];
    rustix::fs::lgetxattr(folder, OPAQUE, &mut value).is_ok_and(|count| count == 1 && value == *b"y")
}

/// A name that stands for nothing, whatever is below: a device that is none, or a marked file.
fn hide(place: &Path) -> io::Result<()> {
    let made = rustix::fs::mknodat(CWD, place, FileType::CharacterDevice, Mode::empty(), 0);
    match made {
        Err(Errno::PERM | Errno::NOTSUP) => {
            File::create_new(place)?;
            Ok(rustix::fs::setxattr(place, WHITEOUT, b"y", XattrFlags::empty())?)
        }
        made => Ok(made?),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileTypeExt;

    use super::*;

    /// Where there are extended attributes, which memory file systems may not have.
    fn place() -> tempfile::TempDir {
        tempfile::tempdir_in("../target").unwrap()
    }

    /// A folder with an upper directory in it, to which this brings something.
    fn merged(old: &dyn Fn(&Path), brings: &dyn Fn(&Path)) -> (tempfile::TempDir, PathBuf, Result<(), String>) {
        let place = place();
        let folder = place.path().join("upper");
        fs::create_dir(&folder).unwrap();
        old(&folder);
        let upper = Upper::prepare(&folder).unwrap();
        let incoming = upper.incoming().host;
        for name in ["gone", "whole", "owners", "end"] {
            fs::write(incoming.join(name), "").unwrap();
        }
        fs::create_dir(incoming.join("brought")).unwrap();
        brings(&incoming);
        let done = upper.finish().map_err(|failure| failure.error);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nothing else stays");
        (place, folder, done)
    }

    fn is_hidden(path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_char_device() && about.rdev() == 0)
    }

    #[test]
    fn changes_go_over_what_was_there() {
        let old = |folder: &Path| {
            fs::create_dir(folder.join("a")).unwrap();
            fs::write(folder.join("a/stays"), "1").unwrap();
            fs::write(folder.join("a/changes"), "1").unwrap();
            fs::write(folder.join("a/goes"), "1").unwrap();
        };
        let brings = |incoming: &Path| {
            fs::create_dir_all(incoming.join("brought/a/b")).unwrap();
            fs::write(incoming.join("brought/a/changes"), "2").unwrap();
            fs::write(incoming.join("brought/a/b/new"), "2").unwrap();
            fs::set_permissions(incoming.join("brought/a/b"), Permissions::from_mode(0o500)).unwrap();
            fs::write(incoming.join("gone"), "\0a/goes\0etc/passwd").unwrap();
            fs::write(incoming.join("owners"), "\x001234:5:04750:a/changes\x006:7:01755:a/b").unwrap();
        };
        let (_place, folder, done) = merged(&old, &brings);
        assert_eq!(done, Ok(()));
        let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!([text("a/stays"), text("a/changes"), text("a/b/new")], ["1", "2", "2"]);
        assert!(!folder.join("a/goes").exists(), "below there is no such name to hide");
        assert!(is_hidden(&folder.join("etc/passwd")));
        assert_eq!(owner_of(&folder.join("a/changes")), Some(b"1234:5:04750".to_vec()));
        assert_eq!(owner_of(&folder.join("a/b")), Some(b"6:7:01755".to_vec()));
    }

    #[test]
    fn folders_hide_what_they_replace() {
        let old = |folder: &Path| {
            fs::create_dir(folder.join("etc")).unwrap();
            hide(&folder.join("etc/apt")).unwrap();
            fs::create_dir(folder.join("old")).unwrap();
            fs::write(folder.join("old/file"), "").unwrap();
        };
        let brings = |incoming: &Path| {
            fs::create_dir_all(incoming.join("brought/etc/apt")).unwrap();
            fs::create_dir_all(incoming.join("brought/old")).unwrap();
            fs::write(incoming.join("brought/old/new"), "").unwrap();
            fs::write(incoming.join("whole"), "\0old").unwrap();
        };
        let (_place, folder, done) = merged(&old, &brings);
        assert_eq!(done, Ok(()));
        assert!(
            is_opaque(&folder.join("etc/apt")) && is_opaque(&folder.join("old")) && !is_opaque(&folder.join("etc"))
        );
        assert!(folder.join("old/new").exists() && !folder.join("old/file").exists());
    }

    #[test]
    fn what_leads_out_or_has_no_end_changes_nothing() {
        let old = |folder: &Path| fs::write(folder.join("file"), "1").unwrap();
        let outside = |incoming: &Path| fs::write(incoming.join("gone"), "\0../file").unwrap();
        let root = |incoming: &Path| fs::write(incoming.join("owners"), "\x000:0:0644:/etc/passwd").unwrap();
        let halfway = |incoming: &Path| fs::remove_file(incoming.join("end")).unwrap();
        let failed = |incoming: &Path| fs::write(incoming.join("end"), "No space left on device").unwrap();
        for brings in [&outside as &dyn Fn(&Path), &root, &halfway, &failed] {
            let (_place, folder, done) = merged(&old, brings);
            assert!(done.is_err());
            assert_eq!(fs::read_to_string(folder.join("file")).unwrap(), "1");
        }
    }

    #[test]
    fn no_symlink_leads_out() {
        let place = place();
        let target = place.path().join("target");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("file"), "1").unwrap();
        let link = target.clone();
        let old = move |folder: &Path| std::os::unix::fs::symlink(&link, folder.join("link")).unwrap();
        let brings = |incoming: &Path| fs::write(incoming.join("gone"), "\0link/file").unwrap();
        let (_place, folder, done) = merged(&old, &brings);
        assert_eq!(done, Ok(()));
        assert_eq!(fs::read_to_string(target.join("file")).unwrap(), "1");
        assert!(folder.join("link").is_dir());
    }

    #[test]
    fn two_machines_do_not_share_one() {
        let place = place();
        let folder = place.path().join("made");
        let first = Upper::prepare(&folder).unwrap();
        assert!(Upper::prepare(&folder).is_err_and(|failure| failure.error.contains("another machine")));
        drop(first);
        assert!(Upper::prepare(&folder).is_ok());
        assert!(Upper::prepare(Path::new("/etc/passwd")).is_err());
    }
}
