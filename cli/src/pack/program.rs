//! What to pack for a run: the program with all it needs, and what the options add.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use bootimage::Node;

use super::container::Container;
use super::ld_cache::LdCache;
use super::libraries::Resolver;
use super::outside::Outside;
use super::shares::{self, Share};
use super::tree::{Source, Tree, unreadable};
use super::users::{Lists, User};
use super::{elf, locale, root, skeleton};
use crate::failure::{Failure, NOT_EXECUTABLE, NOT_FOUND, TOOL};
use crate::options::FileOptions;

/// Interpreters of interpreters that Linux follows (`BINPRM_MAX_RECURSION`).
const SCRIPT_DEPTH_MAX: u32 = 4;
/// Bytes of the first line of a script that Linux looks at (`BINPRM_BUF_SIZE`).
const HEAD_BYTES: usize = 256;
const ROOT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A packed guest.
pub struct Packed {
    pub tree: Tree,
    /// Guest path of the program.
    pub program: Vec<u8>,
    /// `NAME=value` each.
    pub env: Vec<Vec<u8>>,
    /// Guest path to start in.
    pub cwd: Vec<u8>,
    /// What the machine sees of the host; nothing where all is packed.
    pub outside: Option<Outside>,
    /// Folders of the host that a virtual machine sees.
    pub shares: Vec<Share>,
    /// For whom the program runs, if that was said.
    pub user: Option<User>,
}

/// Packs `program` (a name or a path) as `files` say, at most so many bytes. `has_tty` asks for what full-screen programs need.
pub fn pack(
    program: &OsStr,
    files: &FileOptions,
    container: Option<&Container>,
    (has_tty, bytes_max): (bool, u64),
) -> Result<Packed, Failure> {
    let mut env = environment(files, container)?;
    let shares = Share::read_all(files.share.iter().map(OsString::as_os_str))?;
    let library_path = variable(&env, "LD_LIBRARY_PATH").map(split).unwrap_or_default();
    let mut packer = Packer {
        tree: Tree::with_bytes_max(bytes_max),
        resolver: Resolver::new(LdCache::of_host(), library_path),
        whole_root: false,
        has_present: false,
        is_dynamic: false,
    };
    skeleton::add_root(&mut packer.tree)?;
    if let Some(container) = container {
        container.fill(&mut packer.tree)?;
        packer.whole_root = true;
    } else if let Some(folder) = &files.root {
        root::add_root(&mut packer.tree, folder)?;
        packer.whole_root = true;
    } else {
        skeleton::add_merged_links(&mut packer.tree)?;
    }
    for with in &files.with {
        packer.add_with(with)?;
    }
    // What --with brings is there for PROGRAM, too, by its path in the guest.
    let in_guest = packer.whole_root || packer.tree.holds(Path::new(program));
    // So is what is in a shared folder; what it needs is packed.
    let shared = shares::host_path(&shares, Path::new(program)).filter(|host| !in_guest && host.is_file());
    let host_program = match &shared {
        Some(host) => {
            packer.add_host_program(host.as_os_str(), 0)?;
            Some(PathBuf::from(program))
        }
        None if in_guest => None,
        None => Some(packer.add_host_program(program, 0)?),
    };
    skeleton::add_rest(&mut packer.tree, variable(&env, "HOME"))?;
    if let Some(term) = variable(&env, "TERM").filter(|_| has_tty && !packer.whole_root) {
        skeleton::add_terminfo(&mut packer.tree, term)?;
    }
    let program = match host_program {
        Some(path) => path.into_os_string().as_bytes().to_vec(),
        None => packer.find_in_root(program, variable(&env, "PATH"), 0)?,
    };
    let user = files.user.as_deref().or_else(|| container.and_then(Container::user));
    let user = user.map(|user| Lists::of(&packer.tree).find(user)).transpose()?;
    if let Some(user) = &user {
        user.live_in(&mut env, files);
    }
    let cwd = match files.cwd.clone().or_else(|| container.and_then(Container::cwd)) {
        Some(cwd) => cwd,
        None => packer.present_directory(&shares).unwrap_or("/".into()),
    };
    if !shares::host_path(&shares, Path::new(&cwd)).is_some_and(|host| host.is_dir()) {
        packer.check_directory(&cwd)?;
    }
    if packer.whole_root || packer.is_dynamic {
        locale::add(&mut packer.tree, &mut env, files)?;
    }
    Ok(Packed { tree: packer.tree, program, env, cwd: cwd.into_vec(), outside: None, shares, user })
}

