//! Folders of the host that a virtual machine sees as they are: `--share HOST[:GUEST][:ro]`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::failure::{Failure, TOOL};

/// Folders that the kernel makes up itself.
const KERNELS_OWN: [&str; 3] = ["/dev", "/proc", "/sys"];

/// A folder and where it is seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Share {
    /// Without symlinks: what is served is the folder that was meant when the machine started.
    pub host: PathBuf,
    pub guest: PathBuf,
    pub manner: Manner,
}

/// How a folder of the host is seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    AsItIs,
    ReadOnly,
    /// Below what is in memory: what is changed stays in the machine.
    Below,
    /// Above what is below, as the upper directory of an overlay: see [`super::Upper`].
    Upper,
    /// Not at all: what GUEST stands for is brought there when the machine ends.
    Out,
    /// Not at all: what programs have changed is brought there when the machine ends.
    Changes,
}

impl Manner {
    /// The end of the device's label, by which the kernel knows it.
    pub fn label(self) -> &'static str {
        match self {
            Manner::AsItIs => "",
            Manner::ReadOnly => "ro",
            Manner::Below => "below",
            Manner::Upper => "upper",
            Manner::Out => "out",
            Manner::Changes => "changes",
        }
    }
}

impl Share {
    /// Reads `HOST[:GUEST][:ro]`; a folder whose name holds a colon is taken whole when it exists.
    fn read(option: &OsStr) -> Result<Share, Failure> {
        let failed = |reason: &str, help: &str| {
            Err(Failure::new(TOOL, format!("--share {}: {reason}", option.to_string_lossy()), help))
        };
        let (rest, manner) = match option.as_bytes() {
            whole if Path::new(option).exists() => (whole, Manner::AsItIs),
            whole => match (whole.strip_suffix(b":ro"), whole.strip_suffix(b":rw")) {
                (Some(rest), _) => (rest, Manner::ReadOnly),
                (_, Some(rest)) => (rest, Manner::AsItIs),
                _ => (whole, Manner::AsItIs),
            },
        };
        let path = |bytes| PathBuf::from(OsStr::from_bytes(bytes));
        let colon = rest.iter().rposition(|&byte| byte == b':').filter(|_| !path(rest).exists());
        let (host, guest) = match colon {
            Some(colon) => (path(&rest[..colon]), Some(path(&rest[colon + 1..]))),
            None => (path(rest), None),
        };
        let Ok(here) = std::path::absolute(&host) else { return failed("no such folder", "name a folder of the host") };
        let guest = guest.unwrap_or(here);
        let Ok(host) = std::fs::canonicalize(&host) else {
            return failed("no such folder", "name a folder of the host");
        };
        if !host.is_dir() {
            return failed("not a folder", "share the folder that it is in, or pack a copy with --with");
        }
        if !guest.is_absolute() || guest.components().any(|part| part == Component::ParentDir) {
            return failed("GUEST is no absolute path", "write HOST:/where/in/the/guest");
        }
        let guest: PathBuf = guest.components().collect();
        if guest == Path::new("/") || KERNELS_OWN.iter().any(|own| guest.starts_with(own)) {
            return failed("it would hide what the guest needs", "name a folder of its own for GUEST");
        }
        Ok(Share { host, guest, manner })
    }

    /// All of them; a folder that holds another's place comes before it.
    pub fn read_all<'a>(options: impl Iterator<Item = &'a OsStr>) -> Result<Vec<Share>, Failure> {
        let mut shares = options.map(Share::read).collect::<Result<Vec<Share>, Failure>>()?;
        shares.sort_by(|one, other| one.guest.cmp(&other.guest));
        match shares.windows(2).find(|pair| pair[0].guest == pair[1].guest) {
            Some(pair) => {
                let text = format!("two folders would be seen at {}", pair[0].guest.display());
                Err(Failure::new(TOOL, text, "give one of them another GUEST"))
            }
            None => Ok(shares),
        }
    }

    /// It is the whole root.
    pub fn is_root(&self) -> bool {
        self.guest == Path::new("/")
    }

    /// Where on the host a path of the guest is, if it is in this folder.
    pub fn host_path(&self, guest: &Path) -> Option<PathBuf> {
        Some(self.host.join(guest.strip_prefix(&self.guest).ok()?))
    }
}

/// The folder of the host that is seen at a path of the guest: of the folders there the innermost.
pub fn host_path(shares: &[Share], guest: &Path) -> Option<PathBuf> {
    shares.iter().rev().find_map(|share| share.host_path(guest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Share, String> {
        Share::read(OsStr::new(text)).map_err(|failure| failure.error)
    }

    #[test]
    fn what_is_shared_is_read_as_docker_writes_it() {
        let share = |guest: &str, manner| Ok(Share { host: "/usr".into(), guest: guest.into(), manner });
        assert_eq!(read("/usr"), share("/usr", Manner::AsItIs));
        assert_eq!(read("/usr:ro"), share("/usr", Manner::ReadOnly));
        assert_eq!(read("/usr:/data"), share("/data", Manner::AsItIs));
        assert_eq!(read("/usr:/data/:ro"), share("/data", Manner::ReadOnly));
        assert_eq!(read("/usr:/data:rw"), share("/data", Manner::AsItIs));
    }

    #[test]
    fn what_cannot_be_shared_is_refused() {
        for text in ["/no-such-folder", "/etc/passwd", "/usr:data", "/usr:/", "/usr:/proc/x", "/usr:/a/../b", ""] {
            assert!(read(text).is_err(), "{text}");
        }
        let twice = ["/usr:/a", "/etc:/a"].map(OsStr::new);
        assert!(Share::read_all(twice.into_iter()).is_err());
    }

    #[test]
    fn the_innermost_folder_is_seen() {
        let shares = Share::read_all(["/etc:/a/b", "/usr:/a"].map(OsStr::new).into_iter()).unwrap();
        assert_eq!(host_path(&shares, Path::new("/a/b/passwd")), Some("/etc/passwd".into()));
        assert_eq!(host_path(&shares, Path::new("/a/bin")), Some("/usr/bin".into()));
        assert_eq!(host_path(&shares, Path::new("/b")), None);
    }
}
