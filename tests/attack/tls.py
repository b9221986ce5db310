#!/usr/bin/env python3
"""Attacks on a server that speaks TLS (--tls-cert): handshakes that are cut, are none or never end, records that lie,
old versions, renegotiation, and certificates that change for the worse.

usage: tests/attack/tls.py --motet PROGRAM [NAME ...]"""

import contextlib
import http.client
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import tempfile

import alive
import served
from alive import Attack

SUITE = served.Suite("attack_tls")
test = SUITE.test


def trusting(**settings):
    """A client's context that believes every certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for name, value in settings.items():
        setattr(context, name, value)
    return context


class Secure(served.Server):
    """A server with the certificate of a folder."""

    def __init__(self, place, *options, **settings):
        self.place = place
        super().__init__(SUITE.program, SUITE.folder, "--tls-cert", place.cert, "--tls-key", place.key, *options, **settings)

    def connect(self):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=served.PATIENCE, context=trusting())

    def raw(self, data, reset=False):
        """What the server says to bytes without a handshake, until it hangs up; or None, where we do."""
        with self.socket() as s:
            if reset:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            with contextlib.suppress(OSError):
                s.sendall(data)
            if reset:
                return None
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_WR)
            said = b""
            with contextlib.suppress(ConnectionResetError):
                while (more := s.recv(65536)):
                    said += more
            return said

    def name(self):
        """The name in the certificate that a new connection is shown."""
        with self.socket() as s, trusting().wrap_socket(s) as secure:
            found = secure.getpeercert(binary_form=True)
        return next(name for name in self.place.names if name.encode() in found)

    def reload(self):
        """The line of the log that SIGHUP leads to."""
        before = len(self.log)
        self.process.send_signal(signal.SIGHUP)
        def line():
            return [l for l in self.log[before:] if "server.reloaded" in l or "server.reload " in l]
        return served.eventually(line)[0]


class Place:
    """A folder with certificates, one of which is in use."""

    def __init__(self):
        if not shutil.which("openssl"):
            raise served.Skip("there is no openssl to make certificates with")
        self.folder = tempfile.TemporaryDirectory(prefix="motet-")
        self.cert, self.key = self.path("cert.pem"), self.path("key.pem")
        self.names = []

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def make(self, name, days="30", key=("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")):
        """Makes NAME.pem and NAME.key."""
        subprocess.run(["openssl", "req", "-x509", *key, "-nodes", "-days", days, "-subj", "/CN=" + name, "-keyout",
                        self.path(name + ".key"), "-out", self.path(name + ".pem")], check=True, capture_output=True)
        self.names.append(name)

    def use(self, cert, key=None):
        shutil.copy(self.path(cert + ".pem"), self.cert)
        shutil.copy(self.path((key or cert) + ".key"), self.key)

    def write(self, path, data):
        with open(path, "wb") as f:
            f.write(data)

    def __enter__(self):
        self.make("first")
        self.use("first")
        return self

    def __exit__(self, *about):
        self.folder.cleanup()


def hello(**settings):
    """The first bytes of a client, a whole record."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting(**settings).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def record(kind, data, version=b"\x03\x03", length=None):
    return bytes([kind]) + version + struct.pack(">H", len(data) if length is None else length) + data


def is_alert(said):
    """Whether nothing but an alert, or nothing at all, was said: no byte of HTTP."""
    return b"HTTP/1" not in said and (said == b"" or said[0] == 21)


@test
def handshakes_that_are_cut():
    with Place() as place, Secure(place) as server, Attack(server):
        whole = hello()
        for cut in (*range(0, 12), *range(12, len(whole), 37), len(whole) - 1):
            assert is_alert(server.raw(whole[:cut])), cut
            server.raw(whole[:cut], reset=True)
        server.raw(whole, reset=True)


@test
def plain_http_on_the_secure_port():
    with Place() as place, Secure(place) as server, Attack(server):
        for data in (b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                     b"CONNECT localhost:443 HTTP/1.1\r\nhost: localhost\r\n\r\n", b"\r\n" * 100):
            assert is_alert(server.raw(data)), data


@test
def tls_on_the_plain_port():
    with SUITE.start() as server, Attack(server):
        with server.socket() as s:
            s.sendall(hello())
            assert s.recv(1000).startswith(b"HTTP/1.1 400")


@test
def records_that_lie_about_their_length():
    with Place() as place, Secure(place) as server, Attack(server):
        whole = hello()
        for data in (record(22, whole[5:], length=0xFFFF), record(22, b"\x01" * 20000), record(22, whole[5:], length=0),
                     record(22, whole[5:], length=len(whole)) + b"x", record(22, b"\x01\xff\xff\xff" + b"x" * 16000)):
            assert is_alert(server.raw(data)), data[:20]


