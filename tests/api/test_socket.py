#!/usr/bin/env python3
"""/v1/responses as a WebSocket, and /v1/responses/compact.

usage: tests/api/test_socket.py --motet PROGRAM [NAME ...]"""

import json
import os
import sys
import tempfile

import served

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "clients"))
sys.path.insert(0, os.path.join(HERE, "..", "http"))
import replay  # pylint: disable=wrong-import-position
import websocket  # pylint: disable=wrong-import-position

SUITE = served.Suite("api_socket")
test, start = SUITE.test, SUITE.start
CREATE = {"type": "response.create", "input": "hello", "max_output_tokens": 4, "temperature": 0}
TOOL = {"type": "function", "name": "look", "parameters": {"type": "object"}}


def connect(server, path="/v1/responses", **headers):
    return websocket.WebSocket(server.socket(), path, **headers)


def turn(ws, **fields):
    """The events of an answer."""
    ws.send({**CREATE, **fields})
    return ws.events()


def done(ws, **fields):
    """The response at the end of an answer."""
    last = turn(ws, **fields)[-1]
    assert last["type"] in ("response.completed", "response.incomplete"), last
    return last["response"]


def failed(ws, **fields):
    """The error of a turn."""
    events = turn(ws, **fields)
    assert [e["type"] for e in events] == ["error"], events
    return events[0]


@test
def events_are_those_of_a_stream():
    with start() as server:
        body = {key: CREATE[key] for key in CREATE if key != "type"}
        stream = [e for e in server.post("/v1/responses", {**body, "stream": True}).events()]
        with connect(server) as ws:
            events, other = turn(ws), turn(ws, stream=False)
        assert [e["type"] for e in events] == [e["type"] for e in stream], events
        assert [e["sequence_number"] for e in events] == list(range(len(events)))
        assert [e.get("delta") for e in events] == [e.get("delta") for e in stream]
        assert set(events[-1]["response"]) == set(stream[-1]["response"])
        assert [e["type"] for e in other] == [e["type"] for e in stream], other


@test
def a_conversation_goes_on_without_a_store():
    with start() as server, connect(server) as ws, connect(server, "/responses") as other:
        first = done(ws, store=False)
        assert server.request("GET", "/v1/responses/" + first["id"]).status == 404
        second = done(ws, store=False, input="and then?", previous_response_id=first["id"])
        third = done(ws, store=False, input=[{"role": "user", "content": "more"}], previous_response_id=second["id"])
        items = [{"role": "user", "content": "hello"}, *first["output"], {"role": "user", "content": "and then?"},
                 *second["output"], {"role": "user", "content": "more"}]
        whole = server.post("/v1/responses", {**CREATE, "input": items}).json()
        assert whole["usage"]["input_tokens"] == third["usage"]["input_tokens"], (whole, third)
        assert whole["output"][0]["content"][0]["text"] == third["output"][0]["content"][0]["text"]
        # the latest alone is kept, and for this connection alone
        for ws2, previous in ((ws, first), (ws, second), (other, third)):
            why = failed(ws2, store=False, previous_response_id=previous["id"])
            assert why["error"]["code"] == "previous_response_not_found" and why["status"] == 400, why
        done(ws, store=False, previous_response_id=third["id"])


@test
def what_is_stored_is_found_anywhere():
    with start() as server:
        with connect(server) as ws:
            first = done(ws)
        assert server.request("GET", "/v1/responses/" + first["id"]).status == 200
        with connect(server) as ws:
            second = done(ws, previous_response_id=first["id"], store=False, input="and?")
            third = done(ws, previous_response_id=second["id"], input="well?")
            assert third["usage"]["input_tokens"] > second["usage"]["input_tokens"] > first["usage"]["input_tokens"]


@test
def a_turn_that_fails_forgets_what_it_went_on_from():
    with start() as server, connect(server) as ws:
        first = done(ws, store=False)
        assert failed(ws, store=False, temperature=9)["status"] == 400  # it did not go on from anything
        result = {"type": "function_call_output", "call_id": "call_none", "output": "x"}
        why = failed(ws, store=False, previous_response_id=first["id"], input=[result])
        assert why["status"] == 400 and "call_none" in why["error"]["message"], why
        why = failed(ws, store=False, previous_response_id=first["id"])
        assert why["error"]["code"] == "previous_response_not_found", why


