//! The options of a volume in memory, as mount(8) passes them on: `size=16m,mode=700`.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt::Write;

use abi::Errno;
use kernel::space::FramePool;
use machine::PAGE_BYTES;

/// What the options of a tmpfs say; each may be missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    pub pages: Option<u64>,
    pub nodes: Option<u64>,
    pub mode: Option<u32>,
    pub user: Option<u32>,
    pub group: Option<u32>,
}

impl Options {
    /// Error: `EINVAL` for an option or value that tmpfs does not know here.
    pub fn parse(text: &[u8], pool: &FramePool) -> Result<Options, Errno> {
        let mut options = Options::default();
        for (key, value) in words(text) {
            match key {
                b"size" => options.pages = limit(size_pages(value, pool)?),
                b"nr_blocks" => options.pages = limit(size(value)?),
                b"nr_inodes" => options.nodes = limit(size(value)?),
                b"mode" => options.mode = Some(number(value, 8)? & 0o7777),
                b"uid" => options.user = Some(number(value, 10)?),
                b"gid" => options.group = Some(number(value, 10)?),
                // Node numbers have 64 bits, and there are no huge pages.
                b"inode64" if value.is_empty() => {}
                b"huge" if value == b"never" => {}
                _ => return Err(Errno::EINVAL),
            }
        }
        Ok(options)
    }

    /// The only option that ramfs knows; Linux's ignores others.
    pub fn parse_mode(text: &[u8]) -> Result<Options, Errno> {
        let mode = words(text).filter(|(key, _)| key == b"mode").last();
        let mode = mode.map(|(_, value)| number(value, 8)).transpose()?;
        Ok(Options { mode: mode.map(|mode| mode & 0o7777), ..Options::default() })
    }

    /// The same with the limits of `other`, as far as it has some: owner and mode are only for a new volume.
    pub fn limited_as(self, other: Options) -> Options {
        Options { pages: other.pages.or(self.pages), nodes: other.nodes.or(self.nodes), ..self }
    }

    /// As `/proc/mounts` shows them.
    pub fn shown(&self) -> Arc<[u8]> {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.show(&mut text);
        text.as_bytes().into()
    }

    fn show(&self, text: &mut String) -> core::fmt::Result {
        if let Some(pages) = self.pages {
            write!(text, ",size={}k", pages * (PAGE_BYTES as u64 / 1024))?;
        }
        if let Some(nodes) = self.nodes {
            write!(text, ",nr_inodes={nodes}")?;
        }
        if let Some(mode) = self.mode.filter(|mode| *mode != 0o1777) {
            write!(text, ",mode={mode:03o}")?;
        }
        if let Some(user) = self.user.filter(|user| *user != 0) {
            write!(text, ",uid={user}")?;
        }
        match self.group.filter(|group| *group != 0) {
            Some(group) => write!(text, ",gid={group}"),
            None => Ok(()),
        }
    }
}

/// Keys and values. A key without a value has an empty one.
fn words(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    text.split(|byte| *byte == b',').filter(|word| !word.is_empty()).map(|word| {
        let end = word.iter().position(|byte| *byte == b'=').unwrap_or(word.len());
        (&word[..end], word.get(end + 1..).unwrap_or_default())
    })
}

/// 0 is no limit of its own.
fn limit(value: u64) -> Option<u64> {
    Some(value).filter(|value| *value != 0)
}

fn number(text: &[u8], radix: u32) -> Result<u32, Errno> {
    let text = core::str::from_utf8(text).map_err(|_| Errno::EINVAL)?;
    u32::from_str_radix(text, radix).map_err(|_| Errno::EINVAL)
}

/// A number that may end in K, M, G, T, P or E.
fn size(text: &[u8]) -> Result<u64, Errno> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let shift = match &text[digits..] {
        b"" => 0,
        [unit] => {
            10 * (1 + b"kmgtpe".iter().position(|known| *known == unit.to_ascii_lowercase()).ok_or(Errno::EINVAL)?)
        }
        _ => return Err(Errno::EINVAL),
    };
    let value = core::str::from_utf8(&text[..digits]).ok().and_then(|digits| digits.parse::<u64>().ok());
    value.and_then(|value| value.checked_mul(1 << shift)).ok_or(Errno::EINVAL)
}

/// Bytes, or percent of memory, as pages.
fn size_pages(text: &[u8], pool: &FramePool) -> Result<u64, Errno> {
    match text {
        [percent @ .., b'%'] => {
            let pages = size(percent)?.checked_mul(pool.total_frames() as u64).ok_or(Errno::EINVAL)?;
            Ok(pages / 100)
        }
        _ => Ok(size(text)?.div_ceil(PAGE_BYTES as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let cases: [(&[u8], _); 8] = [
            (b"0", Ok(0)),
            (b"4096", Ok(4096)),
            (b"16k", Ok(16 << 10)),
            (b"3M", Ok(3 << 20)),
            (b"16E", Err(Errno::EINVAL)),
            (b"", Err(Errno::EINVAL)),
            (b"1x", Err(Errno::EINVAL)),
            (b"-1", Err(Errno::EINVAL)),
        ];
        for (text, expected) in cases {
            assert_eq!(size(text), expected, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn options_are_shown_as_they_were_given() {
        let options = Options { pages: Some(4), mode: Some(0o700), user: Some(7), ..Options::default() };
        assert_eq!(&*options.shown(), b",size=16k,mode=700,uid=7");
        assert_eq!(&*Options::default().shown(), b"");
    }
}
