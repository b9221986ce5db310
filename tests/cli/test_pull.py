#!/usr/bin/env python3
"""motet pull, list, show and rm, against a hub that is not always a good one."""
import json
import os
import resource
import signal
import struct
import subprocess
import tempfile
import threading

import helpers
import hub as hubs
import served
from helpers import eventually

TESTS = []
NAME = "Owner/Tiny-1.5"
REPOSITORY = "models--Owner--Tiny-1.5"


def test(function):
    def run(motet, tiny):
        with tempfile.TemporaryDirectory() as cache, hubs.Hub() as hub:
            function(Bench(motet, hub, cache, hubs.files_of(tiny)))
    run.__name__ = function.__name__
    TESTS.append(run)
    return function


class Bench:
    """A hub with a tiny model, a cache, and what is asked of motet with them."""

    def __init__(self, motet, hub, cache, files):
        self.motet, self.hub, self.cache, self.files = motet, hub, cache, files
        self.weights = hubs.sha256(files["model.safetensors"])
        self.commit = hub.add(NAME, files)

    def environment(self, **more):
        gone = ("HF_TOKEN", "HF_HOME", "HF_HUB_OFFLINE", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "http_proxy")
        kept = {k: v for k, v in os.environ.items() if k not in gone}
        return dict(kept, **{"HF_ENDPOINT": self.hub.url, "HF_HUB_CACHE": self.cache, "HOME": "/nowhere",
                             "XDG_CACHE_HOME": "/nowhere", "no_proxy": "127.0.0.1", **more})

    def start(self, *arguments, env=None, **settings):
        return subprocess.Popen([self.motet, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=self.environment(**(env or {})), text=True, **settings)

    def run(self, *arguments, text="", **settings):
        child = self.start(*arguments, **settings)
        out, err = child.communicate(text, helpers.PATIENCE)
        return child.returncode, out, err

    def pull(self, *arguments, name=NAME, **settings):
        """That succeeds: the folder of the snapshot."""
        code, out, err = self.run("pull", name, *arguments, **settings)
        assert (code, err) == (0, ""), (code, out, err)
        return out.rstrip("\n").split(", in ")[1]

    def refused(self, *arguments, name=NAME, **settings):
        """That does not: the sentence."""
        code, out, err = self.run("pull", name, *arguments, **settings)
        assert (code, out) == (1, "") and err.startswith("motet: ") and err.count("\n") == 1, (code, out, err)
        return err

    def at(self, *parts):
        return os.path.join(self.cache, REPOSITORY, *parts)

    def incomplete(self):
        return self.at("blobs", self.weights + ".incomplete")

    def size(self, path):
        return os.path.getsize(path) if os.path.exists(path) else 0

    def check(self, folder, files):
        """The snapshot has these files and no others, as links to blobs."""
        found = {os.path.relpath(os.path.join(top, name), folder) for top, _, names in os.walk(folder) for name in names}
        assert found == set(files), (found, set(files))
        for name, data in files.items():
            link = os.path.join(folder, name)
            up = "../" * (2 + name.count("/"))
            assert os.readlink(link) == up + "blobs/" + hubs.digest_of(name, data), os.readlink(link)
            with open(link, "rb") as f:
                assert f.read() == data, name
        assert not [name for name in os.listdir(self.at("blobs")) if "incomplete" in name]


def half(free):
    """Sends half of a file, and the rest when it is free."""
    def send(handler, data):
        handler.send_response(200)
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[:len(data) // 2])
        handler.wfile.flush()
        free.wait(helpers.PATIENCE)
        handler.wfile.write(data[len(data) // 2:])
    return send


def terminal(b):
    """Pulls where a line shows how far it is."""
    os.environ.update(HF_ENDPOINT=b.hub.url, HF_HUB_CACHE=b.cache, no_proxy="127.0.0.1")
    return helpers.Terminal(b.motet, "pull", NAME)


@test
def a_model_comes_as_the_hubs_tools_would_have_put_it(b):
    more = {"README.md": b"#", "pytorch_model.bin": b"x", "tiny.gguf": b"x", "original/consolidated.00.pth": b"x",
            "onnx/model.safetensors": b"x", "consolidated.safetensors": b"x", ".gitattributes": b"", ".x.json": b"{}"}
    wanted = {**b.files, "chat_template.jinja": b"{{ messages }}", "additional_chat_templates/tool_use.jinja": b"{}",
              "1_Pooling/config.json": b"{}", "empty.json": b""}
    b.commit = b.hub.add(NAME, {**wanted, **more})
    code, out, err = b.run("pull", NAME)
    folder = b.at("snapshots", b.commit)
    assert (code, err) == (0, "") and '"{}" is here: {} files, '.format(NAME, len(wanted)) in out, (code, out, err)
    assert out.endswith(", in {}\n".format(folder)), out
    b.check(folder, wanted)
    with open(b.at("refs", "main"), encoding="utf-8") as f:
        assert f.read() == b.commit
    before = len(b.hub.asked)
    assert b.pull() == folder
    assert len(b.hub.asked) == before + 1, "all of it was there already"
    code, out, err = b.run("run", NAME, "--prompt", "hello", "--max-tokens", "2")
    assert code == 0 and out, err


@test
def weights_in_shards_come_side_by_side(b):
    files = hubs.in_shards(b.files)
    both = threading.Barrier(2)

    def meet(handler, data):
        both.wait(helpers.PATIENCE)
        handler.send_range(data)

    b.hub.add(NAME, files)
    for name in files:
        if name.endswith(".safetensors"):  # the header's beginning, the header, the file
            plain = hubs.Handler.send_range
            b.hub.faults[hubs.sha256(files[name])] = [plain, plain, meet]
    b.check(b.pull(), files)
    assert b.run("info", NAME)[0] == 0


@test
def the_token_goes_to_the_hub_alone(b):
    b.pull(env={"HF_TOKEN": " hf_secret\n"})
    assert b.hub.bodies("cdn") and b.hub.bodies("hub")
    for where, _, path, headers in b.hub.asked:
        said = {k.lower(): v for k, v in headers.items()}.get("authorization")
        assert said == ("Bearer hf_secret" if where == "hub" else None), (where, path, said)
    b.hub.asked.clear()
    with open(os.path.join(b.cache, "token"), "w", encoding="utf-8") as f:
        f.write("hf_file\n")
    b.pull(env={"HF_HOME": b.cache})
    assert b.hub.asked[0][3]["Authorization"] == "Bearer hf_file"
    assert "holds no token" in b.refused(env={"HF_TOKEN": "a\nX-Evil: b"})


@test
def what_breaks_off_is_gone_on_with(b):
    size = len(b.files["model.safetensors"])
    header = [hubs.Handler.send_range] * 2
    b.hub.faults[b.weights] = header + [lambda h, data: h.cut(data, 1000), lambda h, data: h.cut(data, 50),
                                        lambda h, data: h.answer(503, retry_after="0")]
    b.check(b.pull(), b.files)
    asked = [headers.get("Range") for _, _, _, headers in b.hub.bodies()][2:]
    assert asked == [None, "bytes=1000-", "bytes=1050-", "bytes=1050-"], asked
    assert size > 2000


@test
def ctrl_c_leaves_what_the_next_pull_goes_on_with(b):
    free = threading.Event()

    came = len(b.files["model.safetensors"]) // 2
    b.hub.faults[b.weights] = [hubs.Handler.send_range] * 2 + [half(free)]
    child = b.start("pull", NAME)
    assert eventually(lambda: b.size(b.incomplete()) == came)
    assert not os.path.exists(b.at("refs", "main"))
    code, out, err = b.run("list")
    assert code == 0 and "incomplete" in out, (out, err)
    assert "is being downloaded" in b.run("rm", NAME, "--yes")[2]
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=helpers.PATIENCE)
    free.set()
    assert (child.returncode, out) == (130, "") and "motet pull {} goes on".format(NAME) in err, (out, err)
    assert b.size(b.incomplete()) == came
    b.hub.asked.clear()
    b.check(b.pull(), b.files)
    assert [headers.get("Range") for _, _, _, headers in b.hub.bodies()][-1] == "bytes={}-".format(came)


@test
def what_an_earlier_life_left_is_not_believed(b):
    os.makedirs(b.at("blobs"))
    for left in b"x" * 3000, b"x" * len(b.files["model.safetensors"]), b"x" * (len(b.files["model.safetensors"]) + 1):
        with open(b.incomplete(), "wb") as f:
            f.write(left)
        code, out, err = b.run("pull", NAME)
        assert code == 0 and ("has not its digest" in err) == (len(left) <= len(b.files["model.safetensors"])), err
        b.check(out.rstrip("\n").split(", in ")[1], b.files)
        os.remove(b.at("blobs", b.weights))


@test
def a_hub_without_ranges_sends_all_again(b):
    b.hub.ranges = False
    b.hub.faults[b.weights] = [hubs.Handler.send_range] * 2 + [lambda h, data: h.cut(data, 1000)]
    b.check(b.pull(), b.files)


@test
def lies_about_sizes_and_digests_are_noticed(b):
    data = b.files["model.safetensors"]
    plain = [hubs.Handler.send_range] * 2

    def listed(key, value):
        def alter(listing):
            for entry in listing["siblings"]:
                if entry["rfilename"] == "model.safetensors":
                    entry["lfs"][key] = value
            return listing
        b.hub.alter = alter

    b.hub.faults[b.weights] = plain + [lambda h, _: h.answer(200, data[:-1] + b"x")]
    assert "has not the digest that the hub listed" in b.refused()
    assert not os.path.exists(b.incomplete()) and not os.path.exists(b.at("blobs", b.weights))
    b.hub.faults[b.weights] = plain + [lambda h, _: h.answer(200, data + b"x")]
    assert "sends more of" in b.refused()
    os.remove(b.incomplete())
    listed("size", len(data) + 1)
    assert "has listed" in b.refused("--force")
    listed("size", len(data) - 1)
    assert "has listed" in b.refused("--force")
    listed("sha256", "0" * 64)
    assert "sends another \"model.safetensors\" than it listed" in b.refused("--force")
    listed("size", 1 << 49)
    assert "are to come: make room with motet rm" in b.refused("--force")
    b.hub.faults["/{}/resolve/{}/config.json".format(NAME, b.commit)] = [lambda h: h.answer(200, b"{}", etag='"x"')]
    b.hub.alter = lambda listing: listing
    os.remove(b.at("blobs", hubs.git_digest(b.files["config.json"])))
    assert "says that \"config.json\" has 2 bytes" in b.refused()


@test
def names_that_lead_elsewhere_are_refused(b):
    for name in "../../evil.safetensors", "/etc/evil.json":
        b.hub.alter = lambda listing, name=name: dict(listing, siblings=listing["siblings"] + [
            dict(listing["siblings"][0], rfilename=name)])
        assert "could lead out of its folder" in b.refused(), name
    assert os.listdir(b.cache) == [], os.listdir(b.cache)
    for name in "../x", "plain":
        assert "is no model's name" in b.refused(name=name), name


@test
def what_the_hub_denies_comes_with_what_to_do(b):
    path = "/api/models/{}/revision/main".format(NAME)

    def refused(status, code="", token="", **headers):
        b.hub.faults[path] = [lambda h: h.answer(status, x_error_code=code, **headers)] * 9
        return b.refused(env={"HF_TOKEN": token})

    assert "accept its terms at {}/{}, then set HF_TOKEN".format(b.hub.url, NAME) in refused(401, "GatedRepo")
    assert "may not read" in refused(403, token="t")
    assert "asks to wait 3600 seconds: try again then, or set HF_TOKEN" in refused(429, retry_after="3600")
    assert "asks to wait 600 seconds: try again then\n" in refused(429, token="t", ratelimit='"api";r=0;t=600')
    assert len([asked for asked in b.hub.asked if asked[2] == path]) == 4, "what is hopeless is asked for once"
    assert "is out of order (status 502)" in refused(502, retry_after="0")
    b.hub.faults[path] = [lambda h: h.answer(429, retry_after="0")]
    file = "/{}/resolve/{}/config.json".format(NAME, b.commit)
    b.hub.faults[file] = [lambda h: h.answer(401, x_error_code="GatedRepo")]
    assert "is gated: accept its terms" in b.refused(), "what may be listed may still not be read"
    b.pull()
    assert 'has no revision "v9"' in b.refused(name=NAME + "@v9")
    assert 'there is no "o/n" at' in b.refused(name="o/n")
    assert "HF_HUB_OFFLINE is set" in b.refused(env={"HF_HUB_OFFLINE": "1"})
    assert "no address of a hub" in b.refused(env={"HF_ENDPOINT": "file:///etc"})
    b.hub.faults[path] = [lambda h: h.answer(200, b"<html>")]
    assert "is not JSON" in b.refused()


@test
def redirects_lead_only_where_it_is_safe(b):
    path = "/{}/resolve/{}/config.json".format(NAME, b.commit)
    for where, what in (("file:///etc/passwd", "not safe to follow"), (b.hub.url + path, "and on and on"),
                        ("/" + "x" * 20000, "from there nowhere")):
        b.hub.faults[path] = [lambda h, where=where: h.answer(302, location=where)] * 9
        assert what in b.refused(), where
    # as huggingface.co does for small files: the way to a copy of its own, with a tag that is the way's
    b.hub.faults[path] = [lambda h: h.answer(307, location="/copy", etag='"{}"'.format("0" * 40))]
    b.hub.faults["/copy"] = [lambda h: h.answer(200, b.files["config.json"], etag='W/"{}"'.format(
        hubs.git_digest(b.files["config.json"])), x_repo_commit=b.commit)]
    b.pull()
    b.hub.faults[path] = []
    b.hub.add("New/Name", b.files)
    b.hub.faults["/api/models/Old/Name/revision/main"] = [
        lambda h: h.answer(307, location="/api/models/New/Name/revision/main?blobs=true")]
    for name in b.files:
        path = "/resolve/{}/{}".format(b.commit, name)
        b.hub.faults["/Old/Name" + path] = [lambda h, path=path: h.answer(307, location="/New/Name" + path)] * 3
    b.pull(name="Old/Name")


@test
def a_certificate_is_looked_at_and_https_leads_to_no_http(b):
    certificate, key = os.path.join(b.cache, "cert"), os.path.join(b.cache, "key")
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                           "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=127.0.0.1",
                           "-addext", "subjectAltName=IP:127.0.0.1"], capture_output=True, check=False)
    if made.returncode:
        raise served.Skip("openssl cannot make a certificate")
    b.hub.encrypt(certificate, key)
    said = b.refused("--force")
    assert "is not trusted: check the clock" in said, said
    assert b.hub.asked == []
    said = b.refused("--force", env={"SSL_CERT_FILE": certificate})
    assert "not safe to follow" in said and b.hub.bodies("hub") and not b.hub.bodies("cdn"), said


@test
def a_branch_that_moves_meanwhile_changes_nothing(b):
    files = dict(b.files, **{"generation_config.json": b"{}"})
    moved = []

    def alter(listing):
        moved.append(b.hub.add(NAME, files))
        return listing

    b.hub.alter = alter
    b.check(b.pull(), b.files)
    b.hub.alter = lambda listing: listing
    b.check(b.pull(), files)
    names = [m["name"] for m in json.loads(b.run("list", "--json")[1])["models"]]
    assert names == [NAME, "{}@{}".format(NAME, b.commit)], names
    b.hub.says_commit = "0" * 40
    b.hub.add(NAME, {**files, "config.json": b.files["config.json"] + b" "})
    assert "of another revision than it listed" in b.refused()


@test
def a_revision_can_be_named(b):
    files = dict(b.files, **{"generation_config.json": b"{}"})
    commit = b.hub.add(NAME, files, "refs/pr/1")
    b.check(b.pull(name=NAME + "@refs/pr/1"), files)
    with open(b.at("refs", "refs/pr/1"), encoding="utf-8") as f:
        assert f.read() == commit
    b.check(b.pull(name="{}@{}".format(NAME, b.commit)), b.files)
    assert not os.path.exists(b.at("refs", "main")) and os.listdir(b.at("refs")) == ["refs"]


@test
def what_could_not_be_run_is_refused_before_its_weights(b):
    config = json.loads(b.files["config.json"])
    header = 8 + int.from_bytes(b.files["model.safetensors"][:8], "little")

    def changed(**values):
        b.hub.add(NAME, {**b.files, "config.json": json.dumps({**config, **values}).encode()})

    changed(model_type="mamba")
    assert 'model type "mamba" is a recurrent model without attention, which motet does not run' in b.refused()
    changed(num_hidden_layers=3)
    said = b.refused()
    assert '"model.layers.2.' in said and "motet-pull" not in said, said
    b.hub.add(NAME, b.files)
    said = b.refused("--memory", "100K")
    assert "takes 433 KiB for its weights and " in said and "motet may take 100 KiB" in said, said
    assert said.endswith("; --force downloads it all the same\n"), said
    for _, _, _, headers in b.hub.bodies():
        begin, end = headers["Range"].split("=")[1].split("-")
        assert int(begin) <= int(end) < header, headers["Range"]
    assert not [name for name in os.listdir(b.at("blobs")) if name.startswith(b.weights)]
    assert not [name for name in os.listdir(tempfile.gettempdir()) if name.startswith("motet-pull-")]
    changed(model_type="mamba")
    b.pull("--force")
    assert os.path.exists(b.at("blobs", b.weights))
    del (files := dict(b.files))["model.safetensors"]
    b.hub.add(NAME, {**files, "tiny.bin": b"x"})
    assert '"Owner/Tiny-1.5" holds "tiny.bin" but no *.safetensors' in b.refused()
    b.hub.add(NAME, {**files, "model-00001-of-00002.safetensors": b.files["model.safetensors"]})
    assert "lacks 1 of its 2 shards" in b.refused()
    b.hub.add(NAME, {**files, "model.safetensors": b"no header"})
    assert "model.safetensors\"" in b.refused()


def gguf(architecture, size):
    """The first bytes of a GGUF file, and zeros behind them."""
    key = b"general.architecture"
    head = struct.pack("<4sIQQQ", b"GGUF", 3, 0, 1, len(key)) + key
    head += struct.pack("<IQ", 8, len(architecture)) + architecture
    return head.ljust(size, b"\0")


@test
def one_quantisation_of_many_is_pulled(b):
    name = "Owner/Tiny-GGUF"
    files = {"README.md": b"#", "config.json": b"{}", "t-BF16-00001-of-00002.gguf": gguf(b"llama", 900),
             "t-BF16-00002-of-00002.gguf": gguf(b"llama", 901), "t-Q4_K_M.gguf": gguf(b"llama", 500),
             "Q8_0/t-Q8_0.gguf": gguf(b"llama", 700), "t-IQ4_XS.gguf": gguf(b"llama", 400),
             "mmproj-t-BF16.gguf": gguf(b"clip", 90), "mmproj-t-F16.gguf": gguf(b"clip", 91)}
    commit = b.hub.add(name, files)
    folder = os.path.join(b.cache, "models--Owner--Tiny-GGUF", "snapshots", commit)
    assert b.pull(name=name) == os.path.join(folder, "t-Q4_K_M.gguf")
    common = {"config.json", "mmproj-t-F16.gguf"}
    assert set(os.listdir(folder)) == common | {"t-Q4_K_M.gguf"}, os.listdir(folder)
    assert b.pull(name=name + ":q8_0") == os.path.join(folder, "Q8_0/t-Q8_0.gguf")
    b.pull(name=name + ":BF16")
    assert "t-BF16-00002-of-00002.gguf" in os.listdir(folder)
    listed = {m["name"]: m for m in json.loads(b.run("list", "--json")[1])["models"]}
    sizes = {"Q4_K_M": 591, "Q8_0": 791, "BF16": 1892}
    assert {n: m["bytes"] for n, m in listed.items()} == {name + ":" + tag: n for tag, n in sizes.items()}, listed
    one = listed[name + ":Q4_K_M"]
    assert (one["family"], one["can"], one["whole"], one["problem"]) == ("llama", ["text", "vision"], True, ""), one
    code, out, err = b.run("rm", "--yes", name + ":BF16")
    assert code == 0 and out == 'removed "{}:BF16": 1.8 KiB\n'.format(name), (code, out, err)
    assert set(os.listdir(folder)) == common | {"t-Q4_K_M.gguf", "Q8_0"}, os.listdir(folder)
    code, out, err = b.run("rm", "--yes", name + ":Q2_K")
    assert code == 1 and 'has no quantisation "Q2_K" here' in err, (code, out, err)
    assert b.run("rm", "--yes", name + ":Q4_K_M")[0] == b.run("rm", "--yes", name + ":Q8_0")[0] == 0
    assert not os.path.exists(os.path.dirname(os.path.dirname(folder)))


@test
def removing_a_quantisation_leaves_safetensors(b):
    b.commit = b.hub.add(NAME, {**b.files, "t-Q8_0.gguf": gguf(b"llama", 700)})
    folder = b.pull()
    b.pull(name=NAME + ":Q8_0")
    assert {"model.safetensors", "t-Q8_0.gguf"} <= set(os.listdir(folder)), os.listdir(folder)
    code, out, err = b.run("rm", "--yes", NAME + ":Q8_0")
    assert code == 0, (out, err)
    assert "t-Q8_0.gguf" not in os.listdir(folder) and os.path.exists(os.path.join(folder, "model.safetensors"))


@test
def a_quantisation_that_cannot_run_is_refused(b):
    name = "Owner/Tiny-GGUF"
    b.hub.add(name, {"t-Q4_K_M.gguf": gguf(b"llama", 5000), "t-Q8_0.gguf": gguf(b"llama", 9000)})
    said = b.refused(name=name + ":Q2_K")
    assert '"Q2_K"; take one of these: Q4_K_M (4.9 KiB), Q8_0 (8.8 KiB)' in said, said
    assert "no quantisation takes 4.0 KiB or less" in b.refused("--memory", "4K", name=name)
    said = b.refused("--memory", "6K", name=name + ":Q8_0")
    assert "takes 8.8 KiB for its weights; motet may take 6.0 KiB here" in said, said
    assert "has no GGUF files" in b.refused(name=NAME + ":Q4_K_M")
    b.hub.add(name, {"t-Q4_K_M.gguf": gguf(b"martian", 500)})
    assert 'architecture "martian" is none that motet runs' in b.refused(name=name)
    b.hub.add(name, {"t-Q4_K_M.gguf": b"no header"})
    said = b.refused(name=name)
    assert '"t-Q4_K_M.gguf" of "Owner/Tiny-GGUF" is no GGUF file that motet reads' in said, said


@test
def encoders_are_models_too(b):
    files = hubs.files_of(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle", "vectors",
                                       "bert-mean-f32"))
    b.hub.add("Owner/Vectors", files)
    assert "for its weights and 0 B for a thousand tokens" in b.refused("--memory", "1K", name="Owner/Vectors")
    b.pull(name="Owner/Vectors")
    assert "bert    embeddings  " in b.run("list")[1]
    code, out, err = b.run("show", "Owner/Vectors")
    assert code == 0 and "an encoder for vectors (/v1/embeddings)" in out and "in 1 file; " in out, (out, err)


