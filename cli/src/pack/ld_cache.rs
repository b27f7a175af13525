//! The host's `/etc/ld.so.cache`, format `glibc-ld.so.cache1.1` (glibc `sysdeps/generic/dl-cache.h`).
//!
//! ```text
//!   0   "glibc-ld.so.cache" "1.1"     20  u32 libraries     24  u32 bytes of strings   28..48 flags, extensions
//!   48  for each library: i32 flags, u32 name, u32 path, u32 unused, u64 hwcap; offsets count from the header
//! ```

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
/// What the file starts with when the format of before glibc 2.2 comes first.
const OLD_MAGIC: &[u8] = b"ld.so-1.7.0";
const HEADER_BYTES: usize = 48;
const ENTRY_BYTES: usize = 24;
/// `FLAG_ELF_LIBC6 | FLAG_X8664_LIB64`.
const X86_64_LIBRARY: u32 = 0x0303;

/// Where `ldconfig` found each library, by the name programs ask for.
#[derive(Default)]
pub struct LdCache {
    paths: HashMap<Vec<u8>, PathBuf>,
}

impl LdCache {
    /// The host's cache; empty when there is none or it is damaged, as for the dynamic loader.
    pub fn of_host() -> Self {
        std::fs::read("/etc/ld.so.cache").ok().and_then(|bytes| Self::parse(&bytes)).unwrap_or_default()
    }

    /// The path of library `name`.
    pub fn find(&self, name: &[u8]) -> Option<&Path> {
        self.paths.get(name).map(PathBuf::as_path)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let start = if bytes.starts_with(OLD_MAGIC) {
            bytes.windows(MAGIC.len()).position(|window| window == MAGIC)?
        } else {
            0
        };
        let bytes = bytes.get(start..)?;
        if !bytes.starts_with(MAGIC) {
            return None;
        }
        let count = word(bytes, MAGIC.len())? as usize;
        let entries = bytes.get(HEADER_BYTES..HEADER_BYTES.checked_add(count.checked_mul(ENTRY_BYTES)?)?)?;
        let mut paths = HashMap::new();
        for entry in entries.chunks_exact(ENTRY_BYTES) {
            if word(entry, 0)? != X86_64_LIBRARY {
                continue;
            }
            let name = string(bytes, word(entry, 4)? as usize)?;
            let path = PathBuf::from(OsStr::from_bytes(string(bytes, word(entry, 8)? as usize)?));
            // A variant for newer processors comes before the plain library; the guest runs the plain one.
            if entry[16..24] == [0; 8] {
                paths.insert(name.to_vec(), path);
            } else {
                paths.entry(name.to_vec()).or_insert(path);
            }
        }
        Some(LdCache { paths })
    }
}

fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(offset..offset.checked_add(4)?)?.try_into().ok()?))
}

fn string(bytes: &[u8], offset: usize) -> Option<&[u8]> {
    bytes.get(offset..)?.split(|&byte| byte == 0).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(entries: &[(u32, &str, &str, u64)]) -> Vec<u8> {
        let mut strings_at = HEADER_BYTES + entries.len() * ENTRY_BYTES;
        let (mut bytes, mut strings) = (MAGIC.to_vec(), Vec::new());
        bytes.extend((entries.len() as u32).to_le_bytes());
        bytes.resize(HEADER_BYTES, 0);
        for (flags, name, path, hwcap) in entries {
            bytes.extend(flags.to_le_bytes());
            for text in [name, path] {
                bytes.extend((strings_at as u32).to_le_bytes());
                strings.extend(text.bytes().chain([0]));
                strings_at += text.len() + 1;
            }
            bytes.extend([0; 4]);
            bytes.extend(hwcap.to_le_bytes());
        }
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn the_plain_64_bit_library_is_taken() {
        let bytes = cache(&[
            (0x0003, "liba.so.1", "/lib32/liba.so.1", 0),
            (0x0303, "liba.so.1", "/lib/v3/liba.so.1", 1 << 62),
            (0x0303, "liba.so.1", "/lib/liba.so.1", 0),
            (0x0303, "libb.so", "/lib/v3/libb.so", 1 << 62),
        ]);
        let cache = LdCache::parse(&bytes).unwrap();
        assert_eq!(cache.find(b"liba.so.1"), Some(Path::new("/lib/liba.so.1")));
        assert_eq!(cache.find(b"libb.so"), Some(Path::new("/lib/v3/libb.so")));
        assert_eq!(cache.find(b"libc.so"), None);
    }

    #[test]
    fn an_old_cache_in_front_is_skipped() {
        let mut bytes = b"ld.so-1.7.0\0\x01\0\0\0".to_vec();
        bytes.extend(cache(&[(0x0303, "liba.so.1", "/lib/liba.so.1", 0)]));
        assert!(LdCache::parse(&bytes).unwrap().find(b"liba.so.1").is_some());
    }

    #[test]
    fn damage_never_panics() {
        let good = cache(&[(0x0303, "liba.so.1", "/lib/liba.so.1", 0)]);
        for length in 0..good.len() {
            let _ = LdCache::parse(&good[..length]);
        }
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] = 0xff;
            let _ = LdCache::parse(&bytes);
        }
    }
}
