//! Large programs that nobody here wrote, as they are installed on the host, on the hosted machine: what they print and leave in a
//! folder must be what they print and leave on Linux. README.md has a table of them; this suite keeps it true.

use std::fs;
use std::process::Command;

use super::hostfiles::{Bench, Script};
use crate::options::Options;
use crate::report::Tally;

/// The longest that a program may take on one side, in seconds: compilers fill their caches first.
const SECONDS: u32 = 240;

/// The names are those of the table in README.md.
const PROGRAMS: &[Script] = &[
    Script {
        name: "java",
        needs: &["java", "javac"],
        text: "cat > Words.java <<'E'\n\
               import java.util.*; import java.util.concurrent.*;\n\
               class Words { public static void main(String[] a) throws Exception {\n\
               var pool = Executors.newFixedThreadPool(4); var sums = new ArrayList<Future<Long>>();\n\
               for (long i = 0; i < 8; i++) { long from = i * 100000; sums.add(pool.submit(() -> { long s = 0;\n\
               for (long n = from; n < from + 100000; n++) s += n; return s; })); }\n\
               long all = 0; for (var s : sums) all += s.get(); pool.shutdown(); System.out.println(all);\n\
               var words = new TreeMap<String, Integer>();\n\
               for (var w : \"to be or not to be\".split(\" \")) words.merge(w, 1, Integer::sum);\n\
               System.out.println(words); System.gc(); } }\n\
               E\n\
               javac Words.java && java Words; echo $?",
    },
    Script {
        name: "node",
        needs: &["node"],
        text: "cat > a.js <<'E'\n\
               const fs = require('fs'), cp = require('child_process'), zlib = require('zlib');\n\
               const { Worker } = require('worker_threads');\n\
               fs.writeFileSync('f', 'line\\n'.repeat(1000));\n\
               console.log(zlib.gunzipSync(zlib.gzipSync(fs.readFileSync('f'))).length);\n\
               console.log(cp.execSync('wc -l < f').toString().trim());\n\
               const w = new Worker('require(\"worker_threads\").parentPort.postMessage([1,2,3].map(x => x * x))', { eval: true });\n\
               w.on('message', m => console.log(m.join()));\n\
               fs.promises.readFile('f').then(b => console.log(b.length)).then(() => setTimeout(() => console.log('later'), 20));\n\
               E\n\
               node a.js | sort; echo $?",
    },
    Script {
        // The side that runs first fills the cache of packages for both.
        name: "go",
        needs: &["go"],
        text: "export GOCACHE=$(dirname $PWD)/cache GOPATH=$PWD/path GOFLAGS=-mod=mod GOTOOLCHAIN=local HOME=$PWD\n\
               cat > a.go <<'E'\n\
               package main\n\
               import (\"fmt\"; \"os\"; \"sync\")\n\
               func main() { var w sync.WaitGroup; c := make(chan int, 100)\n\
               for i := 0; i < 100; i++ { w.Add(1); go func(n int) { defer w.Done(); c <- n * n }(i) }\n\
               w.Wait(); close(c); s := 0; for n := range c { s += n }; fmt.Println(s); os.WriteFile(\"out\", []byte(\"x\"), 0644) }\n\
               E\n\
               go build -o a a.go && ./a; echo $?; rm -rf path a .config",
    },
    Script {
        name: "rustc",
        needs: &["rustc"],
        text: "cat > a.rs <<'E'\n\
               use std::{fs, thread};\n\
               fn main() { let t: Vec<_> = (0..4u64).map(|i| thread::spawn(move || (0..1000).map(|n| n * i).sum::<u64>())).collect();\n\
               println!(\"{}\", t.into_iter().map(|t| t.join().unwrap()).sum::<u64>()); fs::write(\"out\", \"x\").unwrap(); }\n\
               E\n\
               rustc -O a.rs && ./a; echo $?; rm -f a",
    },
    Script {
        name: "gcc",
        needs: &["gcc", "make"],
        text: "printf '#include <stdio.h>\\nint f(int);int main(void){printf(\"%%d\\\\n\",f(6));}\\n' > a.c;\n\
               echo 'int f(int n){return n*7;}' > b.c\n\
               printf 'a: a.o b.o\\n\\t$(CC) -o a a.o b.o\\n' > Makefile; make -s CFLAGS=-O2 && ./a; echo $?; rm -f a",
    },
    Script {
        name: "git",
        needs: &["git"],
        text: "export HOME=$PWD GIT_AUTHOR_DATE='@1 +0000' GIT_COMMITTER_DATE='@1 +0000' GIT_CONFIG_NOSYSTEM=1 GIT_PAGER=cat\n\
               git config --global user.name N; git config --global user.email n@example.org; git init -q -b main r; cd r\n\
               for n in 1 2 3; do seq $n > f$n; git add .; git commit -qm \"change $n\"; done; git checkout -qb side HEAD~1; seq 9 > g\n\
               git add g; git commit -qm side; git merge -q -m joined main; git log --oneline --graph; git diff HEAD~1 --stat\n\
               git gc -q; git fsck --strict; git clone -q . ../copy; git -C ../copy log -1 --format=%H; cd ..; rm -rf r copy",
    },
    Script {
        name: "dpkg",
        needs: &["dpkg", "dpkg-deb"],
        text: "mkdir -p p/DEBIAN p/usr/share/demo root/var/lib/dpkg/info root/var/lib/dpkg/updates; echo data > p/usr/share/demo/file\n\
               touch root/var/lib/dpkg/status root/var/lib/dpkg/available\n\
               printf 'Package: demo\\nVersion: 1.0\\nArchitecture: all\\n' > p/DEBIAN/control\n\
               printf 'Maintainer: N <n@example.org>\\nDescription: demo\\n' >> p/DEBIAN/control\n\
               export SOURCE_DATE_EPOCH=1;\n\
               dpkg-deb --root-owner-group -b p demo.deb > /dev/null && dpkg-deb -c demo.deb | awk '{ print $1, $6 }'\n\
               d() { dpkg --root=$PWD/root --force-not-root --log=/dev/null \"$@\"; }; d -i demo.deb; d -l demo | tail -n 1; d -L demo\n\
               cat root/usr/share/demo/file; d -r demo; ls root/usr/share 2>&1; rm -rf root demo.deb",
    },
    Script {
        name: "postgres",
        needs: &["/usr/lib/postgresql/15/bin/postgres", "setpriv"],
        text: "b=/usr/lib/postgresql/15/bin; mkdir d; p() { \"$@\"; }\n\
               if [ $(id -u) = 0 ]; then chown nobody d .; p() { setpriv --reuid=nobody --regid=nogroup --clear-groups \"$@\"; }; fi\n\
               export LC_ALL=C TZ=UTC; p $b/initdb -D d -U n --no-sync -A trust > log 2>&1; echo $?\n\
               p $b/pg_ctl -D d -w -s -l d/log -o \"-c listen_addresses='' -k $PWD\" start; echo $?\n\
               q() { p psql -h $PWD -U n -Atc \"$1\" postgres; }; q 'create table t as select generate_series(1, 1000) n';\n\
               q 'select sum(n) from t'\n\
               q 'begin; delete from t; rollback; create index i on t(n); select count(*) from t where n > 990'\n\
               p $b/pg_ctl -D d -w -s -m fast stop; echo $?; rm -rf d log",
    },
    Script {
        name: "emacs",
        needs: &["emacs"],
        text: "printf 'b\\na\\nc\\n' > f; emacs --batch f --eval '(progn (sort-lines nil (point-min) (point-max)) (save-buffer) \
               (princ (format \"%s %d\\n\" (buffer-name) (buffer-size))))' 2> /dev/null; cat f; rm -f f~",
    },
    Script {
        name: "valgrind",
        needs: &["valgrind", "gcc"],
        text: "printf '#include <stdlib.h>\\nint main(void){char*p=malloc(10);return p[10];}\\n' > a.c; gcc -g -O0 -o a a.c\n\
               valgrind -q --error-exitcode=9 ./a 2> e; echo $?; grep -c 'Invalid read of size 1' e;\n\
               valgrind -q --tool=massif --massif-out-file=m ./a\n\
               grep -c snapshot= m | sed 's/[0-9]*/some/'; rm -f a e m",
    },
    Script {
        name: "python",
        needs: &["python3"],
        text: "python3 - <<'E'\n\
               import concurrent.futures as f, hashlib, json, multiprocessing, sqlite3, subprocess, tempfile\n\
               with multiprocessing.Pool(2) as p: print(sum(p.map(abs, range(-50, 50))))\n\
               with f.ThreadPoolExecutor(4) as e: print(sorted(e.map(lambda n: n * n, range(8))))\n\
               c = sqlite3.connect('x.db'); c.execute('create table t(a)');\n\
               c.executemany('insert into t values(?)', [(n,) for n in range(100)])\n\
               c.commit(); print(c.execute('select sum(a) from t').fetchone(), hashlib.sha256(b'x').hexdigest()[:8])\n\
               print(subprocess.run(['sh', '-c', 'echo out; exit 3'], capture_output=True))\n\
               E\n\
               rm -f x.db",
    },
];