/// The guest's environment: a few variables of the host, then what `--env` says.
pub fn environment(files: &FileOptions, container: Option<&Container>) -> Result<Vec<Vec<u8>>, Failure> {
    let mut variables: Vec<(OsString, OsString)> = Vec::new();
    let mut set = |name: &OsStr, value: OsString| match variables.iter_mut().find(|(known, _)| known == name) {
        Some(known) => known.1 = value,
        None => variables.push((name.into(), value)),
    };
    for name in ["PATH", "HOME", "TERM", "LANG", "USER"] {
        let value = match (name, files.root.is_some() || container.is_some()) {
            ("PATH", true) => Some(ROOT_PATH.into()),
            ("HOME", true) => Some("/root".into()),
            ("PATH", false) => Some(std::env::var_os(name).unwrap_or(ROOT_PATH.into())),
            _ => std::env::var_os(name),
        };
        if let Some(value) = value {
            set(OsStr::new(name), value);
        }
    }
    for entry in container.into_iter().flat_map(Container::env) {
        if let Some((name, value)) = entry.split_once('=') {
            set(OsStr::new(name), value.into());
        }
    }
    for option in &files.env {
        let bytes = option.as_bytes();
        let equals = bytes.iter().position(|&byte| byte == b'=');
        match equals {
            Some(0) => {
                return Err(Failure::new(
                    TOOL,
                    format!("--env {}: no name", option.to_string_lossy()),
                    "write NAME=VALUE",
                ));
            }
            Some(at) => set(OsStr::from_bytes(&bytes[..at]), OsStr::from_bytes(&bytes[at + 1..]).into()),
            None => {
                if let Some(value) = std::env::var_os(option) {
                    set(option, value);
                }
            }
        }
    }
    Ok(variables.into_iter().map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat()).collect())
}

pub fn variable<'a>(env: &'a [Vec<u8>], name: &str) -> Option<&'a OsStr> {
    env.iter().find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")).map(OsStr::from_bytes)
}

pub fn split(paths: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(paths).filter(|path| path.is_absolute()).collect()
}

struct Packer {
    tree: Tree,
    resolver: Resolver,
    /// `--root` was given: the host's libraries stay out.
    whole_root: bool,
    /// Something below the tool's working directory is in the guest by its own path.
    has_present: bool,
    /// Some program has an interpreter and libraries, and so may want to know its language.
    is_dynamic: bool,
}

impl Packer {
    /// Packs a program of the host with its interpreter and libraries. Returns its guest path.
    fn add_host_program(&mut self, program: &OsStr, depth: u32) -> Result<PathBuf, Failure> {
        let path = find_on_host(program)?;
        let real = self.tree.add_same_path(&path)?;
        self.add_needs(&path, depth)?;
        // The path as the user knows it, unless it climbs with `..`, which a guest path must not.
        let climbs = path.components().any(|component| component == std::path::Component::ParentDir);
        Ok(if climbs { real } else { path })
    }

    /// Packs what the program file `path` needs to run.
    fn add_needs(&mut self, path: &Path, depth: u32) -> Result<(), Failure> {
        let file = File::open(path).map_err(|error| unreadable(path, &error))?;
        let mut head = Vec::new();
        (&file).take(HEAD_BYTES as u64).read_to_end(&mut head).map_err(|error| unreadable(path, &error))?;
        if let Some((interpreter, argument)) = script_interpreter(&head) {
            return self.add_script_interpreter(path, interpreter, argument, depth);
        }
        let needs = elf::read_needs(file).map_err(|why| not_program(path, &why))?;
        let Some(interpreter) = needs.interpreter.clone() else { return Ok(()) };
        if !interpreter.exists() {
            let text =
                format!("{} needs the interpreter {}, which is missing", path.display(), interpreter.to_string_lossy());
            return Err(Failure::new(NOT_EXECUTABLE, text, "install the C library it was built for, or use --root"));
        }
        self.is_dynamic = true;
        self.tree.add_same_path(&interpreter)?;
        let found = self.resolver.resolve(path, needs).map_err(|missing| {
            let text =
                format!("{} needs the library {}, which is missing", missing.wanted_by.display(), missing.library);
            Failure::new(NOT_EXECUTABLE, text, "install the package that has it, or set --env LD_LIBRARY_PATH=DIR")
        })?;
        for library in found {
            self.tree.add_same_path(&library)?;
        }
        if Path::new("/etc/ld.so.cache").exists() {
            self.tree.add_same_path(Path::new("/etc/ld.so.cache"))?;
        }
        Ok(())
    }

