#!/bin/sh
# Says which commit the tree is of, and of which day: "4fdf153 2026-11-16", with a + behind the commit where files were
# changed since. A tree without git has it in .tarball-version, which `make deb` writes.
cd "$(dirname "$0")/.." || exit 1

if [ -e .git ] && source=$(git log -1 --format='%h %cs' 2>/dev/null); then
    git diff --quiet HEAD 2>/dev/null || source=$(echo "$source" | sed 's/ /+ /')
    echo "$source"
elif [ -e .tarball-version ]; then
    cat .tarball-version
else
    echo unknown
fi
