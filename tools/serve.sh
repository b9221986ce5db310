#!/bin/sh
# Serves a model, or several: MODEL is the path of one, which may have spaces, or names with spaces between them. Of the
# model in the box, says what to ask it.
# usage: tools/serve.sh BUILD MODEL [options of motet serve]
set -eu

build=${1:?usage: tools/serve.sh BUILD MODEL [options]}
model=${2:?usage: tools/serve.sh BUILD MODEL [options]}
shift 2

if [ "$model" = models/box ]; then
    port=8000 before=
    for each; do
        [ "$before" != --port ] || port=$each
        case $each in --port=*) port=${each#--port=} ;; esac
        before=$each
    done
    cat <<END
When it listens, open http://localhost:$port in a browser, or ask it from another terminal:

  curl localhost:$port/v1/chat/completions -d '{"messages": [{"role": "user", "content": "Who are you?"}]}'

  curl localhost:$port/v1/chat/completions -d '{"messages": [{"role": "user", "content": [
    {"type": "image_url", "image_url": {"url": "file://$PWD/examples/shapes.png"}},
    {"type": "text", "text": "What do you see?"}]}]}'

or talk to it: $build/motet chat http://localhost:$port

END
    set -- --media-root examples "$@"
fi
if [ -e "$model" ]; then
    exec "$build/motet" serve "$model" "$@"
fi
# $model is a list of words.
# shellcheck disable=SC2086
exec "$build/motet" serve $model "$@"
