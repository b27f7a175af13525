//! Opening by path: find, or create, and check.

use alloc::sync::Arc;

use abi::Errno;

use super::attributes::{NodeKind, Time};
use super::change::{check_create, denies_names};
use super::credentials::{Access, Credentials};
use super::namespace::Namespace;
use super::node::Node;
use super::opened::File;
use super::store::NewName;
use super::walk::{FinalLink, Last, Limits, View, Walk};

/// Create the file if it is missing (`O_CREAT`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Create {
    /// Permission bits, the process's umask already taken off.
    pub mode: u32,
    /// It must be missing (`O_EXCL`).
    pub exclusive: bool,
}

/// What `open` asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenHow {
    /// Read and write as the access mode says; `execute` for `execve`.
    pub access: Access,
    pub create: Option<Create>,
    /// `O_TRUNC`
    pub truncate: bool,
    /// `O_DIRECTORY`
    pub directory: bool,
    /// `O_NOFOLLOW`
    pub no_follow: bool,
    /// `O_PATH`: only the place in the tree is wanted; no permission on the node itself is needed.
    pub path_only: bool,
    /// `O_NOATIME`: only for the owner.
    pub no_access_time: bool,
    /// Linux's flags, for stores that create and open in one step.
    pub flags: u32,
}

/// An opened node. Reading, writing and what the node's kind means are the opener's business, as is
/// [`Node::begin_write`] for a file opened for writing.
pub struct Opened {
    pub node: Arc<Node>,
    pub created: bool,
    /// `O_TRUNC` was said and means something: the opener cuts the file, which may be long work.
    pub is_to_be_cut: bool,
    /// A store that keeps the file has opened it at once: its mode may forbid to open it again.
    pub opening: Option<Arc<dyn File>>,
}

impl Opened {
    fn found(node: Arc<Node>) -> Opened {
        Opened { node, created: false, is_to_be_cut: false, opening: None }
    }

    pub(super) fn created(node: Arc<Node>) -> Opened {
        Opened { node, created: true, is_to_be_cut: false, opening: None }
    }

    fn at_once(opening: Arc<dyn File>) -> Opened {
        Opened { created: false, ..Opened::made(opening) }
    }

    pub(super) fn made(opening: Arc<dyn File>) -> Opened {
        Opened { node: opening.node().clone(), created: true, is_to_be_cut: false, opening: Some(opening) }
    }
}

/// How often a file that comes and goes on the other side is tried to be made or found.
const RACES_MAX: u32 = 16;

impl Namespace {
    /// Opens `path`: walks, creates if asked, checks permissions, says whether the file is to be cut.
    ///
    /// Errors: those of [`Namespace::lookup`]; `EEXIST`, `EISDIR`, `ENOTDIR`, `ELOOP` for a symlink
    /// that may not be followed, `EACCES`, `EROFS`, `ETXTBSY`, `EPERM`, `ENOSPC`, `EINVAL` for
    /// contradicting wishes.
    pub fn open(&self, view: View<'_>, path: &[u8], how: OpenHow, now: Time) -> Result<Opened, Errno> {
        if how.directory && how.create.is_some() {
            return Err(Errno::EINVAL);
        }
        let last = if how.no_follow { FinalLink::Keep } else { FinalLink::Follow };
        let opened = match how.create {
            Some(create) if !how.path_only => self.open_or_create(view, path, (create, how.flags), last, now)?,
            _ => match self.open_outside(view, path, how)? {
                Some(opening) => Opened::at_once(opening),
                None => Opened::found(self.lookup(view, path, last)?),
            },
        };
        if !opened.created {
            check_open(view.credentials, &opened.node, how)?;
            let may_cut = opened.node.kind() == NodeKind::Regular && !how.path_only && !opened.node.is_elsewhere();
            return Ok(Opened { is_to_be_cut: how.truncate && may_cut, ..opened });
        }
        Ok(opened)
    }

