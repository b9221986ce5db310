#!/usr/bin/env python3
"""The WebSockets of LM Studio's own SDKs, message by message; tests/clients/lmstudio_sdk.mjs runs an SDK.

usage: tests/api/test_lmstudio.py --motet PROGRAM [NAME ...]"""

import base64
import json
import os
import sys

import served

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "clients"))
sys.path.insert(0, os.path.join(HERE, "..", "http"))
import replay  # pylint: disable=wrong-import-position
import websocket  # pylint: disable=wrong-import-position

SUITE = served.Suite("api_lmstudio")
test, start = SUITE.test, SUITE.start
SETTINGS = {"temperature": 0, "maxPredictedTokens": {"checked": True, "value": 4}}


class Socket(websocket.WebSocket):
    """One that has said who it is, unless key is None."""

    def __init__(self, server, path="/llm", key="anything", **headers):
        super().__init__(server.socket(), path, **headers)
        self.number = 0
        if key is not None:
            assert self.greet(key) == {"success": True}

    def greet(self, key, name="guest"):
        return self.ask({"authVersion": 1, "clientIdentifier": name, "clientPasskey": key})

    def ask(self, message):
        self.send(message)
        return json.loads(self.text())

    def call(self, endpoint, **parameter):
        """The result of a call."""
        answer = self.said(endpoint, **parameter)
        assert answer["type"] == "rpcResult", answer
        return answer.get("result")

    def said(self, endpoint, **parameter):
        self.number += 1
        answer = self.ask({"type": "rpcCall", "endpoint": endpoint, "callId": self.number, "parameter": parameter})
        assert answer["callId"] == self.number, answer
        return answer

    def open(self, endpoint, **parameter):
        """The number of a new channel."""
        self.number += 1
        self.send({"type": "channelCreate", "endpoint": endpoint, "channelId": self.number,
                   "creationParameter": parameter})
        return self.number

    def predict(self, messages, settings=None, **more):
        return self.open("predict", modelSpecifier={"type": "query", "query": {}}, history={"messages": messages},
                         predictionConfigStack=stack(SETTINGS if settings is None else settings), **more)

    def packets(self, channel):
        """What comes on a channel until it is closed or fails."""
        packets = []
        while True:
            message = json.loads(self.text())
            if message["type"] == "channelClose":
                assert message["channelId"] == channel
                return packets
            packets.append(message if message["type"] != "channelSend" else message["message"])
            if message["type"] == "channelError":
                return packets


def stack(*layers):
    """A stack of settings: a later layer has the last word."""
    return {"layers": [{"layerName": "apiOverride", "config": {"fields": [
        {"key": "llm.prediction." + key, "value": value} for key, value in layer.items()]}} for layer in layers]}


def user(*parts):
    return {"role": "user", "content": [{"type": "text", "text": p} if isinstance(p, str) else p for p in parts]}


def text_of(packets):
    return "".join(p["fragment"]["content"] for p in packets if p["type"] == "fragment")


@test
def an_answer_is_that_of_chat_completions():
    body = {"messages": [{"role": "user", "content": "hello"}], "temperature": 0, "max_tokens": 4}
    with start() as server, Socket(server) as ws:
        plain = server.post("/v1/chat/completions", body).json()
        packets = ws.packets(ws.predict([user("hello")]))
        assert packets[0] == {"type": "promptProcessingProgress", "progress": 1}, packets
        assert text_of(packets) == plain["choices"][0]["message"]["content"], (packets, plain)
        assert sum(p["fragment"]["tokensCount"] for p in packets[1:-1]) == 4, packets
        last = packets[-1]
        assert last["type"] == "success" and last["stats"]["stopReason"] == "maxPredictedTokensReached", last
        assert last["stats"]["promptTokensCount"] == plain["usage"]["prompt_tokens"], last
        assert last["modelInfo"]["contextLength"] == last["loadModelConfig"]["fields"][0]["value"], last


