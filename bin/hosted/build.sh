#!/bin/sh
# Builds the kernel image for the hosted machine: stable Rust, the host's own target, its own flags and its own target
# directory (the flags differ from those of the host tool).
# usage: bin/hosted/build.sh [--stages|--failing] [--debug|--develop] [cargo arguments…]; prints nothing but cargo's progress.
# --develop: into target/hosted-develop, an image that links in seconds after a change to one file.
# --stages: into target/hosted-stages, the image that times calls by their stages; --failing: into target/hosted-failing, the image
# in which allocations fail from a seed.
set -eu
cd "$(dirname "$0")/../.."
profile=--release
features=image
folder=target/hosted
if [ "${1:-}" = --stages ]; then features=image,stages; folder=target/hosted-stages; shift; fi
if [ "${1:-}" = --failing ]; then features=image,failing; folder=target/hosted-failing; shift; fi
if [ "${1:-}" = --debug ]; then profile=; shift; fi
if [ "${1:-}" = --develop ]; then profile="--profile develop"; folder=$folder-develop; shift; fi
RUSTFLAGS="-Cpanic=abort -Crelocation-model=static -Ccode-model=small -Cno-redzone=yes -Cforce-frame-pointers=yes -Clink-arg=-nostartfiles -Clink-arg=-nostdlib -Clink-arg=-static -Clink-arg=-no-pie -Clink-arg=-Tbin/hosted/link.ld -Clink-arg=-Wl,--build-id=none -Clink-arg=-Wl,-z,max-page-size=4096 -Clink-arg=-Wl,-z,noexecstack" \
CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 \
exec cargo build -p synthesis-hosted --features "$features" $profile --target x86_64-unknown-linux-gnu --target-dir "$folder" "$@"
