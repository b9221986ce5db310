#!/bin/sh
# Builds a folder that is set up for a sanitizer and runs the tests in it. Tests see MOTET_TEST_QUICK=1 and leave out
# what would take minutes; those of the suite "slow" do not run at all.
# usage: tools/sanitize.sh BUILD [--stores] [argument of `meson test` ...]
#
# --stores builds and runs the tests of what comes from outside other than by requests and is kept: pictures and videos, a
# hub's files, a Redis, the cache on disk; and those of the sandbox around it, which is on. Reports of confined processes
# have addresses instead of lines, since these cannot start a symbolizer: llvm-symbolizer --obj=BUILD/motet ADDRESS.
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

if [ "${1-}" = --stores ]; then
    shift
    command -v redis-server >/dev/null || { echo "there is no redis-server: run tools/setup.sh routers" >&2; exit 1; }
    stores="media_address media_decode_process media_digest media_fetch media_hostile media_image media_image_bmp
        media_image_jpeg media_image_png media_resize media_source media_video server_pictures api_pictures
        hub_find hub_listing hub_local cli_pull tier_remote e2e_remote tier_disk tier_identity tier_segment tier_host_store
        engine_keep api_store base_confine api_reports api_service"
    # $stores is a list of words.
    # shellcheck disable=SC2086
    set -- --build $stores "$@"
fi

without=
case $build in
*tsan)
    # There is nothing to see where there is one thread. What the oracle runs has the threads that the engine's tests
    # have, and is slow; it also maps 100 GB, which do not fit beside the sanitizer's own tables. These cannot live with
    # much randomness in the address space either.
    # "attack": the same threads with other words. More than half of all programs are not built then.
    export MOTET_TEST_RACES=1
    set -- --no-suite kernels --no-suite single --no-suite fuzz --no-suite oracle --no-suite attack "$@"
    if setarch -R true 2>/dev/null; then without="setarch -R"; fi
    set -- --build "$@"
    ;;
*) case " $* " in *" --build "*) ;; *) ninja -C "$build" --quiet ;; esac ;;
esac
# $without is a list of words.
# shellcheck disable=SC2086
# "again": what other tests run, with other numbers or by other words, for other answers.
exec $without tests/run.py "$build" --no-suite slow --no-suite again --timeout-multiplier 20 "$@"