@test
def settings_are_those_of_chat_completions():
    """Each beside the same field, and the last layer counts."""
    messages, prompt = [user("hello")], [{"role": "user", "content": "hello"}]
    pairs = [({"topKSampling": 3, "seed": {"checked": True, "value": 7}, "temperature": 1},
              {"top_k": 3, "seed": 7, "temperature": 1}),
             ({"repeatPenalty": {"checked": True, "value": 2}}, {"repetition_penalty": 2}),
             ({"llama.presencePenalty": {"checked": True, "value": 2}}, {"presence_penalty": 2}),
             ({"minPSampling": {"checked": False, "value": 1}}, {}),
             ({"llama.logitBias": [[5, 100]]}, {"logit_bias": {"5": 100}}),
             ({"llama.logitBias": [[5, "-inf"]]}, {"logit_bias": {"5": -100}}),
             ({"structured": {"type": "json", "jsonSchema": {"enum": ["yes"]}}},
              {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"enum": ["yes"]}}}}),
             ({"structured": {"type": "gbnf", "gbnfGrammar": "root ::= \"a\" \"b\""}},
              {"grammar": "root ::= \"a\" \"b\""}),
             ({"systemPrompt": "be"}, {"messages": [{"role": "system", "content": "be"}, *prompt]})]
    with start() as server, Socket(server) as ws:
        for settings, fields in pairs:
            body = {"messages": prompt, "temperature": 0, "max_tokens": 4, **fields}
            plain = server.post("/v1/chat/completions", body).json()
            ours = ws.packets(ws.predict(messages, {**SETTINGS, **settings}))
            assert text_of(ours) == plain["choices"][0]["message"]["content"], (settings, ours, plain)
            assert ours[-1]["stats"]["promptTokensCount"] == plain["usage"]["prompt_tokens"], settings
        two = ws.open("predict", modelSpecifier={"type": "query", "query": {}}, history={"messages": messages},
                      predictionConfigStack=stack({"maxPredictedTokens": {"checked": True, "value": 1}}, SETTINGS))
        assert ws.packets(two)[-1]["stats"]["predictedTokensCount"] == 4
        packets = ws.packets(ws.predict(messages, {**SETTINGS, "logProbs": {"checked": True, "value": 2}}))
        tokens = [t for p in packets for t in p.get("logprobs", [])]
        assert len(tokens) == 4 and all(len(t) == 2 and t[0]["logprob"] >= t[1]["logprob"] for t in tokens), tokens


@test
def a_prompt_without_a_template():
    plain = {"promptTemplate": {"type": "manual", "stopStrings": [], "manualPromptTemplate": {
        "beforeSystem": "", "afterSystem": "", "beforeUser": "<", "afterUser": ">", "beforeAssistant": "A",
        "afterAssistant": ""}}}
    loop = {"promptTemplate": {"type": "jinja", "stopStrings": [], "jinjaPromptTemplate": {
        "template": "{% for message in messages %}{{ message['content'] }}{% endfor %}"}}}
    with start() as server, Socket(server) as ws:
        for settings, prompt in ((plain, "<hello>A"), (loop, "hello")):
            whole = server.post("/v1/completions", {"prompt": prompt, "temperature": 0, "max_tokens": 4}).json()
            packets = ws.packets(ws.predict([user("hello")], {**SETTINGS, **settings}))
            assert text_of(packets) == whole["choices"][0]["text"], (packets, whole)
            assert packets[-1]["stats"]["promptTokensCount"] == whole["usage"]["prompt_tokens"], packets
        raw = ws.open("completeRawText", modelSpecifier={"type": "query", "query": {}}, rawPrompt="hello",
                      predictionConfigStack=stack(SETTINGS))
        assert text_of(ws.packets(raw)) == text_of(packets)


