#!/bin/bash
# Builds for x86-64 on a Debian 12 of any processor. build-x86_64/motet runs on Debian 12, Ubuntu 24.04 and what is newer:
# what such a machine may lack is linked in; libc, OpenSSL, libcurl and libedit are the machine's own.
# Debian's packages for x86-64 are unpacked into build-x86_64-sysroot; only the compiler has to be installed.
# usage: tools/cross.sh [option of meson setup ...]
set -euo pipefail
cd "$(dirname "$0")/.."

build="build-x86_64"
root=$PWD/$build-sysroot
libraries=$root/usr/lib/x86_64-linux-gnu

if ! command -v x86_64-linux-gnu-gcc >/dev/null; then
    echo "there is no compiler for x86-64: install gcc-x86-64-linux-gnu" >&2
    exit 1
fi

# An apt of its own that knows of no installed package, and so fetches all that others need. FFmpeg would bring a hundred
# more, none of which can be linked in; ZeroMQ's archive needs some of which there is none.
fetch_packages() {
    local packages
    packages=$(awk '$1 == "build" && $2 ~ /-dev$/ && $3 != "ffmpeg" && $3 != "zeromq" { print $2 }' tools/packages)
    mkdir -p "$root/apt/state/lists/partial" "$root/apt/cache/archives/partial"
    cat >"$root/apt/conf" <<END
APT { Architecture "amd64"; Architectures { "amd64"; }; Install-Recommends "false"; Sandbox::User "root"; };
Dir { State "$root/apt/state"; State::status "$root/apt/status"; Cache "$root/apt/cache"; };
END
    : >"$root/apt/status"
    export APT_CONFIG="$root/apt/conf"
    apt-get -qq update
    # $packages is a list of words.
    # shellcheck disable=SC2086
    apt-get -qq -y --download-only install $packages
}

unpack() {
    local file link
    for file in "$root"/apt/cache/archives/*.deb; do
        dpkg-deb -x "$file" "$root"
    done
    # Links that begin at the root of a machine begin at this one.
    find "$root" -type l -lname '/*' ! -lname "$root/*" | while read -r link; do
        ln -sf "$root$(readlink "$link")" "$link"
    done
    # The linker takes an archive where it finds no shared library of that name.
    for file in event_core event_openssl hiredis jansson jpeg pcre2-8 png png16 sqlite3 utf8proc webp webpdemux z zstd; do
        [ ! -e "$libraries/lib$file.a" ] || rm -f "$libraries/lib$file.so"
    done
    # Where a package does not say in which folder its library is, this machine's own might be taken, if it is an x86-64.
    sed -i 's|^Libs:|& -L/usr/lib/x86_64-linux-gnu|' "$libraries"/pkgconfig/*.pc
}

describe_machine() {
    cat >"$root/machine.ini" <<END
[binaries]
c = ['x86_64-linux-gnu-gcc', '--sysroot=$root']
ar = 'x86_64-linux-gnu-ar'
strip = 'x86_64-linux-gnu-strip'
pkgconfig = 'pkg-config'

[properties]
sys_root = '$root'
pkg_config_libdir = '$libraries/pkgconfig:$root/usr/share/pkgconfig'

[host_machine]
system = 'linux'
cpu_family = 'x86_64'
cpu = 'x86_64'
endian = 'little'
END
}

if [ ! "$root/machine.ini" -nt tools/packages ]; then
    fetch_packages
    unpack
    describe_machine
fi
if [ ! -e $build/build.ninja ]; then
    meson setup $build --cross-file "$root/machine.ini" -Ddebug=false -Dvideo=disabled -Devents=disabled "$@"
elif [ $# -gt 0 ]; then
    meson configure $build "$@"
fi
ninja -C $build
cp -L "$libraries/libcmocka.so.0" $build/tests/unit/ # of which there is no archive
