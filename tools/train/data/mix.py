"""Conversations: questions of all skills, mixed as people mix them. Each is a dict of messages, tools and pictures;
every message of the assistant carries its skill and what a right answer is."""

import json
import re

from . import memory, reading, rules as rl, sight, sums, talk, tools as tl, unseen, words
from .dice import Dice, vary
from .kinds import could

SHOWN = sight.KINDS + reading.KINDS + unseen.KINDS
SIGHT = [(skill, make) for skill, make, share in SHOWN for _ in range(share)]
TEXT = (
    [("sums", sums.sums)] * 9
    + [("big sums", sums.big)] * 5
    + [("too hard", sums.hard)] * 3
    + [("other languages", talk.foreign)] * 4
    + [("who", talk.who)] * 3
    + [("who", talk.can)] * 3
    + [("talk", talk.small)] * 10
    + [("talk", talk.strange)] * 7
    + [("repeat", memory.repeat)] * 6
    + [("story", talk.story)] * 2
    + [("talk", sight.nothing)]
)
MAY_THINK = 0.2


class Talk:
    """A conversation that grows."""

    def __init__(self, dice, rules=None):
        self.dice, self.rules = dice, rules or rl.Rules()
        self.messages, self.pictures, self.tools = [], [], None
        self.thinks = dice.chance(MAY_THINK)
        if self.rules.text:
            self.messages.append({"role": "system", "content": self.rules.text})

    def answer(self, skill, text, check, think="", calls=None):
        message = {"role": "assistant", "content": text, "skill": skill, "check": check}
        if calls:
            message["tool_calls"] = [{"type": "function", "function": {"name": n, "arguments": a}} for n, a in calls]
            check["calls"] = [{"name": n, "arguments": a} for n, a in calls]
        check["think"] = self.thinks
        if self.thinks:
            message["reasoning_content"] = think
        self.messages.append(message)

    def ask(self, skill, ask):
        content = vary(self.dice, ask.text, ask.want if skill == "repeat" else ())
        if ask.pictures:
            self.pictures += ask.pictures
            shown = [{"type": "image"} for _ in ask.pictures]
            said = [{"type": "text", "text": content}]
            content = shown + said if self.dice.chance(0.8) else said + shown
        self.messages.append({"role": "user", "content": content})
        want = ask.want
        if self.rules.one_word and ask.short:
            want = [self.rules.applied(ask.short, ask.short)]
        elif self.rules.called and "I am Box," in ask.answer:
            want = [*want, self.rules.called]
        check = {"want": want, "avoid": ask.avoid, **self.rules.check(ask.short)}
        if skill == "story":
            check["sentences"] = 6
        self.answer(skill, self.rules.applied(ask.answer, ask.short), check, ask.think)

    def call(self, chosen, skill=None, own=False):
        """A request to tools, their results, and the answer. own: results in the tool's own words."""
        dice, d = self.dice, [t.request(self.dice) for t in chosen]
        text = d[0][0]
        if len(d) == 2:
            text = tl.both(dice, text, d[1][0], d[1][1].values())
        values = [v for x in d for v in tl.spoken(x[1].values())]
        self.messages.append({"role": "user", "content": vary(dice, text, values) if dice.chance(0.4) else text})
        calls = [(t.name, x[1]) for t, x in zip(chosen, d)]
        named = " and ".join(n for n, _ in calls)
        self.answer(skill or ("two calls" if len(d) == 2 else "calls"), "", {}, f"I call {named}.", calls)
        own = own or not dice.held and dice.chance(0.2)
        said = [tl.news(dice) if own else tl.written(dice, x[2]) for x in d]
        for text in said:
            self.messages.append({"role": "tool", "content": text})
        answers = [tl.SAYS.format(text) for text in said] if own else [x[3] for x in d]
        want = [text.rstrip(".!") for text in said] if own else [w for x in d for w in tl.uses(x[2])]
        final = self.rules.applied(" ".join(answers), "")
        check = {"want": want, **self.rules.check("")}
        self.answer("plain results" if own else "results", final, check, "The tool has answered.")

    def done(self):
        """Clients often send earlier turns back without what was thought in them."""
        said = [m for m in self.messages if m["role"] == "assistant"]
        if self.thinks and self.dice.chance(0.5):
            for message in said[:-1]:
                message.pop("reasoning_content", None)
        return {"messages": self.messages, "tools": self.tools, "pictures": self.pictures, "thinks": self.thinks}


def plain_ask(dice, pictures=True):
    skill, make = dice.any(SIGHT if pictures and dice.chance(0.65) else TEXT)
    return skill, make(dice)


def single(dice):
    t = Talk(dice, rl.rules(dice, "plain") if dice.chance(0.2) else None)
    t.ask(*plain_ask(dice))
    return t.done()


