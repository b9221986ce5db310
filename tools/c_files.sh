#!/bin/sh
# Prints the C files of the tree and those of kernels for GPUs, one per line; with arguments, those below these folders.
cd "$(dirname "$0")/.." || exit 1
find "${@:-.}" \( -name 'build' -o -name 'build-*' -o -name '.*' ! -name . \) -prune -o \
    \( -name '*.c' -o -name '*.h' -o -name '*.def' -o -name '*.cu' -o -name '*.cuh' \) -type f -print |
    sed 's|^\./||' | LC_ALL=C sort
