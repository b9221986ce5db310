"""Builds the image that Dockerfile describes, from a Debian made by debootstrap: no registry is asked. Runs what the image
says in a chroot, as the first process of its own, the way a container runtime would: it answers, is healthy, and is stopped
by the image's signal with a stream under way, which ends as if nothing had happened."""

import contextlib
import glob
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import time

import roots

PATIENCE = 240
FROM = "docker.io/library/debian:12-slim"
CUDA = "/usr/local/cuda"  # where debian/rules looks for nvcc
FATBIN = b"\x50\xed\x55\xba"  # how each image of kernels begins
QUESTION = {"messages": [{"role": "user", "content": "Who are you?"}], "max_tokens": 32, "temperature": 0}
LONG = {"prompt": "a", "max_tokens": 1500, "n": 4, "stream": True, "ignore_eos": True}


class Store:
    """Images and containers in a folder of their own. Use as a context manager, which removes them."""

    def __init__(self, folder, log):
        self.folder, self.log = folder, log
        open(log, "w", encoding="utf-8").close()
        self.options = ["--root", folder, "--runroot", folder + "-run", "--storage-driver", "vfs"]

    def run(self, *words, quiet=False):
        done = subprocess.run(["buildah", *self.options, *words], text=True, check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        with open(self.log, "a", encoding="utf-8") as log:
            log.write("$ buildah {}\n{}{}".format(" ".join(words), "" if quiet else done.stdout, done.stderr))
        if done.returncode != 0:
            raise roots.Failed("buildah {} ended with {}:\n{}".format(words[0], done.returncode,
                                                                     (done.stdout + done.stderr)[-3000:]))
        return done.stdout.strip()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        subprocess.run(["buildah", *self.options, "rm", "--all"], check=False, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        for folder in (self.folder, self.folder + "-run"):
            subprocess.run(["rm", "-rf", "--one-file-system", folder], check=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def request(port, method, path, body=None):
    """Status and body; None where nobody listens."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    with contextlib.closing(connection):
        try:
            connection.request(method, path, json.dumps(body) if body else None)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return None


def eventually(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def expect(condition, said):
    if not condition:
        raise roots.Failed(said)


class Container:
    """The image's program in a chroot, with the words after its entry point. Ports are the machine's own."""

    def __init__(self, root, config, words):
        self.root, self.config = root, config
        variables = dict(pair.split("=", 1) for pair in config["Env"])
        self.variables, self.user = variables, config["User"]
        with open(root.log_path, "w", encoding="utf-8") as log:
            self.outside = subprocess.Popen(
                root.command(["env", "-C", config["WorkingDir"], *config["Entrypoint"], *words], self.user, variables),
                stdout=log, stderr=log)

    def first(self):
        """The process that is the first in the container."""
        with open("/proc/{0}/task/{0}/children".format(self.outside.pid), encoding="ascii") as f:
            return int(f.read().split()[0])

    def look_at_user(self):
        """runAsNonRoot of Kubernetes wants a number, and not 0; files of the home are the user's."""
        user, group = self.root.ids(self.user).split(":")
        expect(self.user == user + ":" + group and user != "0", "USER is no number of somebody else than root: " + self.user)
        for place in (self.variables["HOME"], self.variables["HOME"] + "/.cache/"):
            subprocess.run(self.root.command(["touch", place + "/there"], self.user, self.variables), check=True)

    def healthy(self, port):
        words = [word.replace("/8000 ", "/{} ".format(port)) for word in self.config["Healthcheck"]["Test"]]
        expect(words[0] == "CMD" and str(port) in " ".join(words), "HEALTHCHECK is no command that asks port 8000")
        return subprocess.call(self.root.command(words[1:], self.user, self.variables), stderr=subprocess.DEVNULL) == 0

    def stop(self):
        os.kill(self.first(), getattr(signal, self.config["StopSignal"]))


def stopped_beside_a_stream(container, port):
    """The whole stream, which was under way when the container was told to stop."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    with contextlib.closing(connection):
        connection.request("POST", "/v1/completions", json.dumps(LONG))
        answer = connection.getresponse()
        text = answer.readline()
        expect(answer.status == 200 and text.startswith(b"data: "), "no stream: {} {}".format(answer.status, text))
        container.stop()
        text += answer.read()
    status = container.outside.wait(PATIENCE)
    expect(text.rstrip().endswith(b"data: [DONE]"), "the stream was cut: {}".format(text[-300:]))
    expect(status == 0, "the container ended with {}".format(status))
    return text.count(b"data: ") - 1


def try_image(root, config, models):
    shutil.copytree(models, root.path + "/models")  # docker run -v $PWD/models:/models:ro
    port = free_port()
    container = Container(root, config, ["serve", "/models/box", "--host", "0.0.0.0", "--port", str(port)])
    try:
        expect(eventually(lambda: container.outside.poll() is not None or (request(port, "GET", "/ready") or [0])[0] == 200)
               and container.outside.poll() is None, "the container is not ready")
        container.look_at_user()
        expect(container.healthy(port), "HEALTHCHECK fails beside a server that is ready")
        expect(not container.healthy(free_port()), "HEALTHCHECK succeeds where nobody listens")
        status, body = request(port, "POST", "/v1/chat/completions", QUESTION)
        expect(status == 200 and json.loads(body)["choices"][0]["message"]["content"], "{}: {}".format(status, body))
        return stopped_beside_a_stream(container, port)
    finally:
        if container.outside.poll() is None:
            container.outside.kill()
            container.outside.wait()


def look_at_kernels(root, cuda):
    """How many images of kernels for GPUs the program has: all there are, or none where there was no nvcc."""
    with open(root.path + "/usr/bin/motet", "rb") as f:
        there = f.read().count(FATBIN)
    sources = glob.glob(os.path.join(roots.TREE, "src/device/cuda/**/*.cu"), recursive=True)
    expect(there == (len(sources) if cuda else 0), "{} kernels' files of {} are in the package".format(there, len(sources)))
    return there


def builder(store, cache, cuda):
    """The options that give the first stage nvcc and a cache of compiled files, as far as they are there."""
    options = ["--volume", cuda + ":" + CUDA + ":ro"] if cuda else []
    if not cache:
        return options
    made = store.run("from", "--pull-never", FROM)
    store.run("run", "--isolation", "chroot", made, "--", "sh", "-c",
              "apt-get update -qq && apt-get install -y -qq --no-install-recommends ccache")
    for pair in ("CCACHE_DIR=/ccache", "CCACHE_NOHASHDIR=1", "CCACHE_UMASK=000"):
        store.run("config", "--env", pair, made)
    store.run("commit", "--quiet", "--rm", made, "localhost/builder")
    return [*options, "--volume", cache + ":/ccache", "--build-arg", "BUILD=localhost/builder"]


def build_and_try(folder, cache, cuda):
    """What became of it, as a line of the table. cuda: the folder of CUDA's toolkit, which need not be there."""
    cuda = os.path.realpath(cuda) if os.access(cuda + "/bin/nvcc", os.X_OK) else None
    roots.need_root()
    roots.need("buildah")
    base = roots.base(folder, "bookworm")
    with Store(os.path.join(folder, "images"), os.path.join(folder, "image.log")) as store:
        made = store.run("from", "scratch")
        store.run("add", "--quiet", made, base, "/")
        store.run("commit", "--quiet", "--rm", made, FROM)
        with roots.Root(folder, None, "context") as context:
            context.put_sources("/tree")
            store.run("build", "--pull-never", "--isolation", "chroot", "--format", "docker", "--tag", "motet",
                      *builder(store, cache, cuda), context.path + "/tree")
        config = json.loads(store.run("inspect", "--type", "image", "motet", quiet=True))["Docker"]["config"]
        root = roots.Root(folder, None, "container", path=store.run("mount", store.run("from", "--pull-never", "motet")))
        events = try_image(root, config, os.path.join(roots.TREE, "models"))
        version = root.run("motet --version").splitlines()[0]
        kernels = look_at_kernels(root, cuda)
    return "{}: built, healthy, answered, stopped beside a stream of {} events; {} files of kernels for GPUs".format(
        version, events, kernels or "no")
