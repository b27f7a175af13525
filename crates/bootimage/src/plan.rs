//! Writing: the names and lengths first, the data afterwards, so that no file is ever held in memory whole.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::config::Config;
use crate::layout::{self, CONFIG_BYTES_MAX, ENTRIES_MAX, HEADER_BYTES, MAGIC, RECORD_BYTES, VERSION, kind};

/// Owner, permissions and time of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Attributes {
    /// Permission bits; others are dropped.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub mtime_s: i64,
    pub mtime_ns: u32,
}

/// What a planned entry is. `S` tells the writer where a file's bytes come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Node<S> {
    Directory,
    File {
        bytes: u64,
        source: S,
    },
    Symlink {
        target: Vec<u8>,
    },
    CharDevice {
        major: u32,
        minor: u32,
    },
    Fifo,
    /// Another name of the file planned at path `to`.
    HardLink {
        to: Vec<u8>,
    },
}

/// Why a plan cannot be written. The path is the entry at fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlanError {
    /// Not absolute, not plain, or too long.
    BadPath(Vec<u8>),
    /// The parent directory is not planned, or is not a directory.
    NoParent(Vec<u8>),
    /// A symlink target is empty, too long or holds a NUL.
    BadTarget(Vec<u8>),
    /// A hard link leads to something that is not a planned file.
    BadLink(Vec<u8>),
    /// More entries or longer strings than the format holds.
    TooMany,
    /// Arguments and environment are larger than 4 MiB, or hold a NUL, or a path in them is not absolute.
    BadConfig,
}

type Planned<S> = (Attributes, Node<S>);

/// The entries of an archive to be.
pub struct Plan<S> {
    nodes: BTreeMap<Vec<u8>, Planned<S>>,
}

/// Bytes of a file to be copied to `offset` in the archive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece<S> {
    pub offset: u64,
    pub bytes: u64,
    pub source: S,
}

/// The front of an archive, and what must follow it.
pub struct Encoded<S> {
    /// Header, index, strings and configuration, padded to a page: goes to offset 0.
    pub head: Vec<u8>,
    /// Files in ascending order of offset. Bytes between them must be zero.
    pub pieces: Vec<Piece<S>>,
    /// Length of the whole archive.
    pub total_bytes: u64,
}

impl<S> Default for Plan<S> {
    fn default() -> Self {
        Plan { nodes: BTreeMap::new() }
    }
}

impl<S: Clone> Plan<S> {
    /// Plans `node` at `path`, in place of what was planned there.
    pub fn insert(&mut self, path: &[u8], attributes: Attributes, node: Node<S>) -> Result<(), PlanError> {
        if !layout::is_plain_path(path) {
            return Err(PlanError::BadPath(path.to_vec()));
        }
        self.nodes.insert(path.to_vec(), (attributes, node));
        Ok(())
    }

    /// Takes out what is planned at `path`. Another name of a file that goes is the file from then on.
    pub fn remove(&mut self, path: &[u8]) -> Option<Planned<S>> {
        let removed = self.nodes.remove(path)?;
        if matches!(removed.1, Node::File { .. }) {
            let is_name = |node: &Node<S>| matches!(node, Node::HardLink { to } if to == path);
            let names: Vec<Vec<u8>> =
                self.nodes.iter().filter(|(_, (_, node))| is_name(node)).map(|(name, _)| name.clone()).collect();
            if let Some((first, rest)) = names.split_first() {
                self.nodes.insert(first.clone(), removed.clone());
                for name in rest {
                    if let Some((_, node)) = self.nodes.get_mut(name) {
                        *node = Node::HardLink { to: first.clone() };
                    }
                }
            }
        }
        Some(removed)
    }

    /// All paths below `path`.
    pub fn below(&self, path: &[u8]) -> Vec<Vec<u8>> {
        let start = if path == b"/" { path.to_vec() } else { [path, b"/"].concat() };
        let from = self.nodes.range(start.clone()..).map(|(name, _)| name);
        from.take_while(|name| name.starts_with(&start)).filter(|name| **name != start).cloned().collect()
    }

    /// What is planned at `path`.
    pub fn get(&self, path: &[u8]) -> Option<&Planned<S>> {
        self.nodes.get(path)
    }

