#!/usr/bin/env python3
"""The pages as they come over the wire: who gets them, packed or not, kept or not, and what they may do.

usage: tests/api/test_web.py --motet PROGRAM [NAME ...]"""

import gzip
import re

import served

SUITE = served.Suite("api_web")
test, start = SUITE.test, SUITE.start
ALIVE = {"status": "ok", "message": "Ollama is running"}
BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PACKED = {"accept-encoding": "gzip, deflate, br"}
MOST = 150 * 1024  # bytes of all pages and their files, packed
LINK = re.compile(r'(?:src|href)="(assets/[^"]+)"')


def links(server, page):
    return LINK.findall(server.request("GET", page, headers=BROWSER).body.decode())


def files(server):
    """All files of all pages: {path: answer}, packed. Style sheets and modules name others by relative paths."""
    found = {page: server.request("GET", page, headers={**BROWSER, **PACKED}) for page in ("/", "/dashboard")}
    for page in list(found):
        for path in links(server, page):
            found["/" + path] = server.request("GET", "/" + path, headers=PACKED)
    return found


@test
def browsers_get_the_chat_and_probes_their_json():
    with start() as server:
        for headers in ({}, {"accept": "*/*"}, {"accept": "application/json"}, {"accept": "text/html;q=0, */*"}):
            got = server.request("GET", "/", headers=headers)
            assert (got.status, got.json()) == (200, ALIVE), (headers, got)
        for path in ("/", "/dashboard", "//", "/dashboard/"):
            got = server.request("GET", path, headers=BROWSER)
            assert got.status == 200 and got.headers["content-type"] == "text/html; charset=utf-8", got.headers
            assert got.body.startswith(b"<!doctype html>") and got.body.endswith(b"</html>\n"), got.body
            head = server.request("HEAD", path, headers=BROWSER)
            assert (head.status, head.body) == (200, b"")
            assert head.headers["content-length"] == str(len(got.body)) and head.headers["etag"] == got.headers["etag"]
        assert server.request("POST", "/dashboard", "{}").status == 405


@test
def every_file_is_there_packed_or_not():
    with start() as server:
        for path, got in files(server).items():
            plain = server.request("GET", path, headers=BROWSER)
            assert got.status == plain.status == 200, (path, got.status)
            assert got.headers["content-encoding"] == "gzip" and "content-encoding" not in plain.headers, path
            assert gzip.decompress(got.body) == plain.body and plain.body, path
            refused = server.request("GET", path, headers={**BROWSER, "accept-encoding": "gzip;q=0, identity"})
            assert refused.body == plain.body, path
            assert "accept-encoding" in plain.headers["vary"], path


@test
def what_is_known_is_not_sent_again():
    with start() as server:
        for path, got in files(server).items():
            tag = got.headers["etag"]
            for known in (tag, '"x", ' + tag, tag[2:], "*"):
                again = server.request("GET", path, headers={**BROWSER, **PACKED, "if-none-match": known})
                assert (again.status, again.body) == (304, b""), (path, known, again.status)
                assert again.headers["etag"] == tag and "content-encoding" not in again.headers
            assert server.request("GET", path, headers={**BROWSER, "if-none-match": '"x"'}).status == 200
            lasting = path.startswith("/assets/")
            assert got.headers["cache-control"] == ("public, max-age=31536000, immutable" if lasting else "no-cache")


@test
def all_of_it_is_small():
    with start() as server:
        sizes = {path: len(got.body) for path, got in files(server).items()}
        assert len(sizes) > 8 and sum(sizes.values()) <= MOST, sizes


@test
def a_page_may_do_little():
    with start() as server:
        for path, got in files(server).items():
            policy = dict(part.split(" ", 1) for part in got.headers["content-security-policy"].split("; "))
            assert policy["default-src"] == "'none'" and policy["script-src"] == policy["style-src"] == "'self'", policy
            for name in ("frame-ancestors", "base-uri", "form-action"):
                assert policy[name] == "'none'", policy
            assert policy["connect-src"] == "'self'" and "unsafe" not in str(policy) and "http" not in str(policy)
            assert got.headers["x-content-type-options"] == "nosniff", path
            assert got.headers["referrer-policy"] == "no-referrer", path
            assert "set-cookie" not in got.headers, path
            text = gzip.decompress(got.body).decode()
            if path.endswith(".js"):
                sinks = re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)
                assert not sinks, (path, sinks)
            if not path.startswith("/assets/"):
                assert not re.search(r"<script(?![^>]* src=)|<style|style=|\son\w+=", text), path


@test
def a_page_may_call_those_that_the_operator_names():
    with start("--web-connect", "https://tools.example", "--web-connect", "http://127.0.0.1:9000") as server:
        policy = server.request("GET", "/", headers=BROWSER).headers["content-security-policy"]
        assert "connect-src 'self' https://tools.example http://127.0.0.1:9000; frame-ancestors" in policy, policy
        limits = server.request("GET", "/web/limits").json()
        assert limits["connect"] == ["https://tools.example", "http://127.0.0.1:9000"]
        assert limits["background_alone"] == 600 and 0 < limits["upload_bytes"] <= 256 << 20, limits
        assert 1 << 20 < limits["body_bytes"] <= 64 << 20 and limits["picture_bytes"] == 64 << 20, limits


@test
def a_server_with_keys_shows_its_pages_and_nothing_else():
    with start("--api-key", "secret") as server:
        assert server.request("GET", "/v1/models").status == 401
        assert all(got.status == 200 for got in files(server).values())


@test
def pages_can_be_left_out():
    with start("--web", "off") as server:
        assert server.request("GET", "/", headers=BROWSER).json() == ALIVE
        assert server.request("GET", "/dashboard", headers=BROWSER).status == 404
        assert server.request("GET", "/assets/x/base/base.css").status == 404
    with start(env={"MOTET_WEB": "on"}) as server:
        for path in ("/assets/x/base/base.css", "/assets/", "/assets", "/assets/../v1/models"):
            assert server.request("GET", path).status in (400, 404), path


SUITE.main()
