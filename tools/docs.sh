#!/bin/bash
# Writes the pages that come from tables of the program: options.md, and coming-from.md, whose text is that of
# docs/coming-from.md and whose tables, between "<!-- NAME: from ... -->" and "<!-- end -->", are the program's.
# usage: tools/docs.sh PROGRAM FOLDER
set -euo pipefail
program=$1 folder=$2

"$program" help --as markdown >"$folder/options.md"
page=$(awk '
    NR == FNR { if (/^<!-- end -->$/) name = ""; else if (/^<!-- .*: from /) name = $0; else if (name) table[name] = table[name] $0 "\n"; next }
    inside && /^<!-- end -->$/ { inside = 0 }
    !inside { print }
    /^<!-- .*: from / { inside = 1; printf "%s", table[$0]; if (!($0 in table)) { print "tools/docs.sh: no table: " $0 >"/dev/stderr"; exit 1 } }
' <("$program" help --as foreign) docs/coming-from.md)
echo "$page" >"$folder/coming-from.md"
