#!/bin/sh
# Builds a folder that is set up for a sanitizer and runs the tests in it. Tests see MOTET_TEST_QUICK=1 and leave out
# what would take minutes; those of the suite "slow" are not run at all.
# usage: tools/sanitize.sh BUILD [argument of `meson test` ...]
set -eu

build=${1:?usage: tools/sanitize.sh BUILD}
shift
cd "$(dirname "$0")/.."
ninja -C "$build" --quiet

export MOTET_TEST_QUICK=1
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1

# The thread sanitizer cannot live with much randomness in the address space.
without=
case $build in
*tsan) if setarch -R true 2>/dev/null; then without="setarch -R"; fi ;;
esac
# $without is a list of words.
# shellcheck disable=SC2086
exec $without tests/run.py "$build" --no-suite slow --timeout-multiplier 10 "$@"
