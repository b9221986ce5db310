#!/bin/sh
# Builds checkkernels, or checkdevice, with a C compiler alone: no Meson, no library but libm and threads.
# usage: tests/kernels/build.sh [checkkernels|checkdevice]     (into this folder; CC and CFLAGS are heeded)
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
program=${1:-checkkernels}
cc=${CC:-cc}
flags="-std=c17 -O2 -g -D_GNU_SOURCE -ffp-contract=off -Wall -Wextra ${CFLAGS:-}"
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT

case $($cc -dumpmachine) in
aarch64* | arm64*) cpu=aarch64 ;;
x86_64* | amd64*) cpu=x86_64 ;;
*) cpu=other ;;
esac

# The flags of a level, with a dot in front so that a level without flags differs from none.
level_flags() {
    awk -v level="$1" -v cpu="$cpu" '
        $1 == level && ($2 == cpu || $2 == "any") { $1 = $2 = ""; print "." $0 }' "$top/src/kernels/flags.txt"
}

compile() { # file, flags of its level
    # $flags and $2 are lists of words.
    # shellcheck disable=SC2086
    $cc $flags $2 -I"$top/src" -c "$1" -o "$objects/$(echo "${1#"$top"/}" | tr / _).o"
}

if [ "$(basename "$program")" = checkdevice ]; then
    # $base is a list of words: what of it needs no library.
    base=$(grep -L 'jansson.h\|json_tree.h' "$top"/src/base/*.c || true)
    # shellcheck disable=SC2086
    set -- "$top"/tests/device/*.c "$top"/tests/kernels/harness.c "$top"/tests/kernels/matrix.c $base \
        "$top"/src/device/*.c "$top"/src/device/cpu/*.c "$top"/src/device/vulkan/vulkan_absent.c "$top"/src/sample/*.c \
        "$top"/src/ranks/mpi_absent.c "$top"/src/ranks/started.c
else
    set -- "$top"/tests/kernels/*.c
fi
for file in "$@" "$top"/src/kernels/*.c; do
    compile "$file" ""
done
for file in "$top"/src/kernels/*/*.c; do
    folder=$(basename "$(dirname "$file")")
    stem=$(basename "$file" .c)
    found=$(level_flags "${folder}_${stem##*_}")
    [ -n "$found" ] || found=$(level_flags "$folder")
    [ -z "$found" ] || compile "$file" "${found#.}"
done
# shellcheck disable=SC2086
$cc $flags "$objects"/*.o -o "$program" -lm -lpthread
