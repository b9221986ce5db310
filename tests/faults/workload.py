"""What is asked of a server while it is made to fail: text, pictures, tools, constraints, vectors, kept answers, in
several APIs, and what each must say. Twice the same request has other constraints to compile and, every other time, a
cache of its own; the answer is the same."""

import concurrent.futures
import http.client
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "api"), os.path.join(HERE, "..", "e2e")]
import draw  # noqa: E402
import served  # noqa: E402

ROOT = os.path.join(HERE, "..", "..")
MODELS = [os.path.join(ROOT, "models", "box"), os.path.join(ROOT, "tests", "oracle", "vectors", "bert-mean-f32")]
LONG = " ".join("amber birch cedar delta ember fjord grove heron".split() * 12)
PNG = draw.picture("circle", "red", 80, 80, 40)
OTHER = draw.picture("cross", "blue", 70, 90, 38)
SECONDS = 30  # for any answer


def chat(content, **more):
    return dict({"model": "box", "messages": [{"role": "user", "content": content}], "temperature": 0,
                 "max_tokens": 8}, **more)


def schema(n):
    """Each time another one, which lets the same be said."""
    return {"type": "object", "description": "number {}".format(n), "required": ["a"],
            "properties": {"a": {"type": "string", "maxLength": 4}}}


TOOL = {"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 6}}, "required": ["city"]}}}


def asks(n):
    """[(name, path, body)] of round n."""
    salt = {"cache_salt": "round {}".format(n)} if n % 2 else {}
    tool = json.loads(json.dumps(TOOL))
    tool["function"]["description"] = "the weather"
    tool["function"]["parameters"]["description"] = "number {}".format(n)
    image = PNG["image_url"]["url"].split(",", 1)[1]
    return [
        ("text", "/v1/chat/completions", chat("What is 3 + 4?", logprobs=True, top_logprobs=2, **salt)),
        ("stream", "/v1/chat/completions", chat("Who are you?", stream=True, **salt)),
        ("long", "/v1/completions", dict({"model": "box", "prompt": LONG, "max_tokens": 3, "temperature": 0,
                                          "logprobs": 1}, **salt)),
        ("picture", "/v1/chat/completions", chat([PNG, {"type": "text", "text": "What do you see?"}], **salt)),
        ("anthropic", "/v1/messages", dict({"model": "box", "max_tokens": 8, "temperature": 0, "messages": [
            {"role": "user", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                                                      "data": image}},
                                         {"type": "text", "text": "What colour is it?"}]}]}, **salt)),
        ("tools", "/v1/chat/completions", chat("Weather in Rome?", tools=[tool], tool_choice="required", max_tokens=24,
                                               **salt)),
        ("schema", "/v1/chat/completions", chat("Say something.", max_tokens=16, response_format={
            "type": "json_schema", "json_schema": {"name": "a", "schema": schema(n)}}, **salt)),
        ("kept", "/v1/responses", dict({"model": "box", "input": "What is 2 + 2?", "max_output_tokens": 8,
                                        "temperature": 0}, **salt)),
        ("vectors", "/v1/embeddings", {"model": "bert-mean-f32", "input": ["the river meets the sea", "a fox"]}),
        ("ollama", "/api/chat", {"model": "box", "stream": False, "options": {"temperature": 0, "num_predict": 4},
                                 "messages": [{"role": "user", "content": "Who are you?"}]}),
        ("gemini", "/v1beta/models/box:generateContent", {
            "generationConfig": {"temperature": 0, "maxOutputTokens": 4},
            "contents": [{"role": "user", "parts": [{"text": "Who are you?"}]}]}),
    ]


def essence(name, answer):
    """What must be the same each time, of an answer that is one."""
    if name == "stream" and answer.status == 200:
        events = answer.events()
        broken = [e for e in events if isinstance(e, dict) and "error" in e]
        if broken:
            return broken[0]
        assert events[-1] == "[DONE]", "a stream that is cut"
        return served.stream_text(events)
    body = answer.json()
    if "error" in body and body["error"]:
        return body
    if name == "vectors":
        return [d["embedding"] for d in body["data"]]
    if name == "anthropic":
        return [body["content"], body["stop_reason"]]
    if name == "kept":
        return [body["status"], [[c["text"] for c in o.get("content", [])] for o in body["output"]]]
    if name == "ollama":
        return [body["message"]["content"], body["done_reason"]]
    if name == "gemini":
        return [body["candidates"][0]["content"], body["candidates"][0]["finishReason"]]
    choice = body["choices"][0]
    said = [choice.get("text"), choice["finish_reason"], choice.get("logprobs")]
    if "message" in choice:
        calls = [c["function"] for c in choice["message"].get("tool_calls") or []]
        said += [choice["message"]["content"], calls]
    return said


def is_error(name, status, body):
    """Whether it is an error of the API's shape, with a sentence and a fitting status."""
    if not isinstance(body, dict) or "error" not in body:
        return False
    error = body["error"]
    text = error if name == "ollama" else error.get("message") if isinstance(error, dict) else None
    if name == "anthropic" and body.get("type") != "error":
        return False
    kind = {"ollama": None, "gemini": "status"}.get(name, "type")
    if kind and not (isinstance(error, dict) and error.get(kind)):
        return False
    return isinstance(text, str) and len(text) > 10 and (status in (200, 400, 413, 429, 500, 503))


class Outcome:
    """kind: "same", "error", "dropped" (the connection ended), "wrong", "unclear" or "late"."""

    def __init__(self, name, kind, told=""):
        self.name, self.kind, self.told = name, kind, told


def ask_one(server, name, path, body, wanted):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS)
    try:
        connection.request("POST", path, json.dumps(body).encode(), {})
        response = connection.getresponse()
        answer = served.Answer(response.status, response.getheaders(), response.read())
    except TimeoutError:
        return Outcome(name, "late")
    except (OSError, http.client.HTTPException) as why:
        return Outcome(name, "dropped", repr(why))
    finally:
        connection.close()
    try:
        found = essence(name, answer)
    except (ValueError, KeyError, IndexError, TypeError, AssertionError) as why:
        return Outcome(name, "unclear", "{} {!r} {}".format(answer.status, why, answer.body[:300]))
    if isinstance(found, dict):
        told = "{} {}".format(answer.status, json.dumps(found))[:300]
        return Outcome(name, "error" if is_error(name, answer.status, found) else "unclear", told)
    if wanted is not None and found != wanted[name]:
        return Outcome(name, "wrong", "{!r} is not {!r}".format(found, wanted[name])[:600])
    return Outcome(name, "same", found)


def run(server, n, wanted, together=True, names=None):
    """[Outcome] of round n. wanted: {name: essence}, or None: nothing is compared. names: of the requests; None: all."""
    all_asks = [a for a in asks(n) if names is None or a[0] in names]
    if not together:
        return [ask_one(server, *a, wanted) for a in all_asks]
    with concurrent.futures.ThreadPoolExecutor(len(all_asks)) as clients:
        return list(clients.map(lambda a: ask_one(server, *a, wanted), all_asks))


def unload(server, name="bert-mean-f32"):
    """A model goes, so that the next round opens it again: the one for vectors, which is soon done."""
    try:
        server.post("/api/generate", {"model": name, "keep_alive": 0})
    except (OSError, http.client.HTTPException):
        pass
