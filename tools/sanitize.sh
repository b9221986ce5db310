#!/bin/sh
# Builds a folder that is set up for a sanitizer and runs the tests in it. Tests see MOTET_TEST_QUICK=1 and leave out
# what would take minutes; those of the suite "slow" do not run at all.
# usage: tools/sanitize.sh BUILD [argument of `meson test` ...]
set -eu

build=${1:?usage: tools/sanitize.sh BUILD}
shift
cd "$(dirname "$0")/.."

export MOTET_TEST_QUICK=1
# The search for leaks takes 4 s per process on ARM. Unit tests ask for it, and skip it where tests/unit/heap.h sees that
# there can be none; programs that are run many times do not.
export ASAN_OPTIONS=detect_leaks=0
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/tools/tsan.supp"

without=
case $build in
*tsan)
    # There is nothing to see where there is one thread. What the oracle runs has the threads that the engine's tests
    # have, and is slow; it also maps 100 GB, which do not fit beside the sanitizer's own tables. These cannot live with
    # much randomness in the address space either.
    # "again": the same threads with other numbers, or other words. More than half of all programs are not built then.
    export MOTET_TEST_RACES=1
    set -- --no-suite kernels --no-suite single --no-suite fuzz --no-suite oracle --no-suite again "$@"
    if setarch -R true 2>/dev/null; then without="setarch -R"; fi
    set -- --build "$@"
    ;;
*) ninja -C "$build" --quiet ;;
esac
# $without is a list of words.
# shellcheck disable=SC2086
exec $without tests/run.py "$build" --no-suite slow --timeout-multiplier 20 "$@"
