"""System prompts that change how every answer is written."""

import dataclasses

from . import words
from .dice import ways

_ALWAYS = "[|Always |Please |Please always |You must |You should always ]"
ONE_WORD = ways(
    _ALWAYS
    + "[answer|reply|respond] [in|with|using] "
    "[one word|a single word|exactly one word|just one word|only one word][|.| only.]",
    "[Use|Give|Write|Say] [only one word|just one word|a single word|one word only] [in|for|as] [your answers|each "
    "answer|every answer|an answer].",
    "[Every|Each] [answer|reply|response] [must be|has to be|is|should be] [one word|a single word|one word long|"
    "just one word].",
    "[Your|All] [answers|replies|responses] [must be|have to be|are|should be] [one word|a single word|one word long|"
    "single words].",
    "[One-word|Single-word|One word|Single word] [answers|replies|responses] [only|please].",
    "[Limit|Keep|Restrict] [yourself|each answer|every reply] to [one word|a single word].",
    "[No sentences|Do not write sentences|Be very short|Be brief]: [one word|a single word][ only| is enough|].",
    "[Only|Just] one word[|, please| per answer].",
)
_CAPITALS = (
    "[upper case|uppercase|capital letters|capitals|all caps|ALL CAPS|block capitals|uppercase letters|"
    "upper-case letters|big letters]"
)
UPPER = ways(
    _ALWAYS + "[answer|reply|respond|write|speak] in " + _CAPITALS + "[| only].",
    "[Use|Write] [only |just |nothing but ]" + _CAPITALS + "[| in your answers| for every answer].",
    "[Write|Put|Say|Give] [everything|all answers|every answer|all your answers|each reply|your answers] in "
    + _CAPITALS
    + ".",
    "[Your answers|All answers|Your replies|All your replies|Every answer|Each reply] [must be|should be|has to be] "
    "[in|written in] "
    + _CAPITALS
    + ".",
    "[Capitalise|Capitalize|Uppercase] [everything|all letters|every letter|your answers|each answer][| you write].",
    "[ANSWER|REPLY|WRITE|RESPOND] IN [CAPITALS|UPPER CASE|CAPITAL LETTERS|UPPERCASE].",
    "[Shout|You always shout|You are shouting|Shout every answer]: [use|write in|answer in] " + _CAPITALS + ".",
    "[No|Never use|Do not use] [lower case|lowercase|small letters][|, only " + "capitals|, use upper case].",
)
_P = "[{p}|\"{p}\"|'{p}'|the phrase \"{p}\"|the words {p}|the words \"{p}\"|the phrase {p}]"
MENTION = ways(
    _ALWAYS
    + "[mention|include|say|use] "
    + _P
    + "[| in every answer| in each answer| in all your answers| in your answer| in every reply| when you answer].",
    "[Every|Each] [answer|reply|response] [must|has to|should] [mention|contain|include|say] " + _P + ".",
    "[Never forget to|Do not forget to|Make sure to|Be sure to|Remember to] [mention|say|include] "
    + _P
    + "[| in every answer| each time].",
    "[Whatever|No matter what] [is asked|the user asks|I ask], [mention|say|include] " + _P + ".",
    "[Your|All your] [answers|replies] [must|have to|should|always] [mention|contain|include] " + _P + ".",
    "In [every|each] [answer|reply], [mention|include|say] " + _P + ".",
    "[It is important|It is a must|The user wants you|I want you] to [mention|include|say] " + _P + "[| every time].",
    "[Work|Weave|Put|Slip] " + _P + " into [every answer|each answer|your answers|all you say|each reply].",
    "[Every|Each] time you [answer|reply|speak|respond], [mention|include|say|use] " + _P + ".",
)
LAST = ways(
    _ALWAYS
    + "[end|finish|close|conclude] "
    "[|every answer |each answer |all replies |every reply |your answers |each response ]with "
    + _P
    + ".",
    "[Put|Write|Add|Say|Place] " + _P + " at the end of [every answer|each answer|your answers|each reply].",
    "The last words of [each|every|an] [answer|reply] [are|must be] \"{p}\".",
    "[Every|Each] [answer|reply] [ends|must end|has to end|should end] with " + _P + ".",
)
FIRST = ways(
    _ALWAYS
    + "[begin|start|open] [|every answer |each answer |all replies |every reply |your answers |each response ]with "
    + _P
    + ".",
    "[Put|Write|Add|Say|Place] "
    + _P
    + " at the [beginning|start] of [every answer|each answer|your answers|each reply].",
    "The first words of [each|every|an] [answer|reply] [are|must be] \"{p}\".",
    "[Every|Each] [answer|reply] [begins|must begin|has to start|should start] with " + _P + ".",
)
CALLED = ways(
    "[Your name is|You are|You are called|You are an assistant named|You are an assistant called|Act as|Call "
    "yourself|From now on you are|The assistant's name is] {n}.",
    "You are {n}, a [helpful|friendly|tiny|polite] [assistant|model|robot].",
    "[Pretend to be|Play the role of|Your name: |You go by the name] {n}.",
)
PLAIN = [
    "You are a helpful assistant.",
    "You are a friendly assistant.",
    "Be polite.",
    "Be brief.",
    "You are a helpful AI assistant.",
    "Answer the questions of the user.",
    "Help the user.",
    "You are an assistant.",
    "Be kind and correct.",
    "Answer truthfully.",
    "You are a coding agent.",
    "You are an agent that can use tools.",
    "Follow the instructions of the user.",
]
_PHRASES = [
    "have a nice day",
    "motet is fast",
    "thank you",
    "carpe diem",
    "safety first",
    "hello world",
    "stay curious",
    "all is well",
    "keep calm",
    "to be continued",
    "over and out",
    "that is all",
    "see you soon",
    "as you wish",
    "my friend",
    "my captain",
]