def about_one_picture(dice, back=False):
    """Another question about what was already shown. back: after talk of other things."""
    kind = dice.any(["plain", "upper", "phrase"]) if back else "plain"
    t = Talk(dice, rl.rules(dice, kind) if dice.chance(0.25 if back else 0.15) else None)
    s = sight.sc.scene(dice, dice.any([1, 1, 2, 2, 3] if back else [1, 2, 2, 3]))
    kept, sight.sc.scene = sight.sc.scene, lambda *_: s
    try:
        makers = [
            ("shapes", sight.describe),
            ("colours", sight.colour_of),
            ("colours", sight.colour_of),
            ("shapes", sight.shape_of),
            ("shapes", sight.is_there),
            ("colours", sight.ground),
            ("not there", unseen.absent),
        ]
        for i in range(dice.number(2, 4)):
            for _ in range(dice.any([0, 1, 1, 2, 3]) if back else 0):
                f = memory.fact(dice)
                skill, ask = ("told", memory.tell(dice, f)) if dice.chance(0.4) else plain_ask(dice, False)
                if not (t.rules.upper and skill == "story" or "no picture" in ask.want):
                    t.ask(skill, ask)
            skill, make = dice.any(makers)
            ask = make(dice)
            ask.pictures = ask.pictures if i == 0 else []
            t.ask("looking back" if back and i else skill, ask)
    finally:
        sight.sc.scene = kept
    return t.done()


def looking_back(dice):
    return about_one_picture(dice, True)


def hard(dice):
    """What takes the longest to learn, one after the other."""
    t = Talk(dice)
    for _ in range(dice.any([1, 1, 2])):
        skill, make = dice.any(
            [
                ("words", reading.read),
                ("words", reading.read),
                ("words", reading.read),
                ("words", reading.read),
                ("words", reading.read),
                ("letters", reading.letter),
                ("digits", reading.number),
                ("digits", reading.number),
                ("counts", sight.count),
                ("counts", sight.count),
                ("positions", sight.where),
            ]
        )
        t.ask(skill, make(dice))
    return t.done()


def remembering(dice):
    """Facts told, other things talked of, facts asked for."""
    t = Talk(dice, rl.rules(dice, dice.any(["plain", "upper", "phrase", "one_word"])) if dice.chance(0.25) else None)
    facts, left = [], dice.any([1, 1, 2, 3])
    for _ in range(left):
        f = memory.fact(dice, [x.key for x in facts])
        facts.append(f)
        t.ask(*(("memory", memory.at_once(dice, f)) if dice.chance(0.15) else ("told", memory.tell(dice, f))))
        for _ in range(dice.any([0, 0, 0, 1, 1, 2])):
            skill, ask = plain_ask(dice, dice.chance(0.5))
            if not (t.rules.upper and skill == "story"):
                t.ask(skill, ask)
    if dice.chance(0.15):
        f = memory.fact(dice, [x.key for x in facts])
        t.ask("memory", memory.unknown(dice, f))
    if dice.chance(0.1):
        f = facts[0]
        new = memory.fact(dice)
        if new.key == f.key:
            facts[0] = new
            t.ask("told", memory.tell(dice, new))
    dice.random.shuffle(facts)
    for f in facts:
        t.ask("memory", memory.recall(dice, f))
    return t.done()


def ruled(dice, kind=None):
    """A system prompt with a rule, and anything after it."""
    kind = kind or dice.any(["one_word", "one_word", "upper", "phrase", "phrase", "called"])
    made = rl.rules(dice, kind)
    t = Talk(dice, made)
    for i in range(dice.any([1, 1, 2, 3])):
        skill, ask = (
            ("who", talk.who(dice)) if kind == "called" and dice.chance(0.5) else plain_ask(dice, dice.chance(0.5))
        )
        for _ in range(30):
            if not (made.one_word and not ask.short or made.upper and skill == "story"):
                break
            skill, ask = plain_ask(dice, dice.chance(0.5))
        t.ask({"one_word": "one word", "upper": "upper case", "phrase": "phrase"}.get(kind, skill), ask)
    return t.done()


def tooled(dice, kind=None, own=False):
    """Tools declared: called, called twice, of no use, or not needed."""
    t = Talk(dice, rl.rules(dice, dice.any(["plain", "plain", "phrase", "upper"])) if dice.chance(0.4) else None)
    box = tl.toolbox(dice)
    t.tools = [x.declared for x in box]
    for _ in range(dice.any([1, 1, 2])):
        what = kind or dice.any(["one"] * 5 + ["two"] * 4 + ["none"] * 2 + ["other"] * 2)
        if what == "two":
            t.call([dice.any(box), dice.any(box)])
        elif what == "one":
            t.call([dice.any(box)], own=own)
        elif what == "none":
            used = [x.kind for x in box if not isinstance(x, tl.Invented)]
            absent = dice.any([k for k in tl.KINDS if k not in used and not could(used, k)])
            text = tl.Tool(dice, absent).request(dice)[0]
            t.messages.append({"role": "user", "content": text})
            t.answer(
                "no tool",
                t.rules.applied(tl.NO_TOOL, ""),
                {"want": ["no tool"], **t.rules.check("")},
                "None of my tools does that.",
            )
        else:
            skill, ask = plain_ask(dice, dice.chance(0.3))
            while skill in ("talk", "other languages", "unknown"):
                skill, ask = plain_ask(dice, dice.chance(0.3))
            t.ask(skill, ask)
    return t.done()


