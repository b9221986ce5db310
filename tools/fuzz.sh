#!/bin/sh
# Runs every fuzzer of a build folder. New inputs gather in BUILD/corpus; an input that crashes is left in BUILD.
# usage: tools/fuzz.sh BUILD SECONDS
set -eu

build=${1:?usage: tools/fuzz.sh BUILD SECONDS}
seconds=${2:?usage: tools/fuzz.sh BUILD SECONDS}
cd "$(dirname "$0")/.."
ninja -C "$build" --quiet fuzzers

for fuzzer in "$build"/tests/fuzz/fuzz_*; do
    [ -f "$fuzzer" ] && [ -x "$fuzzer" ] || continue
    name=${fuzzer##*/fuzz_}
    mkdir -p "$build/corpus/$name"
    if ! "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -artifact_prefix="$build/$name-" \
        "$build/corpus/$name" "tests/fuzz/corpus/$name" >"$build/$name.log" 2>&1; then
        tail -n 60 "$build/$name.log"
        echo "fuzz_$name failed: replay it with $fuzzer and the file named above" >&2
        exit 1
    fi
    echo "fuzz_$name: $(tail -n 1 "$build/$name.log")"
done
