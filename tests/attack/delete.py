#!/usr/bin/env python3
"""Deleting by request what is being served, under names that the server does not serve it by; and asking for models that
are only half there.

usage: tests/attack/delete.py --motet PROGRAM [NAME ...]"""

import contextlib
import os
import shutil
import tempfile
import threading

import reach
import fixture
import hub as hubs
import served
from served import eventually

MODELS = 1024  # that a server knows
COMMIT, OLDER = "a" * 40, "b" * 40
TESTS = []


def test(function):
    TESTS.append(function)
    return function


MADE = {}  # by seed: the files of a model


def write(folder, seed=20):
    """The fixture's model; to make its weights takes longer than to write them."""
    if seed not in MADE:
        MADE[seed] = hubs.files_of(fixture.write(folder, seed))
    os.makedirs(folder, exist_ok=True)
    for name, data in MADE[seed].items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(data)
    return folder


def put_cached(cache, owner, name, seed, commit=COMMIT, branch="main"):
    """A model in the hub's cache, as the hub's own tools leave it. Its snapshot."""
    model = os.path.join(cache, "models--{}--{}".format(owner, name))
    snapshot, blobs = os.path.join(model, "snapshots", commit), os.path.join(model, "blobs")
    write(snapshot, seed)
    os.makedirs(blobs, exist_ok=True)
    for file in os.listdir(snapshot):
        with open(os.path.join(snapshot, file), "rb") as f:
            digest = hubs.digest_of(file, f.read())
        os.replace(os.path.join(snapshot, file), os.path.join(blobs, digest))
        os.symlink("../../blobs/" + digest, os.path.join(snapshot, file))
    os.makedirs(os.path.join(model, "refs"), exist_ok=True)
    with open(os.path.join(model, "refs", branch), "w", encoding="ascii") as f:
        f.write(commit)
    return snapshot


def files_below(folder):
    return sorted(os.path.join(top, name) for top, _, names in os.walk(folder) for name in names)


class Stage:
    """A folder of models and a cache of the hub: box and spare in the one, a/tub (two revisions) and a/spare in the
    other."""

    def __init__(self, folder):
        self.folder, self.models, self.cache = folder, folder + "/models", folder + "/cache"
        write(self.models + "/box", 1)
        write(self.models + "/spare", 2)
        self.old = put_cached(self.cache, "a", "tub", 3, OLDER, "v1")
        self.new = put_cached(self.cache, "a", "tub", 4)
        put_cached(self.cache, "a", "spare", 5)
        self.env = {"HF_HUB_CACHE": self.cache, "HOME": "/nowhere"}

    def start(self, *folders, options=(), **more):
        return served.Server(reach.PROGRAM, list(folders), "--allow-pull", "--models-dir", self.models, *options,
                             env=self.env, **more)

    def delete(self, server, name):
        return server.request("DELETE", "/api/delete", {"model": name})

    def refuse(self, server, name, status=409, words="is being served"):
        before = files_below(self.folder)
        reach.check_answer(name, self.delete(server, name), status, words, name, (self.folder,))
        assert files_below(self.folder) == before, (name, "files are gone")
        reach.check_alive(server)


@contextlib.contextmanager
def stage():
    with tempfile.TemporaryDirectory() as folder:
        yield Stage(folder)


def says(server, model):
    answer = server.complete(model=model, prompt=[5, 6, 7], max_tokens=2, temperature=0)
    assert answer.status == 200, answer.body
    return answer.json()


def names(server):
    return sorted(m["id"] for m in server.request("GET", "/v1/models").json()["data"])


@test
def other_names_of_what_is_served():
    """By the names of the folder in the cache, of its revisions, and whatever the server calls it."""
    with stage() as s:
        with s.start("a/tub") as server:
            cases = [(name, name) for name in ("a/tub", "a/tub:latest", "a--tub", "a/tub@main", "a/tub@" + COMMIT,
                                               "a--tub@main", "a--tub@" + COMMIT, "default")]
            reach.run_cases(cases, lambda _, name: s.refuse(server, name))
            says(server, "a/tub")
            assert s.delete(server, "a/tub@v1").status == 200 and not os.path.exists(s.old)  # which is not served
            assert s.delete(server, "a/spare").status == 200
            says(server, "a/tub")


