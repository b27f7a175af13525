//! The root file system that is packed for the guest: the programs that cases use, their libraries, and the cases.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::side::GUEST_HOME;

/// A folder on the host that becomes the guest's `/`.
pub struct Root {
    path: PathBuf,
    packed: BTreeSet<PathBuf>,
}

impl Root {
    /// An almost empty root with Debian's merged `/usr`, users, and temporary folders.
    ///
    /// # Errors
    /// A sentence when a folder or file cannot be made.
    pub fn create(path: &Path) -> Result<Root, String> {
        let tell = |error: std::io::Error| format!("cannot make {}: {error}", path.display());
        let _ = fs::remove_dir_all(path);
        for folder in ["usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "etc", "tmp", "proc", "sys", "dev", "root"] {
            fs::create_dir_all(path.join(folder)).map_err(tell)?;
        }
        for name in ["bin", "sbin", "lib", "lib64"] {
            symlink(format!("usr/{name}"), path.join(name)).map_err(tell)?;
        }
        fs::write(path.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n").map_err(tell)?;
        fs::write(path.join("etc/group"), "root:x:0:\n").map_err(tell)?;
        Ok(Root { path: path.into(), packed: BTreeSet::new() })
    }

    /// The folder on the host.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of the tests inside this root.
    pub fn home(&self) -> PathBuf {
        self.path.join(&GUEST_HOME[1..])
    }

    /// Packs a program of the host, by absolute path or by a name in PATH, with the libraries it loads; a script with its interpreter.
    ///
    /// # Errors
    /// A sentence when it is not on the host, which then lacks a package.
    pub fn add_program(&mut self, name: &str) -> Result<(), String> {
        let found = find_program(name).ok_or_else(|| format!("{name} is not on this host"))?;
        self.add_file(&found)?;
        match interpreter(&found) {
            Some(interpreter) => self.add_program(&interpreter),
            None => self.add_program_libraries(name),
        }
    }

    /// Packs only the libraries that a program of the host loads.
    ///
    /// # Errors
    /// A sentence when the program is not on the host or a library cannot be copied.
    pub fn add_program_libraries(&mut self, name: &str) -> Result<(), String> {
        let found = find_program(name).ok_or_else(|| format!("{name} is not on this host"))?;
        libraries(&found).iter().try_for_each(|library| self.add_file(library))
    }

    /// Packs a file of the host, with its libraries when it is a program; of a folder, the files directly in it.
    ///
    /// # Errors
    /// A sentence when something cannot be copied.
    pub fn add_files(&mut self, path: &Path) -> Result<(), String> {
        if !path.is_dir() {
            let name = path.display().to_string();
            return if is_program(path) { self.add_program(&name) } else { self.add_file(path) };
        }
        let entries = fs::read_dir(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        for entry in entries.filter_map(Result::ok).filter(|entry| entry.path().is_file()) {
            self.add_file(&entry.path())?;
        }
        Ok(())
    }

    /// Copies `file` to the same place below the root, following the merged `/usr`.
    ///
    /// # Errors
    /// A sentence when it cannot be copied.
    pub fn add_file(&mut self, file: &Path) -> Result<(), String> {
        let place = merged(file);
        if !self.packed.insert(place.clone()) {
            return Ok(());
        }
        let target = self.path.join(place.strip_prefix("/").unwrap_or(&place));
        let tell = |error: std::io::Error| format!("cannot pack {}: {error}", file.display());
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(tell)?;
        }
        fs::copy(file, &target).map(drop).map_err(tell)
    }
}

/// `/bin/x` is `/usr/bin/x` on a system with merged `/usr`, which is what `create` lays out.
fn merged(file: &Path) -> PathBuf {
    let text = file.to_string_lossy();
    let moved = ["/bin/", "/sbin/", "/lib/", "/lib64/"].iter().any(|prefix| text.starts_with(prefix));
    if moved { PathBuf::from(format!("/usr{text}")) } else { file.into() }
}

/// What a script's first line names.
fn interpreter(file: &Path) -> Option<String> {
    let mut head = [0; 256];
    let count = fs::File::open(file).and_then(|mut file| file.read(&mut head)).ok()?;
    let line = head[..count].strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    String::from_utf8_lossy(line).split_whitespace().next().map(String::from)
}

/// Begins as an executable does.
fn is_program(file: &Path) -> bool {
    let mut magic = [0; 4];
    fs::File::open(file).and_then(|mut file| file.read_exact(&mut magic)).is_ok_and(|()| magic == *b"\x7fELF")
}

/// Where a program is on the host: `name` itself when it is a path, else the first in PATH.
pub fn find_program(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_file());
    }
    ["/usr/bin", "/bin", "/usr/sbin", "/sbin"]
        .iter()
        .map(|folder| Path::new(folder).join(name))
        .find(|path| path.is_file())
}

/// The interpreter and libraries that a dynamic program of the host loads, as its own loader lists them.
fn libraries(program: &Path) -> Vec<PathBuf> {
    const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";
    let Ok(output) = Command::new(LOADER).arg("--list").arg(program).output() else { return Vec::new() };
    let mut found: Vec<PathBuf> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.split("=>").last()?.split_whitespace().next().map(PathBuf::from))
        .filter(|path| path.is_absolute())
        .collect();
    if !found.is_empty() {
        found.push(LOADER.into());
    }
    found
}
