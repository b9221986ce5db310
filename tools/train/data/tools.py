"""Tools: declared ones are called with the arguments a request names, and their results are used."""

import json

from . import words
from .dice import besides, ways
from .kinds import KINDS

VERBS = (
    "get set add make find check update open close start load save count move copy show scan sort merge fetch".split()
)
NOUNS = (
    "order item user ticket record report task page account device image table cache queue score badge route parcel key"
).split()
FIELDS = [
    "id",
    "label",
    "size",
    "level",
    "owner",
    "amount",
    "mode",
    "code",
    "limit",
    "target",
    "tag",
    "index",
    "reason",
    "unit",
]
ASK_ANY = ways(
    "[|Please |Can you |I want you to |Now ][use|call|run|invoke|execute|try] [|the tool |the function ]{n} with "
    "{a}[|.]",
    "[I need|Do|Make a call to] {n} with {a}[|, please].",
    "{n} with {a}[|, please|.]",
    "[Call|Use|Run] {n}[, |: | using | for ]{a}.",
)
ASK_MORE = besides(
    ASK_ANY,
    ways(
        "[|Please |Could you |Would you |You should |I'd like you to ][use|call|run|invoke|execute|try|start|apply] "
        "[|the tool |the function |your tool |your function ]{n}[ with|. Arguments:|, with|; the arguments are|, "
        "where] {a}[|.]",
        "[With|Given|For] {a}[, |: ][call|use|run|invoke|execute|apply] {n}[|.| please.]",
        "[I want to see what|Show me what|Tell me what] {n} [gives|returns|says] [for|with] {a}[|.]",
        "[Arguments|Parameters|Values]: {a}. [Tool|Function|Call]: {n}",
    ),
)
JOINS = (
    " and ",
    ". Also, ",
    ", and also ",
    "? And ",
    ", then ",
    ". After that, ",
    " and then ",
    ". Then ",
    "; also, ",
    ". And ",
    ". Next, ",
    ". Besides, ",
    ", and ",
    " and at the same time ",
    ".\n",
    ". One more thing: ",
)
AROUND = (
    "{0}",
    "{0}",
    "{0}",
    "Two things. {0}",
    "First: {0}",
    "I have two wishes: {0}",
    "Do both: {0}",
    "Here is what I need: {0}",
)
# Held out by their text, but the fourth leg was trained on them.
_TRAINED = (". Finally, ", ". When that is done, ", "Two requests: {0}")
# Nothing in these is held out of the first ones.
MORE_JOINS = [
    [text for text in ways(pattern) if text not in _TRAINED]
    for pattern in (
        "[,|;| and|, and] [next|now|afterwards|after that|finally|besides|in addition|secondly|later|likewise|"
        "furthermore|second][| please|,] ",
        ". [Next|Now|Afterwards|After that|Also|Finally|In addition|Besides|Secondly|Second|Later|Last|Moreover|When "
        "that is done|And now|And please][,| please|:| do this:] ",
        ". [I also want|I also need|I also have|I want|I need|Here is|There is|And here is|You should also do] "
        "[this|one more thing|another thing|something else|a second thing|another task|another wish|more][:|.] ",
        "[.|][\n|\n\n|\n- |\n* |\n2. ][and |also |next |now |]",
        " [plus|&|+|and meanwhile|and in parallel|and please|and now|while you are at it,|and besides that] ",
        "[? And|? Also,|? Next,|? Now|?|? And please|? Besides,] ",
    )
]
MORE_AROUND = [
    [text for text in ways(pattern) if text not in _TRAINED]
    for pattern in (
        "[Two|Both|A pair of|A couple of] [requests|tasks|wishes|questions|jobs|orders][.|:] {0}",
        "[Listen|Please|Hello|Hey|Now|Ok|Well|So|Attention][.|:|,|!] {0}",
        "[Here are|There are|I have|Now come] [two|both|my] [jobs|tasks|requests|orders|errands][.|:] {0}",
        "[|Please |Now ]do [this|these|both things|the following|these two|all of it]: {0}",
        "[This is|That is] what [I want|you should do|has to be done|I need][.|:] {0}",
        "[Help me with|Take care of|Handle] [this|these|both][.|:] {0}",
        "[First|First of all|To begin][,|:] {0}",
        "My [wishes|tasks|two requests|list|orders][.|:] {0}",
    )
]
NO_TOOL = "I have no tool for that."


