//! `--root host`: nothing is packed; the host's root is seen below what is in memory.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::outside::{self, is_kernels};
use super::program::{self, Packed};
use super::shares::{Manner, Share};
use super::skeleton;
use super::tree::Tree;
use super::users::Lists;
use crate::failure::Failure;
use crate::options::FileOptions;

/// Prepares a run of `program` (a name or a path) on the host's root, whose files nobody can change.
pub fn over_host(program: &OsStr, files: &FileOptions) -> Result<Packed, Failure> {
    let files = &FileOptions { root: None, ..files.clone() };
    let mut env = program::environment(files, None)?;
    let user = files.user.as_deref().map(|user| Lists::of_host().find(user)).transpose()?;
    if let Some(user) = &user {
        user.live_in(&mut env, files);
    }
    let mut tree = Tree::with_bytes_max(u64::MAX);
    skeleton::add_root(&mut tree)?;
    for with in &files.with {
        outside::add_with(&mut tree, with)?;
    }
    let cwd = outside::working_directory(files)?;
    let kept = files.upper.as_deref().and_then(|upper| kept_program(upper, program, &env));
    let path = match &kept {
        Some(path) => path.clone(),
        None if tree.holds(Path::new(program)) => PathBuf::from(program),
        None => program::find_on_host(program)?,
    };
    if kept.is_none() {
        outside::check_program(&tree, &path)?;
    }
    let mut shares = Share::read_all(files.share.iter().map(OsString::as_os_str))?;
    // The machine's own /tmp hides the host's, but not the folder that the program starts in.
    let is_shared = shares.iter().any(|share| cwd.starts_with(&share.guest));
    if is_kernels(&cwd) && !is_shared && cwd.is_dir() {
        shares.insert(0, Share { host: cwd.clone(), guest: cwd.clone(), manner: Manner::Below });
    }
    let is_seen = kept.is_some() || shares.iter().any(|share| path.starts_with(&share.guest));
    if is_kernels(&path) && !is_seen && tree.find(&path).is_none() {
        tree.add_tree(&path, &outside::plain(&path))?;
    }
    shares.insert(0, Share { host: "/".into(), guest: "/".into(), manner: Manner::Below });
    let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
    Ok(Packed { tree, program: bytes(&path), env, cwd: bytes(&cwd), outside: None, shares, user })
}

/// The path of a program that a run before has put into the folder of `--upper`.
fn kept_program(upper: &Path, program: &OsStr, env: &[Vec<u8>]) -> Option<PathBuf> {
    let is_there = |path: &PathBuf| {
        let inside = path.strip_prefix("/").ok()?;
        upper.join(inside).is_file().then(|| path.clone())
    };
    if program.as_bytes().contains(&b'/') {
        return is_there(&PathBuf::from(program));
    }
    let folders = env.iter().find_map(|variable| variable.strip_prefix(b"PATH="))?;
    folders.split(|byte| *byte == b':').find_map(|folder| is_there(&Path::new(OsStr::from_bytes(folder)).join(program)))
}
