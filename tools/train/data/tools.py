"""Tools: declared ones are called with the arguments a request names, and their results are used."""

import json

from . import words
from .dice import ways

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
ROOMS = "kitchen bedroom bathroom hall garage office cellar attic".split()
LANGUAGES = "French German Spanish Italian Polish Dutch Greek Latin".split()
SKIES = "sunny cloudy rainy windy foggy stormy snowy clear".split()
PATHS = (
    "notes.txt main.c README.md data/list.csv src/app.py docs/plan.md config.json todo.txt test.py index.html".split()
)
COMMANDS = [
    "ls",
    "pwd",
    "make test",
    "git status",
    "cat notes.txt",
    "python3 main.py",
    "df -h",
    "git log",
    "npm test",
    "whoami",
]


class Kind:
    """One sort of tool: names it may have, its parameters, requests, and what comes of a result."""

    def __init__(self, names, about, params, requests, result, answer):
        self.names, self.about, self.params = names, about, params
        self.requests, self.result, self.answer = requests, result, answer


def _p(names, kind, about, value):
    return {"names": names, "type": kind, "about": about, "value": value}


def _city(d):
    return words.city(d, "tool")


def _path(d):
    if d.chance(0.3):
        return d.pick(PATHS, "path")
    make = (
        lambda: d.any(["", "", "src/", "docs/", "/tmp/", "data/"])
        + d.any(words.ALL)
        + d.any([".txt", ".c", ".py", ".md", ".json", ".csv"])
    )
    return d.made(make, "path")


