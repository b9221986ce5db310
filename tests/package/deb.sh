#!/bin/bash
# Installs the package in a fresh Debian 12, has the unit's user pull a model from a hub of ours, starts what the unit
# runs, and talks to it with the clients that people use. Needs root, debootstrap, node, npm, and the machine's mirror.
# usage: tests/package/deb.sh FOLDER_WITH_THE_DEB
set -euo pipefail

debs=$(cd "${1:?usage: tests/package/deb.sh FOLDER}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
mirror=$(sed -n 's/^URIs: *//p; s/^deb \([^ ]*\) .*/\1/p' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
    grep 'debian/*$' | sed -n 1p || true)
mirror=${mirror:-http://deb.debian.org/debian}
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
work=$(mktemp -d)
chroot=$work/root
server=

[ "$(id -u)" = 0 ] || { echo "debootstrap and chroot need root" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "install debootstrap first" >&2; exit 1; }

finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -z "$server" ] || wait "$server" 2>/dev/null || true
    umount "$chroot/dev/null" "$chroot/proc" 2>/dev/null || true
    rm -rf --one-file-system "$work"
}
trap finish EXIT

in_root() { chroot "$chroot" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }

echo "== a fresh Debian 12"
debootstrap --variant=minbase bookworm "$chroot" "$mirror" >"$work/debootstrap.log" 2>&1 ||
    { tail "$work/debootstrap.log"; exit 1; }
cp /etc/resolv.conf "$chroot/etc/" 2>/dev/null || true
cp /etc/hosts "$chroot/etc/" 2>/dev/null || true
for f in /etc/apt/apt.conf.d/*proxy*; do [ ! -e "$f" ] || cp "$f" "$chroot/etc/apt/apt.conf.d/"; done
mount -t proc proc "$chroot/proc"

echo "== the package"
cp "$debs"/motet_*.deb "$chroot/tmp/"
in_root apt-get update -qq >/dev/null
in_root sh -c 'apt-get install -y -qq --no-install-recommends /tmp/motet_*.deb' >"$work/apt.log" 2>&1 ||
    { tail "$work/apt.log"; exit 1; }
in_root motet --version
in_root id motet
in_root sh -c 'ls -ld /var/lib/motet /var/cache/motet /etc/motet.conf && dpkg -s motet | grep -A 3 Conffiles'

echo "== what the unit runs"
unit=$chroot/lib/systemd/system/motet.service
[ -e "$unit" ] || unit=$chroot/usr/lib/systemd/system/motet.service
command=$(sed -n 's/^ExecStart=//p' "$unit")
user=$(sed -n 's/^User=//p' "$unit")
read -ra variables < <(sed -n 's/^Environment=//p' "$unit")
coproc hub { exec python3 "$here/hub.py"; }
read -r address <&"${hub[0]}"
# what stands before a command of the unit's user, in its folder, with its variables
as_unit=(chroot --userspec="$user:$user" "$chroot" /usr/bin/env -i PATH=/usr/bin:/bin HF_ENDPOINT="$address"
    "${variables[@]}" sh -c 'cd /var/lib/motet && exec "$@"' sh)
model=motet/box
"${as_unit[@]}" motet pull "$model"
"${as_unit[@]}" motet list
printf 'port = %s\n' "$port" >>"$chroot/etc/motet.conf"
# $command is a list of words.
# shellcheck disable=SC2086
"${as_unit[@]}" $command --check
# shellcheck disable=SC2086
"${as_unit[@]}" $command 2>"$work/motet.log" &
server=$!
for _ in $(seq 600); do
    curl -fsS "http://127.0.0.1:$port/ready" >/dev/null 2>&1 && break
    kill -0 "$server" 2>/dev/null || { cat "$work/motet.log"; exit 1; }
    sleep 0.1
done

echo "== clients"
node_modules=${MOTET_CLIENTS:-$HOME/.cache/motet/package}
mkdir -p "$node_modules"
(cd "$node_modules" && npm install --silent --no-audit --no-fund --no-save ollama openai @anthropic-ai/sdk >/dev/null)
cp "$here/clients.mjs" "$work/clients.mjs"
ln -s "$node_modules/node_modules" "$work/node_modules"
(cd "$work" && node clients.mjs "http://127.0.0.1:$port" "$model")

echo "== the end"
kill -TERM "$server"
wait "$server" && echo "ended with 0"
server=
in_root apt-get purge -y -qq motet >/dev/null 2>&1
in_root sh -c 'test ! -e /usr/bin/motet && test ! -e /etc/motet.conf' && echo "purged"
echo "package: ok"