@test
def two_pulls_at_once_both_end_well(b):
    free = threading.Event()
    b.hub.faults[b.weights] = [hubs.Handler.send_range] * 2 + [half(free)]
    first = b.start("pull", NAME)
    assert eventually(lambda: b.size(b.incomplete()) == len(b.files["model.safetensors"]) // 2)
    second = terminal(b)
    second.wait("[##########.")  # what the first has of it
    free.set()
    out, err = first.communicate(timeout=helpers.PATIENCE)
    assert (first.returncode, err) == (0, ""), (out, err)
    assert second.end() == 0 and "is here" in second.shown, second.shown
    b.check(out.rstrip("\n").split(", in ")[1], b.files)
    assert len(b.hub.bodies()) == 5, "two headers of two parts, and the file once"


@test
def a_disk_that_takes_no_more_is_told(b):
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000))

    if not os.environ.get("MOTET_TEST_RACES"):  # the thread sanitizer's own tables are files, too
        # as motet would have it from a full disk: writing fails, and no signal ends it
        assert "there is no room for" in b.refused("--force", preexec_fn=small, restore_signals=False)
        assert 0 < b.size(b.incomplete()) <= 200000
    b.check(b.pull(), b.files)
    assert "cannot be written" in b.refused(env={"HF_HUB_CACHE": "/dev/null/cache"})
    if os.getuid() != 0:  # who may do everything
        b.hub.add("Other/Model", b.files)
        os.chmod(b.cache, 0o500)
        assert "may not be written" in b.refused(name="Other/Model")
        os.chmod(b.cache, 0o700)