@test
def a_folder_that_is_served_under_another_name():
    with stage() as s:
        os.symlink(s.models, s.folder + "/way")
        os.symlink("box", s.models + "/link")
        os.symlink(s.models + "/link", s.models + "/link2")
        os.mkdir(s.models + "/deep")
        os.symlink("../box", s.models + "/deep/box")
        for folder in (s.models + "/box", s.folder + "/way/box", s.models + "/link", s.models + "/./deep/../link2/"):
            with s.start(folder, options=("--served-name", "other/name")) as server:
                cases = [(name, name) for name in ("box", "link", "link2", "deep/box", "other/name")]
                reach.run_cases(cases, lambda _, name, server=server: s.refuse(server, name))
                says(server, "other/name")
        with s.start(s.models + "/box", options=("--served-name", "other/name")) as server:
            assert s.delete(server, "spare").status == 200 and not os.path.exists(s.models + "/spare")


@test
def files_that_others_use():
    """A folder of links into another model; an encoder beside a model; a chat template that is another model's."""
    with stage() as s:
        os.mkdir(s.folder + "/links")
        for file in os.listdir(s.models + "/box"):
            os.symlink(s.models + "/box/" + file, s.folder + "/links/" + file)
        with s.start(s.folder + "/links") as server:
            s.refuse(server, "box")
            assert s.delete(server, "spare").status == 200
        os.mkdir(s.folder + "/blobs")
        for file in os.listdir(s.new):
            os.symlink(os.path.realpath(os.path.join(s.new, file)), s.folder + "/blobs/" + file)
        with s.start(s.folder + "/blobs") as server:
            for name in "a/tub", "a--tub", "a/tub@main":
                s.refuse(server, name)
        with open(s.models + "/box/own.jinja", "w", encoding="ascii") as f:
            f.write(fixture.TEMPLATE)
        with s.start(s.new, options=("--chat-template", s.models + "/box/own.jinja")) as server:
            s.refuse(server, "box")
        shutil.copytree(os.path.join(reach.HERE, "..", "oracle", "vectors", "bert-mean-f32"), s.models + "/bert")
        for given in "bert", s.models + "/bert":
            with s.start(s.new, options=("--embedding-model", given)) as server:
                s.refuse(server, "bert")
                assert server.post("/v1/embeddings", {"model": "bert", "input": "hi"}).status == 200
        with s.start(s.models + "/box", s.new) as server:  # several models, none of them loaded
            for name in "box", "a/tub", "a--tub", "a/tub@main":
                s.refuse(server, name)


@test
def models_that_were_found():
    """Where no model was named, one that answers is not deleted under any name; one that is idle is."""
    with stage() as s, s.start() as server:
        assert names(server) == sorted(["a/tub", "a/tub@" + OLDER, "a/spare", "box", "spare"])
        asked = served.send(server, "/v1/completions", {"model": "a/tub", "prompt": [[5, 6]] * 32, "max_tokens": 2000,
                                                        "ignore_eos": True, "logprobs": 20, "stream": True})
        assert eventually(lambda: server.status()["running"] > 0)
        cases = [(name, name) for name in ("a/tub", "a--tub", "a/tub@main", "a/tub@" + COMMIT, "a--tub@" + COMMIT)]
        reach.run_cases(cases, lambda _, name: s.refuse(server, name))
        assert s.delete(server, "a/tub@v1").status == 200
        assert names(server) == sorted(["a/tub", "a/spare", "box", "spare"])
        asked.close()
        server.wait_idle()
        assert eventually(lambda: s.delete(server, "a--tub").status == 200)  # when the call has given it back
        assert names(server) == sorted(["a/spare", "box", "spare"]) and not os.path.exists(s.new)
        reach.check_answer("deleted", server.complete(model="a/tub", prompt=[5]), 404, "was not found here", "",
                           (s.folder,))


@test
def deleted_ones_leave_the_list_at_once():
    """Each is gone from every list in the answer that follows, and its name is free for another."""
    with stage() as s, s.start() as server:
        for name, left in (("spare", 4), ("box", 3), ("a/spare", 2), ("a/tub@v1", 1), ("a/tub", 0)):
            assert name.endswith("@v1") or name in names(server)
            assert s.delete(server, name).status == 200, name
            assert len(names(server)) == left and name not in names(server)
            assert len(server.request("GET", "/api/tags").json()["models"]) == left
            assert server.complete(model=name, prompt=[5]).status == 404
            assert s.delete(server, name).status == 404
        write(s.models + "/box", 9)
        assert eventually(lambda: names(server) == sorted(["box"]))
        says(server, "box")


