#!/bin/sh
# Valgrind's memcheck over the fuzzers' corpora and over a server that does a bit of everything (tests/e2e/memcheck.py).
# usage: tools/valgrind.sh BUILD
set -eu

build=${1:?usage: tools/valgrind.sh BUILD}
cd "$(dirname "$0")/.."
check="valgrind -q --suppressions=tools/valgrind.supp --error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite"

for corpus in tests/fuzz/corpus/*; do
    name=${corpus##*/}
    # $check is a list of words.
    # shellcheck disable=SC2086
    $check "$build/tests/fuzz/replay_$name" "$corpus" >"$build/valgrind-$name.log" 2>&1 || {
        grep '^==' "$build/valgrind-$name.log"
        exit 1
    }
    tail -n 1 "$build/valgrind-$name.log"
done
tests/e2e/memcheck.py --motet "$build/motet"
