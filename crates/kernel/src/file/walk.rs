//! From a path to a node, one name at a time.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use abi::Errno;
use machine::TryGrow;

use super::credentials::{Access, Credentials};
use super::glance::is_plain;
use super::limits::{LINKS_FOLLOWED_MAX, PATH_BYTES_MAX};
use super::namespace::Namespace;
use super::node::Node;
use super::path_cache::{Asker, Key, Start, Terms};
use super::store::{Guess, Residence};
use super::virtual_tree::LinkTarget;

/// From where, and as whom, somebody looks at the tree of names.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The process's root directory.
    pub root: &'a Arc<Node>,
    /// Where a relative path starts: the working directory, or the directory of an `*at` call.
    pub directory: &'a Arc<Node>,
    pub credentials: &'a Credentials,
    pub limits: Limits,
}

impl<'a> View<'a> {
    /// A view without limits.
    pub fn new(root: &'a Arc<Node>, directory: &'a Arc<Node>, credentials: &'a Credentials) -> View<'a> {
        View { root, directory, credentials, limits: Limits::default() }
    }
}

/// Where a walk may not go (Linux `openat2`, `RESOLVE_…`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// Not into another volume, neither down nor up (`EXDEV`).
    pub one_volume: bool,
    /// Not by a link that leads straight to a node, as those in /proc do (`ELOOP`).
    pub no_jumps: bool,
    /// Not by a symlink (`ELOOP`).
    pub no_links: bool,
    /// The root of the view is the directory where the walk starts; a way above it is an error (`EXDEV`).
    pub beneath: bool,
    /// The same, but a way above it ends there, as at every root.
    pub in_root: bool,
    /// Not where somebody outside of the machine must be asked (`EAGAIN`).
    pub no_asking: bool,
}

/// What happens if the last name of a path is a symlink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FinalLink {
    Follow,
    /// The link itself is meant. A slash behind its name still follows it.
    Keep,
}

impl Namespace {
    /// The node that `path` names.
    ///
    /// Errors: `ENOENT` (also for an empty path), `ENOTDIR`, `EACCES` on a directory that may not be
    /// searched, `ELOOP`, `ENAMETOOLONG`.
    pub fn lookup(&self, view: View<'_>, path: &[u8], last: FinalLink) -> Result<Arc<Node>, Errno> {
        let key = self.cache_key(view, path);
        if let Some(node) = key.as_ref().and_then(|key| self.remembered(view, key, last)) {
            return Ok(node);
        }
        let mut walk = Walk::new(self, view, path)?;
        let node = walk.reach_end(last)?;
        if let Some(key) = key {
            walk.remember(&key, &node);
        }
        Ok(node)
    }

    /// Whether `path` has just been walked and leads to the same node for as long as the generation stays: no link of /proc, which
    /// may lead elsewhere without notice, and no place outside of the machine lay on the way.
    pub fn is_settled(&self, view: View<'_>, path: &[u8]) -> bool {
        let key = self.cache_key(view, path);
        key.is_some_and(|key| self.remembered(view, &key, FinalLink::Follow).is_some())
    }

    /// A key for the path cache, unless the walk depends on a private root directory.
    pub(super) fn cache_key<'a>(&self, view: View<'_>, path: &'a [u8]) -> Option<Key<'a>> {
        if !Arc::ptr_eq(view.root, self.root()) || view.limits != Limits::default() {
            return None;
        }
        let start = if path.first() == Some(&b'/') { view.root } else { view.directory };
        match start.volume().residence() {
            Residence::Memory => {}
            // What is laid over the root is in memory.
            Residence::Outside if Arc::ptr_eq(start, self.root()) => {}
            _ => return None,
        }
        Key::new(Start { volume: start.volume().identity(), number: start.number() }, path)
    }

    pub(super) fn remembered(&self, view: View<'_>, key: &Key<'_>, last: FinalLink) -> Option<Arc<Node>> {
        let asker = Asker { searches_all: view.credentials.searches_all(), follows: last == FinalLink::Follow };
        self.cache.borrow().find(self.generation(), key, asker)
    }
}

/// A string that is being walked: the program's path, or the target of a symlink met on the way.
#[derive(Clone)]
enum Text<'a> {
    Given(&'a [u8]),
    Target(Arc<[u8]>),
}

impl Text<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Text::Given(bytes) => bytes,
            Text::Target(bytes) => bytes,
        }
    }
}

/// The part of a text that is still to be walked. It starts at a name, except just after it was
/// pushed.
struct Rest<'a> {
    text: Text<'a>,
    at: usize,
}