def styled(dice, name):
    """A name as this or that program would spell it."""
    parts = name.split("_")
    kind = dice.random.random()
    if kind < 0.08:
        return parts[0] + "".join(p.capitalize() for p in parts[1:])
    if kind < 0.13:
        return "".join(p.capitalize() for p in parts)
    if kind < 0.17:
        return "-".join(parts)
    if kind < 0.22:
        return f"{dice.any(['mcp', 'my', 'home', 'app', 'box', 'default', 'core'])}{dice.any(['_', '__', '-'])}{name}"
    return name


def declared(dice, name, about, props, required):
    """The schema as people write it, in this or that order."""
    function = {
        "name": name,
        "description": about,
        "parameters": {"type": "object", "properties": props, "required": required},
    }
    if dice.chance(0.15):
        function["parameters"]["additionalProperties"] = False
    if dice.chance(0.05):
        function["strict"] = True
    if dice.chance(0.1):
        function = {k: function[k] for k in ("description", "name", "parameters")}
    if dice.chance(0.05):
        function.pop("description")
    return {"type": "function", "function": function}


# How what a tool and a parameter are for may be put.
BEFORE = ["", "", "", "", "Use this for: ", "Function: ", "Tool for the user. ", "Call it when asked: "]
AFTER = ["", "", ".", ".", " by name.", ". Returns JSON.", " and return it", " for the user.", ". Ask only if needed."]

# What a schema may offer and a request need not give.
EXTRA = [
    ("units", {"type": "string", "enum": ["celsius", "fahrenheit"]}),
    ("format", {"type": "string", "enum": ["short", "long"]}),
    ("verbose", {"type": "boolean"}),
    ("timeout", {"type": "integer", "description": "Seconds to wait"}),
    ("unit", {"type": "string", "description": "Optional"}),
    ("comment", {"type": "string", "description": "Optional remark"}),
    ("max_results", {"type": "integer", "default": 10}),
]


def described(dice, param):
    """A parameter's description; an example in it is not to be taken for the value."""
    kind = dice.random.random()
    if kind < 0.3:
        return f"{param['about']}{dice.any([', e.g. ', ', for example ', ' such as '])}{param['value'](dice)}"
    if kind < 0.4:
        return dice.any(["The ", "Required. "]) + param["about"].lower()
    return param["about"] + dice.any(["", "", ".", " (required)", " as the user gave it"])


class Tool:
    """A declared tool: a kind with names chosen."""

    def __init__(self, dice, kind):
        self.kind, self.name = kind, styled(dice, dice.any(kind.names))
        self.order = list(range(len(kind.params)))
        if dice.chance(0.3):
            dice.random.shuffle(self.order)
        self.keys = [dice.any(p["names"]) for p in kind.params]
        if len(set(self.keys)) < len(self.keys):
            self.keys = [p["names"][i] for i, p in enumerate(kind.params)]
        props = {}
        for i in self.order:
            p = kind.params[i]
            props[self.keys[i]] = {"type": "number" if p["type"] == "integer" and dice.chance(0.2) else p["type"]}
            if dice.chance(0.7):
                props[self.keys[i]]["description"] = described(dice, p)
            if p["choices"] and dice.chance(0.3):
                props[self.keys[i]]["enum"] = p["choices"]
        required = [self.keys[i] for i in self.order]
        if dice.chance(0.2):
            name, schema = dice.any(EXTRA)
            if name not in props:
                props[name] = schema
        about = dice.any(BEFORE) + dice.any(kind.about) + dice.any(AFTER)
        self.declared = declared(dice, self.name, about, props, required)

    def request(self, dice):
        """Text, arguments, result, and the sentence that uses it."""
        values = [p["value"](dice) for p in self.kind.params]
        said, result = spoken(values), self.kind.result(dice)
        return (
            self.kind.wording(dice).format(*said),
            {self.keys[i]: values[i] for i in self.order},
            result,
            self.kind.answer.format(*said, **result),
        )


class Invented(Tool):
    """A tool nobody has heard of, called by its name."""

    def __init__(self, dice):
        self.name = dice.made(lambda: f"{dice.any(VERBS)}_{dice.any(NOUNS)}", "tool")
        self.keys = dice.random.sample(FIELDS if dice.chance(0.5) else words.THINGS + words.FILLER, dice.number(1, 3))
        self.types = [dice.any(["string", "integer", "string", "boolean"]) for _ in self.keys]
        props = {
            k: {"type": t, **({"description": f"The {k}"} if dice.chance(0.5) else {})}
            for k, t in zip(self.keys, self.types)
        }
        verb, noun = self.name.split("_")
        self.name = styled(dice, self.name)
        self.declared = declared(dice, self.name, f"{verb.capitalize()} {words.a(noun)}", props, list(self.keys))

    def request(self, dice):
        make = {
            "string": lambda: words.anything(dice, "value"),
            "integer": lambda: dice.number(1, 999),
            "boolean": lambda: dice.chance(0.5),
        }
        given = {k: make[t]() for k, t in zip(self.keys, self.types)}
        between = dice.any([" ", " = ", "=", " ", ": ", " is "])
        parts = [
            f"{k}{between if dice.chance(0.5) else dice.any([' ', ' = ', '=', ' '])}"
            f"{v if isinstance(v, str) else json.dumps(v)}"
            for k, v in given.items()
        ]
        said = parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
        result = {"result": dice.any([dice.any(words.THINGS), dice.number(1, 999), "ok"])}
        wording = dice.pick(ASK_ANY if dice.chance(0.6) else ASK_MORE)
        return wording.format(n=self.name, a=said), given, result, f"The result is {result['result']}."