    fn add_script_interpreter(
        &mut self,
        script: &Path,
        interpreter: &OsStr,
        argument: Option<&OsStr>,
        depth: u32,
    ) -> Result<(), Failure> {
        if depth >= SCRIPT_DEPTH_MAX {
            let text =
                format!("{}: interpreters of scripts are scripts, more than {SCRIPT_DEPTH_MAX} deep", script.display());
            return Err(Failure::new(NOT_EXECUTABLE, text, ""));
        }
        if !Path::new(interpreter).is_file() {
            let text = format!(
                "{} needs the interpreter {}, which is missing",
                script.display(),
                interpreter.to_string_lossy()
            );
            return Err(Failure::new(NOT_EXECUTABLE, text, "install it, or correct the first line of the script"));
        }
        self.add_host_program(interpreter, depth + 1)?;
        // `#!/usr/bin/env NAME` finds NAME in PATH.
        if let Some(name) = argument.filter(|_| Path::new(interpreter).file_name() == Some(OsStr::new("env"))) {
            self.add_host_program(name, depth + 1)?;
        }
        Ok(())
    }

    /// `--with HOST[:GUEST]`.
    fn add_with(&mut self, option: &OsStr) -> Result<(), Failure> {
        let (host, guest) = split_with(option);
        let host = if host.exists() || host.as_os_str().as_bytes().contains(&b'/') {
            std::path::absolute(&host).map_err(|error| unreadable(&host, &error))?
        } else {
            find_on_host(host.as_os_str()).map_err(|_| {
                let text = format!("--with {}: no such file, folder or program", option.to_string_lossy());
                Failure::new(TOOL, text, "give the path of a file or folder, or the name of a program in PATH")
            })?
        };
        let is_folder = fs::metadata(&host).map_err(|error| unreadable(&host, &error))?.is_dir();
        let executables = match guest {
            Some(guest) => self.tree.add_tree(&host, &guest)?,
            None if self.whole_root => self.tree.add_tree(&host, &host)?,
            None => {
                self.has_present |= std::env::current_dir().is_ok_and(|here| host.starts_with(here));
                let real = self.tree.add_same_path(&host)?;
                self.tree.add_tree(&real, &real)?
            }
        };
        if self.whole_root {
            return Ok(());
        }
        for executable in executables {
            let needed = self.add_needs(&executable, 0);
            // A folder may hold anything; a program named by itself must be complete.
            if !is_folder && starts_program(&executable) {
                needed?;
            }
        }
        Ok(())
    }

    /// Finds `program` among what is packed. Returns its guest path.
    fn find_in_root(&self, program: &OsStr, path: Option<&OsStr>, depth: u32) -> Result<Vec<u8>, Failure> {
        let candidates: Vec<PathBuf> = if program.as_bytes().contains(&b'/') {
            vec![Path::new("/").join(program)]
        } else {
            path.map(split).unwrap_or_default().iter().map(|directory| directory.join(program)).collect()
        };
        let found = candidates.iter().find(|path| {
            self.tree
                .find(path)
                .is_some_and(|(_, attributes, node)| matches!(node, Node::File { .. }) && attributes.mode & 0o111 != 0)
        });
        let Some(path) = found else {
            let there = candidates.iter().find_map(|path| Some((path, self.tree.find(path)?.2)));
            return Err(match there {
                Some((path, Node::Directory)) => is_directory(path),
                Some((path, _)) => not_executable(path),
                None => {
                    let text = format!("{}: no such program in the root file system", program.to_string_lossy());
                    Failure::new(NOT_FOUND, text, "PROGRAM is looked up in --root when that is given")
                }
            });
        };
        self.check_in_root(path, depth)?;
        Ok(path.as_os_str().as_bytes().to_vec())
    }

