"""A motet server for tests of other projects, which start theirs by the name of a model and by options of their own."""

import atexit
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
sys.path.append(os.path.join(ROOT, "tests", "api"))
import fixture  # pylint: disable=wrong-import-position

MADE = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
BOX = os.path.join(MADE.name, "box")
VOCABULARY = 8192  # tokens of the box as it is served: tests name tokens of models that have many
VECTORS = os.path.join(ROOT, "tests", "oracle", "vectors")
CLASSIFIER = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
PATIENCE = 120  # seconds until a server is ready
# Parts of models' names, and the folder that stands in for them; any other is the model in the box.
ENCODERS = {"rerank": "xlmr-rerank-bf16", "ms-marco": "xlmr-rerank-bf16", "e5-": "bert-mean-f32",
            "bge-": "bert-mean-f32", "gte-": "bert-mean-f32", "jina-embed": "bert-mean-f32", "arctic": "bert-mean-f32"}


def write_box():
    """The model in the box, with tokens that have no text and are never likely behind its own."""
    shutil.copytree(os.path.join(ROOT, "models", "box"), BOX)
    with open(os.path.join(BOX, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    config["text_config"]["vocab_size"] = VOCABULARY
    with open(os.path.join(BOX, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
    with open(os.path.join(BOX, "model.safetensors"), "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        data = f.read()
    for part in ("weight", "scales", "biases"):
        tensor = header["language_model.model.embed_tokens." + part]
        begin, end = tensor["data_offsets"]
        old, rows = data[begin:end], tensor["shape"][0]
        tensor["shape"][0] = VOCABULARY
        tensor["data_offsets"] = [len(data), len(data) + len(old) // rows * VOCABULARY]
        data += old + bytes(len(old) // rows * (VOCABULARY - rows))
    text = json.dumps(header).encode()
    with open(os.path.join(BOX, "model.safetensors"), "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text + data)


write_box()
THINKS = "{%- if enable_thinking is not defined -%}{%- set enable_thinking = true -%}{%- endif -%}\n"


def classifier():
    """A folder with a classifier of two labels, which is written at the first call."""
    if not os.listdir(CLASSIFIER.name):
        fixture.write_classifier(CLASSIFIER.name, ("Default", "Spoiled"))
    return CLASSIFIER.name


def folder(model):
    if os.path.isdir(model):
        return model
    lower = model.lower()
    if "apeach" in lower:
        return classifier()
    return next((os.path.join(VECTORS, name) for part, name in ENCODERS.items() if part in lower), BOX)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def command():
    """MOTET: the program, with words before it where it is to be run by something."""
    return os.environ["MOTET"].split()


def place(path):
    """The path as the program sees it: MOTET_PREFIX goes where tests run in another root than it does."""
    prefix = os.environ.get("MOTET_PREFIX", "")
    path = os.path.abspath(path)
    return path[len(prefix):] if prefix and path.startswith(prefix) else path


def start(options, host="127.0.0.1", port=None):
    """Runs `motet serve` with these options, and waits until it is ready."""
    port = port or free_port()
    log = tempfile.TemporaryFile()  # pylint: disable=consider-using-with
    if host.startswith("unix:"):
        url = None
        options = [*options, "--host", "unix:" + place(host.removeprefix("unix:"))]
    else:
        url = "http://127.0.0.1:{}/ready".format(port)
        options = [*options, "--host", host, "--port", str(port)]
    process = subprocess.Popen([*command(), "serve", *options], stdout=log, stderr=log)
    end = time.monotonic() + PATIENCE
    while not ready(url, host):
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            process.wait()
            log.seek(0)
            raise RuntimeError("motet did not start with {}:\n{}".format(options, log.read().decode()[-2000:]))
        time.sleep(0.05)
    return process, port


def ready(url, host):
    try:
        if url:
            with urllib.request.urlopen(url) as answer:
                return answer.status == 200
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(host.removeprefix("unix:"))
            return True
    except OSError:
        return False


def stop(process):
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def values(arguments, name):
    """The words behind an option, up to the next."""
    found = []
    for i, word in enumerate(arguments):
        if word.split("=")[0] == name:
            found = [word.split("=", 1)[1]] if "=" in word else []
            for follower in arguments[i + 1:]:
                if follower.startswith("--"):
                    break
                found.append(follower)
    return found


def template(arguments, folder):
    """Models whose reasoning is parsed think unless they are told not to; the one in the box thinks when told to."""
    if values(arguments, "--chat-template") or "--reasoning-parser" not in " ".join(arguments):
        return []
    with open(os.path.join(folder, "chat_template.jinja"), encoding="utf-8") as f:
        text = THINKS + f.read()
    made = tempfile.NamedTemporaryFile("w", suffix=".jinja", delete=False)  # pylint: disable=consider-using-with
    atexit.register(os.unlink, made.name)
    with made:
        made.write(text)
    return ["--chat-template", place(made.name)]


def get_tokenizer(tokenizer_name=None, *_, **__):
    return AutoTokenizer.from_pretrained(tokenizer_name)


class AutoTokenizer:
    @staticmethod
    def from_pretrained(name, *_, **__):
        import transformers
        return transformers.PreTrainedTokenizerFast.from_pretrained(folder(name))


try:
    import transformers
    transformers.AutoTokenizer = AutoTokenizer
except ImportError:
    pass
