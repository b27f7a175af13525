#!/bin/sh
# Builds the library for C programs into target/user: libsynthio.a, libsynthio.so and synthio.h.
#
#     user/stdio/build.sh [PREFIX]     with PREFIX also installs there: lib, include, share/man/man3
set -eu
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
# The standard streams are opened by a word in .init_array that no symbol refers to: one object file, so that whoever uses
# anything of the library also gets that.
CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 CARGO_PROFILE_RELEASE_LTO=fat \
    cargo rustc --quiet --release -p synthio --features c --crate-type staticlib,cdylib --target-dir "$target/synthio"
mkdir -p "$target/user"
for file in libsynthio.a libsynthio.so; do
    cp "$target/synthio/release/$file" "$target/user/$file.$$"
    mv "$target/user/$file.$$" "$target/user/$file"
done
cp user/stdio/include/synthio.h "$target/user/synthio.h"
if [ $# -gt 0 ]; then
    install -d "$1/lib" "$1/include" "$1/share/man/man3"
    install -m 644 "$target/user/libsynthio.a" "$1/lib/"
    install -m 755 "$target/user/libsynthio.so" "$1/lib/"
    install -m 644 user/stdio/include/synthio.h "$1/include/"
    install -m 644 user/stdio/man/synthio.3 "$1/share/man/man3/"
fi
