//! What a crate looks like from afar: how large it is, which of its files need each other in a circle, and how often it says
//! `unsafe` or `.clone()`.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources::{files, text};

/// One crate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Its folder.
    pub path: String,
    pub files: usize,
    pub lines: usize,
    /// Files of the largest circle: each of them needs all others, some by way of others. 1: there is none.
    pub circle: usize,
    pub unsafes: usize,
    pub clones: usize,
    /// Items that say `pub` and no more.
    pub publics: usize,
}

/// All crates of the kernel, largest circle first. Files of tests are left out.
pub fn found() -> Vec<Shape> {
    let mut crates: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for path in files("crates", ".rs") {
        let Some((folder, inside)) = path.split_once("/src/") else { continue };
        if !inside.contains("tests") {
            crates.entry(folder.to_string()).or_default().insert(inside.to_string(), text(&path));
        }
    }
    let mut shapes: Vec<Shape> = crates.iter().map(|(path, files)| shape(path, files)).collect();
    shapes.sort_by_key(|shape| std::cmp::Reverse((shape.circle, shape.lines)));
    shapes
}

fn shape(path: &str, files: &BTreeMap<String, String>) -> Shape {
    let lines = || files.values().flat_map(|text| text.lines()).map(code_of);
    let count = |word: &str| lines().map(|line| line.matches(word).count()).sum();
    Shape {
        path: path.to_string(),
        files: files.len(),
        lines: files.values().map(|text| text.lines().count()).sum(),
        circle: largest_circle(&needs(files)),
        unsafes: lines().filter(|line| is_unsafe(line)).count(),
        clones: count(".clone()"),
        publics: lines().filter(|line| line.trim_start().starts_with("pub ")).count(),
    }
}

/// A line without its comment.
fn code_of(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

fn is_unsafe(line: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe")
}

/// `a/b.rs` and `a/b/mod.rs` are the module `a::b`, `lib.rs` is the crate's.
fn module_of(file: &str) -> Vec<String> {
    let name = file.trim_end_matches(".rs").trim_end_matches("/mod");
    if ["lib", "main", "mod"].contains(&name) { Vec::new() } else { name.split('/').map(String::from).collect() }
}

/// Which files each file names by a path that begins with `crate`, `super` or `self`, or with a module of its own.
fn needs(files: &BTreeMap<String, String>) -> Vec<BTreeSet<usize>> {
    let modules: BTreeMap<Vec<String>, usize> =
        files.keys().enumerate().map(|(at, file)| (module_of(file), at)).collect();
    let needed = |(file, text): (&String, &String)| {
        let own = module_of(file);
        let code: String = text.lines().map(code_of).collect::<Vec<_>>().join("\n");
        let paths = paths_in(&code).into_iter().filter_map(|path| absolute(&own, &path, &modules));
        let at = modules[&own];
        paths.filter_map(|path| longest(&path, &modules)).filter(|other| *other != at).collect()
    };
    files.iter().map(needed).collect()
}

/// The file of the innermost module on a path.
fn longest(path: &[String], modules: &BTreeMap<Vec<String>, usize>) -> Option<usize> {
    (0..=path.len()).rev().find_map(|end| modules.get(&path[..end])).copied()
}

fn absolute(own: &[String], path: &[String], modules: &BTreeMap<Vec<String>, usize>) -> Option<Vec<String>> {
    let ups = path.iter().take_while(|word| *word == "super").count();
    match path[0].as_str() {
        "crate" => Some(path[1..].to_vec()),
        "super" => Some([&own[..own.len().checked_sub(ups)?], &path[ups..]].concat()),
        "self" => Some([own, &path[1..]].concat()),
        first => {
            let child = [own, &[first.to_string()]].concat();
            modules.contains_key(&child).then(|| [own, path].concat())
        }
    }
}

/// All paths of at least two words, those in braces one by one.
fn paths_in(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    // Where the braces of a `use` began, what stood before them.
    let (mut before, mut path): (Vec<Vec<String>>, Vec<String>) = (Vec::new(), Vec::new());
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let word: &str = &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())];
        if !word.is_empty() {
            path.push(word.to_string());
            rest = &rest[word.len()..];
            if let Some(behind) = rest.strip_prefix("::") {
                rest = behind;
                if let Some(inside) = rest.strip_prefix('{') {
                    before.push(path.clone());
                    rest = inside;
                }
                continue;
            }
        } else {
            rest = &rest[first.len_utf8()..];
        }
        if !word.is_empty() && path.len() > 1 {
            found.push(path.clone());
        }
        if first == '}' {
            before.pop();
        }
        if !word.is_empty() || !first.is_whitespace() {
            path = before.last().cloned().unwrap_or_default();
        }
    }
    found
}

/// Files of the largest set in which each leads to each.
fn largest_circle(needs: &[BTreeSet<usize>]) -> usize {
    let reached = |from: usize| {
        let (mut seen, mut next) = (BTreeSet::from([from]), vec![from]);
        while let Some(at) = next.pop() {
            next.extend(needs[at].iter().filter(|other| seen.insert(**other)));
        }
        seen
    };
    let reached: Vec<BTreeSet<usize>> = (0..needs.len()).map(reached).collect();
    let circle = |at: usize| reached[at].iter().filter(|other| reached[**other].contains(&at)).count();
    (0..needs.len()).map(circle).max().unwrap_or(0)
}

/// As a table.
pub fn table(shapes: &[Shape]) -> String {
    let mut text = String::from(" files   lines  circle  unsafe  clones     pub\n");
    for Shape { path, files, lines, circle, unsafes, clones, publics } in shapes {
        text.push_str(&format!("{files:6} {lines:7} {circle:7} {unsafes:7} {clones:7} {publics:7}  {path}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
        texts.iter().map(|(file, text)| (file.to_string(), text.to_string())).collect()
    }

    #[test]
    fn paths_are_read_with_their_braces() {
        let paths = paths_in("use crate::{a::b, c::{D, e}};\nlet x = super::y::z(self::w);");
        let paths: Vec<String> = paths.iter().map(|path| path.join(" ")).collect();
        assert_eq!(paths, ["crate a b", "crate c D", "crate c e", "super y z", "self w"]);
    }

    #[test]
    fn a_circle_goes_through_modules_and_their_folders() {
        let round = files(&[
            ("lib.rs", "mod a;\nmod b;\nmod d;"),
            ("a.rs", "use crate::b::c::C;"),
            ("b/mod.rs", "pub mod c;"),
            ("b/c.rs", "use super::super::d;\nfn f() { d::g() }"),
            ("d.rs", "// use crate::lost;\npub use crate::a::A;"),
        ]);
        assert_eq!(largest_circle(&needs(&round)), 3);
        let straight = files(&[("lib.rs", "mod a;\nmod b;\nuse a::A;"), ("a.rs", "use crate::b::B;"), ("b.rs", "")]);
        assert_eq!(largest_circle(&needs(&straight)), 1);
    }

    #[test]
    fn unsafe_is_a_word() {
        assert!(is_unsafe("let a = unsafe { b };") && is_unsafe("unsafe impl A for B {}"));
        assert!(!is_unsafe("#![forbid(unsafe_code)]") && !is_unsafe("fn unsafely() {}"));
    }
}
