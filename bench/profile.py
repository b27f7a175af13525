#!/usr/bin/env python3
"""Instructions and memory references per function of the kernel, for one iteration of a measured program.

usage: bench/profile.py [--whole] [--lines FUNCTION] [--top N] [--generic] PROGRAM ARGS...

PROGRAM ARGS must contain an N, the count of iterations: `bench/profile.py target/bench/micro fork N`.
The program runs twice on Synthesis, with 20 and with 220 iterations, under a QEMU plugin that counts every
instruction and its loads and stores; the differences divided by 200 are printed, largest first. `--lines` prints the source lines of the
functions whose name contains FUNCTION, with inlining undone. With `--whole` the program runs once, without an N, and all
is counted from the reset of the processor to the end of the machine: what boot costs, and a start. Needs `bin/pc/build.sh` and
`cargo build --release -p synth-cli`, gcc and a QEMU with plugins.
"""
import bisect, collections, os, shutil, signal, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
IMAGE = ROOT + "/target/pc/x86_64-unknown-linux-gnu/release/synthesis-pc"
FEW, MANY = 20, 220


def wrapped_qemu(folder):
    """A qemu that loads the plugin stands first in PATH."""
    source = ROOT + "/bench/profile.c"
    plugin = folder + "/profile.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-w", "-o", plugin, source], check=True)
    real = shutil.which("qemu-system-x86_64")
    with open(folder + "/qemu-system-x86_64", "w") as script:
        script.write(f'#!/bin/sh\nexec {real} "$@" -plugin {plugin},out={folder}/counts\n')
    os.chmod(folder + "/qemu-system-x86_64", 0o755)


def counts(folder, command, iterations, options):
    words = [str(iterations) if word == "N" else word for word in command]
    environment = dict(os.environ, PATH=folder + ":" + os.environ["PATH"])
    run = [ROOT + "/target/release/synth", "run", "--icount", "--timeout", "120", *options, *words]
    subprocess.run(run, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    with open(folder + "/counts") as file:
        rows = (line.split() for line in file)
        return {int(address, 16): [int(count) for count in counts] for address, *counts in rows}


def symbols():
    lines = subprocess.run(["nm", "-nC", IMAGE], capture_output=True, text=True, check=True).stdout.splitlines()
    found = [(int(line[:16], 16), line[19:]) for line in lines if line[17] in "tTwW"]
    return [address for address, _ in found], [name for _, name in found]


def name_of(address, starts, names):
    if address < 1 << 20 or 0xFFF00000 <= address < 1 << 32:
        return "(firmware)"
    if address < 1 << 47:
        return "(program)"
    place = bisect.bisect_right(starts, address) - 1
    if place < 0 or address - starts[place] > 1 << 16:
        return "(synthesized code)"
    return names[place]


def print_lines(wanted, per_address, starts, names):
    chosen = [a for a in sorted(per_address) if wanted in name_of(a, starts, names) and a >= 1 << 47]
    text = "\n".join(hex(address) for address in chosen)
    frames = subprocess.run(["addr2line", "-Cfie", IMAGE, "-a"], input=text, capture_output=True, text=True).stdout
    sums = collections.Counter()
    for address, block in zip(chosen, frames.split("0xf")[1:]):
        lines = block.splitlines()[1:]
        path = " < ".join(f"{f} {os.path.basename(l)}" for f, l in zip(lines[0::2], lines[1::2]))
        sums[path] += per_address[address][0]
    for path, count in sums.most_common(40):
        print(f"{count:10.1f}  {path[:150]}")


def main():
    arguments, top, lines, options, whole = sys.argv[1:], 60, None, [], False
    while arguments and arguments[0].startswith("--"):
        option = arguments.pop(0)
        if option == "--top":
            top = int(arguments.pop(0))
        elif option == "--whole":
            whole = True
        elif option == "--lines":
            lines = arguments.pop(0)
        else:
            options.append(option)
    if not arguments or ("N" in arguments) == whole:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        wrapped_qemu(folder)
        few = {} if whole else counts(folder, arguments, FEW, options)
        many = counts(folder, arguments, MANY, options)
    none, runs = [0, 0], 1 if whole else MANY - FEW
    per_address = {a: [(n - f) / runs for n, f in zip(all, few.get(a, none))] for a, all in many.items()}
    starts, names = symbols()
    if lines:
        return print_lines(lines, per_address, starts, names)
    sums = collections.defaultdict(lambda: [0, 0])
    for address, counted in per_address.items():
        for name in ("in all", name_of(address, starts, names)):
            sums[name] = [sum + count for sum, count in zip(sums[name], counted)]
    print(" instructions  memory references")
    for name, counted in sorted(sums.items(), key=lambda item: -item[1][0])[:top]:
        if any(counted):
            print("{:13.1f} {:18.1f}  {}".format(*counted, name[:120]))


signal.signal(signal.SIGPIPE, signal.SIG_DFL)
main()
