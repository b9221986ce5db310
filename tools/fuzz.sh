#!/bin/sh
# Runs every fuzzer of a build folder, as many at a time as there are cores. New inputs gather in BUILD/corpus; an input
# that crashes is left in BUILD.
# usage: tools/fuzz.sh BUILD SECONDS [NAME]      (NAME: that one alone, without building)
set -eu

usage="usage: tools/fuzz.sh BUILD SECONDS [NAME]"
build=${1:?$usage}
seconds=${2:?$usage}
name=${3:-}
cd "$(dirname "$0")/.."

if [ -z "$name" ]; then
    ninja -C "$build" --quiet fuzzers
    for source in tests/fuzz/fuzz_*.c; do
        each=${source##*/fuzz_}
        echo "${each%.c}"
    done | xargs -P "$(getconf _NPROCESSORS_ONLN)" -n 1 tools/fuzz.sh "$build" "$seconds"
    exit
fi

# An input that leaks is found as it is run. The search at the end would find no other, and takes 3 s a process on ARM.
export ASAN_OPTIONS="leak_check_at_exit=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
mkdir -p "$build/corpus/$name"
if ! "$build/tests/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=4096 \
    -artifact_prefix="$build/$name-" "$build/corpus/$name" "tests/fuzz/corpus/$name" >"$build/$name.log" 2>&1; then
    tail -n 60 "$build/$name.log"
    echo "fuzz_$name failed: replay it with $build/tests/fuzz/fuzz_$name and the file named above" >&2
    exit 1
fi
echo "fuzz_$name: $(tail -n 1 "$build/$name.log")"