@test
def what_is_not_known_is_told():
    with start() as server, Socket(server) as ws:
        packets = ws.packets(ws.predict([user("hello")], {**SETTINGS, "llama.cpuThreads": 3}))
        assert packets[0] == {"type": "communicationWarning", "warning": "not looked at: llama.cpuThreads"}, packets
        for part, words in (({"type": "file", "fileType": "text/plain", "identifier": "x"}, "no picture"),
                            ({"type": "file", "fileType": "image", "identifier": "gone"}, "")):
            error = ws.packets(ws.predict([user(part)]))[-1]
            assert error["type"] == "channelError" and words in error["error"]["title"], error
        error = ws.packets(ws.open("predict", modelSpecifier={"type": "query", "query": {}}))[-1]
        assert "history" in error["error"]["title"], error
        error = ws.packets(ws.predict([user("hi")], {"temperature": "hot"}))[-1]
        assert "temperature" in error["error"]["title"], error
        assert "searchModels" in ws.said("searchModels")["error"]["title"]
        assert "streamLogs" in ws.packets(ws.open("streamLogs"))[-1]["error"]["title"]
        specifier = {"type": "instanceReference", "instanceReference": "other"}
        error = ws.packets(ws.open("predict", modelSpecifier=specifier, history={"messages": [user("hi")]}))[-1]
        assert "other" in error["error"]["title"], error
        assert ws.ask({"type": "keepAlive"}) == {"type": "keepAliveAck"}
        assert ws.ask({"type": "signalSubscribe", "endpoint": "x", "subscribeId": 3})["type"] == "signalError"
        for odd in ("{", "[]", "{}", '{"type":"rpcCall"}', '{"type":"channelAck","channelId":1,"ackId":2}',
                    '{"type":"rpcCall","endpoint":"version","callId":-5}', '{"type":7,"message":[[1]]}'):
            ws.send(odd)
        assert [json.loads(ws.text())["type"] for _ in range(2)] == ["rpcError"] * 2
        assert ws.packets(ws.predict([user("hello")]))[-1]["type"] == "success"


@test
def tools_and_pictures():
    """A replay of a model that sees: it calls, and says what it sees."""
    call = {"name": "look", "arguments": {"at": "all"}}
    script = {"go": ["Well.\n<tool_call>\n" + json.dumps(call) + "\n</tool_call>", "Seen."]}
    tool = {"type": "function", "function": {"name": "look", "description": "looks", "parameters": {
        "type": "object", "properties": {"at": {"type": "string"}}}}}
    folder = replay.write(os.path.join(SUITE.folder, "replay"), script, sees=True)
    picture = base64.b64encode(replay.picture()).decode()
    with start(folder=folder) as server, Socket(server) as ws, Socket(server, "/files") as files:
        kept = files.call("uploadFileBase64", name="a.png", contentBase64=picture)
        assert kept["fileType"] == "image" and kept["sizeBytes"] == len(replay.picture()), kept
        for odd in ("%", base64.b64encode(b"text").decode(), 7):
            assert files.said("uploadFileBase64", name="a", contentBase64=odd)["type"] == "rpcError"
        part = {"type": "file", "name": "a.png", "identifier": kept["identifier"], "sizeBytes": 1, "fileType": "image"}
        settings = {"tools": {"type": "toolArray", "tools": [tool]}}
        messages = [user(part, "replay:go now")]
        packets = ws.packets(ws.predict(messages, settings))
        kinds = [p["type"] for p in packets if p["type"] != "fragment"]
        assert text_of(packets).strip() == "Well." and packets[-1]["stats"]["stopReason"] == "toolCalls", packets
        request = packets[-2]["toolCallRequest"]
        assert packets[-2]["type"] == "toolCallGenerationEnd" and request["arguments"] == call["arguments"], packets
        parts = "".join(p["content"] for p in packets if p["type"] == "toolCallGenerationArgumentFragmentGenerated")
        assert json.loads(parts) == call["arguments"], packets
        assert kinds[1:3] == ["toolCallGenerationStart", "toolCallGenerationNameReceived"], kinds
        assert next(p for p in packets if p["type"] == "toolCallGenerationStart")["toolCallId"] == request["id"]
        messages += [{"role": "assistant", "content": [{"type": "text", "text": "Well."},
                                                       {"type": "toolCallRequest", "toolCallRequest": request}]},
                     {"role": "tool", "content": [{"type": "toolCallResult", "content": "a dog",
                                                   "toolCallId": request["id"]}]}]
        packets = ws.packets(ws.predict(messages, settings))
        assert text_of(packets) == "Seen.", packets
        formatted = ws.call("applyPromptTemplate", specifier={"type": "query", "query": {}}, opts={},
                            history={"messages": messages}, predictionConfigStack=stack(settings))["formatted"]
        assert "a dog" in formatted and "look" in formatted, formatted
        forced = {**SETTINGS, "tools": dict(settings["tools"], force=True)}  # which this script does not say
        packets = ws.packets(ws.predict([user("replay:go now")], forced))
        assert packets[-1]["type"] == "success", packets


