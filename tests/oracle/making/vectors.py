"""Encoders with tokenizers, and what transformers makes of texts with them: vectors and scores.

A decoder's vectors are those of a checkpoint that is there already, pooled in each way.
"""

import json

import numpy as np

CORPUS = [
    "the quick brown fox jumps over the lazy dog and then sings",
    "many voices, each with its own words, move together through one measure",
    "where does the river meet the sea? at the old harbour, behind the lighthouse",
    "a query asks, a document answers; 42 of them were found in 1999",
    "ein kleines Lied über Flüsse und Häfen",
]
TEXTS = [
    "the river meets the sea",
    "Ünknown wörds: 東京 and many voices!",
    "fox",
    " ".join(CORPUS),
]
SHAPE = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-5,
}
POSITIONS = 310  # a text may cross position 256
LONG = 300
MODES = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token", "last": "pooling_mode_lasttoken"}


def wordpiece():
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    tok = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tok.normalizer = normalizers.BertNormalizer()
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tok.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=220, special_tokens=special))
    tok.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tok


def unigram():
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    tok = Tokenizer(models.Unigram())
    tok.normalizer = normalizers.NFKC()
    tok.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=150, special_tokens=special, unk_token="<unk>")
    tok.train_from_iterator(CORPUS, trainer)
    tok.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return tok


