#!/bin/sh
# Writes crates/quaject/plans.txt: how the optimizer changes the routines that programs want first, so that a kernel need not find it
# out again. Both machines are run in their measuring images, and say what they planned. To be run when templates have changed;
# a plan that is too old does no harm, as no draft has its signature any more.
# usage: bin/plans.sh
set -eu
cd "$(dirname "$0")/.."
pc=target/pc-stages/x86_64-unknown-linux-gnu/release/synthesis-pc
hosted=target/hosted-stages/x86_64-unknown-linux-gnu/release/synthesis-hosted
bin/pc/build.sh --stages
bin/hosted/build.sh --stages
cargo build --release -p synth-cli
mkdir -p target/bench/static
gcc -O2 -static -o target/bench/static/opens bench/synthesis/opens.c
for machine in "--icount --kernel $pc" "--hosted --kernel $hosted --with bench:/bench"; do
	# shellcheck disable=SC2086 # several words
	target/release/synth run --timeout 60 $machine target/bench/static/opens 100 plans host=/bench/profile.c
done | grep -E '^[a-z./]+ [0-9a-f]{16} [0-9a-f]+$' | LC_ALL=C sort -u >target/plans.txt
mv target/plans.txt crates/quaject/plans.txt
