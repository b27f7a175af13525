#!/usr/bin/env python3
"""Records the pages of files and of memory that programs use, for the workload `recorded` of `synth bench redundancy`.

    bench/redundancy/record.py [NAME...]

Each program runs on Synthesis with `synth run --generic --trace` (what synthesized code reads leaves no note of the file).
What comes out goes to crates/redundancy-sim/recordings/NAME.accesses: two bytes an access, little end first, the page's number in
the order of first use, and 0x8000 for a write. A page is 4,096 bytes of a file (read and write calls) or of the memory of
programs of one name (page faults: a program that is started again touches the same pages again).
"""
import json, os, struct, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "crates/redundancy-sim/recordings")
PAGE = 4096
MOST = 24000

SQL = """
pragma cache_size = 24;
create table t (id integer primary key, name text, amount real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 9000)
  insert into t select i, 'name of number ' || (i * 7919 % 9001), i * 0.37 from n;
create index by_name on t (name);
select count(*), sum(amount) from t where name like 'name of number 12%';
""" + "".join(
    f"update t set amount = amount + 1 where name = 'name of number {k * k % 700}';"
    f"select sum(amount) from t where id between {k * 31 % 8000} and {k * 31 % 8000 + 40};" for k in range(160))

SHELL = """
cd /sources; i=0
while [ $i -lt 12 ]; do
  grep -c unsafe $(ls | head -n 40) >/dev/null
  sort -u $(ls | sed -n "$((i + 1)),$((i + 6))p") | wc -l; ls -l | awk '{s += $5} END {print s}'
  i=$((i + 1))
done
"""

PROGRAMS = {
    "sqlite": dict(files={"script.sql": SQL}, command=["sh", "-c", "sqlite3 /tmp/a.db < script.sql"], with_=["sqlite3"]),
    "shell": dict(files={"script.sh": SHELL}, command=["sh", "script.sh"], tree=True,
                  with_=["grep", "sort", "wc", "ls", "awk", "sed", "head"]),
    "tar": dict(files={}, command=["sh", "-c", "for i in 1 2 3; do tar cf /tmp/a.tar /sources; gzip -kf1 /tmp/a.tar; tar tzf /tmp/a.tar.gz | wc -l; done"],
                tree=True, with_=["tar", "gzip", "wc"]),
    "perl": dict(files={"count.pl": "opendir(my $d, '/sources'); my @f = sort grep /rs$/, readdir $d; for (1..4) { for my $f (@f) { open(my $h, '<', \"/sources/$f\"); while (<$h>) "
                        "{ $n{$_}++ for /(\\w+)/g } } } open(my $o, '>', '/tmp/out'); print $o \"$_ $n{$_}\\n\" for sort keys %n;"},
                 command=["sh", "-c", "perl count.pl && sort -k2nr /tmp/out | head -n 3"], tree=True, with_=["perl", "sort", "head"]),
}


def which(name):
    return subprocess.run(["which", name], check=True, capture_output=True, text=True).stdout.strip()


def sources(folder):
    """Our own sources as files to read, flat."""
    os.makedirs(folder)
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "crates/*.rs"], check=True, capture_output=True, text=True)
    for path in listed.stdout.split()[:260]:
        with open(os.path.join(ROOT, path)) as source, open(os.path.join(folder, path.replace("/", "_")), "w") as target:
            target.write(source.read())


def run(program, folder):
    trace = os.path.join(folder, "trace.json")
    command = [os.path.join(ROOT, "synth"), "run", "--generic", "--trace", trace, "--timeout", "900", "--mem", "512M"]
    for name, text in program["files"].items():
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
        command += ["--with", f"{os.path.join(folder, name)}:/{name}"]
    for name in program["with_"]:
        command += ["--with", os.path.realpath(which(name)) + ":" + which(name)]
    if program.get("tree"):
        sources(os.path.join(folder, "sources"))
        command += ["--with", os.path.join(folder, "sources") + ":/sources"]
    subprocess.run(command + program["command"], check=True)
    with open(trace) as file:
        return json.load(file)


def pages(trace):
    """Page and whether it is written, in the order of time."""
    names = {event["pid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"}
    for event in sorted((event for event in trace["traceEvents"] if "ts" in event), key=lambda event: event["ts"]):
        if event.get("cat") == "file":
            first, last = event["args"]["position"], event["args"]["position"] + max(event["args"]["bytes"], 1) - 1
            for page in range(first // PAGE, last // PAGE + 1):
                yield ("file", event["args"]["file"], page), event["name"] == "file written"
        elif event.get("cat") == "page":
            yield ("memory", names.get(event["pid"], "?"), event["args"]["address"]), event["name"] == "page written"


def main():
    os.makedirs(FOLDER, exist_ok=True)
    recorded = {}
    for name in sys.argv[1:] or PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            trace = run(PROGRAMS[name], folder)
        numbers, words, before = {}, [], None
        for page, is_write in pages(trace):
            # A program that reads a page by many small pieces has it: that is one access.
            if (page, is_write) != before and len(words) < MOST:
                words.append(numbers.setdefault(page, len(numbers)) | (0x8000 if is_write else 0))
            before = (page, is_write)
        assert len(numbers) < 0x8000, "too many pages for fifteen bits"
        recorded[name] = struct.pack(f"<{len(words)}H", *words)
        lost = trace["otherData"]["lost"]
        print(f"{name}: {len(words)} accesses to {len(numbers)} pages, {lost} records lost")
    # Only now: the tool is built anew when these change.
    for name, words in recorded.items():
        with open(os.path.join(FOLDER, name + ".accesses"), "wb") as file:
            file.write(words)


main()
