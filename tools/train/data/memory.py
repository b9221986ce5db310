"""What was said earlier: a fact is told, and asked for later."""

import dataclasses

from . import words
from .ask import Ask
from .dice import besides, ways


@dataclasses.dataclass
class Fact:
    """told, asked: wordings with {v}; reply: to being told; answer; unknown: asked before it was told."""

    key: str
    value: object
    told: list
    asked: list
    reply: list
    answer: str
    unknown: str


def _own(what):
    told = ways(
        f"[|You should know that |Remember: |Please remember that |By the way, |Note that |Keep in mind that |"
        f"Remember that |Just so you know, |I want to tell you that ]my {what} is {{v}}.",
        f"{{v}} is my {what}.",
        f"My {what}[: |? It is |, it is ]{{v}}.",
        f"[I want you to|Please|You must] [remember|note] my {what}: {{v}}.",
        f"[For my {what} I chose|As my {what} I have] {{v}}.",
    )
    asked = ways(
        f"[What is|What's|And what is|Tell me|Say|Do you remember|Do you know|Do you still know|Remind me of|Please "
        f"repeat|Can you tell me|Could you tell me|Please tell me] my {what}?",
        f"What [did I say|was] my {what}[| was| again]?",
        f"Which {what} [do I have|did I tell you|did I mention]?",
        f"I forgot my {what}. What [was|is] it?",
        f"[Which|What] is my {what}?",
        f"[Repeat|Name] my {what}.",
    )
    return told, asked


def _fact(what, value, nice=None):
    told, asked = _own(what)
    reply = [
        f"I will remember that your {what} is {{v}}.",
        f"Good to know: your {what} is {{v}}.",
        f"Your {what} is {{v}}. I will remember.",
    ]
    return Fact(
        what, value, told, asked, nice or reply, f"Your {what} is {{v}}.", f"You have not told me your {what} yet."
    )


_NAME_TOLD = ways(
    "[|Hi, |Hello, |Hey, |Hi! |Hello! |Good morning, |By the way, ][my name is|I am|I'm|call me|you can call me|my "
    "name's|it's] {v}.",
    "[The name is|People call me|My friends call me|I go by|They named me|They call me|Everybody calls me|You are "
    "talking to] {v}.",
    "[Please remember my name: |Remember that my name is |Nice to meet you, I am |Remember: I am ]{v}.",
    "{v} is my name.",
    "[Hello! |Hi! |]{v} here.",
    "This is {v}[| speaking].",
)
_NAME_ASKED = ways(
    "[What is|What's|And what is|Tell me|Say|Do you remember|Do you know|Do you still know|Remind me of|Can you say|"
    "Could you tell me|Please tell me|Can you tell me] my name?",
    "What [did I say my name was|was my name again|am I called|was my name|is my name again]?",
    "[Who am I|How am I called|Who is speaking to you|Who are you talking to]?",
    "Which name did I [give you|tell you|say]?",
    "[Please tell me|Say|Tell me|Do you know] who I am.",
    "I forgot my name. What is it?",
    "[With whom|To whom] are you [talking|speaking|chatting]?",
    "[What do people call me|What do my friends call me|By what name do you know me|How do you address me]?",
    "[Can you recall|Do you recall|Have you forgotten|Did you forget|Have you noted] my name?",
)
_NAME_REPLY = [
    "Nice to meet you, {v}!",
    "Hello, {v}!",
    "Hello {v}, how can I help you?",
    "Hi {v}! What can I do for you?",
]

_LIVE_TOLD = ways(
    "[|By the way, |Remember: |Note that |You should know that ][I live in|I come from|I am from|I'm from|my home is "
    "in|my home town is|my house is in|I was born in|we live in|I moved to] {v}."
)
_LIVE_ASKED = ways(
    "Where [do I live|am I from|is my home|do I come from]?",
    "[Which|What] [city|town|place] [do I live in|am I from|do I come from|is my home]?",
    "[Do you know|Tell me|Do you remember|Say|Can you tell me] where I [live|am from|come from].",
    "In which [city|town] do I live?",
    "What is my home town?",
)
_OLD_TOLD = ways(
    "[|By the way, |Remember: |Note that |You should know that ][I am|I'm] {v} years old.",
    "[|By the way, |Remember: ]my age is {v}.",
    "[I turned|I just became|I just turned] {v}[| this year].",
    "[My age? |Today is my birthday: I am |I am now ]{v}.",
)
_OLD_ASKED = ways(
    "How old am I?",
    "[What is|Tell me|Do you remember|Do you know|Say|What's|Can you tell me] my age?",
    "[Do you know|Tell me|Can you say|Do you remember] how old I am?",
    "[What age|How many years old] am I?",
)
_WORK_TOLD = ways(
    "[|By the way, |Remember: |Note that |You should know that ][I work as a|I am a|I'm a|at work I am a|I became a|"
    "I earn my money as a] {v}.",
    "[|Remember: ]my [job|profession|work] is {v}.",
)
_WORK_ASKED = ways(
    "[What is|Tell me|Do you remember|Do you know|Say|What's] my [job|profession|work]?",
    "What do I [do for a living|work as|do for work|do at work]?",
    "Which [job|profession] do I have?",
    "Do you [know|remember] what I do for [work|a living]?",
)
_HAVE_TOLD = ways(
    "[|By the way, |Remember: |Note that |You should know that ][I have a|I own a|at home I have a|we have a|my pet "
    "is a|I got a|I keep a] {v}.",
    "There is a {v} in my house.",
)
_HAVE_ASKED = ways(
    "[Which|What] [animal|pet|kind of pet|sort of animal] do I [have|own|keep]?",
    "[What is|Do you know|Do you remember|Tell me] my pet?",
    "[Tell me|Do you know|Say] which [pet|animal] I [have|own].",
    "Which animal lives with me?",
)


