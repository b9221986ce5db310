#!/usr/bin/env python3
"""/v1/files, in OpenAI's shape and in Anthropic's: files that clients keep on the server.

usage: tests/api/test_files.py --motet PROGRAM [NAME ...]"""

import base64
import contextlib
import os
import signal
import socket
import tempfile
import threading
import time

import served

HERE = os.path.dirname(os.path.abspath(__file__))
SUITE = served.Suite("api_files")
VERSION = {"anthropic-version": "2023-06-01", "anthropic-beta": "files-api-2025-04-14"}
EXTRA = 1 << 20  # MT_LIMIT_FORM_EXTRA
LARGEST = (512 << 20) + EXTRA  # MT_LIMIT_FILE_BYTES
PAGE, OWN = 1000, 16  # MT_LIMIT_FILES_PAGE, MT_LIMIT_FILES_OWN
MOST = (1 << 30) if "MOTET_TEST_QUICK" in os.environ else 24 << 20  # bytes; a sanitizer takes memory of its own


@contextlib.contextmanager
def started(*options, folder=None):
    """A server that keeps files, and the folder it keeps them in."""
    with tempfile.TemporaryDirectory() as made:
        folder = folder or os.path.join(made, "kept", "here")
        with SUITE.start("--files-dir", folder, *options) as server:
            yield server, folder


def form(data, name="notes.txt", kind="text/plain", **fields):
    body = b""
    for field, value in fields.items():
        body += '--B\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'.format(field, value).encode()
    body += '--B\r\nContent-Disposition: form-data; name="file"; filename="{}"\r\nContent-Type: {}\r\n\r\n'.format(
        name, kind).encode()
    return body + data + b"\r\n--B--\r\n"


TYPE = {"content-type": "multipart/form-data; boundary=B"}


def upload(server, data=b"hello", headers=None, **fields):
    return server.request("POST", "/v1/files", form(data, **fields), {**TYPE, **(headers or {})})


def keep(server, *arguments, **fields):
    answer = upload(server, *arguments, **{"purpose": "user_data", **fields})
    assert answer.status == 200, answer.body
    return answer.json()


def names(folder):
    return sorted(name for name in os.listdir(folder) if name not in ("lock", "batches"))


@SUITE.test
def openai():
    with started() as (server, folder):
        made = keep(server, b"some text", name="n\u00e4h.txt", purpose="assistants",
                    **{"expires_after[anchor]": "created_at", "expires_after[seconds]": 3600})
        assert abs(made["created_at"] - time.time()) < 600, made
        assert made == {"id": made["id"], "object": "file", "bytes": 9, "created_at": made["created_at"],
                        "expires_at": made["created_at"] + 3600, "filename": "n\u00e4h.txt", "purpose": "assistants",
                        "status": "processed", "status_details": None}, made
        path = "/v1/files/" + made["id"]
        assert server.request("GET", path).json() == made
        content = server.request("GET", path + "/content")
        assert (content.status, content.body) == (200, b"some text"), content.body
        assert content.headers["content-type"] == "application/octet-stream", content.headers
        assert content.headers["content-disposition"] == "attachment", content.headers
        second = keep(server, b"")
        assert second["expires_at"] == second["created_at"] + 30 * 86400, second
        assert server.request("GET", "/v1/files/" + second["id"] + "/content").body == b""
        listed = server.request("GET", "/v1/files").json()
        assert listed == {"object": "list", "data": [second, made], "first_id": second["id"], "last_id": made["id"],
                          "has_more": False}, listed
        assert server.request("GET", "/v1/files?purpose=assistants").json()["data"] == [made]
        assert server.request("GET", "/v1/files?limit=1&order=asc").json()["has_more"] is True
        assert server.request("GET", "/v1/files?limit=1&after=" + second["id"]).json()["data"] == [made]
        assert server.request("DELETE", path).json() == {"id": made["id"], "object": "file", "deleted": True}
        for method, where in (("GET", path), ("GET", path + "/content"), ("DELETE", path), ("GET", "/v1/files/file-x")):
            answer = server.request(method, where)
            assert answer.status == 404 and "there is no file" in answer.json()["error"]["message"], answer.body
        assert names(folder) == [second["id"]]


