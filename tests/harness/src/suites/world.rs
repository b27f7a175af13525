//! `--root host`: what people have installed runs in the machine and prints what it prints on the host, and the host stays as it was.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::hostfiles::{Bench, SCRIPTS, Script};
use super::world_programs::{CHANGES, PROGRAMS};
use crate::options::Options;
use crate::report::Tally;

/// Where something would have to be changed by what runs here.
const WATCHED: &[&str] = &["/etc", "/usr", "/opt", "/var/lib/dpkg", "/var/lib/apt", "/home"];
/// Tells the size of folders.
const SIZES_OF_FOLDERS: &str = "long-paths-through-links";
/// What a script has left in its folder, in words.
const LEFT: &str = "\nfind . -type f ! -path '*/.git/*' ! -name '*.db*' | sort | xargs -r md5sum; \
                    find . ! -path '*/.git/*' -printf '%P %y %m %l\\n' | sort";

/// Runs every script on the host and in the machine.
///
/// # Errors
/// A sentence when the tool or a folder is missing.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    if options.is_hosted() {
        tally.skip("world", "the hosted machine has the host's root without an option");
        return Ok(());
    }
    let standard = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    let path = format!("{}:{standard}", std::env::var("PATH").unwrap_or_default());
    let bench = Bench::new(options, "world", 240, path)?.on_root();
    let before = sum_of_host();
    for Script { name, needs, text } in PROGRAMS {
        bench.record(tally, options, name, needs, |name| bench.prints_the_same(name, &[], text));
    }
    for Script { name, needs, text } in SCRIPTS {
        if *name == SIZES_OF_FOLDERS {
            tally.skip(
                &format!("world/files-{name}"),
                "it prints how large a new folder is, which is the file system's own",
            );
            continue;
        }
        let name = format!("files-{name}");
        bench.record(tally, options, &name, needs, |name| bench.prints_the_same(name, &[], &format!("{text}{LEFT}")));
    }
    for (Script { name, needs, text }, expected) in CHANGES {
        bench.record(tally, options, name, needs, |name| {
            let outcome = bench.run_hosted(&bench.fresh(name, "machine")?, &[], text)?;
            let printed = String::from_utf8_lossy(&outcome.stdout);
            if printed == *expected { Ok(()) } else { Err(format!("expected {expected:?}, got {outcome:?}")) }
        });
    }
    bench.record(tally, options, "a-container-image", &["busybox", "sha256sum"], |name| image(&bench, name));
    bench.record(tally, options, "results-come-back", &[], |name| results(&bench, name));
    bench.record(tally, options, "what-is-kept", &[], |name| super::world_kept::what_is_kept(&bench, name));
    bench.record(tally, options, "the-host-is-unchanged", &[], |_| {
        let (differing, count) = difference(&before, &sum_of_host());
        if count == 0 { Ok(()) } else { Err(format!("{count} names changed, among them {differing:?}")) }
    });
    bench.finish();
    Ok(())
}

/// A tree comes back as it was; what is missing does not, and is told.
fn results(bench: &Bench, name: &str) -> Result<(), String> {
    let folder = bench.fresh(name, "machine")?;
    let out = format!("/opt/result:{}", folder.join("result").display());
    let script = "mkdir -p /opt/result/d; cp -r /usr/share/perl5 /opt/result/p; echo text > /opt/result/d/f; ln -s d/f /opt/result/l; \
                  chmod 640 /opt/result/d/f; touch -d @5 /opt/result/d/f; chmod 500 /opt/result/d; exit 3";
    let outcome = bench.run_hosted(&folder, &["--out", &out], script)?;
    let look = "diff -r result/p /usr/share/perl5 && stat -c '%a %Y %s' result/d/f result/d | cut -d' ' -f1,2 | head -1; \
                stat -c %a result/d; readlink result/l; cat result/l; ls -A; chmod -R u+w result";
    let seen = bench.run_host(&folder, look)?;
    let missing = format!("/no/such:{}", folder.join("missing").display());
    let refused = bench.run_hosted(&folder, &["--out", &missing], "true")?;
    let told = String::from_utf8_lossy(&refused.stderr).contains("No such file");
    if outcome.status == 3
        && seen.stdout == b"640 5\n500\nd/f\ntext\nresult\n"
        && told
        && !folder.join("missing").exists()
    {
        return Ok(());
    }
    Err(format!("{outcome:?}; {seen:?}; {refused:?}"))
}

/// An image of two layers in docker's format, made by a shell, says what is run in it, for whom, and where.
fn image(bench: &Bench, name: &str) -> Result<(), String> {
    const MAKE: &str = "mkdir -p a/bin a/etc b/w c/0 c/1; cp $(command -v busybox) a/bin/busybox; cp /bin/true a/bin/gone; \
        printf 'app:x:77:78::/w:/bin/sh\\n' > a/etc/passwd; : > b/.wh.gone; mkdir b/bin; mv b/.wh.gone b/bin; echo mine > b/w/f; \
        printf '#!/bin/busybox sh\\necho $* $FOO; busybox id -u; busybox ls /bin; busybox cat f\\n' > b/run; chmod 755 b/run; \
        tar cf c/0/layer.tar -C a .; tar cf c/1/layer.tar -C b .; sum() { sha256sum $1 | cut -d' ' -f1; }; cd c; \
        printf '{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":{\"Entrypoint\":[\"/run\"],\"Cmd\":[\"given\"],\
        \"Env\":[\"PATH=/bin\",\"FOO=bar\"],\"User\":\"app\",\"WorkingDir\":\"/w\"},\
        \"rootfs\":{\"diff_ids\":[\"sha256:%s\",\"sha256:%s\"]}}' \
        $(sum 0/layer.tar) $(sum 1/layer.tar) > config; mv config $(sum config).json; \
        printf '[{\"Config\":\"%s\",\"Layers\":[\"0/layer.tar\",\"1/layer.tar\"]}]' *.json > m; mv m manifest.json; tar cf ../image.tar .";
    let folder = bench.fresh(name, "host")?;
    let made = bench.run_host(&folder, MAKE)?;
    let image = folder.join("image.tar");
    let outcome = bench.run_image(&folder, &image, &["other"])?;
    let printed = String::from_utf8_lossy(&outcome.stdout);
    if printed == "other bar\n77\nbusybox\nmine\n" { Ok(()) } else { Err(format!("{outcome:?}; {made:?}")) }
}

/// Every name below the folders that count, with its size, mode and time of change.
fn sum_of_host() -> Vec<String> {
    let mut names = Vec::new();
    WATCHED.iter().for_each(|folder| sum_below(Path::new(folder), &mut names));
    names.sort();
    names
}

fn sum_below(folder: &Path, names: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        let (seconds, nanos) = (about.ctime(), about.ctime_nsec());
        names.push(format!("{} {:o} {} {seconds}.{nanos}", path.display(), about.mode(), about.size()));
        if about.is_dir() {
            sum_below(&path, names);
        }
    }
}

/// Some of the names that differ, and how many.
fn difference(before: &[String], after: &[String]) -> (Vec<String>, usize) {
    let new: Vec<&String> = after.iter().filter(|name| before.binary_search(name).is_err()).collect();
    let lost: Vec<&String> = before.iter().filter(|name| after.binary_search(name).is_err()).collect();
    let some = new.iter().chain(&lost).take(5).map(|name| name.to_string()).collect();
    (some, new.len().max(lost.len()))
}
