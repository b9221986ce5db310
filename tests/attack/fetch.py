#!/usr/bin/env python3
"""Server-side request forgery by URLs of pictures: none of these reaches a service of the server's own machine or
network, whatever the URL looks like, wherever it is redirected to, and whatever its name is resolved to.

usage: tests/attack/fetch.py --motet PROGRAM --resolver LIBRARY [NAME ...]"""

import os
import struct
import zlib

import reach
import served

FOLDER = os.path.join(reach.HERE, "..", "oracle", "sighted", "qwen3vl-bf16")
NAMES = {"pictures.test": reach.PUBLIC, "inside.test": "127.0.0.1", "private.test": reach.PRIVATE,
         "metadata.test": "169.254.169.254", "six.test": "::1", "mapped.test": "::ffff:127.0.0.1",
         "again.test": [reach.PUBLIC, "127.0.0.1"], "thrice.test": [reach.PUBLIC, reach.PUBLIC, "127.0.0.1"]}
CLOSED = "does not lead to a public address"
SCHEME = "begin with data:, https:, http: or file:"
TESTS = []


def test(function):
    TESTS.append(function)
    return function


def png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress((b"\0" + b"\x80\x40\x20" * 64) * 48)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 48, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", rows) + chunk(b"IEND", b""))


def picture(_):
    return 200, {"content-type": "image/png"}, png()


def outside(path):
    """An attacker's web server: /to/URL leads to that URL, /loop to itself, /turn/N to N-1 and in the end to a picture."""
    if path.startswith("/to/"):
        return 302, {"location": path[len("/to/"):]}, b"moved"
    if path.startswith("/loop"):
        return 307, {"location": "/loop"}, b""
    if path.startswith("/turn/"):
        left = int(path.rsplit("/", 1)[1])
        return 301, {"location": "/turn/{}".format(left - 1) if left else "/picture.png"}, b""
    return picture(path)


def ask(server, url):
    content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "What is it?"}]
    return server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": content}], "max_tokens": 1})


def forms(port, port_six):
    """URLs of a service of this machine, and the sentence that refuses each."""
    return [("loopback", "http://127.0.0.1:{}/x.png".format(port), CLOSED),
            ("another loopback", "http://127.99.1.2:{}/x.png".format(port), CLOSED),
            ("a name", "http://localhost:{}/x.png".format(port), CLOSED),
            ("a name in capitals, with a dot", "HTTP://LOCALHOST.:{}/x.png".format(port), (CLOSED, "could not be fetched")),
            ("decimal", "http://2130706433:{}/x.png".format(port), CLOSED),
            ("hexadecimal", "http://0x7f000001:{}/x.png".format(port), CLOSED),
            ("hexadecimal parts", "http://0x7f.0x0.0x0.0x1:{}/x.png".format(port), CLOSED),
            ("octal", "http://017700000001:{}/x.png".format(port), CLOSED),
            ("an octal part", "http://0177.0.0.1:{}/x.png".format(port), CLOSED),
            ("two parts", "http://127.1:{}/x.png".format(port), CLOSED),
            ("three parts", "http://127.0.1:{}/x.png".format(port), CLOSED),
            ("nothing", "http://0:{}/x.png".format(port), CLOSED),
            ("zeros", "http://0.0.0.0:{}/x.png".format(port), CLOSED),
            ("IPv6", "http://[::1]:{}/x.png".format(port_six), CLOSED),
            ("IPv6 in full", "http://[0:0:0:0:0:0:0:1]:{}/x.png".format(port_six), CLOSED),
            ("any IPv6", "http://[::]:{}/x.png".format(port_six), CLOSED),
            ("mapped", "http://[::ffff:127.0.0.1]:{}/x.png".format(port), CLOSED),
            ("mapped, hexadecimal", "http://[::ffff:7f00:1]:{}/x.png".format(port), CLOSED),
            ("compatible", "http://[::127.0.0.1]:{}/x.png".format(port), CLOSED),
            ("NAT64", "http://[64:ff9b::7f00:1]:{}/x.png".format(port), CLOSED),
            ("6to4", "http://[2002:7f00:1::]:{}/x.png".format(port), CLOSED),
            ("with a zone", "http://[fe80::1%25lo]:{}/x.png".format(port_six), (CLOSED, "could not be fetched")),
            ("a name for it", "http://inside.test:{}/x.png".format(port), CLOSED),
            ("a name for its IPv6", "http://six.test:{}/x.png".format(port_six), CLOSED),
            ("a name for its mapped address", "http://mapped.test:{}/x.png".format(port), CLOSED),
            ("a private network", "http://{}:{}/x.png".format(reach.PRIVATE, port), CLOSED),
            ("a name in it", "http://private.test:{}/x.png".format(port), CLOSED),
            ("metadata", "http://169.254.169.254/latest/meta-data/", CLOSED),
            ("a name for metadata", "http://metadata.test/latest/meta-data/", CLOSED),
            ("full-width digits", "http://\uff11\uff12\uff17.0.0.1:{}/x.png".format(port), (CLOSED, "could not be fetched")),
            ("circled letters", "http://\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3:{}/x.png".format(port),
             (CLOSED, "could not be fetched"))]


