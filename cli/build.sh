#!/bin/sh
# Builds the host tool for use: linked without shared libraries, at a fixed address, because a third of what a short hosted
# run takes is the start of the tool. `cargo build -p synth-cli` makes the same tool, which starts 0.5 ms later.
# usage: cli/build.sh [cargo arguments…]; prints nothing but cargo's progress.
set -eu
cd "$(dirname "$0")/.."
exec cargo rustc --release -p synth-cli --bin synth "$@" -- -Ctarget-feature=+crt-static -Crelocation-model=static
