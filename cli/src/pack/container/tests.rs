use std::io::Write;
use std::path::{Path, PathBuf};

use bootimage::Node;
use sha2::{Digest, Sha256};
use tar::{EntryType, Header};

use super::blobs::digest_of;
use super::*;

/// An entry of a layer: its name as it is written, its kind, and its bytes or what it leads to.
type Entry<'a> = (&'a str, EntryType, &'a str);

const DIRECTORY: EntryType = EntryType::Directory;
const FILE: EntryType = EntryType::Regular;
const LINK: EntryType = EntryType::Link;
const SYMLINK: EntryType = EntryType::Symlink;

/// Written by hand, because a writer that is polite refuses names that climb.
fn layer(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, kind, text) in entries {
        let mut header = Header::new_gnu();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(1);
        let data = if *kind == FILE { text.as_bytes() } else { b"" };
        header.set_size(data.len() as u64);
        if matches!(*kind, LINK | SYMLINK) {
            header.as_mut_bytes()[157..157 + text.len()].copy_from_slice(text.as_bytes());
        }
        header.set_cksum();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

fn digest(bytes: &[u8]) -> String {
    digest_of(Sha256::new_with_prefix(bytes))
}

/// What docker saves, of these layers.
fn docker(layers: &[Vec<u8>]) -> Vec<u8> {
    let diffs: Vec<String> = layers.iter().map(|layer| format!("\"{}\"", digest(layer))).collect();
    let process = r#"{"Entrypoint":["/run"],"Cmd":["x"],"Env":["A=b"],"User":"7","WorkingDir":"/w"}"#;
    let config = format!(
        r#"{{"architecture":"amd64","os":"linux","config":{process},"rootfs":{{"diff_ids":[{}]}}}}"#,
        diffs.join(",")
    );
    let name = format!("{}.json", &digest(config.as_bytes())[7..]);
    let names: Vec<String> = (0..layers.len()).map(|number| format!("\"{number}/layer.tar\"")).collect();
    let manifest = format!(r#"[{{"Config":"{name}","RepoTags":[],"Layers":[{}]}}]"#, names.join(","));
    let mut builder = tar::Builder::new(Vec::new());
    let mut add = |name: &str, bytes: &[u8]| {
        let mut header = Header::new_gnu();
        header.set_size(bytes.len() as u64);
        builder.append_data(&mut header, name, bytes).unwrap();
    };
    layers.iter().enumerate().for_each(|(number, layer)| add(&format!("{number}/layer.tar"), layer));
    add(&name, config.as_bytes());
    add("manifest.json", manifest.as_bytes());
    builder.into_inner().unwrap()
}

fn opened(image: &[u8]) -> Result<Container, Failure> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(image).unwrap();
    Container::open(file.path())
}

fn laid(layers: &[Vec<u8>]) -> Result<Tree, Failure> {
    let mut tree = Tree::with_bytes_max(u64::MAX);
    crate::pack::skeleton::add_root(&mut tree)?;
    opened(&docker(layers))?.fill(&mut tree)?;
    Ok(tree)
}

fn paths(tree: &Tree) -> Vec<String> {
    tree.plan().iter().map(|(path, ..)| String::from_utf8_lossy(path).into_owned()).collect()
}

#[test]
fn an_image_says_what_to_run() {
    let container = opened(&docker(&[layer(&[("run", FILE, "x")])])).unwrap();
    assert_eq!(container.argv(&[]).unwrap(), ["/run", "x"]);
    assert_eq!(container.argv(&["y".into(), "z".into()]).unwrap(), ["/run", "y", "z"]);
    assert_eq!((container.env(), container.user()), (&["A=b".to_string()][..], Some("7")));
    assert_eq!(container.cwd(), Some("/w".into()));
}

#[test]
fn layers_hide_replace_and_link() {
    let below = layer(&[
        ("d", DIRECTORY, ""),
        ("d/a", FILE, "a"),
        ("d/b", FILE, "b"),
        ("gone", FILE, "x"),
        ("usr", DIRECTORY, ""),
        ("lib", SYMLINK, "usr"),
        ("one", FILE, "linked"),
        ("two", LINK, "one"),
        ("was-folder", DIRECTORY, ""),
        ("was-folder/f", FILE, "f"),
    ]);
    // What is opaque says so behind what it holds.
    let over = layer(&[
        ("d/c", FILE, "c"),
        ("d/.wh..wh..opq", FILE, ""),
        (".wh.gone", FILE, ""),
        ("lib/through", FILE, "t"),
        (".wh.one", FILE, ""),
        ("was-folder", FILE, "now a file"),
        ("three", LINK, "/two"),
    ]);
    let tree = laid(&[below, over]).unwrap();
    assert_eq!(paths(&tree), ["/", "/d", "/d/c", "/lib", "/three", "/two", "/usr", "/usr/through", "/was-folder"]);
    let is_file = |path: &str| matches!(tree.plan().get(path.as_bytes()), Some((_, Node::File { .. })));
    assert!(is_file("/two") && is_file("/was-folder") && !is_file("/three"));
}

#[test]
fn names_that_lead_out_are_refused() {
    let bad: &[&[Entry<'_>]] = &[
        &[("../out", FILE, "x")],
        &[("a/../../out", FILE, "x")],
        &[("in", LINK, "../../etc/passwd")],
        &[("in", LINK, "nothing")],
        &[("../.wh.etc", FILE, "")],
    ];
    for entries in bad {
        let failure = laid(&[layer(entries)]).err().unwrap_or_else(|| panic!("{entries:?}"));
        assert!(!failure.error.contains('\n') && failure.error.contains("layer"), "{failure}");
    }
    // An absolute name, or link, is one of the machine's.
    let tree =
        laid(&[layer(&[("/etc", DIRECTORY, ""), ("/etc/x", FILE, "x"), ("to", SYMLINK, "/etc/../../x")])]).unwrap();
    assert_eq!(paths(&tree), ["/", "/etc", "/etc/x", "/to"]);
    // What is put behind a link that climbs lands in the machine.
    let tree = laid(&[layer(&[("up", SYMLINK, "../../.."), ("up/x", FILE, "x")])]).unwrap();
    assert_eq!(paths(&tree), ["/", "/up", "/x"]);
}

#[test]
fn what_is_damaged_is_told_in_a_line() {
    let good = docker(&[layer(&[("run", FILE, "some text")]), layer(&[("other", FILE, "more")])]);
    assert!(opened(&good).is_ok());
    let mut told = 0;
    // Each byte of what is no padding, changed.
    for at in (0..good.len()).filter(|at| good[*at] != 0) {
        let mut bad = good.clone();
        bad[at] ^= 1;
        let outcome = opened(&bad).and_then(|container| container.fill(&mut Tree::with_bytes_max(u64::MAX)));
        if let Err(failure) = outcome {
            assert!(!failure.error.contains('\n'), "{at}: {failure}");
            told += 1;
        }
    }
    assert!(told > 500, "only {told} were told");
    for end in (0..good.len()).step_by(97) {
        if let Err(failure) = opened(&good[..end]) {
            assert!(!failure.error.contains('\n'), "{end}: {failure}");
        }
    }
    assert!(opened(b"").is_err() && opened(b"text").is_err() && opened(&good[..1000]).is_err());
}

#[test]
fn an_oci_layout_is_read_and_its_digests_hold() {
    let folder = tempfile::tempdir().unwrap();
    let put = |bytes: &[u8]| {
        let digest = digest(bytes);
        let path: PathBuf = folder.path().join("blobs/sha256").join(&digest[7..]);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        (format!(r#""digest":"{digest}","size":{}"#, bytes.len()), path)
    };
    let tar = layer(&[("run", FILE, "x")]);
    let config = format!(r#"{{"architecture":"amd64","os":"linux","rootfs":{{"diff_ids":["{}"]}}}}"#, digest(&tar));
    let (layer_words, layer_path) = put(&tar);
    let (config_words, _) = put(config.as_bytes());
    let manifest = format!(r#"{{"config":{{{config_words}}},"layers":[{{{layer_words}}}]}}"#);
    let (manifest_words, _) = put(manifest.as_bytes());
    let other = r#"{"digest":"sha256:x","size":1,"platform":{"architecture":"arm64","os":"linux"}}"#;
    let index = format!(r#"{{"manifests":[{other},{{{manifest_words}}}]}}"#);
    std::fs::write(folder.path().join("index.json"), index).unwrap();
    assert!(Container::open(folder.path()).is_ok());
    assert!(Container::open(folder.path()).unwrap().argv(&[]).is_err());
    let mut other = tar.clone();
    other[600] ^= 1;
    std::fs::write(&layer_path, other).unwrap();
    let failure = Container::open(folder.path()).err().unwrap();
    assert!(failure.error.contains("is said to be"), "{failure}");
    std::fs::write(&layer_path, &tar[..512]).unwrap();
    assert!(Container::open(folder.path()).err().unwrap().error.contains("512 bytes instead of"));
    std::fs::remove_file(&layer_path).unwrap();
    assert!(Container::open(folder.path()).is_err());
    assert!(Container::open(Path::new("/nowhere")).is_err());
}