def refuse(server, inside, url, words, asked=None):
    """The URL is refused with one of the words, and nobody came to what is inside."""
    answer = ask(server, url)
    reach.check_answer(url, answer, 400, (), asked or url)
    words = (words,) if isinstance(words, str) else words
    assert any(word in answer.body.decode() for word in words), (url, words, answer.body)
    for web in inside:
        assert not web.visits, (url, web.visits)
    reach.check_alive(server)


class Stage:
    """A server, the attacker's web server, and two of the server's own machine that nobody may visit."""

    def __init__(self, *options):
        self.outside, self.inside = reach.Web(outside), [reach.Web(picture)]
        try:
            self.inside.append(reach.Web(picture, reach.socket.AF_INET6))
        except OSError:  # a machine without IPv6
            pass
        self.server = served.Server(reach.PROGRAM, FOLDER, "--media-seconds", "60", *options, env=reach.network(NAMES))

    def at(self, path, name="pictures.test"):
        return "http://{}:{}{}".format(name, self.outside.server_port, path)

    def forms(self):
        return forms(self.inside[0].server_port, self.inside[-1].server_port)

    def refuse(self, url, words):
        refuse(self.server, self.inside, url, words)

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *why):
        for web in (self.outside, *self.inside):
            web.__exit__(*why)
        self.server.__exit__(*why)


@test
def the_stage_works():
    """A picture of a public address is fetched; and with --media-allow-private, what is inside is visited."""
    with Stage() as stage:
        assert ask(stage.server, stage.at("/picture.png")).status == 200
        assert ask(stage.server, stage.at("/turn/1")).status == 200
        assert stage.outside.visits == ["/picture.png", "/turn/1", "/turn/0", "/picture.png"]
    with Stage("--media-allow-private") as stage:
        assert ask(stage.server, "http://127.0.0.1:{}/x.png".format(stage.inside[0].server_port)).status == 200
        assert stage.inside[0].visits == ["/x.png"]


@test
def addresses_in_any_form():
    with Stage() as stage:
        reach.run_cases(stage.forms(), lambda _, url, words: stage.refuse(url, words))


@test
def redirects_to_addresses_in_any_form():
    def run(_, url, words):
        before = len(stage.outside.visits)
        stage.refuse(stage.at("/to/" + url), words)
        assert len(stage.outside.visits) == before + 1
    with Stage() as stage:
        reach.run_cases([f for f in stage.forms() if f[1].isascii()], run)


