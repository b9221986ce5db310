#!/bin/bash
# Builds for another processor on a Debian 12 of any: x86_64 (without a name), aarch64 or riscv64. build-x86_64/motet runs on
# Debian 12, Ubuntu 24.04 and what is newer, and so does build-aarch64/motet; build-riscv64/motet on Debian 13. What such a
# machine may lack is linked in; libc, OpenSSL, libcurl and libedit are the machine's own.
# Debian's packages for that processor are unpacked into build-PROCESSOR-sysroot; only the compiler has to be installed.
# usage: tools/cross.sh [PROCESSOR] [option of meson setup ...]
set -euo pipefail
cd "$(dirname "$0")/.."

processor=x86_64
case ${1:-} in
x86_64 | aarch64 | riscv64)
    processor=$1
    shift
    ;;
esac
case $processor in
x86_64) debian=amd64 ;;
aarch64) debian=arm64 ;;
riscv64) debian=riscv64 ;;
esac
build=build-$processor
triplet=$processor-linux-gnu
root=$PWD/$build-sysroot
libraries=$root/usr/lib/$triplet

if ! command -v "$triplet-gcc" >/dev/null; then
    echo "there is no compiler for $processor: install gcc-${triplet//_/-}" >&2
    exit 1
fi

# An apt of its own that knows of no installed package, and so fetches all that others need. FFmpeg would bring a hundred
# more, none of which can be linked in; ZeroMQ's archive needs some of which there is none.
fetch_packages() {
    local packages
    packages=$(awk '$1 == "build" && $2 ~ /-dev$/ && $3 != "ffmpeg" && $3 != "zeromq" { print $2 }' tools/packages)
    mkdir -p "$root/apt/state/lists/partial" "$root/apt/cache/archives/partial"
    cat >"$root/apt/conf" <<END
APT { Architecture "$debian"; Architectures { "$debian"; }; Install-Recommends "false"; Sandbox::User "root"; };
Dir { State "$root/apt/state"; State::status "$root/apt/status"; Cache "$root/apt/cache"; };
END
    if [ "$processor" = riscv64 ]; then # which Debian 12 does not have
        echo "deb http://deb.debian.org/debian trixie main" >"$root/apt/sources"
        echo "Dir::Etc { SourceList \"$root/apt/sources\"; SourceParts \"/dev/null\"; };" >>"$root/apt/conf"
    fi
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
        ln -sfn "$root$(readlink "$link")" "$link"
    done
    [ -e "$root/lib" ] || ln -s usr/lib "$root/lib" # as it is in Debian 13, where no package has it
    # The linker takes an archive where it finds no shared library of that name.
    for file in event_core event_openssl hiredis jansson jpeg pcre2-8 png png16 sqlite3 utf8proc webp webpdemux z zstd; do
        [ ! -e "$libraries/lib$file.a" ] || rm -f "$libraries/lib$file.so"
    done
    # Where a package does not say in which folder its library is, this machine's own might be taken, if it is of the kind.
    sed -i "s|^Libs:|& -L/usr/lib/$triplet|" "$libraries"/pkgconfig/*.pc
}

describe_machine() {
    local compiler="'$triplet-gcc'"
    ! command -v ccache >/dev/null || compiler="'ccache', $compiler"
    local links=
    # Libraries of Debian 13 want its libc, not the one that came with the compiler.
    [ "$processor" != riscv64 ] || links="c_link_args = ['-B$libraries', '-L$libraries']"
    cat >"$root/machine.ini" <<END
[built-in options]
$links

[binaries]
c = [$compiler, '--sysroot=$root']
ar = '$triplet-ar'
strip = '$triplet-strip'
pkgconfig = 'pkg-config'

[properties]
sys_root = '$root'
pkg_config_libdir = '$libraries/pkgconfig:$root/usr/share/pkgconfig'

[host_machine]
system = 'linux'
cpu_family = '$processor'
cpu = '$processor'
endian = 'little'
END
}

if [ ! "$root/machine.ini" -nt tools/packages ]; then
    fetch_packages
    unpack
    describe_machine
fi
if [ ! -e "$build/build.ninja" ]; then
    meson setup "$build" --cross-file "$root/machine.ini" -Ddebug=false -Dvideo=disabled -Devents=disabled "$@"
elif [ $# -gt 0 ]; then
    meson configure "$build" "$@"
fi
ninja -C "$build"
if [ -d "$build/tests/unit" ]; then
    cp -L "$libraries/libcmocka.so.0" "$build/tests/unit/" # of which there is no archive
fi