def toolbox(dice):
    """Up to six tools of different kinds."""
    kinds = dice.random.sample(KINDS, dice.any([1, 1, 1, 2, 2, 2, 3, 3, 4, 5]))
    made = [Tool(dice, k) for k in kinds]
    if dice.chance(0.4):
        made.append(Invented(dice))
    dice.random.shuffle(made)
    names = [t.name for t in made]
    return made if len(set(names)) == len(names) else made[:1]


def spoken(values):
    """Values as a request says them."""
    return ["on" if v is True else "off" if v is False else str(v) for v in values]


def both(dice, first, second, values):
    """Two requests as one; a value that the second begins with keeps its capital."""
    if not second.startswith(tuple(spoken(values))):
        second = second[0].lower() + second[1:]
    join, around = dice.pick(JOINS, "join"), dice.pick(AROUND, "around")
    if dice.chance(0.4 if dice.held else 0.6):
        join = dice.pick_of(MORE_JOINS)
    if dice.chance(0.4):
        around = dice.pick_of(MORE_AROUND)
    return around.format(first.rstrip(".?") + join + second)


def written(dice, result):
    """A result as a tool may return it."""
    if dice.chance(0.6 if not dice.held else 0.7):
        return json.dumps(result, ensure_ascii=False)
    if dice.held or dice.chance(0.4):
        return (
            ", ".join(f"{k}: {v}" for k, v in result.items())
            if len(result) > 1 or dice.chance(0.5)
            else str(list(result.values())[0])
        )
    return plain(dice, result)


def plain(dice, result):
    """A result in a line or some lines of text."""
    pair, between = dice.any(
        [("{k}: {v}", "\n"), ("{k} = {v}", "; "), ("The {k} is {v}.", " "), ("{k} {v}", ", ")]
        + [("{v}", ", "), ("{v}", " ")]
    )
    unit = dice.any(["°C", "°", " °C", " degrees"])
    shown = {k: f"{v}{unit}" if k == "temperature" and dice.chance(0.6) else v for k, v in result.items()}
    said = between.join(pair.format(k=k, v=v) for k, v in shown.items())
    return dice.any(["{0}", "{0}", "{0}", "Result: {0}", "OK. {0}", "{0}\n", "Done. {0}"]).format(said)


SAYS = "The tool says: {0}"
_NEWS = ways(
    "[Error|Failed|Sorry|Warning|Problem|Not found|Timeout][: |. |, ][{w} not found|no {w} for {n}|unknown {w}|the {w} "
    "is closed|{n} is not here|try again later|no access to {w}|{d} is too much]",
    "[The {w} is {x}|A {x} {w}|It is {x} and {w}|{d} {w}|{w}: {x}|{n} is {x}|{n} has {d} {w}|{d} degrees and {x}][.|, "
    "{d} {v}.|, very {x}.|; {w} {d}.| in {n}.| until {d}:{d}.| since {d}.]",
    "[Nothing to report|No news|All is well|It worked|No result|Empty list|Done][.| for {n}.| in {n}.|: {w}.]",
    "[{n} arrives at {d}:{d}|{w} costs {d} euros|{d} people like {n}|The {w} of {n} is {x}|See {w} number "
    "{d}|{n} likes "
    "{w} and {v}|There are {d} {w}s in {n}][.|!|]",
)


def news(dice):
    """What a tool may say in its own words."""
    pick = lambda: dice.any(words.WIDE)  # noqa: E731
    return dice.made(
        lambda: dice.pick(_NEWS).format(
            w=pick(), v=pick(), x=dice.any(words.ADJECTIVES), d=dice.number(1, 99), n=words.city(dice, "news")
        ),
        "news",
    )


def uses(result):
    """The words of a result that an answer has to hold."""
    return [str(v) for v in result.values() if v not in ("ok", "sent", "started", "saved")]
