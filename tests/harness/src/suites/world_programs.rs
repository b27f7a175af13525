//! Programs of a Debian system and what is asked of them. What needs the network or tells the time of day is left out.
//!
//! Each ends with the folder empty of what differs from run to run: what is printed is compared, and nothing else.

use super::hostfiles::Script;

const fn script(name: &'static str, needs: &'static [&'static str], text: &'static str) -> Script {
    Script { name, needs, text }
}

pub(super) const PROGRAMS: &[Script] = &[
    script(
        "coreutils",
        &[],
        "ls /; sort /etc/passwd | head -5; wc -l /etc/group; sha256sum /bin/true; date -u -d @0; numfmt --to=iec 123456; \
         stat -c '%n %s %a %U %G %h %y' /etc/passwd /usr/bin/env; tac /etc/issue; fold -w 7 /etc/issue; factor 1234567",
    ),
    script(
        "bash",
        &["bash"],
        "bash -c 'declare -A a=([x]=1 [y]=2); for k in x y; do echo $k ${a[$k]}; done; echo /etc/init.d/../pass*; \
         [[ abc =~ b(.) ]] && echo ${BASH_REMATCH[1]}; diff <(echo a) <(echo b)'",
    ),
    script(
        "find",
        &[],
        "find /etc/apt /usr/share/perl5 -type f 2>&1 | sort | md5sum; find /usr/lib/python3 -name '*.py' | wc -l; \
         find /etc -maxdepth 1 -type l -printf '%p %l\\n' | sort; find /usr/bin -newer /etc/issue | wc -l",
    ),
    script(
        "links-and-modes",
        &[],
        "ls -ld /tmp /usr /etc/shadow /etc/passwd | cut -c1-10; readlink -f /bin/sh; readlink /etc/alternatives/awk; \
         ls -lR /etc/alternatives | grep -v ^total | md5sum; ls -lR /usr/share/perl5 | grep -v '^total' | grep -v '^d' | md5sum",
    ),
    script(
        "text",
        &["awk", "sed", "grep"],
        "grep -l root /etc/passwd /etc/group; awk -F: '{s+=$3} END {print s}' /etc/passwd; \
         sort -t: -k3n /etc/passwd | cut -d: -f1 | paste -sd,; tr a-z A-Z </etc/issue; cmp /etc/passwd /etc/group; \
         seq 20000 | awk '{print $1 % 97, $1}' | sort -n | uniq -c -w2 | sort -rn | head -3; yes | head -100000 | wc -l",
    ),
    script(
        "tar",
        &["tar", "gzip"],
        "tar cf a.tar -C /usr/share/perl5 . && tar tf a.tar | sort | md5sum; mkdir x; tar xf a.tar -C x; \
         diff -r x /usr/share/perl5 && echo same; gzip -k a.tar; gzip -dc a.tar.gz | cmp - a.tar; rm -r a.tar a.tar.gz x; ls",
    ),
    script("xz", &["xz"], "xz -c /bin/true > t.xz; xz -dc t.xz | cmp - /bin/true && echo same"),
    script("zstd", &["zstd"], "zstd -qc /bin/true > t.zst; zstd -dqc t.zst | cmp - /bin/true && echo same"),
    script("bzip2", &["bzip2"], "bzip2 -c /bin/true | bzip2 -dc | cmp - /bin/true && echo same"),
    script(
        "copy-and-remove",
        &[],
        "cp -a /etc/apt a; diff -r a /etc/apt && echo same; mv a b; rm -r b; cp /etc/passwd p; echo x >> p; tail -1 p; ls",
    ),
    script(
        "python",
        &["python3"],
        "python3 -c 'import json, hashlib, sqlite3, ssl, decimal, ctypes, subprocess, email, xml.dom, re, zlib, lzma, bz2; \
         print(json.dumps({\"a\": [1, 2]}), hashlib.sha256(b\"x\").hexdigest(), decimal.Decimal(2).sqrt(), \
         sqlite3.connect(\":memory:\").execute(\"select 6*7\").fetchone(), subprocess.check_output([\"echo\", \"hi\"]))'",
    ),
    script(
        "python-files",
        &["python3"],
        "python3 -c '\nimport os, shutil, glob, mmap\nfor d, s, f in os.walk(\"/etc/apt\"): print(d, sorted(s), sorted(f))\n\
         os.makedirs(\"d/e\"); open(\"d/e/f\", \"w\").write(\"x\" * 10000)\n\
         print(os.stat(\"d/e/f\").st_size, sorted(glob.glob(\"d/**\", recursive=True)))\n\
         shutil.copytree(\"d\", \"c\"); shutil.rmtree(\"d\")\n\
         f = open(\"c/e/f\", \"r+b\"); m = mmap.mmap(f.fileno(), 0); m[5000] = 65; m.flush()\n\
         print(open(\"c/e/f\", \"rb\").read()[4999:5002])'",
    ),
    script(
        "python-venv",
        &["python3"],
        "python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'",
    ),
    script(
        "python-unittest",
        &["python3"],
        "printf 'import unittest\\nclass T(unittest.TestCase):\\n def test(self): self.assertEqual(1, 1)\\n' > t.py; \
         python3 -m unittest -q t 2>&1 | grep -c OK; python3 -m py_compile t.py; ls __pycache__ | wc -l",
    ),
    script(
        "perl",
        &["perl"],
        "perl -MPOSIX -MList::Util=sum -MFile::Find -e 'print floor(2.5), sum(1..9), \"\\n\"; \
         find(sub { $n++ }, \"/usr/share/perl5\"); print \"$n\\n\"; open F, \"</etc/passwd\"; print scalar(() = <F>), \"\\n\"'",
    ),
    script(
        "perl-modules",
        &["perl"],
        "perl -MDigest::SHA=sha1_hex -MJSON::PP -MTime::Local -MEncode -e \
         'print sha1_hex(\"x\"), encode_json([1,{a=>2}]), timegm(0,0,0,1,0,100), \"\\n\"'",
    ),
    script(
        "git",
        &["git"],
        "export GIT_AUTHOR_DATE=@0+0000 GIT_COMMITTER_DATE=@0+0000 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a \
         GIT_COMMITTER_EMAIL=a; git init -q -b main r; cd r; for n in 1 2 3; do echo $n > f$n; git add .; git commit -qm $n; done; \
         git log --oneline; git branch x; git mv f1 g1; git status --short; git stash -q; git gc -q; git fsck; git diff HEAD~2 --stat; \
         git clone -q . ../c; git -C ../c log --format=%s",
    ),
    script(
        "gcc",
        &["gcc"],
        "printf '#include <stdio.h>\\n#include <math.h>\\nint main(void){printf(\"%%f\\\\n\", sqrt(2)); return 3;}\\n' > h.c; \
         gcc -O2 -Wall h.c -o h -lm && ./h; echo $?; gcc -static h.c -o s -lm && ./s; objdump -d h | grep -c ret; nm h | grep -c main; \
         size h | tail -1; strip h; ./h",
    ),
    script(
        "g++",
        &["g++"],
        "printf '#include <iostream>\\n#include <map>\\nint main(){std::map<std::string,int> m{{\"a\",1}}; \
         std::cout << m[\"a\"] << std::endl; \
         try { throw 1; } catch (int i) { std::cout << i << std::endl; }}\\n' > h.cc; g++ h.cc -o h && ./h",
    ),
    script(
        // One after the other: beside each other they meet the known fault that CHANGELOG.md begins with.
        "make-100-files",
        &["make", "gcc"],
        "for n in $(seq 100); do echo \"int f$n(void) { return $n; }\" > f$n.c; echo \"int f$n(void);\" >> all.h; done; \
         (echo '#include <stdio.h>'; echo '#include \"all.h\"'; echo 'int main(void) { int s = 0;'; \
         for n in $(seq 100); do echo \"s += f$n();\"; done; echo 'printf(\"%d \", s); return 0; }') > main.c; \
         printf 'OBJECTS = $(patsubst %%.c,%%.o,$(wildcard *.c))\\nall: $(OBJECTS)\\n\\t$(CC) -o $@ $^\\n' > Makefile; \
         make -s -j2 && ./all; make -s; sleep 0.02; touch f7.c; make -n | wc -l",
    ),
    script(
        "cmake",
        &["cmake", "gcc", "make"],
        "printf 'cmake_minimum_required(VERSION 3.0)\\nproject(x C)\\nadd_executable(x x.c)\\n' > CMakeLists.txt; \
         echo 'int main(void){return 7;}' > x.c; cmake -S . -B b > /dev/null && make -s -C b > /dev/null && b/x; echo $?",
    ),
    script(
        "java",
        &["java"],
        "printf 'public class H { public static void main(String[] a) throws Exception { System.out.println(\"hi \" + \
         java.nio.file.Files.readAllLines(java.nio.file.Path.of(\"/etc/issue\")).size()); int s = 0; \
         for (int i = 0; i < 1000000; i++) s += i %% 7; System.out.println(s); } }' > H.java; java H.java",
    ),
    script(
        "node",
        &["node"],
        "node -e 'const fs = require(\"fs\"), crypto = require(\"crypto\"), zlib = require(\"zlib\"); \
         console.log(fs.readFileSync(\"/etc/passwd\").length, crypto.createHash(\"md5\").update(\"x\").digest(\"hex\"), \
         zlib.gunzipSync(zlib.gzipSync(\"abc\")).toString()); \
         setTimeout(() => console.log(\"later\"), 5); Promise.resolve(1).then(console.log)'",
    ),
    script("npm", &["npm"], "mkdir p; cd p; npm init -y > /dev/null 2>&1; grep -c name package.json"),
    script(
        "go",
        &["go"],
        "export GOCACHE=$PWD/cache GOPATH=$PWD/gopath GOTOOLCHAIN=local; mkdir m; cd m; printf 'module m\\n\\ngo 1.19\\n' > go.mod; \
         printf 'package main\\nfunc main() { c := make(chan int); go func() { c <- 42 }(); \
             println(<-c) }\\n' > main.go; \
         go build -o x . && ./x 2>&1",
    ),
    script(
        "rustc",
        &["rustc"],
        "export HOME=/root; printf 'fn main() { let v: Vec<u32> = (0..10).collect(); \
         println!(\"{:?} {}\", v, std::thread::spawn(|| 7).join().unwrap()); }' > m.rs; rustc -O m.rs && ./m",
    ),
    script(
        "cargo",
        &["cargo"],
        "export HOME=/root CARGO_NET_OFFLINE=true; cd $(mktemp -d); cargo init -q --vcs none --name small small 2>/dev/null; cd small; \
         cargo build -q 2>&1 && target/debug/small; cargo test -q 2>&1 | grep -c 'test result'",
    ),
    script(
        "ruby",
        &["ruby"],
        "ruby -rjson -rset -e 'puts JSON.generate([1,{a: 2}]), Set[1,2].size, Dir[\"/etc/apt/*\"].sort'",
    ),
    script("php", &["php"], "php -r 'echo json_encode([1,2]), PHP_EOL, count(file(\"/etc/passwd\")), PHP_EOL;'"),
    script("lua", &["lua"], "lua -e 'print(string.format(\"%05.2f\", 3.14159))'"),
    script("tcl", &["tclsh"], "echo 'puts [expr 6*7]; puts [lsort [glob /etc/apt/*]]' | tclsh"),
    script("ocaml", &["ocaml"], "echo 'print_int (6*7);;' > m.ml; ocaml m.ml"),
    script("ghc", &["ghc"], "echo 'main = print (product [1..20])' > m.hs; ghc -v0 m.hs && ./m"),
    script("vim", &["vim"], "printf 'b\\na\\n' > t; vim -es -c ':%sort' -c ':wq' t; cat t; vim --version | head -1"),
    script("emacs", &["emacs"], "emacs --batch --eval '(princ (* 6 7))'"),
    script("ed", &["ed"], "printf 'a\\nb\\na\\n.\\n,s/b/c/\\nw t\\nq\\n' | ed -s; cat t"),
    script(
        "tmux",
        &["tmux"],
        "tmux -L w -f /dev/null new-session -d -x 80 -y 24 'cat'; tmux -L w list-sessions | cut -d' ' -f1-3; tmux -L w kill-server",
    ),
    script("man", &["man"], "man -P cat ls 2>/dev/null | col -b | head -20; man -w ls"),
    script(
        "apt",
        &["apt"],
        "apt list --installed 2>/dev/null | sort | md5sum; apt-cache policy bash | head -3; apt-cache show bash | head -5",
    ),
    script(
        "dpkg",
        &["dpkg"],
        "dpkg -l | md5sum; dpkg -S /bin/bash; dpkg -L bash | sort | head -5; dpkg --verify bash; \
         dpkg-query -W -f '${Package} ${Status}\\n' coreutils",
    ),
    script(
        "dpkg-deb",
        &["dpkg-deb"],
        "mkdir -p p/DEBIAN p/opt/own; echo text > p/opt/own/file; \
         printf 'Package: own-test\\nVersion: 1.0\\nArchitecture: all\\nMaintainer: a <a@b>\\nDescription: x\\n' > p/DEBIAN/control; \
         dpkg-deb --root-owner-group -b p own.deb > /dev/null; dpkg-deb -I own.deb control; dpkg-deb -x own.deb x; cat x/opt/own/file",
    ),
    script(
        "sqlite",
        &["sqlite3"],
        "sqlite3 x.sq 'create table t(a); with recursive n(x) as (select 1 union all select x+1 from n where x<2000) \
         insert into t select x from n; create index i on t(a); select sum(a), count(*) from t; pragma integrity_check'",
    ),
    script(
        "openssl",
        &["openssl"],
        "echo -n x | openssl dgst -sha256; openssl version -d; \
         echo abc | openssl enc -aes-256-cbc -pbkdf2 -pass pass:x | openssl enc -d -aes-256-cbc -pbkdf2 -pass pass:x",
    ),
    script(
        "gpg",
        &["gpg"],
        "mkdir -m 700 g; gpg --version | head -1; echo x | gpg --batch --homedir g --print-md sha1",
    ),
    script(
        "ssh-keygen",
        &["ssh-keygen"],
        "ssh-keygen -q -t ed25519 -N '' -f k; cut -d' ' -f1 k.pub; ssh-keygen -l -f k.pub | cut -d' ' -f1",
    ),
    script("gdb", &["gdb"], "gdb -batch -ex 'print 6*7' 2>&1 | tail -1"),
    script("bc", &["bc"], "echo 'scale=20; sqrt(2); 2^100' | bc"),
    script("jq", &["jq"], "echo '{\"a\":[1,2]}' | jq -c '.a|add'"),
    script("curl", &["curl"], "curl -s file:///etc/issue; curl -V | head -1"),
    script(
        "rsync",
        &["rsync"],
        "rsync -a /etc/apt/ a/; diff -r a /etc/apt && echo same; rsync -ai --delete /etc/apt/ a/",
    ),
    script("patch", &["patch"], "seq 9 > a; sed s/5/five/ a > b; diff -u a b > p; patch -s a p; cmp a b && echo same"),
    script("cpio", &["cpio"], "cd /etc/apt && find . | sort | cpio -o --quiet | cpio -it --quiet | md5sum"),
    script("zip", &["zip", "unzip"], "zip -q -r a.zip /etc/apt; unzip -l a.zip | tail -1"),
    script("procps", &["ps"], "ps -o comm= -p $$; pgrep -x nothing; echo $?; free -h | head -1; uptime | grep -c up"),
    script(
        "util-linux",
        &["flock", "hexdump"],
        "flock l echo locked; getopt -o ab: -- -a -b x; hexdump -C /etc/issue; column -t -s: /etc/group | head -3; setsid echo new",
    ),
    script("locale", &["locale", "iconv"], "locale -a | sort | head -3; iconv -f utf8 -t latin1 /etc/issue | wc -c"),
    script("m4", &["m4"], "echo 'define(x, `y $1')x(1)' | m4"),
    script("another-user", &["su"], "su nobody -s /bin/sh -c 'id -un; cat /etc/shadow; ls /root' 2>&1"),
    script(
        "unreadable",
        &["setpriv"],
        "mkdir d; echo x > d/f; chmod 0 d/f; setpriv --reuid 65534 --clear-groups cat d/f; cat d/f",
    ),
    script(
        "links-and-fifos",
        &[],
        "mkfifo p; (echo through > p &); cat p; rm p; echo a > a; ln a b; stat -c %h a b; rm a; stat -c %h b",
    ),
    script(
        "renames",
        &[],
        "mkdir w; cp -r /usr/share/doc/bash w/doc; mv w/doc w/doc2; ls w/doc2 | head -2; mv w/doc2 w/doc; ls w",
    ),
    script(
        "large",
        &[],
        "truncate -s 1G big; stat -c %s big; dd if=/dev/zero of=big bs=1 seek=500M count=1 conv=notrunc 2>/dev/null; stat -c %s big",
    ),
    script(
        "own-tmp",
        &["mktemp"],
        "f=$(mktemp); echo x > $f; cat $f; rm $f; echo null > /dev/null; test -w /dev/shm; echo $?",
    ),
];

/// What is changed in the root: it is for the machine alone, so the host is not asked to do the same.
pub(super) const CHANGES: &[(Script, &str)] = &[
    (
        script(
            "changes-of-the-root",
            &[],
            "echo mine > /etc/mine; cat /etc/mine; rm /etc/mine; mkdir /opt/mine; rmdir /opt/mine; \
             echo x >> /etc/passwd; tail -1 /etc/passwd; \
             rm /etc/issue; ls /etc/issue; mv /etc/apt /etc/apt2; ls -d /etc/apt*; echo n > /etc/issue; cat /etc/issue; chmod 700 /usr; \
             stat -c %a /usr; ln /etc/hostname /etc/h2; stat -c %h /etc/h2; rm /etc/hostname; cmp /etc/h2 /etc/h2 && echo same",
        ),
        "mine\nx\n/etc/apt2\nn\n700\n2\nsame\n",
    ),
    (
        script(
            "remove-all-of-a-package",
            &[],
            "rm -rf /usr/share/perl5 /etc/alternatives /usr/share/doc; ls -d /usr/share/perl5 /etc/alternatives; ls /usr/share/doc | wc -l",
        ),
        "0\n",
    ),
    (
        script(
            "dpkg-install",
            &["dpkg", "dpkg-deb"],
            "mkdir -p p/DEBIAN p/opt/own; echo text > p/opt/own/file; \
             printf 'Package: own-test\\nVersion: 1.0\\nArchitecture: all\\nMaintainer: a <a@b>\\nDescription: x\\n' > p/DEBIAN/control; \
             printf '#!/bin/sh\\necho configured\\n' > p/DEBIAN/postinst; chmod 755 p/DEBIAN/postinst; \
             dpkg-deb --root-owner-group -b p own.deb > /dev/null; dpkg -i own.deb 2>&1 | tail -2; cat /opt/own/file; \
             dpkg -s own-test | grep Status; dpkg -r own-test > /dev/null 2>&1; ls -d /opt/own",
        ),
        "Setting up own-test (1.0) ...\nconfigured\ntext\nStatus: install ok installed\n",
    ),
];
