#!/bin/sh
# Installs what tools/packages lists and this machine lacks. Says nothing when nothing is missing.
# usage: tools/setup.sh build|develop|pages|watch|routers|ranks|deb|memory|vulkan      (all include build)
set -eu

use=${1:?usage: tools/setup.sh build|develop|pages|watch|routers|ranks|deb|memory|vulkan}
list=$(dirname "$0")/packages

case $(uname -s) in
Darwin) column=3 ;;
*) column=2 ;;
esac

missing=
while read -r line_use debian brew probe; do
    case $line_use in
    '' | '#'*) continue ;;
    develop | pages | watch | routers | ranks | deb | memory | vulkan) [ "$use" = "$line_use" ] || continue ;;
    esac
    name=$debian
    [ "$column" = 2 ] || name=$brew
    [ "$name" != - ] || continue
    sh -c "$probe" >/dev/null 2>&1 </dev/null || missing="$missing $name"
done <"$list"
[ -n "$missing" ] || exit 0

if [ "$column" = 3 ]; then
    echo "motet needs a few packages first: run" >&2
    echo "    brew install$missing" >&2
    exit 1
fi
if ! command -v apt-get >/dev/null; then
    echo "motet needs these packages, named as Debian names them; install them and run make again:" >&2
    echo "   $missing" >&2
    exit 1
fi

as_root=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "motet needs these packages; become root and run: apt-get install$missing" >&2
        exit 1
    fi
    as_root=sudo
fi
echo "installing$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# $missing is a list of words.
# shellcheck disable=SC2086
if ! { $as_root apt-get update -qq && $as_root apt-get install -y -qq --no-install-recommends $missing; } >"$log" 2>&1; then
    cat "$log" >&2
    echo "could not install$missing: see above" >&2
    exit 1
fi
