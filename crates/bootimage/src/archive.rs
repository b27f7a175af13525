//! Reading: a borrowed view that has checked everything before it hands out anything.

use crate::config::ConfigView;
use crate::layout::{self, ENTRIES_MAX, HEADER_BYTES, MAGIC, RECORD_BYTES, header, kind, record};
use crate::layout::{CONFIG_BYTES_MAX, PAGE_BYTES, PATH_BYTES_MAX, VERSION, u32_at, u64_at};

/// Why bytes are not an archive. `index` is the entry that was found wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArchiveError {
    /// The first eight bytes are not the magic.
    BadMagic,
    /// Made by another version of the tool.
    BadVersion(u32),
    /// The bytes end before a part the header promises.
    Truncated,
    /// A region of the header overlaps another or is misaligned.
    BadRegion,
    /// More than [`ENTRIES_MAX`] entries, or none.
    BadCount(u32),
    /// The boot configuration cannot be decoded.
    BadConfig,
    /// A path or target lies outside the strings, or is not a plain absolute path.
    BadPath { index: u32 },
    /// Entries are not in strictly ascending order of path.
    Unsorted { index: u32 },
    /// The parent directory is missing or is not a directory.
    NoParent { index: u32 },
    /// Unknown kind, mode beyond 07777, or a nonsensical number.
    BadEntry { index: u32 },
    /// File data is outside the data region, misaligned, or overlaps an earlier file.
    BadData { index: u32 },
    /// A hard link does not lead to an earlier file entry.
    BadLink { index: u32 },
}

/// What an entry is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind<'a> {
    Directory,
    /// `offset` is where `data` starts in the archive: a multiple of [`PAGE_BYTES`] unless `data` is empty.
    /// Bytes after `data` in its last page are zero and belong to no other entry.
    File {
        data: &'a [u8],
        offset: u64,
    },
    /// The target as it would be returned by `readlink`; 1 to 4095 bytes without NUL.
    Symlink {
        target: &'a [u8],
    },
    CharDevice {
        major: u32,
        minor: u32,
    },
    Fifo,
    /// Another name of the file at index `to`, which is smaller than this entry's index. Attributes are the file's.
    HardLink {
        to: u32,
    },
}

/// One name in the first file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// Absolute, plain path: `/`, or names joined by single slashes.
    pub path: &'a [u8],
    pub kind: Kind<'a>,
    /// Permission bits, 0 to 07777.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Seconds since 1970; may be negative.
    pub mtime_s: i64,
    /// 0 to 999,999,999.
    pub mtime_ns: u32,
}

/// A validated archive. Entries come in ascending order of path, so a directory precedes what it holds; entry 0 is `/`.
#[derive(Clone, Copy, Debug)]
pub struct Archive<'a> {
    index: &'a [u8],
    strings: &'a [u8],
    config: &'a [u8],
    /// The archive from its first byte to `total_bytes`.
    bytes: &'a [u8],
    data_offset: u64,
}