@test
def redirects_to_other_places():
    with Stage() as stage:
        inside = "127.0.0.1:{}/x.png".format(stage.inside[0].server_port)
        web = ("no URL of a kind", "does not lead to http or https", "does not say where")
        cases = [("a file", "/to/file:///etc/passwd", web), ("a file with a host", "/to/file://localhost/etc/passwd", web),
                 ("gopher", "/to/gopher://" + inside, web), ("dict", "/to/dict://" + inside, web),
                 ("ftp", "/to/ftp://" + inside, web), ("ldap", "/to/ldap://" + inside, web),
                 ("tftp", "/to/tftp://" + inside, web), ("smb", "/to/smb://" + inside, web),
                 ("data", "/to/data:image/png;base64,AAAA", web), ("a script", "/to/javascript:alert(1)", web),
                 ("without a scheme", "/to///" + inside, CLOSED),
                 ("a user", "/to/http://user@" + inside, "has a user or password"),
                 ("a public name as user", "/to/http://pictures.test:80@" + inside, "has a user or password"),
                 ("a low port", "/to/http://pictures.test:22/", "some other service's"),
                 ("a loop", "/loop", "is moved too often"), ("far too many turns", "/turn/50", "is moved too often"),
                 ("two turns, then inside", "/to/" + stage.at("/to/http://" + inside), CLOSED),
                 ("no place", "/to/", ("does not say where", "is moved too often")),
                 ("a long URL", "/to/http://pictures.test/" + "x" * 9000, ("too long", "could not be fetched", "status")),
                 ("nonsense", "/to/http://", web)]
        reach.run_cases(cases, lambda _, path, words: stage.refuse(stage.at(path), words))


@test
def urls_that_are_none_of_the_webs():
    with Stage() as stage:
        inside = "127.0.0.1:{}/x.png".format(stage.inside[0].server_port)
        cases = [("gopher", "gopher://" + inside, SCHEME), ("dict", "dict://" + inside, SCHEME),
                 ("ftp", "ftp://" + inside, SCHEME), ("ldap", "ldap://" + inside, SCHEME),
                 ("sftp", "sftp://" + inside, SCHEME), ("jar", "jar:http://" + inside, SCHEME),
                 ("a scheme within", "x-http://" + inside, SCHEME), ("none", "//" + inside, SCHEME),
                 ("a blank before", " http://" + inside, SCHEME), ("nothing", "", "has no URL"),
                 ("a user", "http://user@" + inside, "has a user or password"),
                 ("a user and a password", "http://a:b@" + inside, "has a user or password"),
                 ("a public name as user", "http://pictures.test@" + inside, "has a user or password"),
                 ("a user by a number sign", "http://pictures.test#@" + inside, ("could not be fetched", "status")),
                 ("a backslash", "http://pictures.test\\@" + inside, ("no URL of a kind", "user or password", "could not be fetched")),
                 ("a low port", "http://pictures.test:25/x.png", "some other service's"),
                 ("port 0", "http://pictures.test:0/x.png", ("some other service's", "no URL of a kind", "could not be fetched")),
                 ("a port that is none", "http://pictures.test:99999/x.png", "no URL of a kind"),
                 ("lines", "http://pictures.test:80/x\r\nhost: 127.0.0.1\r\n\r\n", ("no URL of a kind", "could not be fetched")),
                 ("a tab in the host", "http://127.0.0\t.1:80/", ("no URL of a kind", "could not be fetched")),
                 ("a zero byte", "http://pictures.test\0" + inside, "zero byte"),
                 ("a socket", "http://unix:/tmp/x.sock", ("no URL of a kind", "could not be fetched", CLOSED)),
                 ("a long one", "http://pictures.test/" + "x" * 9000, "too long")]
        reach.run_cases(cases, lambda _, url, words: stage.refuse(url, words))


@test
def names_that_change():
    """A name that has a public address at first, and the loopback address from the second or third look on."""
    with Stage() as stage:
        assert ask(stage.server, stage.at("/picture.png?1", "again.test")).status == 200
        for number in range(3):
            stage.refuse(stage.at("/picture.png?{}".format(number), "again.test"), CLOSED)
        assert ask(stage.server, stage.at("/picture.png?3", "thrice.test")).status == 200
        assert ask(stage.server, stage.at("/picture.png?4", "thrice.test")).status == 200
        stage.refuse(stage.at("/picture.png?5", "thrice.test"), CLOSED)
        before = len(stage.outside.visits)
        for name in "again.test", "thrice.test":  # by a redirect
            stage.refuse(stage.at("/to/" + stage.at("/x.png", name)), CLOSED)
        assert len(stage.outside.visits) == before + 2


if __name__ == "__main__":
    reach.main("attack_fetch", TESTS)