@test
def one_that_is_asked_for_all_the_time():
    """It is deleted and comes back while others ask for it: whoever asks has an answer, or it is not there."""
    def put():
        shutil.copytree(s.folder + "/kept", s.folder + "/passing")
        os.rename(s.folder + "/passing", s.models + "/box")

    def ask():
        while not done.is_set():
            answer = server.complete(model="box", prompt=[5, 6, 7], max_tokens=2, temperature=0)
            seen.append((answer.status, answer.json()["choices"][0]["text"] if answer.status == 200 else answer.body))
            done.wait(0.02)  # or nobody could ever delete it

    with stage() as s:
        shutil.copytree(s.models + "/box", s.folder + "/kept")
        done, seen, deleted = threading.Event(), [], 0
        with s.start() as server:
            askers = [threading.Thread(target=ask) for _ in range(2)]
            for asker in askers:
                asker.start()
            try:
                while deleted < 5:
                    answer = s.delete(server, "box")
                    assert answer.status in (200, 409), answer.body
                    if answer.status == 200:
                        assert not os.path.exists(s.models + "/box")
                        deleted += 1
                        begin = len(seen)
                        put()
                        assert eventually(lambda begin=begin: any(a[0] == 200 for a in seen[begin:]))
            finally:
                done.set()
                for asker in askers:
                    asker.join()
            assert {status for status, _ in seen} <= {200, 404}, [a for a in seen if a[0] not in (200, 404)]
            assert len({text for status, text in seen if status == 200}) == 1


@test
def deleted_ones_take_no_place():
    """As many models as a server knows may come after those that were deleted."""
    if os.environ.get("MOTET_TEST_QUICK"):
        raise served.Skip("it takes as many folders")
    with tempfile.TemporaryDirectory() as folder:
        tiny = write(folder + "/tiny")

        def make(number):
            os.makedirs("{}/models/m{}".format(folder, number))
            for file in os.listdir(tiny):
                os.symlink(tiny + "/" + file, "{}/models/m{}/{}".format(folder, number, file))

        for number in range(MODELS + 1):
            make(number)
        with served.Server(reach.PROGRAM, [], "--models-dir", folder + "/models", "--allow-pull",
                           env={"HF_HUB_CACHE": folder + "/cache", "HOME": "/nowhere"}) as server:
            known = set(names(server))
            assert len(known) == MODELS
            first = known.pop()
            assert server.request("DELETE", "/api/delete", {"model": first}).status == 200
            assert eventually(lambda: len(names(server)) == MODELS) and first not in names(server)
            for name in known:
                shutil.rmtree("{}/models/{}".format(folder, name))
            assert eventually(lambda: len(names(server)) == 1)
            for number in range(2000, 2000 + MODELS):
                make(number)
            assert eventually(lambda: len(names(server)) == MODELS and "m2001" in names(server))
            says(server, "m2001")


@test
def names_that_lead_elsewhere():
    with stage() as s:
        write(s.folder + "/outside")
        with s.start(s.new) as server:
            cases = [(name, name, status, "") for name, status in (
                ("../outside", 400), ("..", 400), (".", 400), ("/", 400), (s.folder + "/outside", 400),
                ("models/../../outside", 400), ("a/../box", 400), ("box/..", 400), ("box\n", 400), ("box\\..", 400),
                ("~/x", 400), ("%2e%2e", 400), ("box@../../x", 400), ("nothing", 404), ("a/nothing", 404),
                ("a/spare@nothing", 404), ("box@main", 404), ("models--a--tub", 404), ("a/tub@v1/../main", 400))]
            reach.run_cases(cases, lambda _, name, status, words: s.refuse(server, name, status, words))


