//! What `synth bench programs --hosted` runs, and what it must reach.

/// A program or a line of several, in the folder that `launch.c` makes; BENCH in it is the folder of the bench's own programs.
pub struct Timed {
    pub name: &'static str,
    pub command: &'static str,
    pub needs: &'static [&'static str],
    /// Linux over Synthesis.
    pub wanted: f64,
    /// What it prints is the same on every system.
    pub is_compared: bool,
    /// One boot of each side is enough.
    pub is_long: bool,
}

const fn row(name: &'static str, command: &'static str, needs: &'static [&'static str], wanted: f64) -> Timed {
    Timed { name, command, needs, wanted, is_compared: true, is_long: false }
}

/// Prints times of its own.
const fn own(name: &'static str, command: &'static str, needs: &'static [&'static str], wanted: f64) -> Timed {
    Timed { is_compared: false, ..row(name, command, needs, wanted) }
}

/// Two sides that hand a byte to and fro.
const fn turns(name: &'static str, command: &'static str, wanted: f64) -> Timed {
    row(name, command, &[], wanted)
}

pub const TIMED: &[Timed] = &[
    row("busybox pipeline", "sh: busybox seq 1000000 | busybox cat | busybox wc", &["busybox"], 1.0),
    row("coreutils pipeline", "sh: seq 1000000 | cat | grep 7 | wc -l", &["seq", "cat", "grep", "wc"], 1.0),
    row("1,000 x fork+exec, static", "BENCH/handing spawn 1000 BENCH/nothing", &[], 0.9),
    row("1,000 x fork+exec, dynamic", "BENCH/handing spawn 1000 BENCH/nothing-dynamic", &[], 0.9),
    row("ls -lR", "ls -lR /usr/include", &["ls"], 0.85),
    row("find", "find /usr/include -name *.h -size +20", &["find"], 0.85),
    row("grep -r", "grep -rc needle /usr/include/linux", &["grep"], 0.95),
    row("python start", "/usr/bin/python3 -c pass", &["python3"], 0.8),
    row("python", "/usr/bin/python3 -c print(sum(i*i%7for(i)in(range(3000000))))", &["python3"], 0.98),
    row("perl", "perl -e for(1..1500000){$h{$_%997}+=$_}print(join(q(,),map{$h{$_}}sort(keys(%h))))", &["perl"], 0.98),
    row("gawk", "sh: gawk '{ n += NF; c[$1] += 1 } END { print n, length(c) }' big", &["gawk"], 0.98),
    row(
        "sqlite3 in memory",
        "sh: sqlite3 :memory: 'with recursive c(x) as (values(1) union all select x + 1 from c where x < 600000) \
         select sum(x % 7) from c;'",
        &["sqlite3"],
        0.98,
    ),
    row(
        "sqlite3 in a file",
        "sh: rm -f base; sqlite3 base 'pragma synchronous=off; create table t(a, b); with recursive c(x) as (values(1) union all select \
         x + 1 from c where x < 100000) insert into t select x, x * x from c; select sum(b) from t;'",
        &["sqlite3"],
        0.98,
    ),
    row("tar czf", "tar czf out.tar.gz tree", &["tar", "gzip"], 0.98),
    own("hackbench, pipes", "hackbench -p -g1 -l300", &["hackbench"], 4.0),
    own("hackbench, sockets", "hackbench -g1 -l300", &["hackbench"], 3.0),
    own("hackbench, threads", "hackbench -T -p -g1 -l300", &["hackbench"], 4.0),
    Timed {
        is_long: true,
        ..row("make of 100 files", "sh: make -s -C many clean; make -s -C many", &["make", "cc"], 0.95)
    },
    row("dd bs=1", "dd if=big of=/dev/null bs=1 count=300000 status=none", &["dd"], 6.0),
    row("true", "true", &["true"], 0.6),
    turns("20,000 turns, pipe, 4 KB", "BENCH/handing pipe 1 20000", 1.0),
    turns("20,000 turns, eventfd, 4 KB", "BENCH/handing eventfd 1 20000", 1.0),
    turns("20,000 turns, socket, 4 KB", "BENCH/handing socket 1 20000", 1.0),
    turns("2,000 turns, pipe, 4 MB", "BENCH/handing pipe 1024 2000", 1.0),
    turns("2,000 turns, eventfd, 4 MB", "BENCH/handing eventfd 1024 2000", 1.0),
    turns("2,000 turns, socket, 4 MB", "BENCH/handing socket 1024 2000", 1.0),
    turns("50,000 turns, two threads", "BENCH/handing threads 1 50000", 5.0),
];