KINDS = [
    Kind(
        ["get_weather", "weather", "current_weather", "fetch_weather", "weather_report", "get_current_weather"],
        "Get the weather of a city",
        [_p(["city", "location", "place", "town"], "string", "Name of the city", _city)],
        [
            "What is the weather in {0}?",
            "How is the weather in {0}?",
            "What's the weather like in {0}?",
            "Tell me the weather in {0}.",
            "Is it cold in {0}?",
            "Weather in {0}?",
            "Do I need an umbrella in {0}?",
            "Check the weather in {0}.",
            "How warm is it in {0}?",
            "I am going to {0}. What is the weather there?",
            "Please look up the weather for {0}.",
        ],
        lambda d: {"temperature": d.number(-9, 35), "sky": d.any(SKIES)},
        "It is {temperature} degrees and {sky} in {0}.",
    ),
    Kind(
        ["get_time", "current_time", "time_in", "clock", "get_current_time", "local_time"],
        "Get the local time of a city",
        [_p(["city", "place", "location", "zone"], "string", "City", _city)],
        [
            "What time is it in {0}?",
            "What is the time in {0}?",
            "Tell me the time in {0}.",
            "How late is it in {0}?",
            "Time in {0}?",
            "Can you check the time in {0}?",
            "I need the local time of {0}.",
            "Which time is it now in {0}?",
            "What's the clock in {0}?",
        ],
        lambda d: {"time": f"{d.number(0, 23):02}:{d.number(0, 59):02}"},
        "It is {time} in {0}.",
    ),
    Kind(
        ["multiply", "times", "product", "mul", "multiply_numbers"],
        "Multiply two numbers",
        [
            _p(["a", "x", "first"], "integer", "First number", lambda d: d.number(2, 999)),
            _p(["b", "y", "second"], "integer", "Second number", lambda d: d.number(2, 999)),
        ],
        [
            "What is {0} times {1}?",
            "Multiply {0} by {1}.",
            "{0} * {1}",
            "How much is {0} times {1}?",
            "Calculate {0} * {1}.",
            "What is the product of {0} and {1}?",
            "Compute {0} times {1}.",
            "{0} x {1} = ?",
            "Work out {0} multiplied by {1}.",
        ],
        lambda d: {"result": d.number(4, 99999)},
        "{0} times {1} is {result}.",
    ),
    Kind(
        ["search", "web_search", "search_web", "find", "lookup", "google"],
        "Search the web",
        [_p(["query", "q", "text", "terms"], "string", "What to search for", lambda d: words.anything(d, "search"))],
        [
            "Search for {0}.",
            "Look up {0}.",
            "Find something about {0}.",
            "Search the web for {0}.",
            "What can you find about {0}?",
            "Please search {0}.",
            "Can you look up {0} for me?",
            "I want to know about {0}. Search for it.",
            "Do a search for {0}.",
        ],
        lambda d: {"hits": d.number(1, 900)},
        "I found {hits} results for {0}.",
    ),
    Kind(
        ["send_message", "message", "send_text", "write_message", "send_email", "notify"],
        "Send a message to a person",
        [
            _p(["to", "recipient", "person", "receiver"], "string", "Who gets it", lambda d: words.name(d, "to")),
            _p(
                ["text", "message", "body", "content"],
                "string",
                "What it says",
                lambda d: d.made(
                    lambda: f"{d.any(['bring', 'buy', 'fetch', 'see', 'clean', 'find'])} the {words._anything(d)}",
                    "text",
                ),
            ),
        ],
        [
            "Tell {0} to {1}.",
            "Send {0} the message: {1}",
            "Write to {0}: {1}",
            "Send a message to {0} saying {1}.",
            "Message {0}: {1}",
            "Please text {0}: {1}",
            "Let {0} know: {1}",
            "Ask {0} to {1}.",
            "Send this to {0}: {1}",
        ],
        lambda d: {"status": "sent"},
        "I sent the message to {0}.",
    ),
    Kind(
        ["set_timer", "timer", "start_timer", "countdown", "create_timer"],
        "Start a timer",
        [_p(["minutes", "mins", "duration", "time"], "integer", "Minutes", lambda d: d.number(1, 90))],
        [
            "Set a timer for {0} minutes.",
            "Start a timer of {0} minutes.",
            "Timer: {0} minutes",
            "Wake me in {0} minutes.",
            "Remind me in {0} minutes.",
            "I need a timer for {0} minutes.",
            "Count down {0} minutes.",
            "Please set the timer to {0} minutes.",
        ],
        lambda d: {"status": "started"},
        "The timer runs for {0} minutes.",
    ),
    Kind(
        ["set_light", "light", "switch_light", "lamp", "control_light"],
        "Switch a light on or off",
        [
            _p(
                ["room", "where", "place"],
                "string",
                "Room",
                lambda d: d.pick(ROOMS, "room") if d.chance(0.6) else words.anything(d, "room"),
            ),
            _p(["on", "state", "enabled"], "boolean", "True for on", lambda d: d.chance(0.5)),
        ],
        [
            "Turn {1} the light in the {0}.",
            "Switch {1} the {0} light.",
            "Light {1} in the {0}.",
            "Please turn the {0} light {1}.",
            "The light in the {0} should be {1}.",
            "Make the light in the {0} go {1}.",
            "Turn the lights in the {0} {1}.",
            "{0} light {1}",
        ],
        lambda d: {"status": "ok"},
        "The light in the {0} is {1}.",
    ),
    Kind(
        ["play_music", "play", "play_song", "music", "start_music"],
        "Play music of an artist",
        [_p(["artist", "name", "singer", "band"], "string", "Artist", lambda d: words.name(d, "artist"))],
        [
            "Play something by {0}.",
            "Play music by {0}.",
            "Put on {0}.",
            "I want to hear {0}.",
            "Play a song of {0}.",
            "Let me listen to {0}.",
            "Start some music by {0}.",
            "Can you play {0}?",
        ],
        lambda d: {"playing": d.any(words.THINGS)},
        "Now playing {playing} by {0}.",
    ),
    Kind(
        ["read_file", "open_file", "cat", "get_file", "file_read", "view_file"],
        "Read a file",
        [_p(["path", "file", "filename", "file_path"], "string", "Path of the file", lambda d: _path(d))],
        [
            "Read {0}.",
            "What is in {0}?",
            "Show me {0}.",
            "Open the file {0}.",
            "Read the file {0}.",
            "What does {0} say?",
            "Print {0}.",
            "Please open {0} and tell me what it says.",
            "Look into {0}.",
            "Show the contents of {0}.",
        ],
        lambda d: {"content": words.sentence(d, 3, 6)},
        "The file says: {content}",
    ),
    Kind(
        ["run_command", "bash", "shell", "exec", "execute", "terminal"],
        "Run a shell command",
        [_p(["command", "cmd", "script"], "string", "The command", lambda d: d.pick(COMMANDS, "tool"))],
        [
            "Run {0}.",
            "Execute {0}.",
            "Run the command {0}.",
            "Please run {0} in the shell.",
            "Type {0} into the terminal.",
            "Start {0}.",
            "Do {0} in the shell.",
            "Can you run {0}?",
        ],
        lambda d: {"output": words.sentence(d, 2, 4)},
        "The output is: {output}",
    ),
    Kind(
        ["get_price", "price", "price_of", "lookup_price", "check_price"],
        "Get the price of a thing",
        [_p(["item", "product", "thing", "article"], "string", "The thing", lambda d: d.pick(words.THINGS, "price"))],
        [
            "How much is a {0}?",
            "What does a {0} cost?",
            "Price of a {0}?",
            "What is the price of a {0}?",
            "Tell me what a {0} costs.",
            "How much do I pay for a {0}?",
            "Check the price of a {0}.",
            "I want to buy a {0}. How much is it?",
        ],
        lambda d: {"price": d.number(1, 500)},
        "A {0} costs {price} euros.",
    ),
    Kind(
        ["translate", "translate_word", "translator", "to_language"],
        "Translate a word",
        [
            _p(["word", "text", "term"], "string", "Word", lambda d: words.anything(d, "word")),
            _p(["language", "target", "lang"], "string", "Language", lambda d: d.any(LANGUAGES)),
        ],
        [
            "Translate {0} to {1}.",
            "What is {0} in {1}?",
            "How do you say {0} in {1}?",
            "Say {0} in {1}.",
            "{0} in {1}?",
            "I need the {1} word for {0}.",
            "Please translate the word {0} into {1}.",
            "What is the {1} for {0}?",
        ],
        lambda d: {"translation": words.invented(d).lower()},
        "In {1}, {0} is {translation}.",
    ),
    Kind(
        ["create_event", "add_event", "calendar", "schedule", "new_appointment"],
        "Put an event into the calendar",
        [
            _p(["title", "name", "event"], "string", "Title", lambda d: words.anything(d, "title")),
            _p(["day", "date", "weekday"], "string", "Day", lambda d: d.any(DAYS)),
        ],
        [
            "Put {0} on {1} into my calendar.",
            "Schedule {0} for {1}.",
            "Add {0} on {1}.",
            "I have {0} on {1}. Note it down.",
            "Plan {0} for {1}.",
            "Create an event: {0} on {1}.",
            "Enter {0} for {1}.",
            "Remind me of {0} on {1}.",
        ],
        lambda d: {"status": "saved"},
        "I put {0} on {1} into your calendar.",
    ),
    Kind(
        ["find_phone", "phone_book", "get_phone", "contact", "lookup_contact"],
        "Find the phone number of a person",
        [_p(["name", "person", "who"], "string", "Name", lambda d: words.name(d, "phone"))],
        [
            "What is the phone number of {0}?",
            "Find the number of {0}.",
            "How can I call {0}?",
            "Phone number of {0}?",
            "Give me the phone of {0}.",
            "I want to call {0}. What is the number?",
            "Look up the phone number of {0}.",
            "Which phone number does {0} have?",
        ],
        lambda d: {"phone": str(d.number(10000, 99999))},
        "The phone number of {0} is {phone}.",
    ),
]
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
NO_TOOL = "I have no tool for that."