_MADE = ways(
    "[have|enjoy|wish you] a [nice|lovely|great|calm|merry|quiet|long] [evening|week|trip|morning|summer|winter|night]",
    "[long live|beware of|remember|praise|follow|think of|mind|forget] the {w}",
    "my [{w}|dear {w}|little {w}|old {w}|good {w}|sweet {w}]",
    "{w} [and|or|not|before|after|without|like|over] {v}",
    "[for|by|with|without|under|beyond] the {w}",
    "[never|always|sometimes|often|please] {w} [the|a|my|your] {v}",
    "[we|they|all|you] [love|want|need|see|like|know] {w}",
    "the {w} [is|was|will be|must be|can be] [here|great|gone|near|late|mine|yours|new]",
    "{w} [first|again|for ever|at last|of course|indeed|today|tomorrow]",
    "[dear|oh|hello|dearest|poor|good old] {w}",
    "[hip hip hooray|so be it|no pain no gain|time is money|less is more|ship it|it depends|good luck|well well|so "
    "it goes]",
)


@dataclasses.dataclass
class Rules:
    """What the system prompt asks for."""

    text: str = ""
    one_word: bool = False
    upper: bool = False
    phrase: str = ""
    how: str = ""
    called: str = ""

    def applied(self, answer, short):
        text = answer
        if self.called:
            text = text.replace("I am Box,", f"I am {self.called},")
            short = self.called if short == "Box" else short
        if self.one_word and short:
            text = short
        if self.phrase:
            first = self.phrase[0].upper() + self.phrase[1:]
            text = {
                "first": f"{first}. {text}",
                "last": f"{text} {first}.",
                "mention": f"{text} By the way: {self.phrase}.",
            }[self.how]
        return text.upper() if self.upper else text

    def check(self, short):
        made = {}
        if self.one_word and short:
            made["one_word"] = True
        if self.upper:
            made["upper"] = True
        if self.phrase:
            made["phrase"] = self.phrase
        return made


def phrase(dice):
    if dice.chance(0.2):
        return dice.pick(_PHRASES, "phrase")
    if dice.chance(0.4):
        make = lambda: dice.pick(_MADE).format(w=dice.any(words.WIDE), v=dice.any(words.WIDE))  # noqa: E731
        return dice.made(lambda: make().lower(), "phrase")
    return words.anything(dice, "phrase")


def rules(dice, kind=None):
    kind = kind or dice.any(["one_word", "upper", "phrase", "phrase", "called", "plain"])
    made = Rules()
    lines = []
    if kind == "one_word":
        made.one_word = True
        lines.append(dice.pick(ONE_WORD))
    if kind == "upper" or kind == "one_word" and dice.chance(0.1) or kind == "phrase" and dice.chance(0.1):
        made.upper = True
        lines.append(dice.pick(UPPER))
    if kind == "phrase" or kind == "upper" and dice.chance(0.1):
        made.phrase, made.how = phrase(dice), dice.any(["mention", "mention", "mention", "last", "first"])
        lines.append(dice.pick({"mention": MENTION, "last": LAST, "first": FIRST}[made.how]).format(p=made.phrase))
    if kind == "called":
        made.called = words.name(dice, "called")
        lines.append(dice.pick(CALLED).format(n=made.called))
    if kind == "plain" or dice.chance(0.35):
        lines.append(dice.pick(PLAIN))
    dice.random.shuffle(lines)
    made.text = " ".join(lines)
    return made
