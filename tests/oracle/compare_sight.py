#!/usr/bin/env python3
"""Asks a motet server about pictures and compares its answers with what transformers answered (oracle.json).

    compare_sight.py                       the committed checkpoints, both precisions
    compare_sight.py --dir DIR             any folder of checkpoints made by make.py --sight; pictures from --pictures
    compare_sight.py --filter gemma --precision fast --case video

Held to: the prompt's tokens are equal; logprobs are within 0.01 in reference precision and 0.2 in fast (mixtures of
experts: 99 % of them); the greedy token is the oracle's wherever its margin exceeds twice the bound. Needs nothing
beyond Python's standard library.
"""

import base64
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "api"))

import compare  # noqa: E402
from served import Server, features  # noqa: E402

BOUND = {"reference": 0.01, "fast": 0.2}


def data_url(kind, file):
    return f"data:{kind};base64,{base64.b64encode(file.read_bytes()).decode()}"


def part_of(part, pictures):
    """A part of a message as clients of OpenAI's API write it."""

    def image(name):
        return data_url("image/png", pictures / f"{name}.png")

    wishes = part.get("wishes", {})
    if part["type"] == "image":
        return {"type": "image_url", "image_url": {"url": image(part["file"]), **wishes}}
    if "frames" in part:
        return {"type": "video", "video": [image(name) for name in part["frames"]], **wishes}
    if part["type"] == "video":
        return {"type": "video_url", "video_url": {"url": data_url("video/mp4", pictures / "video.mp4"), **wishes}}
    return part


def shows_file(case):
    """Whether a video is in it that FFmpeg has to read."""
    return any(
        part["type"] == "video" and "frames" not in part for message in case["messages"] for part in message["content"]
    )


def ask(server, case, pictures):
    """The answer in the form that compare.py knows."""
    messages = [
        {"role": message["role"], "content": [part_of(part, pictures) for part in message["content"]]}
        for message in case["messages"]
    ]
    body = {
        "messages": messages,
        "max_tokens": len(case["token_ids"]),
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": compare.TOP,
        "ignore_eos": True,
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
    }
    answer = server.post("/v1/chat/completions", body)
    if answer.status != 200:
        raise compare.Wrong(f"status {answer.status}: {answer.body[:300].decode(errors='replace')}")
    answer = answer.json()
    choice = answer["choices"][0]

    def token(entry):
        return [int(entry["token"].removeprefix("token_id:")), entry["logprob"]]

    steps = [
        {"id": token(entry)[0], "logprob": entry["logprob"], "top": [token(other) for other in entry["top_logprobs"]]}
        for entry in choice["logprobs"]["content"]
    ]
    return {"prompt_token_ids": answer["prompt_token_ids"], "token_ids": choice["token_ids"], "steps": steps}


def compare_case(server, case, options, precision, result):
    answer = ask(server, case, options.pictures)
    if answer["prompt_token_ids"] != case["prompt_token_ids"]:
        raise compare.Wrong(
            f"{len(answer['prompt_token_ids'])} prompt tokens are not the {len(case['prompt_token_ids'])} of the oracle"
        )
    compare.check_form(answer, case)
    compare.compare_prompt(answer, case, BOUND[precision], result)


def compare_folder(options, folder, precision):
    oracle = json.loads((folder / "oracle.json").read_text())
    result = compare.Result()
    with Server(options.motet, str(folder), "--precision", precision, *options.extra) as server:
        for case in oracle["cases"]:
            if options.case not in case["name"] or (shows_file(case) and not options.videos):
                continue
            result.steps += len(case["steps"])
            try:
                compare_case(server, case, options, precision, result)
            except compare.Wrong as wrong:
                result.failures.append(f"{case['name']}: {wrong}")
            except (KeyError, TypeError, ValueError, IndexError) as error:
                result.failures.append(f"{case['name']}: malformed answer: {error!r}")
    share = 0.99 if oracle["moe"] and precision == "fast" else 1.0
    worst = result.quantile(share)
    if worst > BOUND[precision] and (result.errors or not result.failures):
        result.failures.append(f"logprobs differ by {worst:.6f}, bound {BOUND[precision]} at {share:.0%}")
    return result


def main():
    parser = compare.options_of(__doc__, "sighted")
    parser.add_argument("--pictures", type=Path, default=HERE / "pictures", help="folder of what is shown")
    parser.add_argument("--case", default="", help="only cases whose name contains this")
    options = parser.parse_args()
    options.videos = "video" in features(options.motet)
    if not options.videos:
        print("oracle: motet was built without video, and cases with files of it are left out")
    return compare.compare_all(options, compare_folder)


if __name__ == "__main__":
    sys.exit(main())