    /// Whether the program at guest path `path` is one, and its interpreter is there.
    fn check_in_root(&self, path: &Path, depth: u32) -> Result<(), Failure> {
        let Some((_, _, Node::File { bytes, source })) = self.tree.find(path) else { return Ok(()) };
        let head = read_head(source, *bytes);
        let interpreter = match script_interpreter(&head) {
            Some((interpreter, _)) => Some(PathBuf::from(interpreter)),
            None => match source {
                Source::Host(host) => {
                    let file = File::open(host).map_err(|error| unreadable(host, &error))?;
                    elf::read_needs(file).map_err(|why| not_program(path, &why))?.interpreter
                }
                _ => {
                    elf::check_ident(&head).map_err(|why| not_program(path, &why))?;
                    None
                }
            },
        };
        match interpreter {
            None => Ok(()),
            Some(interpreter) if self.tree.find(&interpreter).is_some() && depth < SCRIPT_DEPTH_MAX => {
                self.check_in_root(&interpreter, depth + 1)
            }
            Some(interpreter) => {
                let text = format!("{} needs {}, which the root lacks", path.display(), interpreter.to_string_lossy());
                Err(Failure::new(NOT_EXECUTABLE, text, "add it with --with HOST:GUEST"))
            }
        }
    }

    /// The tool's working directory, when `--with` brings something of it: words that name it mean the same in the guest.
    fn present_directory(&self, shares: &[Share]) -> Option<OsString> {
        let is_shared = |here: &PathBuf| shares::host_path(shares, here).is_some_and(|host| host == *here);
        let here = std::env::current_dir().ok().filter(|here| self.has_present || is_shared(here))?;
        Some(here.into_os_string())
    }

    fn check_directory(&self, cwd: &OsStr) -> Result<(), Failure> {
        match self.tree.find(Path::new(cwd)) {
            Some((_, _, Node::Directory)) if cwd.as_bytes().starts_with(b"/") => Ok(()),
            _ => {
                let text = format!("--cwd {}: no such directory in the guest", cwd.to_string_lossy());
                Err(Failure::new(
                    TOOL,
                    text,
                    "the host's folders are not visible in the guest; share one with --share, or pack it with --with",
                ))
            }
        }
    }
}

/// `HOST` and `GUEST`; a file whose name holds a colon is taken whole when it exists.
pub fn split_with(option: &OsStr) -> (PathBuf, Option<PathBuf>) {
    let bytes = option.as_bytes();
    match bytes.iter().rposition(|&byte| byte == b':') {
        Some(colon) if !Path::new(option).exists() => {
            let part = |bytes| PathBuf::from(OsStr::from_bytes(bytes));
            (part(&bytes[..colon]), Some(part(&bytes[colon + 1..])))
        }
        _ => (PathBuf::from(option), None),
    }
}

/// The interpreter and the argument on the first line of a script (execve(2)).
pub(super) fn script_interpreter(head: &[u8]) -> Option<(&OsStr, Option<&OsStr>)> {
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?.trim_ascii();
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let (interpreter, argument) = (&line[..end], line[end..].trim_ascii());
    let argument = (!argument.is_empty()).then(|| OsStr::from_bytes(argument));
    (!interpreter.is_empty()).then(|| (OsStr::from_bytes(interpreter), argument))
}

/// The absolute path of `program` on the host, as a shell would find it.
pub fn find_on_host(program: &OsStr) -> Result<PathBuf, Failure> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(|error| unreadable(path, &error));
    if program.as_bytes().contains(&b'/') {
        let path = absolute(Path::new(program))?;
        return check_executable(&path).map(|()| path);
    }
    let mut refused = None;
    for directory in std::env::split_paths(&std::env::var_os("PATH").unwrap_or(ROOT_PATH.into())) {
        let path = absolute(&directory.join(program))?;
        match check_executable(&path) {
            Ok(()) => return Ok(path),
            Err(failure) if failure.status == NOT_EXECUTABLE && !path.is_dir() => refused = Some(failure),
            Err(_) => {}
        }
    }
    Err(refused.unwrap_or_else(|| {
        let text = format!("{}: no such program in PATH", program.to_string_lossy());
        let help = if Path::new(program).exists() { "it is in this folder: write ./ before the name" } else { "" };
        Failure::new(NOT_FOUND, text, if help.is_empty() { "give its path, or install it" } else { help })
    }))
}

