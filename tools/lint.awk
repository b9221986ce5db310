# What can be seen in the text of a C file alone. Prints "file:line: what is wrong: what to do"; fails when it did.
# usage: awk -f tools/lint.awk FILE ...

BEGIN {
    width = 120
    layers = "base ranks kernels sample device weights text template media models hub cache tier events constraint engine chat api"
    layers = layers " files http options server synth cli"
    count = split(layers, order, " ")
    for (i = 1; i <= count; i++)
        rank[order[i]] = i

    banned["strcpy"] = banned["strcat"] = banned["sprintf"] = banned["vsprintf"] = "use mt_buf or snprintf"
    banned["gets"] = "use fgets"
    banned["atoi"] = banned["atol"] = banned["atoll"] = banned["atof"] = "use strtol or strtod and check the end"
    banned["strtok"] = "use strcspn"
    banned["alloca"] = "use mt_alloc or an array of fixed size"
    heap["malloc"] = heap["calloc"] = heap["realloc"] = heap["free"] = heap["strdup"] = heap["strndup"] = 1
    heap["posix_memalign"] = heap["aligned_alloc"] = 1
}

function report(message)
{
    printf "%s:%d: %s\n", FILENAME, FNR, message
    failed = 1
}

# The line without comments and without what is inside quotes.
function code_of(line,    start, stop, result)
{
    gsub(/\\\\/, "", line)
    gsub(/\\"/, "", line)
    if (!in_comment) {
        gsub(/'"'/, "''", line)
        gsub(/"[^"]*"/, "\"\"", line)
    }
    result = ""
    while (line != "") {
        if (in_comment) {
            stop = index(line, "*/")
            if (!stop)
                return result
            line = substr(line, stop + 2)
            in_comment = 0
        }
        start = index(line, "/*")
        if (!start)
            return result line
        result = result substr(line, 1, start - 1)
        line = substr(line, start + 2)
        in_comment = 1
    }
    return result
}

function check_calls(code,    name)
{
    while (match(code, /[A-Za-z_][A-Za-z_0-9]*[ ]*\(/)) {
        name = substr(code, RSTART, RLENGTH - 1)
        sub(/ +$/, "", name)
        if (RSTART > 1 && index(".>", substr(code, RSTART - 1, 1)))
            name = "" # a member: another function of that name
        if (name in banned)
            report("\"" name "\" is banned: " banned[name])
        if ((name in heap) && FILENAME !~ /^tests\// && FILENAME != "src/base/alloc.c")
            report("\"" name "\" goes around base/alloc.h: use the functions there")
        code = substr(code, RSTART + RLENGTH)
    }
}

# The layer of a file: its folder.
function layer_of(path)
{
    sub(/\/.*/, "", path)
    return path
}

function check_include(line,    part, mine, theirs)
{
    split(line, part, "\"")
    theirs = part[2]
    if (index(theirs, "/") == 0) {
        report("\"" theirs "\" has no folder: write it from src/ down, such as \"base/error.h\"")
        return
    }
    theirs = layer_of(theirs)
    mine = FILENAME
    sub(/^src\//, "", mine)
    mine = layer_of(mine)
    if (!(mine in rank))
        report("folder \"" mine "\" has no place in the layers: add it to tools/lint.awk")
    else if (!(theirs in rank))
        report("folder \"" theirs "\" has no place in the layers: add it to tools/lint.awk")
    else if (rank[theirs] > rank[mine])
        report("\"" mine "\" includes \"" theirs "\", which is a layer above it: move the code or turn the call around")
}

FNR == 1 {
    in_comment = 0
}

/\t/ {
    report("a tab: use four spaces")
}

/[ \r]$/ {
    report("a blank or carriage return at the end of the line: remove it")
}

# Bytes that continue a UTF-8 character do not count.
length($0) > width {
    line = $0
    gsub(/[\200-\277]/, "", line)
    if (length(line) > width)
        report("longer than " width " columns: break it")
}

# Operations of a device take objects and plain numbers: what lies in the host's memory is written or read by calls that
# say so.
FILENAME == "src/device/device.h" {
    if (/^#define MT_DEVICE_OPERATIONS/)
        operations = 1
    else if (!/\\$/)
        operations = 0
    if (operations && /(float|int|uint8_t|uint32_t|uint64_t|size_t|void|bool|char|double) \*/)
        report("an operation with a pointer into the host's memory: take an mt_tensor or an mt_index")
}

# In what families differ stands in their tables; no code asks which of them it has.
FILENAME ~ /^src\// && /[!=]= *&mt_(family|vision)_|strcmp\([a-z_.>-]*family,/ {
    report("asks which family a model is: put what differs into the family's table")
}

# What uses a library that a build may lack is left out of it: nothing else may.
/^#include <(curl\/|histedit|libav|libsw|webp\/)/ &&
        FILENAME !~ /^src\/(cli\/(bench_(load|server)|chat(_ask|_line)?|run_message)|hub\/line|media\/(demux|fetch|image_webp|transfer|video))\.[ch]$/ {
    report("uses a library that a build may lack: see meson_options.txt, and *_absent.c")
}

/^#include "/ && FILENAME ~ /^src\// {
    check_include($0)
}

{
    code = code_of($0)
    check_calls(code)
    if (code ~ /(^|[^A-Za-z0-9_])sizeof [*&A-Za-z_]/)
        report("sizeof without brackets: write sizeof(x)")
}

END {
    exit failed
}
