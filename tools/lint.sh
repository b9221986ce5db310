#!/bin/bash
# What the compiler alone does not see. Each fault is printed as "file:line: what is wrong: what to do". The two folders
# are set up for gcc and for clang with warnings as errors, and are built here.
# usage: tools/lint.sh GCC CLANG
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

flags=(-x c -std=c17 -D_GNU_SOURCE -Wall -Wextra -Wstrict-prototypes -Werror -fsyntax-only)

check() { # name, command ...
    local name=$1
    shift
    if ! "$@"; then
        echo "lint: $name failed" >&2
        failed=1
    fi
}

layout() {
    # options.def is not C by itself.
    echo "$files" | grep -v '\.def$' | xargs -P "$(nproc)" -n 100 clang-format --dry-run --Werror 2>&1 | grep 'error:' |
        sed 's/error: code should be clang-formatted.*/layout differs from clang-format: run make format/' | sort -t: -k1,1 -u
    [ "${PIPESTATUS[2]}" = 0 ]
}

# The flags to try a file with, a line each: those of each level of its folder in src/kernels, else only the include
# folder. Nothing is printed for a folder that belongs to another processor.
flags_for() { # file
    local folder=${1#src/kernels/}
    if [ "$folder" = "$1" ] || [ "$folder" = "${folder#*/}" ]; then
        echo -Isrc
        return
    fi
    folder=${folder%%/*}
    awk -v folder="$folder" -v cpu="$(uname -m)" '
        ($1 == folder || index($1, folder "_") == 1) && ($2 == cpu || $2 == "any") { $1 = "-Isrc"; $2 = ""; print }
    ' src/kernels/flags.txt
}

compiles_alone() { # compiler, header
    local level
    while read -r level; do
        # $level is a list of words.
        # shellcheck disable=SC2086
        if echo "#include \"$PWD/$2\"" | "$1" "${flags[@]}" $level - 2>/dev/null; then
            return 0
        fi
    done
    return 1
}

# Says which of the headers it is given does not compile alone. Files named *_tmpl.h are code that is included several
# times with other macros, not headers.
try_headers() { # header ...
    local compiler header tries status=0
    for header; do
        tries=$(flags_for "$header")
        [ -n "$tries" ] || continue
        for compiler in gcc clang; do
            if ! echo "$tries" | compiles_alone "$compiler" "$header"; then
                echo "$header:1: does not compile alone with $compiler: include what it uses (or name it _tmpl.h)"
                status=1
            fi
        done
    done
    return $status
}

headers_alone() {
    echo "$files" | grep '\.h$' | grep -v '_tmpl\.h$' | xargs -P "$(nproc)" -n 16 tools/lint.sh --headers
}

# A file that no meson.build lists is never compiled, and nobody notices.
listed() {
    local file status=0
    for file in $(echo "$files" | grep '\.c$' |
        grep -vxFf <(grep -o '"file": "\.\./[^"]*' "$gcc"/compile_commands.json | sed 's|.*"\.\./||')); do
        [ -n "$(flags_for "$file")" ] || continue
        [ ! -e "${file%.c}_absent.c" ] || continue # which a build does without
        [ "${file%_absent.c}" = "$file" ] || continue # which stands for what a build has
        echo "$file:1: is not compiled: list it in the meson.build of its folder"
        status=1
    done
    return $status
}

# The same of kernels for GPUs: a file is an image of its own, or part of another.
kernels_listed() {
    local file name status=0
    for file in src/device/cuda/*/*.cu; do
        name=${file#src/device/cuda/}
        if ! grep -q "'${name%.cu}'" src/device/meson.build && ! grep -q "cuda/$name\"" src/device/cuda/*/*.cu; then
            echo "$file:1: is not compiled: list it in src/device/meson.build"
            status=1
        fi
    done
    return $status
}

symbols() {
    local foreign
    foreign=$(nm -A -g --defined-only "$gcc"/libmotet_core.a "$gcc"/src/kernels/*.a |
        awk 'NF >= 3 && $NF !~ /^mt_/ { print $1 ": \"" $NF "\" is exported without the prefix: make it static or name it mt_..." }')
    [ -z "$foreign" ] || { echo "$foreign"; return 1; }
}

# Who uses whom, "user used" a line, as nm tells it of the objects in the archives of a build.
users() {
    # $files is a list of words.
    # shellcheck disable=SC2086
    nm -A "$gcc"/libmotet_core.a "$gcc"/src/kernels/*.a | awk -v files="$(echo $files)" '
        BEGIN { # objects are named as files are, with _ for /
            count = split(files, paths, " ")
            for (i = 1; i <= count; i++) {
                name = paths[i]
                gsub("/", "_", name)
                path[name ".o"] = paths[i]
            }
        }
        {
            object = $1
            sub(":[0-9a-f]*$", "", object)
            sub(".*[/:]", "", object)
            if ($1 ~ "/src/kernels/")
                object = "src_kernels_" object
            if (!(object in path))
                next
            if ($(NF - 1) == "U")
                uses[path[object], $NF] = 1
            else if ($(NF - 1) ~ /[TDBRVW]/)
                home[$NF] = path[object]
        }
        END {
            for (use in uses) {
                split(use, pair, SUBSEP)
                if (pair[2] in home && home[pair[2]] != pair[1])
                    print pair[1], home[pair[2]]
            }
        }' | sort -u
}

# Prints the circles among pairs "user used", a line each, and fails when there is one.
no_loop() { # what they are
    tsort 2>&1 >/dev/null | awk -v what="$1" '
        /input contains a loop/ { printf "%s%s use each other in a circle, move what they share below them:", found++ ? "\n" : "", what; next }
        { printf " %s", $2 }
        END { if (found) print ""; exit found > 0 }'
}

# Files use each other in one direction, but for those that tools/recursions.txt names with a reason, and so do folders.
# That there are any to look at is looked at, too: names of objects are Meson's.
circles() {
    local pairs allowed needless status=0
    pairs=$(users)
    allowed=$(awk '/^src/ { print $1, $2 }' tools/recursions.txt | sort)
    [ "$(echo "$pairs" | wc -l)" -gt 1000 ] || { echo "tools/lint.sh:1: no objects are known by the names of their files"; return 1; }
    echo "$pairs" | comm -23 - <(echo "$allowed") | no_loop "files" || status=1
    needless=$(echo "$pairs" | comm -13 - <(echo "$allowed"))
    if [ -n "$needless" ]; then
        echo "tools/recursions.txt:1: the first of these does not use the second any more, remove the line: $needless"
        status=1
    fi
    echo "$pairs" | awk -F '[/ ]' '{ split($0, file, " "); split(file[2], used, "/"); if ($2 != used[2]) print $2, used[2] }' | sort -u | no_loop "folders" || status=1
    return $status
}

documents() {
    local folder page status=0
    folder=$(mktemp -d)
    tools/docs.sh "$gcc"/motet "$folder"
    for page in options.md coming-from.md; do
        cmp -s "$folder/$page" "docs/$page" && continue
        echo "docs/$page:1: is not what src/options/options*.def say: run make docs"
        status=1
    done
    rm -r "$folder"
    return $status
}

# Every limit is used, and either a test names it or tests/limits.txt says where it is met, or why nowhere.
limits() {
    local used tested known name where words status=0
    used=$(grep -rhv '^#define MT_LIMIT_' src --include='*.[ch]' --include='*.def' --include='*.cu' --include='*.cuh' |
        grep -ow 'MT_LIMIT_[A-Z0-9_]*' | sort -u)
    used=$({ echo "$used"; sed -n 's/^#define MT_LIMIT_[A-Z0-9_]* //p' src/*/limits.h | grep -ow 'MT_LIMIT_[A-Z0-9_]*'; } | sort -u)
    tested=$(grep -rohw --include='*.[ch]' 'MT_LIMIT_[A-Z0-9_]*' tests | sort -u)
    known=$(sed -n 's/^#define \(MT_LIMIT_[A-Z0-9_]*\) .*/\1/p' src/*/limits.h src/base/error.h | sort)
    for name in $(echo "$known" | comm -23 - <(echo "$used")); do
        echo "src: $name of a limits.h is not used: remove it"
        status=1
    done
    for name in $(echo "$known" | comm -23 - <({ echo "$tested"; grep -o '^MT_LIMIT[^ ]*' tests/limits.txt; } | sort -u)); do
        echo "src: no test names $name of a limits.h: write one, or say in tests/limits.txt where it is met or why not"
        status=1
    done
    while read -r name where words; do
        if ! echo "$known" | comm -23 - <(echo "$tested") | grep -qx "$name"; then
            echo "tests/limits.txt:1: $name is no limit, or a test names it: remove the line"
            status=1
        elif [ "$where" != - ] && ! grep -qF -e "$words" "$where"; then
            echo "tests/limits.txt:1: $where has not \"$words\" for $name: say where that is met"
            status=1
        fi
    done < <(grep '^MT_' tests/limits.txt)
    return $status
}

# A bug that is tried on purpose still finds its line.
mutants() {
    local patch status=0
    for patch in tests/mutants/*.patch; do
        git apply --check "$patch" 2>/dev/null && continue
        echo "$patch:1: does not fit the code any more: write it anew"
        status=1
    done
    return $status
}

# Names that macOS lacks, in what the preprocessor leaves of a file where __APPLE__ is defined and __linux__ is not. All of it is
# compiled for macOS by `make test-shipped` alone.
elsewhere() {
    local names file status=0
    names='accept4|clock_nanosleep|copy_file_range|dl_iterate_phdr|epoll_[a-z0-9]+|eventfd|execvpe|explicit_bzero|fallocate|'
    names+='fdatasync|fopencookie|getrandom|gettid|inotify_[a-z0-9]+|malloc_trim|MAP_POPULATE|memfd_create|memrchr|mempcpy|'
    names+='mremap|O_DIRECT|O_PATH|O_TMPFILE|pipe2|posix_fadvise|posix_fallocate|prctl|preadv2|pthread_barrier_[a-z]+|'
    names+='qsort_r|readahead|reallocarray|renameat2|sched_[gs]etaffinity|secure_getenv|sem_init|signalfd|SO_PEERCRED|'
    names+='SOCK_CLOEXEC|SOCK_NONBLOCK|SOCK_SEQPACKET|splice|st_[acm]tim|statx|strchrnul|syscall|sysinfo|timerfd_[a-z]+'
    for file in $(echo "$files" | grep '^src/.*\.c$' | grep -v '^src/device/cuda/' | xargs grep -lwE "$names"); do
        # Without headers, so that their macros are as unknown as they are there.
        sed 's/^ *# *include.*//' "$file" | clang -E -x c -std=c17 -U__linux__ -U__linux -Ulinux -D__APPLE__ - 2>/dev/null |
            awk -v file="$file" -v names="(^|[^A-Za-z0-9_])($names)[^A-Za-z0-9_]" '
                /^# [0-9]+ "/ { here = $3 == "\"<stdin>\""; line = $2; next }
                here && match($0 " ", names) {
                    name = substr($0, RSTART, RLENGTH)
                    gsub(/[^A-Za-z0-9_]/, "", name)
                    printf "%s:%d: macOS has no \"%s\": put it where __linux__ is defined, with another way elsewhere\n", file, line, name
                    found = 1
                }
                { line++ }
                END { exit found }' || status=1
    done
    return $status
}

# Kernels of arm64, looked at on an x86-64, too: clang has all that this takes but headers of a C library. Those of this
# machine do, once they are told how long words are and that it has every function.
kernels_elsewhere() {
    local here file level status=0
    [ "$(uname -s) $(uname -m)" = "Linux x86_64" ] || return 0
    here=$(mktemp -d)
    mkdir "$here/gnu" "$here/bits"
    : >"$here/gnu/stubs.h"
    printf '#define __WORDSIZE 64\n#define __WORDSIZE_TIME64_COMPAT32 0\n' >"$here/bits/wordsize.h"
    for file in src/kernels/neon/*.c; do
        level=$(basename "$file" .c)
        level=$(awk -v level="neon_${level##*_}" '$1 == level { $1 = $2 = ""; print }' src/kernels/flags.txt)
        # $level is a list of words.
        # shellcheck disable=SC2086
        clang --target=aarch64-linux-gnu "${flags[@]}" -Wshadow -Wconversion "-I$here" -isystem /usr/include/x86_64-linux-gnu \
            -Isrc $level "$file" || status=1
    done
    rm -r "$here"
    return $status
}

# Headers are tried by as many of this program as there are cores.
if [ "${1:-}" = --headers ]; then
    try_headers "${@:2}"
    exit
fi

gcc=${1:?usage: tools/lint.sh GCC CLANG}
clang=${2:?usage: tools/lint.sh GCC CLANG}
failed=0
files=$(tools/c_files.sh)
# $files is a list of words.
# shellcheck disable=SC2086
check "text" awk -f tools/lint.awk $files
check "layout" layout
check "headers" headers_alone
check "elsewhere" elsewhere
check "kernels elsewhere" kernels_elsewhere
check "gcc" ninja -C "$gcc" --quiet
check "clang" ninja -C "$clang" --quiet
check "lists" listed
check "kernels" kernels_listed
check "symbols" symbols
check "circles" circles
check "documents" documents
check "limits" limits
check "mutants" mutants
[ $failed = 0 ] && echo "lint: ok"
exit $failed
