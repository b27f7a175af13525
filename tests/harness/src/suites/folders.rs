//! Folders of the host that are shared with the virtual machine: what a program does to them must be what Linux does, and the host must
//! see it. The programs and scripts are those of the hosted machine's suite `hostfiles`.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use super::hostfiles::{Bench, SCRIPTS, UNTIL_GO, go, wait_for};
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
    bench.record(tally, options, "names-that-come-and-go", &[], |name| bench.names_that_come_and_go(name));
    bench.record(tally, options, "seen-by-both", &[], |name| seen_by_both(&bench, name));
    bench.record(tally, options, "read-only", &[], |name| read_only(&bench, name));
    bench.record(tally, options, "a-map-that-nobody-put", &["python3"], |name| map_nobody_put(&bench, name));
    bench.finish();
    Ok(())
}

/// What a call has done is there for the other side when it has returned.
fn seen_by_both(bench: &Bench, name: &str) -> Result<(), String> {
    let folder = bench.fresh(name, "shared")?;
    fs::write(folder.join("there"), "one\n").map_err(told)?;
    let script = format!("cat there; echo mine > made; {UNTIL_GO}; cat there; stat -c %s there; cat new; ls");
    let mut command = bench.hosted(&folder, &[], &script);
    let machine = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(told)?;
    let waited = wait_for(&folder.join("made"));
    // The file is made before it is written.
    let made = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        fs::read(folder.join("made")).is_ok_and(|bytes| bytes == b"mine\n")
    });
    fs::write(folder.join("there"), "another\n").map_err(told)?;
    fs::write(folder.join("new"), "new\n").map_err(told)?;
    go(&folder)?;
    let output = machine.wait_with_output().map_err(told)?;
    waited?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    match said.as_str() {
        "one\nanother\n8\nnew\ngo\nmade\nnew\nthere\n" if made => Ok(()),
        _ => Err(format!(
            "the host saw what was made: {made}; the guest saw {said:?}, {:?}",
            output.stderr.escape_ascii()
        )),
    }
}

/// Nothing inside can change it, and the host is as it was; its path has what QEMU's settings end at.
fn read_only(bench: &Bench, name: &str) -> Result<(), String> {
    let folder = bench.fresh(name, "shared")?;
    let shared = folder.join("a,b");
    fs::create_dir_all(&shared).and_then(|()| fs::write(shared.join("f"), "text\n")).map_err(told)?;
    let option = format!("{}:/kept:ro", shared.display());
    let script = "cd /kept; cat f; for c in 'touch n' 'rm f' 'mkdir d' 'chmod 600 f' 'mv f g' 'ln f h' 'touch f' 'truncate -s 0 f'; do \
                  $c 2>&1 | grep -c 'Read-only'; done; echo x >> f; test -w f; echo $?; cat f; ls";
    let outcome = bench.run_hosted(&folder, &["--share", &option], script)?;
    let expected = format!("text\n{}1\ntext\nf\n", "1\n".repeat(8));
    if outcome.stdout != expected.as_bytes() || fs::read(shared.join("f")).map_err(told)? != b"text\n" {
        return Err(format!("{outcome:?}"));
    }
    Ok(())
}

/// The program ends, and with it the machine, without a word about what it has written.
fn map_nobody_put(bench: &Bench, name: &str) -> Result<(), String> {
    let folder = bench.fresh(name, "shared")?;
    fs::write(folder.join("f"), vec![b'.'; 70_000]).map_err(told)?;
    let script = "exec python3 -c '\n\
                  import mmap, os\n\
                  f = open(\"f\", \"r+b\"); m = mmap.mmap(f.fileno(), 70000)\n\
                  m[0:5] = b\"first\"; m[5000:5004] = b\"late\"; m[69996:70000] = b\"last\"\n\
                  os.write(1, os.pread(f.fileno(), 4, 5000)); os._exit(0)'";
    let outcome = bench.run_hosted(&folder, &["--share", "/usr:ro"], script)?;
    let bytes = fs::read(folder.join("f")).map_err(told)?;
    let found = [&bytes[..5], &bytes[5000..5004], &bytes[bytes.len() - 4..]].concat();
    if outcome.stdout == b"late" && found == b"firstlatelast" && bytes.len() == 70_000 {
        return Ok(());
    }
    Err(format!("{outcome:?}; the host has {} bytes and {}", bytes.len(), found.escape_ascii()))
}

fn told(error: std::io::Error) -> String {
    error.to_string()
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
