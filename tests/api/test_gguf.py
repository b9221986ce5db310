#!/usr/bin/env python3
"""Models in GGUF files: a server says the same with a file as with the folder it was made from.

usage: tests/api/test_gguf.py --motet PROGRAM [NAME ...]"""

import hashlib
import json
import os
import shutil
import sys
import tempfile

import served

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
sys.path.insert(0, os.path.join(HERE, "..", "text"))
import gguf  # pylint: disable=wrong-import-position
import gguf_vocab  # pylint: disable=wrong-import-position

FOLDER = os.path.join(HERE, "..", "oracle", "sighted", "qwen3vl-bf16")
SUITE = served.Suite("api_gguf")
test, start = SUITE.test, SUITE.start
CHAT = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What's up, Zoë?"}],
        "temperature": 0, "max_tokens": 12, "logprobs": True, "top_logprobs": 5}


def make(path):
    """The folder's text model with its tokenizer and template."""
    with open(os.path.join(FOLDER, "tokenizer.json"), encoding="utf-8") as file:
        tokenizer = json.load(file)
    config = gguf_vocab.read_json(os.path.join(FOLDER, "tokenizer_config.json"))
    keys = gguf_vocab.keys_of(tokenizer, config, "gpt2", "gpt-2", 320) | gguf_vocab.chat_keys(FOLDER, config)
    gguf.convert(FOLDER, path, keys)


def answers(server):
    """What the server says to a conversation, a text and a question about tokens."""
    chat = server.post("/v1/chat/completions", CHAT)
    assert chat.status == 200, chat.body
    text = server.post("/v1/completions", {"prompt": "Once upon", "temperature": 0, "max_tokens": 8})
    assert text.status == 200, text.body
    tokens = server.post("/tokenize", {"prompt": "<|im_start|>two  words\n", "add_special_tokens": False}).json()["tokens"]
    return chat.json()["choices"], text.json()["choices"], tokens


@test
def a_file_says_what_its_folder_says():
    with tempfile.TemporaryDirectory() as place:
        home = os.path.join(place, "small")
        path = os.path.join(home, "tiny-F16.gguf")
        os.mkdir(home)
        make(path)
        with start(folder=FOLDER) as server:
            wanted = answers(server)
        for model, called in ((path, "tiny-F16"), (home, "small")):  # the file, and the folder that it is in
            with start(folder=model) as server:
                assert answers(server) == wanted, (answers(server), wanted)
                name = server.request("GET", "/v1/models").json()["data"][0]["id"]
                assert name == called, name


@test
def a_file_of_a_folder_of_models_is_found_by_name():
    with tempfile.TemporaryDirectory() as place:
        make(os.path.join(place, "tiny.gguf"))
        with start("--models-dir", place, folder=[]) as server:
            chat = server.post("/v1/chat/completions", {**CHAT, "model": "tiny"})
            assert chat.status == 200, chat.body


@test
def shards_are_one_model():
    with tempfile.TemporaryDirectory() as place:
        keys, tensors = gguf.Converter(gguf.Path(FOLDER)).convert()
        names = list(tensors)
        halves = [names[: len(names) // 2], names[len(names) // 2 :]]
        for number, half in enumerate(halves):
            own = {"split.no": number, "split.count": 2, "split.tensors.count": len(names)}
            path = gguf.Path(place) / f"tiny-0000{number + 1}-of-00002.gguf"
            gguf.write(path, own if number else keys | own, {name: tensors[name] for name in half})
        with start(folder=place) as server:
            got = server.post("/v1/completions", {"prompt": [5, 6, 7], "temperature": 0, "max_tokens": 4})
            assert got.status == 200, got.body


def listed(server):
    return {model["id"] for model in server.request("GET", "/v1/models").json()["data"]}


def put_in_ollama(store, path, name):
    """A model in Ollama's store, as it pulls one: the file by its digest, and a manifest."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    os.makedirs(os.path.join(store, "blobs"), exist_ok=True)
    shutil.copy(path, os.path.join(store, "blobs", "sha256-" + digest))
    folder = os.path.join(store, "manifests", "registry.ollama.ai", "library", name)
    os.makedirs(folder)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:" + digest}
    with open(os.path.join(folder, "latest"), "w", encoding="utf-8") as file:
        json.dump({"schemaVersion": 2, "layers": [layer]}, file)


@test
def models_of_other_programs_are_read_in_the_sandbox():
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as store:
        models = os.path.join(home, ".lmstudio", "models", "maker")
        path = os.path.join(models, "studio", "studio-F16.gguf")
        os.makedirs(os.path.dirname(path))
        make(path)
        put_in_ollama(store, path, "library-model")
        env = {"HOME": home, "OLLAMA_MODELS": store, "HF_HUB_CACHE": os.path.join(home, "none")}
        with start(folder=[], env=env) as server:
            names = {"maker/studio", "library-model"}
            assert listed(server) == names, listed(server)
            shutil.copytree(os.path.join(models, "studio"), os.path.join(models, "later"))
            put_in_ollama(store, path, "later")
            names |= {"maker/later", "later"}  # which came after the server had locked itself in
            assert served.eventually(lambda: listed(server) == names), listed(server)
            said = [server.post("/v1/completions", {"model": name, "prompt": [5, 6, 7], "temperature": 0, "max_tokens": 4})
                    for name in sorted(names)]
            assert [answer.status for answer in said] == [200] * 4, [answer.body for answer in said]
            assert all(answer.json()["choices"] == said[0].json()["choices"] for answer in said)


SUITE.main()
