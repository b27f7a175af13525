//! The language of programs in a machine of their own: what LANG names must be there, or Perl, bash and others complain.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::program::variable;
use super::tree::Tree;
use crate::failure::Failure;
use crate::options::FileOptions;

const FOLDER: &str = "/usr/lib/locale";
/// All locales that localedef(1) made, in one file, which may be large: packed only where a language is asked for by name.
const ARCHIVE: &str = "/usr/lib/locale/locale-archive";
/// Bytes in UTF-8, and all else as in C: 400 KB that are on every Debian and Ubuntu.
const PLAIN: &str = "C.UTF-8";

/// Sees to it that the guest has the language that programs are told. One that `--env` asks for is packed, if the host has it. The
/// host's own LANG is only a habit: where its files are not in the guest it becomes C.UTF-8, or C.
pub fn add(tree: &mut Tree, env: &mut [Vec<u8>], files: &FileOptions) -> Result<(), Failure> {
    let whole_root = files.root.is_some();
    let is_asked = |name: &str| {
        files.env.iter().any(|option| option.as_bytes().split(|&byte| byte == b'=').next() == Some(name.as_bytes()))
    };
    for name in ["LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES"].into_iter().filter(|name| !whole_root && is_asked(name)) {
        if let Some(locale) = variable(env, name).map(OsStr::to_os_string) {
            pack(tree, &locale.to_string_lossy(), Path::new(ARCHIVE).is_file())?;
        }
    }
    let Some(habit) = variable(env, "LANG").map(|locale| locale.to_string_lossy().into_owned()) else { return Ok(()) };
    if is_asked("LANG") || is_built_in(&habit) {
        return Ok(());
    }
    let choices = if is_utf8(&habit) { &[habit.as_str(), PLAIN][..] } else { &[habit.as_str()] };
    for locale in choices {
        let is_there = match whole_root {
            true => is_in(tree, locale),
            false => pack(tree, locale, false)?,
        };
        if is_there {
            set_lang(env, locale);
            return Ok(());
        }
    }
    set_lang(env, "C");
    Ok(())
}

fn set_lang(env: &mut [Vec<u8>], locale: &str) {
    for entry in env.iter_mut().filter(|entry| entry.starts_with(b"LANG=")) {
        *entry = format!("LANG={locale}").into_bytes();
    }
}

/// Every C library has these, without a file.
fn is_built_in(locale: &str) -> bool {
    matches!(locale, "" | "C" | "POSIX")
}

fn is_utf8(locale: &str) -> bool {
    let lower = locale.to_ascii_lowercase();
    lower.ends_with(".utf-8") || lower.ends_with(".utf8")
}

/// The folders in which a locale may lie: by its own name, and with the character set as the C library spells it.
fn folders(locale: &str) -> Vec<PathBuf> {
    let is_name = !locale.contains('/') && !is_built_in(locale);
    let spelled = locale.split_once('.').map(|(language, set)| {
        let set: String = set.chars().filter(char::is_ascii_alphanumeric).collect();
        format!("{language}.{}", set.to_ascii_lowercase())
    });
    let names = [Some(locale.to_string()), spelled].into_iter().flatten().filter(|_| is_name);
    names.map(|name| Path::new(FOLDER).join(name)).collect()
}

/// Whether the guest has a locale already: a root of its own.
fn is_in(tree: &Tree, locale: &str) -> bool {
    let files = folders(locale).into_iter().map(|folder| folder.join("LC_CTYPE"));
    files.chain([ARCHIVE.into()]).any(|file| tree.holds(&file))
}

/// Packs a locale of the host; whether it has one.
fn pack(tree: &mut Tree, locale: &str, from_archive: bool) -> Result<bool, Failure> {
    if let Some(folder) = folders(locale).into_iter().find(|folder| folder.is_dir()) {
        tree.add_same_path(&folder)?;
        tree.add_tree(&folder, &folder)?;
        return Ok(true);
    }
    if from_archive && !is_built_in(locale) {
        tree.add_same_path(Path::new(ARCHIVE))?;
    }
    Ok(from_archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_is_looked_for_as_the_c_library_does() {
        let names = |locale| folders(locale).into_iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
        assert_eq!(names("en_US.UTF-8"), ["/usr/lib/locale/en_US.UTF-8", "/usr/lib/locale/en_US.utf8"]);
        assert_eq!(names("de_DE"), ["/usr/lib/locale/de_DE"]);
        assert!(names("C").is_empty() && names("../x").is_empty());
        assert!(is_utf8("en_US.utf8") && is_utf8("C.UTF-8") && !is_utf8("de_DE.ISO-8859-1"));
    }
}
