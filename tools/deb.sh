#!/bin/sh
# Builds the Debian package from the files of the tree, in a folder of its own, and looks at it with lintian.
# usage: tools/deb.sh FOLDER
set -eu

folder=${1:?usage: tools/deb.sh FOLDER}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
cd "$(dirname "$0")/.."
version=$(sed -n "1s/.*(\(.*\)).*/\1/p" debian/changelog)
source=$folder/motet-$version

rm -rf "${folder:?}"/motet*
mkdir -p "$source"
if [ -e .git ]; then
    git ls-files -z --cached --others --exclude-standard | xargs -0 ls -d 2>/dev/null | tar -cf - -T - | tar -xf - -C "$source"
else
    tar -cf - --exclude='./build*' . | tar -xf - -C "$source"
fi
tools/version.sh >"$source/.tarball-version"
log=$folder/build.log
if ! (cd "$source" && dpkg-buildpackage --no-sign --build=binary) >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "the package could not be built: see $log" >&2
    exit 1
fi
if command -v lintian >/dev/null; then
    lintian --allow-root --fail-on error,warning --suppress-tags bad-distribution-in-changes-file \
        "$folder"/motet_*.changes
    echo "lintian: no errors, no warnings"
fi
ls "$folder"/*.deb
