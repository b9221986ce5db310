"""What transformers answers: greedy continuations in float32 with eager attention, with the leading logprobs."""

import contextlib
import copy
import json

import numpy as np
import torch
import transformers

TOP = 20
# its text model is only known as a part of Mistral 3
transformers.AutoModelForCausalLM.register(
    transformers.Mistral4Config, transformers.models.mistral4.modeling_mistral4.Mistral4ForCausalLM, exist_ok=True
)


def _turns_pairs():
    """GLM-5's indexer turns neighbouring elements, as its authors' code and transformers 5.17 do; 5.12 turns halves."""
    module = transformers.models.glm_moe_dsa.modeling_glm_moe_dsa
    module.apply_rotary_pos_emb = module.apply_rotary_pos_emb_interleave


_turns_pairs()


def build(folder):
    """The model config.json describes, without weights yet."""
    config = transformers.AutoConfig.from_pretrained(folder).get_text_config()
    for key in ("quantization", "quantization_config"):
        if hasattr(config, key):
            delattr(config, key)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32)
    if hasattr(config, "num_experts") or hasattr(config, "num_local_experts"):
        model.set_experts_implementation("eager")
    return model.eval()


def shapes(model):
    """Names and shapes of what a checkpoint must hold; a tied head is not stored."""
    names = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        names.pop("lm_head.weight")
    return names


def load(model, tensors):
    state = {name: torch.from_numpy(np.array(tensor, np.float32)) for name, tensor in tensors.items()}
    if model.config.tie_word_embeddings:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state, strict=True)
    model.tie_weights()


@torch.no_grad()
def logprobs(model, ids, last):
    """Log-probabilities [last, vocab] of what follows each of the last positions."""
    logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -last:]
    return torch.log_softmax(logits.double(), -1).numpy()


def _leading(row):
    """The top ids, by falling logprob, then rising id."""
    order = np.lexsort((np.arange(len(row)), -row))[:TOP]
    return [[int(i), round(float(row[i]), 6)] for i in order]


def continuation(model, prompt, steps):
    ids, record = list(prompt), []
    for _ in range(steps):
        record.append(_leading(logprobs(model, ids, 1)[0]))
        ids.append(record[-1][0][0])
    return {"prompt_token_ids": list(prompt), "token_ids": ids[len(prompt) :], "steps": record}


def is_steady(model, records):
    """Whether rounding changes no choice: of positions with nearly equal scores, either may be attended to."""
    exact = copy.deepcopy(model).double()
    for record in records:
        rows = logprobs(exact, record["prompt_token_ids"] + record["token_ids"][:-1], len(record["steps"]))
        if any(abs(row[i] - value) > 2e-5 for row, step in zip(rows, record["steps"]) for i, value in step):
            return False
    return True


def confirm(folder, records):
    """transformers, reading the folder by itself, must agree with what was recorded from our own reading of it."""
    load = transformers.AutoModelForCausalLM.from_pretrained
    quantised = json.loads((folder / "config.json").read_text()).get("quantization_config", {})
    more = {}
    if quantised.get("quant_method") == "mxfp4":  # what its values are, not what its kernels make of them
        more["quantization_config"] = transformers.Mxfp4Config(dequantize=True)
    model = load(folder, attn_implementation="eager", dtype=torch.float32, **more).float().eval()
    for record in records:
        rows = logprobs(model, record["prompt_token_ids"] + record["token_ids"][:-1], len(record["steps"]))
        error = max(abs(row[i] - value) for row, step in zip(rows, record["steps"]) for i, value in step)
        assert error < 1e-4, f"{folder.name}: transformers reads it differently: {error}"


# --- how well a model suits the test ----------------------------------------------------------------------------------


def margins(records):
    return np.array([step[0][1] - step[1][1] for record in records for step in record["steps"]])


def _int8(x, group):
    blocks = x.reshape(*x.shape[:-1], -1, group)
    step = blocks.abs().amax(-1, keepdim=True) / 127
    return (torch.round(blocks / step.clamp_min(1e-30)) * step).reshape(x.shape)


def _bf16(x):
    return x.bfloat16().float()


@contextlib.contextmanager
def rough(model, group):
    """The model with about the rounding of fast precision: int8 (group > 0) or bf16 inputs of matmuls, bf16 keys and
    values. Not the real thing, but of its size: it shows whether the bound for fast precision can be met."""

    def on_input(_, args):
        x = args[0]
        return (_int8(x, group) if group and x.shape[-1] % group == 0 else _bf16(x), *args[1:])

    handles = []
    for name, module in model.named_modules():
        exact = name.endswith(("in_proj_a", "in_proj_b", "in_proj_ba", "shared_expert_gate")) or ".indexer." in name
        if isinstance(module, torch.nn.Linear) and not exact or name.endswith("mlp.experts"):
            handles.append(module.register_forward_pre_hook(on_input))
        if name.endswith(("k_proj", "v_proj", "k_norm", "kv_a_layernorm")):
            handles.append(module.register_forward_hook(lambda _module, _args, out: _bf16(out)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def rough_errors(model, records, group):
    """Logprob errors of the rough model over the recorded ids, all steps."""
    errors = []
    with rough(model, group):
        for record in records:
            ids = record["prompt_token_ids"] + record["token_ids"][:-1]
            rows = logprobs(model, ids, len(record["steps"]))
            errors += [abs(row[i] - value) for row, step in zip(rows, record["steps"]) for i, value in step]
    return np.array(errors)
