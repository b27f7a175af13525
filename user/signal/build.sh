#!/bin/sh
# Builds the library for C programs into target/user: libsynthsignal.a, libsynthsignal.so and synthsignal.h.
#
#     user/signal/build.sh [PREFIX]     with PREFIX also installs there: lib, include, share/man/man3
set -eu
cd "$(dirname "$0")/../.."
. user/library.sh
build synthsignal c libsynthsignal
cp user/signal/include/synthsignal.h "$target/user/synthsignal.h"
if [ $# -gt 0 ]; then
    install_to "$1" signal libsynthsignal
fi