    /// All planned entries in order of path.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Attributes, &Node<S>)> {
        self.nodes.iter().map(|(path, (attributes, node))| (path.as_slice(), attributes, node))
    }

    /// Lays the archive out.
    ///
    /// # Errors
    /// See [`PlanError`]; nothing is written before everything has been checked.
    pub fn encode(&self, config: &Config) -> Result<Encoded<S>, PlanError> {
        let nodes = self.with_links_forward()?;
        if nodes.len() > ENTRIES_MAX as usize {
            return Err(PlanError::TooMany);
        }
        let mut strings = Vec::new();
        let mut index = Vec::with_capacity(nodes.len() * RECORD_BYTES);
        let config_record = encode_config(config)?;
        let strings_bytes: usize = nodes.iter().map(|(path, (_, node))| path.len() + target_bytes(node)).sum();
        if u32::try_from(strings_bytes).is_err() {
            return Err(PlanError::TooMany);
        }
        let strings_at = HEADER_BYTES + nodes.len() * RECORD_BYTES;
        let config_at = (strings_at + strings_bytes).next_multiple_of(8);
        let data_at = layout::page_up((config_at + config_record.len()) as u64).ok_or(PlanError::TooMany)?;

        let order: BTreeMap<&[u8], u64> = nodes.keys().copied().zip(0..).collect();
        let mut pieces = Vec::new();
        let mut end = data_at;
        for (&path, (attributes, node)) in &nodes {
            self.check_parent(path)?;
            let (code, a, b) = match node {
                Node::Directory => (kind::DIRECTORY, 0, 0),
                Node::File { bytes, source } => {
                    let offset = end;
                    end = end.checked_add(*bytes).and_then(layout::page_up).ok_or(PlanError::TooMany)?;
                    if *bytes > 0 {
                        pieces.push(Piece { offset, bytes: *bytes, source: source.clone() });
                    }
                    (kind::FILE, offset, *bytes)
                }
                Node::Symlink { target } => {
                    check_target(path, target)?;
                    let offset = strings.len() as u64;
                    strings.extend_from_slice(target);
                    (kind::SYMLINK, offset, target.len() as u64)
                }
                Node::CharDevice { major, minor } => (kind::CHAR_DEVICE, u64::from(*major), u64::from(*minor)),
                Node::Fifo => (kind::FIFO, 0, 0),
                Node::HardLink { to } => {
                    let to = order.get(to.as_slice()).ok_or_else(|| PlanError::BadLink(path.to_vec()))?;
                    (kind::HARD_LINK, *to, 0)
                }
            };
            push_record(&mut index, strings.len(), path.len(), code, attributes, [a, b]);
            strings.extend_from_slice(path);
        }

        let mut head = Vec::with_capacity(data_at as usize);
        head.extend(MAGIC);
        head.extend(VERSION.to_le_bytes());
        head.extend((nodes.len() as u32).to_le_bytes());
        let regions = [HEADER_BYTES, strings_at, strings_bytes, config_at, config_record.len()];
        head.extend(regions.iter().flat_map(|&value| (value as u64).to_le_bytes()));
        head.extend(data_at.to_le_bytes());
        head.extend(end.to_le_bytes());
        head.resize(HEADER_BYTES, 0);
        head.extend(index);
        head.extend(strings);
        head.resize(config_at, 0);
        head.extend(config_record);
        head.resize(data_at as usize, 0);
        Ok(Encoded { head, pieces, total_bytes: end })
    }

    /// The nodes with each group of hard links turned round so that its first path is the file.
    fn with_links_forward(&self) -> Result<BTreeMap<&[u8], Planned<S>>, PlanError> {
        let mut nodes: BTreeMap<&[u8], Planned<S>> =
            self.nodes.iter().map(|(path, planned)| (path.as_slice(), planned.clone())).collect();
        // For each file with other names: the first of all its names.
        let mut first: BTreeMap<&[u8], &[u8]> = BTreeMap::new();
        for (path, (_, node)) in &self.nodes {
            let Node::HardLink { to } = node else { continue };
            if !matches!(self.nodes.get(to), Some((_, Node::File { .. }))) {
                return Err(PlanError::BadLink(path.clone()));
            }
            let name = first.entry(to).or_insert(to);
            *name = (*name).min(path);
        }
        for (path, (_, node)) in &self.nodes {
            let file = if let Node::HardLink { to } = node { to } else { path };
            let Some(&owner) = first.get(file.as_slice()) else { continue };
            let planned = &self.nodes[file];
            let node = if owner == path { planned.1.clone() } else { Node::HardLink { to: owner.to_vec() } };
            nodes.insert(path, (planned.0, node));
        }
        Ok(nodes)
    }

    fn check_parent(&self, path: &[u8]) -> Result<(), PlanError> {
        let wanted = layout::parent(path).unwrap_or(path);
        match self.nodes.get(wanted) {
            Some((_, Node::Directory)) => Ok(()),
            _ => Err(PlanError::NoParent(path.to_vec())),
        }
    }
}

fn target_bytes<S>(node: &Node<S>) -> usize {
    if let Node::Symlink { target } = node { target.len() } else { 0 }
}

fn check_target(path: &[u8], target: &[u8]) -> Result<(), PlanError> {
    if target.is_empty() || target.len() > layout::PATH_BYTES_MAX || target.contains(&0) {
        return Err(PlanError::BadTarget(path.to_vec()));
    }
    Ok(())
}

fn push_record(
    index: &mut Vec<u8>,
    path_at: usize,
    path_bytes: usize,
    code: u32,
    attributes: &Attributes,
    [a, b]: [u64; 2],
) {
    let start = index.len();
    let words = [path_at as u32, path_bytes as u32, code, attributes.mode & 0o7777, attributes.uid, attributes.gid];
    index.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    index.extend(attributes.mtime_s.to_le_bytes());
    index.extend(attributes.mtime_ns.min(999_999_999).to_le_bytes());
    index.extend([0; 4]);
    index.extend(a.to_le_bytes());
    index.extend(b.to_le_bytes());
    index.resize(start + RECORD_BYTES, 0);
}

/// The configuration record, checked by reading it back.
fn encode_config(config: &Config) -> Result<Vec<u8>, PlanError> {
    let mut record = Vec::new();
    config.encode(&mut record);
    if record.len() > CONFIG_BYTES_MAX || crate::config::ConfigView::parse(&record).is_none() {
        return Err(PlanError::BadConfig);
    }
    Ok(record)
}
