//! The host's files as a hosted program sees them: what it does to them in a folder on disk must be what Linux does, and
//! other processes of the host must see it at once, its locks included.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::compare::{compare, difference};
use crate::options::Options;
use crate::process::{self, Outcome};
use crate::programs::{Linking, build, names};
use crate::report::Tally;
use crate::root::find_program;

/// A script for `sh`, and the programs that it needs. Both sides run it in a fresh folder; what it prints and what it
/// leaves there must be the same.
pub(super) struct Script {
    pub name: &'static str,
    pub needs: &'static [&'static str],
    pub text: &'static str,
}

pub(super) const SCRIPTS: &[Script] = &[
    Script {
        name: "sqlite",
        needs: &["sqlite3"],
        text: "sqlite3 x.db 'create table t(a, b); create index i on t(a);'\n\
               for n in 1 2 3 4 5; do sqlite3 x.db \"insert into t values($n, hex(zeroblob($n * 500)))\"; done\n\
               sqlite3 x.db 'begin; delete from t where a = 3; rollback; select a, length(b) from t; pragma integrity_check'",
    },
    Script {
        name: "sqlite-wal",
        needs: &["sqlite3"],
        text: "sqlite3 x.db 'pragma journal_mode=wal; create table t(a); insert into t values(1), (2)'\n\
               sqlite3 x.db 'insert into t select a + 10 from t; select sum(a) from t; pragma integrity_check'",
    },
    Script {
        name: "python",
        needs: &["python3"],
        text: "python3 -c '\n\
               import os, mmap\n\
               os.makedirs(\"a/b\"); open(\"a/b/f\", \"w\").write(\"line\\n\" * 1000)\n\
               with open(\"a/b/f\", \"r+b\") as f:\n\
               \x20   m = mmap.mmap(f.fileno(), 0); m[0:4] = b\"LINE\"; m.flush(); m.close()\n\
               print(open(\"a/b/f\").read()[:9], sorted(os.listdir(\"a\")), os.path.basename(os.getcwd()) != \"\")\n\
               os.rename(\"a/b/f\", \"g\"); os.symlink(\"g\", \"l\"); print(os.stat(\"l\").st_size, os.readlink(\"l\"))\n\
               '",
    },
    Script {
        name: "perl",
        needs: &["perl"],
        text: "perl -e 'open F, \">f\"; print F \"$_\\n\" for 1..5000; close F; open F, \"+<f\"; seek F, 100, 0;\n\
               print scalar <F>; print F \"here\"; close F; print -s \"f\", \"\\n\"; unlink \"none\" or print \"$!\\n\"'",
    },
    Script {
        name: "lua",
        needs: &["lua5.4"],
        text: "lua5.4 -e 'local f = io.open(\"f\", \"w+\") f:write((\"x\"):rep(70000)) f:seek(\"set\", 5) f:write(\"yes\")\n\
               f:seek(\"set\", 0) print(#f:read(\"a\")) f:close() print(os.rename(\"f\", \"g\"), os.remove(\"f\"))'",
    },
    Script {
        name: "gawk",
        needs: &["gawk"],
        text: "seq 1000 > n; gawk '{ s += $1; print $1 * 2 > \"even\" } END { print s }' n; tail -n 1 even",
    },
    Script {
        name: "xz-and-tar",
        needs: &["tar", "xz"],
        text: "mkdir -p d/e; seq 20000 > d/n; ln -s n d/l; ln d/n d/h; echo x > d/e/x; chmod 640 d/e/x\n\
               tar cf d.tar --sort=name --mtime=@1 --owner=0 --group=0 --numeric-owner d; xz -k d.tar; mkdir out\n\
               tar xJf d.tar.xz -C out\n\
               diff -r d out/d && md5sum d.tar; xz -l d.tar.xz > /dev/null; rm -r d",
    },
    Script {
        name: "tools",
        needs: &["find", "sed", "cp", "sort"],
        text: "mkdir -p s/t; seq 50 > s/a; cp -a s c; sed -i 's/1/one/' c/a; find . -type f | sort; mv c s/t/c; touch -d @5 s/a\n\
               stat -c '%n %a %F %s %h %Y' s/a; dd if=s/a of=o bs=7 seek=3 2> /dev/null; cmp s/a o\n\
               truncate -s 100000 o; rm -rf s/t; ls -R",
    },
    Script {
        name: "script-with-interpreter",
        needs: &[],
        text: "printf '#!/bin/sh\\necho \"$0 $1\"\\n' > run; ./run x; echo $?; chmod +x run; ./run y; cp /bin/true t; ./t; echo $?\n\
               cp run 'odd name'; './odd name' z",
    },
    Script {
        name: "names-of-any-bytes",
        needs: &["od"],
        text: "n=$(printf 'a\\377\\001b'); echo x > \"$n\"; ls | od -c; cat \"$n\"; mkdir \"$n.d\"; mv \"$n\" \"$n.d/\"; rm -r \"$n.d\"\n\
               ln -s l l; cat l; ln -s m n; ln -s n m; cat m 2>&1; ls -l | wc -l",
    },
    Script {
        name: "long-paths-through-links",
        needs: &["stat"],
        text: "mkdir -p a/b/c/d x/c/d e; echo one > a/b/c/d/f; echo other > x/c/d/f; ln -s ../x e/x; ln -s /nowhere gone\n\
               see() { stat -c '%n %F %s' a/b/c/d/f 2>&1; test -e a/b/c/d/f; echo $?; test -e a/b/c/d/none; echo $?; }\n\
               see; mv a/b a/was; see; ln -s ../x a/b; see; stat -c '%n %F %s' e/x/c/d/f e/x/c/d e/x gone; rm a/b; mv a/was a/b; see\n\
               rm -r a/b/c; echo file > a/b/c; see; stat -L -c %F e/x a/b/./c a/b/../b/c; stat -c %F a/b/c/; test -e gone; echo $?",
    },
    Script {
        name: "a-large-folder",
        needs: &["seq"],
        text: "mkdir d; cd d; seq 12000 | xargs touch; ls | wc -l; ls | sort -n | tail -n 1; cd ..; rm -r d; ls",
    },
    Script {
        name: "tmux",
        needs: &["tmux"],
        text: "export TERM=xterm LC_ALL=C.UTF-8; t() { tmux -f /dev/null -S $PWD/socket \"$@\"; }\n\
               t new-session -d -s one 'cat > typed; tmux wait-for -S over'; t new-window -d -t one 'sleep 1000'\n\
               t list-windows -F '#{window_index}'; stat -c %F socket; t has-session -t two 2>&1\n\
               t send-keys -t one:0 words Enter C-d; t wait-for over; cat typed\n\
               t kill-server; rm -f socket",
    },
    Script {
        name: "gpg-agent",
        needs: &["gpg", "gpg-agent", "gpg-connect-agent", "gpgconf"],
        text: "mkdir -m 700 g; export GNUPGHOME=$PWD/g; gpg-connect-agent 'GETINFO version' /bye | tail -n 1; stat -c %F g/S.gpg-agent\n\
               gpg --batch --quiet --passphrase '' --quick-generate-key t@example.org ed25519 sign never 2> e; echo $?; rm e\n\
               echo text | gpg --batch --quiet --sign > s 2> /dev/null; gpg --quiet --decrypt s 2> /dev/null\n\
               gpgconf --kill all; rm -rf g s",
    },
    Script {
        name: "redis",
        needs: &["redis-server", "redis-cli"],
        text: "redis-server --port 0 --unixsocket $PWD/socket --save '' --dir . --daemonize no > log & n=0\n\
               until redis-cli -s socket ping 2> /dev/null; do n=$((n + 1)); [ $n -lt 400 ] || break; sleep 0.02; done | tail -n 1\n\
               r() { redis-cli -s socket \"$@\"; }; r set key value; r get key; r incrby n 41; r incr n; stat -c '%F %a' socket\n\
               cd /; redis-cli -s $OLDPWD/socket keys '*' | sort; cd $OLDPWD; r shutdown nosave; wait; ls socket 2>&1; rm log",
    },
    Script {
        name: "setpriv",
        needs: &["setpriv"],
        text: "setpriv --reuid=nobody --clear-groups id; setpriv --dump | grep -iv capab\n\
               setpriv --bounding-set=-all,+kill grep Cap /proc/self/status\n\
               setpriv --reuid=1234 --regid=1234 --clear-groups --inh-caps=+kill --ambient-caps=+kill \\\n\
               grep -E 'CapInh|CapAmb|CapEff' /proc/self/status\n\
               setpriv --securebits=+noroot --inh-caps=-all grep -E 'CapPrm|CapEff' /proc/self/status\n\
               setpriv --no-new-privs setpriv --dump | grep new",
    },
    Script {
        name: "pipes-and-fifos",
        needs: &["mkfifo"],
        text: "mkfifo p; (cat < p > out) & echo through > p; wait; cat out; rm p\n\
               { echo a; echo b >&2; } > o 2> e; cat e o >> both; cat both",
    },
];

