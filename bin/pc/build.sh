#!/bin/sh
# Builds the kernel image for the pc machine: stable Rust, the host's own target, its own flags and
# its own target directory (the flags differ from those of the host tool).
# usage: bin/pc/build.sh [--monitor|--stages|--bounds|--failing] [--debug|--develop] [cargo arguments…]; prints nothing but cargo's progress.
# --develop: into the folder with -develop behind its name, an image that links in seconds after a change to one file.
# --monitor: into target/pc-monitor, the image with the kernel's part of `synth monitor`; --stages: into target/pc-stages,
# the image that times calls by their stages; --bounds: into target/pc-bounds, the image that notes how long each call keeps
# interrupts out; --failing: into target/pc-failing, the image in which allocations fail from a seed.
set -eu
cd "$(dirname "$0")/../.."
profile=--release
features=image
folder=target/pc
if [ "${1:-}" = --monitor ]; then features=image,monitor; folder=target/pc-monitor; shift; fi
if [ "${1:-}" = --stages ]; then features=image,stages; folder=target/pc-stages; shift; fi
if [ "${1:-}" = --bounds ]; then features=image,bounds; folder=target/pc-bounds; shift; fi
if [ "${1:-}" = --failing ]; then features=image,failing; folder=target/pc-failing; shift; fi
if [ "${1:-}" = --debug ]; then profile=; shift; fi
if [ "${1:-}" = --develop ]; then profile="--profile develop"; folder=$folder-develop; shift; fi
RUSTFLAGS="-Cpanic=abort -Crelocation-model=static -Ccode-model=kernel -Cno-redzone=yes -Clink-arg=-nostartfiles -Clink-arg=-nostdlib -Clink-arg=-static -Clink-arg=-no-pie -Clink-arg=-Tbin/pc/link.ld -Clink-arg=-Wl,--build-id=none -Clink-arg=-Wl,-z,max-page-size=4096 -Clink-arg=-Wl,-z,noexecstack" \
CARGO_PROFILE_RELEASE_LTO=fat CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 \
exec cargo build -p synthesis-pc --features "$features" $profile --target x86_64-unknown-linux-gnu --target-dir "$folder" "$@"
