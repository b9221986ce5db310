#!/usr/bin/env python3
"""Embeddings and scores of texts that are cut: what comes out is what the shorter text gives, with what the tokenizer
puts around it; scores of pairs, however they are asked for; vectors of each token, and labels.

usage: tests/api/test_vectors.py --motet PROGRAM"""

import argparse
import base64
import math
import os
import struct
import sys
import tempfile

import fixture
import served

HERE = os.path.dirname(os.path.abspath(__file__))
VECTORS = os.path.join(HERE, "..", "oracle", "vectors")
SCORER = "xlmr-rerank-bf16"
TEXT = "the river meets the sea at the old harbour where a fox asks a dog and many others follow"
QUERY = "where does the river meet the sea and who is there to see it when all of them have gone home"


class Vectors:
    def __init__(self, server):
        self.server = server

    def post(self, path, **body):
        answer = self.server.post(path, body)
        assert answer.status == 200, "{}: {} {}".format(path, answer.status, answer.body)
        return answer.json()

    def ids(self, text):
        return self.post("/tokenize", prompt=text)["tokens"]

    def embedding(self, given, **more):
        answer = self.post("/v1/embeddings", model="bert", input=given, **more)
        return answer["data"][0]["embedding"], answer["usage"]["prompt_tokens"]

    def score(self, query, document, **more):
        answer = self.post("/score", model=SCORER, text_1=query, text_2=document, **more)
        return answer["data"][0]["score"], answer["usage"]["prompt_tokens"]


def equal(one, other):
    assert one == other, "{} is not {}".format(one, other)


def check_embeddings(v):
    ids = v.ids(TEXT)
    assert len(ids) > 12, "a text of some tokens"
    around = [ids[0]], [ids[-1]]
    for keep in (3, 4, 9, len(ids) - 1):
        first = around[0] + ids[1:keep - 1] + around[1]
        last = around[0] + ids[len(ids) - keep + 1:-1] + around[1]
        equal(v.embedding(TEXT, truncate_prompt_tokens=keep), v.embedding(first))
        equal(v.embedding(TEXT, truncate_prompt_tokens=keep, truncation_side="right"), v.embedding(first))
        equal(v.embedding(TEXT, truncate_prompt_tokens=keep, truncation_side="left"), v.embedding(last))
        equal(v.embedding(ids, truncate_prompt_tokens=keep), v.embedding(ids[:keep]))
    equal(v.embedding(TEXT, truncate_prompt_tokens=len(ids)), v.embedding(TEXT))
    equal(v.embedding(TEXT, truncate_prompt_tokens=4, add_special_tokens=False), v.embedding(ids[1:5]))
    context = 310
    longer = " ".join([TEXT] * 40)
    for more in ({"truncate_prompt_tokens": -1}, {"truncate": "END"}, {"truncate": "START"}, {"truncate": True}):
        equal(v.embedding(longer, **more)[1], context)
    assert v.embedding(longer, truncate="END")[0] != v.embedding(longer, truncate="START")[0], "two ends"
    refused = v.server.post("/v1/embeddings", {"model": "bert", "input": longer, "truncate": "NONE"})
    equal((refused.status, refused.json()["error"]["code"]), (400, "context_length_exceeded"))
    raw, _ = v.embedding(TEXT, use_activation=False)
    length = math.sqrt(sum(x * x for x in raw))
    assert abs(length - 1) > 1e-3, "a vector as it is"
    for one, other in zip(raw, v.embedding(TEXT, use_activation=True)[0]):
        assert abs(one / length - other) < 1e-5, "the same direction"


def words(text, count):
    return " ".join(text.split()[:count])


def cut(v, text, **more):
    """The longest beginning of a text that has as many tokens."""
    most = v.score("x", text, **more)[1]
    return next(words(text, n) for n in range(len(text.split()), 0, -1)
                if v.score("x", words(text, n))[1] <= most), most