/// Runs every check.
///
/// # Errors
/// A sentence when the tool or a folder is missing.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    let bench = Bench::new(options, "hostfiles", 30, "/usr/bin:/bin".into())?;
    for source in ["files", "hostfiles", "sockets"] {
        let program = build(options, source, Linking::Static)?;
        // A checkout below /tmp is hidden by the folder in memory.
        let with = program.display().to_string();
        for case in names(&program)? {
            let command = format!("{} {case}", program.display());
            bench.record(tally, options, &format!("{source}-{case}"), &[], |name| {
                bench.same(name, &["--with", &with], &command)
            });
        }
    }
    for script in SCRIPTS {
        bench.record(tally, options, script.name, script.needs, |name| bench.same(name, &[], script.text));
    }
    let sqlite: &[&str] = &["sqlite3"];
    bench.record(tally, options, "a-lock-of-the-host", sqlite, |name| bench.lock_of_the_host(name));
    bench.record(tally, options, "a-lock-against-the-host", sqlite, |name| bench.lock_against_the_host(name));
    bench.record(tally, options, "wal-shared-with-the-host", sqlite, |name| bench.shared_wal(name));
    bench.record(tally, options, "a-map-shared-with-the-host", &["python3"], |name| bench.shared_map(name));
    bench.record(tally, options, "names-that-come-and-go", &[], |name| bench.names_that_come_and_go(name));
    bench.record(tally, options, "directories-that-move", &["python3"], |name| bench.directories_that_move(name));
    bench.record(tally, options, "few-descriptors-on-the-host", &[], |name| bench.few_descriptors(name));
    bench.record(tally, options, "memory-folders", &[], |name| bench.memory_folders(name));
    bench.record(tally, options, "laid-over", &[], |name| bench.laid_over(name));
    bench.record(tally, options, "an-ordinary-user", &["setpriv"], |name| bench.ordinary_user(name));
    bench.finish();
    Ok(())
}

