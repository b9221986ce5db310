#!/bin/sh
# Runs what tests the parsers in a build folder with -Db_coverage=true: their unit tests, the fuzzers' corpora, and
# requests to a server, which then has no sandbox, since it writes down what it ran. Then tools/coverage.py counts.
# usage: tools/coverage.sh BUILD [option of tools/coverage.py ...]
set -eu

build=${1:?usage: tools/coverage.sh BUILD}
shift
cd "$(dirname "$0")/.."
ninja -C "$build" --quiet
find "$build" -name '*.gcda' -delete

tests=$(meson test -C "$build" --list 2>/dev/null | sed 's/.* //' |
    grep -E '^(replay|cli_chat|api_(answer|fields|json|cases|vectors|ollama|gemini)|base_(json|utf8|units|duration)|chat|http_[a-r]|hub_l|media_[ai]|models_[ps]|sample_[cs]|server_[gko]|template|text|tier|weights)')
# $tests is a list of words.
# shellcheck disable=SC2086
MOTET_SANDBOX=off tests/run.py "$build" $tests | tail -n 1
tools/coverage.py "$build" "$@"
