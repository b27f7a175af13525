#!/bin/sh
# Builds the demonstrations as one static Linux program: target/user/synth-demo.
set -eu
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
triple=x86_64-unknown-linux-gnu
RUSTFLAGS='-C target-feature=+crt-static -C relocation-model=static -C strip=debuginfo' \
    cargo build --quiet --release -p synth-demo --target $triple --target-dir "$target/demo"
mkdir -p "$target/user"
cmp -s "$target/demo/$triple/release/synth-demo" "$target/user/synth-demo" || {
    cp "$target/demo/$triple/release/synth-demo" "$target/user/synth-demo.$$"
    mv "$target/user/synth-demo.$$" "$target/user/synth-demo"
}
