#!/bin/sh
# Builds the libraries for C programs into target/user: libsynthmem.a, libsynthmem.so and synthmem.h; and libsynthmalloc.a and
# libsynthmalloc.so, which stand in for the C library's malloc (LD_PRELOAD=target/user/libsynthmalloc.so program).
#
#     user/memory/build.sh [PREFIX]     with PREFIX also installs there: lib, include, share/man/man3
set -eu
cd "$(dirname "$0")/../.."
. user/library.sh
build synthmem c libsynthmem
build synthmem malloc libsynthmalloc
cp user/memory/include/synthmem.h "$target/user/synthmem.h"
if [ $# -gt 0 ]; then
    install_to "$1" memory libsynthmem libsynthmalloc
fi
