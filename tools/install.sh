#!/bin/sh
# Installs a build. Where it goes to this very system, the unit's user and folders are made, too, by systemd's own tools.
# usage: tools/install.sh BUILD PREFIX DESTDIR (may be empty)
set -eu

build=${1:?usage: tools/install.sh BUILD PREFIX DESTDIR}

# Folders that need not exist, for which macOS' realpath has no answer.
absolute() {
    case $1 in
    /* | "") printf '%s\n' "$1" ;;
    *) printf '%s\n' "$PWD/$1" ;;
    esac
}

prefix=$(absolute "${2:?usage: tools/install.sh BUILD PREFIX DESTDIR}")
target=$(absolute "${3-}")

meson configure "$build" -Dprefix="$prefix"
ninja -C "$build" --quiet installed
DESTDIR=$target meson install -C "$build" --no-rebuild --quiet
unit=$prefix/lib/systemd/system/motet.service
[ -z "$target" ] && [ -e "$unit" ] && [ "$(id -u)" = 0 ] || exit 0
if command -v systemd-sysusers >/dev/null && command -v systemd-tmpfiles >/dev/null; then
    systemd-sysusers "$prefix/lib/sysusers.d/motet.conf"
    systemd-tmpfiles --create "$prefix/lib/tmpfiles.d/motet.conf"
else
    echo "$unit needs a user \"motet\" and its folders, which nobody has made: this system has no systemd-sysusers"
fi
case $prefix in
/usr | /usr/local) ;;
*) echo "systemd looks for no units in $prefix: systemctl link $unit" ;;
esac