/// One name of a path.
pub(super) struct Name<'a> {
    text: Text<'a>,
    range: Range<usize>,
}

impl Name<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.text.bytes()[self.range.clone()]
    }
}

/// The last name of a path.
pub(super) enum Last<'a> {
    /// The path was only slashes.
    Root,
    /// `.`
    Dot,
    /// `..`
    DotDot,
    Name(Name<'a>),
}

/// A walk under way. It stops before the last name, so that the caller can look it up, create it or
/// remove it.
pub(super) struct Walk<'a> {
    namespace: &'a Namespace,
    pub(super) view: View<'a>,
    /// The program's path.
    path: &'a [u8],
    /// It began anew.
    is_second: bool,
    /// The directory reached so far (anything else is an error at the next name).
    pub(super) at: Arc<Node>,
    /// What is left to walk, innermost symlink target last.
    pending: Vec<Rest<'a>>,
    links_followed: u32,
    /// A slash stands behind the last name.
    pub(super) ends_in_slash: bool,
    terms: Terms,
    cacheable: bool,
    /// The way so far can be taken again while [`Namespace::folders`] keeps it: downwards by names, all settled, past no directory in
    /// memory that is not open to all.
    is_way: bool,
    /// The root counts as known: the path or a `..` on it has named it. Linux takes an absolute link for a way into another
    /// volume otherwise.
    knows_root: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(namespace: &'a Namespace, view: View<'a>, path: &'a [u8]) -> Result<Walk<'a>, Errno> {
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        if path.len() > PATH_BYTES_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        let absolute = path[0] == b'/';
        if absolute && view.limits.beneath {
            return Err(Errno::EXDEV);
        }
        let mut pending = Vec::new();
        pending.room_for_exact(2)?;
        pending.put(Rest { text: Text::Given(path), at: 0 });
        let mut walk = Walk {
            namespace,
            view,
            path,
            is_second: false,
            at: if absolute { view.root.clone() } else { view.directory.clone() },
            pending,
            links_followed: 0,
            ends_in_slash: false,
            terms: Terms { open_to_all: true, straight: true },
            cacheable: true,
            is_way: absolute,
            knows_root: absolute || view.limits.beneath || view.limits.in_root,
        };
        if absolute {
            walk.leap();
        }
        Ok(walk)
    }

    /// Goes at once to the directory of the last name, if it lies outside of the machine, somebody has gone there, and nothing on the
    /// way has moved since.
    fn leap(&mut self) {
        let Some(generation) = self.namespace.folders_generation() else { return };
        let [Rest { text: Text::Given(path), at }] = &mut self.pending[..] else { return };
        let Some(end) = path.iter().rposition(|byte| *byte == b'/') else { return };
        if end == 0 || end + 1 == path.len() {
            return;
        }
        let Some(key) = self.namespace.cache_key(self.view, &path[..end]) else { return };
        let asker = Asker { searches_all: true, follows: true };
        let found = self.namespace.folders.borrow().find(generation, &key, asker);
        if let Some(node) = found.filter(|node| node.volume().speaks_for(self.view.credentials)) {
            (self.at, *at) = (node, end);
            (self.cacheable, self.is_way, self.terms.open_to_all) = (false, false, false);
        }
    }

    /// The walk has reached the directory of the last name, which begins at `last` of the program's path.
    fn remember_way(&mut self, last: usize) {
        // A directory holds those above it, and so their guards; nobody holds the links.
        let is_way = self.is_way && self.links_followed == 0 && self.at.is_elsewhere();
        let Some(generation) = self.namespace.folders_generation().filter(|_| is_way && last > 1) else { return };
        let Some(key) = self.namespace.cache_key(self.view, &self.path[..last - 1]) else { return };
        if self.at.volume().speaks_for(self.view.credentials) {
            let terms = Terms { open_to_all: true, straight: true };
            self.namespace.folders.borrow_mut().keep(generation, &key, &self.at, terms);
        }
    }

    /// The same before the last name is taken off.
    pub(super) fn remember_way_to_rest(&mut self) {
        if let [Rest { text: Text::Given(path), at }] = &self.pending[..] {
            let last = skip(path, *at, |byte| byte == b'/');
            self.remember_way(last);
        }
    }

    /// Walks up to the last name. `self.at` is then a directory that may be searched (or, for
    /// [`Last::Root`], the root).
    pub(super) fn reach_last(&mut self) -> Result<Last<'a>, Errno> {
        loop {
            if let Some(last) = self.step()? {
                return Ok(last);
            }
        }
    }

    /// The same for who changes what is there: a directory that is remembered has not been removed.
    pub(super) fn reach_last_of_now(&mut self) -> Result<Last<'a>, Errno> {
        let last = self.reach_last()?;
        if self.begins_anew()? { self.reach_last() } else { Ok(last) }
    }

    /// Walks one name further; a last name is returned instead.
    pub(super) fn step(&mut self) -> Result<Option<Last<'a>>, Errno> {
        let Some(name) = self.next_name() else { return Ok(Some(Last::Root)) };
        self.check_search()?;
        let is_last = self.pending.is_empty();
        match name.bytes() {
            b"." if is_last => return Ok(Some(Last::Dot)),
            b".." if is_last => return Ok(Some(Last::DotDot)),
            _ if is_last => {
                if matches!(name.text, Text::Given(_)) {
                    self.remember_way(name.range.start);
                }
                return Ok(Some(Last::Name(name)));
            }
            b"." => {}
            b".." => {
                self.is_way = false;
                self.go_up()?;
            }
            bytes => {
                let node = match self.child(bytes) {
                    Err(Errno::ENOENT) if self.begins_anew()? => return Ok(None),
                    found => found?,
                };
                self.note_step(&node);
                self.is_way &= !node.is_elsewhere() || node.volume().store().is_settled(&node);
                if !node.is_symlink() {
                    self.at = node;
                } else if let Some(jumped) = self.follow(&node)? {
                    self.at = jumped;
                }
            }
        }
        Ok(None)
    }

    /// What is left of the program's own path, if that is only names that lead downwards.
    pub(super) fn plain_rest(&self) -> Option<&[u8]> {
        let [Rest { text, at }] = &self.pending[..] else { return None };
        let bytes = text.bytes();
        let rest = &bytes[skip(bytes, *at, |byte| byte == b'/')..];
        (!rest.is_empty() && is_plain(rest)).then_some(rest)
    }

    /// Walks to the end: the node that the path names.
    pub(super) fn reach_end(&mut self, last: FinalLink) -> Result<Arc<Node>, Errno> {
        loop {
            let node = match self.reach_last()? {
                Last::Root | Last::Dot => self.at.clone(),
                Last::DotDot => {
                    self.go_up()?;
                    self.at.clone()
                }
                Last::Name(name) => {
                    let node = self.last_child(name.bytes())?;
                    self.note_step(&node);
                    if node.is_symlink() && (last == FinalLink::Follow || self.ends_in_slash) {
                        match self.follow_last(&node)? {
                            Some(jumped) => jumped,
                            None => continue,
                        }
                    } else {
                        node
                    }
                }
            };
            if self.ends_in_slash && !node.is_directory() {
                return Err(Errno::ENOTDIR);
            }
            return Ok(node);
        }
    }

    /// The node called `name` in the directory reached, with what is mounted there.
    pub(super) fn child(&self, name: &[u8]) -> Result<Arc<Node>, Errno> {
        let node = self.namespace.uncover(self.at.child(name)?);
        self.stays(&node)?;
        Ok(node)
    }

    /// The same for the last name of a path, which is seldom one that was walked through.
    pub(super) fn last_child(&mut self, name: &[u8]) -> Result<Arc<Node>, Errno> {
        match self.new_child(name) {
            Err(Errno::ENOENT) if self.begins_anew()? => match self.reach_last()? {
                Last::Name(name) => self.new_child(name.bytes()),
                _ => Err(Errno::ENOENT),
            },
            found => found,
        }
    }

    /// A name is missing: the directory may be another one by now than the one that was remembered. Then the walk is at its beginning.
    pub(super) fn begins_anew(&mut self) -> Result<bool, Errno> {
        if self.is_second || !self.at.is_elsewhere() || !self.at.volume().store().is_gone(&self.at) {
            return Ok(false);
        }
        *self = Walk { is_second: true, ..Walk::new(self.namespace, self.view, self.path)? };
        Ok(true)
    }

    fn new_child(&self, name: &[u8]) -> Result<Arc<Node>, Errno> {
        if !self.at.is_elsewhere() {
            return self.child(name);
        }
        let node = self.namespace.uncover(self.at.child_as(name, Guess::New)?);
        self.stays(&node)?;
        Ok(node)
    }

    fn go_up(&mut self) -> Result<(), Errno> {
        if self.view.limits.beneath && self.at.is(self.view.root) {
            return Err(Errno::EXDEV);
        }
        self.knows_root = true;
        let above = self.namespace.above(&self.at, self.view.root);
        self.stays(&above)?;
        self.at = above;
        Ok(())
    }

    /// A step to `node` is within the walk's limits. Errors: `EXDEV`, `EAGAIN`.
    fn stays(&self, node: &Node) -> Result<(), Errno> {
        let limits = self.view.limits;
        if limits.one_volume && node.device() != self.at.device() {
            return Err(Errno::EXDEV);
        }
        if limits.no_asking && node.is_elsewhere() { Err(Errno::EAGAIN) } else { Ok(()) }
    }

    /// Follows the symlink `link` that the last name of the path named.
    pub(super) fn follow_last(&mut self, link: &Arc<Node>) -> Result<Option<Arc<Node>>, Errno> {
        self.terms.straight = false;
        self.follow(link)
    }

    /// Puts the target of `link` before what is left to walk. A link that leads straight to a node
    /// returns that node instead.
    fn follow(&mut self, link: &Arc<Node>) -> Result<Option<Arc<Node>>, Errno> {
        if self.links_followed >= LINKS_FOLLOWED_MAX || link.volume().rules().no_follow {
            return Err(Errno::ELOOP);
        }
        let limits = self.view.limits;
        if limits.no_links {
            return Err(Errno::ELOOP);
        }
        self.links_followed += 1;
        self.cacheable &= link.volume().residence() == Residence::Memory;
        let target = match link.link_target()? {
            LinkTarget::Node(node, _) => {
                if limits.no_jumps {
                    return Err(Errno::ELOOP);
                }
                // A jump out of the view's root could not be told from one that stays.
                if limits.beneath || limits.in_root {
                    return Err(Errno::EXDEV);
                }
                self.stays(&node)?;
                return Ok(Some(node));
            }
            LinkTarget::Path(target) => target,
        };
        match target.first() {
            None => return Err(Errno::ENOENT),
            Some(b'/') if limits.beneath => return Err(Errno::EXDEV),
            Some(b'/') if limits.one_volume && !self.knows_root => return Err(Errno::EXDEV),
            Some(b'/') => {
                self.stays(self.view.root)?;
                self.at = self.view.root.clone();
            }
            Some(_) => {}
        }
        self.pending.try_push(Rest { text: Text::Target(target), at: 0 })?;
        Ok(None)
    }

    /// Takes the next name off what is left. Afterwards `pending` is empty if it was the last.
    fn next_name(&mut self) -> Option<Name<'a>> {
        loop {
            let rest = self.pending.last_mut()?;
            let bytes = rest.text.bytes();
            let start = skip(bytes, rest.at, |byte| byte == b'/');
            if start == bytes.len() {
                self.pending.pop();
                continue;
            }
            let end = skip(bytes, start, |byte| byte != b'/');
            let next = skip(bytes, end, |byte| byte == b'/');
            if next < bytes.len() {
                rest.at = next;
                return Some(Name { text: rest.text.clone(), range: start..end });
            }
            let text = self.pending.pop()?.text;
            if self.pending.is_empty() {
                self.ends_in_slash |= next > end;
            }
            return Some(Name { text, range: start..end });
        }
    }

    /// A step that led to a place outside of the machine may lead elsewhere next time.
    fn note_step(&mut self, node: &Node) {
        self.cacheable &= !node.is_elsewhere();
    }

    fn check_search(&mut self) -> Result<(), Errno> {
        if !self.at.is_directory() {
            return Err(Errno::ENOTDIR);
        }
        if self.at.is_elsewhere() {
            // Its store may check it at the next name.
            self.terms.open_to_all = false;
            let checked = self.at.volume().speaks_for(self.view.credentials);
            return if checked { Ok(()) } else { self.view.credentials.permit(&self.at, Access::SEARCH) };
        }
        let is_open = self.at.meta().mode & 0o111 == 0o111;
        self.terms.open_to_all &= is_open;
        self.is_way &= is_open && self.at.volume().residence() == Residence::Memory;
        self.cacheable &= self.at.volume().residence() != Residence::Virtual;
        self.view.credentials.permit(&self.at, Access::SEARCH)
    }

    /// Lets the path cache keep the result of this walk. A symlink is not kept: it is the result only
    /// for who does not follow it.
    pub(super) fn remember(&self, key: &Key<'_>, node: &Arc<Node>) {
        if self.cacheable && !node.is_symlink() && node.volume().residence() == Residence::Memory {
            let generation = self.namespace.generation();
            self.namespace.cache.borrow_mut().keep(generation, key, node, self.terms);
        }
    }
}

fn skip(bytes: &[u8], from: usize, while_true: impl Fn(u8) -> bool) -> usize {
    bytes[from..].iter().position(|byte| !while_true(*byte)).map_or(bytes.len(), |skipped| from + skipped)
}
