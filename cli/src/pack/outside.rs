//! For the hosted machine: nothing is packed but what is laid over the host's files.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use bootimage::{Attributes, Node};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

use super::program::{self, Packed};
use super::tree::{Tree, unreadable};
use super::{root, skeleton};
use crate::failure::{Failure, NOT_EXECUTABLE, NOT_FOUND, TOOL};
use crate::machine::terminal::say;
use crate::options::FileOptions;

/// Folders of the host that the machine sees as they are.
#[derive(Default)]
pub struct Outside {
    /// Where each is seen, and a descriptor that the machine inherits.
    pub folders: Vec<(Vec<u8>, OwnedFd)>,
    /// Folders that are in memory, beside those that always are.
    pub memory: Vec<Vec<u8>>,
}

/// Bytes of a program's file that are looked at: the first line of a script (`BINPRM_BUF_SIZE` of Linux), an ELF header.
const LINE_BYTES: u64 = 256;
/// Kept from the host by the kernel, whatever the host has there.
const ALWAYS_IN_MEMORY: &str = "/tmp";
const KERNELS_OWN: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Prepares a run of `program` (a name or a path) on the host's files, or on those of `--root DIR`.
pub fn lay_over(program: &OsStr, files: &FileOptions) -> Result<Packed, Failure> {
    let root = files.root.as_deref();
    let env = program::environment(files, None)?;
    let top = open_folder(root.unwrap_or(Path::new("/")))?;
    let mut tree = Tree::with_bytes_max(u64::MAX);
    skeleton::add_root(&mut tree)?;
    tree.ensure_directory(ALWAYS_IN_MEMORY, 0o1777)?;
    let mut outside = Outside::default();
    if let Some(temporary) = root.map(|root| root.join("tmp")).filter(|folder| folder.is_dir()) {
        // A root folder is complete in itself; its /tmp is where the memory one starts.
        root::add_folder(&mut tree, &temporary, Path::new(ALWAYS_IN_MEMORY))?;
    }
    for folder in &files.memory {
        add_memory(&mut tree, &mut outside, root, folder)?;
    }
    for with in &files.with {
        add_with(&mut tree, with)?;
    }
    let cwd = working_directory(files)?;
    if files.cwd.is_some() && !is_folder(&cwd, root, &tree) {
        let text = format!("--cwd {}: no such directory in the guest", cwd.display());
        return Err(Failure::new(TOOL, text, "name one that the guest has"));
    }
    let path = match root {
        // What --with brings is there for PROGRAM, too, by its path in the guest.
        None if tree.holds(Path::new(program)) => PathBuf::from(program),
        None => program::find_on_host(program)?,
        Some(_) => find_below(&top, program, &env)?,
    };
    match root {
        None => check_program(&tree, &path)?,
        Some(_) => check_below(&top, &path)?,
    }
    // The working directory is the host's also below /tmp, unless it was asked to be in memory.
    let asked = |path: &Path| outside.memory.iter().any(|folder| path.starts_with(OsStr::from_bytes(folder)));
    let shown = Some(cwd.clone()).filter(|cwd| root.is_none() && is_kernels(cwd) && !asked(cwd));
    let is_hidden = is_kernels(&path) && tree.find(&path).is_none();
    if root.is_none() && is_hidden && !shown.as_ref().is_some_and(|shown| path.starts_with(shown)) {
        tree.add_tree(&path, &plain(&path))?;
    }
    outside.folders.push((b"/".to_vec(), top));
    if let Some(folder) = shown {
        outside.folders.push((bytes_of(&folder), open_folder(&folder)?));
    }
    Ok(Packed {
        tree,
        program: bytes_of(&path),
        env,
        cwd: bytes_of(&cwd),
        outside: Some(outside),
        shares: Vec::new(),
        user: None,
    })
}

fn bytes_of(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

/// A path without `.` and `..`, by its names alone.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => drop(plain.pop()),
            _ => {}
        }
    }
    plain
}

/// A descriptor of a folder that the machine inherits.
fn open_folder(folder: &Path) -> Result<OwnedFd, Failure> {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    rustix::fs::openat(CWD, folder, flags, Mode::empty()).map_err(|error| unreadable(folder, &error.into()))
}

/// Below a folder of the kernel's own that has files: `/tmp`, and `/dev/shm`.
pub(super) fn is_kernels(path: &Path) -> bool {
    ["/tmp", "/dev"].iter().any(|folder| path.starts_with(folder) && path != Path::new(folder))
}

/// `--memory DIR`: the folder as it is now, from now on in memory.
fn add_memory(tree: &mut Tree, outside: &mut Outside, root: Option<&Path>, folder: &Path) -> Result<(), Failure> {
    let guest = match root {
        None => std::path::absolute(folder).map_err(|error| unreadable(folder, &error))?,
        Some(_) => Path::new("/").join(folder),
    };
    let guest = plain(&guest);
    let host = root.map_or(guest.clone(), |root| root.join(guest.strip_prefix("/").unwrap_or(&guest)));
    if guest == Path::new("/") || KERNELS_OWN.iter().any(|own| guest.starts_with(own)) {
        let text = format!("--memory {}: not a folder of its own", folder.display());
        return Err(Failure::new(TOOL, text, "name a folder below the root"));
    }
    match std::fs::metadata(&host) {
        Ok(found) if found.is_dir() => root::add_folder(tree, &host, &guest)?,
        Ok(_) => return Err(Failure::new(TOOL, format!("--memory {}: not a folder", folder.display()), "")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            tree.put_at(&guest, Attributes { mode: 0o755, ..Default::default() }, Node::Directory)?;
        }
        Err(error) => return Err(unreadable(&host, &error)),
    }
    outside.memory.push(bytes_of(&guest));
    Ok(())
}

