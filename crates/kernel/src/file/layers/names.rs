//! What a name stands for below.

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::Errno;
use machine::{Extended, KernelCell, TryGrow};

use super::super::attributes::{Attributes, Meta, NewNode, NodeKind};
use super::super::below::{Identity, Named, Seen};
use super::super::content::Content;
use super::super::credentials::Credentials;
use super::super::directory::Entries;
use super::super::node::{Data, DirectoryData, Node};
use super::super::virtual_tree::{LinkTarget, Visit};
use super::pages::LowerFile;
use super::{Layer, Layers, Tree, owned};

/// The device number of what hides a name, in an overlay's upper directory.
const HIDES: NodeKind = NodeKind::CharDevice(0, 0);
/// How an overlay marks a directory that hides all that is below it, and a file that hides a name where no device can be made.
const OPAQUE: [&[u8]; 2] = [b"trusted.overlay.opaque\0", b"user.overlay.opaque\0"];
const WHITEOUT: [&[u8]; 2] = [b"trusted.overlay.whiteout\0", b"user.overlay.whiteout\0"];

/// Owner and mode of what an ordinary user keeps for others, as container engines note it: `0:0:04755`.
const OVERRIDE: &[u8] = b"user.containers.override_stat\0";
/// Permissions and the three bits above.
const MODE_BITS: u32 = 0o7777;

/// Something below.
pub(super) struct Lower {
    node: Arc<Node>,
    attributes: Attributes,
    /// Of a directory: all that are seen together.
    directories: Vec<Layer>,
}

/// What `name` stands for in the directories below.
pub(super) fn look(layers: &Layers, name: &[u8]) -> Result<Option<Lower>, Errno> {
    let mut found: Option<Lower> = None;
    for layer in &*layers.directories {
        let node = match layer.directory.child(name) {
            Ok(node) => node,
            Err(Errno::ENOENT) => continue,
            Err(error) => return Err(error),
        };
        let mut attributes = node.attributes();
        if attributes.links == 0 && attributes.mode == 0 {
            // It went while it was looked at.
            continue;
        }
        if layer.has_marks && hides(&node, &attributes) {
            break;
        }
        if layer.has_marks && attributes.kind != NodeKind::Symlink {
            override_owner(&node, &mut attributes);
        }
        let here = Layer { directory: node.clone(), has_marks: layer.has_marks };
        match &mut found {
            Some(_) if !node.is_directory() => break,
            Some(found) => found.directories.try_push(here)?,
            None => {
                let mut lower = Lower { node: node.clone(), attributes, directories: Vec::new() };
                if !node.is_directory() {
                    return Ok(Some(lower));
                }
                lower.directories.try_push(here)?;
                found = Some(lower);
            }
        }
        if layer.has_marks && has_mark(&node, OPAQUE, b"y") {
            break;
        }
    }
    Ok(found)
}

fn hides(node: &Node, attributes: &Attributes) -> bool {
    let may_be_marked = attributes.kind == NodeKind::Regular && attributes.size_bytes == 0;
    attributes.kind == HIDES || may_be_marked && has_mark(node, WHITEOUT, b"")
}

/// An extended attribute of one of these names; with a value, it must be that.
fn has_mark(node: &Node, names: [&[u8]; 2], wanted: &[u8]) -> bool {
    names.into_iter().any(|name| {
        let mut value = [0; 8];
        let store = node.volume().store();
        let what = Extended::Get { name, into: &mut value };
        let count = store.extended(&Credentials::root(), node, what, Default::default());
        count.is_ok_and(|count| wanted.is_empty() || value[..count.min(8)].starts_with(wanted))
    })
}

fn override_owner(node: &Node, attributes: &mut Attributes) {
    let mut value = [0; 40];
    let what = Extended::Get { name: OVERRIDE, into: &mut value };
    let count = node.volume().store().extended(&Credentials::root(), node, what, Default::default());
    let text = count.ok().and_then(|count| core::str::from_utf8(value.get(..count)?).ok()).unwrap_or("");
    let mut parts = text.splitn(3, ':');
    let mut number = |radix| parts.next().and_then(|part| u32::from_str_radix(part, radix).ok());
    if let (Some(user), Some(group), Some(mode)) = (number(10), number(10), number(8)) {
        (attributes.user, attributes.group) = (user, group);
        attributes.mode = attributes.mode & !MODE_BITS | mode & MODE_BITS;
    }
}

