//! Folders of the host that are shared with the virtual machine: what a program does to them must be what Linux does, and the host must
//! see it. The programs and scripts are those of the hosted machine's suite `hostfiles`.

use super::hostfiles::{Bench, SCRIPTS};
use crate::options::Options;
use crate::programs::{Linking, build, names};
use crate::report::Tally;

/// What scripts use without saying that they need it.
const TOOLS: &[&str] = &[
    "cat", "chmod", "cmp", "cp", "cut", "dd", "diff", "env", "find", "grep", "head", "id", "ln", "ls", "md5sum",
    "mkdir", "mkfifo", "mv", "od", "printf", "rm", "rmdir", "sed", "seq", "sleep", "sort", "stat", "tail", "test",
    "timeout", "touch", "tr", "true", "truncate", "wc", "xargs",
];

/// What fails here and why: nothing is left out silently.
const NOT_HERE: &[(&str, &str)] = &[
    ("files-holes", PROTOCOL),
    ("hostfiles-holes", PROTOCOL),
    ("files-renaming", EXCHANGE),
    ("hostfiles-renames", EXCHANGE),
    ("hostfiles-unlinked", "the server finds a folder by its name: a removed one cannot be opened again by `.`"),
    ("files-folders", SPECIAL),
    ("files-modes", SPECIAL),
    ("files-named_pipe", SPECIAL),
    ("sockets-connections", SPECIAL),
    ("sockets-names_in_folders", SPECIAL),
    ("sockets-names_of_others", SPECIAL),
    ("sockets-names_with_rights", SPECIAL),
    ("sockets-datagrams", SPECIAL),
    ("tmux", SPECIAL),
    ("gpg-agent", SPECIAL),
    ("redis", SPECIAL),
    ("pipes-and-fifos", SPECIAL),
];

const PROTOCOL: &str = "9P has no holes and no fallocate";
const EXCHANGE: &str = "9P cannot exchange names";
const SPECIAL: &str = "QEMU's server makes no fifos and sockets";

/// Runs every check; the hosted machine has the host's own files.
///
/// # Errors
/// A sentence when the tool or a folder is missing.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    if options.is_hosted() {
        tally.skip("folders", "the hosted machine shares nothing: it has the host's own files");
        return Ok(());
    }
    let bench = Bench::new(options, "folders", 90, "/usr/bin:/bin".into())?.shared(TOOLS);
    for source in ["files", "hostfiles", "sockets"] {
        let program = build(options, source, Linking::Static)?;
        let with = program.display().to_string();
        for case in names(&program)? {
            let name = format!("{source}-{case}");
            let command = format!("{} {case}", program.display());
            record(&bench, options, tally, &name, &[], &["--with", &with], &command);
        }
    }
    for script in SCRIPTS {
        // Programs and their libraries are mapped from a folder that is shared, too.
        record(&bench, options, tally, script.name, script.needs, &["--share", "/usr:ro"], script.text);
    }
    bench.finish();
    Ok(())
}

fn record(
    bench: &Bench,
    options: &Options,
    tally: &mut Tally,
    name: &str,
    needs: &[&str],
    words: &[&str],
    script: &str,
) {
    match NOT_HERE.iter().find(|(case, _)| *case == name) {
        Some((_, reason)) => tally.skip(&format!("folders/{name}"), reason),
        None => bench.record(tally, options, name, needs, |name| bench.same(name, words, script)),
    }
}