fn check_executable(path: &Path) -> Result<(), Failure> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => return Err(not_executable(path)),
        Err(_) => {
            let text = format!("{}: no such program", path.display());
            return Err(Failure::new(NOT_FOUND, text, "check the path; programs inside --root need --root"));
        }
    };
    if metadata.is_dir() {
        return Err(is_directory(path));
    }
    if !metadata.is_file() || metadata.permissions().mode() & 0o111 == 0 {
        return Err(not_executable(path));
    }
    File::open(path).map(|_| ()).map_err(|error| Failure { status: NOT_EXECUTABLE, ..unreadable(path, &error) })
}

fn is_directory(path: &Path) -> Failure {
    Failure::new(NOT_EXECUTABLE, format!("{} is a directory", path.display()), "name a program")
}

fn not_executable(path: &Path) -> Failure {
    Failure::new(NOT_EXECUTABLE, format!("{} is not executable", path.display()), "make it so with chmod +x")
}

/// What the first bytes of a program's file tell, for where the kernel alone reads the rest: a script, or ELF for this machine.
/// A damaged one is left to the kernel, which is as generous as Linux.
pub(super) fn check_head(path: &Path, head: &[u8]) -> Result<(), Failure> {
    match elf::check_ident(head) {
        Ok(()) | Err(elf::NotProgram::Damaged(_)) => Ok(()),
        Err(_) if script_interpreter(head).is_some() => Ok(()),
        Err(why) => Err(not_program(path, &why)),
    }
}

fn not_program(path: &Path, why: &elf::NotProgram) -> Failure {
    let help = match why {
        elf::NotProgram::Unknown => "a script needs a first line such as #!/bin/sh",
        elf::NotProgram::Damaged(_) => "build or copy it again",
        _ => "Synthesis runs 64-bit x86 programs for Linux",
    };
    Failure::new(NOT_EXECUTABLE, format!("{} {why}", path.display()), help)
}

/// Whether `path` looks like something to be executed: ELF, or a script.
fn starts_program(path: &Path) -> bool {
    let mut head = [0; 4];
    let read = File::open(path).and_then(|file| file.read_at(&mut head, 0)).unwrap_or(0);
    elf::is_elf(&head[..read]) || head[..read].starts_with(b"#!")
}

/// The first bytes of a file that is packed.
pub(super) fn read_head(source: &Source, bytes: u64) -> Vec<u8> {
    read_start(source, bytes, HEAD_BYTES)
}

/// The same of at most so many bytes.
pub(super) fn read_start(source: &Source, bytes: u64, most: usize) -> Vec<u8> {
    let mut head = vec![0; most.min(usize::try_from(bytes).unwrap_or(most))];
    let read = match source {
        Source::Host(path) => File::open(path).and_then(|file| file.read_at(&mut head, 0)).unwrap_or(0),
        Source::Part { file, offset } => file.read_at(&mut head, *offset).unwrap_or(0),
        Source::Bytes(bytes) => {
            let count = head.len();
            head.copy_from_slice(&bytes[..count]);
            count
        }
    };
    head.truncate(read);
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_script_is_read_as_linux_does() {
        let read = |text: &'static str| {
            script_interpreter(text.as_bytes())
                .map(|(program, argument)| (program.to_str().unwrap(), argument.map(|a| a.to_str().unwrap())))
        };
        assert_eq!(read("#!/bin/sh\necho"), Some(("/bin/sh", None)));
        assert_eq!(read("#! /usr/bin/env  python3 -u \nx"), Some(("/usr/bin/env", Some("python3 -u"))));
        assert_eq!(read("#!\n/bin/sh"), None);
        assert_eq!(read("echo"), None);
    }

    #[test]
    fn host_and_guest_are_split_at_the_last_colon() {
        assert_eq!(split_with(OsStr::new("a:b:/c")), ("a:b".into(), Some("/c".into())));
        assert_eq!(split_with(OsStr::new("/bin/ls")), ("/bin/ls".into(), None));
    }
}