@test
def records_that_nobody_asked_for():
    with Place() as place, Secure(place) as server, Attack(server):
        for data in (record(23, b"GET / HTTP/1.1\r\n\r\n"), record(21, b"\x01\x5a") * 1000, record(20, b"\x01"),
                     record(24, b"\x01\x40\x00" + b"x" * 16), record(22, b"") * 1000, record(99, b"x" * 100),
                     record(22, b"\x14\x00\x00\x00"), record(22, b"\x02\x00\x00\x26" + b"x" * 38), os.urandom(5000)):
            assert is_alert(server.raw(data)), data[:20]


@test
def a_handshake_of_one_byte_records_is_answered():
    with Place() as place, Secure(place) as server, Attack(server):
        whole = hello()
        with server.socket() as s:
            for byte in whole[5:]:
                s.sendall(record(22, bytes([byte])))
            assert s.recv(1) == b"\x16"  # which is the server's part of it


@test
def versions_and_ciphers_that_are_too_old():
    with Place() as place, Secure(place) as server, Attack(server):
        def shakes(*options):
            done = subprocess.run(["openssl", "s_client", "-connect", "127.0.0.1:{}".format(server.port), *options], input=b"",
                                  capture_output=True, timeout=served.PATIENCE, check=False)
            return done.returncode == 0 and b"Cipher is (NONE)" not in done.stdout
        for options in (("-tls1",), ("-tls1_1",), ("-tls1_2", "-cipher", "NULL:@SECLEVEL=0"),
                        ("-tls1_2", "-cipher", "aNULL:@SECLEVEL=0"), ("-tls1_2", "-cipher", "RC4:DES:EXPORT:@SECLEVEL=0")):
            assert not shakes(*options), options
        for options in (("-tls1_2",), ("-tls1_3",)):
            assert shakes(*options), options