class Tool:
    """A declared tool: a kind with names chosen."""

    def __init__(self, dice, kind):
        self.kind, self.name = kind, dice.any(kind.names)
        self.keys = [dice.any(p["names"]) for p in kind.params]
        props = {}
        for key, p in zip(self.keys, kind.params):
            props[key] = {"type": p["type"]}
            if dice.chance(0.7):
                props[key]["description"] = p["about"]
        function = {
            "name": self.name,
            "description": kind.about + dice.any(["", ".", " by name."]),
            "parameters": {"type": "object", "properties": props, "required": list(self.keys)},
        }
        if dice.chance(0.15):
            function["parameters"]["additionalProperties"] = False
        if dice.chance(0.1):
            function = {k: function[k] for k in ("description", "name", "parameters")}
        self.declared = {"type": "function", "function": function}

    def request(self, dice):
        """Text, arguments, result, and the sentence that uses it."""
        values = [p["value"](dice) for p in self.kind.params]
        spoken = ["on" if v is True else "off" if v is False else v for v in values]
        result = self.kind.result(dice)
        return (
            dice.pick(self.kind.requests).format(*spoken),
            dict(zip(self.keys, values)),
            result,
            self.kind.answer.format(*spoken, **result),
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
        self.declared = {
            "type": "function",
            "function": {
                "name": self.name,
                "description": f"{verb.capitalize()} {words.a(noun)}",
                "parameters": {"type": "object", "properties": props, "required": list(self.keys)},
            },
        }

    def request(self, dice):
        make = {
            "string": lambda: words.anything(dice, "value"),
            "integer": lambda: dice.number(1, 999),
            "boolean": lambda: dice.chance(0.5),
        }
        given = {k: make[t]() for k, t in zip(self.keys, self.types)}
        parts = [
            f"{k}{dice.any([' ', ' = ', '=', ' '])}{v if isinstance(v, str) else json.dumps(v)}"
            for k, v in given.items()
        ]
        said = parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
        result = {"result": dice.any([dice.any(words.THINGS), dice.number(1, 999), "ok"])}
        return dice.pick(ASK_ANY).format(n=self.name, a=said), given, result, f"The result is {result['result']}."


def toolbox(dice):
    """Up to five tools of different kinds."""
    kinds = dice.random.sample(KINDS, dice.any([1, 1, 2, 2, 3]))
    made = [Tool(dice, k) for k in kinds]
    if dice.chance(0.4):
        made.append(Invented(dice))
    dice.random.shuffle(made)
    names = [t.name for t in made]
    return made if len(set(names)) == len(names) else made[:1]


def written(dice, result):
    """A result as a tool may return it."""
    if dice.chance(0.7):
        return json.dumps(result)
    return (
        ", ".join(f"{k}: {v}" for k, v in result.items())
        if len(result) > 1 or dice.chance(0.5)
        else str(list(result.values())[0])
    )


def uses(result):
    """The words of a result that an answer has to hold."""
    return [str(v) for v in result.values() if v not in ("ok", "sent", "started", "saved")]