/// Where the tests happen: a fresh folder on disk, and the tool.
pub(super) struct Bench {
    suite: &'static str,
    /// Where programs are found.
    path: String,
    /// The longest that a case may take on one side.
    seconds: u32,
    folder: PathBuf,
    tool: PathBuf,
    limit: std::time::Duration,
    keep: bool,
    way: Way,
}

/// How the tool lets a program see the folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Hosted,
    /// A virtual machine to which the folder is shared, and which has these programs.
    Shared(&'static [&'static str]),
    /// A virtual machine on the host's root: what it makes is in its memory.
    Root,
}

impl Bench {
    pub fn new(options: &Options, suite: &'static str, seconds: u32, path: String) -> Result<Bench, String> {
        let folder = options.repo.join(format!("target/synth-tests/{suite}-{}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        let tool = options.repo.join(&options.runner[0]);
        if !tool.is_file() {
            return Err(format!("{} is not there: ./synth build", tool.display()));
        }
        let limit = options.case_timeout.max(std::time::Duration::from_secs(u64::from(seconds) + 10));
        Ok(Bench { suite, path, seconds, folder, tool, limit, keep: options.keep, way: Way::Hosted })
    }

    /// The same for virtual machines that have `programs`.
    pub fn shared(self, programs: &'static [&'static str]) -> Bench {
        Bench { way: Way::Shared(programs), ..self }
    }

    /// The same for virtual machines on the host's root.
    pub fn on_root(self) -> Bench {
        Bench { way: Way::Root, ..self }
    }

    pub fn finish(&self) {
        if !self.keep {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    pub fn record(
        &self,
        tally: &mut Tally,
        options: &Options,
        name: &str,
        needs: &[&str],
        check: impl FnOnce(&str) -> Result<(), String>,
    ) {
        let full = format!("{}/{name}", self.suite);
        if !options.selects(&full) {
            return;
        }
        match needs.iter().find(|program| !self.has(program)) {
            Some(program) => tally.skip(&full, &format!("{program} is not on this host")),
            None => tally.record(&full, check(name)),
        }
    }

    fn has(&self, program: &str) -> bool {
        find_program(program).is_some()
            || !program.contains('/') && self.path.split(':').any(|folder| Path::new(folder).join(program).is_file())
    }

    /// A fresh folder for one side of a case.
    pub(super) fn fresh(&self, name: &str, side: &str) -> Result<PathBuf, String> {
        let folder = self.folder.join(name).join(side);
        fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        Ok(folder)
    }

    /// The tool, to run `sh -c SCRIPT` in `folder`.
    pub(super) fn hosted(&self, folder: &Path, options: &[&str], script: &str) -> Command {
        let mut command = Command::new(&self.tool);
        command
            .args(["run", "--timeout", &self.seconds.to_string()])
            .args(self.words(folder))
            .args(options)
            .args(["/bin/sh", "-c", script]);
        self.found(settled(command, folder))
    }

    /// What the tool is told of the folder.
    fn words(&self, folder: &Path) -> Vec<OsString> {
        let programs = match self.way {
            Way::Hosted => return vec!["--hosted".into()],
            Way::Root => return ["--root", "host", "--env", "LC_ALL=C", "--env", "TZ=UTC"].map(OsString::from).into(),
            Way::Shared(programs) => programs,
        };
        let there = programs.iter().filter(|program| self.has(program));
        let packed = there.flat_map(|program| ["--with", program]).map(OsString::from);
        ["--share".into(), folder.into(), "--env".into(), "LC_ALL=C".into()].into_iter().chain(packed).collect()
    }

    fn found(&self, mut command: Command) -> Command {
        command.env("PATH", &self.path);
        command
    }

    pub(super) fn run_hosted(&self, folder: &Path, options: &[&str], script: &str) -> Result<Outcome, String> {
        process::run(self.hosted(folder, options, script), Vec::new(), self.limit)
    }

    /// The tool, to run an image as it says, with these arguments.
    pub(super) fn run_image(&self, folder: &Path, image: &Path, words: &[&str]) -> Result<Outcome, String> {
        let mut command = Command::new(&self.tool);
        command.args(["run", "--timeout", &self.seconds.to_string(), "--image"]).arg(image).args(words);
        process::run(self.found(settled(command, folder)), Vec::new(), self.limit)
    }

    pub(super) fn run_host(&self, folder: &Path, script: &str) -> Result<Outcome, String> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        process::run(self.found(settled(command, folder)), Vec::new(), self.limit)
    }

    /// The script prints the same on both sides, and the machine leaves nothing on the host.
    pub fn prints_the_same(&self, name: &str, options: &[&str], script: &str) -> Result<(), String> {
        let (host, machine) = (self.fresh(name, "host")?, self.fresh(name, "machine")?);
        // Python on the host would keep what it compiles, in the host's own folders, where it never ran before.
        let expected = self.run_host(&host, &format!("export PYTHONDONTWRITEBYTECODE=1\n{script}"))?;
        let actual = self.run_hosted(&machine, options, script)?;
        compare(&expected, &actual, (&host, &machine))?;
        let left = snapshot(&machine);
        if left.is_empty() { Ok(()) } else { Err(format!("the host has got {left}")) }
    }

    /// The script prints and leaves the same on both sides.
    pub fn same(&self, name: &str, options: &[&str], script: &str) -> Result<(), String> {
        let (host, hosted) = (self.fresh(name, "host")?, self.fresh(name, "hosted")?);
        let expected = self.run_host(&host, script)?;
        let actual = self.run_hosted(&hosted, options, script)?;
        compare(&expected, &actual, (&host, &hosted))?;
        let (left, right) = (snapshot(&host), snapshot(&hosted));
        if left == right { Ok(()) } else { Err(difference("the folder", left.as_bytes(), right.as_bytes())) }
    }

    fn lock_of_the_host(&self, name: &str) -> Result<(), String> {
        let folder = self.fresh(name, "hosted")?;
        said(&self.run_host(&folder, "sqlite3 x.db 'create table t(a)'")?, "", 0)?;
        let mut holder = settled(Command::new("/bin/sh"), &folder);
        let script =
            format!("(echo 'begin exclusive;'; echo '.shell touch held'; {UNTIL_GO}; echo 'commit;') | sqlite3 x.db");
        let holder = holder.args(["-c", &script]).spawn().map_err(|error| error.to_string())?;
        let waited = wait_for(&folder.join("held"));
        let refused = self.run_hosted(&folder, &[], "sqlite3 x.db 'insert into t values(1)'");
        go(&folder)?;
        ended(holder)?;
        waited?;
        let refused = refused?;
        if refused.status == 0 || !refused.stderr.windows(6).any(|text| text == b"locked") {
            return Err(format!("the host's lock did not count: {refused:?}"));
        }
        said(&self.run_hosted(&folder, &[], "sqlite3 x.db 'insert into t values(2); select a from t'")?, "2\n", 0)
    }

    fn lock_against_the_host(&self, name: &str) -> Result<(), String> {
        let folder = self.fresh(name, "hosted")?;
        said(&self.run_host(&folder, "sqlite3 x.db 'create table t(a)'")?, "", 0)?;
        let script = format!(
            "(echo 'begin exclusive;'; echo 'insert into t values(1);'; echo '.shell touch held'; {UNTIL_GO}; echo 'commit;') \
             | sqlite3 x.db"
        );
        let holder = self.hosted(&folder, &[], &script).spawn().map_err(|error| error.to_string())?;
        let waited = wait_for(&folder.join("held"));
        let refused = self.run_host(&folder, "sqlite3 x.db 'insert into t values(2)'");
        go(&folder)?;
        ended(holder)?;
        waited?;
        if refused?.status == 0 {
            return Err("the host wrote where Synthesis held an exclusive lock".into());
        }
        said(&self.run_host(&folder, "sqlite3 x.db 'select a from t; pragma integrity_check'")?, "1\nok\n", 0)
    }

    /// Reader on the host, writer on Synthesis, one write-ahead log: its index is a shared map.
    fn shared_wal(&self, name: &str) -> Result<(), String> {
        let folder = self.fresh(name, "hosted")?;
        let make = "sqlite3 x.db 'pragma journal_mode=wal; create table t(a); insert into t values(1)'";
        said(&self.run_host(&folder, make)?, "wal\n", 0)?;
        let mut reader = settled(Command::new("/bin/sh"), &folder);
        let script = format!(
            "(echo 'begin; select count(*) from t;'; echo '.shell touch held'; {UNTIL_GO}; \
             echo 'select count(*) from t; commit; select count(*) from t;') | sqlite3 x.db > seen"
        );
        let reader = reader.args(["-c", &script]).spawn().map_err(|error| error.to_string())?;
        let waited = wait_for(&folder.join("held"));
        let write = "for n in 1 2 3; do sqlite3 x.db 'insert into t select a + 1 from t'; done; sqlite3 x.db 'select count(*) from t'";
        let written = self.run_hosted(&folder, &[], write);
        go(&folder)?;
        ended(reader)?;
        waited?;
        said(&written?, "8\n", 0)?;
        // The reader saw its own moment until its transaction ended.
        let seen = fs::read_to_string(folder.join("seen")).unwrap_or_default();
        if seen != "1\n1\n8\n" {
            return Err(format!("the host's reader saw {seen:?}"));
        }
        said(&self.run_host(&folder, "sqlite3 x.db 'pragma integrity_check'")?, "ok\n", 0)
    }

    /// Two processes, one on each side, answer each other through a shared map.
    fn shared_map(&self, name: &str) -> Result<(), String> {
        let folder = self.fresh(name, "hosted")?;
        fs::write(folder.join("f"), [0; 4096]).map_err(|error| error.to_string())?;
        let half = |mine: u32, other: u32| {
            format!(
                "python3 -c 'import mmap, time\nf = open(\"f\", \"r+b\")\nm = mmap.mmap(f.fileno(), 4096)\nfor n in range(1, 50):\n\
                 \x20 if {mine} == 0: m[0] = n\n\x20 while m[{other}] != n: time.sleep(0.001)\n\x20 m[{mine}] = n\nprint(m[0], m[1])'"
            )
        };
        let mut host = settled(Command::new("/bin/sh"), &folder);
        let host = host.args(["-c", &format!("timeout 20 {}", half(1, 0))]);
        let host = host.stdout(std::process::Stdio::piped()).spawn().map_err(|error| error.to_string())?;
        let outcome = self.run_hosted(&folder, &[], &half(0, 1));
        let output = host.wait_with_output().map_err(|error| error.to_string())?;
        said(&outcome?, "49 49\n", 0)?;
        if output.stdout == b"49 49\n" { Ok(()) } else { Err(format!("the host's half: {output:?}")) }
    }

    /// Another process makes and removes names all the time: calls fail cleanly or work, and the kernel lives.
    pub(super) fn names_that_come_and_go(&self, name: &str) -> Result<(), String> {
        let folder = self.fresh(name, "hosted")?;
        let churn = "while ! [ -e stop ]; do mkdir -p a/b; echo x > a/b/f; mv a/b/f a/g; rm -rf a; done 2> /dev/null";
        let mut other = settled(Command::new("/bin/sh"), &folder);
        let other = other.args(["-c", churn]).spawn().map_err(|error| error.to_string())?;
        let script = "n=0; while [ $n -lt 150 ]; do n=$((n + 1)); cat a/b/f a/g; ls -R a; cd a/b && cd ../..; \
                      echo y > a/b/f; find . -type f; stat a/b/f; done > out 2>&1; grep -ic stale out; echo alive";
        let outcome = self.run_hosted(&folder, &[], script);
        let _ = fs::write(folder.join("stop"), "");
        ended(other)?;
        said(&outcome?, "0\nalive\n", 0)
    }

    /// The host gives the machine few descriptors: a program that wants more gets an error and goes on.
    fn few_descriptors(&self, name: &str) -> Result<(), String> {
        let folder = self.fresh(name, "hosted")?;
        let inner = "mkdir -p $(seq -s / 1 200); i=0; while [ $i -lt 300 ]; do i=$((i + 1)); mkdir d$i; ls d$i; done; \
                     ls | wc -l; find . -type d | wc -l";
        let script =
            format!("ulimit -n 96; exec {} run --hosted --timeout 30 /bin/sh -c '{inner}'", self.tool.display());
        let outcome = self.run_host(&folder, &script)?;
        let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
        // The chain of 200 folders needs a descriptor each while it is walked.
        if text.starts_with("301\n") { Ok(()) } else { Err(format!("{outcome:?}")) }
    }

    fn memory_folders(&self, name: &str) -> Result<(), String> {
        let folder = self.fresh(name, "hosted")?;
        fs::create_dir_all(folder.join("kept")).map_err(|error| error.to_string())?;
        fs::write(folder.join("kept/old"), "old\n").map_err(|error| error.to_string())?;
        let mark = format!("/tmp/synth-hostfiles-{}", std::process::id());
        let script = format!(
            "cat kept/old; echo new > kept/new; rm kept/old; ls kept; echo x > {mark}; cat {mark}; echo y > seen"
        );
        let outcome = self.run_hosted(&folder, &["--memory", "kept"], &script)?;
        said(&outcome, "old\nnew\nx\n", 0)?;
        let expected = [("kept/old", true), ("kept/new", false), ("seen", true)];
        match expected.iter().find(|(file, there)| folder.join(file).exists() != *there) {
            None if !Path::new(&mark).exists() => Ok(()),
            found => Err(format!("the host saw a change in memory, or not one of its own: {found:?}")),
        }
    }

    fn laid_over(&self, name: &str) -> Result<(), String> {
        let folder = self.fresh(name, "hosted")?;
        fs::create_dir_all(folder.join("d")).map_err(|error| error.to_string())?;
        for (file, text) in [("a", "over\n"), ("d/b", "below\n"), ("d/c", "other\n")] {
            fs::write(folder.join(file), text).map_err(|error| error.to_string())?;
        }
        let with = format!("{}:{}", folder.join("a").display(), folder.join("d/b").display());
        let nowhere = format!("{}:{}", folder.join("a").display(), folder.join("d/new/x").display());
        let script = "cat d/b d/c d/new/x; ls d; cd d/new/..; ls -d b; echo changed > b; rm b; echo $?; rm c; ls";
        let outcome = self.run_hosted(&folder, &["--with", &with, "--with", &nowhere], script)?;
        let expected = "over\nother\nover\nb\nc\nnew\nb\n1\nb\nnew\n";
        said(&Outcome { stderr: Vec::new(), ..outcome }, expected, 0)?;
        let left = fs::read_to_string(folder.join("d/b")).unwrap_or_default();
        if left == "below\n" && !folder.join("d/c").exists() { Ok(()) } else { Err(format!("the host has {left:?}")) }
    }

    /// What the host refuses its user, it refuses the program; what the user makes is the user's.
    fn ordinary_user(&self, name: &str) -> Result<(), String> {
        let is_root = fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0);
        // The tool must be where another user may go.
        let place = std::env::temp_dir().join(format!("synth-hostfiles-{}", std::process::id()));
        let folder = if is_root { place.clone() } else { self.fresh(name, "hosted")? };
        let made = self.prepare_user(&folder, is_root);
        let script = "id -u; cat secret; echo x > readonly; echo x > own; ls -n own | cut -d' ' -f3; mkdir shut; echo y > shut/f; \
                      chmod 0 shut; cat shut/f; chmod 700 shut; cat shut/f; chown 0 own; rm /etc/hostname; echo $?";
        let outcomes = made.and_then(|()| {
            let words = if is_root { "setpriv --reuid 65534 --regid 65534 --clear-groups" } else { "env" };
            let on_host = self.run_host(
                &folder,
                &format!("exec {words} /bin/sh -c \"$SCRIPT\"").replace("\"$SCRIPT\"", &quoted(script)),
            )?;
            let _ = fs::remove_dir_all(folder.join("shut"));
            let _ = fs::remove_file(folder.join("own"));
            let tool = format!(
                "exec {words} ./bin/synth run --hosted --kernel bin/kernel --timeout 30 /bin/sh -c {}",
                quoted(script)
            );
            Ok((on_host, self.run_host(&folder, &tool)?))
        });
        let _ = fs::remove_dir_all(&place);
        let (expected, actual) = outcomes?;
        compare(&expected, &actual, (&folder, &folder))
    }

    fn prepare_user(&self, folder: &Path, is_root: bool) -> Result<(), String> {
        let tell = |error: std::io::Error| error.to_string();
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder.join("bin")).map_err(tell)?;
        fs::copy(&self.tool, folder.join("bin/synth")).map_err(tell)?;
        let image = self
            .tool
            .ancestors()
            .nth(2)
            .unwrap_or(Path::new("target"))
            .join("hosted/x86_64-unknown-linux-gnu/release/synthesis-hosted");
        fs::copy(image, folder.join("bin/kernel")).map_err(tell)?;
        for (file, mode) in [("secret", 0o600), ("readonly", 0o444)] {
            fs::write(folder.join(file), "text\n").map_err(tell)?;
            let mode = if is_root { mode } else { mode & 0o444 & !0o400 };
            fs::set_permissions(folder.join(file), fs::Permissions::from_mode(mode)).map_err(tell)?;
        }
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).map_err(tell)
    }
}

