#!/bin/sh
# Takes over from BUILD/corpus, where `make fuzz` gathers inputs, those that run lines which the kept ones do not: at most
# 20 a fuzzer and 4 KiB each, the smallest first. What is kept already stays.
# usage: tools/fuzz_merge.sh BUILD [NAME ...]
set -eu

build=${1:?usage: tools/fuzz_merge.sh BUILD [NAME ...]}
shift
cd "$(dirname "$0")/.."
ninja -C "$build" --quiet fuzzers
[ $# -gt 0 ] || set -- $(ls "$build/corpus")

for name; do
    kept=tests/fuzz/corpus/$name
    [ -d "$build/corpus/$name" ] && [ ! -L "$kept" ] || continue # pictures and videos are those of tests/media
    new=$(mktemp -d)
    cp "$kept"/* "$new"
    "$build/tests/fuzz/fuzz_$name" -merge=1 -timeout=30 -max_len=4096 "$new" "$build/corpus/$name" >"$build/$name.log" 2>&1
    known=$(ls "$kept")
    before=$(echo "$known" | wc -l)
    for file in $(cd "$new" && ls -Sr | grep -E '^[0-9a-f]{40}$' | grep -vxF "$known" | head -n 20); do
        cp "$new/$file" "$kept/$file"
    done
    echo "fuzz_$name: $before inputs, and $(($(ls "$kept" | wc -l) - before)) new ones of $(ls "$new" | wc -l)"
    rm -r "$new"
done