@test
def renegotiation_is_refused():
    with Place() as place, Secure(place) as server, Attack(server):
        client = subprocess.Popen(["openssl", "s_client", "-tls1_2", "-connect", "127.0.0.1:{}".format(server.port)],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = b""
        while b"\n---\n" not in said.partition(b"Verify return code")[2]:
            said += client.stdout.readline()
        client.stdin.write(b"R\n")
        client.stdin.flush()
        said = client.communicate(timeout=served.PATIENCE)[0]  # it hangs up where it is refused, or asks for a request
        assert b"RENEGOTIATING" in said and b"no renegotiation" in said.lower(), said[-500:]


@test
def other_names_and_protocols_are_answered_alike():
    """A name in the handshake chooses nothing, and there is one protocol."""
    with Place() as place, Secure(place) as server, Attack(server):
        for name, protocols in (("evil.example", None), ("localhost", ["h2"]), ("x" * 63 + ".example", ["http/1.1", "h2"]),
                                (None, ["http/0.9", "spdy/1"]), ("a." * 100 + "example", ["x" * 255] * 4)):
            context = trusting()
            if protocols:
                context.set_alpn_protocols(protocols)
            with server.socket() as s, context.wrap_socket(s, server_hostname=name) as secure:
                assert secure.selected_alpn_protocol() in (None, "http/1.1")
                secure.sendall(b"GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
                assert secure.recv(100).startswith(b"HTTP/1.1 200"), name


@test
def half_open_handshakes_hold_up_nobody():
    with Place() as place, Secure(place) as server, Attack(server):
        whole, held = hello(), []
        for i in range(300):
            held.append(server.socket())
            held[-1].sendall(whole[:(0, 3, 100, len(whole))[i % 4]])
        alive.answer(server)
        for s in held:
            s.close()
        assert served.eventually(lambda: server.metrics()["motet_http_connections"] == 1)


@test
def connections_that_end_without_saying_so():
    """In the middle of a request, and of an answer that is streamed."""
    with Place() as place, Secure(place) as server, Attack(server):
        body = b'{"prompt":[0,9],"max_tokens":2000,"ignore_eos":true,"stream":true}'
        whole = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body) + body
        for data, reads in ((whole[:20], 0), (whole[:-5], 0), (whole, 0), (whole, 1)):
            for reset in (False, True):
                s = server.socket()
                if reset:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                secure = trusting().wrap_socket(s)
                secure.sendall(data)
                if reads:
                    secure.recv(100)
                secure.close()  # without close_notify
        server.wait_idle()


@test
def damaged_records_within_a_connection():
    """A byte on the way is changed: the connection ends, and nobody else notices."""
    with Place() as place, Secure(place) as server, Attack(server):
        for damage in (0, 5, 20):
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            client = trusting().wrap_bio(incoming, outgoing)
            with server.socket() as s:
                while True:
                    try:
                        client.do_handshake()
                        break
                    except ssl.SSLWantReadError:
                        s.sendall(outgoing.read())
                        incoming.write(s.recv(65536))
                s.sendall(outgoing.read())
                client.write(b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n")
                data = bytearray(outgoing.read())
                data[damage] ^= 0x40
                with contextlib.suppress(OSError):  # it may have hung up
                    s.sendall(data)
                    s.shutdown(socket.SHUT_WR)
                with contextlib.suppress(ConnectionResetError):
                    while (more := s.recv(65536)):
                        incoming.write(more)
            said = b""
            with contextlib.suppress(ssl.SSLError):
                while (more := client.read(65536)):
                    said += more
            assert b"HTTP/1.1" not in said, (damage, said)


@test
def certificates_that_change_for_the_worse():
    """What cannot be used leaves what there was, with a reason."""
    with Place() as place, Secure(place) as server, Attack(server):
        place.make("second")
        place.make("other", key=("-newkey", "rsa:2048"))
        for cert, key in (("second", "first"), ("first", "second"), ("other", "first")):
            place.use(cert, key)
            line = server.reload()
            assert "does not belong to certificate" in line and server.name() == "first", line
        with open(place.path("second.pem"), "rb") as f:
            good = f.read()
        place.use("second")
        for data in (b"", b"x" * 100000, good[:200], good.replace(b"M", b"!"), b"\0" * 100, good[27:]):
            place.write(place.cert, data)
            line = server.reload()
            assert "holds no certificate" in line and server.name() == "first", (data[:40], line)
        place.use("second")
        place.write(place.key, b"")
        assert "holds no key" in server.reload()
        os.remove(place.key)
        assert "No such file" in server.reload()
        os.mkdir(place.key)
        assert "no regular file" in server.reload()
        os.rmdir(place.key)
        os.mkfifo(place.key)  # which nobody writes to
        assert "no regular file" in server.reload()
        os.remove(place.key)
        assert server.name() == "first"
        place.use("second")
        assert "server.reloaded" in server.reload() and server.name() == "second"


@test
def certificates_that_are_out_of_date_are_their_readers_business():
    """They are what the operator has given; clients that look refuse them."""
    with Place() as place, Secure(place) as server, Attack(server):
        asked, made = place.path("expired.csr"), place.path("expired.pem")
        subprocess.run(["openssl", "req", "-new", "-key", place.path("first.key"), "-subj", "/CN=expired", "-out", asked],
                       capture_output=True, check=True)
        done = subprocess.run(["openssl", "x509", "-req", "-in", asked, "-signkey", place.path("first.key"), "-days", "-1",
                               "-out", made], capture_output=True, check=False)
        if done.returncode:
            raise served.Skip("this openssl makes no certificate that has expired")
        place.names.append("expired")
        place.use("expired", "first")
        assert "server.reloaded" in server.reload() and server.name() == "expired"
        strict = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        strict.check_hostname = False
        strict.load_verify_locations(place.path("expired.pem"))
        try:
            with server.socket() as s, strict.wrap_socket(s):
                raise AssertionError("a client takes it")
        except ssl.SSLCertVerificationError as error:
            assert "expired" in str(error), error


@test
def a_server_does_not_start_with_what_cannot_be_used():
    with Place() as place:
        place.make("second")
        def refused():
            return alive.refused(SUITE.program, SUITE.folder, "--tls-cert", place.cert, "--tls-key", place.key)
        place.use("first", "second")
        assert "does not belong to certificate" in refused()
        place.use("first")
        subprocess.run(["openssl", "pkey", "-in", place.path("first.key"), "-aes256", "-passout", "pass:x", "-out", place.key],
                       check=True, capture_output=True)
        assert "without a passphrase" in refused()
        os.remove(place.key)
        assert "cannot be read" in refused()


@test
def connections_outlive_a_reload():
    with Place() as place, Secure(place) as server, Attack(server):
        place.make("second")
        held = server.connect()
        held.request("GET", "/v1/models")
        assert held.getresponse().read()
        place.use("second")
        assert "server.reloaded" in server.reload()
        held.request("GET", "/v1/models")
        assert held.getresponse().status == 200
        held.close()
        for _ in range(20):
            server.process.send_signal(signal.SIGHUP)
            alive.answer(server)


SUITE.main()