    /// Opens a regular file outside of the machine in one step with looking up its name. `None`: it must be looked up.
    fn open_outside(&self, view: View<'_>, path: &[u8], how: OpenHow) -> Result<Option<Arc<dyn File>>, Errno> {
        let is_plain = !(how.path_only || how.truncate || how.directory || how.no_access_time);
        if !is_plain || how.create.is_some() || !self.may_glance() || view.limits != Limits::default() {
            return Ok(None);
        }
        if self.cache_key(view, path).is_some_and(|key| self.remembered(view, &key, FinalLink::Follow).is_some()) {
            return Ok(None);
        }
        let mut walk = Walk::new(self, view, path)?;
        let Last::Name(name) = walk.reach_last()? else { return Ok(None) };
        if !walk.at.is_elsewhere() || walk.ends_in_slash || !walk.at.volume().speaks_for(view.credentials) {
            return Ok(None);
        }
        Ok(walk.at.volume().store().open_child(&walk.at, name.bytes(), how.flags))
    }

    fn open_or_create(
        &self,
        view: View<'_>,
        path: &[u8],
        (create, flags): (Create, u32),
        last: FinalLink,
        now: Time,
    ) -> Result<Opened, Errno> {
        // A name that exists is found without a walk; a path that ends in a slash is refused below.
        let key = self.cache_key(view, path).filter(|_| !create.exclusive && path.last() != Some(&b'/'));
        if let Some(node) = key.as_ref().and_then(|key| self.remembered(view, key, last)) {
            return if node.is_directory() { Err(Errno::EISDIR) } else { Ok(Opened::found(node)) };
        }
        let mut walk = Walk::new(self, view, path)?;
        let mut races = 0;
        loop {
            let name = match walk.reach_last()? {
                Last::Name(name) => name,
                _ if create.exclusive => return Err(Errno::EEXIST),
                _ => return Err(Errno::EISDIR),
            };
            if walk.ends_in_slash {
                return Err(Errno::EISDIR);
            }
            let node = match walk.last_child(name.bytes()) {
                Ok(node) => node,
                Err(Errno::ENOENT) => {
                    let new = NewName { who: view.credentials, directory: &walk.at, name: name.bytes(), now };
                    let made = create_file(new, create.mode, flags);
                    // Somebody on the other side was faster.
                    if made.as_ref().err() == Some(&Errno::EEXIST) && !create.exclusive && races < RACES_MAX {
                        races += 1;
                        walk = Walk::new(self, view, path)?;
                        continue;
                    }
                    return made;
                }
                Err(error) => return Err(error),
            };
            if create.exclusive {
                return Err(Errno::EEXIST);
            }
            let node = if node.is_symlink() && last == FinalLink::Follow {
                match walk.follow_last(&node)? {
                    Some(jumped) => jumped,
                    None => continue,
                }
            } else {
                node
            };
            if node.is_directory() {
                return Err(Errno::EISDIR);
            }
            if let Some(key) = key {
                walk.remember(&key, &node);
            }
            return Ok(Opened::found(node));
        }
    }
}

fn create_file(new: NewName<'_>, mode: u32, flags: u32) -> Result<Opened, Errno> {
    if denies_names(new.directory) {
        return Err(Errno::ENOENT);
    }
    check_create(new.who, new.directory)?;
    new.directory.volume().store().create(new, mode, flags)
}

/// What Linux's `may_open` checks, in its order.
fn check_open(who: &Credentials, node: &Node, how: OpenHow) -> Result<(), Errno> {
    if how.directory && !node.is_directory() {
        return Err(Errno::ENOTDIR);
    }
    if how.path_only {
        return Ok(());
    }
    let access = Access { write: how.access.write || how.truncate, ..how.access };
    match node.kind() {
        NodeKind::Symlink => return Err(Errno::ELOOP),
        NodeKind::Directory if access.write => return Err(Errno::EISDIR),
        NodeKind::Directory if access.execute => return Err(Errno::EACCES),
        NodeKind::CharDevice(..) | NodeKind::BlockDevice(..) if node.volume().rules().no_devices => {
            return Err(Errno::EACCES);
        }
        _ => {}
    }
    if access.execute && node.kind() != NodeKind::Regular {
        return Err(Errno::EACCES);
    }
    // To open a file or directory that its store keeps checks it there.
    let checked_later = matches!(node.kind(), NodeKind::Regular | NodeKind::Directory)
        && node.is_elsewhere()
        && node.volume().speaks_for(who);
    if !checked_later {
        who.permit(node, access)?;
    }
    if node.kind() == NodeKind::Socket {
        return Err(Errno::ENXIO);
    }
    if how.no_access_time && !who.owns(node) {
        return Err(Errno::EPERM);
    }
    if access.write && node.is_executed() {
        return Err(Errno::ETXTBSY);
    }
    node.prepare()
}
