"""One question, its answer, and how to tell whether another answer is as good."""

import dataclasses
import re


@dataclasses.dataclass
class Ask:
    """want: words that a right answer holds, each a choice divided by |; short: the answer as one word, if there is
    one; pictures are shown before the text."""

    text: str
    answer: str
    want: list
    think: str = ""
    short: str = ""
    pictures: list = dataclasses.field(default_factory=list)
    avoid: list = dataclasses.field(default_factory=list)


def holds(text, words):
    """Whole words, of any case; alternatives are divided by |."""
    low = text.lower()
    return any(re.search(r"(?<![\w-])" + re.escape(w.lower()) + r"(?!\w)", low) for w in words.split("|"))


def judge(check, content, reasoning="", calls=()):
    """check: what a right answer is; see the makers of the skills."""
    if "calls" in check:
        return sorted(map(repr, calls)) == sorted(map(repr, check["calls"]))
    if calls:
        return False
    if not all(holds(content, w) for w in check.get("want", [])):
        return False
    if any(holds(content, w) for w in check.get("avoid", [])):
        return False
    if check.get("upper") and content != content.upper():
        return False
    if check.get("one_word") and len(content.split()) != 1:
        return False
    if "phrase" in check and check["phrase"].lower() not in content.lower():
        return False
    if check.get("sentences") and len(re.findall(r"[.!?](?:\s|$)", content)) < check["sentences"]:
        return False
    if check.get("think") is True and not reasoning.strip():
        return False
    return not (check.get("think") is False and reasoning.strip())