fn quoted(script: &str) -> String {
    format!("'{}'", script.replace('\'', "'\\''"))
}

fn settled(mut command: Command, folder: &Path) -> Command {
    let environment = [("PATH", "/usr/bin:/bin"), ("LC_ALL", "C"), ("TZ", "UTC"), ("HOME", "/")];
    command.current_dir(folder).env_clear().envs(environment);
    // Which kernel the tool takes.
    command.envs(std::env::var_os("SYNTH_KERNELS").map(|kernels| ("SYNTH_KERNELS", kernels)));
    command
}

pub(super) fn said(outcome: &Outcome, stdout: &str, status: i32) -> Result<(), String> {
    if outcome.stdout == stdout.as_bytes() && outcome.status == status && outcome.stderr.is_empty() {
        return Ok(());
    }
    Err(format!("expected {stdout:?} and status {status}, got {outcome:?}"))
}

/// In a script: waits until it is told to go on, half a minute at most.
pub(super) const UNTIL_GO: &str = "n=0; while ! [ -e go ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n+1)); done";

/// Tells such a script.
pub(super) fn go(folder: &Path) -> Result<(), String> {
    fs::write(folder.join("go"), "").map_err(|error| error.to_string())
}

pub(super) fn wait_for(file: &Path) -> Result<(), String> {
    for _ in 0..1000 {
        if file.exists() {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Err(format!("waited five seconds for {}", file.display()))
}

fn ended(mut child: std::process::Child) -> Result<(), String> {
    child.wait().map(drop).map_err(|error| error.to_string())
}

/// Everything below a folder, in words: kind, mode, links, and the bytes.
fn snapshot(folder: &Path) -> String {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    let mut text = String::new();
    for path in entries {
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        let name = path.file_name().unwrap_or_default().as_bytes().escape_ascii();
        let links = if about.is_dir() { 0 } else { about.nlink() };
        text += &format!("{name} {:o} {links}", about.mode());
        if about.is_dir() {
            text += &format!(" {{\n{}}}\n", snapshot(&path));
        } else if about.is_symlink() {
            text += &format!(" -> {}\n", fs::read_link(&path).unwrap_or_default().display());
        } else if about.is_file() {
            // Bytes 16 to 100 of a database tell its program's version and counters, and are the same on both sides.
            let bytes = fs::read(&path).unwrap_or_default();
            let sum = bytes
                .iter()
                .fold(0xcbf2_9ce4_8422_2325u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
            text += &format!(" {} bytes {sum:016x}\n", bytes.len());
        } else {
            text += "\n";
        }
    }
    text
}