@SUITE.test
def anthropic():
    with started() as (server, _):
        made = [upload(server, b"%PDF", VERSION, name="{}.pdf".format(i), kind="").json() for i in range(5)]
        first = made[0]
        assert first == {"id": first["id"], "type": "file", "filename": "0.pdf", "mime_type": "application/pdf",
                         "size_bytes": 4, "created_at": first["created_at"], "downloadable": True,
                         "expires_at": first["expires_at"]}, first
        assert first["created_at"].endswith("Z") and first["created_at"].startswith("20"), first

        def listed(query=""):
            return server.request("GET", "/v1/files" + query, headers=VERSION).json()

        def ids(page):
            return [each["filename"][0] for each in page["data"]], page["has_more"]

        assert listed() == {"data": made[::-1], "first_id": made[4]["id"], "last_id": made[0]["id"], "has_more": False,
                            "next_page": None}
        assert ids(listed("?limit=2")) == (["4", "3"], True)
        assert ids(listed("?limit=2&after_id=" + made[3]["id"])) == (["2", "1"], True)
        assert ids(listed("?limit=2&page=" + listed("?limit=2")["next_page"])) == (["2", "1"], True)
        assert ids(listed("?limit=2&before_id=" + made[1]["id"])) == (["3", "2"], True)
        path = "/v1/files/" + first["id"]
        assert server.request("GET", path, headers=VERSION).json() == first
        assert server.request("GET", path + "/content", headers=VERSION).body == b"%PDF"
        assert server.request("GET", path).json()["purpose"] == "user_data"  # the same files
        assert server.request("DELETE", path, headers=VERSION).json() == {"id": first["id"], "type": "file_deleted"}
        for answer in (server.request("DELETE", path, headers=VERSION),
                       server.request("GET", path + "/content", headers=VERSION)):
            assert answer.status == 404, answer.body
            assert answer.json()["type"] == "error" and answer.json()["error"]["type"] == "not_found_error", answer.body
        answer = upload(server, b"x", VERSION, purpose="fun")
        assert answer.status == 400 and answer.json()["type"] == "error", answer.body
        assert upload(server, b"x", {**VERSION, "content-type": "text/plain"}).status == 400


@SUITE.test
def mistakes():
    with started() as (server, folder):
        keep(server)
        for query, words in (("limit=0", "from 1 to 10000"), ("limit=10001", "from 1 to 10000"), ("limit=x", "limit"),
                             ("order=up", "asc"), ("after=file-none", "to list from")):
            answer = server.request("GET", "/v1/files?" + query)
            assert answer.status == 400 and words in answer.json()["error"]["message"], answer.body
        answer = server.request("GET", "/v1/files?limit={}".format(PAGE + 1), headers=VERSION)
        assert answer.status == 400 and "from 1 to 1000" in answer.json()["error"]["message"], answer.body
        answer = upload(server)
        assert answer.status == 400 and answer.json()["error"]["param"] == "purpose", answer.body
        assert upload(server, headers={"content-encoding": "gzip"}, purpose="vision").status == 415
        answer = server.request("POST", "/v1/files", b"", {**TYPE, "content-length": str(LARGEST + 1)})
        assert answer.status == 413, answer.body
        assert len(names(folder)) == 1
    with SUITE.start() as server:  # without --files-dir
        for headers in ({}, VERSION):
            for answer in (upload(server, headers=headers), server.request("GET", "/v1/files", headers=headers),
                           server.request("GET", "/v1/files/x/content", headers=headers)):
                assert answer.status == 400 and "--files-dir" in answer.json()["error"]["message"], answer.body
                assert answer.json().get("type") == ("error" if headers else None), answer.body


@SUITE.test
def accounts_are_apart():
    with tempfile.TemporaryDirectory() as made:
        keys = os.path.join(made, "keys")
        with open(keys, "w", encoding="utf-8") as f:
            f.write("key-of-ada name=ada\nkey-of-ben name=ben\n")
        os.chmod(keys, 0o600)
        with started("--keys", keys, "--files-bytes", "1000") as (server, _):
            ada, ben = ({"authorization": "Bearer key-of-" + name} for name in ("ada", "ben"))
            answer = upload(server, headers=VERSION)
            assert answer.status == 401 and answer.json()["type"] == "error", answer.body
            assert server.request("GET", "/v1/files").status == 401
            mine = keep(server, b"x" * 600, ada)
            assert server.request("GET", "/v1/files", headers=ben).json()["data"] == []
            assert server.request("GET", "/v1/files/" + mine["id"], headers=ben).status == 404
            assert server.request("GET", "/v1/files/" + mine["id"] + "/content", headers=ben).status == 404
            assert server.request("DELETE", "/v1/files/" + mine["id"], headers=ben).status == 404
            answer = upload(server, b"x" * 200, ada, purpose="batch")
            assert answer.status == 413 and "more than its share" in answer.json()["error"]["message"], answer.body
            keep(server, b"x" * 200, ben)
            answer = upload(server, b"x" * 300, ben, purpose="batch")
            assert answer.status == 413 and "--files-bytes" in answer.json()["error"]["message"], answer.body
            assert server.request("GET", "/v1/files/" + mine["id"] + "/content", headers=ada).body == b"x" * 600