def draw(model, seed):
    """Every tensor at random, large enough that each detail of the architecture shows in the result."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            noise = torch.randn(tensor.shape, generator=generator)
            if "norm" in name.lower() and name.endswith("weight"):
                tensor.copy_(CENTRE.get(model.config.model_type, 1) + 0.3 * noise)
            elif tensor.dim() == 1:
                tensor.copy_(0.2 * noise)
            else:
                tensor.copy_(noise * (0.8 if "embed" in name else 1.6 / tensor.shape[1] ** 0.5))


def write_pooling(folder, mode, normalise, dense=0):
    """As sentence-transformers saves it."""
    kinds = ["Transformer", "Pooling", *["Dense"] * dense, *["Normalize"] * normalise]
    modules = [
        {"idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "", "type": f"sentence_transformers.models.{kind}"}
        for i, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(parents=True, exist_ok=True)
    flags = {flag: key == mode for key, flag in MODES.items()}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 32, **flags}))


def write_dense(folder, sizes, seed):
    """Dense layers as sentence-transformers saves them, the last with an activation; and what they compute."""
    import torch
    from safetensors.torch import save_file

    generator, layers = torch.Generator().manual_seed(seed), []
    for i, (width, out) in enumerate(zip(sizes, sizes[1:])):
        last = i == len(sizes) - 2
        path = folder / f"{i + 2}_Dense"
        path.mkdir(exist_ok=True)
        weight = torch.randn((out, width), generator=generator) / width**0.5
        bias = 0.2 * torch.randn(out, generator=generator)
        save_file({"linear.weight": weight, **({"linear.bias": bias} if last else {})}, path / "model.safetensors")
        kind = "activation.Tanh" if last else "linear.Identity"
        config = {"in_features": width, "out_features": out, "bias": last}
        (path / "config.json").write_text(json.dumps({**config, "activation_function": f"torch.nn.modules.{kind}"}))
        layers.append((weight.double(), bias.double() if last else 0, torch.tanh if last else lambda x: x))
    return layers


def pooled(hidden, mode, normalise, dense=()):
    vector = {"mean": lambda: hidden.mean(0), "cls": lambda: hidden[0], "last": lambda: hidden[-1]}[mode]()
    vector = vector.double()
    for weight, bias, act in dense:
        vector = act(weight @ vector + bias)
    if normalise:
        vector = vector / vector.norm()
    return [round(float(x), 7) for x in vector]


def long_ids(vocab, seed):
    return np.random.Generator(np.random.Philox(seed)).integers(5, vocab, LONG).tolist()


def embeddings(model, tok, vocab, mode, normalise, seed, dense=(), prompt=""):
    import torch

    cases = []
    for given in [*TEXTS, [7], long_ids(vocab, seed)]:
        ids = tok.encode(prompt + given).ids if isinstance(given, str) else given
        with torch.no_grad():
            hidden = model(input_ids=torch.tensor([ids])).last_hidden_state[0]
        cases.append({"input": given, "tokens": len(ids), "vector": pooled(hidden, mode, normalise, dense)})
    return cases


def scores(model, tok, types):
    import torch

    documents = [*TEXTS, *CORPUS]
    found, tokens = [], 0
    for document in documents:
        pair = tok.encode(TEXTS[0], document)
        tokens += len(pair.ids)
        given = {"token_type_ids": torch.tensor([pair.type_ids])} if types else {}
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([pair.ids]), **given).logits
        found.append(float(torch.sigmoid(logits.double()[0, 0])))
    return {"query": TEXTS[0], "documents": documents, "scores": found, "tokens": tokens}


# what a norm's weights are drawn around: Gemma's are added to 1
CENTRE = {"gemma3_text": 0}
LAYERS = ["full_attention", "sliding_attention", "sliding_attention"]
# the classes of encoders with rotary embeddings: of their configs, what they are told, and the width of their heads
ROTARY = {
    "ModernBert": ("ModernBertConfig", {"local_attention": 30, "norm_eps": 1e-5, "hidden_activation": "gelu"}),
    "EuroBert": ("EuroBertConfig", {"num_key_value_heads": 2, "rope_parameters": {"rope_theta": 250000.0}}),
    "NomicBert": ("NomicBertConfig", {"type_vocab_size": 2, "layer_norm_eps": 1e-12}),
    "Gemma3Text": (
        "Gemma3TextConfig",
        {
            "num_key_value_heads": 2,
            "head_dim": 16,
            "query_pre_attn_scalar": 24,
            "layer_types": LAYERS,
            "sliding_window": 21,
            "use_bidirectional_attention": True,
        },
    ),
}
PROMPTS = {"prompts": {"query": "a query: ", "text": "ein Text: "}, "default_prompt_name": "text"}
DENSE = (32, 80, 24)
ENCODERS = [  # name, class, tokenizer, type, pooling, normalise
    ("bert-mean-f32", "BertModel", wordpiece, "float32", "mean", True),
    ("bert-cls-bf16", "BertModel", wordpiece, "bfloat16", "cls", False),
    ("xlmr-cls-f32", "XLMRobertaModel", unigram, "float32", "cls", True),
    ("xlmr-mean-bf16", "XLMRobertaModel", unigram, "bfloat16", "mean", True),
    ("bert-rerank-f32", "BertForSequenceClassification", wordpiece, "float32", None, False),
    ("xlmr-rerank-bf16", "XLMRobertaForSequenceClassification", unigram, "bfloat16", None, False),
    ("modernbert-mean-f32", "ModernBertModel", wordpiece, "float32", "mean", True),
    ("modernbert-rerank-bf16", "ModernBertForSequenceClassification", wordpiece, "bfloat16", None, False),
    ("nomic-mean-f32", "NomicBertModel", wordpiece, "float32", "mean", True),
    ("nomic-rerank-f32", "NomicBertForSequenceClassification", wordpiece, "float32", None, False),
    ("eurobert-cls-bf16", "EuroBertModel", wordpiece, "bfloat16", "cls", True),
    ("eurobert-rerank-f32", "EuroBertForSequenceClassification", wordpiece, "float32", None, False),
    ("embeddinggemma-bf16", "Gemma3TextModel", wordpiece, "bfloat16", "mean", True),
]


def config_of(kind, tok, labels):
    """Of an encoder with rotary embeddings, as its class makes it."""
    import transformers

    name, settings = next(value for key, value in ROTARY.items() if kind.startswith(key))
    shape = {key: SHAPE[key] for key in SHAPE if key not in ("hidden_act", "layer_norm_eps")}
    return getattr(transformers, name)(
        **shape,
        **settings,
        vocab_size=tok.get_vocab_size(),
        max_position_embeddings=POSITIONS,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=None,
        num_labels=labels,
        attn_implementation="eager",
    )


def finish_gemma(folder):
    """The window as the file is to have it: the class halves it, and writes the half."""
    config = json.loads((folder / "config.json").read_text())
    config["sliding_window"] = ROTARY["Gemma3Text"][1]["sliding_window"]
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def make_encoder(folder, kind, tokenizer, dtype, mode, normalise, seed):
    import torch
    import transformers

    bert = kind.startswith("Bert")
    tok = tokenizer()
    if kind.startswith(tuple(ROTARY)):
        config = config_of(kind, tok, 1 if mode is None else 2)
    else:
        config = getattr(transformers, "BertConfig" if bert else "XLMRobertaConfig")(
            vocab_size=tok.get_vocab_size(),
            max_position_embeddings=POSITIONS,
            type_vocab_size=2 if bert else 1,
            pad_token_id=0 if bert else 1,
            num_labels=1 if mode is None else 2,
            attn_implementation="eager",
            **SHAPE,
        )
    model = getattr(transformers, kind)(config).eval()
    draw(model, seed)
    folder.mkdir(parents=True, exist_ok=True)
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    gemma = kind.startswith("Gemma")
    if gemma:
        finish_gemma(folder)
        (folder / "config_sentence_transformers.json").write_text(json.dumps(PROMPTS))
    # the values stored, computed exactly: read again, as angles of rotary embeddings have been rounded, too
    loaded = {"dtype": torch.float32, "attn_implementation": "eager"}
    model = getattr(transformers, kind).from_pretrained(folder, **loaded).eval()
    tok.save(str(folder / "tokenizer.json"))
    if mode:
        write_pooling(folder, mode, normalise, len(DENSE) - 1 if gemma else 0)
        dense = write_dense(folder, DENSE, seed) if gemma else ()
        prompt = PROMPTS["prompts"]["text"] if gemma else ""
        oracle = {"embeddings": embeddings(model, tok, tok.get_vocab_size(), mode, normalise, seed, dense, prompt)}
    else:
        oracle = {"rerank": scores(model, tok, bert or kind.startswith("Nomic"))}
    (folder / "oracle.json").write_text(json.dumps(oracle))


def make_decoder(folder, checkpoint):
    """Token ids only: the checkpoint has no tokenizer."""
    import torch
    import transformers

    model = transformers.AutoModel.from_pretrained(checkpoint, dtype=torch.float32, attn_implementation="eager").eval()
    folder.mkdir(parents=True, exist_ok=True)
    oracle = {"checkpoint": checkpoint.name, "pooling": {}}
    for mode, normalise in (("last", True), ("mean", True), ("cls", False)):
        cases = []
        for ids in ([7], long_ids(model.config.vocab_size, 1)[:37], long_ids(model.config.vocab_size, 2)):
            with torch.no_grad():
                hidden = model(input_ids=torch.tensor([ids])).last_hidden_state[0]
            cases.append({"input": ids, "tokens": len(ids), "vector": pooled(hidden, mode, normalise)})
        oracle["pooling"][mode] = {"normalise": normalise, "embeddings": cases}
    (folder / "oracle.json").write_text(json.dumps(oracle))


def make(out, checkpoints, only):
    for seed, (name, *settings) in enumerate(ENCODERS):
        if only in name:
            make_encoder(out / name, *settings, 100 + seed)
    if only in "qwen3-decoder":
        make_decoder(out / "qwen3-decoder", checkpoints / "qwen3-sharded-bf16")
