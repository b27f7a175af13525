#!/bin/sh
# Builds the library for C programs into target/user: libsynthio.a, libsynthio.so and synthio.h.
#
#     user/stdio/build.sh [PREFIX]     with PREFIX also installs there: lib, include, share/man/man3
set -eu
cd "$(dirname "$0")/../.."
. user/library.sh
build synthio c libsynthio
cp user/stdio/include/synthio.h "$target/user/synthio.h"
if [ $# -gt 0 ]; then
    install_to "$1" stdio libsynthio
fi
