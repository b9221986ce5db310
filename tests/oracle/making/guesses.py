"""Heads that guess ahead (MTP), for committed checkpoints, and what they guess after each position of a text.

A head takes the embedding of token i + 1 beside the model's final hidden state after token i, through one layer of
attention of its own, and guesses token i + 2. It goes on by itself with what it guessed and its own output.
"""

import copy
import json

import numpy as np
import torch

from . import families, fixtures, layouts, record, safetensors

CHECKPOINTS = ("qwen35-text-bf16", "qwen35-mlx-4bit", "qwen3next-bf16", "qwen35moe-mlx-4bit", "glm47flash-bf16")
TOKENS = 40  # of the text
DEPTH = 3


def _decoder_layer(model):
    """One more layer of attention, as the model has them, without weights yet."""
    latent = model.config.model_type in families.LATENT
    at = -1 if latent else model.config.layer_types.index("full_attention")
    layer = copy.deepcopy(model.model.layers[at])
    layer.self_attn.layer_idx = 0
    return layer.eval()


def _names(config):
    """The prefix of the layer; the matrix that joins, and the norms of embedding, hidden state and result."""
    if config["model_type"] in families.LATENT:
        prefix = f"model.layers.{config['num_hidden_layers']}."
        return prefix, *(f"{prefix}{name}.weight" for name in ("eh_proj", "enorm", "hnorm", "shared_head.norm"))
    parts = ("fc", "pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm")
    return "mtp.layers.0.", *(f"mtp.{name}.weight" for name in parts)


def _one(config):
    """What is added to the weights of norms."""
    return config["model_type"] in families.OFFSET


def _draw(model, layer, config, seed):
    rng = np.random.Generator(np.random.Philox(seed))
    hidden = config["hidden_size"]
    prefix, joins, *norms = _names(config)
    shapes = {f"{prefix}{name}": tuple(tensor.shape) for name, tensor in layer.state_dict().items()}
    tensors = {name: families._draw(name, shape, config, rng) for name, shape in shapes.items()}
    tensors[joins] = rng.standard_normal((hidden, 2 * hidden)) * 0.5 * hidden**-0.5
    for name in (norms[2], norms[0], norms[1]):
        tensors[name] = 0.2 * rng.standard_normal(hidden) + (not _one(config))
    return {name: tensor.astype(np.float32) for name, tensor in tensors.items()}


def _is_norm(name, tensor):
    return "norm" in name and tensor.ndim == 1


def _store(path, tensors, layout, config):
    """Nothing is quantised: a head is small, and guesses badly in few bits. MLX's norms have the 1 already."""
    plain = {name: tensor + bool(layout.mlx and _is_norm(name, tensor)) for name, tensor in tensors.items()}
    named = {}
    for name, tensor in plain.items():
        renamed = layouts._rename({name: tensor}, layout, config)
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
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


class Head:
    def __init__(self, model, layer, tensors, config):
        prefix, joins, *norms = _names(config)
        own = layer.state_dict()
        layer.load_state_dict({name: tensors[prefix + name] for name in own})
        self.model, self.layer, self.eps = model, layer, model.config.rms_norm_eps
        self.fc = tensors[joins]
        self.embed_norm, self.hidden_norm, self.norm = (tensors[name] + _one(config) for name in norms)

    def join(self, token, hidden):
        embedding = self.model.model.embed_tokens(torch.tensor(token))
        left = _rms(embedding, self.embed_norm, self.eps)
        right = _rms(hidden, self.hidden_norm, self.eps)
        return self.fc @ torch.cat([left, right])

    def last(self, rows):
        """Output and logits of the last of the rows, which stand at positions 1, 2, ..."""
        x = torch.stack(rows)[None]
        n = len(rows)
        positions = torch.arange(1, n + 1)[None]
        mask = torch.full((n, n), float("-inf")).triu(1)[None, None]
        angles = self.model.model.rotary_emb(x, positions)
        y = self.layer(x, position_embeddings=angles, attention_mask=mask, position_ids=positions)
        out = _rms((y[0] if isinstance(y, tuple) else y)[0, -1], self.norm, self.eps)
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
    _store(path, tensors, spec.layout, text)
    head = Head(model, layer, _restore(path, tensors, spec.layout), text)
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