/// `--with HOST[:GUEST]`: a copy, laid over what is there.
pub(super) fn add_with(tree: &mut Tree, option: &OsStr) -> Result<(), Failure> {
    let (host, guest) = program::split_with(option);
    let host = if host.exists() || host.as_os_str().as_bytes().contains(&b'/') {
        std::path::absolute(&host).map_err(|error| unreadable(&host, &error))?
    } else {
        program::find_on_host(host.as_os_str())?
    };
    // Where the host leads through symlinks, the copy goes too.
    let guest = guest.unwrap_or_else(|| host.clone());
    let real_parent = guest.parent().and_then(|parent| parent.canonicalize().ok());
    let guest = match (real_parent, guest.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => guest,
    };
    tree.add_tree(&host, &plain(&guest)).map(drop)
}

/// Whether the machine will have this folder: a file system of the kernel's own shows what it likes.
fn is_folder(path: &Path, root: Option<&Path>, tree: &Tree) -> bool {
    let below = path.strip_prefix("/").unwrap_or(path);
    tree.find(path).is_some()
        || KERNELS_OWN.iter().any(|own| path.starts_with(own))
        || root.unwrap_or(Path::new("/")).join(below).is_dir()
}

/// What is no program, and a script whose interpreter is missing, are told here, where both have names.
pub(super) fn check_program(tree: &Tree, path: &Path) -> Result<(), Failure> {
    let mut head = Vec::new();
    match tree.find(path) {
        Some((_, _, Node::File { bytes, source })) => head = program::read_head(source, *bytes),
        _ => {
            let read = File::open(path).and_then(|file| file.take(LINE_BYTES).read_to_end(&mut head));
            if read.is_err() {
                return Ok(());
            }
        }
    }
    let Some((interpreter, _)) = program::script_interpreter(&head) else { return program::check_head(path, &head) };
    let interpreter = Path::new(&interpreter);
    let is_missing = interpreter.is_absolute() && std::fs::symlink_metadata(interpreter).is_err();
    if !is_missing || tree.find(interpreter).is_some() {
        return Ok(());
    }
    let text = format!("{}: its interpreter {} is missing", path.display(), interpreter.display());
    Err(Failure::new(NOT_FOUND, text, "name one that is there in its first line"))
}

/// The same of a program in the root folder `top`, whose interpreter the kernel looks for.
fn check_below(top: &OwnedFd, path: &Path) -> Result<(), Failure> {
    let name = path.strip_prefix("/").unwrap_or(path);
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let Ok(file) = rustix::fs::openat2(top, name, flags, Mode::empty(), ResolveFlags::IN_ROOT) else { return Ok(()) };
    let mut head = Vec::new();
    match File::from(file).take(LINE_BYTES).read_to_end(&mut head) {
        Ok(_) => program::check_head(path, &head),
        Err(_) => Ok(()),
    }
}

/// Where the program starts: `--cwd`, the root of `--root`, or where the tool is.
pub(super) fn working_directory(files: &FileOptions) -> Result<PathBuf, Failure> {
    let here = match (&files.cwd, &files.root) {
        (Some(cwd), _) if !cwd.as_bytes().starts_with(b"/") => {
            let text = format!("--cwd {}: not an absolute path", cwd.to_string_lossy());
            return Err(Failure::new(TOOL, text, "start it with a slash"));
        }
        (Some(cwd), root) => {
            let cwd = plain(Path::new(cwd));
            let there = root.as_ref().map_or(cwd.clone(), |root| root.join(cwd.strip_prefix("/").unwrap_or(&cwd)));
            let is_ours = files.memory.iter().any(|folder| cwd.starts_with(folder)) || is_kernels(&cwd);
            if !there.is_dir() && !is_ours && !KERNELS_OWN.iter().any(|own| cwd.starts_with(own)) {
                let text = format!("--cwd {}: no such directory", cwd.display());
                return Err(Failure::new(TOOL, text, "name a folder that the program will see"));
            }
            cwd
        }
        (None, Some(_)) => PathBuf::from("/"),
        (None, None) => match std::env::current_dir() {
            Ok(here) => here,
            Err(error) => {
                say(format!("synth: the working directory cannot be found ({error}); starting in /\n").as_bytes());
                PathBuf::from("/")
            }
        },
    };
    Ok(plain(&here))
}

/// The path of `program` below the root folder `top`, with symlinks followed as they will be there.
fn find_below(top: &OwnedFd, program: &OsStr, env: &[Vec<u8>]) -> Result<PathBuf, Failure> {
    let candidates: Vec<PathBuf> = if program.as_bytes().contains(&b'/') {
        vec![Path::new("/").join(program)]
    } else {
        let path: OsString = program::variable(env, "PATH").map(OsString::from).unwrap_or_default();
        program::split(&path).iter().map(|folder| folder.join(program)).collect()
    };
    let mut refused = None;
    for path in &candidates {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let name = path.strip_prefix("/").unwrap_or(path);
        let Ok(file) = rustix::fs::openat2(top, name, flags, Mode::empty(), ResolveFlags::IN_ROOT) else { continue };
        // The kernel asks the host whether this user may execute it.
        let mode = rustix::fs::fstat(&file).map_or(0, |found| found.st_mode);
        if mode & 0o170_000 == 0o100_000 && mode & 0o111 != 0 {
            return Ok(path.clone());
        }
        refused = Some(path.clone());
    }
    Err(match refused {
        Some(path) => {
            Failure::new(NOT_EXECUTABLE, format!("{} is not executable", path.display()), "make it so with chmod +x")
        }
        None => {
            let text = format!("{}: no such program in the root file system", program.to_string_lossy());
            Failure::new(NOT_FOUND, text, "PROGRAM is looked up in --root when that is given")
        }
    })
}