@test
def who_is_silent_is_asked_again_and_who_is_slow_is_waited_for(b):
    gone = threading.Event()

    def silent(handler, _):
        handler.send_response(200)
        handler.end_headers()
        gone.wait(helpers.PATIENCE)

    def slow(handler, data):
        handler.send_response(200)
        handler.send_header("content-length", str(len(data)))
        handler.end_headers()
        for at in range(0, len(data), len(data) // 8):
            handler.wfile.write(data[at:at + len(data) // 8])
            handler.wfile.flush()
            gone.wait(0.05)

    b.hub.faults[b.weights] = [hubs.Handler.send_range] * 2 + [silent, slow]
    b.check(b.pull(env={"HF_HUB_DOWNLOAD_TIMEOUT": "1"}), b.files)
    gone.set()


@test
def a_hub_that_lists_no_digests_is_asked_for_them(b):
    b.hub.alter = lambda listing: dict(listing, siblings=[{"rfilename": e["rfilename"]} for e in listing["siblings"]])
    b.check(b.pull(), b.files)
    assert {a[1] for a in b.hub.bodies("cdn")} == {"GET"} and "HEAD" in {a[1] for a in b.hub.bodies("hub")}


@test
def a_terminal_shows_how_far_it_is(b):
    free = threading.Event()
    b.hub.faults[b.weights] = [hubs.Handler.send_range] * 2 + [half(free)]
    person = terminal(b)
    shown = person.wait("[##########.") + person.wait("/s")
    assert "pulling {} [".format(NAME) in shown and " % of " in shown, shown
    free.set()
    assert person.end() == 0 and "is here" in person.shown, person.shown


@test
def models_are_listed_shown_and_removed(b):
    code, out, err = b.run("list")
    assert (code, out) == (0, "") and "motet pull" in err
    folder = b.pull()
    code, out, err = b.run("list")
    lines = out.splitlines()
    assert (code, err) == (0, "") and lines[0].split() == ["NAME", "SIZE", "FAMILY", "CAN", "MODIFIED", "WHERE"], out
    assert lines[1].startswith(NAME) and "llama   text  " in lines[1] and lines[1].endswith(b.cache), out
    model = json.loads(b.run("list", "--json")[1])["models"][0]
    assert (model["name"], model["revision"], model["folder"]) == (NAME, b.commit, folder) and model["whole"], model
    code, out, err = b.run("show", NAME)
    assert code == 0 and out.startswith("name          {}\nrevision      {}\nfolder        {}\nfamily        llama".format(
        NAME, b.commit, folder)), (out, err)
    shown = json.loads(b.run("show", NAME, "--json")[1])
    assert (shown["name"], shown["revision"], shown["folder"]) == (NAME, b.commit, folder), shown
    for text in "", "n\n":
        code, out, err = b.run("rm", NAME, text=text)
        assert code == 1 and "? [y/N] " in out and "stays" in out and os.path.exists(folder), (out, err)
    code, out, err = b.run("rm", NAME, text="y\n")
    assert code == 0 and 'removed "{}": '.format(NAME) in out and not os.path.exists(b.at()), (out, err)
    for options in ("--yes",), ():
        code, out, err = b.run("rm", NAME, *options, text="y\n")
        assert (code, out) == (1, "") and "see motet list" in err, (out, err)
    assert "motet pull " + NAME in b.run("show", NAME)[2]


@test
def short_names_stand_for_repositories(b):
    assert "qwen3:0.6b             Qwen/Qwen3-0.6B\n" in b.run("list", "--known")[1]
    assert {"name": "qwen3:0.6b", "repository": "Qwen/Qwen3-0.6B"} in json.loads(b.run("list", "--known", "--json")[1])["known"]
    assert "download it with motet pull qwen3:0.6b" in b.run("show", "qwen3:0.6b")[2]
    b.hub.add("Qwen/Qwen3-0.6B", b.files)
    folder = b.pull(name="qwen3:0.6b")
    assert "models--Qwen--Qwen3-0.6B" in folder and "short name" in b.refused(name="qwen3:0.6")
    assert folder in b.run("show", "qwen3:0.6b")[1]
    code, out, err = b.run("rm", "qwen3:0.6b", text="y\n")
    assert code == 0 and 'remove "Qwen/Qwen3-0.6B", ' in out and not os.path.exists(folder), (out, err)


@test
def a_name_without_an_address_is_tried_again_and_told(b):
    said = b.refused(env={"HF_ENDPOINT": "http://{}.example".format("a" * 64)})  # a part too long for DNS
    assert 'a.example" has no address (DNS): check the network and HF_ENDPOINT' in said, said


if __name__ == "__main__":
    helpers.main("cli_pull", TESTS, "fetch")