/// All names of the directories below, with their kinds. A name that is in several is the topmost one's, which stands first.
pub(super) fn list(layers: &Layers) -> Result<Vec<Named>, Errno> {
    let mut names = Vec::new();
    let mut hidden = Vec::new();
    for layer in &*layers.directories {
        let before = names.len();
        list_layer(layer, &mut names)?;
        if layer.has_marks {
            // Only these are looked at: a folder may have many names below.
            for (name, _) in names[before..].iter().filter(|(_, kind)| may_hide(*kind)) {
                if look(layers, name)?.is_none() {
                    hidden.try_push(owned(name)?)?;
                }
            }
        }
    }
    if !hidden.is_empty() {
        hidden.sort_unstable();
        names.retain(|(name, _)| hidden.binary_search(name).is_err());
    }
    Ok(names)
}

/// What hides a name is such a device, or a file with a mark.
fn may_hide(kind: NodeKind) -> bool {
    matches!(kind, NodeKind::CharDevice(..) | NodeKind::Regular)
}

fn list_layer(layer: &Layer, names: &mut Vec<Named>) -> Result<(), Errno> {
    let mut failed = None;
    let mut after = 0;
    loop {
        let before = after;
        layer.directory.list(after, &mut |listed| {
            after = listed.next;
            if matches!(listed.name, b"." | b"..") {
                return Visit::Continue;
            }
            match owned(listed.name).and_then(|name| Ok(names.try_push((name, listed.kind))?)) {
                Ok(()) => Visit::Continue,
                Err(error) => {
                    failed = Some(error);
                    Visit::Stop
                }
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if after == before {
            return Ok(());
        }
    }
}

impl Lower {
    pub(super) fn is_directory(&self) -> bool {
        self.node.is_directory()
    }

    pub(super) fn layers(&self, tree: &Arc<Tree>) -> Result<Layers, Errno> {
        let directories = machine::try_collect(self.directories.iter().cloned())?;
        Ok(Layers { directories: directories.into(), tree: tree.clone() })
    }

    fn identity(&self) -> Identity {
        identity(&self.attributes)
    }

    pub(super) fn seen(&self) -> Seen {
        Seen { identity: self.identity(), changed: self.attributes.changed }
    }

    /// The node above for it, called `name` in `directory`, with the number under which it was listed.
    pub(super) fn make(
        self,
        directory: &Arc<Node>,
        layers: &Layers,
        (name, number): (&[u8], Option<u64>),
    ) -> Result<Arc<Node>, Errno> {
        let has_more_names = !self.is_directory() && self.attributes.links > 1;
        if has_more_names && let Some(known) = layers.tree.known(self.identity()) {
            return Ok(known);
        }
        let volume = directory.volume();
        let data = self.data(directory, layers, name)?;
        let further = if has_more_names { u64::from(self.attributes.links) - 1 } else { 0 };
        volume.charge_nodes(1 + further)?;
        let number = number.unwrap_or_else(|| volume.take_number());
        let node = Node::layered(volume, number, self.attributes.kind, data, new_node(&self.attributes));
        node.change_meta(|meta| *meta = meta_of(&self.attributes));
        if has_more_names {
            layers.tree.note(self.identity(), &node)?;
        }
        Ok(node)
    }

    fn data(&self, directory: &Arc<Node>, layers: &Layers, name: &[u8]) -> Result<Data, Errno> {
        Ok(match self.attributes.kind {
            NodeKind::Directory => {
                let below = self.layers(&layers.tree)?.below()?;
                Data::Directory(DirectoryData(KernelCell::new(Entries::over(below))))
            }
            NodeKind::Symlink => match self.node.link_target()? {
                LinkTarget::Path(target) | LinkTarget::Node(_, target) => Data::Symlink(target),
            },
            NodeKind::Regular => {
                let parent = self.node.parent().ok_or(Errno::EIO)?;
                let file = LowerFile::of(parent, owned(name)?, &self.node, &self.attributes)?;
                Data::Regular(Content::below(directory.volume(), file, self.attributes.size_bytes)?)
            }
            _ => Data::Special,
        })
    }
}

pub(super) fn identity(of: &Attributes) -> Identity {
    (of.volume_device, of.number)
}

fn new_node(of: &Attributes) -> NewNode {
    NewNode { mode: of.mode, user: of.user, group: of.group, now: of.modified }
}

/// Not every file system counts subdirectories as links of a directory.
fn meta_of(of: &Attributes) -> Meta {
    let least = if of.kind == NodeKind::Directory { 2 } else { 1 };
    Meta {
        mode: of.mode,
        user: of.user,
        group: of.group,
        links: of.links.max(least),
        accessed: of.accessed,
        modified: of.modified,
        changed: of.changed,
        born: of.born,
    }
}