@test
def answers_side_by_side_and_cancelled():
    endless = {"temperature": 0, "llama.logitBias": [[0, -100], [1, -100], [2, -100]]}
    with start() as server, Socket(server) as ws:
        first = ws.predict([user("hello")], endless)
        message = json.loads(ws.text())
        assert message["channelId"] == first, message
        second = ws.predict([user("hello")])
        seen = {first: [], second: []}
        while second in seen:
            message = json.loads(ws.text())
            if message["type"] == "channelClose" and message["channelId"] == second:
                break
            seen[message["channelId"]].append(message)
        ws.send({"type": "channelSend", "channelId": first, "message": {"type": "cancel"}})
        last = message
        while last["type"] not in ("channelClose", "channelError") or last["channelId"] != first:
            before, last = last, json.loads(ws.text())
        reason = before["message"].get("stats", {}).get("stopReason")
        assert reason in ("userStopped", "contextLengthReached", "eosFound", "maxPredictedTokensReached"), before
        assert text_of([m["message"] for m in seen[second]]) == text_of(ws.packets(ws.predict([user("hello")])))


@test
def models_are_described():
    with (start() as server, Socket(server) as ws, Socket(server, "/system") as system,
          Socket(server, "/embedding") as other):
        name = server.request("GET", "/v1/models").json()["data"][0]["id"]
        info = ws.call("getModelInfo", specifier={"type": "query", "query": {}}, throwIfNotFound=True)
        assert info["identifier"] == name and info["type"] == "llm" and info["contextLength"] > 0, info
        assert ws.call("listLoaded") == [info] and other.call("listLoaded") == []
        assert [m["modelKey"] for m in system.call("listDownloadedModels")] == [name]
        assert ws.packets(ws.open("getOrLoad", identifier=name)) == [{"type": "alreadyLoaded", "info": info}]
        loaded = ws.packets(ws.open("loadModel", modelKey=name, identifier="mine"))
        assert [p["type"] for p in loaded] == ["resolved", "success"] and loaded[1]["info"] == info, loaded
        specifier = {"type": "instanceReference", "instanceReference": name}
        config = ws.call("getLoadConfig", specifier=specifier)["fields"]
        assert config == [{"key": "llm.load.contextLength", "value": info["contextLength"]}], config
        tokens = ws.call("tokenize", specifier=specifier, inputString="hello")["tokens"]
        assert tokens == server.post("/tokenize", {"content": "hello"}).json()["tokens"], tokens
        assert ws.call("countTokens", specifier=specifier, inputString="hello") == {"tokenCount": len(tokens)}
        unknown = {"type": "query", "query": {"identifier": "no"}}
        assert ws.call("getModelInfo", specifier=unknown, throwIfNotFound=False) is None
        assert "\"no\"" in ws.said("getModelInfo", specifier=unknown, throwIfNotFound=True)["error"]["title"]
        assert ws.packets(ws.open("getOrLoad", identifier="no"))[0]["type"] == "channelError"
        assert system.call("version")["version"] and system.call("notify", title="hi") is None
        assert server.request("GET", "/lmstudio-greeting").json() == {"lmstudio": True}


@test
def keys_come_in_the_first_message():
    """MT_LIMIT_GREETING_BYTES: before it, messages are small."""
    with start("--api-key", "secret", "--api-key", "sk-lm-abcdefgh:01234567890123456789") as server:
        with Socket(server, key=None) as ws:
            refused = ws.greet("wrong")
            assert refused["success"] is False and "API key" in refused["error"], refused
            assert "API key" in ws.said("listLoaded")["error"]["title"]
            assert "API key" in ws.packets(ws.predict([user("hi")]))[-1]["error"]["title"]
            assert ws.greet("secret") == {"success": True}
            assert len(ws.call("listLoaded")) == 1
            assert ws.packets(ws.predict([user("hi" * 10000)], {"maxPredictedTokens": {"checked": True, "value": 1}}))
        with Socket(server, key=None) as ws:
            assert ws.greet("01234567890123456789", "abcdefgh") == {"success": True}
            assert len(ws.call("listLoaded")) == 1
        with Socket(server, key=None) as ws:
            ws.send("x" * 8193)
            assert ws.closed() == 1009
    with start() as server:
        try:
            Socket(server, Origin="http://evil.example")
        except ConnectionError as refused:
            assert "403" in str(refused), refused
        else:
            raise AssertionError("a page of another site was let in")


if __name__ == "__main__":
    SUITE.main()