impl<'a> Archive<'a> {
    /// Checks `bytes` (which may be longer than the archive) and returns a view of it.
    ///
    /// # Errors
    /// The first thing found wrong. Cost is linear in the index; file data is not touched.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ArchiveError> {
        let archive = Self::regions(bytes)?;
        ConfigView::parse(archive.config).ok_or(ArchiveError::BadConfig)?;
        let mut previous: Option<Entry<'a>> = None;
        let mut data_end = archive.data_offset;
        for index in 0..archive.len() {
            let entry = archive.decode(index)?;
            archive.check_place(index, &entry, previous.as_ref())?;
            data_end = check_data(index, &entry, data_end)?;
            archive.check_link(index, &entry)?;
            previous = Some(entry);
        }
        Ok(archive)
    }

    /// Number of entries, at least 1.
    pub fn len(&self) -> u32 {
        (self.index.len() / RECORD_BYTES) as u32
    }

    /// Never true for a parsed archive: it has a root.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Bytes of the whole archive, a multiple of [`PAGE_BYTES`].
    pub fn total_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Where file data begins; the pages before it can be given back once the entries have been read.
    pub fn data_offset(&self) -> u64 {
        self.data_offset
    }

    /// The entry at `index`, if there is one.
    pub fn entry(&self, index: u32) -> Option<Entry<'a>> {
        self.decode(index).ok()
    }

    /// All entries in order of path.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let archive = *self;
        (0..archive.len()).filter_map(move |index| archive.entry(index))
    }

    /// The entry named `path` and its index. No symlink is followed.
    pub fn find(&self, path: &[u8]) -> Option<(u32, Entry<'a>)> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let entry = self.entry(middle)?;
            match entry.path.cmp(path) {
                core::cmp::Ordering::Equal => return Some((middle, entry)),
                core::cmp::Ordering::Less => low = middle + 1,
                core::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// What to run and how.
    pub fn config(&self) -> ConfigView<'a> {
        ConfigView::parse(self.config).unwrap_or_default()
    }

    /// Cuts `bytes` into the regions that the header names.
    fn regions(bytes: &'a [u8]) -> Result<Self, ArchiveError> {
        use ArchiveError::{BadCount, BadMagic, BadRegion, BadVersion, Truncated};
        let head = bytes.get(..HEADER_BYTES).ok_or(Truncated)?;
        if head[..MAGIC.len()] != MAGIC {
            return Err(BadMagic);
        }
        let version = u32_at(head, header::VERSION).ok_or(Truncated)?;
        if version != VERSION {
            return Err(BadVersion(version));
        }
        let count = u32_at(head, header::ENTRY_COUNT).ok_or(Truncated)?;
        if count == 0 || count > ENTRIES_MAX {
            return Err(BadCount(count));
        }
        let field = |offset| u64_at(head, offset).ok_or(Truncated);
        let index_at = field(header::INDEX_OFFSET)?;
        let strings_at = field(header::STRINGS_OFFSET)?;
        let config_at = field(header::CONFIG_OFFSET)?;
        let data_offset = field(header::DATA_OFFSET)?;
        let total = field(header::TOTAL_BYTES)?;
        let end = |at: u64, length: u64| at.checked_add(length).ok_or(BadRegion);
        let index_end = end(index_at, u64::from(count) * RECORD_BYTES as u64)?;
        let strings_end = end(strings_at, field(header::STRINGS_BYTES)?)?;
        let config_end = end(config_at, field(header::CONFIG_BYTES)?)?;
        let ordered = [HEADER_BYTES as u64, index_at, index_end, strings_at, strings_end, config_at, config_end];
        let aligned = data_offset % PAGE_BYTES == 0 && total % PAGE_BYTES == 0;
        if !ordered.is_sorted() || config_end > data_offset || data_offset > total || !aligned {
            return Err(BadRegion);
        }
        let bytes = usize::try_from(total).ok().and_then(|total| bytes.get(..total)).ok_or(Truncated)?;
        let cut = |from: u64, to: u64| bytes.get(from as usize..to as usize).ok_or(Truncated);
        let config = cut(config_at, config_end)?;
        if config.len() > CONFIG_BYTES_MAX {
            return Err(ArchiveError::BadConfig);
        }
        let (index, strings) = (cut(index_at, index_end)?, cut(strings_at, strings_end)?);
        Ok(Archive { index, strings, config, bytes, data_offset })
    }

    /// The entry at `index`, each field checked by itself.
    fn decode(&self, index: u32) -> Result<Entry<'a>, ArchiveError> {
        let bad = ArchiveError::BadEntry { index };
        let start = index as usize * RECORD_BYTES;
        let fields = self.index.get(start..start + RECORD_BYTES).ok_or(bad)?;
        let word = |offset| u32_at(fields, offset).ok_or(bad);
        let long = |offset| u64_at(fields, offset).ok_or(bad);
        let path = self.string(u64::from(word(record::PATH_OFFSET)?), u64::from(word(record::PATH_BYTES)?));
        let path = path.filter(|path| layout::is_plain_path(path)).ok_or(ArchiveError::BadPath { index })?;
        let (mode, mtime_ns) = (word(record::MODE)?, word(record::MTIME_NS)?);
        if mode > 0o7777 || mtime_ns > 999_999_999 {
            return Err(bad);
        }
        let kind = self.decode_kind(index, word(record::KIND)?, long(record::A)?, long(record::B)?)?;
        let mtime_s = long(record::MTIME_S)? as i64;
        Ok(Entry { path, kind, mode, uid: word(record::UID)?, gid: word(record::GID)?, mtime_s, mtime_ns })
    }

    fn decode_kind(&self, index: u32, code: u32, a: u64, b: u64) -> Result<Kind<'a>, ArchiveError> {
        let bad = ArchiveError::BadEntry { index };
        let narrow = |value: u64| u32::try_from(value).map_err(|_| bad);
        Ok(match code {
            kind::DIRECTORY => Kind::Directory,
            kind::FILE => Kind::File { data: self.data(a, b).ok_or(ArchiveError::BadData { index })?, offset: a },
            kind::SYMLINK => {
                let target = self
                    .string(a, b)
                    .filter(|target| !target.is_empty() && target.len() <= PATH_BYTES_MAX && !target.contains(&0));
                Kind::Symlink { target: target.ok_or(ArchiveError::BadPath { index })? }
            }
            kind::CHAR_DEVICE => Kind::CharDevice { major: narrow(a)?, minor: narrow(b)? },
            kind::FIFO => Kind::Fifo,
            kind::HARD_LINK => Kind::HardLink { to: narrow(a)? },
            _ => return Err(bad),
        })
    }

    fn string(&self, offset: u64, length: u64) -> Option<&'a [u8]> {
        let (offset, length) = (usize::try_from(offset).ok()?, usize::try_from(length).ok()?);
        self.strings.get(offset..offset.checked_add(length)?)
    }

    fn data(&self, offset: u64, length: u64) -> Option<&'a [u8]> {
        if length == 0 {
            return Some(&[]);
        }
        if offset < self.data_offset || !offset.is_multiple_of(PAGE_BYTES) {
            return None;
        }
        let end = usize::try_from(offset.checked_add(length)?).ok()?;
        self.bytes.get(usize::try_from(offset).ok()?..end)
    }

    /// Order of paths, the root first, and a directory above each entry.
    fn check_place(&self, index: u32, entry: &Entry<'a>, previous: Option<&Entry<'a>>) -> Result<(), ArchiveError> {
        if previous.is_some_and(|previous| previous.path >= entry.path) {
            return Err(ArchiveError::Unsorted { index });
        }
        let Some(parent) = layout::parent(entry.path) else {
            return if entry.kind == Kind::Directory { Ok(()) } else { Err(ArchiveError::NoParent { index }) };
        };
        // Most entries follow their directory or a sibling directly; only the others need the search.
        if previous.is_some_and(|previous| {
            (previous.path == parent && previous.kind == Kind::Directory)
                || layout::parent(previous.path) == Some(parent)
        }) {
            return Ok(());
        }
        match self.find(parent) {
            Some((_, directory)) if directory.kind == Kind::Directory => Ok(()),
            _ => Err(ArchiveError::NoParent { index }),
        }
    }

    fn check_link(&self, index: u32, entry: &Entry<'a>) -> Result<(), ArchiveError> {
        let Kind::HardLink { to } = entry.kind else { return Ok(()) };
        match self.entry(to) {
            Some(Entry { kind: Kind::File { .. }, .. }) if to < index => Ok(()),
            _ => Err(ArchiveError::BadLink { index }),
        }
    }
}

/// Whether a file's pages come after `data_end`; returns where they end.
fn check_data(index: u32, entry: &Entry<'_>, data_end: u64) -> Result<u64, ArchiveError> {
    match entry.kind {
        Kind::File { data, offset } if !data.is_empty() => {
            if offset < data_end {
                return Err(ArchiveError::BadData { index });
            }
            layout::page_up(offset + data.len() as u64).ok_or(ArchiveError::BadData { index })
        }
        _ => Ok(data_end),
    }
}