def check_pairs(v):
    whole, tokens = v.score(QUERY, TEXT)
    for keep in (1, 2, 5):
        shorter, most = cut(v, TEXT, max_tokens_per_doc=keep)
        equal(v.score("x", "")[1] + keep, most)
        if v.score("x", shorter)[1] == most:
            equal(v.score(QUERY, TEXT, max_tokens_per_doc=keep), v.score(QUERY, shorter))
    query, document = (v.score(t, "")[1] - v.score("", "")[1] for t in (QUERY, TEXT))
    around = v.score("", "")[1]
    equal(around + query + document, tokens)
    equal(v.score(QUERY, TEXT, truncate_prompt_tokens=tokens), (whole, tokens))
    for total in (tokens - 1, around + query + 1, around + 11, around + 2, around + 1):
        equal(v.score(QUERY, TEXT, truncate_prompt_tokens=total)[1], total)
    # the longer of the two is cut until they are as long, and the shorter one stays
    equal(v.score("fox", TEXT, truncate_prompt_tokens=v.score("fox", TEXT)[1] - 3),
          v.score("fox", TEXT, max_tokens_per_doc=document - 3))
    equal(v.score(QUERY, "fox", truncate_prompt_tokens=v.score(QUERY, "fox")[1] - 3),
          v.score(QUERY, "fox", max_tokens_per_query=query - 3))
    assert v.score(QUERY, TEXT, truncate="START", truncate_prompt_tokens=20) != v.score(
        QUERY, TEXT, truncate="END", truncate_prompt_tokens=20), "two ends"


def check_ways(v):
    documents = [TEXT, "fox", "a query asks", "the sea"]
    one = v.post("/score", model=SCORER, queries=QUERY, documents=documents)
    equal([d["index"] for d in one["data"]], [0, 1, 2, 3])
    scores = [d["score"] for d in one["data"]]
    for path, body in (("/v1/score", {"text_1": QUERY, "text_2": documents}), ("/score", {"data_1": [QUERY] * 4,
                                                                                       "data_2": documents}),
                       ("/score", {"queries": [QUERY], "items": [{"text": d} for d in documents]})):
        equal(v.post(path, model=SCORER, **body)["data"], one["data"])
    swapped = v.post("/score", model=SCORER, text_1=documents, text_2=[QUERY] * 4)["data"]
    assert [d["score"] for d in swapped] != scores, "what is asked stands first"
    for path in ("/rerank", "/v1/rerank", "/v2/rerank"):
        ranked = v.post(path, model=SCORER, query=QUERY, documents=documents)["results"]
        equal([r["index"] for r in ranked], sorted(range(4), key=lambda i: -scores[i]))
        equal(sorted(r["relevance_score"] for r in ranked), sorted(scores))
    raw = v.post("/score", model=SCORER, queries=QUERY, documents=documents, use_activation=False)["data"]
    for r, s in zip(raw, scores):
        assert abs(1 / (1 + math.exp(-r["score"])) - s) < 1e-6, "scores as they are"


def check_cosine(v):
    """A model that makes embeddings compares them."""
    query, fox, sea = (v.embedding(t)[0] for t in (QUERY, "fox", "the sea"))
    wanted = [sum(a * b for a, b in zip(query, other)) for other in (fox, sea)]
    found = v.post("/score", model="bert", queries=QUERY, documents=["fox", "the sea"])["data"]
    many = v.post("/score", model="bert", queries=["fox", QUERY], documents=["fox", "the sea"])["data"]
    for a, b in zip([d["score"] for d in found] + [many[0]["score"], many[1]["score"]], wanted + [1, wanted[1]]):
        assert abs(a - b) < 1e-5, "{} is no cosine, which is {}".format(a, b)
    ranked = v.post("/rerank", model="bert", query=QUERY, documents=["fox", "the sea"], top_n=1)["results"]
    equal(ranked[0]["index"], 0 if wanted[0] > wanted[1] else 1)
    equal(ranked[0]["document"], {"text": ["fox", "the sea"][ranked[0]["index"]]})


def near(one, other, bound=1e-5):
    assert len(one) == len(other) and all(abs(a - b) < bound for a, b in zip(one, other)), "{} is not {}".format(
        one, other)


