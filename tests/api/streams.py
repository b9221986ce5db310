"""What a stream of events comes to, in each dialect: the answer that the same request gets when it is not streamed."""

import json


def join(into, piece, keys):
    for key in keys:
        if piece.get(key) is not None:
            into[key] = (into.get(key) or "") + piece[key]


def chat_choice(choices, delta_choice):
    c = choices.setdefault(delta_choice["index"], {"index": delta_choice["index"], "message": {}, "logprobs": None})
    delta, message = delta_choice["delta"], c["message"]
    join(message, delta, ("content", "reasoning", "reasoning_content"))
    if delta.get("function_call"):
        join(message.setdefault("function_call", {}), delta["function_call"], ("name", "arguments"))
    for call in delta.get("tool_calls", []):
        calls = message.setdefault("tool_calls", [])
        kind, text = ("custom", "input") if "custom" in call else ("function", "arguments")
        if call["index"] == len(calls):
            calls.append({"id": call["id"], "type": call["type"], kind: {"name": call[kind]["name"], text: ""}})
        calls[call["index"]][kind][text] += call[kind][text]
    merge_choice(c, delta_choice)


def merge_choice(c, piece):
    """What chat and completions have in common."""
    if piece.get("logprobs"):
        c["logprobs"] = c["logprobs"] or {}
        for key, value in piece["logprobs"].items():
            c["logprobs"][key] = (c["logprobs"].get(key) or []) + value if isinstance(value, list) else value
    if piece.get("token_ids") is not None:
        c["token_ids"] = c.get("token_ids", []) + piece["token_ids"]
    for key in ("finish_reason", "stop_reason", "matched_stop", "prompt_token_ids"):
        if key in piece:
            c[key] = piece[key]


def choices_of(events, add):
    choices = {}
    for event in events:
        for choice in event["choices"]:
            add(choices, choice)
    return [choices[i] for i in sorted(choices)]


def chat(events):
    assert events[-1] == "[DONE]", "a stream ends with [DONE]"
    return {"choices": choices_of(events[:-1], chat_choice)}


def chat_whole(answer):
    choices = json.loads(json.dumps(answer["choices"]))
    for c in choices:
        del c["message"]["role"], c["message"]["refusal"]
        if c["message"]["content"] is None:
            c["message"]["content"] = ""
    return {"choices": choices}


def completion_choice(choices, piece):
    c = choices.setdefault(piece["index"], {"index": piece["index"], "logprobs": None})
    join(c, piece, ("text",))
    merge_choice(c, piece)


def completions(events):
    assert events[-1] == "[DONE]", "a stream ends with [DONE]"
    return {"choices": choices_of(events[:-1], completion_choice)}


def completions_whole(answer):
    """What is not there about the prompt is null, and no stream has it."""
    return {"choices": [{key: value for key, value in c.items() if value is not None or not key.startswith("prompt_")}
                        for c in answer["choices"]]}


def messages(events):
    """Checks the order of events on the way."""
    assert [e["type"] for e in events[-2:]] == ["message_delta", "message_stop"], "the end of a stream"
    assert events[0]["type"] == "message_start", "the beginning of a stream"
    message = dict(events[0]["message"], content=[])
    blocks, opened = message["content"], False
    for e in events[1:-2]:
        if e["type"] == "ping":
            continue
        if e["type"] == "content_block_start":
            assert not opened and e["index"] == len(blocks), "blocks come one after the other"
            blocks.append(dict(e["content_block"]))
            opened = True
        elif e["type"] == "content_block_stop":
            assert opened and e["index"] == len(blocks) - 1, "the open block ends"
            opened = False
            if "partial" in blocks[-1]:
                blocks[-1]["input"] = arguments(blocks[-1].pop("partial"))
        else:
            assert opened and e["type"] == "content_block_delta" and e["index"] == len(blocks) - 1, "open blocks grow"
            kind, block = e["delta"]["type"], blocks[-1]
            if kind == "input_json_delta":
                block["partial"] = block.get("partial", "") + e["delta"]["partial_json"]
            else:
                join(block, e["delta"], ("text", "thinking", "signature"))
    assert not opened, "every block ends"
    message.update(events[-2]["delta"])
    message["usage"] = events[-2]["usage"]
    return message


def item_of(item, events):
    """What the events about an item come to; the item itself is as it began."""
    made, text = json.loads(json.dumps(item)), ""
    for e in events:
        kind = e["type"].split(".")[-1]
        if kind == "delta":
            text += e["delta"]
        elif kind == "done" and "part" not in e:
            assert e.get("text", e.get("arguments", e.get("input"))) == text, "what is done is what was told"
        elif kind == "done":
            assert e["part"]["text"] == text, "a part is what was told"
            made["summary" if "summary" in e["type"] else "content"].append(e["part"])
    for key in ("arguments", "input"):
        if key in made:
            made[key] = text
    return made


def responses(events):
    assert [e["sequence_number"] for e in events] == list(range(len(events))), "events are numbered"
    assert [e["type"] for e in events[:2]] == ["response.created", "response.in_progress"], "the beginning"
    final, at = events[-1]["response"], 2
    assert events[-1]["type"] == ("response.completed" if final["status"] == "completed" else "response.incomplete")
    for index, item in enumerate(final["output"]):
        added = events[at]
        about = [e for e in events[at + 1:-1] if e.get("output_index") == index]
        done = about.pop()
        assert added["type"] == "response.output_item.added" and added["output_index"] == index, "items in their order"
        assert all(e["item_id"] == item["id"] for e in about), "events of one item"
        assert done["type"] == "response.output_item.done" and done["item"] == item, "the item as in the response"
        made = item_of(added["item"], about)
        if "encrypted_content" in item:  # comes once it is whole
            made["encrypted_content"] = "motet:" + (made.get("content") or made["summary"])[0]["text"]
        assert dict(made, status=None) == dict(item, status=None), "the item as it was told"
        at += len(about) + 2
    assert at == len(events) - 1, "nothing else is told"
    return final


