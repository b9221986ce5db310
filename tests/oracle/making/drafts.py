"""Drafters (Gemma 4's assistants) for committed checkpoints, and what they guess after each position of a text.

A drafter takes the embedding of token i + 1 beside the model's final hidden state after token i, both of the model, and
guesses token i + 2. Its layers read the keys and values of the model's last layers, of positions up to i; it stays at
position i + 1 while it goes on with what it guessed and its own output. A window ends at that position, too, which has
no keys yet: it shows one fewer than its size. (generate() passes what its cache holds: as many as the window at best,
and sometimes those of tokens that were guessed and rejected.)
"""

import json

import numpy as np
import torch
import transformers

from . import families, fixtures, layouts, record, safetensors

TOKENS = 40  # of the text
DEPTH = 3
# by checkpoint: what the drafter has beside what the model's own config says
DRAFTERS = {
    "gemma4-bf16": {"num_attention_heads": 2},
    "gemma4-aside-bf16": {"num_attention_heads": 8, "clusters": (32, 5)},
    "gemma4unified-bf16": {},
    "gemma4-mlx-4bit": {"clusters": (64, 9)},
}
SHARED = ("attention_k_eq_v", "head_dim", "global_head_dim", "num_key_value_heads", "num_global_key_value_heads")
SHARED += ("sliding_window", "rope_parameters", "vocab_size", "num_attention_heads", "max_position_embeddings")
SHARED += ("hidden_activation", "rms_norm_eps")


def _config(source, more):
    """As it is published: of the text model with what all of them have."""
    outer = json.loads((source / "config.json").read_text())
    text = outer["text_config"]
    unified = "unified" in outer["model_type"]
    inner = {key: text[key] for key in SHARED if key in text}
    inner |= {
        "model_type": text["model_type"],
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 3,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
        "tie_word_embeddings": True,
    }
    if not unified:
        inner |= {"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0, "num_kv_shared_layers": 3}
    inner |= {key: value for key, value in more.items() if key != "clusters"}
    clusters, top = more.get("clusters", (2048, 32))
    return {
        "architectures": ["Gemma4UnifiedAssistantForCausalLM" if unified else "Gemma4AssistantForCausalLM"],
        "model_type": "gemma4_unified_assistant" if unified else "gemma4_assistant",
        "backbone_hidden_size": text["hidden_size"],
        "use_ordered_embeddings": "clusters" in more,
        "num_centroids": clusters,
        "centroid_intermediate_top_k": top,
        "tie_word_embeddings": True,
        "text_config": inner,
    }


def _build(folder):
    config = transformers.AutoConfig.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32)
    return model.eval()


def _draw(model, config, seed):
    rng = np.random.Generator(np.random.Philox(seed))
    text = config["text_config"]
    tensors = {}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight":
            continue
        if name.endswith("token_ordering"):
            tensors[name] = rng.permutation(text["vocab_size"])
        elif name.endswith("centroids.weight") or "_projection." in name:
            tensors[name] = rng.standard_normal(tuple(tensor.shape)) * tensor.shape[-1] ** -0.5
        else:
            tensors[name] = families._draw(name, tuple(tensor.shape), text, rng)
    return tensors


def _store(path, tensors):
    whole = {name: np.issubdtype(np.asarray(tensor).dtype, np.integer) for name, tensor in tensors.items()}
    stored = {
        name: safetensors.Stored("I64", tensor) if whole[name] else safetensors.floats(tensor.astype(np.float32), "BF16")
        for name, tensor in tensors.items()
    }
    safetensors.write(path, stored, {"format": "pt"})


def _load(model, path):
    state = {name: torch.from_numpy(np.array(tensor.values())) for name, tensor in safetensors.read(path).items()}
    state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state, strict=True)
    model.tie_weights()


def _past(shared, known, window):
    """The model's keys and values of the first positions, and of these what a window shows of them."""
    cut = {kind: (keys[:, :, :known], values[:, :, :known]) for kind, (keys, values) in shared.items()}
    keys, values = cut["sliding_attention"]
    cut["sliding_attention"] = (keys[:, :, 1 - window :], values[:, :, 1 - window :])
    return cut


@torch.no_grad()
def _guesses(model, drafter, ids):
    """After each position but the last: the guesses, and how clear the least clear of them is."""
    run = model(input_ids=torch.tensor([ids]), use_cache=False, output_hidden_states=True, return_shared_kv_states=True)
    embed, states = model.get_input_embeddings(), run.hidden_states[-1]
    window = drafter.config.get_text_config().sliding_window
    guesses, margin = [], float("inf")
    for i in range(len(ids) - 1):
        past = _past(run.shared_kv_states, i + 1, window)
        token, hidden, chain = ids[i + 1], states[:, i : i + 1], []
        for _ in range(DEPTH):
            both = torch.cat([embed(torch.tensor([[token]])), hidden], -1)
            out = drafter(inputs_embeds=both, position_ids=torch.tensor([[i + 1]]), shared_kv_states=past)
            best = out.logits[0, -1].topk(2)
            margin = min(margin, float(best.values[0] - best.values[1]))
            token, hidden = int(best.indices[0]), out.last_hidden_state
            chain.append(token)
        guesses.append(chain)
    return guesses, margin


def _make_one(source, folder, more, seed):
    config = _config(source, more)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    model = record.build(source)
    record.load(model, layouts.restore(source, record.shapes(model)))
    drafter = _build(folder)
    path = folder / "model.safetensors"
    _store(path, _draw(drafter, config, seed))
    _load(drafter, path)
    vocab = config["text_config"]["vocab_size"]
    ids = np.random.Generator(np.random.Philox(seed + 1000)).integers(0, vocab, TOKENS).tolist()
    guesses, margin = _guesses(model, drafter, ids)
    return {"token_ids": ids, "guesses": guesses}, margin


def make(out, checkpoints, only, first_seed, tries):
    for spec in fixtures.ALL:
        if spec.name not in DRAFTERS or only not in spec.name:
            continue
        folder, more = out / spec.name, DRAFTERS[spec.name]
        folder.mkdir(parents=True, exist_ok=True)
        margins = {}
        for seed in range(first_seed, first_seed + tries):
            margins[seed] = _make_one(checkpoints / spec.name, folder, more, seed)[1]
        best = max(margins, key=margins.get)
        found, margin = _make_one(checkpoints / spec.name, folder, more, best)
        (folder / "guesses.json").write_text(json.dumps(found, separators=(",", ":")) + "\n")
        print(f"{spec.name:28} seed {best}  margin {margin:.4f}", flush=True)
