"""Right answers to held-out questions, by skill: greedy answers of the network itself, many at a time."""

import re
import sys

import numpy as np
import torch

import draw
from data.ask import judge
from data.mix import SKILLS, questions
from data.scene import SIDES
from net import Packing
from pack import Reader

LONGEST = {"story": 220, "thinking": 220, "two calls": 220, "calls": 140, "phrase": 160, "upper case": 160, "who": 110}


def parsed(text, thinks):
    """An answer in its parts: content, reasoning, calls."""
    reasoning = ""
    if thinks:
        reasoning, closed, text = text.partition("</think>")
        if not closed:
            return "", reasoning, []
    text = text.replace("<|im_end|>", "").strip()
    calls = []
    for block in re.findall(r"<tool_call>\n<function=(.*?)>\n(.*?)</function>\n</tool_call>", text, re.S):
        calls.append(
            {"name": block[0], "arguments": dict(re.findall(r"<parameter=(.*?)>\n(.*?)\n</parameter>", block[1], re.S))}
        )
    return re.sub(r"<tool_call>.*?</tool_call>", "", text, flags=re.S).strip(), reasoning, calls


def plain(calls):
    """Arguments as the answer's text has them."""

    def written(v):
        return {True: "true", False: "false"}[v] if isinstance(v, bool) else str(v)

    return [{"name": c["name"], "arguments": {k: written(v) for k, v in c["arguments"].items()}} for c in calls]


@torch.no_grad()
def answers(box, reader, items, side, longest, device):
    """Continues each conversation; runs the whole rows again for each token, which is simple and fast enough."""
    prompts, pictures, first = [], [], []
    for made in items:
        ids, places = reader.read({**made, "messages": made["messages"][:-1]}, side, True)
        prompts.append((ids, places))
        first.append(len(pictures))
        pictures += [draw.described(s) for s in made["pictures"]]
    length = -(-(max(len(p[0]) for p in prompts) + longest) // 64) * 64
    n = len(items)
    ids, places = np.zeros((n, length), np.int64), np.zeros((3, n, length), np.int64)
    for i, (x, p) in enumerate(prompts):
        ids[i, : len(x)], places[:, i, : len(x)] = x, p
        places[:, i, len(x) :] = p.max() + 1 + np.arange(length - len(x))
    lengths = torch.tensor([len(p[0]) for p in prompts], device=device)
    ids, places = torch.tensor(ids, device=device), torch.tensor(places, device=device)
    seen = None
    if pictures:
        drawn = draw.drawn(torch.tensor(np.stack(pictures), device=device), *side)
        still = torch.zeros(len(pictures), device=device)
        slots = (ids.flatten() == reader.pad).nonzero().flatten()
        seen = (draw.worn(drawn, still, still), slots)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    packing = Packing.of(places, torch.zeros_like(ids), dtype)
    rope, going = box.rope(places), torch.ones(n, dtype=torch.bool, device=device)
    start, every = lengths.clone(), torch.arange(n, device=device)
    with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
        shown = box.embed(ids, *seen) if seen else box.embed(ids)
        for _ in range(longest):
            hidden = box.hidden(shown, packing, rope)[every, lengths - 1]
            best = box.logits(hidden).float().argmax(-1)
            ids[every, lengths] = torch.where(going, best, ids[every, lengths])
            shown[every, lengths] = torch.where(going[:, None], box.embed(best[:, None])[:, 0], shown[every, lengths])
            going &= best != reader.end
            lengths += going
            if not going.any() or int(lengths.max()) >= length:
                break
    return [reader.encoder.decode(ids[i, start[i] : lengths[i]].tolist()) for i in range(n)]


def table(box, count, seed, device="cuda", skills=SKILLS, show=0):
    """Returns skill -> share of right answers, and prints some that are wrong."""
    reader, shares, wrong = Reader(), {}, []
    box.eval()
    for k, skill in enumerate(skills):
        items = questions(skill, count, seed)
        said = answers(box, reader, items, SIDES[k % 3], LONGEST.get(skill, 80), device)
        right = 0
        for made, text in zip(items, said):
            last = made["messages"][-1]
            content, reasoning, calls = parsed(text, made["thinks"])
            check = dict(last["check"])
            if "calls" in check:
                check["calls"] = plain(check["calls"])
            good = judge(check, content, reasoning, calls)
            right += good
            if not good:
                wrong.append((skill, made["messages"][-2]["content"], last["content"] or last.get("tool_calls"), text))
        shares[skill] = right / count
    box.train()
    per = {}
    for skill, asked, wanted, text in wrong:
        per[skill] = per.get(skill, 0) + 1
        if per[skill] <= show:
            print(
                f"wrong [{skill}] {str(asked)[-150:]!r}: wanted {str(wanted)[:160]!r}, got {text[:160]!r}",
                file=sys.stderr,
                flush=True,
            )
    return shares
