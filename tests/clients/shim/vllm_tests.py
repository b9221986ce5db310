"""A plugin of pytest that runs vLLM's own tests of its HTTP API, unedited, against motet: `tests.utils` is what stands here,
and what else they import of vLLM is absent. See docs/clients.md.

Any model is the one in the box, under the name that the test gives it; encoders are fixtures of tests/oracle/vectors."""

import base64
import http.server
import io
import json
import os
import pathlib
import threading
import types

import numpy
import pytest

import absent
import remote

SAME = {"--max-model-len": "--context", "--max-num-seqs": "--max-sequences", "--api-key": "--api-key",
        "--chat-template": "--chat-template", "--allowed-origins": "--cors", "--ssl-certfile": "--tls-cert",
        "--ssl-keyfile": "--tls-key", "--allowed-local-media-path": "--media-root",
        "--max-num-batched-tokens": "--batch-tokens"}


class RemoteOpenAIServer:
    DUMMY_API_KEY = "token-abc123"

    def __init__(self, model, vllm_serve_args, env_dict=None, **_):
        if isinstance(vllm_serve_args, dict):
            raise RuntimeError("options of another class")
        arguments = [str(a) for a in vllm_serve_args]
        folder = remote.folder(model)
        names = remote.values(arguments, "--served-model-name") or [model]
        options = [remote.place(folder), "--served-name", names[0]]
        for name in names[1:] + [m.split("=")[0] for m in remote.values(arguments, "--lora-modules")]:
            options += ["--alias", name]
        for theirs, ours in SAME.items():
            for value in remote.values(arguments, theirs)[:1]:
                options += [ours, remote.place(value) if os.path.exists(value) else value]
        key = (env_dict or {}).get("VLLM_API_KEY") or os.environ.get("VLLM_API_KEY")
        options += ["--api-key", key] if key else []
        if "--trust-request-chat-template" in arguments:
            options.append("--allow-chat-template")
        if folder == remote.BOX:
            options += remote.template(arguments, folder)
        uds = remote.values(arguments, "--uds")
        self.uds = uds[0] if uds else None
        self.host = "127.0.0.1"
        port = remote.values(arguments, "--port")
        self.proc, self.port = remote.start(options + ["--media-allow-private"],
                                            "unix:" + self.uds if uds else self.host, int(port[0]) if port else None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        remote.stop(self.proc)

    @property
    def url_root(self):
        return "http://{}".format(self.uds.split("/")[-1]) if self.uds else "http://{}:{}".format(self.host, self.port)

    def url_for(self, *parts):
        return self.url_root + "/" + "/".join(part.strip("/") for part in parts if part)

    def _client(self, kind, url, more):
        return kind(**{"base_url": url, "api_key": self.DUMMY_API_KEY, "max_retries": 0, "timeout": 120, **more})

    def get_client(self, **more):
        import openai
        return self._client(openai.OpenAI, self.url_for("v1"), more)

    def get_async_client(self, **more):
        import openai
        return self._client(openai.AsyncOpenAI, self.url_for("v1"), more)

    def get_client_anthropic(self, **more):
        import anthropic
        return self._client(anthropic.Anthropic, self.url_for(), more)

    def get_async_client_anthropic(self, **more):
        import anthropic
        return self._client(anthropic.AsyncAnthropic, self.url_for(), more)


class Platform:
    """No GPU of any maker."""
    def __getattr__(self, name):
        return lambda *_, **__: False


def answer(name, *fields):
    """A class of vLLM's protocol that tests read answers with: any JSON object with these fields."""
    def made(value):
        if isinstance(value, dict):
            return types.SimpleNamespace(**{k: made(v) for k, v in value.items()})
        return [made(v) for v in value] if isinstance(value, list) else value

    def validate(data):
        missing = [f for f in fields if f not in data]
        assert not missing, "{} lacks {}".format(name, missing)
        return made(data)
    return {name: type(name, (), {"model_validate": staticmethod(validate)})}


class ModelConfig:
    def __init__(self, model, **_):
        with open(os.path.join(remote.folder(model), "config.json"), encoding="utf-8") as f:
            config = json.load(f)
        self.size = config.get("text_config", config)["vocab_size"]

    def get_vocab_size(self):
        return self.size


def picture(name):
    """Drawn in place of a photograph of this name, in the file format and with the colours that the name tells."""
    from PIL import Image, ImageDraw
    image = Image.new("RGB", (320, 240), "white")
    ImageDraw.Draw(image).ellipse((60, 40, 260, 200), fill="red")
    if "RGBA" in name:
        image = image.convert("RGBA")
    if "Grayscale" in name:
        image = image.convert("L")
    data = io.BytesIO()
    image.save(data, "JPEG" if name.endswith("jpg") else "PNG")
    return data.getvalue()


def fetch_image(url, **_):
    from PIL import Image
    return Image.open(io.BytesIO(picture(url)))


def encode_image_url(image, format="PNG", **_):  # pylint: disable=redefined-builtin
    data = io.BytesIO()
    image.convert("RGB").save(data, format)
    return "data:image/{};base64,{}".format(format.lower(), base64.b64encode(data.getvalue()).decode())


class Assets(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # pylint: disable=invalid-name
        data = picture(self.path)
        self.send_response(200)
        self.send_header("content-type", "image/jpeg" if self.path.endswith("jpg") else "image/png")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


class AssetServer:
    def __init__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Assets)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url_for(self, name):
        return "http://127.0.0.1:{}/{}".format(self.server.server_port, name)

    def get_image_asset(self, name):
        return fetch_image(name)


@pytest.fixture(scope="session")
def local_asset_server():
    made = AssetServer()
    yield made
    made.server.shutdown()


@pytest.fixture
def image_url(request, local_asset_server):  # pylint: disable=redefined-outer-name
    return local_asset_server.url_for(request.param)


@pytest.fixture
def image_urls(request, local_asset_server):  # pylint: disable=redefined-outer-name
    return [local_asset_server.url_for(name) for name in request.param]


def normalize(values, **_):
    return values / numpy.linalg.norm(values, axis=-1, keepdims=True)


def cosine_similarity(one, other, **_):
    return float(normalize(one) @ normalize(other))


def softmax(values, **_):
    powers = numpy.exp(values)
    return powers / powers.sum(axis=-1, keepdims=True)


LONG = types.SimpleNamespace(min=-2**63, max=2**63 - 1)
# What tests compare vectors with, by numpy
TORCH = {"iinfo": lambda _: LONG, "tensor": lambda values, **_: numpy.array(values), "allclose": numpy.allclose}
FUNCTIONS = {"normalize": normalize, "cosine_similarity": cosine_similarity,
             "softmax": softmax, "sigmoid": lambda values: 1 / (1 + numpy.exp(-values))}
UTILS = {"RemoteOpenAIServer": RemoteOpenAIServer, "ROCM_EXTRA_ARGS": [], "ROCM_ENV_OVERRIDES": {},
         "VLLM_PATH": pathlib.Path("/")}
SEEN = {"fetch_image": fetch_image, "encode_image_url": encode_image_url}
GIVEN = {
    "tests.utils": UTILS,
    "torch": TORCH,
    "torch.nn.functional": FUNCTIONS,
    "vllm.config": {"ModelConfig": ModelConfig},
    "vllm.tokenizers": {"get_tokenizer": remote.get_tokenizer},
    "vllm.platforms": {"current_platform": Platform()},
    "vllm.multimodal.utils": SEEN,
    "vllm.entrypoints.pooling.embed.protocol": answer("EmbeddingResponse", "model", "data", "usage"),
    "vllm.entrypoints.pooling.pooling.protocol": answer("PoolingResponse", "model", "data", "usage"),
    "vllm.entrypoints.pooling.scoring.protocol": {**answer("RerankResponse", "id", "model", "usage", "results"),
                                                  **answer("ScoreResponse", "model", "data", "usage")},
    "vllm.entrypoints.pooling.classify.protocol": answer("ClassificationResponse", "model", "data", "usage"),
}
ABSENT = ("torch", "cloudpickle", "tblib", "fastapi", "model_hosting_container_standards", "soundfile",
          "schemathesis", "librosa", "lm_eval", "openai_harmony", "mteb", "cohere", "datasets")
absent.install("vllm", ABSENT, GIVEN)


def pytest_collection_modifyitems(config, items):
    """Tests without a server are of vLLM's own functions."""
    def asks(item):
        names = getattr(getattr(item, "function", None), "__code__", None)
        return any("server" in f or "client" in f for f in item.fixturenames) or (
            names and "RemoteOpenAIServer" in names.co_names)

    own = [item for item in items if not asks(item)]
    config.hook.pytest_deselected(items=own)
    items[:] = [item for item in items if asks(item)]