/// # Errors
/// A sentence when the tool or a folder is missing.
pub fn run(options: &Options, tally: &mut Tally) -> Result<(), String> {
    let bench = Bench::new(options, "unmodified", SECONDS, path())?;
    if options.selects("unmodified/the-table-in-the-readme") {
        tally.record("unmodified/the-table-in-the-readme", table(options));
    }
    for program in PROGRAMS {
        bench.record(tally, options, program.name, program.needs, |name| bench.same(name, &[], program.text));
    }
    bench.finish();
    Ok(())
}

/// The user's own PATH, and where the compiler is that rustup's `rustc` would start: that looks for settings in the user's home.
fn path() -> String {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = sysroot.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string()).unwrap_or_default();
    format!("{sysroot}/bin:{}:/usr/bin:/bin", std::env::var("PATH").unwrap_or_default())
}

/// The table in README.md names the programs of this suite, and no others.
fn table(options: &Options) -> Result<(), String> {
    let readme = fs::read_to_string(options.repo.join("README.md")).map_err(|error| error.to_string())?;
    let rows = readme.lines().skip_while(|line| !line.starts_with("| runs unmodified |")).skip(2);
    let named = rows.take_while(|line| line.starts_with('|')).filter_map(|line| line.split('`').nth(1));
    let (mut named, mut tried): (Vec<&str>, Vec<&str>) = (named.collect(), PROGRAMS.iter().map(|it| it.name).collect());
    named.sort_unstable();
    tried.sort_unstable();
    if named == tried { Ok(()) } else { Err(format!("the table names {named:?}, the suite tries {tried:?}")) }
}