def ollama(events):
    assert [e["done"] for e in events] == [False] * (len(events) - 1) + [True], "the last one is done"
    answer = dict(events[-1])
    said = answer["message"] = dict(answer["message"]) if "message" in answer else {"content": answer.pop("response")}
    for e in events[:-1]:
        piece = e["message"] if "message" in e else dict(e, content=e["response"])
        join(said, piece, ("content", "thinking"))
        for into, where, key in ((said, piece, "tool_calls"), (answer, e, "logprobs")):
            if key in where:
                into[key] = into.get(key, []) + where[key]
    return answer


def ollama_whole(answer):
    if "message" in answer:
        return answer
    rest = {k: v for k, v in answer.items() if k not in ("response", "thinking")}
    said = {k: answer[v] for k, v in (("content", "response"), ("thinking", "thinking")) if v in answer}
    return dict(rest, message=said)


def llama(events):
    """Several choices are a list, in the order of their numbers."""
    made = {}
    for e in events:
        into = made.setdefault(e["index"], {"content": "", "completion_probabilities": []})
        if e["stop"]:
            assert e["content"] == "" and e["tokens"] == [], "the text came before"
            e = {k: v for k, v in e.items() if k != "content"}
            into.update({k: v for k, v in e.items() if k not in ("tokens", "generation_settings")})
        else:
            assert not into.get("stop"), "nothing comes behind the end"
            into["content"] += e["content"]
            into["completion_probabilities"] += e.get("completion_probabilities", [])
    return [made[i] for i in sorted(made)]


def llama_whole(answer):
    made = []
    for choice in answer if isinstance(answer, list) else [answer]:
        choice = dict(choice, completion_probabilities=choice.get("completion_probabilities", []))
        made.append({k: v for k, v in choice.items() if k not in ("tokens", "generation_settings")})
    return made


def gemini_path(path, stream):
    """The path of the same request, streamed as events or not."""
    base = path.split("?")[0].replace(":streamGenerateContent", ":generateContent")
    return base.replace(":generateContent", ":streamGenerateContent") + "?alt=sse" if stream else base


def gemini_add(parts, part):
    """Text goes on with text of its kind; one that is empty says nothing."""
    if part.get("text") and parts and "text" in parts[-1] and parts[-1].get("thought") == part.get("thought"):
        parts[-1]["text"] += part["text"]
    elif part != {"text": ""}:
        parts.append(dict(part))


def gemini(events):
    candidates = {}
    for event in events:
        assert len(event["candidates"]) == 1, "an event is about one candidate"
        piece = event["candidates"][0]
        c = candidates.setdefault(piece["index"], {"parts": [], "logprobs": {}})
        assert "finishReason" not in c, "nothing comes behind the end"
        for part in piece["content"]["parts"]:
            gemini_add(c["parts"], part)
        for key, value in piece.get("logprobsResult", {}).items():
            c["logprobs"].setdefault(key, []).extend(value)
        c.update({key: piece[key] for key in ("finishReason", "tokenCount") if key in piece})
    assert all("finishReason" in c for c in candidates.values()), "every candidate ends"
    return {"candidates": [candidates[i] for i in sorted(candidates)], "usage": events[-1]["usageMetadata"]}


def gemini_whole(answer):
    if isinstance(answer, list):  # a stream without "alt=sse"
        return gemini(answer)
    made = gemini([dict(answer, candidates=[c]) for c in answer["candidates"]])
    return dict(made, usage=answer["usageMetadata"])


def arguments(text):
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"raw_arguments": text}


def same(answer):
    return answer


DIALECTS = {"/v1/chat/completions": (chat, chat_whole), "/v1/completions": (completions, completions_whole),
            "/v1/messages": (messages, same), "/v1/responses": (responses, same),
            "/api/v0/chat/completions": (chat, chat_whole), "/api/v0/completions": (completions, completions_whole),
            "/completion": (llama, llama_whole), "/infill": (llama, llama_whole),
            "/api/chat": (ollama, ollama_whole), "/api/generate": (ollama, ollama_whole),
            "generateContent": (gemini, gemini_whole), "streamGenerateContent": (gemini, gemini_whole)}


def generate(events):
    """Each event of SGLang's has all so far; several choices are a list, in the order of their numbers."""
    assert events[-1] == "[DONE]", "the stream has its end"
    made = {}
    for e in events[:-1]:
        before = made.get(e.get("index"), {"text": "", "output_ids": []})
        assert e["text"].startswith(before["text"]), "what was said stays"
        assert e["output_ids"][:len(before["output_ids"])] == before["output_ids"], "and so do its tokens"
        made[e.get("index")] = e
    return [{k: v for k, v in made[i].items() if k != "index"} for i in sorted(made, key=lambda i: i or 0)]


def generate_whole(answer):
    return answer if isinstance(answer, list) else [answer]


DIALECTS["/generate"] = (generate, generate_whole)


def compare(path, events, answer):
    """Two things that should be equal; None where the path has no streams."""
    name = path.split("?")[0].split(":")[-1]
    if name not in DIALECTS:
        return None
    assemble, reduce = DIALECTS[name]
    return assemble(events), reduce(answer)