def check_tokens(v):
    """A vector for each token: their mean is the text's, and a task that is left out is what the model is for."""
    raw = {"model": "bert", "input": [TEXT, "fox"], "use_activation": False}
    each = [d["data"] for d in v.post("/pooling", task="token_embed", **raw)["data"]]
    one = v.post("/pooling", **raw)
    equal([len(e) for e in each], [len(v.ids(TEXT)), len(v.ids("fox"))])
    for vectors, whole in zip(each, one["data"]):
        near([sum(x) / len(vectors) for x in zip(*vectors)], whole["data"])
    equal([d["data"] for d in one["data"]], [d["embedding"] for d in v.post("/v1/embeddings", **raw)["data"]])
    short = dict(raw, dimensions=8, task="token_embed", use_activation=True)
    scaled = v.post("/pooling", **short)["data"]
    for vectors, longer in zip(scaled, each):
        for vector, whole in zip(vectors["data"], longer):
            length = math.sqrt(sum(x * x for x in whole[:8]))
            near(vector, [x / length for x in whole[:8]])
    packed = v.post("/pooling", encoding_format="base64", **short)["data"]
    for text, vectors in zip(packed, scaled):
        near([x for (x,) in struct.iter_unpack("<f", base64.b64decode(text["data"]))],
             [x for vector in vectors["data"] for x in vector], 1e-6)
    equal(v.post("/pooling", model=SCORER, input="fox")["data"][0]["data"],
          v.post("/classify", input="fox")["data"][0]["probs"])
    # vectors of more tokens than may be asked for
    refused = v.server.post("/pooling", {"model": "bert", "input": [[7] * 310] * 846, "task": "token_embed"})
    equal((refused.status, refused.json()["error"]["param"]), (400, "input"))
    assert "262260 tokens, and vectors of 262144 may be asked for" in refused.json()["error"]["message"], refused.body


def check_labels(motet):
    texts = ["fox", TEXT]
    with tempfile.TemporaryDirectory() as folder:
        for more in ({}, {"problem_type": "multi_label_classification"}):
            fixture.write_classifier(folder, ("good", "bad", "neither"), **more)
            with served.Server(motet, folder, "--served-name", "three", "--embedding-model",
                               os.path.join(VECTORS, SCORER)) as server:
                v = Vectors(server)
                logits = [d["probs"][0] for d in
                          v.post("/classify", model=SCORER, input=texts, use_activation=False)["data"]]
                raw = v.post("/classify", model="three", input=texts, use_activation=False)["data"]
                for d, x in zip(raw, logits):
                    near(d["probs"], [x, -x, 0])
                    equal((d["label"], d["num_classes"]), ("good" if x > 0 else "bad", 3))
                done = v.post("/classify", model="three", input=texts)["data"]
                for d, x in zip(done, logits):
                    powers = [math.exp(x), math.exp(-x), 1]
                    near(d["probs"], [p / (p + 1) for p in powers] if more else [p / sum(powers) for p in powers])
                equal([d["data"] for d in v.post("/pooling", model="three", input=texts)["data"]],
                      [d["probs"] for d in done])
                for path, body in (("/v1/rerank", {"query": "fox", "documents": ["dog"]}), ("/v1/embeddings", {"input": "x"})):
                    refused = server.post(path, dict(body, model="three"))
                    equal(refused.status, 400)
                    assert "use /classify" in refused.json()["error"]["message"], refused.body
                listed = {m["id"]: m["capabilities"] for m in server.request("GET", "/v1/models").json()["data"]}
                equal((listed["three"], listed[SCORER]), (["classify"], ["rerank"]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--motet", required=True)
    arguments = parser.parse_args()
    checks = (check_embeddings, check_pairs, check_ways, check_cosine, check_tokens)
    with served.Server(arguments.motet, os.path.join(VECTORS, "bert-mean-f32"), "--served-name", "bert",
                       "--embedding-model", os.path.join(VECTORS, SCORER)) as server:
        for check in checks:
            check(Vectors(server))
    check_labels(arguments.motet)
    print("api_vectors: {} passed, 0 failed".format(len(checks) + 1))
    sys.exit(0)


main()