@test
def models_that_are_half_there():
    """One that lacks files is not offered and not found, wherever it is missed: in the list, or when it is loaded."""
    with stage() as s:
        for missing in ("model.safetensors", "config.json"):
            half = write(s.models + "/half-" + missing.split(".", maxsplit=1)[0])
            os.remove(half + "/" + missing)
        os.remove(os.path.realpath(s.new + "/model.safetensors"))  # a link that leads nowhere is left
        with s.start() as server:
            assert names(server) == sorted(["a/tub@" + OLDER, "a/spare", "box", "spare"])
            for name in "half-model", "half-config", "a/tub":
                reach.check_answer(name, server.complete(model=name, prompt=[5]), 404, "was not found here", "",
                                   (s.folder,))
            os.remove(s.models + "/box/model.safetensors")
            reach.check_answer("box", server.complete(model="box", prompt=[5]), 404, '\\"box\\"', "", (s.folder,))
            assert eventually(lambda: "box" not in names(server))
            shutil.rmtree(s.models + "/spare")
            reach.check_answer("spare", server.complete(model="spare", prompt=[5]), 404, '\\"spare\\"', "", (s.folder,))
            assert eventually(lambda: names(server) == sorted(["a/tub@" + OLDER, "a/spare"]))
            says(server, "a/spare")
        write(s.models + "/box", 1)
        write(s.models + "/spare", 2)
        with s.start(s.models + "/box", s.models + "/spare") as server:  # named, and loaded when they are asked for
            os.remove(s.models + "/box/model.safetensors")
            reach.check_answer("named", server.complete(model="box", prompt=[5]), 404, "cannot be loaded", "", (s.folder,))
            listed = server.request("GET", "/v1/models")
            reach.check_answer("listed", listed, 200, "no *.safetensors", "", (s.folder,))
            with open(s.models + "/spare/model.safetensors", "wb") as f:
                f.write(b"half of it")
            reach.check_answer("cut", server.complete(model="spare", prompt=[5]), 500, "cannot be loaded", "", (s.folder,))
            reach.check_answer("listed", server.request("GET", "/v1/models"), 200, "spare", "", (s.folder,))
            reach.check_alive(server)


@test
def models_that_are_being_fetched():
    """Meanwhile 503 tells how far that is; then it answers."""
    gate, come = threading.Event(), threading.Event()

    def wait(handler, data):
        come.set()
        gate.wait(served.PATIENCE)
        handler.send_range(data)

    with tempfile.TemporaryDirectory() as folder, hubs.Hub() as hub:
        files = hubs.files_of(write(folder + "/tiny"))
        hub.add("Owner/Tiny", files)
        digest = hubs.sha256(files["model.safetensors"])

        def first(handler, data):
            handler.cut(data, len(data) // 2)

        # the header is asked for twice before the whole
        hub.faults[digest] = [lambda h, d: h.send_range(d), lambda h, d: h.send_range(d), first, wait]
        env = {"HF_ENDPOINT": hub.url, "HF_HUB_CACHE": folder + "/cache", "HOME": "/nowhere", "no_proxy": "127.0.0.1"}
        with served.Server(reach.PROGRAM, [], "--allow-pull", env=env) as server:
            ask = {"model": "Owner/Tiny", "prompt": [5, 6], "max_tokens": 1}
            assert server.post("/v1/completions", ask).status == 404
            pulling = threading.Thread(target=server.post, args=("/api/pull", {"model": "Owner/Tiny", "stream": False}))
            pulling.start()
            try:
                assert come.wait(served.PATIENCE)
                for model in "Owner/Tiny", "Owner/Tiny:latest":
                    answer = eventually(lambda model=model: (a := server.post("/v1/completions", dict(ask, model=model)),
                                                             a if b", 0 %" not in a.body else None)[1])
                    reach.check_answer(model, answer, 503, "is being fetched", "", (folder,))
                    assert int(answer.headers["retry-after"]) > 0
                reach.check_answer("other", server.post("/v1/completions", dict(ask, model="Owner/Tin")), 404, "", "",
                                   (folder,))
                reach.check_answer("delete", server.request("DELETE", "/api/delete", {"model": "Owner/Tiny"}), 429,
                                   "is being downloaded", "", (folder,))
                assert names(server) == []
            finally:
                gate.set()
                pulling.join()
            assert server.post("/v1/completions", ask).status == 200
            assert names(server) == sorted(["Owner/Tiny"])


if __name__ == "__main__":
    reach.main("attack_delete", TESTS)
