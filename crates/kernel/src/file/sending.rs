//! What is brought out of the machine when it ends: files and folders of any volume, written into a folder that somebody shares.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use machine::{TryGrow, try_filled, try_to_vec};

use super::attributes::{NodeKind, Time};
use super::content::Content;
use super::credentials::Credentials;
use super::namespace::Namespace;
use super::node::Node;
use super::opened::File;
use super::ownership::TimeChange;
use super::store::NewName;
use super::virtual_tree::{LinkTarget, Visit};
use super::walk::{FinalLink, View};

/// Names in the folder that is shared: what is brought, and then a word of how that went.
pub(super) const BROUGHT: &[u8] = b"brought";
const END: &[u8] = b"end";
const WRITE_ONLY: u32 = 1;
const PIECE_BYTES: usize = 65_536;

/// What shall be brought out: its path, and the folder to which it goes.
pub(super) struct Outgoing {
    path: Vec<u8>,
    to: Arc<Node>,
}

impl Namespace {
    /// What `path` stands for when the machine ends shall be brought to a folder outside. Error: `ENOMEM`.
    pub fn bring_out(&self, path: &[u8], to: Arc<Node>) -> Result<(), Errno> {
        let outgoing = Outgoing { path: try_to_vec(path)?, to };
        Ok(self.outgoing.borrow_mut().try_push(outgoing)?)
    }

    /// Brings all that out. Nobody runs any more; the folders look for their answers.
    pub fn send_out(&self, now: Time) {
        let all = core::mem::take(&mut *self.outgoing.borrow_mut());
        for Outgoing { path, to } in all {
            let credentials = Credentials::root();
            let view = View::new(self.root(), self.root(), &credentials);
            let sent = self.lookup(view, &path, FinalLink::Follow).and_then(|node| send(&node, &to, now));
            tell(&to, sent, now);
        }
    }
}

/// Writes how it went. Without this word it counts as failed.
pub(super) fn tell(to: &Arc<Node>, sent: Result<(), Errno>, now: Time) {
    let word = sent.map_or_else(Errno::message, |()| "");
    let _ = write_whole(to, END, word.as_bytes(), now);
}

/// A new file with these bytes.
pub(super) fn write_whole(to: &Arc<Node>, name: &[u8], bytes: &[u8], now: Time) -> Result<(), Errno> {
    let (_, file) = make(to, name, now, 0o600)?;
    let mut position = 0;
    for piece in bytes.chunks(PIECE_BYTES) {
        position += file.write_at(position, piece)? as u64;
    }
    if position == bytes.len() as u64 { Ok(()) } else { Err(Errno::ENOSPC) }
}

/// Writes `from`, and all that is below it, as a name in `to`.
fn send(from: &Arc<Node>, to: &Arc<Node>, now: Time) -> Result<(), Errno> {
    let mut folders = Vec::new();
    let mut next = 0;
    if let Some(folder) = send_one(from, to, BROUGHT, now)? {
        folders.try_push((from.clone(), folder))?;
    }
    while let Some((from, to)) = folders.get(next).cloned() {
        for name in names_in(&from)? {
            let node = from.child(&name)?;
            if let Some(folder) = send_one(&node, &to, &name, now)? {
                folders.try_push((node, folder))?;
            }
        }
        next += 1;
    }
    // A folder that its owner may not write gets that mode when it is full, and its time, too.
    folders.iter().rev().try_for_each(|(from, to)| finish(from, to, now))
}

pub(super) fn names_in(directory: &Arc<Node>) -> Result<Vec<Vec<u8>>, Errno> {
    let (mut names, mut from, mut failed) = (Vec::new(), 0, None);
    loop {
        let before = from;
        directory.list(from, &mut |listed| {
            from = listed.next;
            let is_dots = matches!(listed.name, b"." | b"..");
            let kept = if is_dots { Ok(()) } else { try_to_vec(listed.name).and_then(|name| names.try_push(name)) };
            failed = kept.err();
            if failed.is_some() { Visit::Stop } else { Visit::Continue }
        })?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        if from == before {
            return Ok(names);
        }
    }
}

/// One node; a folder is returned, to be filled. Devices, fifos and sockets stay where they are.
pub(super) fn send_one(from: &Arc<Node>, to: &Arc<Node>, name: &[u8], now: Time) -> Result<Option<Arc<Node>>, Errno> {
    let who = Credentials::root();
    let new = NewName { who: &who, directory: to, name, now };
    match from.kind() {
        NodeKind::Directory => to.volume().store().make_directory(new, 0o700).map(Some),
        NodeKind::Symlink => match from.link_target()? {
            LinkTarget::Path(target) | LinkTarget::Node(_, target) => {
                to.volume().store().make_symlink(new, &target).map(|_| None)
            }
        },
        NodeKind::Regular => {
            let (node, file) = make(to, name, now, 0o600)?;
            copy(from, &*file)?;
            finish(from, &node, now).map(|()| None)
        }
        _ => Ok(None),
    }
}

fn make(to: &Arc<Node>, name: &[u8], now: Time, mode: u32) -> Result<(Arc<Node>, Arc<dyn File>), Errno> {
    let who = Credentials::root();
    let opened = to.volume().store().create(NewName { who: &who, directory: to, name, now }, mode, WRITE_ONLY)?;
    Ok((opened.node, opened.opening.ok_or(Errno::EINVAL)?))
}

pub(super) fn finish(from: &Node, to: &Node, now: Time) -> Result<(), Errno> {
    let (meta, store) = (from.meta(), to.volume().store());
    store.set_mode(&Credentials::root(), to, meta.mode & 0o777, now)?;
    store.set_times(to, [TimeChange::Set(meta.accessed), TimeChange::Set(meta.modified)], now)
}

fn copy(from: &Arc<Node>, to: &dyn File) -> Result<(), Errno> {
    from.prepare()?;
    let opened = if from.content().is_none() { Some(from.open(0)?) } else { None };
    let mut buffer = try_filled(0, PIECE_BYTES)?;
    let mut position = 0;
    loop {
        let count = match (from.content(), &opened) {
            (Some(content), _) => read(content, position, &mut buffer)?,
            (None, Some(opened)) => opened.read_at(position, &mut buffer)?,
            (None, None) => 0,
        };
        if count == 0 {
            return Ok(());
        }
        if to.write_at(position, &buffer[..count])? != count {
            return Err(Errno::ENOSPC);
        }
        position += count as u64;
    }
}

fn read(content: &Content, position: u64, into: &mut [u8]) -> Result<usize, Errno> {
    let range = position..position.saturating_add(into.len() as u64);
    while let Some(coming) = content.bring(range.clone())? {
        // Who cannot sleep has looked until it was there.
        coming.outcome().unwrap_or(Err(Errno::EIO))?;
    }
    Ok(content.read_at(position, into))
}