@test
def bad_messages_cost_nothing_but_an_error():
    with start() as server, connect(server) as ws:
        for text, param in (("{", None), ("[]", None), ("7", None), ('{"type":"response.cancel"}', "type"),
                            ('{"input":"hello"}', "type"), ('{"type":"response.create","input":7}', "input"),
                            ('{"type":"response.create","input":"a","background":true}', "background"),
                            ('{"type":"response.create","input":"a","model":"none"}', "model")):
            ws.send(text)
            why = json.loads(ws.text())
            assert why["type"] == "error" and why["error"]["param"] == param, (text, why)
            assert why["error"]["code"] and why["status"] in (400, 404), why
        done(ws)


@test
def messages_wait_for_the_answer_before():
    with start() as server, connect(server) as ws:
        for i in range(3):
            ws.send({**CREATE, "metadata": {"number": str(i)}})
        ws.send("", websocket.PING)
        ids = []
        for i in range(3):
            last = ws.events()[-1]["response"]
            assert last["metadata"] == {"number": str(i)}, last
            ids.append(last["id"])
        assert len(set(ids)) == 3
        while not ws.pongs:
            opcode, data = ws.receive()
            ws.pongs += [data] if opcode == websocket.PONG else []


@test
def a_client_that_closes_cancels():
    with start() as server:
        for leave in (lambda ws: ws.send_raw(websocket.close_frame(1000)), lambda ws: ws.sock.close()):
            with connect(server) as ws:
                ws.send({**CREATE, "max_output_tokens": 1500, "ignore_eos": True})
                assert json.loads(ws.text())["type"] == "response.created"
                leave(ws)
                server.wait_idle()


@test
def requests_are_listed_and_cancelled_by_their_id():
    with start() as server, connect(server) as ws:
        ws.send({**CREATE, "max_output_tokens": 1900, "ignore_eos": True})
        response = json.loads(ws.text())["response"]["id"]
        server.request("DELETE", "/v1/requests/" + response)
        assert ws.events()[-1]["response"]["id"] == response
        done(ws)


@test
def keys_hosts_and_pages_are_checked():
    with start("--api-key", "secret") as server:
        assert "401" in refusal(server)
        assert "401" in refusal(server, Authorization="Bearer wrong")
        with connect(server, Authorization="Bearer secret", Origin="https://elsewhere.example") as ws:
            done(ws)
            assert "sec-websocket-protocol" not in ws.head
        offered = "realtime, openai-insecure-api-key.{}, more"  # as pages in browsers send a key
        with connect(server, Sec_WebSocket_Protocol=offered.format("secret")) as ws:
            assert "sec-websocket-protocol: realtime\r\n" in ws.head + "\r\n" and "secret" not in ws.head, ws.head
            done(ws)
            done(ws)
        with connect(server, Sec_WebSocket_Protocol="openai-insecure-api-key.secret") as ws:
            assert "sec-websocket-protocol" not in ws.head
        for wrong in ("realtime", offered.format("wrong"), offered.format(""), "openai-insecure-api-key"):
            assert "401" in refusal(server, Sec_WebSocket_Protocol=wrong), wrong
        key = {"sec-websocket-protocol": "openai-insecure-api-key.secret"}
        assert server.post("/v1/responses", {"input": "hello"}, key).status == 401  # of WebSockets alone
    with start() as server:
        assert "403" in refusal(server, Origin="https://elsewhere.example")
        assert "403" in refusal(server, Host="elsewhere.example")
        with connect(server, Origin="http://127.0.0.1") as ws:
            done(ws)


def refusal(server, **headers):
    """The head of the answer to a handshake that is refused."""
    try:
        connect(server, **headers).sock.close()
    except ConnectionError as why:
        return str(why)
    raise AssertionError("the handshake was taken")


@test
def rates_hold_for_each_message():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "keys")
        with open(path, "w", encoding="utf-8") as f:
            f.write("sk-one name=one requests/min=2\n")
        os.chmod(path, 0o600)
        with start("--keys", path) as server, connect(server, Authorization="Bearer sk-one") as ws:
            done(ws)
            done(ws)
            why = failed(ws)
            assert why["status"] == 429 and why["error"]["code"] == "rate_limit_exceeded", why


@test
def a_slow_reader_pauses_itself_alone():
    with start() as server, connect(server) as slow, connect(server) as other:
        slow.send({**CREATE, "max_output_tokens": 100, "ignore_eos": True})
        done(other)
        slow.events()


