//! The programs that people have, and what each of them is asked to do.

/// One whole program, or a line of several for the shell.
pub struct Row {
    pub name: &'static str,
    /// Words, or a line for the shell after `sh: `. It runs in /tmp, beside the files that `launch.c` describes.
    pub command: &'static str,
    /// Programs that it needs. The first that the host has not is named.
    pub needs: &'static [&'static str],
    /// What it prints is the same on every system.
    pub is_compared: bool,
}

const fn row(name: &'static str, command: &'static str, needs: &'static [&'static str]) -> Row {
    Row { name, command, needs, is_compared: true }
}

/// Prints sizes of folders, block counts, or sums over files in the order of a folder, which systems choose.
const fn own(name: &'static str, command: &'static str, needs: &'static [&'static str]) -> Row {
    Row { name, command, needs, is_compared: false }
}

/// Which package has a program, where its name is not the package's.
pub const PACKAGES: &[(&str, &str)] = &[("hackbench", "rt-tests"), ("xargs", "findutils"), ("find", "findutils")];

pub const ROWS: &[Row] = &[
    row("dd, 1 byte", "dd if=big of=/dev/null bs=1 count=20000 status=none", &["dd"]),
    row("dd, 4 KB", "dd if=big of=/dev/null bs=4k status=none", &["dd"]),
    row("dd, 64 KB, copies", "dd if=big of=copy bs=64k status=none", &["dd"]),
    row("open, fstat, read, close", "/bench/small tree", &[]),
    row("x=$(echo)", "sh: i=0; while [ $i -lt 50 ]; do x=$(echo); i=$((i+1)); done", &[]),
    row("true, 20 times", "sh: i=0; while [ $i -lt 20 ]; do /usr/bin/true; i=$((i+1)); done", &["true"]),
    row("bash -c true", "bash -c true", &["bash"]),
    own("ls -lR", "ls -lR tree", &["ls"]),
    row("find -name", "find tree -name *7.c", &["find"]),
    row("find -size", "find tree -type f -size +5", &["find"]),
    row("grep -r", "grep -r needle tree", &["grep"]),
    row("tar c", "tar cf out.tar tree", &["tar"]),
    row("tar x, rm -r", "sh: mkdir -p x; tar xf out.tar -C x; rm -r x", &["tar", "mkdir", "rm"]),
    row("cp -r, rm -r", "sh: cp -r tree t2; rm -r t2", &["cp", "rm"]),
    own("du", "du -s tree", &["du"]),
    row("diff -r", "diff -r tree tree", &["diff"]),
    row("cat | cat", "sh: cat big | cat | cat > /dev/null", &["cat"]),
    row("wc", "wc out.tar", &["wc"]),
    row("sort | uniq -c | sort", "sh: head -c 400000 big | sort | uniq -c | sort -n", &["sort", "uniq", "head"]),
    row("sed", "sed -e s/needle/thread/ tree/folder00/file00.c tree/folder01/file01.c", &["sed"]),
    row("gawk", "gawk {n+=NF}END{print(n)} tree/folder00/file00.c", &["gawk"]),
    row("gzip", "sh: head -c 300000 big | gzip -c", &["gzip", "head"]),
    row("sha256sum", "sh: head -c 300000 big | sha256sum", &["sha256sum", "head"]),
    row("yes | head | wc", "sh: yes | head -n 20000 | wc -l", &["yes", "head", "wc"]),
    row("seq | grep | wc", "sh: seq 20000 | grep 7 | wc -l", &["seq", "grep", "wc"]),
    own("find | xargs wc", "sh: find tree -name '*.c' | xargs -n 20 wc -l", &["find", "xargs", "wc"]),
    row("perl", "perl -e for(1..20000){$h{$_%97}+=$_}print(join(q(,),map{$h{$_}}sort(keys(%h))))", &["perl"]),
    row(
        "sqlite3",
        "sh: sqlite3 base 'drop table if exists t; create table t(a, b); with recursive c(x) as (values(1) union all \
         select x + 1 from c where x < 2000) insert into t select x, x * x from c; select sum(b) from t;'",
        &["sqlite3"],
    ),
    row(
        "git init, add, commit",
        "sh: rm -rf r; git init -q --template= r; cp -r tree r; cd r; git add .; \
         GIT_AUTHOR_DATE=@1 GIT_COMMITTER_DATE=@1 git -c user.name=a -c user.email=b commit -qm x; git rev-parse HEAD",
        &["git", "cp", "rm"],
    ),
    row("hackbench, pipes", "sh: hackbench -p -g1 -l50 | grep -v Time", &["hackbench", "grep"]),
    row("hackbench, sockets", "sh: hackbench -g1 -l50 | grep -v Time", &["hackbench", "grep"]),
    row("hackbench, threads", "sh: hackbench -T -p -g1 -l50 | grep -v Time", &["hackbench", "grep"]),
];
