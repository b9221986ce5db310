"""Heads that guess ahead (MTP), for committed checkpoints, and what they guess after each position of a text.

A head takes the embedding of token i + 1 beside the model's final hidden state after token i, through one layer of
attention of its own, and guesses token i + 2. It goes on by itself with what it guessed and its own output.
"""

import copy
import json

import numpy as np
import torch

from . import families, fixtures, layouts, record, safetensors

CHECKPOINTS = ("qwen35-text-bf16", "qwen35-mlx-4bit", "qwen3next-bf16", "qwen35moe-mlx-4bit")
TOKENS = 40  # of the text
DEPTH = 3


def _decoder_layer(model):
    """One more layer of attention, as the model has them, without weights yet."""
    kinds = model.config.layer_types
    at = kinds.index("full_attention")
    layer = copy.deepcopy(model.model.layers[at])
    layer.self_attn.layer_idx = 0
    return layer.eval()


def _draw(model, layer, config, seed):
    rng = np.random.Generator(np.random.Philox(seed))
    hidden = config["hidden_size"]
    shapes = {f"mtp.layers.0.{name}": tuple(tensor.shape) for name, tensor in layer.state_dict().items()}
    tensors = {name: families._draw(name, shape, config, rng) for name, shape in shapes.items()}
    tensors["mtp.fc.weight"] = rng.standard_normal((hidden, 2 * hidden)) * 0.5 * hidden**-0.5
    for name in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"):
        tensors[f"mtp.{name}.weight"] = 0.2 * rng.standard_normal(hidden)
    return {name: tensor.astype(np.float32) for name, tensor in tensors.items()}


def _is_norm(name, tensor):
    return "norm" in name and tensor.ndim == 1


def _store(path, tensors, layout):
    """Nothing is quantised: a head is small, and guesses badly in few bits. MLX's norms have the 1 already."""
    plain = {name: tensor + bool(layout.mlx and _is_norm(name, tensor)) for name, tensor in tensors.items()}
    named = {}
    for name, tensor in plain.items():
        renamed = layouts._rename({name: tensor}, layout)
        named.update(renamed)
    stored = {name: safetensors.floats(tensor, "BF16") for name, tensor in named.items()}
    safetensors.write(path, stored, {"format": "mlx" if layout.mlx else "pt"})


def _restore(path, tensors, layout):
    """What the file says, under the names of `tensors`."""
    found = {name: tensor.values() for name, tensor in safetensors.read(path).items()}
    out = layouts._rename_back(found, {name: tensor.shape for name, tensor in tensors.items()})
    one = bool(layout.mlx)
    return {name: torch.from_numpy(np.array(t - (one and _is_norm(name, t)), np.float32)) for name, t in out.items()}


def _rms(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * (1 + weight)


class Head:
    def __init__(self, model, layer, tensors):
        prefix = "mtp.layers.0."
        layer.load_state_dict({k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)})
        self.model, self.layer, self.tensors, self.eps = model, layer, tensors, model.config.rms_norm_eps

    def join(self, token, hidden):
        embedding = self.model.model.embed_tokens(torch.tensor(token))
        left = _rms(embedding, self.tensors["mtp.pre_fc_norm_embedding.weight"], self.eps)
        right = _rms(hidden, self.tensors["mtp.pre_fc_norm_hidden.weight"], self.eps)
        return self.tensors["mtp.fc.weight"] @ torch.cat([left, right])

    def last(self, rows):
        """Output and logits of the last of the rows, which stand at positions 1, 2, ..."""
        x = torch.stack(rows)[None]
        n = len(rows)
        positions = torch.arange(1, n + 1)[None]
        mask = torch.full((n, n), float("-inf")).triu(1)[None, None]
        angles = self.model.model.rotary_emb(x, positions)
        y = self.layer(x, position_embeddings=angles, attention_mask=mask, position_ids=positions)
        out = _rms((y[0] if isinstance(y, tuple) else y)[0, -1], self.tensors["mtp.norm.weight"], self.eps)
        return out, self.model.lm_head(out)


@torch.no_grad()
def _guesses(head, ids):
    """After each position but the last: the guesses, and how clear the least clear of them is."""
    hidden = head.model.model(input_ids=torch.tensor([ids]), use_cache=False).last_hidden_state[0]
    rows, guesses, margin = [], [], float("inf")
    for i in range(len(ids) - 1):
        rows.append(head.join(ids[i + 1], hidden[i]))
        ahead, chain = list(rows), []
        for _ in range(DEPTH):
            out, logits = head.last(ahead)
            best = logits.topk(2)
            margin = min(margin, float(best.values[0] - best.values[1]))
            chain.append(int(best.indices[0]))
            ahead.append(head.join(chain[-1], out))
        guesses.append(chain)
    return guesses, margin


def _make_one(spec, source, folder, seed):
    config = json.loads((source / "config.json").read_text())
    text = config.get("text_config", config)
    model = record.build(source)
    record.load(model, layouts.restore(source, record.shapes(model)))
    layer = _decoder_layer(model)
    tensors = _draw(model, layer, text, seed)
    path = folder / "model-mtp.safetensors"
    _store(path, tensors, spec.layout)
    head = Head(model, layer, _restore(path, tensors, spec.layout))
    ids = np.random.Generator(np.random.Philox(seed + 1000)).integers(0, text["vocab_size"], TOKENS).tolist()
    guesses, margin = _guesses(head, ids)
    return {"token_ids": ids, "guesses": guesses}, margin


def make(out, checkpoints, only, first_seed, tries):
    for spec in fixtures.ALL:
        if spec.name not in CHECKPOINTS or only not in spec.name:
            continue
        folder = out / spec.name
        folder.mkdir(parents=True, exist_ok=True)
        margins = {}
        for seed in range(first_seed, first_seed + tries):
            margins[seed] = _make_one(spec, checkpoints / spec.name, folder, seed)[1]
        best = max(margins, key=margins.get)
        found, margin = _make_one(spec, checkpoints / spec.name, folder, best)
        (folder / "guesses.json").write_text(json.dumps(found, separators=(",", ":")) + "\n")
        print(f"{spec.name:28} seed {best}  margin {margin:.4f}", flush=True)