def filler(dice, length):
    """Text to be read over: rules, notes, code-like lines."""
    lines = []
    while sum(map(len, lines)) < length:
        kind = dice.number(0, 4)
        if kind == 0:
            lines.append("# " + words.sentence(dice, 2, 4).rstrip("."))
        elif kind == 1:
            lines += ["- " + words.sentence(dice) for _ in range(dice.number(2, 5))]
        elif kind == 2:
            lines.append(" ".join(words.sentence(dice) for _ in range(dice.number(2, 6))))
        elif kind == 3:
            lines.append(f"{dice.any(words.FILLER)}_{dice.any(words.FILLER)} = {dice.number(0, 500)}")
        else:
            lines.append(
                json.dumps({dice.any(words.FILLER): dice.number(0, 99), dice.any(words.FILLER): dice.any(words.THINGS)})
            )
    return "\n".join(lines)


def long(dice, length):
    """Any conversation behind or around much text that has nothing to do with it."""
    made = conversation(dice, False)
    text = filler(dice, length)
    first = made["messages"][0]
    if first["role"] == "system":
        first["content"] = dice.any([first["content"] + "\n\n" + text, text + "\n\n" + first["content"]])
    elif dice.chance(0.7):
        made["messages"].insert(0, {"role": "system", "content": text})
    else:
        made["messages"][:0] = [
            {"role": "user", "content": text},
            {"role": "assistant", "content": "I have read it.", "skill": "talk", "check": {}},
        ]
    return made


MAKERS = [single] * 16 + [hard] * 24 + [about_one_picture] * 3 + [remembering] * 5 + [ruled] * 7 + [tooled] * 7
MAKERS += [looking_back] * 7


def conversation(dice, may_be_long=True):
    if may_be_long and dice.chance(0.05):
        return long(dice, dice.number(300, 2500))
    return dice.any(MAKERS)(dice)


# Skills that are another one on harder ground; skills whose answers are no test of others.
ALSO = {"names": "memory", "names in calls": "calls", "many": "counts"}
OTHER = ("told", "talk", "unknown", "other languages", "too hard")


def _far(check):
    """Whether the answer is about a name beyond plain English."""
    said = list(check.get("want", [])) + [v for c in check.get("calls", []) for v in c["arguments"].values()]
    return any(isinstance(v, str) and re.search(r"[^\x00-\x7f]|\w[' -]\w", v) for v in said)


def questions(skill, count, seed):
    """Held-out conversations that end with an answer of this skill, which is what is judged."""
    found, at = [], 0
    while len(found) < count:
        at += 1
        dice = Dice(f"{seed} {skill} {at}", held=True)
        dice.exotic = 1.0 if skill in ("names", "names in calls") else 0.0
        dice.many = skill == "many"
        wanted = {
            "calls": lambda: tooled(dice, "one"),
            "results": lambda: tooled(dice, "one"),
            "plain results": lambda: tooled(dice, "one", True),
            "looking back": lambda: looking_back(dice),
            "names": lambda: remembering(dice),
            "names in calls": lambda: tooled(dice, "one"),
            "two calls": lambda: tooled(dice, "two"),
            "no tool": lambda: tooled(dice, "none"),
            "memory": lambda: remembering(dice),
            "one word": lambda: ruled(dice, "one_word"),
            "upper case": lambda: ruled(dice, "upper"),
            "phrase": lambda: ruled(dice, "phrase"),
            "long": lambda: long(dice, dice.number(2000, 3000)),
        }
        made = wanted.get(skill, lambda: single(dice) if dice.chance(0.7) else conversation(dice, False))()
        if skill == "thinking" and not made["thinks"]:
            continue
        ends = [
            i
            for i, m in enumerate(made["messages"])
            if m["role"] == "assistant"
            and (m["skill"] == ALSO.get(skill, skill) or skill in ("thinking", "long") and m["skill"] not in OTHER)
            and (skill not in ("names", "names in calls") or _far(m["check"]))
        ]
        if not ends or not made["messages"][ends[-1]]["check"]:
            continue
        if made["thinks"] and "reasoning_content" not in made["messages"][ends[-1]]:
            continue
        made["messages"] = made["messages"][: ends[-1] + 1]
        shown = sum(
            isinstance(m["content"], list) and sum(p["type"] == "image" for p in m["content"]) for m in made["messages"]
        )
        made["pictures"] = made["pictures"][:shown]
        found.append(made)
    return found


SKILLS = [
    "shapes",
    "colours",
    "counts",
    "positions",
    "sizes",
    "words",
    "digits",
    "two pictures",
    "memory",
    "one word",
    "upper case",
    "phrase",
    "calls",
    "two calls",
    "results",
    "no tool",
    "thinking",
    "sums",
    "story",
    "who",
    "repeat",
    "talk",
    "long",
    "looking back",
    "many",
    "letters",
    "empty",
    "not there",
    "unknown",
    "big sums",
    "too hard",
    "names",
    "names in calls",
    "plain results",
    "other languages",
]