@test
def the_end_of_a_server_closes_sockets():
    with start() as server:
        with connect(server) as ws:
            done(ws)
            server.process.terminate()
            assert ws.closed() == 1001
        assert server.process.wait(served.PATIENCE) == 0


def replayed(scripts):
    """A folder with a model that says what is written."""
    return replay.write(os.path.join(os.path.dirname(SUITE.folder), "replay"), scripts)


SCRIPTS = {"plain": ["What?"], "sum": ["<think>\nHm.\n</think>\n\nThe user's name is Ada."],
           "call": ['<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>', "I looked."],
           "none": ["<think>\nHm.\n</think>"]}


@test
def tools_are_called_over_a_socket():
    with start("--any-model", folder=replayed(SCRIPTS)) as server, connect(server) as ws:
        fields = {"tools": [TOOL], "store": False, "max_output_tokens": 100}
        first = done(ws, input="replay:call", **fields)
        call = next(item for item in first["output"] if item["type"] == "function_call")
        second = done(ws, previous_response_id=first["id"], **fields,
                      input=[{"type": "function_call_output", "call_id": call["call_id"], "output": "seen"}])
        assert second["output"][-1]["content"][0]["text"] == "I looked.", second


@test
def conversations_are_compacted():
    with start("--any-model", folder=replayed(SCRIPTS)) as server:
        talk = [{"role": "developer", "content": "Be kind."}, {"role": "user", "content": "replay:sum I am Ada."},
                {"role": "assistant", "content": "Hello Ada."},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What now?"}]}]
        got = server.post("/v1/responses/compact", {"model": "any", "input": talk, "prompt_cache_key": "a"})
        assert got.status == 200, got.body
        made = got.json()
        assert made["object"] == "response.compaction" and made["id"].startswith("resp_"), made
        assert [item["type"] for item in made["output"]] == ["message", "message", "compaction"], made
        assert [item["content"][0]["text"] for item in made["output"][:2]] == ["replay:sum I am Ada.", "What now?"]
        assert made["output"][2]["encrypted_content"] == "motet:The user's name is Ada.", made
        assert made["usage"]["output_tokens"] > 0 and made["usage"]["output_tokens_details"]["reasoning_tokens"] > 0
        ask = {"model": "any", "input": [*made["output"], {"role": "user", "content": "replay:plain"}]}
        shown = server.post("/v1/responses", ask)
        assert shown.status == 200 and shown.json()["output"][-1]["content"][0]["text"] == "What?", shown.body
        with_it, without = (server.post("/v1/responses/input_tokens", {**ask, "input": items}).json()["input_tokens"]
                            for items in (ask["input"], [*made["output"][:2], ask["input"][-1]]))
        assert with_it > without  # the summary is in the prompt
        kept = server.post("/v1/responses", {"model": "any", "input": talk}).json()
        again = server.post("/v1/responses/compact", {"model": "any", "previous_response_id": kept["id"]}).json()
        assert [item["type"] for item in again["output"]] == ["message", "message", "compaction"], again


@test
def compactions_that_cannot_be():
    with start("--any-model", folder=replayed(SCRIPTS)) as server:
        def why(path="/v1/responses/compact", **body):
            got = server.post(path, body)
            return got.status, got.json()["error"]["code"], got.json()["error"]["param"]
        assert why(input="a") == (400, "missing_required_parameter", "model")
        assert why(model="any") == (400, "invalid_type", "input")
        assert why(model="any", input="a", stream=True) == (400, "unsupported_value", "stream")
        assert why(model="any", previous_response_id="resp_none")[:2] == (400, "previous_response_not_found")
        assert why(model="any", input="replay:none")[:2] == (500, "no_summary")
        foreign = [{"type": "compaction", "encrypted_content": "gAAAA"}]
        assert why("/v1/responses", input=foreign) == (400, "invalid_value", "input[0]")


@test
def outputs_without_their_call_are_refused():
    with start() as server:
        result = {"type": "function_call_output", "call_id": "call_1", "output": "x"}
        call = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"}
        ask = {"max_output_tokens": 1}
        got = server.post("/v1/responses", {**ask, "input": [{"role": "user", "content": "a"}, result]})
        assert got.status == 400 and got.json()["error"]["param"] == "input[1]", got.body
        assert server.post("/v1/responses", {**ask, "input": [call, result]}).status == 200


SUITE.main()