def begin_upload(server, data):
    """An upload that announces more than it sends."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=served.PATIENCE)
    body = form(data)
    connection.sendall("POST /v1/files HTTP/1.1\r\nHost: localhost\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n".format(
        TYPE["content-type"], len(body) + 1000).encode() + body[:-20])
    return connection


@SUITE.test
def a_kill_leaves_what_was_whole():
    with tempfile.TemporaryDirectory() as folder:
        kept = []
        for _ in range(5):
            server = SUITE.start("--files-dir", folder)
            try:
                listed = server.request("GET", "/v1/files?order=asc").json()["data"]
                assert listed == kept, (listed, kept)
                assert names(folder) == sorted(each["id"] for each in kept), names(folder)
                half = begin_upload(server, b"y" * 100000)
                assert served.eventually(lambda: len(names(folder)) == len(kept) + 1), names(folder)
                kept.append(keep(server, b"z" * 50000))
            finally:
                server.stop(signal.SIGKILL)
            half.close()
            assert any(name.endswith(".part") for name in names(folder)), names(folder)


@SUITE.test
def whoever_leaves_leaves_nothing():
    with started() as (server, folder):
        half = begin_upload(server, b"y" * 100000)
        assert served.eventually(lambda: len(names(folder)) == 1)
        half.close()
        assert served.eventually(lambda: names(folder) == [])
        assert served.eventually(lambda: server.metrics()["motet_files_bytes"] == 0)


@SUITE.test
def so_many_move_at_a_time():
    with started() as (server, folder):
        halves = [begin_upload(server, b"y" * 1000) for _ in range(OWN)]
        assert served.eventually(lambda: len(names(folder)) == OWN)
        answer = upload(server, purpose="vision")
        assert answer.status == 429 and "files are being uploaded" in answer.json()["error"]["message"], answer.body
        for half in halves:
            half.close()
        assert served.eventually(lambda: upload(server, purpose="vision").status == 200)


@SUITE.test
def large_files_stay_out_of_memory():
    size = 48 << 20
    data = os.urandom(1 << 20) * (size >> 20)
    with started() as (server, _):
        keep(server)  # what the first takes anyway
        before = server.memory_peak()
        made = keep(server, data, name="large.bin", kind="")
        assert made["bytes"] == size
        content = server.request("GET", "/v1/files/" + made["id"] + "/content")
        assert content.body == data
        grown = server.memory_peak() - before
        assert grown < MOST, grown
        connection = socket.create_connection(("127.0.0.1", server.port), timeout=served.PATIENCE)
        connection.sendall("GET /v1/files/{}/content HTTP/1.1\r\nHost: localhost\r\n\r\n".format(made["id"]).encode())
        assert connection.recv(9) == b"HTTP/1.1 "  # and reads nothing more
        assert server.request("GET", "/v1/files").json()["data"][0]["id"] == made["id"]
        assert server.memory_peak() - before < MOST
        connection.close()
        head = server.request("HEAD", "/v1/files/" + made["id"] + "/content")
        assert (head.status, head.body) == (200, b""), head.status


@SUITE.test
def many_at_once():
    with started() as (server, folder):
        ids = []

        def work(number):
            for i in range(5):
                data = "{} {}".format(number, i).encode() * 1000
                made = keep(server, data)
                assert server.request("GET", "/v1/files/" + made["id"] + "/content").body == data
                if i % 2:
                    assert server.request("DELETE", "/v1/files/" + made["id"]).status == 200
                else:
                    ids.append(made["id"])

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(ids) == 24 and names(folder) == sorted(ids)
        listed = [each["id"] for each in server.request("GET", "/v1/files").json()["data"]]
        assert sorted(listed) == sorted(ids)
        metrics = server.metrics()
        assert metrics["motet_files"] == 24 and metrics["motet_files_uploaded_total"] == 40, metrics
        assert metrics["motet_files_deleted_total"] == 16 and metrics["motet_files_limit_bytes"] == 4 << 30


@SUITE.test
def one_server_a_folder():
    with started() as (_, folder):
        try:
            with SUITE.start("--files-dir", folder):
                raise SystemError("a second server uses the same folder")
        except AssertionError as e:
            assert "is in use by another process" in str(e), e


def base64_of(text):
    return base64.b64encode(text.encode()).decode()


def parts_of_chat(server, part):
    body = {"messages": [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, part]}], "max_tokens": 1,
            "temperature": 0}
    return server.post("/v1/chat/completions", body)


def parts_of_responses(server, part):
    content = [{"type": "input_text", "text": "What is this?"}, part]
    return server.post("/v1/responses", {"input": [{"role": "user", "content": content}], "max_output_tokens": 1})


def blocks(server, *parts, model="tiny"):
    body = {"messages": [{"role": "user", "content": list(parts)}], "max_tokens": 1, "model": model}
    return server.post("/v1/messages", body)


def tokens(answer):
    assert answer.status == 200, answer.body
    usage = answer.json()["usage"]
    return usage["prompt_tokens"] if "prompt_tokens" in usage else \
        usage["input_tokens"] + usage.get("cache_read_input_tokens", 0)


def cached(answer):
    return answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"]


@SUITE.test
def documents_are_text():
    notes = "a,b\n1,2\n<p>It is \u00e4 text.</p>\n"
    with started() as (server, _):
        kept = keep(server, notes.encode(), name="n.csv", kind="text/csv")["id"]
        plain = parts_of_chat(server, {"type": "text", "text": "n.csv\n" + notes})
        wanted = tokens(plain)
        data = base64_of("\ufeff" + notes)  # with a byte order mark
        for file in ({"file_id": kept}, {"file_data": data, "filename": "n.csv"},
                     {"file_data": "data:text/csv;base64," + data, "filename": "n.csv"}):
            answer = parts_of_chat(server, {"type": "file", "file": file})
            assert tokens(answer) == wanted and cached(answer) == wanted - 1, answer.body
            assert answer.text() == plain.text(), answer.body
        wanted = tokens(parts_of_responses(server, {"type": "input_text", "text": "n.csv\n" + notes}))
        for part in ({"file_id": kept}, {"file_data": data, "filename": "n.csv"}):
            assert tokens(parts_of_responses(server, {"type": "input_file", **part})) == wanted
        wanted = tokens(blocks(server, {"type": "text", "text": "Of old.\n"}, {"type": "text", "text": "n.csv\n" + notes}))
        for source in ({"type": "file", "file_id": kept}, {"type": "base64", "media_type": "text/csv", "data": data}):
            block = {"type": "document", "source": source, "title": "n.csv", "context": "Of old.\n"}
            assert tokens(blocks(server, block)) == wanted
        result = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": [
            {"type": "document", "source": {"type": "file", "file_id": kept}}]}
        call = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]}
        body = {"messages": [{"role": "user", "content": "hello"}, call, {"role": "user", "content": [result]}],
                "max_tokens": 1, "model": "tiny"}
        with_file = tokens(server.post("/v1/messages", body))
        result["content"] = [{"type": "text", "text": "n.csv\n" + notes}]
        assert tokens(server.post("/v1/messages", body)) == with_file
        counted = {"messages": [{"role": "user", "content": [{"type": "document", "source": {
            "type": "file", "file_id": kept}}]}], "model": "tiny"}
        assert server.post("/v1/messages/count_tokens", counted).json()["input_tokens"] == \
            tokens(blocks(server, {"type": "text", "text": "n.csv\n" + notes}))
        first = parts_of_responses(server, {"type": "input_file", "file_id": kept}).json()
        follow = {"input": "And now?", "previous_response_id": first["id"], "max_output_tokens": 1}
        assert server.post("/v1/responses", follow).status == 200
        assert server.request("DELETE", "/v1/files/" + kept).status == 200
        answer = server.post("/v1/responses", follow)
        assert answer.status == 400 and "there is no file" in answer.json()["error"]["message"], answer.body


@SUITE.test
def documents_that_are_refused():
    with started() as (server, _):
        empty = keep(server, b"")["id"]
        assert parts_of_chat(server, {"type": "file", "file": {"file_id": empty}}).status == 200
        for data, words in ((b"%PDF-1.4 ...", "is a PDF"), (b"\x89PNG\r\n", "is a picture"), (b"PK\x03\x04", "archive"),
                            (b"a\0b", "at byte 1"), (b"caf\xe9", "at byte 3"), (b"\xff\xfea\0", "UTF-16")):
            kept = keep(server, data)["id"]
            for answer in (parts_of_chat(server, {"type": "file", "file": {"file_id": kept}}),
                           parts_of_responses(server, {"type": "input_file", "file_id": kept}),
                           blocks(server, {"type": "document", "source": {"type": "file", "file_id": kept}})):
                assert answer.status == 400 and words in answer.json()["error"]["message"], answer.body
        for file, words in (({}, "no place where it is"), ({"file_id": "file-x"}, "there is no file"),
                            ({"file_id": "f", "file_data": "YQ=="}, "more than one place"),
                            ({"file_data": "data:text/plain,hello"}, "is not base64"), ({"file_data": "!"}, "base64"),
                            ({"file_url": "http://127.0.0.1:1/x"}, "127.0.0.1"), ({"file_url": "ftp://x/y"}, "is no URL")):
            answer = parts_of_chat(server, {"type": "file", "file": file})
            assert answer.status == 400 and words in answer.json()["error"]["message"], answer.body
            assert "messages[0].content[1]" in answer.json()["error"]["message"], answer.body
        answer = blocks(server, {"type": "document", "source": {"type": "file", "file_id": empty},
                                 "citations": {"enabled": True}})
        assert answer.status == 400 and "citations" in answer.json()["error"]["message"], answer.body
        assert blocks(server, {"type": "document", "source": {"type": "file", "file_id": empty},
                               "citations": {"enabled": False}}, {"type": "text", "text": "x"}).status == 200
    with SUITE.start() as server:
        answer = parts_of_chat(server, {"type": "file", "file": {"file_id": "file-x"}})
        assert answer.status == 400 and "--files-dir" in answer.json()["error"]["message"], answer.body
        assert parts_of_chat(server, {"type": "file", "file": {"file_data": base64_of("x")}}).status == 200


@SUITE.test
def documents_are_bounded():
    most = 4 << 20  # MT_LIMIT_DOCUMENT_BYTES
    with started() as (server, _):
        one, half = keep(server, b"x" * (most + 1))["id"], keep(server, b"x" * (most // 2))["id"]
        answer = parts_of_chat(server, {"type": "file", "file": {"file_id": one}})
        assert answer.status == 413 and "bytes of text" in answer.json()["error"]["message"], answer.body
        body = {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": half}}] * 2}]}
        answer = server.post("/v1/chat/completions", body)
        assert answer.status == 413 and str(most) in answer.json()["error"]["message"], answer.body
        answer = parts_of_chat(server, {"type": "file", "file": {"file_id": half}})
        assert answer.status == 400 and "context" in answer.json()["error"]["message"], answer.body


@SUITE.test
def pictures_by_their_ids():
    model = "qwen3vl-bf16"
    folder = os.path.join(HERE, "..", "oracle", "sighted", model)
    with open(os.path.join(HERE, "..", "..", "examples", "triangles.png"), "rb") as f:
        picture = f.read()
    with tempfile.TemporaryDirectory() as made, \
            SUITE.start("--files-dir", os.path.join(made, "kept"), folder=folder) as server:
        url = "data:image/png;base64," + base64.b64encode(picture).decode()
        kept = keep(server, picture, name="triangles.png", kind="image/png", purpose="vision")["id"]
        wanted = tokens(parts_of_responses(server, {"type": "input_image", "image_url": url}))
        answer = parts_of_responses(server, {"type": "input_image", "file_id": kept})
        assert tokens(answer) == wanted, answer.body
        assert answer.json()["usage"]["input_tokens_details"]["cached_tokens"] == wanted - 1, answer.body
        source = {"type": "base64", "media_type": "image/png", "data": url.partition(",")[2]}
        wanted = tokens(blocks(server, {"type": "image", "source": source}, model=model))
        assert tokens(blocks(server, {"type": "image", "source": {"type": "file", "file_id": kept}}, model=model)) == wanted
        answer = blocks(server, {"type": "image", "source": {"type": "file", "file_id": "file-none"}}, model=model)
        assert answer.status == 400 and "there is no file" in answer.json()["error"]["message"], answer.body


@SUITE.test
def files_need_no_model():
    with started() as (server, _):
        state = lambda: server.request("GET", "/v1/models").json()["data"][0]["state"]
        file = keep(server)
        assert server.post("/v1/models/unload", {"model": "tiny"}).status == 200
        assert served.eventually(lambda: state() == "unloaded")
        assert [each["id"] for each in server.request("GET", "/v1/files").json()["data"]] == [file["id"]]
        assert server.request("GET", "/v1/files/" + file["id"]).json() == file
        assert server.request("DELETE", "/v1/files/" + file["id"]).json()["deleted"] is True
        assert state() == "unloaded"


if __name__ == "__main__":
    SUITE.main()
