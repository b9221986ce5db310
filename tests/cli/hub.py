"""A hub of models for tests: speaks as Hugging Face's does to who downloads, with the large files on another host, and
breaks off, lies or is slow where it is told to."""
import hashlib
import http.server
import json
import os
import ssl
import threading
import urllib.parse


def git_digest(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def is_large(name):
    return name.endswith((".safetensors", ".bin", ".gguf", ".pth"))


def digest_of(name, data):
    return sha256(data) if is_large(name) else git_digest(data)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):  # pylint: disable=invalid-name
        self.do_GET()

    def do_POST(self):  # pylint: disable=invalid-name
        """What other clients ask: which files these are."""
        body = self.rfile.read(int(self.headers["content-length"]))
        name, commit = urllib.parse.unquote(self.path[len("/api/models/"):]).split("/paths-info/")
        wanted = json.loads(body)["paths"]
        tree = [entry for entry in self.server.hub.tree(name, commit) if entry["path"] in wanted]
        self.answer(200, json.dumps(tree).encode())

    def do_GET(self):  # pylint: disable=invalid-name
        hub = self.server.hub
        path = urllib.parse.urlsplit(self.path).path
        with hub.lock:
            hub.asked.append((self.server.where, self.command, path, dict(self.headers.items())))
        try:
            if self.server.where == "cdn":
                self.send_large(path)
            elif path in hub.faults and hub.faults[path]:
                hub.faults[path].pop(0)(self)
            elif path.startswith("/api/models/"):
                self.send_list(path)
            else:
                self.send_file(path)
        except OSError:  # gone
            self.close_connection = True

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_list(self, path):
        hub = self.server.hub
        path = urllib.parse.unquote(path[len("/api/models/"):])
        if "/tree/" in path:  # of other clients
            return self.answer(200, json.dumps(hub.tree(*path.split("/tree/"))).encode())
        name, revision = path.split("/revision/")
        repository = hub.repositories.get(name)
        if not repository:
            return self.answer(404, x_error_code="RepoNotFound")
        commit = repository["refs"].get(revision, revision)
        if commit not in repository["commits"]:
            return self.answer(404, x_error_code="RevisionNotFound")
        return self.answer(200, json.dumps(hub.alter(hub.listing(name, commit))).encode())

    def send_file(self, path):
        hub = self.server.hub
        name, rest = urllib.parse.unquote(path[1:]).split("/resolve/")
        revision, file = rest.split("/", 1)
        repository = hub.repositories[name]
        commit = repository["refs"].get(revision, revision)
        data = repository["commits"][commit].get(file)
        if data is None:
            return self.answer(404, x_error_code="EntryNotFound")
        head = {"x_repo_commit": hub.says_commit or commit, "accept_ranges": "bytes"}
        if not is_large(file):
            return self.send_range(data, etag='"{}"'.format(git_digest(data)), **head)
        return self.answer(302, b"elsewhere", location=hub.cdn + "/" + sha256(data), x_linked_size=str(len(data)),
                           x_linked_etag='"{}"'.format(sha256(data)), etag='"not this"', **head)

    def send_large(self, path):
        hub = self.server.hub
        digest = path[1:]
        data = hub.large[digest]
        if hub.faults.get(digest):
            return hub.faults[digest].pop(0)(self, data)
        return self.send_range(data, etag='"md5 or so"')

    def range(self, size):
        """(from, to) that is asked for, or None."""
        text = self.headers.get("range")
        if not text or not self.server.hub.ranges:
            return None
        begin, end = text.split("=")[1].split("-")
        return int(begin), min(int(end) + 1 if end else size, size)

    def send_range(self, data, **headers):
        part = self.range(len(data))
        if not part:
            return self.answer(200, data, **headers)
        if part[0] >= len(data):
            return self.answer(416, content_range="bytes */{}".format(len(data)))
        return self.answer(206, data[part[0]:part[1]], content_range="bytes {}-{}/{}".format(
            part[0], part[1] - 1, len(data)), **headers)

    def cut(self, data, count):
        """The beginning of what was asked for, and an end that is none."""
        begin, end = self.range(len(data)) or (0, len(data))
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("content-range", "bytes {}-{}/{}".format(begin, end - 1, len(data)))
        self.send_header("content-length", str(end - begin))
        self.end_headers()
        self.wfile.write(data[begin:begin + count])
        self.wfile.flush()
        self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Who is asked goes on when a client has gone."""


class Hub:
    """Use as a context manager. asked: (where, method, path, headers) of all requests; faults: by the path of a request,
    or by the digest of a large file, what to do instead of answering, once each."""

    def __init__(self):
        self.lock = threading.Lock()
        self.asked, self.faults, self.repositories, self.large = [], {}, {}, {}
        self.ranges, self.says_commit = True, None
        self.servers = [self.start("hub"), self.start("cdn")]
        self.url, self.cdn = ("http://127.0.0.1:{}".format(s.server_port) for s in self.servers)

    def start(self, where):
        server = Server(("127.0.0.1", 0), Handler)
        server.hub, server.where = self, where
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return server

    def __enter__(self):
        return self

    def encrypt(self, certificate, key):
        """Speaks TLS from now on, but for the files' host."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server = self.servers[0]
        server.socket = context.wrap_socket(server.socket, server_side=True)
        self.url = self.url.replace("http:", "https:")

    def __exit__(self, *_):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def alter(self, listing):
        """What is said instead of the truth."""
        return listing

    def add(self, name, files, branch="main"):
        """A commit of these files, {name: bytes}; the branch leads to it."""
        text = json.dumps({k: sha256(v) for k, v in files.items()}, sort_keys=True)
        commit = hashlib.sha1(text.encode()).hexdigest()
        repository = self.repositories.setdefault(name, {"refs": {}, "commits": {}})
        repository["commits"][commit] = files
        repository["refs"][branch] = commit
        for file, data in files.items():
            if is_large(file):
                self.large[sha256(data)] = data
        return commit

    def listing(self, name, commit):
        siblings = []
        for file, data in self.repositories[name]["commits"][commit].items():
            entry = {"rfilename": file, "size": len(data), "blobId": git_digest(data)}
            if is_large(file):
                entry["lfs"] = {"sha256": sha256(data), "size": len(data), "pointerSize": 135}
            siblings.append(entry)
        return {"id": name, "sha": commit, "gated": False, "siblings": siblings}

    def tree(self, name, commit):
        """The same files as the hub's other way to list them has it."""
        entries = []
        for entry in self.listing(name, commit)["siblings"]:
            entries.append({"type": "file", "path": entry["rfilename"], "size": entry["size"], "oid": entry["blobId"]})
            if "lfs" in entry:
                entries[-1]["lfs"] = {"oid": entry["lfs"]["sha256"], "size": entry["lfs"]["size"], "pointerSize": 135}
        return entries

    def bodies(self, where="cdn"):
        """Requests for large files, or for what else."""
        return [asked for asked in self.asked if asked[0] == where]


def files_of(folder):
    """{name: bytes} of a checkpoint."""
    found = {}
    for top, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(top, name)
            with open(path, "rb") as f:
                found[os.path.relpath(path, folder)] = f.read()
    return found


def in_shards(files):
    """The same checkpoint with its weights in two files and an index."""
    data = files["model.safetensors"]
    size = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8:8 + size]), data[8 + size:]
    names = sorted(header)
    out = {k: v for k, v in files.items() if k != "model.safetensors"}
    where = {}
    for number, part in enumerate((names[::2], names[1::2]), 1):
        file, own, text = "model-{:05}-of-00002.safetensors".format(number), {}, b""
        for name in part:
            begin, end = header[name]["data_offsets"]
            own[name] = dict(header[name], data_offsets=[len(text), len(text) + end - begin])
            text += body[begin:end]
            where[name] = file
        head = json.dumps(own).encode()
        out[file] = len(head).to_bytes(8, "little") + head + text
    out["model.safetensors.index.json"] = json.dumps({"metadata": {}, "weight_map": where}).encode()
    return out