_OWN = {}


def _stored(what, value):
    """The same lists every time, so that what is held out stays held out."""
    if what not in _OWN:
        _OWN[what] = _fact(what, None)
    return dataclasses.replace(_OWN[what], value=value)


def fact(dice, used=()):
    makers = [
        lambda: Fact(
            "name",
            words.name(dice, "me"),
            _NAME_TOLD,
            _NAME_ASKED,
            _NAME_REPLY,
            "Your name is {v}.",
            "You have not told me your name yet.",
        ),
        lambda: Fact(
            "home",
            words.city(dice, "home"),
            _LIVE_TOLD,
            _LIVE_ASKED,
            ["{v} is a nice place.", "I will remember that you live in {v}."],
            "You live in {v}.",
            "You have not told me where you live.",
        ),
        lambda: Fact(
            "age",
            dice.made(lambda: dice.number(5, 99), "age"),
            _OLD_TOLD,
            _OLD_ASKED,
            ["So you are {v} years old.", "I will remember that you are {v}."],
            "You are {v} years old.",
            "You have not told me your age.",
        ),
        lambda: Fact(
            "job",
            dice.pick(words.JOBS, "job"),
            _WORK_TOLD,
            _WORK_ASKED,
            ["So your job is {v}.", "That sounds like good work."],
            "Your job is {v}.",
            "You have not told me your job.",
        ),
        lambda: Fact(
            "pet",
            dice.pick(words.ANIMALS, "pet"),
            _HAVE_TOLD,
            _HAVE_ASKED,
            ["A {v} must be fun.", "I like animals."],
            "You have a {v}.",
            "You have not told me about a pet.",
        ),
        lambda: _stored("favourite colour", dice.any(words.COLOURS)),
        lambda: _stored("favourite animal", dice.pick(words.ANIMALS, "favourite")),
        lambda: _stored("favourite food", dice.pick(words.FOODS, "favourite")),
        lambda: _stored("favourite city", words.city(dice, "favourite")),
        lambda: _stored("hobby", dice.pick(words.HOBBIES, "hobby")),
        lambda: _stored("lucky number", dice.made(lambda: dice.number(1, 9999), "lucky")),
        lambda: _stored("code word", words.anything(dice, "code")),
        lambda: _stored(
            "password", dice.made(lambda: words.invented(dice).lower() + str(dice.number(1, 99)), "password")
        ),
        lambda: _stored(
            dice.any(["brother", "sister", "friend", "cat", "dog", "boss", "teacher", "daughter", "son"]) + "'s name",
            words.name(dice, "other"),
        ),
        lambda: _stored(
            dice.any(
                ["favourite book", "favourite song", "secret", "team", "ship's name", "project", "motto", "street"]
            ),
            words.anything(dice, "any"),
        ),
    ]
    for _ in range(20):
        f = makers[0]() if dice.chance(0.35) else dice.any(makers)()
        if f.key not in used:
            return f
    return f


def tell(dice, f):
    """Someone tells the fact."""
    text = dice.pick(f.told).format(v=f.value)
    if text.startswith("{v}"):
        text = text.capitalize()
    answer = dice.any(f.reply).format(v=f.value)
    return Ask(text, answer, [], f"The user tells me: {f.key} is {f.value}.", "Ok")


def recall(dice, f):
    v = str(f.value)
    short = v if " " not in v else ""
    return Ask(dice.pick(f.asked), f.answer.format(v=v), [v], f"The user told me: {f.key} is {v}.", short)


def unknown(dice, f):
    return Ask(dice.pick(f.asked), f.unknown, ["not told"], f"The user has not told me: {f.key}.", "Unknown")


def at_once(dice, f):
    """The fact and the question for it in one message."""
    asked, v = recall(dice, f), str(f.value)
    between = dice.any([" ", " ", " So: ", " Now: ", "\n", " Then tell me: "])
    asked.text = dice.pick(f.told).format(v=v) + between + asked.text
    return asked


REPEAT = ways(
    "[|Please |Can you ][repeat|say|echo|write|copy] [after me|this|exactly this|the following|this text|the "
    "following words|these words][:| :] {v}",
    "[Repeat|Say|Echo|Copy]: {v}",
    "[Say|Write|Repeat] \"{v}\".",
    "[Say|Repeat|Write] {v}",
)


MORE_REPEAT = besides(
    REPEAT,
    ways(
        "[|Please |Can you |Could you ][type|print|output|answer|reply] [this|exactly this|the following|the words]: "
        "{v}",
        "[|Please |Just |Only ][type|print|output|answer|reply with|write down|write just|write only] {v}",
        "[Say|Write|Type] [the word|the words|the text] {v}",
        "[Give me back|Send back|Return] [this|the words|the text]: {v}",
    ),
)


def repeat(dice):
    make = words.soup if not dice.held and dice.chance(0.4) else words._anything
    said = make(dice) if dice.chance(0.4) else " ".join(make(dice) for _ in range(dice.number(1, 4)))
    short = "" if " " in said else said
    text = dice.pick(REPEAT if dice.chance(0.6) else MORE_REPEAT).format(v=said)
    return Ask(text, said, [said], f"I have to repeat: {said}", short)
