#!/usr/bin/env python3
"""The cases in tests/api/cases/*.json: a request in, the exact answer or stream of events out. Those in cases/replay
are asked of a model that says what tests/api/scripts.json has for it, those in cases/sight of one that takes pictures,
too, the others of one with random weights.

usage: tests/api/cases.py --motet PROGRAM [--record] [NAME ...]

A case is {"name", "post" or "get" or "delete": path, "body" or "raw", "headers", "status", "warning" (a header),
and "answer" or "events"}.
"needs" is a feature that a build may lack; then the case is left out.
"without" instead of an answer is a text that the answer does not have, whatever else it says.
"before" is a list of such requests that are sent first; $id, $in0, $item0, ... and $call stand for what the last of
them was answered with. Ids and times are masked, and numbers of logprobs are compared to three decimals. Every request
that is answered is also sent with the other value of "stream", or to the other of Gemini's paths: the events must come to
the same answer.
--record writes what the server answers into the files: read the difference before you keep it."""

import argparse
import glob
import json
import os
import re
import sys
import tempfile

import fixture
import served
import streams

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "clients"))
import replay  # pylint: disable=wrong-import-position

ID = re.compile(r"\b(chatcmpl-|cmpl-|embd-|task-|rerank-|gemini-|score-|pool-|classify-|msg_|call_|resp_|rs_|fc_|ctc_|item_|generative-scoring-)[0-9a-v]{24}(?=$|[^0-9a-v])")
TIME = re.compile(r"\b2\d\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
TIMES = ("prompt_ms", "prompt_per_second", "predicted_ms", "predicted_per_second", "cache_n", "prompt_n", "tokens_cached",
         "draft_n", "draft_n_accepted", "tokens_per_second", "time_to_first_token", "generation_time")
DURATIONS = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
EACH = 20 if "MOTET_TEST_RACES" in os.environ else 1  # one after the other, they all have the same threads


def mask(value, key=None):
    if isinstance(value, dict):
        if "cache_read_input_tokens" in value:
            value = dict(value, input_tokens=value["input_tokens"] + value["cache_read_input_tokens"],
                         cache_read_input_tokens=0)
        value = {k: v for k, v in value.items() if k != "cachedContentTokenCount"}  # as cached_tokens
        if "capabilities" in value and "state" in value:  # a model, which may not be rid of the last call yet
            varies = ("idle_seconds", "memory_used")
            value = dict({k: v for k, v in value.items() if k not in varies}, memory=0, requests=0)
        return {k: mask(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [mask(v, key) for v in value]
    if key == "digest":
        return "DIGEST"
    if key == "system_fingerprint":  # it tells machines apart
        return re.sub("^fp_[0-9a-f]{8}$", "fp_ID", value)
    if isinstance(value, str):
        return TIME.sub("TIME", ID.sub(r"\1ID", value))
    # what is cached depends on what was asked before; test_server.py looks at it
    if key in ("created", "created_at", "completed_at", "cached_tokens", *DURATIONS, *TIMES) and value is not None:
        return 0
    return round(value, 3) + 0.0 if isinstance(value, float) else value


def fill(case, answer):
    """The case with what an answer says for the words that stand for it."""
    known = {"$id": answer["id"], "$call": next((i["call_id"] for i in answer["output"][::-1] if "call_id" in i), ""),
             "$in0": answer["id"].replace("resp_", "msg_") + "_i0"}
    known.update({"$item{}".format(i): item["id"] for i, item in enumerate(answer["output"])})
    text = json.dumps(case)
    for word, value in known.items():
        text = text.replace(word, value)
    return json.loads(text)


def ask_before(server, case):
    """The case as it is to be asked."""
    answer = None
    for before in case.get("before", []):
        answer = ask(server, fill(before, answer) if answer else before).json()
    return fill(case, answer) if answer else case


def ask(server, case):
    method = next(m for m in ("post", "get", "delete", "put") if m in case)
    body = case["raw"] if "raw" in case else json.dumps(case["body"]) if "body" in case else None
    return server.request(method.upper(), case[method], body, case.get("headers"))


def place(event):
    """Choices speak when they can: those of each are put together, and what belongs to none comes last."""
    choices = isinstance(event, dict) and (event.get("choices") or event.get("candidates"))
    return choices[0]["index"] if choices else sys.maxsize


def is_stream(answer):
    return answer.headers.get("content-type", "").startswith(("text/event-stream", "application/x-ndjson"))


def check_names(answer):
    """Events with names say the same in their data."""
    for block in answer.body.decode().split("\n\n"):
        if block.startswith("event:"):
            name, data = block.split("\n", 1)
            assert json.loads(data[5:])["type"] == name[6:].strip(), "an event's name is its type"


def outcome(answer):
    """What a case records of an answer."""
    found = {"status": answer.status}
    if "warning" in answer.headers:
        found["warning"] = answer.headers["warning"]
    if is_stream(answer):
        check_names(answer)
        found["events"] = sorted(mask(answer.events()), key=place)
        ids = {e[key] for e in answer.events() for key in ("id", "responseId") if isinstance(e, dict) and key in e}
        assert len(ids) <= 1, "a stream with several ids"
    elif not answer.body:
        found["answer"] = None
    else:
        found["answer"] = mask(answer.json())
    return found


def differences(server, case, answer):
    """What is not the same when the request is streamed, or is not; None where nothing differs."""
    body = case.get("body")
    if "post" not in case or not isinstance(body, dict) or answer.status != 200:
        return None
    path = case["post"]
    if "enerateContent" in path:  # Gemini's paths say whether it is streamed
        path = streams.gemini_path(path, not is_stream(answer))
    else:
        body = dict(body, stream=not is_stream(answer))
        if not body["stream"]:
            body.pop("stream_options", None)
    other = server.post(path, body, case.get("headers"))
    if other.status != 200 or is_stream(other) == is_stream(answer):
        return None
    stream, whole = (answer, other) if is_stream(answer) else (other, answer)
    found = streams.compare(case["post"], mask(stream.events()), mask(whole.json()))
    return found if found and found[0] != found[1] else None


def run(server, path, arguments):
    with open(path, encoding="utf-8") as f:
        cases = json.load(f)
    passed = failed = skipped = 0
    for case in cases if arguments.record else cases[::EACH]:
        if arguments.names and case["name"] not in arguments.names:
            continue
        if "needs" in case and case["needs"] not in arguments.features:
            skipped += 1
            continue
        filled = ask_before(server, case)
        answer = ask(server, filled)
        found, differ = outcome(answer), differences(server, filled, answer)
        if "without" in case and json.dumps(case["without"])[1:-1] not in json.dumps(found):
            found = {"status": found["status"], "without": case["without"]}
        if differ:
            failed += 1
            print("{}: \"{}\" streams\n  {}\nbut is otherwise\n  {}".format(os.path.basename(path), case["name"],
                                                                          *map(json.dumps, differ)))
        if arguments.record:
            for key in ("status", "warning", "answer", "events"):
                case.pop(key, None)
            case.update(found)
            continue
        expected = {k: case[k] for k in ("status", "warning", "answer", "events", "without") if k in case}
        if found == json.loads(json.dumps(expected)):
            passed += not differ
        else:
            failed += 1
            print("{}: \"{}\" is\n  {}\nbut should be\n  {}".format(os.path.basename(path), case["name"],
                                                                  json.dumps(found), json.dumps(expected)))
    if arguments.record:
        with open(path, "w", encoding="utf-8") as f:
            f.write("[\n" + ",\n".join(dump(c) for c in cases) + "\n]\n")
    return passed, failed, skipped


def dump(case):
    """A line for each key, and one for each event."""
    lines = []
    for key, value in case.items():
        if key == "events":
            inner = ",\n    ".join(json.dumps(e, ensure_ascii=False) for e in value)
            lines.append('"events": [\n    {}]'.format(inner))
        else:
            lines.append('"{}": {}'.format(key, json.dumps(value, ensure_ascii=False)))
    return "  {" + ",\n   ".join(lines) + "}"


def run_all(server, folder, arguments):
    files = sorted(glob.glob(os.path.join(folder, "*.json")))
    return [sum(counts) for counts in zip(*(run(server, path, arguments) for path in files))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    arguments.features = served.features(arguments.motet)
    cases = os.path.join(HERE, "cases")
    with open(os.path.join(HERE, "scripts.json"), encoding="utf-8") as f:
        scripts = json.load(f)
    with tempfile.TemporaryDirectory() as folder:
        models = ((fixture.write(os.path.join(folder, "tiny")), cases, ("--alias", "other")),
                  (replay.write(os.path.join(folder, "replay"), scripts), os.path.join(cases, "replay"),
                   ("--any-model", "--allow-chat-template")),
                  (replay.write(os.path.join(folder, "sight"), scripts, sees=True), os.path.join(cases, "sight"),
                   ("--any-model",)))
        vectors = os.path.join(HERE, "..", "oracle", "vectors")
        models += ((os.path.join(vectors, "bert-mean-f32"), os.path.join(cases, "encoders"),
                    ("--served-name", "bert", "--embedding-model", os.path.join(vectors, "xlmr-rerank-bf16"))),)
        results = []
        for model, where, options in models:
            # Signs of life are sent by the clock, and belong to no case.
            options += ("--max-body", "64K", "--keep-alive-seconds", "86400")
            with served.Server(arguments.motet, model, *options) as server:
                results.append(run_all(server, where, arguments))
    passed, failed, skipped = map(sum, zip(*results))
    print("api_cases: {} passed, {} failed, {} skipped".format(passed, failed, skipped))
    sys.exit(1 if failed else 0)


main()
