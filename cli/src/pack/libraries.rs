//! Which files a dynamic program needs, found as the dynamic loader would find them (ld.so(8)), from the ELF files alone.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::elf::{self, Needs};
use super::ld_cache::LdCache;

/// Searched last, in this order: the loader's own list on Debian, then the list of other distributions.
const DEFAULT_DIRECTORIES: [&str; 6] =
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// A library that was asked for and is nowhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing {
    pub library: String,
    /// The file that needs it.
    pub wanted_by: PathBuf,
}

/// Finds libraries on the host.
pub struct Resolver {
    cache: LdCache,
    /// `LD_LIBRARY_PATH` of the guest program.
    library_path: Vec<PathBuf>,
}

/// A file whose needs are still to be looked up.
struct Pending {
    path: PathBuf,
    needs: Needs,
    /// `DT_RPATH` of the files that led here, nearest first.
    inherited_rpath: Vec<PathBuf>,
}

impl Resolver {
    pub fn new(cache: LdCache, library_path: Vec<PathBuf>) -> Self {
        Resolver { cache, library_path }
    }

    /// The paths of all libraries that `program` needs, transitively, in the order they are found. Paths are as the
    /// loader will spell them: symlinks are not followed.
    pub fn resolve(&self, program: &Path, needs: Needs) -> Result<Vec<PathBuf>, Missing> {
        let interpreter = needs.interpreter.clone();
        let mut loaded: HashSet<Vec<u8>> = HashSet::new();
        // The loader stands for its own name, and musl's for libc as well.
        if let Some(name) = interpreter.as_deref().and_then(Path::file_name) {
            loaded.insert(name.as_bytes().to_vec());
        }
        let is_musl = interpreter.as_deref().is_some_and(|path| path.to_string_lossy().contains("/ld-musl-"));
        let mut found = Vec::new();
        let mut queue = VecDeque::from([Pending { path: program.into(), needs, inherited_rpath: Vec::new() }]);
        while let Some(file) = queue.pop_front() {
            let origin = origin_of(&file.path);
            let mut rpath: Vec<PathBuf> = Vec::new();
            if file.needs.runpath.is_empty() {
                rpath.extend(file.needs.rpath.iter().map(|path| elf::expand(path, &origin)));
                rpath.extend(file.inherited_rpath.iter().cloned());
            }
            for library in &file.needs.libraries {
                if (is_musl && library.starts_with(b"libc.")) || !loaded.insert(library.clone()) {
                    continue;
                }
                let Some((path, needs)) = self.find(library, &file, &origin, &rpath) else {
                    let library = String::from_utf8_lossy(library).into_owned();
                    return Err(Missing { library, wanted_by: file.path.clone() });
                };
                found.push(path.clone());
                queue.push_back(Pending { path, needs, inherited_rpath: rpath.clone() });
            }
        }
        Ok(found)
    }

    fn find(&self, library: &[u8], from: &Pending, origin: &Path, rpath: &[PathBuf]) -> Option<(PathBuf, Needs)> {
        let name = Path::new(OsStr::from_bytes(library));
        if library.contains(&b'/') {
            return usable(elf::expand(library, origin));
        }
        let runpath = from.needs.runpath.iter().map(|path| elf::expand(path, origin));
        let named = rpath.iter().cloned().chain(self.library_path.iter().cloned()).chain(runpath);
        named
            .map(|directory| directory.join(name))
            .chain(self.cache.find(library).map(Path::to_path_buf))
            .chain(DEFAULT_DIRECTORIES.iter().map(|directory| Path::new(directory).join(name)))
            .find_map(usable)
    }
}

/// `path` and its needs, if it is a library for this machine; the loader passes others over in silence.
fn usable(path: PathBuf) -> Option<(PathBuf, Needs)> {
    let needs = elf::read_needs(File::open(&path).ok()?).ok()?;
    Some((path, needs))
}

/// The directory that `$ORIGIN` stands for: that of the file itself, not of a symlink to it.
fn origin_of(path: &Path) -> PathBuf {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    real.parent().unwrap_or(Path::new("/")).to_path_buf()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(path: &str) -> Needs {
        elf::read_needs(File::open(path).unwrap()).unwrap()
    }

    fn names(paths: &[PathBuf]) -> Vec<String> {
        paths.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn libraries_of_ls_are_found_with_and_without_the_cache() {
        for cache in [LdCache::of_host(), LdCache::default()] {
            let found = Resolver::new(cache, Vec::new()).resolve(Path::new("/bin/ls"), needs("/bin/ls")).unwrap();
            assert!(names(&found).contains(&"libc.so.6".to_string()), "{found:?}");
            assert_eq!(found.len(), names(&found).iter().collect::<HashSet<_>>().len(), "no library twice");
        }
    }

    #[test]
    fn a_missing_library_is_named_with_who_wants_it() {
        let mut needs = needs("/bin/ls");
        needs.libraries.push(b"libnosuch.so.9".to_vec());
        let missing = Resolver::new(LdCache::of_host(), Vec::new()).resolve(Path::new("/bin/ls"), needs).unwrap_err();
        assert_eq!(missing, Missing { library: "libnosuch.so.9".into(), wanted_by: "/bin/ls".into() });
    }

    #[test]
    fn runpath_and_library_path_come_before_the_cache() {
        let libc = LdCache::of_host().find(b"libc.so.6").map(Path::to_path_buf);
        let Some(libc) = libc else { return };
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(&libc, folder.path().join("libc.so.6")).unwrap();
        let mut with_runpath = needs("/bin/ls");
        with_runpath.runpath = vec![folder.path().as_os_str().as_bytes().to_vec()];
        let by_runpath = Resolver::new(LdCache::of_host(), Vec::new()).resolve(Path::new("/bin/ls"), with_runpath);
        assert!(by_runpath.unwrap().contains(&folder.path().join("libc.so.6")));
        let by_environment = Resolver::new(LdCache::of_host(), vec![folder.path().to_path_buf()]);
        let found = by_environment.resolve(Path::new("/bin/ls"), needs("/bin/ls")).unwrap();
        assert!(found.contains(&folder.path().join("libc.so.6")));
    }
}
