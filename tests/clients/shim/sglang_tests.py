"""A plugin of pytest that runs SGLang's own tests of its HTTP API, unedited, against motet: `sglang.test.test_utils` is what
stands here, the kits of tests are the suite's own (SGLANG is its checkout), and all else of SGLang is absent. See
docs/clients.md.

Any model is the one in the box, under the name that the test gives it; encoders are fixtures of tests/oracle/vectors."""

import os
import signal
import unittest
import urllib.parse

import absent
import remote

SAME = {"--context-length": "--context", "--context-len": "--context", "--max-running-requests": "--max-sequences",
        "--chunked-prefill-size": "--batch-tokens", "--chat-template": "--chat-template"}
RUNNING = {}


def popen_launch_server(model, base_url, timeout=None, api_key=None, other_args=(), **_):
    del timeout
    arguments = [str(a) for a in other_args or ()]
    folder = remote.folder(model)
    names = remote.values(arguments, "--served-model-name") or [model]
    options = [remote.place(folder), "--served-name", names[0]]
    for theirs, ours in SAME.items():
        for value in remote.values(arguments, theirs)[:1]:
            options += [ours, value] if int(value) > 0 else []
    if folder == remote.BOX:
        options += remote.template(arguments, folder)
    if api_key:
        options += ["--api-key", api_key]
    process, _ = remote.start(options + ["--media-allow-private"], port=urllib.parse.urlparse(base_url).port)
    RUNNING[process.pid] = process
    return process


def kill_process_tree(pid, *_, **__):
    process = RUNNING.pop(pid, None)
    if process:
        process.send_signal(signal.SIGKILL)
        process.wait()


class CustomTestCase(unittest.TestCase):
    pass


URL = "http://127.0.0.1:{}".format(remote.free_port())
ENCODER, SCORER = "intfloat/e5-small", "cross-encoder/ms-marco-MiniLM-L6-v2"
UTILS = {"popen_launch_server": popen_launch_server, "CustomTestCase": CustomTestCase, "DEFAULT_URL_FOR_TEST": URL,
         "DEFAULT_TIMEOUT_FOR_SERVER_LAUNCH": remote.PATIENCE, "is_rust_server_built": lambda: False,
         "is_in_ci": lambda: False, "is_in_amd_ci": lambda: False,
         "DEFAULT_SMALL_MODEL_NAME_FOR_TEST": "meta-llama/Llama-3.2-1B-Instruct",
         "DEFAULT_MODEL_NAME_FOR_TEST": "meta-llama/Llama-3.1-8B-Instruct",
         "DEFAULT_SMALL_EMBEDDING_MODEL_NAME_FOR_TEST": ENCODER,
         "DEFAULT_SMALL_CROSS_ENCODER_MODEL_NAME_FOR_TEST": SCORER}
QUERY = "How many people live in Berlin?"
TEXTS = ["Berlin had a population of 3,520,031 registered inhabitants.", "Berlin is well known for its museums."]
GIVEN = {
    "sglang.test": {"__path__": []},
    "sglang.test.kits": {"__path__": [os.path.join(os.environ.get("SGLANG", ""), "python", "sglang", "test", "kits")]},
    "sglang.test.test_utils": UTILS,
    "sglang.test.runners": {"TEST_RERANK_QUERY_DOCS": [{"query": QUERY, "documents": TEXTS[1:]},
                                                       {"query": QUERY, "documents": TEXTS}]},
    "sglang.srt.utils": {"kill_process_tree": kill_process_tree},
    "sglang.srt.utils.hf_transformers_utils": {"get_tokenizer": remote.get_tokenizer},
}
absent.install("sglang", ("torch", "datasets", "PIL"), GIVEN)
